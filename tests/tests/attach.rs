//! Goal: a running program can be recorded for a while and is then as it was. Method: attach to a fixture that checks its
//! own work; afterwards its code in memory must equal its file, and no thread of ours may be left.

use e2e::{
    Ended, Hindsight, Program, Recording, Running, Scratch, Signal, Status, Steady, changed_text,
    wait_until,
};

/// The fixture, started natively and at work.
struct Target {
    scratch: Scratch,
    steady: Steady,
    running: Running,
}

impl Target {
    fn start(name: &str) -> Self {
        let scratch = Scratch::new(name);
        let steady = Steady::new(&scratch);
        let running = steady.unhurried(&scratch).start();
        wait_until("the program's work", || (steady.rounds() > 0).then_some(()));
        Self {
            scratch,
            steady,
            running,
        }
    }

    fn attach(&self, more: &[&str]) -> (Running, Recording) {
        let rec = self.scratch.join("rec");
        let pid = self.running.pid().to_string();
        let args = [
            "record",
            "-o",
            rec.to_str().expect("UTF-8"),
            "--attach",
            &pid,
        ];
        let running = Hindsight::command(&self.scratch, &args).args(more).start();
        (running, Recording::new(self.scratch.join("rec.hindsight")))
    }

    /// The program goes on, its code is as in its file, its threads are its own; told to stop, it ends as it should.
    fn assert_left_alone(self) {
        let pid = self.running.pid();
        let before = self.steady.rounds();
        wait_until("more rounds", || {
            (self.steady.rounds() > before + 1_000).then_some(())
        });
        // A killed recorder's guardian comes a moment later.
        wait_until("the patches to be taken back", || {
            let is_whole = |file| changed_text(pid, file).is_empty();
            (is_whole("/steady") && is_whole("/libc.so.6")).then_some(())
        });
        // Two of its own; those of the agent end soon after it is told to go.
        wait_until("the agent's threads to end", || {
            (e2e::thread_names(pid).len() == 2).then_some(())
        });
        self.steady.stop();
        let ended = self.running.finish();
        assert_eq!(ended.status, Status::Code(21), "{}", ended.errors());
        assert_eq!(ended.text(), "rounds done, wrong 0\n");
    }
}

fn assert_recorded(recording: &Recording, ended: &Ended) {
    assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
    assert!(
        recording.number("SELECT count(*) FROM calls WHERE function = 'churn' AND NOT unwound")
            > 1_000
    );
    assert_eq!(
        recording.number("SELECT count(*) FROM events WHERE kind = 'detached'"),
        1
    );
    assert_eq!(
        recording.number("SELECT count(*) FROM events WHERE kind = 'process_exit'"),
        0
    );
    assert_eq!(
        recording.number("SELECT count(DISTINCT tid) FROM calls WHERE function = 'churn'"),
        2
    );
    let depths = recording
        .number("SELECT count(*) FROM calls WHERE function = 'leaf' AND ret <> (a0 * 2654435761)");
    assert_eq!(depths, 0, "results are right");
    assert_eq!(recording.command("check", &[]).status, Status::Code(0));
}

#[test]
fn attaching_for_a_second_leaves_no_trace() {
    let target = Target::start("attach_for");
    let (recorder, recording) = target.attach(&["--for", "1"]);
    assert_recorded(&recording, &recorder.finish());
    target.assert_left_alone();
}

#[test]
fn attaching_twice_works_as_the_first_time() {
    let target = Target::start("attach_twice");
    for _ in 0..2 {
        let (recorder, recording) = target.attach(&["--for", "0.5"]);
        assert_recorded(&recording, &recorder.finish());
        std::fs::remove_dir_all(recording.path()).expect("the recording is closed");
    }
    target.assert_left_alone();
}

#[test]
fn ctrl_c_detaches_from_an_attached_program() {
    let target = Target::start("attach_interrupt");
    let (recorder, recording) = target.attach(&[]);
    wait_for_calls(&recording);
    recorder.signal_group(Signal::INT);
    let ended = recorder.finish();
    assert_recorded(&recording, &ended);
    target.assert_left_alone();
}

#[test]
fn blocking_while_attached_loses_nothing() {
    let target = Target::start("attach_block");
    let (recorder, recording) = target.attach(&["--for", "0.5", "--on-full", "block"]);
    assert_recorded(&recording, &recorder.finish());
    assert_eq!(recording.number("SELECT count(*) FROM gaps"), 0);
    target.assert_left_alone();
}

#[test]
fn killing_the_recorder_of_an_attached_program_leaves_it_running() {
    let target = Target::start("attach_kill");
    let (recorder, recording) = target.attach(&[]);
    wait_for_calls(&recording);
    recorder.signal(Signal::KILL);
    drop(recorder);
    assert!(recording.number("SELECT count(*) FROM calls") > 0);
    target.assert_left_alone();
}

#[test]
fn a_program_that_ends_while_attached_ends_the_recording() {
    let target = Target::start("attach_end");
    let (recorder, recording) = target.attach(&[]);
    wait_for_calls(&recording);
    target.steady.stop();
    let ended = recorder.finish();
    assert_eq!(target.running.finish().status, Status::Code(21));
    assert_eq!(
        recording.number("SELECT count(*) FROM events WHERE kind = 'process_exit'"),
        1,
        "{}",
        ended.errors()
    );
    assert_eq!(
        recording.number("SELECT count(*) FROM calls WHERE end_seq IS NULL"),
        0
    );
}

#[test]
fn attaching_to_nothing_is_an_error_of_its_own() {
    let scratch = Scratch::new("attach_nothing");
    let child = Program::new("/bin/true", scratch.path()).start();
    let pid = child.pid().to_string();
    let _ = child.finish();
    let ended = Hindsight::command(&scratch, &["record", "--attach", &pid]).run();
    assert_eq!(ended.status, Status::Code(4), "{}", ended.errors());
    assert!(ended.errors().contains(&pid), "{}", ended.errors());
}

fn wait_for_calls(recording: &Recording) {
    wait_until("calls in the recording", || {
        let rows = recording.try_rows("SELECT count(*) AS n FROM calls").ok()?;
        (rows.first()?["n"].as_i64()? > 1_000).then_some(())
    });
}

//! Goal: a running program can be recorded for a while and is then unchanged. Method: attach to a fixture that checks its
//! own work; afterwards its code in memory must equal its file, and none of our threads may be left.
//! Of several builds of a program each run takes a part; `WHOLE=1` all.

use e2e::{
    Ended, Hindsight, Live, Program, Recording, Running, Scratch, Signal, Status, Steady,
    changed_text, fixture_artifact, in_turn, kill, thread_names, wait_until,
};

/// The fixture, started natively and running.
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

    /// The program continues, its code is as in its file, and it has no other threads; when asked to stop, it ends
    /// correctly.
    fn assert_left_alone(self) {
        let pid = self.running.pid();
        let before = self.steady.rounds();
        wait_until("more rounds", || {
            (self.steady.rounds() > before + 1_000).then_some(())
        });
        // The guardian of a killed recorder acts a moment later.
        wait_until("the patches to be taken back", || {
            let is_whole = |file| changed_text(pid, file).is_empty();
            (is_whole("/steady") && is_whole("/libc.so.6")).then_some(())
        });
        // Two of its own; those of the agent end soon after it is unloaded.
        wait_until("the agent's threads to end", || {
            (thread_names(pid).len() == 2).then_some(())
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
fn a_program_that_crashes_is_recorded_to_its_end() {
    let target = Target::start("attach_crash");
    let (recorder, recording) = target.attach(&[]);
    wait_until("calls in the recording", || {
        let rows = recording.try_rows("SELECT count(*) AS n FROM calls").ok()?;
        (rows.first()?["n"].as_i64()? > 1_000).then_some(())
    });
    kill(target.running.pid(), Signal::SEGV);
    let ended = recorder.finish();
    let told = "SIGSEGV ended the program";
    assert!(ended.errors().contains(told), "{}", ended.errors());
    assert_eq!(ended.status, Status::Code(128 + 11), "{}", ended.errors());
    let exits = recording
        .row("SELECT count(*) AS n, max(aux) AS aux FROM events WHERE kind = 'process_exit'");
    assert_eq!(exits["n"], 1);
    assert_eq!(exits["aux"], "SIGSEGV");
    assert_eq!(recording.number("SELECT count(*) FROM exceptions"), 1);
    assert_eq!(target.running.finish().status, Status::Signal(11));
    assert_eq!(recording.command("check", &[]).status, Status::Code(0));
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

/// The library that stays in one program is the same file that others have mapped: writing into it would undo their
/// relocations.
#[test]
fn programs_that_were_attached_to_twice_end_well_side_by_side() {
    let targets = ["attach_side", "attach_by_side"].map(Target::start);
    for target in &targets {
        for _ in 0..2 {
            let (recorder, recording) = target.attach(&["--for", "0.5"]);
            assert_recorded(&recording, &recorder.finish());
            let ours = "SELECT count(*) FROM modules WHERE name LIKE 'runtime-%'";
            assert_eq!(
                recording.number(ours),
                0,
                "what we left there is not the program's"
            );
            std::fs::remove_dir_all(recording.path()).expect("the recording is closed");
        }
    }
    targets.into_iter().for_each(Target::assert_left_alone);
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
fn attaching_loses_nothing_unless_it_is_told_to() {
    let target = Target::start("attach_block");
    let (recorder, recording) = target.attach(&["--for", "0.5"]);
    assert_recorded(&recording, &recorder.finish());
    assert_eq!(recording.number("SELECT count(*) FROM gaps"), 0);
    assert_eq!(on_full(&recording), "block");
    std::fs::remove_dir_all(recording.path()).expect("the recording is closed");
    let (recorder, recording) = target.attach(&["--for", "0.5", "--on-full", "drop"]);
    assert_recorded(&recording, &recorder.finish());
    assert_eq!(on_full(&recording), "drop");
    target.assert_left_alone();
}

/// The gaps in a recording from threads without a ring.
fn on_full(recording: &Recording) -> String {
    let info = recording.command("info", &["--json"]).result();
    let policy = info["settings"]["on_full"].as_str().expect("a word");
    policy.to_owned()
}

/// A live session with the fixture at full speed, attached to with these options. The daemon sleeps until `is_enough`. Returns the
/// recording, how many calls of `churn` from `main` it has since the session was asked to pause, and how many there were.
fn churned(
    name: &str,
    options: &[&str],
    mut is_enough: impl FnMut(&Steady) -> bool,
) -> (Live, Recording, [u64; 2]) {
    let live = Live::new(name);
    let steady = Steady::new(&live.scratch);
    let running = steady.program(&live.scratch, 0).start();
    wait_until("the program's work", || (steady.rounds() > 0).then_some(()));
    let pid = running.pid().to_string();
    live.ask(&[&["attach", "-f", "churn", "-f", "leaf"], options, &[&pid]].concat());
    live.ask(&["pause"]);
    let before = steady.begun();
    live.ask(&["continue", "--all", "--no-wait"]);
    let daemon = live.daemon().expect("a daemon");
    kill(daemon, Signal::STOP);
    wait_until("more rounds", || is_enough(&steady).then_some(()));
    kill(daemon, Signal::CONT);
    steady.stop();
    let ended = running.finish();
    assert_eq!(ended.status, Status::Code(21), "{}", ended.errors());
    assert_eq!(ended.text(), "rounds done, wrong 0\n");
    let end = live.ask(&["await"]);
    assert_eq!(end["status"], "ended", "{end:#}");
    let recording = live.recording();
    let recorded = recording.number(
        "SELECT count(*) FROM calls WHERE function = 'churn' AND a0 = 7 \
         AND start_seq > (SELECT max(seq) FROM pauses)",
    );
    let counts = [recorded.cast_unsigned(), steady.begun() - before];
    // The program has ended; its recording is closed a moment later.
    let checked = wait_until("the recording is closed", || {
        let status = recording.command("check", &[]).status;
        (status != Status::Code(3)).then_some(status)
    });
    assert_eq!(checked, Status::Code(0));
    (live, recording, counts)
}

#[test]
fn a_session_that_attaches_loses_nothing_unless_it_is_told_to() {
    let (mut last, mut same) = (0, 0);
    let (_live, recording, [recorded, made]) = churned("attach_live", &[], |steady| {
        // The rings are full, and the program waits.
        let now = steady.rounds();
        same = if now == last { same + 1 } else { 0 };
        last = now;
        same > 200
    });
    assert_eq!(recorded, made);
    assert!(made > 1_000, "{made}");
    assert_eq!(recording.number("SELECT count(*) FROM gaps"), 0);
    assert_eq!(on_full(&recording), "block");
}

#[test]
fn a_session_that_may_drop_says_what_it_has_dropped() {
    let mut first = None;
    let options = ["--on-full", "drop"];
    let (live, recording, [recorded, made]) = churned("attach_drop", &options, |steady| {
        let now = steady.rounds();
        now > *first.get_or_insert(now) + 1_000_000
    });
    assert!(recorded < made, "{recorded} of {made}");
    let lost = recording.number("SELECT sum(lost) FROM gaps WHERE reason = 'ring full'");
    // Each call that is missing would have been two records, or one if only its end is missing.
    assert!(
        lost.cast_unsigned() >= made - recorded,
        "{lost}: {recorded} of {made}"
    );
    assert_eq!(on_full(&recording), "drop");
    let said = live.command(&["stop"]).run().text();
    assert!(said.contains("Lost: "), "{said}");
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

/// Attaches twice to a program that unwinds or handles signals in all of its threads, so that some of them are in stubs
/// at every detach, then asks it to end.
fn assert_unharmed(
    fixture: &str,
    artifact: &str,
    args: &[&str],
    threads: usize,
    has_what_matters: impl Fn(&Recording) -> bool,
) {
    let scratch = Scratch::new(&format!("attach_{artifact}"));
    let end = scratch.join("end");
    let program = Program::new(fixture_artifact(fixture, artifact), scratch.path())
        .args(args)
        .args([&end]);
    std::fs::write(&end, "").expect("the test's folder is writable");
    let native = program.run();
    std::fs::remove_file(&end).expect("the file was written");
    let running = program.start();
    let pid = running.pid();
    wait_until("the program's threads", || {
        (thread_names(pid).len() == threads).then_some(())
    });
    for name in ["first", "second"] {
        let rec = scratch.join(name);
        let (rec, pid_text) = (rec.display().to_string(), pid.to_string());
        let args = [
            "record",
            "-o",
            &rec,
            "--on-full",
            "block",
            "--for",
            "0.5",
            "--attach",
            &pid_text,
        ];
        let ended = Hindsight::command(&scratch, &args).run();
        assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
        let recording = Recording::new(scratch.join(&format!("{name}.hindsight")));
        let facts = recording.row(
            "SELECT (SELECT count(*) FROM calls) AS calls, (SELECT count(*) FROM gaps) AS gaps, \
             (SELECT count(DISTINCT tid) FROM calls) AS threads, \
             (SELECT count(*) FROM events WHERE kind = 'detached') AS detached, \
             (SELECT count(*) FROM events WHERE kind = 'process_exit') AS exits",
        );
        let number = |name: &str| facts[name].as_i64();
        assert!(number("calls") > Some(1_000), "{facts:?}");
        assert!(number("threads") >= Some(3), "{facts:?}");
        assert_eq!(
            (number("gaps"), number("detached"), number("exits")),
            (Some(0), Some(1), Some(0)),
            "{facts:?}"
        );
        assert_eq!(recording.command("check", &[]).status, Status::Code(0));
        let of_program = format!("/{artifact}");
        for file in [of_program.as_str(), "/libc.so.6"] {
            let changed = changed_text(pid, file);
            assert!(changed.is_empty(), "{file} is as on the disk: {changed:x?}");
        }
        assert!(has_what_matters(&recording), "{name}");
    }
    std::fs::write(&end, "").expect("the test's folder is writable");
    let ended = running.finish();
    assert_eq!(ended.text(), native.text(), "{}", ended.errors());
    assert_eq!(
        (ended.status, ended.errors()),
        (native.status, native.errors())
    );
}

#[test]
fn a_program_that_throws_all_the_time_is_let_go_unharmed() {
    for artifact in in_turn(["cpp_exceptions_O0", "cpp_exceptions_O2"]) {
        assert_unharmed("cpp_exceptions", artifact, &["200"], 5, |recording| {
            recording.unwound_calls_of("level") > 100
        });
    }
}

#[test]
fn a_program_that_takes_signals_all_the_time_is_let_go_unharmed() {
    for artifact in in_turn(["signals_O0", "signals_O2"]) {
        assert_unharmed("signals", artifact, &["threads"], 4, |recording| {
            recording.calls_of("in_handler") > 10
        });
    }
}

fn wait_for_calls(recording: &Recording) {
    wait_until("calls in the recording", || {
        let rows = recording.try_rows("SELECT count(*) AS n FROM calls").ok()?;
        (rows.first()?["n"].as_i64()? > 1_000).then_some(())
    });
}

//! Goal: a recorder of every instruction that dies leaves a recording: its calls and events are written when it is opened next. Method: recorders
//! are killed while the program runs, and while they write the calls.

use std::path::Path;

use e2e::{
    Hindsight, Program, Recording, Scratch, Signal, Status, Steady, fixture_artifact, is_alive,
    wait_until,
};
use serde_json::Value;

fn info(recording: &Recording) -> Value {
    recording.command("info", &["--json"]).result()
}

/// Starts to record until some of it is on the disk, and kills the recorder; the program ends with it.
fn killed(scratch: &Scratch) -> Recording {
    let steady = Steady::new(scratch);
    let program = steady.program(scratch, 0).args(["5000"]);
    let options = ["--full", "--logpoint", "churn", "passed"];
    let (running, recording) = Hindsight::start_recording(scratch, &options, &program);
    let log = recording.path().join("instructions/log.zst");
    let mut seen = 0;
    let mut times = 0;
    wait_until("the log to grow some times", || {
        let now = log.metadata().map_or(0, |found| found.len());
        times += i32::from(now > seen && steady.rounds() > 100);
        seen = now;
        // What came before the first of these is there.
        (times > 2).then_some(())
    });
    let pid = steady.pid();
    running.signal(Signal::KILL);
    assert_eq!(running.finish().status, Status::Signal(9));
    wait_until("the program's end", || (!is_alive(pid)).then_some(()));
    recording
}

fn has_calls(recording: &Recording) {
    let calls = recording.number("SELECT count(*) FROM calls WHERE function = 'churn' AND a0 = 7");
    assert!(calls > 80, "{calls}");
    let wrong = recording.number(
        "SELECT count(*) FROM (SELECT a1, row_number() OVER (ORDER BY start_seq) - 1 AS n FROM calls \
         WHERE function = 'churn' AND a0 = 7) WHERE a1 <> n",
    );
    assert_eq!(wrong, 0, "what is there is the beginning, without holes");
    let ends = "SELECT count(*) FROM events WHERE kind IN ('process_exit', 'detached')";
    assert_eq!(recording.number(ends), 0);
    let facts = info(recording);
    assert_eq!(facts["state"], "closed", "{facts}");
    assert_eq!(
        (&facts["exit_code"], &facts["detached"]),
        (&Value::Null, &Value::Bool(false)),
        "{facts}"
    );
    let at_end = recording.prompt(&["goto last", "print/x $rip"]);
    assert_eq!(at_end.status, Status::Code(0), "{}", at_end.errors());
}

#[test]
fn what_a_killed_recorder_left_is_a_recording_at_the_next_opening() {
    let scratch = Scratch::new("full_killed");
    let recording = killed(&scratch);
    let checked = recording.command("check", &["--replay"]);
    let text = checked.text();
    assert_eq!(checked.status, Status::Code(0), "{text}");
    assert!(
        text.contains("not recorded: the recorder was killed"),
        "{text}"
    );
    // The last call may not have come that far.
    let calls = recording.calls_of("churn");
    let passed = recording.number("SELECT count(*) FROM logpoints WHERE message = 'passed'");
    assert!(
        passed == calls || passed + 1 == calls,
        "{passed} of {calls}"
    );
    let said = "did not close it: its calls and events are written now";
    assert!(checked.errors().contains(said), "{}", checked.errors());
    has_calls(&recording);
    let again = recording.command("check", &[]);
    assert!(!again.errors().contains(said), "{}", again.errors());
    for spare in ["spare.log", "spare.events"] {
        let path = recording.path().join("instructions").join(spare);
        assert!(!path.exists(), "{}", path.display());
    }
}

#[test]
fn a_question_completes_it_too() {
    let scratch = Scratch::new("full_killed_sql");
    let recording = killed(&scratch);
    has_calls(&recording);
}

/// The second Ctrl-C, or SIGTERM, comes when the program has ended and its calls are being found.
#[test]
fn a_recorder_that_is_ended_while_it_writes_the_calls_loses_nothing() {
    for signal in [Signal::INT, Signal::TERM] {
        let scratch = Scratch::new("full_ended");
        let program = Program::new(fixture_artifact("fib", "fib"), scratch.path()).args(["29"]);
        let native = program.run();
        let (running, recording) = Hindsight::start_recording(&scratch, &["--full"], &program);
        let instructions = recording.path().join("instructions");
        let spare = instructions.join("spare.events");
        wait_until("the recording to begin", || spare.exists().then_some(()));
        wait_until("the program's end", || (!spare.exists()).then_some(()));
        running.signal(signal);
        let ended = running.finish();
        assert_eq!(ended.text(), native.text(), "{}", ended.errors());
        assert!(is_incomplete(recording.path()), "{:?}", ended.status);
        assert_eq!(recording.calls_of("fib"), 1_664_079);
        let facts = info(&recording);
        let code = match native.status {
            Status::Code(code) => i64::from(code),
            Status::Signal(_) => panic!("it exits"),
        };
        assert_eq!(facts["exit_code"].as_i64(), Some(code), "{facts}");
        let checked = recording.command("check", &[]);
        assert_eq!(checked.status, Status::Code(0), "{}", checked.text());
        assert!(
            !checked.text().contains("not recorded"),
            "{}",
            checked.text()
        );
    }
}

fn is_incomplete(recording: &Path) -> bool {
    recording.join("incomplete").exists()
}

/// A recorder that works is not taken for a dead one.
#[test]
fn a_recording_that_is_being_made_is_left_alone() {
    let scratch = Scratch::new("full_alive");
    let program = Program::new("/bin/sleep", scratch.path()).args(["2"]);
    let (running, recording) = Hindsight::start_recording(&scratch, &["--full"], &program);
    let log = recording.path().join("instructions/log.zst");
    wait_until("the recording to begin", || log.exists().then_some(()));
    let checked = recording.command("check", &[]);
    assert_eq!(checked.status, Status::Code(3), "{}", checked.errors());
    assert_eq!(running.finish().status, Status::Code(0));
    let checked = recording.command("check", &[]);
    assert_eq!(checked.status, Status::Code(0), "{}", checked.text());
}

//! Goal: sealing goes on in the background while a program is recorded, so that little is left to do at its end. Method: a
//! program that works until it is stopped, watched from outside.

use e2e::{Hindsight, Scratch, Status, Steady, wait_until};

#[test]
fn columns_are_there_before_the_program_ends() {
    let scratch = Scratch::new("sealing");
    let steady = Steady::new(&scratch);
    // Sealing yields to a program that floods the log; this one does not.
    let program = steady.program(&scratch, 0).args(["1"]);
    let (running, recording) = Hindsight::start_recording(&scratch, &[], &program);
    let first = recording.path().join("columns/calls-000000.parquet");
    wait_until("the first sealed file", || first.exists().then_some(()));
    let state = recording.path().join("columns/seal.state");
    wait_until("the checkpoint that names it", || {
        state.exists().then_some(())
    });
    assert!(!steady.has_finished(), "the program still works");
    assert!(
        recording.path().join("incomplete").exists(),
        "it still grows"
    );
    let calls = recording.calls_of("churn");
    steady.stop();
    let ended = running.finish();
    assert_eq!(ended.status, Status::Code(21), "{}", ended.errors());
    assert_eq!(steady.wrong(), 0, "wrong results");
    assert!(recording.calls_of("churn") >= calls);
    assert!(first.exists(), "what was sealed stays");
    assert_eq!(recording.command("check", &[]).status, Status::Code(0));
}

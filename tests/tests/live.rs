//! Goal: a recording answers while it is being made. Method: query it several times during a run that does not end by
//! itself.

use e2e::{Hindsight, Scratch, Signal, Status, Steady, wait_until};

#[test]
fn a_growing_recording_answers_with_what_it_has() {
    let scratch = Scratch::new("live");
    let steady = Steady::new(&scratch);
    let (running, recording) =
        Hindsight::start_recording(&scratch, &[], &steady.unhurried(&scratch));
    let count = || {
        let rows = recording.try_rows(
            "SELECT count(*) AS n, count(end_seq) AS finished FROM calls WHERE function = 'churn'",
        );
        rows.ok()
            .and_then(|r| Some((r.first()?["n"].as_i64()?, r.first()?["finished"].as_i64()?)))
    };
    let (first, _) = wait_until("the first calls", || count().filter(|(n, _)| *n > 0));
    let (second, finished) = wait_until("more calls", || count().filter(|(n, _)| *n > first));
    assert!(
        second - finished <= 20,
        "at most the calls that are open now have no end: {second}, {finished}"
    );
    assert_eq!(
        recording.number("SELECT count(*) - max(seq) - 1 FROM events"),
        0,
        "dense while growing"
    );
    steady.stop();
    let ended = running.finish();
    assert_eq!(ended.status, Status::Code(21), "{}", ended.errors());
    let all = recording.number("SELECT count(*) FROM calls WHERE function = 'churn'");
    assert!(all >= second);
    assert_eq!(
        recording.number("SELECT count(*) FROM calls WHERE end_seq IS NULL"),
        0
    );
}

/// The same seq means the same event, before and after the recording was closed.
#[test]
fn numbers_given_while_growing_never_change() {
    let scratch = Scratch::new("stable");
    let steady = Steady::new(&scratch);
    let (running, recording) =
        Hindsight::start_recording(&scratch, &["--keep-log"], &steady.unhurried(&scratch));
    let sample = "SELECT start_seq, function, tid, a0, a1, end_seq, ret FROM calls WHERE end_seq < 4000 ORDER BY start_seq";
    let while_growing = wait_until("calls to be sealed", || {
        recording
            .try_rows(sample)
            .ok()
            .filter(|rows| rows.len() > 1_000)
    });
    wait_until("the program to go on", || {
        (steady.rounds() > 5_000).then_some(())
    });
    steady.stop();
    assert_eq!(running.finish().status, Status::Code(21));
    let finished = recording.rows(sample);
    assert!(
        finished.starts_with(&while_growing) || while_growing.iter().all(|r| finished.contains(r))
    );
}

#[test]
fn ctrl_c_ends_a_started_program_as_it_would_without_us() {
    let scratch = Scratch::new("interrupt");
    let steady = Steady::new(&scratch);
    let (running, recording) =
        Hindsight::start_recording(&scratch, &[], &steady.unhurried(&scratch));
    wait_until("the program's work", || {
        (steady.rounds() > 1_000).then_some(())
    });
    running.signal_group(Signal::INT);
    let ended = running.finish();
    assert_eq!(ended.status, Status::Code(130), "{}", ended.errors());
    assert_eq!(
        recording.row("SELECT aux FROM events WHERE kind = 'process_exit'")["aux"],
        "SIGINT"
    );
    assert!(recording.calls_of("churn") > 1_000);
    assert_eq!(recording.command("check", &[]).status, Status::Code(0));
}

//! Copies of memory: `record --snapshot`.

use e2e::{Comparison, Hindsight, Nesting, Program, Scratch, Status, fixture_artifact};

use super::texts;

/// Copies of memory are made as often as requested, by events, by time, once or never; the program's behaviour is
/// unchanged.
#[test]
fn memory_is_copied_when_it_is_asked_for() {
    let snapshots = |option: &str| {
        let scratch = Scratch::new("snapshot-option");
        let program = Program::new(fixture_artifact("steady", "steady"), scratch.path())
            .args(["steady", "20000"])
            .ending(21);
        let comparison =
            Comparison::of_program(scratch, &program, &["--snapshot", option], Nesting::Proper);
        let sql = "SELECT aux AS value FROM events WHERE kind = 'snapshot' ORDER BY seq";
        let reasons = texts(&comparison.recording, sql);
        let events = comparison.recording.number("SELECT count(*) FROM events");
        (reasons, events)
    };
    assert_eq!(snapshots("never").0, [""; 0]);
    assert_eq!(snapshots("start").0, ["start"]);
    let (reasons, _) = snapshots("every=1h");
    assert_eq!(reasons, ["start", "exit"]);
    let (reasons, events) = snapshots("every=2000events");
    assert_eq!(reasons[0], "start");
    assert_eq!(reasons[reasons.len() - 1], "exit");
    let between = &reasons[1..reasons.len() - 1];
    assert!(between.iter().all(|reason| reason == "interval"));
    // The program waits for each of them. A few events are the recorder's own.
    let due = events / 2000;
    assert!(due > 10, "{events} events");
    assert!(
        (due - 1..=due).contains(&(between.len() as i64)),
        "{} of {events} events",
        between.len()
    );
    let (reasons, events) = snapshots("every=1000000000events");
    assert_eq!(reasons, ["start", "exit"], "{events} events");
}

/// Copies that cannot be made are reported: here the program's child traces it.
#[test]
fn copies_that_are_left_out_are_gaps() {
    let every = ["--snapshot", "every=1000events"];
    let scratch = Scratch::new("held");
    let program = Program::new(fixture_artifact("held", "held"), scratch.path()).args(["20000"]);
    let native = program.run();
    let (recorded, recording) = Hindsight::record(&scratch, &every, &program);
    assert_eq!(recorded.stdout, native.stdout);
    assert_eq!(recorded.status, Status::Code(0), "{}", recorded.errors());
    let made = recording
        .number("SELECT count(*) FROM events WHERE kind = 'snapshot' AND aux = 'interval'");
    let left_out =
        recording.number("SELECT sum(lost)::bigint FROM gaps WHERE reason = 'memory not copied'");
    // 40,000 of the records are those of `step`; a few more come before and after it.
    assert!(
        (40..=42).contains(&(made + left_out)),
        "{made} made, {left_out} left out"
    );
    assert!(left_out >= 39, "{left_out} left out");
}

/// So are copies for which threads cannot wait, because threads continue when their ring is full.
#[test]
fn copies_that_nobody_waits_for_are_gaps() {
    let options = ["--snapshot", "every=1000events", "--on-full", "drop"];
    let scratch = Scratch::new("unawaited");
    let program = Program::new(fixture_artifact("steady", "steady"), scratch.path())
        .args(["steady", "20000"])
        .ending(21);
    let (_, recording) = Hindsight::record(&scratch, &options, &program);
    let made = recording.number(
        "SELECT count(*) FROM events WHERE kind = 'snapshot' AND aux IN ('interval', 'exit')",
    );
    let left_out = recording.number(
        "SELECT coalesce(sum(lost), 0)::bigint FROM gaps WHERE reason = 'memory not copied'",
    );
    let events = recording.number("SELECT count(*) FROM events WHERE kind <> 'gap'");
    // Dropped records do not count. After a late copy, the next one is due the full number of records later.
    let due = events / 1000;
    assert!(due > 10, "{events} events");
    assert!(
        made + left_out >= due - 1 - made,
        "{made} made, {left_out} left out of {due}"
    );
}

/// So are copies by time that the recorder was too slow for: the program does not wait for these.
#[test]
fn copies_that_come_too_late_are_gaps() {
    let scratch = Scratch::new("late");
    let program = Program::new(fixture_artifact("steady", "steady"), scratch.path())
        .args(["steady", "20000"])
        .ending(21);
    let native = program.run();
    let (recorded, recording) = Hindsight::record(&scratch, &["--snapshot", "every=1ms"], &program);
    assert_eq!(recorded.stdout, native.stdout);
    assert_eq!(recorded.status, native.status, "{}", recorded.errors());
    let sql = "SELECT aux AS value FROM events WHERE kind = 'snapshot' ORDER BY seq";
    let reasons = texts(&recording, sql);
    let (first, last) = (&*reasons[0], &*reasons[reasons.len() - 1]);
    assert_eq!((first, last), ("start", "exit"));
    let between = &reasons[1..reasons.len() - 1];
    assert!(!between.is_empty() && between.iter().all(|reason| reason == "interval"));
    let made = recording.number(
        "SELECT count(*) FROM events WHERE kind = 'snapshot' AND aux IN ('interval', 'exit')",
    );
    let left_out = recording.number(
        "SELECT coalesce(sum(lost), 0)::bigint FROM gaps WHERE reason = 'memory not copied'",
    );
    let due = recording
        .number("SELECT (max(ts_ns) - min(ts_ns)) / 1000000 FROM events WHERE kind = 'snapshot'");
    // The first patches are written between the first copy and the time from which the others are due.
    assert!(
        (made + left_out) * 4 >= due * 3,
        "{made} made, {left_out} left out of {due}"
    );
    assert!(left_out > 0 || made >= due, "{made} made of {due}");
}

/// A library that is loaded later does not cause a full copy of memory.
#[test]
fn libraries_that_come_later_copy_no_memory() {
    let comparison = Comparison::of("plugin", "plugin_host", &[]);
    let loads = "SELECT count(*) FROM events WHERE kind = 'module_load' AND text LIKE '%red.so'";
    assert_eq!(comparison.recording.number(loads), 10);
    let copies = "SELECT count(*) FROM events WHERE kind = 'snapshot'";
    assert_eq!(comparison.recording.number(copies), 1);
}

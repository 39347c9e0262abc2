//! Goal: if the recorder fails in any way, the program neither notices nor waits; and what was recorded can be read.
//! Method: a fixture that checks its own work and leaves its state in a mapped file; the recorder is killed, or its disk is
//! filled.
//! Of several ways each run takes a part; `WHOLE=1` all.

use e2e::{Hindsight, Program, Recording, Scratch, Signal, Status, Steady, in_turn, wait_until};

/// Kills the recorder once the program has done `rounds` rounds, and lets the program run to its own end.
fn kill_recorder_after(rounds: u64) {
    let scratch = Scratch::new("killed_recorder");
    let steady = Steady::new(&scratch);
    let program = steady.program(&scratch, 400_000);
    let (running, recording) = Hindsight::start_recording(&scratch, &[], &program);
    wait_until("the program's work", || {
        (steady.rounds() >= rounds).then_some(())
    });
    running.signal(Signal::KILL);
    wait_until("the program's end", || steady.has_finished().then_some(()));
    assert_eq!(steady.wrong(), 0, "wrong results");
    assert_eq!(steady.rounds(), 400_000);
    // A killed process exists until its writes to the disk are done.
    assert_eq!(running.finish().status, Status::Signal(9));
    assert_opens(&recording, rounds);
}

/// A recording that was never closed says so, and can be queried; it has the beginning of the run, without holes.
fn assert_opens(recording: &Recording, at_least_rounds: u64) {
    assert!(
        recording.path().join("incomplete").exists(),
        "the marker of an unfinished recording"
    );
    let info = recording.command("info", &[]);
    assert!(
        format!("{}{}", info.text(), info.errors()).contains("incomplete"),
        "{}{}",
        info.text(),
        info.errors()
    );
    let check = recording.command("check", &[]);
    assert_eq!(
        check.status,
        Status::Code(3),
        "{}{}",
        check.text(),
        check.errors()
    );
    let facts = recording.row(
        "SELECT (SELECT count(*) - max(seq) - 1 FROM events) AS not_dense, \
         (SELECT count(*) FROM gaps WHERE reason <> 'torn' OR seq < (SELECT max(seq) FROM events)) AS gaps, \
         (SELECT count(*) FROM calls WHERE function = 'churn' AND end_seq IS NOT NULL) AS calls, \
         (SELECT count(*) FROM calls WHERE function = 'churn' AND NOT unwound AND end_seq IS NOT NULL \
           AND ret <> 2654435761 * (a0 * (a0 + 1) / 2 + a1 + a0)) AS wrong_churn, \
         (SELECT count(*) FROM calls WHERE function = 'leaf' AND NOT unwound AND end_seq IS NOT NULL \
           AND ret <> 2654435761 * a0) AS wrong_leaf",
    );
    let number = |name: &str| facts[name].as_i64();
    // Only events after the end are missing; the end may itself be a gap: a partly written frame.
    for name in ["gaps", "wrong_churn", "wrong_leaf"] {
        assert_eq!(number(name), Some(0), "{name}: {facts:?}");
    }
    // It has everything except the last moments: a round has 8 calls of churn, and blocks wait less than a second.
    if at_least_rounds >= 20_000 {
        assert!(
            number("calls") > Some(0),
            "{facts:?} after {at_least_rounds} rounds"
        );
    }
    if number("calls") > Some(0) {
        assert_eq!(number("not_dense"), Some(0), "{facts:?}");
    }
    assert_eq!(
        recording.number(&out_of_place("main", 7)) + recording.number(&out_of_place("helper", 3)),
        0,
        "calls that are not those which the program makes one after the other"
    );
}

/// Counts the calls that are not where the thread that began with `first` makes them. A round of depth D enters `churn` D +
/// 1 times, deeper each time, then `leaf` for the deepest one, then for the others on the way back.
fn out_of_place(first: &str, depth: u32) -> String {
    let length = 2 * (depth + 1);
    format!(
        "WITH numbered AS (SELECT function, a0, a1, CAST(row_number() OVER (ORDER BY start_seq) - 1 AS BIGINT) AS n FROM calls \
           WHERE function IN ('churn', 'leaf') AND tid IN (SELECT tid FROM calls WHERE function = '{first}')), \
         placed AS (SELECT *, n % {length} AS k, n / {length} AS round FROM numbered) \
         SELECT count(*) FROM placed WHERE NOT CASE \
           WHEN k <= {depth} THEN function = 'churn' AND a0 = {depth} - k AND a1 = round + k \
           WHEN k = {depth} + 1 THEN function = 'leaf' AND a0 = round + {depth} \
           ELSE function = 'leaf' AND a0 = k - {depth} - 1 END"
    )
}

#[test]
fn the_program_survives_the_recorders_death_at_the_start() {
    kill_recorder_after(1);
}

/// A program that waits for its recorder to get ready has done nothing yet, and nothing would wake it.
#[test]
fn a_program_that_had_not_begun_ends_with_its_recorder() {
    const TRIES: u32 = 50;
    let in_time = (0..TRIES).any(|_| was_killed_before_it_began());
    assert!(in_time, "the recorder was never killed in time");
}

/// Kills a recorder as soon as its program exists, and waits for the program's end. Returns whether that was before
/// the program began; if it has begun, dropping `running` kills it.
fn was_killed_before_it_began() -> bool {
    let scratch = Scratch::new("killed_before");
    let steady = Steady::new(&scratch);
    let program = steady.program(&scratch, 0);
    let (running, _) = Hindsight::start_recording(&scratch, &[], &program);
    let pid = wait_until("the program", || child_that_runs(running.pid(), "/steady"));
    running.signal(Signal::KILL);
    let begun = steady.rounds() > 0;
    wait_until("the program's end", || {
        let gone = std::fs::read_link(format!("/proc/{pid}/exe")).is_err();
        (gone || steady.rounds() > 0).then_some(())
    });
    !begun && steady.rounds() == 0
}

/// The child of `parent` whose executable's path ends with this.
fn child_that_runs(parent: i32, ending: &str) -> Option<i32> {
    let children =
        std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).ok()?;
    children.split_whitespace().find_map(|pid| {
        let exe = std::fs::read_link(format!("/proc/{pid}/exe")).ok()?;
        exe.to_str()?
            .ends_with(ending)
            .then(|| pid.parse().ok())
            .flatten()
    })
}

#[test]
fn the_program_survives_the_recorders_death_in_the_middle() {
    for rounds in in_turn([1_000, 60_000, 150_000]) {
        kill_recorder_after(rounds);
    }
}

/// The program blocks when its ring is full; a dead recorder must not leave it blocked.
#[test]
fn a_program_with_a_full_ring_survives_the_recorders_death() {
    let scratch = Scratch::new("stopped_recorder");
    let steady = Steady::new(&scratch);
    let program = steady.program(&scratch, 400_000);
    let (running, recording) =
        Hindsight::start_recording(&scratch, &["--on-full", "block"], &program);
    wait_until("the program's work", || {
        (steady.rounds() >= 20_000).then_some(())
    });
    // Stopped, the recorder drains nothing: the rings fill, and the program waits.
    running.signal(Signal::STOP);
    let mut before = steady.rounds();
    let mut same = 0;
    wait_until("the rings to be full", || {
        let now = steady.rounds();
        same = if now == before { same + 1 } else { 0 };
        before = now;
        (same > 200 || steady.has_finished()).then_some(())
    });
    running.signal(Signal::KILL);
    wait_until("the program's end", || steady.has_finished().then_some(()));
    assert_eq!((steady.wrong(), steady.rounds()), (0, 400_000));
    assert_eq!(running.finish().status, Status::Signal(9));
    assert_opens(&recording, 20_000);
}

/// Runs `$@` with a file system of 24 MiB at `small`, which only it can see, and keeps the files there in `kept`.
const ON_SMALL_DISK: &str = "mount -t tmpfs -o size=24m tmpfs small || exit 90; \"$0\" \"$@\"; status=$?; \
     cp -a small kept; exit $status";

#[test]
fn a_full_disk_stops_the_recording_and_not_the_program() {
    let scratch = Scratch::new("full_disk");
    std::fs::create_dir(scratch.join("small")).expect("the test's folder is writable");
    let program =
        Program::new(e2e::fixture_artifact("tight", "tight"), scratch.path()).args(["3000000"]);
    let native = program.run();
    let recorded = Hindsight::record_command(&scratch, "small/rec", &[], &program)
        .wrapped(
            "/usr/bin/unshare".as_ref(),
            ["-rm", "/bin/sh", "-c", ON_SMALL_DISK],
        )
        .run();
    assert_ne!(
        recorded.status,
        Status::Code(90),
        "a tmpfs cannot be mounted: {}",
        recorded.errors()
    );
    assert_eq!(native.text(), recorded.text(), "{}", recorded.errors());
    assert_eq!(native.status, recorded.status, "the program's own status");
    let complaint = recorded.errors().to_lowercase();
    assert_eq!(complaint.matches("no space left").count(), 1, "{complaint}");
    let counted = summary_calls(&complaint);
    let recording = Recording::new(scratch.join("kept/rec.hindsight"));
    assert!(
        recording.path().join("incomplete").exists(),
        "the marker of an unfinished recording"
    );
    let check = recording.command("check", &[]);
    assert_eq!(
        check.status,
        Status::Code(3),
        "{}{}",
        check.text(),
        check.errors()
    );
    let some = recording
        .number("SELECT count(*) FROM calls WHERE function = 'work' AND end_seq IS NOT NULL");
    assert!(some > 10_000 && some < 3_000_000, "{some} calls fit");
    let all = recording.number("SELECT count(*) FROM calls");
    assert_eq!(counted, all, "the summary counts what is there");
    let sequence = recording.number(
        "SELECT count(*) FROM (SELECT a0, row_number() OVER (ORDER BY start_seq) - 1 AS n FROM calls WHERE function = 'work') \
         WHERE a0 <> n",
    );
    assert_eq!(sequence, 0, "what is there is the beginning, without holes");
}

/// The number of calls that the summary of a recording names.
fn summary_calls(errors: &str) -> i64 {
    let before = errors.split(" calls, ").next().unwrap_or_default();
    let number = before.rsplit(' ').next().unwrap_or_default();
    let number = number.replace(',', "");
    number
        .parse()
        .unwrap_or_else(|_| panic!("no number of calls: {errors}"))
}

/// `drop` never makes the program wait, and counts the lost records. The recorder is stopped in the middle, so that it loses
/// much.
#[test]
fn dropping_is_counted_exactly() {
    const ROUNDS: u64 = 1_500_000;
    let scratch = Scratch::new("dropping");
    let steady = Steady::new(&scratch);
    let program = steady.program(&scratch, ROUNDS);
    let options = ["--on-full", "drop", "-f", "churn", "-f", "leaf"];
    let (running, recording) = Hindsight::start_recording(&scratch, &options, &program);
    wait_until("the program's work", || {
        (steady.rounds() >= 20_000).then_some(())
    });
    running.signal(Signal::STOP);
    wait_until("the program's end, which waits for nobody", || {
        steady.has_finished().then_some(())
    });
    running.signal(Signal::CONT);
    let recorded = running.finish();
    assert_eq!(recorded.text(), "rounds done, wrong 0\n");
    assert_eq!(recorded.status, Status::Code(21), "{}", recorded.errors());
    let row = recording.row(
        "SELECT (SELECT coalesce(sum(lost), 0) FROM gaps) AS lost, \
         (SELECT count(*) FROM gaps WHERE reason <> 'ring full' OR tid IS NULL) AS other_gaps, \
         (SELECT count(*) FROM events WHERE kind = 'enter') AS enters, \
         (SELECT count(*) FROM events WHERE kind = 'leave') AS leaves, \
         (SELECT count(*) FROM calls WHERE unwound) AS unwound, \
         (SELECT count(*) FROM calls WHERE end_seq IS NULL) AS unfinished",
    );
    let number = |name: &str| row[name].as_i64().expect("a number");
    let (enters, lost) = (number("enters"), number("lost"));
    assert!(
        lost > 1_000_000,
        "{row:?}: most of it happened while nobody drained"
    );
    assert_eq!(
        (number("other_gaps"), number("unfinished")),
        (0, 0),
        "{row:?}"
    );
    assert_eq!(enters, number("leaves"), "{row:?}");
    // A call whose enter record is lost has no leave record. If a leave record is lost, the call ends as unwound. In
    // each round one thread makes 16 calls and the other one 8.
    let others = enters + lost - number("unwound") - 24 * ROUNDS.cast_signed();
    assert!(
        (0..=16).contains(&others),
        "{row:?}: other records, of output and of the ends of threads, are few: {others}"
    );
    assert!(recorded.errors().contains("lost"), "{}", recorded.errors());
    assert_eq!(recording.command("check", &[]).status, Status::Code(0));
}

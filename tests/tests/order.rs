//! Goal: seq is an order in which things could have happened. Method: a token goes from thread to thread under a mutex
//! 100,000 times, and the program itself writes down who had it when; numbers go from thread to thread without a lock, and
//! no call that saw one is before the call that made it; a variable is written once in each call of a function.

use e2e::{Comparison, Hindsight, Nesting, Program, Recording, Scratch, fixture_artifact};

const TURNS: usize = 100_000;

/// Runs the fixture; returns the recording and the thread that had each turn, as the recorded run wrote it.
fn play() -> (Scratch, Recording, Vec<i32>) {
    let scratch = Scratch::new("token");
    let who = scratch.join("who");
    let program = Program::new(fixture_artifact("token", "token"), scratch.path()).args([&who]);
    let both = Comparison::of_program(scratch, &program, &[], Nesting::Proper);
    let bytes = std::fs::read(&who).expect("the program wrote it");
    let who = bytes
        .chunks(4)
        .map(|c| i32::from_le_bytes(c.try_into().expect("four bytes")))
        .collect();
    (both.scratch, both.recording, who)
}

#[test]
fn a_hundred_thousand_handovers_are_in_order() {
    let (_scratch, recording, who) = play();
    assert_eq!(who.len(), TURNS);
    let rows = recording.rows(
        "SELECT a0, tid, start_seq, end_seq FROM calls WHERE function = 'take' ORDER BY start_seq",
    );
    assert_eq!(rows.len(), TURNS);
    let mut last_end = -1;
    for (turn, row) in rows.iter().enumerate() {
        let number = |name: &str| row[name].as_i64().expect("a number");
        assert_eq!(number("a0"), turn as i64, "turns are taken in order");
        assert_eq!(
            number("tid"),
            i64::from(who[turn]),
            "by the thread that says so"
        );
        assert!(
            number("start_seq") > last_end,
            "turn {turn} begins after the one before has ended"
        );
        last_end = number("end_seq");
    }
    let threads = recording.number("SELECT count(DISTINCT tid) FROM calls WHERE function = 'take'");
    assert_eq!(threads, 2);
}

#[test]
fn events_before_the_start_of_a_thread_come_before_its_first_call() {
    let (_scratch, recording, _) = play();
    let early = recording.number(
        "SELECT count(*) FROM calls c JOIN events e ON e.tid = c.tid AND e.kind = 'thread_start' WHERE c.start_seq < e.seq",
    );
    assert_eq!(early, 0);
    let backwards = recording.number(
        "SELECT count(*) FROM (SELECT ts_ns, lag(ts_ns, 1, 0) OVER (PARTITION BY tid ORDER BY seq) AS before FROM events) \
         WHERE ts_ns < before",
    );
    assert_eq!(backwards, 0, "time never goes back in a thread");
}

/// The tracer sends these events while the recorder is busy with the libraries that another thread loads.
#[test]
fn a_logged_write_is_in_the_call_that_made_it() {
    let scratch = Scratch::new("logged-loading");
    let program = Program::new(fixture_artifact("logged", "logged_loading"), scratch.path());
    let (ended, recording) = Hindsight::record(&scratch, &["--log-writes", "counted"], &program);
    assert_eq!(ended.stdout, b"1\n", "{ended:?}");
    let calls = recording.rows(
        "SELECT c.start_seq, count(e.seq) AS writes FROM calls c LEFT JOIN events e ON e.tid = c.tid \
         AND e.kind = 'logged_write' AND e.seq BETWEEN c.start_seq AND c.end_seq \
         WHERE c.function = 'count' GROUP BY c.start_seq",
    );
    assert!(calls.len() > 20, "{} calls", calls.len());
    let wrong = calls.iter().filter(|call| call["writes"] != 1).count();
    assert_eq!(wrong, 0, "of {} calls", calls.len());
}

/// Without a barrier, a processor reads the clock before it completes the load of the call's argument: of six million
/// calls, tens of thousands were then ordered before the values that they had seen.
#[test]
fn what_was_seen_was_published_before() {
    let mut different = 0;
    for _ in 0..10 {
        let scratch = Scratch::new("published");
        let program = Program::new(fixture_artifact("published", "published"), scratch.path());
        let program = program.args(["3000000"]);
        let (ended, recording) = Hindsight::record(&scratch, &[], &program);
        assert_eq!(ended.stdout, b"done\n", "{ended:?}");
        let seen = "FROM calls s JOIN calls p ON p.a0 = s.a0 AND p.function = 'publish' WHERE s.function = 'see'";
        let early = recording.number(&format!(
            "SELECT count(*) {seen} AND s.start_seq < p.end_seq"
        ));
        assert_eq!(early, 0, "calls that saw what was not there yet");
        different += recording.number(&format!("SELECT count(DISTINCT s.a0) {seen}"));
        if different > 10_000 {
            return;
        }
    }
    panic!("only {different} numbers were seen: the threads did not run at the same time");
}

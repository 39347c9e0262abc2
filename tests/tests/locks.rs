//! Goal: `record --locks` knows who held which lock when and who had to wait. Method: programs in C, C++ and Rust that hold locks until
//! another thread sleeps, so that they know how often it had to wait; their counts are compared with the recording.
//! Of several builds of a program each run takes a part; `WHOLE=1` all.

use e2e::{
    Hindsight, Program, Recording, Scratch, Status, compiled, fixture_artifact, in_turn,
    marked_line,
};
use serde_json::Value;

fn recorded(scratch: &Scratch, artifact: &str, args: &[&str], options: &[&str]) -> Recording {
    let program = Program::new(fixture_artifact("locked", artifact), scratch.path()).args(args);
    let options = [&["--locks"], options].concat();
    Hindsight::recorded(scratch, "rec", &options, &program)
}

fn report(scratch: &Scratch, recording: &Recording, options: &[&str]) -> String {
    let path = recording.path().to_str().expect("its name is text");
    let ended =
        Hindsight::command(scratch, &[&["report", path, "--locks"], options].concat()).run();
    assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
    ended.text()
}

fn row_text(recording: &Recording, sql: &str) -> Vec<String> {
    let rows = recording.rows(sql);
    let cell = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let line = |row: &e2e::Row| row.values().map(cell).collect::<Vec<_>>().join(" ");
    rows.iter().map(line).collect()
}

/// All locks of one kind and name: how often they were taken, contended and busy.
fn counts(recording: &Recording, condition: &str) -> (i64, i64, i64) {
    let row = recording.row(&format!(
        "SELECT count(*) FILTER (WHERE outcome = 'acquired') AS taken, \
         count(*) FILTER (WHERE contended AND outcome = 'acquired') AS contended, \
         count(*) FILTER (WHERE outcome = 'busy') AS busy FROM locks WHERE {condition}"
    ));
    let number = |name: &str| row[name].as_i64().expect("it is a number");
    (number("taken"), number("contended"), number("busy"))
}

#[test]
fn locks_of_c_are_taken_and_waited_for_as_often_as_the_program_does() {
    for (name, options) in [("locks-c", &[][..]), ("locks-c-main", &["-f", "main"])] {
        let scratch = Scratch::new(name);
        let recorded = recorded(&scratch, "locked_c", &[], options);
        // main, the waits for a condition (one, or none if it was filled before) and fill take it without waiting.
        let waits = recorded.number("SELECT count(*) FROM locks WHERE kind = 'condition'");
        let (taken, contended, _) =
            counts(&recorded, "name = 'ledger' AND function NOT LIKE '%cond%'");
        assert_eq!((taken, contended), (8, 3));
        assert_eq!(counts(&recorded, "name = 'other'"), (100, 0, 100));
        assert_eq!(
            counts(&recorded, "name = 'table' AND kind = 'write'"),
            (1, 0, 0)
        );
        assert_eq!(
            counts(&recorded, "name = 'table' AND kind = 'read'"),
            (2, 1, 0)
        );
        assert_eq!(
            counts(&recorded, "kind = 'semaphore' AND name = 'tickets'"),
            (1, 0, 0)
        );
        assert_eq!(counts(&recorded, "name = 'filled'"), (waits, 0, 0));
        assert_eq!(waits, 1);
        let owners = recorded.row(
            "SELECT count(DISTINCT owner) AS owners, min(owner) AS owner, min(tid) AS waiter, \
             min(wait_ns) AS wait_ns FROM locks WHERE name = 'ledger' AND contended",
        );
        let main = recorded.number("SELECT min(tid) FROM calls WHERE function = 'main'");
        assert_eq!(owners["owners"], 1);
        assert_eq!(owners["owner"], main);
        assert_ne!(owners["waiter"], main);
        // The holder waits at least five milliseconds.
        assert!(owners["wait_ns"].as_i64() > Some(4_000_000), "{owners:?}");
    }
}

#[test]
fn waits_lie_within_the_holds_of_their_owners() {
    let scratch = Scratch::new("locks-holds");
    let recorded = recorded(&scratch, "locked_c", &[], &[]);
    let line = marked_line("locked", "locked.c", "held");
    let holds = recorded.rows(&format!(
        "SELECT hold_ns, released_ts_ns, frames FROM locks WHERE place = 'hold (locked.c:{line})' ORDER BY seq"
    ));
    assert_eq!(holds.len(), 3);
    for hold in &holds {
        assert!(hold["hold_ns"].as_i64() > Some(4_000_000), "{hold:?}");
        assert_eq!(
            hold["frames"]
                .as_str()
                .map(|frames| frames.starts_with("hold (locked.c:")),
            Some(true)
        );
    }
    let wrong = recorded.number(
        "SELECT count(*) FROM locks w JOIN locks h ON h.lock = w.lock AND h.tid = w.owner \
         AND h.acquired_ts_ns <= w.ts_ns AND h.released_ts_ns >= w.ts_ns \
         WHERE w.contended AND w.name = 'ledger' AND w.acquired_ts_ns < h.released_ts_ns",
    );
    assert_eq!(wrong, 0);
    let unended = recorded.number("SELECT count(*) FROM locks WHERE acquired_ts_ns IS NOT NULL AND released_ts_ns IS NULL AND kind IN ('mutex', 'read', 'write')");
    assert_eq!(
        unended,
        0,
        "{:?}",
        row_text(
            &recorded,
            "SELECT * FROM locks WHERE released_ts_ns IS NULL"
        )
    );
    let again = recorded
        .rows("SELECT hold_ns FROM locks WHERE kind = 'mutex' AND name IS NULL ORDER BY seq");
    assert!(again.len() >= 2, "{again:?}");
}

#[test]
fn a_deadlock_is_told_first() {
    let scratch = Scratch::new("locks-deadlock");
    let recorded = recorded(&scratch, "locked_c", &["deadlock"], &[]);
    let text = report(&scratch, &recorded, &[]);
    let line = |mark| marked_line("locked", "locked.c", mark);
    assert!(
        text.starts_with("deadlock: 2 threads wait for each other\n"),
        "{text}"
    );
    let second = format!("for ledger (mutex) in cross (locked.c:{})", line("second"));
    let first = format!(
        "for other (mutex) in cross_back (locked.c:{})",
        line("first")
    );
    assert!(text.contains(&second) && text.contains(&first), "{text}");
    let found: Value =
        serde_json::from_str(&report(&scratch, &recorded, &["--json"])).expect("it is JSON");
    let circle = found["result"]["deadlocks"][0]
        .as_array()
        .expect("there is one");
    assert_eq!(circle.len(), 2);
    assert_eq!(circle[0]["who"]["owner"], circle[1]["who"]["tid"]);
    assert_eq!(circle[1]["who"]["owner"], circle[0]["who"]["tid"]);
    // Both had their locks until the end.
    for waiter in circle {
        let locks = found["result"]["locks"].as_array().expect("a list");
        let of = locks.iter().find(|lock| lock["lock"] == waiter["lock"]);
        let holds = &of.expect("it is there")["holds"];
        assert_eq!(holds["longest"]["tid"], waiter["who"]["owner"], "{holds:#}");
    }
}

#[test]
fn locks_of_cxx_are_those_of_the_c_library() {
    let scratch = Scratch::new("locks-cxx");
    let recorded = recorded(&scratch, "locked_cxx", &[], &[]);
    let (taken, contended, _) = counts(&recorded, "name = 'ledger' AND function NOT LIKE '%cond%'");
    // The producer may arrive before the consumer has released the lock.
    assert_eq!(taken, 54);
    assert!((1..=2).contains(&contended), "{contended}");
    assert_eq!(
        counts(&recorded, "name = 'table' AND kind = 'write'"),
        (1, 0, 0)
    );
    assert_eq!(
        counts(&recorded, "name = 'table' AND kind = 'read'"),
        (1, 1, 0)
    );
    let text = report(&scratch, &recorded, &[]);
    assert!(!text.contains("deadlock"), "{text}");
    assert!(text.contains("ledger: thread "), "{text}");
}

#[test]
fn waits_for_locks_of_rust_are_known_with_who_had_them() {
    let scratch = Scratch::new("locks-rust");
    let recorded = recorded(&scratch, "locked_rust", &[], &[]);
    let main = recorded.number("SELECT min(tid) FROM threads");
    let waits = recorded.rows(
        "SELECT kind, owner, contended, wait_ns, hold_ns, frames FROM locks \
         WHERE kind IN ('mutex', 'read', 'write') AND (name LIKE '%LEDGER%' OR name LIKE '%TABLE%') ORDER BY seq",
    );
    let kinds: Vec<&str> = waits
        .iter()
        .filter_map(|row| row["kind"].as_str())
        .collect();
    assert_eq!(kinds, ["mutex", "mutex", "mutex", "read"], "{waits:?}");
    for wait in &waits {
        assert_eq!(wait["owner"], main, "{waits:?}");
        assert_eq!(wait["contended"], true);
        assert_eq!(wait["hold_ns"], Value::Null);
        assert!(wait["wait_ns"].as_i64() > Some(4_000_000), "{wait:?}");
        let frames = wait["frames"].as_str().expect("frames are known");
        assert!(frames.starts_with("locked::want"), "{frames}");
    }
    assert_eq!(
        counts(&recorded, "kind = 'condition' AND name LIKE '%FILLED%'").0,
        1
    );
}

#[test]
fn memory_and_locks_are_recorded_together() {
    let scratch = Scratch::new("locks-memory");
    let recorded = recorded(&scratch, "locked_c", &[], &["--memory"]);
    assert_eq!(counts(&recorded, "name = 'other'"), (100, 0, 100));
    assert!(recorded.number("SELECT count(*) FROM allocations WHERE function = 'malloc'") > 0);
    let path = recorded.path().to_str().expect("its name is text");
    let info = Hindsight::command(&scratch, &["info", path]).run().text();
    assert!(info.contains("with memory, locks"), "{info}");
}

#[test]
fn without_the_option_the_report_says_what_records_it() {
    let scratch = Scratch::new("locks-none");
    let program = Program::new(fixture_artifact("locked", "locked_c"), scratch.path());
    let (_, recording) = Hindsight::record(&scratch, &[], &program);
    let text = report(&scratch, &recording, &[]);
    assert!(text.contains("record --locks"), "{text}");
}

/// A few functions of the C library begin with a loop and cannot be patched. Their entries in the procedure linkage
/// table can.
#[test]
fn locks_that_are_only_tried_are_recorded() {
    for artifact in in_turn(["tried", "tried_stripped"]) {
        let scratch = Scratch::new(&format!("locks-{artifact}"));
        let recorded = recorded(&scratch, artifact, &[], &[]);
        assert_eq!(counts(&recorded, "kind = 'semaphore'"), (2, 0, 3));
        assert_eq!(counts(&recorded, "kind = 'read'"), (4, 0, 0));
        let row = recorded.row(
            "SELECT count(*) AS calls, count(DISTINCT seq) AS once FROM locks WHERE kind = 'semaphore'",
        );
        assert_eq!((&row["calls"], &row["once"]), (&5.into(), &5.into()));
        let skipped = recorded.rows(
            "SELECT function FROM probes WHERE state = 'skipped' AND module LIKE 'libc%' \
             AND (function LIKE 'sem%' OR function LIKE 'pthread%lock') ORDER BY function",
        );
        let told = report(&scratch, &recorded, &[]);
        for row in &skipped {
            let function = row["function"].as_str().expect("a name");
            let line = told
                .lines()
                .find(|line| line.contains(&format!("calls of {function} (libc")));
            let line = line.unwrap_or_else(|| panic!("{function} is not told: {told}"));
            let is_called = ["sem_trywait", "pthread_rwlock_tryrdlock"].contains(&function);
            let begin = match is_called {
                true => format!("recorded only from {artifact}: "),
                false => "not recorded: ".to_owned(),
            };
            assert!(line.starts_with(&begin), "{line}");
        }
    }
}

/// In glibc, `pthread_spin_unlock` and `pthread_spin_init` are one piece of code.
const SPINNING: &str = r#"#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static pthread_spinlock_t spin;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void *first(void *of) { pthread_spin_lock(&spin); pthread_spin_unlock(&spin); return of; }
int main(void) {
  pthread_t thread;
  pthread_spin_init(&spin, 0);
  pthread_create(&thread, 0, first, 0);
  pthread_join(thread, 0);
  pthread_spin_lock(&spin);
  pthread_spin_unlock(&spin);
  pthread_mutex_lock(&mutex);
  for (int i = 0; i < 10; i++) if (pthread_mutex_trylock(&mutex) == 0) return 1;
  pthread_mutex_unlock(&mutex);
  puts("done");
  return 0;
}
"#;

#[test]
fn a_spin_lock_is_given_back_and_a_busy_lock_is_not_waited_for() {
    let scratch = Scratch::new("locks-spin");
    let app = compiled(&scratch, "app.c", SPINNING, &["-g", "-O0", "-pthread"]);
    let app = Program::new(app, scratch.path());
    let (_, recording) = Hindsight::record(&scratch, &["--locks"], &app);
    let spins = "select kind, contended, hold_ns is not null as is_given_back from locks where name = 'spin' order by seq";
    assert_eq!(row_text(&recording, spins), ["false true spin"; 2]);
    let text = report(&scratch, &recording, &[]);
    let mutex = text.lines().find(|line| line.contains("mutex"));
    let cells: Vec<&str> = mutex
        .expect("it is told")
        .split('|')
        .map(str::trim)
        .collect();
    assert_eq!(cells[2..4], ["1", "0"], "taken and contended: {text}");
}

//! Goal: the history of a recursive function's variable has the values of all calls that were captured, and says of which call
//! each one is. Method: recursions whose values follow from their source.

use e2e::{Hindsight, Program, Recording, Scratch, compiled};
use serde_json::{Value, json};

/// A recursion that `longjmp` leaves: only the entries of inner calls show `loc`, of the calls around them.
const LEFT: &str = r#"
#include <setjmp.h>
static jmp_buf back;
volatile int sink;
__attribute__((noinline)) void lj(int x) {
  int loc = x * 2;
  if (x == 0)
    longjmp(back, 3);
  sink += loc;
  lj(x - 1);
  sink += loc;
}
int main() {
  if (!setjmp(back))
    lj(2);
  return 0;
}
"#;

/// A recursion that returns.
const DOWN: &str = r#"
volatile int sink;
__attribute__((noinline)) void mark(int n) { sink = n; }
__attribute__((noinline)) int down(int n) {
  int own = n * 10;
  if (n > 0)
    own += down(n - 1);
  else
    mark(n);
  return own;
}
int main() { return down(2) - 30; }
"#;

/// A recording of a program in which a function's variable is watched, and the folder that holds both.
fn watching(name: &str, source: &str, watched: &str) -> (Scratch, Recording) {
    let scratch = Scratch::new(name);
    let program = compiled(&scratch, "app.cc", source, &["-g", "-O0"]);
    let program = Program::new(program, scratch.path());
    let recording = Hindsight::recorded(&scratch, "app", &["--watch", watched], &program);
    (scratch, recording)
}

/// The events of the calls of a function, in order: `start_seq` or `end_seq`.
fn events_of(recording: &Recording, function: &str, column: &str) -> Vec<u64> {
    let sql =
        format!("SELECT {column} AS e FROM calls WHERE function = '{function}' ORDER BY start_seq");
    let rows = recording.rows(&sql);
    let events = rows.iter().map(|row| row["e"].as_u64());
    events.map(|event| event.expect("an event")).collect()
}

#[test]
fn the_values_of_calls_around_a_recursive_call_are_in_the_history() {
    let (_scratch, recording) = watching("history-left", LEFT, "lj::loc");
    let [first, second, third] = events_of(&recording, "lj", "start_seq")[..] else {
        panic!("three calls");
    };
    let rows = recording.rows("SELECT seq, old, new FROM history('loc', 'lj') ORDER BY seq");
    let wanted = [
        json!({"seq": second, "old": Value::Null, "new": "4"}),
        json!({"seq": third, "old": "4", "new": "2"}),
    ];
    assert_eq!(json!(rows), json!(wanted));
    let there = format!("goto {third}");
    let in_frame = [there.as_str(), "frame 1", "history loc"];
    for lines in [&["history lj::loc"][..], &in_frame[..]] {
        let told = recording.prompt(lines).text();
        let is_shown = |line: &&str| line.contains("value in the call");
        let shown: Vec<&str> = told.lines().filter(is_shown).collect();
        let [outer, inner] = shown[..] else {
            panic!("{lines:?}: {told}");
        };
        assert!(outer.contains(&format!(" {second} | ")), "{told}");
        assert!(outer.contains(" | 4 "), "{told}");
        let call = format!("app.cc:5, value in the call of event {first}");
        assert!(outer.trim_end().ends_with(&call), "{told}");
        assert!(inner.contains(&format!(" {third} | ")), "{told}");
        assert!(inner.contains(" | 2 "), "{told}");
        let call = format!("app.cc:5, value in the call of event {second}");
        assert!(inner.trim_end().ends_with(&call), "{told}");
    }
}

#[test]
fn the_last_write_says_that_only_outer_calls_show_a_value() {
    let (_scratch, recording) = watching("last-write-left", LEFT, "lj::loc");
    let starts = events_of(&recording, "lj", "start_seq");
    for name in ["lj::loc", "loc"] {
        let line = format!("last-write {name}");
        let early = recording.prompt(&[&format!("goto {}", starts[0]), &line]);
        let told = early.text();
        let none = format!("The recording shows no value of {name} up to here.");
        assert!(told.contains(&none), "{told}{}", early.errors());
        let late = recording.prompt(&[&format!("goto {}", starts[2]), &line]);
        let errors = late.errors();
        let why = format!(
            "up to here, {name} is known only in outer calls of a recursion, and this is about the innermost call"
        );
        assert!(errors.contains(&why), "{errors}");
        let next = format!("history {name} shows the values in all calls");
        assert!(errors.contains(&next), "{errors}");
    }
}

#[test]
fn a_recursion_that_returns_shows_its_values_on_the_way_in_and_out() {
    let (_scratch, recording) = watching("history-down", DOWN, "down::own");
    let starts = events_of(&recording, "down", "start_seq");
    let ends = events_of(&recording, "down", "end_seq");
    let marked = events_of(&recording, "mark", "start_seq")[0];
    let rows = recording.rows("SELECT seq, old, new FROM history('own', 'down') ORDER BY seq");
    let row = |seq: u64, old: Option<&str>, new: &str| json!({"seq": seq, "old": old, "new": new});
    let wanted = [
        row(starts[1], None, "20"),
        row(starts[2], Some("20"), "10"),
        row(marked, Some("10"), "0"),
        row(ends[2], Some("0"), "10"),
        row(ends[1], Some("10"), "20"),
    ];
    assert_eq!(json!(rows), json!(wanted));
    // The others are those of the innermost call.
    let told = recording.prompt(&["history down::own"]).text();
    let of_outer = told.matches("value in the call of event").count();
    assert_eq!(of_outer, 2, "{told}");
}

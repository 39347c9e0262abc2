//! Goal: in a recording of every instruction, moves over calls go over inlined ones too, and conditions and messages at a line have
//! the scope of that line's function. Method: an optimised program whose calls are inlined; gdb steps the same program.

use e2e::{Hindsight, Program, Recording, Scratch, compiled, gdb_places};

const INLINED: &str = r#"#include <stdio.h>
volatile int sink;
static inline __attribute__((always_inline)) int twice(int v) {
  int x = v * 2;
  sink = x;
  return x + 1;
}
static inline __attribute__((always_inline)) int outer(int v) {
  int y = twice(v);
  sink += y;
  return y + twice(v + 1);
}
static __attribute__((noinline)) int work(int x) {
  sink = x;
  int a = outer(x);
  int b = twice(a); /* second */
  sink = b;
  return a + b;
}
int main(void) {
  int r = 0;
  for (int x = 0; x < 3; x++)
    r += work(x);
  printf("%d\n", r);
  return 0;
}
"#;

fn recorded(name: &str) -> (Scratch, Program, Recording) {
    let scratch = Scratch::new(name);
    let app = compiled(&scratch, "app.c", INLINED, &["-g", "-O2"]);
    let app = Program::new(app, scratch.path());
    let recording = Hindsight::recorded(&scratch, "recorded", &["--full"], &app);
    (scratch, app, recording)
}

/// The function and the line of each stop.
fn stops(recording: &Recording, verbs: &[&str]) -> Vec<(String, u64)> {
    let told = recording.prompt(verbs).text();
    let stop = |line: &str| {
        let (place, line) = line.strip_prefix("Thread ")?.rsplit_once("app.c:")?;
        let function = place.split(": ").last()?.split(' ').next()?;
        Some((function.to_owned(), line.parse().ok()?))
    };
    told.lines().filter_map(stop).collect()
}

#[test]
fn next_goes_over_inlined_calls_as_gdb_does() {
    let (_scratch, app, recording) = recorded("full_inlined-next");
    let begin = ["break work", "goto first", "continue", "delete"];
    let next = [&begin[..], &["next"; 4]].concat();
    let ours = stops(&recording, &next);
    let gdb = gdb_places(&app, &[&["break work", "run"][..], &["next"; 4]].concat());
    assert_eq!(ours, gdb);
    let back = [&next[..], &["next-back"; 4]].concat();
    let mut back = stops(&recording, &back).split_off(ours.len());
    back.reverse();
    assert_eq!(back, ours[..4], "the same way back");
}

#[test]
fn step_enters_inlined_calls_one_by_one() {
    let (_scratch, _, recording) = recorded("full_inlined-step");
    let begin = ["break work", "goto first", "continue", "delete", "next"];
    let step = [&begin[..], &["step"; 3]].concat();
    let stops = stops(&recording, &step);
    let entered: Vec<(&str, u64)> = stops.iter().map(|(name, line)| (&**name, *line)).collect();
    let expected = [
        ("work", 14),
        ("work", 15),
        ("outer", 9),
        ("twice", 4),
        ("twice", 5),
    ];
    assert_eq!(entered, expected);
    let frames = recording
        .prompt(&[&begin[..], &["backtrace"]].concat())
        .text();
    assert!(frames.contains("#0   work (x=0)"), "{frames}");
    let frames = recording.prompt(&[&step[..3], &["next", "step", "backtrace"]].concat());
    assert!(frames.text().contains("#0   outer (v=0)"), "{frames:?}");
}

/// `x` is a variable of `work`, and of `twice`, which is inlined into the line and begins where the line does.
#[test]
fn a_line_has_the_scope_of_its_function() {
    let (_scratch, _, recording) = recorded("full_inlined-scope");
    let line = INLINED.lines().position(|line| line.contains("second"));
    let place = format!("app.c:{}", line.expect("a line of the program") + 1);
    let logged = recording
        .prompt(&[&format!("logpoint {place} x={{x}}")])
        .text();
    let written: Vec<&str> = logged
        .lines()
        .filter_map(|line| line.split("| ").nth(2))
        .collect();
    assert_eq!(written, ["Message", "x=0", "x=1", "x=2"], "{logged}");
    let condition = format!("break {place} if x == 1");
    let reverse = ["goto last", &condition, "reverse-continue", "up", "print x"];
    let found = recording.prompt(&reverse).text();
    assert!(found.contains("breakpoint 1"), "{found}");
    assert!(found.contains("$1 = 1"), "{found}");
}

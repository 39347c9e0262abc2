//! Goal: in a recording of every instruction, a watch stops where the value changes, counts these stops, and ends with the call to
//! which its variable belongs, as gdb's does. Method: a program whose writes the source tells; with its calls recorded and without.

use e2e::{Hindsight, Program, Recording, Scratch, compiled};

const SOURCE: &str = r#"#include <stdio.h>
static int total;
__attribute__((noinline)) int other(int k) {
  int z[4] = {k, k, k, k};
  for (int i = 0; i < 4; i++) z[i] += i;
  return z[0] + z[3];
}
__attribute__((noinline)) int work(int n) {
  int local = n;
  local = n; /* same */
  local += 3;
  local *= 2;
  return local; /* end */
}
int main(void) {
  total += other(1);
  for (int i = 1; i < 4; i++) {
    total += work(i);
    total += other(i);
  }
  for (int i = 0; i < 3000; i++) total = 100; /* silent */
  total = 7;
  printf("%d\n", total);
  return 0;
}
"#;

const ENDED: &str =
    "Watch 2 was removed: local was 8, and the call of work to which it belongs has ended";

fn recorded(name: &str, options: &[&str]) -> (Scratch, Recording) {
    let scratch = Scratch::new(name);
    let app = compiled(&scratch, "app.c", SOURCE, &["-g", "-O0"]);
    let app = Program::new(app, scratch.path());
    let recording = Hindsight::recorded(&scratch, "recorded", options, &app);
    (scratch, recording)
}

/// The number of the line with a mark.
fn line(mark: &str) -> usize {
    let mark = format!("/* {mark} */");
    let at = SOURCE.lines().position(|line| line.contains(&mark));
    at.expect("a line of the program") + 1
}

/// What the prompt says about watches.
fn of_watches(said: &str) -> Vec<&str> {
    said.lines()
        .filter(|line| line.starts_with("Watch "))
        .collect()
}

#[test]
fn a_watch_of_a_local_variable_ends_with_its_call() {
    for (name, options) in [
        ("full-watch-calls", &["--full"][..]),
        ("full-watch-no-calls", &["--full", "-x", "*"][..]),
    ] {
        let (_scratch, recording) = recorded(name, options);
        let begun = ["break work", "continue", "next", "delete", "watch local"];
        let runs = [
            "continue", "continue", "watch", "continue", "where", "watch",
        ];
        let said = recording.prompt(&[&begun[..], &runs].concat()).text();
        let expected = [
            "Watch 2: local (in work)",
            "Watch 2: local was 1, is 4",
            "Watch 2: local was 4, is 8",
            ENDED,
        ];
        assert_eq!(of_watches(&said), expected, "{said}");
        let row = said
            .lines()
            .find(|line| line.trim_start().starts_with("2 |"));
        let cells: Vec<&str> = row.expect("a row").split('|').map(str::trim).collect();
        assert_eq!(cells, ["2", "local", "2", "in work"], "{said}");
        let after = &said[said.find(ENDED).expect("its end")..];
        assert!(after.contains("main at "), "{said}");
        assert!(after.contains("Nothing is watched."), "{said}");
    }
}

#[test]
fn going_back_a_watch_ends_where_its_call_begins() {
    for (name, options) in [
        ("full-watch-back", &["--full"][..]),
        ("full-watch-back-no-calls", &["--full", "-x", "*"][..]),
    ] {
        let (_scratch, recording) = recorded(name, options);
        let at = format!("break app.c:{}", line("end"));
        let begun = [at.as_str(), "continue", "delete", "watch local"];
        let said = recording.prompt(&[&begun[..], &["reverse-continue"; 4]].concat());
        let said = said.text();
        let told = of_watches(&said);
        assert_eq!(
            told[..3],
            [
                "Watch 2: local (in work)",
                "Watch 2: local was 4, is 8",
                "Watch 2: local was 1, is 4",
            ],
            "{said}"
        );
        let last = told.last().expect("a line");
        assert!(
            last.starts_with("Watch 2 was removed: local was "),
            "{said}"
        );
        let end = ", and the call of work to which it belongs begins here";
        assert!(last.ends_with(end), "{said}");
    }
}

#[test]
fn writes_of_the_same_value_do_not_stop() {
    let (_scratch, recording) = recorded("full-watch-silent", &["--full"]);
    let at = format!("break app.c:{}", line("silent") + 1);
    let stops = ["watch total", "continue", "goto last", "reverse-continue"];
    let lines = [
        &[at.as_str(), "continue", "delete"][..],
        &stops,
        &["reverse-continue"],
    ];
    let said = recording.prompt(&lines.concat()).text();
    let told = of_watches(&said);
    let expected = [
        "Watch 2: total (everywhere)",
        "Watch 2: total was 100, is 7",
        "Watch 2: total was 100, is 7",
    ];
    assert_eq!(told[..3], expected, "{said}");
    // The first of 3,000 writes is the one that changed it.
    assert!(told[3].ends_with(", is 100"), "{said}");
    assert_eq!(told.len(), 4, "{said}");
}

const ON_THE_STACK: &str = r#"__attribute__((noinline)) int seventh(int a, int b, int c, int d, int e, int f, int g) {
  g += a;
  g *= 2;
  return g + b + c + d + e + f;
}
int main(void) {
  int sum = seventh(1, 0, 0, 0, 0, 0, 6);
  sum += seventh(1, 0, 0, 0, 0, 0, 8);
  return sum - 32;
}
"#;

/// It lies in its caller's memory, and is the call's own all the same.
#[test]
fn a_watch_of_an_argument_on_the_stack_ends_with_its_call() {
    for (name, options) in [
        ("full-watch-seventh", &["--full"][..]),
        ("full-watch-seventh-no-calls", &["--full", "-x", "*"][..]),
    ] {
        let scratch = Scratch::new(name);
        let app = compiled(&scratch, "seventh.c", ON_THE_STACK, &["-g", "-O0"]);
        let app = Program::new(app, scratch.path());
        let recording = Hindsight::recorded(&scratch, "recorded", options, &app);
        let begun = ["break seventh", "continue", "delete", "watch g"];
        let said = recording.prompt(&[&begun[..], &["continue"; 3]].concat());
        let said = said.text();
        let expected = [
            "Watch 2: g (in seventh)",
            "Watch 2: g was 6, is 7",
            "Watch 2: g was 7, is 14",
            "Watch 2 was removed: g was 14, and the call of seventh to which it belongs has ended",
        ];
        assert_eq!(of_watches(&said), expected, "{name}: {said}");
    }
}

const SMALL_STACK: &str = r#"#include <stdlib.h>
#include <ucontext.h>
static ucontext_t outer, inner;
static int *cell;
static void on_small(void) {
  *cell = 1;
  *cell = 2;
}
int main(void) {
  char *pool = calloc(1, 1 << 16);
  cell = (int *)(pool + (1 << 14));
  getcontext(&inner);
  inner.uc_stack.ss_sp = pool + (1 << 15);
  inner.uc_stack.ss_size = 1 << 15;
  inner.uc_link = &outer;
  makecontext(&inner, on_small, 0);
  swapcontext(&outer, &inner);
  *cell = 3;
  return *cell - 3;
}
"#;

#[test]
fn a_block_below_a_small_stack_is_no_frames() {
    let scratch = Scratch::new("full-watch-beside");
    let app = compiled(&scratch, "small.c", SMALL_STACK, &["-g", "-O0"]);
    let app = Program::new(app, scratch.path());
    let recording = Hindsight::recorded(&scratch, "recorded", &["--full"], &app);
    let begun = ["break on_small", "continue", "delete", "watch *cell"];
    let said = recording.prompt(&[&begun[..], &["continue"; 3]].concat());
    let said = said.text();
    let expected = [
        "Watch 2: *cell (everywhere)",
        "Watch 2: *cell was 0, is 1",
        "Watch 2: *cell was 1, is 2",
        "Watch 2: *cell was 2, is 3",
    ];
    assert_eq!(of_watches(&said), expected, "{said}");
}

/// What is found last is the nearest: a breakpoint before the write, and of two watches the one that was written later.
#[test]
fn going_back_the_nearest_of_breakpoints_and_watches_stops() {
    let (_scratch, recording) = recorded("full-watch-nearest", &["--full"]);
    let (end, same) = (line("end"), line("same"));
    let begun = [
        format!("break app.c:{end}"),
        "continue".to_owned(),
        "delete".to_owned(),
        "watch total".to_owned(),
        "watch local".to_owned(),
        format!("break app.c:{same}"),
    ];
    let back = ["reverse-continue"; 3].map(str::to_owned);
    let lines = [&begun[..], &back].concat();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let said = recording.prompt(&lines).text();
    let expected = [
        "Watch 2: total (everywhere)",
        "Watch 3: local (in work)",
        "Watch 3: local was 4, is 8",
        "Watch 3: local was 1, is 4",
    ];
    assert_eq!(of_watches(&said), expected, "{said}");
    let last = said.lines().rfind(|line| line.starts_with("Thread "));
    assert!(
        last.is_some_and(|last| last.contains("at breakpoint 4")),
        "{said}"
    );
}

/// An event may have been thousands of instructions before.
#[test]
fn a_run_that_nothing_stops_says_from_which_instruction_on() {
    let (_scratch, recording) = recorded("full-watch-refused", &["--full"]);
    let begun = ["break main", "continue", "delete"];
    let runs = [
        "reverse-continue",
        "continue",
        "watch total",
        "reverse-continue",
    ];
    let ended = recording.prompt(&[&begun[..], &runs].concat());
    let said = ended.text();
    let at = said
        .split_once("at breakpoint 1, at event ")
        .and_then(|(_, rest)| rest.split_once(','));
    let moment = at.expect("a moment").0;
    assert!(moment.contains('+'), "{said}");
    let errors = ended.errors();
    let errors: Vec<&str> = errors
        .lines()
        .filter_map(|line| line.strip_prefix("error: "))
        .collect();
    assert_eq!(
        errors,
        [
            format!("nothing before event {moment} stops here"),
            format!("nothing after event {moment} stops here"),
            format!("the recording shows no change of a watched expression before event {moment}"),
        ]
    );
}

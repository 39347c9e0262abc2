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
    "Watch 2 was removed: local was 8, and the call of work in whose frame it lies has ended";

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
        let end = ", and the call of work in whose frame it lies begins here";
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

//! Goal: in recordings, `finish` and `reverse-finish` leave the selected frame, `until` leaves a loop of one line, and what can never be
//! evaluated or never changes is refused at once, as gdb does. Method: the events of the calls that are meant, and the lines of the
//! program; in a recording of calls and in one of every instruction.

use e2e::{Hindsight, Program, Recording, Scratch, compiled};

const SOURCE: &str = r#"#include <stdio.h>
static int sum;
__attribute__((noinline)) int rest(int n) { return n ? rest(n - 1) + 1 : sum; }
__attribute__((noinline)) int add(int n) {
  int s = 0;
  for (int i = 0; i < n; i++) s += i;
  return s;
}
int main(void) {
  sum = add(5);
  printf("%d\n", rest(4));
  return 0;
}
"#;

fn recorded(name: &str, options: &[&str]) -> (Scratch, Recording) {
    let scratch = Scratch::new(name);
    let app = compiled(&scratch, "app.c", SOURCE, &["-g", "-O0"]);
    let app = Program::new(app, scratch.path());
    let recording = Hindsight::recorded(&scratch, "recorded", options, &app);
    (scratch, recording)
}

/// What the prompt says, answers and errors.
fn said(recording: &Recording, lines: &[&str]) -> String {
    let ended = recording.prompt(lines);
    ended.text() + &ended.errors()
}

/// The event at which the last line that names one stands.
fn last_event(said: &str) -> Option<i64> {
    let mut at = said.lines().filter_map(|line| {
        let (_, rest) = line.split_once("at event ")?;
        rest.split(',').next()?.parse().ok()
    });
    at.next_back()
}

#[test]
fn the_selected_frame_is_left() {
    for (name, options) in [
        ("past-selected", &[][..]),
        ("full-selected", &["--full"][..]),
    ] {
        let (_scratch, recording) = recorded(name, options);
        // rest(4) calls rest(3), and that rest(2).
        let of_rest_2 = |column: &str| {
            recording.number(&format!(
                "SELECT {column} FROM calls WHERE function = 'rest' ORDER BY start_seq LIMIT 1 OFFSET 2"
            ))
        };
        let begun = ["break rest if n == 0", "continue", "delete"];
        for select in [&["frame 2"][..], &["up", "up"]] {
            for (verb, column) in [("finish", "end_seq"), ("reverse-finish", "start_seq")] {
                let lines = [&begun[..], select, &[verb]].concat();
                let said = said(&recording, &lines);
                assert_eq!(
                    last_event(&said),
                    Some(of_rest_2(column)),
                    "{name}, {lines:?}: {said}"
                );
            }
        }
        let said = said(&recording, &[&begun[..], &["frame 2", "finish"]].concat());
        assert!(said.contains("rest returned (int) 12 "), "{name}: {said}");
    }
}

#[test]
fn until_leaves_a_loop_of_one_line() {
    let (_scratch, recording) = recorded("full-until-line", &["--full"]);
    let said = said(&recording, &["break add", "continue", "until", "until"]);
    let lines: Vec<&str> = said
        .lines()
        .filter_map(|line| line.strip_prefix("->")?.split('|').next())
        .map(str::trim)
        .collect();
    assert_eq!(lines, ["5", "6", "7"], "{said}");
}

#[test]
fn what_can_never_be_evaluated_or_change_is_refused() {
    for (name, options) in [("past-refused", &[][..]), ("full-refused", &["--full"][..])] {
        let (_scratch, recording) = recorded(name, options);
        let said = said(
            &recording,
            &[
                "break rest if nosuch > 3",
                "info breakpoints",
                "break rest if n > 3",
                "condition 1 nosuch == 1",
                "watch 5",
                "watch sizeof(int) * 2",
                "watch",
                "continue",
                "print n",
            ],
        );
        assert!(said.matches("nosuch").count() >= 2, "{name}: {said}");
        for part in [
            "There are no breakpoints",
            "Breakpoint 1: rest (",
            "cannot watch the constant value 5: it never changes",
            "cannot watch the constant value sizeof(int) * 2: it never changes",
            "Nothing is watched.",
            "$1 = 4",
        ] {
            assert!(said.contains(part), "{name}, {part}: {said}");
        }
    }
}

//! Goal: breakpoints in a recording of calls have conditions and counts, stop once, and can be passed, forwards and backwards;
//! catchpoints stop at recorded events. Method: the same lines at the prompt of a recording of every instruction of the same
//! program, and values that the program's source tells.

use e2e::{Hindsight, Program, Recording, Scratch, compiled};

const SOURCE: &str = r#"
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static int sum;
__attribute__((noinline)) int work(int i) { sum += i; return sum; }
__attribute__((noinline)) int rest(int n) { return n ? rest(n - 1) : sum; }
int main(void) {
  for (int i = 0; i < 20; i++) work(i);
  printf("%d\n", rest(3));
  fflush(stdout);
  for (int i = 0; i < 2; i++)
    if (fork() == 0) _exit(0);
  while (wait(0) > 0) {}
  write(2, "done\n", 5);
  return 0;
}
"#;

struct Made {
    scratch: Scratch,
}

impl Made {
    fn new(name: &str) -> Made {
        let scratch = Scratch::new(name);
        compiled(&scratch, "app.c", SOURCE, &["-O0", "-g"]);
        Made { scratch }
    }

    fn record(&self, name: &str, options: &[&str]) -> Recording {
        let program = Program::new(self.scratch.join("app"), self.scratch.path());
        Hindsight::recorded(&self.scratch, name, options, &program)
    }
}

/// What the prompt says, answers and errors.
fn said(recording: &Recording, lines: &[&str]) -> String {
    let ended = recording.prompt(lines);
    ended.text() + &ended.errors()
}

/// The values that were printed.
fn values(recording: &Recording, lines: &[&str]) -> Vec<i64> {
    let said = said(recording, lines);
    let values = said
        .lines()
        .filter_map(|line| line.strip_prefix('$')?.split_once(" = "));
    values
        .map(|(_, value)| value.parse().expect("a number"))
        .collect()
}

#[test]
fn breakpoints_do_the_same_as_where_every_instruction_is_recorded() {
    let made = Made::new("past-breaks");
    let (calls, full) = (made.record("calls", &[]), made.record("full", &["--full"]));
    let cases: [(&[&str], &[i64]); 8] = [
        (
            &[
                "break work if i % 7 == 3",
                "continue",
                "print i",
                "continue",
                "print i",
                "continue",
                "print i",
            ],
            &[3, 10, 17],
        ),
        (
            &[
                "goto last",
                "break work if i % 7 == 3",
                "reverse-continue",
                "print i",
                "reverse-continue",
                "print i",
            ],
            &[17, 10],
        ),
        (
            &[
                "tbreak work",
                "continue",
                "print i",
                "break work if i == 9",
                "continue",
                "print i",
            ],
            &[0, 9],
        ),
        (
            &[
                "break work",
                "ignore 1 5",
                "continue",
                "print i",
                "continue",
                "print i",
            ],
            &[5, 6],
        ),
        (
            &[
                "goto last",
                "break work",
                "ignore 1 5",
                "reverse-continue",
                "print i",
                "reverse-continue",
                "print i",
            ],
            &[14, 13],
        ),
        (&["break work --hit-count 8", "continue", "print i"], &[7]),
        (
            &[
                "break work",
                "condition 1 i == 12",
                "continue",
                "print i",
                "condition 1",
                "continue",
                "print i",
            ],
            &[12, 13],
        ),
        (
            &[
                "break work if i == 6",
                "break work --hit-count 4",
                "break rest if n == 1",
                "continue",
                "print i",
                "continue",
                "print i",
                "continue",
                "print n",
            ],
            &[3, 6, 1],
        ),
    ];
    for (lines, expected) in cases {
        assert_eq!(
            values(&calls, lines),
            expected,
            "{lines:?}: {}",
            said(&calls, lines)
        );
        assert_eq!(
            values(&full, lines),
            expected,
            "{lines:?}: {}",
            said(&full, lines)
        );
    }
}

#[test]
fn breakpoints_say_what_they_do() {
    let made = Made::new("past-breaks-said");
    let recording = made.record("calls", &[]);
    let told = said(
        &recording,
        &[
            "tbreak work if i == 4",
            "continue",
            "info breakpoints",
            "continue",
        ],
    );
    assert!(
        told.contains("Breakpoint 1: work (1 function), only if i == 4, once\n"),
        "{told}"
    );
    assert!(
        told.contains("at breakpoint 1, at event ") && told.contains("entry of work"),
        "{told}"
    );
    assert!(
        told.contains("There are no breakpoints; runs through time stop where the recording did."),
        "{told}"
    );
    assert!(told.contains("stops here"), "{told}");
    // What is not known is no reason to stop, and is told.
    let unknown = said(
        &recording,
        &[
            "break rest if sum > 100000",
            "break rest if *(int *)16 == 1",
            "continue",
        ],
    );
    assert!(
        unknown.contains(
            "breakpoint 2: its condition could not be evaluated 4 times, first at event "
        ),
        "{unknown}"
    );
    let listed = said(
        &recording,
        &[
            "break work if i > 3",
            "ignore 1 2",
            "break rest",
            "break disable 2",
            "continue",
            "break list",
        ],
    );
    let row = |id: &str| {
        let row = listed
            .lines()
            .find(|line| line.trim_start().starts_with(&format!("{id} |")));
        let cells = row.unwrap_or_else(|| panic!("{listed}")).split('|');
        cells.map(|cell| cell.trim().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        row("1"),
        ["1", "work", "set", "3", "only if i > 3", "1 function"]
    );
    assert_eq!(row("2"), ["2", "rest", "disabled", "0", "", "1 function"]);
    let refused = said(
        &recording,
        &[
            "break work if hitCount > 2",
            "break work --all-threads",
            "ignore 9 1",
        ],
    );
    assert!(
        refused.contains("--hit-count N; or pass some: ignore ID COUNT"),
        "{refused}"
    );
    assert!(refused.contains("there is no breakpoint 9"), "{refused}");
}

#[test]
fn catchpoints_stop_at_recorded_events() {
    let made = Made::new("past-catches");
    let recording = made.record("calls", &["--syscalls"]);
    let seqs = |sql: &str| -> Vec<i64> {
        let rows = recording.rows(sql);
        rows.iter().filter_map(|row| row["seq"].as_i64()).collect()
    };
    let stops = |lines: &[&str]| -> Vec<i64> {
        let text = said(&recording, lines);
        let at = text.lines().filter_map(|line| {
            line.split_once("at event ")?
                .1
                .split(',')
                .next()?
                .parse()
                .ok()
        });
        at.collect()
    };
    let forks = seqs("SELECT seq FROM events WHERE kind = 'fork' ORDER BY seq");
    assert_eq!(forks.len(), 2);
    assert_eq!(stops(&["catch fork", "continue", "continue"]), forks);
    let writes = seqs("SELECT seq FROM syscalls WHERE name = 'write' ORDER BY seq");
    assert_eq!(writes.len(), 2);
    assert_eq!(
        stops(&[
            "goto last",
            "catch syscall write",
            "reverse-continue",
            "reverse-continue"
        ])[1..],
        [writes[1], writes[0]]
    );
    assert_eq!(
        stops(&["catch syscall write", "ignore 1 1", "continue"]),
        writes[1..]
    );
    let told = said(
        &recording,
        &[
            "catch vfork",
            "catch syscall write",
            "catch list",
            "catch remove 1",
            "break list",
        ],
    );
    assert!(told.contains("Catchpoint 1: vfork (2 events)\n"), "{told}");
    assert!(
        told.contains("Catchpoint 2: syscall write (2 events)\n"),
        "{told}"
    );
    assert!(
        told.contains("1 catchpoint removed") || told.contains("1 breakpoint removed"),
        "{told}"
    );
    let refused = said(
        &recording,
        &[
            "catch exec",
            "catch syscall mount",
            "catch throw",
            "catch signal",
            "catch syscall write if $rdi == 2",
        ],
    );
    for expected in [
        "the program executed no other one while it was recorded",
        "syscall mount: the program made no such call while it was recorded",
        "help: calls that an exception or a panic left: continue where unwound",
        "no signal was seen while the program was recorded",
        "help: find the next matching event: continue where kind = 'syscall'",
    ] {
        assert!(refused.contains(expected), "{expected}: {refused}");
    }
    let plain = made.record("plain", &[]);
    let refused = said(&plain, &["catch syscall"]);
    assert!(
        refused.contains("no system call was recorded") && refused.contains("--syscalls"),
        "{refused}"
    );
}

const STALE: &str = r#"
#include <stdio.h>
struct cfg { int port; char *name; };
struct cfg store = {80, "web"};
struct cfg *cfg;
int idx, den;
__attribute__((noinline)) int use(int k) { return cfg->port + k; }
int main(void) {
  cfg = &store; idx = 3; den = 2;
  int s = 0;
  for (int i = 0; i < 5; i++) s += use(i);
  printf("%d\n", s);
  return 0;
}
"#;

/// The program's globals were last seen before it set them.
#[test]
fn what_comes_of_stale_values_says_so() {
    let scratch = Scratch::new("stale_values");
    compiled(&scratch, "app.c", STALE, &["-O0", "-g"]);
    let program = Program::new(scratch.join("app"), scratch.path());
    let recording = Hindsight::recorded(&scratch, "stale", &[], &program);
    let use_at = recording.number("SELECT min(start_seq) FROM calls WHERE function = 'use'");
    let goto = format!("goto {use_at}");
    for expression in [
        "cfg",
        "cfg->port",
        "&*cfg",
        "&cfg->name",
        "&cfg[3]",
        "cfg->name[1]",
        "10 / den",
        "idx == 0",
    ] {
        let said = said(&recording, &[&goto, &format!("print {expression}")]);
        assert!(
            said.contains("<stale: as of event "),
            "{expression}: {said}"
        );
    }
    let sql = format!("SELECT explain_value({use_at}, '&cfg->name') AS why");
    let why = recording.rows(&sql)[0]["why"].to_string();
    assert!(why.contains("stale"), "{why}");
    for condition in ["idx == 0", "idx == 3"] {
        let add = format!("break use --condition '{condition}'");
        let said = said(&recording, &["goto first", &add, "continue"]);
        assert!(
            said.contains("could not be evaluated 5 times")
                && said.contains("may have changed since"),
            "{condition}: {said}"
        );
    }
    // An argument is known.
    let said = said(
        &recording,
        &[
            "goto first",
            "break use --condition 'k == 2'",
            "continue",
            "print k",
        ],
    );
    assert!(said.contains("$1 = 2"), "{said}");
}

#[test]
fn moves_stop_at_breakpoints_on_their_way() {
    let made = Made::new("past-breaks-way");
    let (calls, full) = (made.record("calls", &[]), made.record("full", &["--full"]));
    let begun = ["break rest if n == 3", "continue"];
    let then = |lines: &[&'static str]| [&begun[..], lines, &["print n"]].concat();
    let first = "break rest if n == 1";
    for recording in [&calls, &full] {
        for lines in [
            then(&[first, "finish"]),
            then(&["finish", "delete", "break rest if n == 1", "next back"]),
        ] {
            let found = values(recording, &lines);
            assert_eq!(found.last(), Some(&1), "{lines:?}");
        }
        // A hit that is passed does not stop, and counts.
        let said = said(
            recording,
            &[
                "break work",
                "ignore 1 2",
                "continue",
                "print i",
                "info breakpoints",
            ],
        );
        assert!(
            said.contains("$1 = 2") && said.contains("|    3 |"),
            "{said}"
        );
    }
    for over in ["until work", "advance work", "next"] {
        let lines = then(&[first, over]);
        assert_eq!(values(&full, &lines).last(), Some(&1), "{lines:?}");
    }
    // The line where a step ends may have one.
    let said = said(&full, &["break main", "continue", "break app.c:10", "next"]);
    assert!(said.contains("at breakpoint 2, at event"), "{said}");
    // So may the event.
    let said = self::said(
        &calls,
        &["break work if i == 4", "continue", "step back", "step"],
    );
    assert_eq!(
        said.matches("at breakpoint 1, at event").count(),
        2,
        "{said}"
    );
}

#[test]
fn a_recording_shows_displays_after_moves_and_numbers_what_was_returned() {
    let made = Made::new("past-displays");
    let (calls, full) = (made.record("calls", &[]), made.record("full", &["--full"]));
    for recording in [&calls, &full] {
        let said = said(
            recording,
            &[
                "break work if i > 10",
                "display/x i",
                "display i * 2",
                "continue",
                "undisplay 1",
                "continue",
                "finish",
                "print $ + 1",
            ],
        );
        for line in ["1: /x i = 0xb\n2: i * 2 = 22\n", "->     6 | "] {
            assert!(said.contains(line), "{line}: {said}");
        }
        assert!(said.contains("2: i * 2 = 24"), "{said}");
        assert!(!said.contains("1: /x i = 0xc"), "{said}");
        assert!(said.contains("work returned (int) 78 ($1)"), "{said}");
        assert!(said.contains("$2 = 79"), "{said}");
    }
    let said = said(&full, &["break work", "display/i $pc", "continue"]);
    assert!(
        said.contains("1: /i $pc = 0x") && said.contains("<work+"),
        "{said}"
    );
    let said = self::said(&calls, &["advance work"]);
    let refusal = "advance needs a program that runs, and this is a recording";
    assert!(said.contains(refusal), "{said}");
}

#[test]
fn a_number_is_given_once_and_its_lines_go_with_it() {
    let made = Made::new("past-numbers");
    for options in [&[][..], &["--full"]] {
        let name = if options.is_empty() { "calls" } else { "full" };
        let recording = made.record(name, options);
        let lines = [
            "break work",
            "commands 1",
            "echo OLD\\n",
            "end",
            "delete",
            "tbreak rest",
            "commands 2",
            "echo NEW\\n",
            "end",
            "continue",
        ];
        let said = said(&recording, &lines);
        assert!(!said.contains("OLD\n"), "{options:?}: {said}");
        assert_eq!(said.matches("NEW\n").count(), 1, "{options:?}: {said}");
    }
}

#[test]
fn lines_without_an_end_are_told() {
    let made = Made::new("past-unended");
    let calls = made.record("calls", &[]);
    let said = said(&calls, &["commands 99", "print 1", "print 2"]);
    assert!(said.contains("there is no breakpoint 99"), "{said}");
    assert!(said.contains("have no end: 2 lines did nothing"), "{said}");
}

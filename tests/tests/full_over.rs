//! Goal: in a recording of every instruction, moves over calls stop at breakpoints as they do live, and what the kernel maps is told
//! apart from what instructions wrote. Method: small programs that know which call or mapping comes next.

use e2e::{Hindsight, Program, Recording, Scratch, compiled};

/// Builds a program, and records every instruction of it. Its folder is removed with the `Scratch`.
fn recorded(name: &str, source: &str) -> (Scratch, Recording) {
    let scratch = Scratch::new(name);
    let app = compiled(&scratch, "app.c", source, &["-g", "-O0"]);
    let app = Program::new(app, scratch.path());
    let recording = Hindsight::recorded(&scratch, "recorded", &["--full"], &app);
    (scratch, recording)
}

const MAPPED: &str = r#"#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>
char *page;
int main(void) {
  page = mmap((void *)0x10000000, 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  page[5] = 'A';
  page[6] = 'B';
  munmap(page, 4096);
  page = mmap((void *)0x10000000, 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  page[6] = 'C';
  printf("%d\n", page[5]);
  return 0;
}
"#;

/// What the kernel maps is no write of an instruction.
#[test]
fn memory_that_was_mapped_anew_does_not_keep_the_last_write() {
    let (_scratch, recording) = recorded("full-mapped", MAPPED);
    let verbs = [
        "break app.c:12",
        "goto first",
        "continue",
        "last-write page[5]",
        "last-write page[6]",
        "last-write *(int *)16",
    ];
    let told = recording.prompt(&verbs).text();
    for part in [
        "page[5] became 65 'A'",
        "Now page[5] is 0 '\\000': the kernel has since mapped something else there",
        "page[6] became 67 'C'",
        "The program has no readable memory at *(int *)16 here.",
    ] {
        assert!(told.contains(part), "{part}\n{told}");
    }
    assert!(!told.contains("Now page[6]"), "{told}");
}

/// What changed a value without writing it is told where values are followed.
#[test]
fn histories_and_watches_show_what_the_kernel_maps_and_drops() {
    let (_scratch, recording) = recorded("full-mapped-watch", MAPPED);
    let verbs = [
        "break app.c:12",
        "goto first",
        "continue",
        "history page[5]",
        "break remove 1",
        "watch page[5]",
        "reverse-continue",
        "reverse-continue",
        "reverse-continue",
    ];
    let told = recording.prompt(&verbs).text();
    let history: Vec<&str> = told
        .lines()
        .filter(|line| {
            line.contains("mmap.c")
                || line.contains("mmap")
                || line.contains("munmap")
                || line.contains("app.c:7")
        })
        .collect();
    assert!(history.len() >= 4, "{told}");
    let stops: Vec<&str> = told
        .lines()
        .filter(|line| line.starts_with("Watch 2: page[5] was "))
        .collect();
    assert_eq!(
        stops,
        [
            "Watch 2: page[5] was (no memory), is 0 '\\000'",
            "Watch 2: page[5] was 65 'A', is (no memory)",
            "Watch 2: page[5] was 0 '\\000', is 65 'A'",
        ],
        "{told}"
    );
    let all = "All writes in the whole run, and what the kernel mapped there or dropped.";
    assert!(told.contains(all), "{told}");
}

const NESTED: &str = r#"#include <stdio.h>
static int kept;
static void inner(int n) {
  kept += n; /* inner */
}
static int outer(int n) {
  for (int i = 0; i < 3; i++)
    inner(n + i);
  return kept; /* outer ends */
}
int main(void) {
  int all = outer(1); /* first call */
  all += outer(10); /* second call */
  printf("%d\n", all); /* last */
  return 0;
}
"#;

/// What a move goes over stops at breakpoints, forwards and backwards, as it does live.
#[test]
fn moves_over_calls_stop_at_breakpoints_in_them() {
    let (_scratch, recording) = recorded("full-nested", NESTED);
    let line = |mark: &str| {
        let at = NESTED
            .lines()
            .position(|line| line.contains(&format!("/* {mark} */")));
        at.expect("a line of the program") + 1
    };
    let prompt = |verbs: &[&str]| {
        let text = recording.prompt(verbs).text();
        let values = text.lines().filter(|line| line.starts_with('$'));
        let values: Vec<String> = values
            .filter_map(|line| Some(line.split_once("= ")?.1.to_owned()))
            .collect();
        (values, text)
    };
    let first = format!("break app.c:{}", line("first call"));
    let inner = format!("break app.c:{} if n != 2", line("inner"));
    let verbs = [
        &first,
        "goto first",
        "continue",
        &inner,
        "next",
        "print n",
        "finish",
        "finish",
        "print n",
    ];
    let (values, text) = prompt(&verbs);
    assert_eq!(values[0], "1", "the first call stops: {text}");
    assert_eq!(
        values[1], "3",
        "the condition is false for the second one: {text}"
    );
    assert!(text.contains("breakpoint 2"), "{text}");
    let last = format!("break app.c:{}", line("last"));
    let (values, text) = prompt(&[
        &last,
        "goto first",
        "continue",
        &inner,
        "next-back",
        "print n",
        "next-back",
        "print n",
    ]);
    assert_eq!(values[0], "12", "the last call before: {text}");
    let (values, text) = prompt(&[&last, "goto first", "continue", "next-back", "print all"]);
    assert_eq!(values, ["6"], "without breakpoints, over the call: {text}");
}

/// As `finish` does in a program that runs.
#[test]
fn finish_tells_what_a_recorded_call_returned() {
    let scratch = Scratch::new("full_over-result");
    let source = r#"
struct wide { long a, b, c; };
long sum(long a, long b) { return a + b; }
double half(double x) { return x / 2; }
struct wide made(long a) { struct wide w = {a, a * 2, a * 3}; return w; }
void nothing(void) {}
long double large(void) { return 0.5L; }
int main(void) {
  nothing();
  return sum(3, 4) + half(9) + made(5).c + large() == 26.5 + 1 ? 1 : 0;
}
"#;
    let app = compiled(&scratch, "app.c", source, &["-g", "-O0"]);
    let program = Program::new(&app, scratch.path());
    let recorded =
        |name: &str, options: &[&str]| Hindsight::recorded(&scratch, name, options, &program);
    let (calls, full) = (recorded("calls", &[]), recorded("full", &["--full"]));
    let told = |recording: &Recording, function: &str| {
        let entry = format!("SELECT start_seq FROM calls WHERE function = '{function}'");
        let goto = format!("goto {}", recording.rows(&entry)[0]["start_seq"]);
        let ended = recording.prompt(&[&goto, "finish"]);
        assert!(ended.text().contains("return from"), "{ended:?}");
        let text = ended.text();
        let line = text.lines().find(|line| line.contains(" returned "));
        line.map(str::to_owned)
    };
    for recording in [&calls, &full] {
        let told = |function: &str| told(recording, function);
        assert_eq!(
            told("sum").as_deref(),
            Some("sum returned (long int) 7 ($1)")
        );
        assert_eq!(
            told("half").as_deref(),
            Some("half returned (double) 4.5 ($1)")
        );
        assert_eq!(told("nothing"), None);
    }
    let made = "made returned (struct wide) {a = 5, b = 10, c = 15} ($1)";
    assert_eq!(told(&full, "made").as_deref(), Some(made));
    let large = "large returned (long double) 0.5 ($1)";
    assert_eq!(told(&full, "large").as_deref(), Some(large));
}

const ENDS: &str = r#"#include <stdio.h>
int g;
void one(void) {
  g += 1;
}
void two(void) {
  g += 10;
}
int main(void) {
  one();
  g = g * 2;
  two();
  one();
  g = g * 3;
  printf("%d\n", g);
  return 0;
}
"#;

/// The numbers of the lines at which moves ended.
fn lines_of(told: &str) -> Vec<u32> {
    let digits = |text: &str| -> String { text.chars().take_while(char::is_ascii_digit).collect() };
    let found = told.split("app.c:").skip(1);
    found.filter_map(|rest| digits(rest).parse().ok()).collect()
}

/// A return to the very beginning of the caller's next line ends a step there, as in gdb.
#[test]
fn a_step_out_of_a_call_stops_at_the_next_line() {
    let (_scratch, recording) = recorded("full-ends", ENDS);
    let steps = |verb: &'static str, count| {
        [
            &["break main", "goto first", "continue", "delete"][..],
            &vec![verb; count],
        ]
        .concat()
    };
    let stepped = lines_of(&recording.prompt(&steps("step", 12)).text());
    assert_eq!(stepped, [10, 4, 5, 11, 12, 7, 8, 13, 4, 5, 14, 15, 16]);
    let stepped = lines_of(&recording.prompt(&steps("next", 6)).text());
    assert_eq!(stepped, [10, 11, 12, 13, 14, 15, 16]);
    let out = [
        "break one",
        "goto first",
        "continue",
        "delete",
        "next",
        "next",
        "next",
    ];
    assert_eq!(lines_of(&recording.prompt(&out).text()), [4, 5, 11, 12]);
}

const EARLIER: &str = r#"int g;
int a(int x) {
  g += x;
  return g;
}
int b(int x) {
  g *= x;
  return g;
}
int main(void) {
  int r = 1;
  r = a(2) + b(a(3));
  return r != 27;
}
"#;

/// As in gdb: what the caller's line has called before is on the way back.
#[test]
fn a_step_back_enters_the_calls_that_the_callers_line_has_made_before() {
    let (_scratch, recording) = recorded("full-earlier", EARLIER);
    let begin = ["break b", "goto first", "continue", "delete"];
    let steps = [&begin[..], &["step-back"; 10]].concat();
    let stepped = lines_of(&recording.prompt(&steps).text());
    assert_eq!(stepped, [7, 6, 5, 4, 3, 2, 5, 4, 3, 2, 12]);
}

//! Each kind of thing in which two runs can differ, alone: it is found, named, and ignored if the project says so.

use std::fs;

use e2e::{Live, Program, Scratch, Status, in_turn, wait_until};
use serde_json::Value;

use crate::{build, compare, ends_with, record};

/// What it does besides its calls is chosen when it is compiled.
const PROGRAM: &str = r#"#include <stdio.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int step(int n) { return n + 1; }
int main(void) {
  int sum = step(1);
  ACT
  return sum - 2;
}
"#;

/// What it does, the kind of rule that ignores it, and a part of the answer.
const ACTS: [(&str, &str, &str, &str); 6] = [
    ("code", "_exit(3);", "exit", "exit code 3"),
    ("signal", "raise(SIGUSR1);", "exit", "SIGUSR1"),
    (
        "stdout",
        "puts(\"one more line\");",
        "output",
        "one more line",
    ),
    (
        "stderr",
        "fputs(\"warning: low\\n\", stderr);",
        "output",
        "warning: low",
    ),
    (
        "fork",
        "if (fork() == 0) _exit(0); wait(0);",
        "events",
        "fork",
    ),
    (
        "exec",
        "execl(\"/nowhere/at/all\", \"all\", (char *)0);",
        "events",
        "/nowhere/at/all",
    ),
];

fn made(scratch: &Scratch, name: &str, act: &str) {
    let folder = scratch.join(name);
    fs::create_dir(&folder).expect("the test's folder is writable");
    fs::write(folder.join("app.c"), PROGRAM.replace("ACT", act)).expect("the test's folder");
    build(&folder, "gcc -O0 -g -o app app.c");
    // Only the function that both call alike: what else they do shows elsewhere.
    let app = Program::new(folder.join("app"), scratch.path());
    record(scratch, name, &["-f", "step"], &app);
}

/// Builds a program several times with other flags, and records each build under its name.
fn builds(scratch: &Scratch, source: &str, builds: &[(&str, &str)]) {
    fs::write(scratch.join("app.c"), source).expect("the test's folder is writable");
    for (name, flags) in builds {
        build(scratch.path(), &format!("gcc -O0 -g {flags} -o app app.c"));
        record(
            scratch,
            name,
            &[],
            &Program::new(scratch.join("app"), scratch.path()),
        );
    }
}

fn ignore(scratch: &Scratch, kinds: &str) {
    let rules = format!("[compare.ignore]\nkinds = [{kinds}]\n");
    fs::write(scratch.join("hindsight.toml"), rules).expect("the test's folder is writable");
}

#[test]
fn each_kind_is_found_alone_and_ignored_alone() {
    let scratch = Scratch::new("compare-kinds");
    made(&scratch, "plain", "");
    for (name, act, kind, told) in in_turn(ACTS) {
        made(&scratch, name, act);
        ignore(&scratch, "");
        let ended = compare(&scratch, &["plain", name]);
        let text = ended.text();
        assert!(text.contains(told), "{name}: {text}");
        assert!(!text.contains("The first difference"), "{name}: {text}");
        ends_with(&ended, 1);
        for other in ["output", "exit", "exceptions", "events"] {
            ignore(&scratch, &format!("\"{other}\""));
            let ended = compare(&scratch, &["plain", name]);
            // A program that a signal ends has an exception too.
            let is_enough = other == kind && name != "signal";
            let code = if is_enough { 0 } else { 1 };
            assert_eq!(
                ended.status.as_shell_code(),
                code,
                "{name} without {other}: {}",
                ended.text()
            );
        }
        ignore(&scratch, "\"exit\", \"exceptions\", \"output\", \"events\"");
        ends_with(&compare(&scratch, &["plain", name]), 0);
    }
}

#[test]
fn messages_of_logpoints_are_compared() {
    let scratch = Scratch::new("compare-logpoints");
    let source = PROGRAM.replace(
        "ACT",
        "for (int i = 0; i < 4; i++) sum += HOW(step(i)) != 0;",
    );
    for (name, how) in [("one", "-DHOW(x)=x"), ("two", "-DHOW(x)=(x*2)")] {
        fs::write(scratch.join("app.c"), source.replace("sum - 2", "0"))
            .expect("the test's folder");
        build(scratch.path(), &format!("gcc -O0 -g '{how}' -o app app.c"));
        let app = Program::new(scratch.join("app"), scratch.path());
        let logged = ["-f", "step", "--logpoint", "app.c:10", "sum is {sum}"];
        record(&scratch, name, &logged, &app);
    }
    ends_with(&compare(&scratch, &["one", "two"]), 0);
    let other = source
        .replace("int sum = step(1);", "int sum = 5 + step(1);")
        .replace("sum - 2", "0");
    fs::write(scratch.join("app.c"), other).expect("the test's folder");
    build(scratch.path(), "gcc -O0 -g '-DHOW(x)=x' -o app app.c");
    let app = Program::new(scratch.join("app"), scratch.path());
    record(
        &scratch,
        "three",
        &["-f", "step", "--logpoint", "app.c:10", "sum is {sum}"],
        &app,
    );
    let ended = compare(&scratch, &["one", "three"]);
    assert!(ended.text().contains("sum is 6"), "{}", ended.text());
    assert!(ended.text().contains("sum is 11"), "{}", ended.text());
    ends_with(&ended, 1);
    ignore(&scratch, "\"events\"");
    ends_with(&compare(&scratch, &["one", "three"]), 0);
}

const THROWN: &str = r#"#include <cstdio>
struct Small { int value; };
struct Large { int value; };
static int attempt(int n) { try { throw WHAT{n}; } catch (const WHAT &error) { return error.value; } }
int step(int n) { return attempt(n) - n; }
int main() { return step(3); }
"#;

/// The function that throws and catches is not recorded. A session that stops at each throw records it.
#[test]
fn other_types_of_exceptions_are_a_difference() {
    let live = Live::new("compare-thrown");
    let mut runs = Vec::new();
    for (name, what) in [("one", "Small"), ("again", "Small"), ("two", "Large")] {
        let folder = live.scratch.join(name);
        fs::create_dir(&folder).expect("the test's folder is writable");
        fs::write(folder.join("app.cc"), THROWN).expect("the test's folder is writable");
        build(&folder, &format!("g++ -O0 -g -DWHAT={what} -o app app.cc"));
        let options = ["--stop-on-entry", "-f", "step", "-f", "main"];
        let report = live.start(&options, &folder.join("app"), &[]);
        live.ask(&["catch", "throw"]);
        assert_eq!(live.moved(&["continue"])["what"], what);
        assert_eq!(live.run_to_end(), 0);
        runs.push(report["recording"].as_str().expect("a path").to_owned());
    }
    let compared = |other: &str| {
        wait_until("both recordings are complete", || {
            let ended = compare(&live.scratch, &[&runs[0], other]);
            (ended.status != Status::Code(3)).then_some(ended)
        })
    };
    ends_with(&compared(&runs[1]), 0);
    let ended = compared(&runs[2]);
    ends_with(&ended, 1);
    let text = ended.text();
    assert!(
        text.contains("exception differs: A Small first_chance"),
        "{text}"
    );
    assert!(text.contains("B Large first_chance"), "{text}");
    ignore(&live.scratch, "\"events\", \"output\", \"exit\"");
    ends_with(&compared(&runs[2]), 1);
    ignore(&live.scratch, "\"exceptions\"");
    ends_with(&compared(&runs[2]), 0);
}

const TWO_THREADS: &str = r#"#include <pthread.h>
#include <stdio.h>
static __thread int level;
int add(int n) { return level += n + (ODD && n == 3); }
int take(int n) { return level -= n + (ODD && n == 4); }
void *adds(void *of) { for (int i = 0; i < 6; i++) add(i); return of; }
void *takes(void *of) { for (int i = 0; i < 6; i++) take(i); return of; }
int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, adds, 0); pthread_join(a, 0);
  pthread_create(&b, 0, takes, 0); pthread_join(b, 0);
  puts("done");
}
"#;

#[test]
fn each_thread_has_its_own_first_difference() {
    let scratch = Scratch::new("compare-two-threads");
    builds(
        &scratch,
        TWO_THREADS,
        &[("good", "-pthread -DODD=0"), ("bad", "-pthread -DODD=1")],
    );
    let ended = compare(&scratch, &["good", "bad"]);
    ends_with(&ended, 1);
    let text = ended.text();
    for part in [
        "add(n=3) returned 6",
        "add(n=3) returned 7",
        "adds 0: add ended differently",
        "takes 0: take ended differently",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let found = compare(&scratch, &["good", "bad", "--json"]).result();
    let threads = found["threads"].as_array().expect("threads");
    let parted: Vec<&Value> = threads
        .iter()
        .filter(|thread| !thread["parting"].is_null())
        .collect();
    let functions: Vec<&Value> = parted
        .iter()
        .map(|thread| &thread["parting"]["function"])
        .collect();
    assert_eq!(functions, ["add", "take"], "{found:#}");
    let results = |side: &str| {
        parted
            .iter()
            .map(|thread| thread["parting"]["values"][0][side].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (results("a"), results("b")),
        (
            vec!["6".into(), "-10".into()],
            vec!["7".into(), "-11".into()]
        )
    );
}

const PRINTER: &str = r#"#include <stdio.h>
#include <unistd.h>
int price(int n) { return n * RATE; }
int main(void) {
  setvbuf(stdout, 0, _IOLBF, 4096);
  puts("opening the shop");
  fprintf(stderr, "ready\n");
  printf("price %d\n", price(2) > 0);
}
"#;

#[test]
fn what_was_printed_before_the_difference_is_told() {
    let scratch = Scratch::new("compare-printed");
    builds(
        &scratch,
        PRINTER,
        &[("good", "-DRATE=3"), ("bad", "-DRATE=4")],
    );
    let ended = compare(&scratch, &["good", "bad"]);
    let text = ended.text();
    assert!(
        text.contains("last line on stdout: opening the shop on both sides"),
        "{text}"
    );
    assert!(
        text.contains("last line on stderr: ready on both sides"),
        "{text}"
    );
    ends_with(&ended, 1);
}

const PLACES: &str = r#"#include <stdio.h>
#include <stdint.h>
static int first[4] = {1, 2, 3, 4}, second[4] = {1, 2, 3, 4};
int sum(const int *of) { return of[0] + of[1]; }
int at(uintptr_t of) { return of != 0; }
int main(void) {
  int own = 5;
  int got = sum(WHICH) + sum(&first[WHERE]) + at((uintptr_t)&own) + at((uintptr_t)WHICH);
  printf("%d\n", got > 0);
}
"#;

/// The chosen place is read from a variable, so that all are one build.
#[test]
fn a_place_in_the_data_of_a_module_is_its_offset() {
    let scratch = Scratch::new("compare-offsets");
    let source = PLACES.replace("WHICH", "(*getenv(\"WHICH\") == '1' ? first : second)");
    let source = source
        .replace("WHERE", "*getenv(\"WHERE\") - '0'")
        .replacen("#include", "#include <stdlib.h>\n#include", 1);
    fs::write(scratch.join("app.c"), source).expect("the test's folder is writable");
    build(scratch.path(), "gcc -O0 -g -o app app.c");
    for (name, which, place) in [
        ("one", "1", "2"),
        ("same", "1", "2"),
        ("second", "2", "2"),
        ("moved", "1", "3"),
    ] {
        let app = Program::new(scratch.join("app"), scratch.path())
            .env("WHICH", which)
            .env("WHERE", place);
        record(
            &scratch,
            name,
            &["-f", "main", "-f", "sum", "-f", "at"],
            &app,
        );
    }
    ends_with(&compare(&scratch, &["one", "same"]), 0);
    for (name, differing) in [("second", 2), ("moved", 1)] {
        let ended = compare(&scratch, &["one", name, "--json"]);
        ends_with(&ended, 1);
        let found = ended.result();
        assert_eq!(
            found["threads"][0]["parting"]["function"], "main",
            "{found:#}"
        );
        let others = found["calls"].as_array().expect("calls").iter();
        let others = others.filter(|call| call["kind"] == "arguments").count();
        assert_eq!(others, differing, "{name}: {found:#}");
    }
}

const SIGNALLED: &str = r#"#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
int tell(pid_t child, int signal) { return kill(child, signal); }
int main(void) {
  pid_t child = fork();
  if (child == 0) for (;;) pause();
  int got = tell(child, SIGNAL);
  waitpid(child, 0, 0);
  printf("%d\n", got);
}
"#;

#[test]
fn a_process_as_an_argument_is_no_difference() {
    let scratch = Scratch::new("compare-process-argument");
    builds(
        &scratch,
        SIGNALLED,
        &[
            ("one", "-DSIGNAL=SIGTERM"),
            ("two", "-DSIGNAL=SIGTERM"),
            ("three", "-DSIGNAL=SIGKILL"),
        ],
    );
    ends_with(&compare(&scratch, &["one", "two"]), 0);
    let found = compare(&scratch, &["one", "three", "--json"]).result();
    let values = &found["threads"][0]["parting"]["values"];
    assert_eq!(values.as_array().map(Vec::len), Some(1), "{found:#}");
    assert_eq!(values[0]["name"], "signal");
}

#[test]
fn a_recording_that_lost_events_is_not_compared() {
    let scratch = Scratch::new("compare-lost");
    // Asked for by its input, it stops the recorder, its parent, while it makes more calls than the rings hold.
    let source = "#include <signal.h>\n#include <stdio.h>\n#include <unistd.h>\nint step(int n) { return n + 1; }\n\
        int main(void) { int stops = getchar() == 's', n = 0; if (stops) kill(getppid(), SIGSTOP);\n\
        for (int i = 0; i < 3000000; i++) n = step(n); if (stops) kill(getppid(), SIGCONT);\n\
        printf(\"%d\\n\", n); return 0; }\n";
    fs::write(scratch.join("app.c"), source).expect("the test's folder is writable");
    build(scratch.path(), "gcc -O0 -g -o app app.c");
    let app = Program::new(scratch.join("app"), scratch.path());
    record(&scratch, "whole", &[], &app);
    record(&scratch, "holes", &["--on-full", "drop"], &app.stdin("s"));
    let lost = e2e::Hindsight::command(
        &scratch,
        &[
            "sql",
            "holes",
            "select sum(lost) as lost from gaps",
            "--json",
        ],
    )
    .run();
    assert!(
        lost.result()[0]["lost"].as_u64() > Some(0),
        "{}",
        lost.text()
    );
    let ended = compare(&scratch, &["whole", "holes"]);
    assert!(ended.text().is_empty(), "{}", ended.text());
    assert!(ended.errors().contains("lost"), "{}", ended.errors());
    ends_with(&ended, 3);
}

#[test]
fn fingerprints_are_the_same_in_every_run() {
    let scratch = Scratch::new("compare-fingerprints");
    super::verdicts::with_a_bug(&scratch);
    super::verdicts::with_a_worse_one(&scratch);
    let app = Program::new(scratch.join("bad/invoices"), scratch.path());
    record(&scratch, "again", &[], &app);
    let prints = |b: &str| {
        ends_with(&compare(&scratch, &["good", b, "--sarif", "out.sarif"]), 1);
        let log = fs::read_to_string(scratch.join("out.sarif")).expect("it was written");
        let log: Value = serde_json::from_str(&log).expect("JSON");
        let results = log["runs"][0]["results"]
            .as_array()
            .expect("results")
            .clone();
        let mut all: Vec<String> = results
            .iter()
            .map(|result| result["partialFingerprints"].to_string())
            .collect();
        all.sort();
        assert!(all.len() > 2 && all[0].contains("hindsight"), "{all:?}");
        let mut single = all.clone();
        single.dedup();
        assert_eq!(single.len(), all.len(), "each difference has its own");
        all
    };
    assert_eq!(prints("bad"), prints("again"));
    assert_ne!(prints("bad"), prints("worse"));
}

#[test]
fn two_bugs_of_one_function_have_two_fingerprints() {
    let scratch = Scratch::new("compare-two-bugs");
    // No call below `main` differs: the output alone shows what it does.
    for (name, act) in [("five", "5"), ("six", "6"), ("seven", "7")] {
        made(&scratch, name, &format!("puts(\"total {act}\");"));
    }
    for (name, build) in [("good", "five"), ("one", "six"), ("other", "seven")] {
        let app = Program::new(scratch.join(build).join("app"), scratch.path());
        record(&scratch, name, &["-f", "main", "-f", "step"], &app);
    }
    let suspect = |name: &str| -> String {
        ends_with(
            &compare(&scratch, &["good", name, "--sarif", "out.sarif"]),
            1,
        );
        let log = fs::read_to_string(scratch.join("out.sarif")).expect("it was written");
        let log: Value = serde_json::from_str(&log).expect("JSON");
        let first = &log["runs"][0]["results"][0];
        assert_eq!(first["ruleId"], "suspect", "{first:#}");
        let print = first["partialFingerprints"]["hindsight/v1"].as_str();
        print.expect("a text").to_owned()
    };
    assert!(
        suspect("one").starts_with("suspect:main:"),
        "{}",
        suspect("one")
    );
    assert_eq!(suspect("one"), suspect("one"));
    assert_ne!(suspect("one"), suspect("other"));

    // The one difference is told as one.
    let accepting = [
        "good",
        "one",
        "--accept",
        "known.json",
        "--html",
        "out.html",
    ];
    ends_with(&compare(&scratch, &accepting), 0);
    let again = compare(&scratch, &accepting);
    let said = "the same, but for 1 difference that was accepted";
    assert!(again.text().contains(said), "{}", again.text());
    let page = fs::read_to_string(scratch.join("out.html")).expect("it was written");
    assert!(page.contains(" 1 difference was accepted."), "{page}");
}

/// A process ends it that it has not started itself.
const KILLED: &str = r#"#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int step(int n) { return n + 1; }
int main(void) {
  char command[64];
  step(1);
  snprintf(command, sizeof command, "sh -c 'kill -TERM %d; :'; :", getpid());
  return system(command);
}
"#;

#[test]
fn which_process_sent_a_signal_is_no_difference() {
    let scratch = Scratch::new("compare-sender");
    builds(&scratch, KILLED, &[("one", "")]);
    let app = Program::new(scratch.join("app"), scratch.path());
    record(&scratch, "two", &[], &app);
    ends_with(&compare(&scratch, &["one", "two"]), 0);
    let other = KILLED.replace("-TERM", "-KILL");
    builds(&scratch, &other, &[("other", "")]);
    let ended = compare(&scratch, &["one", "other"]);
    ends_with(&ended, 1);
    assert!(ended.text().contains("SIGKILL"), "{}", ended.text());
}

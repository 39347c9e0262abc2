//! What is another in each run and no difference: places on the stack, dates of the clock, names of temporary files. And what
//! looks like these and is one.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use e2e::{Hindsight, Program, Scratch, in_turn};
use serde_json::Value;

use crate::{build, compare, ends_with, record};

const LOCALS: &str = r#"#include <stdio.h>
#include <stdlib.h>
#define APART __attribute__((noipa))
static const int *volatile kept;
APART void keep(const int *p) { kept = p; }
APART void deep(int *p, int n) { if (n) deep(p, n - 1); keep(p); }
APART void aligned(int which, int *outer) {
  _Alignas(256) int box[64] = {0};
  int a = 1, b = 1;
  deep(box, 2);
  deep(outer, 2);
  keep(which ? &b : &a);
  printf("%d\n", box[0] + a + b);
}
int main(int argc, char **argv) {
  int outer = argc;
  aligned(atoi(argv[1]), &outer);
  return 0;
}
"#;

#[test]
fn another_local_variable_differs_and_the_same_one_does_not() {
    let scratch = Scratch::new("compare-locals");
    fs::write(scratch.join("app.c"), LOCALS).expect("the test's folder is writable");
    for level in in_turn(["-O0", "-O2"]) {
        build(scratch.path(), &format!("gcc {level} -g -o app app.c"));
        let run = |name: &str, which: &str| {
            let app = Program::new(scratch.join("app"), scratch.path()).args([which]);
            record(&scratch, &format!("{name}{level}"), &[], &app);
        };
        let named = |name: &str| format!("{name}{level}");
        // The kernel moves the stack by multiples of 16 bytes, so what aligned frames skip is another in most runs.
        for (round, name) in ["one", "two", "three", "four"].into_iter().enumerate() {
            run(name, "0");
            if round > 0 {
                let ended = compare(&scratch, &[&named("one"), &named(name), "--full"]);
                ends_with(&ended, 0);
            }
        }
        run("other", "1");
        let rules = "[compare.ignore]\nargs = [\"aligned:which\"]\n";
        fs::write(scratch.join("hindsight.toml"), rules).expect("the test's folder is writable");
        let ended = compare(&scratch, &[&named("one"), &named("other")]);
        fs::remove_file(scratch.join("hindsight.toml")).expect("it was written");
        ends_with(&ended, 1);
        let text = ended.text();
        assert!(
            text.contains("aligned called keep with other arguments"),
            "{text}"
        );
        assert!(text.contains("of the frame of aligned"), "{text}");
    }
}

const PASSED: &str = r#"#include <stdlib.h>
#define APART __attribute__((noipa))
static const int *volatile kept;
APART void keep(const int *p) { kept = p; }
APART void aligned(const int *p) {
  _Alignas(256) int box[64] = {0};
  keep(p);
  keep(box);
}
int main(int argc, char **argv) {
  int one = argc, two = argc;
  volatile char room[atoi(getenv("ROOM"))];
  room[0] = 1;
  aligned(argv[1][0] == '2' ? &two : &one);
  return 0;
}
"#;

#[test]
fn frames_that_move_are_no_difference_where_other_calls_are_between() {
    let scratch = Scratch::new("compare-passed");
    fs::write(scratch.join("app.c"), PASSED).expect("the test's folder is writable");
    build(scratch.path(), "gcc -O1 -g -o app app.c");
    let run = |name: &str, (which, room): (&str, &str), options: &[&str]| {
        let app = Program::new(scratch.join("app"), scratch.path())
            .args([which])
            .env("ROOM", room);
        record(&scratch, name, options, &app);
    };
    let some = ["-f", "main", "-f", "keep"];
    run("all", ("1", "40"), &[]);
    run("some", ("1", "40"), &some);
    // The kernel moves the stack by multiples of 16 bytes: what an aligned frame skips is another in most runs.
    for room in ["40", "40", "4000"] {
        run("again", ("1", room), &some);
        for first in ["all", "some"] {
            ends_with(&compare(&scratch, &[first, "again"]), 0);
        }
        fs::remove_dir_all(scratch.join("again.hindsight")).expect("a recording");
    }

    // The same difference has the same name in each run.
    run("other", ("2", "40"), &[]);
    ends_with(&compare(&scratch, &["all", "other"]), 1);
    let accepted = ["--accept", "known.json"];
    ends_with(
        &compare(&scratch, &[&["all", "other"], &accepted[..]].concat()),
        0,
    );
    for round in 0..2 {
        let name = format!("other{round}");
        run(&name, ("2", "40"), &[]);
        ends_with(&compare(&scratch, &["all", &name]), 1);
        let args = [&["all", name.as_str()], &accepted[..]].concat();
        ends_with(&compare(&scratch, &args), 0);
    }
}

const CLOCK: &str = r#"#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
int main(int argc, char **argv) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  char text[64], path[256];
  now.tv_sec += atoi(argv[1]);
  strftime(text, sizeof text, "%FT%T", gmtime(&now.tv_sec));
  printf("begun %s.%09ldZ\n", text, now.tv_nsec);
  printf("on %s", ctime(&now.tv_sec));
  strftime(text, sizeof text, "%T", localtime(&now.tv_sec));
  printf("[%s] begun\n", text);
  snprintf(path, sizeof path, "%s/notes.XXXXXX", getenv("TMPDIR"));
  close(mkstemp(path));
  unlink(path);
  printf("in %s, 3 lines\n", path);
  return 0;
}
"#;

#[test]
fn dates_of_the_run_and_temporary_names_are_no_difference_but_other_dates_are() {
    let scratch = Scratch::new("compare-clock");
    fs::write(scratch.join("app.c"), CLOCK).expect("the test's folder is writable");
    fs::create_dir(scratch.join("own")).expect("the test's folder is writable");
    build(scratch.path(), "gcc -O0 -g -o app app.c");
    let run = |name: &str, later: &str| {
        let app = Program::new(scratch.join("app"), scratch.path())
            .args([later])
            .env("TMPDIR", scratch.join("own"));
        record(&scratch, name, &["-f", "main"], &app);
    };
    run("one", "0");
    // Another second, so that both lines differ.
    sleep(Duration::from_millis(1_100));
    run("two", "0");
    let ended = compare(&scratch, &["one", "two"]);
    ends_with(&ended, 0);
    let told = ended.text();
    assert!(
        told.contains("dates and times of the clock were not compared: 3 lines of output"),
        "{told}"
    );

    // A day, and an hour: another zone, or a mistake.
    for (name, later) in [("day", "86400"), ("hour", "3600")] {
        run(name, later);
        let ended = compare(&scratch, &["one", name]);
        ends_with(&ended, 1);
        assert!(ended.text().contains("stdout differs"), "{}", ended.text());
    }
}

const NUMBERS_OF_THE_CLOCK: &str = r#"#include <stdio.h>
#include <stdlib.h>
#include <time.h>
int main(int argc, char **argv) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  long s = now.tv_sec + atoi(argv[1]);
  printf("at %ld\n", s);
  printf("[%ld.%06ld] begun\n", s, now.tv_nsec / 1000);
  printf("t=%ld ms\n", s * 1000 + now.tv_nsec / 1000000);
  printf("%ld ns\n", s * 1000000000 + now.tv_nsec);
  clock_gettime(CLOCK_MONOTONIC, &now);
  printf("up %ld ns\n", now.tv_sec * 1000000000 + now.tv_nsec);
  puts("5 lines");
  return 0;
}
"#;

#[test]
fn numbers_of_the_clock_in_output_are_no_difference_but_other_numbers_are() {
    let scratch = Scratch::new("compare-clock-numbers");
    fs::write(scratch.join("app.c"), NUMBERS_OF_THE_CLOCK).expect("the test's folder is writable");
    build(scratch.path(), "gcc -O0 -g -o app app.c");
    let run = |name: &str, later: &str| {
        let app = Program::new(scratch.join("app"), scratch.path()).args([later]);
        record(&scratch, name, &["-f", "main"], &app);
    };
    run("one", "0");
    // Another second, so that each of the lines differs.
    sleep(Duration::from_millis(1_100));
    run("two", "0");
    let ended = compare(&scratch, &["one", "two"]);
    ends_with(&ended, 0);
    let told = ended.text();
    let lines = "dates and times of the clock were not compared: 5 lines of output";
    assert!(told.contains(lines), "{told}");
    // What no clock of the run showed: a time in an hour, and one half a minute ago.
    for (name, later) in [("hour", "3600"), ("before", "-30")] {
        run(name, later);
        let ended = compare(&scratch, &["one", name]);
        ends_with(&ended, 1);
        assert!(ended.text().contains("stdout differs"), "{}", ended.text());
    }
}

#[test]
fn a_time_that_only_the_other_run_could_have_read_is_a_difference() {
    let scratch = Scratch::new("compare-other-time");
    let source = r#"#include <stdio.h>
#include <stdlib.h>
#include <time.h>
int main(int argc, char **argv) {
  printf("since %ld\n", argc > 1 ? atol(argv[1]) : (long)time(0));
  return 0;
}
"#;
    fs::write(scratch.join("app.c"), source).expect("the test's folder is writable");
    build(scratch.path(), "gcc -O0 -g -o app app.c");
    let run = |name: &str, args: &[&str]| {
        let app = Program::new(scratch.join("app"), scratch.path()).args(args.iter().copied());
        record(&scratch, name, &["-f", "main"], &app);
    };
    run("one", &[]);
    sleep(Duration::from_secs(4));
    run("two", &[]);
    ends_with(&compare(&scratch, &["one", "two"]), 0);
    // It shows a time of the first run, and not the one that the first run showed.
    let shown = printed(&scratch, "one");
    let seconds = shown.strip_prefix("since ").expect("a time");
    let next = seconds.parse::<u64>().expect("a number") + 1;
    run("stale", &[&next.to_string()]);
    ends_with(&compare(&scratch, &["one", "stale"]), 1);
}

/// Returns the first line that a recorded program printed.
fn printed(scratch: &Scratch, name: &str) -> String {
    let sql = "select text from output";
    let ended = Hindsight::command(scratch, &["sql", "-f", "csv", name, sql]).run();
    let text = ended.text();
    let line = text.lines().nth(1).expect("a line");
    line.trim_matches('"').to_owned()
}

#[test]
fn the_number_of_the_parent_in_output_is_no_difference() {
    let scratch = Scratch::new("compare-parent");
    let source = r#"#include <stdio.h>
#include <unistd.h>
int main(void) { printf("%d is of %d\n", getpid(), getppid()); return 0; }
"#;
    fs::write(scratch.join("app.c"), source).expect("the test's folder is writable");
    build(scratch.path(), "gcc -O0 -g -o app app.c");
    let app = Program::new(scratch.join("app"), scratch.path());
    record(&scratch, "one", &["-f", "main"], &app);
    record(&scratch, "two", &["-f", "main"], &app);
    let shown = |name: &str| printed(&scratch, name);
    assert_ne!(shown("one"), shown("two"));
    ends_with(&compare(&scratch, &["one", "two"]), 0);
    // The table of runs has both numbers, and the program has printed them.
    let sql = "select concat(pid, ' is of ', parent_pid) from runs";
    let ended = Hindsight::command(&scratch, &["sql", "-f", "csv", "one", sql]).run();
    assert_eq!(ended.text().lines().nth(1), Some(&*shown("one")));
}

#[test]
fn a_number_that_is_a_time_of_one_run_alone_is_the_same_in_the_other() {
    let scratch = Scratch::new("compare-moment");
    let source = r#"#include <stdlib.h>
static volatile long sum;
__attribute__((noinline)) void use(long n) { sum += n; }
int main(int argc, char **argv) { use(atol(argv[1])); return 0; }
"#;
    fs::write(scratch.join("app.c"), source).expect("the test's folder is writable");
    build(scratch.path(), "gcc -O0 -g -o app app.c");
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.expect("a time").as_secs();
    let run = |name: &str, number: u64| {
        let app = Program::new(scratch.join("app"), scratch.path()).args([&number.to_string()]);
        record(&scratch, name, &["-f", "main", "-f", "use"], &app);
    };
    run("then", now);
    run("other", now - 86_400);
    // Then it is no time of the second run.
    sleep(Duration::from_secs(4));
    run("later", now);
    ends_with(&compare(&scratch, &["then", "later"]), 0);
    ends_with(&compare(&scratch, &["then", "other"]), 1);
}

#[test]
fn the_next_calls_of_both_sides_are_told() {
    let scratch = Scratch::new("compare-after");
    let source = r#"#define APART __attribute__((noinline))
static volatile int sum;
APART int scale(int n) { return n * FACTOR; }
APART void use(int n) { sum += n; }
int main(void) { for (int i = 1; i < 6; i++) use(scale(i)); return 0; }
"#;
    for (name, factor) in [("good", "3"), ("bad", "4")] {
        fs::write(scratch.join("app.c"), source.replace("FACTOR", factor))
            .expect("the test's folder is writable");
        build(scratch.path(), "gcc -O0 -g -o app app.c");
        let app = Program::new(scratch.join("app"), scratch.path());
        record(&scratch, name, &[], &app);
    }
    let ended = compare(&scratch, &["good", "bad"]);
    ends_with(&ended, 1);
    let text = ended.text();
    let then: Vec<&str> = text
        .lines()
        .filter(|line| line.contains(" then "))
        .filter_map(|line| line.split(", seq").next())
        .map(str::trim)
        .collect();
    let expected = [
        "A then use(n=3) returned",
        "A then scale(n=2) returned 6",
        "A then use(n=6) returned",
        "B then use(n=4) returned",
        "B then scale(n=2) returned 8",
        "B then use(n=8) returned",
    ];
    assert_eq!(then, expected, "{text}");
    let found = compare(&scratch, &["good", "bad", "--json"]).result();
    let after = |side: &str| {
        found["threads"][0]["parting"][side]["after"]
            .as_array()
            .map(Vec::len)
    };
    assert_eq!((after("a"), after("b")), (Some(3), Some(3)), "{found:#}");
    let first: &Value = &found["threads"][0]["parting"]["b"]["after"][0]["function"];
    assert_eq!(first, "use");
}

#[test]
fn how_many_arguments_the_programs_got_is_no_difference_but_other_counts_are() {
    let scratch = Scratch::new("compare-argc");
    let source = r#"#define APART __attribute__((noinline))
static volatile int sum;
APART int parse(int argc, char **argv) { return argc > 1 && argv[1][0] == 'x'; }
APART void apply(int argc) { sum += argc; }
int main(int argc, char **argv) { apply(parse(argc, argv) + COUNT); return 0; }
"#;
    fs::write(scratch.join("app.c"), source).expect("the test's folder is writable");
    let run = |name: &str, count: u32, args: &[&str]| {
        build(
            scratch.path(),
            &format!("gcc -O0 -g -DCOUNT={count} -o app app.c"),
        );
        let app = Program::new(scratch.join("app"), scratch.path()).args(args.iter().copied());
        record(&scratch, name, &[], &app);
    };
    run("one", 7, &["a", "b"]);
    run("more", 7, &["a", "b", "c"]);
    run("other", 8, &["a", "b", "c"]);
    ends_with(&compare(&scratch, &["one", "more"]), 0);
    let ended = compare(&scratch, &["one", "other"]);
    ends_with(&ended, 1);
    assert!(ended.text().contains("apply"), "{}", ended.text());
}

//! Things whose number differs in each run, and that must still be matched: descriptors, processes and blocks of
//! memory.

use std::fs;

use e2e::{Ended, Program, Scratch, in_turn};
use serde_json::Value;

use crate::{build, compare, ends_with, record};

const DESCRIPTORS: &str = r#"#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
int open_it(const char *path) { return open(path, O_RDONLY); }
long read_from(int fd, int bytes) { char buffer[64]; return read(fd, buffer, bytes); }
int main(int count, char **words) {
  int first = WRAPPED ? open_it(words[0]) : open(words[0], O_RDONLY), second = dup(first);
  long sum = read_from(first, 8) + read_from(LAST, 8) + first - first;
  printf("read %ld\n", sum);
  close(second);
  close(first);
  return 0;
}
"#;

const BLOCKS: &str = r#"#include <stdio.h>
#include <stdlib.h>
struct box { int number; char rest[44]; };
struct box *make(int number) {
  struct box *box = malloc(sizeof *box);
  box->number = number;
  return box;
}
int use(struct box *box) { return 1; }
int use_part(int *part) { return 2; }
int main(void) {
  struct box *own = make(1), *other = make(2);
#ifdef EXTRA
  make(3);
#endif
  int sum = use(FIRST) + use_part(&own[0].number + PART);
  for (int i = 0; i < 50; i++) { struct box *box = make(i); sum += use(box); free(box); }
  other = realloc(other, 400);
  sum += use(other);
  printf("%d\n", sum);
  return 0;
}
"#;

const PROCESS: &str = r#"#define _GNU_SOURCE
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char **words) {
  printf("process %d of thread %d\n", getpid(), gettid());
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, 0, 0);
  printf("[%d] %d arguments\n", child, count + 1000);
  return 0;
}
"#;

/// The functions of the program, and those that open and close descriptors.
const OPENING: [&str; 8] = ["-f", "*", "-f", "open*", "-f", "dup*", "-f", "close*"];

/// Builds and records a program.
fn recorded(scratch: &Scratch, name: &str, source: &str, flags: &str, options: &[&str]) {
    let folder = scratch.join(name);
    fs::create_dir(&folder).expect("the test's folder is writable");
    fs::write(folder.join("app.c"), source).expect("the test's folder is writable");
    build(&folder, &format!("gcc -O0 -g {flags} -o app app.c"));
    again(scratch, name, name, options);
}

/// Records a program once more.
fn again(scratch: &Scratch, program: &str, name: &str, options: &[&str]) {
    let app = scratch.join(program).join("app");
    record(scratch, name, options, &Program::new(app, scratch.path()));
}

/// Records a program once more, with one more descriptor open from the start.
fn with_one_more_open(scratch: &Scratch, program: &str, name: &str, options: &[&str]) {
    let script = format!("exec 3</dev/null; exec \"$0\" record -o {name} \"$@\" -- {program}/app");
    let shell = Program::new("/bin/sh", scratch.path())
        .args(["-ec", &script])
        .args([e2e::Hindsight::path()])
        .args(options);
    let ended = shell.run();
    let folder = scratch.join(&format!("{name}.hindsight"));
    assert!(folder.is_dir(), "{}", ended.errors());
}

fn json(scratch: &Scratch, a: &str, b: &str) -> Value {
    let ended = compare(scratch, &[a, b, "--json"]);
    ends_with(&ended, 1);
    ended.result()
}

#[track_caller]
fn is_same(ended: &Ended) {
    let told = ended.text();
    assert!(told.contains("the same"), "{told}{}", ended.errors());
    ends_with(ended, 0);
}

#[test]
fn descriptors_are_the_calls_that_opened_them() {
    let scratch = Scratch::new("descriptors");
    let direct = "-DLAST=second -DWRAPPED=0";
    recorded(&scratch, "direct", DESCRIPTORS, direct, &[]);
    with_one_more_open(&scratch, "direct", "shifted", &[]);
    is_same(&compare(&scratch, &["direct", "shifted", "--full"]));

    let wrapped = "-DLAST=second -DWRAPPED=1";
    recorded(&scratch, "one", DESCRIPTORS, wrapped, &OPENING);
    let wrong = "-DLAST=first -DWRAPPED=1";
    recorded(&scratch, "other", DESCRIPTORS, wrong, &OPENING);
    with_one_more_open(&scratch, "one", "two", &OPENING);
    is_same(&compare(&scratch, &["one", "two", "--full"]));
    // The same class, but another descriptor: with the same numbers, and with different ones.
    for a in ["one", "two"] {
        let found = json(&scratch, a, "other");
        let parting = &found["threads"][0]["parting"];
        assert_eq!(parting["how"], "arguments", "{parting:#}");
        assert_eq!(parting["function"], "main");
        let values = &parting["values"][0];
        assert_eq!(values["name"], "fd");
        for (side, opened) in [("a", "opened at app.c:7"), ("b", "opened at app.c:4")] {
            let text = values[side].as_str().expect("a text");
            assert!(text.contains(opened), "{values}");
        }
        assert_eq!(found["differing"], 1);
    }
}

#[test]
fn blocks_are_the_calls_that_allocated_them() {
    let scratch = Scratch::new("blocks");
    recorded(
        &scratch,
        "one",
        BLOCKS,
        "-DFIRST=own -DPART=1",
        &["--memory"],
    );
    again(&scratch, "one", "two", &["--memory"]);
    let same = compare(&scratch, &["one", "two", "--full"]);
    is_same(&same);
    let hint = "pointers to blocks of the heap are one class: record with --memory";
    assert!(!same.text().contains(hint), "{}", same.text());
    again(&scratch, "one", "plain", &[]);
    again(&scratch, "one", "plainer", &[]);
    let plain = compare(&scratch, &["plain", "plainer"]);
    is_same(&plain);
    assert!(plain.text().contains(hint), "{}", plain.text());
    recorded(
        &scratch,
        "swapped",
        BLOCKS,
        "-DFIRST=other -DPART=1",
        &["--memory"],
    );
    let found = json(&scratch, "one", "swapped");
    let parting = &found["threads"][0]["parting"];
    assert_eq!(parting["how"], "arguments", "{parting:#}");
    assert_eq!(parting["function"], "main");
    let values = &parting["values"][0];
    assert_eq!(values["name"], "box");
    let text = |side: &str| values[side].as_str().expect("a text");
    assert!(
        text("a").contains("(allocated at app.c:5, seq "),
        "{values}"
    );
    assert_ne!(
        text("a").rsplit_once("seq "),
        text("b").rsplit_once("seq "),
        "{values}"
    );
    assert_eq!(found["differing"], 1, "{:#}", found["calls"]);
    assert_eq!(found["suspects"][0]["function"], "main");
}

#[test]
fn places_in_blocks_and_more_blocks() {
    let scratch = Scratch::new("places-in-blocks");
    let memory = ["--memory"];
    recorded(&scratch, "one", BLOCKS, "-DFIRST=own -DPART=1", &memory);
    recorded(
        &scratch,
        "swapped",
        BLOCKS,
        "-DFIRST=other -DPART=1",
        &memory,
    );
    // Another place in the same block.
    recorded(
        &scratch,
        "moved",
        BLOCKS,
        "-DFIRST=own -DPART=2",
        &["--memory"],
    );
    let found = json(&scratch, "one", "moved");
    let values = &found["threads"][0]["parting"]["values"][0];
    assert_eq!(values["name"], "part");
    for (side, place) in [("a", "byte 4 of"), ("b", "byte 8 of")] {
        let text = values[side].as_str().expect("a text");
        assert!(text.contains(place), "{values}");
    }
    assert_eq!(found["differing"], 1);

    // After one more block, all have different numbers: the calls that use them do not differ.
    recorded(
        &scratch,
        "more",
        BLOCKS,
        "-DFIRST=own -DPART=1 -DEXTRA",
        &["--memory"],
    );
    let found = json(&scratch, "one", "more");
    assert!(
        found["differing"].as_u64().is_some_and(|calls| calls <= 3),
        "{:#}",
        found["calls"]
    );

    // Only this difference is accepted.
    let accept = |b| compare(&scratch, &["one", b, "--accept", "known.json"]);
    ends_with(&accept("swapped"), 0);
    ends_with(&accept("swapped"), 0);
    ends_with(&accept("moved"), 1);
}

#[test]
fn numbers_of_processes_in_output_are_no_difference() {
    let scratch = Scratch::new("process-numbers");
    recorded(&scratch, "one", PROCESS, "", &[]);
    again(&scratch, "one", "two", &[]);
    is_same(&compare(&scratch, &["one", "two", "--full"]));
    let app = scratch.join("one").join("app");
    let program = Program::new(app, scratch.path()).args(["more"]);
    record(&scratch, "other", &[], &program);
    let ended = compare(&scratch, &["one", "other"]);
    assert!(ended.text().contains("1002 arguments"), "{}", ended.text());
    ends_with(&ended, 1);
}

const MOMENT: &str = r#"#include <stdio.h>
#include <time.h>
#include <unistd.h>
int main(void) {
  long seen = time(NULL) + clock() + sysconf(86) + getppid();
  printf("seen %d\n", seen != 0);
  return 0;
}
"#;

const TABLE: &str = r#"use std::collections::HashMap;
#[inline(never)]
fn look(map: &HashMap<String, u32>, word: &str) -> Option<u32> { map.get(word).copied() }
fn main() {
    let map: HashMap<String, u32> = (0..40).map(|n| (format!("w{n}"), n)).collect();
    let sum: u32 = (0..50).map(|n| look(&map, &format!("w{n}")).unwrap_or(7)).sum();
    println!("{sum}");
}
"#;

/// Padding holds what was on the stack before: here an address, which differs in each run.
const PADDED: &str = r#"#include <cstdio>
#include <optional>
#include <utility>
#define APART __attribute__((noinline))
struct Token { char kind; int value; };
APART Token next(int n) { Token t; t.kind = 'a'; t.value = n; return t; }
APART int use(Token t) { return t.kind + t.value; }
APART std::pair<char, int> both(int n) { return {'b', n}; }
APART std::optional<int> find(int n, const int *of) { if (n % 2) return std::nullopt; return *of + n; }
APART void *spoil(void *p) { void *volatile q = p, *volatile r = p; return q == r ? q : nullptr; }
int main() {
  int sum = 0, of = BASE;
  for (int n = 0; n < 10; n++) {
    spoil(&of);
    sum += use(next(n)) + both(n).second + find(n, &of).value_or(-1);
  }
  printf("%d\n", sum & 1);
}
"#;

#[test]
fn padding_and_what_an_optional_does_not_hold_are_no_difference() {
    let scratch = Scratch::new("padding");
    for compiler in in_turn(["g++", "clang++"]) {
        let make = |name: &str, base: &str| {
            let text = PADDED.replace("BASE", base);
            fs::write(scratch.join("app.cc"), text).expect("the test's folder is writable");
            let command = format!("{compiler} -std=c++17 -O0 -g -o app app.cc");
            build(scratch.path(), &command);
            let app = Program::new(scratch.join("app"), scratch.path());
            record(&scratch, name, &[], &app);
            record(&scratch, &format!("{name}-again"), &[], &app);
        };
        let (one, other) = (format!("{compiler}-5"), format!("{compiler}-7"));
        make(&one, "5");
        is_same(&compare(&scratch, &[&one, &format!("{one}-again")]));
        // What it holds still counts.
        make(&other, "7");
        let found = json(&scratch, &one, &other);
        let results = found["calls"].as_array().expect("calls").iter();
        let of_find = results.filter(|call| {
            let function = call["function"].as_str().unwrap_or_default();
            function.starts_with("find") && call["kind"] == "result"
        });
        assert_eq!(of_find.count(), 5, "{found:#}");
    }
}

/// The time, the free memory and the parent differ in each run, and so do places in a table with random keys.
#[test]
fn what_chance_decides_is_no_difference() {
    let scratch = Scratch::new("chance");
    recorded(&scratch, "one", MOMENT, "", &[]);
    std::thread::sleep(std::time::Duration::from_millis(1100));
    again(&scratch, "one", "two", &[]);
    is_same(&compare(&scratch, &["one", "two"]));
    fs::write(scratch.join("table.rs"), TABLE).expect("the test's folder is writable");
    build(scratch.path(), "rustc -g -o table table.rs");
    let table = Program::new(scratch.join("table"), scratch.path());
    for name in ["three", "four"] {
        record(&scratch, name, &[], &table);
    }
    is_same(&compare(&scratch, &["three", "four"]));
    // Several recordings know the comparison too.
    let sql = "SELECT count(*) AS n FROM diff_calls('three', 'four')";
    let asked = e2e::Hindsight::command(&scratch, &["sql", "three", "four", sql, "--json"]).run();
    assert_eq!(asked.result()[0]["n"], 0);
}

const GROUPS: &str = r#"#include <stdio.h>
#include <unistd.h>
int main(void) {
  printf("%d\n", getpgrp() > 0 && getpgid(0) == getpgrp() && getsid(0) > 0);
  return 0;
}
"#;

/// Each run has a group and a session of its own, whose numbers are those of processes that the recording does not know.
#[test]
fn groups_and_sessions_of_processes_are_no_difference() {
    let scratch = Scratch::new("compare-groups");
    fs::write(scratch.join("app.c"), GROUPS).expect("the test's folder is writable");
    build(scratch.path(), "gcc -O1 -o app app.c");
    for name in ["one", "two"] {
        let app = Program::new(scratch.join("app"), scratch.path());
        let recording = e2e::Hindsight::record_command(&scratch, name, &["-f", "*"], &app);
        // The leader is neither the program nor its parent.
        let leader = ["--wait", "/bin/sh", "-c", "\"$0\" \"$@\"; exit 0"];
        let ended = recording.wrapped("/usr/bin/setsid".as_ref(), leader).run();
        assert_eq!(ended.text(), "1\n", "{}", ended.errors());
    }
    let sql = "SELECT DISTINCT rax FROM calls WHERE function = 'getpgrp@plt'";
    let asked = |name| e2e::Hindsight::command(&scratch, &["sql", name, sql, "--json"]).run();
    assert_ne!(asked("one").result(), asked("two").result());
    is_same(&compare(&scratch, &["one", "two"]));
}

const WORKERS: &str = r#"#include <pthread.h>
#include <stdio.h>
static int alpha(int n) { return n + 1; }
static int beta(int n) { return n + 2; }
static int square(int n) { return n * n; }
static void *first(void *of) { return (void *)(long)(alpha(1) + alpha(2)); }
static void *second(void *of) { return (void *)(long)(beta(1) + beta(2)); }
static void *third(void *of) { int sum = 0; for (long i = 0; i < 20; i++) sum += square(i + (long)of); return 0; }
int main(void) {
  pthread_t all[5];
  pthread_create(&all[0], 0, first, 0);
  pthread_create(&all[1], 0, second, 0);
  for (long i = 0; i < 3; i++) pthread_create(&all[2 + i], 0, third, (void *)i);
  for (int i = 0; i < 5; i++) pthread_join(all[i], 0);
  puts("done");
}
"#;

/// Which threads there are does not depend on which of their calls are recorded.
#[test]
fn threads_are_found_again_whatever_is_recorded() {
    let scratch = Scratch::new("compare-workers");
    fs::write(scratch.join("app.c"), WORKERS).expect("the test's folder is writable");
    build(scratch.path(), "gcc -O0 -g -pthread -o app app.c");
    let app = Program::new(scratch.join("app"), scratch.path());
    let recorded: [(&str, &[&str]); 6] = [
        ("all", &[]),
        ("squares", &["-f", "square"]),
        ("squares2", &["-f", "square"]),
        ("alphas", &["-f", "alpha"]),
        ("thirds", &["-f", "third"]),
        ("some", &["-x", "beta", "-x", "second"]),
    ];
    for (name, options) in recorded {
        record(&scratch, name, options, &app);
    }
    for (one, other) in [
        ("squares", "squares2"),
        ("all", "squares"),
        ("alphas", "all"),
        ("all", "thirds"),
        ("all", "some"),
        ("some", "squares"),
    ] {
        let ended = compare(&scratch, &[one, other]);
        ends_with(&ended, 0);
        assert!(!ended.text().contains("has the thread"), "{}", ended.text());
    }
}

/// As allocators do, it gets and returns pages as often as its surroundings ask for.
const PAGES: &str = r#"#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
int step(int n) { return n * 3; }
int main(void) {
  char *all[9], pages = *getenv("PAGES") - '0';
  for (int i = 0; i < pages; i++) all[i] = mmap(0, 4096 << i, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  int sum = step(1);
  for (int i = 0; i < pages; i++) munmap(all[i], 4096 << i);
  printf("%d\n", step(sum + LAST) > 0);
}
"#;

#[test]
fn when_a_program_gets_pages_is_no_difference() {
    let scratch = Scratch::new("compare-pages");
    fs::write(scratch.join("app.c"), PAGES).expect("the test's folder is writable");
    for (name, last, pages) in [("one", 5, "1"), ("two", 5, "8"), ("three", 6, "1")] {
        let command = format!("gcc -O0 -g -DLAST={last} -o app app.c");
        build(scratch.path(), &command);
        let app = Program::new(scratch.join("app"), scratch.path()).env("PAGES", pages);
        record(
            &scratch,
            name,
            &["-f", "*", "-f", "mmap", "-f", "munmap"],
            &app,
        );
    }
    is_same(&compare(&scratch, &["one", "two"]));
    let found = json(&scratch, "two", "three");
    let values = &found["threads"][0]["parting"]["values"][0];
    assert_eq!(
        (&values["a"], &values["b"]),
        (&"8".into(), &"9".into()),
        "{found:#}"
    );
}

const CLOCKS: &str = r#"#include <stdio.h>
#include <time.h>
#define APART __attribute__((noinline))
APART long ns_of(clockid_t clock) { struct timespec now; clock_gettime(clock, &now); return now.tv_sec * 1000000000L + now.tv_nsec; }
APART double seconds(void) { return ns_of(CLOCK_REALTIME) / 1e9; }
APART long us(long ns) { return ns / 1000; }
APART int day(long seconds) { return seconds / 86400 > 0; }
APART long deadline(long now, long wait) { return now + wait; }
int main(void) {
  long now = ns_of(CLOCK_MONOTONIC), wall = ns_of(CLOCK_REALTIME);
  double all = seconds();
  int sum = (deadline(now, 5000) > now) + (us(wall) > 0) + day(wall / 1000000000) + (all > 0);
  printf("%d\n", sum + COUNT);
}
"#;

/// The times that a program's own functions read and pass on are others in each run.
#[test]
fn times_of_the_clock_are_no_difference() {
    let scratch = Scratch::new("compare-clocks");
    fs::write(scratch.join("app.c"), CLOCKS).expect("the test's folder is writable");
    for (name, count) in [("one", 1), ("two", 1), ("three", 2)] {
        build(
            scratch.path(),
            &format!("gcc -O1 -g -DCOUNT={count} -o app app.c"),
        );
        record(
            &scratch,
            name,
            &[],
            &Program::new(scratch.join("app"), scratch.path()),
        );
        // The second run begins in another second.
        std::thread::sleep(std::time::Duration::from_millis(2_100));
    }
    ends_with(&compare(&scratch, &["one", "two"]), 0);
    ends_with(&compare(&scratch, &["two", "three"]), 1);
}

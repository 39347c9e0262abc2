//! Two runs that do the same are the same.

use std::fs;

use e2e::{
    Live, Program, Scratch, Status, fixture_artifact, fixture_source, in_turn, share, wait_until,
};

use crate::{build, compare, ends_with, record};

/// At fixed addresses these tests would show nothing.
fn assert_random_addresses() {
    let mode = fs::read_to_string("/proc/sys/kernel/randomize_va_space").expect("Linux has it");
    assert_ne!(
        mode.trim(),
        "0",
        "the kernel maps programs at fixed addresses: set kernel.randomize_va_space to 2"
    );
}

/// Records a program twice and compares.
fn is_same_twice(name: &str, options: &[&str], program: impl Fn(&Scratch) -> Program) {
    assert_random_addresses();
    let scratch = Scratch::new(&format!("same-{name}"));
    let program = program(&scratch);
    record(&scratch, "one", options, &program);
    record(&scratch, "two", options, &program);
    let ended = compare(&scratch, &["one", "two", "--full"]);
    assert!(
        ended.text().contains("the same"),
        "{name}: {}",
        ended.text()
    );
    ends_with(&ended, 0);
    let found = compare(&scratch, &["one", "two", "--json"]).result();
    let is_random = !options.contains(&"--no-aslr");
    for side in ["a", "b"] {
        assert_eq!(found[side]["random_addresses"], is_random, "{name}");
    }
}

fn fixture_is_same(fixture: &str, artifact: &str, args: &[&str]) {
    is_same_twice(artifact, &[], |scratch| {
        Program::new(fixture_artifact(fixture, artifact), scratch.path()).args(args)
    });
}

#[test]
fn sqlite_twice_is_the_same() {
    fixture_is_same("sqlite", "sqlite", &["300"]);
}

#[test]
fn lua_twice_is_the_same() {
    fixture_is_same("lua", "lua", &[]);
    // A distribution's Lua hashes with a seed made of addresses and the time.
    let script = "local t, sum = {}, 0\nfor i = 1, 500 do t['k' .. i] = i end\nfor i = 1, 500 do sum = sum + t['k' .. i] end\n\
         table.sort(t)\nprint(sum, ('%d'):rep(20, ','):gsub('d', 'x'), select('#', table.unpack({1, 2, 3})))\n";
    is_same_twice("lua5.4", &[], |scratch| {
        Program::new("/usr/bin/lua5.4", scratch.path()).args(["-e", script])
    });
}

#[test]
fn small_programs_twice_are_the_same() {
    for (fixture, artifact) in in_turn([
        ("typed_args", "typed_args_O0"),
        ("tail_calls", "tail_calls"),
        ("longjmp", "longjmp_O0"),
        ("failing", "failing"),
        ("statements", "orders_O0"),
        ("statements", "shapes_O0"),
    ]) {
        fixture_is_same(fixture, artifact, &[]);
    }
}

#[test]
fn programs_of_the_system_twice_are_the_same() {
    let text: String = (0..20_000u32)
        .map(|i| format!("{:08x} quick brown fox\n", i.wrapping_mul(2_654_435_761)))
        .collect();
    is_same_twice("gzip", &[], |scratch| {
        Program::new("/usr/bin/gzip", scratch.path())
            .args(["-6", "-n"])
            .stdin(text.clone())
    });
    is_same_twice("sort", &[], |scratch| {
        Program::new("/usr/bin/sort", scratch.path())
            // Without a size, it depends on the free memory.
            .args(["--parallel=1", "-S", "8M"])
            .stdin(text.clone())
    });
}

#[test]
fn python_with_a_fixed_hash_seed_twice_is_the_same() {
    let script =
        "d = {str(i): i for i in range(2000)}\nprint(sum(len(k) for k in d), sorted(d)[:3])\n";
    for options in [&[][..], &["--no-aslr"], &["--memory"]] {
        is_same_twice("python", options, |scratch| {
            // Python lists the script's folder, so the recordings must not be in it.
            fs::create_dir(scratch.join("script")).expect("the test's folder is writable");
            fs::write(scratch.join("script/script.py"), script)
                .expect("the test's folder is writable");
            Program::new("/usr/bin/python3", scratch.path())
                .args(["-S", "script/script.py"])
                .env("PYTHONHASHSEED", "0")
        });
    }
}

#[test]
fn moved_lines_are_no_difference() {
    for (fixture, file, compiler) in in_turn([
        ("hunts", "invoices.c", "gcc -O0 -g"),
        ("statements", "shapes.cc", "g++ -std=c++20 -O0 -g"),
        ("statements", "shapes.cc", "g++ -std=c++20 -O2 -g"),
        ("statements", "orders.rs", "rustc --edition 2024 -g"),
    ]) {
        let scratch = Scratch::new("moved");
        let source = fs::read_to_string(fixture_source(fixture).join(file)).expect("a source");
        let inside = source.replace(";\n", ";\n\n  // Another line.\n");
        for (name, text) in [
            ("old", source.clone()),
            ("new", format!("// One more line.\n\n\n{source}")),
            // Also between the statements of a function.
            ("inside", inside),
        ] {
            let folder = scratch.join(name);
            fs::create_dir(&folder).expect("the test's folder is writable");
            fs::write(folder.join(file), text).expect("the test's folder is writable");
            build(&folder, &format!("{compiler} -o program {file}"));
            let program = Program::new(folder.join("program"), &folder);
            record(&scratch, name, &[], &program);
        }
        for other in ["new", "inside"] {
            let ended = compare(&scratch, &["old", other]);
            let text = ended.text();
            assert!(text.contains("different builds"), "{compiler}: {text}");
            assert!(text.contains("the same"), "{compiler}: {text}");
            ends_with(&ended, 0);
        }
    }
}

const THREADS: &str = r#"#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static long results[4];
long step(long worker, long i) { return worker * 1000 + i; }
long part(long *sum, long worker, long i) { return *sum += step(worker, i); }
void *worker(void *argument) {
  long worker = (long)argument, *sum = calloc(1, sizeof *sum);
  for (long i = 0; i < 300 + 50 * worker; i++) part(sum, worker, i);
  results[worker] = *sum;
  free(sum);
  return argument;
}
int main(void) {
  pthread_t threads[4];
  for (long i = 0; i < 4; i++) pthread_create(&threads[i], NULL, worker, (void *)i);
  for (long i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  for (long i = 0; i < 4; i++) printf("%ld\n", results[i]);
  return 0;
}
"#;

#[test]
fn threads_belong_together_in_the_order_of_their_creation() {
    let scratch = Scratch::new("threads");
    fs::write(scratch.join("threads.c"), THREADS).expect("the test's folder is writable");
    build(scratch.path(), "gcc -O0 -g -pthread -o threads threads.c");
    let program = Program::new(scratch.join("threads"), scratch.path());
    let runs: Vec<String> = (0..share(9)).map(|run| format!("run{run}")).collect();
    for run in &runs {
        record(&scratch, run, &[], &program);
    }
    for run in &runs[1..] {
        let ended = compare(&scratch, &["run0", run, "--full"]);
        let told = ended.text();
        assert!(told.contains("compared in 5 threads"), "{run}: {told}");
        assert!(told.contains("the same"), "{run}: {told}");
        ends_with(&ended, 0);
    }
}

const POLLS: &str = r#"#include <pthread.h>
#include <stdlib.h>
static int polls;
int is_ready(int n) { return n >= polls; }
void *waits(void *of) { for (int n = 0; !is_ready(n); n++) {} return of; }
int main(int count, char **words) {
  pthread_t thread;
  polls = count > 1 ? atoi(words[1]) : 0;
  pthread_create(&thread, NULL, waits, NULL);
  pthread_join(thread, NULL);
  return 0;
}
"#;

/// How often a thread looks for what another one does is chance: the report says so where it may be the cause.
#[test]
fn how_often_threads_wait_is_named_as_a_cause() {
    let scratch = Scratch::new("polls");
    fs::write(scratch.join("polls.c"), POLLS).expect("the test's folder is writable");
    build(scratch.path(), "gcc -O0 -g -pthread -o polls polls.c");
    for (name, polls) in [("one", "3"), ("two", "5")] {
        let program = Program::new(scratch.join("polls"), scratch.path()).args([polls]);
        record(&scratch, name, &[], &program);
    }
    let ended = compare(&scratch, &["one", "two"]);
    let hint = "if threads wait for each other, how often they do is another number in each run";
    assert!(ended.text().contains(hint), "{}", ended.text());
    ends_with(&ended, 1);
}

const THROWS: &str = r#"#include <cstdio>
#include <pthread.h>
template <long N> struct Error { long value; };
template <long N> long attempt(long i) {
  try { throw Error<N>{i}; } catch (const Error<N> &error) { return error.value; }
}
static long results[4];
template <long N> void *worker(void *of) {
  for (long i = 0; i < 3; i++)
    results[N] += attempt<N>(i);
  return of;
}
int main() {
  void *(*workers[4])(void *) = {worker<0>, worker<1>, worker<2>, worker<3>};
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], nullptr, workers[i], nullptr);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], nullptr);
  for (long result : results) std::printf("%ld\n", result);
}
"#;

/// A session that stops at each throw records it.
#[test]
fn events_of_threads_belong_together_as_their_calls_do() {
    let live = Live::new("same-events");
    let program = live.scratch.join("throws");
    fs::write(live.scratch.join("throws.cc"), THROWS).expect("the test's folder is writable");
    build(
        live.scratch.path(),
        "g++ -O0 -g -pthread -o throws throws.cc",
    );
    let run = || {
        let report = live.start(&["--stop-on-entry"], &program, &[]);
        live.ask(&["catch", "throw"]);
        live.ask(&["logpoint", "throws.cc:10", "round {i}"]);
        let ended = || live.ask(&["continue"])["status"] == "ended";
        assert_eq!((0..20).take_while(|_| !ended()).count(), 12);
        report["recording"].as_str().expect("a path").to_owned()
    };
    let runs: Vec<String> = (0..share(9)).map(|_| run()).collect();
    for run in &runs[1..] {
        let ended = wait_until("both recordings are complete", || {
            let ended = compare(&live.scratch, &[&runs[0], run, "--full"]);
            (ended.status != Status::Code(3)).then_some(ended)
        });
        let told = ended.text();
        assert!(told.contains("compared in 5 threads"), "{run}: {told}");
        ends_with(&ended, 0);
    }
}

const FIXED: &str = r#"#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#define APART __attribute__((noipa))
APART int sum(const std::vector<int> &v) { int s = 0; for (int x : v) s += x; return s; }
APART uintptr_t number_of(const int *p) { volatile uintptr_t got = (uintptr_t)p; return got; }
APART int at(uintptr_t place) { volatile int got = *(const int *)place; return got; }
APART long scaled(long n) { return n / 1000; }
int main() {
  int got = scaled(std::atol(std::getenv("NUMBER"))) != 0;
  std::vector<int> v;
  for (int i = 0; i < 10; i++) v.push_back(i);
  got += sum(v);
  got += at((uintptr_t)v.data());
  got += number_of(v.data()) != 0;
  printf("%d\n", got);
}
"#;

/// Their heaps lie at low addresses, and elsewhere in each run.
#[test]
fn programs_with_fixed_addresses_twice_are_the_same() {
    assert_random_addresses();
    let scratch = Scratch::new("same-fixed");
    fs::write(scratch.join("app.cc"), FIXED).expect("the test's folder is writable");
    build(scratch.path(), "g++ -O1 -g -no-pie -o app app.cc");
    let ways: [(&str, &[&str]); 2] = [("plain", &[]), ("blocks", &["--memory"])];
    for (name, options) in ways {
        let run = |number: &str, of: &str| {
            let app = Program::new(scratch.join("app"), scratch.path()).env("NUMBER", number);
            record(&scratch, &format!("{name}-{of}"), options, &app);
            format!("{name}-{of}")
        };
        let runs = [run("5000000", "one"), run("5000000", "two")];
        let ended = compare(&scratch, &[&runs[0], &runs[1], "--full"]);
        assert!(ended.text().contains("the same"), "{}", ended.text());
        ends_with(&ended, 0);
        // The second one lies a hundred pages behind, as if it were an address of a heap that has moved.
        for (number, of) in [("6000000", "other"), ("5409600", "pages")] {
            let other = run(number, of);
            let found = compare(&scratch, &[&runs[0], &other, "--json"]).result();
            let calls = found["calls"].as_array().expect("calls");
            let differing = calls.iter().map(|call| call["function"].as_str());
            let differing: Vec<_> = differing.flatten().collect();
            assert_eq!(differing, ["scaled"], "{number}: {found:#}");
        }
    }
}

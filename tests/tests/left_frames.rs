//! Goal: calls that an exception, a panic or longjmp left end where the program goes on, and not at some later call, so
//! that nothing after that is said to be in them. Calls that were open when the program died are not said to be left.
//! Method: programs print lines after they caught something. No call that was left may be open then.

use e2e::{Hindsight, Program, Recording, Scratch, Status, compiled};

const CXX: &str = r#"
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <unistd.h>
#define OUTSIDE(text) (void) !write(2, "outside " text "\n", sizeof text + 8)
struct Guard { int n; ~Guard(); };
__attribute__((noinline)) Guard::~Guard() { (void) !write(2, "guard\n", 6); }
__attribute__((noinline)) int leaves(int n) {
  Guard guard{n};
  if (n == 0)
    throw std::runtime_error("thrown");
  return leaves(n - 1) + 1;
}
// With arguments on the stack, so that it lies elsewhere than the calls before it.
__attribute__((noinline)) int tells(int a, int b, int c, int d, int e, int f, int g, int h, int i) {
  OUTSIDE("tells");
  return a + b + c + d + e + f + g + h + i;
}
int main() {
  try {
    leaves(3);
  } catch (const std::exception &error) {
    OUTSIDE("catch");
    tells(1, 2, 3, 4, 5, 6, 7, 8, 9);
  }
  OUTSIDE("end");
  std::abort();
}
"#;

const C: &str = r#"
#include <setjmp.h>
#include <stdlib.h>
#include <unistd.h>
#define OUTSIDE(text) (void) !write(2, "outside " text "\n", sizeof text + 8)
static jmp_buf back;
__attribute__((noinline)) int leaves(int n) {
  if (n == 0)
    longjmp(back, 1);
  return leaves(n - 1) + 1;
}
__attribute__((noinline)) int tells(int a, int b, int c, int d, int e, int f, int g, int h, int i) {
  OUTSIDE("tells");
  return a + b + c + d + e + f + g + h + i;
}
int main(void) {
  if (setjmp(back) == 0)
    leaves(3);
  OUTSIDE("back");
  tells(1, 2, 3, 4, 5, 6, 7, 8, 9);
  OUTSIDE("end");
  abort();
}
"#;

const RUST: &str = r#"
use std::io::Write;
fn outside(text: &str) {
    std::io::stderr().write_all(format!("outside {text}\n").as_bytes()).unwrap();
}
#[inline(never)]
fn leaves(n: u32) -> u32 {
    if n == 0 {
        panic!("thrown");
    }
    leaves(n - 1) + 1
}
#[inline(never)]
fn tells(a: [u64; 9]) -> u64 {
    outside("tells");
    a.iter().sum()
}
fn main() {
    let caught = std::panic::catch_unwind(|| leaves(3));
    outside("caught");
    assert!(caught.is_err());
    tells([1; 9]);
    outside("end");
    std::process::abort();
}
"#;

fn check(name: &str, file: &str, source: &str, flags: &[&str], options: &[&str]) {
    let scratch = Scratch::new(&format!("left-frames-{name}"));
    let program = compiled(&scratch, file, source, flags);
    let program = Program::new(program, scratch.path());
    let ended = Hindsight::record_command(&scratch, "app", options, &program).run();
    assert_eq!(ended.status, Status::Code(134), "{}", ended.errors());
    let recording = Recording::new(scratch.join("app.hindsight"));
    let outside = "SELECT seq FROM events WHERE kind = 'stderr' AND text LIKE 'outside%'";
    let said = recording.rows(outside);
    assert_eq!(said.len(), 3, "{name}: {said:?}");
    let inside = format!(
        "SELECT count(*) FROM ({outside}) AS told JOIN calls ON calls.start_seq < told.seq \
         AND calls.end_seq > told.seq WHERE function LIKE '%leaves%'"
    );
    assert_eq!(recording.number(&inside), 0, "{name}");
    let callers = "SELECT p.function FROM calls AS c JOIN calls AS p ON c.parent = p.start_seq \
                   WHERE c.function LIKE '%tells%'";
    let callers = recording.rows(callers);
    let caller = callers[0]["function"].as_str().expect("a name");
    assert!(caller.ends_with("main"), "{name}: {caller}");
    let count = |what: &str| recording.number(&format!("SELECT count(*) FROM calls WHERE {what}"));
    let left = "function LIKE '%leaves%' AND unwound AND NOT open_at_end AND rax IS NULL";
    let all = count("function LIKE '%leaves%'");
    assert!(all >= 1, "{name}");
    assert_eq!(count(left), all, "{name}");
    let at_end = "function LIKE '%main' AND open_at_end AND NOT unwound AND rax IS NULL";
    assert!(count(at_end) >= 1, "{name}");
    assert_eq!(count("unwound AND open_at_end"), 0, "{name}");
    let overview = recording.command("overview", &[]).text();
    let of_leaves = |line: &str| line.contains("outside") && line.contains("leaves");
    assert!(!overview.lines().any(of_leaves), "{name}: {overview}");
    assert!(!overview.contains("abort(n="), "{name}: {overview}");
}

#[test]
fn exceptions_of_cpp() {
    check("cxx-O0", "app.cc", CXX, &["-g", "-O0"], &[]);
    check("cxx-O2", "app.cc", CXX, &["-g", "-O2"], &[]);
}

#[test]
fn exceptions_of_a_static_program() {
    check("cxx-static", "app.cc", CXX, &["-g", "-O1", "-static"], &[]);
}

#[test]
fn exceptions_with_every_instruction() {
    check("cxx-full", "app.cc", CXX, &["-g", "-O1"], &["--full"]);
}

#[test]
fn jumps_of_c() {
    check("c-O0", "app.c", C, &["-g", "-O0"], &[]);
    check("c-O2", "app.c", C, &["-g", "-O2"], &[]);
    check(
        "c-fortified",
        "app.c",
        C,
        &["-g", "-O1", "-D_FORTIFY_SOURCE=2"],
        &[],
    );
    check("c-static", "app.c", C, &["-g", "-O1", "-static"], &[]);
    check("c-full", "app.c", C, &["-g", "-O1"], &["--full"]);
}

/// Static programs, and those with musl's dynamic linker.
#[test]
fn jumps_of_c_with_musl() {
    let musl = "-specs=/usr/lib/x86_64-linux-musl/musl-gcc.specs";
    check("musl", "app.c", C, &["-g", "-O1", musl], &[]);
    check(
        "musl-static",
        "app.c",
        C,
        &["-g", "-O2", musl, "-static"],
        &[],
    );
}

#[test]
fn panics_of_rust() {
    check("rust", "app.rs", RUST, &["-g", "-Copt-level=1"], &[]);
}

const HANDLER: &str = r#"
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
static sigjmp_buf back;
static char stack[65536];
__attribute__((noinline)) void handler(int signal) { siglongjmp(back, signal); }
__attribute__((noinline)) int after(int n) {
  static int all;
  return n + (++all > 0);
}
__attribute__((noinline)) int attempt(int n) {
  if (sigsetjmp(back, 1) == 0) {
    raise(SIGUSR1);
    return -1;
  }
  return n;
}
int main(void) {
  stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
  struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
  sigaltstack(&own, NULL);
  sigaction(SIGUSR1, &action, NULL);
  int sum = 0;
  for (int n = 0; n < 3; n++) sum += after(attempt(n));
  printf("%d\n", sum);
  return 0;
}
"#;

/// A handler on a stack of its own ends where siglongjmp leaves it.
#[test]
fn handlers_on_a_signal_stack() {
    for (name, options) in [("handler", &[][..]), ("handler-full", &["--full"])] {
        let scratch = Scratch::new(name);
        let path = compiled(&scratch, "app.c", HANDLER, &["-g", "-O1"]);
        let program = Program::new(path, scratch.path());
        let (ended, recording) = Hindsight::record(&scratch, options, &program);
        assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
        let within = "SELECT count(*) FROM calls c JOIN calls p ON c.parent = p.start_seq \
                      WHERE c.function = 'handler' AND p.function = 'attempt' AND c.unwound \
                      AND c.end_seq < p.end_seq";
        assert_eq!(recording.number(within), 3, "{name}");
        let callers = "SELECT count(*) FROM calls c JOIN calls p ON c.parent = p.start_seq \
                       WHERE c.function = 'after' AND p.function = 'main'";
        assert_eq!(recording.number(callers), 3, "{name}");
    }
}

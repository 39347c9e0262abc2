//! Goal: calls that are lost because a child process writes into its parent's ring are not lost silently. Method: clone(2) with
//! the parent's memory and without thread-local storage of its own, while both call functions.

use e2e::{Hindsight, Program, Scratch, Status, compiled};

const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
enum { TIMES = 20000, STACK = 64 * 1024 };
static volatile long of_child, of_parent;
__attribute__((noinline)) void in_child(int n) { of_child += n; }
__attribute__((noinline)) void in_parent(int n) { of_parent += n; }
static int child(void *flags) {
  for (int n = 0; n < TIMES; n++) in_child(n);
  return 7;
}
int main(int argc, char **argv) {
  int flags = CLONE_VM | SIGCHLD | (argc > 1 ? CLONE_VFORK : 0), status = 0;
  char *stack = malloc(STACK);
  int pid = clone(child, stack + STACK, flags, NULL);
  for (int n = 0; n < TIMES; n++) in_parent(n);
  waitpid(pid, &status, 0);
  printf("%ld %ld %d\n", of_child, of_parent, WEXITSTATUS(status));
  return 0;
}
"#;

/// The reasons of the gaps.
fn gaps(name: &str, args: &[&str]) -> Vec<String> {
    let scratch = Scratch::new(name);
    let path = compiled(&scratch, "app.c", PROGRAM, &["-g", "-O1"]);
    let program = Program::new(path, scratch.path()).args(args);
    let (ended, recording) = Hindsight::record(&scratch, &[], &program);
    assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
    assert_eq!(ended.text(), "199990000 199990000 7\n");
    let rows = recording.rows("SELECT reason, lost FROM gaps ORDER BY seq");
    let reason = |row: &e2e::Row| {
        assert!(row["lost"].is_null(), "{row:?}");
        row["reason"].as_str().expect("a text").to_owned()
    };
    rows.iter().map(reason).collect()
}

#[test]
fn a_child_that_runs_beside_its_parent_is_a_gap() {
    let gaps = gaps("shared-ring", &[]);
    assert_eq!(gaps[0], "ring shared with a child");
    // What both wrote at once cannot be read.
    assert!(gaps[1..].iter().all(|reason| reason == "torn"), "{gaps:?}");
}

/// The parent waits meanwhile: nothing is lost.
#[test]
fn a_child_that_its_parent_waits_for_is_none() {
    assert!(gaps("shared-ring-vfork", &["vfork"]).is_empty());
}

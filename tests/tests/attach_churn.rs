//! Goal: attaching to a program and leaving it changes nothing in it, even while its threads are within the system calls that make
//! threads and processes. Method: programs that do nothing else and check each result; a session attaches to them and detaches
//! again and again, and they must end as they do natively.

use e2e::{Live, Status, compiled, wait_until};
use std::{fs, thread, time::Duration};

const ROUNDS: u64 = 15;

/// Makes a thread or a process again and again, until the file `stop` exists.
const CHURN: &str = r#"
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#ifndef MANY
#define MANY 1
#endif
__attribute__((noinline)) long work(long n) { return n + 1; }
static void *thread(void *n) { return (void *)work((long)n); }
static int once(long n) {
#if defined THREADS
  pthread_t made[MANY];
  void *result;
  for (long i = 0; i < MANY; i++)
    if (pthread_create(&made[i], NULL, thread, (void *)(n + i))) return 8;
  for (long i = 0; i < MANY; i++)
    if (pthread_join(made[i], &result) || (long)result != n + i + 1) return 9;
#elif defined VFORK
  pid_t child = vfork();
  int status;
  if (child == 0) _exit(3);
  if (child < 0) return 8;
  if (waitpid(child, &status, 0) != child || status != 3 << 8) return 9;
  work(n);
#else
  pid_t child = fork();
  int status;
  if (child == 0) _exit(work(n) == n + 1 ? 3 : 4);
  if (child < 0) return 8;
  if (waitpid(child, &status, 0) != child || status != 3 << 8) return 9;
  work(n);
#endif
  return 0;
}
int main(void) {
  for (long n = 0; access("stop", F_OK) != 0; n++) {
    int failed = once(n);
    if (failed) return failed;
    if (n == 0) close(open("ready", O_CREAT | O_WRONLY, 0600));
  }
  puts("all as it should be");
  return 5;
}
"#;

/// Attaches to the program, which is compiled with these flags, and leaves it, in each round. `meanwhile` acts in between.
fn assert_unharmed(name: &str, flags: &[&str], meanwhile: impl Fn(&Live)) {
    let live = Live::new(name);
    let flags = [&["-g", "-O0", "-pthread"], flags].concat();
    let program = compiled(&live.scratch, "churn.c", CHURN, &flags);
    let running = live.program(&program, &[]).start();
    wait_until("its own code", || {
        live.scratch.join("ready").exists().then_some(())
    });
    let pid = running.pid().to_string();
    for round in 0..ROUNDS {
        live.ask(&["attach", &pid]);
        // Each round leaves it at another moment.
        thread::sleep(Duration::from_millis(round * 7 % 40));
        meanwhile(&live);
        live.ask(&["detach"]);
    }
    fs::write(live.scratch.join("stop"), "").expect("the test's folder is writable");
    let ended = running.finish();
    assert_eq!(ended.status, Status::Code(5), "{}", ended.errors());
    assert_eq!(ended.text(), "all as it should be\n");
}

/// Sets a breakpoint that is never reached, for which a thread of the program maps memory for us, and removes it.
fn set_and_remove_a_breakpoint(live: &Live) {
    live.ask(&["break", "work", "--condition", "n < 0"]);
    live.ask(&["break", "remove", "--all"]);
}

#[test]
fn a_program_that_makes_threads_is_left_unharmed() {
    assert_unharmed("churn-threads", &["-DTHREADS"], |_| {});
}

#[test]
fn a_program_that_makes_many_threads_at_once_is_left_unharmed() {
    assert_unharmed("churn-many", &["-DTHREADS", "-DMANY=8"], |_| {});
}

#[test]
fn a_program_that_makes_processes_is_left_unharmed() {
    assert_unharmed("churn-forks", &[], |_| {});
}

#[test]
fn a_program_that_makes_processes_with_vfork_is_left_unharmed() {
    assert_unharmed("churn-vforks", &["-DVFORK"], |_| {});
}

#[test]
fn breakpoints_come_and_go_while_a_program_makes_threads() {
    assert_unharmed(
        "churn-threads-break",
        &["-DTHREADS"],
        set_and_remove_a_breakpoint,
    );
}

#[test]
fn breakpoints_come_and_go_while_a_program_makes_processes() {
    assert_unharmed("churn-forks-break", &[], set_and_remove_a_breakpoint);
}

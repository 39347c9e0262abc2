//! Waits for a processor of threads that have ended: most are known, and the threads of which they are not are named.

use e2e::{Hindsight, Program, Scratch, Signal, Status, compiled, wait_until};
use serde_json::Value;

use super::number;

/// Two threads compute on one processor, for 60 ms each, without sleeping. Prints of each its id, how long it did not run, and how
/// long it ran in all, as its own clocks say.
const BURNING: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
static int begun;
static struct { long tid, idle_ns, ran_ns; } all[2];
static inline __attribute__((always_inline)) long now(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return time.tv_sec * 1000000000L + time.tv_nsec;
}
__attribute__((noinline)) void burn(long until) {
  while (now(CLOCK_THREAD_CPUTIME_ID) < until)
    ;
}
static void *work(void *of) {
  long n = (long)of;
  long clock = now(CLOCK_MONOTONIC), ran = now(CLOCK_THREAD_CPUTIME_ID);
  __atomic_add_fetch(&begun, 1, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(&begun, __ATOMIC_SEQ_CST) != 2)
    ;
  burn(now(CLOCK_THREAD_CPUTIME_ID) + 60000000);
  all[n].tid = gettid();
  all[n].ran_ns = now(CLOCK_THREAD_CPUTIME_ID);
  all[n].idle_ns = now(CLOCK_MONOTONIC) - clock - (all[n].ran_ns - ran);
  return 0;
}
int main(void)
{
  cpu_set_t may, one;
  pthread_t threads[2];
  int first = 0;
  sched_getaffinity(0, sizeof may, &may);
  while (!CPU_ISSET(first, &may))
    first++;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  sched_setaffinity(0, sizeof one, &one);
  for (long n = 0; n < 2; n++)
    pthread_create(&threads[n], 0, work, (void *)n);
  for (int n = 0; n < 2; n++)
    pthread_join(threads[n], 0);
  for (int n = 0; n < 2; n++)
    printf("%ld %ld %ld\n", all[n].tid, all[n].idle_ns, all[n].ran_ns);
  return 0;
}
"#;

/// What a thread's clocks and the kernel's count may differ by, and what it runs after it has read them.
const SLACK_NS: i64 = 1_000_000;
/// Waits are known if what was not seen of them is at most this part of the thread's life.
const PART_UNSEEN: i64 = 10;

#[test]
fn what_threads_waited_before_they_ended_is_in_no_functions_time() {
    let scratch = Scratch::new("report_burning");
    let flags = ["-g", "-O1", "-pthread"];
    let program = compiled(&scratch, "burning.c", BURNING, &flags);
    let program = Program::new(program, scratch.path());
    let (ended, recording) = Hindsight::record(&scratch, &[], &program);
    let report = recording
        .command("report", &["--threads", "--json"])
        .result();
    let threads = report["threads"].as_array().expect("threads");
    let mut all_idle_ns = 0;
    for told in ended.text().lines() {
        let told: Vec<i64> = told
            .split(' ')
            .map(|number| number.parse().expect("a number"))
            .collect();
        let (tid, idle_ns, ran_ns) = (told[0], told[1], told[2]);
        all_idle_ns += idle_ns;
        let thread = threads.iter().find(|thread| thread["tid"] == tid);
        let thread = thread.expect("it is in the report");
        let wait_ns = number(thread, "processor_wait_ns");
        let slack_ns = SLACK_NS + (idle_ns + ran_ns) / PART_UNSEEN;
        assert!(wait_ns >= idle_ns - slack_ns, "{idle_ns} {thread:#}");
        assert!(
            number(thread, "self_ns") <= ran_ns + slack_ns,
            "{ran_ns} {thread:#}"
        );
        assert!(
            number(thread, "raw_self_ns") > idle_ns,
            "{idle_ns} {thread:#}"
        );
    }
    // The one that ends last waits for all that the other one computes.
    assert!(all_idle_ns >= 50_000_000, "{}", ended.text());
}

/// Shares a processor with a child that never sleeps. `crunch` runs for 4 ms in all, in long calls; `step` is called often, and takes
/// some nanoseconds.
const CRUNCHING: &str = r#"
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>
static inline __attribute__((always_inline)) long ran(void) {
  struct timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec * 1000000000L + time.tv_nsec;
}
__attribute__((noinline)) long step(long x) { return x * 3 + 1; }
__attribute__((noinline)) long crunch(long x) {
  for (long until = ran() + 100000; ran() < until;)
    x += 7;
  return x;
}
int main(void)
{
  cpu_set_t all, one;
  int first = 0;
  sched_getaffinity(0, sizeof all, &all);
  while (!CPU_ISSET(first, &all))
    first++;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  sched_setaffinity(0, sizeof one, &one);
  pid_t parent = getpid(), child = fork();
  while (child == 0)
    if (getppid() != parent)
      return 0;
  long x = 1;
  for (long n = 0; n < 40; n++) {
    x = crunch(x);
    for (long m = 0; m < 10000; m++)
      x = step(x);
  }
  kill(child, SIGKILL);
  return 0;
}
"#;
const CRUNCHED_NS: i64 = 4_000_000;

#[test]
fn a_function_of_long_calls_keeps_the_time_that_it_ran() {
    let scratch = Scratch::new("report_crunching");
    let program = compiled(&scratch, "crunching.c", CRUNCHING, &["-g", "-O1"]);
    let program = Program::new(program, scratch.path());
    let (_ended, recording) = Hindsight::record(&scratch, &[], &program);
    let report = recording.command("report", &["--json"]).result();
    let functions = report["functions"].as_array().expect("functions");
    let crunch = functions.iter().find(|f| f["function"] == "crunch");
    let crunch = crunch.expect("it was called");
    assert!(number(crunch, "self_ns") >= CRUNCHED_NS / 20, "{report:#}");
    assert!(
        number(crunch, "self_most_ns") >= CRUNCHED_NS / 2,
        "{report:#}"
    );
    let text = recording.command("report", &[]).text();
    assert!(text.contains("for longer than they ran"), "{text}");
}

/// A thread that sleeps while the recorder is stopped.
const UNSEEN: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>
static void wait_for(const char *file) {
  while (access(file, F_OK) != 0)
    usleep(1000);
}
__attribute__((noinline)) int step(int x) { return x + 1; }
static void *work(void *of) {
  pthread_setname_np(pthread_self(), "late");
  int x = step(1);
  usleep(20000);
  return step(x) == 3 ? 0 : of;
}
int main(void)
{
  pthread_t thread;
  close(open("ready", O_CREAT | O_WRONLY, 0600));
  wait_for("go");
  pthread_create(&thread, 0, work, 0);
  pthread_join(thread, 0);
  close(open("done", O_CREAT | O_WRONLY, 0600));
  wait_for("end");
  return 0;
}
"#;

#[test]
fn threads_whose_waits_are_not_known_are_named() {
    let scratch = Scratch::new("report_unseen");
    let flags = ["-g", "-O1", "-pthread"];
    let program = compiled(&scratch, "unseen.c", UNSEEN, &flags);
    let program = Program::new(program, scratch.path());
    let (running, recording) = Hindsight::start_recording(&scratch, &[], &program);
    let appears = |file: &str| {
        wait_until(file, || scratch.join(file).exists().then_some(()));
    };
    let make = |file: &str| std::fs::write(scratch.join(file), "").expect("there is room");
    appears("ready");
    running.signal(Signal::STOP);
    make("go");
    appears("done");
    running.signal(Signal::CONT);
    make("end");
    assert_eq!(running.finish().status, Status::Code(0));
    let report = recording.command("report", &["--json"]).result();
    let threads = report["threads"].as_array().expect("threads");
    let late = threads.iter().find(|thread| thread["name"] == "late");
    let late = late.expect("it is in the report");
    assert_eq!(late["processor_wait_ns"], Value::Null, "{late:#}");
    let unknown = |thread: &&Value| thread["processor_wait_ns"].is_null();
    let unknown = threads.iter().filter(unknown).count() as i64;
    assert_eq!(
        number(&report["cost"], "threads_with_unknown_waits"),
        unknown
    );
    let text = recording.command("report", &[]).text();
    let told = "not subtracted, because they are not known: waits for a processor of ";
    let line = text.lines().find(|line| line.starts_with(told));
    let name = format!("late ({})", number(late, "tid"));
    assert!(line.is_some_and(|line| line.contains(&name)), "{text}");
    let raw = recording.command("report", &["--raw"]).text();
    assert!(!raw.contains(told), "{raw}");
}

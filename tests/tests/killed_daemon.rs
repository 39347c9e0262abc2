//! Goal: whatever the daemon was doing when it is killed, the program it was attached to ends as it would alone. Method: in a program
//! whose threads come and go, interrupted by a timer, the daemon is killed with watchpoints and breakpoints set, at hits and between
//! them, and while threads step.

use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

use e2e::{Live, Scratch, Signal, Status, compiled, kill, wait_until};

/// It works until there is a file `go`, and then a little more. Each count is checked at the end.
const SOURCE: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/time.h>
#include <unistd.h>

static atomic_long leaves, works, alarms;

__attribute__ ((noipa)) long
leaf (long n)
{
  leaves++;
  return n + 1;
}

__attribute__ ((noipa)) long
work (long n)
{
  works++;
  long sum = 0;
  for (long i = 0; i < n; i++)
    sum = leaf (sum);
  return sum;
}

static void
on_alarm (int number)
{
  (void) number;
  alarms++;
  leaf (0);
}

static void *
run (void * n)
{
  return (void *) work ((long) n);
}

int
main (void)
{
  struct sigaction action = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
  struct itimerval often = { { 0, 1000 }, { 0, 1000 } }, never = { { 0, 0 }, { 0, 0 } };
  long rounds = 0, left = 200;
  sigaction (SIGALRM, &action, NULL);
  setitimer (ITIMER_REAL, &often, NULL);
  while (left > 0)
  {
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
      if (pthread_create (&threads[i], NULL, run, (void *) 20L) != 0)
        return 1;
    for (int i = 0; i < 3; i++)
    {
      void * sum;
      pthread_join (threads[i], &sum);
      if (sum != (void *) 20L)
        return 2;
    }
    if (work (50) != 50)
      return 3;
    rounds++;
    if (rounds == 20)
      fclose (fopen ("ready", "w"));
    if (left < 200 || access ("go", F_OK) == 0)
      left--;
  }
  setitimer (ITIMER_REAL, &never, NULL);
  puts (works == rounds * 4 && leaves == rounds * 110 + alarms ? "all counted" : "wrong");
  return 5;
}
"#;

/// What the daemon does when it is killed.
#[derive(Clone, Copy, Debug)]
enum When {
    /// The program is stopped at a hit.
    AtHit,
    /// It runs, and threads hit the probe without a stop.
    Running,
    /// Threads step again and again.
    Stepping,
}

/// Attaches to the program, kills the daemon, and checks how the program ends.
fn kill_the_daemon(when: When, probes: &[&[&str]], delay: Duration) {
    let live = Live::new("killed-daemon");
    let program = built(&live.scratch);
    let running = live.program(&program, &[]).start();
    wait_until("the program's work", || {
        live.scratch.join("ready").exists().then_some(())
    });
    let pid = running.pid().to_string();
    live.ask(&["attach", pid.as_str()]);
    for probe in probes {
        live.ask(probe);
    }
    if !matches!(when, When::Running) {
        wait_until("a stop", || {
            (live.session()["status"] == "stopped").then_some(())
        });
    }
    let daemon = live.daemon().expect("it serves");
    let client = match when {
        When::Stepping => Some(live.command(&["next", "1000"]).start()),
        When::AtHit | When::Running => None,
    };
    sleep(delay);
    kill(daemon, Signal::KILL);
    if let Some(client) = client {
        // It has lost its daemon.
        let _ = client.finish();
    }
    live.wait_for_end_of(daemon);
    std::fs::write(live.scratch.join("go"), "").expect("the test's folder is writable");
    let ended = running.finish();
    assert_eq!(
        ended.status,
        Status::Code(5),
        "{when:?} {probes:?}: {}",
        ended.errors()
    );
    assert_eq!(ended.text(), "all counted\n", "{when:?} {probes:?}");
}

fn built(scratch: &Scratch) -> PathBuf {
    compiled(scratch, "comes.c", SOURCE, &["-g", "-O2", "-pthread"])
}

fn kill_often(when: When, probes: &[&[&str]]) {
    // The kill comes at another moment each time.
    for delay in [20, 137] {
        kill_the_daemon(when, probes, Duration::from_millis(delay));
    }
}

#[test]
fn at_a_watched_write() {
    kill_often(When::AtHit, &[&["watch", "works"]]);
}

#[test]
fn between_watched_writes() {
    kill_often(
        When::Running,
        &[&["watch", "works", "--condition", "works < 0"]],
    );
}

/// The tracer sees each hit: the condition has a state.
#[test]
fn at_breakpoints_that_do_not_stop() {
    let condition = "state.n = (state.n ?? 0) + 1, state.n < 0";
    kill_often(
        When::Running,
        &[
            &["break", "leaf", "--condition", condition],
            &["watch", "works", "--condition", "works < 0"],
        ],
    );
}

/// Several threads are at the breakpoint, one in its handler of the timer.
#[test]
fn at_a_breakpoint() {
    kill_often(When::AtHit, &[&["break", "leaf"]]);
}

#[test]
fn while_threads_step() {
    kill_often(When::Stepping, &[&["break", "work"]]);
}

//! Goal: a signal that is pending when a thread leaves a breakpoint runs its handler once, and the step ends where it would
//! have. Method: the program counts its handler's runs and says so itself; signals are sent to it while it is stopped.

use e2e::{Live, Program, Scratch, Status, compiled};

const PROGRAM: &str = r#"#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
static volatile int got;
static void handler(int signal) { got++; }
static int add(int a, int b) { int c = a; for (int i = 0; i < 1000; i++) c += b & i; return c; }
static void *work(void *of) {
  int a = 1;
  a += 2; /* first */
  a += 3; /* second */
  a = add(a, 4); /* third */
  a += 5; /* fourth */
  return (void *)(long)a;
}
int main(int count, char **words) {
  signal(SIGUSR1, handler);
  signal(SIGALRM, handler);
  pthread_t thread;
  void *sum;
  if (!strcmp(words[1], "timer")) {
    struct itimerval every = {{0, 2000}, {0, 2000}};
    setitimer(ITIMER_REAL, &every, 0);
  }
  if (!strcmp(words[1], "thread")) {
    pthread_create(&thread, 0, work, 0);
    pthread_join(thread, &sum);
  } else
    sum = work(0);
  printf("sum %ld got %d\n", (long)sum, words[1][1] == 'i' ? got > 0 : got);
  return 0;
}
"#;

fn line(mark: &str) -> u64 {
    let at = PROGRAM
        .lines()
        .position(|line| line.contains(&format!("/* {mark} */")));
    at.expect("a line of the program") as u64 + 1
}

/// Starts the program and stops it in `work`.
fn stopped(scratch: &Scratch, name: &str, how: &str) -> Live {
    let app = compiled(scratch, "app.c", PROGRAM, &["-O0", "-g", "-pthread"]);
    let at = format!("app.c:{}", line("first"));
    let live = Live::started(name, &["--break", &at], &app, &[how]);
    assert_eq!(live.session()["stop"]["line"], line("first"));
    live
}

/// Sends SIGUSR1 to the stopped thread.
fn interrupt(live: &Live) {
    let session = live.session();
    let (pid, tid) = (&session["pid"], &session["stop"]["thread"]);
    let script =
        format!("import ctypes; assert ctypes.CDLL(None).syscall(234, {pid}, {tid}, 10) == 0");
    let sent = Program::new("/usr/bin/python3", std::path::Path::new("/"))
        .args(["-c", &script])
        .run();
    assert_eq!(sent.status, Status::Code(0), "{}", sent.errors());
}

#[test]
fn a_pending_signal_is_delivered_and_the_step_ends_on_the_next_line() {
    let scratch = Scratch::new("live-signals");
    for how in ["plain", "thread"] {
        for verb in [&["next"][..], &["step"], &["step", "-i"]] {
            let live = stopped(&scratch, &format!("live-signals-{how}"), how);
            interrupt(&live);
            assert_eq!(live.moved(verb)["line"], line("second"), "{how} {verb:?}");
            interrupt(&live);
            assert_eq!(
                live.moved(&["next"])["line"],
                line("third"),
                "{how} {verb:?}"
            );
            assert_eq!(live.run_to_end(), 0);
            assert_eq!(
                live.output(),
                "sum 11 got 2\n".replace("11", &sum()),
                "{how} {verb:?}"
            );
        }
    }
}

/// What the program computes by itself.
fn sum() -> String {
    let added: i64 = (0..1000).map(|i| 4 & i).sum();
    (1 + 2 + 3 + added + 5).to_string()
}

#[test]
fn a_timer_does_not_disturb_steps() {
    let scratch = Scratch::new("live-timer");
    let live = stopped(&scratch, "live-timer", "timer");
    for mark in ["second", "third", "fourth"] {
        assert_eq!(live.moved(&["next"])["line"], line(mark));
    }
    assert_eq!(live.run_to_end(), 0);
    assert_eq!(live.output(), format!("sum {} got 1\n", sum()));
}

#[test]
fn a_pending_signal_is_handled_within_a_called_function() {
    let scratch = Scratch::new("live-call-signal");
    let live = stopped(&scratch, "live-call-signal", "plain");
    interrupt(&live);
    let called = live.ask(&["call", "add(7, 0)"]);
    assert!(called.to_string().contains('7'), "{called:#}");
    assert_eq!(live.run_to_end(), 0);
    assert_eq!(live.output(), format!("sum {} got 1\n", sum()));
}

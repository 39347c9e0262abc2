//! Goal: a program of which every instruction is recorded lives and ends as it does by itself. Method: programs that end in odd ways or
//! use what the recorder uses: native and recorded, output and status are the same, and the recording is whole.

use e2e::{Hindsight, Program, Scratch, Status, compiled, split_own_lines};

/// A thread ends the program while another one computes.
const ENDED_BY_A_THREAD: &str = r#"#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void *spin(void *a) { for (volatile long n = 0;; n++); return a; }
static void *wait(void *a) { pause(); return a; }
static void *ends(void *a) { usleep(5000); puts("ends"); exit(4); return a; }
int main(void) {
  pthread_t t;
  pthread_create(&t, 0, spin, 0);
  pthread_create(&t, 0, wait, 0);
  pthread_create(&t, 0, ends, 0);
  pthread_join(t, 0);
  return 0;
}
"#;

/// The signal that the recorder's own traps send.
const TRAPS: &str = r#"#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static volatile int count;
static void handler(int number) { count += number == SIGTRAP; }
static void *thread(void *a) { return a; }
int main(int argc, char **argv) {
  struct sigaction now;
  if (argc > 1 && !strcmp(argv[1], "ignored")) {
    signal(SIGTRAP, SIG_IGN);
    raise(SIGTRAP);
    kill(getpid(), SIGTRAP);
    sigaction(SIGTRAP, 0, &now);
    printf("ignored %d\n", now.sa_handler == SIG_IGN);
    return 7;
  }
  signal(SIGTRAP, handler);
  for (int i = 0; i < 5; i++) raise(SIGTRAP);
  __asm__ volatile("int3");
  pthread_t t;
  pthread_create(&t, 0, thread, 0); /* blocks all signals meanwhile */
  pthread_join(t, 0);
  kill(getpid(), SIGTRAP);
  sigaction(SIGTRAP, 0, &now);
  printf("%d %d\n", count, now.sa_handler == handler);
  signal(SIGTRAP, SIG_DFL);
  if (argc > 1) raise(SIGTRAP);
  return 8;
}
"#;

/// A child that shares the memory, and asks not to be traced, as LeakSanitizer's does.
const UNTRACED: &str = r#"#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
static int child(void *a) { return 5; }
int main(void) {
  char *stack = malloc(65536);
  int status = 0;
  int pid = clone(child, stack + 65536, CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_UNTRACED, 0);
  waitpid(pid, &status, __WALL);
  printf("%x\n", status);
  return 3;
}
"#;

/// What a program inherits, and a pipe that nobody reads.
const PIPE: &str = r#"#include <signal.h>
#include <stdio.h>
#include <unistd.h>
int main(void) {
  int ends[2];
  printf("%d\n", signal(SIGPIPE, SIG_DFL) == SIG_DFL);
  fflush(stdout);
  pipe(ends);
  close(ends[0]);
  write(ends[1], "x", 1);
  return 1;
}
"#;

fn built(scratch: &Scratch, source: &str, flags: &[&str]) -> Program {
    let flags = [&["-w", "-O1", "-pthread"], flags].concat();
    Program::new(compiled(scratch, "app.c", source, &flags), scratch.path())
}

/// Records all of a program several times; each time it is as it was natively.
fn is_the_same(name: &str, source: &str, arguments: &[&str], times: usize) {
    let scratch = Scratch::new(name);
    let app = built(&scratch, source, &[]).args(arguments);
    let native = app.run();
    for time in 0..times {
        let run = format!("{name}-{time}");
        let ended = Hindsight::record_command(&scratch, &run, &["--full"], &app).run();
        let as_in_a_shell = match native.status {
            Status::Signal(number) => Status::Code(128 + number),
            code => code,
        };
        assert_eq!(ended.status, as_in_a_shell, "{run}: {}", ended.errors());
        let (theirs, ours) = split_own_lines(&ended.stderr);
        assert_eq!(theirs, native.stderr, "{run}");
        assert_eq!(ended.stdout, native.stdout, "{run}");
        // What a child does to memory that it shares is not seen.
        let is_doubted = source == UNTRACED;
        let told = ours.join("\n");
        assert_eq!(told.contains("incomplete"), is_doubted, "{run}: {told}");
        if !is_doubted {
            let checked = Hindsight::command(&scratch, &["check", &run, "--replay"]).run();
            assert_eq!(checked.status, Status::Code(0), "{run}: {}", checked.text());
        }
    }
}

#[test]
fn a_thread_may_end_the_program() {
    is_the_same("full-ended-by-a-thread", ENDED_BY_A_THREAD, &[], 5);
}

#[test]
fn sigtrap_is_the_programs() {
    is_the_same("full-traps", TRAPS, &[], 2);
    is_the_same("full-traps-ignored", TRAPS, &["ignored"], 2);
    is_the_same("full-traps-ended", TRAPS, &["ends"], 2);
}

#[test]
fn a_child_that_asks_not_to_be_traced_lives() {
    is_the_same("full-untraced", UNTRACED, &[], 2);
}

#[test]
fn sigpipe_has_its_default_action() {
    is_the_same("full-pipe", PIPE, &[], 2);
}

#[test]
fn the_end_of_a_pipe_is_no_panic_of_the_recorder() {
    let scratch = Scratch::new("full-no-reader");
    for how in ["--full", "--no-syscalls"] {
        let record = format!(
            "'{}' record {how} -o run -- yes 2>&1 | head -1; exit ${{PIPESTATUS[0]}}",
            Hindsight::path().display()
        );
        let ended = Program::new("/bin/bash", scratch.path())
            .args(["-c", &record])
            .run();
        assert_eq!(ended.status, Status::Code(141), "{how}");
        assert_eq!(ended.text(), "y\n", "{how}");
        let gone = Hindsight::command(&scratch, &["rm", "--yes", "run"]).run();
        assert_eq!(gone.status, Status::Code(0), "{}", gone.errors());
    }
}

#[test]
fn thread_sanitizer_is_refused_before_the_program_runs() {
    let scratch = Scratch::new("full-tsan");
    let source = "int main(void) { return 3; }\n";
    let app = built(&scratch, source, &["-fsanitize=thread"]);
    let ended = Hindsight::record_command(&scratch, "run", &["--full"], &app).run();
    assert_eq!(ended.status, Status::Code(4), "{}", ended.errors());
    assert!(
        ended.errors().contains("ThreadSanitizer"),
        "{}",
        ended.errors()
    );
    assert!(!scratch.join("run.hindsight").exists());
}

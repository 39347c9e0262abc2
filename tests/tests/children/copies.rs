//! Copies of a program, which fork makes, are left alone, or recorded with `--copies`.

use e2e::{Hindsight, Program, Row, Scratch, Status, compiled};

use crate::{Set, assert_same};

/// The copy makes a process, and then it executes a program itself.
#[test]
fn what_a_copy_made_before_it_executed_a_program_has_one_row() {
    let scratch = Scratch::new("children_copy_executes");
    let script = "(/bin/echo one; exec /bin/echo two); true";
    let (native, set) = Set::of_shell(&scratch, script);
    assert_same(&native, &set);
    assert_eq!(set.rows.len(), 3, "{:#?}", set.rows);
    set.assert_known_to_sql(&scratch);
}

/// Job control, signals, a new session and a pipe that a child holds open.
#[test]
fn copies_of_a_program_are_left_alone() {
    let scratch = Scratch::new("children_copies");
    let script = r#"
import os, signal, sys
def child(work):
    pid = os.fork()
    if pid == 0:
        work()
        os._exit(9)
    return pid
def status(pid, options=0):
    return os.waitpid(pid, options)[1]
go, went = os.pipe()
pid = child(lambda: (os.kill(os.getpid(), signal.SIGSTOP), os.read(go, 1)))
print('stopped', os.WIFSTOPPED(status(pid, os.WUNTRACED)))
os.kill(pid, signal.SIGCONT)
continued = os.WIFCONTINUED(status(pid, os.WCONTINUED))
os.write(went, b'g')
print('went on', continued, os.waitstatus_to_exitcode(status(pid)))
def handle():
    signal.signal(signal.SIGUSR1, lambda *_: os._exit(4))
    os.write(ready, b'x')
    while True: signal.pause()
to, ready = os.pipe()
pid = child(handle)
os.read(to, 1)
os.kill(pid, signal.SIGUSR1)
print('handled', os.waitstatus_to_exitcode(status(pid)))
print('session', os.waitstatus_to_exitcode(status(child(lambda: os._exit(os.setsid() == os.getpid())))))
print('deep', os.waitstatus_to_exitcode(status(child(lambda: os._exit(os.waitstatus_to_exitcode(status(child(lambda: os.execv('/bin/sh', ['sh', '-c', 'exit 6'])))))))))
import threading
def threaded():
    thread = threading.Thread(target=lambda: os.write(ready, b'y'))
    thread.start(); thread.join()
print('thread', os.waitstatus_to_exitcode(status(child(threaded))), os.read(to, 1))
"#;
    let program = Program::new("/usr/bin/python3", scratch.path()).args(["-c", script]);
    let native = program.run();
    assert_eq!(native.status, Status::Code(0), "{}", native.errors());
    let set = Set::of(&scratch, &program);
    assert_same(&native, &set);
    assert_eq!(set.one("sh")["exit_code"], 6);
    set.assert_whole();
}

/// With `--copies` they are recorded from the fork on, each with its own calls.
#[test]
fn copies_of_a_program_are_recorded_if_asked_for() {
    let scratch = Scratch::new("children_forks");
    let source = r#"
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) int before(int i) { return i + 1; }
__attribute__((noinline)) int in_child(int i) { return i + 2; }
__attribute__((noinline)) int child(int deep) {
  int sum = 0;
  for (int i = 0; i < 1000; i++) sum += in_child(i);
  printf("child %d %d\n", deep, sum);
  fflush(stdout);
  if (deep == 0) return sum % 100;
  pid_t pid = fork();
  if (pid == 0) exit(child(deep - 1) + 1);
  int status;
  waitpid(pid, &status, 0);
  return WEXITSTATUS(status) + 1;
}
int main(void) {
  int sum = 0;
  for (int i = 0; i < 10; i++) sum += before(i);
  pid_t pid = fork();
  if (pid == 0) exit(child(2));
  int status;
  waitpid(pid, &status, 0);
  printf("%d %d\n", sum, WEXITSTATUS(status));
  return 0;
}
"#;
    let program = compiled(&scratch, "forks.c", source, &["-g"]);
    let program = Program::new(program, scratch.path());
    let native = program.run();
    let options = ["--children", "--copies"];
    let ended = Hindsight::record_command(&scratch, "set", &options, &program).run();
    let dir = scratch.join("set.children");
    let rows = Set::rows(&dir);
    let set = Set { ended, dir, rows };
    assert_same(&native, &set);
    set.assert_whole();
    assert_eq!(set.rows.len(), 4, "{:#?}", set.rows);
    let calls = |row: &Row, function: &str| {
        let count = format!("SELECT count(*) FROM calls WHERE function = '{function}'");
        set.recording(row).number(&count)
    };
    for (depth, row) in set.rows.iter().enumerate() {
        let (of_main, of_child) = if depth == 0 { (10, 0) } else { (0, 1000) };
        assert_eq!(
            (calls(row, "before"), calls(row, "in_child")),
            (of_main, of_child),
            "{row:?}"
        );
        if depth > 0 {
            assert_eq!(row["parent"], set.rows[depth - 1]["pid"]);
        }
    }
}

/// A daemon forks twice, and the process in between ends at once. A child of vfork has no memory of its own.
#[test]
fn copies_whose_parent_ends_at_once_are_recorded() {
    let scratch = Scratch::new("children_daemons");
    let source = r#"
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) int in_daemon(int i) { return i + 2; }
int main(void) {
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  for (int i = 0; i < 12; i++) {
    if (fork() == 0) {
      if (fork() == 0) _exit(in_daemon(i));
      _exit(0);
    }
  }
  if (vfork() == 0) _exit(0);
  while (wait(0) > 0) {}
  return 0;
}
"#;
    let program = compiled(&scratch, "daemons.c", source, &["-g"]);
    let program = Program::new(program, scratch.path());
    let options = ["--children", "--copies"];
    let ended = Hindsight::record_command(&scratch, "set", &options, &program).run();
    assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
    let rows = Set::rows(&scratch.join("set.children"));
    assert_eq!(rows.len(), 26, "{rows:#?}");
    let without: Vec<&Row> = rows
        .iter()
        .filter(|row| row["recording"].is_null())
        .collect();
    assert_eq!(without.len(), 1, "{without:#?}");
    let notes = without[0]["notes"].to_string();
    assert!(notes.contains("vfork"), "{notes}");
    let count = "SELECT count(*) AS n FROM calls WHERE function = 'in_daemon'";
    let counted = Hindsight::command(&scratch, &["sql", "set.children", count, "--json"]).run();
    assert_eq!(counted.result()[0]["n"], 12, "{}", counted.errors());
}

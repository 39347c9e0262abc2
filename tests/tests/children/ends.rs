//! The end of every process is known.

use std::collections::BTreeSet;

use e2e::{Hindsight, Program, Row, Scratch, Status, compiled};

use crate::Set;

/// The shell prints every child's pid and exit status.
#[test]
fn every_end_is_known() {
    let scratch = Scratch::new("children_ends");
    let script = r#"
        for code in 0 1 42 255; do sh -c "exit $code" & wait $!; echo "$! $?"; done
        sh -c 'kill -9 $$' & wait $!; echo "$! $?"
        sh -c 'kill -TERM $$' & wait $!; echo "$! $?"
        (exit 3) & wait $!; echo "$! $?"
        /does/not/exist 2> /dev/null; echo "none $?"
        true"#;
    let program = Program::new("/bin/sh", scratch.path()).args(["-c", script]);
    let set = Set::of(&scratch, &program);
    set.assert_whole();
    let text = set.ended.text();
    let told: Vec<(i64, i64)> = text
        .lines()
        .filter_map(|line| {
            let (pid, code) = line.split_once(' ')?;
            Some((pid.parse().ok()?, code.parse().ok()?))
        })
        .collect();
    assert_eq!(told.len(), 7, "{text}");
    let codes: Vec<i64> = told.iter().map(|(_, code)| *code).collect();
    assert_eq!(codes, [0, 1, 42, 255, 137, 143, 3]);
    assert!(text.contains("none 127"));
    for (pid, code) in told {
        let rows: Vec<&Row> = set.rows.iter().filter(|row| row["pid"] == pid).collect();
        let last = rows
            .last()
            .unwrap_or_else(|| panic!("{pid}: {:#?}", set.rows));
        let ended = match last["exit_signal"].as_str() {
            Some("SIGKILL") => 137,
            Some("SIGTERM") => 143,
            _ => last["exit_code"].as_i64().unwrap_or(-1),
        };
        assert_eq!(ended, code, "{last:?}");
    }
}

/// A child is killed as soon as the set knows what it executes: it is still loaded, or waits for its recorder, or is prepared.
#[test]
fn a_child_that_is_killed_while_its_recording_begins_has_its_end() {
    let scratch = Scratch::new("children_killed");
    let source = r#"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static char text[1 << 20];
static void until_told(const char *what, pid_t pid) {
  char wanted[64];
  snprintf(wanted, sizeof wanted, "\"what\":\"%s\",\"pid\":%d,", what, pid);
  for (int i = 0; i < 20000; i++) {
    int fd = open("set.children/processes.jsonl", O_RDONLY);
    ssize_t len = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0) close(fd);
    text[len < 0 ? 0 : len] = 0;
    if (strstr(text, wanted)) return;
    usleep(1000);
  }
  puts("it was not told");
}
int main(void) {
  int signals[] = {2, 9, 11, 15};
  for (int i = 0; i < 4; i++) {
    pid_t pid = fork();
    if (pid == 0) {
      execl("/bin/sleep", "sleep", "60", (char *)0);
      _exit(1);
    }
    until_told("image", pid);
    kill(pid, signals[i]);
    /* Before Linux 6.15 the kernel tells others only of an end that the parent has not collected. */
    until_told("end", pid);
    int status;
    waitpid(pid, &status, 0);
    printf("%d %d\n", pid, WIFSIGNALED(status) ? WTERMSIG(status) : 0);
  }
  return 0;
}
"#;
    let program = compiled(&scratch, "killer.c", source, &["-O1"]);
    let set = Set::of(&scratch, &Program::new(program, scratch.path()));
    let text = set.ended.text();
    let ends: Vec<(&str, &str)> = text
        .lines()
        .filter_map(|line| line.split_once(' '))
        .collect();
    let signals: Vec<&str> = ends.iter().map(|(_, signal)| *signal).collect();
    assert_eq!(signals, ["2", "9", "11", "15"], "{text}");
    let names = ["SIGINT", "SIGKILL", "SIGSEGV", "SIGTERM"];
    for ((pid, _), name) in ends.iter().zip(names) {
        let pid: i64 = pid.parse().expect("a number");
        let row = set.rows.iter().find(|row| row["pid"] == pid);
        assert_eq!(row.expect("it is known")["exit_signal"], name, "{row:#?}");
    }
    let named: BTreeSet<&str> = set
        .rows
        .iter()
        .filter_map(|row| row["recording"].as_str())
        .collect();
    let folders = std::fs::read_dir(&set.dir).expect("the set").flatten();
    for folder in folders.filter(|entry| entry.path().is_dir()) {
        let name = folder.file_name().into_string().expect("a name of ours");
        assert!(named.contains(name.as_str()), "{name}: {:#?}", set.rows);
    }
    set.assert_whole();
    set.assert_known_to_sql(&scratch);
}

/// Ctrl-C before the first program runs.
#[test]
fn an_interrupted_start_is_no_failure_to_record() {
    let scratch = Scratch::new("children_interrupted");
    let program = Program::new("/bin/sleep", scratch.path()).args(["60"]);
    let running = Hindsight::record_command(&scratch, "set", &["--children"], &program).start();
    let dir = scratch.join("set.children");
    e2e::wait_until("a set", || dir.is_dir().then_some(()));
    running.signal_group(e2e::Signal::INT);
    let ended = running.finish();
    assert_eq!(ended.status.as_shell_code(), 130, "{}", ended.errors());
    assert!(
        !ended.errors().contains("for patching"),
        "{}",
        ended.errors()
    );
}

/// The recorder ends with the program; recording of programs that still run continues.
#[test]
fn a_process_that_outlives_the_program_is_recorded_to_its_end() {
    let scratch = Scratch::new("children_outlive");
    let script = "sh -c 'while test ! -e go; do sleep 0.05; done; exit 8' > /dev/null 2>&1 < /dev/null & echo started";
    let program = Program::new("/bin/sh", scratch.path()).args(["-c", script]);
    let set = Set::of(&scratch, &program);
    assert_eq!(set.ended.text(), "started\n");
    assert!(
        set.ended.errors().contains("still running"),
        "{}",
        set.ended.errors()
    );
    std::fs::write(scratch.join("go"), "").expect("writable");
    let row = e2e::wait_until("the shell has ended", || {
        let rows = Set::rows(&set.dir);
        rows.into_iter().find(|row| row["exit_code"] == 8)
    });
    let recording = set.recording(&row);
    e2e::wait_until("its recording is closed", || {
        let checked = recording.command("check", &[]);
        (checked.status == Status::Code(0)).then_some(())
    });
}

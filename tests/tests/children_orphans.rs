//! Goal: in a set, a process keeps the parent that started it, and is not said to run when it has ended unseen. Method:
//! a program prints who started its orphan; a recorder is killed.

use e2e::{Hindsight, Program, Row, Scratch, Status, compiled};

/// Starts `first`, which executes `second`, by way of a process that has ended before, and prints that one's number. The orphan holds
/// the pipe until it ends.
const ORPHAN: &str = r#"#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char **words) {
  if (count > 1 && words[1][0] == '1') execl("/proc/self/exe", "second", "2", (char *)0);
  if (count > 1) return 5;
  int held[2];
  if (pipe(held) != 0) return 1;
  pid_t starter = fork();
  if (starter == 0) {
    pid_t self = getpid();
    if (fork() != 0) _exit(0);
    while (getppid() == self) usleep(1000);
    execl("/proc/self/exe", "first", "1", (char *)0);
    _exit(99);
  }
  waitpid(starter, 0, 0);
  printf("%d\n", starter);
  fflush(stdout);
  close(held[1]);
  char byte;
  return (int)read(held[0], &byte, 1);
}
"#;

fn rows(scratch: &Scratch, args: &[&str]) -> Vec<Row> {
    let answer = Hindsight::command(scratch, args).run();
    assert_eq!(answer.status, Status::Code(0), "{}", answer.errors());
    serde_json::from_value(answer.result()).expect("rows")
}

#[test]
fn an_orphan_is_the_child_of_the_process_that_started_it() {
    let scratch = Scratch::new("children_orphan");
    let program = compiled(&scratch, "orphan.c", ORPHAN, &["-O0", "-g"]);
    let program = Program::new(&program, scratch.path());
    let ended = Hindsight::record_command(&scratch, "set", &["--children"], &program).run();
    assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
    let starter: i64 = ended.text().trim().parse().expect("it prints a number");
    let listed = rows(&scratch, &["processes", "--json", "set"]);
    for name in ["first", "second"] {
        let row = listed.iter().find(|row| row["argv"][0] == name);
        assert_eq!(row.expect("it ran")["parent"], starter, "{listed:#?}");
        for (column, table) in [("parent", "processes"), ("parent_pid", "runs")] {
            let sql = format!("select {column} as parent from {table} where program = '{name}'");
            let found = rows(&scratch, &["sql", "set", &sql, "--json"]);
            assert_eq!(found.len(), 1, "{sql}: {found:#?}");
            assert_eq!(found[0]["parent"], starter, "{sql}");
        }
    }
}

/// Returns the process that traces another one.
fn tracer(pid: i64) -> Option<String> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("TracerPid:"))?;
    Some(line.trim().to_owned()).filter(|tracer| tracer != "0")
}

fn kill_recorder(scratch: &Scratch, pid: i64) {
    let recorder = e2e::wait_until("its recorder traces it", || tracer(pid));
    let killed = Program::new("/bin/kill", scratch.path())
        .args(["-9", recorder.as_str()])
        .run();
    assert_eq!(killed.status, Status::Code(0), "{}", killed.errors());
    e2e::wait_until("its recorder is gone", || {
        tracer(pid).is_none().then_some(())
    });
}

#[test]
fn a_process_that_has_ended_unseen_is_not_said_to_run() {
    let scratch = Scratch::new("children_unseen");
    let script =
        "mkfifo gate; sh -c 'read line < gate' > /dev/null 2>&1 < /dev/null & echo started";
    let program = Program::new("/bin/sh", scratch.path()).args(["-c", script]);
    let ended = Hindsight::record_command(&scratch, "set", &["--children"], &program).run();
    assert_eq!(ended.text(), "started\n", "{}", ended.errors());
    let pid = e2e::wait_until("the shell is recorded", || {
        let listed = rows(&scratch, &["processes", "--json", "set"]);
        let is_it =
            |row: &&Row| row["argv"][2] == "read line < gate" && row["recording"].is_string();
        listed.iter().find(is_it)?["pid"].as_i64()
    });
    // Its recorder is told before it has begun, and one that is killed by then has recorded nothing.
    let begun = "select count(*) from events where kind = 'process_start'";
    e2e::wait_until("its recording has begun", || {
        let recording = "set.children/sh-2.hindsight";
        let words = ["sql", recording, begun, "--format", "csv"];
        let told = Hindsight::command(&scratch, &words).run().text();
        (told.lines().last() == Some("1")).then_some(())
    });
    let table = || {
        Hindsight::command(&scratch, &["processes", "set"])
            .run()
            .text()
    };
    assert!(table().contains("| running "), "{}", table());
    kill_recorder(&scratch, pid);
    assert!(table().contains("| running "), "it goes on: {}", table());
    std::fs::write(scratch.join("gate"), "\n").expect("the shell reads it");
    e2e::wait_until("the shell has ended", || {
        table().contains("| not seen ").then_some(())
    });
}

/// The command itself waits for its program.
#[test]
fn the_end_of_the_program_is_known_without_its_recorder() {
    let scratch = Scratch::new("children_alone");
    let script = "mkfifo gate; echo > ready; read line < gate; exit 4";
    let program = Program::new("/bin/sh", scratch.path()).args(["-c", script]);
    let running = Hindsight::record_command(&scratch, "set", &["--children"], &program).start();
    e2e::wait_until("the program waits", || {
        scratch.join("ready").exists().then_some(())
    });
    let list = ["processes", "--json", "set"];
    let pid = rows(&scratch, &list)[0]["pid"].as_i64();
    kill_recorder(&scratch, pid.expect("a number"));
    std::fs::write(scratch.join("gate"), "\n").expect("the program reads it");
    let ended = running.finish();
    assert_eq!(ended.status, Status::Code(4), "{}", ended.errors());
    assert!(!ended.errors().contains("running"), "{}", ended.errors());
    let listed = rows(&scratch, &list);
    assert_eq!(listed[0]["exit_code"], 4, "{listed:#?}");
}

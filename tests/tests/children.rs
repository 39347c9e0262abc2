//! Goal: `record --children` follows every process that a program starts, records each program that they execute, and
//! changes nothing for any of them. Method: what the programs print, leave and return is compared with a native run; the
//! programs themselves report which process was started and how it ended.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use e2e::{Ended, Hindsight, Program, Recording, Row, Scratch, Status, compiled};

/// A program that was recorded with its children.
struct Set {
    ended: Ended,
    dir: PathBuf,
    rows: Vec<Row>,
}

impl Set {
    fn of(scratch: &Scratch, program: &Program) -> Set {
        let ended = Hindsight::record_command(scratch, "set", &["--children"], program).run();
        let dir = scratch.join("set.children");
        assert!(dir.is_dir(), "no set was made: {ended:?}");
        let rows = Set::rows(&dir);
        Set { ended, dir, rows }
    }

    fn rows(dir: &Path) -> Vec<Row> {
        let listed = Program::new(Hindsight::path(), dir.parent().expect("a folder"))
            .args(["processes", "--json"])
            .args([dir])
            .run();
        assert_eq!(listed.status, Status::Code(0), "{}", listed.errors());
        serde_json::from_value(listed.result()).expect("an array of objects")
    }

    fn of_shell(scratch: &Scratch, script: &str) -> (Ended, Set) {
        let program = Program::new("/bin/sh", scratch.path()).args(["-c", script]);
        let native = program.run();
        (native, Set::of(scratch, &program))
    }

    /// The programs with that name, without copies of their parents.
    fn named(&self, name: &str) -> Vec<&Row> {
        let is_it = |row: &&Row| program_of(row) == name && !row["image_unix_ns"].is_null();
        self.rows.iter().filter(is_it).collect()
    }

    fn one(&self, name: &str) -> &Row {
        let rows = self.named(name);
        assert_eq!(rows.len(), 1, "{name}: {:#?}", self.rows);
        rows[0]
    }

    fn recording(&self, row: &Row) -> Recording {
        let name = row["recording"].as_str().expect("it is recorded");
        Recording::new(self.dir.join(name))
    }

    /// SQL has one row for each process of the set; none of them executed two programs.
    fn assert_known_to_sql(&self, scratch: &Scratch) {
        let counted = "SELECT count(*) AS n, count(DISTINCT pid) AS pids FROM processes";
        let counted = Hindsight::command(scratch, &["sql", "set", counted, "--json"]).run();
        let counted = &counted.result()[0];
        let all = self.rows.len();
        assert_eq!(
            (&counted["n"], &counted["pids"]),
            (&all.into(), &all.into())
        );
    }

    /// Every recording is whole, and has its process's ids.
    fn assert_whole(&self) {
        for row in &self.rows {
            if row["recording"].is_null() {
                continue;
            }
            let recording = self.recording(row);
            let checked = recording.command("check", &[]);
            assert_eq!(
                checked.status,
                Status::Code(0),
                "{row:?}: {}",
                checked.text()
            );
            let start = "SELECT value FROM events WHERE kind = 'process_start'";
            assert_eq!(Some(recording.number(start)), row["pid"].as_i64());
        }
    }
}

fn program_of(row: &Row) -> String {
    let first = row["argv"][0].as_str().unwrap_or_default();
    first.rsplit('/').next().unwrap_or_default().to_owned()
}

fn assert_same(native: &Ended, set: &Set) {
    assert_eq!(native.text(), set.ended.text(), "{}", set.ended.errors());
    let theirs = e2e::split_own_lines(&set.ended.stderr).0;
    assert_eq!(native.errors(), String::from_utf8_lossy(&theirs));
    assert_eq!(
        native.status.as_shell_code(),
        set.ended.status.as_shell_code()
    );
}

#[test]
fn a_pipeline_is_its_programs() {
    let scratch = Scratch::new("children_pipeline");
    let (native, set) = Set::of_shell(&scratch, "printf 'a\\nb\\nc\\n' | cat | wc -l; exit 7");
    assert_same(&native, &set);
    assert_eq!(set.ended.status, Status::Code(7));
    set.assert_whole();
    let shell = set.one("sh");
    for name in ["cat", "wc"] {
        let row = set.one(name);
        assert_eq!(row["parent"], shell["pid"], "{name}");
        assert_eq!(row["exit_code"], 0, "{name}");
        let calls = set.recording(row).number("SELECT count(*) FROM events");
        assert!(calls > 0, "{name}");
    }
    // The one that prints is a copy of the shell.
    let copies: Vec<&Row> = set
        .rows
        .iter()
        .filter(|row| row["image_unix_ns"].is_null())
        .collect();
    assert_eq!(copies.len(), 1, "{:#?}", set.rows);
    assert_eq!(
        (&copies[0]["parent"], &copies[0]["recording"].is_null()),
        (&shell["pid"], &true)
    );
    assert!(
        set.ended.errors().contains("4 processes, 3 recordings"),
        "{}",
        set.ended.errors()
    );
}

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

#[test]
fn a_program_that_becomes_another_one_is_two_recordings() {
    let scratch = Scratch::new("children_exec");
    let (native, set) = Set::of_shell(&scratch, "echo before; exec cat /proc/self/comm");
    assert_same(&native, &set);
    set.assert_whole();
    let (shell, cat) = (set.one("sh"), set.one("cat"));
    assert_eq!(shell["pid"], cat["pid"]);
    assert_eq!(
        (&shell["became_another"], &cat["became_another"]),
        (&true.into(), &false.into())
    );
    assert_eq!(shell["end_unix_ns"], cat["start_unix_ns"]);
    let output =
        |row: &Row| String::from_utf8_lossy(&set.recording(row).output("stdout")).into_owned();
    assert_eq!(
        (output(shell), output(cat)),
        ("before\n".to_owned(), "cat\n".to_owned())
    );
}

/// `gcc -v` prints the command lines that it starts.
#[test]
fn a_compiler_shows_its_parts() {
    let scratch = Scratch::new("children_gcc");
    std::fs::write(scratch.join("hello.c"), "int main(void) { return 42; }\n").expect("writable");
    let program = Program::new("/usr/bin/gcc", scratch.path()).args(["hello.c", "-o", "hello"]);
    let native = program.run();
    let built = std::fs::read(scratch.join("hello")).expect("it was built");
    std::fs::remove_file(scratch.join("hello")).expect("it is there");
    let set = Set::of(&scratch, &program);
    assert_same(&native, &set);
    assert_eq!(
        std::fs::read(scratch.join("hello")).expect("it was built"),
        built
    );
    set.assert_whole();
    let names: BTreeSet<String> = set.rows.iter().map(program_of).collect();
    for name in ["gcc", "cc1", "as", "collect2", "ld"] {
        assert!(names.contains(name), "{name}: {names:?}");
        let row = set.one(name);
        assert_eq!(row["exit_code"], 0, "{row:?}");
        assert!(row["recording"].is_string(), "{row:?}");
    }
    assert_eq!(set.one("ld")["parent"], set.one("collect2")["pid"]);
    // SQL sees the set as one.
    let processes = "SELECT p.program, p.pid, p.parent, p.arguments, p.exit_code, r.parent_run \
                     FROM processes p JOIN runs r ON r.run = p.run \
                     WHERE p.pid = r.pid AND p.made_by = 'execve'";
    for path in ["set", "set.children", "set.children/*"] {
        let args = ["sql", path, "-f", "json", processes];
        let asked = Hindsight::command(&scratch, &args).run();
        assert_eq!(asked.errors(), "", "{path}");
        let rows: Vec<Row> = serde_json::from_str(&asked.text()).expect("an array of objects");
        for name in ["gcc", "cc1", "as", "collect2", "ld"] {
            let is_it = |row: &&Row| row["program"].as_str().is_some_and(|it| it.ends_with(name));
            let row = rows.iter().find(is_it);
            let row = row.unwrap_or_else(|| panic!("{name}: {rows:#?}"));
            let known = set.one(name);
            assert_eq!(
                (&row["pid"], &row["parent"], &row["exit_code"]),
                (&known["pid"], &known["parent"], &known["exit_code"]),
            );
            let arguments = row["arguments"].as_str().expect("text");
            let last = known["argv"].as_array().expect("words").last();
            assert!(arguments.ends_with(last.and_then(|it| it.as_str()).expect("text")));
            assert_eq!(row["parent_run"].is_null(), name == "gcc", "{row:?}");
        }
        let counted = "SELECT count(*) AS n, count(DISTINCT pid) AS pids FROM processes";
        let counted = Hindsight::command(&scratch, &["sql", path, counted, "--json"]).run();
        let counted = &counted.result()[0];
        assert_eq!(counted["n"], counted["pids"], "each process has one row");
    }
}

/// SQL knows of each process what the set knows: copies, what a process became, and what copies made.
#[test]
fn sql_knows_the_processes_that_are_not_recorded() {
    let scratch = Scratch::new("children_sql");
    let script = "(exit 3) & wait $!; (sh -c 'kill -9 $$'; (exit 4); true); exec cat /dev/null";
    let (native, set) = Set::of_shell(&scratch, script);
    assert_same(&native, &set);
    assert!(
        set.ended.errors().contains("5 processes, 3 recordings"),
        "{}",
        set.ended.errors()
    );
    let asked = "SELECT pid, parent, program, arguments, exit_code, exit_signal, ended_ts_ns >= ts_ns AS ends \
                 FROM processes";
    let asked = Hindsight::command(&scratch, &["sql", "set", asked, "--json"]).run();
    assert_eq!(asked.errors(), "");
    let mut told: Vec<String> = Vec::new();
    for row in asked.result().as_array().expect("rows") {
        let arguments = row["arguments"].as_str().expect("text");
        let last = arguments.split(' ').next_back().unwrap_or_default();
        let last = last.trim_end_matches('\'');
        told.push(format!(
            "{} {} {} {last} {} {}",
            row["pid"], row["parent"], row["program"], row["exit_code"], row["exit_signal"]
        ));
        let became = row["pid"] == set.rows[0]["pid"] && row["program"] != "cat";
        assert_eq!(row["ends"].is_null(), became, "{row}");
    }
    let mut known: Vec<String> = Vec::new();
    for row in &set.rows {
        let argv = row["argv"].as_array().expect("words");
        let last = argv.last().and_then(|word| word.as_str()).expect("text");
        let last = last.split(' ').next_back().unwrap_or_default();
        known.push(format!(
            "{} {} {} {last} {} {}",
            row["pid"], row["parent"], argv[0], row["exit_code"], row["exit_signal"]
        ));
    }
    told.sort();
    known.sort();
    assert_eq!(told, known, "{:#?}", set.rows);
    // One recording, asked alone, names those that it made.
    let alone = "SELECT count(*) AS n, count(program) AS named FROM processes";
    let alone = Hindsight::command(
        &scratch,
        &["sql", "set.children/sh.hindsight", alone, "--json"],
    )
    .run();
    let alone = alone.result()[0].clone();
    assert_eq!(
        (&alone["n"], &alone["named"]),
        (&6.into(), &6.into()),
        "{alone}"
    );
}

/// Programs that cannot be recorded run, and the programs that they start are recorded.
#[test]
fn a_program_that_cannot_be_recorded_runs_by_itself() {
    let scratch = Scratch::new("children_refused");
    let source = "_start: mov $1, %eax\nmov $5, %ebx\nint $0x80\n.globl _start\n";
    std::fs::write(scratch.join("old.s"), source).expect("writable");
    let script = "as --32 old.s -o old.o && ld -m elf_i386 old.o -o old && ./old; echo $?";
    let (native, set) = Set::of_shell(&scratch, script);
    assert_same(&native, &set);
    assert_eq!(set.ended.text(), "5\n");
    let old = set.one("old");
    assert_eq!(
        (old["exit_code"].as_i64(), old["recording"].is_null()),
        (Some(5), true)
    );
    let notes = old["notes"].to_string();
    assert!(notes.contains("32"), "{notes}");
    assert!(
        set.ended
            .errors()
            .contains("1 program not recorded: it is a 32-bit ELF file"),
        "{}",
        set.ended.errors()
    );
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

/// Its path leads to no file, but the process still has it.
#[test]
fn a_program_without_a_file_at_its_path_is_recorded() {
    let scratch = Scratch::new("children_deleted");
    let source = "__attribute__((noinline)) int work(int i) { return i + 1; }\n\
                  int main(void) { return work(work(work(0))); }\n";
    let worker = compiled(&scratch, "worker.c", source, &["-g"]);
    let script = r#"
import os, sys
content = open(sys.argv[1], 'rb').read()
def run(file, name):
    pid = os.fork()
    if pid == 0:
        os.execve(file, [name], os.environ)
    print(name, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
with open('copy', 'wb') as copy:
    copy.write(content)
os.chmod('copy', 0o755)
file = os.open('copy', os.O_RDONLY)
os.unlink('copy')
run(file, 'deleted')
file = os.memfd_create('content')
os.write(file, content)
run(file, 'of_memory')
"#;
    let worker = worker.to_str().expect("paths of tests are text");
    let program = Program::new("/usr/bin/python3", scratch.path()).args(["-c", script, worker]);
    let native = program.run();
    assert_eq!(native.text(), "deleted 3\nof_memory 3\n");
    let set = Set::of(&scratch, &program);
    assert_same(&native, &set);
    set.assert_whole();
    for name in ["deleted", "of_memory"] {
        let recording = set.recording(set.one(name));
        let count = "SELECT count(*) FROM calls WHERE function = 'work'";
        assert_eq!(recording.number(count), 3, "{name}");
    }
}

/// `hindsight test` keeps the recordings of failed programs.
#[test]
fn recordings_of_what_passed_are_removed() {
    let scratch = Scratch::new("children_test");
    let test = |keep: &str| {
        let args = [
            "test",
            "--record-to",
            "runs",
            "--keep",
            keep,
            "--",
            "/bin/sh",
            "-c",
        ];
        let script = "cat /dev/null; ls /does/not/exist 2> /dev/null; exit 3";
        Hindsight::command(&scratch, &args).args([script]).run()
    };
    for (run, keep, kept) in [
        ("sh", "failed", &["ls.hindsight", "sh.hindsight"][..]),
        (
            "sh-2",
            "all",
            &["cat.hindsight", "ls.hindsight", "sh.hindsight"],
        ),
        ("sh-3", "none", &[]),
    ] {
        let ended = test(keep);
        assert_eq!(ended.status, Status::Code(3), "{}", ended.errors());
        assert!(
            ended.errors().contains("ls /does/not/exist ended with 2"),
            "{}",
            ended.errors()
        );
        let dir = scratch.join("runs").join(format!("{run}.children"));
        let rows = Set::rows(&dir);
        assert_eq!(rows.len(), 3, "{rows:#?}");
        let listed = rows.iter().filter_map(|row| row["recording"].as_str());
        let listed: BTreeSet<&str> = listed.collect();
        assert_eq!(listed.into_iter().collect::<Vec<_>>(), kept, "{keep}");
        let found = std::fs::read_dir(&dir).expect("it is there").flatten();
        let found =
            found.filter(|entry| entry.path().extension().is_some_and(|e| e == "hindsight"));
        assert_eq!(found.count(), kept.len(), "{keep}");
    }
}

/// With `--copies`, forked workers are judged like programs.
#[test]
fn a_failed_worker_of_a_test_is_kept_if_asked_for() {
    let scratch = Scratch::new("children_workers");
    let source = "#include <sys/wait.h>\n#include <unistd.h>\nint work(int n) { return n == 2 ? 7 : 0; }\n\
        int main(void) { for (int i = 1; i < 4; i++) if (fork() == 0) _exit(work(i));\n\
        while (wait(0) > 0); return 0; }\n";
    compiled(&scratch, "workers.c", source, &["-O0", "-g"]);
    for (run, options, kept) in [("workers", &["--copies"][..], 1), ("workers-2", &[], 0)] {
        let test = &["test", "--record-to", "runs"][..];
        let args = [test, options, &["--", "./workers"][..]].concat();
        let ended = Hindsight::command(&scratch, &args).run();
        assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
        let dir = scratch.join("runs").join(format!("{run}.children"));
        let rows = Set::rows(&dir);
        assert_eq!(rows.len(), 4, "{rows:#?}");
        let recorded = rows.iter().filter(|row| row["recording"].is_string());
        let codes = recorded.clone().filter_map(|row| row["exit_code"].as_i64());
        assert_eq!(codes.collect::<Vec<_>>(), vec![7; kept], "{rows:#?}");
        let told = ended.errors().contains("./workers ended with 7: ");
        assert_eq!(told, kept == 1, "{}", ended.errors());
        for row in recorded {
            let name = row["recording"].as_str().expect("it is recorded");
            let calls = "SELECT count(*) FROM calls WHERE function = 'work'";
            assert_eq!(Recording::new(dir.join(name)).number(calls), 1);
        }
    }
}

/// Two programs, of which one fails, and the folder with them.
fn checks(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    for (name, code) in [("passes", "0"), ("fails", "n == 6 ? 4 : 0")] {
        let source = format!(
            "int judge(int n) {{ return {code}; }}\nint main(void) {{ return judge(6); }}\n"
        );
        compiled(&scratch, &format!("{name}.c"), &source, &["-O0", "-g"]);
    }
    scratch
}

/// Runs `hindsight test`, and returns the recorded programs that are left, with their exit codes.
fn tested(scratch: &Scratch, command: &[&str], run: &str, code: i32) -> Vec<(String, i64)> {
    let args = ["test", "--record-to", "runs", "--"];
    let ended = Hindsight::command(scratch, &[&args, command].concat()).run();
    let told = format!("{}{}", ended.text(), ended.errors());
    assert_eq!(ended.status, Status::Code(code), "{told}");
    assert!(told.contains("fails ended with 4"), "{told}");
    let dir = scratch.join("runs").join(format!("{run}.children"));
    let rows = Set::rows(&dir);
    let passed = rows.iter().find(|row| program_of(row) == "passes");
    assert!(passed.expect("it ran")["recording"].is_null(), "{rows:#?}");
    let failed = rows.iter().find(|row| program_of(row) == "fails");
    let failed = failed.expect("it ran")["recording"].as_str();
    let recording = Recording::new(dir.join(failed.expect("it failed")));
    let results = "select cast(ret as int) from calls where function = 'judge'";
    assert_eq!(recording.number(results), 4);
    let labels = format!(
        "select count(*) from runs where label(labels, 'result') = 'failed' and label(labels, 'test') = '{}'",
        command.join(" ")
    );
    assert_eq!(recording.number(&labels), 1);
    let kept = rows.iter().filter(|row| row["recording"].is_string());
    let kept = kept.map(|row| (program_of(row), row["exit_code"].as_i64().unwrap_or(-1)));
    kept.collect()
}

#[test]
fn the_recordings_of_a_failed_make_check_are_kept() {
    let scratch = checks("children_make_check");
    let makefile = "check:\n\t./passes\n\t./fails\n";
    std::fs::write(scratch.join("Makefile"), makefile).expect("writable");
    let mut kept = tested(&scratch, &["make", "check"], "make", 2);
    kept.sort();
    assert_eq!(kept, [("fails".to_owned(), 4), ("make".to_owned(), 2)]);
}

#[test]
fn the_recordings_of_a_failed_pytest_are_kept() {
    let scratch = checks("children_pytest");
    let test = "import subprocess\n\
                def test_passes(): assert subprocess.run(['./passes']).returncode == 0\n\
                def test_fails(): assert subprocess.run(['./fails']).returncode == 0\n";
    std::fs::write(scratch.join("test_programs.py"), test).expect("writable");
    let python = e2e::python_with("pytest", &["pytest==9.2.0"], "pytest");
    let python = python.to_str().expect("paths of tests are text");
    let command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider"];
    let kept = tested(&scratch, &command, "python", 1);
    assert!(kept.contains(&("fails".to_owned(), 4)), "{kept:?}");
    assert!(kept.iter().all(|(_, code)| *code != 0), "{kept:?}");
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

#[test]
fn make_builds_the_same() {
    let scratch = Scratch::new("children_make");
    let makefile =
        "all: a.o b.o c.o d.o\n\tcat a.o b.o c.o d.o > all\n%.o: %.c\n\tgcc -c $< -o $@\n";
    std::fs::write(scratch.join("Makefile"), makefile).expect("writable");
    for name in ["a", "b", "c", "d"] {
        let source = format!("int {name}(int x) {{ return x + 1; }}\n");
        std::fs::write(scratch.join(&format!("{name}.c")), source).expect("writable");
    }
    let program = Program::new("/usr/bin/make", scratch.path()).args(["-j2", "-s"]);
    let native = program.run();
    let built = std::fs::read(scratch.join("all")).expect("it was built");
    let clean = Program::new("/bin/sh", scratch.path()).args(["-c", "rm all *.o"]);
    assert_eq!(clean.run().status, Status::Code(0));
    let set = Set::of(&scratch, &program);
    assert_same(&native, &set);
    assert_eq!(
        std::fs::read(scratch.join("all")).expect("it was built"),
        built
    );
    for (name, count) in [("cc1", 4), ("as", 4), ("gcc", 4), ("cat", 1), ("make", 1)] {
        let rows = set.named(name);
        assert_eq!(rows.len(), count, "{name}: {:#?}", set.rows);
        assert!(
            rows.iter()
                .all(|row| row["exit_code"] == 0 && row["recording"].is_string())
        );
    }
}

#[test]
fn without_children_the_summary_says_how_many_there_were() {
    let scratch = Scratch::new("children_told");
    let program = Program::new("/bin/sh", scratch.path())
        .args(["-c", "true; cat < /dev/null; (exit 3); exit 0"]);
    let (ended, _) = Hindsight::record(&scratch, &[], &program);
    let told = "it started 2 processes, which are not recorded; hindsight record --children records them too";
    assert!(ended.errors().contains(told), "{}", ended.errors());
    let program = Program::new("/bin/true", scratch.path());
    let ended = Hindsight::record_command(&scratch, "alone", &[], &program).run();
    assert!(!ended.errors().contains("it started"), "{}", ended.errors());
}

const STARTER: &str = r#"#define _GNU_SOURCE
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static void done(const char *how, pid_t pid) { int status; waitpid(pid, &status, 0); printf("%s %d %d\n", how, pid, WEXITSTATUS(status)); fflush(stdout); }
int main(int count, char **words) {
  if (count > 1) { fputs("", stdout); return words[1][0] - '0'; }
  pid_t pid;
  if ((pid = fork()) == 0) { execl(words[0], "forked", "1", (char *)0); _exit(99); }
  done("fork", pid);
  if ((pid = vfork()) == 0) { execl(words[0], "vforked", "2", (char *)0); _exit(99); }
  done("vfork", pid);
  char *args[] = {"spawned", "3", 0};
  posix_spawn(&pid, words[0], 0, 0, args, environ);
  done("posix_spawn", pid);
  execl(words[0], "executed", "4", (char *)0);
  return 98;
}
"#;

/// The program itself prints which process each way has made, and how it ended.
#[test]
fn each_way_to_start_a_program_is_linked_to_its_parent() {
    let scratch = Scratch::new("children_ways");
    let starter = compiled(&scratch, "starter.c", STARTER, &["-O0", "-g"]);
    let set = Set::of(&scratch, &Program::new(&starter, scratch.path()));
    assert_eq!(set.ended.status, Status::Code(4), "the last program's code");
    set.assert_whole();
    let first = set.one("starter");
    assert_eq!(first["became_another"], true);
    for (line, name) in set
        .ended
        .text()
        .lines()
        .zip(["forked", "vforked", "spawned"])
    {
        let row = set.one(name);
        let words: Vec<&str> = line.split(' ').collect();
        assert_eq!(row["pid"].to_string(), words[1], "{line}");
        assert_eq!(row["exit_code"].to_string(), words[2], "{line}");
        assert_eq!(row["parent"], first["pid"], "{line}");
    }
    let executed = set.one("executed");
    assert_eq!(
        (&executed["pid"], &executed["exit_code"]),
        (&first["pid"], &4.into())
    );

    let sql = "select child.run as run, child.pid as pid, child.parent_pid as parent_pid, parent.pid as its_pid \
               from runs child join runs parent on child.parent_run = parent.run order by child.pid, child.run";
    let asked = Hindsight::command(&scratch, &["sql", "set", sql, "--json"]).run();
    let rows: Vec<Row> = serde_json::from_value(asked.result()).expect("rows");
    assert_eq!(rows.len(), 4, "{rows:#?}");
    for row in &rows {
        assert_eq!(row["its_pid"], first["pid"], "{rows:#?}");
        let is_same = row["pid"] == first["pid"];
        assert!(is_same || row["parent_pid"] == first["pid"], "{rows:#?}");
    }
    let ends = "select pid, exit_code from processes order by exit_code";
    let asked = Hindsight::command(&scratch, &["sql", "set", ends, "--json"]).run();
    let rows: Vec<Row> = serde_json::from_value(asked.result()).expect("rows");
    let codes: Vec<i64> = rows
        .iter()
        .filter_map(|row| row["exit_code"].as_i64())
        .collect();
    assert_eq!(codes, [1, 2, 3, 4], "{rows:#?}");
}

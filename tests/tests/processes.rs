//! Goal: the processes that a program starts, and the one that it becomes, are events, and change nothing for it. Method: the
//! fixture writes down its children; a program execs another one in the middle of traced calls.

use e2e::{
    Comparison, Hindsight, Nesting, Program, Recording, Scratch, Status, compiled, fixture_artifact,
};

#[test]
fn every_child_of_fork_is_an_event_with_its_process_id() {
    let scratch = Scratch::new("fork_events");
    let told = scratch.join("children");
    let program = Program::new(fixture_artifact("fork", "fork"), scratch.path()).args([&told]);
    let (ended, recording) = Hindsight::record(&scratch, &[], &program);
    assert_eq!(ended.status, Status::Code(3), "{}", ended.errors());
    let told = std::fs::read_to_string(&told).expect("the program wrote it");
    let told: Vec<i64> = told.lines().map(|l| l.parse().expect("a pid")).collect();
    let rows = recording.rows("SELECT value, tid FROM events WHERE kind = 'fork' ORDER BY seq");
    let number = |name: &str| -> Vec<i64> {
        let values = rows.iter().map(|row| row[name].as_i64());
        values.map(|v| v.expect("a number")).collect()
    };
    assert_eq!(number("value"), told, "the children, in order");
    assert_eq!(told.len(), 32);
    let mut threads = number("tid");
    threads.dedup();
    assert_eq!(
        threads.len(),
        3,
        "the main thread, another one, the main one"
    );
    // Why nothing is known of the children.
    let reasons = recording.rows(
        "SELECT program IS NULL AS is_child, count(*) AS number, min(reason) AS reason FROM processes GROUP BY 1 ORDER BY 1",
    );
    assert_eq!(reasons[0]["reason"], serde_json::Value::Null);
    assert_eq!(reasons[1]["number"], 32);
    let reason = reasons[1]["reason"].as_str().expect("a reason");
    assert!(reason.contains("record --children"), "{reason}");
    assert_eq!(recording.command("check", &[]).status, Status::Code(0));
}

/// While such a child borrows the thread nothing is recorded; the parent records it when it continues.
#[test]
fn every_child_of_vfork_is_an_event_inside_the_call_that_made_it() {
    let both = Comparison::of("spawn", "spawn", &[]);
    let inside = both.recording.number(
        "SELECT count(*) FROM events e JOIN calls c ON c.function = 'with_vfork' AND c.tid = e.tid \
         AND e.seq BETWEEN c.start_seq AND c.end_seq WHERE e.kind = 'fork' AND e.value > 0",
    );
    assert_eq!(inside, 20);
    // And those of posix_spawn, which system and popen call too.
    let all = "SELECT count(DISTINCT value) FROM events WHERE kind = 'fork'";
    assert_eq!(both.recording.number(all), 51, "each with its own number");
}

const CLONES: &str = r#"#define _GNU_SOURCE
#include <errno.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static char stack[65536];
static int child(void *code) { return *(int *)code; }
static void told(const char *by, pid_t pid) {
  int status;
  waitpid(pid, &status, 0);
  printf("%s %d %d\n", by, pid, WEXITSTATUS(status));
  fflush(stdout);
}
int main(void) {
  int code = 3;
  pid_t pid = clone(child, stack + sizeof stack, SIGCHLD, &code);
  told("clone", pid);
  if ((pid = fork()) == 0) _exit(4);
  told("clone", pid);
  if ((pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)) == 0) _exit(5);
  told("clone", pid);
  if ((pid = syscall(SYS_fork)) == 0) _exit(6);
  told("fork", pid);
  struct clone_args args = {.exit_signal = SIGCHLD};
  if ((pid = syscall(SYS_clone3, &args, sizeof args)) == 0) _exit(7);
  told("clone3", pid);
  code = 8;
  pid = clone(child, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, &code);
  told("clone", pid);
  char *words[] = {"/bin/false", 0};
  posix_spawn(&pid, words[0], 0, 0, words, 0);
  told("clone3", pid);
  puts(clone(child, stack + sizeof stack, CLONE_SIGHAND, &code) < 0 && errno == EINVAL ? "refused" : "made");
  puts(syscall(SYS_clone3, (void *)8, sizeof args) < 0 && errno == EFAULT ? "refused" : "made");
  return 0;
}
"#;

/// The program itself prints which processes it has made, and which calls were refused.
#[test]
fn children_of_clone_and_of_the_function_syscall_are_events() {
    let scratch = Scratch::new("clone_events");
    for (name, flags) in [("dynamic", &["-g"][..]), ("static", &["-g", "-static"])] {
        let path = compiled(&scratch, &format!("{name}.c"), CLONES, flags);
        let program = Program::new(path, scratch.path());
        let recorded = Hindsight::record_command(&scratch, name, &["--no-syscalls"], &program);
        let ended = recorded.run();
        assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
        let recording = Recording::new(scratch.join(&format!("{name}.hindsight")));
        let rows = recording.rows("SELECT value FROM events WHERE kind = 'fork' ORDER BY seq");
        let pids = rows.iter().map(|row| row["value"].to_string());
        let text = ended.text();
        let mut told: Vec<&str> = text.lines().collect();
        assert_eq!(told.split_off(7), ["refused"; 2], "{text}");
        let told = told.iter().filter_map(|line| line.split(' ').nth(1));
        assert_eq!(pids.collect::<Vec<_>>(), told.collect::<Vec<_>>(), "{name}");
        let said = "it started 7 processes, which are not recorded; hindsight record --children records them too";
        assert!(ended.errors().contains(said), "{}", ended.errors());
    }
}

#[test]
fn processes_tells_the_system_call_that_made_each_child() {
    let scratch = Scratch::new("clones");
    let path = compiled(&scratch, "clones.c", CLONES, &["-g"]);
    let program = Program::new(path, scratch.path());
    let (ended, recording) = Hindsight::record(&scratch, &["--syscalls"], &program);
    assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
    let rows = recording.rows(
        "SELECT made_by || ' ' || pid || ' ' || exit_code AS told FROM processes \
         WHERE made_by <> 'execve' ORDER BY seq",
    );
    let rows: Vec<&str> = rows.iter().filter_map(|row| row["told"].as_str()).collect();
    let text = ended.text();
    let told: Vec<&str> = text.lines().take(7).collect();
    assert_eq!(rows, told);
    let said = "it started 7 processes, which are not recorded";
    assert!(ended.errors().contains(said), "{}", ended.errors());
}

const OWN_FORKS: &str = r#"
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static long own(long number) {
  long result;
  __asm__ volatile("syscall" : "=a"(result) : "a"(number) : "rcx", "r11", "memory");
  return result;
}
int main(int argc, char **argv) {
  if (argc > 1) {
    if (own(SYS_fork) == 0)
      _exit(0);
    wait(0);
  }
  return 0;
}
"#;

/// No event tells of a child that a `syscall` instruction of the program made, but the kernel knows that there was one.
#[test]
fn a_child_of_an_own_system_call_is_said_not_to_be_counted() {
    let scratch = Scratch::new("own_forks");
    let path = compiled(&scratch, "own.c", OWN_FORKS, &["-g"]);
    let run = |name: &str, options: &[&str], args: &[&str]| {
        let program = Program::new(&path, scratch.path()).args(args);
        let ended = Hindsight::record_command(&scratch, name, options, &program).run();
        assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
        ended.errors()
    };
    let said = "it started processes by system calls of its own, which are neither recorded nor counted; \
                hindsight record --syscalls counts them, --children records them";
    let errors = run("uncounted", &[], &["fork"]);
    assert!(errors.contains(said), "{errors}");
    let errors = run("none", &[], &[]);
    assert!(!errors.contains("it started"), "{errors}");
    let errors = run("counted", &["--syscalls"], &["fork"]);
    assert!(errors.contains("it started 1 process,"), "{errors}");
}

/// Go makes the system calls itself, and those of a static program are not recorded.
#[test]
fn processes_that_go_starts_are_said_not_to_be_counted() {
    let scratch = Scratch::new("go_starts");
    let program =
        Program::new(fixture_artifact("go", "counts"), scratch.path()).args(["/bin/false"]);
    let (ended, _) = Hindsight::record(&scratch, &[], &program);
    assert_eq!(ended.status, Status::Code(1), "{}", ended.errors());
    let said = "neither recorded nor counted; hindsight record --children records them";
    assert!(ended.errors().contains(said), "{}", ended.errors());
}

#[test]
fn a_program_that_becomes_another_one_ends_its_calls_and_keeps_its_status() {
    let scratch = Scratch::new("becomes");
    let shell = ["/bin/sh", "-c", "cat; echo after in $$ >&2; kill -TERM $$"];
    let program = Program::new(fixture_artifact("becomes", "becomes"), scratch.path())
        .args(shell)
        .stdin("input for the other one\n");
    let native = program.run();
    assert_eq!(native.status, Status::Signal(15));
    let (recorded, recording) = Hindsight::record(&scratch, &[], &program);
    assert_eq!(native.text(), recorded.text(), "{}", recorded.errors());
    assert_eq!(recorded.status, Status::Code(128 + 15));
    assert!(
        recorded
            .errors()
            .contains("the program became another one, /bin/sh"),
        "{}",
        recorded.errors()
    );
    assert_eq!(recording.command("check", &[]).status, Status::Code(0));
    assert_eq!(recording.number("SELECT count(*) FROM gaps"), 0);
    let exec = recording.row("SELECT seq, tid, text FROM events WHERE kind = 'exec'");
    assert_eq!(exec["text"], "/bin/sh");
    let start = recording.row("SELECT value FROM events WHERE kind = 'process_start'");
    assert_eq!(exec["tid"], start["value"], "the main thread did it");
    let open = recording.rows(
        "SELECT function FROM calls WHERE end_seq > (SELECT seq FROM events WHERE kind = 'exec') AND open_at_end ORDER BY function",
    );
    let open: Vec<_> = open.iter().filter_map(|r| r["function"].as_str()).collect();
    assert_eq!(open, ["in_thread", "inner", "main", "outer", "waiting"]);
    let overview = recording.command("overview", &[]).text();
    let became = format!(
        "from seq {} on it was another program, /bin/sh, whose calls are not recorded",
        exec["seq"]
    );
    assert!(overview.contains(&became), "{overview}");
    let facts = recording.row(
        "SELECT (SELECT count(*) FROM calls WHERE function = 'work' AND NOT unwound) AS work, \
         (SELECT count(*) FROM calls WHERE end_seq IS NULL) AS unfinished, \
         (SELECT count(*) FROM events WHERE kind = 'process_exit') AS exits, \
         (SELECT count(*) FROM calls WHERE start_seq > (SELECT seq FROM events WHERE kind = 'exec')) AS later",
    );
    let number = |name: &str| facts[name].as_i64();
    assert_eq!(
        (
            number("work"),
            number("unfinished"),
            number("exits"),
            number("later")
        ),
        (Some(1000), Some(0), Some(1), Some(0)),
        "{facts:?}"
    );
    // Only traced programs write to the recording: the other program's output is not in it.
    assert_eq!(recording.output("stdout"), before_the_exec(&native.text()));
}

/// The hint that another program can be recorded by itself would be wrong.
#[test]
fn a_32_bit_program_that_a_program_becomes_is_named_with_the_reason() {
    let scratch = Scratch::new("becomes_narrow");
    let narrow = fixture_artifact("narrow", "narrow");
    let program =
        Program::new(fixture_artifact("becomes", "becomes"), scratch.path()).args([&narrow]);
    let (ended, recording) = Hindsight::record(&scratch, &[], &program);
    let errors = ended.errors();
    assert!(
        errors.contains("which is not recorded and cannot be: it is a 32-bit ELF file"),
        "{errors}"
    );
    assert_eq!(recording.calls_of("work"), 1000);
}

/// A program that tried in vain to become another one is still itself.
#[test]
fn a_failed_execve_is_told() {
    let scratch = Scratch::new("exec_fails");
    let fixture = fixture_artifact("becomes", "becomes");
    let program = Program::new(&fixture, scratch.path()).args(["--failing"]);
    let (ended, recording) = Hindsight::record(&scratch, &[], &program);
    assert_eq!(ended.status, Status::Code(3), "{}", ended.errors());
    assert!(!ended.errors().contains("became"), "{}", ended.errors());
    let told = recording.rows(
        "SELECT kind, text, value FROM events WHERE kind IN ('exec', 'exec_failed') ORDER BY seq",
    );
    let told: Vec<String> = told
        .iter()
        .map(|row| match row["text"].as_str() {
            Some(path) => path.trim_end_matches(char::is_numeric).to_owned(),
            None => format!("{} {}", row["kind"], row["value"]),
        })
        .collect();
    assert_eq!(
        told,
        [
            "/nonexistent/program",
            "\"exec_failed\" 2",
            "/dev/null",
            "\"exec_failed\" 13",
            "/proc/self/fd/",
            "\"exec_failed\" 13"
        ]
    );
    let process = recording.row("SELECT program, exit_code FROM processes");
    assert_eq!(process["exit_code"], 3, "{process:?}");
    let overview = recording.command("overview", &[]).text();
    assert!(overview.contains("exited with code 3"), "{overview}");
    assert!(!overview.contains("another program"), "{overview}");
    let caught = recording.prompt(&["catch exec"]);
    let refused = "executed no other one";
    assert!(caught.errors().contains(refused), "{}", caught.errors());
}

#[test]
fn a_program_that_is_executed_by_its_descriptor_is_told() {
    let scratch = Scratch::new("exec_open");
    let fixture = fixture_artifact("becomes", "becomes");
    let program = Program::new(&fixture, scratch.path()).args(["--open", "/bin/true"]);
    let (ended, recording) = Hindsight::record(&scratch, &[], &program);
    assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
    assert!(
        ended
            .errors()
            .contains("became another one, /proc/self/fd/"),
        "{}",
        ended.errors()
    );
    let processes = recording.rows("SELECT program, exit_code FROM processes ORDER BY seq");
    assert_eq!(processes.len(), 2, "{processes:?}");
    assert_eq!(processes[1]["exit_code"], 0, "{processes:?}");
}

/// What the program wrote itself.
fn before_the_exec(text: &str) -> Vec<u8> {
    let end = text.find("input for").expect("the other program copied it");
    text.as_bytes()[..end].to_vec()
}

/// Children are events regardless of the traced functions.
#[test]
fn forks_are_events_whatever_is_traced() {
    let scratch = Scratch::new("fork_filtered");
    let program = Program::new(fixture_artifact("fork", "fork"), scratch.path()).ending(3);
    let options = ["-f", "fork_once", "-f", "digest"];
    let both = Comparison::of_program(scratch, &program, &options, Nesting::Proper);
    let forks = "SELECT count(*) FROM events WHERE kind = 'fork'";
    assert_eq!(both.recording.number(forks), 32);
    assert_eq!(both.recording.calls_of("fork_once"), 31);
}

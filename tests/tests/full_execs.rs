//! Goal: a program that becomes another one is recorded to there, and the other one from there on; processes that it makes are counted.
//! Method: programs that execute others are recorded, and compared with a run without recording.

use e2e::{Ended, Hindsight, Program, Recording, Scratch, Status, fixture_artifact};
use serde_json::Value;

struct Run {
    scratch: Scratch,
    ended: Ended,
}

/// Records a program: what it prints and how it ends are as without recording.
fn recorded(name: &str, program: &str, args: &[&str], options: &[&str]) -> Run {
    let scratch = Scratch::new(name);
    let program = Program::new(program, scratch.path()).args(args);
    let native = program.run();
    let options = [&["--full"], options].concat();
    let ended = Hindsight::record_command(&scratch, "rec", &options, &program).run();
    let of = |ended: &Ended| (ended.text(), ended.status);
    assert_eq!(of(&ended), of(&native), "{}", ended.errors());
    Run { scratch, ended }
}

impl Run {
    /// The recording of that name, which runs again.
    fn recording(&self, name: &str) -> Recording {
        let recording = Recording::new(self.scratch.join(name));
        let checked = recording.command("check", &["--replay"]);
        let text = checked.text() + &checked.errors();
        assert_eq!(checked.status, Status::Code(0), "{text}");
        recording
    }
}

#[test]
fn what_a_program_becomes_is_recorded_too() {
    let becomes = fixture_artifact("becomes", "becomes");
    let fib = fixture_artifact("fib", "fib");
    let fib = fib.to_str().expect("a path");
    let run = recorded(
        "full_becomes",
        becomes.to_str().expect("a path"),
        &[fib, "15"],
        &[],
    );
    let errors = run.ended.errors();
    let told = format!("it became {fib}, recorded as ");
    assert!(errors.contains(&told), "{errors}");
    assert!(errors.contains("rec-fib.hindsight"), "{errors}");
    let first = run.recording("rec.hindsight");
    assert_eq!(first.calls_of("work"), 1000);
    let last = first.row("SELECT kind, text FROM events ORDER BY seq DESC LIMIT 1");
    assert_eq!(last["kind"], "exec", "{last:?}");
    assert_eq!(last["text"], fib, "{last:?}");
    let call = first.row("SELECT args, result FROM syscalls WHERE name = 'execve'");
    assert!(call["args"].as_str().is_some_and(|args| args.contains(fib)));
    assert!(call["result"].is_null(), "{call:?}");
    let overview = first.command("overview", &[]).text();
    assert!(overview.contains("became another program"), "{overview}");
    let second = run.recording("rec-fib.hindsight");
    assert_eq!(second.calls_of("fib"), 1973);
    let end = second.row("SELECT kind FROM events ORDER BY seq DESC LIMIT 1");
    assert_eq!(end["kind"], "process_exit", "{end:?}");
    let facts = second.command("info", &["--json"]).result();
    assert_eq!(facts["argv"], serde_json::json!([fib, "15"]), "{facts}");
    // Both are the same process.
    let sql = "SELECT pid, parent_pid, parent_run FROM runs";
    let (before, after) = (first.row(sql), second.row(sql));
    assert!(
        before["pid"].as_i64().is_some_and(|pid| pid > 1),
        "{before:?}"
    );
    assert!(before["parent_run"].is_null(), "{before:?}");
    for known in ["pid", "parent_pid"] {
        assert_eq!(before[known], after[known], "{before:?} {after:?}");
    }
    let executed = "SELECT b.run FROM runs a JOIN runs b ON a.parent_run = b.run";
    let found = Hindsight::command(&run.scratch, &["sql", "*.hindsight", executed, "--json"]).run();
    assert!(found.text().contains("\"rec\""), "{}", found.text());
}

#[test]
fn a_thread_executes_another_program() {
    let code = "import threading, os\n\
                t = threading.Thread(target=lambda: os.execv('/bin/echo', ['echo', 'became']))\n\
                t.start()\nt.join()";
    let run = recorded(
        "full_thread_becomes",
        "/usr/bin/python3",
        &["-S", "-c", code],
        &[],
    );
    assert!(run.ended.text().contains("became"), "{}", run.ended.text());
    let echo = run.recording("rec-echo.hindsight");
    assert_eq!(String::from_utf8_lossy(&echo.output("stdout")), "became\n");
    let kinds = run.recording("rec.hindsight");
    let last = kinds.row("SELECT kind FROM events ORDER BY seq DESC LIMIT 1");
    assert_eq!(last["kind"], "exec", "{last:?}");
}

#[test]
fn a_chain_of_programs_is_told_as_json() {
    let run = recorded(
        "full_chain",
        "/usr/bin/env",
        &[
            "A=1",
            "/usr/bin/env",
            "B=2",
            "/bin/sh",
            "-c",
            "echo $A$B; exit 6",
        ],
        &["--json"],
    );
    let errors = run.ended.errors();
    let answer: Value = serde_json::from_str(&errors).unwrap_or_else(|_| panic!("{errors}"));
    let facts = &answer["result"];
    let next = &facts["next"]["next"];
    assert_eq!(next["exit_code"], 6, "{facts}");
    assert_eq!(next["became"], Value::Null, "{facts}");
    assert!(
        facts["became"]
            .as_str()
            .is_some_and(|program| program.ends_with("env"))
    );
    for part in [facts, &facts["next"], next] {
        assert!(part["instructions"].as_i64() > Some(10_000), "{facts}");
        assert_eq!(part["incomplete"], Value::Null, "{facts}");
    }
}

#[test]
fn processes_are_counted_that_a_program_makes() {
    let run = recorded(
        "full_children",
        "/usr/bin/perl",
        &[
            "-e",
            "for (1, 2) { my $pid = fork; exit 0 unless $pid; waitpid $pid, 0 } exit 3",
        ],
        &[],
    );
    let errors = run.ended.errors();
    let told = "it started 2 processes, which are not recorded";
    assert!(errors.contains(told), "{errors}");
    let recording = Recording::new(run.scratch.join("rec.hindsight"));
    let forks = "SELECT count(*) FROM events WHERE kind = 'fork' AND value > 0";
    assert_eq!(recording.number(forks), 2);
}

#[test]
fn a_program_that_cannot_be_executed_changes_nothing() {
    let run = recorded(
        "full_no_exec",
        "/usr/bin/perl",
        &[
            "-e",
            "{ no warnings; exec '/nowhere/program' } print 'on'; exit 4",
        ],
        &[],
    );
    assert!(
        !run.ended.errors().contains("it became"),
        "{}",
        run.ended.errors()
    );
    let recording = run.recording("rec.hindsight");
    let call = recording.row("SELECT errno FROM syscalls WHERE name = 'execve' LIMIT 1");
    assert_eq!(call["errno"], "ENOENT", "{call:?}");
}

/// A 32-bit program cannot be recorded: it goes on by itself.
#[test]
fn a_32_bit_program_that_it_becomes_is_not_recorded() {
    let becomes = fixture_artifact("becomes", "becomes");
    let narrow = fixture_artifact("narrow", "narrow");
    let run = recorded(
        "full_becomes_narrow",
        becomes.to_str().expect("a path"),
        &[narrow.to_str().expect("a path")],
        &[],
    );
    let errors = run.ended.errors();
    assert!(errors.contains("is not recorded"), "{errors}");
    assert!(errors.contains("32-bit ELF file"), "{errors}");
    assert_eq!(run.recording("rec.hindsight").calls_of("work"), 1000);
    assert!(!run.scratch.join("rec-narrow.hindsight").exists());
}

//! Goal: catchpoints stop where the kernel and the C++ runtime report something, say what it was, and do not change
//! it. Method: a program in which everything happens once, and a native run of it.

use std::path::PathBuf;

use e2e::{Live, fixture_artifact};

fn program() -> PathBuf {
    fixture_artifact("happens", "happens")
}

fn prompt(live: &Live, lines: &[&str]) -> String {
    let mut words = vec!["repl"];
    for line in lines {
        words.extend(["--cmd", line]);
    }
    let ended = live.command(&words).run();
    ended.text() + &ended.errors()
}

/// The parts are there, one after the other.
fn assert_in_order(text: &str, parts: &[&str]) {
    let mut from = 0;
    for part in parts {
        match text[from..].find(part) {
            Some(at) => from += at + part.len(),
            None => panic!("\"{part}\" is not there, or not behind the one before:\n{text}"),
        }
    }
}

#[test]
fn everything_is_caught_where_it_happens() {
    let live = Live::started("catches", &["--stop-on-entry"], &program(), &[]);
    let said = prompt(
        &live,
        &[
            "catch fork",
            "catch vfork",
            "catch exec",
            "catch syscall getppid",
            "info b",
            "continue",
            "bt",
            "continue",
            "continue",
            "print $rax",
            "continue",
            "continue",
            "print $rip == 0",
            "continue",
        ],
    );
    assert_in_order(
        &said,
        &[
            "Catchpoint 1: fork",
            "Catchpoint 4: syscall getppid",
            "stopped at catchpoint 1 (hit 1): fork: new process ",
            "forks",
            "main",
            "stopped at catchpoint 2 (hit 1): vfork: new process ",
            "stopped at catchpoint 4 (hit 1): system call getppid",
            "$1 = 110",
            "stopped at catchpoint 4 (hit 2): system call getppid",
            "stopped at catchpoint 3 (hit 1): exec: /",
            "happens",
            "$2 = false",
            "ended with exit code 5",
        ],
    );
    assert_eq!(live.output(), "first\n3 0 7 1\nagain\n", "as it does alone");
}

#[test]
fn calls_are_caught_before_they_are_made() {
    let live = Live::started("catches-calls", &["--stop-on-entry"], &program(), &[]);
    let said = prompt(
        &live,
        &[
            "catch syscall write if $rdi == 1",
            "continue",
            "print $rdx",
            "x/s $rsi",
            "finish",
            "print $rax",
            "continue",
            "set $rdx = 4",
            "disable 1",
            "catch syscall",
            "continue",
            "delete 1 2",
            "info b",
        ],
    );
    assert_in_order(
        &said,
        &[
            "Catchpoint 1: syscall write",
            "stopped at catchpoint 1 (hit 1): system call write",
            "$1 = 6",
            "\"first\\n\"",
            "$2 = 6",
            "stopped at catchpoint 1 (hit 2): system call write",
            "Catchpoint 2: syscall",
            "stopped at catchpoint 2 (hit 1): system call ",
            "There are none.",
        ],
    );
    let refused = live.refused(&["catch", "syscall", "wirte"]);
    assert_eq!(refused["hint"], "did you mean write?", "{refused:#}");
    // The argument was changed: the call wrote less, which the program notices.
    assert_eq!(live.run_to_end(), 1);
    assert_eq!(live.output(), "first\n3 0 ");
}

/// Running threads are included: a catchpoint that is set later sees their next call, and none after it is removed.
#[test]
fn a_call_of_a_running_thread_is_caught() {
    let sleeper = fixture_artifact("control", "control_O0");
    let live = Live::started(
        "catches-running",
        &["--stop-on-entry"],
        &sleeper,
        &["spinning"],
    );
    live.ask(&["continue", "--timeout", "1"]);
    live.ask(&["catch", "syscall", "clock_nanosleep"]);
    let stop = live.ask(&["await"]);
    let stop = &stop["stop"];
    assert_eq!(stop["reason"], "happened", "{stop:#}");
    assert_eq!(stop["what"], "system call clock_nanosleep");
    let again = live.ask(&["continue"]);
    assert_eq!(again["stop"]["hits"], 2, "{again:#}");
    live.ask(&["catch", "remove", "--all"]);
    let on = live.ask(&["continue", "--timeout", "1"]);
    assert_eq!(on["status"], "running", "{on:#}");
    live.ask(&["stop"]);
}

#[test]
fn handlers_of_exceptions_are_caught() {
    let thrower = fixture_artifact("control", "throws_O0");
    let live = Live::started("catches-cxx", &["--stop-on-entry"], &thrower, &[]);
    let words = [
        "catch catch",
        "continue",
        "up",
        "delete",
        "info breakpoints",
    ];
    let said = prompt(&live, &words);
    assert!(said.contains("\nThere are none.\n"), "{said}");
    assert_in_order(
        &said,
        &[
            "Catchpoint 1: catch",
            "stopped at catchpoint 1 (hit 1): int",
        ],
    );
    live.ask(&["stop"]);
}

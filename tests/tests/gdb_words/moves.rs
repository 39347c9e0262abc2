//! What changes where the program is: return, jump, kill, calls.

use e2e::{Live, Status, marked_line};

use super::{gdb, program, prompt};

#[test]
fn return_and_jump_do_what_they_do_in_gdb() {
    let live = Live::started("gdb-return", &["--break", "leaf"], &program(), &[]);
    let theirs = gdb(
        &live,
        &[
            "break leaf",
            "run > /dev/null",
            "return 5",
            "next",
            "p called",
        ],
    );
    let said = prompt(&live, &["return 5", "next", "p called"]);
    assert!(theirs.ends_with(" = 5\n"), "{theirs}");
    assert_eq!(said.lines().last(), Some("$1 = 5"), "{said}");
    let first = marked_line("control", "control.c", "leaf: first");
    let last = marked_line("control", "control.c", "leaf: last");
    let said = prompt(
        &live,
        &[
            "c",
            &format!("tbreak {last}"),
            "c",
            "set var x = 50",
            &format!("tbreak {last}"),
            // The breakpoint there stops again.
            &format!("jump {first}"),
            "c",
            "p twice",
        ],
    );
    assert_eq!(said.lines().last(), Some("$2 = 100"), "{said}");
    let said = prompt(&live, &["jump bump"]);
    assert!(said.contains("bump is not in leaf"), "{said}");
    // The call that `return` ended is recorded as one that returned.
    live.ask(&["break", "remove", "--all"]);
    assert_eq!(live.run_to_end(), 7);
    let calls =
        "SELECT count(*) AS calls, count(dur_ns) AS ended FROM calls WHERE function = 'leaf'";
    let calls = live.recording().row(calls);
    // Through the pointer, and by `middle`.
    let counts = (calls["calls"].as_i64(), calls["ended"].as_i64());
    assert_eq!(counts, (Some(2), Some(2)));
}

#[test]
fn a_jump_stops_at_what_is_at_its_target() {
    let live = Live::started("gdb-jump", &["--break", "leaf"], &program(), &[]);
    let first = marked_line("control", "control.c", "leaf: first");
    let last = marked_line("control", "control.c", "leaf: last");
    let (tbreak, jump) = (format!("tbreak {last}"), format!("jump {last}"));
    let theirs = gdb(&live, &["break leaf", "run > /dev/null", &tbreak, &jump]);
    assert!(theirs.contains("Temporary breakpoint 2, leaf"), "{theirs}");
    let said = prompt(&live, &[&tbreak, &jump]);
    assert!(
        said.contains("stopped at breakpoint 2 (hit 1): leaf"),
        "{said}"
    );
    let said = prompt(
        &live,
        &[
            "delete 1",
            &format!("logpoint {first} 'here'"),
            &format!("break {last}"),
            &format!("jump {first}"),
            &jump,
            "info breakpoints",
        ],
    );
    assert!(said.contains("breakpoint 4 (hit 2): leaf"), "{said}");
    let logged = said
        .lines()
        .find(|line| line.trim_start().starts_with("3 |"));
    let hits = logged.and_then(|line| line.split('|').nth(3));
    assert_eq!(hits.map(str::trim), Some("1"), "{said}");
}

/// What gdb calls kill ends the session, in the shell and at the prompt.
#[test]
fn kill_ends_the_program() {
    for at_prompt in [false, true] {
        let live = Live::started("gdb-kill", &["--break", "leaf"], &program(), &[]);
        let said = match at_prompt {
            true => prompt(&live, &["kill"]),
            false => live.command(&["kill"]).run().text(),
        };
        assert!(said.contains("killed by SIGKILL"), "{said}");
        let known = live.command(&["status"]).run();
        assert_ne!(known.status, Status::Code(0), "{}", known.text());
    }
}

/// The program calls none of these functions.
#[test]
fn functions_of_other_modules_are_called() {
    let live = Live::started("gdb-calls", &["--break", "leaf"], &program(), &[]);
    let text = |words: &[&str]| {
        let ended = live.command(words).run();
        ended.text() + &ended.errors()
    };
    let said = text(&["call", "atoi(\"4711\")"]);
    assert!(said.contains(" = 4711"), "{said}");
    assert!(said.contains("atoi is a function of libc.so.6"), "{said}");
    // Debug information of the C library names it, and describes nothing, as it is written in assembler.
    let said = text(&["call", "getpid()"]);
    let pid = said
        .lines()
        .find_map(|line| line.strip_prefix('$')?.split_once(" = "));
    let (_, pid) = pid.unwrap_or_else(|| panic!("{said}"));
    assert!(text(&["threads"]).contains(&format!(" {pid} |")), "{said}");
    let said = text(&["call", "puts(\"from the prompt\")"]);
    assert!(!said.contains("error"), "{said}");
    text(&["call", "fflush(0)"]);
    assert!(
        text(&["output"]).contains("from the prompt"),
        "{}",
        text(&["output"])
    );
}

//! The prompt on a pseudo terminal: Ctrl-C, lines that come back, and what it shows.

use std::path::Path;

use e2e::{Live, Program, Signal, Status, kill, marked_line, wait_until};

use super::program;

/// Runs `hindsight repl` on a pseudo terminal; each step waits for a text, then types another one.
fn on_terminal(live: &Live, words: &[&str], steps: &[(&str, &str)]) -> String {
    let driver = Path::new(env!("CARGO_MANIFEST_DIR")).join("../repl/tests/common/terminal.py");
    let mut args = vec![driver.to_str().expect("text").to_owned(), "100".to_owned()];
    for (wait, send) in steps {
        args.extend(["--step", wait, send].map(str::to_owned));
    }
    args.push("--".to_owned());
    let command: Program = live.command(&[&["repl"], words].concat());
    let ended = command
        .env("TERM", "xterm")
        .env("NO_COLOR", "1")
        .env("PAGER", "cat")
        .wrapped(
            Path::new("/usr/bin/env"),
            [&["python3".to_owned()], &args[..]].concat(),
        )
        .run();
    assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
    ended.text()
}

#[test]
fn ctrl_c_stops_the_program_that_is_waited_for() {
    let live = Live::new("repl-ctrl-c");
    let text = on_terminal(
        &live,
        &[&program(), "spinning"],
        &[
            ("live ", "continue\r"),
            // No more of them after the answer: one more would end the wait.
            ("until:stopping the program", "\x03"),
            ("stopped on request", ""),
            ("live ", "print tempo\r"),
            ("$1 = 120", ""),
            ("live ", "set tempo 90\r"),
            ("120 -> 90", ""),
            ("live ", "continue\r"),
            ("exit code 7", ""),
            ("counter 55", ""),
            ("live ended> ", "quit\r"),
            ("has ended with exit code 7", ""),
        ],
    );
    assert!(!text.contains("error"), "{text}");
}

#[test]
fn ctrl_c_ends_the_recording_of_instructions() {
    let live = Live::new("repl-full-ctrl-c");
    let text = on_terminal(
        &live,
        &[&program(), "spinning"],
        &[
            ("live ", "full on\r"),
            // Once: a second one would not wait until what was recorded is checked.
            ("recording: instruction", "\x03"),
            ("stopped on request", ""),
            ("instructions recorded", ""),
            ("live ", "step-back -i\r"),
            ("past ", "goto live\r"),
            ("live ", "set tempo 90\r"),
            ("120 -> 90", ""),
            ("live ", "continue\r"),
            ("exit code 7", ""),
            ("live ended> ", "quit\r"),
            ("has ended with exit code 7", ""),
        ],
    );
    assert!(!text.contains("error"), "{text}");
}

/// As typed by a script, without waits: the second while the program runs.
#[test]
fn lines_that_arrive_at_once_run_in_turn_live() {
    let live = Live::new("repl-at-once");
    let text = on_terminal(
        &live,
        &[&program()],
        &[
            (
                "live ",
                "break middle\rcontinue\rprint 6 * 7\rcontinue\rquit\r",
            ),
            ("middle", ""),
            ("42", ""),
            ("exit code 7", ""),
        ],
    );
    assert!(!text.contains("error"), "{text}");
}

/// The daemon is suspended, so that the program does not stop at the first Ctrl-C.
#[test]
fn a_second_ctrl_c_leaves_the_waiting() {
    let live = Live::new("repl-left");
    live.start(&["--stop-on-entry"], Path::new(&program()), &["spinning"]);
    let daemon = live.daemon().expect("a daemon");
    let waiting = live
        .command(&["repl", "--cmd", "continue", "--cmd", "print 1"])
        .wrapped(
            Path::new("/bin/sh"),
            ["-c", "exec \"$0\" \"$@\" 2> errors.txt"],
        )
        .start();
    wait_until("the program to run", || {
        (live.session()["status"] == "running").then_some(())
    });
    let said = |what: &str| {
        wait_until(what, || {
            let text = std::fs::read_to_string(live.scratch.join("errors.txt"));
            text.unwrap_or_default().contains(what).then_some(())
        });
    };
    kill(daemon, Signal::STOP);
    waiting.signal(Signal::INT);
    said("stopping the program; Ctrl-C again stops waiting");
    waiting.signal(Signal::INT);
    said(
        "error: stopped waiting; the program is still running\nhelp: wait again with: await; stop it with: pause",
    );
    kill(daemon, Signal::CONT);
    let ended = waiting.finish();
    assert_eq!(ended.status, Status::Code(130));
    assert_eq!(ended.text(), "", "no line behind it runs");
    said("  at --cmd 1: continue (exit code 130)");
    said("session 1 is kept");
}

#[test]
fn lines_come_back_with_arrows_and_by_searching() {
    let live = Live::new("repl-history");
    let text = on_terminal(
        &live,
        &["--break", "middle", &program()],
        &[
            (" middle> ", "print x + 1\r"),
            ("$1 = 42", ""),
            (" middle> ", "print x\r"),
            ("$2 = 41", ""),
            (" middle> ", "\x1b[A\x1b[A"),
            ("print x + 1", "\r"),
            ("$3 = 42", ""),
            (" middle> ", "\x12+ 1"),
            ("print x + 1", "\r"),
            ("$4 = 42", ""),
            (" middle> ", "quit\r"),
        ],
    );
    assert_eq!(text.matches(" = 42").count(), 3, "{text}");
    let kept = live.scratch.join(".local/share/hindsight/travel_history");
    let kept = std::fs::read_to_string(kept).expect("kept");
    assert!(kept.contains("print x + 1\n"), "{kept}");
}

#[test]
fn an_empty_line_does_the_last_line_again() {
    let live = Live::new("repl-enter");
    let text = on_terminal(
        &live,
        &["--break", "sum_to", &program()],
        &[
            (" sum_to> ", "\r"),
            (" sum_to> ", "next\r"),
            ("stopped after a step", ""),
            (" sum_to> ", "print n\r"),
            ("$1 = 5", ""),
            (" sum_to> ", "\r"),
            ("$2 = 5", ""),
            (" sum_to> ", "next\r"),
            ("stopped after a step", ""),
            (" sum_to> ", "set $n 3\r"),
            ("not set -> 3", ""),
            (" sum_to> ", "\r"),
            ("stopped after a step", ""),
            (" sum_to> ", "x/2xb &tempo\r"),
            ("<tempo>:  0x78  0x00", ""),
            (" sum_to> ", "\r"),
            ("<tempo+2>:  0x00  0x00", ""),
            (" sum_to> ", "list 1,2\r"),
            (" 2 ", ""),
            (" sum_to> ", "\r"),
            (" 12 ", ""),
            (" sum_to> ", "\r"),
            (" 22 ", ""),
            (" sum_to> ", "quit\r"),
        ],
    );
    assert_eq!(text.matches("stopped after a step").count(), 3, "{text}");
}

/// An empty line among them is not the last one again.
#[test]
fn lines_of_a_breakpoint_have_a_prompt_and_a_way_out() {
    let live = Live::new("repl-commands");
    let text = on_terminal(
        &live,
        &["--break", "bump", &program()],
        &[
            (" bump> ", "commands 1\r"),
            ("Ctrl-C drops them", ""),
            ("> ", "\x03"),
            ("lines of 1 stay as they were", ""),
            (" bump> ", "print 1 + 1\r"),
            ("$1 = 2", ""),
            (" bump> ", "commands 1\r"),
            ("Ctrl-C drops them", ""),
            ("> ", "\r"),
            ("> ", "print 3 + 5\r"),
            ("> ", "end\r"),
            (" bump> ", "continue\r"),
            ("$2 = 8", ""),
            (" bump> ", "quit\r"),
        ],
    );
    assert!(!text.contains("error"), "{text}");
}

#[test]
fn the_prompt_says_where_one_is() {
    let live = Live::new("repl-prompt");
    let text = on_terminal(
        &live,
        &["--break", "middle", &program()],
        &[
            (" middle> ", "goto first\r"),
            ("past 0 t", "goto live\r"),
            ("stopped at breakpoint", ""),
            ("live ", ""),
            (" middle> ", "fin\t"),
            ("finish", "\r"),
            ("middle returned (int) 124", ""),
            (" main> ", "step back\r"),
            ("past ", "set counter 3\r"),
            ("goto live", ""),
            ("past ", "goto live\r"),
            ("stopped after a step", ""),
            (" main> ", "alias px = print --format hex\r"),
            (" main> ", "print cal\t"),
            ("called", "\r"),
            ("$2 = 41", ""),
            (" main> ", "px called\r"),
            ("$3 = 0x29", ""),
            (" main> ", "stop\r"),
            ("no session> ", "where\r"),
            ("there is no live session", ""),
            ("no session> ", "goto last\r"),
            ("past ", "\x04"),
        ],
    );
    let kept = std::fs::read_to_string(live.scratch.join(".config/hindsight/aliases"));
    assert_eq!(kept.expect("kept"), "px = print --format hex\n", "{text}");
    let at_line = marked_line("control", "control.c", "main: middle");
    assert!(text.contains(&format!("control.c:{at_line}")), "{text}");
}

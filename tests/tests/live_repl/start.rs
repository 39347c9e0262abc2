//! Programs that the prompt starts, sessions that it finds, and what is left of them.

use std::path::Path;

use e2e::Live;

use super::{assert_in_order, assert_no_session, code, errors, program, repl, unnumbered};

#[test]
fn a_line_is_the_command_of_that_name() {
    let live = Live::new("repl-lines");
    live.start(&["--break", "leaf"], Path::new(&program()), &[]);
    for words in [
        &["where"][..],
        &["where", "--context", "1", "--json"],
        &["backtrace", "--locals"],
        &["bt", "--limit", "1"],
        &["locals"],
        &["args", "--format", "hex"],
        &["print", "x"],
        &["print", "--type", "x * 2"],
        &["p", "nobody"],
        &["p", "x +"],
        &["eval", "x + 1"],
        &["registers", "rip"],
        &["registers", "rxx"],
        &["memory", "read", "&counter", "--count", "8"],
        &["memory", "read", "nobody"],
        &["source", "control.c:20"],
        &["source", "nofile.c:1"],
        &["disassemble", "--count", "2"],
        &["frame", "1"],
        &["frame", "99"],
        &["threads"],
        &["thread"],
        &["thread", "1"],
        &["break", "list"],
        &["break", "nofunction"],
        &["break", "control.c:19", "--condition", "counter >"],
        &["watch", "nobody"],
        &["catch", "signal", "SIGNONE"],
        &["logpoint", "leaf", "{x"],
        &["status"],
        &["set", "counter", "nobody"],
        &["pause"],
        &["await", "--json"],
        &["note", "two words"],
        &["where", "--session", "9"],
    ] {
        let command = live.command(words).run();
        let quoted: Vec<String> = words
            .iter()
            .map(|word| match word.contains(' ') {
                true => format!("'{word}'"),
                false => (*word).to_owned(),
            })
            .collect();
        let line = repl(&live, &["--session", "1"], &[&quoted.join(" ")]);
        assert_eq!(
            unnumbered(&line.text()),
            unnumbered(&command.text()),
            "{words:?}"
        );
        assert_eq!(errors(&line), command.errors(), "{words:?}");
        assert_eq!(code(&line), code(&command), "{words:?}");
    }
}

#[test]
fn a_program_is_started_looked_at_and_ended() {
    let live = Live::new("repl-started");
    let lines = [
        "break sum_to",
        "continue",
        "print n",
        "next",
        "finish",
        "frob",
    ];
    let ended = repl(&live, &[&program()], &lines);
    assert_in_order(
        &ended.text(),
        &[
            "Session 1: ",
            "stopped at its entry point",
            "Breakpoint 1: sum_to at ",
            "stopped at breakpoint 1 (hit 1): sum_to at ",
            "$1 = 5",
            "stopped after a step: sum_to at ",
            "sum_to returned (int) 10",
        ],
    );
    assert_eq!(
        errors(&ended),
        "error: there is no verb \"frob\"\nhelp: help lists the verbs; SQL begins with SELECT, WITH or EXPLAIN\n"
    );
    assert_in_order(
        &ended.errors(),
        &[
            "  at --cmd 6: frob (exit code 2)\n",
            "hindsight: The program was killed by SIGKILL. ",
        ],
    );
    assert_eq!(code(&ended), 2);
    assert_no_session(&live);
    let checked = live.command(&["check", "control_O0"]).run();
    assert_eq!(code(&checked), 0, "{}", checked.text());
}

#[test]
fn breakpoints_and_arguments_are_those_of_start() {
    let live = Live::new("repl-options");
    let ended = repl(
        &live,
        &["--break", "worker_step", &program(), "threads"],
        &["print id", "break list", "quit", "print 4711"],
    );
    let text = ended.text();
    assert_in_order(&text, &["): worker_step at ", "$1 = "]);
    assert!(!text.contains("entry point"), "{text}");
    assert!(!text.contains("4711"), "after quit: {text}");
    assert_eq!(code(&ended), 0, "{}", ended.errors());
}

#[test]
fn a_program_with_a_recording_beside_it_is_started_and_a_bare_name_is_the_recording() {
    let live = Live::new("repl-names");
    let copy = live.scratch.join("app");
    std::fs::copy(program(), &copy).expect("the test's folder is writable");
    let first = repl(&live, &["./app"], &["continue"]);
    assert_in_order(&first.text(), &["Session 1: ./app", "exit code 7"]);
    let again = repl(&live, &["./app"], &["continue"]);
    assert_in_order(&again.text(), &["app-2.hindsight", "exit code 7"]);
    let recording = repl(&live, &["app"], &["goto first"]);
    assert_in_order(&recording.text(), &["at event 0"]);
    let folder = repl(&live, &["./app.hindsight"], &["goto first"]);
    assert_in_order(&folder.text(), &["at event 0"]);
}

#[test]
fn what_cannot_be_opened_says_what_to_do() {
    let live = Live::new("repl-refused");
    let said = |words: &[&str]| {
        let ended = repl(&live, words, &["where"]);
        (code(&ended), errors(&ended))
    };
    assert_eq!(
        said(&[]),
        (
            1,
            "error: there is no live session\nhelp: start one: hindsight start PROGRAM, or hindsight attach PID\n"
                .to_owned()
        )
    );
    let (exit, text) = said(&["nothing"]);
    assert_eq!(exit, 2);
    assert_in_order(&text, &["error: there is no recording nothing"]);
    let (exit, text) = said(&["./nothing", "-o", "x"]);
    assert_eq!(exit, 4, "{text}");
    let (exit, text) = said(&["--break", "main"]);
    assert_eq!(exit, 2);
    assert_in_order(&text, &["none is named", "hindsight repl PROGRAM"]);
    let (exit, text) = said(&["--break", "nofunction", &program()]);
    assert_ne!(exit, 0);
    assert_in_order(&text, &["no loaded module has a function nofunction"]);
    let missing = live
        .command(&["repl", &program(), "--script", "no.txt"])
        .run();
    assert_in_order(&missing.errors(), &["cannot read no.txt"]);
    // Nothing was started for a script that does not exist.
    assert_no_session(&live);
    live.start(&["--stop-on-entry"], Path::new(&program()), &[]);
    live.start(&["--stop-on-entry"], Path::new(&program()), &[]);
    let (exit, text) = said(&[]);
    assert_eq!(exit, 2);
    assert_in_order(
        &text,
        &[
            "there is more than one live session",
            "--session N: 2 (",
            "3 (",
        ],
    );
    assert_in_order(&said(&["--session", "7"]).1, &["there is no session 7"]);
}

#[test]
fn a_session_that_was_there_before_stays_and_one_that_is_kept_too() {
    let live = Live::new("repl-stays");
    live.start(&["--break", "leaf"], Path::new(&program()), &[]);
    let looked = repl(&live, &[], &["print x"]);
    assert_eq!(looked.text(), "$1 = 20\n");
    assert_in_order(
        &looked.errors(),
        &["session 1 is kept, its program stays stopped"],
    );
    let kept = repl(&live, &[&program()], &["break leaf", "quit --keep"]);
    assert_in_order(&kept.errors(), &["session 2 is kept"]);
    let sessions = live.ask(&["status"]);
    assert_eq!(sessions["sessions"].as_array().map(Vec::len), Some(2));
    live.keep(&sessions["sessions"][1]);
    let refused = repl(&live, &["--session", "1"], &["quit now"]);
    assert_in_order(&errors(&refused), &["quit does not take \"now\""]);
    assert_eq!(code(&refused), 2);
    live.ask(&["stop", "--session", "1"]);
}

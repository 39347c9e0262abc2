//! Goal: at a live prompt every verb does what the command does, Ctrl-C stops the program, and the user can enter the past
//! and leave it again. Method: lines of `hindsight repl` through `--cmd`, a file, a pipe and a pseudo terminal, to a daemon
//! of each test's own; a verb's reply is compared with that of the command of the same name.

use std::path::Path;

use e2e::{Ended, Live, Program, Signal, Status, fixture_artifact, kill, marked_line, wait_until};

fn program() -> String {
    let path = fixture_artifact("control", "control_O0");
    path.to_str().expect("paths of tests are text").to_owned()
}

/// Runs lines at a prompt that is opened with these words.
fn repl(live: &Live, words: &[&str], lines: &[&str]) -> Ended {
    let lines = lines.iter().flat_map(|line| ["--cmd", line]);
    let words: Vec<&str> = ["repl"]
        .into_iter()
        .chain(words.iter().copied())
        .chain(lines)
        .collect();
    live.command(&words).run()
}

/// The errors, without the prompt's messages about its position and the program's fate.
fn errors(ended: &Ended) -> String {
    let errors = ended.errors();
    let lines = errors
        .lines()
        .filter(|line| !line.starts_with("  at ") && !line.starts_with("hindsight: "));
    lines.map(|line| format!("{line}\n")).collect()
}

/// Asserts that all parts are there, one after the other.
fn assert_in_order(text: &str, parts: &[&str]) {
    let mut from = 0;
    for part in parts {
        match text[from..].find(part) {
            Some(at) => from += at + part.len(),
            None => panic!("\"{part}\" is not there, or not behind the one before:\n{text}"),
        }
    }
}

/// A text without the numbers of values: each `print` has the next one.
fn unnumbered(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let rest = line
            .strip_prefix('$')
            .and_then(|rest| rest.split_once(" = "));
        match rest.filter(|(number, _)| number.parse::<u64>().is_ok()) {
            Some((_, value)) => format!("$ = {value}\n"),
            None => format!("{line}\n"),
        }
    });
    lines.collect()
}

fn code(ended: &Ended) -> i32 {
    ended.status.as_shell_code()
}

/// The daemon has no session, or there is no daemon.
fn assert_no_session(live: &Live) {
    let (_, response) = live.response(&["status"]);
    let code = &response["error"]["code"];
    let sessions = response["result"]["sessions"].as_array();
    assert!(
        code == "NO_SESSION" || sessions.is_some_and(Vec::is_empty),
        "{response:#}"
    );
}

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

#[test]
fn the_past_is_seen_up_to_the_stop_and_left_again() {
    let live = Live::new("repl-past");
    let ended = repl(
        &live,
        &["--break", "leaf", &program()],
        &[
            "goto last",
            "print x",
            "next back",
            "continue back",
            "goto first",
            "break bump",
            "continue",
            "continue",
            "continue",
            "args",
            "calls",
            "set counter 3",
            "goto live",
            "print x",
            "set counter 1000",
            "SELECT count(*) AS bumps FROM calls WHERE function = 'bump'",
            "goto last",
            "goto live",
            "delete",
            "continue",
            "goto last",
            "output --tail 1",
            "continue back where function = 'sum_to'",
            "goto live",
        ],
    );
    assert_in_order(
        &ended.text(),
        &[
            "stopped at breakpoint 1 (hit 1): leaf at ",
            ", pause: breakpoint 1: leaf at ",
            "$1 = 20\n",
            "entry of leaf: leaf at ",
            ", pause: entry in ",
            "at event 0, ",
            "Breakpoint 1: bump (1 function)\nIt stops runs through the past",
            ", pause: entry in ",
            "entry of bump: bump at ",
            "entry of bump: bump at ",
            " by   | int  | 2",
            "main  ",
            "bump  ",
            "stopped at breakpoint 1 (hit 1): leaf at ",
            "$2 = 20\n",
            "counter: 55 -> 1000\n",
            " bumps\n-------\n    10\n",
            ", write: counter: ",
            "stopped at breakpoint 1",
            "Breakpoint 1 removed: leaf",
            "The program has ended with exit code 7",
            ", the program has ended with exit code 7",
            "tempo 120",
            "entry of sum_to",
            "The program has ended with exit code 7.",
        ],
    );
    assert_eq!(
        errors(&ended).lines().count(),
        2,
        "one refusal: {}",
        ended.errors()
    );
    assert_in_order(
        &ended.errors(),
        &[
            "error: set works only in the present; you are at event ",
            "of the program's past\nhelp: go back first: goto live\n",
            "  at --cmd 12: set counter 3 (exit code 1)\n",
            "hindsight: The program has ended with exit code 7. ",
        ],
    );
}

/// When the program is stopped, all its events are available, however many there are.
#[test]
fn every_stop_is_the_last_event_of_its_past() {
    let live = Live::new("repl-settled");
    live.start(&["--break", "bump"], Path::new(&program()), &[]);
    for hit in 1..=10 {
        let looked = repl(&live, &[], &["goto last", "print by"]);
        let text = looked.text();
        assert_in_order(
            &text,
            &[", pause: breakpoint 1: bump", &format!("${hit} = {hit}\n")],
        );
        live.ask(&["continue"]);
    }
}

/// Verbs that inspect, with their arguments at a stop in `leaf`.
const LOOKS: [&[&str]; 17] = [
    &["where"],
    &["backtrace"],
    &["backtrace", "--locals"],
    &["locals"],
    &["args"],
    &["print", "x"],
    &["print", "--type", "counter * 2"],
    &["print", "chosen"],
    &["registers"],
    &["registers", "--vectors"],
    &["memory", "read", "&counter", "--count", "48"],
    &["memory", "read", "&x", "--count", "8"],
    &["memory", "read", "(char*)$rsp", "--count", "256"],
    &["threads"],
    &["thread"],
    &["source"],
    &["disassemble", "--count", "8"],
];

/// A recorded stop looks as it did when the program was stopped there, except for the words that name the moment.
#[test]
fn verbs_say_the_same_of_a_stop_live_and_recorded() {
    let live = Live::new("repl-same");
    live.start(&["--break", "leaf"], Path::new(&program()), &[]);
    let mut stops = 0;
    loop {
        stops += 1;
        for words in LOOKS {
            let now = live.command(words).run();
            assert_eq!(code(&now), 0, "{words:?}: {}", now.errors());
            let moved = repl(&live, &[], &["goto last"]).text();
            let then = repl(&live, &[], &["goto last", &words.join(" ")]);
            let then_text = then.text();
            let then_text = then_text
                .strip_prefix(&moved)
                .unwrap_or_else(|| panic!("{moved} does not begin {then_text}"));
            // The stop's own line is the first of `where`.
            let looks = |text: &str| match words[0] {
                "where" => text.split_once('\n').expect("a line").1.to_owned(),
                _ => text.to_owned(),
            };
            assert_eq!(
                unnumbered(&looks(then_text)),
                unnumbered(&looks(&now.text())),
                "stop {stops}: {words:?}"
            );
        }
        let next = live.ask(&["continue"]);
        if next["status"] != "stopped" {
            break;
        }
    }
    assert_eq!(stops, 2);
}

/// Threads that continue are held for a copy of memory: a global is known at the stop, but not after it.
#[test]
fn a_stop_of_one_thread_of_several_copies_memory() {
    let live = Live::new("repl-threads");
    live.start(
        &["--break", "worker_step"],
        Path::new(&program()),
        &["threads"],
    );
    let ended = repl(
        &live,
        &[],
        &[
            "goto last",
            "print tempo",
            "print id",
            "threads",
            "SELECT DISTINCT aux AS later FROM events WHERE kind = 'snapshot' \
             AND seq > (SELECT max(seq) FROM pauses WHERE reason = 'entry')",
        ],
    );
    let text = ended.text();
    assert_in_order(
        &text,
        &[
            ", pause: breakpoint 1: worker_step",
            "$1 = 120\n",
            "$2 = ",
            " | running | ",
            " | stopped | ",
            " later\n-------\n held\n",
        ],
    );
    let id = text.lines().find(|line| line.starts_with("$2 = "));
    assert!(matches!(id, Some("$2 = 0" | "$2 = 1")), "{text}");
    live.ask(&["break", "disable", "--all"]);
    let ended = live.ask(&["continue", "--all"]);
    assert_eq!(ended["exit"]["code"], 0, "{ended:#}");
}

/// At a logpoint the thread's place is known, and nothing else that was not seen.
#[test]
fn the_place_of_a_logpoint_is_known_where_it_has_one() {
    let live = Live::new("repl-logpoints");
    live.start(&["--stop-on-entry"], Path::new(&program()), &[]);
    let line = |mark: &str| marked_line("control", "control.c", mark);
    let at = format!("control.c:{}", line("middle: after"));
    live.ask(&["logpoint", &at, "a={a}"]);
    live.ask(&["logpoint", "factorial", "n={n}"]);
    live.ask(&["logpoint", "--function", "*um*", "somewhere"]);
    assert_eq!(live.run_to_end(), 7);
    let ended = repl(
        &live,
        &[],
        &[
            "goto first",
            "continue where function = 'middle'",
            "continue",
            "registers rip",
            "backtrace",
            "print x",
            "reverse-continue",
            "continue where function = 'factorial'",
            "continue",
            "continue",
            "backtrace --limit 2",
        ],
    );
    let after = line("middle: after");
    assert_in_order(
        &ended.text(),
        &[
            "logpoint: a=",
            ": middle at ",
            &format!("control.c:{after}\n"),
            "| middle+",
            "*#0   middle",
            " #1   main",
            "logpoint: n=4: factorial at",
            "*#0   factorial",
        ],
    );
    let recording = live.recording();
    // The pattern's logpoint is in several places; no event says which of them was reached.
    let known = "SELECT count(*) FROM logpoints WHERE reg(seq, 'rip') IS NOT NULL AND message = 'somewhere'";
    assert_eq!(recording.number(known), 0);
    let known = "SELECT count(DISTINCT reg(seq, 'rip')) FROM logpoints WHERE message LIKE 'n=%'";
    assert_eq!(recording.number(known), 1);
    let unknown =
        "SELECT count(*) FROM logpoints WHERE reg(seq, 'rip') IS NULL AND message LIKE '%=%'";
    assert_eq!(recording.number(unknown), 0);
    let others = "SELECT count(*) FROM logpoints WHERE reg(seq, 'rsp') IS NOT NULL";
    assert_eq!(recording.number(others), 0);
}

#[test]
fn moves_of_nothing_and_lines_behind_the_end_are_refused_in_the_past() {
    let live = Live::new("repl-bounds");
    live.start(&["--break", "leaf"], Path::new(&program()), &[]);
    let said = |line: &str| {
        let ended = repl(&live, &[], &["goto last", line]);
        (code(&ended), errors(&ended))
    };
    for line in ["step 0", "next 0", "step back 0", "next back 0"] {
        assert_eq!(
            said(line),
            (2, "error: zero steps lead nowhere\n".to_owned()),
            "{line}"
        );
    }
    // The end of main.
    let last = include_str!("../../fixtures/control/control.c")
        .lines()
        .count();
    let (exit, text) = said("break control.c:9999");
    assert_eq!(exit, 2, "{text}");
    assert_in_order(
        &text,
        &[&format!(
            "error: no code at control.c:9999\nhelp: the last line with code is {last}\n"
        )],
    );
    let inside = repl(
        &live,
        &[],
        &["goto last", &format!("break control.c:{last}")],
    );
    assert_in_order(&inside.text(), &["(1 function)"]);
}

#[test]
fn what_changes_or_runs_the_program_is_refused_in_the_past() {
    let live = Live::new("repl-refusals");
    live.start(&["--break", "leaf"], Path::new(&program()), &[]);
    let before = live.session();
    for line in [
        "set counter 3",
        "eval bump(1)",
        "memory write &counter 00",
        "display counter",
        "undisplay 1",
        "logpoint bump hello",
        "catch signal SIGUSR1",
        "until bump",
        "pause",
        "await",
        "restart",
        &format!("start {}", program()),
    ] {
        let ended = repl(&live, &[], &["goto first", line]);
        assert_ne!(code(&ended), 0, "{line}");
        assert_in_order(&errors(&ended), &["error: ", "goto live\n"]);
    }
    for line in ["step", "finish", "continue", "goto 99999"] {
        let ended = repl(&live, &[], &["goto last", line]);
        assert_eq!(code(&ended), 2, "{line}: {}", ended.errors());
        assert_in_order(&errors(&ended), &["error: ", "goto live\n"]);
    }
    let shown = repl(&live, &[], &["goto first", "status"]);
    assert_in_order(&shown.text(), &["Session 1: ", "stopped at breakpoint 1"]);
    assert_eq!(live.session(), before, "nothing has changed it");
}

/// It is at its event, in the past and once the recording is closed.
#[test]
fn an_event_of_a_live_programs_past_takes_a_note() {
    let live = Live::new("repl-notes");
    live.start(&["--break", "leaf"], Path::new(&program()), &[]);
    let lines = [
        "goto 1",
        "note an early one",
        "goto last",
        "goto @an early",
        "goto live",
        "note a late one",
        "notes",
    ];
    let ended = repl(&live, &[], &lines);
    assert_eq!(code(&ended), 0, "{}", ended.errors());
    assert_in_order(
        &ended.text(),
        &[
            "Note at event 1: an early one",
            "at event 1, ",
            "an early one",
            "a late one",
        ],
    );
    let recording = live.recording();
    live.ask(&["stop"]);
    let sql = "SELECT seq FROM notes WHERE text = 'an early one'";
    assert_eq!(recording.number(sql), 1);
    assert_eq!(recording.number("SELECT count(*) FROM notes"), 2);
    assert_eq!(code(&recording.command("check", &[])), 0);
}

#[test]
fn the_past_of_a_program_that_runs_is_refused_and_a_wrong_place_leaves_the_present() {
    let live = Live::new("repl-running");
    live.start(&[], Path::new(&program()), &["spinning"]);
    let running = repl(
        &live,
        &[],
        &["goto first", "calls", "continue where depth > 3"],
    );
    assert_eq!(
        errors(&running),
        "error: the program is running; its past can be examined while it is stopped\n\
         help: stop it first: pause\n"
            .repeat(2)
            + "error: continue where searches the recording, and you are at its end\n\
               help: go back: continue back where CONDITION; or stop the program where it is true: break LOCATION --condition EXPRESSION\n"
    );
    let wrong = repl(
        &live,
        &[],
        &["pause", "goto nowhere", "set tempo 90", "continue"],
    );
    assert_in_order(&errors(&wrong), &["\"nowhere\" is not a place in time"]);
    assert_in_order(&wrong.text(), &["tempo: 120 -> 90", "exit code 7"]);
}

#[test]
fn scripts_name_the_file_and_the_line_that_fails() {
    let live = Live::new("repl-script");
    let script = "# what is there?\nalias px = print --format hex\npx by\n\nfrob\nprint nobody\nquit\nprint 1\n";
    std::fs::write(live.scratch.join("look.txt"), script).expect("the folder is writable");
    let ended = live
        .command(&[
            "repl",
            "--break",
            "bump",
            &program(),
            "--script",
            "look.txt",
        ])
        .run();
    assert_in_order(&ended.text(), &["bump at ", "$1 = 0x1\n"]);
    assert_in_order(
        &ended.errors(),
        &[
            "error: there is no verb \"frob\"",
            "  at look.txt:5: frob (exit code 2)\n",
            "error: no variable \"nobody\" here\n",
            "  at look.txt:6: print nobody (exit code 1)\n",
        ],
    );
    assert_eq!(code(&ended), 1, "that of the last that failed");
    let piped = live
        .command(&["repl", "--break", "bump", &program()])
        .stdin("print by\nprint nobody\n")
        .run();
    assert_in_order(&piped.text(), &["$1 = 1\n"]);
    assert_in_order(
        &piped.errors(),
        &["  at stdin:2: print nobody (exit code 1)\n"],
    );
}

#[test]
fn json_is_the_daemons_answer_line_by_line() {
    let live = Live::new("repl-json");
    live.start(&["--break", "bump"], Path::new(&program()), &[]);
    let line = repl(&live, &["--json"], &["print by"]);
    let command = live.command(&["print", "--json", "by"]).run();
    let next = command.text().replace("\"number\": 2", "\"number\": 1");
    assert_eq!(line.text(), next);
    let failed = repl(
        &live,
        &["--json"],
        &["goto 99999", "goto first", "set by 3"],
    );
    assert_in_order(
        &failed.text(),
        &["\"NO_EVENT\"", "\"session\": 1", "\"NOT_ALLOWED\""],
    );
    let errors = failed.errors();
    assert!(!errors.contains("at --cmd"), "{errors}");
    assert_eq!(code(&failed), 1);
}

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

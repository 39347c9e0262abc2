//! The past of a live program: what is seen in it, what is refused there, and the way back.

use std::path::Path;

use e2e::{Live, marked_line};

use super::{assert_in_order, code, errors, program, repl, unnumbered};

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
    let last = include_str!("../../../fixtures/control/control.c")
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
fn sql_asks_the_instructions_that_full_has_recorded() {
    let live = Live::new("repl-full");
    let ended = repl(
        &live,
        &["--break", "bump", &program()],
        &[
            "delete",
            "full 20",
            "SELECT count(*) AS recorded FROM instructions",
            "step-back -i",
            "SELECT count(*) AS recorded FROM instructions",
            "goto live",
            "full off",
            "SELECT count(*) AS entries FROM events WHERE kind = 'process_start'",
            "SELECT count(*) AS recorded FROM instructions",
        ],
    );
    let told = ended.text();
    let rows = " recorded\n----------\n       20\n";
    assert_eq!(told.matches(rows).count(), 2, "{told}");
    let session = " entries\n---------\n       1";
    assert_eq!(told.matches(session).count(), 1, "{told}");
    let refused = "instructions needs a recording of every instruction";
    let errors = ended.errors();
    assert_eq!(errors.matches(refused).count(), 1, "{errors}");
}

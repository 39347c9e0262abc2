//! Goal: gdb's familiar commands work, and print what gdb prints. Method: gdb and a live session at the same place of the same
//! program, whose addresses are fixed; the same commands at the prompt in its past.

#[path = "gdb_words/breakpoints.rs"]
mod breakpoints;
#[path = "gdb_words/frames.rs"]
mod frames;
#[path = "gdb_words/instead.rs"]
mod instead;
#[path = "gdb_words/lists.rs"]
mod lists;
#[path = "gdb_words/moves.rs"]
mod moves;
#[path = "gdb_words/source.rs"]
mod source;
#[path = "gdb_words/values.rs"]
mod values;

use std::path::PathBuf;

use e2e::{Hindsight, Live, Program, Scratch, fixture_artifact};

fn program() -> PathBuf {
    fixture_artifact("control", "control_O0_fixed")
}

fn gdb(live: &Live, commands: &[&str]) -> String {
    let mut words = vec![
        "-batch",
        "-nx",
        "-q",
        "-ex",
        "set width 0",
        "-ex",
        "set confirm off",
    ];
    for command in commands {
        words.extend(["-ex", command]);
    }
    let program = program();
    words.push(program.to_str().expect("text"));
    Program::new("/usr/bin/gdb", live.scratch.path())
        .args(words)
        .run()
        .text()
}

/// The output of each gdb command at the entry of `leaf`, in one session.
fn of_gdb<const N: usize>(live: &Live, commands: [&str; N]) -> [String; N] {
    let mut words = vec!["break leaf", "run > /dev/null"];
    for command in commands {
        words.extend(["echo ~~~\\n", command]);
    }
    let said = gdb(live, &words);
    let answers: Vec<String> = said.split("~~~\n").skip(1).map(plain).collect();
    answers
        .try_into()
        .unwrap_or_else(|_| panic!("an answer to each command: {said}"))
}

/// Without gdb's numbers of values, with one space between words, and names of files without folders.
fn plain(text: &str) -> String {
    let words = text.split_whitespace().map(|word| {
        let name = word.trim_start_matches('"');
        match name.starts_with('/') {
            true => format!("\"{}", name.rsplit('/').next().unwrap_or_default()),
            false => word.to_owned(),
        }
    });
    let mut words: Vec<String> = words.collect();
    if words.first().is_some_and(|word| word.starts_with('$')) {
        words.drain(..2.min(words.len()));
    }
    words.join(" ")
}

/// The text from the value on, if it is a kept value.
fn unnumbered(text: &str) -> String {
    text.rsplit_once("$")
        .map_or(text, |(_, rest)| rest)
        .trim_start_matches(|c: char| c.is_ascii_digit())
        .to_owned()
}

fn prompt(live: &Live, lines: &[&str]) -> String {
    let mut words = vec!["repl"];
    for line in lines {
        words.extend(["--cmd", line]);
    }
    let ended = live.command(&words).run();
    let errors = ended.errors();
    let errors = errors
        .lines()
        .filter(|line| !line.starts_with("hindsight: session"));
    ended.text() + &errors.map(|line| format!("{line}\n")).collect::<String>()
}

/// Answers that have no value on the stack.
const SAME: [&str; 16] = [
    "x/4xw &tempo",
    "x/8xb leaf",
    "x/2dw &tempo",
    "x/3uh &tempo",
    "x/2og &tempo",
    "x/2tb &tempo",
    "x/3c &tempo",
    "x/a &chosen",
    "x/xg &tempo",
    "whatis tempo",
    "whatis chosen",
    "info line leaf",
    "info line control.c:27",
    "printf \"%d %5x|%c %5.2f %%\\n\", tempo, tempo, 65, 1.5",
    "printf \"%lu %08.3f %+d %#o\\n\", sizeof(int), 3.14159, tempo, tempo",
    "print -7/2",
];

#[test]
fn answers_are_those_of_gdb() {
    let live = Live::started("gdb-words", &["--break", "leaf"], &program(), &[]);
    for (command, theirs) in SAME.into_iter().zip(of_gdb(&live, SAME)) {
        let ours = prompt(&live, &[command]);
        let ours = plain(&ours);
        assert_eq!(ours, theirs, "{command}");
    }
    let commands = [
        "p/x x",
        "p/d x",
        "p/o x",
        "p/c x",
        "p/u x",
        "p/z x",
        "p -x",
        "p/z (short)-3",
        "p/a (short)-3",
        "p/a 2.75",
        "p/c 300",
        "p/c -2.75",
        "p/d 2.75",
    ];
    for (command, theirs) in commands.into_iter().zip(of_gdb(&live, commands)) {
        let ours = prompt(&live, &[command]);
        assert_eq!(plain(&ours), theirs, "{command}");
    }
    // gdb names the section, Hindsight the module.
    let commands = [
        "info symbol leaf",
        "info symbol &tempo",
        "info symbol leaf + 3",
    ];
    for (command, theirs) in commands.into_iter().zip(of_gdb(&live, commands)) {
        let (theirs, _) = theirs.split_once(" in section").expect("a section");
        let ours = prompt(&live, &[command]);
        let (ours, module) = ours.trim().split_once(" of ").expect("a module");
        // In gdb a function plus a number is an address, here a mistake; both take an address.
        assert_eq!(plain(ours).replace(" + 0", ""), theirs, "{command}");
        assert!(module.ends_with("control_O0_fixed"), "{module}");
    }
    let [theirs] = of_gdb(&live, ["list 10,14"]);
    let ours = prompt(&live, &["list 10,14"]);
    let code = |text: &str| -> Vec<String> {
        let kept = text
            .split_whitespace()
            .filter(|word| !matches!(*word, "|" | ":" | "->"));
        kept.map(str::to_owned).collect()
    };
    assert_eq!(code(&ours), code(&theirs));
    let names = prompt(&live, &["info functions ^sum_"]);
    assert!(
        names.contains("sum_to") && !names.contains("leaf"),
        "{names}"
    );
    let names = prompt(&live, &["info variables ^te"]);
    assert!(
        names.contains("tempo    | int") && !names.contains("counter"),
        "{names}"
    );
}

#[test]
fn the_outermost_frames_are_the_last_ones() {
    let live = Live::started("gdb-outermost", &["--break", "leaf"], &program(), &[]);
    let all = prompt(&live, &["bt"]);
    let all: Vec<&str> = all.lines().collect();
    for (command, most) in [("bt -1", 1), ("bt -3", 3), ("bt -1000", all.len())] {
        let said = prompt(&live, &[command]);
        let said: Vec<&str> = said.lines().collect();
        assert_eq!(said, all[all.len() - most..], "{command}");
    }
    let said = prompt(&live, &["bt --limit 1 --outermost 1"]);
    assert!(said.contains("outermost for others"), "{said}");
}

/// What goes wrong is told, and nothing else.
#[test]
fn mistakes_have_their_own_hints() {
    let live = Live::started("gdb-mistakes", &["--break", "leaf"], &program(), &[]);
    let said = prompt(&live, &["print tempoo", "ptype tempoo", "print $_siginfo"]);
    assert_eq!(said.matches("did you mean \"tempo\"?").count(), 2, "{said}");
    assert!(
        said.contains("there is no $_siginfo here") && !said.contains("set $_siginfo"),
        "{said}"
    );
    for place in ["goto live", "goto 0"] {
        let said = prompt(&live, &[place, "p 5/0"]);
        assert!(
            said.contains("error: division by zero\n") && !said.contains("help:"),
            "{said}"
        );
    }
}

#[test]
fn words_work_in_the_shell_and_in_the_past() {
    let live = Live::started("gdb-shell", &["--break", "leaf"], &program(), &[]);
    let text = |words: &[&str]| {
        let ended = live.command(words).run();
        ended.text() + &ended.errors()
    };
    assert!(
        text(&["x/2dw", "&tempo"]).contains("<tempo>:  120"),
        "{}",
        text(&["x/2dw", "&tempo"])
    );
    assert_eq!(text(&["p/x", "x"]), "$1 = 0x14\n");
    assert_eq!(text(&["printf", "x is %d\\n, x"]), "x is 20\n");
    assert!(
        text(&["info", "line"]).starts_with("Line 26 of "),
        "{}",
        text(&["info", "line"])
    );
    assert!(text(&["bt", "1"]).starts_with("*#0   leaf (x=20)"));
    assert!(text(&["thread", "apply", "all", "bt", "1"]).contains("leaf (x=20)"));
    assert!(text(&["info", "sharedlibrary"]).contains("/libc.so.6"));
    // The values in code and on the stack are known where the thread stopped.
    let past = [
        "x/8xb leaf",
        "x/2i leaf",
        "info line leaf",
        "info symbol leaf",
        "whatis x",
        "p/x x",
        "list 10,14",
        "info sharedlibrary",
        "bt 1",
    ];
    for line in past {
        let now = prompt(&live, &[line]);
        let then = prompt(&live, &["goto last", line]);
        let (now, then) = (unnumbered(&now), unnumbered(&then));
        assert!(
            then.ends_with(&now) || now.contains("leaf"),
            "{line}: {then}, not {now}"
        );
        assert!(!then.contains("error"), "{line}: {then}");
    }
    let refused = prompt(
        &live,
        &[
            "goto last",
            "return",
            "jump 27",
            "handle SIGUSR1 stop",
            "gcore",
        ],
    );
    assert_eq!(
        refused.matches("works only in the present").count(),
        4,
        "{refused}"
    );
}

#[test]
fn options_may_stand_before_a_subject_and_help_knows_gdbs_words() {
    let live = Live::started("gdb-options", &["--break", "leaf"], &program(), &[]);
    let text = |words: &[&str]| {
        let ended = live.command(words).run();
        ended.text() + &ended.errors()
    };
    let arguments = text(&["args"]);
    assert!(arguments.contains("| int  | 20"), "{arguments}");
    assert_eq!(text(&["info", "--session", "1", "args"]), arguments);
    let json: serde_json::Value =
        serde_json::from_str(&text(&["info", "--json", "args"])).expect("it is JSON");
    assert_eq!(json["success"], true, "{json:#}");
    for (theirs, ours) in [
        (&["info", "b"][..], &["info-breakpoints"][..]),
        (&["i", "b"], &["info-breakpoints"]),
        (&["info", "sh"], &["info-shared"]),
        (&["info", "func", "^leaf$"], &["info-functions", "^leaf$"]),
        (&["info", "r", "rip"], &["registers", "rip"]),
    ] {
        assert_eq!(text(theirs), text(ours), "{theirs:?}");
    }
    let signals = text(&["info", "signals"]);
    assert!(
        signals.contains("SIGSEGV") && signals.contains("Passed on"),
        "{signals}"
    );
    let row = |signal: &str| {
        let table = text(&["info", "signals", signal]);
        let row = table.lines().find(|line| line.contains(signal));
        row.expect("the signal has a row").to_owned()
    };
    // Faults are recorded in any case, other signals where they stop the program.
    let at_end = "if it ends the program";
    assert_eq!(row("SIGSEGV").matches(at_end).count(), 1);
    assert_eq!(row("SIGUSR1").matches(at_end).count(), 2);
    text(&["handle", "SIGUSR1", "stop"]);
    let signals = row("SIGUSR1");
    assert!(
        signals.contains("yes (catchpoint") && !signals.contains(at_end),
        "{signals}"
    );
    for (theirs, ours) in [
        (&["help", "tbreak"][..], "break"),
        (&["help", "info", "locals"], "locals"),
        (&["help", "delete"], "break"),
    ] {
        assert_eq!(text(theirs), text(&["help", ours]), "{theirs:?}");
    }
    for (word, differs) in [
        (
            "list",
            "where gdb's list continues after the lines that it showed",
        ),
        ("thread", "as threads lists them; gdb counts them from 1"),
    ] {
        let help = text(&["help", word]);
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(help.contains(differs), "{word}: {help}");
    }
    text(&["handle", "SIGUSR1", "nostop"]);
    text(&["delete"]);
    assert_eq!(text(&["info", "b"]), "There are none.\n");
}

/// In a recording nothing is displayed, and what needs the program is called as people write it.
#[test]
fn refusals_use_the_words_of_people() {
    let scratch = Scratch::new("gdb-recorded");
    let program = Program::new(program(), scratch.path());
    let (_, recording) = Hindsight::record(&scratch, &[], &program);
    let said = recording.prompt(&["info display"]).text();
    assert!(said.contains("Nothing is displayed."), "{said}");
    let ended = recording.prompt(&["info signals"]);
    let said = ended.text() + &ended.errors();
    assert!(said.contains("info signals needs a program"), "{said}");
}

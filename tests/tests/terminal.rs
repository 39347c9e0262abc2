//! Goal: on a terminal a recorded program is in the same situation as natively: in the foreground, with the keys, the size
//! and the signals. Method: the same input goes to a shell that runs a program natively and recorded; the output must be
//! equal.

use e2e::{Hindsight, Program, Recording, Scratch, Status, fixture_artifact};
use std::path::Path;

/// The typed texts, each after the output before it. Ctrl-C, Ctrl-Z and Ctrl-D are also plain keys, in raw mode.
const TYPED: [(&str, &str); 9] = [
    ("line>", "some worry\x7f\x7fds\r"),
    ("keys>", "\x03\x1a\x04q"),
    ("interrupt>", "\x03"),
    ("stop>", "\x1a"),
    ("ready> ", "jobs -s | wc -l\r"),
    ("ready> ", "fg\r"),
    ("end>", "\x03"),
    ("ready> ", "echo status $?\r"),
    ("ready> ", "exit\r"),
];

/// Runs a command line in a shell on a terminal of 77 columns, and returns its output, without the messages of the
/// shell and Hindsight.
fn in_shell(scratch: &Scratch, command: &str) -> Vec<String> {
    let driver = Path::new(env!("CARGO_MANIFEST_DIR")).join("../repl/tests/common/terminal.py");
    let mut args = vec![driver.display().to_string(), "77".to_owned()];
    let start = ("ready> ".to_owned(), format!("{command}\r"));
    let typed = TYPED.map(|(wait, send)| (wait.to_owned(), send.to_owned()));
    for (wait, send) in std::iter::once(start).chain(typed) {
        args.extend(["--step".to_owned(), wait, send]);
    }
    let shell = [
        "--",
        "/bin/bash",
        "--norc",
        "--noprofile",
        "--noediting",
        "-i",
    ];
    args.extend(shell.map(str::to_owned));
    let ended = Program::new("/usr/bin/python3", scratch.path())
        .args(args)
        .env("PS1", "ready> ")
        .env("TERM", "dumb")
        .env("HISTFILE", "/dev/null")
        .run();
    assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
    let shown = ended.text().replace('\r', "");
    let of_shell = |line: &str| {
        line.is_empty()
            || line == "exit"
            || line.contains("ready> ")
            || line.contains("Stopped")
            || line.contains(command)
    };
    shown
        .lines()
        .map(|line| line.split("hindsight: ").next().unwrap_or_default())
        .filter(|line| !of_shell(line))
        .map(str::to_owned)
        .collect()
}

#[test]
fn keys_size_signals_and_the_foreground_are_as_without_us() {
    let scratch = Scratch::new("term");
    let program = fixture_artifact("stdio", "stdio");
    let native = in_shell(&scratch, &format!("{} term", program.display()));
    let wanted = [
        "foreground 1, session 1",
        "size 40 77",
        "line>some words",
        "got some words",
        "keys>got 3 26 4 113",
        "interrupt>^Cinterrupted",
        "stop>^Z",
        "1",
        "continued, foreground 1",
        "end>^C",
        "status 130",
    ];
    // The terminal also shows the erased text.
    let without_erased = |line: &String| line.replace("worry\u{8} \u{8}\u{8} \u{8}ds", "words");
    let shown: Vec<String> = native.iter().map(without_erased).collect();
    assert_eq!(shown, wanted, "natively");
    let hindsight = Hindsight::path().display();
    let record = format!("{hindsight} record -o rec -- {} term", program.display());
    assert_eq!(in_shell(&scratch, &record), native);
    let recording = Recording::new(scratch.join("rec.hindsight"));
    assert_eq!(recording.command("check", &[]).status, Status::Code(0));
    let written = String::from_utf8(recording.output("stdout")).expect("it writes text");
    assert!(
        written
            .starts_with("foreground 1, session 1\nsize 40 77\nline>got some words\nkeys>got 3 "),
        "{written}"
    );
    assert!(
        written.ends_with("stop>continued, foreground 1\nend>"),
        "{written}"
    );
    let exit = recording.row("SELECT aux FROM events WHERE kind = 'process_exit'");
    assert_eq!(exit["aux"], "SIGINT");
}

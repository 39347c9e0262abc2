//! Goal: what scripts for gdb write, `echo`, `printf` and `display`, is written here as gdb writes it. Method: gdb and a live session at
//! the same place of the same program, whose addresses are fixed; the same in a recording.

use std::path::PathBuf;

use e2e::{Hindsight, Live, Program, Scratch, fixture_artifact};

fn program() -> PathBuf {
    fixture_artifact("control", "control_O0_fixed")
}

/// What gdb says at the entry of `leaf`.
fn of_gdb(live: &Live, command: &str) -> String {
    let commands = ["break leaf", "run > /dev/null", "echo ~~~\\n", command];
    let said = Program::new("/usr/bin/gdb", live.scratch.path())
        .args(["-batch", "-nx", "-q"])
        .args(commands.iter().flat_map(|command| ["-ex", *command]))
        .args([program().to_str().expect("text")])
        .run()
        .text();
    let (_, said) = said.split_once("~~~\n").unwrap_or_else(|| panic!("{said}"));
    said.to_owned()
}

/// What lines at the prompt write.
fn prompt(live: &Live, lines: &[&str]) -> String {
    let words: Vec<&str> = lines.iter().flat_map(|line| ["--cmd", *line]).collect();
    let ended = live.command(&[&["repl"], words.as_slice()].concat()).run();
    let errors = ended.errors();
    let errors = errors
        .lines()
        .filter(|line| !line.starts_with("hindsight: session"));
    ended.text() + &errors.map(|line| format!("{line}\n")).collect::<String>()
}

#[test]
fn texts_are_echoed_as_in_gdb() {
    let live = Live::started("gdb-echo", &["--break", "leaf"], &program(), &[]);
    for command in [
        "echo total is:\\n",
        "echo   two  spaces\\n\\n",
        "echo \\  lead\\tit's \"so\"\\n",
        "echo \\101\\102 back\\\\slash\\n",
        "echo --- x ---\\n",
        "echo",
    ] {
        assert_eq!(
            prompt(&live, &[command]),
            of_gdb(&live, command),
            "{command}"
        );
    }
    let said = live.command(&["echo", "a\\tb\\n"]).run();
    assert_eq!(said.text(), "a\tb\n");
    // Among the lines of a breakpoint.
    let script = "break middle\ncommands\nsilent\necho  here:  \\n\nprint x\nend\ncontinue\n";
    std::fs::write(live.scratch.join("lines"), script).expect("the test's folder is writable");
    let said = live.command(&["repl", "--script", "lines"]).run();
    let (text, errors) = (said.text(), said.errors());
    assert!(text.contains("\nhere:  \n$1 = 41\n"), "{text}{errors}");
}

#[test]
fn formats_have_the_escapes_and_lengths_of_gdb() {
    let live = Live::started("gdb-printf", &["--break", "leaf"], &program(), &[]);
    for command in [
        "printf \"%5.2f|%c|%%|%p|%lu\\n\", 3.14159, 65, &tempo, 5",
        "printf \"%lu %lx %ld %u %x\\n\", -1, -1, -1, -1, -1",
        "printf \"%hd %llx\\n\", 70000, 255",
        "printf \"tab\\tquote\\\"back\\\\slash\\n\"",
        "printf \"%p\\n\", 0",
    ] {
        assert_eq!(
            prompt(&live, &[command]),
            of_gdb(&live, command),
            "{command}"
        );
    }
    // For a text of its own gdb calls a function of the program, which it cannot do with every processor.
    let text = prompt(&live, &["printf \"%-10s|\\n\", \"ab\""]);
    assert_eq!(text, "ab        |\n");
    let refused = prompt(&live, &["printf \"\\x41\\n\""]);
    assert!(
        refused.contains("\\x is not an escape of a format"),
        "{refused}"
    );
}

#[test]
fn memory_and_instructions_are_displayed() {
    let live = Live::started("gdb-display-memory", &["--break", "leaf"], &program(), &[]);
    let said = prompt(
        &live,
        &[
            "display/4xw &tempo",
            "display/2xb &tempo",
            "display/2i $pc",
            "next",
        ],
    );
    let units = |text: &str| -> Vec<String> {
        let (_, values) = text.split_once(':').unwrap_or_else(|| panic!("{text}"));
        values.split_whitespace().map(str::to_owned).collect()
    };
    for (line, asked) in [
        ("1: /4xw &tempo = ", "x/4xw &tempo"),
        ("2: /2xb &tempo = ", "x/2xb &tempo"),
    ] {
        let shown: Vec<&str> = said
            .lines()
            .filter_map(|text| text.strip_prefix(line))
            .collect();
        assert_eq!(shown.len(), 2, "when it is set, and after next: {said}");
        let theirs = units(&of_gdb(&live, asked));
        assert!(
            shown.iter().all(|shown| units(shown) == theirs),
            "{theirs:?}: {said}"
        );
    }
    let instructions = said.lines().find(|line| line.starts_with("3: /2i $pc = "));
    let instructions = instructions.unwrap_or_else(|| panic!("{said}"));
    assert_eq!(instructions.matches("<leaf+").count(), 2, "{said}");
    let refused = prompt(&live, &["display/2s tempo"]);
    assert!(refused.contains("display has no format /2s"), "{refused}");
}

#[test]
fn memory_of_a_recording_is_displayed_with_its_age() {
    let scratch = Scratch::new("gdb-display-recorded");
    let program = Program::new(program(), scratch.path());
    let (_, recording) = Hindsight::record(&scratch, &[], &program);
    let said = recording.prompt(&["break leaf", "continue", "display/1xw &tempo"]);
    let (text, errors) = (said.text(), said.errors());
    assert!(
        text.contains("1: /1xw &tempo = 0x404058: 0x00000078 <stale: as of event "),
        "{text}{errors}"
    );
}

#[test]
fn a_print_that_fails_takes_no_number() {
    let live = Live::started("gdb-numbers", &["--break", "leaf"], &program(), &[]);
    let said = prompt(
        &live,
        &[
            "print nobody",
            "print *(int *)8",
            "print 1/0",
            "print tempo",
            "print $",
        ],
    );
    assert!(said.contains("*(int *)8 = <"), "{said}");
    assert!(said.contains("$1 = 120\n$2 = 120\n"), "{said}");
}

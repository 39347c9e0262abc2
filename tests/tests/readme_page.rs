//! Goal: the README's sections about recordings show what is printed. Method: their commands run again with the programs of the page;
//! all is compared except times, sizes, addresses, and the numbers of events and processes. `live_page.rs` has the live session.

use std::fs;
use std::os::unix::fs::symlink;

use e2e::{Hindsight, Program, Scratch, fixture_source, workspace_dir};

/// Units and nouns of quantities that differ from machine to machine.
const QUANTITIES: [&str; 10] = [
    "ns", "us", "ms", "s", "kB", "MB", "B/call", "%", "events", "files",
];
/// Words in front of numbers that differ.
const NUMBERED: [&str; 3] = ["seq", "thread", "failing"];
/// The call of `main` has this place only where the C library has debug information.
const CALLER_OF_MAIN: &str = ", called at libc_start_call_main.h:58";

/// Makes a folder with the programs of the page, and with the two recordings that it compares.
fn folder() -> Scratch {
    let scratch = Scratch::new("readme");
    for (fixture, file) in [
        ("fib", "fib.c"),
        ("failing", "failing.c"),
        ("hunts", "invoices.c"),
    ] {
        let source = fixture_source(fixture).join(file);
        fs::copy(source, scratch.join(file)).expect("the folder is ours");
    }
    fs::create_dir(scratch.join("bin")).expect("the folder is ours");
    symlink(Hindsight::path(), scratch.join("bin/hindsight")).expect("the folder is ours");
    for command in [
        "gcc -g -O1 -o fib fib.c && gcc -g -O0 -o failing failing.c",
        "mkdir old new && cp invoices.c old && sed 's:/ 1000;:/ 100;:' invoices.c >new/invoices.c",
        "gcc -g -O0 -o old/invoices old/invoices.c && gcc -g -O0 -o new/invoices new/invoices.c",
        "hindsight record -o good -- old/invoices && hindsight record -o bad -- new/invoices",
    ] {
        shown(&scratch, &format!("{command} || echo failed"));
    }
    scratch
}

/// Runs a command line and returns everything that a shell would show.
fn shown(scratch: &Scratch, command: &str) -> String {
    let others = std::env::var("PATH").expect("there is a PATH");
    let path = format!("{}:{others}", scratch.join("bin").display());
    let script = format!("exec 2>&1; {command}");
    let shell = Program::new("/bin/sh", scratch.path()).args(["-c", &script]);
    let text = shell.env("PATH", path).run().text();
    assert!(!text.ends_with("failed\n"), "{command}: {text}");
    text
}

/// The commands of a section, each with what the page shows of its output.
fn transcripts(page: &str, heading: &str) -> Vec<(String, Vec<String>)> {
    let (_, section) = page.split_once(heading).expect("the section is there");
    let section = section.split("\n## ").next().unwrap_or_default();
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    for block in section.split("```").skip(1).step_by(2) {
        for line in block.lines().skip(1) {
            if let Some(command) = line.strip_prefix("$ ") {
                found.push((command.to_owned(), Vec::new()));
            } else if let Some((_, shown)) = found.last_mut() {
                shown.push(line.to_owned());
            }
        }
    }
    found
}

fn is_number(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
        && word
            .chars()
            .all(|c| c.is_ascii_digit() || matches!(c, ',' | '.'))
}

fn bare(word: &str) -> &str {
    word.trim_matches(['(', ')', ',', ';', ':'])
}

/// The text without the digits of addresses; small hexadecimal numbers remain.
fn without_addresses(text: &str) -> String {
    let mut parts = text.split("0x");
    let mut all = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_hexdigit());
        let digits = &part[..part.len() - rest.len()];
        let shown = if digits.len() > 8 { "ADDRESS" } else { digits };
        all.push_str(&format!("0x{shown}{rest}"));
    }
    all
}

/// A row of a table without event numbers, which are first, and times, which are last.
fn row(line: &str) -> String {
    let cells: Vec<&str> = line.split('|').map(str::trim).collect();
    let last = cells.len() - 1;
    let cell = |(at, cell): (usize, &&str)| match (at == 0 || at == last) && is_number(cell) {
        true => "N".to_owned(),
        false => without_addresses(cell),
    };
    let cells: Vec<String> = cells.iter().enumerate().map(cell).collect();
    cells.join(" | ")
}

/// A line of text without what differs.
fn comparable(line: &str) -> String {
    if line.contains('|') {
        return row(line);
    }
    let text = without_addresses(&line.replace(CALLER_OF_MAIN, ""));
    let mut all: Vec<String> = Vec::new();
    let mut words = text.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let is_quantity = |next: &&str| QUANTITIES.contains(&bare(next));
        let before = all.last().map(|word| bare(word));
        let is_numbered = before.is_some_and(|before| NUMBERED.contains(&before));
        // The events that are asked about.
        let asked = word
            .split_once('(')
            .filter(|(name, _)| ["backtrace", "locals"].contains(name));
        match is_number(bare(word)) {
            true if words.next_if(is_quantity).is_some() => all.push("QUANTITY".to_owned()),
            true if is_numbered => all.push("N".to_owned()),
            true if words.peek() == Some(&"other") => all.push("N".to_owned()),
            _ => all.push(asked.map_or(word, |(name, _)| name).to_owned()),
        }
    }
    all.join(" ")
}

/// The lines to compare: a terminal also shows the number of rows, and how far a long sealing is.
fn lines<'t>(text: impl Iterator<Item = &'t str>) -> Vec<String> {
    let is_kept = |line: &&str| {
        let is_rule = line.chars().all(|c| matches!(c, '-' | '+'));
        !is_rule && !line.ends_with(" rows)") && !line.starts_with("hindsight: note: ")
    };
    let mut all: Vec<String> = text.filter(is_kept).map(comparable).collect();
    let times = all.iter().position(|line| line.starts_with("Time in "));
    if let Some(second) = times.and_then(|at| all.get_mut(at + 2)) {
        let head = "QUANTITY QUANTITY ";
        assert!(second.starts_with(head), "{second}");
        // The first one takes nearly all of the time; which is the next is up to the processor.
        second.truncate(head.len());
    }
    all
}

#[test]
fn the_recordings_of_the_readme_show_what_is_printed() {
    let page = fs::read_to_string(workspace_dir().join("README.md")).expect("the page is there");
    let scratch = folder();
    let mut compared = 0;
    // The event of the call that failed, as the overview tells it.
    let mut failed = "104".to_owned();
    for heading in [
        "\n## A session\n",
        "\n## What to know first\n",
        "\n## Two runs compared\n",
    ] {
        for (command, expected) in transcripts(&page, heading) {
            let command = command.replace("failing 104", &format!("failing {failed}"));
            let text = shown(&scratch, &command);
            if let Some((before, _)) = text.split_once(" (id=7)\n") {
                let seq = before.rsplit(' ').next().expect("a word");
                seq.clone_into(&mut failed);
            }
            let mut expected = lines(expected.iter().map(String::as_str));
            let is_cut = expected.last().is_some_and(|line| line == "...");
            expected.truncate(expected.len() - usize::from(is_cut));
            let mut found = lines(text.lines());
            found.truncate(match is_cut {
                true => expected.len(),
                false => found.len(),
            });
            // The page does not show what the program itself has printed.
            if !expected.is_empty() {
                assert_eq!(expected.join("\n"), found.join("\n"), "{command}");
                compared += 1;
            }
        }
    }
    assert_eq!(compared, 8);
}

#[test]
fn what_differs_between_machines_is_not_compared() {
    for (one, other) in [
        (
            "was ended by SIGSEGV after 43.3 ms (seq 129, at 65.2 ms)",
            "was ended by SIGSEGV after 1.2 s (seq 131, at 2 s)",
        ),
        ("130 events, 59 calls", "132 events, 59 calls"),
        (
            " 5 | argv=0x7ffdefd2a8b8 | 31",
            " 6 | argv=0x7ffdefd2a000 | 7",
        ),
        ("7 other events, 2 functions", "8 other events, 2 functions"),
    ] {
        assert_eq!(comparable(one), comparable(other));
    }
    for (one, other) in [
        ("59 calls of 11 functions", "59 calls of 12 functions"),
        (
            "count(order=0x10) at failing.c:56",
            "count(order=0x18) at failing.c:56",
        ),
        (" 5 | n=25 | 3", " 5 | n=24 | 3"),
        ("at failing.c:56", "at failing.c:57"),
    ] {
        assert_ne!(comparable(one), comparable(other));
    }
}

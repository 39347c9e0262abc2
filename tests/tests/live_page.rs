//! Goal: docs/live.md and the README show what live control prints. Method: each transcript is run again, section by section, with
//! the programs of the pages; everything is compared except what differs from run to run: process ids, addresses, sizes of files,
//! and internal names of a C library. `UPDATE_EXPECT=1` writes the output into the pages.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use e2e::{Hindsight, Live, fixture_source};
use serde_json::json;

/// The folder in which the pages ran everything.
const SHOP: &str = "/tmp/shop";

/// The commands to run before the transcripts of a section, besides those on the page.
const BEFORE: [(&str, &[&str]); 10] = [
    ("## A first look", &[]),
    ("## Locations", &["hindsight start --break total ./orders"]),
    (
        "### Conditions in JavaScript",
        &[
            "hindsight stop",
            "hindsight start --stop-on-entry ./conditions_c_O0",
        ],
    ),
    (
        "## Logpoints",
        &["hindsight stop", "hindsight start --break total ./orders"],
    ),
    (
        "## Watchpoints",
        &["hindsight stop", "hindsight start --break total ./orders"],
    ),
    ("## Exceptions, panics, signals", &["hindsight stop"]),
    (
        "## Values",
        &[
            "hindsight stop",
            "hindsight start --break orders.c:11 ./orders",
        ],
    ),
    (
        "## Threads",
        &[
            "hindsight stop",
            "./workers > /dev/null 2>&1 & echo $! > pid; echo \"(process $!)\"",
        ],
    ),
    (
        "## At a prompt",
        &["hindsight stop", "rm -r orders*.hindsight"],
    ),
    (
        "## For programs",
        &["hindsight start --break total ./orders"],
    ),
];

/// A folder with the programs of the pages.
struct Shop {
    live: Live,
    path: String,
}

impl Shop {
    fn new(orders: &str) -> Self {
        let live = Live::new("page");
        let folder = live.scratch.path().to_path_buf();
        std::fs::write(folder.join("orders.c"), orders).expect("the folder is ours");
        for (fixture, file) in [
            ("shop", "parse.cpp"),
            ("shop", "workers.c"),
            ("conditions", "conditions.c"),
        ] {
            let source = fixture_source(fixture).join(file);
            std::fs::copy(source, folder.join(file)).expect("the folder is ours");
        }
        let bin = folder.join("bin");
        std::fs::create_dir(&bin).expect("the folder is ours");
        std::os::unix::fs::symlink(Hindsight::path(), bin.join("hindsight")).expect("it is ours");
        let others = std::env::var("PATH").expect("tests have one");
        let shop = Self {
            live,
            path: format!("{}:{others}", bin.display()),
        };
        for command in [
            "gcc -g -o orders orders.c",
            "g++ -g -o parse parse.cpp",
            "gcc -g -pthread -o workers workers.c",
            "gcc -g -O0 -o conditions_c_O0 conditions.c",
        ] {
            assert_eq!(shop.run(command), "", "{command}");
        }
        shop
    }

    /// Runs a command line and returns everything that a shell would show.
    fn run(&self, command: &str) -> String {
        self.run_with(command, "")
    }

    fn run_with(&self, command: &str, input: &str) -> String {
        let script = format!("exec 2>&1; {command}");
        let shell = self.live.command(&[]);
        let shell = shell.wrapped(Path::new("/bin/sh"), ["-c", &script]);
        let ended = shell.env("PATH", &self.path).stdin(input).run();
        if command.starts_with("hindsight stop") {
            self.let_the_daemon_end();
        }
        let text = ended.text();
        for part in text.split("(process ").skip(1) {
            let pid = part
                .split(')')
                .next()
                .and_then(|pid| pid.parse::<i32>().ok());
            self.live
                .keep(&json!({"pid": pid.expect("a process has a number")}));
        }
        // The progress of sealing depends on the machine.
        let is_kept = |line: &&str| !line.starts_with("hindsight: note: this recording is being");
        let text: String = text.split_inclusive('\n').filter(is_kept).collect();
        let folder = self.live.scratch.path().to_str().expect("text");
        text.replace(folder, SHOP)
    }

    /// A daemon without sessions ends with its last client. A command that comes sooner than a person's would keep it, and the next
    /// session would have another number.
    fn let_the_daemon_end(&self) {
        let Some(daemon) = self.live.daemon() else {
            return;
        };
        let (_, status) = self.live.response(&["status"]);
        if status["result"]["sessions"]
            .as_array()
            .is_none_or(Vec::is_empty)
        {
            self.live.wait_for_end_of(daemon);
        }
    }

    /// The answers to the lines of a conversation over the socket.
    fn converse(&self, lines: &[&str]) -> Vec<String> {
        let mut stream = UnixStream::connect(self.live.socket()).expect("the daemon listens");
        let mut answers = BufReader::new(stream.try_clone().expect("a socket can be shared"));
        let said = lines
            .iter()
            .map(|line| match line.strip_prefix("client: ") {
                Some(request) => {
                    writeln!(stream, "{request}").expect("the daemon reads");
                    (*line).to_owned()
                }
                None => {
                    let mut answer = String::new();
                    answers.read_line(&mut answer).expect("the daemon answers");
                    format!("daemon: {}", answer.trim_end())
                }
            });
        said.collect()
    }
}

/// A line of a page without the parts that differ from run to run.
fn comparable(line: &str) -> String {
    // Names of frames and places in a C library depend on its version.
    let is_frame = line.trim_start_matches([' ', '*']).starts_with('#');
    if is_frame && !line.contains(SHOP) {
        let number = line.split_whitespace().next().unwrap_or_default();
        return format!("{} elsewhere", number.trim_start_matches('*'));
    }
    for (place, shown) in [
        ("stopped on request: ", "stopped somewhere"),
        (": __cxa_throw", " where all throws come by"),
    ] {
        if let Some((before, _)) = line.split_once(place) {
            return comparable(before) + shown;
        }
    }
    // The instructions depend on the compiler.
    if let Some((address, _)) = line.split_once('+').filter(|(text, _)| text.contains(" <")) {
        return comparable(address);
    }
    let bytes = line.as_bytes();
    let (mut text, mut at) = (String::new(), 0);
    while at < bytes.len() {
        let rest = &line[at..];
        let number = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let hexadecimal = rest.strip_prefix("0x").map_or(0, |digits| {
            digits.len()
                - digits
                    .trim_start_matches(|c: char| c.is_ascii_hexdigit())
                    .len()
        });
        let significant = rest.get(2..2 + hexadecimal).unwrap_or_default();
        let significant = significant.trim_start_matches('0').len();
        if hexadecimal > 0 {
            // Of code, data and stacks; values are shorter or longer.
            text += match significant {
                11 | 12 => "ADDRESS",
                _ => &rest[..2 + hexadecimal],
            };
            at += 2 + hexadecimal;
        } else if number > 0 {
            let is_id = ["process ", "Thread ", " t", "\"pid\":"]
                .iter()
                .any(|word| text.ends_with(word));
            let unit = rest[number..].trim_start_matches(|c: char| c == '.' || c.is_ascii_digit());
            let size_unit = [" B", " kB", " MB"]
                .iter()
                .find(|word| unit.starts_with(**word))
                .map(|word| word.len());
            let is_thread = rest.contains(" | workers |");
            // What was on the stack before.
            let is_garbage = unit.starts_with("e-3");
            let is_offset = text.ends_with('+');
            let whole = rest.len() - unit.len();
            let (shown, len) = match size_unit {
                _ if is_id || is_thread => ("ID", number),
                Some(unit) => ("SIZE", whole + unit),
                None if is_offset => ("OFFSET", number),
                None if is_garbage => {
                    let end = unit.find(' ').map_or(rest.len(), |end| whole + end);
                    ("GARBAGE", end)
                }
                None => (&rest[..number], number),
            };
            text += shown;
            at += len;
        } else {
            let next = rest.chars().next().expect("there is more");
            // Columns are as wide as their contents.
            let is_filling = matches!(next, ' ' | '-') && text.ends_with(next);
            if !is_filling {
                text.push(next);
            }
            at += next.len_utf8();
        }
    }
    text.trim_end().to_owned()
}

fn comparable_text(text: &str) -> String {
    text.lines().map(|line| comparable(line) + "\n").collect()
}

/// The part of a session at a prompt that remains with input from a pipe: no prompts, no messages for terminals only.
fn piped(transcript: &[&str]) -> String {
    let mut text = String::new();
    for line in transcript {
        let is_prompt = ["live ", "past "].iter().any(|word| line.starts_with(word));
        let is_shown_in_terminals = line.starts_with("help lists the verbs")
            || line.ends_with(" rows)")
            || line.starts_with("total -651")
            || *line == "sold 0";
        if !is_prompt && !is_shown_in_terminals {
            text += &format!("{line}\n");
        }
    }
    text
}

/// Runs the transcripts of a page and returns the page as it is now.
fn rerun(shop: &Shop, page: &str, wanted: impl Fn(&str) -> bool) -> (String, usize) {
    let (mut text, mut examples) = (String::new(), 0);
    let mut section = String::new();
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        text += &format!("{line}\n");
        if line.starts_with('#') && line.contains("# ") {
            line.clone_into(&mut section);
            let before = BEFORE.iter().find(|(heading, _)| *heading == line);
            for command in before.iter().flat_map(|(_, commands)| *commands) {
                shop.run(command);
            }
        }
        let command = line.strip_prefix("$ ").filter(|_| wanted(&section));
        let is_conversation = line.starts_with("daemon: ");
        if command.is_none() && !is_conversation {
            continue;
        }
        examples += 1;
        let shown = |lines: &mut std::iter::Peekable<std::str::Lines<'_>>| {
            let mut shown = Vec::new();
            while let Some(line) = lines.next_if(|line| *line != "```" && !line.starts_with("$ ")) {
                shown.push(line.to_owned());
            }
            shown
        };
        let old = shown(&mut lines);
        let old_lines: Vec<&str> = old.iter().map(String::as_str).collect();
        let old_text: String = old.iter().map(|line| format!("{line}\n")).collect();
        let new_text = match command {
            None => {
                let all = [&[line], old_lines.as_slice()].concat();
                let said = shop.converse(&all);
                assert_eq!(comparable(&said[0]), comparable(line), "the greeting");
                said[1..].iter().map(|line| format!("{line}\n")).collect()
            }
            Some(command) if command.starts_with("hindsight repl --break") => {
                at_the_prompt(shop, command, &old_lines);
                old_text.clone()
            }
            Some(command) => shop.run(command),
        };
        let is_same = comparable_text(&old_text) == comparable_text(&new_text);
        text += if is_same { &old_text } else { &new_text };
    }
    (text, examples)
}

/// Passes the lines after the prompts of a transcript to a prompt without a terminal.
fn at_the_prompt(shop: &Shop, command: &str, transcript: &[&str]) {
    let typed = transcript.iter().filter_map(|line| {
        let is_prompt = ["live ", "past "].iter().any(|word| line.starts_with(word));
        let (_, typed) = line.split_once("> ").filter(|_| is_prompt)?;
        Some(format!("{typed}\n"))
    });
    let said = shop.run_with(command, &typed.collect::<String>());
    let said: Vec<&str> = said
        .lines()
        .filter(|line| !line.starts_with("  at stdin:"))
        .collect();
    assert_eq!(
        comparable_text(&piped(&said)),
        comparable_text(&piped(transcript)),
        "the session at the prompt"
    );
}

fn page_path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)
}

/// The source that docs/live.md prints.
fn orders(page: &str) -> String {
    let (_, source) = page.split_once("```c\n").expect("the page has a program");
    let (source, _) = source.split_once("```").expect("a block ends");
    source.to_owned()
}

fn assert_page(name: &str, old: &str, new: &str) {
    if old != new && std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(page_path(name), new).expect("the page can be written");
        return;
    }
    for (number, (old, new)) in (1..).zip(old.lines().zip(new.lines())) {
        assert_eq!(
            old, new,
            "{name}:{number}; UPDATE_EXPECT=1 rewrites the page"
        );
    }
    assert_eq!(old.len(), new.len(), "{name} is cut");
}

#[test]
fn every_transcript_of_live_control_is_what_is_printed() {
    let page = std::fs::read_to_string(page_path("docs/live.md")).expect("the page");
    let shop = Shop::new(&orders(&page));
    let (text, examples) = rerun(&shop, &page, |_| true);
    assert!(examples > 50, "the page has {examples} examples");
    assert_page("docs/live.md", &page, &text);
}

#[test]
fn the_live_session_of_the_readme_is_what_is_printed() {
    let live = std::fs::read_to_string(page_path("docs/live.md")).expect("the page");
    let page = std::fs::read_to_string(page_path("README.md")).expect("the page");
    let shop = Shop::new(&orders(&live));
    let (text, examples) = rerun(&shop, &page, |section| section == "## A live session");
    assert!(examples > 10, "the README has {examples} examples");
    assert_page("README.md", &page, &text);
}

#[test]
fn what_differs_between_runs_is_not_compared() {
    for (one, other) in [
        (
            "Thread 12 (x) stopped at breakpoint 1: 0x7ffc00001111",
            "Thread 345 (x) stopped at breakpoint 1: 0x55aa00002222",
        ),
        (" a  | b\n--+--", " a    | b\n----+--"),
        ("2 calls, 26.7 kB", "2 calls, 1 MB"),
        ("sum | 6.9e-310", "sum | 4.67e-317"),
        ("*#0   a () at ./nptl/x.c:57", " #0  b in libc.so"),
        (
            "-> 0x558b1031319e <total+101>  mov eax,[rbp-0xc]",
            "-> 0x55aa10313100 <total+99>  mov ecx,eax",
        ),
        (
            " rip | 0x558b1031319e | total+101",
            " rip | 0x55aa10313100 | total+9",
        ),
        ("int: __cxa_throw", "int: __cxa_throw at eh_throw.cc:80"),
    ] {
        assert_eq!(comparable(one), comparable(other));
    }
    for (one, other) in [
        ("hit 1", "hit 2"),
        ("at /tmp/shop/orders.c:8", "at /tmp/shop/orders.c:9"),
        ("price = 0x4023000000000000", "price = 0x4024000000000000"),
        ("2 calls, 26.7 kB", "3 calls, 26.7 kB"),
        ("sum = 1.5", "sum = 1.6"),
        ("orders[0].pieces = i + 3", "orders[0].pieces = i + 4"),
    ] {
        assert_ne!(comparable(one), comparable(other));
    }
}

//! Goal: the hunts of `docs/full.md` are true. Method: each is repeated, and must print each line of the page in the same order;
//! addresses, threads, moments and folders may differ.

use std::path::{Path, PathBuf};

use e2e::{Hindsight, Program, Scratch, fixture_artifact};

/// A block of the page: the program, its input, and its output.
struct Hunt {
    program: String,
    typed: Vec<String>,
    shown: Vec<String>,
}

/// The hunts of the page.
fn hunts() -> Vec<Hunt> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/full.md");
    let page = std::fs::read_to_string(page).expect("the page is there");
    let blocks = page.split("```\n").filter(|block| block.contains("\n> "));
    let hunt = |block: &str| {
        let mut hunt = Hunt {
            program: String::new(),
            typed: Vec::new(),
            shown: Vec::new(),
        };
        for line in block.lines() {
            match (
                line.strip_prefix("$ hindsight repl "),
                line.strip_prefix("> "),
            ) {
                (Some(program), _) => hunt.program = program.to_owned(),
                (_, Some(typed)) => hunt.typed.push(typed.to_owned()),
                _ if line.starts_with("$ hindsight ") => {}
                _ => hunt.shown.push(line.to_owned()),
            }
        }
        hunt
    };
    blocks.map(hunt).collect()
}

/// A line without the parts that differ from run to run.
fn steady(line: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut before = "";
    for word in line.split_whitespace() {
        let is_number = matches!(before, "Thread" | "event");
        words.push(match word.split_once("0x") {
            _ if is_number => "N".to_owned(),
            Some((start, rest)) => {
                let end = rest.find(|c: char| !c.is_ascii_hexdigit());
                format!("{start}0xN{}", end.map_or("", |end| &rest[end..]))
            }
            None => match word.rsplit_once('/') {
                Some((_, name)) if name.contains('.') => name.to_owned(),
                _ => word.to_owned(),
            },
        });
        before = word;
    }
    words.join(" ")
}

fn artifact(name: &str) -> PathBuf {
    let folder = match name {
        "timers" => "hunts",
        name => name,
    };
    fixture_artifact(folder, name)
}

#[test]
fn the_hunts_of_the_page_end_as_it_shows() {
    let hunts = hunts();
    let programs: Vec<&str> = hunts.iter().map(|hunt| hunt.program.as_str()).collect();
    assert_eq!(programs, ["planted", "timers"]);
    for hunt in &hunts {
        let scratch = Scratch::new(&format!("full-page-{}", hunt.program));
        let program = Program::new(artifact(&hunt.program), scratch.path());
        let (_, recording) = Hindsight::record(&scratch, &["--full"], &program);
        let words: Vec<&str> = hunt.typed.iter().flat_map(|line| ["--cmd", line]).collect();
        let printed = recording.command("repl", &words);
        let text = printed.text();
        let mut lines = text.lines().map(steady);
        for shown in &hunt.shown {
            let wanted = steady(shown);
            assert!(
                lines.any(|line| line == wanted),
                "{} does not print, in its place: {wanted}\n{text}{}",
                hunt.program,
                printed.errors()
            );
        }
    }
}

#[test]
fn what_differs_from_run_to_run_is_left_out() {
    assert_eq!(
        steady("Thread 21 at event 4+19, after x: f (a=0x5f, b=2) at /a/b/c.c:20"),
        "Thread N at event N after x: f (a=0xN, b=2) at c.c:20"
    );
    assert_eq!(steady("$1 = 0x55 \"a\""), "$1 = 0xN \"a\"");
}

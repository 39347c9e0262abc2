//! Goal: the hunts and the queries of `docs/full.md` are true. Method: each hunt is repeated, and must print each line of the page in the
//! same order; addresses, threads, moments and folders may differ. Each query is asked of the first hunt's program, with the address of
//! the pointer that it looks for.

use std::path::{Path, PathBuf};

use e2e::{Hindsight, Program, Recording, Scratch, fixture_artifact, marked_line};

/// A block of the page: the program, its input, and its output.
struct Hunt {
    program: String,
    typed: Vec<String>,
    shown: Vec<String>,
}

fn page() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/full.md");
    std::fs::read_to_string(page).expect("the page is there")
}

/// The queries of the page, without comments.
fn queries() -> Vec<String> {
    let page = page();
    let blocks = page.split("```sql\n").skip(1);
    let blocks = blocks.filter_map(|rest| rest.split("```").next());
    let uncommented = |block: &str| {
        let lines = block.lines().filter_map(|line| line.split("--").next());
        lines.collect::<Vec<_>>().join(" ")
    };
    let all: String = blocks.map(uncommented).collect();
    let queries = all.split(';').map(str::trim);
    queries
        .filter(|query| !query.is_empty())
        .map(str::to_owned)
        .collect()
}

/// A query in which the two addresses around eight bytes, of more than ten digits each, are these.
fn about(query: &str, addr: u64) -> String {
    let is_address =
        |word: &&str| word.len() > 10 && word.bytes().all(|byte| byte.is_ascii_digit());
    let mut found: Vec<&str> = query.split(' ').filter(is_address).collect();
    found.sort_unstable();
    let Some((first, last)) = found.first().zip(found.last()) else {
        return query.to_owned();
    };
    let ends = (addr + 8).to_string();
    query.replace(last, &ends).replace(first, &addr.to_string())
}

/// The address of `accounts[2].next` in a recording of `planted`.
fn overwritten(recording: &Recording) -> u64 {
    let text = recording
        .prompt(&["print/x (long)&accounts[2].next"])
        .text();
    let address = text.split("= 0x").nth(1).map(str::trim);
    let address = address.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    address.unwrap_or_else(|| panic!("no address: {text}"))
}

/// The hunts of the page.
fn hunts() -> Vec<Hunt> {
    let page = page();
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
fn the_queries_of_the_page_are_answered() {
    let scratch = Scratch::new("full-page-queries");
    let program = Program::new(artifact("planted"), scratch.path());
    let (_, recording) = Hindsight::record(&scratch, &["--full"], &program);
    let addr = overwritten(&recording);
    let queries = queries();
    assert_eq!(queries.len(), 5, "{queries:?}");
    let answers = queries.iter().map(|query| {
        let rows = recording.try_rows(&about(query, addr));
        rows.unwrap_or_else(|refused| panic!("{query}: {}", refused.errors()))
    });
    let answers: Vec<_> = answers.collect();
    // Who wrote the pointer: main, and the three letters that are too many.
    let writers = |rows: &[e2e::Row]| {
        let names = rows.iter().filter_map(|row| row["function"].as_str());
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    let mut all = writers(&answers[0]);
    all.sort_unstable();
    assert_eq!(all, ["call_it", "call_it", "call_it", "main"]);
    // Positions 1000 to 1100, and a file and a function that the program does not have.
    assert_eq!(answers[1].len(), 101);
    assert_eq!(answers[2][0].values().next(), Some(&0.into()));
    assert_eq!(answers[3].len(), 0);
    // The hunt's own: the last of the letters.
    assert_eq!(writers(&answers[4]), ["call_it"]);
    let planted = marked_line("planted", "planted.c", "planted");
    assert_eq!(answers[4][0]["line"], planted);
}

#[test]
fn addresses_in_queries_are_those_of_the_run() {
    let query = "SELECT 1 WHERE addr < 94404117016240 AND addr + size > 94404117016232 LIMIT 1";
    let expected = "SELECT 1 WHERE addr < 4104 AND addr + size > 4096 LIMIT 1";
    assert_eq!(about(query, 4096), expected);
    assert_eq!(about("SELECT 1000", 4096), "SELECT 1000");
}

#[test]
fn what_differs_from_run_to_run_is_left_out() {
    assert_eq!(
        steady("Thread 21 at event 4+19, after x: f (a=0x5f, b=2) at /a/b/c.c:20"),
        "Thread N at event N after x: f (a=0xN, b=2) at c.c:20"
    );
    assert_eq!(steady("$1 = 0x55 \"a\""), "$1 = 0xN \"a\"");
}

//! Checks that `docs/sql.md`, `docs/state.md` and `docs/runs.md` show what `hindsight` prints. Each example of these pages is run on
//! frozen recordings or on a synthetic debugging session, and compared. A line that begins with `$` is a command. A
//! line that begins with `recorded` is typed at the prompt of `hindsight repl`, after a `goto` if the block does not
//! open the prompt.

mod common;

use std::process::Command;

use common::Folder;
use expect_test::expect_file;

/// The end of a block.
const FENCE: &str = "```";
/// The beginning of a prompt.
const PROMPT: &str = "recorded ";
/// The command that opens a prompt.
const OPENING: &str = "$ hindsight repl ";

#[test]
fn every_example_of_sql_prints_what_the_page_shows() {
    let (text, examples) = with_answers(&page("sql.md"));
    assert!(examples > 10, "the page has {examples} examples");
    expect_file!["../../docs/sql.md"].assert_eq(&text);
}

#[test]
fn every_example_of_states_prints_what_the_page_shows() {
    let (text, examples) = with_answers(&page("state.md"));
    assert!(examples > 30, "the page has {examples} examples");
    expect_file!["../../docs/state.md"].assert_eq(&text);
}

#[test]
fn every_example_of_runs_prints_what_the_page_shows() {
    let (text, examples) = with_answers(&page("runs.md"));
    assert!(examples >= 7, "the page has {examples} examples");
    expect_file!["../../docs/runs.md"].assert_eq(&text);
}

fn page(name: &str) -> String {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs");
    std::fs::read_to_string(std::path::Path::new(docs).join(name)).unwrap()
}

/// Returns the page with the current answers, and the number of examples.
fn with_answers(page: &str) -> (String, usize) {
    let (mut text, mut examples) = (String::new(), 0);
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        if line.starts_with(OPENING) || line.starts_with(PROMPT) {
            let mut block = vec![line];
            block.extend(std::iter::from_fn(|| lines.next_if(|line| *line != FENCE)));
            let typed = block
                .iter()
                .filter_map(|line| typed(line))
                .collect::<Vec<_>>();
            examples += typed.len();
            text += &at_prompt(line, &typed);
            continue;
        }
        text += &format!("{line}\n");
        let Some(first) = line.strip_prefix("$ ") else {
            continue;
        };
        // The example's program does not exist.
        if first.starts_with("hindsight record") {
            let rest = std::iter::from_fn(|| lines.next_if(|line| *line != FENCE));
            rest.for_each(|line| text += &format!("{line}\n"));
            continue;
        }
        let mut command = first.to_owned();
        while let Some(more) = lines.next_if(|line| line.starts_with("> ")) {
            text += &format!("{more}\n");
            command += &format!("\n{}", &more[2..]);
        }
        text += &run(&command);
        examples += 1;
        while lines
            .next_if(|line| *line != FENCE && !line.starts_with("$ "))
            .is_some()
        {}
    }
    (text, examples)
}

fn folder() -> Folder {
    let folder = Folder::with_frozen(&["shop", "orders"]);
    folder.add_debugged();
    folder
}

/// Returns the output of a shell command.
fn run(command: &str) -> String {
    let folder = folder();
    let mut shell = Command::new("sh");
    let bin = common::binary().parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    shell
        .args(["-c", &format!("exec 2>&1; {command}")])
        .env("PATH", path);
    folder.at_home(&mut shell);
    String::from_utf8(shell.output().unwrap().stdout).unwrap()
}

/// Returns the typed text, if the line is a prompt's.
fn typed(line: &str) -> Option<&str> {
    let (_, typed) = line.strip_prefix(PROMPT)?.split_once("> ")?;
    Some(typed)
}

/// Runs a block's lines at a prompt and returns the block with their answers. The prompt begins with the opening
/// command, or at the event that the block's first prompt shows.
fn at_prompt(first: &str, typed: &[&str]) -> String {
    let is_opened = first.starts_with(OPENING);
    let seq = first[PROMPT.len().min(first.len())..].split(' ').next();
    let mut lines: Vec<String> = typed.iter().map(|line| format!("{line}\n")).collect();
    if !is_opened {
        lines.insert(0, format!("goto {}\n", seq.unwrap_or_default()));
    }
    lines.push("quit\n".to_owned());
    // Only at the beginning of a line: answers contain the word too.
    let prompt = format!("\n{PROMPT}");
    let steps: Vec<(&str, &str)> = lines
        .iter()
        .map(|line| (prompt.as_str(), line.as_str()))
        .collect();
    let folder = folder();
    let name = first.strip_prefix(OPENING).unwrap_or("orders");
    let shown = folder.on_terminal(100, &["TERM=dumb"], &["repl", name], &steps);
    let prompts: Vec<usize> = shown
        .match_indices(&format!("\n{PROMPT}"))
        .map(|(at, _)| at + 1)
        .collect();
    let end = *prompts.last().expect("the prompt at which it is left");
    match is_opened {
        true => format!("{first}\n{}", &shown[..end]),
        // Skip the first prompt and its answer.
        false => shown[prompts[1]..end].to_owned(),
    }
}

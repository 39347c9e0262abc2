//! `docs/sql.md` shows what `hindsight` prints: each example of the page is run on the frozen recording, or on a
//! made-up debugging session, and compared.

mod common;

use std::process::Command;

use common::Folder;
use expect_test::expect_file;

#[test]
fn every_example_prints_what_the_page_shows() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/sql.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (mut text, mut examples) = (String::new(), 0);
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        text += &format!("{line}\n");
        let Some(first) = line.strip_prefix("$ ") else {
            continue;
        };
        let mut command = first.to_owned();
        while let Some(more) = lines.next_if(|line| line.starts_with("> ")) {
            text += &format!("{more}\n");
            command += &format!("\n{}", &more[2..]);
        }
        text += &run(&command);
        examples += 1;
        while lines.next_if(|line| *line != "```").is_some() {}
    }
    assert!(examples > 10, "the page has {examples} examples");
    expect_file!["../../docs/sql.md"].assert_eq(&text);
}

/// Returns all that the shell shows of a command.
fn run(command: &str) -> String {
    let folder = Folder::with_shop();
    folder.add_debugged();
    let mut shell = Command::new("sh");
    let bin = common::binary().parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    shell
        .args(["-c", &format!("exec 2>&1; {command}")])
        .env("PATH", path);
    folder.at_home(&mut shell);
    String::from_utf8(shell.output().unwrap().stdout).unwrap()
}

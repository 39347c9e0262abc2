//! The SQL prompt and SQL scripts: the same lines, from a terminal or from a pipe.

mod before;
mod command;
mod complete;
pub mod editor;
mod history;
pub mod lines;
mod shell;

use std::io::{self, BufRead};

use rustyline::{CompletionType, Config};

use crate::ask::{Asker, View};
use crate::error::Error;
use crate::format::Format;
use crate::output;
use crate::report::report;
use crate::{exit, statement};

pub use complete::Words;
use editor::{Assistant, Language};
use lines::{Input, Lines};
use shell::{Flow, Shell};

const PROMPT: &str = "hindsight> ";
/// The file of the history.
const HISTORY: &str = "history";

/// Reads lines from the terminal until the user leaves. An error in a line is reported and does not end the prompt.
///
/// # Errors
/// When the terminal cannot be used.
pub fn interactive(asker: Asker, view: View) -> Result<u8, Error> {
    let terminal = view.terminal.clone();
    output::line(shell::greeting(&asker))?;
    let mut shell = Shell::new(asker, view);
    let words = shell.words()?;
    let builder = Config::builder()
        .completion_type(CompletionType::List)
        .completion_show_all_if_ambiguous(true);
    let assistant = Assistant::new(words, terminal.stdout_colour);
    let mut prompt = Lines::open(builder, HISTORY, assistant)?;
    loop {
        let line = match prompt.read(PROMPT)? {
            Input::Line(line) => line,
            Input::Dropped => continue,
            Input::End => return Ok(exit::DONE),
        };
        match run_lines(&mut shell, line.lines().map(|line| Ok(line.to_owned()))) {
            Ok(Flow::GoOn) => {}
            Ok(Flow::Quit) => return Ok(exit::DONE),
            Err(error) => report(&error, &terminal),
        }
    }
}

/// Runs the statements of a script, each as soon as it is complete, up to the first that fails.
///
/// # Errors
/// When a statement fails.
pub fn script(asker: Asker, view: View, lines: impl BufRead) -> Result<u8, Error> {
    run_lines(&mut Shell::new(asker, view), lines.lines())?;
    Ok(exit::DONE)
}

/// Runs the query of the command line: one or several statements, or commands of the prompt.
///
/// # Errors
/// When a line fails.
pub fn text(asker: Asker, view: View, text: &str) -> Result<u8, Error> {
    run_lines(
        &mut Shell::new(asker, view),
        text.lines().map(|line| Ok(line.to_owned())),
    )?;
    Ok(exit::DONE)
}

/// Runs statements, each as soon as it is complete, and the commands between them, up to the first that fails.
fn run_lines(
    shell: &mut Shell,
    lines: impl Iterator<Item = io::Result<String>>,
) -> Result<Flow, Error> {
    // Lines that have run remain as empty lines, so that an error has the line number that the user expects.
    let mut waiting = String::new();
    for line in lines {
        let line = line.map_err(|source| Error::io("read stdin", source))?;
        let begun = statement::split(&waiting);
        if begun.rest.is_none() && !begun.open && command::stands_alone(&line) {
            if shell.run(&line)? == Flow::Quit {
                return Ok(Flow::Quit);
            }
            waiting.push('\n');
            continue;
        }
        waiting.push_str(&line);
        waiting.push('\n');
        let whole = statement::split(&waiting).end;
        if whole > 0 {
            let rest = waiting.split_off(whole);
            shell.run(&waiting)?;
            waiting = "\n".repeat(waiting.matches('\n').count()) + &rest;
        }
    }
    shell.run(&waiting)
}

impl Language for Words {
    const HAS_STATEMENTS: bool = true;

    fn offers(&self, line: &str, cursor: usize) -> (usize, Vec<String>) {
        let offer = self.complete(line, cursor, &Format::NAMES);
        (offer.start, offer.words)
    }

    fn is_whole(text: &str) -> bool {
        is_complete(text)
    }
}

/// Returns whether Enter runs `text`: a command, a statement that ends with `;`, or one followed by an empty line.
fn is_complete(text: &str) -> bool {
    if command::stands_alone(text) || (!text.contains('\n') && command::begins_wrong(text)) {
        return true;
    }
    let split = statement::split(text);
    let last_line = text.rsplit('\n').next().unwrap_or_default();
    let empty_line = text.contains('\n') && last_line.trim().is_empty();
    !split.open && (split.rest.is_none() || empty_line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enter_runs_commands_and_whole_statements_only() {
        for whole in [
            "",
            "\\d",
            "quit",
            "help;",
            "select 1;",
            "select 1; -- done",
            "select 1\n",
            "select\n1\n  ",
            "helo",
            ".tables",
        ] {
            assert!(is_complete(whole), "{whole:?}");
        }
        for begun in [
            "select 1",
            "select ';",
            "select 1\nfrom t",
            "select 'a\n",
            "select 1; select 2",
            "-- calls\nselect 1",
            "(select 1)",
            "selec 1\nfrom t",
        ] {
            assert!(!is_complete(begun), "{begun:?}");
        }
    }
}

//! The SQL prompt, and scripts: the same lines from someone at a terminal or from a pipe.

mod before;
mod command;
mod complete;
mod editor;
mod history;
pub mod lines;
mod shell;

use std::io::{self, BufRead};

use crate::ask::{Asker, View};
use crate::error::Error;
use crate::report::report;
use crate::{exit, statement};

use editor::Prompt;
use lines::Input;
use shell::{Flow, Shell};

/// Reads lines from the terminal until the user leaves.
///
/// # Errors
/// When the terminal cannot be used. Wrong lines are told to the user, who goes on.
pub fn interactive(asker: Asker, view: View) -> Result<u8, Error> {
    let terminal = view.terminal.clone();
    println!("{}", shell::greeting(&asker));
    let mut shell = Shell::new(asker, view);
    let words = shell.words()?;
    let mut prompt = Prompt::open(words, terminal.stdout_colour)?;
    loop {
        let line = match prompt.read()? {
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

/// Runs the lines of a script, each as soon as it is whole, and stops at the first that fails.
///
/// # Errors
/// That of the line that failed.
pub fn script(asker: Asker, view: View, lines: impl BufRead) -> Result<u8, Error> {
    run_lines(&mut Shell::new(asker, view), lines.lines())?;
    Ok(exit::DONE)
}

/// Runs the question of the command line: one or several statements, or commands of the prompt.
///
/// # Errors
/// That of the line that failed.
pub fn text(asker: Asker, view: View, text: &str) -> Result<u8, Error> {
    run_lines(
        &mut Shell::new(asker, view),
        text.lines().map(|line| Ok(line.to_owned())),
    )?;
    Ok(exit::DONE)
}

/// Runs statements, each as soon as it is whole, and the commands between them, up to the first that fails.
fn run_lines(
    shell: &mut Shell,
    lines: impl Iterator<Item = io::Result<String>>,
) -> Result<Flow, Error> {
    // Lines that have run stand in it as empty ones, so that an error names the line that the user counts.
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

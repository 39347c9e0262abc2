//! Runs the lines that a breakpoint has (`commands`) after a verb of the shell has stopped there.

use std::ffi::OsString;

use server::verbs::{Does, find};

use super::with_negative_numbers;
use crate::commands::live::{self, Link};
use crate::error::Error;
use crate::exit;
use crate::travel::line;

/// Runs the lines of the breakpoints that have stopped the program (`commands`), and those of the stops that they lead to.
/// Returns the exit code of the last line.
///
/// # Errors
/// A line fails; those after it are left out.
pub fn run(link: &Link) -> Result<u8, Error> {
    while let Some(lines) = link.take_at_stop() {
        for line in lines {
            let words = line::unquoted(line::normal(line::split(&line)));
            let name = words.first().cloned().unwrap_or_default();
            let verbs = live::described(clap::Command::new("hindsight").no_binary_name(true))
                .subcommands(live::commands(false));
            let words = words.into_iter().map(OsString::from).collect();
            let matches = verbs
                .try_get_matches_from(with_negative_numbers(words, 0))
                .map_err(|error| Error::of_words(&error))?;
            let ran = matches
                .subcommand()
                .and_then(|(name, words)| live::run_generic(name, words, link));
            match ran {
                Some(Ok(exit::DONE)) => {}
                Some(other) => return other,
                None => {
                    return Err(Error::usage(
                        format!("\"{name}\" cannot be a line of a breakpoint here"),
                        Some("the lines are verbs: print, backtrace, continue".to_owned()),
                    ));
                }
            }
            // As in gdb, nothing follows a line that moves on.
            if find(&name).is_some_and(|verb| verb.does == Does::Move) {
                break;
            }
        }
    }
    Ok(exit::DONE)
}

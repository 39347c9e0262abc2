//! `hindsight rm`: deletes recordings.

use std::path::PathBuf;

use query::runs::find;

use crate::commands::deleting::{delete, is_wanted};
use crate::error::Error;
use crate::exit;
use crate::recording::locate;
use crate::render::Terminal;
use crate::report::report;

const EXAMPLES: &str = "\
Examples:
  hindsight rm app                asks, then deletes app.hindsight
  hindsight rm --yes 'runs/t-*'   deletes all that match, without asking

Exits with 1 when one of several could not be deleted.";

/// Delete recordings
///
/// Deletes the files of each recording and nothing else: a file in its folder that is not one of them stays, and is named.
/// A recording that is being made, or is open in a session, is refused.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Recordings, with or without .hindsight, or patterns
    #[arg(value_name = "RECORDING", required = true)]
    recordings: Vec<PathBuf>,
    /// Delete without asking
    #[arg(short, long)]
    yes: bool,
}

/// Runs the command and returns the exit code.
///
/// # Errors
/// When a word means no recording: then nothing is deleted.
pub fn run(args: &Args, terminal: &Terminal) -> Result<u8, Error> {
    for word in &args.recordings {
        // A folder of recordings is too much for one word.
        if !word.to_string_lossy().contains(['*', '?', '[']) {
            locate(word)?;
        }
    }
    let found = find(&args.recordings);
    if let Some((path, why)) = found.nothing.into_iter().next() {
        let message = format!("{}: {why}", path.display());
        return Err(Error::usage(message, None));
    }
    if !args.yes && !is_wanted(&found.folders, terminal)? {
        return Ok(exit::FAILED);
    }
    let mut code = exit::DONE;
    for folder in &found.folders {
        if let Err(error) = delete(folder) {
            if found.folders.len() == 1 {
                return Err(error);
            }
            report(&error, terminal);
            code = exit::FAILED;
        }
    }
    Ok(code)
}

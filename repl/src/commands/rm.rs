//! `hindsight rm`: deletes recordings, and sets of them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use query::runs::find;
use serde_json::{Value, json};

use crate::commands::deleting::{Deleted, delete, forget, is_wanted, refuse_link};
use crate::error::Error;
use crate::exit;
use crate::json::answer;
use crate::output::Told;
use crate::recording::locate;
use crate::render::Terminal;
use crate::report::report;
use crate::sets;

const EXAMPLES: &str = "\
Examples:
  hindsight rm app                asks, then deletes app.hindsight
  hindsight rm --yes 'runs/t-*'   deletes all that match, without asking
  hindsight rm make.children      deletes a set that record --children has made

Exits with 1 when one of several could not be deleted.";

/// Delete recordings
///
/// Deletes the files of each recording and nothing else: it keeps and names any other file in the folder. Refuses a
/// recording that is being made or is open in a session. A set of record --children goes with the last of its recordings.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Recordings, with or without .hindsight, or patterns
    #[arg(value_name = "RECORDING", required = true)]
    recordings: Vec<PathBuf>,
    /// Delete without asking
    #[arg(short, long)]
    yes: bool,
    /// Print what was deleted, and what was not, as JSON; needs --yes
    #[arg(long, requires = "yes")]
    json: bool,
}

/// Runs the command and returns the exit code.
///
/// # Errors
/// When a word means no recording: then nothing is deleted.
pub fn run(args: &Args, terminal: &Terminal) -> Result<u8, Error> {
    for word in &args.recordings {
        // A folder of recordings is too much for one word.
        if !is_pattern(word) && sets::named(word).is_none() {
            locate(word)?;
        }
    }
    let found = find(&args.recordings);
    let mut sets: BTreeSet<PathBuf> = args
        .recordings
        .iter()
        .filter_map(|word| sets::named(word))
        .collect();
    // A set may have no recording.
    let mut nothing = found.nothing.into_iter();
    if let Some((path, why)) = nothing.find(|(path, _)| sets::named(path).is_none()) {
        let message = format!("{}: {why}", path.display());
        return Err(Error::usage(message, None));
    }
    sets.extend(
        found
            .folders
            .iter()
            .filter_map(|folder| sets::around(folder).map(Path::to_owned)),
    );
    for set in &sets {
        refuse_link(set)?;
    }
    if !args.yes && !is_wanted(&found.folders, terminal)? {
        return Ok(exit::FAILED);
    }
    let mut told = Told::default();
    let mut tell = |gone: Deleted| {
        if !args.json {
            gone.tell(&mut told);
        }
        gone.as_json()
    };
    let (mut deleted, mut failed) = (Vec::new(), Vec::new());
    for folder in &found.folders {
        match delete(folder) {
            Ok(gone) => deleted.push(tell(gone)),
            Err(error) if found.folders.len() == 1 => return Err(error),
            Err(error) if args.json => {
                failed.push(
                    json!({"recording": crate::json::path(folder), "why": error.to_string()}),
                );
            }
            Err(error) => {
                report(&error, terminal);
                failed.push(Value::Null);
            }
        }
    }
    for set in &sets {
        deleted.extend(forget(set)?.map(&mut tell));
    }
    let code = match failed.is_empty() {
        true => exit::DONE,
        false => exit::FAILED,
    };
    if args.json {
        let facts = answer(json!({"deleted": deleted, "failed": failed}));
        told.line(format_args!("{facts:#}"));
    }
    told.end(code)
}

fn is_pattern(word: &Path) -> bool {
    word.to_string_lossy().contains(['*', '?', '['])
}

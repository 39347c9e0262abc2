//! `hindsight ls`: lists the recordings of a folder, the oldest first.

use std::path::PathBuf;

use query::runs::find;
use store::Summary;

use crate::error::Error;
use crate::exit;
use crate::listing::{self, Row};
use crate::render::{Paint, Terminal, escaped};

const EXAMPLES: &str = "\
Examples:
  hindsight ls                    the recordings in this folder
  hindsight ls runs 'old/t-*'     those of another folder, and those that match
  hindsight ls --json | jq -r '.[] | select(.exit_code != 0) | .path'";

/// List the recordings of a folder
///
/// Shows when each began, how its program ended, how many calls and bytes it has. It reads the small files of each
/// alone.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Folders, recordings or patterns [default: this folder]
    #[arg(value_name = "FOLDER")]
    folders: Vec<PathBuf>,
    /// Print the list as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command and returns the exit code.
///
/// # Errors
/// When a folder cannot be read, or a word means no recording.
pub fn run(args: &Args, terminal: &Terminal) -> Result<u8, Error> {
    let here = [PathBuf::from(".")];
    let words = match args.folders.as_slice() {
        [] => &here[..],
        words => words,
    };
    let found = find(words);
    // A folder without recordings is an empty list, not a mistake.
    let mistakes = found.nothing.iter().filter(|(path, _)| !path.is_dir());
    if let Some((path, why)) = mistakes.into_iter().next() {
        return Err(Error::usage(
            format!("{}: {why}", path.display()),
            Some("name a folder, a recording, or a pattern like 'runs/*'".to_owned()),
        ));
    }
    let mut rows = Vec::new();
    for folder in &found.folders {
        match Summary::read(folder) {
            Ok(summary) => rows.push(Row::of(summary)),
            Err(error) => {
                let word = terminal.stderr_colour.paint(Paint::Warning, "warning:");
                let text = format!("{}: {error}", folder.display());
                eprintln!("hindsight: {word} {}", escaped(&text));
            }
        }
    }
    rows.sort_by(|a, b| (a.start_unix_ns, &a.path).cmp(&(b.start_unix_ns, &b.path)));
    listing::print(&rows, args.json, terminal)?;
    Ok(exit::DONE)
}

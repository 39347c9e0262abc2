//! `hindsight ls`: lists the recordings of a folder, the oldest first. A set of `record --children` is one line.

use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};

use query::runs::find;
use store::Summary;

use crate::error::Error;
use crate::exit;
use crate::listing::{self, Listing, Row};
use crate::render::{Paint, Terminal, escaped};
use crate::sets::{self, Whole};

const EXAMPLES: &str = "\
Examples:
  hindsight ls                    the recordings in this folder
  hindsight ls runs 'old/t-*'     those of another folder, and those that match
  hindsight ls make.children      those of a set
  hindsight ls --json | jq -r '.result[] | select(.exit_code != 0) | .path'";

/// List the recordings of a folder
///
/// Shows when each began, how its program ended, and how many calls and bytes it has. Reads only the small files of each
/// recording. A set that record --children has made is one line; name the set to list the recordings in it.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Folders, recordings or patterns [default: this folder]
    #[arg(value_name = "FOLDER")]
    folders: Vec<PathBuf>,
    #[command(flatten)]
    listing: Listing,
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
    let mut listed = Listed {
        rows: Vec::new(),
        seen: HashSet::new(),
        terminal,
    };
    for word in words {
        listed.add(word)?;
    }
    let mut rows = listed.rows;
    rows.sort_by(|a, b| (a.start_unix_ns, &a.path).cmp(&(b.start_unix_ns, &b.path)));
    let listing = Listing {
        is_newest_last: true,
        ..args.listing
    };
    listing::print(&rows, &listing, terminal)?;
    Ok(exit::DONE)
}

/// Returns how many folders a path names.
fn depth(path: &Path) -> usize {
    let parts = path.components();
    parts.filter(|part| *part != Component::CurDir).count()
}

/// The rows so far.
struct Listed<'t> {
    rows: Vec<Row>,
    seen: HashSet<PathBuf>,
    terminal: &'t Terminal,
}

impl Listed<'_> {
    /// Adds what a word means.
    fn add(&mut self, word: &Path) -> Result<(), Error> {
        let found = find(&[word.to_owned()]);
        // A folder without recordings is an empty list, not a mistake.
        let mistakes = found.nothing.iter().filter(|(path, _)| !path.is_dir());
        if let Some((path, why)) = mistakes.into_iter().next() {
            let path = path.display().to_string();
            let message = match why.strip_prefix(&path) {
                Some(why) => format!("{path}{why}"),
                None => format!("{path}: {why}"),
            };
            return Err(Error::usage(
                message,
                Some("name a folder, a recording, or a pattern like 'runs/*'".to_owned()),
            ));
        }
        let is_set = sets::named(word).is_some();
        for folder in &found.folders {
            let is_below = !is_set && depth(folder) > depth(word);
            match sets::around(folder).filter(|_| is_below) {
                Some(set) => self.set(set),
                None => self.recording(folder),
            }
        }
        if !is_set && word.is_dir() {
            sets::within(word).iter().for_each(|set| self.set(set));
        }
        Ok(())
    }

    fn is_new(&mut self, folder: &Path) -> bool {
        let real = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        self.seen.insert(real)
    }

    fn recording(&mut self, folder: &Path) {
        if self.is_new(folder) {
            match Summary::read(folder) {
                Ok(summary) => self.rows.push(Row::of(summary)),
                Err(error) => self.warn(folder, &error),
            }
        }
    }

    fn set(&mut self, folder: &Path) {
        if self.is_new(folder) {
            match Whole::read(folder) {
                Ok(set) => {
                    for (folder, error) in &set.unreadable {
                        self.warn(folder, error);
                    }
                    self.rows.push(Row::of_set(set));
                }
                Err(error) => self.warn(folder, &error),
            }
        }
    }

    fn warn(&self, folder: &Path, error: &dyn std::error::Error) {
        let word = self
            .terminal
            .stderr_colour
            .paint(Paint::Warning, "warning:");
        let text = format!("{}: {error}", folder.display());
        eprintln!("hindsight: {word} {}", escaped(&text));
    }
}

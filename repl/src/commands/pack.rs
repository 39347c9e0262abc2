//! `hindsight pack`: copies a recording's modules, debug files and sources into it, so that it can be opened elsewhere.

use std::path::{Path, PathBuf};

use replay::PackOutcome;
use serde_json::json;
use server::quantity::count;

use crate::ask::{of_timeline, open_timeline};
use crate::commands::live;
use crate::error::Error;
use crate::exit;
use crate::json::answer;
use crate::progress::Progress;
use crate::recording::to_read;
use crate::render::{Terminal, bytes, escaped};

const EXAMPLES: &str = "\
Examples:
  hindsight pack app                            then copy app.hindsight anywhere
  hindsight record --portable ./app             the same when the program has ended

Exits with 0 when every module has a copy, 1 when some have none.";

/// Copy a recording's modules, debug files and sources into it
///
/// Variables, lines and backtraces come from the files of the program and its libraries. A packed recording contains
/// these files, so it can be opened where they are missing or differ. What was packed before stays.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The recording, with or without .hindsight
    #[arg(value_name = "RECORDING")]
    recording: PathBuf,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command and returns the exit code.
///
/// # Errors
/// When the recording cannot be read, or nothing can be written to it.
pub fn run(args: &Args, terminal: &Terminal) -> Result<u8, Error> {
    let path = to_read(&args.recording)?;
    let outcome = pack(&path, &Progress::new(terminal))?;
    match args.json {
        true => live::write(&format!("{:#}\n", answer(as_json(&path, &outcome))))?,
        false => live::write(&summary(&path, &outcome))?,
    }
    Ok(match outcome.missing.is_empty() {
        true => exit::DONE,
        false => exit::FAILED,
    })
}

/// Packs a recording and returns the size of what is packed in it; a failure is only a warning, since the recording itself
/// is complete.
pub fn pack_or_warn(path: &Path, progress: &Progress) -> u64 {
    match pack(path, progress) {
        Ok(packed) => {
            for (_, why) in packed.missing {
                progress.warning(&format!("not packed: {why}"));
            }
            packed.len_bytes
        }
        Err(error) => {
            progress.warning(&format!("the recording is not portable: {error}"));
            0
        }
    }
}

/// What the summary of a recording says about the size of its packed files.
pub fn in_summary(len_bytes: u64) -> String {
    match len_bytes {
        0 => String::new(),
        len_bytes => format!("; packed files: {}", bytes(len_bytes)),
    }
}

/// Packs the recording in the folder `path`.
///
/// # Errors
/// As for [`run`].
fn pack(path: &Path, progress: &Progress) -> Result<PackOutcome, Error> {
    let timeline = open_timeline(path)?;
    let packed = progress.alive("packing", || replay::pack(&timeline));
    packed.map_err(|error| of_timeline(&error))
}

/// Describes which files were copied, and which could not be.
pub fn summary(path: &Path, outcome: &PackOutcome) -> String {
    let mut text = format!(
        "{}: {} and {} packed, {}\n",
        escaped(&path.to_string_lossy()),
        count(outcome.modules as u64, "module"),
        count(outcome.sources as u64, "source file"),
        bytes(outcome.len_bytes),
    );
    for (_, why) in &outcome.missing {
        text += &format!("not packed: {}\n", escaped(why));
    }
    text
}

fn as_json(path: &Path, outcome: &PackOutcome) -> serde_json::Value {
    let missing = outcome.missing.iter();
    json!({
        "recording": crate::json::path(path),
        "modules": outcome.modules,
        "debug_files": outcome.debug_files,
        "sources": outcome.sources,
        "bytes": outcome.len_bytes,
        "missing": missing
            .map(|(path, why)| json!({"path": crate::json::path(path), "why": why}))
            .collect::<Vec<_>>(),
    })
}

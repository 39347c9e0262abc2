//! A comparison in the formats of other programs: a page, and what build servers read.

use std::path::{Path, PathBuf};

use query::compare::Comparison;
use rustix::fs::{Access, access};

use super::findings::findings;
use super::{annotations, html, junit, sarif};
use crate::error::Error;

/// Files that are written besides the summary.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Reports")]
pub struct Formats {
    /// Write a self-contained HTML page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write the result as JUnit XML
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write findings with their source lines as SARIF 2.1.0
    #[arg(long, value_name = "FILE")]
    sarif: Option<PathBuf>,
    /// Print annotations for GitHub Actions after the summary
    #[arg(long, conflicts_with = "json")]
    github: bool,
}

impl Formats {
    /// Returns whether any is requested: they describe calls.
    pub fn describe_calls(&self) -> bool {
        self.github || self.files().next().is_some()
    }

    /// Returns the files to write.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let files = [&self.html, &self.junit, &self.sarif];
        files.into_iter().filter_map(|file| file.as_deref())
    }

    /// Writes the files, and returns what else to print.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write(&self, comparison: &Comparison) -> Result<String, Error> {
        let found = findings(comparison);
        if let Some(file) = &self.html {
            write(file, &html::page(comparison))?;
        }
        if let Some(file) = &self.junit {
            let text = junit::junit(comparison, &found);
            write(
                file,
                &text.map_err(|error| Error::io(doing(file), std::io::Error::other(error)))?,
            )?;
        }
        if let Some(file) = &self.sarif {
            write(file, &format!("{:#}\n", sarif::sarif(&found)))?;
        }
        Ok(match self.github {
            true => annotations::annotations(&found),
            false => String::new(),
        })
    }
}

fn doing(file: &Path) -> String {
    format!("write {}", file.display())
}

/// Refuses a file that cannot be written, before the work for it.
///
/// # Errors
/// It is a folder, its folder does not exist, or the user must not write it.
pub fn refuse_unwritable(file: &Path) -> Result<(), Error> {
    let folder = match file.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let (at, needed) = match file.metadata() {
        Ok(meta) if meta.is_dir() => return unwritable(file, "it is a folder", "name a file"),
        Ok(_) => (file, Access::WRITE_OK),
        Err(_) if folder.is_dir() => (folder, Access::WRITE_OK | Access::EXEC_OK),
        Err(_) => {
            let why = format!("there is no folder {}", folder.display());
            let word = store::shell::word(&folder.to_string_lossy());
            return unwritable(file, &why, &format!("make it first: mkdir -p {word}"));
        }
    };
    access(at, needed).or_else(|error| {
        let why = std::io::Error::from(error).to_string();
        unwritable(file, &why, "name a file that you may write")
    })
}

fn unwritable(file: &Path, why: &str, help: &str) -> Result<(), Error> {
    let message = format!("cannot {}: {why}", doing(file));
    Err(Error::usage(message, Some(help.to_owned())))
}

/// Writes a file, or none.
///
/// # Errors
/// It cannot be written; then a part of it is removed.
pub fn write(file: &Path, text: &str) -> Result<(), Error> {
    std::fs::write(file, text).map_err(|error| {
        // A truncated report could pass for a whole one. What was no file, such as a pipe, stays.
        if file.symlink_metadata().is_ok_and(|meta| meta.is_file()) {
            let _ = std::fs::remove_file(file);
        }
        Error::io(doing(file), error)
    })
}

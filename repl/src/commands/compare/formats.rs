//! A comparison in the formats of other programs: a page, and what build servers read.

use std::path::{Path, PathBuf};

use query::compare::Comparison;

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
        self.github
            || [&self.html, &self.junit, &self.sarif]
                .iter()
                .any(|file| file.is_some())
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

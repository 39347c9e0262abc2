//! `hindsight compare --baseline A.. --candidate B..`: is a build slower, according to several recordings of each?

use std::io::Write;
use std::path::PathBuf;

use query::Session;
use query::runs::find;
use query::slower::{Level, slower};

use crate::error::Error;
use crate::exit;
use crate::json::answer;
use crate::output;
use crate::recording::to_read;

/// Functions that are shown.
const MOST: usize = 20;

/// The recordings of both builds.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Is it slower?")]
#[group(id = "slower")]
pub struct Args {
    /// Recordings of the known build, folders of them or patterns; at least five; more to name single functions.
    /// No report can be written with it, only --json
    #[arg(
        long,
        value_name = "A",
        num_args = 1..,
        requires = "candidate",
        conflicts_with_all = ["full", "accept", "no_code", "html", "junit", "sarif", "github"]
    )]
    pub baseline: Vec<PathBuf>,
    /// Recordings of the build that may be slower
    #[arg(long, value_name = "B", num_args = 1.., requires = "baseline")]
    candidate: Vec<PathBuf>,
    /// The chance that equal builds raise an alarm, in per cent: more than 0 and less than 50
    #[arg(long, value_name = "PERCENT", default_value_t = 2.5, value_parser = alpha, allow_negative_numbers = true)]
    alpha: f64,
    /// The least change that counts, in per cent of the time before, from 0 to 10000: 100 is twice the time
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0, value_parser = change, allow_negative_numbers = true)]
    change: f64,
}

fn number(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| "it is no number".to_owned())
}

fn alpha(text: &str) -> Result<f64, String> {
    let value = number(text)?;
    match value > 0.0 && value < 50.0 {
        true => Ok(value),
        false => Err("it must be more than 0 and less than 50".to_owned()),
    }
}

fn change(text: &str) -> Result<f64, String> {
    let value = number(text)?;
    match (0.0..=10_000.0).contains(&value) {
        true => Ok(value),
        false => Err("it must be from 0 to 10000".to_owned()),
    }
}

/// Runs the command and returns the exit code: 1 if anything is slower.
///
/// # Errors
/// A recording cannot be read.
pub fn run(args: &Args, json: bool) -> Result<u8, Error> {
    let (baseline, candidate) = (open(&args.baseline)?, open(&args.candidate)?);
    let level = Level {
        alpha: args.alpha / 100.0,
        change: args.change / 100.0,
    };
    let found = slower(&baseline, &candidate, level).map_err(super::failed)?;
    let mut out = output::stdout();
    let written = if json {
        let json = answer(serde_json::to_value(&found).expect("it is JSON"));
        writeln!(out, "{json:#}")
    } else {
        write!(out, "{}", found.text(MOST))
    };
    super::shown(written.and_then(|()| out.flush()))?;
    Ok(if found.is_slower() {
        exit::FAILED
    } else {
        exit::DONE
    })
}

/// Opens recordings by their names, or those of folders and patterns.
fn open(words: &[PathBuf]) -> Result<Vec<Session>, Error> {
    let found = find(words);
    let paths = match (found.by_name, found.nothing.first()) {
        (true, _) => words.to_vec(),
        (false, None) => found.folders,
        (false, Some((word, why))) => {
            return Err(Error::usage(format!("{}: {why}", word.display()), None));
        }
    };
    let open = |recording: &PathBuf| super::opened(&to_read(recording)?);
    paths.iter().map(open).collect()
}

//! `hindsight overview`: what there is to say first of a recording.

mod of_set;

use std::io::Write;
use std::path::PathBuf;

use crate::ask::open_session;
use crate::error::Error;
use crate::exit;
use crate::json::answer;
use crate::output::{self, to_stdout};
use crate::progress::Progress;
use crate::recording::OfCore;
use crate::render::Terminal;
use crate::sets::{self, Whole};

const EXAMPLES: &str = "\
Examples:
  hindsight overview app
  hindsight overview app --lines 20
  hindsight overview app --json | jq .result.ending
  hindsight overview make.children            the processes of a set, and which failed first";

/// Summarise a recording: how it ended, what failed, where the time went
///
/// Shows how the program ended, what it printed to standard error and which function printed it, results that look like
/// failures, threads, where the time went, what is unusual, and three commands to go on with. Each claim has the number
/// of its event. For a set that record --children has made, shows which process failed first, and the tree of all.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The recording, with or without .hindsight, a set of recordings, or a core file
    #[arg(value_name = "RECORDING")]
    recording: PathBuf,
    #[command(flatten)]
    core: OfCore,
    /// Print at most this many lines
    #[arg(long, value_name = "N", default_value_t = 40, conflicts_with = "json")]
    lines: usize,
    /// Print everything as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command and returns the exit code.
///
/// # Errors
/// When there is no such recording or it cannot be read.
pub fn run(args: &Args, terminal: &Terminal) -> Result<u8, Error> {
    if let Some(dir) = sets::named(&args.recording) {
        return of_set::run(&Whole::read(&dir)?, args.lines, args.json);
    }
    let path = args.core.locate(&args.recording)?;
    let name = args.recording.to_string_lossy();
    let session = open_session(&path)?;
    let work = || query::overview(&session, &name);
    let overview = Progress::new(terminal).alive("adding up", work);
    let overview = overview.map_err(|source| Error::Query { source })?;
    let mut out = output::stdout();
    let written = if args.json {
        let json = answer(serde_json::to_value(&overview).expect("it is JSON"));
        writeln!(out, "{json:#}")
    } else {
        write!(out, "{}", overview.text(args.lines))
    };
    written.and_then(|()| out.flush()).map_err(to_stdout)?;
    Ok(exit::DONE)
}

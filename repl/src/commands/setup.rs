//! `hindsight setup`: downloads Frida, so that the first `record` on a machine that needs it need not wait or be online.

use std::io::Write;

use serde_json::json;

use crate::error::Error;
use crate::json::answer;
use crate::progress::Progress;
use crate::render::{Terminal, escaped};
use crate::{exit, output};

const EXAMPLES: &str = "\
Examples:
  hindsight setup          install Frida into the user's cache
  hindsight setup --json   the same, for scripts

Needs python3 with pip. `record` does this by itself if it needs Frida.";

/// Install Frida, for machines that need it to record
///
/// Installs the official Frida wheel, pinned by version and digest, into the user's cache. Does nothing if it is already
/// there. A processor of 2012 or later and Linux 5.9 need no Frida.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// When it could not be installed.
pub fn run(args: &Args, terminal: &Terminal) -> Result<u8, Error> {
    let progress = Progress::new(terminal);
    let installed = agent::host::install(&|step| progress.setup(step))
        .map_err(|source| Error::Setup { source })?;
    let mut out = output::stdout();
    if args.json {
        writeln!(out, "{}", answer(json!({ "installed": installed })))
    } else if let Some(path) = installed {
        writeln!(out, "ready: {}", escaped(&path.to_string_lossy()))
    } else {
        writeln!(out, "ready: Frida is part of this hindsight")
    }
    .and_then(|()| out.flush())
    .map_err(output::to_stdout)?;
    Ok(exit::DONE)
}

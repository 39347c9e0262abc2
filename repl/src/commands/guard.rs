//! `hindsight guard`: removes the patches if the recorder is killed. `record` runs it, not the user.

use std::ffi::OsString;

use crate::error::Error;
use crate::exit;

/// Its name on the command line.
const NAME: &str = "guard";

/// Returns the command that a recorder starts for it.
pub fn command() -> Option<Vec<OsString>> {
    let exe = std::env::current_exe().ok()?;
    Some(vec![exe.into(), NAME.into()])
}

/// Take the hooks out of a program whose recorder was killed (run by `record` itself)
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The program's process id
    pid: i32,
}

/// Runs until the recorder ends.
///
/// # Errors
/// When the program could not be stopped or written to.
pub fn run(args: &Args) -> Result<u8, Error> {
    recorder::guard(args.pid).map_err(|source| Error::Record { source })?;
    Ok(exit::DONE)
}

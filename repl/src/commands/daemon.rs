//! `hindsight daemon`: holds live sessions and serves the other commands. `start` and `attach` run it, not the user.

use server::config::Config;
use server::paths::Paths;

use crate::commands::guard;
use crate::error::Error;
use crate::exit;

/// Its name on the command line.
pub const NAME: &str = "daemon";

/// Hold live sessions for the other commands (run by `start` itself)
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Runs until the daemon is no longer needed.
///
/// # Errors
/// When it cannot serve.
pub fn run(_: &Args) -> Result<u8, Error> {
    let config = Config::load()?;
    // It serves clients in any folder, and must not keep the one busy that it was started in.
    std::env::set_current_dir("/").map_err(|source| Error::io("leave this folder", source))?;
    server::daemon::serve(&Paths::of_environment(), config, guard::command())?;
    Ok(exit::DONE)
}

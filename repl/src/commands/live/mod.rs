//! The verbs on the command line. The daemon, or a recording that is open in this process, answers them.
//!
//! `link` is the recipient and `ask` sends the request. `generic` runs the verbs that define their own form, which are
//! most; `session` and `output` contain the others.

mod apply;
mod ask;
mod generic;
mod interrupt;
mod link;
mod output;
mod session;

pub use ask::{Common, Patience, SESSION_VARIABLE, asked_of_daemon, fetch, write};
pub use generic::{commands, described, run as run_generic, written};
pub use link::{Begun, Link, Origin};
pub use output::pass_on;
pub use session::{Launching, ended};

use crate::error::Error;

/// Those that do not say their own form: they share options with `record`, pack what was recorded, or pass bytes on.
#[derive(Debug, clap::Subcommand)]
pub enum Live {
    Start(session::Start),
    Attach(session::Attach),
    Detach(session::Detach),
    #[command(visible_alias = "kill")]
    Stop(session::Stop),
    Output(output::Output),
}

impl Live {
    /// Runs the command and returns the exit code.
    ///
    /// # Errors
    /// When the verb fails.
    pub fn run(&self, link: &Link) -> Result<u8, Error> {
        match self {
            Live::Start(args) => args.run(link),
            Live::Attach(args) => args.run(link),
            Live::Detach(args) => args.run(link),
            Live::Stop(args) => args.run(link),
            Live::Output(args) => args.run(link),
        }
    }
}

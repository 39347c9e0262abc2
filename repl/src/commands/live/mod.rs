//! The verbs on the command line: each is asked of the daemon, or of a recording that is open here, and its reply shown.
//!
//! `link` says who is asked, `ask` asks; `generic` runs the verbs that say their own form. The other files are verbs whose
//! words or replies need more, by what they are about; `show` and `recorded` write what several of them write.

mod ask;
mod generic;
mod interrupt;
mod link;
mod output;
mod probes;
mod recorded;
mod session;
mod show;
mod stack;
mod values;

pub use ask::{Common, Patience, ask, asked_of_daemon, fetch, write};
pub use generic::{commands, described, run as run_generic};
pub use link::{Begun, Link, Origin};
pub use output::{lines as output_lines, pass_on};
pub use probes::{Done, Replied};
pub use session::{Launching, ended};

use crate::error::Error;

/// All of them.
#[derive(Debug, clap::Subcommand)]
pub enum Live {
    Start(session::Start),
    Attach(session::Attach),
    Detach(session::Detach),
    Stop(session::Stop),
    Restart(session::Restart),
    Status(session::Status),
    Note(session::Note),
    #[command(visible_aliases = ["breakpoint", "b"])]
    Break(probes::Break),
    Logpoint(probes::Logpoint),
    Watch(probes::Watch),
    Catch(probes::Catch),
    #[command(visible_alias = "context")]
    Where(stack::Where),
    #[command(visible_alias = "bt")]
    Backtrace(stack::Backtrace),
    Frame(stack::Frame),
    Up(stack::Up),
    Down(stack::Down),
    Threads(stack::Threads),
    Thread(stack::Thread),
    #[command(visible_aliases = ["list", "l"])]
    Source(stack::Source),
    Disassemble(stack::Disassemble),
    Locals(values::Locals),
    Args(values::Args),
    #[command(visible_alias = "p")]
    Print(values::Print),
    Display(values::Display),
    Undisplay(values::Undisplay),
    Eval(values::Eval),
    Set(values::Set),
    Memory(values::Memory),
    Registers(values::Registers),
    Output(output::Output),
}

impl Live {
    /// Runs the command and returns the exit code.
    ///
    /// # Errors
    /// Whatever the verb fails with.
    pub fn run(&self, link: &Link) -> Result<u8, Error> {
        match self {
            Live::Start(args) => args.run(link),
            Live::Attach(args) => args.run(link),
            Live::Detach(args) => args.run(link),
            Live::Stop(args) => args.run(link),
            Live::Restart(args) => args.run(link),
            Live::Status(args) => args.run(link),
            Live::Note(args) => args.run(link),
            Live::Break(args) => args.run(link),
            Live::Logpoint(args) => args.run(link),
            Live::Watch(args) => args.run(link),
            Live::Catch(args) => args.run(link),
            Live::Where(args) => args.run(link),
            Live::Backtrace(args) => args.run(link),
            Live::Frame(args) => args.run(link),
            Live::Up(args) => args.run(link),
            Live::Down(args) => args.run(link),
            Live::Threads(args) => args.run(link),
            Live::Thread(args) => args.run(link),
            Live::Source(args) => args.run(link),
            Live::Disassemble(args) => args.run(link),
            Live::Locals(args) => args.run(link),
            Live::Args(args) => args.run(link),
            Live::Print(args) => args.run(link),
            Live::Display(args) => args.run(link),
            Live::Undisplay(args) => args.run(link),
            Live::Eval(args) => args.run(link),
            Live::Set(args) => args.run(link),
            Live::Memory(args) => args.run(link),
            Live::Registers(args) => args.run(link),
            Live::Output(args) => args.run(link),
        }
    }
}

//! The verbs that control a live program: each asks the daemon and shows its reply.
//!
//! `ask` speaks with the daemon; the other files are the verbs, by what they are about, and `show` writes what several of
//! them write.

mod ask;
pub mod attended;
mod interrupt;
mod motion;
mod output;
mod probes;
pub mod recorded;
mod session;
mod show;
mod stack;
mod values;

pub use ask::{Common, Patience, asked_of_daemon, fetch};
pub use interrupt::watched;
pub use output::pass_on;
pub use session::{Launching, ended};
pub use show::table;

use server::session::MotionReport;

use crate::error::Error;
use crate::render::Terminal;

/// Writes how a move came out.
pub fn motion_text(report: &MotionReport, terminal: &Terminal) -> String {
    show::motion(report, terminal.stdout_colour)
}

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
    #[command(visible_alias = "c")]
    Continue(motion::Continue),
    #[command(visible_alias = "n")]
    Next(motion::Next),
    #[command(visible_alias = "s")]
    Step(motion::Step),
    #[command(visible_alias = "out")]
    Finish(motion::Finish),
    Until(motion::Until),
    Pause(motion::Pause),
    Await(motion::Await),
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
    pub fn run(&self, terminal: &Terminal) -> Result<u8, Error> {
        match self {
            Live::Start(args) => args.run(terminal),
            Live::Attach(args) => args.run(terminal),
            Live::Detach(args) => args.run(terminal),
            Live::Stop(args) => args.run(terminal),
            Live::Restart(args) => args.run(terminal),
            Live::Status(args) => args.run(terminal),
            Live::Note(args) => args.run(terminal),
            Live::Break(args) => args.run(terminal),
            Live::Logpoint(args) => args.run(terminal),
            Live::Watch(args) => args.run(terminal),
            Live::Catch(args) => args.run(terminal),
            Live::Continue(args) => args.run(terminal),
            Live::Next(args) => args.run(terminal),
            Live::Step(args) => args.run(terminal),
            Live::Finish(args) => args.run(terminal),
            Live::Until(args) => args.run(terminal),
            Live::Pause(args) => args.run(terminal),
            Live::Await(args) => args.run(terminal),
            Live::Where(args) => args.run(terminal),
            Live::Backtrace(args) => args.run(terminal),
            Live::Frame(args) => args.run(terminal),
            Live::Up(args) => args.run(terminal),
            Live::Down(args) => args.run(terminal),
            Live::Threads(args) => args.run(terminal),
            Live::Thread(args) => args.run(terminal),
            Live::Source(args) => args.run(terminal),
            Live::Disassemble(args) => args.run(terminal),
            Live::Locals(args) => args.run(terminal),
            Live::Args(args) => args.run(terminal),
            Live::Print(args) => args.run(terminal),
            Live::Display(args) => args.run(terminal),
            Live::Undisplay(args) => args.run(terminal),
            Live::Eval(args) => args.run(terminal),
            Live::Set(args) => args.run(terminal),
            Live::Memory(args) => args.run(terminal),
            Live::Registers(args) => args.run(terminal),
            Live::Output(args) => args.run(terminal),
        }
    }
}

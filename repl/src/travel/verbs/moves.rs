//! Verbs that go to another event.

use serde::Serialize;
use server::past::{CountArgs, GotoArgs, Past};
use server::session::MotionReport;
use server::verbs::Nothing;

use super::ask;
use crate::commands::live::motion_text;
use crate::error::Error;
use crate::render::Terminal;

/// Go to a place in time
#[derive(Debug, clap::Args)]
pub struct Goto {
    /// An event's number, first, last, crash, 50%, 1.5s, @NOTE or output:LINE; live: back to the program as it is now
    #[arg(value_name = "PLACE", required = true)]
    to: Vec<String>,
    /// Print the reply as JSON
    #[arg(long)]
    json: bool,
}

impl Goto {
    pub fn run(&self, past: &Past, terminal: &Terminal) -> Result<u8, Error> {
        let args = GotoArgs {
            to: self.to.join(" "),
        };
        go(past, "goto", &args, self.json, terminal)
    }
}

/// Go to the event before
#[derive(Debug, clap::Args)]
pub struct Count {
    /// How many events
    count: Option<u32>,
    /// Print the reply as JSON
    #[arg(long)]
    json: bool,
}

impl Count {
    pub fn run(&self, past: &Past, terminal: &Terminal) -> Result<u8, Error> {
        go(
            past,
            "step_back",
            &CountArgs { count: self.count },
            self.json,
            terminal,
        )
    }
}

/// Go to the event of this thread before, over calls
#[derive(Debug, clap::Args)]
pub struct CountNext {
    /// How often
    count: Option<u32>,
    /// Print the reply as JSON
    #[arg(long)]
    json: bool,
}

impl CountNext {
    pub fn run(&self, past: &Past, terminal: &Terminal) -> Result<u8, Error> {
        go(
            past,
            "next_back",
            &CountArgs { count: self.count },
            self.json,
            terminal,
        )
    }
}

/// Go to where this call begins; from there, to where the call around it begins
#[derive(Debug, clap::Args)]
pub struct ReverseFinish {
    /// Print the reply as JSON
    #[arg(long)]
    json: bool,
}

impl ReverseFinish {
    pub fn run(&self, past: &Past, terminal: &Terminal) -> Result<u8, Error> {
        go(past, "reverse_finish", &Nothing {}, self.json, terminal)
    }
}

/// Go back to the last stop or breakpoint
#[derive(Debug, clap::Args)]
pub struct ReverseContinue {
    /// Print the reply as JSON
    #[arg(long)]
    json: bool,
}

impl ReverseContinue {
    pub fn run(&self, past: &Past, terminal: &Terminal) -> Result<u8, Error> {
        go(past, "reverse_continue", &Nothing {}, self.json, terminal)
    }
}

/// Asks for a move and shows where it has led.
fn go<A: Serialize>(
    past: &Past,
    command: &str,
    args: &A,
    json: bool,
    terminal: &Terminal,
) -> Result<u8, Error> {
    ask(past, command, args, json, |report: &MotionReport| {
        motion_text(report, terminal)
    })
}

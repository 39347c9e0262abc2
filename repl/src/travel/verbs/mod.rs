//! The verbs of the prompt through time: those of a stopped program, and those that only a recording has.

mod facts;
mod moves;
mod stops;

use clap::Subcommand;
use serde::Serialize;
use serde::de::DeserializeOwned;
use server::past::{HistoryArgs, Past};

use crate::commands::live::{Live, recorded};
use crate::error::Error;
use crate::render::Terminal;
use facts::{Calls, History, LastWrite, Lines, Notes, NotesAdd};
use moves::{Count, CountNext, Goto, ReverseContinue, ReverseFinish};
use stops::{Stops, StopsRemove, Watches, WatchesRemove};

/// All verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    Goto(Goto),
    #[command(visible_aliases = ["reverse-step", "rs", "back"])]
    StepBack(Count),
    #[command(visible_aliases = ["reverse-next", "rn"])]
    NextBack(CountNext),
    #[command(visible_alias = "rf")]
    ReverseFinish(ReverseFinish),
    #[command(visible_alias = "rc")]
    ReverseContinue(ReverseContinue),
    Calls(Calls),
    History(History),
    LastWrite(LastWrite),
    Notes(Notes),
    #[command(hide = true)]
    NotesAdd(NotesAdd),
    #[command(hide = true)]
    Lines(Lines),
    #[command(hide = true)]
    Stops(Stops),
    #[command(hide = true)]
    StopsRemove(StopsRemove),
    #[command(hide = true)]
    Watches(Watches),
    #[command(hide = true)]
    WatchesRemove(WatchesRemove),
    #[command(flatten)]
    Live(Box<Live>),
}

/// When a live session goes into its past for a verb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// The program as it is now.
    Now,
    /// Its past, to look at once.
    Glance,
    /// Its past, from where the program stands backwards.
    Past,
}

impl Verb {
    /// Says what a live session needs for this verb.
    pub fn need(&self) -> Need {
        match self {
            Verb::Goto(_)
            | Verb::StepBack(_)
            | Verb::NextBack(_)
            | Verb::ReverseFinish(_)
            | Verb::ReverseContinue(_) => Need::Past,
            Verb::Calls(_)
            | Verb::History(_)
            | Verb::LastWrite(_)
            | Verb::Notes(_)
            | Verb::Lines(_)
            | Verb::NotesAdd(_)
            | Verb::Watches(_)
            | Verb::WatchesRemove(_)
            | Verb::Stops(_)
            | Verb::StopsRemove(_) => Need::Glance,
            Verb::Live(_) => Need::Now,
        }
    }

    /// Does it and returns the exit code.
    ///
    /// # Errors
    /// Why it was not done.
    pub fn run(&self, past: &Past, terminal: &Terminal) -> Result<u8, Error> {
        match self {
            Verb::Goto(verb) => verb.run(past, terminal),
            Verb::StepBack(verb) => verb.run(past, terminal),
            Verb::NextBack(verb) => verb.run(past, terminal),
            Verb::ReverseFinish(verb) => verb.run(past, terminal),
            Verb::ReverseContinue(verb) => verb.run(past, terminal),
            Verb::Calls(verb) => verb.run(past),
            Verb::History(verb) => verb.run(past, terminal),
            Verb::LastWrite(verb) => verb.run(past),
            Verb::Notes(verb) => verb.run(past, terminal),
            Verb::NotesAdd(verb) => verb.run(past),
            Verb::Lines(verb) => verb.run(past, terminal),
            Verb::Stops(verb) => verb.run(past, terminal),
            Verb::StopsRemove(verb) => verb.run(past),
            Verb::Watches(verb) => verb.run(past, terminal),
            Verb::WatchesRemove(verb) => verb.run(past),
            Verb::Live(verb) => verb.run(terminal),
        }
    }
}

/// Makes one expression of the words of a line, and tells whether the reply is to be JSON: the option may stand behind them too.
fn joined(words: &[String], json: bool) -> (HistoryArgs, bool) {
    let (words, is_behind) = match words.split_last() {
        Some((last, words)) if last == "--json" && !words.is_empty() => (words, true),
        _ => (words, false),
    };
    let expression = words.join(" ");
    (HistoryArgs { expression }, json || is_behind)
}

fn ask<A: Serialize, R: Serialize + DeserializeOwned>(
    past: &Past,
    command: &str,
    args: &A,
    json: bool,
    show: impl FnOnce(&R) -> String,
) -> Result<u8, Error> {
    recorded::answer(recorded::asked::<A, R>(past, command, args), json, show)
}

//! Verbs that say where runs through time stop: at functions and lines, and where a value has changed.

use server::past::{Past, WatchLine, WatchRemoveArgs, WatchesReply};
use server::verbs::Nothing;

use super::super::show;
use super::{ask, joined};
use crate::commands::live::recorded;
use crate::error::Error;
use crate::render::Terminal;

/// Options of watchpoints in a live program.
const LIVE_OPTIONS: [&str; 3] = ["--read", "--access", "--condition"];

/// Stop where a function is entered, or show where stops are
#[derive(Debug, clap::Args)]
pub struct Stops {
    /// A function's name, in which * stands for any text, or FILE:LINE
    at: Option<String>,
    /// Print the reply as JSON
    #[arg(long)]
    json: bool,
}

impl Stops {
    pub fn run(&self, past: &Past, terminal: &Terminal) -> Result<u8, Error> {
        let Some(at) = &self.at else {
            return recorded::answer(Ok(past.all_breaks()), self.json, |breaks| {
                show::stops(breaks, terminal)
            });
        };
        let added = past.add_break(at).map_err(recorded::failed);
        recorded::answer(added, self.json, |added| show::added(added, past))
    }
}

/// Stop there no more
#[derive(Debug, clap::Args)]
pub struct StopsRemove {
    /// Its number [default: all]
    id: Option<u32>,
    /// Print the reply as JSON
    #[arg(long)]
    json: bool,
}

impl StopsRemove {
    pub fn run(&self, past: &Past) -> Result<u8, Error> {
        let removed = past.remove_break(self.id).map_err(recorded::failed);
        recorded::answer(removed, self.json, |removed| {
            let noun = if *removed == 1 {
                "breakpoint"
            } else {
                "breakpoints"
            };
            format!("{removed} {noun} removed\n")
        })
    }
}

/// Stop where a value has changed, or show what is watched
///
/// A variable of the function that is looked at is watched in that function alone, a global one everywhere. While something
/// is watched, runs through time pass the stops of the recording at which nothing has changed.
#[derive(Debug, clap::Args)]
#[command(override_usage = "watch [EXPRESSION]")]
pub struct Watches {
    /// The expression, as for print
    #[arg(value_name = "EXPRESSION", allow_hyphen_values = true)]
    expression: Vec<String>,
    /// Print the reply as JSON
    #[arg(long)]
    json: bool,
}

impl Watches {
    pub fn run(&self, past: &Past, terminal: &Terminal) -> Result<u8, Error> {
        let is_live = |word: &&String| {
            let name = word.split('=').next().unwrap_or_default();
            LIVE_OPTIONS.contains(&name)
        };
        if let Some(option) = self.expression.iter().find(is_live) {
            return Err(Error::usage(
                format!("{option} needs a program that runs: a recording shows changes of values"),
                Some("write: watch EXPRESSION".to_owned()),
            ));
        }
        match self.expression.is_empty() {
            true => ask(
                past,
                "watches",
                &Nothing {},
                self.json,
                |reply: &WatchesReply| show::watches(reply, terminal),
            ),
            false => {
                let (args, json) = joined(&self.expression, self.json);
                ask(past, "watch", &args, json, |line: &WatchLine| {
                    show::watched(line)
                })
            }
        }
    }
}

/// Watch it no more
#[derive(Debug, clap::Args)]
#[command(override_usage = "unwatch [ID]")]
pub struct WatchesRemove {
    /// Its number [default: all]
    id: Option<u32>,
    /// All of them
    #[arg(long, conflicts_with = "id")]
    all: bool,
    /// Print the reply as JSON
    #[arg(long)]
    json: bool,
}

impl WatchesRemove {
    pub fn run(&self, past: &Past) -> Result<u8, Error> {
        let args = WatchRemoveArgs { id: self.id };
        ask(past, "watch_remove", &args, self.json, show::unwatched)
    }
}

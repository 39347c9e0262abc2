//! The verbs of the prompt through time: those of a stopped program, and those that only a recording has.

use clap::Subcommand;
use serde::Serialize;
use serde::de::DeserializeOwned;
use server::past::{
    CallsArgs, CallsReply, CountArgs, GotoArgs, HistoryArgs, HistoryReply, LastWriteReply,
    NoteLine, NotesReply, OutputLines, OutputLinesArgs, Past, WatchLine, WatchRemoveArgs,
    WatchesReply,
};
use server::session::MotionReport;
use server::verbs::{NoteArgs, Nothing};

use super::show;
use crate::commands::live::{Live, motion_text, recorded};
use crate::error::Error;

use crate::render::{Terminal, escaped};

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

/// Go to a place in time
#[derive(Debug, clap::Args)]
pub struct Goto {
    /// An event's number, first, last, 50%, 1.5s, @NOTE or output:LINE; live: back to the program as it is now
    #[arg(value_name = "PLACE", required = true)]
    to: Vec<String>,
    /// Print the reply as JSON
    #[arg(long)]
    json: bool,
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

/// Go to the event of this thread before, over calls
#[derive(Debug, clap::Args)]
pub struct CountNext {
    /// How often
    count: Option<u32>,
    /// Print the reply as JSON
    #[arg(long)]
    json: bool,
}

/// Go to where this call begins; from there, to where the call around it begins
#[derive(Debug, clap::Args)]
pub struct ReverseFinish {
    /// Print the reply as JSON
    #[arg(long)]
    json: bool,
}

/// Go back to the last stop or breakpoint
#[derive(Debug, clap::Args)]
pub struct ReverseContinue {
    /// Print the reply as JSON
    #[arg(long)]
    json: bool,
}

/// Show the recorded calls around here, and those inside the innermost
#[derive(Debug, clap::Args)]
pub struct Calls {
    /// So many calls inside [default: 20]
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Print the reply as JSON
    #[arg(long)]
    json: bool,
}

/// Show every change of a value that the recording shows
#[derive(Debug, clap::Args)]
pub struct History {
    /// The expression, as for print
    #[arg(value_name = "EXPRESSION", required = true, allow_hyphen_values = true)]
    expression: Vec<String>,
    /// Print the reply as JSON
    #[arg(long)]
    json: bool,
}

/// Show between which events a value came to be what it is here
#[derive(Debug, clap::Args)]
pub struct LastWrite {
    /// The expression, as for print
    #[arg(value_name = "EXPRESSION", required = true, allow_hyphen_values = true)]
    expression: Vec<String>,
    /// Print the reply as JSON
    #[arg(long)]
    json: bool,
}

/// Show all notes
#[derive(Debug, clap::Args)]
pub struct Notes {
    /// Print the reply as JSON
    #[arg(long)]
    json: bool,
}

/// Keep a note at this event, in the recording: a bookmark for goto @TEXT
#[derive(Debug, clap::Args)]
#[command(override_usage = "note TEXT")]
pub struct NotesAdd {
    /// What it says
    #[arg(value_name = "TEXT", required = true)]
    text: Vec<String>,
    /// Print the reply as JSON
    #[arg(long)]
    json: bool,
}

/// Show what the program had written up to here
#[derive(Debug, clap::Args)]
pub struct Lines {
    /// Only the last N lines
    #[arg(long, value_name = "N")]
    tail: Option<usize>,
    /// Print the reply as JSON
    #[arg(long)]
    json: bool,
}

/// Stop where a function is entered, or show where stops are
#[derive(Debug, clap::Args)]
pub struct Stops {
    /// A function's name, in which * stands for any text, or FILE:LINE
    at: Option<String>,
    /// Print the reply as JSON
    #[arg(long)]
    json: bool,
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

/// Options of watchpoints in a live program.
const LIVE_OPTIONS: [&str; 3] = ["--read", "--access", "--condition"];

impl Watches {
    fn run(&self, past: &Past, terminal: &Terminal) -> Result<u8, Error> {
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
            false => ask(
                past,
                "watch",
                &joined(&self.expression),
                self.json,
                |line: &WatchLine| show::watched(line),
            ),
        }
    }
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
        let motion = |report: &MotionReport| motion_text(report, terminal);
        match self {
            Verb::Goto(goto) => {
                let args = GotoArgs {
                    to: goto.to.join(" "),
                };
                ask(past, "goto", &args, goto.json, motion)
            }
            Verb::StepBack(Count { count, json }) => ask(
                past,
                "step_back",
                &CountArgs { count: *count },
                *json,
                motion,
            ),
            Verb::NextBack(CountNext { count, json }) => ask(
                past,
                "next_back",
                &CountArgs { count: *count },
                *json,
                motion,
            ),
            Verb::ReverseFinish(args) => {
                ask(past, "reverse_finish", &Nothing {}, args.json, motion)
            }
            Verb::ReverseContinue(args) => {
                ask(past, "reverse_continue", &Nothing {}, args.json, motion)
            }
            Verb::Calls(Calls { limit, json }) => {
                let args = CallsArgs { limit: *limit };
                ask(past, "calls", &args, *json, |reply: &CallsReply| {
                    show::calls(reply)
                })
            }
            Verb::History(History { expression, json }) => ask(
                past,
                "history",
                &joined(expression),
                *json,
                |reply: &HistoryReply| show::history(reply, terminal),
            ),
            Verb::LastWrite(LastWrite { expression, json }) => {
                let args = joined(expression);
                ask(
                    past,
                    "last_write",
                    &args,
                    *json,
                    |reply: &LastWriteReply| show::last_write(reply),
                )
            }
            Verb::Notes(Notes { json }) => {
                ask(past, "notes", &Nothing {}, *json, |reply: &NotesReply| {
                    show::notes(reply, terminal)
                })
            }
            Verb::NotesAdd(NotesAdd { text, json }) => {
                let args = NoteArgs {
                    text: text.join(" "),
                };
                ask(past, "note", &args, *json, |note: &NoteLine| {
                    format!("Note at event {}: {}\n", note.seq, escaped(&note.text))
                })
            }
            Verb::Lines(Lines { tail, json }) => {
                let args = OutputLinesArgs { tail: *tail };
                ask(past, "output", &args, *json, |reply: &OutputLines| {
                    show::output(reply, terminal)
                })
            }
            Verb::Stops(Stops { at: Some(at), json }) => {
                let added = past.add_break(at).map_err(recorded::failed);
                recorded::answer(added, *json, |added| show::added(added, past))
            }
            Verb::Stops(Stops { at: None, json }) => {
                recorded::answer(Ok(past.all_breaks()), *json, |breaks| {
                    show::stops(breaks, terminal)
                })
            }
            Verb::StopsRemove(StopsRemove { id, json }) => {
                let removed = past.remove_break(*id).map_err(recorded::failed);
                recorded::answer(removed, *json, |removed| {
                    let noun = if *removed == 1 {
                        "breakpoint"
                    } else {
                        "breakpoints"
                    };
                    format!("{removed} {noun} removed\n")
                })
            }
            Verb::Watches(watches) => watches.run(past, terminal),
            Verb::WatchesRemove(WatchesRemove { id, json, .. }) => {
                let args = WatchRemoveArgs { id: *id };
                ask(past, "watch_remove", &args, *json, show::unwatched)
            }
            Verb::Live(verb) => verb.run(terminal),
        }
    }
}

fn joined(words: &[String]) -> HistoryArgs {
    HistoryArgs {
        expression: words.join(" "),
    }
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

//! The verbs of the prompt beside those that say their own form; and words that read otherwise about a recording than about a
//! program, for the same verbs: the options of a program's breakpoints mean nothing there.

use clap::Subcommand;
use server::location::Target;
use server::verbs::{
    self, BreakAdd, Chosen, NoteArgs, NoteReply, OutputArgs, OutputReply, ProbeArgs, WatchAccess,
    WatchAdd,
};

use crate::commands::live::{Common, Done, Link, Live, Patience, Replied, ask, output_lines};
use crate::error::Error;
use crate::render::escaped;

/// Options of watchpoints in a live program.
const LIVE_OPTIONS: [&str; 3] = ["--read", "--access", "--condition"];

/// All of them.
#[derive(Debug, Subcommand)]
pub enum Verb {
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

impl Verb {
    /// Does it and returns the exit code.
    ///
    /// # Errors
    /// Why it was not done.
    pub fn run(&self, link: &Link) -> Result<u8, Error> {
        match self {
            Verb::NotesAdd(verb) => verb.run(link),
            Verb::Lines(verb) => verb.run(link),
            Verb::Stops(verb) => verb.run(link),
            Verb::StopsRemove(verb) => verb.run(link),
            Verb::Watches(verb) => verb.run(link),
            Verb::WatchesRemove(verb) => verb.run(link),
            Verb::Live(verb) => verb.run(link),
        }
    }
}

/// What all of them take.
#[derive(Debug, clap::Args)]
struct Written {
    /// Print the reply as JSON
    #[arg(long)]
    json: bool,
}

impl Written {
    fn common(&self) -> Common {
        Common {
            session: None,
            json: self.json,
        }
    }
}

/// Keep a note at this event, in the recording: a bookmark for goto @TEXT
#[derive(Debug, clap::Args)]
#[command(override_usage = "note TEXT")]
pub struct NotesAdd {
    /// What it says
    #[arg(value_name = "TEXT", required = true)]
    text: Vec<String>,
    #[command(flatten)]
    written: Written,
}

impl NotesAdd {
    fn run(&self, link: &Link) -> Result<u8, Error> {
        let args = NoteArgs {
            text: self.text.join(" "),
        };
        let common = self.written.common();
        ask::<verbs::Note>(
            &common,
            link,
            &args,
            Patience::Answer,
            |reply| match reply {
                NoteReply::At(note) => {
                    format!("Note at event {}: {}\n", note.seq, escaped(&note.text))
                }
                NoteReply::Now(_) => String::new(),
            },
        )
    }
}

/// Show what the program had written up to here
#[derive(Debug, clap::Args)]
#[command(override_usage = "output [--tail N]")]
pub struct Lines {
    /// Only the last N lines
    #[arg(long, value_name = "N")]
    tail: Option<usize>,
    #[command(flatten)]
    written: Written,
}

impl Lines {
    fn run(&self, link: &Link) -> Result<u8, Error> {
        let args = OutputArgs {
            tail: self.tail,
            ..OutputArgs::default()
        };
        let common = self.written.common();
        ask::<verbs::Output>(
            &common,
            link,
            &args,
            Patience::Answer,
            |reply| match reply {
                OutputReply::Lines(lines) => output_lines(lines, link.terminal()),
                OutputReply::Pieces(_) => String::new(),
            },
        )
    }
}

/// Stop where a function is entered, or show where stops are
#[derive(Debug, clap::Args)]
pub struct Stops {
    /// A function's name, in which * stands for any text, or FILE:LINE
    at: Option<String>,
    #[command(flatten)]
    written: Written,
}

impl Stops {
    fn run(&self, link: &Link) -> Result<u8, Error> {
        let add = |at: &String| {
            ProbeArgs::Add(BreakAdd {
                at: Target::Text(at.clone()),
                also: Vec::new(),
                condition: None,
                hit_count: 0,
                all_threads: false,
                once: false,
                pending: false,
            })
        };
        let args = self.at.as_ref().map_or(ProbeArgs::List, add);
        breaks(&self.written, link, &args)
    }
}

/// Stop there no more
#[derive(Debug, clap::Args)]
pub struct StopsRemove {
    /// Its number [default: all]
    id: Option<u32>,
    #[command(flatten)]
    written: Written,
}

impl StopsRemove {
    fn run(&self, link: &Link) -> Result<u8, Error> {
        breaks(&self.written, link, &ProbeArgs::Remove(chosen(self.id)))
    }
}

fn breaks(written: &Written, link: &Link, args: &ProbeArgs<BreakAdd>) -> Result<u8, Error> {
    let done = Done::of(args);
    ask::<verbs::Break>(&written.common(), link, args, Patience::Answer, |reply| {
        reply.text(done, link.terminal())
    })
}

/// A number, or all.
fn chosen(id: Option<u32>) -> Chosen {
    Chosen {
        ids: id.into_iter().collect(),
        all: id.is_none(),
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
    #[command(flatten)]
    written: Written,
}

impl Watches {
    fn run(&self, link: &Link) -> Result<u8, Error> {
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
        let mut words = &self.expression[..];
        let mut json = self.written.json;
        // The option may stand after the expression too.
        if let Some((last, before)) = words.split_last()
            && last == "--json"
            && !before.is_empty()
        {
            (words, json) = (before, true);
        }
        let args = match words {
            [] => ProbeArgs::List,
            words => ProbeArgs::Add(WatchAdd {
                expression: words.join(" "),
                access: WatchAccess::Write,
                condition: None,
                hit_count: 0,
                all_threads: false,
            }),
        };
        watches(&Written { json }, link, &args)
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
    #[command(flatten)]
    written: Written,
}

impl WatchesRemove {
    fn run(&self, link: &Link) -> Result<u8, Error> {
        watches(&self.written, link, &ProbeArgs::Remove(chosen(self.id)))
    }
}

fn watches(written: &Written, link: &Link, args: &ProbeArgs<WatchAdd>) -> Result<u8, Error> {
    let done = Done::of(args);
    ask::<verbs::Watch>(&written.common(), link, args, Patience::Answer, |reply| {
        reply.text(done, link.terminal())
    })
}

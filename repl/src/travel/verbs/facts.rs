//! Verbs that show or note something about the recording.

use server::past::{
    CallsArgs, CallsReply, HistoryReply, LastWriteReply, NoteLine, NotesReply, OutputLines,
    OutputLinesArgs, Past,
};
use server::verbs::{NoteArgs, Nothing};

use super::super::show;
use super::{ask, joined};
use crate::error::Error;
use crate::render::{Terminal, escaped};

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

impl Calls {
    pub fn run(&self, past: &Past) -> Result<u8, Error> {
        let args = CallsArgs { limit: self.limit };
        ask(past, "calls", &args, self.json, |reply: &CallsReply| {
            show::calls(reply)
        })
    }
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

impl History {
    pub fn run(&self, past: &Past, terminal: &Terminal) -> Result<u8, Error> {
        let (args, json) = joined(&self.expression, self.json);
        ask(past, "history", &args, json, |reply: &HistoryReply| {
            show::history(reply, terminal)
        })
    }
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

impl LastWrite {
    pub fn run(&self, past: &Past) -> Result<u8, Error> {
        let (args, json) = joined(&self.expression, self.json);
        ask(past, "last_write", &args, json, |reply: &LastWriteReply| {
            show::last_write(reply)
        })
    }
}

/// Show all notes
#[derive(Debug, clap::Args)]
pub struct Notes {
    /// Print the reply as JSON
    #[arg(long)]
    json: bool,
}

impl Notes {
    pub fn run(&self, past: &Past, terminal: &Terminal) -> Result<u8, Error> {
        ask(
            past,
            "notes",
            &Nothing {},
            self.json,
            |reply: &NotesReply| show::notes(reply, terminal),
        )
    }
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

impl NotesAdd {
    pub fn run(&self, past: &Past) -> Result<u8, Error> {
        let args = NoteArgs {
            text: self.text.join(" "),
        };
        ask(past, "note", &args, self.json, |note: &NoteLine| {
            format!("Note at event {}: {}\n", note.seq, escaped(&note.text))
        })
    }
}

/// Show what the program had written up to here
#[derive(Debug, clap::Args)]
#[command(override_usage = "output [--tail N]")]
pub struct Lines {
    /// Only the last N lines
    #[arg(long, value_name = "N")]
    tail: Option<usize>,
    /// Print the reply as JSON
    #[arg(long)]
    json: bool,
}

impl Lines {
    pub fn run(&self, past: &Past, terminal: &Terminal) -> Result<u8, Error> {
        let args = OutputLinesArgs { tail: self.tail };
        ask(past, "output", &args, self.json, |reply: &OutputLines| {
            show::output(reply, terminal)
        })
    }
}

//! `output`: what the program printed, as bytes and to the stream that it was printed to.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::ffi::OsStringExt;

use server::output::Stream;
use server::past::OutputLines;
use server::verbs::{self, OutputArgs, OutputPieces, OutputReply};

use super::Link;
use super::ask::{Common, Patience, ask, fetch, write};
use super::show::table;
use crate::error::Error;
use crate::exit;
use crate::output::to_stdout;
use crate::render::{Align, Terminal};

#[derive(Debug, clap::Args)]
pub struct Output {
    #[command(flatten)]
    common: Common,
    /// Only the last N lines; forgets nothing
    #[arg(long, value_name = "N", conflicts_with_all = ["follow", "clear"])]
    tail: Option<usize>,
    /// Show what is printed as it comes, until the program ends; forgets nothing
    #[arg(long, conflicts_with = "clear")]
    follow: bool,
    /// Forget it without showing it
    #[arg(long)]
    clear: bool,
}

impl Output {
    pub fn run(&self, link: &Link) -> Result<u8, Error> {
        let mut args = OutputArgs {
            tail: self.tail,
            follow: self.follow.then_some(0),
            clear: self.clear,
            at_once: false,
        };
        if self.common.json && !self.follow {
            let patience = Patience::Answer;
            return ask::<verbs::Output>(&self.common, link, &args, patience, |_| {
                String::new()
            });
        }
        loop {
            let reply =
                fetch::<verbs::Output>(&self.common, link, &args, Patience::Answer)?;
            let reply = match reply {
                OutputReply::Pieces(reply) => reply,
                OutputReply::Lines(reply) => {
                    write(&lines(&reply, link.terminal()))?;
                    return Ok(exit::DONE);
                }
            };
            pass_on(&reply).map_err(to_stdout)?;
            if !self.follow || (reply.ended && reply.pieces.is_empty()) {
                return Ok(exit::DONE);
            }
            args.follow = Some(reply.next);
        }
    }
}

/// Writes what a program printed to where it printed it.
///
/// # Errors
/// Nobody reads it.
pub fn pass_on(reply: &OutputPieces) -> io::Result<()> {
    let (mut out, mut err) = (io::stdout().lock(), io::stderr().lock());
    if reply.dropped > 0 {
        writeln!(
            err,
            "hindsight: {} earlier pieces of output were dropped; the recording has them all",
            reply.dropped
        )?;
    }
    for piece in &reply.pieces {
        let bytes = OsString::from(&piece.text).into_vec();
        match piece.stream {
            Stream::Stdout => out.write_all(&bytes)?,
            Stream::Stderr => err.write_all(&bytes)?,
        }
    }
    out.flush()
}

/// Writes lines of a recording's output, each with its event.
pub fn lines(reply: &OutputLines, terminal: &Terminal) -> String {
    if reply.lines.is_empty() && !reply.more {
        return "The program had written nothing up to here.\n".to_owned();
    }
    let row = |line: &server::past::OutputLine| {
        vec![
            Some(line.line.to_string()),
            Some(line.seq.to_string()),
            Some(line.stream.clone()),
            Some(line.text.clone()),
        ]
    };
    let headings = [
        ("Line", Align::Right),
        ("Event", Align::Right),
        ("Stream", Align::Left),
        ("Text", Align::Left),
    ];
    let rows = match reply.lines.is_empty() {
        true => String::new(),
        false => table(&headings, reply.lines.iter().map(row).collect(), terminal),
    };
    match reply.more {
        true => rows + "(earlier lines are not shown: --tail N)\n",
        false => rows,
    }
}

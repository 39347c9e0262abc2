//! `output`: what the program printed, as bytes to the same stream.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::ffi::OsStringExt;

use server::client::{Client, Wait};
use server::output::Stream;
use server::past::OutputLines;
use server::paths::Paths;
use server::protocol::Code;
use server::push::Happened;
use server::verbs::{
    self, Column, OutputArgs, OutputPiece, OutputPieces, OutputReply, SubscribeArgs, Text,
};

use super::Link;
use super::ask::{Common, Patience, ask, fetch, meant, write};
use super::generic::written;
use super::interrupt::{self, OnInterrupt};
use crate::error::Error;
use crate::exit;
use crate::output::to_stdout;

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
        if self.follow && link.past().is_none() {
            return self.follow(link);
        }
        let args = OutputArgs {
            tail: self.tail,
            clear: self.clear,
            ..OutputArgs::default()
        };
        if self.common.json {
            let patience = Patience::Answer;
            return ask::<verbs::Output>(&self.common, link, &args, patience, |_| String::new());
        }
        match fetch::<verbs::Output>(&self.common, link, &args, Patience::Answer)? {
            OutputReply::Pieces(reply) => pass_on(&reply).map_err(to_stdout)?,
            OutputReply::Lines(reply) => write(&written(&lines(&reply), link.terminal()))?,
        }
        Ok(exit::DONE)
    }

    /// Shows the existing output, then new output until the program ends. The daemon pushes new output, so nothing is
    /// polled.
    fn follow(&self, link: &Link) -> Result<u8, Error> {
        let session = meant(&self.common, link)?;
        let paths = Paths::of_environment();
        let mut client = Client::connect(&paths)?;
        let work = |client: &mut Client| Follow { client, session }.run();
        let followed = match link.is_prompt() {
            true => interrupt::call(&mut client, &paths, OnInterrupt::Leave, link, work)?,
            false => work(&mut client)?,
        };
        match followed {
            Followed::ToTheEnd => Ok(exit::DONE),
            Followed::Recorded(reply) => {
                write(&written(&lines(&reply), link.terminal()))?;
                Ok(exit::DONE)
            }
            Followed::NobodyReads(error) => Err(to_stdout(error)),
        }
    }
}

enum Followed {
    ToTheEnd,
    /// It is a recording, which does not grow.
    Recorded(OutputLines),
    NobodyReads(io::Error),
}

/// Shows output as it is printed.
struct Follow<'c> {
    client: &'c mut Client,
    session: Option<u32>,
}

impl Follow<'_> {
    fn run(mut self) -> server::Result<Followed> {
        let args = SubscribeArgs::default();
        // Output between the subscription and the fetch arrives twice; its number identifies it.
        let subscribed = self.ask::<verbs::Subscribe>(&args)?;
        self.session = subscribed.session;
        let (mut next, mut has_ended) = (0, false);
        loop {
            let reply = match self.kept(next, has_ended) {
                Err(server::Error::Failed(failure))
                    if has_ended && failure.code == Code::NoSession =>
                {
                    return Ok(Followed::ToTheEnd);
                }
                reply => reply?,
            };
            let reply = match reply {
                OutputReply::Lines(reply) => return Ok(Followed::Recorded(reply)),
                OutputReply::Pieces(reply) => reply,
            };
            next = reply.next;
            if let Err(error) = pass_on(&reply) {
                return Ok(Followed::NobodyReads(error));
            }
            if reply.ended {
                return Ok(Followed::ToTheEnd);
            }
            if !has_ended {
                match self.heard(&mut next)? {
                    Ok(end) => has_ended = end,
                    Err(error) => return Ok(Followed::NobodyReads(error)),
                }
            }
        }
    }

    /// Shows pushed output until the program ends or the daemon reports a loss. Returns whether the program has ended,
    /// or the error of writing.
    fn heard(&mut self, next: &mut u64) -> server::Result<io::Result<bool>> {
        loop {
            let push = self.client.next_push()?;
            if push.lost > 0 {
                return Ok(Ok(false));
            }
            match push.what {
                Happened::Output {
                    piece,
                    stream,
                    text,
                } if piece >= *next => {
                    if piece > *next {
                        return Ok(Ok(false));
                    }
                    *next = piece + 1;
                    let piece = OutputPiece { stream, text };
                    if let Err(error) = pass_on_pieces(&[piece]) {
                        return Ok(Err(error));
                    }
                }
                Happened::Ended { .. } => return Ok(Ok(true)),
                Happened::Output { .. } | Happened::Stopped { .. } => {}
            }
        }
    }

    /// Fetches the output that the daemon has kept from piece `next` on. Waits for more if `waits`: children of a
    /// program that has ended may still print.
    fn kept(&mut self, next: u64, waits: bool) -> server::Result<OutputReply> {
        let args = OutputArgs {
            follow: Some(next),
            at_once: !waits,
            ..OutputArgs::default()
        };
        self.ask::<verbs::Output>(&args)
    }

    fn ask<V: verbs::Verb>(&mut self, args: &V::Args) -> server::Result<V::Reply> {
        let wait = Wait {
            patience: None,
            notify: &mut |_| {},
        };
        self.client.call::<V>(args, self.session, wait)
    }
}

/// Writes a program's output to the streams to which it was printed.
///
/// # Errors
/// The reader has gone.
pub fn pass_on(reply: &OutputPieces) -> io::Result<()> {
    if reply.dropped > 0 {
        eprintln!(
            "hindsight: {} earlier pieces of output were dropped; the recording has them all",
            reply.dropped
        );
    }
    pass_on_pieces(&reply.pieces)
}

fn pass_on_pieces(pieces: &[OutputPiece]) -> io::Result<()> {
    let (mut out, mut err) = (io::stdout().lock(), io::stderr().lock());
    for piece in pieces {
        let bytes = OsString::from(&piece.text).into_vec();
        match piece.stream {
            Stream::Stdout => out.write_all(&bytes)?,
            Stream::Stderr => err.write_all(&bytes)?,
        }
    }
    out.flush()
}

/// Writes lines of a recording's output, each with its event.
fn lines(reply: &OutputLines) -> Text {
    if reply.lines.is_empty() && !reply.more {
        return Text::line("The program had written nothing up to here.");
    }
    let row = |line: &server::past::OutputLine| {
        vec![
            line.line.to_string(),
            line.seq.to_string(),
            line.stream.clone(),
            line.text.clone(),
        ]
    };
    let columns = [
        Column::number("Line"),
        Column::number("Event"),
        Column::text("Stream"),
        Column::text("Text"),
    ];
    let mut text = match reply.lines.is_empty() {
        true => Text::default(),
        false => Text::table(&columns, reply.lines.iter().map(row).collect()),
    };
    if reply.more {
        text.push("(earlier lines are not shown: --tail N)");
    }
    text
}

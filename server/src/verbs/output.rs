//! `output`: what the program printed. Fetched output is discarded, except with `tail` and `follow`. For a recording,
//! returns the lines up to the current moment.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Call, Does, Needs, Verb};
use crate::os_text::OsText;
use crate::output::{Fetched, Stream};
use crate::past::OutputLines;
use crate::protocol::{Code, Failure};
use crate::session::{LiveSession, Origin, Session};

/// The `output` verb.
pub struct Output;

/// The arguments of `output`: at most one of `tail`, `follow` and `clear`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OutputArgs {
    /// Return only this many lines from the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tail: Option<usize>,
    /// Wait for output from this piece on. The next request passes the reply's `next`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub follow: Option<u64>,
    /// With `follow`: do not wait.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub at_once: bool,
    /// Discard all output.
    pub clear: bool,
}

/// The reply of `output`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OutputReply {
    /// The output of a program under control.
    Pieces(OutputPieces),
    /// The output in a recording.
    Lines(OutputLines),
}

/// The output of a program under control.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputPieces {
    /// The pieces, in order.
    pub pieces: Vec<OutputPiece>,
    /// The number of the next piece, for `follow`.
    pub next: u64,
    /// How many pieces before the first are missing because the buffer was full.
    pub dropped: u64,
    /// How many pieces were cleared.
    pub cleared: u64,
    /// No more output will follow.
    pub ended: bool,
}

/// A piece of output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputPiece {
    /// Its stream.
    pub stream: Stream,
    /// The output: text if UTF-8, else bytes.
    pub text: OsText,
}

/// A follower is answered after this time even without output, and asks again.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long to wait for the last output of a program that has ended.
const LAST_WORDS: Duration = Duration::from_secs(1);

impl Verb for Output {
    const NAME: &'static str = "output";
    const DOC: &'static str = "Show what the program printed since the last time; in a recording, everything up to here\n\noutput EXPRESSION is print, as in gdb, with a number for the value.";
    const NEEDS: Needs = Needs::Session;
    const DOES: Does = Does::Look;
    type Args = OutputArgs;
    type Reply = OutputReply;

    fn run(call: &Call<'_>, args: OutputArgs) -> Result<OutputReply, Failure> {
        Ok(match call.target()? {
            Session::Live(session) => OutputReply::Pieces(live(call, &session, &args)?),
            Session::Recorded(past) => OutputReply::Lines(past.output(args.tail)?),
        })
    }
}

fn live(
    call: &Call<'_>,
    session: &LiveSession,
    args: &OutputArgs,
) -> Result<OutputPieces, Failure> {
    if let Origin::Attached(_) = session.origin {
        return Err(Failure::new(
            Code::Failed,
            "the program was attached to: its output goes where it went before",
        )
        .hint("the recording has it too: select * from output"));
    }
    let output = &session.output;
    if session.has_ended() {
        // The last output may still be in the pipe.
        output.wait_for_end(LAST_WORDS);
    }
    let mut cleared = 0;
    let fetched = match (args.tail, args.follow) {
        (Some(_), Some(_)) => {
            return Err(Failure::bad_request("tail and follow exclude each other"));
        }
        (Some(lines), None) => output.tail(lines),
        (None, Some(from)) if args.at_once => output.follow(from, Duration::ZERO, &|| false),
        (None, Some(from)) => follow(call, output, from),
        (None, None) if args.clear => {
            cleared = output.clear();
            output.follow(u64::MAX, Duration::ZERO, &|| false)
        }
        (None, None) => output.take(),
    };
    if args.clear && args.tail.is_some() {
        cleared = output.clear();
    }
    Ok(OutputPieces {
        next: fetched.next,
        dropped: fetched.dropped,
        ended: fetched.ended,
        cleared,
        pieces: fetched.pieces.into_iter().map(piece).collect(),
    })
}

fn follow(call: &Call<'_>, output: &Arc<crate::output::Output>, from: u64) -> Fetched {
    let woken = Arc::clone(output);
    let _waiting = call.gone.waiting(move || woken.wake());
    output.follow(from, PATIENCE, &|| call.is_gone())
}

fn piece(piece: crate::output::Piece) -> OutputPiece {
    OutputPiece {
        stream: piece.stream,
        text: match String::from_utf8(piece.bytes) {
            Ok(text) => OsText::Text(text),
            Err(error) => OsText::Bytes(error.into_bytes()),
        },
    }
}

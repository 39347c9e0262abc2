//! `output`: what the program printed. Returns and forgets it; the tail and following forget nothing. Of a recording, the
//! lines up to the moment that is looked at.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Call, Does, Needs, Verb};
use crate::os_text::OsText;
use crate::output::{Fetched, Stream};
use crate::past::OutputLines;
use crate::protocol::{Code, Failure};
use crate::session::{LiveSession, Origin, Session};

/// The verb.
pub struct Output;

/// Its arguments: nothing, or one of these.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OutputArgs {
    /// Only the last so many lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tail: Option<usize>,
    /// Wait for something from this piece on; ask again with `next` of the reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub follow: Option<u64>,
    /// With `follow`: do not wait for it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub at_once: bool,
    /// Forget everything.
    pub clear: bool,
}

/// Its reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OutputReply {
    /// Of a program under control.
    Pieces(OutputPieces),
    /// Of a recording.
    Lines(OutputLines),
}

/// What a program under control has printed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputPieces {
    /// What was printed, in order.
    pub pieces: Vec<OutputPiece>,
    /// The number of the next piece, for `follow`.
    pub next: u64,
    /// How many pieces are missing before the first: the buffer was full.
    pub dropped: u64,
    /// How many pieces were cleared.
    pub cleared: u64,
    /// Nothing will come any more.
    pub ended: bool,
}

/// What was printed at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputPiece {
    /// Where to.
    pub stream: Stream,
    /// Text where it is UTF-8, else bytes.
    pub text: OsText,
}

/// A follower is answered after so long even if there is nothing, and asks again.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long it may take until what an ended program printed last has come through the pipe.
const LAST_WORDS: Duration = Duration::from_secs(1);

impl Verb for Output {
    const NAME: &'static str = "output";
    const DOC: &'static str = "Show what the program printed since the last time, and forget it; of a recording, up to here";
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
        // What it printed last may still be in the pipe.
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

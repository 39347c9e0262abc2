//! `why`: the chain of recorded events that led to a call or a value.

use serde::{Deserialize, Serialize};

use super::{Call, Command, Does, Form, Needs, Takes, Text, Verb, Word};
use crate::past::{WhyEnd, WhyReply, WhyStep};
use crate::protocol::Failure;

/// The verb.
pub struct Why;

/// Its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WhyArgs {
    /// The number of an event, or an expression.
    pub of: String,
    /// The event at which to evaluate the expression. Default: the current one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<u64>,
}

/// Lines of the text.
const LINES: usize = 30;

impl Verb for Why {
    const NAME: &'static str = "why";
    const DOC: &'static str = "Show the chain of recorded events that led to a call or a value

Of a call: its callers, which calls had or returned the same values as its arguments, and which ones inside it returned the same error. Of a value: between which events it was written, and which calls were open then. \"Same value\" means that two values are equal, not that one caused the other. `hindsight why RECORDING SEQ` asks a recording that is not open.";
    const NEEDS: Needs = Needs::Recording;
    const DOES: Does = Does::Look;
    const TAKES: Takes = Takes::Expression;
    type Args = WhyArgs;
    type Reply = WhyReply;

    fn run(call: &Call<'_>, args: WhyArgs) -> Result<WhyReply, Failure> {
        let is_here = args.at.is_none() && args.of.trim().parse::<u64>().is_err();
        let past = match is_here {
            true => call.recording_in_frame(&args.of)?,
            false => call.recording()?,
        };
        past.why(&args.of, args.at, &|| call.is_gone())
    }
}

impl Command for Why {
    const WORDS: &'static [Word] = &[
        Word::new(
            "of",
            "SEQ|EXPRESSION",
            Form::Rest,
            "An event, usually a call's; or an expression, as for print",
        ),
        Word::new(
            "at",
            "SEQ",
            Form::NumberOption,
            "Evaluate the expression at this event [default: here]",
        ),
    ];

    fn text(reply: &WhyReply, _: &Self::Args) -> Text {
        let later = reply.later.as_ref().map(|later| later.text(&reply.of));
        let later = later.map_or_else(Text::default, Text::hint);
        chain(reply).and(later)
    }
}

/// The steps, and where knowledge ends.
fn chain(reply: &WhyReply) -> Text {
    let ends = reply.ends.iter().flat_map(end);
    let mut ends: Vec<String> = ends.collect();
    ends.truncate(LINES / 2);
    let room = LINES - ends.len();
    let mut lines: Vec<String> = reply.steps.iter().map(step).collect();
    if lines.len() > room {
        let more = lines.len() - (room - 1);
        lines.truncate(room - 1);
        let more = Text::hint(format!("and {more} more steps: --json shows all"));
        return Text::lines(lines).and(more).and(Text::lines(ends));
    }
    lines.extend(ends);
    Text::lines(lines)
}

fn step(step: &WhyStep) -> String {
    let indent = "  ".repeat(step.depth.min(12) as usize);
    format!("{indent}{}, seq {}", step.text, step.seq)
}

fn end(end: &WhyEnd) -> Vec<String> {
    let why = format!("Not known: {}.", end.why);
    let option = end.option.as_ref();
    let option = option.map(|option| format!("  More would tell: {option}"));
    std::iter::once(why).chain(option).collect()
}

//! `last_write`: the two events between which a value last changed before a moment.

use serde::{Deserialize, Serialize};

use super::history::{EXPRESSION, in_a_second_run, lies_at, moment, place};
use super::{Call, Command, Does, Needs, Takes, Text, Verb, Word, locals, show};
use crate::inspect::{Manner, Shown};
use crate::past::{Change, Later};
use crate::protocol::Failure;

/// The `last_write` verb.
pub struct LastWrite;

/// The arguments of `last_write`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LastWriteArgs {
    /// The expression, as for `print`.
    pub expression: String,
    /// Show the values whole.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub full: bool,
}

/// The last change before a moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastWriteReply {
    /// The expression.
    pub expression: String,
    /// The last event that showed the previous value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Change>,
    /// The first event that showed the current value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Change>,
    /// The current value, as far as it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<Shown>,
    /// A later write of the same value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<Change>,
    /// The value is that of the last logged write.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_logged: bool,
    /// The last event that showed the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_at: Option<u64>,
    /// Its address, if the answer is about the logged writes to there: it is no global variable, and lies there now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// Every instruction is recorded: no later one wrote it, and no other one did if there is no change.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_exact: bool,
    /// Every instruction is recorded, and yet the memory has other bytes than the last write left: the kernel has mapped
    /// something else there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_remapped: bool,
    /// Every instruction is recorded, and the program has no readable memory there now.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unmapped: bool,
    /// Every instruction is recorded, and these are all writes since this began, if it is not the program: `recording`, or
    /// `this call of f`, which has its own variables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Stretches since the write that were not recorded, and in which the same value may have been written once more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_recorded: Vec<String>,
    /// What happened to the value afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub later: Option<Later>,
    /// A command that records, in a second run, which line wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Verb for LastWrite {
    const NAME: &'static str = "last_write";
    const DOC: &'static str = "Show when a value was last written";
    const NEEDS: Needs = Needs::Recording;
    const DOES: Does = Does::Look;
    const TAKES: Takes = Takes::Expression;
    type Args = LastWriteArgs;
    type Reply = LastWriteReply;

    fn run(call: &Call<'_>, args: LastWriteArgs) -> Result<LastWriteReply, Failure> {
        let past = call.recording_in_frame(&args.expression)?;
        past.last_write(&args.expression, Manner::of_many(args.full), &|| {
            call.is_gone()
        })
    }
}

impl Command for LastWrite {
    const WORDS: &'static [Word] = &[locals::FULL, EXPRESSION];

    fn text(reply: &LastWriteReply, _: &Self::Args) -> Text {
        let name = &reply.expression;
        let since = match &reply.now {
            Some(_) if reply.is_logged => Some(
                "No later write to it is recorded; what the kernel writes for the program is not seen."
                    .to_owned(),
            ),
            Some(Shown {
                stale_since: Some(event),
                ..
            }) => Some(format!(
                "It was last seen at event {event}, and may have changed since."
            )),
            Some(Shown {
                unknown: Some(_), ..
            }) => Some("What it is now is not known.".to_owned()),
            Some(_) => None,
            None => afterwards(reply),
        };
        let said = match (&reply.before, &reply.after) {
            (_, Some(after)) if after.is_write => wrote(name, after),
            (Some(before), Some(after)) => format!(
                "{name} became {} between event {} and event {}.",
                after.value,
                told(before),
                told(after),
            ),
            (None, Some(after)) if since.is_none() => format!(
                "{name} is {} since it was first seen, at event {}.",
                after.value,
                told(after),
            ),
            (None, Some(after)) => format!(
                "{name} was {} when it was first seen, at event {}.",
                after.value,
                told(after),
            ),
            (_, None) if reply.is_unmapped => {
                format!("The program has no readable memory at {name} here.")
            }
            (_, None) if reply.is_exact => unwritten(reply),
            (_, None) => format!("The recording shows no value of {name} up to here."),
        };
        let again = reply
            .again
            .as_ref()
            .map(|again| format!("Event {} wrote the same value once more.", told(again)));
        let since = since.filter(|_| reply.after.is_some());
        let hint = reply.hint.as_deref().map(in_a_second_run);
        let is_short = reply.after.as_ref().is_some_and(|after| after.shortened);
        let gaps = show::went_over(&reply.not_recorded);
        let is_unknown = reply.now.as_ref().is_some_and(|now| now.unknown.is_some());
        let gaps = gaps.map(|gaps| match is_unknown {
            true => format!("It may have been written since where nothing is known: {gaps}."),
            false => format!(
                "The same value may have been written once more where nothing is known: {gaps}."
            ),
        });
        let mapped = reply.is_remapped.then(|| remapped(name, reply));
        let lies = reply.place.as_deref().map(|place| lies_at(name, place));
        let lines = lies
            .into_iter()
            .chain([said])
            .chain(mapped)
            .chain(again)
            .chain(since)
            .chain(gaps);
        let text = Text::lines(lines.chain(hint));
        let later = reply.later.as_ref().map(|later| later.text(name));
        let later = later.map_or_else(Text::default, Text::hint);
        text.and(later)
            .and(show::left_out([is_short.then_some("")]))
    }
}

/// What is said of a value that nothing has written in a call, behind what the value is.
pub(crate) const LEFT_OVER: &str = "what is there is from before";

/// Says that no instruction has written a value.
fn unwritten(reply: &LastWriteReply) -> String {
    let name = &reply.expression;
    match reply.since.as_deref() {
        Some(since @ "recording") if reply.later.is_none() => {
            format!("No instruction has written {name} since {since} began.")
        }
        Some("recording") => format!("No instruction has written {name} yet."),
        Some(call) => {
            format!("No instruction has written {name} since {call} began: {LEFT_OVER}.")
        }
        None if reply.later.is_some() => format!("No instruction has written {name} yet."),
        None => format!("No instruction has written {name} since the program began."),
    }
}

/// Says that what a value was later is not known: it has none here, as a variable of a function that does not run.
fn afterwards(reply: &LastWriteReply) -> Option<String> {
    let after = reply.after.as_ref().filter(|after| !after.is_write)?;
    let seen = reply.seen_at.unwrap_or(after.seq);
    Some(format!(
        "It was last seen at event {seen}; what it was afterwards is not known."
    ))
}

/// Describes the line that wrote a value.
fn wrote(name: &str, change: &Change) -> String {
    if let Some(gap) = &change.not_recorded {
        return not_recorded(name, change, gap);
    }
    let became = change.became(name);
    let pc = change.pc.as_ref().map(|pc| format!(" (instruction {pc})"));
    format!(
        "{became} at event {}{}, in thread {}.",
        told(change),
        pc.unwrap_or_default(),
        change.thread
    )
}

/// Says that what a write left is gone, although no instruction has written since.
fn remapped(name: &str, reply: &LastWriteReply) -> String {
    let now = match reply.now.as_ref().and_then(|now| now.value.as_ref()) {
        Some(value) => format!("Now {name} is {value}"),
        None => format!("Now the program has no readable memory at {name}"),
    };
    format!(
        "{now}: the kernel has since mapped something else there, or moved or dropped it (mmap, munmap, mremap, madvise)."
    )
}

/// Says that a value changed where nothing is recorded.
fn not_recorded(name: &str, change: &Change, gap: &str) -> String {
    let value = &change.value;
    let was = change.old.as_ref().map(|old| format!(", after {old}"));
    format!(
        "{name} became {value}{} while the program was not recorded: {gap}. Which instruction wrote it is not known.",
        was.unwrap_or_default()
    )
}

/// Describes an event, and where the thread was if that is known.
fn told(change: &Change) -> String {
    let place = place(change);
    let moment = moment(change);
    match place.is_empty() {
        true => moment,
        false => format!("{moment} ({place})"),
    }
}

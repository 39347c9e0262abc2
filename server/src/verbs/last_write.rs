//! `last_write`: between which events a value came to be what it is at a moment.

use serde::{Deserialize, Serialize};

use super::history::{EXPRESSION, place};
use super::{Call, Command, Does, HistoryArgs, Needs, Takes, Text, Verb, Word};
use crate::inspect::Shown;
use crate::past::Change;
use crate::protocol::Failure;

/// The verb.
pub struct LastWrite;

/// The last change before a moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastWriteReply {
    /// The expression.
    pub expression: String,
    /// The last event at which the value before was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Change>,
    /// The first event at which the value after it was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Change>,
    /// How far it is known what the value is now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<Shown>,
}

impl Verb for LastWrite {
    const NAME: &'static str = "last_write";
    const DOC: &'static str = "Show between which events a value came to be what it is here";
    const NEEDS: Needs = Needs::Recording;
    const DOES: Does = Does::Look;
    const TAKES: Takes = Takes::Expression;
    type Args = HistoryArgs;
    type Reply = LastWriteReply;

    fn run(call: &Call<'_>, args: HistoryArgs) -> Result<LastWriteReply, Failure> {
        let past = call.recording()?;
        past.last_write(&args.expression, &|| call.is_gone())
    }
}

impl Command for LastWrite {
    const WORDS: &'static [Word] = &[EXPRESSION];

    fn text(reply: &LastWriteReply, _: &Self::Args) -> Text {
        let name = &reply.expression;
        let since = match &reply.now {
            Some(Shown {
                stale_since: Some(event),
                ..
            }) => Some(format!(
                "It was last seen at event {event}, and may have changed since."
            )),
            Some(Shown {
                unknown: Some(_), ..
            }) => Some("What it is now is not known.".to_owned()),
            _ => None,
        };
        let said = match (&reply.before, &reply.after) {
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
            (_, None) => format!("The recording shows no value of {name} up to here."),
        };
        let since = since.filter(|_| reply.after.is_some());
        Text::lines([said].into_iter().chain(since))
    }
}

/// An event, and where the thread stood if that is known.
fn told(change: &Change) -> String {
    let place = place(change);
    match place.is_empty() {
        true => change.seq.to_string(),
        false => format!("{} ({place})", change.seq),
    }
}

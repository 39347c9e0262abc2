//! `logpoint`: adds, lists, removes and switches logpoints. A hit records an event with a text and stops nothing.

use recorder::live::{Action, ProbeSpec};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    Call, Command, Does, Form, Needs, ProbeArgs, ProbeKind, ProbesReply, Takes, Text, Verb, Word,
    probe_text, probe_words, probes,
};
use crate::inspect;
use crate::location::Target;
use crate::protocol::Failure;

/// The `logpoint` verb.
pub struct Logpoint;

/// A logpoint to add.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogpointAdd {
    /// Its location.
    pub at: Target,
    /// The text; `{EXPR}` is replaced by a value.
    pub message: String,
    /// Log only if this expression is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// Log only on the Nth hit; 0: on every hit.
    #[serde(default)]
    pub hit_count: u64,
    /// Allow the logpoint to wait for a module that is not loaded yet.
    #[serde(default)]
    pub pending: bool,
}

impl Verb for Logpoint {
    const NAME: &'static str = "logpoint";
    const DOC: &'static str = "Log a message wherever the program passes a place";
    const NEEDS: Needs = Needs::Program;
    const DOES: Does = Does::Change;
    const TAKES: Takes = Takes::Location;
    type Args = ProbeArgs<LogpointAdd>;
    type Reply = ProbesReply;

    fn run(call: &Call<'_>, args: Self::Args) -> Result<ProbesReply, Failure> {
        probes::run(call, args, ProbeKind::Logpoint, |session, add| {
            Ok(vec![ProbeSpec {
                location: probes::located(session, &add.at, add.pending)?,
                action: Action::Log(inspect::message(&add.message)?),
                condition: inspect::condition(add.condition.as_deref())?,
                hit_count: add.hit_count,
            }])
        })
    }
}

impl Command for Logpoint {
    const WORDS: &'static [Word] = &[
        Word::new(
            "words",
            "[add] LOCATION MESSAGE | list | remove ID.. | enable ID.. | disable ID..",
            Form::Words,
            "A location and the message, in which {EXPRESSION} stands for values",
        )
        .optional(),
        probe_words::FUNCTION,
        probe_words::CONDITION,
        probe_words::HIT_COUNT,
        probe_words::ALL,
        probe_words::PENDING,
    ];

    fn read(written: Map<String, Value>) -> Result<Self::Args, Failure> {
        probe_words::read(written, |words, written| {
            let Some((message, location)) = words.split_last() else {
                return Err(Failure::bad_request("a message is needed")
                    .hint("hindsight logpoint parse.c:42 'n={n}'"));
            };
            written.insert("message".to_owned(), message.as_str().into());
            probe_words::location(location, written)
        })
    }

    fn text(reply: &ProbesReply, asked: &Self::Args) -> Text {
        probe_text::of_program(&reply.probes, asked)
    }
}

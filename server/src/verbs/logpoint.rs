//! `logpoint`: adds, lists, removes and switches logpoints: a hit becomes an event with a text, nothing stops.

use recorder::live::{Action, ProbeSpec};
use serde::{Deserialize, Serialize};

use super::{Call, Does, Needs, ProbeArgs, ProbeKind, ProbesReply, Takes, Verb, probes};
use crate::inspect;
use crate::location::Target;
use crate::protocol::Failure;

/// The verb.
pub struct Logpoint;

/// A logpoint to add.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogpointAdd {
    /// Where.
    pub at: Target,
    /// The text; `{EXPR}` stands for values.
    pub message: String,
    /// Only if this is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// Only on the Nth hit; 0: on every one.
    #[serde(default)]
    pub hit_count: u64,
    /// May wait for a module that is not loaded yet.
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

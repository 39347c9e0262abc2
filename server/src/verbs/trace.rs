//! `trace`: records the calls of more functions while the program runs.

use serde::{Deserialize, Serialize};

use super::{Call, Does, Needs, Verb};
use crate::protocol::{Code, Failure};
use crate::session::of_recorder;

/// The `trace` verb.
pub struct Trace;

/// Functions that are named in a reply.
const NAMED: usize = 20;

/// The arguments of `trace`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceArgs {
    /// Patterns as `record -f` takes them, at least one: parse, Queue::*, file:queue.c, module:libz*.
    pub patterns: Vec<String>,
}

/// The reply of `trace`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceReply {
    /// How many more functions are recorded from now on.
    pub recorded: u64,
    /// Some of them.
    pub functions: Vec<String>,
    /// How many that match were recorded before.
    pub already: u64,
    /// How many cannot be recorded.
    pub skipped: u64,
    /// Some of them, with the reasons.
    pub reasons: Vec<Skipped>,
}

/// A function that cannot be recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// Its name.
    pub function: String,
    /// Why.
    pub reason: String,
}

impl Verb for Trace {
    const NAME: &'static str = "trace";
    const DOC: &'static str = "Record the calls of more functions from now on";
    const NEEDS: Needs = Needs::RunningProgram;
    const DOES: Does = Does::Change;
    type Args = TraceArgs;
    type Reply = TraceReply;

    fn run(call: &Call<'_>, args: TraceArgs) -> Result<TraceReply, Failure> {
        if args.patterns.is_empty() {
            return Err(Failure::bad_request("no function is named"));
        }
        let session = call.live()?;
        let traced = session.live.trace(&args.patterns);
        let traced = traced.map_err(|error| of_recorder(&error))?;
        let (recorded, skipped) = (traced.functions.len(), traced.untraced.len());
        if recorded == 0 && skipped == 0 && traced.already == 0 {
            let named = args.patterns.join(", ");
            return Err(Failure::new(
                Code::InvalidFunction,
                format!("no function of a loaded module matches {named}"),
            )
            .hint("a pattern matches the whole name: *parse*; functions of system libraries need module:NAME"));
        }
        let reasons = traced.untraced.into_iter().take(NAMED);
        Ok(TraceReply {
            recorded: recorded as u64,
            functions: traced.functions.into_iter().take(NAMED).collect(),
            already: traced.already,
            skipped: skipped as u64,
            reasons: reasons
                .map(|untraced| Skipped {
                    function: untraced.function,
                    reason: untraced.reason,
                })
                .collect(),
        })
    }
}

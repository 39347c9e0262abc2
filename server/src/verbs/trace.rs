//! `trace`: records the calls of more functions while the program runs.

use serde::{Deserialize, Serialize};

use values::quantity::count;

use super::{Call, Command, Does, Form, Needs, Text, Verb, Word};
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
    /// How many matching ones were already recorded.
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
    const DOC: &'static str = "Start recording the calls of more functions\n\nA running program need not be stopped. Examples: hindsight trace 'parse_*' Queue::push; hindsight trace module:libz.so.1. It names the functions that cannot be recorded, and why. gdb's trace sets a tracepoint: that is logpoint here.";
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
            .hint("a pattern matches the whole name: *parse*; in system libraries a whole name, libc.so.6:*printf or module:libz* is needed"));
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

impl Command for Trace {
    const WORDS: &'static [Word] = &[Word::new(
        "patterns",
        "PATTERN",
        Form::Words,
        "Functions, as record -f takes them: parse, Queue::*, file:queue.c, module:libz*",
    )];

    fn text(reply: &TraceReply, _: &TraceArgs) -> Text {
        let mut lines = Vec::new();
        if reply.recorded > 0 {
            let more = reply.recorded.saturating_sub(reply.functions.len() as u64);
            let rest = match more {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let names = reply.functions.join(", ");
            let number = count(reply.recorded, "more function");
            lines.push(format!("{number} recorded from now on: {names}{rest}"));
        }
        if reply.already > 0 {
            let number = count(reply.already, "function");
            lines.push(format!("{number} recorded already"));
        }
        if reply.skipped > 0 {
            let number = count(reply.skipped, "function");
            lines.push(format!("{number} cannot be recorded"));
        }
        let skipped = reply.reasons.iter();
        lines.extend(skipped.map(|skipped| format!("  {}: {}", skipped.function, skipped.reason)));
        Text::lines(lines)
    }
}

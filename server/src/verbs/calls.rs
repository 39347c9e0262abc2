//! `calls`: the recorded calls around a moment, and those inside the innermost of them.

use serde::{Deserialize, Serialize};

use super::{Call, Command, Does, Form, Needs, Text, Verb, Word, page};
use crate::past::CallLine;
use crate::protocol::Failure;
use crate::quantity::duration;

/// The `calls` verb.
pub struct Calls;

/// Arguments: how much of the call tree to show.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CallsArgs {
    /// Maximum number of calls inside the innermost one. Default: 20.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// All calls around, however many.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub full: bool,
}

/// The calls around a moment, outermost first, and those inside the innermost of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallsReply {
    /// The thread.
    pub thread: u32,
    /// The event.
    pub seq: u64,
    /// The calls.
    pub calls: Vec<CallLine>,
    /// There are more calls inside.
    pub more: bool,
}

/// The default number of calls inside the innermost one.
const LIMIT: usize = 20;

impl Verb for Calls {
    const NAME: &'static str = "calls";
    const DOC: &'static str = "Show the recorded calls around here, and those inside the innermost";
    const NEEDS: Needs = Needs::Recording;
    const DOES: Does = Does::Look;
    type Args = CallsArgs;
    type Reply = CallsReply;

    fn run(call: &Call<'_>, args: CallsArgs) -> Result<CallsReply, Failure> {
        call.recording()?.calls(args.limit.unwrap_or(LIMIT))
    }
}

impl Command for Calls {
    const WORDS: &'static [Word] = &[
        Word::new(
            "limit",
            "N",
            Form::NumberOption,
            "Number of nested calls [default: 20]",
        ),
        Word::flag("full", None, "All calls around, not only the innermost 50"),
    ];

    fn text(reply: &CallsReply, asked: &Self::Args) -> Text {
        if reply.calls.is_empty() {
            return Text::line(format!(
                "Thread {} is in no recorded call at event {}.",
                reply.thread, reply.seq
            ));
        }
        let more = reply
            .more
            .then(|| Text::hint("  (more calls follow: --limit)"));
        let around = reply.calls.iter().filter(|call| call.around).count();
        let hidden = match asked.full {
            true => 0,
            false => around.saturating_sub(page::ROWS),
        };
        let outer = format!("  ({hidden} more calls around: --full)");
        let outer = (hidden > 0).then_some(Text::hint(outer));
        let calls = reply.calls.iter().skip(hidden).map(line);
        let outer = outer.unwrap_or_default();
        outer.and(Text::lines(calls)).and(more.unwrap_or_default())
    }
}

fn line(call: &CallLine) -> String {
    let mark = if call.around { '*' } else { ' ' };
    let indent = "  ".repeat(call.depth as usize);
    let end = match call.end_seq {
        Some(end) => format!("..{end}"),
        None if call.only_entered => String::new(),
        None => "..".to_owned(),
    };
    let time = match u64::try_from(call.dur_ns) {
        Ok(ns) => format!("  {}", duration(ns)),
        Err(_) if call.only_entered => "  (end not recorded)".to_owned(),
        Err(_) => "  (not ended)".to_owned(),
    };
    let without_return = match (call.unwound, call.open_at_end) {
        (true, _) => "  (unwound)",
        (_, true) => "  (not returned)",
        _ => "",
    };
    let function = call.short_name.as_ref().unwrap_or(&call.function);
    let start_seq = call.start_seq;
    format!("{mark} {indent}{function}  {start_seq}{end}{time}{without_return}")
}

//! `debug_query`: events by filters, without SQL.

use query::finding::{self, Finding, Nothing, Refused};
use query::{Session, Stopper};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use server::protocol::Failure;
use store::columns::EventKind;

use crate::answer::{Answer, List, object};
use crate::context::Context;
use crate::names;
use crate::recordings;
use crate::tool::Tool;
use crate::words;

/// The tool.
pub struct Query;

/// The parameters of the tool.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Args {
    /// call (one row per call), or kinds of events: enter, leave, stdout, stderr, logpoint, pause, resume, write (by a debugger), logged_write (by the program), exception, note, thread_start, thread_name, thread_exit, module_load, module_unload, process_start, process_exit, exec, exec_failed, fork, syscall, syscall_end, probe, probe_removed, condition_error, snapshot, arming, ring_wait, gap, warning, detached [default: call if a filter is about functions or calls, else all events]
    event_type: Vec<String>,
    /// The function's name; equals takes it without scopes and template arguments, too (Cache::get)
    function: Option<TextFilter>,
    /// The source file of the function
    source_file: Option<TextFilter>,
    /// What the call returned
    return_value: Option<ReturnFilter>,
    /// The arguments as text: id=5, path=0x55d0 "/etc/passwd"
    args: Option<TextFilter>,
    /// The text of output, messages and notes
    text: Option<TextFilter>,
    /// The thread
    thread_id: Option<u32>,
    /// From this time on, ns since the recording began
    time_from: Option<i64>,
    /// Up to this time, inclusive
    time_to: Option<i64>,
    /// From this event on
    seq_from: Option<u64>,
    /// Up to this event, inclusive
    seq_to: Option<u64>,
    /// Only calls that the call of this seq made
    parent: Option<u64>,
    /// Only calls that took at least so long
    min_duration_ns: Option<i64>,
    /// How many rows [default: 50, at most 1000]
    limit: Option<usize>,
    /// Pass over so many rows
    offset: Option<usize>,
    /// asc or desc by seq, or duration: the longest first [default: asc]
    order: Order,
    /// How much of each row
    verbosity: Verbosity,
}

/// A filter on a text; all that are given must hold.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct TextFilter {
    /// It is exactly this
    equals: Option<String>,
    /// It has this in it
    contains: Option<String>,
    /// This regular expression matches a part of it
    matches: Option<String>,
}

/// A filter on a returned value.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct ReturnFilter {
    /// It is this number
    equals: Option<i128>,
    /// Nothing is known to have been returned
    is_null: Option<bool>,
    /// It is less than this
    less_than: Option<i128>,
    /// It is greater than this
    greater_than: Option<i128>,
}

/// In which order.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Order {
    #[default]
    Asc,
    Desc,
    Duration,
}

/// How much of each row.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Verbosity {
    Summary,
    #[default]
    Standard,
    Full,
}

const LIMIT: usize = 50;
const MOST: usize = 1_000;

impl Tool for Query {
    const NAME: &'static str = "debug_query";
    const DOC: &'static str = "Find calls and events of a recording by filters. Each row has its seq, for debug_state and debug_goto. A call's seq is that of its entry. For joins and sums use debug_sql.";
    const READ_ONLY: bool = true;
    type Args = Args;

    fn run(context: &Context, args: Args) -> Result<Answer, Failure> {
        let limit = args.limit.unwrap_or(LIMIT).min(MOST);
        let offset = args.offset.unwrap_or(0);
        let is_full = args.verbosity == Verbosity::Full;
        let function = args.function.clone();
        let finding = Finding::of(&finding::Filters::from(args)).map_err(refused)?;
        let session = context.opened_recording()?;
        let begun = |stopper: Stopper| context.cancel().while_waiting(move || stopper.stop());
        let page = finding.page(&session, (offset + context.cursor, limit), &begun);
        let mut page = page.map_err(recordings::failure)?;
        names::shorten(&session, context.cancel(), &mut page.rows, is_full)?;
        for row in &mut page.rows {
            if let Some(Value::String(text)) = row.get_mut("returnValue") {
                *text = words::in_values(text);
            }
        }
        let hint = match (page.nothing, &function) {
            (Some(Nothing::NoFunction), Some(filter)) => unknown_function(&session, filter),
            (Some(Nothing::OtherWrites), _) => {
                "the writes of the program have the eventType logged_write".into()
            }
            _ => Value::Null,
        };
        Ok(Answer::List(List {
            head: object([("hint", hint)]),
            name: "events",
            items: page.rows.into_iter().map(Value::Object).collect(),
            // The cursor counts from the offset, which stays a parameter of the next call.
            first: context.cursor,
            total: Some(page.total - offset.min(page.total)),
        }))
    }
}

impl From<Args> for finding::Filters {
    fn from(args: Args) -> finding::Filters {
        finding::Filters {
            kinds: args.event_type,
            function: args.function.map(Into::into),
            source_file: args.source_file.map(Into::into),
            return_value: args.return_value.map(Into::into),
            args: args.args.map(Into::into),
            text: args.text.map(Into::into),
            thread_id: args.thread_id,
            times: (args.time_from, args.time_to),
            seqs: (args.seq_from, args.seq_to),
            parent: args.parent,
            min_duration_ns: args.min_duration_ns,
            order: match args.order {
                Order::Asc => finding::Order::Asc,
                Order::Desc => finding::Order::Desc,
                Order::Duration => finding::Order::Duration,
            },
            detail: match args.verbosity {
                Verbosity::Summary => finding::Detail::Summary,
                Verbosity::Standard => finding::Detail::Standard,
                Verbosity::Full => finding::Detail::Full,
            },
        }
    }
}

impl From<TextFilter> for finding::TextFilter {
    fn from(filter: TextFilter) -> finding::TextFilter {
        finding::TextFilter {
            equals: filter.equals,
            contains: filter.contains,
            matches: filter.matches,
        }
    }
}

impl From<ReturnFilter> for finding::ReturnFilter {
    fn from(filter: ReturnFilter) -> finding::ReturnFilter {
        finding::ReturnFilter {
            equals: filter.equals,
            is_null: filter.is_null,
            less_than: filter.less_than,
            greater_than: filter.greater_than,
        }
    }
}

impl TextFilter {
    /// The name, if nothing else is wanted.
    fn only_name(&self) -> Option<&str> {
        let is_alone = self.contains.is_none() && self.matches.is_none();
        self.equals.as_deref().filter(|_| is_alone)
    }
}

/// Says which filters do not fit, and what to ask instead.
fn refused(refused: Refused) -> Failure {
    match refused {
        Refused::UnknownKind(kind) => {
            let known: Vec<&str> = EventKind::ALL.iter().map(|kind| kind.name()).collect();
            Failure::bad_request(format!("there is no eventType {kind}"))
                .hint(format!("call, enter, {}", known.join(", ")))
        }
        Refused::CallsAndEvents => Failure::bad_request("calls and events are asked one at a time")
            .hint("leave out call, or the other kinds; enter and leave are the events of calls"),
        Refused::TextOfCalls => Failure::bad_request("calls have no text")
            .hint("filter by args, or ask for eventType stdout, stderr, logpoint or note"),
        Refused::DurationOfEvents => {
            Failure::bad_request("only calls have a duration").hint("ask for eventType call")
        }
        Refused::LongText(len) => {
            Failure::bad_request(format!("a filter has a text of {len} bytes")).hint(format!(
                "a text has at most {} bytes: give a part of it with contains",
                finding::LONGEST_TEXT
            ))
        }
    }
}

/// Says that no recorded function has the name that a filter wants: all its code is inlined, or which names are near.
fn unknown_function(session: &Session, filter: &TextFilter) -> Value {
    let Some(name) = filter.equals.as_ref().or(filter.contains.as_ref()) else {
        return "no recorded function has such a name; debug_sql: select name from functions"
            .into();
    };
    let around = filter.only_name().map(|name| session.inlined_into(name));
    if let Some(around) = around.filter(|around| !around.is_empty()) {
        let around = around.join("; ");
        return format!(
            "{name} is inlined everywhere and has no calls of its own: look at those of {around}"
        )
        .into();
    }
    let near = session.functions_near(name);
    let near = match near.is_empty() {
        true => "debug_sql: select name from functions".to_owned(),
        false => format!("near: {}", near.join("; ")),
    };
    format!("no recorded function has the name {name}; {near}").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_names_every_kind() {
        let schema = serde_json::to_string(&schemars::schema_for!(Args)).unwrap();
        for kind in EventKind::ALL {
            let is_name = |c: char| c.is_alphanumeric() || c == '_';
            let mut words = schema.split(|c| !is_name(c));
            assert!(words.any(|word| word == kind.name()), "{}", kind.name());
        }
    }

    #[test]
    fn filters_that_do_not_fit_are_refused_with_what_would() {
        for (asked, says) in [
            (serde_json::json!({"eventType": ["colour"]}), "colour"),
            (
                serde_json::json!({"eventType": ["call", "stdout"]}),
                "one at a time",
            ),
            (
                serde_json::json!({"eventType": ["stdout"], "minDurationNs": 1}),
                "duration",
            ),
            (
                serde_json::json!({"eventType": ["call"], "text": {"equals": ""}}),
                "no text",
            ),
        ] {
            let args: Args = serde_json::from_value(asked).unwrap();
            let failure = Finding::of(&finding::Filters::from(args))
                .map_err(refused)
                .err();
            let failure = failure.unwrap_or_else(|| panic!("{says}: not refused"));
            assert!(failure.message.contains(says), "{failure}");
            assert!(failure.hint.is_some());
        }
    }
}

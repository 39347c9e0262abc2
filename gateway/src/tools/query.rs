//! `debug_query`: events by filters, without SQL.

mod question;

use query::Session;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use server::protocol::Failure;

use self::question::Question;
use crate::answer::{Answer, List, object};
use crate::context::{Cancel, Context};
use crate::names::{self, Matching};
use crate::recordings;
use crate::tool::Tool;

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
#[derive(Default, Deserialize, JsonSchema)]
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
        let mut question = Question::of(&args)?;
        let session = context.opened_recording()?;
        let limit = args.limit.unwrap_or(LIMIT).min(MOST);
        let mut is_known = true;
        if let Some(filter) = &args.function {
            let mut found = names::matching(&session, context.cancel(), &filter.of_functions())?;
            if let Some(name) = filter.only_name().filter(|_| found.is_empty()) {
                found = Matching::of(session.functions_meant(name));
            }
            is_known = !found.is_empty();
            question.conditions.push(match question.table {
                "writes" => found.by_name(),
                _ => found.by_id(),
            });
        }
        let first = args.offset.unwrap_or(0) + context.cursor;
        let mut answer = question.ask(&session, context.cancel(), first, limit)?;
        let is_full = args.verbosity == Verbosity::Full;
        names::shorten(&session, context.cancel(), &mut answer.rows, is_full)?;
        let mut total = first + answer.rows.len();
        if answer.rows.len() == limit {
            let counted = recordings::rows(&session, context.cancel(), &question.count(), 1)?;
            let count = counted.rows.first().and_then(|row| row["n"].as_u64());
            total = count.map_or(total, |count| count as usize);
        }
        let hint = match total {
            0 => nothing_found(&session, context.cancel(), &args, is_known)?,
            _ => Value::Null,
        };
        Ok(Answer::List(List {
            head: object([("hint", hint)]),
            name: "events",
            items: answer.rows.into_iter().map(Value::Object).collect(),
            // The cursor counts from the offset, which stays a parameter of the next call.
            first: context.cursor,
            total: Some(total - args.offset.unwrap_or(0).min(total)),
        }))
    }
}

/// Says why nothing was found: no recorded function has the name that a filter wants, or the writes are of the other kind; null
/// if neither is so.
fn nothing_found(
    session: &Session,
    cancel: &Cancel,
    args: &Args,
    is_known: bool,
) -> Result<Value, Failure> {
    match &args.function {
        Some(filter) if !is_known => Ok(unknown_function(session, filter)),
        _ if args.event_type == ["write"] => {
            let sql = "select count(*) as n from events where kind = 'logged_write'";
            let counted = recordings::rows(session, cancel, sql, 1)?;
            let count = counted.rows.first().and_then(|row| row["n"].as_u64());
            Ok(match count {
                None | Some(0) => Value::Null,
                Some(_) => "the writes of the program have the eventType logged_write".into(),
            })
        }
        _ => Ok(Value::Null),
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

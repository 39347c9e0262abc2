//! `debug_history`: how a value changed.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use server::inspect::short_name;
use server::past::Change;
use server::protocol::Failure;
use server::verbs::{
    self, Command, HistoryArgs, HistoryReply, LastWrite, LastWriteArgs, Nothing, Position,
    PositionReply,
};

use super::state::{Moment, go_to};
use crate::answer::{Answer, List, object};
use crate::context::{Context, lock};
use crate::text;
use crate::tool::Tool;
use crate::words;

/// Changes per request: no budget holds more.
const MOST: usize = 500;

/// The tool.
pub struct History;

/// The parameters of the tool.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Args {
    /// The expression: total, cache.head, FUNCTION::VARIABLE, *(int *)0x55d0
    expression: String,
    /// Go to this moment first: a seq, 12+300 (instructions after an event); the expression has the meaning that it has there
    at: Option<Moment>,
    /// Only the last change: up to the moment gone to, or of the whole recording
    #[serde(default)]
    last_write: bool,
}

impl Tool for History {
    const NAME: &'static str = "debug_history";
    const DOC: &'static str = "Show every recorded change of a value, or with lastWrite between which events it got the value that it has now. A recording made with --full names the instruction that wrote: at, as debug_goto takes it.";
    const READ_ONLY: bool = true;
    type Args = Args;

    fn run(context: &Context, args: Args) -> Result<Answer, Failure> {
        let session = context.session()?;
        go_to(context, session, args.at.as_ref())?;
        if args.last_write {
            let asked = LastWriteArgs {
                expression: args.expression,
                full: false,
            };
            let mut reply = context.ask::<LastWrite>(session, &asked)?;
            let way = reply
                .hint
                .take()
                .and_then(|command| words::second_run(&command, &asked.expression))
                .map(|call| format!("A second run tells which line writes it: {call}.\n"));
            let text = text::plain(&LastWrite::text(&reply, &asked));
            return Ok(Answer::Text(text + &way.unwrap_or_default()));
        }
        let page = page(context, session, args.expression)?;
        let reply = &page.reply;
        let list = List {
            name: "changes",
            items: reply.changes.iter().map(change).collect(),
            first: page.first,
            total: Some(page.first + reply.changes.len() + reply.left_out),
            ..List::default()
        };
        let list = match &reply.searched {
            // Then all writes were found, and the value is known everywhere.
            Some(searched) => list.with("searched", searched.as_str()),
            None => list.with("knownAtEvents", reply.known_at),
        };
        let place = reply.place.as_deref();
        Ok(Answer::List(match place {
            Some(place) => list.with("note", verbs::lies_at(&reply.expression, place)),
            None => list,
        }))
    }
}

/// Changes that one search has found. A client that reads on asks for them again, a few at a time.
pub struct Page {
    /// The question: the moment and the expression.
    asked: (PositionReply, String),
    /// The number of the first change.
    first: usize,
    reply: HistoryReply,
}

impl Page {
    fn holds(&self, asked: &(PositionReply, String), number: usize) -> bool {
        let changes = self.first..self.first + self.reply.changes.len();
        self.asked == *asked && changes.contains(&number)
    }
}

/// Returns the changes from the one on that the caller has not seen yet. They are searched for again only behind the last page.
fn page(context: &Context, session: Option<u32>, expression: String) -> Result<Arc<Page>, Failure> {
    let first = context.cursor;
    let asked = (context.ask::<Position>(session, &Nothing {})?, expression);
    let last = lock(&context.gateway.history).clone();
    if let Some(last) = last.filter(|last| first > 0 && last.holds(&asked, first)) {
        return Ok(last);
    }
    let wanted = HistoryArgs {
        expression: asked.1.clone(),
        limit: Some(MOST),
        skip: first,
        full: false,
    };
    let reply = context.ask::<verbs::History>(session, &wanted)?;
    let page = Arc::new(Page {
        asked,
        first,
        reply,
    });
    *lock(&context.gateway.history) = Some(Arc::clone(&page));
    Ok(page)
}

/// The moment of a change, if it is not the event itself: `12+300`.
fn at(change: &Change) -> Value {
    match change.steps {
        0 => Value::Null,
        _ => verbs::moment_of_change(change).into(),
    }
}

fn change(change: &Change) -> Value {
    Value::Object(object([
        ("seq", json!(change.seq)),
        ("at", at(change)),
        ("threadId", json!(change.thread)),
        ("old", json!(change.old)),
        ("value", json!(change.value)),
        (
            "function",
            json!(change.function.as_deref().map(short_name)),
        ),
        ("file", json!(change.file)),
        ("line", json!(change.line)),
    ]))
}

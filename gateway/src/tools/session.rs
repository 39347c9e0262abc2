//! `debug_session`: lists, opens and ends sessions.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use server::protocol::{Code, Failure};
use server::session::SessionReport;
use server::verbs::{self, Close, Detach, EndReply, Goto, GotoArgs, Nothing, Restart, Status};

use super::launch;
use crate::answer::{Answer, List, object};
use crate::context::Context;
use crate::full::Stopped;
use crate::tool::{About, Tool};
use crate::{resources, shape};
use store::recording::with_suffix;

/// The tool.
pub struct Session;

/// The parameters of the tool.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Args {
    /// list: sessions and recordings; open: a recording; close: leave a recording; stop: kill the program; detach: let it go on alone; restart: start it again
    #[serde(default)]
    action: Action,
}

/// What is done.
#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
enum Action {
    #[default]
    List,
    Open,
    Close,
    Stop,
    Detach,
    Restart,
}

impl Tool for Session {
    const NAME: &'static str = "debug_session";
    const DOC: &'static str = "List sessions and recordings, open a recording as a session, or end a session. Tools with a recording parameter open it by themselves.";
    const READ_ONLY: bool = false;
    const ABOUT: About = About::Either(
        "With open: the recording; with stop: that of debug_launch with full, which still runs",
    );
    type Args = Args;

    fn run(context: &Context, args: Args) -> Result<Answer, Failure> {
        match args.action {
            Action::List => Ok(list(context)),
            Action::Open => {
                if context.whose.recording.is_none() {
                    return Err(Failure::bad_request("open needs the recording"));
                }
                let session = context.session()?;
                let status = context.ask::<Status>(session, &Nothing {})?;
                let report = status.sessions.first().map(shape::session);
                Ok(Answer::Object(report.unwrap_or_default()))
            }
            Action::Close => {
                let id = context.session()?;
                let closed = context.ask::<Close>(id, &Nothing {})?.session;
                context.closed(closed);
                Ok(Answer::Object(object([("sessionId", json!(closed))])))
            }
            Action::Stop => match &context.whose.recording {
                Some(name) => stop_recorder(context, name),
                None => {
                    let id = context.session()?;
                    to_now(context, id);
                    let reply = context.ask::<verbs::Stop>(id, &Nothing {})?;
                    Ok(ended(context, &reply))
                }
            },
            Action::Detach => {
                let id = context.session()?;
                to_now(context, id);
                let reply = context.ask::<Detach>(id, &Nothing {})?;
                Ok(ended(context, &reply))
            }
            Action::Restart => {
                let id = context.session()?;
                to_now(context, id);
                let report = context.ask::<Restart>(id, &Nothing {})?;
                context.current.set(report.session, &report.recording);
                Ok(Answer::Object(shape::session(&report)))
            }
        }
    }
}

/// Ends a program of which every instruction is recorded.
fn stop_recorder(context: &Context, name: &str) -> Result<Answer, Failure> {
    let here = std::env::current_dir().unwrap_or_default();
    let recording = with_suffix(&here.join(name));
    let next = match context
        .gateway
        .recorders
        .stop(&recording, context.cancel())?
    {
        Some(Stopped::Recorded(told)) => {
            return launch::of_recorder(context, &recording, Some(&told));
        }
        Some(Stopped::Writing) => {
            "the program has ended, and its recording is being written: debug_wait"
        }
        Some(Stopped::Starting) => "the program has not been started yet: stop it again",
        None => {
            let message = format!("no program is recorded into {name} with full");
            return Err(Failure::new(Code::NotRunning, message)
                .hint(r#"debug_session {"action": "list"} shows sessions and recordings"#));
        }
    };
    Ok(launch::still(context, &recording, next.to_owned()))
}

/// Returns from the past of a program, which cannot be ended there. An error here also prevents the end, which reports it.
fn to_now(context: &Context, session: Option<u32>) {
    let to = "live".to_owned();
    let _ = context.ask::<Goto>(session, &GotoArgs { to });
}

/// Most sessions that are listed beside the recordings, and most that are described as a whole.
const MOST_SESSIONS: usize = 15;
const MOST_WHOLE: usize = 3;

/// Lists sessions and the recordings of this folder; without a daemon there is no session.
fn list(context: &Context) -> Answer {
    let status = context.ask::<Status>(None, &Nothing {});
    let sessions = status.map(|status| status.sessions).unwrap_or_default();
    let left_out = sessions.len().saturating_sub(MOST_SESSIONS);
    let are_many = sessions.len() > MOST_WHOLE;
    let described = sessions.iter().map(|report| told(report, are_many));
    let mut older: Vec<Value> = described.collect();
    // The newest ones: more would not fit beside the recordings.
    let newest = older.split_off(left_out);
    let recordings = resources::recordings(context);
    let names = recordings
        .iter()
        .map(|path| json!(path.to_string_lossy()))
        .collect();
    Answer::List(paged(names, newest, older, context.cursor))
}

/// Describes a session, briefly if there are many.
fn told(report: &SessionReport, are_many: bool) -> Value {
    let mut fields = shape::session(report);
    if are_many {
        fields.retain(|name, _| ["sessionId", "status", "program"].contains(&name.as_str()));
    }
    Value::Object(fields)
}

/// The recordings with the newest sessions beside them; the cursor leads through them to the older sessions, the last one first.
fn paged(recordings: Vec<Value>, newest: Vec<Value>, older: Vec<Value>, cursor: usize) -> List {
    let (first, left_out) = (recordings.len(), older.len());
    let total = Some(first + left_out);
    if left_out > 0 && cursor >= first {
        return List {
            name: "sessions",
            items: older.into_iter().rev().collect(),
            first,
            total,
            ..List::default()
        };
    }
    let list = List {
        total,
        ..List::whole("recordings", recordings).with("sessions", newest)
    };
    match left_out {
        0 => list,
        _ => list.with("sessionsLeftOut", left_out),
    }
}

/// Describes the end of a session, which the daemon has closed: calls that name none mean its recording from now on.
fn ended(context: &Context, reply: &EndReply) -> Answer {
    context.current.left(&reply.recording);
    Answer::Object(object([
        ("sessionId", json!(reply.session)),
        ("status", json!("exited")),
        ("exit", json!(reply.exit.text)),
        ("recording", json!(reply.recording.to_string_lossy())),
        ("events", json!(reply.events)),
        ("calls", json!(reply.calls)),
        ("incomplete", json!(reply.incomplete)),
    ]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::fit;

    #[test]
    fn the_cursor_leads_to_every_recording_and_every_session() {
        let numbers = |range: std::ops::Range<u32>| -> Vec<Value> {
            range.map(|n| json!({ "sessionId": n })).collect()
        };
        let names: Vec<Value> = (0..40).map(|n| json!(format!("{n}.hindsight"))).collect();
        let (mut cursor, mut recordings, mut older) = (0, Vec::new(), Vec::new());
        for _ in 0..100 {
            let list = paged(names.clone(), numbers(30..45), numbers(0..30), cursor);
            let page: Value = serde_json::from_str(&fit(Answer::List(list), 500, cursor)).unwrap();
            match page["recordings"].as_array() {
                Some(shown) => {
                    assert_eq!(page["sessions"], Value::Array(numbers(30..45)));
                    assert_eq!(page["sessionsLeftOut"], 30);
                    recordings.extend(shown.clone());
                }
                None => older.extend(page["sessions"].as_array().unwrap().clone()),
            }
            let Some(next) = page["cursor"].as_str() else {
                break;
            };
            cursor = next.parse().unwrap();
        }
        assert_eq!(recordings, names);
        let expected: Vec<Value> = numbers(0..30).into_iter().rev().collect();
        assert_eq!(older, expected);
    }
}

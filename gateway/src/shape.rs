//! Replies of verbs in the words of the tools: `sessionId`, `threadId`, `paused`.

use serde::Serialize;
use serde_json::{Map, Value, json};
use server::inspect::short_name;
use server::protocol::Failure;
use server::session::{
    ExitReport, MotionReport, PlaceReport, ReasonReport, SessionReport, StateWord, StopReport,
    WatchChange,
};
use server::verbs::{Nothing, Position, ProbeReport};

use crate::answer::object;
use crate::context::Context;
use crate::words;

/// What a program does, in a word.
pub fn status(state: StateWord) -> &'static str {
    match state {
        StateWord::Running => "running",
        StateWord::Stopped => "paused",
        StateWord::Ended => "exited",
        StateWord::Recorded => "recorded",
    }
}

/// A field that is left out if it is 0 or an empty list.
pub fn unless_nothing(value: impl Serialize) -> Value {
    let value = json!(value);
    match is_nothing(&value) {
        true => Value::Null,
        false => value,
    }
}

/// Returns whether a value is 0 or an empty list.
pub fn is_nothing(value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty) || *value == json!(0)
}

/// How a program ended.
fn exit(report: Option<&ExitReport>) -> Map<String, Value> {
    object([
        ("exit", json!(report.map(|exit| &exit.text))),
        ("exitCode", json!(report.and_then(|exit| exit.code))),
    ])
}

/// A session.
pub fn session(report: &SessionReport) -> Map<String, Value> {
    let warnings = report.warnings.iter().map(|line| words::of_tools(line));
    let warnings: Vec<String> = warnings.collect();
    let mut fields = object([
        ("sessionId", json!(report.session)),
        ("status", json!(status(report.status))),
        ("program", json!(report.program)),
        ("pid", unless_nothing(report.pid)),
        ("recording", json!(report.recording.to_string_lossy())),
        ("seq", json!(report.past)),
        ("calls", json!(report.calls)),
        ("warnings", unless_nothing(warnings)),
    ]);
    fields.extend(exit(report.exit.as_ref()));
    if let Some(at) = &report.stop {
        fields.extend(stop(at));
    }
    fields
}

/// The outcome of a move, and the current event of the program or the recording.
///
/// # Errors The daemon cannot be reached.
pub fn motion(context: &Context, report: &MotionReport) -> Result<Map<String, Value>, Failure> {
    let mut fields = object([
        ("sessionId", json!(report.session)),
        ("status", json!(status(report.status))),
        ("threadEnded", json!(report.thread_ended)),
        ("returned", json!(report.returned)),
        ("morePausedThreads", unless_nothing(report.more_stops)),
    ]);
    fields.extend(exit(report.exit.as_ref()));
    if let Some(followed) = &report.followed {
        // Calls that name no session mean the one that goes on.
        context.current.set(report.session, &report.recording);
        fields.insert("program".to_owned(), json!(followed.program));
        fields.insert(
            "recording".to_owned(),
            json!(report.recording.to_string_lossy()),
        );
    }
    if report.status == StateWord::Ended {
        fields.insert(
            "recording".to_owned(),
            json!(report.recording.to_string_lossy()),
        );
    }
    if let Some(at) = &report.stop {
        fields.extend(stop(at));
        if !fields.contains_key("seq") {
            let position = context.ask::<Position>(Some(report.session), &Nothing {})?;
            fields.extend(object([("seq", json!(position.seq))]));
        }
    }
    Ok(fields)
}

/// A stop of a thread, without the facts about the program as a whole.
pub fn stop(report: &StopReport) -> Map<String, Value> {
    let mut fields = reason(&report.reason);
    fields.insert("threadId".to_owned(), json!(report.thread));
    fields.extend(place(&report.place));
    fields.extend(object([(
        "source",
        json!(report.source_line.as_deref().map(str::trim)),
    )]));
    if !report.displays.is_empty() {
        let shown = report.displays.iter().map(|display| {
            let value = display.value.clone().unwrap_or_default();
            (display.expression.clone(), Value::from(value))
        });
        fields.insert("displays".to_owned(), Value::Object(shown.collect()));
    }
    fields
}

/// A place in the program; the address only if nothing else is known.
pub fn place(place: &PlaceReport) -> Map<String, Value> {
    let is_bare = place.function.is_none() && place.line.is_none();
    // An unknown place is described in words.
    let is_address = place.address.starts_with("0x");
    let address = Some(&place.address).filter(|_| is_bare && is_address);
    object([
        ("function", json!(short(place))),
        ("file", json!(place.file)),
        ("line", json!(place.line)),
        ("address", json!(address)),
    ])
}

/// The name of a place's function as people write it; debug_query with verbosity full and the table functions tell the full one.
fn short(place: &PlaceReport) -> Option<String> {
    let full = || place.function.as_deref().map(short_name);
    place.short_name.clone().or_else(full)
}

fn reason(reason: &ReasonReport) -> Map<String, Value> {
    match reason {
        ReasonReport::Entry => object([("reason", json!("entry"))]),
        ReasonReport::Breakpoint { probe, hits } => object([
            ("reason", json!("breakpoint")),
            ("breakpointId", json!(probe.to_string())),
            ("hits", json!(hits)),
        ]),
        ReasonReport::Watch {
            probe,
            expression,
            left,
            old,
            new,
            by,
            ..
        } => object([
            (
                "reason",
                json!(match left {
                    true => "watchpoint removed: the function of the variable has returned",
                    false => "watchpoint",
                }),
            ),
            ("breakpointId", json!(probe.to_string())),
            ("expression", json!(expression)),
            ("oldValue", json!(old)),
            ("newValue", json!(new)),
            ("writtenBy", json!(by)),
        ]),
        ReasonReport::Step => object([("reason", json!("step"))]),
        ReasonReport::User => object([("reason", json!("pause"))]),
        ReasonReport::AllThreads => object([("reason", json!("another thread's stop"))]),
        ReasonReport::Signal {
            signal,
            fault_address,
            fatal,
            ..
        } => object([
            ("reason", json!("signal")),
            ("signal", json!(server::inspect::signal_name(*signal))),
            ("faultAddress", json!(fault_address)),
            ("fatal", json!(fatal)),
        ]),
        ReasonReport::Throw {
            what,
            message,
            unhandled,
            ..
        } => object([
            ("reason", json!("exception")),
            ("exceptionType", json!(what)),
            ("message", json!(message)),
            ("unhandled", json!(unhandled)),
        ]),
        ReasonReport::Happened { what, .. } => {
            object([("reason", json!("happened")), ("what", json!(what))])
        }
        ReasonReport::Event {
            seq,
            steps,
            what,
            changed,
            breaks,
        } => event(*seq, *steps, what, (changed, breaks)),
    }
}

/// A moment of a recording.
fn event(
    seq: u64,
    steps: u64,
    what: &str,
    (changed, breaks): (&[WatchChange], &[u32]),
) -> Map<String, Value> {
    let reason = match breaks.is_empty() {
        true => "event",
        false => "breakpoint",
    };
    object([
        ("reason", json!(reason)),
        ("breakpoints", unless_nothing(breaks)),
        ("seq", json!(seq)),
        ("steps", unless_nothing(steps)),
        ("event", json!(what)),
        ("changed", unless_nothing(changed)),
    ])
}

/// A breakpoint or a logpoint; with one place, that place's fields are its own.
pub fn probe(report: &ProbeReport) -> Value {
    let mut fields = object([
        ("id", json!(report.id.to_string())),
        ("location", json!(short_name(&report.location))),
        ("condition", json!(report.condition)),
        ("message", json!(report.template)),
        ("note", json!(report.message)),
        ("hits", unless_nothing(report.hits)),
        ("code", json!(report.code)),
        ("hitCount", unless_nothing(report.hit_count)),
    ]);
    if !report.enabled {
        fields.insert("enabled".to_owned(), json!(false));
    }
    let with_address = |at: &PlaceReport| {
        let mut fields = place(at);
        fields.insert("address".to_owned(), json!(at.address));
        fields.extend(object([("problem", json!(at.problem))]));
        fields
    };
    put_places(
        &mut fields,
        report.places.iter().map(with_address).collect(),
    );
    Value::Object(fields)
}

/// Adds the places of a breakpoint; the fields of a single one are its own.
pub fn put_places(fields: &mut Map<String, Value>, mut places: Vec<Map<String, Value>>) {
    if places.len() > 1 {
        fields.insert("places".to_owned(), json!(places));
    } else if let Some(one) = places.pop() {
        fields.extend(one);
    }
}

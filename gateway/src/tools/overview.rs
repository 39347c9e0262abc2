//! `debug_overview`: what to know first about a recording.

use std::path::Path;

use query::Overview as Found;
use query::overview::{How, Way, candidates};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use server::protocol::Failure;

use crate::answer::Answer;
use crate::context::Context;
use crate::tool::Tool;

/// The tool.
pub struct Overview;

/// The parameters of `debug_overview`.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Args {}

/// The name of the recording in commands, which are not shown.
const RECORDING: &str = "RECORDING";
/// As many lines as a colleague would say first.
const LINES: usize = 40;
/// As many questions are asked.
const QUESTIONS: usize = 3;

impl Tool for Overview {
    const NAME: &'static str = "debug_overview";
    const DOC: &'static str = "Begin here: how the program ended and where, what it printed to standard error and which call did, results that look like failures, threads, where the time went, what is unusual, and what to ask next. Each claim has its seq.";
    const READ_ONLY: bool = true;
    type Args = Args;

    fn run(context: &Context, _: Args) -> Result<Answer, Failure> {
        let session = context.opened_recording()?;
        let recordings = &context.gateway.recordings;
        let found = recordings.overview(context.cancel(), &session, RECORDING)?;
        Ok(Answer::Text(found.text_asking(&next(&found), LINES)))
    }
}

/// What to ask next, as calls of tools: a model may have no shell.
fn next(found: &Found) -> Vec<String> {
    let all = match found.ending.how {
        How::Core { .. } => Vec::new(),
        _ => candidates(found, RECORDING),
    };
    let asked = all.iter().filter_map(|question| call(&question.way, found));
    let mut calls: Vec<String> = Vec::new();
    for call in asked.chain(usual(found)) {
        if !calls.contains(&call) {
            calls.push(call);
        }
    }
    calls.truncate(QUESTIONS);
    calls
}

/// The call of a tool that answers a question; `None`: no tool does.
fn call(way: &Way, found: &Found) -> Option<String> {
    let sql = |sql: &str| written("debug_sql", &json!({ "sql": sql }));
    match way {
        Way::Sql(question) => Some(sql(question)),
        Way::Why(seq) => Some(written("debug_why", &json!({ "of": seq }))),
        Way::Locks => Some(sql(
            "select name, lock, kind, tid, owner, outcome, place, seq from locks where released_seq is null order by seq desc limit 20",
        )),
        Way::Memory => Some(sql(
            "select state, size, function, place, seq, freed_by, freed_place, freed_seq from allocations order by seq desc limit 20",
        )),
        Way::RecordMemory => again(found),
        Way::LookAround | Way::Info | Way::Check => None,
    }
}

/// Runs the program again and records the blocks of the heap; `None`: its command line is not known.
fn again(found: &Found) -> Option<String> {
    let program = &found.program;
    let (name, args) = program.argv.split_first()?;
    let path = match name.contains('/') {
        true => Path::new(&program.cwd).join(name),
        false => name.into(),
    };
    let asked = json!({ "program": path, "args": args, "cwd": program.cwd, "memory": true });
    Some(written("debug_launch", &asked))
}

/// What can be asked about any recording.
fn usual(found: &Found) -> Vec<String> {
    let state = |asked: Value| written("debug_state", &asked);
    if matches!(found.ending.how, How::Core { .. }) {
        let shown = ["backtrace", "locals", "registers"];
        return shown.map(|show| state(json!({ "show": [show] }))).into();
    }
    let mut calls = Vec::new();
    if found.program.events > 0 {
        calls.push(state(json!({ "at": "last" })));
    }
    let modules = json!({ "sql": "select * from modules" });
    calls.push(written("debug_sql", &modules));
    calls.push(written("debug_session", &json!({ "action": "list" })));
    calls
}

fn written(tool: &str, arguments: &Value) -> String {
    format!("{tool} {arguments}")
}

//! `debug_sql`: SQL over a recording.

use std::fs::OpenOptions;
use std::io::BufWriter;
use std::path::Path;

use query::output::{self, Format};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use server::protocol::{Code, Failure};

use crate::answer::{Answer, List, object};
use crate::context::Context;
use crate::recordings;
use crate::tool::Tool;

/// The tool.
pub struct Sql;

/// The parameters of the tool.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Args {
    /// One SELECT. Tables: calls, events, report (self_ns and inclusive_ns by function), functions, threads, output, exceptions, syscalls, files, allocations, locks, writes, logpoints, pauses, gaps, probes, modules, notes; of a recording made with full: instructions, lines, memory_writes (addr, size, old, new, function, line; filter on addr or position), memory_reads, each with position (how many instructions ran before), seq and step: debug_goto goes to seq+step, as 12+300; history('EXPR'), backtrace(SEQ), locals(SEQ); functions: value(seq or '12+300', 'EXPR'), reg(seq, 'rax')
    sql: String,
    /// Write all rows to this new file (.csv, .jsonl, .json or .parquet) instead
    file: Option<String>,
}

/// No answer shows more rows: the budget ends earlier.
const MOST_ROWS: usize = 5_000;

impl Tool for Sql {
    const NAME: &'static str = "debug_sql";
    const DOC: &'static str = "Ask a recording in SQL (DataFusion). calls has start_seq, end_seq, function, tid, args, ret, dur_ns, self_ns, parent, depth; events has seq, ts_ns, tid, kind, function, text. All columns: resource hindsight://schema. Without ORDER BY rows have no order.";
    // It may write a file.
    const READ_ONLY: bool = false;
    type Args = Args;

    fn run(context: &Context, args: Args) -> Result<Answer, Failure> {
        let session = context.opened_recording()?;
        if let Some(file) = &args.file {
            return into_file(context, &session, &args.sql, Path::new(file));
        }
        let limit = context.cursor + MOST_ROWS;
        let answer = recordings::rows(&session, context.cancel(), &args.sql, limit)?;
        let total = (!answer.more).then_some(answer.rows.len());
        let mut notes: Vec<String> = session
            .not_recorded(&args.sql)
            .iter()
            .map(|note| in_words_of_tools(note))
            .collect();
        if answer.more {
            notes.push(format!(
                "more than {limit} rows: narrow the question, or write all rows with the parameter file; the cursor leads on"
            ));
        }
        let list = List {
            name: "rows",
            items: answer.rows.into_iter().map(Into::into).collect(),
            total,
            ..List::default()
        };
        Ok(Answer::List(match notes.is_empty() {
            true => list,
            false => list.with("note", notes.join("; ")),
        }))
    }
}

/// Refuses to write into a recording's folder.
fn outside_recordings(file: &Path) -> Result<(), Failure> {
    let parent = file
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    // Without a folder, the file cannot be written anyway.
    let parent = parent.canonicalize().unwrap_or(parent.to_owned());
    let recording = parent
        .ancestors()
        .find(|folder| store::recording::resolve(folder).is_ok_and(|found| found == *folder));
    match recording {
        None => Ok(()),
        Some(recording) => Err(Failure::bad_request(format!(
            "{} is inside the recording {}, which no tool changes",
            file.display(),
            recording.display()
        ))
        .hint("name a file in another folder")),
    }
}

/// Replaces the shell's option by the parameter of `debug_launch`.
fn in_words_of_tools(note: &str) -> String {
    note.replace("hindsight record --", "debug_launch with ")
}

fn into_file(
    context: &Context,
    session: &query::Session,
    sql: &str,
    file: &Path,
) -> Result<Answer, Failure> {
    let ending = file.extension().and_then(|ending| ending.to_str());
    let format = match ending {
        Some("csv") => Format::Csv,
        Some("json") => Format::Json,
        Some("jsonl") => Format::JsonLines,
        Some("parquet") => Format::Parquet,
        _ => {
            return Err(
                Failure::bad_request("the file's name does not say its format")
                    .hint("end it in .csv, .json, .jsonl or .parquet"),
            );
        }
    };
    outside_recordings(file)?;
    let mut answer = recordings::ask(session, context.cancel(), sql)?;
    let failed = |error: std::io::Error| {
        Failure::new(
            Code::Failed,
            format!("cannot write {}: {error}", file.display()),
        )
    };
    let out = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(file)
        .map_err(failed)?;
    let rows = output::write(&mut answer, format, BufWriter::new(out));
    let rows = rows.map_err(|error| {
        // A partial file is worse than none.
        let _ = std::fs::remove_file(file);
        recordings::failure(error)
    })?;
    Ok(Answer::Object(object([
        ("file", json!(file)),
        ("rows", json!(rows)),
    ])))
}

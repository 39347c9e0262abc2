//! The table `runs`: the recordings themselves, from their small files alone.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, StringViewArray};
use arrow::record_batch::RecordBatch;
use datafusion::common::{DataFusionError, Result};
use debuginfo::Diagnostic;
use store::recording::RecordingState;
use store::seal::{BuildId, End};
use store::shell::words;
use store::summary::{environment_hash, name_of};
use store::{Recording, Summary};

use super::Provider;
use super::computed::Computed;
use super::doc::TableDoc;
use super::followed::parent_beside;

/// Describes the table.
pub const DOC: TableDoc = TableDoc {
    name: "runs",
    doc: "one row per recording that is asked, from its small files alone",
    columns: &[
        crate::runs::COLUMN,
        ("program", "the program, as it was called"),
        ("arguments", "its arguments, quoted where a shell needs it"),
        (
            "environment",
            "32 digits, the same for the same variables and values; null when not known",
        ),
        (
            "build_ids",
            "file names and GNU build ids, in the order of mapping; null when not known",
        ),
        ("host", "kernel and processor"),
        (
            "host_name",
            "name of the machine; null in recordings of older releases and of core files",
        ),
        ("start_unix_ns", "when the recording began, ns since 1970"),
        (
            "duration_ns",
            "time of the last event; null while it is recorded, or when it was not closed",
        ),
        (
            "exit_code",
            "exit code of the program; null when it did not exit, or the exit was not recorded",
        ),
        ("exit_signal", "signal that ended the program"),
        (
            "calls",
            "number of recorded calls; null while it is recorded, or when it was not closed",
        ),
        (
            "labels",
            "a JSON object: label(labels, 'key') gives one value",
        ),
        (
            "pid",
            "number of the process; null for core files, and in recordings of older releases without --children or with --full",
        ),
        (
            "parent_pid",
            "number of the process that started it: of the recorder, if that did; known as pid is",
        ),
        (
            "parent_run",
            "the recording of the program that started it, or that it executed before: its name, or its id if it is not asked; of one recording asked alone, its name if it is in the same folder",
        ),
        ("state", "closed, live or interrupted"),
        ("path", "folder of the recording"),
    ],
};

/// Returns the table of one opened recording.
pub fn of_one(recording: &Recording) -> Result<Provider> {
    let schema = rows(&[])?.schema();
    let recording = recording.clone();
    Ok(Arc::new(Computed::new(schema, move || {
        let name = name_of(recording.dir());
        // It may have been closed since, and its labels may have changed.
        let summary = Summary::read(recording.dir()).map_err(|error| {
            DataFusionError::External(Box::new(Diagnostic {
                message: error.to_string(),
                hint: error.hint().map(str::to_owned),
            }))
        })?;
        rows_with(&[(&name, &summary)], &|run| parent_beside(&run.recording))
    })))
}

/// Returns a row for each recording and its name.
pub fn rows(runs: &[(&str, &Summary)]) -> Result<RecordBatch> {
    rows_with(runs, &|_| None)
}

/// The same where `beside` names recordings of parents that are not among them.
fn rows_with(
    runs: &[(&str, &Summary)],
    beside: &dyn Fn(&Summary) -> Option<String>,
) -> Result<RecordBatch> {
    let text = |text: &dyn Fn(&(&str, &Summary)) -> Option<String>| {
        Arc::new(runs.iter().map(text).collect::<StringViewArray>()) as ArrayRef
    };
    let number = |number: &dyn Fn(&Summary) -> Option<i64>| {
        Arc::new(
            runs.iter()
                .map(|(_, run)| number(run))
                .collect::<Int64Array>(),
        ) as ArrayRef
    };
    let end = |run: &Summary| run.totals.as_ref().and_then(|totals| totals.end.clone());
    let columns: [ArrayRef; DOC.columns.len()] = [
        text(&|(name, _)| Some((*name).to_owned())),
        text(&|(_, run)| run.manifest().argv.first().cloned()),
        text(&|(_, run)| Some(words(run.manifest().argv.get(1..).unwrap_or_default()))),
        text(&|(_, run)| run.manifest().launch.as_ref().map(environment_hash)),
        text(&|(_, run)| Some(builds(run.totals.as_ref()?.builds.as_ref()?))),
        text(&|(_, run)| {
            let host = &run.manifest().host;
            Some(format!("{}, {}", host.kernel, host.cpu))
        }),
        text(&|(_, run)| run.manifest().host.name.clone()),
        number(&|run| Some(run.manifest().start_unix_ns)),
        number(&|run| Some(run.totals.as_ref()?.duration_ns)),
        number(&|run| match end(run)? {
            End::Code(code) => Some(code.into()),
            _ => None,
        }),
        text(&|(_, run)| match end(run)? {
            End::Signal(name) => Some(name),
            _ => None,
        }),
        number(&|run| Some(run.totals.as_ref()?.calls as i64)),
        text(&|(_, run)| Some(serde_json::to_string(&run.labels).expect("a map of texts is JSON"))),
        number(&|run| Some(run.manifest().lineage?.pid.into())),
        number(&|run| Some(run.manifest().lineage?.parent_pid.into())),
        text(&|(_, run)| {
            let parent = run.manifest().lineage?.parent_run?;
            let mut all = runs.iter();
            let found = all.find(|(_, run)| run.manifest().recording_id == parent);
            let name = found.map(|(name, _)| (*name).to_owned());
            let name = name.or_else(|| beside(run));
            Some(name.unwrap_or_else(|| parent.to_string()))
        }),
        text(&|(_, run)| Some(state(run).to_owned())),
        text(&|(_, run)| Some(run.dir().to_string_lossy().into_owned())),
    ];
    DOC.rows(columns)
}

fn state(run: &Summary) -> &'static str {
    match run.recording.state() {
        RecordingState::Closed => "closed",
        RecordingState::Live => "live",
        RecordingState::Interrupted => "interrupted",
    }
}

fn builds(builds: &[BuildId]) -> String {
    let build = |build: &BuildId| {
        let name = build.path.rsplit('/').next().unwrap_or(&build.path);
        format!("{name} {}", build.build_id)
    };
    builds.iter().map(build).collect::<Vec<_>>().join(", ")
}

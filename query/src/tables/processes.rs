//! The table `processes`: the processes that the recorded program created, and the programs it executed.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Int32Array, Int64Array, PrimitiveArray, RecordBatch, StringViewArray,
};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Field, Int32Type, Int64Type, Schema, SchemaRef,
};
use datafusion::catalog::TableProvider;
use datafusion::common::Result;
use datafusion::logical_expr::{LogicalPlanBuilder, cast, col, lit};
use store::manifest::Manifest;
use store::shell::words;

use super::doc::TableDoc;
use super::folded::Folded;
use super::sources::Sources;
use crate::syscalls::Call;
use crate::syscalls::files::{At, Made};
use crate::syscalls::processes::{Event, Own, Process, Told, processes};

/// Describes the table.
pub const DOC: TableDoc = TableDoc {
    name: "processes",
    doc: "the recorded process, and one row per process that it made; how these ended is recorded with --syscalls or --full",
    columns: &[
        ("pid", "its number"),
        ("parent", "the process that made it; null when not known"),
        (
            "program",
            "the recorded program, or the path of what it has executed; null for processes that it made, \
             unless record --children followed them",
        ),
        (
            "arguments",
            "its arguments, quoted where a shell needs it; known as the program is",
        ),
        (
            "made_by",
            "fork, vfork, clone, clone3 or execve; fork when the system call was not recorded",
        ),
        ("tid", "thread that made it"),
        (
            "seq",
            "event of its beginning; null for those that a process that is not recorded made",
        ),
        ("ts_ns", "when, ns since the recording began"),
        ("call", "start_seq of the recorded call that made it"),
        (
            "exit_code",
            "its exit code; null when it has none, or its parent did not wait for it",
        ),
        ("exit_signal", "signal that ended it"),
        (
            "ended_seq",
            "event of the wait that returned it, or of the program's own end; null when no recorded thread waited for it",
        ),
        ("ended_ts_ns", "when, ns since the recording began"),
        ("reason", "why program is null"),
    ],
};

/// Why nothing is known of what a process does.
const NOT_RECORDED: &str = "the recording has no events of this process, not even what it executes: record --children records them";

/// The kinds of events about processes.
const KINDS: [&str; 7] = [
    "process_start",
    "process_exit",
    "fork",
    "exec",
    "exec_failed",
    "syscall",
    "syscall_end",
];

/// Returns the table.
pub fn table(sources: &Sources) -> Result<Arc<dyn TableProvider>> {
    let kinds = KINDS.map(lit).to_vec();
    let text = |name: &str| cast(col(name), DataType::Utf8View).alias(name);
    let input = LogicalPlanBuilder::scan("events", Arc::clone(&sources.events), None)?
        .filter(col("kind").in_list(kinds, false))?
        .project(vec![
            text("kind"),
            text("text"),
            text("aux"),
            col("seq"),
            col("ts_ns"),
            col("value"),
            col("size"),
            col("tid"),
            cast(col("bytes"), DataType::BinaryView).alias("bytes"),
        ])?
        .build()?;
    let own = own(sources.recording.manifest());
    let (recording, followed) = (sources.recording.clone(), sources.followed.clone());
    Ok(Arc::new(Folded::new(
        schema(),
        input,
        move |batches, schema| {
            fold(batches, schema, &own, |rows| {
                followed.complete(rows, &recording)
            })
        },
    )))
}

fn own(manifest: &Manifest) -> Own {
    Own {
        program: manifest.argv.first().cloned(),
        arguments: manifest.argv.get(1..).map(words),
        parent: manifest.lineage.map(|lineage| lineage.parent_pid.into()),
    }
}

fn schema() -> SchemaRef {
    let fields = DOC.columns.iter().map(|(name, _)| {
        let kind = match *name {
            "program" | "arguments" | "made_by" | "exit_signal" | "reason" => DataType::Utf8View,
            "tid" => DataType::Int32,
            _ => DataType::Int64,
        };
        Field::new(*name, kind, !matches!(*name, "pid" | "ts_ns"))
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

fn value<T: ArrowPrimitiveType>(column: &PrimitiveArray<T>, row: usize) -> Option<T::Native> {
    column.is_valid(row).then(|| column.value(row))
}

/// The facts from the events of all batches.
#[derive(Default)]
struct Read<'a> {
    events: Vec<Event>,
    /// System calls by the event of their beginning.
    calls: HashMap<u64, Made<'a>>,
    /// Their ends: the beginning, the result and what was written.
    ends: Vec<(u64, At, Option<i64>, &'a [u8])>,
}

impl<'a> Read<'a> {
    fn batch(&mut self, batch: &'a RecordBatch) {
        let text = |index: usize, row: usize| {
            let column = batch.column(index).as_string_view();
            column.is_valid(row).then(|| column.value(row).to_owned())
        };
        let number =
            |index: usize, row| value(batch.column(index).as_primitive::<Int64Type>(), row);
        let kinds = batch.column(0).as_string_view();
        let tids = batch.column(7).as_primitive::<Int32Type>();
        let bytes = batch.column(8).as_binary_view();
        for row in 0..batch.num_rows() {
            let at = At {
                seq: number(3, row).unwrap_or(0) as u64,
                ts_ns: number(4, row).unwrap_or(0),
            };
            let tid = value(tids, row).map(|tid| tid as u32);
            let (of_event, size) = (number(5, row), number(6, row));
            let memory = if bytes.is_valid(row) {
                bytes.value(row)
            } else {
                &[]
            };
            let told = match kinds.value(row) {
                "process_start" => Told::Begins {
                    pid: of_event.unwrap_or(0),
                },
                "process_exit" => Told::Ends {
                    code: of_event,
                    signal: text(2, row),
                },
                "fork" => Told::Forks {
                    child: of_event.unwrap_or(0),
                },
                "exec" => Told::Executes { path: text(1, row) },
                "exec_failed" => Told::ExecuteFailed,
                "syscall" => {
                    let call = Call {
                        number: of_event.map_or(u64::MAX, |number| number as u64),
                        begun: memory,
                        written: &[],
                        result: None,
                    };
                    let within = size.map(|seq| seq as u64);
                    let made = Made {
                        call,
                        began: at,
                        ended: None,
                        tid,
                        within,
                    };
                    self.calls.insert(at.seq, made);
                    continue;
                }
                _ => {
                    let began = size.map(|seq| seq as u64);
                    self.ends
                        .extend(began.map(|began| (began, at, of_event, memory)));
                    continue;
                }
            };
            self.events.push(Event { at, tid, told });
        }
    }

    fn processes(mut self, own: &Own) -> Vec<Process> {
        for (began, at, result, written) in self.ends {
            if let Some(made) = self.calls.get_mut(&began) {
                made.ended = Some(at);
                (made.call.result, made.call.written) = (result, written);
            }
        }
        let calls: Vec<Made<'_>> = self.calls.into_values().collect();
        processes(self.events, &calls, own)
    }
}

fn fold(
    batches: &[RecordBatch],
    schema: &SchemaRef,
    own: &Own,
    completed: impl Fn(Vec<Process>) -> Vec<Process>,
) -> Result<RecordBatch> {
    let mut read = Read::default();
    for batch in batches {
        read.batch(batch);
    }
    let rows = completed(read.processes(own));
    let text = |of: fn(&Process) -> Option<&str>| -> ArrayRef {
        Arc::new(rows.iter().map(of).collect::<StringViewArray>())
    };
    let number = |of: fn(&Process) -> Option<i64>| -> ArrayRef {
        Arc::new(rows.iter().map(of).collect::<Int64Array>())
    };
    let tids: Int32Array = rows.iter().map(|row| Some(row.tid? as i32)).collect();
    let columns: Vec<ArrayRef> = vec![
        number(|row| Some(row.pid)),
        number(|row| row.parent),
        text(|row| row.program.as_deref()),
        text(|row| row.arguments.as_deref()),
        text(|row| Some(row.made_by)),
        Arc::new(tids),
        number(|row| Some(row.began? as i64)),
        number(|row| Some(row.began_ts_ns)),
        number(|row| Some(row.within? as i64)),
        number(|row| row.exit_code),
        text(|row| row.exit_signal.as_deref()),
        number(|row| Some(row.ended? as i64)),
        number(|row| row.ended_ts_ns),
        text(|row| row.program.is_none().then_some(NOT_RECORDED)),
    ];
    Ok(RecordBatch::try_new(SchemaRef::clone(schema), columns)?)
}

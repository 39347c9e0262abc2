//! The table `locks`: the operations of threads on locks, whether they had to wait, and how long they held them.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Int32Array, Int64Array, RecordBatch, StringViewArray, StringViewBuilder,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::{DataFusionError, Result};
use rustc_hash::FxHashMap;

use super::computed::{Computed, Wants};
use super::doc::TableDoc;
use super::sources::Sources;
use crate::callers::{Frame, Frames};
use crate::locks::{self, Locks, Outcome, Wish, name_of};
use crate::report;

/// Describes the table.
pub const DOC: TableDoc = TableDoc {
    name: "locks",
    doc: "one row per time that a thread wanted a lock, or waited for a condition or a semaphore; recorded with --locks",
    columns: &[
        ("lock", "its address"),
        (
            "name",
            "global variable that it is, or is in; null for others",
        ),
        (
            "kind",
            "mutex, read or write (of a lock for both), spin, condition, semaphore, futex (a word that the program itself waits at)",
        ),
        ("tid", "thread that wanted it"),
        ("seq", "enter event of the call"),
        (
            "ts_ns",
            "when the thread began to want it, ns since the recording began",
        ),
        ("function", "function that was called"),
        (
            "place",
            "who called it: the first of frames in the program's own source, with its line; the first of all if none is",
        ),
        (
            "outcome",
            "acquired; busy; timed out; failed; waiting: when the recording ended; left: the call had no return",
        ),
        (
            "wait_ns",
            "how long until the thread had it, or its time was over; null where neither happened, and for a mutex that a wait for a condition took again",
        ),
        (
            "contended",
            "whether another thread had it meanwhile; null where that is not known",
        ),
        ("owner", "that thread, the first one of several"),
        ("acquired_ts_ns", "when the thread had it"),
        (
            "released_ts_ns",
            "when it gave it back; null if it did not, and of Rust's own locks",
        ),
        ("hold_ns", "how long it had it"),
        ("released_seq", "enter event of the call that gave it back"),
        (
            "frames",
            "up to 16 places: that of the call, and those of the recorded calls around it",
        ),
    ],
};

/// Returns the table. Its rows are computed in one pass over all calls.
pub fn table(sources: &Sources) -> Computed {
    let source = Arc::clone(&sources.report);
    let schema = Arc::new(schema());
    let own = SchemaRef::clone(&schema);
    Computed::of_columns(schema, move |wants| {
        let failed = |error| DataFusionError::External(Box::new(error));
        let locks = locks::read(&source, &mut |_, _| ()).map_err(failed)?;
        rows(&locks, &source, &own, wants)
    })
}

fn schema() -> Schema {
    let field = |(name, _): &(&str, &str)| {
        let kind = match *name {
            "name" | "kind" | "function" | "place" | "outcome" | "frames" => DataType::Utf8View,
            "tid" | "owner" => DataType::Int32,
            "contended" => DataType::Boolean,
            _ => DataType::Int64,
        };
        let is_known = matches!(
            *name,
            "lock" | "kind" | "seq" | "ts_ns" | "function" | "outcome"
        );
        Field::new(*name, kind, !is_known)
    };
    Schema::new(DOC.columns.iter().map(field).collect::<Vec<_>>())
}

fn rows(
    locks: &Locks,
    source: &report::Source,
    schema: &SchemaRef,
    wants: Wants<'_>,
) -> Result<RecordBatch> {
    let failed = |error| DataFusionError::External(Box::new(error));
    let wishes = &locks.wishes;
    let numbers = |of: fn(&Wish) -> Option<i64>| -> ArrayRef {
        Arc::new(wishes.iter().map(of).collect::<Int64Array>())
    };
    let threads = |of: fn(&Wish) -> Option<u32>| -> ArrayRef {
        let tids = wishes.iter().map(|wish| of(wish).map(u32::cast_signed));
        Arc::new(tids.collect::<Int32Array>())
    };
    let words = |of: fn(&Wish) -> &'static str| -> ArrayRef {
        let words = wishes.iter().map(|wish| Some(of(wish)));
        Arc::new(words.collect::<StringViewArray>())
    };
    let mut frames = Frames::new(source.timeline().map_err(failed)?, &locks.tree);
    let mut column = |name: &str| -> Result<ArrayRef> {
        Ok(match name {
            "lock" => numbers(|wish| Some(wish.lock.cast_signed())),
            "kind" => words(|wish| wish.kind.name()),
            "tid" => threads(|wish| (wish.tid != 0).then_some(wish.tid)),
            "owner" => threads(|wish| wish.owner),
            "seq" => numbers(|wish| Some(wish.begun.seq.cast_signed())),
            "ts_ns" => numbers(|wish| Some(wish.begun.ts_ns)),
            "outcome" => words(outcome),
            "wait_ns" => numbers(Wish::wait_ns),
            "contended" => Arc::new(wishes.iter().map(|w| w.contended).collect::<BooleanArray>()),
            "acquired_ts_ns" => numbers(|wish| Some(wish.acquired()?.ts_ns)),
            "released_ts_ns" => numbers(|wish| Some(wish.released?.ts_ns)),
            "released_seq" => numbers(|wish| Some(wish.released?.seq.cast_signed())),
            "hold_ns" => numbers(Wish::hold_ns),
            "function" => texts(
                wishes,
                |wish| wish.by.0,
                |wish| Ok(Some(source.function_name(wish.by.0))),
            )?,
            "name" if wants(name) => texts(
                wishes,
                |wish| wish.lock,
                |wish| name_of(source, wish.lock, wish.begun.seq).map_err(failed),
            )?,
            "place" if wants(name) => texts(
                wishes,
                |wish| wish.by.1,
                |wish| {
                    let frames = frames.of(wish.by.1);
                    Ok(Frame::from_own_code(&frames).first().map(Frame::text))
                },
            )?,
            "frames" if wants(name) => texts(
                wishes,
                |wish| wish.by.1,
                |wish| {
                    let frames: Vec<String> =
                        frames.of(wish.by.1).iter().map(Frame::text).collect();
                    Ok((!frames.is_empty()).then(|| frames.join(" < ")))
                },
            )?,
            _ => Arc::new(StringViewArray::new_null(wishes.len())),
        })
    };
    let columns = DOC.columns.iter().map(|(name, _)| column(name));
    let columns = columns.collect::<Result<Vec<_>>>()?;
    Ok(RecordBatch::try_new(SchemaRef::clone(schema), columns)?)
}

fn outcome(wish: &Wish) -> &'static str {
    match wish.outcome {
        Outcome::Acquired => "acquired",
        Outcome::Busy => "busy",
        Outcome::TimedOut => "timed out",
        Outcome::Failed(_) => "failed",
        Outcome::Waiting => "waiting",
        Outcome::Left => "left",
    }
}

/// Returns a column of texts. Each is made once per key.
fn texts<K: std::hash::Hash + Eq>(
    wishes: &[Wish],
    key: fn(&Wish) -> K,
    mut text: impl FnMut(&Wish) -> Result<Option<String>>,
) -> Result<ArrayRef> {
    let mut known: FxHashMap<K, Option<String>> = FxHashMap::default();
    let mut column = StringViewBuilder::new().with_deduplicate_strings();
    for wish in wishes {
        let of = key(wish);
        if !known.contains_key(&of) {
            known.insert(key(wish), text(wish)?);
        }
        column.append_option(known[&of].as_deref());
    }
    Ok(Arc::new(column.finish()))
}

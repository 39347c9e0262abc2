//! The table `allocations`: blocks of the heap and mappings, with who made and freed each.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, Int32Array, Int64Array, RecordBatch, StringViewArray, StringViewBuilder,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::{DataFusionError, Result};
use rustc_hash::FxHashMap;

use super::computed::{Computed, Wants};
use super::doc::TableDoc;
use super::sources::Sources;
use crate::callers::{Frame, Frames};
use crate::memory::{self, Block, End, Memory, Moment};
use crate::report;

/// Describes the table.
pub const DOC: TableDoc = TableDoc {
    name: "allocations",
    doc: "one row per block of the heap and per mapping; recorded with --memory",
    columns: &[
        ("addr", "address of its first byte"),
        (
            "size",
            "how many bytes were requested, of a mapping whole pages; null if no recorded call made it",
        ),
        (
            "function",
            "what returned it: malloc, calloc, operator new, mmap, ...",
        ),
        ("tid", "thread that allocated it"),
        ("seq", "enter event of that call"),
        (
            "ts_ns",
            "when it was returned, ns since the recording began",
        ),
        (
            "place",
            "who asked for it: the first of frames in the program's own source, with its line; the first of all if none is",
        ),
        ("freed_by", "what freed it: free, realloc, munmap, ..."),
        ("freed_tid", "thread that freed it"),
        ("freed_seq", "enter event of that call"),
        ("freed_ts_ns", "when that call began"),
        ("freed_place", "the same for freed_frames"),
        (
            "state",
            "live: it was there at the end; freed; lost: its address was allocated again, and no recorded call had freed it",
        ),
        (
            "live_bytes",
            "bytes of it that were there at the end; mappings may be unmapped in parts",
        ),
        (
            "frames",
            "up to 16 places: that of the call, and those of the recorded calls around it",
        ),
        ("freed_frames", "the same of the call that freed it"),
    ],
};

/// Returns the table. Its rows are computed in one pass over all calls.
pub fn table(sources: &Sources) -> Computed {
    let source = Arc::clone(&sources.report);
    let schema = Arc::new(schema());
    let own = SchemaRef::clone(&schema);
    Computed::of_columns(schema, move |wants| {
        let failed = |error| DataFusionError::External(Box::new(error));
        let memory = memory::read(&source, &mut |_, _| ()).map_err(failed)?;
        rows(&memory, &source, &own, wants)
    })
}

fn schema() -> Schema {
    let field = |(name, _): &(&str, &str)| {
        let kind = match *name {
            "function" | "place" | "freed_by" | "freed_place" | "state" | "frames"
            | "freed_frames" => DataType::Utf8View,
            "tid" | "freed_tid" => DataType::Int32,
            _ => DataType::Int64,
        };
        let is_optional = !matches!(*name, "addr" | "state" | "live_bytes");
        Field::new(*name, kind, is_optional)
    };
    Schema::new(DOC.columns.iter().map(field).collect::<Vec<_>>())
}

fn rows(
    memory: &Memory,
    source: &report::Source,
    schema: &SchemaRef,
    wants: Wants<'_>,
) -> Result<RecordBatch> {
    let failed = |error| DataFusionError::External(Box::new(error));
    let blocks = &memory.blocks;
    let numbers = |of: &dyn Fn(&Block) -> Option<u64>| -> ArrayRef {
        let numbers = blocks.iter().map(|block| of(block).map(u64::cast_signed));
        Arc::new(numbers.collect::<Int64Array>())
    };
    let times = |of: Call| -> ArrayRef {
        let times = blocks.iter().map(|block| of(block).map(|by| by.ts_ns));
        Arc::new(times.collect::<Int64Array>())
    };
    let threads = |of: Call| -> ArrayRef {
        let tid = |by: Moment| (by.tid != 0).then_some(by.tid.cast_signed());
        let tids = blocks.iter().map(|block| of(block).and_then(tid));
        Arc::new(tids.collect::<Int32Array>())
    };
    let mut texts = Texts {
        source,
        frames: Frames::new(source.timeline().map_err(failed)?, &memory.tree),
        blocks,
    };
    let mut column = |name: &str| -> ArrayRef {
        let of: Call = match name.starts_with("freed_") {
            true => |block| block.freed,
            false => |block| block.made,
        };
        match name {
            "addr" => numbers(&|block| Some(block.address)),
            "size" => numbers(&|block| block.size),
            "tid" | "freed_tid" => threads(of),
            "seq" | "freed_seq" => numbers(&|block| of(block).map(|by| by.seq)),
            "ts_ns" | "freed_ts_ns" => times(of),
            "live_bytes" => numbers(&|block| Some(block.live_bytes)),
            "state" => states(blocks),
            "function" => texts.of(|block| block.made, By::Function),
            "freed_by" => texts.of(|block| block.freed, By::Function),
            "place" | "freed_place" if wants(name) => texts.of(of, By::Place),
            "frames" | "freed_frames" if wants(name) => texts.of(of, By::Frames),
            _ => Arc::new(StringViewArray::new_null(blocks.len())),
        }
    };
    let columns = DOC.columns.iter().map(|(name, _)| column(name)).collect();
    Ok(RecordBatch::try_new(SchemaRef::clone(schema), columns)?)
}

/// Which call of a block's life.
type Call = fn(&Block) -> Option<Moment>;

fn states(blocks: &[Block]) -> ArrayRef {
    let state = |block: &Block| match block.end {
        End::Live => "live",
        End::Freed => "freed",
        End::Lost(_) => "lost",
    };
    let states = blocks.iter().map(|block| Some(state(block)));
    Arc::new(states.collect::<StringViewArray>())
}

/// The columns of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Function,
    Place,
    Frames,
}

struct Texts<'m> {
    source: &'m report::Source,
    frames: Frames<'m>,
    blocks: &'m [Block],
}

impl Texts<'_> {
    /// Returns a column of texts. Each distinct text is made once.
    fn of(&mut self, of: Call, by: By) -> ArrayRef {
        let mut known: FxHashMap<u32, Option<String>> = FxHashMap::default();
        let mut column = StringViewBuilder::new().with_deduplicate_strings();
        for block in self.blocks {
            let Some(moment) = of(block) else {
                column.append_null();
                continue;
            };
            let key = match by {
                By::Function => moment.function,
                By::Place | By::Frames => moment.node,
            };
            let text = known.entry(key).or_insert_with(|| match by {
                By::Function => Some(self.source.known_name(key)),
                By::Place => {
                    let frames = self.frames.of(key);
                    Frame::from_own_code(&frames).first().map(Frame::text)
                }
                By::Frames => {
                    let frames: Vec<String> = self.frames.of(key).iter().map(Frame::text).collect();
                    (!frames.is_empty()).then(|| frames.join(" < "))
                }
            });
            column.append_option(text.as_deref());
        }
        Arc::new(column.finish())
    }
}

//! Writes sealed ranges as Parquet: one file of calls and one of other events per part.
//!
//! Calls come at millions a second, so they have encoders of their own that choose per column chunk between the
//! encodings of the Parquet format; other events are few and go through the `parquet` crate's Arrow writer.
//! [`CALL_COLUMNS`] and [`events_schema`] list the columns.
//!
//! A file of calls is in order of `end_seq`, unfinished calls at its end. Row groups have 262,144 rows, pages 8,192;
//! pages in a row that hold one same value are one page. Column and offset indexes are there for every column. What
//! the first page of a chunk looks like decides between DELTA_BINARY_PACKED, RLE_DICTIONARY, PLAIN and
//! BYTE_STREAM_SPLIT, and whether its pages are compressed with zstd; flags are RLE. Data pages are version 2.

mod bitpack;
mod call;
mod calls;
mod chunk;
mod compress;
mod delta;
mod dictionary;
mod events;
mod page;
mod read;
mod rle;
#[cfg(test)]
mod tests;

pub use call::{CALL_COLUMNS, CallColumn, CallEnd, CallStart};
pub use calls::{CallsWriter, PAGE_ROWS, ROW_GROUP_ROWS};
pub use events::{EventKind, EventRow, EventsWriter, events_schema};
pub use read::{ReadCall, ReadEvent, read_calls, read_events};

//! Writes sealed ranges as Parquet: per part one file of calls and one of other events, one of states if threads were
//! stopped, and one of captures if calls have any.
//!
//! Calls come at millions a second, so they have encoders of their own that choose per column chunk between the
//! encodings of the Parquet format. Other events are few and go through the `parquet` crate's Arrow writer.
//! [`CALL_COLUMNS`], [`events_schema`] and [`states_schema`] list the columns.
//!
//! A file of calls is in order of `end_seq`, with unfinished calls at its end. Calls of which only the
//! entry is recorded are in the place of that entry. Row groups have 262,144 rows, pages
//! 8,192; consecutive pages of one value are one page. Every column has a column index and an offset index. The first
//! page of a chunk decides between DELTA_BINARY_PACKED, RLE_DICTIONARY, PLAIN and BYTE_STREAM_SPLIT, and whether the
//! chunk's pages are compressed with zstd; flags are RLE. Data pages are version 2.

mod access;
mod bitpack;
mod call;
mod calls;
mod capture_access;
mod captures;
mod chunk;
mod compress;
mod delta;
mod dictionary;
mod event_access;
mod events;
mod page;
mod read;
mod rle;
mod rows;
mod sealed_file;
mod states;
#[cfg(test)]
mod tests;
#[cfg(any(test, feature = "testing"))]
mod whole;

pub use access::{CallEntry, CallPage, CallSpine, CallValues, CallsFile, EntryColumn, PageBounds};
pub use call::{CALL_COLUMNS, CallColumn, CallEnd, CallStart};
pub use calls::{CallsWriter, PAGE_ROWS, ROW_GROUP_ROWS};
pub use capture_access::{CapturePage, CapturesFile};
pub use captures::{
    CAPTURE_PAGE_ROWS, CAPTURE_REGISTERS, CaptureRow, CapturesWriter, captures_schema,
};
pub use event_access::{EventHead, EventsFile, Shown, StatesFile};
pub use events::{EventKind, EventRow, EventsWriter, events_schema};
pub use read::{ReadCall, ReadEvent, ReadState};
pub(crate) use sealed_file::Summing;
pub use sealed_file::{CheckedFile, FileSum, SUM_BLOCK_LEN, SealedFile};
pub use states::{StateRow, StatesWriter, states_schema};
#[cfg(any(test, feature = "testing"))]
pub use whole::{read_calls, read_events, read_states};

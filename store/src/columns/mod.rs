//! Writes sealed ranges as Parquet: one file of calls and one of other events per part.
//!
//! Calls come at millions a second, so they have encoders of their own that choose per column chunk between the
//! encodings of the Parquet format; other events are few and go through the `parquet` crate's Arrow writer.
//! `docs/format.md` lists the columns.

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

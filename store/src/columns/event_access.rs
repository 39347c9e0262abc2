//! Random access to sealed files of events and states, whose rows are found by `seq`.

use arrow::array::{Array, AsArray, Int64Array};
use arrow::datatypes::Int32Type;

use super::access::{Indexed, PageBounds, int64};
use super::events::events_schema;
use super::read::{ReadEvent, ReadState, event_row, state_row};
use super::sealed_file::SealedFile;
use super::states::states_schema;
use crate::error::Result;

/// Columns of event files in the first version of the format: the first ones of today's.
const EVENT_COLUMNS_OF_VERSION_1: usize = 10;

/// A sealed file of events other than calls.
pub struct EventsFile {
    file: Indexed,
    pages: Vec<PageBounds>,
}

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventHead<'a> {
    /// Its number.
    pub seq: u64,
    /// When, in nanoseconds.
    pub ts_ns: i64,
    /// Its thread.
    pub tid: Option<u32>,
    /// The kind's name.
    pub kind: &'a str,
}

impl EventsFile {
    /// Opens the file and reads its page index.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io), [`Error::Columns`](crate::Error::Columns).
    pub fn open(sealed: &SealedFile) -> Result<Self> {
        let file = Indexed::open(sealed, &events_schema(), EVENT_COLUMNS_OF_VERSION_1)?;
        Ok(Self {
            pages: file.pages("seq")?,
            file: file.without_bounds()?,
        })
    }

    /// Returns the pages, with the smallest and the largest `seq` of each.
    pub fn pages(&self) -> &[PageBounds] {
        &self.pages
    }

    /// Passes the heads of a page's events to `each`, in order.
    ///
    /// # Errors
    /// [`Error::Columns`](crate::Error::Columns) or [`Error::Arrow`](crate::Error::Arrow).
    ///
    /// # Panics
    /// When there is no such page.
    pub fn heads(&self, page: usize, mut each: impl FnMut(EventHead<'_>)) -> Result<()> {
        let page = self.pages[page];
        let rows = page.first_row..page.first_row + page.rows;
        let columns = ["seq", "ts_ns", "tid", "kind"];
        let batch = self.file.rows(page.row_group, rows, Some(&columns))?;
        let (seq, ts_ns) = (int64(&batch, 0), int64(&batch, 1));
        let tid = batch.column(2).as_primitive::<Int32Type>();
        let kind = batch.column(3).as_dictionary::<Int32Type>();
        let names = kind.values().as_string::<i32>();
        for row in 0..batch.num_rows() {
            each(EventHead {
                seq: seq.value(row) as u64,
                ts_ns: ts_ns.value(row),
                tid: tid.is_valid(row).then(|| tid.value(row) as u32),
                kind: names.value(kind.keys().value(row) as usize),
            });
        }
        Ok(())
    }

    /// Reads the event `seq`, if it is in this file.
    ///
    /// # Errors
    /// [`Error::Columns`](crate::Error::Columns) or [`Error::Arrow`](crate::Error::Arrow).
    pub fn event(&self, seq: u64) -> Result<Option<ReadEvent>> {
        let Some((group, row)) = self.file.by_seq(&self.pages, seq)? else {
            return Ok(None);
        };
        let batch = self.file.rows(group, row..row + 1, None)?;
        Ok(Some(event_row(&batch, 0)))
    }

    /// Reads those of the events `seqs` that are in a page, in order; reads the page once.
    ///
    /// # Errors
    /// [`Error::Columns`](crate::Error::Columns) or [`Error::Arrow`](crate::Error::Arrow).
    ///
    /// # Panics
    /// When there is no such page.
    pub fn events(&self, page: usize, seqs: &[u64]) -> Result<Vec<ReadEvent>> {
        let page = self.pages[page];
        let rows = page.first_row..page.first_row + page.rows;
        let batch = self.file.rows(page.row_group, rows, None)?;
        let all = int64(&batch, 0).values();
        let found = seqs.iter().filter_map(|seq| {
            let row = all.binary_search(&(*seq as i64)).ok()?;
            Some(event_row(&batch, row))
        });
        Ok(found.collect())
    }
}

/// A sealed file of states.
pub struct StatesFile {
    file: Indexed,
    pages: Vec<PageBounds>,
}

impl StatesFile {
    /// Opens the file and reads its page index.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io), [`Error::Columns`](crate::Error::Columns).
    pub fn open(sealed: &SealedFile) -> Result<Self> {
        let columns = states_schema();
        let file = Indexed::open(sealed, &columns, columns.fields().len())?;
        Ok(Self {
            pages: file.pages("seq")?,
            file: file.without_bounds()?,
        })
    }

    /// Reads the state of the pause `seq`, if it is in this file.
    ///
    /// # Errors
    /// [`Error::Columns`](crate::Error::Columns) or [`Error::Arrow`](crate::Error::Arrow).
    pub fn state(&self, seq: u64) -> Result<Option<ReadState>> {
        let Some((group, row)) = self.file.by_seq(&self.pages, seq)? else {
            return Ok(None);
        };
        let batch = self.file.rows(group, row..row + 1, None)?;
        Ok(Some(state_row(&batch, 0)))
    }

    /// Passes the memory that each pause showed to `each`, in order.
    ///
    /// # Errors
    /// [`Error::Columns`](crate::Error::Columns) or [`Error::Arrow`](crate::Error::Arrow).
    pub fn each_shown(&self, mut each: impl FnMut(Shown<'_>)) -> Result<()> {
        for page in &self.pages {
            let rows = page.first_row..page.first_row + page.rows;
            let columns = ["seq", "watch_addr", "watch_new", "stack_addr", "stack_len"];
            let batch = self.file.rows(page.row_group, rows, Some(&columns))?;
            let [seq, watched, stack, len] = [0, 1, 3, 4].map(|at| int64(&batch, at));
            let new = batch.column(2).as_binary::<i32>();
            let bits =
                |column: &Int64Array, row| column.is_valid(row).then(|| column.value(row) as u64);
            for row in 0..batch.num_rows() {
                let new = new.is_valid(row).then(|| new.value(row));
                each(Shown {
                    seq: seq.value(row) as u64,
                    stack: bits(stack, row).zip(bits(len, row)),
                    watched: bits(watched, row).zip(new),
                });
            }
        }
        Ok(())
    }
}

/// The memory that a pause showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown<'a> {
    /// Number of the pause.
    pub seq: u64,
    /// Address and length of the saved bytes of the stack.
    pub stack: Option<(u64, u64)>,
    /// Address and content of a watched place that was used.
    pub watched: Option<(u64, &'a [u8])>,
}

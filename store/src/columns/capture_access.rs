//! Reads sealed files of captures a page at a time.

use arrow::array::{Array, AsArray, BinaryArray, Int32Array, Int64Array, RecordBatch};
use arrow::datatypes::Int32Type;

use super::access::{Indexed, PageBounds, int64};
use super::captures::{CAPTURE_REGISTERS, captures_schema};
use super::sealed_file::SealedFile;
use crate::error::Result;
use crate::wire::{CAPTURE_REGISTER_WORDS, Section, sections, thread_pointer};

/// A sealed file of captures.
pub struct CapturesFile {
    file: Indexed,
    pages: Vec<PageBounds>,
}

/// The captures of a page, in the order of `seq`.
#[derive(Clone, Debug)]
pub struct CapturePage {
    seq: Int64Array,
    tid: Int32Array,
    registers: Vec<Int64Array>,
    memory: BinaryArray,
}

impl CapturesFile {
    /// Opens the file and reads its page index.
    ///
    /// # Errors
    /// [`crate::Error::Io`], [`crate::Error::Columns`].
    pub fn open(sealed: &SealedFile) -> Result<Self> {
        let columns = captures_schema();
        let file = Indexed::open(sealed, &columns, columns.fields().len())?;
        Ok(Self {
            pages: file.pages("seq")?,
            file: file.without_bounds()?,
        })
    }

    /// Returns the pages, with the smallest and the largest `seq` of each.
    pub fn pages(&self) -> &[PageBounds] {
        &self.pages
    }

    /// Reads a page, with up to `more` of the pages after it: starting on a row group's columns costs as much as
    /// reading a page or two. The requested page comes first.
    ///
    /// # Errors
    /// [`crate::Error::Columns`] or [`crate::Error::Arrow`].
    ///
    /// # Panics
    /// When there is no such page.
    pub fn page(&self, page: usize, more: usize) -> Result<Vec<CapturePage>> {
        let first = self.pages[page];
        let mut rows = first.first_row..first.first_row;
        let wanted = self.pages[page..].iter().take(more + 1);
        let wanted = wanted.take_while(|page| {
            let follows = page.row_group == first.row_group && page.first_row == rows.end;
            rows.end += if follows { page.rows } else { 0 };
            follows
        });
        let pages: Vec<_> = wanted.collect();
        let batch = self.file.rows(first.row_group, rows, None)?;
        let page = |page: &&PageBounds| {
            CapturePage::of(&batch.slice(page.first_row - first.first_row, page.rows))
        };
        Ok(pages.iter().map(page).collect())
    }
}

impl CapturePage {
    fn of(batch: &RecordBatch) -> Self {
        let first = 3;
        let registers = (0..CAPTURE_REGISTERS.len()).map(|at| int64(batch, first + at).clone());
        let memory = batch.column(first + CAPTURE_REGISTERS.len());
        CapturePage {
            seq: int64(batch, 0).clone(),
            tid: batch.column(2).as_primitive::<Int32Type>().clone(),
            registers: registers.collect(),
            memory: memory.as_binary::<i32>().clone(),
        }
    }

    /// Returns the number of captures.
    pub fn rows(&self) -> usize {
        self.seq.len()
    }

    /// Returns the number of captures before event `seq`.
    pub fn before(&self, seq: u64) -> usize {
        self.seq.values().partition_point(|own| (*own as u64) < seq)
    }

    /// Returns the event.
    pub fn seq(&self, row: usize) -> u64 {
        self.seq.value(row) as u64
    }

    /// Returns the thread.
    pub fn tid(&self, row: usize) -> Option<u32> {
        self.tid.is_valid(row).then(|| self.tid.value(row) as u32)
    }

    /// Returns the general registers by their DWARF numbers, where they were captured.
    pub fn registers(&self, row: usize) -> Option<[u64; CAPTURE_REGISTER_WORDS]> {
        let mut found = [0; CAPTURE_REGISTER_WORDS];
        for (register, column) in found.iter_mut().zip(&self.registers) {
            *register = column.is_valid(row).then(|| column.value(row) as u64)?;
        }
        Some(found)
    }

    /// Returns the thread pointer (fs_base) of a row, where it was captured.
    pub fn thread_pointer(&self, row: usize) -> Option<u64> {
        thread_pointer(self.memory_of(row))
    }

    /// Returns the memory.
    pub fn sections(&self, row: usize) -> impl Iterator<Item = Section<'_>> {
        sections(self.memory_of(row))
    }

    fn memory_of(&self, row: usize) -> &[u8] {
        match self.memory.is_valid(row) {
            true => self.memory.value(row),
            false => &[],
        }
    }
}

//! The decoded line table of one unit: rows by address, and their files.
//!
//! Sequences outside the module's code are omitted. Linkers leave them for functions that they dropped.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use gimli::{DebugLineOffset, Dwarf, Unit};

use super::model::SourceLine;
use crate::dwarf::Slice;
use crate::functions::files;

/// Rows of one table, at most. A damaged table is cut there.
const MAX_ROWS: usize = 1 << 24;
/// Files of one table, at most.
const MAX_FILES: u64 = 1 << 16;

/// A row, which describes the instructions from `address` up to the next row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Row {
    pub address: u64,
    /// The index in [`Lines::files`].
    pub file: u32,
    /// 0 if the instructions belong to no line.
    pub line: u32,
    /// 0 if unknown.
    pub column: u32,
    /// A recommended place for a breakpoint.
    pub is_stmt: bool,
    /// The compiler marks the end of the prologue here.
    pub prologue_end: bool,
    /// Not a row, but the first address after the sequence.
    pub end: bool,
    /// Another row replaces this one (see [`supersede`]), so it is not a place of its own.
    pub superseded: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// By file number. Empty for unused numbers.
    pub files: Vec<Arc<str>>,
    rows: Vec<Row>,
    /// Start address, end address and rows (including the end row), by address.
    sequences: Vec<(u64, u64, Range<usize>)>,
    /// The statements, as indexes into `rows`, by file and line.
    by_line: OnceLock<Vec<u32>>,
}

impl Lines {
    /// Decodes the line table at `offset`. A damaged table is decoded as far as possible.
    pub(super) fn read(
        dwarf: &Dwarf<Slice<'_>>,
        unit: &Unit<Slice<'_>>,
        offset: DebugLineOffset,
        is_code: impl Fn(u64) -> bool,
    ) -> Lines {
        let mut lines = Lines {
            files: files(dwarf, unit, offset),
            ..Lines::default()
        };
        let address_size = unit.header.address_size();
        let Ok(program) = dwarf.debug_line.program(offset, address_size, None, None) else {
            return lines;
        };
        let mut rows = program.rows();
        let mut start = 0;
        let mut discriminators = Vec::new();
        while let Ok(Some((_, row))) = rows.next_row() {
            if lines.rows.len() >= MAX_ROWS {
                break;
            }
            lines.rows.push(Row {
                address: row.address(),
                file: u32::try_from(row.file_index()).unwrap_or(u32::MAX),
                line: row
                    .line()
                    .map_or(0, |l| u32::try_from(l.get()).unwrap_or(0)),
                column: match row.column() {
                    gimli::ColumnType::LeftEdge => 0,
                    gimli::ColumnType::Column(c) => u32::try_from(c.get()).unwrap_or(0),
                },
                is_stmt: row.is_stmt(),
                prologue_end: row.prologue_end(),
                end: row.end_sequence(),
                superseded: false,
            });
            discriminators.push(row.discriminator());
            if row.end_sequence() {
                supersede(&mut lines.rows[start..], &discriminators, &lines.files);
                discriminators.clear();
                start = lines.close(start, &is_code);
            }
        }
        // A sequence that was not closed has no end, so it describes no code.
        lines.rows.truncate(start);
        lines
            .sequences
            .sort_unstable_by_key(|(from, to, _)| (*from, *to));
        lines
    }

    /// Ends the sequence that begins with row `start`. Returns the start of the next one.
    fn close(&mut self, start: usize, is_code: &impl Fn(u64) -> bool) -> usize {
        let rows = &mut self.rows[start..];
        if !rows.is_sorted_by_key(|r| r.address) {
            rows.sort_by_key(|r| (r.address, r.end));
        }
        let (from, to) = match (rows.first(), rows.last()) {
            (Some(first), Some(last)) => (first.address, last.address),
            _ => return start,
        };
        if from >= to || !is_code(from) {
            self.rows.truncate(start);
            return start;
        }
        self.sequences.push((from, to, start..self.rows.len()));
        self.rows.len()
    }

    pub(super) fn ranges(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.sequences.iter().map(|(from, to, _)| (*from, *to))
    }

    pub(super) fn statements(&self, file: u32, line: u32) -> impl Iterator<Item = &Row> {
        let all = self.statements_from(file, line);
        all.take_while(move |row| row.line == line)
    }

    /// Returns the statements of file number `file`, starting at `line`, by line.
    pub(super) fn statements_from(&self, file: u32, line: u32) -> impl Iterator<Item = &Row> {
        let sorted = self.by_line.get_or_init(|| {
            let wanted = |row: &Row| row.is_stmt && row.line > 0 && !row.end;
            let numbers = 0..self.rows.len() as u32;
            let mut sorted: Vec<u32> = numbers.filter(|at| wanted(self.row(*at))).collect();
            sorted.sort_by_key(|at| (self.row(*at).file, self.row(*at).line));
            sorted
        });
        let place = |at: &u32| (self.row(*at).file, self.row(*at).line);
        let first = sorted.partition_point(|at| place(at) < (file, line));
        let rows = sorted[first..].iter().map(|at| self.row(*at));
        rows.take_while(move |row| row.file == file)
    }

    fn row(&self, at: u32) -> &Row {
        &self.rows[at as usize]
    }

    /// Returns the rows of the sequence that contains `address`, including the end row.
    pub(super) fn sequence(&self, address: u64) -> Option<&[Row]> {
        let after = self
            .sequences
            .partition_point(|(from, ..)| *from <= address);
        // Sequences do not overlap in valid files. In others, a few are tried.
        let mut near = self.sequences[..after].iter().rev().take(8);
        let (_, _, range) = near.find(|(_, to, _)| address < *to)?;
        Some(&self.rows[range.clone()])
    }

    /// Returns the row that covers `address`: the last row that begins there, but preferably a statement.
    pub(crate) fn row_at(&self, address: u64) -> Option<&Row> {
        let rows = self.sequence(address)?;
        let after = rows.partition_point(|r| r.address <= address);
        covering(&rows[..after])
    }

    /// Returns the row to which stepping assigns `address`, and the first address after it. Code without a line belongs
    /// to the preceding line.
    pub(super) fn step_row(&self, address: u64) -> Option<(&Row, u64)> {
        let rows = self.sequence(address)?;
        let counts = |row: &Row| row.line > 0 && !row.superseded;
        let after = rows.partition_point(|r| r.address <= address);
        let last = rows[..after].iter().rposition(counts)? + 1;
        let next = rows[after..].iter().find(|r| r.end || counts(r))?;
        Some((covering(&rows[..last])?, next.address))
    }

    /// Returns the first address after the row that covers `address`.
    pub(super) fn row_end(&self, address: u64) -> Option<u64> {
        let rows = self.sequence(address)?;
        let after = rows.partition_point(|r| r.address <= address);
        rows.get(after).map(|r| r.address)
    }

    /// Converts a row to a source line. Returns `None` if the row has no line.
    pub(crate) fn source_line(&self, row: &Row) -> Option<SourceLine> {
        let file = self.files.get(row.file as usize)?;
        (row.line > 0 && !row.end && !file.is_empty()).then(|| SourceLine {
            file: file.clone(),
            line: row.line,
            column: row.column,
        })
    }
}

/// Returns the row that applies among those at the last address of `rows`.
pub(super) fn covering(rows: &[Row]) -> Option<&Row> {
    let last = rows.iter().rev().find(|r| !r.superseded)?;
    let same = rows.iter().rev().skip_while(|r| r.address > last.address);
    let same = same.take_while(|r| r.address == last.address);
    let mut statements = same.filter(|r| r.is_stmt && !r.superseded);
    Some(statements.next().unwrap_or(last))
}

/// Marks the rows of a sequence that are not places of their own, by gdb's rules. A row of another file at the same
/// address replaces a row, except that a non-statement yields to an earlier statement at that address. Rows of one line
/// that only separate its basic blocks (by discriminators) continue the line. `rows` are in table order.
fn supersede(rows: &mut [Row], discriminators: &[u64], files: &[Arc<str>]) {
    let name = |file: u32| files.get(file as usize);
    // The remaining rows of each file, by address.
    let mut kept: HashMap<u32, Vec<usize>> = HashMap::new();
    let mut last: Option<(u32, u32)> = None;
    let (mut line, mut is_divided) = (1, false);
    let (mut address, mut has_statement) = (u64::MAX, false);
    for at in 0..rows.len() {
        let row = rows[at];
        let discriminator = discriminators.get(at).copied().unwrap_or(0) != 0;
        is_divided = discriminator || is_divided && row.line == line;
        line = row.line;
        let has_moved = last.is_none_or(|(file, _)| name(file) != name(row.file));
        let is_ignored = !row.end
            && (row.line == 0
                || has_moved && address == row.address && !row.is_stmt && has_statement);
        if let Some((file, _)) = last.filter(|_| (has_moved && !is_ignored) || row.end) {
            let before = kept.entry(file).or_default();
            while let Some(empty) = before.pop_if(|at| rows[*at].address == row.address) {
                rows[empty].superseded = true;
            }
        }
        let goes_on =
            !row.end && !has_moved && is_divided && last.is_some_and(|(_, line)| line == row.line);
        if is_ignored || goes_on {
            rows[at].superseded = row.line > 0;
        } else if !row.end {
            kept.entry(row.file).or_default().push(at);
        }
        if !is_ignored && !row.end {
            last = Some((row.file, row.line));
        }
        has_statement = row.is_stmt || has_statement && address == row.address;
        address = row.address;
    }
}

/// Returns the paths of the files of the line table at `offset`, by number.
pub(super) fn files(
    dwarf: &Dwarf<Slice<'_>>,
    unit: &Unit<Slice<'_>>,
    offset: DebugLineOffset,
) -> Vec<Arc<str>> {
    let address_size = unit.header.address_size();
    let Ok(program) = dwarf.debug_line.program(offset, address_size, None, None) else {
        return Vec::new();
    };
    // Before DWARF 5, number 0 is not a file.
    let count = program.header().file_names().len() as u64 + 1;
    let path = |number| files::path(dwarf, unit, &program, number).unwrap_or_default();
    let numbers = 0..count.min(MAX_FILES);
    numbers.map(|number| Arc::from(path(number))).collect()
}

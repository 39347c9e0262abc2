//! Tables as plain text. Columns are aligned, numbers to the right, and cut only to fit a terminal. A table that does
//! not fit even when cut is shown as one record below the other, so that no column is lost.

use std::io::{self, Write};

use super::{Colour, Paint, escaped, fitted_paths, width};

/// The text for NULL. A text "NULL" is shown in quotes, so that the two cannot be confused.
const NULL: &str = "NULL";
/// The minimum width of a cut text column; no column is cut below its heading.
const MIN_COLUMNS: usize = 12;
/// Where nothing is cut, text columns are padded to this width at most.
const MOST_PADDED: usize = 1000;
/// The width of the rule between two columns, with the spaces around it.
const RULE_COLUMNS: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    Left,
    /// For numbers, which are never cut: without its last digits a number is a different one.
    Right,
}

#[derive(Clone, Debug)]
pub struct Column {
    pub name: String,
    pub align: Align,
}

/// The layout for the table's destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// A pipe or a file: nothing is ever cut.
    Whole,
    /// A terminal with this number of columns.
    Fit(usize),
    /// One record below the other, for a terminal with this number of columns (`None`: nothing is cut).
    Records(Option<usize>),
}

/// Rows to write. A cell is `None` for NULL. Text may contain anything: it is escaped here.
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Option<String>>>,
    /// Determined by the first rows written. Later, a wider cell sticks out.
    widths: Option<Widths>,
    written: u64,
}

enum Widths {
    Columns(Vec<usize>),
    Records(Option<usize>),
}

impl Table {
    /// Starts an empty table.
    pub fn new(columns: Vec<Column>) -> Table {
        Table {
            columns,
            rows: Vec::new(),
            widths: None,
            written: 0,
        }
    }

    /// Adds a row, which must have as many cells as the table has columns.
    pub fn push(&mut self, row: Vec<Option<String>>) {
        assert_eq!(
            row.len(),
            self.columns.len(),
            "a row has one cell per column"
        );
        let cells = row.into_iter().map(|cell| match cell {
            Some(text) if text == NULL => Some(format!("\"{NULL}\"")),
            Some(text) => Some(match escaped(&text) {
                std::borrow::Cow::Borrowed(_) => text,
                std::borrow::Cow::Owned(safe) => safe,
            }),
            None => None,
        });
        self.rows.push(cells.collect());
    }

    /// Returns the number of rows not written yet.
    pub fn waiting(&self) -> usize {
        self.rows.len()
    }

    /// Writes the rows pushed since the last call. The first call writes the heading and determines the widths.
    ///
    /// # Errors
    /// When `out` cannot be written to.
    pub fn flush(&mut self, out: &mut dyn Write, layout: Layout, colour: Colour) -> io::Result<()> {
        if self.widths.is_none() {
            let widths = self.decide(layout);
            if let Widths::Columns(widths) = &widths {
                self.write_heading(out, widths, colour)?;
            }
            self.widths = Some(widths);
        }
        let rows = std::mem::take(&mut self.rows);
        for row in rows {
            self.written += 1;
            match self.widths.as_ref().expect("decided above") {
                Widths::Columns(widths) => self.write_row(out, &row, widths, layout, colour)?,
                Widths::Records(limit) => self.write_record(out, &row, *limit, colour)?,
            }
        }
        Ok(())
    }

    fn decide(&self, layout: Layout) -> Widths {
        let natural = self.natural_widths();
        match layout {
            Layout::Whole => Widths::Columns(self.padded(natural)),
            Layout::Records(limit) => Widths::Records(limit),
            Layout::Fit(columns) => match self.shrunk(natural, columns) {
                Some(widths) => Widths::Columns(widths),
                None => Widths::Records(Some(columns)),
            },
        }
    }

    fn natural_widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = self.columns.iter().map(|c| width(&c.name)).collect();
        for row in &self.rows {
            for (cell, widest) in row.iter().zip(&mut widths) {
                *widest = (*widest).max(width(cell.as_deref().unwrap_or(NULL)));
            }
        }
        widths
    }

    /// Limits how wide text is padded where nothing is cut: a longer cell sticks out, instead of filling all rows with spaces.
    fn padded(&self, widths: Vec<usize>) -> Vec<usize> {
        let columns = self.columns.iter().zip(widths);
        let limited = columns.map(|(column, natural)| match column.align {
            Align::Right => natural,
            Align::Left => natural.min(MOST_PADDED.max(width(&column.name))),
        });
        limited.collect()
    }

    /// Cuts the widest text columns, all to the same width, until the table fits; `None` if it cannot.
    fn shrunk(&self, mut widths: Vec<usize>, terminal: usize) -> Option<Vec<usize>> {
        let room = terminal.saturating_sub(RULE_COLUMNS * widths.len().saturating_sub(1) + 2);
        let floor: Vec<usize> = self
            .columns
            .iter()
            .zip(&widths)
            .map(|(c, w)| self.floor(c, *w))
            .collect();
        if floor.iter().sum::<usize>() > room {
            return None;
        }
        while widths.iter().sum::<usize>() > room {
            let over = widths.iter().sum::<usize>() - room;
            let shrinkable = |i: &usize| widths[*i] > floor[*i];
            // The minimum widths fit. So while the widths do not, at least one is above its minimum.
            let widest = (0..widths.len())
                .filter(shrinkable)
                .max_by_key(|i| widths[*i])?;
            let next = (0..widths.len())
                .filter(|i| *i != widest && shrinkable(i))
                .map(|i| widths[i])
                .max()
                .unwrap_or(0);
            // Cut down to the second widest column at once; if two are equally wide, by one at a time.
            let step = (widths[widest] - next).clamp(1, over);
            widths[widest] = (widths[widest] - step).max(floor[widest]);
        }
        Some(widths)
    }

    fn floor(&self, column: &Column, natural: usize) -> usize {
        match column.align {
            Align::Right => natural,
            Align::Left => natural.min(width(&column.name).max(MIN_COLUMNS)),
        }
    }

    fn write_heading(
        &self,
        out: &mut dyn Write,
        widths: &[usize],
        colour: Colour,
    ) -> io::Result<()> {
        let last = widths.len().saturating_sub(1);
        for (i, (column, columns)) in self.columns.iter().zip(widths).enumerate() {
            let bar = if i == 0 { " " } else { " | " };
            write!(out, "{}", colour.paint(Paint::Dim, bar))?;
            let name = escaped(&column.name);
            let pad = columns.saturating_sub(width(&name));
            let (before, after) = match column.align {
                Align::Right => (pad, 0),
                Align::Left if i < last => (0, pad),
                Align::Left => (0, 0),
            };
            spaces(out, before)?;
            write!(out, "{}", colour.paint(Paint::Heading, name))?;
            spaces(out, after)?;
        }
        writeln!(out)?;
        let rule: Vec<String> = widths
            .iter()
            .map(|columns| "-".repeat(columns + 2))
            .collect();
        writeln!(out, "{}", colour.paint(Paint::Dim, rule.join("+")))
    }

    fn write_row(
        &self,
        out: &mut dyn Write,
        row: &[Option<String>],
        widths: &[usize],
        layout: Layout,
        colour: Colour,
    ) -> io::Result<()> {
        let last = widths.len().saturating_sub(1);
        for (i, (cell, columns)) in row.iter().zip(widths).enumerate() {
            let bar = if i == 0 { " " } else { " | " };
            write!(out, "{}", colour.paint(Paint::Dim, bar))?;
            let align = self.columns[i].align;
            let text = cell.as_deref().unwrap_or(NULL);
            let text = match layout {
                Layout::Fit(_) if align == Align::Left => fitted_paths(text, *columns),
                _ => text.into(),
            };
            let pad = columns.saturating_sub(width(&text));
            let before = if align == Align::Right { pad } else { 0 };
            let after = if align == Align::Left && i < last {
                pad
            } else {
                0
            };
            spaces(out, before)?;
            match cell {
                Some(_) => out.write_all(text.as_bytes())?,
                None => write!(out, "{}", colour.paint(Paint::Dim, text))?,
            }
            spaces(out, after)?;
        }
        writeln!(out)
    }

    fn write_record(
        &self,
        out: &mut dyn Write,
        row: &[Option<String>],
        limit: Option<usize>,
        colour: Colour,
    ) -> io::Result<()> {
        let names = self
            .columns
            .iter()
            .map(|c| width(&c.name))
            .max()
            .unwrap_or(0);
        writeln!(
            out,
            "{}",
            colour.paint(
                Paint::Dim,
                format!("-[ {} ]{}", self.written, "-".repeat(names))
            )
        )?;
        for (column, cell) in self.columns.iter().zip(row) {
            let name = escaped(&column.name);
            let pad = names - width(&column.name).min(names);
            write!(out, "{}", colour.paint(Paint::Heading, &name))?;
            spaces(out, pad)?;
            write!(out, "{}", colour.paint(Paint::Dim, " | "))?;
            match (cell, limit) {
                (None, _) => writeln!(out, "{}", colour.paint(Paint::Dim, NULL))?,
                (Some(text), Some(limit)) if column.align == Align::Left => {
                    let room = limit.saturating_sub(names + RULE_COLUMNS).max(MIN_COLUMNS);
                    writeln!(out, "{}", fitted_paths(text, room))?;
                }
                (Some(text), _) => writeln!(out, "{text}")?,
            }
        }
        Ok(())
    }
}

/// Writes spaces. Formatting with a width would panic from 65,536 on.
fn spaces(out: &mut dyn Write, number: usize) -> io::Result<()> {
    out.write_all(" ".repeat(number).as_bytes())
}

#[cfg(test)]
mod tests;

//! Runs lines from a prompt or from a script on stdin.

use std::fmt::Write as _;

use super::command::{self, Line};
use super::complete::Words;
use query::TableFunctionDoc;
use server::quantity::{count, grouped};

use crate::ask::{Asker, Records, View, note_extent, parquet_needs_a_file, show, warn};
use crate::error::Error;
use crate::format::Format;
use crate::output::{self, to_stdout};
use crate::render::{Align, Colour, Column, Layout, Table, Terminal, fold, width};
use crate::{statement, suggest};

/// A recording and the view settings of its answers.
pub struct Shell {
    asker: Asker,
    view: View,
    /// An answer was shown: the next table needs an empty line before it.
    answered: bool,
}

/// Whether to read another line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    GoOn,
    Quit,
}

impl Shell {
    /// Makes a shell with these view settings.
    pub fn new(asker: Asker, view: View) -> Shell {
        Shell {
            asker,
            view,
            answered: false,
        }
    }

    /// Runs one line: a command, or one or several statements.
    ///
    /// # Errors
    /// When it is wrong or cannot be answered. The shell remains usable.
    pub fn run(&mut self, text: &str) -> Result<Flow, Error> {
        match command::parse(text)? {
            Line::Nothing => {}
            Line::Quit => return Ok(Flow::Quit),
            Line::Help => self.say(command::HELP)?,
            Line::Tables => self.tables()?,
            Line::Columns(table) => self.columns(table)?,
            Line::Timing(on) => {
                self.view.timing = on.unwrap_or(!self.view.timing);
                self.say(if self.view.timing {
                    "times are shown\n"
                } else {
                    "times are not shown\n"
                })?;
            }
            Line::Format(format) => self.format(format)?,
            Line::Rows(rows) => self.rows(rows)?,
            Line::Records(records) => self.records(records)?,
            Line::Refresh => {
                self.asker.refresh()?;
                let text = match self.asker.extent() {
                    Some(extent) => note_extent(&extent)
                        .unwrap_or_else(|| "this recording is closed".to_owned()),
                    None => count(self.asker.recordings() as u64, "recording"),
                };
                warn(&self.asker, &self.view.terminal);
                self.say(&format!("{text}\n"))?;
            }
            Line::Sql(text) => {
                for (at, sql) in statement::statements(text) {
                    self.answer(text[..at].matches('\n').count(), sql)?;
                }
            }
        }
        Ok(Flow::GoOn)
    }

    /// Shows the answer to one statement with `lines_above` lines before it.
    fn answer(&mut self, lines_above: usize, sql: &str) -> Result<(), Error> {
        if self.view.format == Format::Table {
            self.part()?;
        }
        // Errors name the line in the whole text.
        let sql = format!("{}{sql}", "\n".repeat(lines_above));
        show(&mut self.asker, &sql, &self.view)
    }

    /// Separates a table from the previous one. At a prompt the line with the number of rows does so.
    fn part(&mut self) -> Result<(), Error> {
        if self.answered {
            self.say("\n")?;
        }
        self.answered = !self.view.terminal.interactive;
        Ok(())
    }

    /// Returns everything that Tab can complete.
    ///
    /// # Errors
    /// When the names of the functions cannot be read.
    pub fn words(&mut self) -> Result<Words, Error> {
        // To know the names of many recordings, all would have to be opened.
        let names = match self.asker.path() {
            Some(_) => self
                .asker
                .texts("select distinct name from functions order by name")?,
            None => Vec::new(),
        };
        let recorded = names.into_iter().flatten().flatten().collect();
        let is_many = self.asker.path().is_none();
        let functions = self.asker.sql_functions();
        Ok(Words::of_session(is_many, functions, recorded))
    }

    fn tables(&mut self) -> Result<(), Error> {
        let rows = query::TABLES
            .iter()
            .map(|table| vec![table.name.to_owned(), table.doc.to_owned()]);
        self.list(&["table", "holds"], rows.collect())?;
        let is_many = self.asker.path().is_none();
        let functions = query::TABLE_FUNCTIONS
            .iter()
            .map(|function| vec![function.call(is_many), function.doc.to_owned()]);
        self.list(
            &["function that gives a table", "holds"],
            functions.collect(),
        )
    }

    /// Shows the arguments and columns of a function that gives a table.
    fn table_function(&mut self, function: &TableFunctionDoc) -> Result<(), Error> {
        self.part()?;
        let call = function.call(self.asker.path().is_none());
        self.say(&format!("{call}: {}\n", function.doc))?;
        let columns = function.columns.iter();
        let rows =
            columns.map(|(column, kind, doc)| [column, kind, doc].map(|text| (*text).to_owned()));
        self.list(
            &["column", "type", "meaning"],
            rows.map(Vec::from).collect(),
        )
    }

    fn columns(&mut self, name: &str) -> Result<(), Error> {
        let named = name
            .split_once('(')
            .map_or(name, |(name, _)| name.trim_end());
        let mut functions = query::TABLE_FUNCTIONS.iter();
        if let Some(function) = functions.find(|one| one.name.eq_ignore_ascii_case(named)) {
            return self.table_function(function);
        }
        let Some(table) = query::TABLES
            .iter()
            .find(|table| table.name.eq_ignore_ascii_case(name))
        else {
            let tables = query::TABLES.iter().map(|table| table.name);
            let functions = query::TABLE_FUNCTIONS.iter().map(|one| one.name);
            let near = suggest::nearest(name, tables.chain(functions));
            let help = match near {
                Some(near) => format!("did you mean {near}?"),
                None => "\\d lists the tables".to_owned(),
            };
            return Err(Error::usage(
                format!("there is no table {name}"),
                Some(help),
            ));
        };
        let types = self.asker.types(&format!("select * from {}", table.name))?;
        let kind = |column: &str| {
            let found = types.iter().find(|(name, _)| name == column);
            found.map(|(_, kind)| kind.clone()).unwrap_or_default()
        };
        let run = (self.asker.path().is_none() && table.columns[0] != query::runs::COLUMN)
            .then_some(&query::runs::COLUMN);
        let rows = run
            .into_iter()
            .chain(table.columns)
            .map(|(column, doc)| vec![(*column).to_owned(), kind(column), (*doc).to_owned()]);
        self.list(&["column", "type", "meaning"], rows.collect())
    }

    fn format(&mut self, format: Option<Format>) -> Result<(), Error> {
        if format == Some(Format::Parquet) {
            return Err(parquet_needs_a_file());
        }
        self.view.format = format.unwrap_or(self.view.format);
        self.say(&format!("the format is {}\n", self.view.format.name()))
    }

    fn rows(&mut self, rows: Option<usize>) -> Result<(), Error> {
        if let Some(rows) = rows {
            self.view.rows = (rows > 0).then_some(rows);
        }
        let text = match self.view.rows {
            Some(rows) => format!("tables show at most {} rows\n", grouped(rows as u64)),
            None => "tables show all rows\n".to_owned(),
        };
        self.say(&text)
    }

    fn records(&mut self, records: Option<Records>) -> Result<(), Error> {
        self.view.records = records.unwrap_or(match self.view.records {
            Records::On => Records::Auto,
            Records::Auto | Records::Off => Records::On,
        });
        self.say(match self.view.records {
            Records::Auto => "tables that do not fit are shown one column per line\n",
            Records::On => "rows are shown one column per line\n",
            Records::Off => "rows are shown on one line\n",
        })
    }

    /// Shows a table of texts without cutting them, since they are help. On a terminal the last column is wrapped.
    fn list(&mut self, columns: &[&str], rows: Vec<Vec<String>>) -> Result<(), Error> {
        self.part()?;
        let rows = if self.view.terminal.stdout {
            folded(rows, Terminal::size().0)
        } else {
            rows
        };
        let left = |name: &&str| Column {
            name: (*name).to_owned(),
            align: Align::Left,
        };
        let mut table = Table::new(columns.iter().map(left).collect());
        rows.into_iter()
            .for_each(|row| table.push(row.into_iter().map(Some).collect()));
        let colour = if self.view.terminal.stdout {
            self.view.terminal.stdout_colour
        } else {
            Colour::Off
        };
        let mut text = Vec::new();
        table
            .flush(&mut text, Layout::Whole, colour)
            .expect("memory takes whatever is written to it");
        self.show(&text)
    }

    fn say(&self, text: &str) -> Result<(), Error> {
        self.show(text.as_bytes())
    }

    fn show(&self, text: &[u8]) -> Result<(), Error> {
        let lines = if self.view.terminal.stdout {
            Terminal::size().1
        } else {
            usize::MAX
        };
        output::show(text, lines).map_err(to_stdout)
    }
}

/// Wraps the last column so that the table fits a terminal of `columns`, if that leaves room for words.
fn folded(rows: Vec<Vec<String>>, columns: usize) -> Vec<Vec<String>> {
    let others = rows.first().map_or(0, Vec::len).saturating_sub(1);
    let widest = |i: usize| rows.iter().map(|row| width(&row[i])).max().unwrap_or(0);
    let before: usize = (0..others).map(|i| widest(i).max(6) + 3).sum();
    let room = columns.saturating_sub(before + 2).max(16);
    let mut out = Vec::new();
    for mut row in rows {
        let last = row.pop().unwrap_or_default();
        for line in fold(&last, room) {
            let rest = vec![String::new(); others];
            let mut cells = std::mem::replace(&mut row, rest);
            cells.push(line);
            out.push(cells);
        }
    }
    out
}

/// Returns the greeting of the prompt.
pub fn greeting(asker: &Asker) -> String {
    let (Some(path), Some(extent)) = (asker.path(), asker.extent()) else {
        return format!(
            "{}; \\d lists the tables, \"help\" says more",
            count(asker.recordings() as u64, "recording")
        );
    };
    let mut text = path.display().to_string();
    // Writing to a String cannot fail.
    _ = write!(
        text,
        ": {} in {}; \\d lists the tables, \"help\" says more",
        count(extent.events, "event"),
        server::quantity::duration(extent.duration_ns)
    );
    text
}

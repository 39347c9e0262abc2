//! Replies as text, independent of a terminal's width and colours: the client escapes, aligns and colours it.

use super::show;
use crate::session::MotionReport;

/// A reply in pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text {
    /// The pieces, in order.
    pub pieces: Vec<Piece>,
}

/// A piece of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// A line.
    Line(String),
    /// Rows with headings.
    Table(Vec<Column>, Vec<Vec<String>>),
    /// A line of parts in different styles.
    Styled(Vec<(Style, String)>),
    /// A line with the next command to use, in the words of the command line.
    Hint(String),
}

/// The style of a part of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Normal text.
    Plain,
    /// A heading.
    Heading,
    /// The mark of the current position.
    Here,
    /// Less important text.
    Dim,
}

/// A column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its heading.
    pub name: &'static str,
    /// The column holds numbers, aligned to the right.
    pub is_number: bool,
}

impl Column {
    /// A column of texts.
    #[must_use]
    pub const fn text(name: &'static str) -> Column {
        Column {
            name,
            is_number: false,
        }
    }

    /// A column of numbers.
    #[must_use]
    pub const fn number(name: &'static str) -> Column {
        Column {
            name,
            is_number: true,
        }
    }
}

impl Text {
    /// A text of one line.
    #[must_use]
    pub fn line(text: impl Into<String>) -> Text {
        Text {
            pieces: vec![Piece::Line(text.into())],
        }
    }

    /// A text of lines.
    #[must_use]
    pub fn lines(lines: impl IntoIterator<Item = String>) -> Text {
        Text {
            pieces: lines.into_iter().map(Piece::Line).collect(),
        }
    }

    /// A line with the next command to use.
    #[must_use]
    pub fn hint(text: impl Into<String>) -> Text {
        Text {
            pieces: vec![Piece::Hint(text.into())],
        }
    }

    /// A table.
    #[must_use]
    pub fn table(columns: &[Column], rows: Vec<Vec<String>>) -> Text {
        Text {
            pieces: vec![Piece::Table(columns.to_vec(), rows)],
        }
    }

    /// The outcome of a move.
    #[must_use]
    pub fn stepping(report: &MotionReport) -> Text {
        show::stepping(report)
    }

    /// A line of parts in different styles.
    #[must_use]
    pub fn styled(parts: Vec<(Style, String)>) -> Text {
        Text {
            pieces: vec![Piece::Styled(parts)],
        }
    }

    /// Appends a line.
    pub fn push(&mut self, line: impl Into<String>) {
        self.pieces.push(Piece::Line(line.into()));
    }

    /// Appends another text.
    #[must_use]
    pub fn and(mut self, more: Text) -> Text {
        self.pieces.extend(more.pieces);
        self
    }
}

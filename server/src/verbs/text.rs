//! Replies as people read them, before a terminal's width and colours: the client escapes, aligns and paints.

use crate::session::{MotionReport, SessionReport};

/// A reply, piece by piece.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text {
    /// In order.
    pub pieces: Vec<Piece>,
}

/// A piece of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// A line.
    Line(String),
    /// Rows with headings.
    Table(Vec<Column>, Vec<Vec<String>>),
    /// How a move came out.
    Motion(Box<MotionReport>),
    /// What a session is and does.
    Session(Box<SessionReport>),
}

/// A column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its heading.
    pub name: &'static str,
    /// Numbers stand at the right.
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

    /// A table.
    #[must_use]
    pub fn table(columns: &[Column], rows: Vec<Vec<String>>) -> Text {
        Text {
            pieces: vec![Piece::Table(columns.to_vec(), rows)],
        }
    }

    /// How a move came out.
    #[must_use]
    pub fn motion(report: &MotionReport) -> Text {
        Text {
            pieces: vec![Piece::Motion(Box::new(report.clone()))],
        }
    }
}

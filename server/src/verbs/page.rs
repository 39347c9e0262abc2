//! Pages of long lists: a text shows a limited number of rows, and how to see more; JSON has all rows unless the request has
//! a limit.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::{Form, Text, Word, locals};

/// The default number of rows that are shown.
pub(super) const ROWS: usize = 50;

/// The default limit of rows of a very long list.
const MOST: usize = 100_000;

/// The option of how many rows.
pub(super) const LIMIT: Word = Word::new(
    "limit",
    "N",
    Form::NumberOption,
    "Show at most N rows, 0 for all [default: 50]",
);

/// The option for the first row.
pub(super) const SKIP: Word = Word::new(
    "skip",
    "N",
    Form::NumberOption,
    "Leave out the first N rows",
);

/// The options of a list.
pub(super) const WORDS: [Word; 3] = [LIMIT, SKIP, locals::FULL];

/// Arguments of a verb that lists something.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PageArgs {
    /// At most this many rows, 0 for all; default: all, of which a text shows the first page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// How many to skip at the start.
    pub skip: usize,
    /// All rows.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub full: bool,
}

impl PageArgs {
    /// Returns which rows the request selects.
    pub(super) fn page(&self) -> Page {
        Page {
            skip: self.skip,
            limit: self.limit,
            full: self.full,
        }
    }
}

/// Which rows of a list a request selects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Page {
    /// How many to skip at the start.
    pub skip: usize,
    /// At most this many; 0: all. Default: all of the data, and a page of the text.
    pub limit: Option<usize>,
    /// All of the text, too.
    pub full: bool,
}

impl Page {
    /// Keeps the selected rows. Returns how many are left out after them.
    pub(super) fn cut<T>(self, rows: &mut Vec<T>) -> usize {
        rows.drain(..self.skip.min(rows.len()));
        let limit = self.limit.filter(|limit| *limit > 0);
        let kept = limit.map_or(rows.len(), |limit| limit.min(rows.len()));
        let left = rows.len() - kept;
        rows.truncate(kept);
        left
    }

    /// Returns the numbers of the selected rows of a list that may be too long to keep as a whole: at most [`MOST`],
    /// unless the request selects all.
    pub(super) fn range(self) -> Range<usize> {
        let limit = match self.limit.unwrap_or(MOST) {
            0 => usize::MAX,
            limit => limit,
        };
        self.skip..self.skip.saturating_add(limit)
    }

    /// Returns the rows that a text shows, and its note if more follow: `left` after these rows, or some of them.
    pub(super) fn shown<T>(self, rows: &[T], left: usize) -> (&[T], Text) {
        let most = match (self.limit, self.full) {
            (None, false) => ROWS,
            _ => rows.len(),
        };
        let (shown, hidden) = rows.split_at(most.min(rows.len()));
        let left = left + hidden.len();
        let next = self.skip + shown.len();
        let more = format!("({left} more: --skip {next}, or --limit 0 for all)");
        match left {
            0 => (shown, Text::default()),
            _ => (shown, Text::hint(more)),
        }
    }
}

/// Returns whether a reply may omit how many rows are left out.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
pub(super) fn is_nothing(left_out: &usize) -> bool {
    *left_out == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(skip: usize, limit: Option<usize>, full: bool) -> Page {
        Page { skip, limit, full }
    }

    #[test]
    fn data_is_whole_unless_limited() {
        let cut = |page: Page| {
            let mut rows: Vec<usize> = (0..120).collect();
            let left = page.cut(&mut rows);
            (rows.first().copied(), rows.len(), left)
        };
        assert_eq!(cut(page(0, None, false)), (Some(0), 120, 0));
        assert_eq!(cut(page(0, Some(0), false)), (Some(0), 120, 0));
        assert_eq!(cut(page(50, Some(50), false)), (Some(50), 50, 20));
        assert_eq!(cut(page(100, Some(50), false)), (Some(100), 20, 0));
        assert_eq!(cut(page(500, None, false)), (None, 0, 0));
    }

    #[test]
    fn a_text_is_a_page_that_says_how_to_go_on() {
        let rows: Vec<usize> = (0..120).collect();
        let shown = |page: Page, left| {
            let (shown, more) = page.shown(&rows, left);
            (shown.len(), more)
        };
        let more = Text::hint("(70 more: --skip 50, or --limit 0 for all)");
        assert_eq!(shown(page(0, None, false), 0), (50, more));
        assert_eq!(shown(page(0, None, true), 0), (120, Text::default()));
        assert_eq!(shown(page(0, Some(0), false), 0), (120, Text::default()));
        let more = Text::hint("(7 more: --skip 180, or --limit 0 for all)");
        assert_eq!(shown(page(60, Some(120), false), 7), (120, more));
    }
}

//! The values of a parameter at the entries of its function, of which there may be millions: only the columns that
//! hold them are read, values are compared by their bits, and they become text only when a reader needs it.
//!
//! A window of events is read this way only if nothing else in it can show the parameter. A search event by event finds
//! the same changes.

use std::ops::Range;

use expr::ExprKind;

use super::parameter::Parameter;
use super::{HistoryScope, Tracked};
use crate::calls::Entered;
use crate::error::Result;
use crate::event::Kind;
use crate::timeline::Timeline;

/// A parameter that only its function has, in a register at the entry.
pub(super) struct AtEntry<'t> {
    function: u32,
    parameter: &'t Parameter,
}

impl Tracked {
    /// Returns the parameter that is tracked, once the first entry of its function has shown where it is; `None` if
    /// something else is tracked.
    pub(super) fn at_entry(&self) -> Option<AtEntry<'_>> {
        let (HistoryScope::Within(functions), ExprKind::Name(name)) =
            (&self.scope, &self.expression.kind)
        else {
            return None;
        };
        let mut ids = functions.ids.iter();
        let (Some(function), None) = (ids.next(), ids.next()) else {
            return None;
        };
        let parameter = self.parameters.found(*function, name)?;
        (!functions.is_inlined).then_some(AtEntry {
            function: *function,
            parameter,
        })
    }
}

impl AtEntry<'_> {
    /// Returns the entries of the function among the events `range`, in order; `None` if other events of them may show
    /// the parameter, or the thread of one is not known.
    ///
    /// # Errors
    /// The files cannot be read.
    pub fn entries(&self, timeline: &Timeline, range: &Range<u64>) -> Result<Option<Vec<Entered>>> {
        let Some(column) = self.parameter.column() else {
            return Ok(None);
        };
        let shows = |kind| {
            let marks = timeline.marks.between(kind, range.start, range.end - 1);
            !marks.is_empty()
        };
        if timeline.captures.is_any() || shows(Kind::Pause) || shows(Kind::Write) {
            return Ok(None);
        }
        let found = timeline.calls.entered_with(range, self.function, column)?;
        let is_known = found.iter().all(|entered| entered.tid.is_some());
        Ok(is_known.then_some(found))
    }

    /// Returns the bits of the parameter's own size.
    pub fn bits(&self, register: u64) -> u64 {
        register & self.parameter.mask
    }

    /// Returns whether two values differ as texts.
    pub fn differ(&self, a: u64, b: u64) -> bool {
        a != b && (self.parameter.is_integer || self.text(a) != self.text(b))
    }

    /// Writes a value.
    pub fn text(&self, bits: u64) -> String {
        self.parameter.text(bits)
    }
}

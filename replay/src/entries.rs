//! Entries of functions in the order of a run, a window of events at a time: a run past millions of calls reads each page
//! of them once.

use std::collections::BTreeSet;
use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::calls::CallHead;
use crate::error::Result;
use crate::history::Parameters;
use crate::moves::Direction;
use crate::timeline::Timeline;

/// Events of the first window.
const WINDOW: u64 = 1 << 16;
/// Events of the largest one.
const WIDEST: u64 = 1 << 19;
/// A window with fewer entries makes the next one wider.
const FEW: usize = 1 << 12;

/// A run from an event on.
pub struct Entries<'t> {
    timeline: &'t Timeline,
    functions: BTreeSet<u32>,
    direction: Direction,
    /// The events that were not passed yet.
    left: Range<u64>,
    width: u64,
}

impl<'t> Entries<'t> {
    /// Begins a run after `from`, or before it, up to `until`, which belongs to it, or to the end.
    #[must_use]
    pub fn new(
        timeline: &'t Timeline,
        functions: BTreeSet<u32>,
        (from, until): (u64, Option<u64>),
        direction: Direction,
    ) -> Entries<'t> {
        let left = match direction {
            Direction::Forward => from + 1..until.unwrap_or(timeline.last()).saturating_add(1),
            Direction::Back => until.unwrap_or(0)..from,
        };
        Entries {
            timeline,
            functions,
            direction,
            left,
            width: WINDOW,
        }
    }

    /// Returns the next window and the calls that are entered in it, in the order of the run; `None` at the end.
    ///
    /// # Errors
    /// The files cannot be read.
    pub fn window(&mut self) -> Result<Option<(Range<u64>, Vec<CallHead>)>> {
        if self.left.is_empty() {
            return Ok(None);
        }
        let Range { start, end } = self.left.clone();
        let window = match self.direction {
            Direction::Forward => start..end.min(start.saturating_add(self.width)),
            Direction::Back => start.max(end.saturating_sub(self.width))..end,
        };
        self.left = match self.direction {
            Direction::Forward => window.end..end,
            Direction::Back => start..window.start,
        };
        let mut calls = match self.functions.is_empty() {
            true => Vec::new(),
            false => self.timeline.calls.entered_in(&window, &self.functions)?,
        };
        calls.sort_unstable_by_key(|call| call.start);
        if self.direction == Direction::Back {
            calls.reverse();
        }
        if calls.len() < FEW {
            self.width = (2 * self.width).min(WIDEST);
        }
        Ok(Some((window, calls)))
    }
}

/// Most distinct sets of arguments whose answers are kept.
const MOST_ANSWERS: usize = 1 << 16;
/// Most arguments of a question.
const MOST_NAMES: usize = 4;

/// A question that depends only on numbers that functions get in registers: it has one answer for the same numbers.
#[derive(Default)]
pub struct Answers {
    names: Vec<String>,
    parameters: Parameters,
    known: FxHashMap<(u32, [u64; MOST_NAMES]), bool>,
}

impl Answers {
    /// Returns those to a question about the variables `names`; `None` if there are too many or too few of them.
    #[must_use]
    pub fn about(names: Vec<String>) -> Option<Answers> {
        (1..=MOST_NAMES).contains(&names.len()).then(|| Answers {
            names,
            ..Answers::default()
        })
    }

    /// Returns the answer at the entry of a call: one that is known, or that of `ask`. Only what was answered is kept.
    ///
    /// # Errors
    /// The files cannot be read.
    pub fn at_entry<E>(
        &mut self,
        timeline: &Timeline,
        call: &CallHead,
        ask: impl FnOnce() -> std::result::Result<bool, E>,
    ) -> Result<std::result::Result<bool, E>> {
        let numbers = self
            .parameters
            .numbers_at_entry(timeline, call, &self.names)?;
        let Some(numbers) = numbers else {
            return Ok(ask());
        };
        let key = (call.function, numbers);
        if let Some(known) = self.known.get(&key) {
            return Ok(Ok(*known));
        }
        let answer = ask();
        if let Ok(is_true) = &answer {
            if self.known.len() >= MOST_ANSWERS {
                self.known.clear();
            }
            self.known.insert(key, *is_true);
        }
        Ok(answer)
    }
}

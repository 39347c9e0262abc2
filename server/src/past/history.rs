//! Values over time: all changes of a value.

use std::collections::HashMap;
use std::ops::Range;

use debuginfo::value::ValueError;
use expr::Missing;
use replay::history::{self, Changes, HistoryScope, Progress};
use replay::{LoggedWrite, Tracked};
use serde::{Deserialize, Serialize};

use super::{Past, Position, frames_for, of_replay};
use crate::inspect::{self, Manner, View};
use crate::protocol::{Code, ExpressionFault, Failure};
use crate::quantity::count;
use crate::session::hex;
use crate::verbs::HistoryReply;

/// How many moments are read between two checks for Ctrl-C.
const MOMENTS: usize = 64;

/// The events that a search has passed.
struct Passed {
    /// At how many events the value was known.
    known_at: usize,
    /// How many changes there were.
    changes: usize,
}

/// A value that differs from the one seen before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The event that shows the value.
    pub seq: u64,
    /// The write is the instruction this many instructions later.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub steps: u64,
    /// The thread.
    pub thread: u32,
    /// The value seen before, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
    /// The value.
    pub value: String,
    /// A part of the value is omitted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shortened: bool,
    /// The function in which the thread was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// The file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The event is the write itself, and the place is that of the writing code.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_write: bool,
    /// The instruction that wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pc: Option<String>,
    /// The function that wrote, if it is one that the program's own function had called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// Other threads wrote there too at that moment: the value may be that of another one of these writes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
    /// The value changed while the program was not recorded: this stretch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_recorded: Option<String>,
    /// The text of the value is the same as before, and these bytes of it are not: `3 bytes at offset 5`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unshown: Option<String>,
    /// The value is that in a call around the innermost one of a recursive function: in the call that began with this event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_call: Option<u64>,
    /// Only changes are told, because the value is a bit field: a write that left it as it was is not told apart from those of its
    /// neighbours.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_changes: bool,
}

/// What precedes, in a hint, a command that tells more in a second run.
pub const SECOND_RUN: &str = "find its writes in a second run: ";

/// Why only the changes of a bit field are told.
pub(super) const SHARED_BYTES: &str =
    "a write that left a bit field as it was is not told apart from those of its neighbours";

fn is_nothing(number: &u64) -> bool {
    *number == 0
}

impl Change {
    pub(super) fn of_write(
        write: LoggedWrite,
        thread: u32,
        old: Option<String>,
        value: String,
    ) -> Change {
        let before = write.old.as_ref().filter(|_| old.as_ref() == Some(&value));
        let unshown = before.and_then(|before| changed_part(before, &write.new));
        // They are counted in what is logged, which may be more than the expression.
        let unshown = unshown.map(|part| format!("{part} of {}", write.target));
        Change {
            seq: write.seq,
            steps: 0,
            thread: write.tid.unwrap_or(thread),
            old,
            value,
            shortened: false,
            function: write.function,
            file: write.file,
            line: write.line,
            is_write: true,
            pc: write.pc.map(hex),
            via: write.via,
            shared: write.shared,
            not_recorded: None,
            unshown,
            of_call: None,
            only_changes: false,
        }
    }

    /// Says what a write did to the value called `name`.
    pub(crate) fn became(&self, name: &str) -> String {
        let value = &self.value;
        match (&self.old, &self.unshown) {
            (_, Some(part)) => {
                format!(
                    "the value of {name} stayed {value} as it is shown here, but {part} changed"
                )
            }
            (Some(old), None) if old == value => format!("{name} became {value} once more"),
            // A later write may have left it as it was.
            (Some(old), None) if self.only_changes => {
                format!("{name} last changed to {value}, from {old}")
            }
            (None, None) if self.only_changes => format!("{name} last changed to {value}"),
            (Some(old), None) => format!("{name} became {value}, after {old}"),
            (None, None) => format!("{name} became {value}"),
        }
    }
}

/// Describes the bytes that differ: the first one to the last one. `None` if none do.
pub(super) fn changed_part(old: &[u8], new: &[u8]) -> Option<String> {
    let differ = |at: &usize| old.get(*at) != new.get(*at);
    let first = (0..new.len()).find(differ)?;
    let last = (0..new.len()).rfind(differ)?;
    let bytes = count((last - first + 1) as u64, "byte");
    Some(format!("{bytes} at offset {first}"))
}

impl Past {
    /// Tracks an expression with its meaning in the frame of a position.
    pub(super) fn tracked_at(&self, expression: &str, here: Position) -> Result<Tracked, Failure> {
        Tracked::at(&self.timeline, expression, here.seq, here.tid, here.frame)
            .map_err(|error| of_replay(&error))
    }

    /// Passes the changes whose numbers are `wanted` to `take`, with the numbers, until it returns false. It may also receive
    /// others.
    fn each_change(
        &self,
        mut tracked: Tracked,
        wanted: &Range<usize>,
        is_interrupted: &dyn Fn() -> bool,
        mut take: impl FnMut(usize, history::Change) -> bool,
    ) -> Result<Passed, Failure> {
        let mut changes = Changes::of(&self.timeline).wanting(wanted.clone());
        loop {
            if is_interrupted() {
                return Err(of_replay(&replay::Error::Interrupted));
            }
            let progress = changes.next(&self.timeline, &mut tracked, MOMENTS);
            let goes_on = match progress.map_err(|error| of_replay(&error))? {
                Progress::Change(change) => take(changes.count() - 1, change),
                Progress::More => true,
                Progress::End => false,
            };
            if !goes_on {
                return Ok(Passed {
                    known_at: changes.known_at(),
                    changes: changes.count(),
                });
            }
        }
    }

    pub(super) fn described(&self, change: history::Change) -> Result<Change, Failure> {
        let write = self.timeline.logged_write(change.seq);
        if let Some(write) = write.map_err(|error| of_replay(&error))? {
            return Ok(of_logged(write, change));
        }
        let stand = self.timeline.stand(change.seq, change.tid);
        let stand = stand.map_err(|error| of_replay(&error))?;
        Ok(Change {
            seq: change.seq,
            steps: 0,
            thread: change.tid,
            old: change.old,
            shortened: change.shown.is_some(),
            value: change.shown.unwrap_or(change.new),
            function: stand.function,
            file: stand.file,
            line: stand.line,
            is_write: false,
            pc: None,
            via: None,
            shared: false,
            not_recorded: None,
            unshown: None,
            of_call: change.of_call,
            only_changes: false,
        })
    }

    /// Describes changes, of which there may be very many.
    fn all_described(&self, changes: Vec<history::Change>) -> Result<Vec<Change>, Failure> {
        let seqs: Vec<u64> = changes.iter().map(|change| change.seq).collect();
        let writes = self.timeline.logged_writes_at(&seqs);
        let mut writes = writes.map_err(|error| of_replay(&error))?;
        let described = changes
            .into_iter()
            .map(|change| match writes.remove(&change.seq) {
                Some(write) => Ok(of_logged(write, change)),
                None => self.described(change),
            });
        described.collect()
    }

    /// Returns whether the event of a change is the write: the program's own, or a user's.
    pub(super) fn is_exact(&self, change: &Change) -> Result<bool, Failure> {
        if change.is_write {
            return Ok(true);
        }
        let event = self.timeline.other(change.seq);
        let event = event.map_err(|error| of_replay(&error))?;
        Ok(event.is_some_and(|event| event.kind == "write"))
    }

    /// Where an expression over global variables lies here. A name that means another variable in the frame is none.
    pub(super) fn global_place(
        &self,
        expression: &str,
        here: Position,
    ) -> Option<inspect::MemoryPlace> {
        let tracked = self.tracked_at(expression, here).ok()?;
        if tracked.scope() != &HistoryScope::Everywhere {
            return None;
        }
        let place = self.look_at(here, 1, |looked| {
            let view = View {
                frames: &[],
                frame: 0,
                ..looked.view()
            };
            inspect::evaluate_place(&view, expression)
        });
        place.ok()
    }

    /// Finds all changes of a value, and describes those that `cut` keeps. `cut` returns how many follow them.
    ///
    /// # Errors
    /// The expression means nothing here, or the search was interrupted.
    pub fn history(
        &self,
        expression: &str,
        manner: Manner,
        is_interrupted: &dyn Fn() -> bool,
        wanted: &Range<usize>,
    ) -> Result<HistoryReply, Failure> {
        if self.timeline.has_every_instruction() {
            return self.instructions_that_wrote(expression, wanted);
        }
        let here = self.position();
        self.must_be_told_apart(expression, here, false)?;
        let reply = self
            .changes_from(expression, manner, here, is_interrupted, wanted)
            .map_err(|failure| self.behind_null(failure, expression))?;
        if reply.known_at > 0 || !reply.changes.is_empty() {
            return Ok(reply);
        }
        let Some(there) = self.logged_at(expression, here)? else {
            return match self.why_never(expression, here)? {
                Some(failure) => Err(failure),
                None => Ok(reply),
            };
        };
        let logged = self.changes_from(&there.expression, manner, here, is_interrupted, wanted);
        // The type may have no name.
        let logged = logged.ok().filter(|logged| logged.known_at > 0);
        Ok(logged.map_or(reply, |logged| HistoryReply {
            expression: expression.to_owned(),
            place: Some(there.text),
            ..logged
        }))
    }

    /// Returns why a value that no event shows cannot be known at any: its function was never called, or has no such variable.
    pub(super) fn why_never(
        &self,
        expression: &str,
        here: Position,
    ) -> Result<Option<Failure>, Failure> {
        let found = self.look_at(here, frames_for(expression), |looked| {
            inspect::evaluate(&looked.view(), expression, Manner::of_many(false), None)
        });
        let missing = Some(ExpressionFault::Missing(Missing::OfFunction));
        if let Err(failure) = found
            && failure.expression == missing
        {
            return Ok(Some(failure));
        }
        let tracked = self.tracked_at(expression, here)?;
        let HistoryScope::Within(functions) = tracked.scope() else {
            return Ok(None);
        };
        if functions.is_inlined || functions.ids.is_empty() {
            return Ok(None);
        }
        for function in &functions.ids {
            let entries = self.timeline.entries(*function, 1);
            if !entries.map_err(|error| of_replay(&error))?.is_empty() {
                return Ok(None);
            }
        }
        let name = functions.name.trim_start_matches("*::");
        let message =
            format!("no call of {name} is recorded: {expression} has a value only during one");
        let failure = Failure::new(Code::EvalFailed, message);
        Ok(Some(failure.hint("SELECT function, count(*) FROM calls GROUP BY function shows which functions were called")))
    }

    /// Says of a pointer that no event shows but as null when that was, and which second run would tell more: it may have been set
    /// since.
    pub(super) fn behind_null(&self, failure: Failure, expression: &str) -> Failure {
        let null = ValueError::Null.to_string();
        if failure.code != Code::EvalFailed || !failure.message.starts_with(&null) {
            return failure;
        }
        let told = self.at_end_unless_chosen(|here| {
            let found = self.look_at(here, frames_for(expression), |looked| {
                inspect::evaluate(&looked.view(), expression, Manner::of_many(false), None)
            });
            Ok((found.err(), self.how_to_log(expression, here)))
        });
        let (now, command) = told.unwrap_or_default();
        let failure = now
            .filter(|now| now.message.starts_with(&null))
            .unwrap_or(failure);
        let failure = match failure.message == null {
            true => failure,
            false => Failure {
                message: format!("{}; what it was later is not recorded", failure.message),
                ..failure
            },
        };
        match command {
            Some(command) => failure.hint(format!("{SECOND_RUN}{command}")),
            None => failure,
        }
    }

    /// Finds the changes of a value at the events that show it.
    fn changes_from(
        &self,
        expression: &str,
        manner: Manner,
        here: Position,
        is_interrupted: &dyn Fn() -> bool,
        wanted: &Range<usize>,
    ) -> Result<HistoryReply, Failure> {
        // There may be millions of changes: only the requested ones are kept.
        let mut changes = Vec::new();
        let mut before = ShownBefore::default();
        let tracked = self.tracked_at(expression, here)?.showing(manner.options());
        let passed = self.each_change(tracked, wanted, is_interrupted, |number, mut change| {
            before.fill(&mut change);
            if wanted.contains(&number) {
                changes.push(change);
            }
            true
        })?;
        let left_out = passed.changes.saturating_sub(wanted.end);
        let changes = self.all_described(changes)?;
        let mut has_gaps = false;
        for change in changes.iter().skip(1) {
            has_gaps |= !self.is_exact(change)?;
        }
        let hint = has_gaps
            .then(|| self.how_to_log(expression, here))
            .flatten();
        Ok(HistoryReply {
            expression: expression.to_owned(),
            changes,
            known_at: passed.known_at,
            left_out,
            searched: None,
            place: None,
            hint,
        })
    }
}

/// The text that was shown last, of each thread's own value or of the only value.
#[derive(Default)]
struct ShownBefore(HashMap<Option<u32>, String>);

impl ShownBefore {
    /// Adds to a change the text shown for the previous value.
    fn fill(&mut self, change: &mut history::Change) {
        let before = match change.shown.clone() {
            Some(shown) => self.0.insert(change.own, shown),
            None => self.0.remove(&change.own),
        };
        if before.is_some() {
            change.old = before;
        }
    }
}

/// Describes a change whose write was logged.
fn of_logged(write: LoggedWrite, change: history::Change) -> Change {
    let shortened = change.shown.is_some();
    let value = change.shown.unwrap_or(change.new);
    Change {
        shortened,
        ..Change::of_write(write, change.tid, change.old, value)
    }
}

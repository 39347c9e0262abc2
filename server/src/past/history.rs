//! Values over time: all changes of one, and the last one before a moment.

use replay::Tracked;
use replay::history::{self, Changes, Progress};
use serde::{Deserialize, Serialize};

use super::{Past, of_replay};
use crate::inspect::{self, ValueFormat};
use crate::protocol::Failure;
use crate::verbs::{HistoryReply, LastWriteReply};

/// Moments that are looked at between two looks for Ctrl-C.
const MOMENTS: usize = 64;

/// A value that was seen, and was not the one seen before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The event that shows it.
    pub seq: u64,
    /// The thread.
    pub thread: u32,
    /// The value that was seen before, if one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
    /// The value.
    pub value: String,
    /// Where the thread stood.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// The file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

impl Past {
    /// Follows an expression as it is meant where the frame that is looked at is.
    pub(super) fn tracked(&self, expression: &str) -> Result<Tracked, Failure> {
        let here = self.position();
        Tracked::at(&self.timeline, expression, here.seq, here.tid, here.frame)
            .map_err(|error| of_replay(&error))
    }

    /// Hands all changes to `take`, until it returns false. Returns at how many events the value was known.
    fn each_change(
        &self,
        expression: &str,
        is_interrupted: &dyn Fn() -> bool,
        mut take: impl FnMut(history::Change) -> bool,
    ) -> Result<usize, Failure> {
        let mut tracked = self.tracked(expression)?;
        let mut changes = Changes::of(&self.timeline);
        loop {
            if is_interrupted() {
                return Err(of_replay(&replay::Error::Interrupted));
            }
            let progress = changes.next(&self.timeline, &mut tracked, MOMENTS);
            let goes_on = match progress.map_err(|error| of_replay(&error))? {
                Progress::Change(change) => take(change),
                Progress::More => true,
                Progress::End => false,
            };
            if !goes_on {
                return Ok(changes.known_at());
            }
        }
    }

    fn described(&self, change: history::Change) -> Result<Change, Failure> {
        let stand = self.timeline.stand(change.seq, change.tid);
        let stand = stand.map_err(|error| of_replay(&error))?;
        Ok(Change {
            seq: change.seq,
            thread: change.tid,
            old: change.old,
            value: change.new,
            function: stand.function,
            file: stand.file,
            line: stand.line,
        })
    }

    /// Finds all changes of a value.
    ///
    /// # Errors
    /// The expression means nothing here, or the search was interrupted.
    pub fn history(
        &self,
        expression: &str,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<HistoryReply, Failure> {
        let mut changes = Vec::new();
        let known_at = self.each_change(expression, is_interrupted, |change| {
            changes.push(change);
            true
        })?;
        let changes = changes.into_iter().map(|change| self.described(change));
        Ok(HistoryReply {
            expression: expression.to_owned(),
            changes: changes.collect::<Result<_, _>>()?,
            known_at,
        })
    }

    /// Finds the last change of a value up to the moment that is looked at.
    ///
    /// # Errors
    /// The expression means nothing here, or the search was interrupted.
    pub fn last_write(
        &self,
        expression: &str,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<LastWriteReply, Failure> {
        let here = self.position();
        let mut last: Option<history::Change> = None;
        self.each_change(expression, is_interrupted, |change| {
            let is_past = change.seq <= here.seq;
            if is_past && change.own.is_none_or(|own| own == here.tid) {
                last = Some(change);
            }
            is_past
        })?;
        let before = last.as_ref().and_then(|change| {
            let (seq, tid) = change.old_at?;
            Some(history::Change {
                seq,
                tid,
                own: change.own,
                old: None,
                old_at: None,
                new: change.old.clone()?,
            })
        });
        let described = |change: history::Change| self.described(change);
        let now = self.look(1, |looked| {
            inspect::evaluate(&looked.view(), expression, ValueFormat::default(), None)
        });
        Ok(LastWriteReply {
            expression: expression.to_owned(),
            before: before.map(described).transpose()?,
            after: last.map(described).transpose()?,
            now: now.ok().map(|value| value.shown),
        })
    }
}

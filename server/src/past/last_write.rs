//! The last change of a value before a moment.

use replay::history;

use super::{Change, Past, Position, frames_for, of_replay};
use crate::inspect::{self, Manner};
use crate::protocol::Failure;
use crate::verbs::LastWriteReply;

impl Past {
    /// Finds the last change of a value up to the position that the user has chosen, or up to the end.
    pub fn last_write(
        &self,
        expression: &str,
        manner: Manner,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<LastWriteReply, Failure> {
        self.at_end_unless_chosen(|here| {
            self.last_write_at(expression, manner, here, is_interrupted)
        })
    }

    /// The same up to another moment.
    pub(super) fn last_write_at(
        &self,
        expression: &str,
        manner: Manner,
        here: Position,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<LastWriteReply, Failure> {
        if self.timeline.has_every_instruction() {
            return self.last_instruction_to_write(expression, manner, here);
        }
        self.must_be_told_apart(expression, here, true)?;
        let reply = self
            .last_change_at(expression, manner, here, is_interrupted)
            .map_err(|failure| self.behind_null(failure, expression))?;
        if reply.after.as_ref().is_some_and(|after| after.is_write) {
            return Ok(reply);
        }
        let Some(there) = self.logged_at(expression, here)? else {
            let is_unknown = reply.after.is_none() && reply.later.is_none();
            let why = match is_unknown {
                true => self.why_unknown(expression, here, is_interrupted)?,
                false => None,
            };
            return why.map_or(Ok(reply), Err);
        };
        let logged = self.last_change_at(&there.expression, manner, here, is_interrupted);
        // Only a variable's memory was another one's before its call. Pointers may lead to where they do only since the value
        // before, but these bytes were written when they were written.
        let before = reply.before.as_ref().map_or(0, |before| before.seq);
        let since = match self.in_each_call(expression, here) {
            Some(_) => before,
            None => 0,
        };
        let tells_more = |logged: &LastWriteReply| match &logged.after {
            Some(after) => after.is_write && after.seq >= since,
            None => reply.after.is_none() && reply.later.is_none() && logged.later.is_some(),
        };
        // The type may have no name.
        let logged = logged.ok().filter(tells_more);
        Ok(logged.map_or(reply, |logged| LastWriteReply {
            expression: expression.to_owned(),
            place: Some(there.text),
            ..logged
        }))
    }

    /// Returns why the last change of a value up to here cannot be known, or is not known although events show a value.
    fn why_unknown(
        &self,
        expression: &str,
        here: Position,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Option<Failure>, Failure> {
        match self.why_never(expression, here)? {
            Some(failure) => Ok(Some(failure)),
            None => self.why_in_outer_calls(expression, here, is_interrupted),
        }
    }

    /// Finds the last change of a value at the events that show it.
    fn last_change_at(
        &self,
        expression: &str,
        manner: Manner,
        here: Position,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<LastWriteReply, Failure> {
        let mut tracked = self.tracked_at(expression, here)?.showing(manner.options());
        let last = tracked.last_change_up_to(&self.timeline, (here.seq, here.tid), is_interrupted);
        let last = last.map_err(|error| of_replay(&error))?;
        let before = last.as_ref().and_then(|last| {
            let (seq, tid) = last.change.old_at?;
            Some(history::Change {
                seq,
                tid,
                own: last.change.own,
                old: None,
                old_at: None,
                new: last.change.old.clone()?,
                shown: last.old_shown.clone(),
                of_call: last.change.of_call,
            })
        });
        let described = |change: history::Change| self.described(change);
        let seen_at = last.as_ref().map(|last| last.seen_at);
        let now = self.look_at(here, frames_for(expression), |looked| {
            inspect::evaluate(&looked.view(), expression, manner, None)
        });
        let after = last.map(|last| described(last.change)).transpose()?;
        let again = after
            .as_ref()
            .map(|after| self.written_again(expression, after, here))
            .transpose()?
            .flatten();
        let is_exact = match &after {
            Some(after) => self.is_exact(after)?,
            None => false,
        };
        let is_write = after.as_ref().is_some_and(|after| after.is_write);
        let later = self.known_later(expression, here, is_interrupted)?;
        // The writes are recorded: only this moment is too early.
        let is_logged_later = later.as_ref().is_some_and(|later| later.last.is_write);
        Ok(LastWriteReply {
            expression: expression.to_owned(),
            before: before.map(described).transpose()?,
            is_logged: is_write && self.is_logged(expression, now.as_ref().ok(), here)?,
            seen_at,
            place: None,
            is_exact: false,
            is_remapped: false,
            is_unmapped: false,
            since: None,
            not_recorded: Vec::new(),
            hint: match is_exact || again.is_some() || is_logged_later {
                true => None,
                false => self.how_to_log(expression, here),
            },
            later,
            again,
            after,
            now: now.ok().map(|value| value.shown),
        })
    }

    /// Finds the last logged write after `after` and up to `here`, if there was one: it wrote the same value.
    fn written_again(
        &self,
        expression: &str,
        after: &Change,
        here: Position,
    ) -> Result<Option<Change>, Failure> {
        let Some(place) = self.global_place(expression, here) else {
            return Ok(None);
        };
        let range = place.address..place.address.saturating_add(place.len);
        let last = self.timeline.last_logged_to(&range, here.seq);
        let last = last.map_err(|error| of_replay(&error))?;
        let later = last.filter(|write| write.seq > after.seq);
        Ok(later.map(|write| {
            let value = after.value.clone();
            Change::of_write(write, after.thread, Some(value.clone()), value)
        }))
    }
}

//! Values whose writes were logged.

use super::{Change, Past, Position, frames_for, of_replay};
use crate::inspect::{self, Manner, View};
use crate::protocol::Failure;
use crate::session::hex;

/// Where an expression lies whose memory is logged.
pub(super) struct Logged {
    /// An expression for that address.
    pub expression: String,
    /// The address, and since when it may be another one.
    pub text: String,
}

impl Past {
    /// Returns where an expression lies here, if writes to there were logged: what it leads to may have been there before the
    /// expression led to it.
    pub(super) fn logged_at(
        &self,
        expression: &str,
        here: Position,
    ) -> Result<Option<Logged>, Failure> {
        let found = self.look_at(here, frames_for(expression), |looked| {
            let view = looked.view();
            let place = inspect::evaluate_place(&view, expression)?;
            let address = format!("&({expression})");
            let address = inspect::evaluate(&view, &address, Manner::of_many(false), None);
            Ok((
                place,
                address.ok().and_then(|address| address.shown.stale_since),
            ))
        });
        let Ok((place, stale)) = found else {
            return Ok(None);
        };
        let range = place.address..place.address.saturating_add(place.len);
        let has_writes = self.timeline.has_logged_in(&range);
        if !has_writes.map_err(|error| of_replay(&error))? {
            return Ok(None);
        }
        let address = hex(place.address);
        let stale = stale.map(|event| format!(" (as of event {event})"));
        Ok(Some(Logged {
            expression: format!("*({} *){address}", place.ty.name()),
            text: format!("{address}{}", stale.unwrap_or_default()),
        }))
    }

    /// Returns the last `most` logged writes to a place, by the name under which it was logged, and how many there are in
    /// all.
    ///
    /// # Errors
    /// The recording cannot be read.
    pub fn logged_writes(&self, target: &str, most: usize) -> Result<(Vec<Change>, u64), Failure> {
        let found = self.timeline.logged_writes(target, most);
        let (writes, count) = found.map_err(|error| of_replay(&error))?;
        let Some(last) = writes.last() else {
            return Ok((Vec::new(), count));
        };
        let seq = last.seq;
        let at = Position::of_event(seq, last.tid.unwrap_or_default());
        self.look_at(at, 1, |looked| {
            // As it was named: outside of any function.
            let view = View {
                frames: &[],
                ..looked.view()
            };
            let place = inspect::evaluate_place(&view, target);
            // A name that only a library has is visible to its own code.
            let place = place.or_else(|_| inspect::evaluate_place(&looked.view(), target));
            // It may lie in a call, or behind a pointer that is not known.
            let ty = place.map_or_else(
                |_| replay::history::type_of_logged(&self.timeline, target, seq),
                |place| Some(place.ty),
            );
            let text = |bytes: &[u8]| match &ty {
                Some(ty) if ty.size() == Some(bytes.len() as u64) => {
                    inspect::bytes_text(view.space, view.machine, ty, bytes)
                }
                _ => inspect::hex_bytes(bytes),
            };
            let changes = writes.into_iter().map(|write| {
                let (old, new) = (write.old.as_deref().map(&text), text(&write.new));
                Change::of_write(write, 0, old, new)
            });
            Ok((changes.collect(), count))
        })
    }

    /// Writes logged bytes as a value of the place's type.
    pub(super) fn logged_text(
        &self,
        place: &inspect::MemoryPlace,
        here: Position,
        bytes: &[u8],
    ) -> String {
        let text = self.look_at(here, 1, |looked| {
            let view = looked.view();
            Ok(inspect::bytes_text(
                view.space,
                view.machine,
                &place.ty,
                bytes,
            ))
        });
        text.ok()
            .filter(|_| place.ty.size() == Some(bytes.len() as u64))
            .unwrap_or_else(|| inspect::hex_bytes(bytes))
    }

    /// Returns whether a value that may have changed is that of the last logged write, or was seen after it.
    pub(super) fn is_logged(
        &self,
        expression: &str,
        now: Option<&inspect::ValueReport>,
        here: Position,
    ) -> Result<bool, Failure> {
        let Some(seq) = now.and_then(|now| now.shown.stale_since) else {
            return Ok(false);
        };
        let write = self.timeline.logged_write(seq);
        if write.map_err(|error| of_replay(&error))?.is_some() {
            return Ok(true);
        }
        let place = self.look_at(here, frames_for(expression), |looked| {
            inspect::evaluate_place(&looked.view(), expression)
        });
        let Ok(place) = place else { return Ok(false) };
        let range = place.address..place.address.saturating_add(place.len);
        let last = self.timeline.last_logged_to(&range, here.seq);
        Ok(last.map_err(|error| of_replay(&error))?.is_some())
    }
}

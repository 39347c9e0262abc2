//! Moves of a thread to a place in the selected frame or in an outer one.

use debuginfo::Machine;

use super::thread::Thread;
use super::{Instant, Walked, activation};
use crate::error::{Error, Result};
use crate::timeline::Timeline;

/// The goal of a thread: one of the addresses, in the frame or an outer one, or the end of the frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Until {
    /// The addresses of the place.
    pub addresses: Vec<u64>,
    /// The frame: the stack pointer once it has returned.
    pub cfa: u64,
    /// Where it returns to, if that is known.
    pub back: Option<u64>,
    /// What the frame calls may reach the place, too.
    pub deeper: bool,
}

impl Timeline {
    /// Moves with a thread from a moment to a place.
    ///
    /// # Errors
    /// Instructions are not recorded or cannot be run, or [`Error::Interrupted`].
    pub fn walk_until(&self, from: Instant, tid: u32, until: Until) -> Result<(Instant, Walked)> {
        let every = self.every.as_ref().ok_or_else(|| self.no_instructions())?;
        let position = self.position_of(from)?;
        let (spaces, end) = (self.spaces()?, every.outline()?.end);
        let signed = tid.cast_signed();
        let found = every.at(position, move |replay| {
            if Thread::new(replay, signed).is_none() {
                return Ok(None);
            }
            let Until {
                addresses,
                cfa,
                back,
                deeper,
            } = until;
            let stops: Vec<u64> = addresses.iter().copied().chain(back).collect();
            let found = replay.next_stop(&stops, end, &mut |replay| {
                let Some(thread) = Thread::new(replay, signed) else {
                    return false;
                };
                if replay.thread() != signed {
                    return false;
                }
                if Some(thread.rip()) == back && thread.rsp() >= cfa {
                    return true;
                }
                if !addresses.contains(&thread.rip()) {
                    return false;
                }
                let space = spaces.at(replay.position());
                let frame = || activation(space, &thread as &dyn Machine);
                deeper || frame().is_some_and(|frame| frame.cfa >= cfa)
            })?;
            Ok(Some((replay.position(), found.is_some())))
        })?;
        let Some((position, is_there)) = found else {
            return Err(Error::NoMove(
                format!("thread {tid} has ended or has not begun at this moment").into(),
            ));
        };
        let walked = match is_there {
            true => Walked::Done,
            false => Walked::AtTheEdge,
        };
        Ok((self.instant(position)?, walked))
    }
}

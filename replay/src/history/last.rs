//! The last change of a value up to a moment, found backwards from there.

use rustc_hash::FxHashMap;

use super::changes::{Change, Known, change, known};
use super::entries::AtEntry;
use super::walk::Walk;
use super::{Sight, Tracked};
use crate::calls::Entered;
use crate::error::{Error, Result};
use crate::moves::Direction;
use crate::timeline::Timeline;

/// The last change of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastChange {
    /// The change, with the event that showed the old value last.
    pub change: Change,
    /// The old value in the form that [`Tracked::showing`] selects, if that leaves something out.
    pub old_shown: Option<String>,
    /// The last event that showed the new value.
    pub seen_at: u64,
}

/// The last events with the same value, of which the first has been reached so far.
struct Stretch {
    first: Known,
    /// The value as bits of the parameter that is tracked.
    bits: Option<u64>,
}

/// What a walk back has found.
struct Search {
    tid: u32,
    /// The last event that showed the value.
    seen_at: Option<u64>,
    /// By the thread that owns the value, where threads do not share it; `None`: that stretch is whole.
    stretches: FxHashMap<Option<u32>, Option<Stretch>>,
    best: Option<LastChange>,
}

impl Search {
    /// Takes the next earlier event that shows the value.
    fn take(&mut self, known: Known, bits: Option<u64>) {
        let own = known.own;
        if own.is_some_and(|own| own != self.tid) {
            return;
        }
        self.seen_at.get_or_insert(known.seq);
        let Some(open) = self.stretches.get_mut(&own) else {
            let stretch = Stretch { first: known, bits };
            self.stretches.insert(own, Some(stretch));
            return;
        };
        match open.take() {
            Some(stretch) if stretch.first.value == known.value => {
                *open = Some(Stretch { first: known, bits });
            }
            Some(stretch) => self.offer(stretch.first, Some(known)),
            None => {}
        }
    }

    /// Takes the next earlier entry.
    fn enter(&mut self, parameter: &AtEntry<'_>, entered: &Entered) {
        let (Some(bits), Some(tid)) = (entered.bits, entered.tid) else {
            return;
        };
        let bits = parameter.bits(bits);
        if let Some(Some(stretch)) = self.stretches.get_mut(&Some(tid))
            && stretch
                .bits
                .is_some_and(|same| !parameter.differ(same, bits))
        {
            stretch.first.seq = entered.seq;
            return;
        }
        let known = Known {
            seq: entered.seq,
            tid,
            own: Some(tid),
            value: parameter.text(bits),
            shown: None,
            of_call: None,
        };
        self.take(known, Some(bits));
    }

    /// Keeps the later one of two changes.
    fn offer(&mut self, known: Known, old: Option<Known>) {
        let is_later = |best: &LastChange| known.seq > best.change.seq;
        let seen_at = self.seen_at.unwrap_or(known.seq);
        if self.best.as_ref().is_none_or(is_later) {
            let old_at = old.as_ref().map(|old| (old.seq, old.tid));
            let (value, old_shown) = old.map(|old| (old.value, old.shown)).unzip();
            self.best = Some(LastChange {
                change: Change {
                    old_at,
                    ..change(known, value)
                },
                old_shown: old_shown.flatten(),
                seen_at,
            });
        }
    }

    /// Returns whether no earlier event can show a later change.
    fn is_over(&self) -> bool {
        let open = || self.stretches.values().flatten();
        let best = self.best.as_ref();
        best.is_some_and(|best| open().all(|stretch| stretch.first.seq < best.change.seq))
    }

    /// There are no earlier events.
    fn end(mut self) -> Option<LastChange> {
        let first: Vec<Known> = self
            .stretches
            .drain()
            .filter_map(|(_, open)| Some(open?.first))
            .collect();
        for known in first {
            self.offer(known, None);
        }
        self.best
    }
}

impl Tracked {
    /// Returns the last change up to event `until` of the value that thread `tid` sees; the first event that shows a value
    /// counts as one. It polls `stop` to give up early.
    ///
    /// # Errors
    /// [`Error::Expression`]: the expression means nothing anywhere. [`Error::Interrupted`], or the files cannot be read.
    pub fn last_change_up_to(
        &mut self,
        timeline: &Timeline,
        (until, tid): (u64, u32),
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<LastChange>> {
        let mut search = Search {
            tid,
            seen_at: None,
            stretches: FxHashMap::default(),
            best: None,
        };
        let mut walk = Walk::over(0..until + 1, Direction::Back);
        let (mut has_meaning, mut failure) = (false, None);
        while !search.is_over() {
            if stop() {
                return Err(Error::Interrupted);
            }
            if let Some(parameter) = self.at_entry()
                && let Some(entered) = walk.next_entries(timeline, &parameter)?
            {
                has_meaning = true;
                for entered in entered.iter().rev() {
                    search.enter(&parameter, entered);
                    if search.is_over() {
                        break;
                    }
                }
                continue;
            }
            let Some(when) = walk.next(timeline, &self.scope)? else {
                break;
            };
            let Some(when) = when else { continue };
            match self.sight_on(timeline, &mut walk, &when)? {
                Sight::Known(value, own) => {
                    has_meaning = true;
                    search.take(known(timeline, &when, value, own)?, None);
                }
                Sight::Unknown => has_meaning = true,
                Sight::Meaningless(why) => failure = Some(why),
                Sight::Elsewhere => {}
            }
        }
        let found = match search.is_over() {
            true => search.best,
            false => search.end(),
        };
        match failure {
            Some(why) if !has_meaning && !self.means_something_after(timeline, until, stop)? => {
                Err(Error::expression(why))
            }
            _ => Ok(found),
        }
    }

    /// Returns whether the expression means something at an event after `seq`.
    fn means_something_after(
        &mut self,
        timeline: &Timeline,
        seq: u64,
        stop: &dyn Fn() -> bool,
    ) -> Result<bool> {
        let mut walk = Walk::over(seq + 1..timeline.events(), Direction::Forward);
        while let Some(when) = walk.next(timeline, &self.scope)? {
            if stop() {
                return Err(Error::Interrupted);
            }
            let Some(when) = when else { continue };
            let sight = self.sight_on(timeline, &mut walk, &when)?;
            if matches!(sight, Sight::Known(..) | Sight::Unknown) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

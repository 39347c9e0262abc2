//! Variables of the call that made a recursive one. What was captured at the entry of the inner call shows them, while a name
//! means the innermost call.

use debuginfo::Frame;

use super::changes::Known;
use super::walk::{NEAR_FRAMES, When};
use super::{Functions, HistoryScope, Sight, Tracked};
use crate::calls::CallHead;
use crate::error::Result;
use crate::machine::StateMachine;
use crate::moment::Moment;
use crate::timeline::Timeline;

/// The length of the slot of a return address, which ends at the CFA.
const SLOT: u64 = 8;

impl Tracked {
    /// Evaluates the expression in the call of one of the functions that made the one which begins here; `None` if nothing here
    /// shows it there.
    pub(super) fn known_in_caller(
        &self,
        timeline: &Timeline,
        when: &When,
    ) -> Result<Option<Known>> {
        let (HistoryScope::Within(functions), Some(call)) = (&self.scope, &when.entered) else {
            return Ok(None);
        };
        let caller = functions.captured_caller(timeline, call)?;
        let (Some(caller), Some(tid)) = (caller, call.tid) else {
            return Ok(None);
        };
        let moment = Moment::at(timeline, when.seq, tid, NEAR_FRAMES)?;
        let frames = &moment.trace.backtrace.frames;
        let entry = timeline.entry_of(caller.function, when.seq);
        let is_its = |frame: &Frame| {
            let is_there = frame.function_entry == entry && frame.pc_is_known && !frame.inlined;
            is_there && frame.cfa == Some(caller.slot.wrapping_add(SLOT))
        };
        let Some(index) = frames.iter().position(is_its).filter(|_| entry.is_some()) else {
            return Ok(None);
        };
        let machine = StateMachine::new(&moment.state, &moment.space);
        let sight = self.sight_in(&moment.space, &machine, (frames, index), tid);
        let Sight::Known(seen, own) = sight else {
            return Ok(None);
        };
        Ok(Some(Known {
            seq: when.seq,
            tid,
            own,
            value: seen.whole,
            shown: seen.shown,
            of_call: Some(caller.start),
        }))
    }
}

impl Functions {
    /// Returns the call of one of these functions that made `call`, if something was captured where `call` begins.
    fn captured_caller(&self, timeline: &Timeline, call: &CallHead) -> Result<Option<CallHead>> {
        if !timeline.captures.is_any() {
            return Ok(None);
        }
        let caller = timeline.parent(call)?;
        let caller = caller.filter(|caller| self.ids.contains(&caller.function));
        match caller {
            Some(caller) => Ok(timeline.captures.at(call.start)?.map(|_| caller)),
            None => Ok(None),
        }
    }
}

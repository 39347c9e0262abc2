//! Which open calls are certain to be on the stack.
//!
//! A call that returned was there all the time. One that was unwound, or open when the program ended, may have been left
//! before, without an event: by `longjmp`, for example. It is certain to be there if its function is the one that the thread
//! was in, or that made a call which is certain to be there: the innermost recorded call of that function is then the one
//! whose code runs. It is also certain if a signal ended the program in this thread, and the return address was still in
//! its place then.

use debuginfo::{AddressSpace, Register};

use crate::calls::CallHead;
use crate::error::Result;
use crate::event::Event;
use crate::state::{Link, State};

impl State<'_> {
    /// Returns whether open call number `index` of the thread, from 0, the innermost, is certain to be on the stack.
    pub(crate) fn is_on_stack(&self, space: &AddressSpace, index: usize) -> bool {
        loop {
            let known = self.on_stack.borrow();
            if let Some(is_certain) = known.get(index) {
                return *is_certain;
            }
            let at = known.len();
            let is_inner_certain = known.last().copied();
            drop(known);
            let Ok(Some(link)) = self.open_call(at) else {
                return false;
            };
            let is_certain = link.call.returned()
                || match is_inner_certain {
                    None => self.is_innermost(space, &link),
                    Some(false) => false,
                    Some(true) => (self.open_call(at - 1).ok().flatten())
                        .is_some_and(|inner| self.made(space, &link, &inner)),
                }
                || self.was_there_at_the_end(&link).unwrap_or(false);
            self.on_stack.borrow_mut().push(is_certain);
        }
    }

    /// Returns the recorded call that made the frame with this CFA, of the function with this entry, if it is certain.
    pub(crate) fn call_of_frame(
        &self,
        space: &AddressSpace,
        cfa: u64,
        entry: u64,
    ) -> Option<CallHead> {
        let slot = cfa.wrapping_sub(8);
        let mut index = self.first_reaching(slot);
        loop {
            let call = self.open_call(index).ok()??.call;
            if call.slot == slot
                && self.timeline.entry_of(call.function, self.seq) == Some(entry)
                && !self.has_lost_since(call.start)
            {
                return self.is_on_stack(space, index).then_some(call);
            }
            index += 1;
        }
    }

    /// Returns whether the thread was in the function of its innermost open call.
    fn is_innermost(&self, space: &AddressSpace, link: &Link) -> bool {
        let own = |tid: Option<u32>| tid == Some(self.tid);
        match self.event() {
            Ok(Event::Enter(call)) if own(call.tid) => call.start == link.call.start,
            Ok(Event::Leave(call)) if own(call.tid) => {
                let address = self.timeline.return_address(call).ok().flatten();
                call.returned() && address.is_some_and(|to| self.is_of(space, link, to - 1))
            }
            _ => match self.register(Register::RIP).is_known() {
                true => (self.register(Register::RIP).value())
                    .is_some_and(|pc| self.is_of(space, link, *pc)),
                false => false,
            },
        }
    }

    /// Returns whether `outer` made the call `inner`, which is on the stack.
    fn made(&self, space: &AddressSpace, outer: &Link, inner: &Link) -> bool {
        if inner.call.tail && inner.slot == outer.slot {
            return true;
        }
        outer.slot > inner.slot
            && (inner.returns_to).is_some_and(|to| self.is_of(space, outer, to.wrapping_sub(1)))
    }

    /// Returns the innermost call from `call` outwards that is not known to have been left without a return before the
    /// program ended: such calls may have been left before this event. The recorder sees that only at a later event.
    pub(crate) fn not_left(&self, mut call: Option<CallHead>) -> Result<Option<CallHead>> {
        while let Some(head) = call {
            let is_left = match head.end.filter(|_| !head.returned()) {
                None => false,
                Some(end) => {
                    self.timeline.ts_ns(end)? < self.timeline.ts_ns(self.timeline.last())?
                }
            };
            let is_entered =
                matches!(self.event(), Ok(Event::Enter(now)) if now.start == head.start);
            if !is_left || is_entered {
                break;
            }
            call = self.timeline.parent(&head)?;
        }
        Ok(call)
    }

    /// Returns whether a signal ended the program in this thread, and the return address of the call was in its place.
    fn was_there_at_the_end(&self, link: &Link) -> Result<bool> {
        let Some(crash) = self.timeline.crash()? else {
            return Ok(false);
        };
        if crash < self.seq || link.call.end.is_some_and(|end| end < crash) {
            return Ok(false);
        }
        let there = State::new(self.timeline, crash, self.tid)?.memory(link.slot, 8)?;
        let word = link.returns_to.map(u64::to_le_bytes);
        Ok(match (there.as_slice(), word) {
            ([all], Some(word)) => {
                all.bytes.is_known() && all.bytes.value().is_some_and(|found| **found == word)
            }
            _ => false,
        })
    }

    /// Returns whether `address` is in the code of a call's function.
    fn is_of(&self, space: &AddressSpace, link: &Link, address: u64) -> bool {
        let entry = self.timeline.entry_of(link.call.function, self.seq);
        let found = space.function_at(address).map(|function| function.entry);
        entry.is_some() && entry == found
    }
}

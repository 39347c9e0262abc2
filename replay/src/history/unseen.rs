//! Values that no entry of a function shows, of which there may be millions: one entry tells that for all.
//!
//! Without a capture, an enter event shows the registers of arguments, rsp, rip, and the return address in its slot. What
//! is computed from other memory near the stack pointer is unknown at each of them.

use std::cell::Cell;

use debuginfo::{
    Certainty, EntryPlace, FrameRegisters, InnermostFrame, Machine, Register, Unknown, Wish,
};
use store::control::FunctionDef;

use super::walk::{Walk, When};
use super::{Sight, Tracked};
use crate::calls::CallHead;
use crate::error::Result;
use crate::timeline::Timeline;

/// Memory no further than this from the stack pointer is on the stack.
const NEAR: u64 = 1 << 20;
/// The length of the slot of a return address.
const SLOT: u64 = 8;
/// Any stack pointer.
const STACK: u64 = 0x7fff_0000_0000;

/// A thread at the entry of a function, of which only the place is known.
struct AtEntry<'f> {
    pc: u64,
    function: &'f FunctionDef,
    /// Something was asked for that an entry may show.
    asks_for_more: Cell<bool>,
}

impl AtEntry<'_> {
    fn register(&self, register: Register) -> Option<u64> {
        match register {
            Register::RIP => Some(self.pc),
            Register::RSP => Some(STACK),
            _ => None,
        }
    }
}

impl Machine for AtEntry<'_> {
    fn memory(&self, address: u64, bytes: &mut [u8]) -> std::result::Result<Certainty, Unknown> {
        let end = address.saturating_add(bytes.len() as u64);
        let is_near = (STACK - NEAR..STACK + NEAR).contains(&address);
        if !is_near || address < STACK + SLOT && STACK < end {
            self.asks_for_more.set(true);
        }
        Err(Unknown::because("not captured"))
    }

    fn register(&self, register: Register) -> std::result::Result<(u64, Certainty), Unknown> {
        match AtEntry::register(self, register) {
            Some(value) => Ok((value, Certainty::Known)),
            None => {
                self.asks_for_more.set(true);
                Err(Unknown::because("not captured"))
            }
        }
    }

    fn vector(&self, _: Register) -> std::result::Result<([u8; 16], Certainty), Unknown> {
        self.asks_for_more.set(true);
        Err(Unknown::because("not captured"))
    }

    fn register_at_entry(&self, _: u64, _: u64, _: Register) -> Option<u64> {
        self.asks_for_more.set(true);
        None
    }

    fn entry_parameter(&self, name: &str) -> Option<EntryPlace> {
        if self.function.params.iter().any(|param| param.name == name) {
            self.asks_for_more.set(true);
        }
        None
    }

    fn calls_to_come(&self) -> usize {
        usize::MAX
    }
}

impl Tracked {
    /// Evaluates the expression at an event of a walk, which passes the entries from then on that cannot show more.
    pub(super) fn sight_on(
        &mut self,
        timeline: &Timeline,
        walk: &mut Walk,
        when: &When,
    ) -> Result<Sight> {
        let sight = self.sight(timeline, when)?;
        if !matches!(sight, Sight::Known(..))
            && let Some(call) = &when.entered
            && !walk.passes_entries_of(call.function)
            && self.is_unseen_at_entries(timeline, call)?
        {
            walk.pass_entries_of(timeline, call.function);
        }
        Ok(sight)
    }

    /// Returns whether no entry of a call's function shows the value unless something was captured there. `false` if
    /// that is not certain.
    fn is_unseen_at_entries(&mut self, timeline: &Timeline, call: &CallHead) -> Result<bool> {
        if let Some(known) = self.unseen.get(&call.function) {
            return Ok(*known);
        }
        let is_unseen = self.is_unseen(timeline, call)?;
        self.unseen.insert(call.function, is_unseen);
        Ok(is_unseen)
    }

    fn is_unseen(&self, timeline: &Timeline, call: &CallHead) -> Result<bool> {
        let entry = timeline.entry_of(call.function, call.start);
        let function = timeline.function(call.function);
        if function.is_some_and(|function| timeline.modules.why_unusable(function.module).is_some())
        {
            // Nothing is known of its variables.
            return Ok(true);
        }
        let (Some(pc), Some(function)) = (entry, function) else {
            return Ok(false);
        };
        let machine = AtEntry {
            pc,
            function,
            asks_for_more: Cell::new(false),
        };
        let space = timeline.modules.space(call.start);
        let wish = Wish::default();
        let read = |register| AtEntry::register(&machine, register);
        let frame = InnermostFrame::at(&space, pc, usize::MAX);
        let Some(frame) =
            frame.and_then(|frame| frame.of(FrameRegisters::partly(read, wish.clone())))
        else {
            return Ok(false);
        };
        let sight = self.sight_in(&space, &machine, (&[frame], 0), 0);
        let is_known = matches!(sight, Sight::Known(..));
        Ok(!is_known && !wish.was_made() && !machine.asks_for_more.get())
    }
}

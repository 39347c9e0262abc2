//! The program's own address of a place in our code, and what our code does there by itself.

use std::ops::Range;

use super::Breakpoints;
use crate::live::{model::Tid, tracee::Tracee};

impl Breakpoints {
    /// Returns the program counter of a halted thread, as an address of the program.
    pub fn pc(&self, tracee: &Tracee, tid: Tid) -> Option<u64> {
        let registers = tracee.registers(tid).ok()?;
        Some(self.original_pc(tracee, registers.rip))
    }

    /// Returns the program's address for a `pc`, which may lie in our code.
    pub fn original_pc(&self, tracee: &Tracee, pc: u64) -> u64 {
        self.exact_pc(tracee, pc).unwrap_or_else(|| {
            let slot = self.sites.original_pc(pc).flatten();
            slot.or_else(|| tracee.memory.hooks_now().original_pc(pc))
                .unwrap_or(pc)
        })
    }

    /// Returns the program's address for a `pc` exactly between two of its instructions; `None` if the thread is on its
    /// way through our code.
    pub fn exact_pc(&self, tracee: &Tracee, pc: u64) -> Option<u64> {
        if let Some(site) = self.sites.by_trap(pc) {
            return Some(site.address);
        }
        if let Some(slot) = self.sites.original_pc(pc) {
            return slot;
        }
        let hooks = tracee.memory.hooks_now();
        if !hooks.is_ours(pc) {
            return Some(pc);
        }
        let original = hooks.original_pc(pc)?;
        let (_, hook) = hooks.over(original)?;
        (hook.trampoline.moved(original) == Some(pc)).then_some(original)
    }

    /// Returns whether the access to `range` that a thread has just made is one of our own code, which uses the stack to
    /// record calls. Copies of the program's instructions make the program's accesses.
    pub fn is_own_access(&self, tracee: &Tracee, tid: Tid, range: &Range<u64>) -> bool {
        let Ok(registers) = tracee.registers(tid) else {
            return false;
        };
        let (pc, sp) = (registers.rip, registers.rsp);
        let hooks = tracee.memory.hooks_now();
        if !hooks.is_ours(pc) || self.sites.original_pc(pc).is_some() {
            return false;
        }
        match hooks.trampoline_at(pc) {
            None => true,
            // The call that led to its beginning has pushed our return address.
            Some(trampoline) => {
                pc == trampoline.at && range.start < sp.saturating_add(8) && sp < range.end
            }
        }
    }
}

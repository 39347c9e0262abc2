//! Watches where the unwinder and longjmp resume the program. They leave frames without returning, and a stepping thread
//! must not be lost.

use debuginfo::{Held, Register};

use super::sites::User;
use crate::live::{event_loop::Tracer, model::Tid};

/// The places found so far.
#[derive(Debug, Default)]
pub(crate) struct UnwindTargets {
    /// Where frames are left, and where the target is.
    places: Vec<(u64, Held)>,
    modules_seen: Vec<u32>,
}

impl Tracer {
    /// Sets traps where frames are left. The traps stay for the session: only a throw or a longjmp reaches them.
    pub fn find_unwind_targets(&mut self) {
        let space = self.tracee.space_now();
        for module in space.modules() {
            let seen = &mut self.breakpoints.unwind_targets.modules_seen;
            if seen.contains(&module.number) {
                continue;
            }
            seen.push(module.number);
            for leaver in module.module.frame_leavers() {
                let address = module.address(leaver.jump);
                if self.add_site(address, User::Unwind).is_ok() {
                    let places = &mut self.breakpoints.unwind_targets.places;
                    places.push((address, leaver.target));
                }
            }
        }
    }

    /// Handles a thread that is about to leave frames.
    pub fn before_unwinding(&mut self, tid: Tid, address: u64) {
        if !self.tracee.has_plan(tid) {
            return;
        }
        let places = &self.breakpoints.unwind_targets.places;
        let found = places.iter().find(|(at, _)| *at == address);
        let target = found.map(|(_, target)| *target);
        let Ok(registers) = self.tracee.registers(tid) else {
            return;
        };
        let target = match target {
            Some(Held::Register(Register::RCX)) => Some(registers.rcx),
            Some(Held::Register(Register::RDX)) => Some(registers.rdx),
            Some(Held::Memory(Register::RDI, offset)) => {
                let place = registers.rdi.wrapping_add(offset);
                self.tracee.memory.word(place).ok()
            }
            _ => None,
        };
        if let Some(target) = target {
            self.will_unwind_to(tid, target);
        }
    }
}

//! Watches where the unwinder and longjmp resume the program. They leave frames without returning, and a stepping thread
//! must not be lost.

use debuginfo::Register;

use super::sites::User;
use crate::{
    live::{event_loop::Tracer, model::Tid},
    stop::ptrace,
};

/// The places found so far.
#[derive(Debug, Default)]
pub(crate) struct UnwindTargets {
    /// Where frames are left, and the register with the target.
    places: Vec<(u64, Register)>,
    modules_seen: Vec<u32>,
}

impl Tracer {
    /// Sets traps where frames are left. The traps stay for the session: only a throw or a longjmp reaches them.
    pub fn find_unwind_targets(&mut self) {
        let space = self.space_now();
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
        if !self.has_plan(tid) {
            return;
        }
        let places = &self.breakpoints.unwind_targets.places;
        let found = places.iter().find(|(at, _)| *at == address);
        let target = found.map(|(_, target)| *target);
        let Ok(registers) = ptrace::registers(tid) else {
            return;
        };
        match target {
            Some(Register::RCX) => self.will_unwind_to(tid, registers.rcx),
            Some(Register::RDX) => self.will_unwind_to(tid, registers.rdx),
            _ => {}
        }
    }
}

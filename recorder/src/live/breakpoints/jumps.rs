//! Jumps to compiled probe code in the place of traps. They are installed and removed while no thread runs.

use std::{io, sync::PoisonError};

use super::sites::{Compiled, Copied, Faults, Sites, TRAP, User};
use crate::{
    displace::PATCH_BYTES,
    live::tracee::memory::{Covered, LiveMemory},
    stop::StoppedProcess,
};

/// `nop`: replaces a trap in our code once no tracer listens.
const NOP: u8 = 0x90;

impl Sites {
    /// Gives a site its code, which is already in memory with its trap. No jump leads there yet.
    pub fn attach(&mut self, memory: &LiveMemory, address: u64, compiled: Compiled) {
        let Some(site) = self.by_address.get_mut(&address) else {
            return;
        };
        let trap_at = compiled.stub.trap_at;
        let covered = Covered {
            original: NOP,
            ours: TRAP,
        };
        if let Some(guardian) = &memory.guardian {
            guardian.trap(trap_at, NOP);
        }
        let mut traps = memory.traps.write().unwrap_or_else(PoisonError::into_inner);
        traps.insert(trap_at, covered);
        self.by_trap.insert(trap_at, address);
        self.stubs.insert(
            compiled.stub.at,
            Faults {
                end: compiled.stub.end,
                loads: compiled.stub.loads.clone(),
                no_answer_at: compiled.stub.no_answer_at,
            },
        );
        let copied = Copied {
            site: address,
            end: compiled.copy.at + compiled.copy.bytes.len() as u64,
            exact: compiled.exact.clone(),
        };
        self.by_slot.insert(compiled.copy.at, copied);
        site.compiled = Some(compiled);
    }

    /// Drops a site's code. Its jump must be gone. Threads may still be in the code.
    pub fn detach_code(&mut self, address: u64) {
        if let Some(site) = self.by_address.get_mut(&address) {
            assert!(!site.is_armed(), "no jump leads to code that is given up");
            site.compiled = None;
        }
    }

    /// Returns whether a site has code and may have its jump: its probe is the only user, and the bytes hold no other
    /// trap or jump.
    pub fn may_arm(&self, address: u64, user: User) -> bool {
        let Some(site) = self.by_address.get(&address) else {
            return false;
        };
        let alone = site.users.len() == 1 && site.users.contains(&user);
        alone
            && site.compiled.is_some()
            && !site.is_armed()
            && self.others_in(site.patched_at).is_empty()
    }

    /// Returns the site whose jump covers `at` and begins elsewhere.
    pub fn jump_over(&self, at: u64) -> Option<u64> {
        let from = at.saturating_sub(PATCH_BYTES as u64 - 1);
        let (_, site) = self.armed.range(from..at).next()?;
        Some(*site)
    }

    /// Returns the sites whose traps or jumps are in these bytes.
    pub fn near(&self, patched: std::ops::RangeInclusive<u64>) -> impl Iterator<Item = u64> {
        self.by_trap.range(patched).map(|(_, address)| *address)
    }

    /// Returns other sites in use that a jump at `at` would cover, or whose jumps cover it.
    fn others_in(&self, at: u64) -> Vec<u64> {
        let inside = self.by_trap.range(at + 1..at + PATCH_BYTES as u64);
        let used = inside.filter_map(|(_, address)| {
            let site = self.by_address.get(address)?;
            (!site.users.is_empty()).then_some(*address)
        });
        used.chain(self.jump_over(at)).collect()
    }

    /// Writes a site's jump. No thread may run. The caller must then move threads between its bytes with
    /// [`moved`](Self::moved).
    ///
    /// # Errors
    /// The memory is missing, or has changed.
    pub fn arm(&mut self, memory: &LiveMemory, address: u64) -> io::Result<()> {
        let site = self.by_address.get_mut(&address);
        let site = site.ok_or(io::ErrorKind::NotFound)?;
        let at = site.patched_at;
        let compiled = site.compiled.as_mut().ok_or(io::ErrorKind::NotFound)?;
        let mut original = [0; PATCH_BYTES];
        memory.read_raw(at, &mut original)?;
        let mut traps = memory.traps.write().unwrap_or_else(PoisonError::into_inner);
        let trap = traps.get(&at).ok_or(io::ErrorKind::NotFound)?;
        original[0] = trap.original;
        if let Some(guardian) = &memory.guardian {
            guardian.jump(at, original, compiled.jump);
        }
        memory.write_raw(at, &compiled.jump)?;
        for (index, original) in original.into_iter().enumerate() {
            let ours = compiled.jump[index];
            traps.insert(at + index as u64, Covered { original, ours });
        }
        compiled.is_armed = true;
        self.armed.insert(at, address);
        Ok(())
    }

    /// Replaces a site's jump by its trap. No thread may run.
    pub fn disarm(&mut self, memory: &LiveMemory, address: u64) {
        let Some(site) = self.by_address.get_mut(&address) else {
            return;
        };
        let at = site.patched_at;
        let Some(compiled) = site.compiled.as_mut().filter(|c| c.is_armed) else {
            return;
        };
        compiled.is_armed = false;
        self.armed.remove(&at);
        let mut traps = memory.traps.write().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = [TRAP; PATCH_BYTES];
        for (index, byte) in bytes.iter_mut().enumerate().skip(1) {
            if let Some(covered) = traps.remove(&(at + index as u64)) {
                *byte = covered.original;
            }
        }
        if let Some(covered) = traps.get_mut(&at) {
            covered.ours = TRAP;
        }
        // The module may be unmapped.
        let _ = memory.write_raw(at, &bytes);
    }

    /// Returns where a thread at `pc` must continue once the site's jump is in place, if `pc` lies between its bytes.
    fn moved(&self, memory: &LiveMemory, address: u64, pc: u64) -> Option<u64> {
        let site = self.by_address.get(&address)?;
        let compiled = site.compiled.as_ref()?;
        let inside = |at: u64| {
            let moves = compiled.copy.moves.iter();
            moves
                .filter(|m| m.old != site.patched_at)
                .find(|m| m.old == at)
                .map(|m| m.new)
        };
        if let Some(new) = inside(pc) {
            return Some(new);
        }
        match self.original_pc(pc)? {
            Some(original) => {
                let known = compiled.exact.iter().find(|(_, o)| *o == original);
                known.map(|(new, _)| *new)
            }
            // The jump back follows the instruction in a slot.
            None => inside(jump_target(memory, pc)?),
        }
    }

    /// Moves all threads that are between the bytes of these sites' jumps, or will return there from a signal
    /// handler.
    pub fn move_threads(
        &self,
        memory: &LiveMemory,
        process: &mut StoppedProcess,
        addresses: &[u64],
    ) {
        let moved = |pc| {
            let mut all = addresses.iter();
            all.find_map(|address| self.moved(memory, *address, pc))
        };
        // A thread that cannot be moved was killed.
        let _ = process.move_threads(moved);
    }
}

/// The target of the jump instruction at `pc`.
fn jump_target(memory: &LiveMemory, pc: u64) -> Option<u64> {
    let code = memory.read_up_to(pc, 15);
    let options = iced_x86::DecoderOptions::NONE;
    let instruction = iced_x86::Decoder::with_ip(64, &code, pc, options).decode();
    let is_jump = instruction.flow_control() == iced_x86::FlowControl::UnconditionalBranch;
    is_jump.then(|| instruction.near_branch_target())
}

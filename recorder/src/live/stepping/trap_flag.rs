//! Hides the trap flag from the program: it is set while a thread single-steps, and PUSHF would show it.

use crate::{
    live::{model::Tid, tracee::Tracee},
    stop::Registers,
};

/// The instruction that pushes the flags (Intel SDM volume 2, PUSHF/PUSHFD/PUSHFQ).
const PUSHF: u8 = 0x9c;
/// The operand-size prefix, for 16 bits of the flags.
const OPERAND_SIZE: u8 = 0x66;
/// Prefixes without an effect on it.
const REX: std::ops::RangeInclusive<u8> = 0x40..=0x4f;
const TRAP_FLAG: u64 = 1 << 8;

impl Tracee {
    /// Returns where a thread about to single-step continues, if its instruction pushes the flags and the program has
    /// not set the trap flag itself. `rip` is the address of the instruction that actually runs.
    pub fn behind_pushed_flags(&self, registers: &Registers) -> Option<u64> {
        let code = self.memory.read_up_to(registers.rip, 2);
        let len = match code[..] {
            [PUSHF, ..] => 1,
            [first, PUSHF] if first == OPERAND_SIZE || REX.contains(&first) => 2,
            _ => return None,
        };
        (registers.eflags & TRAP_FLAG == 0).then(|| registers.rip + len)
    }

    /// Clears the trap flag in the flags that a thread has just pushed. It continues at `behind`.
    pub fn hide_trap_flag(&mut self, tid: Tid, behind: u64) {
        let Ok(registers) = self.registers(tid) else {
            return;
        };
        // A signal may have come first.
        let mut byte = [0];
        let at = registers.rsp.wrapping_add(1);
        if registers.rip == behind && self.memory.read(at, &mut byte).is_ok() {
            byte[0] &= !((TRAP_FLAG >> 8) as u8);
            // The word was just written, so it is writable.
            let _ = self.memory.write(at, &byte);
        }
    }
}

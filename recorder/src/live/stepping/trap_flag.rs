//! LogpointCapture the trap flag out of the program's sight: a thread that runs one instruction at a time has it set, and PUSHF would
//! show it.

use crate::{
    live::{event_loop::Tracer, model::Tid},
    stop::{Registers, ptrace},
};

/// The instruction that pushes the flags (Intel SDM volume 2, PUSHF/PUSHFD/PUSHFQ).
const PUSHF: u8 = 0x9c;
/// A prefix for 16 bits of them.
const OPERAND_SIZE: u8 = 0x66;
/// Prefixes that change nothing about it.
const REX: std::ops::RangeInclusive<u8> = 0x40..=0x4f;
/// The trap flag.
const TRAP_FLAG: u64 = 1 << 8;

impl Tracer {
    /// Returns where a thread goes on that is about to run one instruction, if that pushes the flags and the program has not
    /// set the trap flag itself. What stands at `rip` is what runs.
    pub fn behind_pushed_flags(&self, registers: &Registers) -> Option<u64> {
        let code = self.tracee.memory.read_up_to(registers.rip, 2);
        let len = match code[..] {
            [PUSHF, ..] => 1,
            [first, PUSHF] if first == OPERAND_SIZE || REX.contains(&first) => 2,
            _ => return None,
        };
        (registers.eflags & TRAP_FLAG == 0).then(|| registers.rip + len)
    }

    /// Takes the trap flag out of the flags that a thread has just pushed.
    /// It goes on at `behind`.
    pub fn hide_trap_flag(&mut self, tid: Tid, behind: u64) {
        let Ok(registers) = ptrace::registers(tid) else {
            return;
        };
        // A signal may have come first.
        let mut byte = [0];
        let at = registers.rsp.wrapping_add(1);
        if registers.rip == behind && self.tracee.memory.read(at, &mut byte).is_ok() {
            byte[0] &= !((TRAP_FLAG >> 8) as u8);
            // It has just been written to: it can be.
            let _ = self.tracee.memory.write(at, &byte);
        }
    }
}

//! An instruction that repeats, and has a fault in the middle: what it did before that is done, though it counts as not executed.

use iced_x86::{Decoder, DecoderOptions, Instruction, OpKind};
use libc::user_regs_struct;

use super::Replay;
use super::run::FAR;
use crate::error::{Context as _, Result};
use crate::log::Entry;
use crate::operands::{goes_down, repeats};
use crate::ptrace;
use crate::translate::Trap;

/// Bytes of the longest instruction.
const LONGEST: usize = 15;

impl Replay {
    /// The entry may be such a fault of the instruction before which the process stands.
    pub(super) fn repeated_until(&mut self, entry: &Entry) -> Result<()> {
        let tid = match entry {
            Entry::Signal {
                tid,
                call_done: false,
                ..
            }
            | Entry::Check { tid, .. } => *tid,
            _ => return Ok(()),
        };
        if tid != self.now.running {
            return Ok(());
        }
        let own = self.registers()?;
        let code = self.process.bytes(own.rip, LONGEST);
        let instruction = Decoder::with_ip(64, &code, own.rip, DecoderOptions::NONE).decode();
        if !repeats(&instruction) {
            return Ok(());
        }
        let left = match entry {
            // What a handler gets in rcx is what was there.
            Entry::Signal { context, .. } => Some(user_regs_struct::from(&context.registers).rcx),
            _ => self.left_at_end(&instruction, &own),
        };
        match left.filter(|left| *left < own.rcx) {
            Some(left) => self.repeat_until(&own, left),
            None => Ok(()),
        }
    }

    /// How often the instruction is still to be repeated when it has the fault that ends the program.
    fn left_at_end(&self, instruction: &Instruction, own: &user_regs_struct) -> Option<u64> {
        let next = self.recorded.entries.get(self.now.next + 1)?;
        let Entry::Exit {
            fatal: Some(fatal), ..
        } = &*next
        else {
            return None;
        };
        let of_memory = matches!(fatal.signal, libc::SIGSEGV | libc::SIGBUS) && fatal.code > 0;
        if !of_memory || fatal.tid != self.now.running {
            return None;
        }
        let size = instruction.memory_size().size().max(1) as u64;
        let done = (0..instruction.op_count()).filter_map(|op| {
            let first = match instruction.op_kind(op) {
                OpKind::MemoryESRDI => own.rdi,
                OpKind::MemorySegRSI => own.rsi,
                _ => return None,
            };
            let distance = match goes_down(own) {
                true => (first + size - 1).checked_sub(fatal.address)?,
                false => fatal.address.checked_sub(first)?,
            };
            Some(distance / size).filter(|done| *done < own.rcx)
        });
        done.min().map(|done| own.rcx - done)
    }

    /// Repeats it as often as it was, so that it is still to be repeated `left` times. A fault leaves the flags as they were before.
    fn repeat_until(&mut self, own: &user_regs_struct, left: u64) -> Result<()> {
        let pid = self.process.pid;
        let mut part = *own;
        part.rcx -= left;
        let told = self.records_end()?;
        self.limit = self.now.count + FAR;
        self.enter(&part)?;
        let mut is_done = false;
        while !is_done {
            let mut registers = self.process.registers_after_step(pid)?;
            let at = registers.rip;
            if let Some(trap) = self.translator.trap(at) {
                registers.rip = at + 1;
                ptrace::set_registers(pid, &registers).context("set registers")?;
                match trap {
                    Trap::Stop { .. } => {}
                    Trap::Before { .. } => {
                        // What is executed is told once, when it is.
                        self.set_records_end(told)?;
                        self.noted_trap(at, trap, registers.r15)?;
                    }
                    _ => return Err(self.asks()),
                }
                continue;
            }
            let place = self.translator.place(at);
            let end = self.process.end_of_repeated(at);
            let end = end.filter(|_| place.is_some_and(|place| place.pc == own.rip));
            is_done = end.is_some();
            let signal = match end {
                Some(end) => self.run_over(end)?,
                None => self.step_on()?,
            };
            if signal != libc::SIGTRAP && !(signal == libc::SIGSEGV && self.emptied()?) {
                return Err(self.not_recorded(signal));
            }
        }
        let registers = ptrace::registers(pid).context("read registers")?;
        match self.translator.trap(registers.rip) {
            Some(trap @ Trap::After { .. }) => {
                self.noted_trap(registers.rip, trap, registers.r15)?
            }
            _ => self.set_records_end(told)?,
        }
        let mut rest = self.registers()?;
        (rest.rip, rest.rcx, rest.eflags) = (own.rip, left, own.eflags);
        self.enter(&rest)
    }
}

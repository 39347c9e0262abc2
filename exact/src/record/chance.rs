//! Instructions with results that no other run would see: they are executed, and their results are kept. Some save state of the
//! processor in memory, in which it tells what parts of it are in use, and where the x87 unit's last instruction lies: that is the
//! program's own, not its translation.

use iced_x86::{Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic};
use libc::user_regs_struct;

use super::{Recorder, inject};
use crate::digest;
use crate::error::{Context as _, Result};
use crate::log::{Bytes, Entry, Registers};
use crate::operands::{Operand, State, operands};
use crate::ptrace;
use crate::tracee::X87_INSTRUCTION;
use crate::translate::{saves_state, tells_tables};

/// Most bytes of an instruction.
const LONGEST: usize = 15;
/// Where the instruction's address lies in what fnstenv and fnsave store (Intel, volume 1, 8.1.10).
const IN_ENVIRONMENT: u64 = 12;

/// An instruction that saves state in memory.
struct Saving {
    instruction: Instruction,
    stores: Vec<Operand>,
}

impl Recorder {
    /// An instruction with results of its own is executed, and its results are kept.
    pub(super) fn chance(
        &mut self,
        tid: i32,
        registers: &user_regs_struct,
        at: u64,
        next: u64,
    ) -> Result<()> {
        self.take_counter(tid, registers, at)?;
        let pc = self.translator.place(at).map(|place| place.pc);
        let state = pc.map(|pc| digest::of_registers(registers, pc));
        let saving = match pc {
            Some(pc) => self.saving(tid, registers, pc)?,
            None => None,
        };
        if !self.executed(tid, pc)? {
            // A fault, which comes again when the thread goes on.
            return Ok(());
        }
        let writes = match &saving {
            Some(saving) => self.saved(saving)?,
            None => Vec::new(),
        };
        let mut after = ptrace::registers(tid).context("read registers")?;
        let mut own = after;
        own.rip = next;
        own.gs_base = 0;
        self.log.add(&Entry::Chance {
            at: self.count,
            registers: Registers::from(&own),
            state,
            writes,
        })?;
        self.count += 1;
        after.rip = next;
        self.turns.answered(None);
        self.enter(tid, &after)
    }

    /// Executes the translation of the instruction at `pc`, behind whose trap a thread is stopped. Returns whether it is done.
    fn executed(&mut self, tid: i32, pc: Option<u64>) -> Result<bool> {
        loop {
            ptrace::step(tid, 0).context("step the program")?;
            let status = loop {
                let stopped = ptrace::wait(tid, false).context("wait for the program")?;
                if let Some((_, status)) = stopped {
                    break status;
                }
            };
            if !libc::WIFSTOPPED(status) || status >> 16 != 0 {
                return Ok(false);
            }
            if libc::WSTOPSIG(status) != libc::SIGTRAP {
                let info = ptrace::signal_info(tid).context("read the signal")?;
                if inject::comes_again(&info) {
                    return Ok(false);
                }
                self.hold(tid)?;
                continue;
            }
            let here = self.process.registers_after_step(tid)?.rip;
            if self.translator.place(here).map(|place| place.pc) != pc {
                return Ok(true);
            }
        }
    }

    /// What the instruction at `pc` is about to save, if it is one of those.
    fn saving(&self, tid: i32, registers: &user_regs_struct, pc: u64) -> Result<Option<Saving>> {
        let code = self.process.bytes(pc, LONGEST);
        let instruction = Decoder::with_ip(64, &code, pc, DecoderOptions::NONE).decode();
        if !saves_state(&instruction) && !tells_tables(&instruction) {
            return Ok(None);
        }
        let state = State {
            general: self.own(tid, registers)?,
            extended: ptrace::extended_state(tid).context("read registers")?,
        };
        let mut info = InstructionInfoFactory::new();
        let word = |at| self.process.word(at).ok();
        let found = operands(&mut info, &instruction, &state, &word).into_iter();
        Ok(Some(Saving {
            instruction,
            stores: found.filter(|operand| operand.writes).collect(),
        }))
    }

    /// What has been saved, with the program's own address in it. Only what is saved tells the processor's: AMD's processors keep it
    /// from XSAVE, with which the kernel would report it, but not from FNSTENV (AMD64, volume 2, 11.4.4).
    fn saved(&self, saving: &Saving) -> Result<Vec<Bytes>> {
        let wide = is_wide(&saving.instruction);
        let within = match saving.instruction.mnemonic() {
            Mnemonic::Fnstenv | Mnemonic::Fnsave => IN_ENVIRONMENT,
            _ => X87_INSTRUCTION as u64,
        };
        let mut saved = Vec::new();
        for operand in &saving.stores {
            saved.push((operand.address, operand.size));
            if tells_tables(&saving.instruction) {
                continue;
            }
            let at = operand.address.wrapping_add(within);
            let word = self.process.word(at).unwrap_or(0);
            if wide {
                if let Some(place) = self.translator.place(word) {
                    self.process.set_word(at, place.pc)?;
                }
            } else if let Some(own) = self.of_half(word as u32) {
                self.process.write(at, &own.to_le_bytes())?;
            }
        }
        let bytes = |(at, size): (u64, u64)| Bytes {
            at,
            bytes: self.process.bytes(at, size as usize),
        };
        Ok(saved.into_iter().map(bytes).collect())
    }

    /// The low half of the program's address for that of a translation.
    fn of_half(&self, low: u32) -> Option<u32> {
        let whole = |base: u64| base & !u64::from(u32::MAX) | u64::from(low);
        let mut places = self.translator.caches().map(whole);
        let place = places.find_map(|address| self.translator.place(address))?;
        Some(place.pc as u32)
    }
}

/// Whether it saves addresses of 64 bits.
fn is_wide(instruction: &Instruction) -> bool {
    matches!(
        instruction.mnemonic(),
        Mnemonic::Fxsave64 | Mnemonic::Xsave64 | Mnemonic::Xsaveopt64 | Mnemonic::Xsavec64
    )
}

//! Instructions that translated code cannot hold, and that change registers alone: a thread executes each where it lies, and goes on in
//! translated code.

use iced_x86::{Decoder, DecoderOptions};
use libc::user_regs_struct;

use super::Recorder;
use crate::error::Result;
use crate::log::{Entry, Registers};
use crate::translate::{Code, changes_registers_alone};

/// Most bytes of an instruction.
const LONGEST: usize = 15;
/// What cs selects in 64-bit mode (`__USER_CS` in the kernel's asm/segment.h).
const WIDE_CODE: u64 = 0x33;
/// In the flags: the processor stops behind each instruction (TF).
const TRAP_FLAG: u64 = 1 << 8;

impl Recorder {
    /// A thread has executed the instruction at `pc` where it lies, and has these registers. Returns whether it goes on in translated code.
    pub(super) fn changes_registers(
        &mut self,
        tid: i32,
        pc: u64,
        registers: &user_regs_struct,
    ) -> Result<bool> {
        let mut code = [0; LONGEST];
        let count = Code::read(&self.process, pc, &mut code);
        let instruction = Decoder::with_ip(64, &code[..count], pc, DecoderOptions::NONE).decode();
        if !changes_registers_alone(&instruction) || !are_usual(registers) {
            return Ok(false);
        }
        self.log.add(&Entry::Chance {
            at: self.count,
            registers: Registers::from(registers),
            state: None,
            writes: Vec::new(),
        })?;
        self.count += 1;
        self.enter(tid, registers)?;
        Ok(true)
    }
}

/// Whether the thread is still in 64-bit mode, is not stopped behind each instruction, and leaves gs to us.
fn are_usual(registers: &user_regs_struct) -> bool {
    registers.cs == WIDE_CODE
        && registers.eflags & TRAP_FLAG == 0
        && (registers.gs, registers.gs_base) == (0, 0)
}

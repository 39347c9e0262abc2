//! Where the program goes to what is no code, or to what the processor refuses: the thread executes that one instruction where it
//! lies, and gets the fault that it gets without us.

use std::ops::Range;

use iced_x86::{Code as Opcode, Decoder, DecoderOptions, FlowControl, Mnemonic};
use libc::user_regs_struct;

use super::address_space::{AddressSpace, PAGE};
use super::threads::Next;
use super::{Ended, Recorder, image};
use crate::error::{Context as _, Error, Result};
use crate::ptrace;
use crate::translate::{Code, Window, layout};

/// In the second byte of the flags: the processor stops behind each instruction (TF).
const TRAP_FLAG: u8 = 1;
/// Most bytes of an instruction.
const LONGEST: usize = 15;
/// The number of the interrupt by which programs of 32 bits make system calls.
const SYSTEM_CALL: u8 = 0x80;

/// The program's code as far as it can be executed.
struct Executable<'a> {
    window: Window<'a>,
    space: &'a AddressSpace,
    span: Range<u64>,
}

impl Code for Executable<'_> {
    fn read(&self, address: u64, into: &mut [u8]) -> usize {
        let left = self.span.end.saturating_sub(address);
        let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(into.len());
        self.window.read(address, &mut into[..wanted])
    }

    /// Code that the program writes may not be complete before it is executed, and what is shared others may write.
    fn may_be_ahead(&self, address: u64) -> bool {
        let page = address / PAGE;
        self.span.contains(&address)
            && self.space.writable(page).is_empty()
            && !self.space.may_be_shared(page)
    }
}

/// Whether an address is none: the bits above the 48 that count differ from the last of these (Intel, volume 1, 3.3.7.1).
pub(crate) fn is_no_address(address: u64) -> bool {
    ((address << 16) as i64 >> 16) as u64 != address
}

impl Recorder {
    /// The translation of the code at `pc`; for what is no code, or cannot be executed, `None`.
    pub(super) fn translated(&mut self, tid: i32, pc: u64) -> Result<Option<u64>> {
        if self.translator.knows(pc) {
            return Ok(self.translator.entry(pc, &self.process));
        }
        let Some(span) = self.executable_around(pc)? else {
            return Ok(None);
        };
        if self.translator.needs_cache(pc) {
            let made = self
                .process
                .add_cache(tid, &mut self.translator, pc, &|_, _| true);
            match made {
                // Code that is far away is translated too, into more instructions.
                Err(Error::NoRoom) if self.translator.has_room() => {}
                made => made?,
            }
            self.hold_all(tid);
        }
        let code = Executable {
            window: Window::new(&self.process),
            space: &self.space,
            span,
        };
        let body = self.translator.entry(pc, &code);
        self.process.flush(&mut self.translator)?;
        self.guard(tid)?;
        Ok(body)
    }

    /// The memory around `pc` that can be executed; `None` if it cannot be there.
    fn executable_around(&mut self, pc: u64) -> Result<Option<Range<u64>>> {
        if let Some(span) = self.space.executable_around(pc) {
            return Ok(Some(span));
        }
        let mut spans = image::spans(self.process.shown)?;
        spans.retain(|span| !self.translator.owns(span.start));
        self.space.set_executable(spans);
        Ok(self.space.executable_around(pc))
    }

    /// A thread is about to execute an instruction of the program where it lies.
    pub(super) fn go_outside(&mut self, tid: i32, own: &user_regs_struct) -> Result<()> {
        let mut registers = *own;
        registers.gs_base = 0;
        registers.orig_rax = u64::MAX;
        self.threads[tid].outside = Some(own.rip);
        ptrace::set_registers(tid, &registers).context("set registers")
    }

    /// Resumes a thread.
    pub(super) fn resume(&self, tid: i32) -> Result<()> {
        let resumed = match self.threads[tid].outside.is_some() {
            true => ptrace::step(tid, 0),
            false => ptrace::cont(tid, 0),
        };
        resumed.context("resume the program")
    }

    /// A thread that was to execute the instruction at `pc` where it lies has stopped. `None`: as was expected, or a signal came before.
    pub(super) fn left_outside(
        &mut self,
        tid: i32,
        signal: i32,
        pc: u64,
    ) -> Result<Option<Result<Next, Ended>>> {
        let registers = ptrace::registers(tid).context("read registers")?;
        if registers.rip == pc && signal != libc::SIGTRAP {
            return Ok(None);
        }
        self.threads[tid].outside = None;
        let is_done = signal == libc::SIGTRAP && registers.rip != pc;
        if is_done && self.changes_registers(tid, pc, &registers)? {
            return Ok(Some(Ok(Next::Resume)));
        }
        if signal == libc::SIGTRAP && is_no_address(registers.rip) {
            // A processor that has addresses of more bits faults there.
            self.count += 1;
            self.go_outside(tid, &registers)?;
            return Ok(Some(Ok(Next::Resume)));
        }
        let why = Error::Unsupported { pc }.to_string();
        Ok(Some(Err(Ended::Lost(why))))
    }

    /// The program jumps to where nothing is; all of the jump is done.
    pub(super) fn at_nothing(
        &mut self,
        tid: i32,
        registers: &user_regs_struct,
        target: u64,
    ) -> Result<()> {
        self.count = registers.r15;
        let slot = self.threads[tid].block + u64::from(layout::SLOT_R15);
        let mut own = *registers;
        own.r15 = self.process.word(slot)?;
        own.rip = target;
        self.go_outside(tid, &own)
    }

    /// The same by a jump, call or return whose target is found in a register or memory. For what is no address at all, the processor
    /// refuses that instruction itself: the thread is before it again.
    pub(super) fn missed(
        &mut self,
        tid: i32,
        registers: &user_regs_struct,
        target: u64,
    ) -> Result<()> {
        self.at_nothing(tid, registers, target)?;
        if !is_no_address(target) {
            return Ok(());
        }
        let slot = self.threads[tid].block + u64::from(layout::SLOT_ORIGIN);
        let number = self.process.word(slot)? & u64::from(u32::MAX);
        let Some(pc) = self.translator.origin(number) else {
            return Ok(());
        };
        let mut code = [0; LONGEST];
        let count = Code::read(&self.process, pc, &mut code);
        let instruction = Decoder::with_ip(64, &code[..count], pc, DecoderOptions::NONE).decode();
        let mut own = ptrace::registers(tid).context("read registers")?;
        match instruction.flow_control() {
            FlowControl::Return => {
                let dropped = match instruction.op_count() {
                    1 => u64::from(instruction.immediate16()),
                    _ => 0,
                };
                own.rsp = own.rsp.wrapping_sub(8 + dropped);
            }
            FlowControl::IndirectCall => own.rsp = own.rsp.wrapping_add(8),
            FlowControl::IndirectBranch => {}
            _ => return Ok(()),
        }
        own.rip = pc;
        self.count -= 1;
        self.go_outside(tid, &own)
    }

    /// A thread is before an instruction that is not translated. Where the processor refuses it, that is the program's fault.
    pub(super) fn at_unsupported(
        &mut self,
        tid: i32,
        registers: &user_regs_struct,
        pc: u64,
    ) -> Result<Option<Ended>> {
        let own = self.own(tid, registers)?;
        let mut code = [0; LONGEST];
        let count = Code::read(&self.process, pc, &mut code);
        let instruction = Decoder::with_ip(64, &code[..count], pc, DecoderOptions::NONE).decode();
        let asks_kernel = instruction.mnemonic() == Mnemonic::Sysenter
            || instruction.code() == Opcode::Int_imm8 && instruction.immediate8() == SYSTEM_CALL;
        if asks_kernel {
            return Ok(Some(Ended::Lost(Error::OldCall { pc }.to_string())));
        }
        if own.rip != pc {
            return Ok(Some(Ended::Lost(Error::Unsupported { pc }.to_string())));
        }
        self.go_outside(tid, &own)?;
        Ok(None)
    }

    /// A thread is about to load the flags from its stack; it is stopped behind the trap at `at`. With the trap flag set, the processor
    /// would stop behind each instruction of ours.
    pub(super) fn at_flags(
        &mut self,
        tid: i32,
        registers: &mut user_regs_struct,
        at: u64,
        pc: u64,
    ) -> Result<Option<Ended>> {
        let flags = self.process.bytes(registers.rsp, 2);
        let is_set = flags.get(1).is_some_and(|byte| byte & TRAP_FLAG != 0);
        if !is_set {
            return Ok(None);
        }
        registers.rip = at;
        self.take_counter(tid, registers, at)?;
        ptrace::set_registers(tid, registers).context("set registers")?;
        Ok(Some(Ended::Lost(format!(
            "the program sets the processor's trap flag by the instruction at {pc:#x}, to be stopped after each instruction"
        ))))
    }
}

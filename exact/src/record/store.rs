//! A write to a page that is protected: that one instruction is executed, and then it is seen whether code has changed.

use iced_x86::{Decoder, DecoderOptions};

use super::guards::Guard;
use super::threads::Next;
use super::{Recorder, inject};
use crate::error::{Context as _, Result};
use crate::ptrace;
use crate::translate::Trap;

/// Most bytes of an instruction.
const LONGEST: usize = 15;

impl Recorder {
    /// Whether a fault is a write to such a page; then it is done. `None`: it is another fault.
    pub(super) fn writes_code(&mut self, tid: i32, info: &libc::siginfo_t) -> Result<Option<Next>> {
        let Some(page) = self.guarded(info) else {
            return Ok(None);
        };
        let mut open: Vec<(u64, Guard)> = self.open(tid, page)?.into_iter().collect();
        let registers = ptrace::registers(tid).context("read registers")?;
        if self.translator.place(registers.rip).is_none() {
            // It executes an instruction where that lies, and does so again.
            self.forget_codes(&codes(&open))?;
            return Ok(Some(Next::Resume));
        }
        let before = registers.rip - 1;
        if let Some(Trap::Chance { next, .. }) = self.translator.trap(before) {
            self.take_counter(tid, &registers, before)?;
            self.forget_codes(&codes(&open))?;
            self.chance(tid, &registers, before, next)?;
            return Ok(Some(Next::Resume));
        }
        let stopped = self.execute_write(tid, registers.rip, &mut open)?;
        if let Some(status) = stopped
            && !libc::WIFSTOPPED(status)
        {
            return Ok(Some(Next::Stopped(status)));
        }
        let mut changed = Vec::new();
        for (page, guard) in open {
            if !self.close(tid, page, &guard)? {
                changed.push((page, guard));
            }
        }
        if !changed.is_empty() {
            self.code_changed(tid, &codes(&changed), stopped.is_none())?;
        }
        match stopped {
            None => Ok(Some(Next::Resume)),
            // A fault of the same instruction, which is the program's own.
            Some(_) => self.signal(tid).map(Some),
        }
    }

    /// `is_done`: the thread is behind the instruction that did this.
    fn code_changed(&mut self, tid: i32, codes: &[u64], is_done: bool) -> Result<()> {
        if is_done {
            self.step_to_boundary(tid)?;
        }
        let registers = ptrace::registers(tid).context("read registers")?;
        self.take_counter(tid, &registers, registers.rip)?;
        let own = self.own(tid, &registers)?;
        self.forget_codes(codes)?;
        match is_done {
            true => self.enter(tid, &own),
            false => Ok(()),
        }
    }

    /// A thread executes the instruction at `at`, which it has a fault at because a page was protected. Returns its status if it has
    /// stopped for another reason. Pages that it writes to are opened, too.
    fn execute_write(
        &mut self,
        tid: i32,
        at: u64,
        open: &mut Vec<(u64, Guard)>,
    ) -> Result<Option<i32>> {
        let code = self.process.bytes(at, LONGEST);
        let instruction = Decoder::with_ip(64, &code, at, DecoderOptions::NONE).decode();
        let behind = instruction.next_ip();
        let byte = self.process.put_trap(behind)?;
        let stopped = self.until(tid, behind, open);
        // A process that was killed meanwhile has no memory any more.
        let _ = self.process.write(behind, &byte);
        stopped
    }

    fn until(
        &mut self,
        tid: i32,
        behind: u64,
        open: &mut Vec<(u64, Guard)>,
    ) -> Result<Option<i32>> {
        loop {
            ptrace::cont(tid, 0).context("resume the program")?;
            let status = loop {
                let stopped = ptrace::wait(tid, false).context("wait for the program")?;
                if let Some((_, status)) = stopped {
                    break status;
                }
            };
            if !libc::WIFSTOPPED(status) {
                return Ok(Some(status));
            }
            if status >> 16 != 0 {
                continue;
            }
            if libc::WSTOPSIG(status) == libc::SIGTRAP {
                let mut registers = ptrace::registers(tid).context("read registers")?;
                if registers.rip == behind + 1 {
                    registers.rip = behind;
                    ptrace::set_registers(tid, &registers).context("set registers")?;
                    return Ok(None);
                }
            }
            let info = ptrace::signal_info(tid).context("read the signal")?;
            if let Some(page) = self.guarded(&info) {
                open.extend(self.open(tid, page)?);
                continue;
            }
            if inject::comes_again(&info) {
                return Ok(Some(status));
            }
            self.hold(tid)?;
        }
    }
}

fn codes(open: &[(u64, Guard)]) -> Vec<u64> {
    let codes = open.iter().flat_map(|(_, guard)| &guard.codes);
    codes.copied().collect()
}

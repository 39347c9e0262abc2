//! Code that the program writes itself: what has been translated is protected, and forgotten when it is written to.

use libc::user_regs_struct;

use super::Recorder;
use super::address_space::PAGE;
use crate::error::{Context as _, Result};
use crate::log::Entry;
use crate::ptrace;

const READ_EXECUTE: i32 = libc::PROT_READ | libc::PROT_EXEC;

impl Recorder {
    /// No page is protected any more, and no translation of one is left: the program goes on by itself. All threads are stopped outside
    /// of translated code.
    pub(super) fn unguard(&mut self, tid: i32) -> Result<()> {
        for page in self.space.unguard_all() {
            let (start, end) = (page * PAGE, (page + 1) * PAGE);
            let protection = READ_EXECUTE | libc::PROT_WRITE;
            let args = [start, PAGE, protection as u64, 0, 0, 0];
            self.process.call(tid, libc::SYS_mprotect, args)?;
            self.translator.forget_range(start, end);
        }
        self.process.flush(&mut self.translator)
    }

    /// Protects pages that can be written, of which there are translations since a moment.
    pub(super) fn guard(&mut self, tid: i32) -> Result<()> {
        for page in self.translator.take_fresh() {
            if self.space.guard(page) {
                let args = [page * PAGE, PAGE, READ_EXECUTE as u64, 0, 0, 0];
                self.call(tid, libc::SYS_mprotect, args)?;
            }
        }
        Ok(())
    }

    /// Whether a fault is a write to such a page; then the thread may write, and executes the new code.
    pub(super) fn writes_code(&mut self, tid: i32, info: &libc::siginfo_t) -> Result<bool> {
        if info.si_signo != libc::SIGSEGV {
            return Ok(false);
        }
        // SAFETY: a fault has an address.
        let page = unsafe { info.si_addr() } as u64 / PAGE;
        if !self.space.unguard(page) {
            return Ok(false);
        }
        let registers = ptrace::registers(tid).context("read registers")?;
        self.take_counter(tid, &registers, registers.rip)?;
        let own: user_regs_struct = self.own(tid, &registers)?;
        let (start, end) = (page * PAGE, (page + 1) * PAGE);
        let protection = READ_EXECUTE | libc::PROT_WRITE;
        self.call(
            tid,
            libc::SYS_mprotect,
            [start, PAGE, protection as u64, 0, 0, 0],
        )?;
        self.log.add(&Entry::Code {
            at: self.count,
            start,
            end,
        })?;
        self.forget(start, end)?;
        self.enter(tid, &own)?;
        Ok(true)
    }

    /// The program's code there has changed: no thread goes on in old translations of it.
    pub(super) fn forget(&mut self, start: u64, end: u64) -> Result<()> {
        self.translator.forget_range(start, end);
        self.reenter()
    }

    /// Has all threads that can go on do so in translations that are valid now.
    pub(super) fn reenter(&mut self) -> Result<()> {
        self.process.flush(&mut self.translator)?;
        self.epoch += 1;
        for tid in self.turns.ready.clone() {
            let registers = ptrace::registers(tid).context("read registers")?;
            let own = self.own(tid, &registers)?;
            self.enter(tid, &own)?;
        }
        Ok(())
    }
}

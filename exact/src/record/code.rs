//! Code that the program writes itself: what has been translated is protected, and forgotten when it is written to.

use super::Recorder;
use super::address_space::PAGE;
use super::guards::Guard;
use crate::error::{Context as _, Result};
use crate::log::Entry;
use crate::ptrace;

/// A frame of a signal has no more bytes, whatever the processor.
const FRAME: u64 = 16 << 10;
/// A call may write so far behind what an argument points to, whatever the others are.
const NEAR: u64 = 64 << 10;
/// Arguments above this are no lengths.
const LONGEST: u64 = 1 << 30;

impl Recorder {
    /// No page is protected any more, and no translation of one is left: the program goes on by itself. All threads are stopped outside
    /// of translated code.
    pub(super) fn unguard(&mut self, tid: i32) -> Result<()> {
        for (page, guard) in self.space.guards.take_in(0, u64::MAX) {
            self.protect(tid, page, guard.protection)?;
            for code in guard.codes {
                self.translator.forget_range(code * PAGE, (code + 1) * PAGE);
            }
        }
        self.process.flush(&mut self.translator)
    }

    /// Protects pages that can be written, of which there are translations since a moment.
    pub(super) fn guard(&mut self, tid: i32) -> Result<()> {
        let mut fresh = self.translator.take_fresh();
        fresh.sort_unstable();
        fresh.dedup();
        self.guard_pages(tid, fresh)
    }

    /// Protects what of these pages, and of those that are the same memory, can be written.
    pub(super) fn guard_pages(&mut self, tid: i32, codes: Vec<u64>) -> Result<()> {
        for code in codes {
            let mut is_new = false;
            for (page, protection) in self.space.writable(code) {
                if self.space.guards.add(page, code, protection) {
                    self.protect(tid, page, without_write(protection))?;
                    is_new = true;
                }
            }
            if is_new {
                let bytes = self.process.bytes(code * PAGE, PAGE as usize);
                self.space.guards.see(code, bytes);
            }
        }
        Ok(())
    }

    /// A page gets this protection.
    pub(super) fn protect(&mut self, tid: i32, page: u64, protection: u32) -> Result<()> {
        let args = [page * PAGE, PAGE, u64::from(protection), 0, 0, 0];
        self.call(tid, libc::SYS_mprotect, args).map(drop)
    }

    /// The guarded page that a thread has stopped for, if it has: its write was prevented.
    pub(super) fn guarded(&self, info: &libc::siginfo_t) -> Option<u64> {
        if info.si_signo != libc::SIGSEGV || info.si_code <= 0 {
            return None;
        }
        // SAFETY: a fault has an address.
        let page = unsafe { info.si_addr() } as u64 / PAGE;
        self.space.guards.has(page).then_some(page)
    }

    /// A page can be written from now on.
    pub(super) fn open(&mut self, tid: i32, page: u64) -> Result<Option<(u64, Guard)>> {
        let Some(guard) = self.space.guards.take(page) else {
            return Ok(None);
        };
        self.protect(tid, page, guard.protection)?;
        Ok(Some((page, guard)))
    }

    /// A page of these was written: its writes are prevented again if all translations are right. Returns whether they are.
    pub(super) fn close(&mut self, tid: i32, page: u64, guard: &Guard) -> Result<bool> {
        for code in &guard.codes {
            let bytes = self.process.bytes(code * PAGE, PAGE as usize);
            let blocks = self.translator.blocks_in(*code);
            if !self.space.guards.passes(*code, bytes, blocks) {
                return Ok(false);
            }
        }
        self.protect(tid, page, without_write(guard.protection))?;
        self.space.guards.put_back(page, guard.clone());
        Ok(true)
    }

    /// The code in some pages is another one from now on.
    pub(super) fn forget_codes(&mut self, codes: &[u64]) -> Result<()> {
        for code in codes {
            let (start, end) = (code * PAGE, (code + 1) * PAGE);
            self.log.add(&Entry::Code {
                at: self.count,
                start,
                end,
            })?;
            self.translator.forget_range(start, end);
        }
        self.reenter()
    }

    /// The kernel is about to write somewhere in a range for a stopped thread: it would not get a fault that we see.
    fn open_for_kernel(&mut self, tid: i32, start: u64, end: u64) -> Result<()> {
        let taken = self.space.guards.take_in(start, end);
        let mut codes = Vec::new();
        for (page, guard) in taken {
            self.protect(tid, page, guard.protection)?;
            codes.extend(guard.codes);
        }
        match codes.is_empty() {
            true => Ok(()),
            false => self.forget_codes(&codes),
        }
    }

    /// A thread is about to make a call.
    pub(super) fn open_for_call(&mut self, tid: i32, number: u64, args: &[u64; 6]) -> Result<()> {
        if self.space.guards.is_empty() || writes_nothing(number) {
            return Ok(());
        }
        let is_scattered = matches!(
            i64::try_from(number).unwrap_or(-1),
            libc::SYS_readv
                | libc::SYS_preadv
                | libc::SYS_preadv2
                | libc::SYS_recvmsg
                | libc::SYS_recvmmsg
                | libc::SYS_process_vm_readv
                | libc::SYS_process_vm_writev
        );
        if is_scattered || self.copies_memory(number, args[0]) {
            return self.open_for_kernel(tid, 0, u64::MAX);
        }
        let lengths = args.iter().filter(|arg| **arg <= LONGEST);
        let length = lengths.max().copied().unwrap_or(0).max(NEAR);
        let clears = self.threads[tid].clears;
        for at in args.iter().copied().chain([clears]) {
            if at > LONGEST || at == clears && clears != 0 {
                self.open_for_kernel(tid, at, at.saturating_add(length))?;
            }
        }
        Ok(())
    }

    /// Whether a call makes a process, which nobody would let write to its pages. Threads stay ours.
    fn copies_memory(&self, number: u64, first: u64) -> bool {
        let is_process = |flags: u64| flags & libc::CLONE_THREAD as u64 == 0;
        match i64::try_from(number).unwrap_or(-1) {
            libc::SYS_fork | libc::SYS_vfork => true,
            libc::SYS_clone => is_process(first),
            libc::SYS_clone3 => self.process.word(first).is_ok_and(is_process),
            _ => false,
        }
    }

    /// A thread with this stack pointer is about to get a signal.
    pub(super) fn open_for_frame(&mut self, tid: i32, stack: u64) -> Result<()> {
        if self.space.guards.is_empty() {
            return Ok(());
        }
        let (start, end) = self.threads[tid].alternate;
        self.open_for_kernel(tid, start, end)?;
        self.open_for_kernel(tid, stack.saturating_sub(FRAME), stack)
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

fn without_write(protection: u32) -> u32 {
    protection & !(libc::PROT_WRITE as u32)
}

/// Frequent calls for which the kernel only reads memory.
fn writes_nothing(number: u64) -> bool {
    matches!(
        i64::try_from(number).unwrap_or(-1),
        libc::SYS_write
            | libc::SYS_pwrite64
            | libc::SYS_sendto
            | libc::SYS_open
            | libc::SYS_openat
            | libc::SYS_close
            | libc::SYS_mmap
            | libc::SYS_munmap
            | libc::SYS_mprotect
            | libc::SYS_madvise
    )
}

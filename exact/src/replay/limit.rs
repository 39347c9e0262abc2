//! How far the process runs. The counter of its instructions is an address in a window of memory, which each block of translated code
//! writes to when it has counted; at the limit the window ends. That takes no flags and no branch.

use super::Replay;
use crate::error::{Context as _, Error, Result};
use crate::ptrace;
use crate::translate::layout;

const PAGE: u64 = 4096;
/// Instructions that the process runs at once, at most.
const WINDOW: u64 = 4 << 20;
/// The window is this much memory many times: few enough for the processor's cache.
const PIECE: u64 = 8 << 10;
/// What the counter points to lies so far in the window, at least: a block counts less.
const MARGIN: u64 = PAGE;

/// The end of a run, as the process knows it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Limit {
    /// Where the window ends.
    end: u64,
    /// Instructions executed are so many more than the counter.
    base: u64,
}

impl Limit {
    /// What the counter is after so many instructions.
    pub(super) fn counter(self, count: u64) -> u64 {
        count.wrapping_sub(self.base)
    }

    /// How many instructions are executed when the counter is at this value.
    pub(super) fn count(self, counter: u64) -> u64 {
        counter.wrapping_add(self.base)
    }

    /// Whether the process runs as far as that.
    pub(super) fn is_at_least(self, limit: u64) -> bool {
        self.count(self.end) >= limit
    }

    /// The process runs from `count` instructions up to `limit`, or as far towards it as it can at once.
    fn set(&mut self, count: u64, limit: u64) {
        let until = limit.min(count.saturating_add(WINDOW - MARGIN));
        self.base = until.wrapping_sub(self.end);
    }
}

impl Replay {
    /// Maps the window, before there are copies of the process: all share what is in it.
    pub(super) fn make_window(&mut self) -> Result<()> {
        let pid = self.process.pid;
        let places = (0x10..0x7ff).map(|step: u64| 0x7000_0000_0000 + (step << 24));
        let free = self.recorded.free();
        let places: Vec<u64> = places.filter(|at| free(*at, WINDOW + PAGE)).collect();
        drop(free);
        let anonymous = libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        for at in places {
            let mut map = |length, protection: i32, flags: i32| {
                let flags = (anonymous | flags) as u64;
                let args = [at, length, protection as u64, flags, u64::MAX, 0];
                self.process.call(pid, libc::SYS_mmap, args)
            };
            // The page behind it stays as it is: nobody can write there.
            let whole = map(
                WINDOW + PAGE,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_FIXED_NOREPLACE,
            )?;
            if whole as u64 != at {
                continue;
            }
            let both = libc::PROT_READ | libc::PROT_WRITE;
            let first = map(PIECE, both, libc::MAP_SHARED | libc::MAP_FIXED)?;
            if first < 0 || !self.repeat_piece(at)? {
                return Err(Error::NoRoom);
            }
            self.limit.end = at + WINDOW;
            return Ok(());
        }
        Err(Error::NoRoom)
    }

    /// Maps the piece at the start of the window in all the others, too: of shared memory, nothing that is moved is a second mapping
    /// (mremap(2)). Returns whether it could. The process does that in a loop: coming back for each piece would take milliseconds.
    fn repeat_piece(&mut self, at: u64) -> Result<bool> {
        const LOOP: [u8; 26] = [
            0xb8, 25, 0, 0, 0, // mov eax, mremap
            0x4d, 0x89, 0xe0, // mov r8, r12
            0x0f, 0x05, // syscall
            0x4d, 0x01, 0xec, // add r12, r13
            0x48, 0x85, 0xc0, // test rax, rax
            0x78, 5, // js over the next two
            0x4d, 0x39, 0xf4, // cmp r12, r14
            0x72, 0xe9, // jb to the beginning
            0xcc, 0xcc, 0xcc,
        ];
        let pid = self.process.pid;
        let before = ptrace::registers(pid).context("read registers")?;
        let displaced = self.process.bytes(before.rip, LOOP.len());
        self.process.write(before.rip, &LOOP)?;
        let mut registers = before;
        registers.orig_rax = u64::MAX;
        (registers.rdi, registers.rsi, registers.rdx) = (at, 0, PIECE);
        registers.r10 = (libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED) as u64;
        (registers.r12, registers.r13, registers.r14) = (at + PIECE, PIECE, at + WINDOW);
        ptrace::set_registers(pid, &registers).context("set registers")?;
        let signal = self.run_on()?;
        let after = ptrace::registers(pid).context("read registers")?;
        self.process.write(before.rip, &displaced)?;
        ptrace::set_registers(pid, &before).context("set registers")?;
        Ok(signal == libc::SIGTRAP && after.r12 == at + WINDOW && (after.rax as i64) > 0)
    }

    /// Sets the counter so that the process runs up to this limit, or a good way towards it.
    pub(super) fn set_limit(&mut self, limit: u64) -> Result<()> {
        self.drain()?;
        let pid = self.process.pid;
        let mut registers = ptrace::registers(pid).context("read registers")?;
        let place = self.translator.place(registers.rip);
        let place = place.ok_or_else(|| self.diverged(super::run::NOWHERE))?;
        self.limit.set(self.now.count, limit);
        let value = self.limit.counter(self.now.count + u64::from(place.ahead));
        if place.swapped {
            return self
                .process
                .set_word(self.block() + u64::from(layout::SLOT_COUNTER), value);
        }
        registers.r15 = value;
        ptrace::set_registers(pid, &registers).context("set registers")
    }

    /// The few instructions that come next meet no limit.
    pub(super) fn lift_limit(&mut self) {
        self.limit.set(self.now.count, u64::MAX);
    }

    /// If the process has stopped because it has come to its limit, it goes back to where its block is counted. Returns whether it was
    /// that.
    pub(super) fn is_at_limit(&mut self) -> Result<bool> {
        let end = self.limit.end;
        if !self.has_fault_in(end..end + PAGE)? {
            return Ok(false);
        }
        let pid = self.process.pid;
        let mut registers = ptrace::registers(pid).context("read registers")?;
        let place = self.translator.place(registers.rip);
        let place = place.ok_or_else(|| self.diverged(super::run::NOWHERE))?;
        if place.ahead > 0 {
            registers.r15 = registers.r15.wrapping_sub(u64::from(place.ahead));
            registers.rip -= COUNT_BYTES;
            ptrace::set_registers(pid, &registers).context("set registers")?;
        }
        self.take_counter(registers.r15, registers.rip)?;
        Ok(true)
    }
}

/// Bytes of the instruction that counts, before the one that writes.
const COUNT_BYTES: u64 = 4;

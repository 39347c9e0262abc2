//! What stopped threads are made to do before they are recorded, and after: calls that the program does not see.

use crate::error::{Context, Result};
use crate::ptrace::{self, Restartable};
use crate::tracee::{Tracee, proc_text};

/// All signals but SIGTRAP, by which the thread comes back to us.
const ALL: u64 = !TRAP;
const TRAP: u64 = 1 << (libc::SIGTRAP - 1);
const RSEQ_FLAG_UNREGISTER: u64 = 1;
/// rseq(2): `struct rseq` has the address of a critical section at 8; that has start, length and where it is left to.
const SECTION: u64 = 8;

/// A thread that is stopped outside of translated code, with all signals blocked.
pub(super) struct Quiet {
    pub(super) tid: i32,
    mask: u64,
}

impl Quiet {
    pub(super) fn new(tid: i32) -> Result<Quiet> {
        let mask = ptrace::signal_mask(tid).context("read blocked signals")?;
        ptrace::set_signal_mask(tid, ALL).context("block signals")?;
        Ok(Quiet { tid, mask })
    }

    /// A signal that has come before is there again, and comes when the thread goes on. `scratch` is memory of ours.
    pub(super) fn send(
        &self,
        process: &mut Tracee,
        scratch: u64,
        info: &libc::siginfo_t,
    ) -> Result<()> {
        process.write(scratch, &raw(info))?;
        let (pid, tid) = (process.pid as u64, self.tid as u64);
        let args = [pid, tid, info.si_signo as u64, scratch, 0, 0];
        process
            .call(self.tid, libc::SYS_rt_tgsigqueueinfo, args)
            .map(drop)
    }

    /// The thread gets its own blocked signals back.
    pub(super) fn end(self) -> Result<()> {
        ptrace::set_signal_mask(self.tid, self.mask).context("block signals")
    }
}

fn raw(info: &libc::siginfo_t) -> Vec<u8> {
    let size = size_of::<libc::siginfo_t>();
    // SAFETY: a structure of the kernel's, all of which was filled by it.
    unsafe { std::slice::from_raw_parts((&raw const *info).cast::<u8>(), size) }.to_vec()
}

/// Whether a stopped thread has executed an int3 that it has not been stopped for yet.
pub(super) fn has_trap(tid: i32) -> bool {
    let text = proc_text(format!("/proc/{tid}/status")).unwrap_or_default();
    let mask = text.lines().find_map(|line| line.strip_prefix("SigPnd:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask & TRAP != 0)
}

/// Whether a signal that a thread has stopped for comes again by itself when the instruction is executed again.
pub(super) fn comes_again(info: &libc::siginfo_t) -> bool {
    let of_fault = matches!(
        info.si_signo,
        libc::SIGSEGV | libc::SIGBUS | libc::SIGFPE | libc::SIGILL
    );
    of_fault && info.si_code > 0
}

/// Restartable sequences end: the kernel writes into their memory at any moment. Returns what there was.
pub(super) fn end_restartable(process: &mut Tracee, tid: i32) -> Result<Option<Restartable>> {
    // Kernels before 5.13 do not tell.
    let found = ptrace::restartable(tid).unwrap_or_default();
    if found.length == 0 {
        return Ok(None);
    }
    leave_section(process, tid, found)?;
    let length = u64::from(found.length);
    let args = [
        found.at,
        length,
        RSEQ_FLAG_UNREGISTER,
        u64::from(found.signature),
        0,
        0,
    ];
    process.call(tid, libc::SYS_rseq, args)?;
    Ok(Some(found))
}

/// A thread in a critical section is moved to where that is left to, as whenever it is interrupted.
fn leave_section(process: &Tracee, tid: i32, found: Restartable) -> Result<()> {
    let section = process.word(found.at + SECTION)?;
    if section == 0 {
        return Ok(());
    }
    let start = process.word(section + 8)?;
    let length = process.word(section + 16)?;
    let mut registers = ptrace::registers(tid).context("read registers")?;
    if registers.rip.wrapping_sub(start) < length {
        registers.rip = process.word(section + 24)?;
        ptrace::set_registers(tid, &registers).context("set registers")?;
    }
    process.set_word(found.at + SECTION, 0)
}

/// Restartable sequences are as they were.
pub(super) fn restore_restartable(process: &mut Tracee, tid: i32, was: Restartable) -> Result<()> {
    let args = [
        was.at,
        u64::from(was.length),
        0,
        u64::from(was.signature),
        0,
        0,
    ];
    process.call(tid, libc::SYS_rseq, args).map(drop)
}

/// The stack for signals of a thread (sigaltstack(2)), start and end; and where zero is written when it ends. `scratch` is memory of ours.
pub(super) fn asked(process: &mut Tracee, tid: i32, scratch: u64) -> Result<((u64, u64), u64)> {
    const SS_DISABLE: u64 = 2;
    let mut alternate = (0, 0);
    if process.call(tid, libc::SYS_sigaltstack, [0, scratch, 0, 0, 0, 0])? == 0 {
        let start = process.word(scratch)?;
        let flags = process.word(scratch + 8)?;
        if flags & SS_DISABLE == 0 {
            alternate = (start, start + process.word(scratch + 16)?);
        }
    }
    let mut clears = 0;
    let args = [libc::PR_GET_TID_ADDRESS as u64, scratch, 0, 0, 0, 0];
    if process.call(tid, libc::SYS_prctl, args)? == 0 {
        clears = process.word(scratch)?;
    }
    Ok((alternate, clears))
}

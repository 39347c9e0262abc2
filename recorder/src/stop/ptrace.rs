//! The ptrace requests and waits of the recorder, beside those of `exact`, each as a safe function. A thread that is not
//! stopped, or not traced by the calling thread, gives ESRCH: nothing here can harm a process that we are not allowed to
//! trace.

use std::io;
use std::mem::{self, MaybeUninit};

pub(crate) use exact::ptrace::{
    cont, debug_register, detach, event_message, extended_state, interrupt, listen, registers,
    set_debug_register, set_extended_state, set_registers, set_signal_info as set_stop_info,
    signal_info as stop_info, step,
};
use libc::{c_long, c_void, siginfo_t, user_regs_struct};

use super::filters::Instruction;

/// ptrace(2); the libc crate does not have it.
const PTRACE_SECCOMP_GET_FILTER: libc::c_uint = 0x420c;

type Result<T> = io::Result<T>;

/// Starts tracing `tid` without stopping it.
pub(crate) fn seize(tid: i32) -> Result<()> {
    exact::ptrace::seize(tid, 0)
}

/// Returns whether a halted thread has hit a trap that it has not reported. If a thread is interrupted at that moment,
/// it reports the interrupt first, and the SIGTRAP stays pending until it resumes. Traps sent by a process do not
/// count.
pub(crate) fn has_untold_trap(tid: i32) -> bool {
    const AT_ONCE: usize = 8;
    // SAFETY: plain integers.
    let mut infos: [siginfo_t; AT_ONCE] = unsafe { mem::zeroed() };
    let mut from = libc::ptrace_peeksiginfo_args {
        off: 0,
        flags: 0,
        nr: AT_ONCE as i32,
    };
    loop {
        // SAFETY: the kernel reads `from`, and writes at most `AT_ONCE` structures to `infos`.
        let count = unsafe {
            libc::ptrace(
                libc::PTRACE_PEEKSIGINFO,
                tid,
                &raw const from,
                infos.as_mut_ptr(),
            )
        };
        let waiting = &infos[..usize::try_from(count).unwrap_or(0)];
        // Signals from the kernel have a positive code (sigaction(2)).
        let mut traps = waiting.iter();
        if traps.any(|info| info.si_signo == libc::SIGTRAP && info.si_code > 0) {
            return true;
        }
        if waiting.len() < AT_ONCE {
            return false;
        }
        from.off += AT_ONCE as u64;
    }
}

/// Returns the signals that a stopped thread blocks: bit 0 is signal 1. In a call that blocks others meanwhile (`sigsuspend`), those that
/// it will block afterwards.
pub(crate) fn blocked_signals(tid: i32) -> Result<u64> {
    let mut mask = 0u64;
    let at = &raw mut mask as usize;
    request(libc::PTRACE_GETSIGMASK, tid, mem::size_of::<u64>(), at)?;
    Ok(mask)
}

/// Sets the signals that a stopped thread blocks.
pub(crate) fn set_blocked_signals(tid: i32, mask: u64) -> Result<()> {
    let at = &raw const mask as usize;
    request(libc::PTRACE_SETSIGMASK, tid, mem::size_of::<u64>(), at)
}

/// Returns filter number `index` of a stopped thread's sandbox, from 0, the newest.
///
/// # Errors
/// ENOENT: there are fewer. Others: the kernel shows none, or only to a privileged user.
pub(crate) fn seccomp_filter(tid: i32, index: u64) -> Result<Vec<Instruction>> {
    let ask = |to: *mut Instruction| {
        // SAFETY: without a pointer the kernel only counts; otherwise there is room for as many as it has counted.
        match unsafe { libc::ptrace(PTRACE_SECCOMP_GET_FILTER, tid, index, to) } {
            -1 => Err(io::Error::last_os_error()),
            count => Ok(count as usize),
        }
    };
    let mut filter = vec![Instruction::default(); ask(std::ptr::null_mut())?];
    let count = ask(filter.as_mut_ptr())?;
    filter.truncate(count);
    Ok(filter)
}

pub(crate) fn set_rip(tid: i32, value: u64) -> Result<()> {
    let offset = mem::offset_of!(user_regs_struct, rip);
    request(libc::PTRACE_POKEUSER, tid, offset, value as usize)
}

pub(crate) fn set_rax(tid: i32, value: u64) -> Result<()> {
    let offset = mem::offset_of!(user_regs_struct, rax);
    request(libc::PTRACE_POKEUSER, tid, offset, value as usize)
}

/// Reads the eight bytes at `address`.
pub(crate) fn peek(tid: i32, address: u64) -> Result<[u8; 8]> {
    let mut word = [0u8; 8];
    // The C library returns the word as its result; the system call itself writes it through the pointer. Only the
    // latter tells an error from a word of all ones without checking errno beforehand.
    // SAFETY: PEEKDATA writes one word to `data`, which is eight bytes long and outlives the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_ptrace,
            libc::PTRACE_PEEKDATA as c_long,
            tid as c_long,
            address,
            word.as_mut_ptr(),
        )
    };
    if result == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(word)
}

/// Writes the eight bytes at `address`, even to read-only memory.
pub(crate) fn poke(tid: i32, address: u64, word: [u8; 8]) -> Result<()> {
    let word = u64::from_le_bytes(word);
    request(libc::PTRACE_POKEDATA, tid, address as usize, word as usize)
}

/// Reaps a tracee that has ended, if it has. Must not be used on a thread group's leader: that would take its exit
/// status away from the thread that waits for the process.
pub(crate) fn reap(tid: i32) {
    // SAFETY: a null status pointer is allowed; WNOHANG makes the call return at once. If there is nothing to reap,
    // that is not an error.
    unsafe { libc::waitpid(tid, std::ptr::null_mut(), libc::WNOHANG | libc::__WALL) };
}

/// Starts tracing `tid`, and with it the threads and processes it creates. It will stop at exec.
pub(crate) fn seize_with_its_clones(tid: i32) -> Result<()> {
    // Set in the seize request, since a separate request for options needs a stopped thread.
    let options = libc::PTRACE_O_TRACECLONE
        | libc::PTRACE_O_TRACEEXEC
        | libc::PTRACE_O_TRACEFORK
        | libc::PTRACE_O_TRACEVFORK
        | libc::PTRACE_O_TRACESYSGOOD;
    exact::ptrace::seize(tid, options)
}

/// Returns whether two processes have one memory; `None` if the kernel does not say.
pub(crate) fn share_memory(a: i32, b: i32) -> Option<bool> {
    const KCMP_VM: c_long = 1;
    // SAFETY: no memory is passed.
    match unsafe { libc::syscall(libc::SYS_kcmp, a, b, KCMP_VM, 0, 0) } {
        -1 => None,
        order => Some(order == 0),
    }
}

/// The signal with which a thread reports the beginning or the end of a system call.
pub(crate) const AT_CALL: i32 = libc::SIGTRAP | 0x80;

/// As [`cont`], up to the beginning or the end of a system call.
pub(crate) fn cont_to_call(tid: i32, signal: i32) -> Result<()> {
    request(libc::PTRACE_SYSCALL, tid, 0, signal as usize)
}

/// Returns the number of the system call that a thread is about to make; `None` at its end, if it is one of 32-bit code,
/// and before Linux 5.3.
pub(crate) fn call_entered(tid: i32) -> Option<u64> {
    const ENTRY: u64 = 1;
    const X86_64: u64 = 0xc000_003e;
    let info = call_info(tid)?;
    (info[0] & 0xff == ENTRY && info[0] >> 32 == X86_64).then_some(info[3])
}

/// Returns whether a thread has stopped at the end of a system call; false before Linux 5.3.
pub(crate) fn has_left_call(tid: i32) -> bool {
    const EXIT: u64 = 2;
    call_info(tid).is_some_and(|info| info[0] & 0xff == EXIT)
}

/// Returns struct `ptrace_syscall_info`: op and architecture, ip, sp, number, six arguments.
fn call_info(tid: i32) -> Option<[u64; 11]> {
    const GET_SYSCALL_INFO: u32 = 0x420e;
    let mut info = [0u64; 11];
    let len = mem::size_of_val(&info);
    request(GET_SYSCALL_INFO, tid, len, info.as_mut_ptr() as usize).ok()?;
    Some(info)
}

/// A state change of a tracee.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// It stopped. The status is that of wait(2), shifted: signal in the low byte, event above.
    Stopped { signal: i32, event: i32 },
    /// It has ended, with this exit code or by this signal. A leader that has ended is left for its parent to collect.
    Ended { status: i32, by_signal: bool },
}

/// Returns whether the state of a tracee of the calling thread has changed.
pub(crate) fn is_one_changed() -> bool {
    matches!(peek_change(), Ok(Some(_)))
}

/// Returns a state change of a tracee of the calling thread without consuming it. Does not block.
fn peek_change() -> Result<Option<siginfo_t>> {
    let mut info = MaybeUninit::<siginfo_t>::zeroed();
    let wanted = libc::WEXITED
        | libc::WSTOPPED
        | libc::WNOHANG
        | libc::WNOWAIT
        | libc::__WALL
        | libc::__WNOTHREAD;
    // SAFETY: `info` is ours, and valid when all zero.
    let result = unsafe { libc::waitid(libc::P_ALL, 0, info.as_mut_ptr(), wanted) };
    if result == -1 {
        let error = io::Error::last_os_error();
        return match error.raw_os_error() {
            Some(libc::ECHILD) => Ok(None),
            _ => Err(error),
        };
    }
    // SAFETY: waitid filled it, or left it zero.
    let info = unsafe { info.assume_init() };
    // SAFETY: if waitid filled the structure, it has this field; otherwise the field is zero.
    let is_there = unsafe { info.si_pid() } != 0;
    Ok(is_there.then_some(info))
}

/// Consumes and returns a state change of a tracee of the calling thread, if there is one. Does not block.
pub(crate) fn next_change() -> Result<Option<(i32, Change)>> {
    let Some(info) = peek_change()? else {
        return Ok(None);
    };
    // SAFETY: a structure that waitid filled has these fields.
    let (tid, status) = unsafe { (info.si_pid(), info.si_status()) };
    if matches!(
        info.si_code,
        libc::CLD_EXITED | libc::CLD_KILLED | libc::CLD_DUMPED
    ) {
        let by_signal = info.si_code != libc::CLD_EXITED;
        return Ok(Some((tid, Change::Ended { status, by_signal })));
    }
    let mut taken = 0;
    // SAFETY: `taken` is ours; the change is pending, so the call does not block.
    unsafe {
        libc::waitpid(
            tid,
            &mut taken,
            libc::WNOHANG | libc::__WALL | libc::__WNOTHREAD,
        )
    };
    Ok(Some((
        tid,
        Change::Stopped {
            signal: status & 0xff,
            event: status >> 8,
        },
    )))
}

/// Waits for the next stop of a tracee, and returns its signal; `None` if it has ended.
pub(crate) fn wait_for(tid: i32) -> Option<i32> {
    let mut status = 0;
    // SAFETY: `status` is ours.
    let waited = unsafe { libc::waitpid(tid, &mut status, libc::__WALL) };
    (waited == tid && libc::WIFSTOPPED(status)).then(|| libc::WSTOPSIG(status))
}

/// What a tracee has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Came {
    /// It stopped: its signal and event.
    Stopped(i32, i32),
    /// It has ended, which is left to [`next_change`].
    Ended,
    /// Nothing yet.
    Nothing,
}

/// Waits for the next stop of a tracee. With `no_wait`, only looks whether it has come.
pub(crate) fn next_stop_of(tid: i32, no_wait: bool) -> Result<Came> {
    let flags = libc::__WALL | libc::__WNOTHREAD | if no_wait { libc::WNOHANG } else { 0 };
    loop {
        let mut info = MaybeUninit::<siginfo_t>::zeroed();
        let wanted = libc::WEXITED | libc::WSTOPPED | libc::WNOWAIT | flags;
        // SAFETY: `info` is ours, and valid when all zero.
        let result =
            unsafe { libc::waitid(libc::P_PID, tid as libc::id_t, info.as_mut_ptr(), wanted) };
        if result == -1 {
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::EINTR) => continue,
                Some(libc::ECHILD) => return Ok(Came::Ended),
                _ => return Err(error),
            }
        }
        // SAFETY: waitid filled it, or left it zero.
        let info = unsafe { info.assume_init() };
        // SAFETY: if waitid filled the structure, it has this field; otherwise the field is zero.
        if unsafe { info.si_pid() } == 0 {
            return Ok(Came::Nothing);
        }
        if matches!(
            info.si_code,
            libc::CLD_EXITED | libc::CLD_KILLED | libc::CLD_DUMPED
        ) {
            return Ok(Came::Ended);
        }
        let mut taken = 0;
        // SAFETY: `taken` is ours; the change is pending, so the call does not block.
        unsafe { libc::waitpid(tid, &mut taken, libc::WNOHANG | flags) };
        // SAFETY: a structure that waitid filled has this field.
        let status = unsafe { info.si_status() };
        return Ok(Came::Stopped(status & 0xff, status >> 8));
    }
}

fn request(request: libc::c_uint, tid: i32, address: usize, data: usize) -> Result<()> {
    // SAFETY: the requests made in this file write to our memory only through `data`, and only if a caller above passes
    // a pointer to a structure of the size that the request fills. They read our memory in the same way.
    let result = unsafe { libc::ptrace(request, tid, address as *mut c_void, data as *mut c_void) };
    if result == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

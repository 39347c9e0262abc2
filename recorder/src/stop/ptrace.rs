//! The few ptrace requests that are needed, each as a safe function. A thread that is not traced by the calling thread,
//! or not stopped, gives ESRCH: nothing here can harm another process than one we are allowed to trace.

use std::io;
use std::mem::{self, MaybeUninit};

use libc::{c_long, c_void, siginfo_t, user_regs_struct};

type Result<T> = io::Result<T>;

/// Starts tracing `tid` without stopping it.
pub(crate) fn seize(tid: i32) -> Result<()> {
    request(libc::PTRACE_SEIZE, tid, 0, 0)
}

/// Makes `tid` stop as soon as it would run in user mode.
pub(crate) fn interrupt(tid: i32) -> Result<()> {
    request(libc::PTRACE_INTERRUPT, tid, 0, 0)
}

/// Lets `tid` go, with signal `signal` (0 = none) delivered to it if it stopped for one.
pub(crate) fn detach(tid: i32, signal: i32) -> Result<()> {
    request(libc::PTRACE_DETACH, tid, 0, signal as usize)
}

/// Returns what `tid` stopped for. ESRCH while it runs.
pub(crate) fn stop_info(tid: i32) -> Result<siginfo_t> {
    let mut info = MaybeUninit::<siginfo_t>::zeroed();
    request(libc::PTRACE_GETSIGINFO, tid, 0, info.as_mut_ptr() as usize)?;
    // SAFETY: the request succeeded, so the kernel filled the structure; it also is valid when all zero.
    Ok(unsafe { info.assume_init() })
}

/// Sets what comes with the signal that `tid` gets when it goes on.
pub(crate) fn set_stop_info(tid: i32, info: &siginfo_t) -> Result<()> {
    request(libc::PTRACE_SETSIGINFO, tid, 0, &raw const *info as usize)
}

/// Tells whether a halted thread has run into a trap that it has not told of: asked to stop at that moment, a thread does so
/// first, and the SIGTRAP waits until it goes on. Traps that somebody sent do not count.
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
        // What the kernel sends has a positive code (sigaction(2)).
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

pub(crate) fn registers(tid: i32) -> Result<user_regs_struct> {
    let mut registers = MaybeUninit::<user_regs_struct>::zeroed();
    request(
        libc::PTRACE_GETREGS,
        tid,
        0,
        registers.as_mut_ptr() as usize,
    )?;
    // SAFETY: the request succeeded, so the kernel filled the structure; it is plain integers.
    Ok(unsafe { registers.assume_init() })
}

/// Sets all general registers.
pub(crate) fn set_registers(tid: i32, registers: &user_regs_struct) -> Result<()> {
    request(libc::PTRACE_SETREGS, tid, 0, &raw const *registers as usize)
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
    // The C library returns the word in its result; the system call itself writes it through the pointer. Only the
    // latter tells an error from a word of all ones without looking at errno beforehand.
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

/// Writes the eight bytes at `address`, read-only memory included.
pub(crate) fn poke(tid: i32, address: u64, word: [u8; 8]) -> Result<()> {
    let word = u64::from_le_bytes(word);
    request(libc::PTRACE_POKEDATA, tid, address as usize, word as usize)
}

/// Releases a traced thread that has ended, if it has. Must not be used on a thread group's leader: that would take its
/// exit status away from whoever waits for the process.
pub(crate) fn reap(tid: i32) {
    // SAFETY: a null status pointer is allowed; WNOHANG makes the call return at once. That there is nothing to reap is
    // no error to anyone.
    unsafe { libc::waitpid(tid, std::ptr::null_mut(), libc::WNOHANG | libc::__WALL) };
}

/// Begins to trace `tid`, and with it the threads and processes it creates; exec stops it.
pub(crate) fn seize_with_its_clones(tid: i32) -> Result<()> {
    // As a request of its own, options would need a stopped thread.
    let options = libc::PTRACE_O_TRACECLONE
        | libc::PTRACE_O_TRACEEXEC
        | libc::PTRACE_O_TRACEFORK
        | libc::PTRACE_O_TRACEVFORK;
    request(libc::PTRACE_SEIZE, tid, 0, options as usize)
}

/// Returns what the last event is about: the id of a new process, say.
pub(crate) fn event_message(tid: i32) -> Result<u64> {
    let mut message = 0u64;
    request(libc::PTRACE_GETEVENTMSG, tid, 0, &raw mut message as usize)?;
    Ok(message)
}

/// Lets a stopped thread run, with signal `signal` (0 = none) delivered to it.
pub(crate) fn cont(tid: i32, signal: i32) -> Result<()> {
    request(libc::PTRACE_CONT, tid, 0, signal as usize)
}

/// Lets a stopped thread run one instruction, with signal `signal` (0 = none) delivered to it.
pub(crate) fn step(tid: i32, signal: i32) -> Result<()> {
    request(libc::PTRACE_SINGLESTEP, tid, 0, signal as usize)
}

/// Lets a thread in a job-control stop stay in it, and tell of its end.
pub(crate) fn listen(tid: i32) -> Result<()> {
    request(libc::PTRACE_LISTEN, tid, 0, 0)
}

const NT_X86_XSTATE: usize = 0x202;
/// More than any processor's state takes (AMX included).
const MOST_XSTATE_BYTES: usize = 16 << 10;

/// Returns the state of the x87, SSE and later registers (XSAVE's layout; the first 512 bytes are FXSAVE's).
pub(crate) fn extended_state(tid: i32) -> Result<Vec<u8>> {
    let mut bytes = vec![0u8; MOST_XSTATE_BYTES];
    let mut part = libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: bytes.len(),
    };
    request(
        libc::PTRACE_GETREGSET,
        tid,
        NT_X86_XSTATE,
        &raw mut part as usize,
    )?;
    bytes.truncate(part.iov_len);
    Ok(bytes)
}

/// Sets what [`extended_state`] returned, with changes.
pub(crate) fn set_extended_state(tid: i32, bytes: &mut [u8]) -> Result<()> {
    let part = libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: bytes.len(),
    };
    request(
        libc::PTRACE_SETREGSET,
        tid,
        NT_X86_XSTATE,
        &raw const part as usize,
    )
}

/// Reads debug register `number`, 0 to 7.
pub(crate) fn debug_register(tid: i32, number: usize) -> Result<u64> {
    let mut word = 0u64;
    let offset = mem::offset_of!(libc::user, u_debugreg) + number * 8;
    // SAFETY: as in `peek`: PEEKUSER writes one word to `word`.
    let result = unsafe {
        libc::syscall(
            libc::SYS_ptrace,
            libc::PTRACE_PEEKUSER as c_long,
            tid as c_long,
            offset,
            &raw mut word,
        )
    };
    if result == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(word)
}

/// Writes debug register `number`, 0 to 7.
pub(crate) fn set_debug_register(tid: i32, number: usize, value: u64) -> Result<()> {
    let offset = mem::offset_of!(libc::user, u_debugreg) + number * 8;
    request(libc::PTRACE_POKEUSER, tid, offset, value as usize)
}

/// A change of a traced thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// It stopped; the status is as wait(2) has it, shifted: signal in the low byte, event above.
    Stopped { signal: i32, event: i32 },
    /// It has ended, with this exit code or by this signal. A leader that has ended is left for its parent to collect.
    Ended { status: i32, by_signal: bool },
}

/// Tells whether a thread that the calling thread traces has changed.
pub(crate) fn is_one_changed() -> bool {
    matches!(peek_change(), Ok(Some(_)))
}

/// Looks for a change of a thread that the calling thread traces, and leaves it there. Does not wait.
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
    // SAFETY: a structure that waitid filled has this field; of the other one it is zero.
    let is_there = unsafe { info.si_pid() } != 0;
    Ok(is_there.then_some(info))
}

/// Returns a change of a thread that the calling thread traces, if there is one. Does not wait.
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
    // SAFETY: `taken` is ours; the change is there, so this does not wait.
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

fn request(request: libc::c_uint, tid: i32, address: usize, data: usize) -> Result<()> {
    // SAFETY: the requests made in this file write to our memory only through `data`, and only where the caller above
    // passes a pointer to a structure of the size that the request fills; they read ours in the same way.
    let result = unsafe { libc::ptrace(request, tid, address as *mut c_void, data as *mut c_void) };
    if result == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

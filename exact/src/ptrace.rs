//! The ptrace requests that are needed, each as a safe function. A thread that is not stopped, or not traced by the calling
//! thread, gives ESRCH.

use std::io;
use std::mem::{self, MaybeUninit};

use libc::{c_void, siginfo_t, user_regs_struct};

type Result<T> = io::Result<T>;

fn request(request: libc::c_uint, tid: i32, address: usize, data: usize) -> Result<()> {
    // SAFETY: callers pass as `data` the address of what the request reads or fills, or a plain number.
    let result = unsafe { libc::ptrace(request, tid, address as *mut c_void, data as *mut c_void) };
    if result == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Starts tracing `tid` with these options, without stopping it.
pub fn seize(tid: i32, options: i32) -> Result<()> {
    request(libc::PTRACE_SEIZE, tid, 0, options as usize)
}

/// Detaches from `tid`, and delivers signal `signal` (0 = none) to it if it is in signal-delivery-stop.
pub fn detach(tid: i32, signal: i32) -> Result<()> {
    request(libc::PTRACE_DETACH, tid, 0, signal as usize)
}

/// Resumes a stopped thread, and delivers signal `signal` (0 = none) to it.
pub fn cont(tid: i32, signal: i32) -> Result<()> {
    request(libc::PTRACE_CONT, tid, 0, signal as usize)
}

/// Single-steps a stopped thread, and delivers signal `signal` (0 = none) to it.
pub fn step(tid: i32, signal: i32) -> Result<()> {
    request(libc::PTRACE_SINGLESTEP, tid, 0, signal as usize)
}

/// Resumes until the next entry to, or return from, a system call.
pub(crate) fn to_system_call(tid: i32) -> Result<()> {
    request(libc::PTRACE_SYSCALL, tid, 0, 0)
}

/// Leaves a thread in its job-control stop, and makes it report the end of that.
pub fn listen(tid: i32) -> Result<()> {
    request(libc::PTRACE_LISTEN, tid, 0, 0)
}

/// Returns the general registers.
pub fn registers(tid: i32) -> Result<user_regs_struct> {
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

/// Sets the general registers.
pub fn set_registers(tid: i32, registers: &user_regs_struct) -> Result<()> {
    request(libc::PTRACE_SETREGS, tid, 0, &raw const *registers as usize)
}

const GET_MASK: libc::c_uint = 0x420a;
const SET_MASK: libc::c_uint = 0x420b;
const GET_RSEQ_CONFIGURATION: libc::c_uint = 0x420f;

/// The signals that a thread has blocked, one bit each.
pub(crate) fn signal_mask(tid: i32) -> Result<u64> {
    let mut mask = 0u64;
    request(GET_MASK, tid, 8, &raw mut mask as usize)?;
    Ok(mask)
}

pub(crate) fn set_signal_mask(tid: i32, mask: u64) -> Result<()> {
    request(SET_MASK, tid, 8, &raw const mask as usize)
}

/// Where a thread has told the kernel its restartable sequences (rseq(2)).
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Restartable {
    pub(crate) at: u64,
    /// Zero if there is none.
    pub(crate) length: u32,
    pub(crate) signature: u32,
    flags: u32,
    pad: u32,
}

impl Restartable {
    pub(crate) fn new(at: u64, length: u32, signature: u32) -> Restartable {
        Restartable {
            at,
            length,
            signature,
            ..Restartable::default()
        }
    }
}

pub(crate) fn restartable(tid: i32) -> Result<Restartable> {
    let mut found = Restartable::default();
    let size = size_of::<Restartable>();
    request(GET_RSEQ_CONFIGURATION, tid, size, &raw mut found as usize)?;
    Ok(found)
}

/// Returns the siginfo of the stop of `tid`. ESRCH while it runs.
pub fn signal_info(tid: i32) -> Result<siginfo_t> {
    let mut info = MaybeUninit::<siginfo_t>::zeroed();
    request(libc::PTRACE_GETSIGINFO, tid, 0, info.as_mut_ptr() as usize)?;
    // SAFETY: the request succeeded, so the kernel filled the structure; it also is valid when all zero.
    Ok(unsafe { info.assume_init() })
}

/// Sets the siginfo of the signal that `tid` receives when it resumes.
pub fn set_signal_info(tid: i32, info: &siginfo_t) -> Result<()> {
    request(libc::PTRACE_SETSIGINFO, tid, 0, &raw const *info as usize)
}

/// Makes a thread stop as soon as it would run in user mode.
pub fn interrupt(tid: i32) -> Result<()> {
    request(libc::PTRACE_INTERRUPT, tid, 0, 0)
}

/// Returns the message of the last event, such as the id of a new thread.
pub fn event_message(tid: i32) -> Result<u64> {
    let mut message = 0u64;
    request(libc::PTRACE_GETEVENTMSG, tid, 0, &raw mut message as usize)?;
    Ok(message)
}

/// Writes debug register `number`, 0 to 7.
pub fn set_debug_register(tid: i32, number: usize, value: u64) -> Result<()> {
    let at = mem::offset_of!(libc::user, u_debugreg) + number * 8;
    request(libc::PTRACE_POKEUSER, tid, at, value as usize)
}

/// Where the list of locks is that the kernel marks when this thread ends (get_robust_list(2)); zero: it has none.
pub fn robust_list(tid: i32) -> Result<u64> {
    let (mut head, mut length) = (0u64, 0usize);
    // SAFETY: the kernel writes one word to each of the two addresses.
    let result = unsafe {
        libc::syscall(
            libc::SYS_get_robust_list,
            tid as libc::c_long,
            &raw mut head,
            &raw mut length,
        )
    };
    match result {
        0 => Ok(head),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Reads debug register `number`, 0 to 7.
pub fn debug_register(tid: i32, number: usize) -> Result<u64> {
    let at = mem::offset_of!(libc::user, u_debugreg) + number * 8;
    let mut word = 0u64;
    // SAFETY: the system call (unlike the C library's function) writes one word to `data`.
    let result = unsafe {
        libc::syscall(
            libc::SYS_ptrace,
            libc::PTRACE_PEEKUSER as libc::c_long,
            tid as libc::c_long,
            at,
            &raw mut word,
        )
    };
    if result == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(word)
    }
}

const NT_X86_XSTATE: usize = 0x202;
/// Upper bound for the state of any processor (AMX included).
const MOST_XSTATE_BYTES: usize = 16 << 10;

/// Returns the state of the x87, SSE and later registers (XSAVE's layout; the first 512 bytes are FXSAVE's).
pub fn extended_state(tid: i32) -> Result<Vec<u8>> {
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

/// Sets the state, as returned by [`extended_state`] and changed.
pub fn set_extended_state(tid: i32, bytes: &[u8]) -> Result<()> {
    let part = libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    };
    request(
        libc::PTRACE_SETREGSET,
        tid,
        NT_X86_XSTATE,
        &raw const part as usize,
    )
}

/// Waits for any thread that the calling thread traces (-1), or one; returns which and its status. `None`: nothing has happened yet, or, without
/// `no_wait`, a signal came.
pub(crate) fn wait(tid: i32, no_wait: bool) -> Result<Option<(i32, i32)>> {
    let mut status = 0;
    let flags = libc::__WALL | libc::__WNOTHREAD | if no_wait { libc::WNOHANG } else { 0 };
    // SAFETY: the kernel writes the status.
    let found = unsafe { libc::waitpid(tid, &raw mut status, flags) };
    match found {
        0 => Ok(None),
        -1 => {
            let error = io::Error::last_os_error();
            if error.raw_os_error() == Some(libc::EINTR) {
                Ok(None)
            } else {
                Err(error)
            }
        }
        tid => Ok(Some((tid, status))),
    }
}

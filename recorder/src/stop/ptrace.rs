//! The few ptrace requests that are needed, each as a safe function. A thread that is not traced by the calling thread,
//! or not stopped, gives ESRCH: nothing here can harm another process than one we are allowed to trace.

use std::io;
use std::mem::{self, MaybeUninit};

use libc::{c_long, c_void, siginfo_t, user_regs_struct};

type Result<T> = io::Result<T>;

/// Starts tracing `tid` without stopping it.
pub(super) fn seize(tid: i32) -> Result<()> {
    request(libc::PTRACE_SEIZE, tid, 0, 0)
}

/// Makes `tid` stop as soon as it would run in user mode.
pub(super) fn interrupt(tid: i32) -> Result<()> {
    request(libc::PTRACE_INTERRUPT, tid, 0, 0)
}

/// Lets `tid` go, with signal `signal` (0 = none) delivered to it if it stopped for one.
pub(super) fn detach(tid: i32, signal: i32) -> Result<()> {
    request(libc::PTRACE_DETACH, tid, 0, signal as usize)
}

/// Returns what `tid` stopped for. ESRCH while it runs.
pub(super) fn stop_info(tid: i32) -> Result<siginfo_t> {
    let mut info = MaybeUninit::<siginfo_t>::zeroed();
    request(libc::PTRACE_GETSIGINFO, tid, 0, info.as_mut_ptr() as usize)?;
    // SAFETY: the request succeeded, so the kernel filled the structure; it also is valid when all zero.
    Ok(unsafe { info.assume_init() })
}

pub(super) fn registers(tid: i32) -> Result<user_regs_struct> {
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
pub(super) fn set_registers(tid: i32, registers: &user_regs_struct) -> Result<()> {
    request(libc::PTRACE_SETREGS, tid, 0, &raw const *registers as usize)
}

pub(super) fn set_rip(tid: i32, value: u64) -> Result<()> {
    let offset = mem::offset_of!(user_regs_struct, rip);
    request(libc::PTRACE_POKEUSER, tid, offset, value as usize)
}

pub(super) fn set_rax(tid: i32, value: u64) -> Result<()> {
    let offset = mem::offset_of!(user_regs_struct, rax);
    request(libc::PTRACE_POKEUSER, tid, offset, value as usize)
}

/// Reads the eight bytes at `address`.
pub(super) fn peek(tid: i32, address: u64) -> Result<[u8; 8]> {
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
pub(super) fn poke(tid: i32, address: u64, word: [u8; 8]) -> Result<()> {
    let word = u64::from_le_bytes(word);
    request(libc::PTRACE_POKEDATA, tid, address as usize, word as usize)
}

/// Releases a traced thread that has ended, if it has. Must not be used on a thread group's leader: that would take its
/// exit status away from whoever waits for the process.
pub(super) fn reap(tid: i32) {
    // SAFETY: a null status pointer is allowed; WNOHANG makes the call return at once. That there is nothing to reap is
    // no error to anyone.
    unsafe { libc::waitpid(tid, std::ptr::null_mut(), libc::WNOHANG | libc::__WALL) };
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

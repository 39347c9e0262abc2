//! Restarts system calls that a stop interrupted, including those that the kernel ends with EINTR.

use super::{Registers, ptrace};

/// Returns whether the thread, when released, may go back to the system call instruction that ends at its `rip`.
pub(crate) fn may_restart(registers: &Registers) -> bool {
    const FIRST: i64 = -516; // -ERESTART_RESTARTBLOCK
    const LAST: i64 = -512; // -ERESTARTSYS
    let in_syscall = registers.orig_rax as i64 >= 0;
    let result = registers.rax as i64;
    in_syscall && (FIRST..=LAST).contains(&result) || is_interrupted_for_nothing(registers)
}

/// Some system calls end with EINTR when a thread is merely interrupted, although no signal handler ran (signal(7)
/// lists them). Programs without signal handlers take that for a failure. This was seen with epoll_wait in a program
/// stopped by a debugger. So the result is replaced by the kernel's own code for "restart, unless a handler runs first,
/// then EINTR", exactly what other calls return.
pub(crate) fn ask_for_restart(tid: i32) {
    const RESTART_UNLESS_HANDLED: i64 = -514; // -ERESTARTNOHAND
    if ptrace::registers(tid).is_ok_and(|registers| is_interrupted_for_nothing(&registers)) {
        // On failure the thread was killed.
        let _ = ptrace::set_rax(tid, RESTART_UNLESS_HANDLED as u64);
    }
}

/// Returns whether the thread ends a system call with EINTR that then has no effect and may do so without a handler.
fn is_interrupted_for_nothing(registers: &Registers) -> bool {
    const IO_PGETEVENTS: i64 = 333; // not in the libc crate
    let failed = registers.rax as i64 == -i64::from(libc::EINTR);
    failed
        && matches!(
            registers.orig_rax as i64,
            libc::SYS_epoll_wait
                | libc::SYS_epoll_pwait
                | libc::SYS_epoll_pwait2
                | libc::SYS_rt_sigtimedwait
                | libc::SYS_semop
                | libc::SYS_semtimedop
                | libc::SYS_io_getevents
                | IO_PGETEVENTS
                | libc::SYS_io_uring_enter
                | libc::SYS_recvfrom
                | libc::SYS_recvmsg
                | libc::SYS_accept
                | libc::SYS_accept4
        )
}

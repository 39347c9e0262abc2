//! Calls whose first argument, or second, says what they do: fcntl, prctl, arch_prctl; and those of asynchronous work.

use super::call::{Call, Ranges, known, none, one};
use super::written::Written;

const INT: u64 = 4;
const LONG: u64 = 8;
const FLOCK: u64 = size_of::<libc::flock>() as u64;
const PR_GET_AUXV: i32 = 0x4155_5856;
const PR_SET_MM_MAP_SIZE: u64 = 14;

pub(super) fn written(call: &Call) -> Option<Written> {
    Some(match call.number() {
        libc::SYS_fcntl => descriptor(call),
        libc::SYS_prctl => process(call),
        libc::SYS_arch_prctl => processor(call),
        // Refused, before anything else is done.
        libc::SYS_io_uring_setup
            if call.failed_with(libc::ENOSYS) || call.failed_with(libc::EPERM) =>
        {
            none()
        }
        // The kernel writes buffers and rings while the program runs on. What bpf writes depends on a structure of each command.
        libc::SYS_io_uring_setup | libc::SYS_io_uring_enter | libc::SYS_io_uring_register => {
            Written::Unknown
        }
        libc::SYS_io_setup if call.returned().is_none() => none(),
        libc::SYS_bpf | libc::SYS_restart_syscall => Written::Unknown,
        libc::SYS_ptrace => tracer(call),
        // File systems by number: only the second use writes, a name.
        libc::SYS_sysfs if call.int(0) != 2 || call.returned().is_none() => none(),
        libc::SYS_quotactl | libc::SYS_quotactl_fd if call.returned().is_none() => none(),
        _ => return None,
    })
}

fn descriptor(call: &Call) -> Written {
    let to = call.arg(2);
    let len = match call.int(1) {
        libc::F_GETLK | libc::F_OFD_GETLK => FLOCK,
        // F_GETOWN_EX, F_GETOWNER_UIDS
        16 | 17 => 2 * INT,
        // F_GET_RW_HINT, F_GET_FILE_RW_HINT
        1035 | 1037 => LONG,
        // Descriptors, flags, locks that are set, owners and signals.
        0..=4 | 6..=11 | 15 | 37 | 38 => 0,
        // Leases, notices, pipes' sizes, seals, hints that are set.
        1024..=1028 | 1030..=1034 | 1036 | 1038 => 0,
        // There is no such command, or nothing to take it.
        _ if call.failed_with(libc::EINVAL) || call.failed_with(libc::EBADF) => 0,
        _ => return Written::Unknown,
    };
    match call.returned() {
        Some(_) => one(to, len),
        None => none(),
    }
}

fn process(call: &Call) -> Written {
    let Some(result) = call.returned() else {
        return none();
    };
    let to = call.arg(1);
    match call.int(0) {
        libc::PR_GET_PDEATHSIG | libc::PR_GET_CHILD_SUBREAPER | libc::PR_GET_TSC => one(to, INT),
        libc::PR_GET_NAME => one(to, 16),
        libc::PR_GET_TID_ADDRESS => one(to, LONG),
        PR_GET_AUXV => one(to, result.min(call.arg(2))),
        libc::PR_SET_MM if to == PR_SET_MM_MAP_SIZE => one(call.arg(2), INT),
        // Of cores that are shared: only to get the cookie writes.
        libc::PR_SCHED_CORE if to == 0 => one(call.arg(4), LONG),
        libc::PR_SET_PDEATHSIG
        | libc::PR_SET_NAME
        | libc::PR_SET_CHILD_SUBREAPER
        | libc::PR_SET_TSC
        | libc::PR_GET_DUMPABLE
        | libc::PR_SET_DUMPABLE
        | libc::PR_GET_KEEPCAPS
        | libc::PR_SET_KEEPCAPS
        | libc::PR_GET_TIMING
        | libc::PR_SET_TIMING
        | libc::PR_GET_SECCOMP
        | libc::PR_SET_SECCOMP
        | libc::PR_CAPBSET_READ
        | libc::PR_CAPBSET_DROP
        | libc::PR_GET_SECUREBITS
        | libc::PR_SET_SECUREBITS
        | libc::PR_GET_TIMERSLACK
        | libc::PR_SET_TIMERSLACK
        | libc::PR_TASK_PERF_EVENTS_DISABLE
        | libc::PR_TASK_PERF_EVENTS_ENABLE
        | libc::PR_MCE_KILL
        | libc::PR_MCE_KILL_GET
        | libc::PR_SET_MM
        | libc::PR_SET_PTRACER
        | libc::PR_GET_NO_NEW_PRIVS
        | libc::PR_SET_NO_NEW_PRIVS
        | libc::PR_GET_THP_DISABLE
        | libc::PR_SET_THP_DISABLE
        | libc::PR_CAP_AMBIENT
        | libc::PR_GET_SPECULATION_CTRL
        | libc::PR_SET_SPECULATION_CTRL
        | libc::PR_SCHED_CORE
        | libc::PR_GET_MDWE
        | libc::PR_SET_MDWE
        | libc::PR_SET_VMA => none(),
        // PR_SET_IO_FLUSHER, PR_GET_IO_FLUSHER, PR_SET_SYSCALL_USER_DISPATCH; PR_SET_MEMORY_MERGE, PR_GET_MEMORY_MERGE
        57..=59 | 67 | 68 => none(),
        _ => Written::Unknown,
    }
}

/// What a tracer is told.
fn tracer(call: &Call) -> Written {
    const SIGNAL: u64 = size_of::<libc::siginfo_t>() as u64;
    let Some(result) = call.returned() else {
        return none();
    };
    let to = call.arg(3);
    match call.int(0) {
        // PTRACE_PEEKTEXT, PTRACE_PEEKDATA, PTRACE_PEEKUSER; PTRACE_GETEVENTMSG, PTRACE_GETSIGMASK
        1..=3 | 0x4201 | 0x420a => one(to, LONG),
        // PTRACE_GETREGS, PTRACE_GETFPREGS
        12 => one(to, size_of::<libc::user_regs_struct>() as u64),
        14 => one(to, size_of::<libc::user_fpregs_struct>() as u64),
        // PTRACE_GETSIGINFO; PTRACE_PEEKSIGINFO, whose result is a count.
        0x4202 => one(to, SIGNAL),
        0x4209 => one(to, result.saturating_mul(SIGNAL)),
        // PTRACE_GETREGSET and PTRACE_SETREGSET tell in an iovec how much there is.
        0x4204 => known(register_set(call, to)),
        0x4205 => one(to, 2 * LONG),
        // PTRACE_GET_SYSCALL_INFO, PTRACE_GET_RSEQ_CONFIGURATION: the result is the length of all.
        0x420e | 0x420f => one(to, result.min(call.arg(2))),
        // What sets, and what starts, stops and ends tracing.
        0 | 4..=9 | 13 | 15..=17 | 24 | 0x4200 | 0x4203 | 0x4206..=0x4208 | 0x420b => none(),
        _ => Written::Unknown,
    }
}

fn register_set(call: &Call, vector: u64) -> Option<Ranges> {
    let (to, len) = (
        call.u64_at(vector)?,
        call.u64_at(vector.checked_add(LONG)?)?,
    );
    let ranges = Ranges::default().with(to, len);
    // The iovec is read after the call: it may be what the call wrote.
    let is_sure = !ranges.overlap(vector, 2 * LONG);
    is_sure.then(|| ranges.with(vector, 2 * LONG))
}

fn processor(call: &Call) -> Written {
    if call.returned().is_none() {
        return none();
    }
    match call.int(0) {
        // ARCH_GET_FS, ARCH_GET_GS; the components of the state that may be used; masks of addresses; the shadow stack.
        0x1003 | 0x1004 | 0x1021 | 0x1022 | 0x1024 | 0x4001 | 0x4003 | 0x5005 => {
            Ranges::default().with(call.arg(1), LONG).done()
        }
        // ARCH_SET_GS, ARCH_SET_FS, ARCH_GET_CPUID, ARCH_SET_CPUID; the same things, set.
        0x1001 | 0x1002 | 0x1011 | 0x1012 | 0x1023 | 0x1025 | 0x4002 | 0x4004 => none(),
        // Mappings.
        0x2001..=0x2003 => none(),
        _ => Written::Unknown,
    }
}

//! Processes and threads: starting them, waiting for them, who they are, and the words of locks.

use super::call::{Call, Outcome, Ranges, known, none, one};
use super::written::Written;

const INT: u64 = 4;
const RUSAGE: u64 = size_of::<libc::rusage>() as u64;
/// `FUTEX_LOCK_PI2`
const FUTEX_LOCK_PI2: i32 = 13;
const RSEQ_FLAG_UNREGISTER: i32 = 1;
const SECCOMP_GET_NOTIF_SIZES: i32 = 3;

pub(super) fn written(call: &Call) -> Option<Written> {
    Some(match call.number() {
        libc::SYS_clone => started(call, call.arg(0), [2, 2, 3].map(|at| call.arg(at))),
        libc::SYS_clone3 => by_structure(call),
        libc::SYS_execve | libc::SYS_execveat => match call.returned() {
            // The memory is another one.
            Some(_) => Written::Unknown,
            None => none(),
        },
        libc::SYS_wait4 => match call.returned() {
            Some(1..) => {
                let status = Ranges::default().with(call.arg(1), INT);
                status.with(call.arg(3), RUSAGE).done()
            }
            _ => none(),
        },
        libc::SYS_waitid => waited(call),
        libc::SYS_futex => lock(call),
        libc::SYS_getgroups => match (call.int(0), call.returned()) {
            (1.., Some(count)) => one(call.arg(1), count * INT),
            _ => none(),
        },
        libc::SYS_capget => capabilities(call, true),
        libc::SYS_capset => capabilities(call, false),
        libc::SYS_sched_getaffinity => one(call.arg(2), call.returned().unwrap_or(0)),
        libc::SYS_sched_getattr => match call.returned() {
            // Newer kernels clear what they do not know.
            Some(_) => one(call.arg(1), u64::from(call.int(2) as u32)),
            None => none(),
        },
        // These two tell which length they know.
        libc::SYS_sched_setattr if call.failed_with(libc::E2BIG) => one(call.arg(1), INT),
        libc::SYS_perf_event_open if call.failed_with(libc::E2BIG) => {
            one(call.arg(0).saturating_add(4), INT)
        }
        libc::SYS_sched_setattr | libc::SYS_perf_event_open => none(),
        libc::SYS_rseq => restartable(call),
        libc::SYS_seccomp => match (call.int(0), call.returned()) {
            (SECCOMP_GET_NOTIF_SIZES, Some(_)) => one(call.arg(2), 6),
            (0..=SECCOMP_GET_NOTIF_SIZES, _) | (_, None) => none(),
            _ => Written::Unknown,
        },
        _ => return None,
    })
}

/// What `clone` writes to the addresses for the descriptor of the process, for the parent and for the child.
fn started(call: &Call, flags: u64, [descriptor, parent, child]: [u64; 3]) -> Written {
    let has = |flag: i32| flags & flag as u64 != 0;
    let mut ranges = Ranges::default();
    // The child itself writes its number, before its first instruction.
    let is_child = call.returned() == Some(0);
    if has(libc::CLONE_CHILD_SETTID)
        && (is_child || call.returned().is_some() && has(libc::CLONE_VM))
    {
        ranges.push(child, INT);
    }
    if has(libc::CLONE_PARENT_SETTID) && !is_child && call.returned().is_some() {
        ranges.push(parent, INT);
    }
    // This is written before all that can still fail.
    if has(libc::CLONE_PIDFD) && !is_child {
        ranges.push(descriptor, INT);
    }
    ranges.done()
}

fn by_structure(call: &Call) -> Written {
    let structure = call.arg(0);
    let field = |at| call.u64_at(structure.checked_add(at)?);
    let fields = || Some((field(0)?, field(8)?, field(24)?, field(16)?));
    let Some((flags, descriptor, parent, child)) = fields() else {
        return Written::Unknown;
    };
    let written = started(call, flags, [descriptor, parent, child]);
    match &written {
        // The structure is read after the call: it may be what the call wrote.
        Written::Exactly(ranges)
            if ranges.iter().any(|&(start, len)| {
                start < structure.saturating_add(call.arg(1)) && structure < start + len
            }) =>
        {
            Written::Unknown
        }
        _ => written,
    }
}

/// The kernel writes the fields also when there is no child, and when a signal came.
fn waited(call: &Call) -> Written {
    let info = call.arg(2);
    let mut ranges = Ranges::default();
    if info != 0 {
        // Signal, error and code; process, user and status.
        ranges.push(info, 3 * INT);
        ranges.push(info.saturating_add(16), 3 * INT);
    }
    if call.returned().is_some() {
        ranges.push(call.arg(4), RUSAGE);
    }
    ranges.done()
}

fn lock(call: &Call) -> Written {
    let flags = libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME;
    let (word, other) = (call.arg(0), call.arg(4));
    match call.int(1) & !flags {
        libc::FUTEX_WAIT
        | libc::FUTEX_WAKE
        | libc::FUTEX_REQUEUE
        | libc::FUTEX_CMP_REQUEUE
        | libc::FUTEX_WAIT_BITSET
        | libc::FUTEX_WAKE_BITSET => none(),
        // The word also says that somebody waits, whatever the end.
        libc::FUTEX_LOCK_PI | libc::FUTEX_UNLOCK_PI | libc::FUTEX_TRYLOCK_PI | FUTEX_LOCK_PI2 => {
            one(word, INT)
        }
        libc::FUTEX_WAKE_OP | libc::FUTEX_WAIT_REQUEUE_PI | libc::FUTEX_CMP_REQUEUE_PI => {
            one(other, INT)
        }
        _ if call.failed_with(libc::ENOSYS) => none(),
        _ => Written::Unknown,
    }
}

/// The header tells the newest version when it asked for an unknown one.
fn capabilities(call: &Call, gets: bool) -> Written {
    let header = call.arg(0);
    let mut ranges = Ranges::default();
    let version = match call.outcome() {
        Outcome::Failed(libc::EINVAL) => return one(header, INT),
        Outcome::Returned(_) => call.u32_at(header),
        _ => return none(),
    };
    if gets {
        ranges.push(header, INT);
        match version {
            Some(0x1998_0330) => ranges.push(call.arg(1), 3 * INT),
            Some(0x2007_1026 | 0x2008_0522) => ranges.push(call.arg(1), 6 * INT),
            _ => return Written::Unknown,
        }
        let is_sure = !one_overlaps(call.arg(1), 6 * INT, header, INT);
        return known(is_sure.then_some(ranges));
    }
    ranges.done()
}

fn one_overlaps(start: u64, len: u64, other: u64, other_len: u64) -> bool {
    Ranges::default().with(start, len).overlap(other, other_len)
}

/// The kernel writes the processor's number when the program goes on, not before; from then on it does so at any time.
fn restartable(call: &Call) -> Written {
    match call.returned() {
        None => none(),
        Some(_) if call.int(2) == RSEQ_FLAG_UNREGISTER => {
            one(call.arg(0), u64::from(call.int(1) as u32))
        }
        Some(_) => Written::Unknown,
    }
}

//! The calls that write structures of fixed lengths where their arguments say.

use super::call::{Call, Outcome, Ranges, none};
use super::written::Written;

/// Arguments that are addresses, and the lengths of what the kernel writes there. An address of zero stands for no wish.
type Outputs = &'static [(usize, u64)];

const INT: u64 = 4;
const LONG: u64 = 8;
const TIME: u64 = size_of::<libc::timespec>() as u64;
const INTERVAL: u64 = size_of::<libc::itimerspec>() as u64;
const STAT: u64 = size_of::<libc::stat>() as u64;
const STATX: u64 = size_of::<libc::statx>() as u64;
const STATFS: u64 = size_of::<libc::statfs>() as u64;
const RLIMIT: u64 = size_of::<libc::rlimit>() as u64;
const RUSAGE: u64 = size_of::<libc::rusage>() as u64;
const TIMEX: u64 = size_of::<libc::timex>() as u64;
/// `cachestat`, which `libc` has no name for.
const CACHESTAT: i64 = 451;

pub(super) fn written(call: &Call) -> Option<Written> {
    let (outputs, when_failed) = match at_any_end(call.number()) {
        Some(outputs) => (outputs, true),
        None => (when_it_succeeds(call.number())?, false),
    };
    let mut ranges = Ranges::default();
    match call.outcome() {
        // Parts of what it should have written may be there; the rest cannot be written.
        Outcome::Failed(libc::EFAULT) => {
            for &(arg, len) in outputs {
                ranges.push(call.arg(arg), call.readable(call.arg(arg), len));
            }
        }
        Outcome::Failed(_) | Outcome::Interrupted if !when_failed => return Some(none()),
        _ => outputs
            .iter()
            .for_each(|&(arg, len)| ranges.push(call.arg(arg), len)),
    }
    Some(ranges.done())
}

/// Calls that write also when they fail.
fn at_any_end(number: i64) -> Option<Outputs> {
    Some(match number {
        // The numbers of the descriptors are written before the sockets are made.
        libc::SYS_socketpair => &[(3, 2 * INT)],
        libc::SYS_sendfile => &[(2, LONG)],
        libc::SYS_adjtimex => &[(0, TIMEX)],
        libc::SYS_timer_create => &[(2, INT)],
        // Its result is a count of ticks, and may look like an error.
        libc::SYS_times => &[(0, size_of::<libc::tms>() as u64)],
        _ => return None,
    })
}

fn when_it_succeeds(number: i64) -> Option<Outputs> {
    Some(match number {
        libc::SYS_stat | libc::SYS_fstat | libc::SYS_lstat => &[(1, STAT)],
        libc::SYS_newfstatat => &[(2, STAT)],
        libc::SYS_statx => &[(4, STATX)],
        libc::SYS_statfs | libc::SYS_fstatfs => &[(1, STATFS)],
        // Three fields of 8 bytes, the last with two names of 6.
        libc::SYS_ustat => &[(1, 32)],
        libc::SYS_splice | libc::SYS_copy_file_range => &[(1, LONG), (3, LONG)],
        CACHESTAT => &[(2, 40)],
        libc::SYS_pipe | libc::SYS_pipe2 => &[(0, 2 * INT)],
        // Six names of 65 bytes.
        libc::SYS_uname => &[(0, 390)],
        libc::SYS_sysinfo => &[(0, size_of::<libc::sysinfo>() as u64)],
        libc::SYS_getrusage => &[(1, RUSAGE)],
        libc::SYS_getrlimit => &[(1, RLIMIT)],
        libc::SYS_prlimit64 => &[(3, RLIMIT)],
        libc::SYS_getresuid | libc::SYS_getresgid => &[(0, INT), (1, INT), (2, INT)],
        libc::SYS_getcpu => &[(0, INT), (1, INT)],
        libc::SYS_get_robust_list => &[(1, LONG), (2, LONG)],
        libc::SYS_sched_getparam => &[(1, INT)],
        libc::SYS_sched_rr_get_interval => &[(1, TIME)],
        libc::SYS_gettimeofday => &[(0, TIME), (1, 2 * INT)],
        libc::SYS_time => &[(0, LONG)],
        libc::SYS_clock_gettime | libc::SYS_clock_getres => &[(1, TIME)],
        libc::SYS_clock_adjtime => &[(1, TIMEX)],
        libc::SYS_getitimer | libc::SYS_timer_gettime | libc::SYS_timerfd_gettime => {
            &[(1, INTERVAL)]
        }
        libc::SYS_setitimer => &[(2, INTERVAL)],
        libc::SYS_timer_settime | libc::SYS_timerfd_settime => &[(3, INTERVAL)],
        // The kernel's own structure: handler, flags, restorer, mask.
        libc::SYS_rt_sigaction => &[(2, 32)],
        libc::SYS_rt_sigtimedwait => &[(1, size_of::<libc::siginfo_t>() as u64)],
        libc::SYS_sigaltstack => &[(1, size_of::<libc::stack_t>() as u64)],
        libc::SYS_mq_getsetattr => &[(2, size_of::<libc::mq_attr>() as u64)],
        _ => return None,
    })
}

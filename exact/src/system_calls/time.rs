//! Time: what is left of a pause that a signal ended.

use super::call::{Call, none, one};
use super::written::Written;

pub(super) fn written(call: &Call) -> Option<Written> {
    Some(match call.number() {
        libc::SYS_nanosleep => rest(call, 1),
        libc::SYS_clock_nanosleep if call.int(1) & libc::TIMER_ABSTIME != 0 => none(),
        libc::SYS_clock_nanosleep => rest(call, 3),
        _ => return None,
    })
}

fn rest(call: &Call, at: usize) -> Written {
    match call.was_interrupted() {
        true => one(call.arg(at), size_of::<libc::timespec>() as u64),
        false => none(),
    }
}

//! Signals: sets of them, whose length in bytes is an argument.

use super::call::{Call, none, one};
use super::written::Written;

/// What the kernel knows of a set.
const SET: u64 = 8;

pub(super) fn written(call: &Call) -> Option<Written> {
    Some(match call.number() {
        libc::SYS_rt_sigprocmask => set(call, 2, 3),
        libc::SYS_rt_sigpending => set(call, 0, 1),
        _ => return None,
    })
}

fn set(call: &Call, at: usize, len: usize) -> Written {
    match call.returned() {
        Some(_) => one(call.arg(at), call.arg(len).min(SET)),
        None => none(),
    }
}

//! Waiting for descriptors: poll, select, epoll.

use super::call::{Call, Ranges, none};
use super::files::filled_to;
use super::written::Written;

const TIME: u64 = size_of::<libc::timespec>() as u64;
const POLLFD: u64 = size_of::<libc::pollfd>() as u64;
const EPOLL_EVENT: u64 = size_of::<libc::epoll_event>() as u64;

pub(super) fn written(call: &Call) -> Option<Written> {
    Some(match call.number() {
        libc::SYS_poll => events(call).done(),
        // The kernel writes the rest of the time whatever the end of these, EINTR and other errors included.
        libc::SYS_ppoll => events(call).with(call.arg(2), TIME).done(),
        libc::SYS_select | libc::SYS_pselect6 => sets(call).with(call.arg(4), TIME).done(),
        libc::SYS_epoll_wait | libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => {
            match call.returned() {
                Some(count) => {
                    let room = u64::from(call.int(2) as u32) * EPOLL_EVENT;
                    filled_to(call, call.arg(1), count * EPOLL_EVENT, room)
                }
                None => none(),
            }
        }
        _ => return None,
    })
}

/// From the first `revents` to the end of the last one: all are written, also when a signal came.
fn events(call: &Call) -> Ranges {
    let mut ranges = Ranges::default();
    let count = u64::from(call.int(1) as u32);
    if count > 0 && (call.returned().is_some() || call.was_interrupted()) {
        let before = std::mem::offset_of!(libc::pollfd, revents) as u64;
        ranges.push(call.arg(0).saturating_add(before), count * POLLFD - before);
    }
    ranges
}

/// The three sets, in whole words.
fn sets(call: &Call) -> Ranges {
    let mut ranges = Ranges::default();
    if call.returned().is_some() {
        let len = u64::try_from(call.int(0)).unwrap_or(0).div_ceil(64) * 8;
        for at in 1..=3 {
            ranges.push(call.arg(at), len);
        }
    }
    ranges
}

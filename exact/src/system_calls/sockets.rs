//! Sockets: what is received, addresses, options.

use super::call::{Call, Ranges, known, none, one};
use super::files::filled;
use super::written::Written;

/// `struct mmsghdr`: a `struct msghdr` of 56 bytes, then the count of bytes.
const MANY_HEADER: u64 = 64;
const HEADER: u64 = 56;
const TIME: u64 = size_of::<libc::timespec>() as u64;

pub(super) fn written(call: &Call) -> Option<Written> {
    Some(match call.number() {
        libc::SYS_accept | libc::SYS_accept4 | libc::SYS_getsockname | libc::SYS_getpeername => {
            match call.returned() {
                Some(_) => known(address(call, call.arg(1), call.arg(2))),
                None => none(),
            }
        }
        libc::SYS_recvfrom => from(call),
        libc::SYS_recvmsg => match call.returned() {
            Some(count) => known(message(call, call.arg(1), call.int(2), count)),
            None => failed_to_receive(call),
        },
        libc::SYS_recvmmsg => match call.returned() {
            Some(count) => known(messages(call, count)),
            None => failed_to_receive(call),
        },
        libc::SYS_sendmmsg => sent(call),
        libc::SYS_getsockopt => option(call),
        libc::SYS_setsockopt => set_option(call),
        _ => return None,
    })
}

/// The address of a socket, and its length. The kernel writes as much as there is room for, but the whole length.
fn address(call: &Call, name: u64, len: u64) -> Option<Ranges> {
    let mut ranges = Ranges::default();
    if name != 0 {
        ranges.push(name, u64::from(call.u32_at(len)?));
        // The length is read after the call: it must not be a part of the address.
        if ranges.overlap(len, 4) {
            return None;
        }
        ranges.push(len, 4);
    }
    Some(ranges)
}

/// The room for an address is looked at after the data has been written.
fn failed_to_receive(call: &Call) -> Written {
    match call.failed_with(libc::EINVAL) {
        true => Written::Unknown,
        false => none(),
    }
}

fn from(call: &Call) -> Written {
    if call.returned().is_none() {
        return failed_to_receive(call);
    }
    let Written::Exactly(data) = filled(call, call.arg(1), call.arg(2)) else {
        return Written::Unknown;
    };
    let Some(mut ranges) = address(call, call.arg(4), call.arg(5)) else {
        return Written::Unknown;
    };
    for (start, len) in data {
        ranges.push(start, len);
    }
    ranges.done()
}

/// What a `struct msghdr` names and holds, for a message of so many bytes.
fn message(call: &Call, header: u64, flags: i32, count: u64) -> Option<Ranges> {
    let field = |at| call.u64_at(header.checked_add(at)?);
    let (name, array, buffers) = (field(0)?, field(16)?, field(24)?);
    let (mut ranges, left) = call.spread_what_fits(array, buffers, count)?;
    // Only on request is the result longer than the buffers. Otherwise they are not those of the call: it wrote over the header.
    let may_be_longer = flags & libc::MSG_TRUNC != 0;
    if left > 0 && !may_be_longer {
        return None;
    }
    let mut others = Ranges::default();
    if name != 0 {
        others.push(name, u64::from(call.u32_at(header + 8)?));
    }
    others.push(field(32)?, field(40)?);
    if others.overlap(array, buffers * 16) {
        return None;
    }
    ranges.extend(others);
    // The header is read after the call: nothing of the message may have come over it.
    if ranges.overlap(header, HEADER) {
        return None;
    }
    if name != 0 {
        ranges.push(header + 8, 4);
    }
    ranges.push(header + 40, 8);
    ranges.push(header + 48, 4);
    Some(ranges)
}

fn messages(call: &Call, count: u64) -> Option<Ranges> {
    let (array, room) = (call.arg(1), u64::from(call.int(2) as u32));
    let header = |at: u64| array.checked_add(at.checked_mul(MANY_HEADER)?);
    let mut ranges = Ranges::default();
    for at in 0..count {
        let header = header(at)?;
        let filled = call.u32_at(header.checked_add(HEADER)?)?;
        ranges.extend(message(call, header, call.int(3), u64::from(filled))?);
        ranges.push(header + HEADER, 4);
    }
    if count > 0 {
        ranges.push(call.arg(4), TIME);
    }
    if count > 0 && count < room {
        // The next message may have failed with a part of it written.
        let next = header(count)?;
        let field = |at| call.u64_at(next.checked_add(at)?);
        call.spread(field(16)?, field(24)?, 0)?;
    }
    Some(ranges)
}

/// `sendmmsg` writes how much of each message it sent.
fn sent(call: &Call) -> Written {
    let mut ranges = Ranges::default();
    for at in 0..call.returned().unwrap_or(0) {
        let header = call.arg(1).saturating_add(at * MANY_HEADER);
        ranges.push(header.saturating_add(HEADER), 4);
    }
    ranges.done()
}

/// Whether an option is a plain value, whose length in bytes the kernel gives back.
fn is_plain(level: i32, name: i32) -> bool {
    // SO_PEERPIDFD, the newest that is known here.
    const NEWEST_OF_SOCKETS: i32 = 77;
    match level {
        // A filter's length is counted in instructions.
        libc::SOL_SOCKET => name != libc::SO_ATTACH_FILTER && name <= NEWEST_OF_SOCKETS,
        // TCP_ZEROCOPY_RECEIVE and those after TCP_TX_DELAY name memory of their own.
        libc::IPPROTO_TCP => name != 35 && name <= 37,
        // IP_PKTOPTIONS is in the form of a message; filters of sources and netfilter's options have lists.
        libc::IPPROTO_IP => ![9, 41, 48].contains(&name) && name <= 50,
        libc::IPPROTO_IPV6 => ![6, 48, 64, 65].contains(&name) && name <= 80,
        libc::IPPROTO_UDP => true,
        // The list of memberships has a length of its own.
        libc::SOL_NETLINK => name != libc::NETLINK_LIST_MEMBERSHIPS,
        _ => false,
    }
}

fn option(call: &Call) -> Written {
    let (level, name) = (call.int(1), call.int(2));
    let (value, len) = (call.arg(3), call.arg(4));
    if call.failed_with(libc::EBADF) || call.failed_with(libc::ENOTSOCK) {
        return none();
    }
    if !is_plain(level, name) {
        return Written::Unknown;
    }
    if call.returned().is_none() {
        // Some tell how much room they need.
        return one(len, 4);
    }
    known(address(call, value, len).map(|ranges| match value {
        0 => ranges.with(len, 4),
        _ => ranges,
    }))
}

fn set_option(call: &Call) -> Written {
    // Tables of netfilter (of IP, of ARP, of bridges): the old counters are written to where the new table says.
    let is_of_netfilter = [64, 96, 128].contains(&call.int(2))
        && [libc::IPPROTO_IP, libc::IPPROTO_IPV6].contains(&call.int(1));
    match is_of_netfilter {
        true => Written::Unknown,
        false => none(),
    }
}

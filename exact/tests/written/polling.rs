//! Waiting for descriptors, and signals that end it.

use std::os::fd::AsRawFd;

use crate::region::Region;
use crate::times::after_a_signal;

fn sockets() -> [std::os::unix::net::UnixStream; 2] {
    let (one, other) = std::os::unix::net::UnixStream::pair().unwrap();
    [one, other]
}

fn polled(region: &Region, fds: &[i32]) -> u64 {
    let entries = fds.iter().flat_map(|fd| {
        let mut entry = fd.to_le_bytes().to_vec();
        entry.extend(libc::POLLIN.to_le_bytes());
        entry.extend([0xff, 0xff]);
        entry
    });
    region.put(&entries.collect::<Vec<u8>>())
}

#[test]
fn what_came_is_told_of_all_descriptors() {
    let region = Region::new();
    let [one, other] = sockets();
    let fds = polled(&region, &[one.as_raw_fd(), -1, other.as_raw_fd(), 999]);
    region.ok(libc::SYS_poll, &[fds, 4, 0], 4 * 8 - 6);
    region.ok(libc::SYS_poll, &[fds, 0, 0], 0);
    let time = region.put_words(&[0, 5_000_000]);
    region.ok(libc::SYS_ppoll, &[fds, 1, time, 0, 8], 2 + 16);
    region.ok(libc::SYS_ppoll, &[fds, 3, time, 0, 8], 3 * 8 - 6 + 16);
    let many = 1_u64 << 31;
    region.fails(libc::SYS_poll, &[fds, many, 0], libc::EINVAL, 0);
}

#[test]
fn a_signal_leaves_the_rest_of_the_time() {
    let region = Region::new();
    let [one, _other] = sockets();
    let fds = polled(&region, &[one.as_raw_fd()]);
    let time = region.put_words(&[30, 7]);
    after_a_signal(|| {
        region.fails(libc::SYS_ppoll, &[fds, 1, time, 0, 8], libc::EINTR, 2 + 16);
    });
    after_a_signal(|| region.fails(libc::SYS_poll, &[fds, 1, 30_000], libc::EINTR, 2));
    after_a_signal(|| {
        let args = [0, 0, 0, 0, time, 0];
        region.fails(libc::SYS_pselect6, &args, libc::EINTR, 16);
    });
    after_a_signal(|| {
        let args = [0, 0, 0, 0, time];
        region.fails(libc::SYS_select, &args, libc::EINTR, 16);
    });
}

#[test]
fn sets_are_written_in_words() {
    let region = Region::new();
    let [one, _other] = sockets();
    // Tests beside this one have descriptors too.
    let fd = one.as_raw_fd() as usize;
    let set = || {
        let mut words = [0; 16];
        words[fd / 64] = 1 << (fd % 64);
        region.put_words(&words)
    };
    let (reads, writes, others) = (set(), set(), set());
    let time = region.put_words(&[0, 5000]);
    let args = [256, reads, writes, others, time];
    region.ok(libc::SYS_select, &args, 3 * 32 + 16);
    region.ok(libc::SYS_select, &[257, set(), 0, 0, time], 40 + 16);
    let time = region.put_words(&[0, 5_000_000]);
    region.ok(libc::SYS_pselect6, &[192, set(), 0, 0, time, 0], 24 + 16);
    region.ok(libc::SYS_pselect6, &[0, 0, 0, 0, time, 0], 16);
    let negative = u64::from(u32::MAX);
    region.fails(libc::SYS_select, &[negative, 0, 0, 0, 0], libc::EINVAL, 0);
}

#[test]
fn events_are_packed() {
    let region = Region::new();
    let [one, other] = sockets();
    let fd = region.ok(libc::SYS_epoll_create1, &[0], 0);
    for socket in [&one, &other] {
        let event = region.put(&[4, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
        let socket = socket.as_raw_fd() as u64;
        let args = [fd, libc::EPOLL_CTL_ADD as u64, socket, event];
        region.ok(libc::SYS_epoll_ctl, &args, 0);
    }
    let to = region.room(100);
    region.ok(libc::SYS_epoll_wait, &[fd, to, 8, 0], 24);
    region.ok(libc::SYS_epoll_pwait, &[fd, to, 1, 0, 0, 8], 12);
    let time = region.put_words(&[0, 1000]);
    region.ok(libc::SYS_epoll_pwait2, &[fd, to, 8, time, 0, 8], 24);
    // The second event does not fit before the end of memory: a part of it may be there.
    let edge = region.end() - 20;
    assert_eq!(region.unknown(libc::SYS_epoll_wait, &[fd, edge, 8, 0]), 1);
    region.fails(libc::SYS_epoll_wait, &[999, to, 8, 0], libc::EBADF, 0);
}

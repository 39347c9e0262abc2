//! Controls of devices, by their numbers.
//!
//! A number may say itself which way data goes and how long it is, but not all keep to it: some structures name more memory, and some
//! numbers say nothing and write. The kinds whose numbers are true are listed.

use super::call::{Call, Ranges, known, none, one};
use super::written::Written;

const INT: u64 = 4;
const LONG: u64 = 8;
const IFREQ: u64 = size_of::<libc::ifreq>() as u64;
const SIOCGIFCONF: u32 = 0x8912;

pub(super) fn written(call: &Call) -> Option<Written> {
    if call.number() != libc::SYS_ioctl {
        return None;
    }
    // Nothing takes such a number, or there is nothing to take it.
    if call.failed_with(libc::ENOTTY) || call.failed_with(libc::EBADF) {
        return Some(none());
    }
    let (number, to) = (call.int(1) as u32, call.arg(2));
    if number == SIOCGIFCONF && call.returned().is_some() {
        return Some(known(interfaces(call, to)));
    }
    let len = of_terminals(number)
        .or_else(|| of_sockets(number))
        .or_else(|| of_files(number))
        .or_else(|| by_number(number));
    Some(match (len, call.returned()) {
        (None, _) => Written::Unknown,
        (Some(_), None) => none(),
        (Some(len), Some(_)) => one(to, len),
    })
}

fn of_terminals(number: u32) -> Option<u64> {
    Some(match number {
        // TCGETS: the kernel's structure, with 19 characters. TCGETA: the older one.
        0x5401 => 36,
        0x5405 => 18,
        // TIOCGPGRP, TIOCOUTQ, TIOCMGET, TIOCGSOFTCAR, FIONREAD, TIOCGETD, TIOCGSID, TIOCSERGETLSR
        0x540f | 0x5411 | 0x5415 | 0x5419 | 0x541b | 0x5424 | 0x5429 | 0x5459 => INT,
        // TIOCGWINSZ
        0x5413 => size_of::<libc::winsize>() as u64,
        // TIOCGSERIAL, TIOCGICOUNT
        0x541e => 72,
        0x545d => 80,
        // TIOCGPTPEER: its result is a descriptor.
        0x5441 => 0,
        // FIOQSIZE
        0x5460 => LONG,
        // What is set, sent, flushed and broken; FIONBIO, FIONCLEX, FIOCLEX, FIOASYNC.
        0x5402..=0x5404 | 0x5406..=0x540e | 0x5410 | 0x5412 | 0x5414 => 0,
        0x5416..=0x5418 | 0x541a | 0x541d | 0x541f..=0x5423 | 0x5425 => 0,
        0x5427 | 0x5428 | 0x5450..=0x5452 | 0x545c => 0,
        _ => return None,
    })
}

fn of_sockets(number: u32) -> Option<u64> {
    Some(match number {
        // FIOSETOWN, SIOCSPGRP; FIOGETOWN, SIOCGPGRP, SIOCATMARK
        0x8901 | 0x8902 => 0,
        0x8903..=0x8905 => INT,
        // SIOCGSTAMP, SIOCGSTAMPNS
        0x8906 | 0x8907 => 16,
        // SIOCGIFNAME, FLAGS, ADDR, DSTADDR, BRDADDR, NETMASK, METRIC, MEM, MTU
        0x8910 | 0x8913 | 0x8915 | 0x8917 | 0x8919 | 0x891b | 0x891d | 0x891f | 0x8921 => IFREQ,
        // SIOCGIFHWADDR, INDEX, PFLAGS, TXQLEN, MAP
        0x8927 | 0x8933 | 0x8935 | 0x8942 | 0x8970 => IFREQ,
        _ => return None,
    })
}

fn of_files(number: u32) -> Option<u64> {
    Some(match number {
        // FIGETBSZ
        2 => INT,
        // FICLONE, FICLONERANGE
        0x4004_9409 | 0x4020_940d => 0,
        // FS_IOC_SETFLAGS, FS_IOC_SETVERSION, FS_IOC_FSSETXATTR
        0x4008_6602 | 0x4008_7602 | 0x401c_5820 => 0,
        // BLKROGET, BLKRAGET, BLKFRAGET, BLKSECTGET, BLKSSZGET, BLKGETSIZE
        0x125e => INT,
        0x1263 | 0x1265 | 0x1260 => LONG,
        0x1267 => 2,
        0x1268 => INT,
        // Performance counters: on, off, refresh, reset; period, output, filter, program, pause.
        0x2400..=0x2403 | 0x2405 => 0,
        0x4008_2404 | 0x4008_2406 | 0x4004_2408 | 0x4004_2409 => 0,
        // Namespaces: what is above it, and of which kind; its owner.
        0xb701..=0xb703 => 0,
        0xb704 => INT,
        // TIOCSPTLCK, TIOCSIG
        0x4004_5431 | 0x4004_5436 => 0,
        _ => return None,
    })
}

/// What only gives, by the length in its number, for kinds that keep to it.
fn by_number(number: u32) -> Option<u64> {
    const GIVES: u32 = 2;
    let (direction, len) = (number >> 30, number >> 16 & 0x3fff);
    let of_kind = number & 0xff;
    let is_true = match (number >> 8 & 0xff) as u8 {
        // Terminals; network tunnels have the same letter, and give more than they say.
        b'T' => (0x20..0x60).contains(&of_kind),
        // Clocks; signals of time have the same letter, and give the length of an address.
        b'p' => of_kind < 0x20,
        // Devices for input; masks have an address.
        b'E' => of_kind != 0x92,
        // How random the kernel is.
        b'R' => of_kind == 0,
        b'$' => number == 0x8008_2407,
        // FS_IOC_GETFLAGS, FS_IOC_GETVERSION, FS_IOC_FSGETXATTR
        b'f' | b'v' => of_kind == 1,
        b'X' => of_kind == 31,
        // Sizes of block devices.
        0x12 => [112, 114].contains(&of_kind),
        _ => false,
    };
    (is_true && direction == GIVES).then_some(u64::from(len))
}

/// `struct ifconf`: how much was written, and where.
fn interfaces(call: &Call, to: u64) -> Option<Ranges> {
    let (len, list) = (call.u32_at(to)?, call.u64_at(to.checked_add(8)?)?);
    let ranges = Ranges::default().with(list, u64::from(len));
    let is_sure = !ranges.overlap(to, 16);
    is_sure.then_some(ranges.with(to, INT))
}

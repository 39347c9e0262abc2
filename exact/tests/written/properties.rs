//! Buffers of random lengths and places, some of them past the end of memory.

use std::io::{Seek, Write};
use std::os::fd::AsRawFd;

use proptest::prelude::{ProptestConfig, any, proptest};
use proptest::{collection, prop_assert, prop_assert_eq};

use crate::region::Region;

/// Buffers, in words of an array of `iovec`; `true` puts one across the end of memory. Gives how long all are together.
fn buffers(region: &Region, lens: &[(u16, bool)]) -> (u64, u64) {
    let mut words = Vec::new();
    for &(len, is_at_end) in lens {
        let len = u64::from(len % 300);
        let base = match is_at_end {
            true => region.end() - len / 2,
            false => region.room(len as usize),
        };
        words.extend([base, len]);
    }
    let all = words.iter().skip(1).step_by(2).sum();
    (region.put_words(&words), all)
}

/// What may be said of a call: nothing, or as many bytes as it wrote.
fn check((result, claimed): (i64, Option<u64>), beside: u64, whole: bool) {
    let written = u64::try_from(result).map_or(0, |count| count + beside);
    let is_good = match claimed {
        Some(claimed) => claimed == written,
        None => !whole,
    };
    assert!(is_good, "{result}: {claimed:?}, {beside} beside");
}

/// Mostly within memory.
fn lens() -> impl proptest::strategy::Strategy<Value = Vec<(u16, bool)>> {
    let at_end = proptest::bool::weighted(0.05);
    collection::vec((any::<u16>(), at_end), 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn reading(lens in lens(), text in 0_usize..2000, at in 0_u64..500, into_one in any::<bool>()) {
        let region = Region::new();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![b'x'; text]).unwrap();
        let fd = file.as_raw_fd() as u64;
        let (array, all) = buffers(&region, &lens);
        let whole = lens.iter().all(|(_, is_at_end)| !is_at_end);
        let count = lens.len() as u64;
        check(region.call(libc::SYS_preadv, &[fd, array, count, at, 0]), 0, whole);
        file.seek(std::io::SeekFrom::Start(at)).unwrap();
        let readv = region.call(libc::SYS_readv, &[fd, array, count]);
        check(readv, 0, whole);
        if whole {
            prop_assert_eq!(readv.0 as u64, all.min((text as u64).saturating_sub(at)));
        }
        if into_one && all > 0 {
            let to = region.room(all as usize);
            file.seek(std::io::SeekFrom::Start(at)).unwrap();
            check(region.call(libc::SYS_read, &[fd, to, all]), 0, true);
            check(region.call(libc::SYS_pread64, &[fd, region.end() - all / 2, all, at]), 0, false);
        }
    }

    #[test]
    fn reading_from_a_pipe(lens in lens(), parts in collection::vec(1_usize..5000, 1..4)) {
        let region = Region::new();
        let (reader, mut writer) = std::io::pipe().unwrap();
        for len in parts {
            writer.write_all(&vec![b'x'; len]).unwrap();
        }
        drop(writer);
        let (array, _) = buffers(&region, &lens);
        let whole = lens.iter().all(|(_, is_at_end)| !is_at_end);
        let args = [reader.as_raw_fd() as u64, array, lens.len() as u64];
        check(region.call(libc::SYS_readv, &args), 0, whole);
        let to = region.end() - 4500;
        check(region.call(libc::SYS_read, &[args[0], to, 9000]), 0, false);
    }

    #[test]
    fn receiving(lens in lens(), sent in 0_usize..1500, room in 0_u32..40, flags in any::<[bool; 3]>()) {
        let region = Region::new();
        let receiver = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let sender = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.send_to(&vec![b'x'; sent], receiver.local_addr().unwrap()).unwrap();
        let (array, all) = buffers(&region, &lens);
        let whole = lens.iter().all(|(_, is_at_end)| !is_at_end);
        let [named, long, peeks] = flags;
        let name = if named { region.room(64) } else { 0 };
        let message = region.put_words(&[name, room.into(), array, lens.len() as u64, 0, 0, 0]);
        let long = if long { libc::MSG_TRUNC } else { 0 };
        let peeks = if peeks { libc::MSG_PEEK } else { 0 };
        let args = [receiver.as_raw_fd() as u64, message, (long | peeks) as u64];
        let (result, claimed) = region.call(libc::SYS_recvmsg, &args);
        if whole {
            prop_assert!(result >= 0);
            let data = all.min(sent as u64);
            let beside = if named { 8 + 4 + 4 + 16 } else { 8 + 4 };
            prop_assert_eq!(claimed, Some(data + beside));
        } else {
            check((result, claimed.and(None)), 0, false);
        }
    }
}

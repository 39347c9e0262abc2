//! Controls of terminals, files and sockets.

use std::ffi::CString;
use std::fs;
use std::os::fd::AsRawFd;

use crate::region::Region;

fn open(path: &str, flags: i32) -> u64 {
    let path = CString::new(path).unwrap();
    // SAFETY: the path ends with a zero.
    let fd = unsafe { libc::open(path.as_ptr(), flags) };
    assert!(fd >= 0, "{path:?}");
    fd as u64
}

#[test]
fn terminals() {
    let region = Region::new();
    let main = open("/dev/ptmx", libc::O_RDWR | libc::O_NOCTTY);
    let to = region.room(256);
    let ioctl = |fd, number: u64, bytes| region.ok(libc::SYS_ioctl, &[fd, number, to], bytes);
    let zero = region.put_int(0);
    // TIOCSPTLCK
    region.ok(libc::SYS_ioctl, &[main, 0x4004_5431, zero], 0);
    // TIOCGPTN
    ioctl(main, 0x8004_5430, 4);
    let other = open(
        &format!("/dev/pts/{}", region.int(to)),
        libc::O_RDWR | libc::O_NOCTTY,
    );
    ioctl(other, libc::TCGETS, 36);
    region.ok(libc::SYS_ioctl, &[other, libc::TCSETS, to], 0);
    ioctl(other, libc::TCGETA, 18);
    // TCGETS2
    ioctl(other, 0x802c_542a, 44);
    ioctl(other, libc::TIOCGWINSZ, 8);
    region.ok(libc::SYS_ioctl, &[other, libc::TIOCSWINSZ, to], 0);
    ioctl(other, libc::TIOCOUTQ, 4);
    ioctl(other, libc::FIONREAD, 4);
    ioctl(other, libc::TIOCGETD, 4);
    ioctl(other, libc::TIOCEXCL, 0);
    ioctl(other, libc::TIOCNXCL, 0);
    // TIOCGPKT, TIOCGPTLCK, TIOCGEXCL
    ioctl(main, 0x8004_5438, 4);
    ioctl(main, 0x8004_5439, 4);
    ioctl(other, 0x8004_5440, 4);
    // It is the terminal of no session.
    region.fails(
        libc::SYS_ioctl,
        &[other, libc::TIOCGSID, to],
        libc::ENOTTY,
        0,
    );
    region.ok(libc::SYS_write, &[main, to, 5], 0);
}

#[test]
fn files() {
    let region = Region::new();
    let file = tempfile::NamedTempFile::new_in("/var/tmp").unwrap();
    let fd = file.as_file().as_raw_fd() as u64;
    let to = region.room(256);
    let one = region.put_int(1);
    region.ok(libc::SYS_ioctl, &[fd, 2, to], 4);
    region.ok(libc::SYS_ioctl, &[fd, libc::FIONREAD, to], 4);
    region.ok(libc::SYS_ioctl, &[fd, 0x5460, to], 8);
    region.ok(libc::SYS_ioctl, &[fd, libc::FIOCLEX, to], 0);
    region.ok(libc::SYS_ioctl, &[fd, libc::FIONCLEX, to], 0);
    region.ok(libc::SYS_ioctl, &[fd, libc::FIONBIO, one], 0);
    // FS_IOC_GETFLAGS, FS_IOC_GETVERSION, FS_IOC_FSGETXATTR
    for (number, bytes) in [(0x8008_6601, 8), (0x8008_7601, 8), (0x801c_581f, 28)] {
        let (result, claimed) = region.call(libc::SYS_ioctl, &[fd, number, to]);
        let expected = if result == 0 { bytes } else { 0 };
        assert_eq!(claimed, Some(expected), "{number:x}: {result}");
    }
    // A random device's entropy.
    let random = open("/dev/urandom", libc::O_RDONLY);
    region.ok(libc::SYS_ioctl, &[random, 0x8004_5200, to], 4);
    // The map of extents comes after the structure that the number tells of.
    let map = region.put(&[0; 32]);
    region.put_at(map + 8, &u64::MAX.to_le_bytes());
    region.put_at(map + 24, &8_u32.to_le_bytes());
    let (result, claimed) = region.call(libc::SYS_ioctl, &[fd, 0xc020_660b, map]);
    assert!(result != 0 || claimed.is_none());
    // Namespaces tell their owner without saying so.
    let space = fs::File::open("/proc/self/ns/user").unwrap();
    let space = space.as_raw_fd() as u64;
    region.ok(libc::SYS_ioctl, &[space, 0xb704, to], 4);
    region.ok(libc::SYS_ioctl, &[space, 0xb703, to], 0);
    region.fails(libc::SYS_ioctl, &[999, 0x5401, to], libc::EBADF, 0);
}

#[test]
fn interfaces() {
    let region = Region::new();
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let fd = socket.as_raw_fd() as u64;
    let request = region.put(&[0; 40]);
    region.put_at(request, b"lo\0");
    // Flags, address, network mask, metric, length of packets, hardware's address, index, queue, map.
    for number in [
        0x8913, 0x8915, 0x891b, 0x891d, 0x8921, 0x8927, 0x8933, 0x8942, 0x8970,
    ] {
        region.put_at(request, b"lo\0");
        region.ok(libc::SYS_ioctl, &[fd, number, request], 40);
    }
    region.put_at(request + 16, &1_u32.to_le_bytes());
    region.ok(libc::SYS_ioctl, &[fd, 0x8910, request], 40);
    region.put_at(request, b"none such\0");
    region.fails(libc::SYS_ioctl, &[fd, 0x8913, request], libc::ENODEV, 0);
    let list = region.room(400);
    let all = region.put_words(&[400, list]);
    let (result, claimed) = region.call(libc::SYS_ioctl, &[fd, 0x8912, all]);
    assert_eq!(result, 0);
    assert_eq!(claimed, Some(4 + region.int(all) as u64));
    // How long the list would be.
    let all = region.put_words(&[0, 0]);
    region.ok(libc::SYS_ioctl, &[fd, 0x8912, all], 4);
    region.ok(libc::SYS_ioctl, &[fd, libc::TIOCOUTQ, request], 4);
}

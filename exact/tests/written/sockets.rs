//! Sockets: what is received, addresses, options.

use std::os::fd::AsRawFd;

use crate::region::Region;

const DGRAM: u64 = libc::SOCK_DGRAM as u64;
const STREAM: u64 = libc::SOCK_STREAM as u64;
const UNIX: u64 = libc::AF_UNIX as u64;
const NOW: u64 = libc::MSG_DONTWAIT as u64;

/// Two connected sockets of this process.
fn pair(region: &Region, kind: u64) -> (u64, u64) {
    let to = region.room(8);
    region.ok(libc::SYS_socketpair, &[UNIX, kind, 0, to], 8);
    (region.int(to) as u64, region.int(to + 4) as u64)
}

/// A message's header with these buffers; it is followed by the room for a count.
fn header(region: &Region, name: (u64, u64), buffers: &[u64], control: (u64, u64)) -> u64 {
    let array = region.put_words(buffers);
    region.put_words(&[
        name.0,
        name.1,
        array,
        buffers.len() as u64 / 2,
        control.0,
        control.1,
        0,
        0,
    ])
}

#[test]
fn pairs_are_numbered_before_they_are_made() {
    let region = Region::new();
    pair(&region, STREAM);
    let to = region.room(8);
    let args = [libc::AF_INET as u64, STREAM, 0, to];
    region.fails(libc::SYS_socketpair, &args, libc::EOPNOTSUPP, 8);
}

#[test]
fn datagrams_and_their_senders() {
    let region = Region::new();
    let receiver = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let sender = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = receiver.local_addr().unwrap();
    let fd = receiver.as_raw_fd() as u64;
    let (to, name) = (region.room(200), region.room(128));
    let send = || assert_eq!(sender.send_to(&[7; 50], address).unwrap(), 50);
    let from = |room, flags, name_room| {
        send();
        [fd, to, room, flags, name, region.put_int(name_room)]
    };
    region.ok(libc::SYS_recvfrom, &from(200, 0, 128), 50 + 16 + 4);
    // The room is too small for the address, the data, or both.
    region.ok(libc::SYS_recvfrom, &from(200, 0, 5), 50 + 16 + 4);
    region.ok(libc::SYS_recvfrom, &from(20, 0, 0), 20 + 16 + 4);
    let whole = libc::MSG_TRUNC as u64;
    assert_eq!(
        region.ok(libc::SYS_recvfrom, &from(20, whole, 128), 20 + 16 + 4),
        50
    );
    send();
    region.ok(libc::SYS_recvfrom, &[fd, to, 200, NOW, 0, 0], 50);
    let args = [fd, to, 200, NOW, 0, 0];
    region.fails(libc::SYS_recvfrom, &args, libc::EAGAIN, 0);
    // The data is written, then the room for the address is found to be nonsense.
    assert_eq!(
        region.unknown(libc::SYS_recvfrom, &from(200, 0, u32::MAX)),
        -i64::from(libc::EINVAL)
    );
    // The same with a header.
    let control = (region.room(64), 64);
    send();
    let message = header(&region, (name, 128), &[to, 20, 0, 0, to + 100, 50], control);
    region.ok(libc::SYS_recvmsg, &[fd, message, 0], 50 + 16 + 4 + 8 + 4);
    region.fails(libc::SYS_recvmsg, &[fd, message, NOW], libc::EAGAIN, 0);
    send();
    let message = header(&region, (0, 0), &[to, 20], (0, 0));
    region.ok(libc::SYS_recvmsg, &[fd, message, 0], 20 + 8 + 4);
}

#[test]
fn descriptors_and_credentials_in_messages() {
    let region = Region::new();
    let (one, other) = pair(&region, STREAM);
    let on = region.put_int(1);
    let pass = [
        one,
        libc::SOL_SOCKET as u64,
        libc::SO_PASSCRED as u64,
        on,
        4,
    ];
    region.ok(libc::SYS_setsockopt, &pass, 0);
    let (to, control) = (region.room(100), region.room(200));
    // A header of SCM_RIGHTS with two descriptors.
    let rights = region.put_words(&[24, libc::SOL_SOCKET as u64 | 1 << 32, one | other << 32]);
    let sent = header(&region, (0, 0), &[to, 10], (rights, 24));
    for (room, expected) in [(200, 32 + 24), (40, 40), (16, 16), (0, 0)] {
        assert_eq!(region.ok(libc::SYS_sendmsg, &[other, sent, 0], 0), 10);
        let message = header(&region, (0, 0), &[to, 100], (control, room));
        let (result, claimed) = region.call(libc::SYS_recvmsg, &[one, message, 0]);
        assert_eq!(result, 10);
        let most = 10 + 8 + 4 + expected;
        assert!(claimed.is_some_and(|claimed| claimed <= most), "{room}");
    }
}

#[test]
fn a_header_among_its_own_buffers_is_not_trusted() {
    let region = Region::new();
    let (one, other) = pair(&region, DGRAM);
    let text = region.put(&[0; 60]);
    region.ok(libc::SYS_write, &[other, text, 60], 0);
    let message = header(&region, (0, 0), &[0, 64], (0, 0));
    let array = message - 80;
    region.put_at(array, &message.to_le_bytes());
    assert_eq!(region.unknown(libc::SYS_recvmsg, &[one, message, 0]), 60);
}

#[test]
fn many_messages() {
    let region = Region::new();
    let (one, other) = pair(&region, DGRAM);
    let to = region.room(300);
    let mut many = Vec::new();
    for at in 0..3_u64 {
        let array = region.put_words(&[to + 100 * at, 10 + 20 * at]);
        many.extend([0, 0, array, 1, 0, 0, 0, 0]);
    }
    let many = region.put_words(&many);
    region.ok(libc::SYS_sendmmsg, &[other, many, 2, 0], 8);
    region.fails(libc::SYS_sendmmsg, &[999, many, 2, 0], libc::EBADF, 0);
    let time = region.put_words(&[5, 0]);
    let args = [one, many, 3, NOW, time];
    assert_eq!(
        region.ok(libc::SYS_recvmmsg, &args, 10 + 30 + 2 * (8 + 4 + 4) + 16),
        2
    );
    region.fails(libc::SYS_recvmmsg, &args, libc::EAGAIN, 0);
}

#[test]
fn addresses() {
    let region = Region::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let fd = listener.as_raw_fd() as u64;
    let name = region.room(128);
    let len = || region.put_int(128);
    region.ok(libc::SYS_getsockname, &[fd, name, len()], 16 + 4);
    let args = [fd, name, len()];
    region.fails(libc::SYS_getpeername, &args, libc::ENOTCONN, 0);
    let clients = [0; 3].map(|_| std::net::TcpStream::connect(address).unwrap());
    let first = region.ok(libc::SYS_accept, &[fd, name, len()], 16 + 4);
    region.ok(libc::SYS_accept4, &[fd, name, region.put_int(3), 0], 16 + 4);
    region.ok(libc::SYS_accept, &[fd, 0, 0], 0);
    region.ok(libc::SYS_getpeername, &[first, name, len()], 16 + 4);
    // TCP gives no address with the data.
    let text = region.put(b"text");
    let client = clients[0].as_raw_fd() as u64;
    region.ok(libc::SYS_sendto, &[client, text, 2, 0, 0, 0], 0);
    let accepted = region.call(libc::SYS_recvfrom, &[first, name, 128, 0, text, len()]);
    assert_eq!(accepted, (2, Some(2 + 4)));
}

#[test]
fn options() {
    let region = Region::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let fd = listener.as_raw_fd() as u64;
    let to = region.room(512);
    let option = |level: i32, name: i32, room, bytes: u64| {
        let args = [fd, level as u64, name as u64, to, region.put_int(room)];
        region.ok(libc::SYS_getsockopt, &args, bytes + 4);
    };
    option(libc::SOL_SOCKET, libc::SO_TYPE, 4, 4);
    option(libc::SOL_SOCKET, libc::SO_RCVBUF, 400, 4);
    option(libc::SOL_SOCKET, libc::SO_ERROR, 2, 2);
    option(libc::SOL_SOCKET, libc::SO_LINGER, 100, 8);
    option(libc::SOL_SOCKET, libc::SO_RCVTIMEO, 100, 16);
    option(libc::SOL_SOCKET, libc::SO_PEERCRED, 100, 12);
    option(libc::IPPROTO_TCP, libc::TCP_NODELAY, 4, 4);
    option(libc::IPPROTO_TCP, libc::TCP_INFO, 100, 100);
    option(libc::IPPROTO_IP, libc::IP_TTL, 4, 4);
    option(libc::IPPROTO_IP, libc::IP_TTL, 1, 1);
    let args = |name: u64| [fd, libc::SOL_SOCKET as u64, name, to, region.put_int(4)];
    region.fails(libc::SYS_getsockopt, &args(70), libc::ENOPROTOOPT, 4);
    // A filter's length is in instructions.
    region.unknown(libc::SYS_getsockopt, &args(26));
    let (one, _other) = pair(&region, STREAM);
    let args = [one, libc::SOL_SOCKET as u64, 59, to, region.put_int(0)];
    let (result, claimed) = region.call(libc::SYS_getsockopt, &args);
    assert!(result <= 0 && claimed.is_some_and(|claimed| claimed <= 4));
}

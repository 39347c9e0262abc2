//! Names of what belongs to sockets: protocols, levels and options; the values of options.

use super::flags::Names;
use super::values::{add, named, number, quoted};

const AF_INET: u64 = 2;
const AF_INET6: u64 = 10;
const AF_NETLINK: u64 = 16;

const PROTOCOLS: &Names = &[
    ("IPPROTO_IP", 0),
    ("IPPROTO_ICMP", 1),
    ("IPPROTO_TCP", 6),
    ("IPPROTO_UDP", 17),
    ("IPPROTO_IPV6", 41),
    ("IPPROTO_ICMPV6", 58),
    ("IPPROTO_SCTP", 132),
    ("IPPROTO_UDPLITE", 136),
    ("IPPROTO_RAW", 255),
    ("IPPROTO_MPTCP", 262),
];
const NETLINK: &Names = &[
    ("NETLINK_ROUTE", 0),
    ("NETLINK_SOCK_DIAG", 4),
    ("NETLINK_AUDIT", 9),
    ("NETLINK_NETFILTER", 12),
    ("NETLINK_KOBJECT_UEVENT", 15),
    ("NETLINK_GENERIC", 16),
];
const LEVELS: &Names = &[
    ("SOL_IP", 0),
    ("SOL_SOCKET", 1),
    ("SOL_TCP", 6),
    ("SOL_UDP", 17),
    ("SOL_IPV6", 41),
    ("SOL_PACKET", 263),
    ("SOL_NETLINK", 270),
];
const OF_SOCKETS: &Names = &[
    ("SO_DEBUG", 1),
    ("SO_REUSEADDR", 2),
    ("SO_TYPE", 3),
    ("SO_ERROR", 4),
    ("SO_DONTROUTE", 5),
    ("SO_BROADCAST", 6),
    ("SO_SNDBUF", 7),
    ("SO_RCVBUF", 8),
    ("SO_KEEPALIVE", 9),
    ("SO_OOBINLINE", 10),
    ("SO_NO_CHECK", 11),
    ("SO_PRIORITY", 12),
    ("SO_LINGER", 13),
    ("SO_BSDCOMPAT", 14),
    ("SO_REUSEPORT", 15),
    ("SO_PASSCRED", 16),
    ("SO_PEERCRED", 17),
    ("SO_RCVLOWAT", 18),
    ("SO_SNDLOWAT", 19),
    ("SO_RCVTIMEO", 20),
    ("SO_SNDTIMEO", 21),
    ("SO_BINDTODEVICE", 25),
    ("SO_ATTACH_FILTER", 26),
    ("SO_DETACH_FILTER", 27),
    ("SO_PEERNAME", 28),
    ("SO_TIMESTAMP", 29),
    ("SO_ACCEPTCONN", 30),
    ("SO_PEERSEC", 31),
    ("SO_SNDBUFFORCE", 32),
    ("SO_RCVBUFFORCE", 33),
    ("SO_PASSSEC", 34),
    ("SO_TIMESTAMPNS", 35),
    ("SO_MARK", 36),
    ("SO_TIMESTAMPING", 37),
    ("SO_PROTOCOL", 38),
    ("SO_DOMAIN", 39),
    ("SO_RXQ_OVFL", 40),
    ("SO_INCOMING_CPU", 49),
    ("SO_ZEROCOPY", 60),
];
const OF_TCP: &Names = &[
    ("TCP_NODELAY", 1),
    ("TCP_MAXSEG", 2),
    ("TCP_CORK", 3),
    ("TCP_KEEPIDLE", 4),
    ("TCP_KEEPINTVL", 5),
    ("TCP_KEEPCNT", 6),
    ("TCP_SYNCNT", 7),
    ("TCP_LINGER2", 8),
    ("TCP_DEFER_ACCEPT", 9),
    ("TCP_WINDOW_CLAMP", 10),
    ("TCP_INFO", 11),
    ("TCP_QUICKACK", 12),
    ("TCP_CONGESTION", 13),
    ("TCP_USER_TIMEOUT", 18),
    ("TCP_FASTOPEN", 23),
    ("TCP_FASTOPEN_CONNECT", 30),
];
const OF_IP: &Names = &[
    ("IP_TOS", 1),
    ("IP_TTL", 2),
    ("IP_HDRINCL", 3),
    ("IP_OPTIONS", 4),
    ("IP_RECVOPTS", 6),
    ("IP_PKTINFO", 8),
    ("IP_MTU_DISCOVER", 10),
    ("IP_RECVERR", 11),
    ("IP_RECVTTL", 12),
    ("IP_RECVTOS", 13),
    ("IP_MTU", 14),
    ("IP_FREEBIND", 15),
    ("IP_MULTICAST_IF", 32),
    ("IP_MULTICAST_TTL", 33),
    ("IP_MULTICAST_LOOP", 34),
    ("IP_ADD_MEMBERSHIP", 35),
    ("IP_DROP_MEMBERSHIP", 36),
];
const OF_IPV6: &Names = &[
    ("IPV6_UNICAST_HOPS", 16),
    ("IPV6_MULTICAST_IF", 17),
    ("IPV6_MULTICAST_HOPS", 18),
    ("IPV6_MULTICAST_LOOP", 19),
    ("IPV6_ADD_MEMBERSHIP", 20),
    ("IPV6_DROP_MEMBERSHIP", 21),
    ("IPV6_MTU_DISCOVER", 23),
    ("IPV6_MTU", 24),
    ("IPV6_RECVERR", 25),
    ("IPV6_V6ONLY", 26),
    ("IPV6_RECVPKTINFO", 49),
    ("IPV6_PKTINFO", 50),
    ("IPV6_RECVHOPLIMIT", 51),
    ("IPV6_TCLASS", 67),
];

const SOL_SOCKET: u64 = 1;
const SO_LINGER: u64 = 13;
const SO_TIMES: [u64; 2] = [20, 21];

/// Appends the protocol of a socket of this family.
pub fn protocol(text: &mut String, family: u64, value: u64) {
    match family {
        AF_INET | AF_INET6 => named(text, value, PROTOCOLS),
        AF_NETLINK => named(text, value, NETLINK),
        _ => add(text, format_args!("{value}")),
    }
}

/// Appends the level of an option.
pub fn level(text: &mut String, value: u64) {
    known_or_plain(text, value, LEVELS);
}

/// Appends the name of an option of this level.
pub fn option(text: &mut String, level: u64, value: u64) {
    let names = match level {
        SOL_SOCKET => OF_SOCKETS,
        0 => OF_IP,
        6 => OF_TCP,
        41 => OF_IPV6,
        _ => &[],
    };
    known_or_plain(text, value, names);
}

fn known_or_plain(text: &mut String, value: u64, names: &Names) {
    match names.iter().any(|(_, known)| *known == value) {
        true => named(text, value, names),
        false => add(text, format_args!("{value}")),
    }
}

/// Appends the value of an option, which has `len` bytes.
pub fn value(text: &mut String, level: u64, option: u64, bytes: &[u8], len: u64) -> Option<()> {
    let is = |known: &[u64]| level == SOL_SOCKET && known.contains(&option);
    match len {
        4 => add(text, format_args!("[{}]", number(bytes, 0, 4)? as i32)),
        8 if is(&[SO_LINGER]) => add(
            text,
            format_args!(
                "{{l_onoff={}, l_linger={}}}",
                number(bytes, 0, 4)? as i32,
                number(bytes, 4, 4)? as i32
            ),
        ),
        16 if is(&SO_TIMES) => super::structures::micros(text, bytes)?,
        _ => quoted(text, bytes, (bytes.len() as u64) < len),
    }
    Some(())
}

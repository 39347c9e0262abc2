//! Writes single values of system calls as text: numbers with names, texts in quotes, structures.

use std::fmt::Write;

use store::signals::NAMES;

use super::flags::{self, Names};

/// Appends formatted text.
pub fn add(text: &mut String, what: std::fmt::Arguments<'_>) {
    text.write_fmt(what)
        .expect("a string takes whatever is written to it");
}

/// Appends the names of the bits of `value`, and the rest in hexadecimal; `none` where no bit is set.
pub fn bits(text: &mut String, value: u64, names: &Names, none: &str) {
    if value == 0 {
        return text.push_str(none);
    }
    let mut rest = value;
    let mut is_first = true;
    for (name, mask) in names {
        if *mask != 0 && rest & mask == *mask {
            separate(text, &mut is_first);
            text.push_str(name);
            rest &= !mask;
        }
    }
    if rest != 0 {
        separate(text, &mut is_first);
        add(text, format_args!("{rest:#x}"));
    }
}

fn separate(text: &mut String, is_first: &mut bool) {
    if !std::mem::take(is_first) {
        text.push('|');
    }
}

/// Appends the name of `value`, or itself in hexadecimal.
pub fn named(text: &mut String, value: u64, names: &Names) {
    match names.iter().find(|(_, known)| *known == value) {
        Some((name, _)) => text.push_str(name),
        None => add(text, format_args!("{value:#x}")),
    }
}

/// Appends a number in hexadecimal; zero is plain.
pub fn hex(text: &mut String, value: u64) {
    match value {
        0 => text.push('0'),
        _ => add(text, format_args!("{value:#x}")),
    }
}

/// Appends the operation that `FUTEX_WAKE_OP` carries out and what it compares, as four fields of one word.
pub fn wake_op(text: &mut String, value: u64) {
    const SHIFTED: u64 = 8;
    let operation = value >> 28 & 0xf;
    if operation & SHIFTED != 0 {
        text.push_str("FUTEX_OP_OPARG_SHIFT<<28|");
    }
    named(text, operation & !SHIFTED, flags::FUTEX_OPERATIONS);
    text.push_str("<<28|");
    hex(text, value >> 12 & 0xfff);
    text.push_str("<<12|");
    named(text, value >> 24 & 0xf, flags::FUTEX_COMPARISONS);
    text.push_str("<<24|");
    hex(text, value & 0xfff);
}

/// Appends the flags of `open`.
pub fn open_flags(text: &mut String, value: u64) {
    const MODES: u64 = 3;
    match value & MODES {
        0 => text.push_str("O_RDONLY"),
        1 => text.push_str("O_WRONLY"),
        2 => text.push_str("O_RDWR"),
        _ => text.push_str("O_ACCMODE"),
    }
    if value & !MODES != 0 {
        text.push('|');
        bits(text, value & !MODES, flags::OPEN, "0");
    }
}

/// Appends bytes in quotes; `is_cut`: there are more.
pub fn quoted(text: &mut String, bytes: &[u8], is_cut: bool) {
    text.push('"');
    for (index, byte) in bytes.iter().enumerate() {
        match byte {
            b'"' => text.push_str("\\\""),
            b'\\' => text.push_str("\\\\"),
            b'\n' => text.push_str("\\n"),
            b'\t' => text.push_str("\\t"),
            b'\r' => text.push_str("\\r"),
            0x0b => text.push_str("\\v"),
            0x0c => text.push_str("\\f"),
            b' '..=b'~' => text.push(char::from(*byte)),
            // As short as the next byte allows.
            _ => match bytes.get(index + 1) {
                Some(b'0'..=b'7') => add(text, format_args!("\\{byte:03o}")),
                _ => add(text, format_args!("\\{byte:o}")),
            },
        }
    }
    text.push('"');
    if is_cut {
        text.push_str("...");
    }
}

/// Returns the name of a signal without its SIG.
fn signal_name(number: u64) -> String {
    let index = number.checked_sub(1).and_then(|n| usize::try_from(n).ok());
    match index.and_then(|index| NAMES.get(index)) {
        Some(name) => name.trim_start_matches("SIG").to_owned(),
        None if number == 32 => "RTMIN".to_owned(),
        None => format!("RT_{}", number.wrapping_sub(32)),
    }
}

const LAST_SIGNAL: u64 = 64;

/// Appends a signal, or the number where there is none.
pub fn signal(text: &mut String, number: u64) {
    match number {
        1..=LAST_SIGNAL => add(text, format_args!("SIG{}", signal_name(number))),
        _ => add(text, format_args!("{}", number as i32)),
    }
}

/// Appends a set of signals.
pub fn signals(text: &mut String, set: u64) {
    let (set, open) = match set.count_ones() > 32 {
        true => (!set, "~["),
        false => (set, "["),
    };
    text.push_str(open);
    let mut names = (1..=64)
        .filter(|n| set >> (n - 1) & 1 != 0)
        .map(signal_name);
    if let Some(first) = names.next() {
        text.push_str(&first);
        names.for_each(|name| add(text, format_args!(" {name}")));
    }
    text.push(']');
}

/// Returns the little endian number of `len` bytes at `at`.
pub fn number(bytes: &[u8], at: usize, len: usize) -> Option<u64> {
    let bytes = bytes.get(at..at + len)?;
    let mut word = [0; 8];
    word[..len].copy_from_slice(bytes);
    Some(u64::from_le_bytes(word))
}

/// Appends the type and the permissions of a file.
pub fn file_mode(text: &mut String, mode: u64) {
    const TYPE: u64 = 0o170_000;
    named(text, mode & TYPE, flags::FILE_TYPE);
    add(text, format_args!("|0{:03o}", mode & !TYPE));
}

/// Appends the number of a device. A zero is plain.
pub fn device(text: &mut String, value: u64) {
    text.push_str("makedev(");
    hex(text, value >> 8 & 0xfff);
    text.push_str(", ");
    hex(text, value & 0xff | value >> 12 & 0xfff00);
    text.push(')');
}

/// Appends a `struct stat`.
pub fn stat(text: &mut String, bytes: &[u8]) -> Option<()> {
    let mode = number(bytes, 24, 4)?;
    let (device, size) = (number(bytes, 40, 8)?, number(bytes, 48, 8)?);
    text.push_str("{st_mode=");
    file_mode(text, mode);
    match mode & 0o170_000 {
        0o020_000 | 0o060_000 => {
            text.push_str(", st_rdev=");
            self::device(text, device);
        }
        _ => add(text, format_args!(", st_size={size}")),
    }
    text.push_str(", ...}");
    Some(())
}

/// Appends a `struct statx`.
pub fn statx(text: &mut String, bytes: &[u8]) -> Option<()> {
    text.push_str("{stx_mode=");
    file_mode(text, number(bytes, 28, 2)?);
    add(
        text,
        format_args!(", stx_size={}, ...}}", number(bytes, 40, 8)?),
    );
    Some(())
}

/// Appends a `struct timespec`.
pub fn time(text: &mut String, bytes: &[u8]) -> Option<()> {
    let (seconds, nanos) = (number(bytes, 0, 8)? as i64, number(bytes, 8, 8)?);
    add(text, format_args!("{{tv_sec={seconds}, tv_nsec={nanos}}}"));
    Some(())
}

/// Appends a `struct rlimit`.
pub fn limit(text: &mut String, bytes: &[u8]) -> Option<()> {
    let one = |value: u64| match value {
        u64::MAX => "RLIM64_INFINITY".to_owned(),
        value => value.to_string(),
    };
    let (now, most) = (one(number(bytes, 0, 8)?), one(number(bytes, 8, 8)?));
    add(text, format_args!("{{rlim_cur={now}, rlim_max={most}}}"));
    Some(())
}

/// Appends an address of a socket.
pub fn address(text: &mut String, bytes: &[u8]) -> Option<()> {
    let family = number(bytes, 0, 2)?;
    text.push_str("{sa_family=");
    named(text, family, flags::DOMAIN);
    match family {
        1 => {
            let path = bytes.get(2..)?;
            match path.first() {
                Some(0) if path.len() > 1 => {
                    text.push_str(", sun_path=@");
                    quoted(text, &path[1..], false);
                }
                Some(_) => {
                    let len = path.iter().position(|byte| *byte == 0);
                    text.push_str(", sun_path=");
                    quoted(text, &path[..len.unwrap_or(path.len())], false);
                }
                None => {}
            }
        }
        2 => {
            let port = u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?);
            let [a, b, c, d] = *bytes.get(4..)?.first_chunk()?;
            add(
                text,
                format_args!(", sin_port=htons({port}), sin_addr=inet_addr(\"{a}.{b}.{c}.{d}\")"),
            );
        }
        10 => {
            let port = u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?);
            let host = std::net::Ipv6Addr::from(*bytes.get(8..)?.first_chunk::<16>()?);
            let flow = u32::from_be_bytes(*bytes.get(4..)?.first_chunk()?);
            add(
                text,
                format_args!(
                    ", sin6_port=htons({port}), sin6_flowinfo=htonl({flow}), inet_pton(AF_INET6, \"{host}\", &sin6_addr)"
                ),
            );
            if let Some(scope) = number(bytes, 24, 4) {
                add(text, format_args!(", sin6_scope_id={scope}"));
            }
        }
        _ => text.push_str(", ..."),
    }
    text.push('}');
    Some(())
}

/// Appends bytes that are no text, of `len` bytes.
pub fn binary(text: &mut String, bytes: &[u8], len: u64) {
    text.push('"');
    for byte in bytes {
        add(text, format_args!("\\x{byte:02x}"));
    }
    let is_cut = (bytes.len() as u64) < len;
    text.push_str(if is_cut { "\"..." } else { "\"" });
}

/// Appends a wait status.
pub fn status(text: &mut String, bytes: &[u8]) -> Option<()> {
    let status = number(bytes, 0, 4)?;
    match status & 0x7f {
        0 => add(
            text,
            format_args!(
                "[{{WIFEXITED(s) && WEXITSTATUS(s) == {}}}]",
                status >> 8 & 0xff
            ),
        ),
        0x7f => add(
            text,
            format_args!(
                "[{{WIFSTOPPED(s) && WSTOPSIG(s) == SIG{}}}]",
                signal_name(status >> 8 & 0xff)
            ),
        ),
        by => add(
            text,
            format_args!(
                "[{{WIFSIGNALED(s) && WTERMSIG(s) == SIG{}}}]",
                signal_name(by)
            ),
        ),
    }
    Some(())
}

/// Appends the events requested of `poll`, or those it returned.
pub fn poll(text: &mut String, bytes: &[u8], count: u64, is_answer: bool) {
    text.push('[');
    let mut shown = 0;
    for one in bytes
        .chunks_exact(8)
        .take(usize::try_from(count).unwrap_or(usize::MAX))
    {
        let fd = number(one, 0, 4).unwrap_or(0) as i32;
        let (events, found) = (
            number(one, 4, 2).unwrap_or(0),
            number(one, 6, 2).unwrap_or(0),
        );
        shown += 1;
        if is_answer && found == 0 {
            continue;
        }
        if !text.ends_with('[') {
            text.push_str(", ");
        }
        add(text, format_args!("{{fd={fd}, "));
        text.push_str(if is_answer { "revents=" } else { "events=" });
        let events = if is_answer { found } else { events };
        bits(text, events, flags::POLL, "0");
        text.push('}');
    }
    text.push_str(if shown < count { ", ...]" } else { "]" });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(what: impl FnOnce(&mut String)) -> String {
        let mut text = String::new();
        what(&mut text);
        text
    }

    #[test]
    fn flags_have_their_names_and_the_rest_a_number() {
        let open = |value| made(|text| open_flags(text, value));
        assert_eq!(open(0), "O_RDONLY");
        assert_eq!(open(0o2_000_000), "O_RDONLY|O_CLOEXEC");
        assert_eq!(open(0o1101), "O_WRONLY|O_CREAT|O_TRUNC");
        assert_eq!(open(1 << 30), "O_RDONLY|0x40000000");
        let prot = |value| made(|text| bits(text, value, flags::PROTECTION, "PROT_NONE"));
        assert_eq!(
            (prot(0), prot(5)),
            ("PROT_NONE".into(), "PROT_READ|PROT_EXEC".into())
        );
    }

    #[test]
    fn bytes_are_quoted_as_octal_where_they_are_no_text() {
        assert_eq!(
            made(|text| quoted(text, b"a\"\n\x7fELF\x001", false)),
            "\"a\\\"\\n\\177ELF\\0001\""
        );
        assert_eq!(made(|text| quoted(text, b"ab", true)), "\"ab\"...");
    }

    #[test]
    fn structures_that_are_cut_are_none() {
        assert_eq!(stat(&mut String::new(), &[0; 50]), None);
        let mut bytes = vec![0; 144];
        bytes[24..28].copy_from_slice(&0o100_644u32.to_le_bytes());
        bytes[48] = 7;
        let text = made(|text| stat(text, &bytes).expect("it is whole"));
        assert_eq!(text, "{st_mode=S_IFREG|0644, st_size=7, ...}");
    }

    #[test]
    fn bytes_that_are_no_text_are_hexadecimal() {
        let shown = |len| made(|text| binary(text, b"a\0\xff", len));
        assert_eq!(shown(3), r#""\x61\x00\xff""#);
        assert_eq!(shown(4), r#""\x61\x00\xff"..."#);
    }

    #[test]
    fn addresses_of_ipv6_have_all_their_members() {
        let mut bytes = [0; 28];
        (bytes[0], bytes[3], bytes[7], bytes[23], bytes[24]) = (10, 9, 5, 1, 7);
        let shown = |bytes: &[u8]| made(|text| address(text, bytes).expect("it is whole"));
        let start = "{sa_family=AF_INET6, sin6_port=htons(9), sin6_flowinfo=htonl(5), \
            inet_pton(AF_INET6, \"::1\", &sin6_addr)";
        assert_eq!(shown(&bytes), format!("{start}, sin6_scope_id=7}}"));
        assert_eq!(shown(&bytes[..24]), format!("{start}}}"));
    }

    #[test]
    fn sets_of_signals_are_told_by_what_they_lack_where_that_is_less() {
        assert_eq!(made(|text| signals(text, 0)), "[]");
        assert_eq!(made(|text| signals(text, 0b110)), "[INT QUIT]");
        assert_eq!(made(|text| signals(text, !(1 << 8))), "~[KILL]");
    }
}

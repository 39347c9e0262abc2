//! Writes the structures that arguments of system calls point to, with the names of their members. One that is cut is `None`.

use debuginfo::prototypes::Ellipsis;

use super::show::Call;
use super::values::{self, add, bits, hex, named, number, quoted};
use super::{flags, system, words};

/// The most bytes of each buffer of a vector.
const SHOWN: u64 = 32;
/// The most elements of a vector that a record has.
const VECTOR: usize = 32;
/// The most bytes of each text of a vector that a record has.
const VECTOR_TEXT: usize = 1024;

fn pointer(text: &mut String, value: u64) {
    match value {
        0 => text.push_str("NULL"),
        _ => add(text, format_args!("{value:#x}")),
    }
}

/// Appends a `struct timeval`.
pub fn micros(text: &mut String, bytes: &[u8]) -> Option<()> {
    let (seconds, micros) = (number(bytes, 0, 8)? as i64, number(bytes, 8, 8)?);
    add(text, format_args!("{{tv_sec={seconds}, tv_usec={micros}}}"));
    Some(())
}

/// Appends a `struct itimerval` or `itimerspec`, whose times `time` writes.
pub fn interval(
    text: &mut String,
    bytes: &[u8],
    time: fn(&mut String, &[u8]) -> Option<()>,
) -> Option<()> {
    text.push_str("{it_interval=");
    time(text, bytes)?;
    text.push_str(", it_value=");
    time(text, bytes.get(16..)?)?;
    text.push('}');
    Some(())
}

/// Appends the two times of `utimensat`.
pub fn file_times(text: &mut String, bytes: &[u8]) -> Option<()> {
    const UTIME_NOW: u64 = 0x3fff_ffff;
    const UTIME_OMIT: u64 = 0x3fff_fffe;
    text.push('[');
    for at in [0, 16] {
        if at != 0 {
            text.push_str(", ");
        }
        match number(bytes, at + 8, 8)? {
            UTIME_NOW => text.push_str("UTIME_NOW"),
            UTIME_OMIT => text.push_str("UTIME_OMIT"),
            _ => values::time(text, bytes.get(at..)?)?,
        }
    }
    text.push(']');
    Some(())
}

/// Appends the kernel's `struct sigaction`.
pub fn action(text: &mut String, bytes: &[u8]) -> Option<()> {
    const RESTORER: u64 = 0x400_0000;
    let word = |index: usize| number(bytes, 8 * index, 8);
    text.push_str("{sa_handler=");
    match word(0)? {
        0 => text.push_str("SIG_DFL"),
        1 => text.push_str("SIG_IGN"),
        handler => add(text, format_args!("{handler:#x}")),
    }
    text.push_str(", sa_mask=");
    values::signals(text, word(3)?);
    text.push_str(", sa_flags=");
    bits(text, word(1)?, flags::SIGNAL_ACTION, "0");
    if word(1)? & RESTORER != 0 {
        text.push_str(", sa_restorer=");
        pointer(text, word(2)?);
    }
    text.push('}');
    Some(())
}

/// Appends a `struct open_how`.
pub fn how(text: &mut String, bytes: &[u8]) -> Option<()> {
    let (set, mode) = (number(bytes, 0, 8)?, number(bytes, 8, 8)?);
    text.push_str("{flags=");
    values::open_flags(text, set);
    if mode != 0 || Ellipsis::makes_file(set) {
        text.push_str(", mode=");
        words::octal(text, mode);
    }
    text.push_str(", resolve=");
    bits(text, number(bytes, 16, 8)?, system::RESOLVE, "0");
    text.push('}');
    Some(())
}

/// Appends a `stack_t`.
pub fn stack(text: &mut String, bytes: &[u8]) -> Option<()> {
    text.push_str("{ss_sp=");
    pointer(text, number(bytes, 0, 8)?);
    text.push_str(", ss_flags=");
    bits(text, number(bytes, 8, 4)?, flags::SIGNAL_STACK, "0");
    add(text, format_args!(", ss_size={}}}", number(bytes, 16, 8)?));
    Some(())
}

/// Appends one event of epoll.
pub fn event(text: &mut String, bytes: &[u8]) -> Option<()> {
    text.push_str("{events=");
    bits(text, number(bytes, 0, 4)?, flags::EPOLL_EVENTS, "0");
    let data = number(bytes, 4, 8)?;
    add(
        text,
        format_args!(", data={{u32={}, u64={data}}}}}", data as u32),
    );
    Some(())
}

/// Appends the `count` events that epoll has returned.
pub fn events(text: &mut String, bytes: &[u8], count: u64) -> Option<()> {
    list(text, bytes.chunks_exact(12), count, |text, one| {
        event(text, one)
    })
}

/// Appends elements in brackets, and dots if there are fewer than `count`.
fn list<T>(
    text: &mut String,
    all: impl Iterator<Item = T>,
    count: u64,
    mut one: impl FnMut(&mut String, T) -> Option<()>,
) -> Option<()> {
    text.push('[');
    let mut shown = 0;
    for element in all {
        if shown != 0 {
            text.push_str(", ");
        }
        one(text, element)?;
        shown += 1;
    }
    text.push_str(if shown < count { ", ...]" } else { "]" });
    Some(())
}

/// Appends a `struct flock`.
pub fn lock(text: &mut String, bytes: &[u8], with_owner: bool) -> Option<()> {
    text.push_str("{l_type=");
    named(text, number(bytes, 0, 2)?, flags::LOCK_TYPE);
    text.push_str(", l_whence=");
    named(text, number(bytes, 2, 2)?, flags::WHENCE);
    add(
        text,
        format_args!(
            ", l_start={}, l_len={}",
            number(bytes, 8, 8)? as i64,
            number(bytes, 16, 8)? as i64
        ),
    );
    if with_owner {
        add(
            text,
            format_args!(", l_pid={}", number(bytes, 24, 4)? as i32),
        );
    }
    text.push('}');
    Some(())
}

/// Appends a `struct winsize`.
pub fn window(text: &mut String, bytes: &[u8]) -> Option<()> {
    let part = |index: usize| number(bytes, 2 * index, 2);
    let (rows, columns, x, y) = (part(0)?, part(1)?, part(2)?, part(3)?);
    add(
        text,
        format_args!("{{ws_row={rows}, ws_col={columns}, ws_xpixel={x}, ws_ypixel={y}}}"),
    );
    Some(())
}

/// Appends the first two members of a `struct utsname`.
pub fn system(text: &mut String, bytes: &[u8]) -> Option<()> {
    const MEMBER: usize = 65;
    for (name, at) in [("{sysname=", 0), (", nodename=", MEMBER)] {
        let member = bytes.get(at..at + MEMBER)?;
        let len = member.iter().position(|byte| *byte == 0)?;
        text.push_str(name);
        quoted(text, &member[..len], false);
    }
    text.push_str(", ...}");
    Some(())
}

/// Appends the times of a `struct rusage`.
pub fn usage(text: &mut String, bytes: &[u8]) -> Option<()> {
    text.push_str("{ru_utime=");
    micros(text, bytes)?;
    text.push_str(", ru_stime=");
    micros(text, bytes.get(16..)?)?;
    text.push_str(", ...}");
    Some(())
}

/// Appends a structure of words with these names.
fn members(text: &mut String, bytes: &[u8], names: &[&str]) -> Option<()> {
    for (index, name) in names.iter().enumerate() {
        let before = if index == 0 { "{" } else { ", " };
        let value = number(bytes, 8 * index, 8)?;
        add(text, format_args!("{before}{name}={value}"));
    }
    Some(())
}

/// Appends a `struct tms`.
pub fn times(text: &mut String, bytes: &[u8]) -> Option<()> {
    members(
        text,
        bytes,
        &["tms_utime", "tms_stime", "tms_cutime", "tms_cstime"],
    )?;
    text.push('}');
    Some(())
}

/// Appends the first members of a `struct sysinfo`.
pub fn memory_of_system(text: &mut String, bytes: &[u8]) -> Option<()> {
    let word = |index: usize| number(bytes, 8 * index, 8);
    let loads = (word(1)?, word(2)?, word(3)?);
    add(
        text,
        format_args!(
            "{{uptime={}, loads=[{}, {}, {}], totalram={}, freeram={}, ...}}",
            word(0)?,
            loads.0,
            loads.1,
            loads.2,
            word(4)?,
            word(5)?
        ),
    );
    Some(())
}

/// Appends the arguments of `clone3`, and the number that it has written for a new thread.
pub fn clone(text: &mut String, bytes: &[u8], made: Option<i64>) -> Option<()> {
    const PIDFD: u64 = 0x1000;
    const SETTLS: u64 = 0x8_0000;
    const PARENT_SETTID: u64 = 0x10_0000;
    const CHILD_TID: u64 = 0x120_0000;
    let word = |index: usize| number(bytes, 8 * index, 8);
    let set = word(0)?;
    text.push_str("{flags=");
    bits(text, set, flags::CLONE, "0");
    for (name, index, mask) in [
        ("pidfd", 1, PIDFD),
        ("child_tid", 2, CHILD_TID),
        ("parent_tid", 3, PARENT_SETTID),
    ] {
        if set & mask != 0 {
            add(text, format_args!(", {name}={:#x}", word(index)?));
        }
    }
    text.push_str(", exit_signal=");
    values::signal(text, word(4)?);
    text.push_str(", stack=");
    pointer(text, word(5)?);
    text.push_str(", stack_size=");
    hex(text, word(6)?);
    if set & SETTLS != 0 {
        add(text, format_args!(", tls={:#x}", word(7)?));
    }
    text.push('}');
    if let Some(number) = made.filter(|number| *number > 0 && set & PARENT_SETTID != 0) {
        add(text, format_args!(" => {{parent_tid=[{number}]}}"));
    }
    Some(())
}

/// Which end of a call has the memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It was read when the call began.
    Begin,
    /// It was read when the call had returned.
    Return,
}

impl End {
    fn memory<'a>(self, call: &Call<'a>, addr: u64) -> Option<&'a [u8]> {
        match self {
            Self::Begin => call.given_at(addr),
            Self::Return => call.made_at(addr),
        }
    }
}

/// Returns the texts of a vector, and whether there are more; one that is not in the recording is `None`.
pub fn texts<'a>(call: &Call<'a>, index: usize) -> Option<(Vec<(u64, Option<&'a [u8]>)>, bool)> {
    let (words, _) = call.given(index)?.as_chunks();
    let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
    let end = words.iter().position(|word| *word == 0);
    let shown = words[..end.unwrap_or(words.len())].iter().take(VECTOR);
    let all: Vec<_> = shown.map(|addr| (*addr, call.given_at(*addr))).collect();
    let is_cut = end != Some(all.len());
    Some((all, is_cut))
}

/// Returns a text without the NUL that ends it, and whether it is cut.
pub fn text_of(bytes: &[u8]) -> (&[u8], bool) {
    match bytes.iter().position(|byte| *byte == 0) {
        Some(len) => (&bytes[..len], false),
        None => (bytes, bytes.len() >= VECTOR_TEXT),
    }
}

/// Appends the texts of a vector.
pub fn vector(text: &mut String, call: &Call<'_>, index: usize) -> Option<()> {
    let (all, is_cut) = texts(call, index)?;
    let count = all.len() as u64 + u64::from(is_cut);
    list(text, all.into_iter(), count, |text, (addr, bytes)| {
        match bytes {
            Some(bytes) => {
                let (bytes, is_cut) = text_of(bytes);
                quoted(text, bytes, is_cut);
            }
            None => pointer(text, addr),
        }
        Some(())
    })
}

/// Appends the buffers of a vector at `addr`, as far as they are filled.
pub fn buffers(text: &mut String, call: &Call<'_>, addr: u64, count: u64, end: End) -> Option<()> {
    if count == 0 {
        text.push_str("[]");
        return Some(());
    }
    let mut filled = match end {
        End::Begin => u64::MAX,
        End::Return => u64::try_from(call.result?).ok()?,
    };
    let (pairs, _) = end.memory(call, addr)?.as_chunks::<16>();
    list(text, pairs.iter(), count, |text, pair| {
        let (from, room) = (number(pair, 0, 8)?, number(pair, 8, 8)?);
        let len = room.min(filled);
        filled -= len;
        text.push_str("{iov_base=");
        match (len, end.memory(call, from)) {
            _ if from == 0 => pointer(text, from),
            (0, _) => text.push_str("\"\""),
            (_, None) => pointer(text, from),
            (_, Some(bytes)) => {
                let shown = &bytes[..bytes.len().min(len.min(SHOWN) as usize)];
                quoted(text, shown, (shown.len() as u64) < len);
            }
        }
        add(text, format_args!(", iov_len={room}}}"));
        Some(())
    })
}

/// Appends a `struct msghdr`.
pub fn message(text: &mut String, call: &Call<'_>, index: usize, end: End) -> Option<()> {
    let bytes = end.memory(call, call.argument(index))?;
    let word = |index: usize| number(bytes, 8 * index, 8);
    let (name, name_len) = (word(0)?, number(bytes, 8, 4)?);
    text.push_str("{msg_name=");
    let len = text.len();
    let address = end.memory(call, name).filter(|_| name != 0);
    let is_shown = address.and_then(|bytes| {
        let len = bytes.len().min(name_len as usize);
        values::address(text, &bytes[..len])
    });
    if is_shown.is_none() {
        text.truncate(len);
        pointer(text, name);
    }
    add(text, format_args!(", msg_namelen={name_len}, msg_iov="));
    buffers(text, call, word(2)?, word(3)?, end)?;
    add(text, format_args!(", msg_iovlen={}", word(3)?));
    let (control, control_len) = (word(4)?, word(5)?);
    if control_len != 0 {
        add(text, format_args!(", msg_control={control:#x}"));
    }
    add(
        text,
        format_args!(", msg_controllen={control_len}, msg_flags="),
    );
    bits(text, number(bytes, 48, 4)?, flags::MESSAGE, "0");
    text.push('}');
    Some(())
}

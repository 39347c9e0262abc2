//! Writes the arguments of a system call as text, in strace's form. Memory that was not captured is shown by its address.

use debuginfo::prototypes::Ellipsis;
use store::wire::{Section, sections};

use super::flags::{
    self, FUTEX_CMP_REQUEUE, FUTEX_CMP_REQUEUE_PI, FUTEX_FD, FUTEX_LOCK_PI, FUTEX_LOCK_PI2,
    FUTEX_REQUEUE, FUTEX_TRYLOCK_PI, FUTEX_UNLOCK_PI, FUTEX_WAIT, FUTEX_WAIT_BITSET,
    FUTEX_WAIT_REQUEUE_PI, FUTEX_WAKE, FUTEX_WAKE_BITSET, FUTEX_WAKE_OP,
};
use super::name;
use super::signatures::signature;
use super::structures::{self, End};
use super::values::{self, add, bits, named, number, open_flags, quoted};
use super::{commands, sockets, words};

/// Bytes of its six arguments.
const ARGUMENTS: usize = 6 * 8;
/// The most bytes of a text that a record has.
const TEXT_MAX: usize = 4096;
const MREMAP_FIXED: u64 = 2;
const AT_FDCWD: i32 = -100;

/// The recorded data of a system call.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// Its number.
    pub number: u64,
    /// Its arguments and the memory that they point to, from its event.
    pub begun: &'a [u8],
    /// What the kernel has written, from the event of its end.
    pub written: &'a [u8],
    /// What it returned, if it did.
    pub result: Option<i64>,
}

impl<'a> Call<'a> {
    /// Returns argument `index`; 0 where the recording is damaged.
    pub fn argument(&self, index: usize) -> u64 {
        number(self.begun, 8 * index, 8).unwrap_or(0)
    }

    /// Returns the memory that argument `index` points to, as of the beginning of the call.
    pub fn given(&self, index: usize) -> Option<&'a [u8]> {
        self.given_at(self.argument(index))
    }

    /// Returns the memory at `addr` as of the beginning of the call.
    pub fn given_at(&self, addr: u64) -> Option<&'a [u8]> {
        at(sections(self.begun.get(ARGUMENTS..)?), addr)
    }

    /// Returns the memory that argument `index` points to, as of the return of the call.
    pub fn made(&self, index: usize) -> Option<&'a [u8]> {
        self.made_at(self.argument(index))
    }

    /// Returns the memory at `addr` as of the return of the call.
    pub fn made_at(&self, addr: u64) -> Option<&'a [u8]> {
        at(sections(self.written), addr)
    }

    /// Returns the text that argument `index` points to.
    pub fn text(&self, index: usize) -> Option<String> {
        let bytes = self.given(index)?;
        let len = bytes.iter().position(|byte| *byte == 0);
        let text = &bytes[..len.unwrap_or(bytes.len())];
        Some(String::from_utf8_lossy(text).into_owned())
    }

    fn failed(&self) -> bool {
        self.result
            .is_some_and(|result| (-4095..0).contains(&result))
    }
}

/// The longest section at `addr`: two buffers of a vector may begin at the same place.
fn at<'a>(sections: impl Iterator<Item = Section<'a>>, addr: u64) -> Option<&'a [u8]> {
    let found = sections.filter(|section| section.addr == addr);
    Some(found.max_by_key(|section| section.bytes.len())?.bytes)
}

/// An argument of a call.
pub struct Argument {
    /// Which one it is.
    pub index: usize,
    /// The word for its kind.
    pub kind: &'static str,
    /// Its text.
    pub text: String,
}

/// Returns whether the arguments of a call are known.
pub fn has_signature(number: u64) -> bool {
    name(number).and_then(signature).is_some()
}

/// Returns the arguments of a call, with commas between them.
pub fn arguments(call: &Call<'_>) -> String {
    let texts: Vec<String> = each_argument(call)
        .into_iter()
        .map(|one| one.text)
        .collect();
    texts.join(", ")
}

/// Returns the arguments of a call; those that it does not use are left out.
pub fn each_argument(call: &Call<'_>) -> Vec<Argument> {
    let mut all = Vec::new();
    let known = name(call.number).and_then(signature);
    let words = known.unwrap_or("hex hex hex hex hex hex");
    for (index, word) in kinds(call, words).into_iter().enumerate() {
        if word == "-" {
            continue;
        }
        if word == "create" && !Ellipsis::makes_file(call.argument(index - 1)) {
            break;
        }
        if word == "device" && !words::makes_device(call.argument(index - 1)) {
            break;
        }
        if word == "remapped" && call.argument(index - 1) & MREMAP_FIXED == 0 {
            break;
        }
        let mut text = String::new();
        argument(&mut text, call, index, word);
        all.push(Argument {
            index,
            kind: word,
            text,
        });
    }
    all
}

/// Returns the kinds of the arguments: what a command has follows it.
fn kinds(call: &Call<'_>, words: &'static str) -> Vec<&'static str> {
    let mut kinds = Vec::new();
    for (index, word) in words.split_whitespace().enumerate() {
        if word == "futex" {
            kinds.push("operation");
            kinds.extend(futex_words(call.argument(1)));
            break;
        }
        kinds.push(word);
        if let Some(commands) = commands::commands(word) {
            let found = commands::command(commands, call.argument(index));
            kinds.extend(found.map_or_else(|| commands::others(word), |(_, _, rest)| *rest));
            break;
        }
    }
    kinds
}

/// Returns the names of the arguments after the operation of `futex`. They depend on the operation; `-` is an unused one.
fn futex_words(operation: u64) -> &'static [&'static str] {
    const PRIVATE: u64 = 0x80;
    const CLOCK_REALTIME: u64 = 0x100;
    match operation & 0xffff_ffff & !(PRIVATE | CLOCK_REALTIME) {
        FUTEX_WAIT => &["uint", "time"],
        FUTEX_WAKE | FUTEX_FD => &["uint"],
        FUTEX_REQUEUE => &["uint", "uint", "ptr"],
        FUTEX_CMP_REQUEUE | FUTEX_CMP_REQUEUE_PI => &["uint", "uint", "ptr", "uint"],
        FUTEX_WAKE_OP => &["uint", "uint", "ptr", "wakeop"],
        FUTEX_LOCK_PI | FUTEX_LOCK_PI2 => &["-", "time"],
        FUTEX_UNLOCK_PI | FUTEX_TRYLOCK_PI => &[],
        FUTEX_WAIT_BITSET => &["uint", "time", "-", "bitset"],
        FUTEX_WAKE_BITSET => &["uint", "-", "-", "bitset"],
        FUTEX_WAIT_REQUEUE_PI => &["uint", "time", "ptr"],
        _ => &["uint", "hex", "hex", "hex"],
    }
}

/// Appends argument `index`, whose kind is `word`.
fn argument(text: &mut String, call: &Call<'_>, index: usize, word: &str) {
    let value = call.argument(index);
    match word {
        "fd" | "int" => add(text, format_args!("{}", value as i32)),
        "long" => add(text, format_args!("{}", value as i64)),
        "uint" => add(text, format_args!("{}", value as u32)),
        "size" => add(text, format_args!("{value}")),
        "hex" => values::hex(text, value),
        "octal" | "create" => words::octal(text, value),
        "device" => values::device(text, value),
        "dirfd" if value as i32 == AT_FDCWD => text.push_str("AT_FDCWD"),
        "dirfd" => add(text, format_args!("{}", value as i32)),
        "signal" => values::signal(text, value & 0xffff_ffff),
        "protocol" => sockets::protocol(text, call.argument(0), value & 0xffff_ffff),
        "sockets" => sockets::level(text, value & 0xffff_ffff),
        "option" => sockets::option(text, call.argument(1), value & 0xffff_ffff),
        _ if flag(text, call, word, value) => {}
        _ => {
            let len = text.len();
            if memory(text, call, index, word).is_none() {
                text.truncate(len);
                pointer(text, value);
            }
        }
    }
}

fn pointer(text: &mut String, value: u64) {
    match value {
        0 => text.push_str("NULL"),
        _ => add(text, format_args!("{value:#x}")),
    }
}

/// Appends a number that consists of flags or has a name. Returns false for other words.
fn flag(text: &mut String, call: &Call<'_>, word: &str, value: u64) -> bool {
    let value = value & 0xffff_ffff;
    match word {
        "open" => open_flags(text, value),
        "timer" if name(call.number) == Some("timerfd_settime") => {
            bits(text, value, flags::TIMERFD_SET, "0");
        }
        "prot" => bits(text, value, flags::PROTECTION, "PROT_NONE"),
        "map" => bits(text, value, flags::MAP, "MAP_FILE"),
        "access" => bits(text, value, flags::ACCESS, "F_OK"),
        "bitset" => match value {
            0xffff_ffff => text.push_str("FUTEX_BITSET_MATCH_ANY"),
            value => values::hex(text, value),
        },
        "wakeop" => values::wake_op(text, value),
        "operation" => {
            named(text, value & 0x7f, flags::FUTEX);
            if value & 0x80 != 0 {
                text.push_str("_PRIVATE");
            }
            if value & 0x100 != 0 {
                text.push_str("|FUTEX_CLOCK_REALTIME");
            }
        }
        _ => return known(text, word, value),
    }
    true
}

/// The same for words that mean the same in each call.
fn known(text: &mut String, word: &str, value: u64) -> bool {
    match (
        words::names(word),
        words::set(word),
        commands::commands(word),
    ) {
        (Some(names), ..) => named(text, value, names),
        (_, Some(names), _) => bits(text, value, names, "0"),
        (_, _, Some(of)) => match commands::command(of, value) {
            Some((name, ..)) => text.push_str(name),
            None => add(text, format_args!("{value:#x}")),
        },
        _ => return words::composed(text, word, value),
    }
    true
}

/// Appends the memory that an argument points to; `None` if that is not in the recording.
fn memory(text: &mut String, call: &Call<'_>, index: usize, word: &str) -> Option<()> {
    let (given, made) = (call.given(index), call.made(index));
    match word {
        "path" => {
            let bytes = given?;
            let len = bytes.iter().position(|byte| *byte == 0);
            let is_cut = len.is_none() && bytes.len() >= TEXT_MAX;
            quoted(text, &bytes[..len.unwrap_or(bytes.len())], is_cut);
        }
        "in" | "out" if call.argument(index) == 0 => return None,
        "in" => data(text, given, call.argument(index + 1))?,
        "binary" => values::binary(text, given?, call.argument(index + 1) & 0xffff_ffff),
        "out" => filled(text, call, index)?,
        "out0" => {
            call.result.filter(|result| *result >= 0)?;
            quoted(text, made?.strip_suffix(&[0]).unwrap_or(made?), false);
        }
        "stat" => values::stat(text, made?)?,
        "statx" => values::statx(text, made?)?,
        "time" => values::time(text, given?)?,
        "outtime" => values::time(text, made?)?,
        "limit" => values::limit(text, given?)?,
        "outlimit" => values::limit(text, made?)?,
        "addr" | "addr4" => values::address(text, given?)?,
        "outaddr" => {
            // The kernel tells how much of it is the address.
            let len = number(call.made(index + 1)?, 0, 4)? as usize;
            values::address(text, &made?[..made?.len().min(len)])?;
        }
        "inoutint" => {
            let now = number(made.or(given)?, 0, 4)? as i32;
            match number(given?, 0, 4)? as i32 {
                before if before == now => add(text, format_args!("[{now}]")),
                before => add(text, format_args!("[{before} => {now}]")),
            }
        }
        "outtext" => quoted(text, structures::text_of(made?).0, false),
        "status" => values::status(text, made.filter(|_| call.result != Some(0))?)?,
        "set" => values::signals(text, number(given?, 0, 8)?),
        "outset" => values::signals(text, number(made?, 0, 8)?),
        "inint" => add(text, format_args!("[{}]", number(given?, 0, 4)? as i32)),
        "outint" => add(text, format_args!("[{}]", number(made?, 0, 4)? as i32)),
        "outfds" => {
            let (one, other) = (number(made?, 0, 4)? as i32, number(made?, 4, 4)? as i32);
            add(text, format_args!("[{one}, {other}]"));
        }
        "poll" => polled(text, call, given?),
        "clone3" => structures::clone(text, given?, call.result)?,
        "optionvalue" | "outoption" => option_value(text, call, index, word)?,
        "how" => structures::how(text, given?)?,
        _ => return structure(text, call, index, word),
    }
    Some(())
}

/// Appends the structure that an argument points to; `None` if that is not in the recording.
fn structure(text: &mut String, call: &Call<'_>, index: usize, word: &str) -> Option<()> {
    let (given, made) = (call.given(index), call.made(index));
    let buffers = |text: &mut String, end| {
        structures::buffers(
            text,
            call,
            call.argument(index),
            call.argument(index + 1),
            end,
        )
    };
    match word {
        "texts" => structures::vector(text, call, index),
        "iovec" => buffers(text, End::Begin),
        "outiovec" => buffers(text, End::Return),
        "message" => structures::message(text, call, index, End::Begin),
        "outmessage" => structures::message(text, call, index, End::Return),
        "action" => structures::action(text, given?),
        "outaction" => structures::action(text, made?),
        "stack" => structures::stack(text, given?),
        "outstack" => structures::stack(text, made?),
        "itimerval" => structures::interval(text, given?, structures::micros),
        "outitimerval" => structures::interval(text, made?, structures::micros),
        "itimerspec" => structures::interval(text, given?, values::time),
        "outitimerspec" => structures::interval(text, made?, values::time),
        "times" => structures::file_times(text, given?),
        "event" => structures::event(text, given?),
        "outevents" => {
            let count = u64::try_from(call.result?).ok()?;
            structures::events(text, if count == 0 { &[] } else { made? }, count)
        }
        "lock" => structures::lock(text, given?, false),
        "outlock" => structures::lock(text, made?, true),
        "outwindow" => structures::window(text, made?),
        "outtimeval" => structures::micros(text, made?),
        "outuname" => structures::system(text, made?),
        "outusage" => structures::usage(text, made?),
        "outtimes" => structures::times(text, made?),
        "outsysinfo" => structures::memory_of_system(text, made?),
        _ => None,
    }
}

/// Appends the value of a socket's option; one that is returned is known only if it is a number.
fn option_value(text: &mut String, call: &Call<'_>, index: usize, word: &str) -> Option<()> {
    const NUMBER: u64 = 4;
    let (bytes, len) = match word {
        "outoption" => (call.made(index)?, number(call.made(index + 1)?, 0, 4)?),
        _ => (call.given(index)?, call.argument(index + 1) & 0xffff_ffff),
    };
    if word == "outoption" && len != NUMBER {
        return None;
    }
    sockets::value(text, call.argument(1), call.argument(2), bytes, len)
}

/// Appends what a call has written to a buffer. Without room for anything, the result only tells how much there is.
fn filled(text: &mut String, call: &Call<'_>, index: usize) -> Option<()> {
    let (len, room) = (u64::try_from(call.result?).ok()?, call.argument(index + 1));
    if len != 0 && room == 0 {
        return None;
    }
    let made = call.made(index);
    let fitting =
        made.map(|bytes| &bytes[..bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX))]);
    data(text, fitting, len)
}

/// Appends the available bytes of `len` bytes.
fn data(text: &mut String, bytes: Option<&[u8]>, len: u64) -> Option<()> {
    match len {
        0 => text.push_str("\"\""),
        _ => quoted(text, bytes?, (bytes?.len() as u64) < len),
    }
    Some(())
}

/// Appends the events requested of `poll` and, if there are any, the returned ones.
fn polled(text: &mut String, call: &Call<'_>, given: &[u8]) {
    let count = call.argument(1);
    values::poll(text, given, count, false);
    if let Some(made) = call
        .made(0)
        .filter(|_| !call.failed() && call.result != Some(0))
    {
        text.push_str(" => ");
        values::poll(text, made, count, true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of a call's event: arguments, then sections.
    fn begun(args: [u64; 6], memory: &[(u64, &[u8])]) -> Vec<u8> {
        let mut bytes: Vec<u8> = args.iter().flat_map(|arg| arg.to_le_bytes()).collect();
        bytes.extend(packed(memory));
        bytes
    }

    fn packed(memory: &[(u64, &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (addr, content) in memory {
            bytes.extend(addr.to_le_bytes());
            bytes.extend((content.len() as u64).to_le_bytes());
            bytes.extend_from_slice(content);
            bytes.resize(bytes.len().next_multiple_of(8), 0);
        }
        bytes
    }

    fn shown(number: u64, begun: &[u8], written: &[u8], result: Option<i64>) -> String {
        arguments(&Call {
            number,
            begun,
            written,
            result,
        })
    }

    #[test]
    fn texts_flags_and_results_are_told() {
        let open = begun(
            [-100i64 as u64, 0x1000, 0o2_000_000, 0, 0, 0],
            &[(0x1000, b"/etc/passwd\0")],
        );
        assert_eq!(
            shown(257, &open, &[], Some(3)),
            "AT_FDCWD, \"/etc/passwd\", O_RDONLY|O_CLOEXEC"
        );
        let made = begun(
            [0xffff_ff9c, 0x1000, 0o101, 0o644, 0, 0],
            &[(0x1000, b"x\0")],
        );
        assert_eq!(
            shown(257, &made, &[], Some(3)),
            "AT_FDCWD, \"x\", O_WRONLY|O_CREAT, 0644"
        );
        let read = begun([3, 0x2000, 4096, 0, 0, 0], &[]);
        assert_eq!(
            shown(0, &read, &packed(&[(0x2000, b"abc")]), Some(3)),
            "3, \"abc\", 4096"
        );
        assert_eq!(shown(0, &read, &[], Some(0)), "3, \"\", 4096");
        assert_eq!(shown(0, &read, &[], Some(-9)), "3, 0x2000, 4096");
        assert_eq!(shown(0, &read, &[], None), "3, 0x2000, 4096");
        let write = begun([1, 0x3000, 100, 0, 0, 0], &[(0x3000, &[b'x'; 32])]);
        assert_eq!(
            shown(1, &write, &[], Some(100)),
            format!("1, \"{}\"..., 100", "x".repeat(32))
        );
    }

    #[test]
    fn calls_that_are_not_known_have_their_six_words() {
        let call = begun([1, 2, 3, 4, 5, 16], &[]);
        assert_eq!(
            shown(5000, &call, &[], None),
            "0x1, 0x2, 0x3, 0x4, 0x5, 0x10"
        );
        assert_eq!(shown(39, &call, &[], Some(7)), "");
        // Cut short by damage.
        assert_eq!(shown(3, &call[..4], &[], None), "0");
    }

    #[test]
    fn an_argument_that_a_command_does_not_have_is_left_out() {
        let get = begun([3, 3, 0, 0, 0, 0], &[]);
        assert_eq!(shown(72, &get, &[], Some(2)), "3, F_GETFL");
        let set = begun([3, 2, 1, 0, 0, 0], &[]);
        assert_eq!(shown(72, &set, &[], Some(0)), "3, F_SETFD, FD_CLOEXEC");
    }

    #[test]
    fn futex_has_the_arguments_of_its_operation() {
        let shown = |operation: u64, memory: &[(u64, &[u8])]| {
            let call = begun([0x1000, operation, 2, 0x2000, 0x3000, 0xffff_ffff], memory);
            shown(202, &call, &[], Some(0))
        };
        assert_eq!(shown(0x81, &[]), "0x1000, FUTEX_WAKE_PRIVATE, 2");
        assert_eq!(shown(0x80, &[]), "0x1000, FUTEX_WAIT_PRIVATE, 2, 0x2000");
        assert_eq!(
            shown(0x189, &[]),
            "0x1000, FUTEX_WAIT_BITSET_PRIVATE|FUTEX_CLOCK_REALTIME, 2, 0x2000, FUTEX_BITSET_MATCH_ANY"
        );
        assert_eq!(
            shown(4, &[]),
            "0x1000, FUTEX_CMP_REQUEUE, 2, 8192, 0x3000, 4294967295"
        );
        assert_eq!(shown(7, &[]), "0x1000, FUTEX_UNLOCK_PI");
        assert_eq!(shown(6, &[]), "0x1000, FUTEX_LOCK_PI, 0x2000");
        let wake = begun([0x1000, 0x85, 1, 1, 0x3000, 0x0400_0001], &[]);
        assert_eq!(
            super::arguments(&Call {
                number: 202,
                begun: &wake,
                written: &[],
                result: Some(1)
            }),
            "0x1000, FUTEX_WAKE_OP_PRIVATE, 1, 1, 0x3000, FUTEX_OP_SET<<28|0<<12|FUTEX_OP_CMP_GT<<24|0x1"
        );
    }

    #[test]
    fn flags_of_descriptors_have_no_access_mode() {
        let pipe = |flags| begun([0x1000, flags, 0, 0, 0, 0], &[]);
        let made = [3u32.to_le_bytes(), 4u32.to_le_bytes()].concat();
        let made = packed(&[(0x1000, &made)]);
        assert_eq!(shown(293, &pipe(0), &made, Some(0)), "[3, 4], 0");
        assert_eq!(
            shown(293, &pipe(0o2_004_000), &made, Some(0)),
            "[3, 4], O_NONBLOCK|O_CLOEXEC"
        );
        // eventfd2, epoll_create1
        assert_eq!(
            shown(290, &begun([0, 0, 0, 0, 0, 0], &[]), &[], Some(3)),
            "0, 0"
        );
        assert_eq!(
            shown(291, &begun([0, 0, 0, 0, 0, 0], &[]), &[], Some(3)),
            "0"
        );
    }

    #[test]
    fn memory_that_was_not_read_is_shown_by_its_address() {
        let stat = begun([0xffff_ff9c, 0x1000, 0x2000, 0, 0, 0], &[]);
        assert_eq!(
            shown(262, &stat, &[], Some(-14)),
            "AT_FDCWD, 0x1000, 0x2000, 0"
        );
        let none = begun([-1i64 as u64, 0, 1, 0, 0, 0], &[]);
        assert_eq!(shown(61, &none, &[], Some(0)), "-1, NULL, WNOHANG, NULL");
    }

    #[test]
    fn each_call_has_flags_of_its_own() {
        let at = |number, flags| {
            let call = begun(
                [0xffff_ff9c, 0x1000, 4, flags, flags, 0],
                &[(0x1000, b"f\0")],
            );
            shown(number, &call, &[], Some(-2))
        };
        assert_eq!(at(439, 0x200), "AT_FDCWD, \"f\", R_OK, AT_EACCESS");
        assert_eq!(
            at(439, 0x300).rsplit_once(", ").unwrap().1,
            "AT_SYMLINK_NOFOLLOW|AT_EACCESS"
        );
        assert_eq!(at(303, 0x200), "AT_FDCWD, \"f\", 0x4, 0x200, AT_HANDLE_FID");
        assert_eq!(at(262, 0x1200), "AT_FDCWD, \"f\", 0x4, AT_EMPTY_PATH|0x200");
        let unlink = begun([0xffff_ff9c, 0x1000, 0x200, 0, 0, 0], &[(0x1000, b"f\0")]);
        assert_eq!(
            shown(263, &unlink, &[], Some(0)),
            "AT_FDCWD, \"f\", AT_REMOVEDIR"
        );
        let wait = begun([u64::MAX, 0, 0xe000_0000, 0, 0, 0], &[]);
        assert_eq!(
            shown(61, &wait, &[], Some(-10)),
            "-1, NULL, __WCLONE|__WALL|__WNOTHREAD, NULL"
        );
        let hole = begun([3, 3, 1 << 32, -1i64 as u64, 0, 0], &[]);
        assert_eq!(
            shown(285, &hole, &[], Some(0)),
            "3, FALLOC_FL_KEEP_SIZE|FALLOC_FL_PUNCH_HOLE, 4294967296, -1"
        );
    }

    #[test]
    fn offsets_have_64_bits_and_other_numbers_32() {
        let seek = begun([3, 3_000_000_000, 0, 0, 0, 0], &[]);
        assert_eq!(
            shown(8, &seek, &[], Some(3_000_000_000)),
            "3, 3000000000, SEEK_SET"
        );
        let group = begun([u64::from(u32::MAX), 1 << 40 | 9, 0, 0, 0, 0], &[]);
        assert_eq!(shown(109, &group, &[], Some(0)), "-1, 9");
    }

    #[test]
    fn arguments_that_a_call_does_not_use_are_left_out() {
        let six = |first: [u64; 3]| begun([first[0], first[1], first[2], 0x7fd9, 5, 6], &[]);
        assert_eq!(shown(255, &six([3, 99, 0]), &[], Some(-22)), "3, 99");
        assert_eq!(shown(312, &six([1, 2, 1]), &[], Some(0)), "1, 2, KCMP_VM");
        assert_eq!(shown(101, &six([0, 1, 2]), &[], Some(0)), "PTRACE_TRACEME");
        assert_eq!(
            shown(250, &six([3, 7, 1]), &[], Some(0)),
            "KEYCTL_REVOKE, 7"
        );
        let pipe = begun([0x1000, 0o10_600, 7, 0, 0, 0], &[(0x1000, b"p\0")]);
        assert_eq!(shown(133, &pipe, &[], Some(0)), "\"p\", S_IFIFO|0600");
        let disk = begun([0x1000, 0o60_600, 0x803, 0, 0, 0], &[(0x1000, b"d\0")]);
        assert_eq!(
            shown(133, &disk, &[], Some(0)),
            "\"d\", S_IFBLK|0600, makedev(0x8, 0x3)"
        );
    }

    #[test]
    fn null_buffers_are_null() {
        let none = begun([1, 0, 0, 0, 0, 0], &[]);
        assert_eq!(shown(1, &none, &[], Some(0)), "1, NULL, 0");
        assert_eq!(shown(0, &none, &[], Some(0)), "1, NULL, 0");
        let empty = begun([1, 0x3000, 0, 0, 0, 0], &[]);
        assert_eq!(shown(1, &empty, &[], Some(0)), "1, \"\", 0");
        let pairs = [[0, 0, 0x3000u64, 0].map(u64::to_le_bytes)]
            .concat()
            .concat();
        let vector = begun([1, 0x2000, 2, 0, 0, 0], &[(0x2000, &pairs)]);
        assert_eq!(
            shown(20, &vector, &[], Some(0)),
            "1, [{iov_base=NULL, iov_len=0}, {iov_base=\"\", iov_len=0}], 2"
        );
    }

    #[test]
    fn what_did_not_fit_is_not_shown() {
        let value = |room| {
            begun(
                [0x1000, 0x1100, 0x2000, room, 0, 0],
                &[(0x1000, b"f\0"), (0x1100, b"user.a\0")],
            )
        };
        let made = packed(&[(0x2000, b"pearXXXX")]);
        assert_eq!(
            shown(191, &value(8), &packed(&[(0x2000, b"pear")]), Some(4)),
            "\"f\", \"user.a\", \"pear\", 8"
        );
        assert_eq!(
            shown(191, &value(0), &made, Some(8)),
            "\"f\", \"user.a\", 0x2000, 0"
        );
        let cut = begun([3, 0x2000, 4, 0x20, 0, 0], &[]);
        assert_eq!(
            shown(45, &cut, &made, Some(8)),
            "3, \"pear\"..., 4, MSG_TRUNC, NULL, NULL"
        );
    }
}

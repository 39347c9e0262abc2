//! What the arguments of system calls point to, as far as it tells what they do: texts, small structures, the beginning of buffers. The same as
//! in recordings of calls, whose list is in `agent/runtime/system_calls.c`.

use super::written::Memory;

/// Of a buffer's bytes.
const SHOWN: u64 = 32;
/// Of a text's bytes.
const TEXT_MAX: usize = 4096;
/// Nothing is mapped below.
const PAGE: u64 = 4096;
/// Bytes of a text that are read at once: they cross no page that the text may not reach.
const PIECE: u64 = 64;
/// Of the elements of a vector.
const VECTOR: usize = 32;
/// Of a text's bytes in a vector.
const VECTOR_TEXT: usize = 1024;
/// Of an address's bytes, at most those of a path.
const ADDRESS_MAX: u64 = 112;
/// Of a `struct msghdr`.
const MESSAGE_WORDS: usize = 7;
const EVENT_BYTES: u64 = 12;
/// Of a `struct mmsghdr`, which ends with the count of the message's bytes.
const MESSAGE_BYTES: u64 = 64;
/// Of the messages that one call sends or receives.
const MESSAGES_SHOWN: u64 = 256;

#[derive(Clone, Copy)]
enum How {
    /// Up to a NUL.
    Text,
    /// So many bytes.
    Fixed(u64),
    /// As many bytes as the next argument says, at most so many.
    Counted(u64),
    /// As many bytes as the result says, at most so many and as many as the next argument says there is room for.
    Result(u64),
}

/// Memory to show.
#[derive(Clone, Copy)]
struct Rule {
    /// It points there.
    argument: usize,
    how: How,
    /// It is valid when the call has returned without an error.
    at_return: bool,
}

const fn rule(argument: usize, how: How, at_return: bool) -> Rule {
    Rule {
        argument,
        how,
        at_return,
    }
}

const fn text(argument: usize) -> Rule {
    rule(argument, How::Text, false)
}

const fn fixed(argument: usize, bytes: u64) -> Rule {
    rule(argument, How::Fixed(bytes), false)
}

const fn made(argument: usize, bytes: u64) -> Rule {
    rule(argument, How::Fixed(bytes), true)
}

const fn counted(argument: usize, most: u64) -> Rule {
    rule(argument, How::Counted(most), false)
}

const fn result(argument: usize, most: u64) -> Rule {
    rule(argument, How::Result(most), true)
}

/// The memory to show of a call, as addresses and lengths: before it, or after it has returned `result`.
pub(crate) fn spans(
    number: u64,
    arguments: &[u64; 6],
    result: Option<i64>,
    memory: &dyn Memory,
) -> Vec<(u64, usize)> {
    let wanted = rules(i64::try_from(number).unwrap_or(-1)).iter();
    let wanted = wanted.filter(|rule| rule.at_return == result.is_some());
    let direct = wanted.filter_map(|rule| {
        let at = arguments[rule.argument];
        let length = match rule.how {
            How::Text => text_bytes(memory, at) as u64,
            How::Fixed(bytes) => bytes,
            How::Counted(most) => arguments.get(rule.argument + 1)?.min(&most).to_owned(),
            How::Result(most) => {
                let room = *arguments.get(rule.argument + 1)?;
                most.min(room).min(u64::try_from(result?).ok()?)
            }
        };
        (at >= PAGE && length > 0).then_some((at, length as usize))
    });
    let mut spans: Vec<_> = direct.collect();
    spans.extend(vector(number, arguments, result, memory));
    spans.retain(|(at, length)| *at >= PAGE && *length > 0);
    spans
}

/// What the target of an argument points to itself, with the target where it is no rule's.
fn vector(
    number: u64,
    arguments: &[u64; 6],
    result: Option<i64>,
    memory: &dyn Memory,
) -> Vec<(u64, usize)> {
    let filled = match result {
        None => u64::MAX,
        Some(result) => u64::try_from(result).unwrap_or(0),
    };
    let is_end = result.is_some();
    match i64::try_from(number).unwrap_or(-1) {
        libc::SYS_execve if !is_end => texts(memory, arguments[1]),
        libc::SYS_execveat if !is_end => texts(memory, arguments[2]),
        libc::SYS_writev | libc::SYS_pwritev | libc::SYS_pwritev2 | libc::SYS_vmsplice
            if !is_end =>
        {
            buffers(memory, arguments[1], arguments[2], filled)
        }
        libc::SYS_readv | libc::SYS_preadv | libc::SYS_preadv2 if is_end => {
            buffers(memory, arguments[1], arguments[2], filled)
        }
        libc::SYS_sendmsg if !is_end => message(memory, arguments[1], filled),
        libc::SYS_recvmsg if is_end => message(memory, arguments[1], filled),
        libc::SYS_epoll_wait | libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 if is_end => {
            vec![(arguments[1], (EVENT_BYTES * filled.min(SHOWN)) as usize)]
        }
        libc::SYS_sendmmsg | libc::SYS_recvmmsg if is_end => {
            vec![(
                arguments[1],
                (MESSAGE_BYTES * filled.min(MESSAGES_SHOWN)) as usize,
            )]
        }
        _ => Vec::new(),
    }
}

/// Reads up to `count` words, as many as there are.
fn words(memory: &dyn Memory, at: u64, count: usize) -> Vec<u64> {
    let mut bytes = vec![0; 8 * count];
    let read = match at >= PAGE {
        true => memory.read(at, &mut bytes),
        false => 0,
    };
    let (words, _) = bytes[..read].as_chunks();
    words.iter().map(|word| u64::from_le_bytes(*word)).collect()
}

/// Addresses of texts up to a null pointer, and the texts.
fn texts(memory: &dyn Memory, at: u64) -> Vec<(u64, usize)> {
    let words = words(memory, at, VECTOR + 1);
    let count = words.iter().position(|word| *word == 0);
    let texts = &words[..count.unwrap_or(words.len())];
    let whole = words.len().min(texts.len() + 1);
    let shown = texts.iter().take(VECTOR).map(|text| {
        let length = match *text >= PAGE {
            true => text_bytes(memory, *text),
            false => 0,
        };
        (*text, length.min(VECTOR_TEXT))
    });
    std::iter::once((at, 8 * whole)).chain(shown).collect()
}

/// Addresses and lengths, and the memory there as far as it is filled.
fn buffers(memory: &dyn Memory, at: u64, count: u64, mut filled: u64) -> Vec<(u64, usize)> {
    let count = usize::try_from(count).unwrap_or(VECTOR).min(VECTOR);
    let words = words(memory, at, 2 * count);
    let (pairs, _) = words.as_chunks();
    let shown = pairs.iter().map(|[from, length]| {
        let length = (*length).min(filled);
        filled -= length;
        (*from, length.min(SHOWN) as usize)
    });
    std::iter::once((at, 16 * pairs.len()))
        .chain(shown)
        .collect()
}

/// The address and the buffers of a message.
fn message(memory: &dyn Memory, at: u64, filled: u64) -> Vec<(u64, usize)> {
    let words = words(memory, at, MESSAGE_WORDS);
    let [name, name_length, from, count, ..] = words[..] else {
        return Vec::new();
    };
    let name_length = (name_length & 0xffff_ffff).min(ADDRESS_MAX) as usize;
    let mut spans = vec![(name, name_length)];
    spans.extend(buffers(memory, from, count, filled));
    spans
}

/// The length of a text with its NUL, or of what there is of it.
fn text_bytes(memory: &dyn Memory, at: u64) -> usize {
    let mut length = 0;
    while length < TEXT_MAX {
        let Some(here) = at.checked_add(length as u64) else {
            return length;
        };
        let mut piece = [0; PIECE as usize];
        let wanted = (PIECE - here % PIECE) as usize;
        let read = memory.read(here, &mut piece[..wanted]);
        if let Some(end) = piece[..read].iter().position(|byte| *byte == 0) {
            return length + end + 1;
        }
        length += read;
        if read < wanted {
            return length;
        }
    }
    TEXT_MAX
}

fn rules(number: i64) -> &'static [Rule] {
    match number {
        libc::SYS_read | libc::SYS_pread64 | libc::SYS_flistxattr => &const { [result(1, SHOWN)] },
        libc::SYS_write | libc::SYS_pwrite64 => &const { [counted(1, SHOWN)] },
        libc::SYS_open
        | libc::SYS_access
        | libc::SYS_execve
        | libc::SYS_chdir
        | libc::SYS_mkdir
        | libc::SYS_rmdir
        | libc::SYS_creat
        | libc::SYS_unlink
        | libc::SYS_chmod
        | libc::SYS_chown
        | libc::SYS_lchown
        | libc::SYS_truncate
        | libc::SYS_utime
        | libc::SYS_uselib
        | libc::SYS_statfs
        | libc::SYS_chroot
        | libc::SYS_mknod
        | libc::SYS_acct
        | libc::SYS_umount2
        | libc::SYS_swapon
        | libc::SYS_swapoff
        | libc::SYS_delete_module
        | libc::SYS_utimes
        | libc::SYS_mq_open
        | libc::SYS_mq_unlink
        | libc::SYS_memfd_create
        | libc::SYS_fsopen => &const { [text(0)] },
        libc::SYS_stat | libc::SYS_lstat => &const { [text(0), made(1, 144)] },
        libc::SYS_fstat => &const { [made(1, 144)] },
        libc::SYS_poll => &const { [fixed(0, 32), made(0, 32)] },
        libc::SYS_rt_sigaction | libc::SYS_setitimer => &const { [fixed(1, 32), made(2, 32)] },
        libc::SYS_rt_sigprocmask => &const { [fixed(1, 8), made(2, 8)] },
        libc::SYS_ioctl => &const { [fixed(2, 4), made(2, 8)] },
        libc::SYS_pipe | libc::SYS_pipe2 => &const { [made(0, 8)] },
        libc::SYS_nanosleep => &const { [fixed(0, 16)] },
        libc::SYS_getitimer
        | libc::SYS_getrusage
        | libc::SYS_timer_gettime
        | libc::SYS_timerfd_gettime => &const { [made(1, 32)] },
        libc::SYS_connect | libc::SYS_bind => &const { [counted(1, 112)] },
        libc::SYS_accept | libc::SYS_getsockname | libc::SYS_getpeername | libc::SYS_accept4 => {
            &const { [made(1, 28), fixed(2, 4), made(2, 4)] }
        }
        libc::SYS_sendmsg => &const { [fixed(1, 56)] },
        libc::SYS_recvmsg => &const { [made(1, 56)] },
        libc::SYS_sendto => &const { [counted(1, SHOWN), counted(4, 112)] },
        libc::SYS_recvfrom => &const { [result(1, SHOWN), made(4, 28), fixed(5, 4), made(5, 4)] },
        libc::SYS_socketpair => &const { [made(3, 8)] },
        libc::SYS_setsockopt => &const { [counted(3, SHOWN)] },
        libc::SYS_getsockopt => &const { [made(3, 4), fixed(4, 4), made(4, 4)] },
        libc::SYS_wait4 | libc::SYS_sched_getparam => &const { [made(1, 4)] },
        libc::SYS_uname => &const { [made(0, 132)] },
        libc::SYS_fcntl => &const { [fixed(2, 32), made(2, 32)] },
        libc::SYS_getcwd => &const { [result(0, 1020)] },
        libc::SYS_rename
        | libc::SYS_link
        | libc::SYS_symlink
        | libc::SYS_pivot_root
        | libc::SYS_removexattr
        | libc::SYS_lremovexattr => &const { [text(0), text(1)] },
        libc::SYS_readlink => &const { [text(0), result(1, 1020)] },
        libc::SYS_gettimeofday => &const { [made(0, 16)] },
        libc::SYS_getresuid | libc::SYS_getresgid => {
            &const { [made(0, 4), made(1, 4), made(2, 4)] }
        }
        libc::SYS_getrlimit
        | libc::SYS_sched_rr_get_interval
        | libc::SYS_clock_gettime
        | libc::SYS_clock_getres => &const { [made(1, 16)] },
        libc::SYS_sysinfo => &const { [made(0, 112)] },
        libc::SYS_times => &const { [made(0, 32)] },
        libc::SYS_rt_sigtimedwait => &const { [fixed(0, 8), fixed(2, 16)] },
        libc::SYS_rt_sigsuspend => &const { [fixed(0, 8)] },
        libc::SYS_sigaltstack => &const { [fixed(0, 24), made(1, 24)] },
        libc::SYS_sched_setparam => &const { [fixed(1, 4)] },
        libc::SYS_sched_setscheduler => &const { [fixed(2, 4)] },
        libc::SYS_setrlimit | libc::SYS_clock_settime => &const { [fixed(1, 16)] },
        libc::SYS_prctl => &const { [text(1), made(1, 16)] },
        libc::SYS_mount => &const { [text(0), text(1), text(2), text(4)] },
        libc::SYS_sethostname | libc::SYS_setdomainname => &const { [counted(0, 64)] },
        libc::SYS_init_module => &const { [text(2)] },
        libc::SYS_quotactl
        | libc::SYS_fremovexattr
        | libc::SYS_futimesat
        | libc::SYS_openat
        | libc::SYS_mkdirat
        | libc::SYS_mknodat
        | libc::SYS_fchownat
        | libc::SYS_unlinkat
        | libc::SYS_fchmodat
        | libc::SYS_faccessat
        | libc::SYS_inotify_add_watch
        | libc::SYS_name_to_handle_at
        | libc::SYS_finit_module
        | libc::SYS_execveat
        | libc::SYS_open_tree
        | libc::SYS_fspick
        | libc::SYS_faccessat2
        | libc::SYS_mount_setattr
        | libc::SYS_fchmodat2 => &const { [text(1)] },
        libc::SYS_lsetxattr | libc::SYS_setxattr | libc::SYS_add_key => {
            &const { [text(0), text(1), counted(2, SHOWN)] }
        }
        libc::SYS_fsetxattr => &const { [text(1), counted(2, SHOWN)] },
        libc::SYS_getxattr | libc::SYS_lgetxattr => &const { [text(0), text(1), result(2, SHOWN)] },
        libc::SYS_fgetxattr => &const { [text(1), result(2, SHOWN)] },
        libc::SYS_listxattr | libc::SYS_llistxattr => &const { [text(0), result(1, SHOWN)] },
        libc::SYS_futex | libc::SYS_semtimedop | libc::SYS_epoll_pwait2 | libc::SYS_futex_waitv => {
            &const { [fixed(3, 16)] }
        }
        libc::SYS_io_getevents | libc::SYS_recvmmsg => &const { [fixed(4, 16)] },
        libc::SYS_timer_create => &const { [made(2, 4)] },
        libc::SYS_timer_settime | libc::SYS_timerfd_settime => {
            &const { [fixed(2, 32), made(3, 32)] }
        }
        libc::SYS_clock_nanosleep => &const { [fixed(2, 16)] },
        libc::SYS_epoll_ctl => &const { [fixed(3, 12)] },
        libc::SYS_mq_timedsend => &const { [counted(1, SHOWN), fixed(4, 16)] },
        libc::SYS_mq_timedreceive => &const { [result(1, SHOWN), made(3, 4), fixed(4, 16)] },
        libc::SYS_request_key => &const { [text(0), text(1), text(2)] },
        libc::SYS_signalfd | libc::SYS_signalfd4 => &const { [fixed(1, 8)] },
        libc::SYS_utimensat => &const { [text(1), fixed(2, 32)] },
        libc::SYS_newfstatat => &const { [text(1), made(2, 144)] },
        libc::SYS_renameat | libc::SYS_linkat | libc::SYS_renameat2 | libc::SYS_move_mount => {
            &const { [text(1), text(3)] }
        }
        libc::SYS_symlinkat => &const { [text(0), text(2)] },
        libc::SYS_readlinkat => &const { [text(1), result(2, 1020)] },
        libc::SYS_ppoll => &const { [fixed(0, 32), fixed(2, 16), made(0, 32)] },
        libc::SYS_fanotify_mark => &const { [text(4)] },
        libc::SYS_prlimit64 => &const { [fixed(2, 16), made(3, 16)] },
        libc::SYS_statx => &const { [text(1), made(4, 64)] },
        libc::SYS_fsconfig => &const { [text(2), text(3)] },
        libc::SYS_clone3 => &const { [fixed(0, 64)] },
        libc::SYS_openat2 => &const { [text(1), fixed(2, 24)] },
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Bytes(u64, Vec<u8>);

    impl Memory for Bytes {
        fn read(&self, address: u64, into: &mut [u8]) -> usize {
            let from = address
                .checked_sub(self.0)
                .map_or(usize::MAX, |at| at as usize);
            let rest = self.1.get(from..).unwrap_or_default();
            let count = rest.len().min(into.len());
            into[..count].copy_from_slice(&rest[..count]);
            count
        }
    }

    #[test]
    fn texts_end_with_their_nul_or_with_the_memory() {
        let path = [vec![b'x'; 100], vec![0, b'y']].concat();
        let memory = Bytes(0x1_0030, path);
        let open = libc::SYS_openat as u64;
        let of = |at| spans(open, &[0, at, 0, 0, 0, 0], None, &memory);
        assert_eq!(of(0x1_0030), [(0x1_0030, 101)]);
        assert_eq!(of(0x1_0030 + 101), [(0x1_0030 + 101, 1)]);
        assert_eq!(of(0x2_0000), []);
        assert_eq!(of(7), []);
    }

    #[test]
    fn vectors_are_shown_with_what_they_point_to() {
        let words = |words: &[u64]| -> Vec<u8> {
            words.iter().flat_map(|word| word.to_le_bytes()).collect()
        };
        // Two texts at 0x1018, their addresses before them.
        let mut bytes = words(&[0x1018, 0x101b, 0]);
        bytes.extend(b"ab\0c\0");
        let memory = Bytes(0x1000, bytes);
        let execve = libc::SYS_execve as u64;
        let args = [0, 0x1000, 0, 0, 0, 0];
        let found = spans(execve, &args, None, &memory);
        assert_eq!(found, [(0x1000, 24), (0x1018, 3), (0x101b, 2)]);
        assert_eq!(spans(execve, &args, Some(0), &memory), []);
        let memory = Bytes(0x1000, words(&[0x2000, 100, 0x3000, 10]));
        let (writev, readv) = (libc::SYS_writev as u64, libc::SYS_readv as u64);
        let args = [1, 0x1000, 2, 0, 0, 0];
        let found = spans(writev, &args, None, &memory);
        assert_eq!(found, [(0x1000, 32), (0x2000, 32), (0x3000, 10)]);
        let found = spans(readv, &args, Some(104), &memory);
        assert_eq!(found, [(0x1000, 32), (0x2000, 32), (0x3000, 4)]);
        assert_eq!(spans(readv, &[1, 7, 2, 0, 0, 0], Some(104), &memory), []);
    }

    #[test]
    fn buffers_are_shown_as_far_as_they_are_filled() {
        let memory = Bytes(0x1000, vec![1; 4096]);
        let read = libc::SYS_read as u64;
        let of = |result| spans(read, &[3, 0x1000, 4096, 0, 0, 0], result, &memory);
        assert_eq!(of(None), []);
        assert_eq!(of(Some(5)), [(0x1000, 5)]);
        assert_eq!(of(Some(4000)), [(0x1000, 32)]);
        assert_eq!(of(Some(0)), []);
        let write = libc::SYS_write as u64;
        let args = [1, 0x1000, 7, 0, 0, 0];
        assert_eq!(spans(write, &args, None, &memory), [(0x1000, 7)]);
    }
}

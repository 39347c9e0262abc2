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

#[derive(Clone, Copy)]
enum How {
    /// Up to a NUL.
    Text,
    /// So many bytes.
    Fixed(u64),
    /// As many bytes as the next argument says, at most so many.
    Counted(u64),
    /// As many bytes as the result says, at most so many.
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
    let spans = wanted.filter_map(|rule| {
        let at = arguments[rule.argument];
        let length = match rule.how {
            How::Text => text_bytes(memory, at) as u64,
            How::Fixed(bytes) => bytes,
            How::Counted(most) => arguments.get(rule.argument + 1)?.min(&most).to_owned(),
            How::Result(most) => most.min(u64::try_from(result?).ok()?),
        };
        (at >= PAGE && length > 0).then_some((at, length as usize))
    });
    spans.collect()
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
        libc::SYS_read | libc::SYS_pread64 | libc::SYS_recvfrom => &const { [result(1, SHOWN)] },
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
        | libc::SYS_statfs
        | libc::SYS_chroot
        | libc::SYS_mknod
        | libc::SYS_listxattr
        | libc::SYS_memfd_create => &const { [text(0)] },
        libc::SYS_stat | libc::SYS_lstat => &const { [text(0), made(1, 144)] },
        libc::SYS_fstat => &const { [made(1, 144)] },
        libc::SYS_poll => &const { [fixed(0, 32), made(0, 32)] },
        libc::SYS_rt_sigprocmask => &const { [fixed(1, 8), made(2, 8)] },
        libc::SYS_pipe | libc::SYS_pipe2 => &const { [made(0, 8)] },
        libc::SYS_nanosleep => &const { [fixed(0, 16)] },
        libc::SYS_connect | libc::SYS_bind => &const { [counted(1, 112)] },
        libc::SYS_accept | libc::SYS_getsockname | libc::SYS_getpeername | libc::SYS_accept4 => {
            &const { [made(1, 28)] }
        }
        libc::SYS_sendto => &const { [counted(1, SHOWN), counted(4, 112)] },
        libc::SYS_socketpair => &const { [made(3, 8)] },
        libc::SYS_setsockopt => &const { [fixed(3, 4)] },
        libc::SYS_getsockopt => &const { [made(3, 4)] },
        libc::SYS_wait4 => &const { [made(1, 4)] },
        libc::SYS_uname => &const { [made(0, 64)] },
        libc::SYS_getcwd => &const { [result(0, 1020)] },
        libc::SYS_rename
        | libc::SYS_link
        | libc::SYS_symlink
        | libc::SYS_getxattr
        | libc::SYS_lgetxattr
        | libc::SYS_setxattr => &const { [text(0), text(1)] },
        libc::SYS_readlink => &const { [text(0), result(1, 1020)] },
        libc::SYS_getrlimit | libc::SYS_clock_gettime => &const { [made(1, 16)] },
        libc::SYS_setrlimit => &const { [fixed(1, 16)] },
        libc::SYS_fgetxattr
        | libc::SYS_utimensat
        | libc::SYS_openat
        | libc::SYS_mkdirat
        | libc::SYS_mknodat
        | libc::SYS_fchownat
        | libc::SYS_unlinkat
        | libc::SYS_fchmodat
        | libc::SYS_faccessat
        | libc::SYS_inotify_add_watch
        | libc::SYS_execveat
        | libc::SYS_faccessat2 => &const { [text(1)] },
        libc::SYS_clock_nanosleep => &const { [fixed(2, 16)] },
        libc::SYS_newfstatat => &const { [text(1), made(2, 144)] },
        libc::SYS_renameat | libc::SYS_linkat | libc::SYS_renameat2 => {
            &const { [text(1), text(3)] }
        }
        libc::SYS_symlinkat => &const { [text(0), text(2)] },
        libc::SYS_readlinkat => &const { [text(1), result(2, 1020)] },
        libc::SYS_ppoll => &const { [fixed(0, 32), fixed(2, 16), made(0, 32)] },
        libc::SYS_prlimit64 => &const { [fixed(2, 16), made(3, 16)] },
        libc::SYS_statx => &const { [text(1), made(4, 64)] },
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

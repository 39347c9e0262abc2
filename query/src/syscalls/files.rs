//! Follows file descriptors through the system calls of a process: what each was opened as, how much was read and written
//! by it, and when it was closed.
//!
//! A descriptor that was opened by another process, or before the recording, appears at its first use, with what is
//! known.

use std::collections::HashMap;

use super::name;
use super::show::Call;
use super::values;

const AT_FDCWD: i32 = -100;
const F_DUPFD: u64 = 0;
const F_DUPFD_CLOEXEC: u64 = 1030;
const CLOSE_RANGE_CLOEXEC: u64 = 4;
const EINPROGRESS: i64 = -115;

/// When something happened: event and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    pub seq: u64,
    pub ts_ns: i64,
}

/// A system call with its place.
#[derive(Clone, Copy, Debug)]
pub struct Made<'a> {
    pub call: Call<'a>,
    pub began: At,
    pub ended: Option<At>,
    pub tid: Option<u32>,
    /// The recorded call around it.
    pub within: Option<u64>,
}

/// A descriptor from its opening to its closing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    pub fd: i32,
    /// Its path or address; `None` if there is none, or it is unknown.
    pub path: Option<String>,
    /// The system call that opened it; `None`: none that was recorded.
    pub opened_by: Option<&'static str>,
    pub tid: Option<u32>,
    pub within: Option<u64>,
    pub opened: Option<At>,
    pub read_bytes: u64,
    pub written_bytes: u64,
    pub closed: Option<At>,
}

/// The descriptors of a process.
#[derive(Debug, Default)]
struct Files {
    all: Vec<File>,
    open: HashMap<i32, usize>,
}

/// Returns the descriptors that `calls`, in any order, have opened or used.
pub fn files(calls: &[Made<'_>]) -> Vec<File> {
    // A call's input descriptors exist at its beginning; the ones that it opens exist at its end.
    let begins = calls.iter().map(|made| (made.began.seq, made, false));
    let ends = calls
        .iter()
        .filter_map(|made| Some((made.ended?.seq, made, true)));
    let mut steps: Vec<_> = begins.chain(ends).collect();
    steps.sort_by_key(|(seq, ..)| *seq);
    let mut files = Files::default();
    for (_, made, is_end) in steps {
        let Some(name) = name(made.call.number) else {
            continue;
        };
        match is_end {
            false => files.begin(name, made),
            true => files.end(name, made),
        }
    }
    files.all
}

impl Files {
    fn begin(&mut self, name: &'static str, made: &Made<'_>) {
        let fd = |index: usize| made.call.argument(index) as i32;
        let Some(result) = made.call.result.filter(|result| *result >= 0) else {
            return;
        };
        let bytes = result as u64;
        match name {
            "read" | "pread64" | "readv" | "preadv" | "preadv2" | "recvfrom" | "recvmsg" => {
                self.used(fd(0)).read_bytes += bytes;
            }
            "write" | "pwrite64" | "writev" | "pwritev" | "pwritev2" | "sendto" | "sendmsg" => {
                self.used(fd(0)).written_bytes += bytes;
            }
            "sendfile" => self.moved(fd(1), fd(0), bytes),
            "copy_file_range" | "splice" => self.moved(fd(0), fd(2), bytes),
            "close" => self.close(fd(0), made.began),
            "close_range" if made.call.argument(2) & CLOSE_RANGE_CLOEXEC == 0 => {
                let range = made.call.argument(0)..=made.call.argument(1) & 0xffff_ffff;
                let open = self.open.keys().copied();
                let closed: Vec<i32> = open.filter(|fd| range.contains(&(*fd as u64))).collect();
                closed.into_iter().for_each(|fd| self.close(fd, made.began));
            }
            "dup2" | "dup3" if fd(0) != fd(1) && self.open.contains_key(&fd(1)) => {
                self.close(fd(1), made.began);
            }
            _ => {}
        }
    }

    fn end(&mut self, name: &'static str, made: &Made<'_>) {
        let Some(result) = made.call.result else {
            return;
        };
        if name == "connect" && result == EINPROGRESS
            || matches!((name, result), ("connect" | "bind", 0))
        {
            return self.is_at(made);
        }
        if result < 0 {
            return;
        }
        let path = match name {
            "open" | "creat" => made.call.text(0),
            "openat" | "openat2" => self.beneath(made.call.argument(0) as i32, made.call.text(1)),
            "memfd_create" => made.call.text(0).map(|name| format!("memfd:{name}")),
            "accept" | "accept4" => address(made.call.made(1)),
            "dup" | "dup2" | "dup3" => self.path_of(made),
            "fcntl" if matches!(made.call.argument(1), F_DUPFD | F_DUPFD_CLOEXEC) => {
                self.path_of(made)
            }
            "pipe" | "pipe2" => return self.pair(name, made, 0),
            "socketpair" => return self.pair(name, made, 3),
            "socket" | "epoll_create" | "epoll_create1" | "eventfd" | "eventfd2"
            | "timerfd_create" | "signalfd" | "signalfd4" | "inotify_init" | "inotify_init1"
            | "pidfd_open" | "userfaultfd" | "perf_event_open" | "open_by_handle_at"
            | "io_uring_setup" | "fanotify_init" | "memfd_secret" | "pidfd_getfd" | "open_tree"
            | "fsopen" => None,
            _ => return,
        };
        if matches!(name, "dup2") && made.call.argument(0) as i32 == result as i32 {
            return;
        }
        self.opened(name, made, result as i32, path);
    }

    /// Returns the descriptor, which is open.
    fn used(&mut self, fd: i32) -> &mut File {
        let index = match self.open.get(&fd) {
            Some(index) => *index,
            None => self.add(File {
                fd,
                path: None,
                opened_by: None,
                tid: None,
                within: None,
                opened: None,
                read_bytes: 0,
                written_bytes: 0,
                closed: None,
            }),
        };
        &mut self.all[index]
    }

    fn add(&mut self, file: File) -> usize {
        let index = self.all.len();
        self.open.insert(file.fd, index);
        self.all.push(file);
        index
    }

    fn opened(&mut self, by: &'static str, made: &Made<'_>, fd: i32, path: Option<String>) {
        self.add(File {
            fd,
            path,
            opened_by: Some(by),
            tid: made.tid,
            within: made.within,
            opened: Some(made.began),
            read_bytes: 0,
            written_bytes: 0,
            closed: None,
        });
    }

    /// Adds the two descriptors that argument `index` points to.
    fn pair(&mut self, by: &'static str, made: &Made<'_>, index: usize) {
        let both = made.call.made(index).unwrap_or_default();
        for at in [0, 4] {
            if let Some(fd) = values::number(both, at, 4) {
                self.opened(by, made, fd as i32, None);
            }
        }
    }

    fn moved(&mut self, from: i32, to: i32, bytes: u64) {
        self.used(from).read_bytes += bytes;
        self.used(to).written_bytes += bytes;
    }

    fn close(&mut self, fd: i32, at: At) {
        self.used(fd).closed = Some(at);
        self.open.remove(&fd);
    }

    /// A socket has an address from now on.
    fn is_at(&mut self, made: &Made<'_>) {
        if let Some(path) = address(made.call.given(1)) {
            self.used(made.call.argument(0) as i32).path = Some(path);
        }
    }

    fn path_of(&mut self, made: &Made<'_>) -> Option<String> {
        self.used(made.call.argument(0) as i32).path.clone()
    }

    /// Returns a path that is relative to a folder's descriptor.
    fn beneath(&mut self, folder: i32, path: Option<String>) -> Option<String> {
        let path = path?;
        let index = self.open.get(&folder);
        let known = index.and_then(|index| self.all[*index].path.as_ref());
        match known.filter(|_| folder != AT_FDCWD && !path.starts_with('/')) {
            Some(folder) => Some(format!("{}/{path}", folder.trim_end_matches('/'))),
            None => Some(path),
        }
    }
}

fn address(bytes: Option<&[u8]>) -> Option<String> {
    let mut text = String::new();
    values::address(&mut text, bytes?)?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A call with its arguments, the memory that they point to, and its result.
    struct Step {
        number: u64,
        begun: Vec<u8>,
        written: Vec<u8>,
        result: i64,
    }

    fn step(number: u64, args: [u64; 6], text: &str, result: i64) -> Step {
        let mut begun: Vec<u8> = args.iter().flat_map(|arg| arg.to_le_bytes()).collect();
        if !text.is_empty() {
            begun.extend(section(0x1000, &[text.as_bytes(), &[0]].concat()));
        }
        Step {
            number,
            begun,
            written: Vec::new(),
            result,
        }
    }

    fn section(addr: u64, content: &[u8]) -> Vec<u8> {
        let mut bytes = [addr.to_le_bytes(), (content.len() as u64).to_le_bytes()].concat();
        bytes.extend_from_slice(content);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes
    }

    fn followed(steps: &[Step]) -> Vec<File> {
        let at = |seq: usize| At {
            seq: seq as u64,
            ts_ns: seq as i64,
        };
        let made: Vec<Made<'_>> = steps
            .iter()
            .enumerate()
            .map(|(index, step)| Made {
                call: Call {
                    number: step.number,
                    begun: &step.begun,
                    written: &step.written,
                    result: Some(step.result),
                },
                began: at(2 * index),
                ended: Some(at(2 * index + 1)),
                tid: Some(1),
                within: None,
            })
            .collect();
        files(&made)
    }

    fn told(files: &[File]) -> Vec<String> {
        let told = files.iter().map(|file| {
            let (path, by) = (
                file.path.as_deref().unwrap_or("-"),
                file.opened_by.unwrap_or("-"),
            );
            let closed = file.closed.map_or("open".into(), |at| at.seq.to_string());
            format!(
                "{} {path} {by} r{} w{} {closed}",
                file.fd, file.read_bytes, file.written_bytes
            )
        });
        told.collect()
    }

    const CWD: u64 = AT_FDCWD as u32 as u64;

    #[test]
    fn a_number_is_another_file_after_it_was_closed() {
        let found = followed(&[
            step(257, [CWD, 0x1000, 0, 0, 0, 0], "/etc/a", 3),
            step(0, [3, 0, 10, 0, 0, 0], "", 10),
            step(0, [3, 0, 10, 0, 0, 0], "", -5),
            step(3, [3, 0, 0, 0, 0, 0], "", 0),
            step(257, [CWD, 0x1000, 1, 0, 0, 0], "/etc/b", 3),
            step(1, [3, 0, 7, 0, 0, 0], "", 7),
            step(257, [CWD, 0x1000, 0, 0, 0, 0], "/etc/none", -2),
        ]);
        assert_eq!(
            told(&found),
            ["3 /etc/a openat r10 w0 6", "3 /etc/b openat r0 w7 open"]
        );
    }

    #[test]
    fn descriptors_that_were_there_before_appear_where_they_are_used() {
        let found = followed(&[
            step(1, [1, 0, 5, 0, 0, 0], "", 5),
            step(33, [1, 7, 0, 0, 0, 0], "", 7),
            step(33, [7, 7, 0, 0, 0, 0], "", 7),
            step(33, [1, 7, 0, 0, 0, 0], "", 7),
        ]);
        assert_eq!(
            told(&found),
            [
                "1 - - r0 w5 open",
                "7 - dup2 r0 w0 6",
                "7 - dup2 r0 w0 open"
            ]
        );
    }

    #[test]
    fn paths_are_those_of_their_folder() {
        let mut pipe = step(293, [0x2000, 0, 0, 0, 0, 0], "", 0);
        pipe.written = section(0x2000, &[5, 0, 0, 0, 6, 0, 0, 0]);
        let found = followed(&[
            step(257, [CWD, 0x1000, 0, 0, 0, 0], "/etc", 3),
            step(257, [3, 0x1000, 0, 0, 0, 0], "a", 4),
            pipe,
            step(40, [6, 4, 0, 100, 0, 0], "", 100),
            step(436, [3, 5, 0, 0, 0, 0], "", 0),
        ]);
        assert_eq!(
            told(&found),
            [
                "3 /etc openat r0 w0 8",
                "4 /etc/a openat r100 w0 8",
                "5 - pipe2 r0 w0 8",
                "6 - pipe2 r0 w100 open",
            ]
        );
    }
}

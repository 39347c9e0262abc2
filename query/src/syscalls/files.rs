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
/// Bytes of a `struct mmsghdr`, which ends with the count of bytes.
const MESSAGE: usize = 64;
const MESSAGE_COUNT: usize = 56;

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
    /// `None`: a call has moved an unknown count.
    pub read_bytes: Option<u64>,
    /// `None`: a call has moved an unknown count.
    pub written_bytes: Option<u64>,
    pub closed: Option<At>,
    /// Which end of a pipe it is, if that is known.
    end: Option<End>,
}

/// An end of a pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Reading,
    Writing,
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
            "read" | "pread64" | "readv" | "preadv" | "preadv2" | "recvfrom" | "recvmsg"
            | "mq_timedreceive" => self.read(fd(0), Some(bytes)),
            "write" | "pwrite64" | "writev" | "pwritev" | "pwritev2" | "sendto" | "sendmsg" => {
                self.wrote(fd(0), Some(bytes));
            }
            "recvmmsg" => self.read(fd(0), bytes_of_messages(&made.call, bytes)),
            "sendmmsg" => self.wrote(fd(0), bytes_of_messages(&made.call, bytes)),
            "mq_timedsend" => self.wrote(fd(0), Some(made.call.argument(2))),
            "vmsplice" => self.spliced(fd(0), bytes),
            "sendfile" => self.moved(fd(1), fd(0), bytes),
            "tee" => self.moved(fd(0), fd(1), bytes),
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
            "open" | "creat" | "mq_open" => made.call.text(0),
            "openat" | "openat2" | "open_tree" | "fspick" => {
                self.beneath(made.call.argument(0) as i32, made.call.text(1))
            }
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
            | "io_uring_setup" | "fanotify_init" | "memfd_secret" | "pidfd_getfd" | "fsopen"
            | "fsmount" => None,
            // With flags, the result is a version.
            "landlock_create_ruleset" if made.call.argument(2) == 0 => None,
            _ => return,
        };
        if matches!(name, "dup2") && made.call.argument(0) as i32 == result as i32 {
            return;
        }
        let end = match name {
            "dup" | "dup2" | "dup3" | "fcntl" => self.end_of_pipe(made.call.argument(0) as i32),
            _ => None,
        };
        let index = self.opened(name, made, result as i32, path);
        self.all[index].end = end;
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
                read_bytes: Some(0),
                written_bytes: Some(0),
                closed: None,
                end: None,
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

    fn opened(
        &mut self,
        by: &'static str,
        made: &Made<'_>,
        fd: i32,
        path: Option<String>,
    ) -> usize {
        self.add(File {
            fd,
            path,
            opened_by: Some(by),
            tid: made.tid,
            within: made.within,
            opened: Some(made.began),
            read_bytes: Some(0),
            written_bytes: Some(0),
            closed: None,
            end: None,
        })
    }

    /// Adds the two descriptors that argument `index` points to.
    fn pair(&mut self, by: &'static str, made: &Made<'_>, index: usize) {
        let both = made.call.made(index).unwrap_or_default();
        let is_pipe = by != "socketpair";
        for (at, end) in [(0, End::Reading), (4, End::Writing)] {
            if let Some(fd) = values::number(both, at, 4) {
                let index = self.opened(by, made, fd as i32, None);
                self.all[index].end = is_pipe.then_some(end);
            }
        }
    }

    /// A call has read from the descriptor; `None`: an unknown count.
    fn read(&mut self, fd: i32, bytes: Option<u64>) {
        add(&mut self.used(fd).read_bytes, bytes);
    }

    /// A call has written to the descriptor; `None`: an unknown count.
    fn wrote(&mut self, fd: i32, bytes: Option<u64>) {
        add(&mut self.used(fd).written_bytes, bytes);
    }

    fn moved(&mut self, from: i32, to: i32, bytes: u64) {
        self.read(from, Some(bytes));
        self.wrote(to, Some(bytes));
    }

    /// `vmsplice` writes to the writing end of a pipe, and reads from the reading one. Which end it is, only the call that made the
    /// pipe tells.
    fn spliced(&mut self, fd: i32, bytes: u64) {
        match self.end_of_pipe(fd) {
            Some(End::Reading) => self.read(fd, Some(bytes)),
            Some(End::Writing) => self.wrote(fd, Some(bytes)),
            None if bytes == 0 => {}
            None => {
                self.read(fd, None);
                self.wrote(fd, None);
            }
        }
    }

    fn end_of_pipe(&self, fd: i32) -> Option<End> {
        self.all[*self.open.get(&fd)?].end
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

/// Adds to a count; once something unknown was added, or too much, it stays unknown.
fn add(count: &mut Option<u64>, bytes: Option<u64>) {
    *count = count
        .zip(bytes)
        .and_then(|(known, more)| known.checked_add(more));
}

/// Returns the bytes of `count` messages, which the kernel has written behind each; `None` if they are not all in the recording.
fn bytes_of_messages(call: &Call<'_>, count: u64) -> Option<u64> {
    let (Ok(count), Some(headers)) = (usize::try_from(count), call.made(1)) else {
        return (count == 0).then_some(0);
    };
    (0..count)
        .map(|index| values::number(headers, index * MESSAGE + MESSAGE_COUNT, 4))
        .sum()
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
            let bytes = |count: Option<u64>| count.map_or("?".into(), |count| count.to_string());
            format!(
                "{} {path} {by} r{} w{} {closed}",
                file.fd,
                bytes(file.read_bytes),
                bytes(file.written_bytes)
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

    /// Calls whose result is a number of messages: the bytes are behind each message.
    #[test]
    fn bytes_of_many_messages_are_those_of_each_message() {
        let mut headers = vec![0; 2 * MESSAGE];
        headers[MESSAGE_COUNT] = 4;
        headers[MESSAGE + MESSAGE_COUNT] = 5;
        let messages = |number, fd, known: bool| {
            let mut call = step(number, [fd, 0x3000, 2, 0, 0, 0], "", 2);
            if known {
                call.written = section(0x3000, &headers);
            }
            call
        };
        let found = followed(&[
            messages(307, 3, true),
            messages(299, 4, true),
            messages(307, 4, true),
            messages(307, 5, true),
            messages(307, 5, false),
            messages(299, 6, false),
            step(0, [6, 0, 10, 0, 0, 0], "", 10),
        ]);
        assert_eq!(
            told(&found),
            [
                "3 - - r0 w9 open",
                "4 - - r9 w9 open",
                "5 - - r0 w? open",
                "6 - - r? w0 open",
            ]
        );
    }

    /// vmsplice has the same arguments in both directions.
    #[test]
    fn bytes_of_vmsplice_go_where_the_end_of_the_pipe_says() {
        let mut pipe = step(22, [0x2000, 0, 0, 0, 0, 0], "", 0);
        pipe.written = section(0x2000, &[5, 0, 0, 0, 6, 0, 0, 0]);
        let found = followed(&[
            pipe,
            step(32, [6, 0, 0, 0, 0, 0], "", 7),
            step(278, [6, 0x3000, 1, 0, 0, 0], "", 4),
            step(278, [7, 0x3000, 1, 0, 0, 0], "", 3),
            step(278, [5, 0x3000, 1, 0, 0, 0], "", 7),
            step(278, [1, 0x3000, 1, 0, 0, 0], "", 7),
            step(276, [5, 7, 9, 0, 0, 0], "", 2),
        ]);
        assert_eq!(
            told(&found),
            [
                "5 - pipe r9 w0 open",
                "6 - pipe r0 w4 open",
                "7 - dup r0 w5 open",
                "1 - - r? w? open",
            ]
        );
    }

    #[test]
    fn a_version_is_no_descriptor() {
        let asked = |flags| step(444, [0, 0, flags, 0, 0, 0], "", 6);
        assert_eq!(told(&followed(&[asked(1)])), [""; 0]);
        assert_eq!(
            told(&followed(&[asked(0)])),
            ["6 - landlock_create_ruleset r0 w0 open"]
        );
    }

    #[test]
    fn a_count_that_is_too_large_is_unknown() {
        let mut count = Some(u64::MAX);
        add(&mut count, Some(1));
        assert_eq!(count, None);
    }
}

//! Descriptors: which calls opened them, and which words are descriptors, by name.

use rustc_hash::FxHashMap;

use super::Span;

/// Standard input, output and errors are below. They have the same number in each run.
const FIRST: u32 = 3;

/// Functions that return a new descriptor.
const OPENS: [&str; 37] = [
    "open",
    "open64",
    "openat",
    "openat64",
    "openat2",
    "creat",
    "creat64",
    "dup",
    "dup2",
    "dup3",
    "socket",
    "accept",
    "accept4",
    "epoll_create",
    "epoll_create1",
    "eventfd",
    "timerfd_create",
    "signalfd",
    "inotify_init",
    "inotify_init1",
    "fanotify_init",
    "memfd_create",
    "pidfd_open",
    "pidfd_getfd",
    "userfaultfd",
    "perf_event_open",
    "io_uring_setup",
    "mkstemp",
    "mkstemp64",
    "mkostemp",
    "mkostemp64",
    "mkstemps",
    "mkstemps64",
    "shm_open",
    "posix_openpt",
    "__open_2",
    "__open64_2",
];

/// Functions that return one that was opened earlier.
const TELLS: [&str; 3] = ["fileno", "fileno_unlocked", "dirfd"];

/// Whole names of parameters that are descriptors.
const NAMES: [&str; 11] = [
    "fildes",
    "filedes",
    "fildes2",
    "filedes2",
    "descriptor",
    "sock",
    "socket",
    "fd_in",
    "fd_out",
    "fdin",
    "fdout",
];

/// Tells whether a function of a library returns a new descriptor.
pub fn opens(name: &str) -> bool {
    OPENS.contains(&name)
}

/// Tells whether a function of a library closes the one in its first argument.
pub fn closes(name: &str) -> bool {
    matches!(name, "close" | "__close" | "fdclose")
}

/// Tells whether a function of a library returns a descriptor.
pub fn returns_descriptor(name: &str) -> bool {
    opens(name) || TELLS.contains(&name)
}

/// Tells whether a parameter of a number's type is a descriptor, by its name: `fd`, `sockfd`, `log_fd`, `fd2`, `filedes`.
pub fn is_descriptor_name(name: &str) -> bool {
    let name = name.trim_matches('_').to_ascii_lowercase();
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    stem.ends_with("fd") || NAMES.contains(&&*name)
}

/// Returns the number of a descriptor that is not the same in each run.
pub fn number(word: u64) -> Option<u32> {
    let number = word as u32;
    (FIRST..=i32::MAX as u32)
        .contains(&number)
        .then_some(number)
}

/// All descriptors of a recording.
#[derive(Debug, Default)]
pub struct Descriptors {
    by_number: FxHashMap<u32, Vec<Span>>,
    len: usize,
}

impl Descriptors {
    /// Returns how many were opened.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Tells whether none was opened.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// A call returned a descriptor. All that ended before have been told.
    pub fn open(&mut self, number: u32, span: Span) {
        let spans = self.by_number.entry(number).or_default();
        if let Some(last) = spans.last_mut() {
            // `dup2` closes it, and so does what is not recorded.
            last.until = last.until.min(span.from - 1);
        }
        spans.push(span);
        self.len += 1;
    }

    /// A call that began at an event closed it.
    pub fn close(&mut self, number: u32, start: u64) {
        let spans = self.by_number.get_mut(&number);
        if let Some(last) = spans.and_then(|spans| spans.last_mut())
            && last.from < start
        {
            last.until = last.until.min(start);
        }
    }

    /// Returns the one that had a number at an event.
    pub fn at(&self, number: u32, seq: u64) -> Option<Span> {
        let spans = self.by_number.get(&number)?;
        let after = spans.partition_point(|span| span.from <= seq);
        let last = spans[..after].last()?;
        last.has(seq).then_some(*last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_is_a_descriptor() {
        for (name, expected) in [
            ("fd", true),
            ("__fd", true),
            ("sockfd", true),
            ("log_fd", true),
            ("listenFd", true),
            ("fd2", true),
            ("filedes", true),
            ("fd_count", false),
            ("fdlimit", false),
            ("count", false),
            ("", false),
        ] {
            assert_eq!(is_descriptor_name(name), expected, "{name}");
        }
        assert_eq!(number(u64::from(u32::MAX)), None);
        assert_eq!(number(2), None);
        assert_eq!(number(0xdead_0000_0003), Some(3));
    }

    #[test]
    fn a_number_is_used_again() {
        let span = |from, number| Span {
            from,
            until: u64::MAX,
            tid: 1,
            number,
        };
        let mut all = Descriptors::default();
        all.open(3, span(10, 0));
        all.close(3, 20);
        all.open(3, span(30, 1));
        // What began before it was opened closed the one before.
        all.close(3, 25);
        all.open(3, span(50, 2));
        let at = |seq| all.at(3, seq).map(|span| span.number);
        let found: Vec<_> = [9, 10, 20, 21, 30, 49, 50, 99].map(at).to_vec();
        assert_eq!(
            found,
            [
                None,
                Some(0),
                Some(0),
                None,
                Some(1),
                Some(1),
                Some(2),
                Some(2)
            ]
        );
        assert_eq!(all.at(4, 10), None);
        assert_eq!(all.len(), 3);
    }
}

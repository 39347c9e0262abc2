//! Observes the end of a process, and reads its limits.

use std::{
    io,
    mem::MaybeUninit,
    os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd},
    thread,
    time::Duration,
};

use debuginfo::Diagnostic;

use super::ending;
use crate::stop::procfs;
use crate::{
    options::Exit,
    signals,
    wake::{Event, wait_for},
};

/// Stack size assumed if there is no limit.
const UNLIMITED_STACK_BYTES: u64 = 1 << 30;

/// The longest wait for an end. Signals end it early, except one that arrives just before the wait.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Watches one process through a descriptor (pidfd_open(2)), so that a reused process id does no harm.
#[derive(Debug)]
pub struct ExitWatch {
    pid: i32,
    fd: OwnedFd,
    is_child: bool,
}

impl ExitWatch {
    /// Watches `pid`; `is_child`: it is our child, and its status must be collected.
    ///
    /// # Errors
    /// If there is no such process.
    pub fn new(pid: i32, is_child: bool) -> io::Result<Self> {
        // SAFETY: no memory is passed; a non-negative result is a new descriptor.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: see above.
        let fd = unsafe { OwnedFd::from_raw_fd(fd as i32) };
        Ok(Self { pid, fd, is_child })
    }

    /// Returns whether the process has ended. Its status is not collected: the kernel still has what it counted of it.
    pub fn has_ended(&self) -> bool {
        let mut poll = libc::pollfd {
            fd: self.fd.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one valid pollfd.
        unsafe { libc::poll(&mut poll, 1, 0) > 0 }
    }

    /// Returns whether a process that has ended, and whose status is not collected, had waited for a child of its own.
    pub(crate) fn had_children(&self) -> bool {
        ending::had_children(self.pid)
    }

    /// Returns how the process ended, or `None` while it runs. Does not block.
    pub fn poll(&self) -> Option<Exit> {
        if !self.has_ended() {
            return None;
        }
        Some(if self.is_child {
            self.collect()
        } else {
            Exit::Detached
        })
    }

    /// Returns how a process that is not our child has ended, as far as the kernel tells that to others.
    pub(crate) fn told(&self) -> Option<Exit> {
        match self.has_ended() {
            true => ending::told(self.pid, self.fd.as_fd()),
            false => None,
        }
    }

    /// Leaves the collection of its status to another watch.
    pub(crate) fn leave_status(&mut self) {
        self.is_child = false;
    }

    /// Returns the process's id.
    pub(crate) fn pid(&self) -> i32 {
        self.pid
    }

    /// Waits until the process has ended, a signal arrives, or `longest` has passed.
    pub(crate) fn wait_at_most(&self, longest: Duration) {
        wait_for(&[self.fd.as_fd()], Some(longest));
    }

    /// Waits until the process has ended, and returns how. Passes signals that end programs on to it.
    pub(crate) fn wait_for_end(&self) -> Exit {
        loop {
            if let Some(exit) = self.poll() {
                return exit;
            }
            if let Some(signal @ (libc::SIGTERM | libc::SIGHUP)) = signals::take() {
                self.signal(signal);
            }
            self.wait_at_most(LONGEST_WAIT);
        }
    }

    /// Returns another watch of the same process, which never collects its status.
    ///
    /// # Errors
    /// If no descriptors are left.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        Ok(Self {
            pid: self.pid,
            fd: self.fd.try_clone()?,
            is_child: false,
        })
    }

    /// Calls `ended` when the process has ended. Returns then, or once `over` happens.
    pub(crate) fn wait(&self, over: &Event, ended: impl FnOnce()) {
        loop {
            match wait_for(&[self.fd.as_fd(), over.as_fd()], None) {
                Some(0) => return ended(),
                Some(_) => return,
                None => {}
            }
        }
    }

    /// Returns the signal that ended our child, if this happens within `patience`. Its status must still be collected.
    pub fn ended_by_signal(&self, patience: Duration) -> Option<i32> {
        let mut poll = libc::pollfd {
            fd: self.fd.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        let patience = i32::try_from(patience.as_millis()).unwrap_or(i32::MAX);
        // SAFETY: one valid pollfd.
        if !self.is_child || unsafe { libc::poll(&mut poll, 1, patience) } <= 0 {
            return None;
        }
        let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
        let flags = libc::WEXITED | libc::WNOWAIT | libc::WNOHANG;
        // SAFETY: `info` is ours and large enough.
        let waited = unsafe {
            libc::waitid(
                libc::P_PIDFD,
                self.fd.as_raw_fd() as u32,
                info.as_mut_ptr(),
                flags,
            )
        };
        // SAFETY: all zeroes is a valid value, and so is what the kernel writes.
        let info = unsafe { info.assume_init() };
        let is_signal = matches!(info.si_code, libc::CLD_KILLED | libc::CLD_DUMPED);
        // SAFETY: waitid(2) has reported a child.
        (waited == 0 && is_signal).then(|| unsafe { info.si_status() })
    }

    /// Sends the process a signal. Has no effect if it is gone.
    pub fn signal(&self, signal: i32) {
        // SAFETY: no memory is passed (the third argument may be null).
        unsafe {
            libc::syscall(
                libc::SYS_pidfd_send_signal,
                self.fd.as_raw_fd(),
                signal,
                0,
                0,
            )
        };
    }

    fn collect(&self) -> Exit {
        let mut status = 0;
        // SAFETY: `status` is ours. The child has ended, so the call does not block.
        let waited = unsafe { libc::waitpid(self.pid, &mut status, 0) };
        if waited != self.pid {
            return Exit::Detached;
        }
        ending::exit(status)
    }
}

impl Drop for ExitWatch {
    /// A child that we leave running would be a zombie from its end to ours, unless its status is collected.
    fn drop(&mut self) {
        if !self.is_child || collect_by(&self.fd, libc::WNOHANG) {
            return;
        }
        if let Ok(fd) = self.fd.try_clone() {
            let collector = thread::Builder::new().name("collector".to_owned());
            // Without a thread there is a zombie, which does no harm.
            let _ = collector.spawn(move || {
                wait_for(&[fd.as_fd()], None);
                collect_by(&fd, 0)
            });
        }
    }
}

/// Collects a child's status. Returns false if the child has not ended; without WNOHANG among the flags it waits.
fn collect_by(fd: &OwnedFd, flags: i32) -> bool {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let (fd, flags) = (fd.as_raw_fd() as u32, libc::WEXITED | flags);
    // SAFETY: `info` is ours and large enough.
    let failed = unsafe { libc::waitid(libc::P_PIDFD, fd, info.as_mut_ptr(), flags) } != 0;
    // SAFETY: all zeroes is a valid value, and so is what the kernel writes: a pid of 0 if no child has ended.
    failed || unsafe { info.assume_init().si_pid() } != 0
}

/// Returns the default size of stacks in `pid`, in bytes.
pub fn stack_limit(pid: i32) -> u64 {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: queries a limit and sets none.
    let asked = unsafe { libc::prlimit(pid, libc::RLIMIT_STACK, std::ptr::null(), &mut limit) };
    if asked != 0 || limit.rlim_cur == libc::RLIM_INFINITY {
        return UNLIMITED_STACK_BYTES;
    }
    limit.rlim_cur.min(UNLIMITED_STACK_BYTES)
}

/// Returns whether thread `tid` of process `pid` exists.
pub fn thread_exists(pid: i32, tid: u32) -> bool {
    // SAFETY: signal 0 only checks.
    let sent = unsafe { libc::syscall(libc::SYS_tgkill, pid, tid, 0) };
    sent == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
}

/// Sends a signal to a thread. One that has ended gets none.
pub fn send_signal(pid: i32, tid: i32, signal: i32) {
    // SAFETY: sends a signal and touches no memory.
    unsafe { libc::syscall(libc::SYS_tgkill, pid, tid, signal) };
}

/// Returns whether thread `tid` of process `pid` may make any system call: it is in no sandbox (seccomp(2)).
pub fn may_sleep(pid: i32, tid: u32) -> bool {
    let status = procfs::text(format!("/proc/{pid}/task/{tid}/status"));
    status.is_ok_and(|status| {
        status
            .lines()
            .filter_map(|line| line.strip_prefix("Seccomp:"))
            .all(|mode| mode.trim() == "0")
    })
}

/// Returns whether thread `tid` of process `pid` may make the system calls that we may make: it is in no sandbox, or only in one that holds
/// for us too, such as a container.
pub fn may_as_we(pid: i32, tid: i32) -> bool {
    let found = Seccomp::of_thread(pid, tid);
    found.mode != Seccomp::STRICT && found <= Seccomp::of(std::process::id() as i32)
}

/// Returns why nothing can be loaded into a program none of whose threads may make the system calls for it: the first could end it.
pub fn why_not_loaded() -> Diagnostic {
    Diagnostic::new(
        "it is in a sandbox (seccomp), in which system calls that loading takes are forbidden, or may be",
    )
    .with_hint("start it with hindsight record or hindsight start instead")
}

/// Returns the name of thread `tid` of process `pid`, zero-padded.
pub fn thread_name(pid: i32, tid: u32) -> Option<[u8; 16]> {
    let text = std::fs::read(format!("/proc/{pid}/task/{tid}/comm")).ok()?;
    let text = text.strip_suffix(b"\n").unwrap_or(&text);
    let mut name = [0; 16];
    name.get_mut(..text.len())?.copy_from_slice(text);
    Some(name)
}

/// The restriction of a thread's system calls (seccomp(2)); stricter is greater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seccomp {
    /// 0: none; [`STRICT`](Self::STRICT); or 2: filters.
    pub mode: u32,
    /// Number of filters; 0 before Linux 5.9, which does not report it.
    pub filters: u32,
}

impl Seccomp {
    /// The mode in which a thread may only read, write, exit and return from a signal handler.
    pub const STRICT: u32 = 1;

    /// Returns the strictest restriction of any thread of `pid`.
    pub fn of(pid: i32) -> Self {
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task"));
        let tasks = tasks.into_iter().flatten().flatten();
        // A thread that has just ended has none.
        let found = tasks.filter_map(|task| {
            let status = procfs::text(task.path().join("status")).ok()?;
            Some(Self::parse(&status))
        });
        found.max().unwrap_or_default()
    }

    /// Returns the restriction of thread `tid` of `pid`. One that has ended has none.
    pub fn of_thread(pid: i32, tid: i32) -> Self {
        let status = procfs::text(format!("/proc/{pid}/task/{tid}/status"));
        status.map_or_else(|_| Self::default(), |status| Self::parse(&status))
    }

    fn parse(status: &str) -> Self {
        let number = |name: &str| {
            let mut values = status.lines().filter_map(|line| line.strip_prefix(name));
            values.next()?.trim().parse().ok()
        };
        Self {
            mode: number("Seccomp:").unwrap_or(0),
            filters: number("Seccomp_filters:").unwrap_or(0),
        }
    }
}

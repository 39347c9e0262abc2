//! How a process has ended that is not our child. Its parent collects the status, but the kernel shows it to others too: in /proc
//! until the parent has done so, and from then on, since Linux 6.15, through a descriptor of the process.

use std::{
    fs, io,
    os::fd::{AsRawFd, BorrowedFd},
};

use crate::{options::Exit, stop::procfs};

/// The kernel's `struct pidfd_info` in its first version (linux/pidfd.h).
#[repr(C)]
#[derive(Default)]
struct PidfdInfo {
    mask: u64,
    _cgroup: u64,
    /// Process, thread group, parent, and the process's users and groups.
    _ids: [u32; 11],
    status: i32,
}

const PIDFD_INFO_EXIT: u64 = 8;
const PIDFD_GET_INFO: libc::Ioctl =
    (3 << 30 | (size_of::<PidfdInfo>() << 16) | 0xff << 8 | 11) as _;

/// Returns how process `pid` ended, to which `fd` refers (pidfd_open(2)); `None` if it has not, or if the kernel does not tell.
pub(super) fn told(pid: i32, fd: BorrowedFd<'_>) -> Option<Exit> {
    // In this order: the parent may collect the status at any time.
    of_zombie(pid, fd).or_else(|| of_collected(fd)).map(exit)
}

/// Translates a status as wait(2) returns it.
pub(super) fn exit(status: i32) -> Exit {
    match libc::WIFSIGNALED(status) {
        true => Exit::Signal(libc::WTERMSIG(status)),
        false => Exit::Code(libc::WEXITSTATUS(status)),
    }
}

/// Returns the status of a process that has ended and that its parent has not collected.
fn of_zombie(pid: i32, fd: BorrowedFd<'_>) -> Option<i32> {
    // The kernel shows 0 to those who may not trace the process.
    let file = fs::read_link(format!("/proc/{pid}/exe"));
    if file.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied) {
        return None;
    }
    let stat = procfs::text(format!("/proc/{pid}/stat")).ok()?;
    // Otherwise the file may be that of a later process with this id.
    status_in(&stat).filter(|_| is_uncollected(fd))
}

/// Finds the status in a text of /proc/PID/stat, if that is the text of a zombie.
fn status_in(stat: &str) -> Option<i32> {
    // The name may contain anything. The state after it is the third field, and the status the 52nd.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    fields.next().filter(|state| *state == "Z")?;
    fields.nth(48)?.parse().ok()
}

/// Returns whether a process that has ended, and whose status is not collected, had waited for a child: then the kernel has added the
/// child's page faults to a count of its own, and no program runs without a page fault. A child that nobody waits for leaves no trace.
pub fn had_children(pid: i32) -> bool {
    let stat = procfs::text(format!("/proc/{pid}/stat")).unwrap_or_default();
    faults_of_children(&stat).is_some_and(|faults| faults > 0)
}

/// Finds the number of page faults of collected children (`cminflt`, the 11th field) in a text of /proc/PID/stat, if that is the text
/// of a zombie.
fn faults_of_children(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    fields.next().filter(|state| *state == "Z")?;
    fields.nth(7)?.parse().ok()
}

fn is_uncollected(fd: BorrowedFd<'_>) -> bool {
    let (fd, no_info) = (fd.as_raw_fd(), std::ptr::null::<libc::siginfo_t>());
    // SAFETY: signal 0 only checks, and no memory is passed.
    let sent = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, fd, 0, no_info, 0) };
    sent == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
}

/// Returns the status of a process that its parent has collected.
fn of_collected(fd: BorrowedFd<'_>) -> Option<i32> {
    let mut info = PidfdInfo {
        mask: PIDFD_INFO_EXIT,
        ..PidfdInfo::default()
    };
    // SAFETY: the kernel writes at most the structure, whose size is part of the request.
    let asked = unsafe { libc::ioctl(fd.as_raw_fd(), PIDFD_GET_INFO, &raw mut info) };
    (asked == 0 && info.mask & PIDFD_INFO_EXIT != 0).then_some(info.status)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::process::ExitWatch;

    #[test]
    fn the_status_of_a_zombie_is_shown_and_that_of_a_collected_process_may_be() {
        let ends = [
            ("exit 3", Exit::Code(3)),
            ("kill -KILL $$", Exit::Signal(9)),
        ];
        for (how, end) in ends {
            let mut child = Command::new("sh")
                .args(["-c", &format!("read line; {how}")])
                .stdin(std::process::Stdio::piped())
                .spawn()
                .expect("a shell");
            let watch = ExitWatch::new(child.id() as i32, false).expect("it runs");
            assert_eq!(watch.told(), None, "{how}: it runs");
            drop(child.stdin.take());
            while !watch.has_ended() {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            assert_eq!(watch.told(), Some(end), "{how}");
            child.wait().expect("it has ended");
            // The kernel tells it since Linux 6.15.
            assert!([Some(end), None].contains(&watch.told()), "{how}");
        }
    }

    #[test]
    fn the_status_is_found_behind_any_name() {
        let others = " 0".repeat(48);
        let stat = |state: &str| format!("7 (a) Z (b)) {state}{others} 768\n");
        assert_eq!(status_in(&stat("Z")), Some(768));
        assert_eq!(status_in(&stat("S")), None);
        assert_eq!(status_in("7 (cut) Z 1"), None);
    }
}

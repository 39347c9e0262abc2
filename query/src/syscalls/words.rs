//! Numbers among the arguments of system calls, by the word for their kind: a set of flags, a value that has a name, or both in
//! one number.

use super::flags::{self, Names};
use super::values::{add, bits, hex, named, signal};
use super::{mounts, system};

/// Names of bits that an argument consists of.
pub fn set(word: &str) -> Option<&'static Names> {
    Some(match word {
        "at" => flags::AT,
        "atremove" => flags::AT_UNLINK,
        "ataccess" => flags::AT_ACCESS,
        "athandle" => flags::AT_HANDLE,
        "flock" => flags::FLOCK,
        "timer" => flags::TIMER,
        "timerfd" => flags::TIMERFD,
        "signalfd" => flags::SIGNALFD,
        "epollflags" => flags::EPOLL_CREATE,
        "inotifyflags" => flags::INOTIFY_INIT,
        "inotify" => flags::INOTIFY,
        "mremap" => flags::MREMAP,
        "msync" => flags::MSYNC,
        "closerange" => flags::CLOSE_RANGE,
        "waitid" => flags::WAITID,
        "splice" => flags::SPLICE,
        "seals" => flags::SEALS,
        "msg" => flags::MESSAGE,
        "wait" => flags::WAIT,
        "random" => flags::RANDOM,
        "rename" => flags::RENAME,
        "sockflags" => flags::SOCKET,
        "fdflags" => flags::OPEN,
        "eventfd" => flags::EVENTFD,
        "memfd" => flags::MEMFD,
        "fdcloexec" => &[("FD_CLOEXEC", 0x1)],
        "cloexec" => &[("O_CLOEXEC", 0x80000)],
        _ => return set_of_mounts(word).or_else(|| set_of_system(word)),
    })
}

fn set_of_mounts(word: &str) -> Option<&'static Names> {
    Some(match word {
        "umount" => mounts::UMOUNT,
        "fsopen" => mounts::FSOPEN,
        "fsmount" => mounts::FSMOUNT,
        "mountattr" => mounts::MOUNT_ATTRIBUTES,
        "fspick" => mounts::FSPICK,
        "opentree" => mounts::OPEN_TREE,
        "movemount" => mounts::MOVE_MOUNT,
        "fanmark" => mounts::FANOTIFY_MARK,
        "fanevents" => mounts::FANOTIFY_EVENTS,
        "xattr" => mounts::XATTR,
        "falloc" => mounts::FALLOCATE,
        "syncrange" => mounts::SYNC_RANGE,
        "rwf" => mounts::READ_WRITE,
        _ => return None,
    })
}

fn set_of_system(word: &str) -> Option<&'static Names> {
    Some(match word {
        "shmat" => system::SHM_ATTACH,
        "msgflags" => system::MESSAGES,
        "mlockall" => system::LOCK_ALL,
        "mlock2" => system::LOCK,
        "namespaces" => system::NAMESPACES,
        "mbind" => system::MOVE_PAGES,
        "getmempolicy" => system::ASK_POLICY,
        "moduleinit" => system::MODULE,
        "userfaultfd" => system::USER_FAULTS,
        "pkey" => system::PROTECTION_KEY,
        "pidfd" => system::PIDFD,
        "uringenter" => system::RING_ENTER,
        "landlock" => &[("LANDLOCK_CREATE_RULESET_VERSION", 0x1)],
        _ => return None,
    })
}

/// Names of values, one of which an argument has.
pub fn names(word: &str) -> Option<&'static Names> {
    Some(match word {
        "whence" => flags::WHENCE,
        "clock" => flags::CLOCK,
        "domain" => flags::DOMAIN,
        "mask" => flags::MASK,
        "advice" => flags::ADVICE,
        "fadvice" => flags::FADVICE,
        "epoll" => flags::EPOLL,
        "resource" => flags::RESOURCE,
        "arch" => flags::ARCH,
        "shut" => flags::SHUT,
        "itimer" => flags::ITIMER,
        "usage" => flags::USAGE,
        "priority" => flags::PRIORITY,
        "idtype" => flags::ID_TYPE,
        "seccomp" => flags::SECCOMP,
        "seccompmode" => flags::SECCOMP_MODE,
        "locktype" => flags::LOCK_TYPE,
        "dumpable" => flags::DUMPABLE,
        "key" => system::IPC_KEY,
        "shmctl" => system::SHM_CONTROL,
        "semctl" => system::SEM_CONTROL,
        "msgctl" => system::MSG_CONTROL,
        "ioprio" => system::IO_PRIORITY_OF,
        "membarrier" => system::BARRIER,
        _ => return None,
    })
}

/// Appends a number that has a value and flags. Returns false for other words.
pub fn composed(text: &mut String, word: &str, value: u64) -> bool {
    match word {
        "socktype" => with_flags(text, value, 0xf, flags::SOCKET_TYPE, flags::SOCKET),
        "fanotify" => with_flags(text, value, 0xc, mounts::FANOTIFY_CLASS, mounts::FANOTIFY),
        "mpol" => with_flags(
            text,
            value,
            0x1fff,
            system::MEMORY_POLICY,
            system::MEMORY_POLICY_FLAGS,
        ),
        "sched" => with_flags(
            text,
            value,
            0x3fff_ffff,
            system::SCHEDULER,
            &[("SCHED_RESET_ON_FORK", 0x4000_0000)],
        ),
        "personality" => personality(text, value),
        "shmget" => with_permissions(text, value, system::SHM_GET),
        "semget" => with_permissions(text, value, system::IPC_GET),
        "swap" => swap(text, value),
        "mount" => mount(text, value),
        "quota" => quota(text, value),
        "priovalue" => io_priority(text, value),
        "filemode" => file_mode(text, value),
        "clone" => clone(text, value),
        _ => return false,
    }
    true
}

/// Appends the name of the value within `mask`, and the flags outside it.
fn with_flags(text: &mut String, value: u64, mask: u64, of_value: &Names, of_flags: &Names) {
    named(text, value & mask, of_value);
    if value & !mask != 0 {
        text.push('|');
        bits(text, value & !mask, of_flags, "0");
    }
}

/// A value of all ones asks for the present one.
fn personality(text: &mut String, value: u64) {
    const DOMAIN: u64 = 0xff;
    match value {
        0xffff_ffff => hex(text, value),
        _ => with_flags(text, value, DOMAIN, system::DOMAINS, system::PERSONALITY),
    }
}

/// Appends flags and permissions in octal.
fn with_permissions(text: &mut String, value: u64, names: &Names) {
    const PERMISSIONS: u64 = 0o777;
    if value & !PERMISSIONS != 0 {
        bits(text, value & !PERMISSIONS, names, "0");
        text.push('|');
    }
    octal(text, value & PERMISSIONS);
}

/// Appends a file mode: a zero and at least two digits, as strace shows them.
pub fn octal(text: &mut String, value: u64) {
    let value = value & 0xffff_ffff;
    add(text, format_args!("0{value:02o}"));
}

/// Appends flags and the priority.
fn swap(text: &mut String, value: u64) {
    const PRIORITY: u64 = 0x7fff;
    if value & !PRIORITY != 0 {
        bits(text, value & !PRIORITY, mounts::SWAP, "0");
    }
    match value & PRIORITY {
        0 if value != 0 => {}
        priority => {
            let separator = if value == priority { "" } else { "|" };
            add(text, format_args!("{separator}{priority}"));
        }
    }
}

/// Old programs put a number into the upper half, which the kernel ignores.
fn mount(text: &mut String, value: u64) {
    const MAGIC: u64 = 0xc0ed_0000;
    let is_old = value & 0xffff_0000 == MAGIC;
    match (is_old, value & 0xffff) {
        (true, 0) => text.push_str("MS_MGC_VAL"),
        (true, rest) => {
            text.push_str("MS_MGC_VAL|");
            bits(text, rest, mounts::MOUNT, "0");
        }
        (false, _) => bits(text, value, mounts::MOUNT, "0"),
    }
}

fn quota(text: &mut String, value: u64) {
    text.push_str("QCMD(");
    named(text, value >> 8, mounts::QUOTA);
    text.push_str(", ");
    named(text, value & 0xff, mounts::QUOTA_TYPE);
    text.push(')');
}

fn io_priority(text: &mut String, value: u64) {
    const CLASS_SHIFT: u32 = 13;
    text.push_str("IOPRIO_PRIO_VALUE(");
    named(text, value >> CLASS_SHIFT, system::IO_PRIORITY_CLASS);
    let data = value & ((1 << CLASS_SHIFT) - 1);
    add(text, format_args!(", {data})"));
}

const FILE_TYPE: u64 = 0o170_000;

/// Appends the type of a file, if it has one, and its permissions.
fn file_mode(text: &mut String, value: u64) {
    if value & FILE_TYPE != 0 {
        named(text, value & FILE_TYPE, flags::FILE_TYPE);
        text.push('|');
    }
    octal(text, value & !FILE_TYPE);
}

/// Returns whether mknod makes a file of this mode that has a device number.
pub fn makes_device(mode: u64) -> bool {
    matches!(mode & FILE_TYPE, 0o020_000 | 0o060_000)
}

fn clone(text: &mut String, value: u64) {
    let by_signal = value & 0xff;
    if value & !0xff != 0 {
        bits(text, value & !0xff, flags::CLONE, "");
    }
    if by_signal != 0 {
        if value & !0xff != 0 {
            text.push('|');
        }
        signal(text, by_signal);
    } else if value == 0 {
        text.push('0');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(word: &str, value: u64) -> String {
        let mut text = String::new();
        assert!(composed(&mut text, word, value), "{word}");
        text
    }

    #[test]
    fn values_stand_before_their_flags() {
        assert_eq!(shown("personality", 0x40000), "PER_LINUX|ADDR_NO_RANDOMIZE");
        assert_eq!(shown("personality", 0xffff_ffff), "0xffffffff");
        assert_eq!(shown("shmget", 0o3600), "IPC_CREAT|IPC_EXCL|0600");
        assert_eq!(shown("semget", 0), "000");
        assert_eq!(shown("swap", 0), "0");
        assert_eq!(shown("swap", 5), "5");
        assert_eq!(shown("swap", 0x10000), "SWAP_FLAG_DISCARD");
        assert_eq!(
            shown("swap", 0x18005),
            "SWAP_FLAG_PREFER|SWAP_FLAG_DISCARD|5"
        );
        assert_eq!(shown("mount", 0xc0ed_0001), "MS_MGC_VAL|MS_RDONLY");
        assert_eq!(shown("quota", 0x8000_0701), "QCMD(Q_GETQUOTA, GRPQUOTA)");
        assert_eq!(
            shown("priovalue", 2 << 13 | 4),
            "IOPRIO_PRIO_VALUE(IOPRIO_CLASS_BE, 4)"
        );
        assert_eq!(shown("filemode", 0o10_600), "S_IFIFO|0600");
        assert_eq!(shown("filemode", 0o600), "0600");
        assert_eq!(shown("sched", 0x4000_0002), "SCHED_RR|SCHED_RESET_ON_FORK");
        assert_eq!(shown("clone", 0x4011), "CLONE_VFORK|SIGCHLD");
    }
}

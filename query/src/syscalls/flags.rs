//! Names of flags and values in the arguments of system calls, from the headers of the kernel and of the C library.

/// Names and their values.
pub type Names = [(&'static str, u64)];

/// Flags of open.
pub const OPEN: &Names = &[
    ("O_CREAT", 0x40),
    ("O_EXCL", 0x80),
    ("O_NOCTTY", 0x100),
    ("O_TRUNC", 0x200),
    ("O_APPEND", 0x400),
    ("O_NONBLOCK", 0x800),
    ("O_SYNC", 0x101000),
    ("O_DSYNC", 0x1000),
    ("O_ASYNC", 0x2000),
    ("O_DIRECT", 0x4000),
    ("O_NOFOLLOW", 0x20000),
    ("O_NOATIME", 0x40000),
    ("O_CLOEXEC", 0x80000),
    ("O_PATH", 0x200000),
    ("O_TMPFILE", 0x410000),
    ("O_DIRECTORY", 0x10000),
];

/// Protections of mmap.
pub const PROTECTION: &Names = &[("PROT_READ", 0x1), ("PROT_WRITE", 0x2), ("PROT_EXEC", 0x4)];

/// Flags of mmap.
pub const MAP: &Names = &[
    ("MAP_SHARED_VALIDATE", 0x3),
    ("MAP_SHARED", 0x1),
    ("MAP_PRIVATE", 0x2),
    ("MAP_FIXED", 0x10),
    ("MAP_ANONYMOUS", 0x20),
    ("MAP_32BIT", 0x40),
    ("MAP_GROWSDOWN", 0x100),
    ("MAP_DENYWRITE", 0x800),
    ("MAP_LOCKED", 0x2000),
    ("MAP_NORESERVE", 0x4000),
    ("MAP_POPULATE", 0x8000),
    ("MAP_NONBLOCK", 0x10000),
    ("MAP_STACK", 0x20000),
    ("MAP_HUGETLB", 0x40000),
    ("MAP_FIXED_NOREPLACE", 0x100000),
];

/// Modes of access.
pub const ACCESS: &Names = &[("R_OK", 0x4), ("W_OK", 0x2), ("X_OK", 0x1)];

/// Flags of calls relative to a folder that mean the same in each of them.
pub const AT: &Names = &[
    ("AT_SYMLINK_NOFOLLOW", 0x100),
    ("AT_SYMLINK_FOLLOW", 0x400),
    ("AT_NO_AUTOMOUNT", 0x800),
    ("AT_EMPTY_PATH", 0x1000),
    ("AT_STATX_FORCE_SYNC", 0x2000),
    ("AT_STATX_DONT_SYNC", 0x4000),
    ("AT_RECURSIVE", 0x8000),
];

/// Flags of unlinkat.
pub const AT_UNLINK: &Names = &[("AT_REMOVEDIR", 0x200)];

/// Flags of faccessat2.
pub const AT_ACCESS: &Names = &[
    ("AT_SYMLINK_NOFOLLOW", 0x100),
    ("AT_EACCESS", 0x200),
    ("AT_EMPTY_PATH", 0x1000),
];

/// Flags of name_to_handle_at.
pub const AT_HANDLE: &Names = &[
    ("AT_HANDLE_MNT_ID_UNIQUE", 0x1),
    ("AT_HANDLE_CONNECTABLE", 0x2),
    ("AT_HANDLE_FID", 0x200),
    ("AT_SYMLINK_FOLLOW", 0x400),
    ("AT_EMPTY_PATH", 0x1000),
];

/// Flags of clone.
pub const CLONE: &Names = &[
    ("CLONE_VM", 0x100),
    ("CLONE_FS", 0x200),
    ("CLONE_FILES", 0x400),
    ("CLONE_SIGHAND", 0x800),
    ("CLONE_PIDFD", 0x1000),
    ("CLONE_PTRACE", 0x2000),
    ("CLONE_VFORK", 0x4000),
    ("CLONE_PARENT", 0x8000),
    ("CLONE_THREAD", 0x10000),
    ("CLONE_NEWNS", 0x20000),
    ("CLONE_SYSVSEM", 0x40000),
    ("CLONE_SETTLS", 0x80000),
    ("CLONE_PARENT_SETTID", 0x100000),
    ("CLONE_CHILD_CLEARTID", 0x200000),
    ("CLONE_UNTRACED", 0x800000),
    ("CLONE_CHILD_SETTID", 0x1000000),
    ("CLONE_NEWCGROUP", 0x2000000),
    ("CLONE_NEWUTS", 0x4000000),
    ("CLONE_NEWIPC", 0x8000000),
    ("CLONE_NEWUSER", 0x10000000),
    ("CLONE_NEWPID", 0x20000000),
    ("CLONE_NEWNET", 0x40000000),
    ("CLONE_IO", 0x80000000),
];

/// Flags in addition to the type of a socket.
pub const SOCKET: &Names = &[("SOCK_CLOEXEC", 0x80000), ("SOCK_NONBLOCK", 0x800)];

/// Flags of send and recv.
pub const MESSAGE: &Names = &[
    ("MSG_OOB", 0x1),
    ("MSG_PEEK", 0x2),
    ("MSG_DONTROUTE", 0x4),
    ("MSG_CTRUNC", 0x8),
    ("MSG_TRUNC", 0x20),
    ("MSG_DONTWAIT", 0x40),
    ("MSG_EOR", 0x80),
    ("MSG_WAITALL", 0x100),
    ("MSG_NOSIGNAL", 0x4000),
    ("MSG_ERRQUEUE", 0x2000),
    ("MSG_MORE", 0x8000),
    ("MSG_CMSG_CLOEXEC", 0x40000000),
];

/// Options of wait4.
pub const WAIT: &Names = &[
    ("WNOHANG", 0x1),
    ("WSTOPPED", 0x2),
    ("WCONTINUED", 0x8),
    ("__WCLONE", 0x80000000),
    ("__WALL", 0x40000000),
    ("__WNOTHREAD", 0x20000000),
];

/// Events of poll.
pub const POLL: &Names = &[
    ("POLLIN", 0x1),
    ("POLLPRI", 0x2),
    ("POLLOUT", 0x4),
    ("POLLERR", 0x8),
    ("POLLHUP", 0x10),
    ("POLLNVAL", 0x20),
    ("POLLRDNORM", 0x40),
    ("POLLRDBAND", 0x80),
    ("POLLWRNORM", 0x100),
    ("POLLWRBAND", 0x200),
    ("POLLRDHUP", 0x2000),
];

/// Flags of getrandom.
pub const RANDOM: &Names = &[
    ("GRND_NONBLOCK", 0x1),
    ("GRND_RANDOM", 0x2),
    ("GRND_INSECURE", 0x4),
];

/// Flags of renameat2.
pub const RENAME: &Names = &[
    ("RENAME_NOREPLACE", 0x1),
    ("RENAME_EXCHANGE", 0x2),
    ("RENAME_WHITEOUT", 0x4),
];

/// Where lseek counts from.
pub const WHENCE: &Names = &[
    ("SEEK_SET", 0x0),
    ("SEEK_CUR", 0x1),
    ("SEEK_END", 0x2),
    ("SEEK_DATA", 0x3),
    ("SEEK_HOLE", 0x4),
];

/// Operations of futex.
pub const FUTEX: &Names = &[
    ("FUTEX_WAIT", FUTEX_WAIT),
    ("FUTEX_WAKE", FUTEX_WAKE),
    ("FUTEX_FD", FUTEX_FD),
    ("FUTEX_REQUEUE", FUTEX_REQUEUE),
    ("FUTEX_CMP_REQUEUE", FUTEX_CMP_REQUEUE),
    ("FUTEX_WAKE_OP", FUTEX_WAKE_OP),
    ("FUTEX_LOCK_PI", FUTEX_LOCK_PI),
    ("FUTEX_UNLOCK_PI", FUTEX_UNLOCK_PI),
    ("FUTEX_TRYLOCK_PI", FUTEX_TRYLOCK_PI),
    ("FUTEX_WAIT_BITSET", FUTEX_WAIT_BITSET),
    ("FUTEX_WAKE_BITSET", FUTEX_WAKE_BITSET),
    ("FUTEX_WAIT_REQUEUE_PI", FUTEX_WAIT_REQUEUE_PI),
    ("FUTEX_CMP_REQUEUE_PI", FUTEX_CMP_REQUEUE_PI),
    ("FUTEX_LOCK_PI2", FUTEX_LOCK_PI2),
];
pub const FUTEX_WAIT: u64 = 0x0;
pub const FUTEX_WAKE: u64 = 0x1;
pub const FUTEX_FD: u64 = 0x2;
pub const FUTEX_REQUEUE: u64 = 0x3;
pub const FUTEX_CMP_REQUEUE: u64 = 0x4;
pub const FUTEX_WAKE_OP: u64 = 0x5;
pub const FUTEX_LOCK_PI: u64 = 0x6;
pub const FUTEX_UNLOCK_PI: u64 = 0x7;
pub const FUTEX_TRYLOCK_PI: u64 = 0x8;
pub const FUTEX_WAIT_BITSET: u64 = 0x9;
pub const FUTEX_WAKE_BITSET: u64 = 0xa;
pub const FUTEX_WAIT_REQUEUE_PI: u64 = 0xb;
pub const FUTEX_CMP_REQUEUE_PI: u64 = 0xc;
pub const FUTEX_LOCK_PI2: u64 = 0xd;

/// What FUTEX_WAKE_OP does to its word.
pub const FUTEX_OPERATIONS: &Names = &[
    ("FUTEX_OP_SET", 0),
    ("FUTEX_OP_ADD", 1),
    ("FUTEX_OP_OR", 2),
    ("FUTEX_OP_ANDN", 3),
    ("FUTEX_OP_XOR", 4),
];

/// How FUTEX_WAKE_OP compares the old value.
pub const FUTEX_COMPARISONS: &Names = &[
    ("FUTEX_OP_CMP_EQ", 0),
    ("FUTEX_OP_CMP_NE", 1),
    ("FUTEX_OP_CMP_LT", 2),
    ("FUTEX_OP_CMP_LE", 3),
    ("FUTEX_OP_CMP_GT", 4),
    ("FUTEX_OP_CMP_GE", 5),
];

/// Flags of eventfd2.
pub const EVENTFD: &Names = &[
    ("EFD_SEMAPHORE", 0x1),
    ("EFD_CLOEXEC", 0x80000),
    ("EFD_NONBLOCK", 0x800),
];

/// Flags of memfd_create.
pub const MEMFD: &Names = &[
    ("MFD_CLOEXEC", 0x1),
    ("MFD_ALLOW_SEALING", 0x2),
    ("MFD_HUGETLB", 0x4),
    ("MFD_NOEXEC_SEAL", 0x8),
    ("MFD_EXEC", 0x10),
];

/// Clocks.
pub const CLOCK: &Names = &[
    ("CLOCK_REALTIME", 0x0),
    ("CLOCK_MONOTONIC", 0x1),
    ("CLOCK_PROCESS_CPUTIME_ID", 0x2),
    ("CLOCK_THREAD_CPUTIME_ID", 0x3),
    ("CLOCK_MONOTONIC_RAW", 0x4),
    ("CLOCK_REALTIME_COARSE", 0x5),
    ("CLOCK_MONOTONIC_COARSE", 0x6),
    ("CLOCK_BOOTTIME", 0x7),
    ("CLOCK_REALTIME_ALARM", 0x8),
    ("CLOCK_BOOTTIME_ALARM", 0x9),
    ("CLOCK_TAI", 0xb),
];

/// Families of addresses.
pub const DOMAIN: &Names = &[
    ("AF_UNIX", 0x1),
    ("AF_INET", 0x2),
    ("AF_INET6", 0xa),
    ("AF_NETLINK", 0x10),
    ("AF_PACKET", 0x11),
    ("AF_VSOCK", 0x28),
    ("AF_ALG", 0x26),
];

/// Types of sockets.
pub const SOCKET_TYPE: &Names = &[
    ("SOCK_STREAM", 0x1),
    ("SOCK_DGRAM", 0x2),
    ("SOCK_RAW", 0x3),
    ("SOCK_RDM", 0x4),
    ("SOCK_SEQPACKET", 0x5),
];

/// What rt_sigprocmask does.
pub const MASK: &Names = &[
    ("SIG_BLOCK", 0x0),
    ("SIG_UNBLOCK", 0x1),
    ("SIG_SETMASK", 0x2),
];

/// Advices of madvise.
pub const ADVICE: &Names = &[
    ("MADV_NORMAL", 0x0),
    ("MADV_RANDOM", 0x1),
    ("MADV_SEQUENTIAL", 0x2),
    ("MADV_WILLNEED", 0x3),
    ("MADV_DONTNEED", 0x4),
    ("MADV_FREE", 0x8),
    ("MADV_REMOVE", 0x9),
    ("MADV_DONTFORK", 0xa),
    ("MADV_DOFORK", 0xb),
    ("MADV_MERGEABLE", 0xc),
    ("MADV_UNMERGEABLE", 0xd),
    ("MADV_HUGEPAGE", 0xe),
    ("MADV_NOHUGEPAGE", 0xf),
    ("MADV_DONTDUMP", 0x10),
    ("MADV_DODUMP", 0x11),
    ("MADV_WIPEONFORK", 0x12),
    ("MADV_KEEPONFORK", 0x13),
    ("MADV_COLD", 0x14),
    ("MADV_PAGEOUT", 0x15),
    ("MADV_POPULATE_READ", 0x16),
    ("MADV_POPULATE_WRITE", 0x17),
    ("MADV_DONTNEED_LOCKED", 0x18),
    ("MADV_COLLAPSE", 0x19),
];

/// Operations of epoll_ctl.
pub const EPOLL: &Names = &[
    ("EPOLL_CTL_ADD", 0x1),
    ("EPOLL_CTL_DEL", 0x2),
    ("EPOLL_CTL_MOD", 0x3),
];

/// Resources with limits.
pub const RESOURCE: &Names = &[
    ("RLIMIT_CPU", 0x0),
    ("RLIMIT_FSIZE", 0x1),
    ("RLIMIT_DATA", 0x2),
    ("RLIMIT_STACK", 0x3),
    ("RLIMIT_CORE", 0x4),
    ("RLIMIT_RSS", 0x5),
    ("RLIMIT_NPROC", 0x6),
    ("RLIMIT_NOFILE", 0x7),
    ("RLIMIT_MEMLOCK", 0x8),
    ("RLIMIT_AS", 0x9),
    ("RLIMIT_LOCKS", 0xa),
    ("RLIMIT_SIGPENDING", 0xb),
    ("RLIMIT_MSGQUEUE", 0xc),
    ("RLIMIT_NICE", 0xd),
    ("RLIMIT_RTPRIO", 0xe),
    ("RLIMIT_RTTIME", 0xf),
];

/// What arch_prctl sets.
pub const ARCH: &Names = &[
    ("ARCH_SET_GS", 0x1001),
    ("ARCH_SET_FS", 0x1002),
    ("ARCH_GET_FS", 0x1003),
    ("ARCH_GET_GS", 0x1004),
];

/// Types of files.
pub const FILE_TYPE: &Names = &[
    ("S_IFSOCK", 0xc000),
    ("S_IFLNK", 0xa000),
    ("S_IFREG", 0x8000),
    ("S_IFBLK", 0x6000),
    ("S_IFDIR", 0x4000),
    ("S_IFCHR", 0x2000),
    ("S_IFIFO", 0x1000),
];

/// Advices of fadvise64.
pub const FADVICE: &Names = &[
    ("POSIX_FADV_NORMAL", 0x0),
    ("POSIX_FADV_RANDOM", 0x1),
    ("POSIX_FADV_SEQUENTIAL", 0x2),
    ("POSIX_FADV_WILLNEED", 0x3),
    ("POSIX_FADV_DONTNEED", 0x4),
    ("POSIX_FADV_NOREUSE", 0x5),
];

/// What shutdown ends.
pub const SHUT: &Names = &[("SHUT_RD", 0x0), ("SHUT_WR", 0x1), ("SHUT_RDWR", 0x2)];

/// Timers of setitimer.
pub const ITIMER: &Names = &[
    ("ITIMER_REAL", 0x0),
    ("ITIMER_VIRTUAL", 0x1),
    ("ITIMER_PROF", 0x2),
];

/// Operations of flock.
pub const FLOCK: &Names = &[
    ("LOCK_SH", 0x1),
    ("LOCK_EX", 0x2),
    ("LOCK_NB", 0x4),
    ("LOCK_UN", 0x8),
];

/// Whose usage getrusage tells.
pub const USAGE: &Names = &[
    ("RUSAGE_SELF", 0x0),
    ("RUSAGE_CHILDREN", 0xffffffff),
    ("RUSAGE_THREAD", 0x1),
];

/// Whose priority it is.
pub const PRIORITY: &Names = &[
    ("PRIO_PROCESS", 0x0),
    ("PRIO_PGRP", 0x1),
    ("PRIO_USER", 0x2),
];

/// Flags of clock_nanosleep and timerfd_settime.
pub const TIMER: &Names = &[("TIMER_ABSTIME", 0x1)];

/// Flags of timerfd_settime.
pub const TIMERFD_SET: &Names = &[("TFD_TIMER_ABSTIME", 0x1), ("TFD_TIMER_CANCEL_ON_SET", 0x2)];

/// Flags of timerfd_create.
pub const TIMERFD: &Names = &[("TFD_CLOEXEC", 0x80000), ("TFD_NONBLOCK", 0x800)];

/// Flags of signalfd4.
pub const SIGNALFD: &Names = &[("SFD_CLOEXEC", 0x80000), ("SFD_NONBLOCK", 0x800)];

/// Flags of epoll_create1.
pub const EPOLL_CREATE: &Names = &[("EPOLL_CLOEXEC", 0x80000)];

/// Events of epoll.
pub const EPOLL_EVENTS: &Names = &[
    ("EPOLLIN", 0x1),
    ("EPOLLPRI", 0x2),
    ("EPOLLOUT", 0x4),
    ("EPOLLERR", 0x8),
    ("EPOLLHUP", 0x10),
    ("EPOLLRDNORM", 0x40),
    ("EPOLLRDBAND", 0x80),
    ("EPOLLWRNORM", 0x100),
    ("EPOLLWRBAND", 0x200),
    ("EPOLLMSG", 0x400),
    ("EPOLLRDHUP", 0x2000),
    ("EPOLLEXCLUSIVE", 0x10000000),
    ("EPOLLWAKEUP", 0x20000000),
    ("EPOLLONESHOT", 0x40000000),
    ("EPOLLET", 0x80000000),
];

/// Flags of inotify_init1.
pub const INOTIFY_INIT: &Names = &[("IN_CLOEXEC", 0x80000), ("IN_NONBLOCK", 0x800)];

/// Events of inotify.
pub const INOTIFY: &Names = &[
    ("IN_ACCESS", 0x1),
    ("IN_MODIFY", 0x2),
    ("IN_ATTRIB", 0x4),
    ("IN_CLOSE_WRITE", 0x8),
    ("IN_CLOSE_NOWRITE", 0x10),
    ("IN_OPEN", 0x20),
    ("IN_MOVED_FROM", 0x40),
    ("IN_MOVED_TO", 0x80),
    ("IN_CREATE", 0x100),
    ("IN_DELETE", 0x200),
    ("IN_DELETE_SELF", 0x400),
    ("IN_MOVE_SELF", 0x800),
    ("IN_ONLYDIR", 0x1000000),
    ("IN_DONT_FOLLOW", 0x2000000),
    ("IN_EXCL_UNLINK", 0x4000000),
    ("IN_MASK_CREATE", 0x10000000),
    ("IN_MASK_ADD", 0x20000000),
    ("IN_ISDIR", 0x40000000),
    ("IN_ONESHOT", 0x80000000),
];

/// Flags of mremap.
pub const MREMAP: &Names = &[
    ("MREMAP_MAYMOVE", 0x1),
    ("MREMAP_FIXED", 0x2),
    ("MREMAP_DONTUNMAP", 0x4),
];

/// Flags of msync.
pub const MSYNC: &Names = &[("MS_ASYNC", 0x1), ("MS_INVALIDATE", 0x2), ("MS_SYNC", 0x4)];

/// Flags of close_range.
pub const CLOSE_RANGE: &Names = &[("CLOSE_RANGE_UNSHARE", 0x2), ("CLOSE_RANGE_CLOEXEC", 0x4)];

/// Kinds of numbers that waitid waits for.
pub const ID_TYPE: &Names = &[
    ("P_ALL", 0x0),
    ("P_PID", 0x1),
    ("P_PGID", 0x2),
    ("P_PIDFD", 0x3),
];

/// Options of waitid.
pub const WAITID: &Names = &[
    ("WNOHANG", 0x1),
    ("WSTOPPED", 0x2),
    ("WEXITED", 0x4),
    ("WCONTINUED", 0x8),
    ("WNOWAIT", 0x1000000),
    ("__WCLONE", 0x80000000),
    ("__WALL", 0x40000000),
    ("__WNOTHREAD", 0x20000000),
];

/// Operations of seccomp.
pub const SECCOMP: &Names = &[
    ("SECCOMP_SET_MODE_STRICT", 0x0),
    ("SECCOMP_SET_MODE_FILTER", 0x1),
    ("SECCOMP_GET_ACTION_AVAIL", 0x2),
    ("SECCOMP_GET_NOTIF_SIZES", 0x3),
];

/// Flags of splice.
pub const SPLICE: &Names = &[
    ("SPLICE_F_MOVE", 0x1),
    ("SPLICE_F_NONBLOCK", 0x2),
    ("SPLICE_F_MORE", 0x4),
    ("SPLICE_F_GIFT", 0x8),
];

/// Flags of rt_sigaction.
pub const SIGNAL_ACTION: &Names = &[
    ("SA_RESTORER", 0x4000000),
    ("SA_ONSTACK", 0x8000000),
    ("SA_RESTART", 0x10000000),
    ("SA_NODEFER", 0x40000000),
    ("SA_RESETHAND", 0x80000000),
    ("SA_SIGINFO", 0x4),
    ("SA_NOCLDSTOP", 0x1),
    ("SA_NOCLDWAIT", 0x2),
];

/// Flags of sigaltstack.
pub const SIGNAL_STACK: &Names = &[
    ("SS_ONSTACK", 0x1),
    ("SS_DISABLE", 0x2),
    ("SS_AUTODISARM", 0x80000000),
];

/// Types of locks of files.
pub const LOCK_TYPE: &Names = &[("F_RDLCK", 0x0), ("F_WRLCK", 0x1), ("F_UNLCK", 0x2)];

/// Seals of a file.
pub const SEALS: &Names = &[
    ("F_SEAL_SEAL", 0x1),
    ("F_SEAL_SHRINK", 0x2),
    ("F_SEAL_GROW", 0x4),
    ("F_SEAL_WRITE", 0x8),
];

/// Whether a process may be dumped.
pub const DUMPABLE: &Names = &[("SUID_DUMP_DISABLE", 0x0), ("SUID_DUMP_USER", 0x1)];

/// Modes of seccomp.
pub const SECCOMP_MODE: &Names = &[("SECCOMP_MODE_STRICT", 0x1), ("SECCOMP_MODE_FILTER", 0x2)];

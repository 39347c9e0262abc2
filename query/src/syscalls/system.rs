//! Names of flags and commands of calls about processes, memory and communication in the manner of System V: from the kernel's
//! headers.

use super::flags::Names;

/// The key of what no other process finds.
pub const IPC_KEY: &Names = &[("IPC_PRIVATE", 0x0)];

/// Flags of shmget, without the permissions.
pub const SHM_GET: &Names = &[
    ("IPC_CREAT", 0x200),
    ("IPC_EXCL", 0x400),
    ("SHM_HUGETLB", 0x800),
    ("SHM_NORESERVE", 0x1000),
];

/// Flags of semget and msgget, without the permissions.
pub const IPC_GET: &Names = &[
    ("IPC_CREAT", 0x200),
    ("IPC_EXCL", 0x400),
    ("IPC_NOWAIT", 0x800),
];

/// Flags of shmat.
pub const SHM_ATTACH: &Names = &[
    ("SHM_RDONLY", 0x1000),
    ("SHM_RND", 0x2000),
    ("SHM_REMAP", 0x4000),
    ("SHM_EXEC", 0x8000),
];

/// Flags of msgsnd and msgrcv.
pub const MESSAGES: &Names = &[
    ("MSG_NOERROR", 0x1000),
    ("MSG_EXCEPT", 0x2000),
    ("MSG_COPY", 0x4000),
    ("IPC_NOWAIT", 0x800),
];

/// Commands of shmctl.
pub const SHM_CONTROL: &Names = &[
    ("IPC_RMID", 0),
    ("IPC_SET", 1),
    ("IPC_STAT", 2),
    ("IPC_INFO", 3),
    ("SHM_LOCK", 11),
    ("SHM_UNLOCK", 12),
    ("SHM_STAT", 13),
    ("SHM_INFO", 14),
    ("SHM_STAT_ANY", 15),
];

/// Commands of semctl.
pub const SEM_CONTROL: &Names = &[
    ("IPC_RMID", 0),
    ("IPC_SET", 1),
    ("IPC_STAT", 2),
    ("IPC_INFO", 3),
    ("GETPID", 11),
    ("GETVAL", 12),
    ("GETALL", 13),
    ("GETNCNT", 14),
    ("GETZCNT", 15),
    ("SETVAL", 16),
    ("SETALL", 17),
    ("SEM_STAT", 18),
    ("SEM_INFO", 19),
    ("SEM_STAT_ANY", 20),
];

/// Commands of msgctl.
pub const MSG_CONTROL: &Names = &[
    ("IPC_RMID", 0),
    ("IPC_SET", 1),
    ("IPC_STAT", 2),
    ("IPC_INFO", 3),
    ("MSG_STAT", 11),
    ("MSG_INFO", 12),
    ("MSG_STAT_ANY", 13),
];

/// Policies of the scheduler.
pub const SCHEDULER: &Names = &[
    ("SCHED_OTHER", 0),
    ("SCHED_FIFO", 1),
    ("SCHED_RR", 2),
    ("SCHED_BATCH", 3),
    ("SCHED_ISO", 4),
    ("SCHED_IDLE", 5),
    ("SCHED_DEADLINE", 6),
    ("SCHED_EXT", 7),
];

/// Flags of mlockall.
pub const LOCK_ALL: &Names = &[
    ("MCL_CURRENT", 0x1),
    ("MCL_FUTURE", 0x2),
    ("MCL_ONFAULT", 0x4),
];

/// Flags of mlock2.
pub const LOCK: &Names = &[("MLOCK_ONFAULT", 0x1)];

/// Flags of setns and unshare.
pub const NAMESPACES: &Names = &[
    ("CLONE_NEWTIME", 0x80),
    ("CLONE_VM", 0x100),
    ("CLONE_FS", 0x200),
    ("CLONE_FILES", 0x400),
    ("CLONE_SIGHAND", 0x800),
    ("CLONE_THREAD", 0x10000),
    ("CLONE_NEWNS", 0x20000),
    ("CLONE_SYSVSEM", 0x40000),
    ("CLONE_NEWCGROUP", 0x2000000),
    ("CLONE_NEWUTS", 0x4000000),
    ("CLONE_NEWIPC", 0x8000000),
    ("CLONE_NEWUSER", 0x10000000),
    ("CLONE_NEWPID", 0x20000000),
    ("CLONE_NEWNET", 0x40000000),
];

/// Execution domains.
pub const DOMAINS: &Names = &[
    ("PER_LINUX", 0x0),
    ("PER_SVR4", 0x1),
    ("PER_SVR3", 0x2),
    ("PER_SCOSVR3", 0x3),
    ("PER_WYSEV386", 0x4),
    ("PER_ISCR4", 0x5),
    ("PER_BSD", 0x6),
    ("PER_XENIX", 0x7),
    ("PER_LINUX32", 0x8),
    ("PER_IRIX32", 0x9),
    ("PER_IRIXN32", 0xa),
    ("PER_IRIX64", 0xb),
    ("PER_RISCOS", 0xc),
    ("PER_SOLARIS", 0xd),
    ("PER_UW7", 0xe),
    ("PER_OSF4", 0xf),
    ("PER_HPUX", 0x10),
];

/// Flags of personality in addition to the domain.
pub const PERSONALITY: &Names = &[
    ("UNAME26", 0x20000),
    ("ADDR_NO_RANDOMIZE", 0x40000),
    ("FDPIC_FUNCPTRS", 0x80000),
    ("MMAP_PAGE_ZERO", 0x100000),
    ("ADDR_COMPAT_LAYOUT", 0x200000),
    ("READ_IMPLIES_EXEC", 0x400000),
    ("ADDR_LIMIT_32BIT", 0x800000),
    ("SHORT_INODE", 0x1000000),
    ("WHOLE_SECONDS", 0x2000000),
    ("STICKY_TIMEOUTS", 0x4000000),
    ("ADDR_LIMIT_3GB", 0x8000000),
];

/// Policies of memory.
pub const MEMORY_POLICY: &Names = &[
    ("MPOL_DEFAULT", 0),
    ("MPOL_PREFERRED", 1),
    ("MPOL_BIND", 2),
    ("MPOL_INTERLEAVE", 3),
    ("MPOL_LOCAL", 4),
    ("MPOL_PREFERRED_MANY", 5),
    ("MPOL_WEIGHTED_INTERLEAVE", 6),
];

/// Flags of a policy of memory.
pub const MEMORY_POLICY_FLAGS: &Names = &[
    ("MPOL_F_STATIC_NODES", 0x8000),
    ("MPOL_F_RELATIVE_NODES", 0x4000),
    ("MPOL_F_NUMA_BALANCING", 0x2000),
];

/// Flags of mbind and move_pages.
pub const MOVE_PAGES: &Names = &[
    ("MPOL_MF_STRICT", 0x1),
    ("MPOL_MF_MOVE", 0x2),
    ("MPOL_MF_MOVE_ALL", 0x4),
];

/// Flags of get_mempolicy.
pub const ASK_POLICY: &Names = &[
    ("MPOL_F_NODE", 0x1),
    ("MPOL_F_ADDR", 0x2),
    ("MPOL_F_MEMS_ALLOWED", 0x4),
];

/// Whose priority of input and output it is.
pub const IO_PRIORITY_OF: &Names = &[
    ("IOPRIO_WHO_PROCESS", 1),
    ("IOPRIO_WHO_PGRP", 2),
    ("IOPRIO_WHO_USER", 3),
];

/// Classes of priorities of input and output.
pub const IO_PRIORITY_CLASS: &Names = &[
    ("IOPRIO_CLASS_NONE", 0),
    ("IOPRIO_CLASS_RT", 1),
    ("IOPRIO_CLASS_BE", 2),
    ("IOPRIO_CLASS_IDLE", 3),
];

/// Commands of membarrier.
pub const BARRIER: &Names = &[
    ("MEMBARRIER_CMD_QUERY", 0x0),
    ("MEMBARRIER_CMD_GLOBAL", 0x1),
    ("MEMBARRIER_CMD_GLOBAL_EXPEDITED", 0x2),
    ("MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED", 0x4),
    ("MEMBARRIER_CMD_PRIVATE_EXPEDITED", 0x8),
    ("MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED", 0x10),
    ("MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE", 0x20),
    ("MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE", 0x40),
    ("MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ", 0x80),
    ("MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ", 0x100),
];

/// Flags of finit_module.
pub const MODULE: &Names = &[
    ("MODULE_INIT_IGNORE_MODVERSIONS", 0x1),
    ("MODULE_INIT_IGNORE_VERMAGIC", 0x2),
    ("MODULE_INIT_COMPRESSED_FILE", 0x4),
];

/// Flags of userfaultfd.
pub const USER_FAULTS: &Names = &[
    ("UFFD_USER_MODE_ONLY", 0x1),
    ("O_NONBLOCK", 0x800),
    ("O_CLOEXEC", 0x80000),
];

/// Rights of a protection key.
pub const PROTECTION_KEY: &Names = &[("PKEY_DISABLE_ACCESS", 0x1), ("PKEY_DISABLE_WRITE", 0x2)];

/// Flags of pidfd_open.
pub const PIDFD: &Names = &[("PIDFD_NONBLOCK", 0x800)];

/// Flags of io_uring_enter.
pub const RING_ENTER: &Names = &[
    ("IORING_ENTER_GETEVENTS", 0x1),
    ("IORING_ENTER_SQ_WAKEUP", 0x2),
    ("IORING_ENTER_SQ_WAIT", 0x4),
    ("IORING_ENTER_EXT_ARG", 0x8),
    ("IORING_ENTER_REGISTERED_RING", 0x10),
];

/// How openat2 finds a file.
pub const RESOLVE: &Names = &[
    ("RESOLVE_NO_XDEV", 0x1),
    ("RESOLVE_NO_MAGICLINKS", 0x2),
    ("RESOLVE_NO_SYMLINKS", 0x4),
    ("RESOLVE_BENEATH", 0x8),
    ("RESOLVE_IN_ROOT", 0x10),
    ("RESOLVE_CACHED", 0x20),
];

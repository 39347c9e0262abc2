//! Names of flags and commands of calls that mount file systems, watch them, and change their files: from the kernel's headers.

use super::flags::Names;

/// Flags of mount.
pub const MOUNT: &Names = &[
    ("MS_RDONLY", 0x1),
    ("MS_NOSUID", 0x2),
    ("MS_NODEV", 0x4),
    ("MS_NOEXEC", 0x8),
    ("MS_SYNCHRONOUS", 0x10),
    ("MS_REMOUNT", 0x20),
    ("MS_MANDLOCK", 0x40),
    ("MS_DIRSYNC", 0x80),
    ("MS_NOSYMFOLLOW", 0x100),
    ("MS_NOATIME", 0x400),
    ("MS_NODIRATIME", 0x800),
    ("MS_BIND", 0x1000),
    ("MS_MOVE", 0x2000),
    ("MS_REC", 0x4000),
    ("MS_SILENT", 0x8000),
    ("MS_POSIXACL", 0x10000),
    ("MS_UNBINDABLE", 0x20000),
    ("MS_PRIVATE", 0x40000),
    ("MS_SLAVE", 0x80000),
    ("MS_SHARED", 0x100000),
    ("MS_RELATIME", 0x200000),
    ("MS_KERNMOUNT", 0x400000),
    ("MS_I_VERSION", 0x800000),
    ("MS_STRICTATIME", 0x1000000),
    ("MS_LAZYTIME", 0x2000000),
];

/// Flags of umount2.
pub const UMOUNT: &Names = &[
    ("MNT_FORCE", 0x1),
    ("MNT_DETACH", 0x2),
    ("MNT_EXPIRE", 0x4),
    ("UMOUNT_NOFOLLOW", 0x8),
];

/// Flags of swapon, without the priority.
pub const SWAP: &Names = &[
    ("SWAP_FLAG_PREFER", 0x8000),
    ("SWAP_FLAG_DISCARD", 0x10000),
    ("SWAP_FLAG_DISCARD_ONCE", 0x20000),
    ("SWAP_FLAG_DISCARD_PAGES", 0x40000),
];

/// Flags of fsopen.
pub const FSOPEN: &Names = &[("FSOPEN_CLOEXEC", 0x1)];

/// Flags of fsmount.
pub const FSMOUNT: &Names = &[("FSMOUNT_CLOEXEC", 0x1)];

/// Attributes of a mount.
pub const MOUNT_ATTRIBUTES: &Names = &[
    ("MOUNT_ATTR_RDONLY", 0x1),
    ("MOUNT_ATTR_NOSUID", 0x2),
    ("MOUNT_ATTR_NODEV", 0x4),
    ("MOUNT_ATTR_NOEXEC", 0x8),
    ("MOUNT_ATTR_NOATIME", 0x10),
    ("MOUNT_ATTR_STRICTATIME", 0x20),
    ("MOUNT_ATTR_NODIRATIME", 0x80),
    ("MOUNT_ATTR_IDMAP", 0x100000),
    ("MOUNT_ATTR_NOSYMFOLLOW", 0x200000),
];

/// Flags of fspick.
pub const FSPICK: &Names = &[
    ("FSPICK_CLOEXEC", 0x1),
    ("FSPICK_SYMLINK_NOFOLLOW", 0x2),
    ("FSPICK_NO_AUTOMOUNT", 0x4),
    ("FSPICK_EMPTY_PATH", 0x8),
];

/// Flags of open_tree.
pub const OPEN_TREE: &Names = &[
    ("OPEN_TREE_CLONE", 0x1),
    ("OPEN_TREE_CLOEXEC", 0x80000),
    ("AT_SYMLINK_NOFOLLOW", 0x100),
    ("AT_NO_AUTOMOUNT", 0x800),
    ("AT_EMPTY_PATH", 0x1000),
    ("AT_RECURSIVE", 0x8000),
];

/// Flags of move_mount.
pub const MOVE_MOUNT: &Names = &[
    ("MOVE_MOUNT_F_SYMLINKS", 0x1),
    ("MOVE_MOUNT_F_AUTOMOUNTS", 0x2),
    ("MOVE_MOUNT_F_EMPTY_PATH", 0x4),
    ("MOVE_MOUNT_T_SYMLINKS", 0x10),
    ("MOVE_MOUNT_T_AUTOMOUNTS", 0x20),
    ("MOVE_MOUNT_T_EMPTY_PATH", 0x40),
    ("MOVE_MOUNT_SET_GROUP", 0x100),
    ("MOVE_MOUNT_BENEATH", 0x200),
];

/// Classes of fanotify_init.
pub const FANOTIFY_CLASS: &Names = &[
    ("FAN_CLASS_NOTIF", 0x0),
    ("FAN_CLASS_CONTENT", 0x4),
    ("FAN_CLASS_PRE_CONTENT", 0x8),
];

/// Flags of fanotify_init in addition to the class.
pub const FANOTIFY: &Names = &[
    ("FAN_CLOEXEC", 0x1),
    ("FAN_NONBLOCK", 0x2),
    ("FAN_UNLIMITED_QUEUE", 0x10),
    ("FAN_UNLIMITED_MARKS", 0x20),
    ("FAN_ENABLE_AUDIT", 0x40),
    ("FAN_REPORT_PIDFD", 0x80),
    ("FAN_REPORT_TID", 0x100),
    ("FAN_REPORT_FID", 0x200),
    ("FAN_REPORT_DIR_FID", 0x400),
    ("FAN_REPORT_NAME", 0x800),
    ("FAN_REPORT_TARGET_FID", 0x1000),
];

/// Flags of fanotify_mark.
pub const FANOTIFY_MARK: &Names = &[
    ("FAN_MARK_ADD", 0x1),
    ("FAN_MARK_REMOVE", 0x2),
    ("FAN_MARK_DONT_FOLLOW", 0x4),
    ("FAN_MARK_ONLYDIR", 0x8),
    ("FAN_MARK_MOUNT", 0x10),
    ("FAN_MARK_IGNORED_MASK", 0x20),
    ("FAN_MARK_IGNORED_SURV_MODIFY", 0x40),
    ("FAN_MARK_FLUSH", 0x80),
    ("FAN_MARK_FILESYSTEM", 0x100),
    ("FAN_MARK_EVICTABLE", 0x200),
    ("FAN_MARK_IGNORE", 0x400),
];

/// Events of fanotify.
pub const FANOTIFY_EVENTS: &Names = &[
    ("FAN_ACCESS", 0x1),
    ("FAN_MODIFY", 0x2),
    ("FAN_ATTRIB", 0x4),
    ("FAN_CLOSE_WRITE", 0x8),
    ("FAN_CLOSE_NOWRITE", 0x10),
    ("FAN_OPEN", 0x20),
    ("FAN_MOVED_FROM", 0x40),
    ("FAN_MOVED_TO", 0x80),
    ("FAN_CREATE", 0x100),
    ("FAN_DELETE", 0x200),
    ("FAN_DELETE_SELF", 0x400),
    ("FAN_MOVE_SELF", 0x800),
    ("FAN_OPEN_EXEC", 0x1000),
    ("FAN_Q_OVERFLOW", 0x4000),
    ("FAN_FS_ERROR", 0x8000),
    ("FAN_OPEN_PERM", 0x10000),
    ("FAN_ACCESS_PERM", 0x20000),
    ("FAN_OPEN_EXEC_PERM", 0x40000),
    ("FAN_ONDIR", 0x40000000),
    ("FAN_EVENT_ON_CHILD", 0x8000000),
    ("FAN_RENAME", 0x10000000),
];

/// Commands of quotactl, without the type.
pub const QUOTA: &Names = &[
    ("Q_SYNC", 0x800001),
    ("Q_QUOTAON", 0x800002),
    ("Q_QUOTAOFF", 0x800003),
    ("Q_GETFMT", 0x800004),
    ("Q_GETINFO", 0x800005),
    ("Q_SETINFO", 0x800006),
    ("Q_GETQUOTA", 0x800007),
    ("Q_SETQUOTA", 0x800008),
    ("Q_GETNEXTQUOTA", 0x800009),
];

/// Whose quota it is.
pub const QUOTA_TYPE: &Names = &[("USRQUOTA", 0x0), ("GRPQUOTA", 0x1), ("PRJQUOTA", 0x2)];

/// Flags of setxattr.
pub const XATTR: &Names = &[("XATTR_CREATE", 0x1), ("XATTR_REPLACE", 0x2)];

/// Modes of fallocate.
pub const FALLOCATE: &Names = &[
    ("FALLOC_FL_KEEP_SIZE", 0x1),
    ("FALLOC_FL_PUNCH_HOLE", 0x2),
    ("FALLOC_FL_NO_HIDE_STALE", 0x4),
    ("FALLOC_FL_COLLAPSE_RANGE", 0x8),
    ("FALLOC_FL_ZERO_RANGE", 0x10),
    ("FALLOC_FL_INSERT_RANGE", 0x20),
    ("FALLOC_FL_UNSHARE_RANGE", 0x40),
    ("FALLOC_FL_WRITE_ZEROES", 0x80),
];

/// Flags of sync_file_range.
pub const SYNC_RANGE: &Names = &[
    ("SYNC_FILE_RANGE_WAIT_BEFORE", 0x1),
    ("SYNC_FILE_RANGE_WRITE", 0x2),
    ("SYNC_FILE_RANGE_WAIT_AFTER", 0x4),
];

/// Flags of preadv2 and pwritev2.
pub const READ_WRITE: &Names = &[
    ("RWF_HIPRI", 0x1),
    ("RWF_DSYNC", 0x2),
    ("RWF_SYNC", 0x4),
    ("RWF_NOWAIT", 0x8),
    ("RWF_APPEND", 0x10),
    ("RWF_NOAPPEND", 0x20),
    ("RWF_ATOMIC", 0x40),
    ("RWF_DONTCACHE", 0x80),
];

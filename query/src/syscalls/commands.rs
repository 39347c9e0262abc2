//! Calls whose arguments depend on a command: prctl, fcntl, ioctl, ptrace, keyctl, kcmp, fsconfig. For each command its name and
//! the kinds of the arguments after it.

/// A command: its name, its number, the kinds of its arguments.
pub type Command = (&'static str, u64, &'static [&'static str]);

/// Options of prctl.
pub const PRCTL: &[Command] = &[
    ("PR_SET_PDEATHSIG", 0x1, &["signal"]),
    ("PR_GET_PDEATHSIG", 0x2, &["ptr"]),
    ("PR_GET_DUMPABLE", 0x3, &[]),
    ("PR_SET_DUMPABLE", 0x4, &["dumpable"]),
    ("PR_GET_KEEPCAPS", 0x7, &[]),
    ("PR_SET_KEEPCAPS", 0x8, &["size"]),
    ("PR_SET_NAME", 0xf, &["path"]),
    ("PR_GET_NAME", 0x10, &["outtext"]),
    ("PR_GET_SECCOMP", 0x15, &[]),
    ("PR_SET_SECCOMP", 0x16, &["seccompmode", "ptr"]),
    ("PR_CAPBSET_READ", 0x17, &["size"]),
    ("PR_CAPBSET_DROP", 0x18, &["size"]),
    ("PR_SET_TIMERSLACK", 0x1d, &["size"]),
    ("PR_GET_TIMERSLACK", 0x1e, &[]),
    ("PR_SET_CHILD_SUBREAPER", 0x24, &["size"]),
    ("PR_GET_CHILD_SUBREAPER", 0x25, &["ptr"]),
    (
        "PR_SET_NO_NEW_PRIVS",
        0x26,
        &["size", "size", "size", "size"],
    ),
    (
        "PR_GET_NO_NEW_PRIVS",
        0x27,
        &["size", "size", "size", "size"],
    ),
    ("PR_SET_PTRACER", 0x5961_6d61, &["int"]),
    ("PR_SET_VMA", 0x5356_4d41, &["hex", "ptr", "size", "ptr"]),
];

/// Commands of fcntl.
pub const FCNTL: &[Command] = &[
    ("F_DUPFD", 0x0, &["int"]),
    ("F_GETFD", 0x1, &[]),
    ("F_SETFD", 0x2, &["fdcloexec"]),
    ("F_GETFL", 0x3, &[]),
    ("F_SETFL", 0x4, &["open"]),
    ("F_GETLK", 0x5, &["outlock"]),
    ("F_SETLK", 0x6, &["lock"]),
    ("F_SETLKW", 0x7, &["lock"]),
    ("F_SETOWN", 0x8, &["int"]),
    ("F_GETOWN", 0x9, &[]),
    ("F_SETSIG", 0xa, &["signal"]),
    ("F_GETSIG", 0xb, &[]),
    ("F_OFD_GETLK", 0x24, &["outlock"]),
    ("F_OFD_SETLK", 0x25, &["lock"]),
    ("F_OFD_SETLKW", 0x26, &["lock"]),
    ("F_SETLEASE", 0x400, &["locktype"]),
    ("F_GETLEASE", 0x401, &[]),
    ("F_NOTIFY", 0x402, &["hex"]),
    ("F_DUPFD_CLOEXEC", 0x406, &["int"]),
    ("F_SETPIPE_SZ", 0x407, &["size"]),
    ("F_GETPIPE_SZ", 0x408, &[]),
    ("F_ADD_SEALS", 0x409, &["seals"]),
    ("F_GET_SEALS", 0x40a, &[]),
];

/// Requests of ioctl.
pub const IOCTL: &[Command] = &[
    ("TCGETS", 0x5401, &["ptr"]),
    ("TCSETS", 0x5402, &["ptr"]),
    ("TCSETSW", 0x5403, &["ptr"]),
    ("TCSETSF", 0x5404, &["ptr"]),
    ("TIOCSCTTY", 0x540e, &["int"]),
    ("TIOCGPGRP", 0x540f, &["outint"]),
    ("TIOCSPGRP", 0x5410, &["inint"]),
    ("TIOCGWINSZ", 0x5413, &["outwindow"]),
    ("TIOCSWINSZ", 0x5414, &["ptr"]),
    ("FIONREAD", 0x541b, &["outint"]),
    ("FIONBIO", 0x5421, &["inint"]),
    ("TIOCGSID", 0x5429, &["outint"]),
    ("FIOCLEX", 0x5451, &[]),
    ("BTRFS_IOC_CLONE or FICLONE", 0x4004_9409, &["fd"]),
];

/// Requests of ptrace.
pub const PTRACE: &[Command] = &[
    ("PTRACE_TRACEME", 0x0, &[]),
    ("PTRACE_PEEKTEXT", 0x1, &["int", "ptr", "ptr"]),
    ("PTRACE_PEEKDATA", 0x2, &["int", "ptr", "ptr"]),
    ("PTRACE_PEEKUSER", 0x3, &["int", "ptr", "ptr"]),
    ("PTRACE_POKETEXT", 0x4, &["int", "ptr", "ptr"]),
    ("PTRACE_POKEDATA", 0x5, &["int", "ptr", "ptr"]),
    ("PTRACE_POKEUSER", 0x6, &["int", "ptr", "ptr"]),
    ("PTRACE_CONT", 0x7, &["int", "ptr", "signal"]),
    ("PTRACE_KILL", 0x8, &["int"]),
    ("PTRACE_SINGLESTEP", 0x9, &["int", "ptr", "signal"]),
    ("PTRACE_GETREGS", 0xc, &["int", "-", "ptr"]),
    ("PTRACE_SETREGS", 0xd, &["int", "-", "ptr"]),
    ("PTRACE_GETFPREGS", 0xe, &["int", "-", "ptr"]),
    ("PTRACE_SETFPREGS", 0xf, &["int", "-", "ptr"]),
    ("PTRACE_ATTACH", 0x10, &["int"]),
    ("PTRACE_DETACH", 0x11, &["int", "ptr", "signal"]),
    ("PTRACE_SYSCALL", 0x18, &["int", "ptr", "signal"]),
    ("PTRACE_SETOPTIONS", 0x4200, &["int", "ptr", "hex"]),
    ("PTRACE_GETEVENTMSG", 0x4201, &["int", "ptr", "ptr"]),
    ("PTRACE_GETSIGINFO", 0x4202, &["int", "ptr", "ptr"]),
    ("PTRACE_SETSIGINFO", 0x4203, &["int", "ptr", "ptr"]),
    ("PTRACE_GETREGSET", 0x4204, &["int", "hex", "ptr"]),
    ("PTRACE_SETREGSET", 0x4205, &["int", "hex", "ptr"]),
    ("PTRACE_SEIZE", 0x4206, &["int", "ptr", "hex"]),
    ("PTRACE_INTERRUPT", 0x4207, &["int"]),
    ("PTRACE_LISTEN", 0x4208, &["int"]),
];

/// Operations of keyctl.
pub const KEYCTL: &[Command] = &[
    ("KEYCTL_GET_KEYRING_ID", 0, &["int", "int"]),
    ("KEYCTL_JOIN_SESSION_KEYRING", 1, &["ptr"]),
    ("KEYCTL_UPDATE", 2, &["int", "ptr", "size"]),
    ("KEYCTL_REVOKE", 3, &["int"]),
    ("KEYCTL_CHOWN", 4, &["int", "int", "int"]),
    ("KEYCTL_SETPERM", 5, &["int", "hex"]),
    ("KEYCTL_DESCRIBE", 6, &["int", "ptr", "size"]),
    ("KEYCTL_CLEAR", 7, &["int"]),
    ("KEYCTL_LINK", 8, &["int", "int"]),
    ("KEYCTL_UNLINK", 9, &["int", "int"]),
    ("KEYCTL_SEARCH", 10, &["int", "ptr", "ptr", "int"]),
    ("KEYCTL_READ", 11, &["int", "ptr", "size"]),
    ("KEYCTL_INSTANTIATE", 12, &["int", "ptr", "size", "int"]),
    ("KEYCTL_NEGATE", 13, &["int", "uint", "int"]),
    ("KEYCTL_SET_REQKEY_KEYRING", 14, &["int"]),
    ("KEYCTL_SET_TIMEOUT", 15, &["int", "uint"]),
    ("KEYCTL_ASSUME_AUTHORITY", 16, &["int"]),
    ("KEYCTL_GET_SECURITY", 17, &["int", "ptr", "size"]),
    ("KEYCTL_SESSION_TO_PARENT", 18, &[]),
    ("KEYCTL_REJECT", 19, &["int", "uint", "uint", "int"]),
    ("KEYCTL_INSTANTIATE_IOV", 20, &["int", "ptr", "size", "int"]),
    ("KEYCTL_INVALIDATE", 21, &["int"]),
    ("KEYCTL_GET_PERSISTENT", 22, &["int", "int"]),
];

/// What kcmp compares: two descriptors, or nothing that has a number.
pub const KCMP: &[Command] = &[
    ("KCMP_FILE", 0, &["size", "size"]),
    ("KCMP_VM", 1, &[]),
    ("KCMP_FILES", 2, &[]),
    ("KCMP_FS", 3, &[]),
    ("KCMP_SIGHAND", 4, &[]),
    ("KCMP_IO", 5, &[]),
    ("KCMP_SYSVSEM", 6, &[]),
    ("KCMP_EPOLL_TFD", 7, &["size", "ptr"]),
];

/// Commands of fsconfig.
pub const FSCONFIG: &[Command] = &[
    ("FSCONFIG_SET_FLAG", 0, &["path", "ptr", "int"]),
    ("FSCONFIG_SET_STRING", 1, &["path", "path", "int"]),
    ("FSCONFIG_SET_BINARY", 2, &["path", "binary", "int"]),
    ("FSCONFIG_SET_PATH", 3, &["path", "path", "dirfd"]),
    ("FSCONFIG_SET_PATH_EMPTY", 4, &["path", "path", "dirfd"]),
    ("FSCONFIG_SET_FD", 5, &["path", "ptr", "fd"]),
    ("FSCONFIG_CMD_CREATE", 6, &["ptr", "ptr", "int"]),
    ("FSCONFIG_CMD_RECONFIGURE", 7, &["ptr", "ptr", "int"]),
    ("FSCONFIG_CMD_CREATE_EXCL", 8, &["ptr", "ptr", "int"]),
];

/// Returns the commands that an argument of this kind has.
pub fn commands(word: &str) -> Option<&'static [Command]> {
    match word {
        "prctl" => Some(PRCTL),
        "fcntl" => Some(FCNTL),
        "ioctl" => Some(IOCTL),
        "ptrace" => Some(PTRACE),
        "keyctl" => Some(KEYCTL),
        "kcmp" => Some(KCMP),
        "fsconfig" => Some(FSCONFIG),
        _ => None,
    }
}

/// Returns the kinds of the arguments after a command that is not known.
pub fn others(word: &str) -> &'static [&'static str] {
    match word {
        "prctl" | "keyctl" => &["hex", "hex", "hex", "hex"],
        "ptrace" => &["int", "ptr", "ptr"],
        "kcmp" => &["hex", "hex"],
        "fsconfig" => &["ptr", "ptr", "int"],
        _ => &["hex"],
    }
}

/// Returns the name of a command of prctl, fcntl or ioctl.
pub fn command_name(call: &str, number: u64) -> Option<&'static str> {
    Some(command(commands(call)?, number)?.0)
}

/// Returns a command by its number.
pub fn command(of: &[Command], number: u64) -> Option<&Command> {
    let number = number & 0xffff_ffff;
    of.iter().find(|(_, known, _)| *known == number)
}

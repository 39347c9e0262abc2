//! Calls whose arguments depend on a command: prctl, fcntl, ioctl. For each command its name and the kinds of the arguments after it.

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

/// Returns the commands that an argument of this kind has.
pub fn commands(word: &str) -> Option<&'static [Command]> {
    match word {
        "prctl" => Some(PRCTL),
        "fcntl" => Some(FCNTL),
        "ioctl" => Some(IOCTL),
        _ => None,
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

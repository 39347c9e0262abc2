//! Signal names, as in shells and gdb.

/// Signal numbers and names on x86-64 Linux.
const NAMES: [(i32, &str); 31] = [
    (libc::SIGHUP, "SIGHUP"),
    (libc::SIGINT, "SIGINT"),
    (libc::SIGQUIT, "SIGQUIT"),
    (libc::SIGILL, "SIGILL"),
    (libc::SIGTRAP, "SIGTRAP"),
    (libc::SIGABRT, "SIGABRT"),
    (libc::SIGBUS, "SIGBUS"),
    (libc::SIGFPE, "SIGFPE"),
    (libc::SIGKILL, "SIGKILL"),
    (libc::SIGUSR1, "SIGUSR1"),
    (libc::SIGSEGV, "SIGSEGV"),
    (libc::SIGUSR2, "SIGUSR2"),
    (libc::SIGPIPE, "SIGPIPE"),
    (libc::SIGALRM, "SIGALRM"),
    (libc::SIGTERM, "SIGTERM"),
    (libc::SIGSTKFLT, "SIGSTKFLT"),
    (libc::SIGCHLD, "SIGCHLD"),
    (libc::SIGCONT, "SIGCONT"),
    (libc::SIGSTOP, "SIGSTOP"),
    (libc::SIGTSTP, "SIGTSTP"),
    (libc::SIGTTIN, "SIGTTIN"),
    (libc::SIGTTOU, "SIGTTOU"),
    (libc::SIGURG, "SIGURG"),
    (libc::SIGXCPU, "SIGXCPU"),
    (libc::SIGXFSZ, "SIGXFSZ"),
    (libc::SIGVTALRM, "SIGVTALRM"),
    (libc::SIGPROF, "SIGPROF"),
    (libc::SIGWINCH, "SIGWINCH"),
    (libc::SIGIO, "SIGIO"),
    (libc::SIGPWR, "SIGPWR"),
    (libc::SIGSYS, "SIGSYS"),
];

/// The highest signal number.
const LAST: i32 = 64;

/// Returns a signal's name, or its number if it has no name.
#[must_use]
pub fn signal_name(signal: i32) -> String {
    NAMES
        .iter()
        .find(|(number, _)| *number == signal)
        .map_or_else(
            || format!("signal {signal}"),
            |(_, name)| (*name).to_owned(),
        )
}

/// Finds a signal: `SIGSEGV`, `segv` or `11`.
#[must_use]
pub fn signal_by_name(text: &str) -> Option<i32> {
    let text = text.trim().to_uppercase();
    if let Ok(number) = text.parse() {
        return (1..=LAST).contains(&number).then_some(number);
    }
    let short = text.strip_prefix("SIG").unwrap_or(&text);
    NAMES
        .iter()
        .find(|(_, name)| name.strip_prefix("SIG") == Some(short))
        .map(|(number, _)| *number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_go_by_every_name() {
        assert_eq!(signal_name(11), "SIGSEGV");
        assert_eq!(signal_name(40), "signal 40");
        for text in ["SIGSEGV", "segv", "Segv", "11"] {
            assert_eq!(signal_by_name(text), Some(11), "{text}");
        }
        for text in ["", "SIG", "0", "-1", "65", "SEGVS"] {
            assert_eq!(signal_by_name(text), None, "{text}");
        }
    }
}

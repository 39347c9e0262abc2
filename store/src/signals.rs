//! Names of signals on x86-64 Linux, as in shells and gdb.

/// The names of signals 1 to 31.
pub const NAMES: [&str; 31] = [
    "SIGHUP",
    "SIGINT",
    "SIGQUIT",
    "SIGILL",
    "SIGTRAP",
    "SIGABRT",
    "SIGBUS",
    "SIGFPE",
    "SIGKILL",
    "SIGUSR1",
    "SIGSEGV",
    "SIGUSR2",
    "SIGPIPE",
    "SIGALRM",
    "SIGTERM",
    "SIGSTKFLT",
    "SIGCHLD",
    "SIGCONT",
    "SIGSTOP",
    "SIGTSTP",
    "SIGTTIN",
    "SIGTTOU",
    "SIGURG",
    "SIGXCPU",
    "SIGXFSZ",
    "SIGVTALRM",
    "SIGPROF",
    "SIGWINCH",
    "SIGIO",
    "SIGPWR",
    "SIGSYS",
];

/// The highest signal number.
const LAST: i32 = 64;

/// Returns the name of a signal that has one.
fn known(signal: i32) -> Option<&'static str> {
    let index = usize::try_from(signal).ok()?.checked_sub(1)?;
    NAMES.get(index).copied()
}

/// Returns a signal's name, or its number if it has no name.
#[must_use]
pub fn signal_name(signal: i32) -> String {
    known(signal).map_or_else(|| format!("signal {signal}"), str::to_owned)
}

/// Finds a signal: `SIGSEGV`, `segv` or `11`.
#[must_use]
pub fn signal_by_name(text: &str) -> Option<i32> {
    let text = text.trim().to_uppercase();
    if let Ok(number) = text.parse() {
        return (1..=LAST).contains(&number).then_some(number);
    }
    let short = text.strip_prefix("SIG").unwrap_or(&text);
    (1..=LAST)
        .find(|signal| known(*signal).and_then(|name| name.strip_prefix("SIG")) == Some(short))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_go_by_every_name() {
        assert_eq!(signal_name(11), "SIGSEGV");
        assert_eq!(signal_name(40), "signal 40");
        assert_eq!([signal_name(0), signal_name(31)], ["signal 0", "SIGSYS"]);
        for text in ["SIGSEGV", "segv", "Segv", "11"] {
            assert_eq!(signal_by_name(text), Some(11), "{text}");
        }
        for text in ["", "SIG", "0", "-1", "65", "SEGVS"] {
            assert_eq!(signal_by_name(text), None, "{text}");
        }
    }
}

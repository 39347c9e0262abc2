//! Reads information about the threads of a process from /proc.

use std::fmt::Display;
use std::fs;
use std::io;
use std::path::Path;

/// The flag of threads that are ending (proc(5), stat; PF_EXITING in the kernel's sched.h).
const EXITING: u64 = 4;

/// Reads a text of /proc. The names of threads and mapped files in it are bytes that need not be UTF-8.
pub(crate) fn text(path: impl AsRef<Path>) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&fs::read(path)?).into_owned())
}

/// Returns the thread ids of `pid`, as far as one reading of the directory saw them.
pub(crate) fn tasks(pid: i32) -> io::Result<Vec<i32>> {
    let mut tids = Vec::new();
    for entry in fs::read_dir(format!("/proc/{pid}/task"))? {
        tids.extend(
            entry?
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok()) as Option<i32>,
        );
    }
    Ok(tids)
}

/// Returns the state letter of a thread (R, S, D, T, t, Z, ...); `None` if it does not exist.
pub(crate) fn state(pid: i32, tid: i32) -> Option<char> {
    let stat = text(format!("/proc/{pid}/task/{tid}/stat")).ok()?;
    // The name before the state is in parentheses and may itself contain any character.
    let after_name = &stat[stat.rfind(')')? + 1..];
    after_name.trim_start().chars().next()
}

/// Returns whether a thread in this state has ended.
pub(crate) fn is_dead(state: Option<char>) -> bool {
    matches!(state, None | Some('Z' | 'X' | 'x'))
}

/// Returns whether a thread is about to be killed: the end of the whole process has begun.
pub(crate) fn is_being_killed(pid: i32, tid: i32) -> bool {
    let status = text(format!("/proc/{pid}/task/{tid}/status")).unwrap_or_default();
    let pending = field(&status, "SigPnd:").and_then(|mask| u64::from_str_radix(mask, 16).ok());
    pending.is_none_or(|mask| mask & 1 << (libc::SIGKILL - 1) != 0)
}

/// Returns the thread that traces thread `tid` of `pid`; `None` if there is none.
pub(crate) fn tracer(pid: i32, tid: i32) -> Option<i32> {
    let status = text(format!("/proc/{pid}/task/{tid}/status")).ok()?;
    let tracer: i32 = field(&status, "TracerPid:")?.parse().ok()?;
    (tracer != 0).then_some(tracer)
}

/// Returns whether a thread is ending: its process was killed, and the kernel is taking it down.
pub(crate) fn is_ending(tid: i32) -> bool {
    let Some(process) = thread_group(tid) else {
        return true;
    };
    let stat = text(format!("/proc/{process}/task/{tid}/stat")).unwrap_or_default();
    // The name may contain anything; then come state, parent, group, session, terminal, its group, and flags.
    let flags = stat.rsplit_once(')').and_then(|(_, rest)| {
        let flags = rest.split_whitespace().nth(6)?;
        flags.parse::<u64>().ok()
    });
    flags.is_none_or(|flags| flags & EXITING != 0) || is_being_killed(process, tid)
}

/// Returns the process of thread `tid`.
pub(crate) fn thread_group(tid: i32) -> Option<i32> {
    let status = text(format!("/proc/{tid}/status")).ok()?;
    field(&status, "Tgid:")?.parse().ok()
}

/// Returns the parent of process `pid`.
pub(crate) fn parent(pid: i32) -> Option<i32> {
    let status = text(format!("/proc/{pid}/status")).ok()?;
    field(&status, "PPid:")?.parse().ok()
}

/// Returns how many PID namespaces below that of /proc, and including it, a process (a number or `self`) has an id in; `None` if the
/// kernel has no such namespaces.
pub(crate) fn pid_namespaces(process: impl Display) -> Option<usize> {
    let status = text(format!("/proc/{process}/status")).ok()?;
    Some(field(&status, "NSpid:")?.split_whitespace().count())
}

/// Returns the effective user of a process.
pub(crate) fn user(pid: i32) -> Option<u32> {
    let status = text(format!("/proc/{pid}/status")).ok()?;
    field(&status, "Uid:")?
        .split_whitespace()
        .nth(1)?
        .parse()
        .ok()
}

/// Returns the name of a process, or `?`.
pub(crate) fn name(pid: i32) -> String {
    text(format!("/proc/{pid}/comm"))
        .map_or_else(|_| "?".to_owned(), |name| name.trim_end().to_owned())
}

/// Returns Yama's setting; `None` if the kernel has no Yama.
pub(crate) fn ptrace_scope() -> Option<u32> {
    let scope = text("/proc/sys/kernel/yama/ptrace_scope").ok()?;
    scope.trim().parse().ok()
}

fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .map(str::trim)
}

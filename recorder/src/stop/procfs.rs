//! What /proc tells about the threads of a process.

use std::fs;
use std::io;

/// The thread ids of `pid`, as far as one reading of the directory saw them.
pub(super) fn tasks(pid: i32) -> io::Result<Vec<i32>> {
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

/// The state letter of a thread (R, S, D, T, t, Z, ...); None if it does not exist.
pub(super) fn state(pid: i32, tid: i32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/task/{tid}/stat")).ok()?;
    // The name before the state is in parentheses and may itself contain any character.
    let after_name = &stat[stat.rfind(')')? + 1..];
    after_name.trim_start().chars().next()
}

/// Whether a thread in this state has ended.
pub(super) fn is_dead(state: Option<char>) -> bool {
    matches!(state, None | Some('Z' | 'X' | 'x'))
}

/// The process that traces thread `tid` of `pid`; None if nobody does.
pub(super) fn tracer(pid: i32, tid: i32) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{pid}/task/{tid}/status")).ok()?;
    let tracer: i32 = field(&status, "TracerPid:")?.parse().ok()?;
    (tracer != 0).then_some(tracer)
}

/// The process that thread `tid` belongs to.
pub(super) fn thread_group(tid: i32) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    field(&status, "Tgid:")?.parse().ok()
}

/// The effective user of a process.
pub(super) fn user(pid: i32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    field(&status, "Uid:")?
        .split_whitespace()
        .nth(1)?
        .parse()
        .ok()
}

/// The name of a process, or `?`.
pub(super) fn name(pid: i32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm"))
        .map_or_else(|_| "?".to_owned(), |name| name.trim_end().to_owned())
}

/// Yama's setting; None where the kernel has no Yama.
pub(super) fn ptrace_scope() -> Option<u32> {
    let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok()?;
    scope.trim().parse().ok()
}

fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .map(str::trim)
}

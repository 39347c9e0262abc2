//! Whether a process of a set still runs: if its recorder was killed, nobody saw its end, and its number may be another
//! process's by now.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use store::set::Process;

/// One of the ticks in which the kernel tells when a process began, in ns.
const TICK_NS: i64 = 10_000_000;
/// How far a beginning may be off, in ns: the kernel counts from its own start, and the clock may have been set since.
const SLACK_NS: i64 = 5_000_000_000;

/// Returns whether a process runs, as far as this machine knows.
pub fn is_running(process: &Process) -> bool {
    let is_its = |began: i64| began < process.start_unix_ns.saturating_add(SLACK_NS);
    process.end_unix_ns.is_none() && began_unix_ns(process.pid).is_some_and(is_its)
}

/// Returns when a process began, in ns since 1970; `None` if there is none of that number.
fn began_unix_ns(pid: i32) -> Option<i64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    let now = i64::try_from(now.as_nanos()).ok()?;
    let uptime = fs::read_to_string("/proc/uptime").ok()?;
    let uptime: f64 = uptime.split(' ').next()?.parse().ok()?;
    let ticks = began_ticks(pid)?;
    Some(now - (uptime * 1e9) as i64 + ticks.saturating_mul(TICK_NS))
}

/// Returns when a process began, in the kernel's ticks.
fn began_ticks(pid: i32) -> Option<i64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses and may contain any character. The state is the 3rd field, the start the 22nd.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    match fields.next()? {
        // The first thread may have ended before the others.
        "Z" | "X" if !has_threads(pid) => None,
        _ => fields.nth(18)?.parse().ok(),
    }
}

fn has_threads(pid: i32) -> bool {
    fs::read_dir(format!("/proc/{pid}/task")).is_ok_and(|tasks| tasks.count() > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_runs_if_its_number_is_still_its_own() {
        let own = std::process::id() as i32;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let now = i64::try_from(now.as_nanos()).unwrap();
        let process = |pid, start_unix_ns, end_unix_ns| Process {
            pid,
            start_unix_ns,
            end_unix_ns,
            ..Process::default()
        };
        assert!(is_running(&process(own, now, None)));
        assert!(!is_running(&process(own, now, Some(now))), "it has ended");
        let hour = 3_600_000_000_000;
        let long_ago = process(own, now - 24 * hour, None);
        assert!(!is_running(&long_ago), "the number is another's by now");
        assert!(!is_running(&process(i32::MAX, now, None)));
    }
}

//! Limits (getrlimit(2)): what the runtime reserves in a program counts towards those of its memory, and so does our own
//! memory; what both share counts as a file, and we need more descriptors than the program.
//!
//! Invariant: a program starts with the limits that we were started with, and may use as much memory as without us: its
//! limits are raised by what is reserved. The runtime shows the program the lower limits.

use std::{io, sync::OnceLock};

use agent::shared::TOTAL_BYTES;
use debuginfo::Diagnostic;
use libc::{RLIM_INFINITY, RLIMIT_AS, RLIMIT_DATA, RLIMIT_FSIZE, RLIMIT_NOFILE, rlimit};

const NONE: rlimit = rlimit {
    rlim_cur: RLIM_INFINITY,
    rlim_max: RLIM_INFINITY,
};
/// Minimum that we need in addition to the shared memory.
const OWN_BYTES: u64 = 1 << 30;
/// The limits that are lifted in this process.
const LIFTED: [libc::__rlimit_resource_t; 4] =
    [RLIMIT_AS, RLIMIT_FSIZE, RLIMIT_DATA, RLIMIT_NOFILE];
/// What they were at its start.
static OWN: OnceLock<[rlimit; 4]> = OnceLock::new();

/// Lifts our own limits. Programs that we start do not inherit them, see [`put_back_own`].
///
/// # Errors
/// Why not, if the memory shared with a program exceeds what is permitted.
pub fn lift_own() -> Result<(), Diagnostic> {
    let [space, file, ..] = OWN.get_or_init(|| {
        LIFTED.map(|resource| {
            let found = get(0, resource).unwrap_or(NONE);
            lift(0, resource, found);
            found
        })
    });
    let is_below =
        |resource, least: u64| get(0, resource).is_ok_and(|now: rlimit| now.rlim_cur < least);
    if is_below(RLIMIT_AS, TOTAL_BYTES + OWN_BYTES) {
        return Err(why_refused(*space));
    }
    // The kernel ends processes that exceed this one, by SIGXFSZ.
    if is_below(RLIMIT_FSIZE, TOTAL_BYTES) {
        return Err(why_no_file(*file));
    }
    Ok(())
}

fn why_no_file(size: rlimit) -> Diagnostic {
    Diagnostic::new(format!(
        "its files are limited to {} kB (ulimit -f), and the limit must not be raised to the {} GB of memory that Hindsight shares with it",
        size.rlim_cur >> 10,
        TOTAL_BYTES >> 30
    ))
    .with_hint("record it without that limit, with a soft one (ulimit -S -f), or as root")
}

fn why_refused(space: rlimit) -> Diagnostic {
    Diagnostic::new(format!(
        "its address space is limited to {} kB (ulimit -v), and the limit must not be raised by what Hindsight reserves (34 TiB)",
        space.rlim_cur >> 10
    ))
    .with_hint("record it without that limit, with a soft one (ulimit -S -v), or as root")
}

/// Says that the limit is the daemon's, which keeps that of the shell it was started from.
pub fn of_daemon(reason: Diagnostic) -> Diagnostic {
    let pid = std::process::id();
    reason
        .map(|message| message.replacen("its", "the daemon's", 1))
        .with_hint(format!(
            "the daemon has it from the shell that started it: stop its sessions, end it (kill {pid}), and start again without that limit or with a soft one (ulimit -S)"
        ))
}

/// Restores the original limits in the calling process. Async-signal-safe.
pub fn put_back_own() {
    let Some(own) = OWN.get() else {
        return;
    };
    for (resource, limit) in LIFTED.into_iter().zip(own) {
        // Cannot fail: limits may always be lowered again.
        let _ = set(0, resource, *limit);
    }
}

/// The limits of a program, lifted while the runtime is loaded. Restored on drop.
#[derive(Debug)]
pub struct Lifted {
    pid: i32,
    space: rlimit,
    data: rlimit,
    is_settled: bool,
}

impl Lifted {
    /// Lifts the limits of `pid`, in which `reserved_bytes` are to be reserved.
    ///
    /// # Errors
    /// Why not, if its limits must not be raised by that much.
    pub fn of(pid: i32, reserved_bytes: u64) -> Result<Self, Diagnostic> {
        let space = get(pid, RLIMIT_AS).unwrap_or(NONE);
        let data = get(pid, RLIMIT_DATA).unwrap_or(NONE);
        let lifted = lift(pid, RLIMIT_AS, space);
        if lifted < raised(space.rlim_cur, reserved_bytes) {
            // Restores the limit: a program that we did not start continues.
            let _ = set(pid, RLIMIT_AS, space);
            return Err(why_refused(space));
        }
        lift(pid, RLIMIT_DATA, data);
        Ok(Self {
            pid,
            space,
            data,
            is_settled: false,
        })
    }

    /// Sets the limits to the old ones plus what was reserved. Returns by how much the limit on data was raised; if it
    /// must not be raised, it stays as it was.
    ///
    /// # Errors
    /// If they cannot be set.
    pub fn settle(mut self, space_bytes: u64, data_bytes: u64) -> io::Result<u64> {
        self.is_settled = true;
        let space = by(self.space, space_bytes);
        let data = by(self.data, data_bytes);
        put(self.pid, RLIMIT_AS, space)?;
        match put(self.pid, RLIMIT_DATA, data) {
            Ok(()) => Ok(data_bytes),
            Err(_) => put(self.pid, RLIMIT_DATA, self.data).map(|()| 0),
        }
    }
}

impl Drop for Lifted {
    fn drop(&mut self) {
        if !self.is_settled {
            // A process that is gone needs no limits.
            let _ = put(self.pid, RLIMIT_DATA, self.data);
            let _ = put(self.pid, RLIMIT_AS, self.space);
        }
    }
}

/// Replaces a lifted limit. An unlimited one was not lifted, and the process may be another user's.
fn put(pid: i32, resource: libc::__rlimit_resource_t, limit: rlimit) -> io::Result<()> {
    match limit.rlim_cur {
        RLIM_INFINITY => Ok(()),
        _ => set(pid, resource, limit),
    }
}

/// Lifts a limit as far as permitted. Returns the new limit.
fn lift(pid: i32, resource: libc::__rlimit_resource_t, found: rlimit) -> u64 {
    if found.rlim_cur == RLIM_INFINITY || set(pid, resource, NONE).is_ok() {
        return RLIM_INFINITY;
    }
    let highest = rlimit {
        rlim_cur: found.rlim_max,
        ..found
    };
    match set(pid, resource, highest) {
        Ok(()) => highest.rlim_cur,
        Err(_) => found.rlim_cur,
    }
}

fn by(limit: rlimit, bytes: u64) -> rlimit {
    rlimit {
        rlim_cur: raised(limit.rlim_cur, bytes),
        rlim_max: raised(limit.rlim_max, bytes),
    }
}

/// No limit stays no limit.
fn raised(limit: u64, bytes: u64) -> u64 {
    limit.saturating_add(bytes)
}

fn get(pid: i32, resource: libc::__rlimit_resource_t) -> io::Result<rlimit> {
    let mut found = NONE;
    // SAFETY: queries a limit and sets none; `found` is ours.
    match unsafe { libc::prlimit(pid, resource, std::ptr::null(), &mut found) } {
        0 => Ok(found),
        _ => Err(io::Error::last_os_error()),
    }
}

fn set(pid: i32, resource: libc::__rlimit_resource_t, limit: rlimit) -> io::Result<()> {
    // SAFETY: sets a limit and queries none; `limit` is ours.
    match unsafe { libc::prlimit(pid, resource, &limit, std::ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_the_daemon_is_called_so() {
        let own = why_refused(rlimit {
            rlim_cur: 4 << 20,
            rlim_max: 4 << 20,
        });
        assert!(own.message.starts_with("its address space is limited"));
        let told = of_daemon(own);
        let begins = "the daemon's address space is limited to 4096 kB";
        assert!(told.message.starts_with(begins), "{}", told.message);
        assert!(told.hint.is_some_and(|hint| hint.contains("end it (kill ")));
    }

    #[test]
    fn a_limit_is_raised_and_none_stays_none() {
        let limit = rlimit {
            rlim_cur: 5 << 20,
            rlim_max: RLIM_INFINITY,
        };
        let raised = by(limit, 1 << 40);
        assert_eq!(raised.rlim_cur, (1 << 40) + (5 << 20));
        assert_eq!(raised.rlim_max, RLIM_INFINITY);
    }
}

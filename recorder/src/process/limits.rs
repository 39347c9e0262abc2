//! Limits on memory (getrlimit(2)): what the runtime reserves in a program counts for them, and our own memory does.
//!
//! Invariant: a program starts with the limits that we were started with, and may use as much memory as it may alone: its
//! limits are raised by what is reserved. The runtime tells it the lower ones.

use std::{io, sync::OnceLock};

use agent::shared::TOTAL_BYTES;
use debuginfo::Diagnostic;
use libc::{RLIM_INFINITY, RLIMIT_AS, RLIMIT_DATA, rlimit};

const NONE: rlimit = rlimit {
    rlim_cur: RLIM_INFINITY,
    rlim_max: RLIM_INFINITY,
};
/// Less than this beside the shared memory is not enough for us.
const OWN_BYTES: u64 = 1 << 30;
/// Of this process as it was started: on address space, then on data.
static OWN: OnceLock<[rlimit; 2]> = OnceLock::new();

/// Lifts our own limits. Programs that we start do not inherit that: [`put_back_own`].
///
/// # Errors
/// Why not, when the memory that is shared with a program does not fit into what is permitted.
pub fn lift_own() -> Result<(), Diagnostic> {
    let [found, _] = OWN.get_or_init(|| {
        [RLIMIT_AS, RLIMIT_DATA].map(|resource| {
            let found = get(0, resource).unwrap_or(NONE);
            lift(0, resource, found);
            found
        })
    });
    match get(0, RLIMIT_AS).unwrap_or(NONE).rlim_cur < TOTAL_BYTES + OWN_BYTES {
        true => Err(why_refused(*found)),
        false => Ok(()),
    }
}

fn why_refused(space: rlimit) -> Diagnostic {
    Diagnostic::new(format!(
        "its address space is limited to {} kB (ulimit -v), and the limit must not be raised by what Hindsight reserves (34 TiB)",
        space.rlim_cur >> 10
    ))
    .with_hint("record it without that limit, with a soft one (ulimit -S -v), or as root")
}

/// Gives the calling process the limits back that were lifted. Async-signal-safe.
pub fn put_back_own() {
    if let Some([space, data]) = OWN.get() {
        // What was lifted may be lowered.
        let _ = set(0, RLIMIT_AS, *space);
        let _ = set(0, RLIMIT_DATA, *data);
    }
}

/// The limits of a program that are lifted while the runtime is brought in; as they were when dropped.
#[derive(Debug)]
pub struct Lifted {
    pid: i32,
    space: rlimit,
    data: rlimit,
    is_settled: bool,
}

impl Lifted {
    /// Lifts the limits of `pid`, in which so many bytes are to be reserved.
    ///
    /// # Errors
    /// Why they cannot be, when its limits must not be raised by so much.
    pub fn of(pid: i32, reserved_bytes: u64) -> Result<Self, Diagnostic> {
        let space = get(pid, RLIMIT_AS).unwrap_or(NONE);
        let data = get(pid, RLIMIT_DATA).unwrap_or(NONE);
        let lifted = lift(pid, RLIMIT_AS, space);
        if lifted < raised(space.rlim_cur, reserved_bytes) {
            // It is as it was: the program of others goes on.
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

    /// Sets the limits, by what was reserved more than they were. Returns by how much that on data is higher: one that must
    /// not be raised has to do.
    ///
    /// # Errors
    /// When they could not be set.
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
            // A process that has gone needs none.
            let _ = put(self.pid, RLIMIT_DATA, self.data);
            let _ = put(self.pid, RLIMIT_AS, self.space);
        }
    }
}

/// Sets a limit in place of a lifted one. None was not lifted, and may be another user's.
fn put(pid: i32, resource: libc::__rlimit_resource_t, limit: rlimit) -> io::Result<()> {
    match limit.rlim_cur {
        RLIM_INFINITY => Ok(()),
        _ => set(pid, resource, limit),
    }
}

/// Lifts a limit as far as permitted. Returns what it is then.
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

/// No limit stays none.
fn raised(limit: u64, bytes: u64) -> u64 {
    limit.saturating_add(bytes)
}

fn get(pid: i32, resource: libc::__rlimit_resource_t) -> io::Result<rlimit> {
    let mut found = NONE;
    // SAFETY: asks for a limit and sets none; `found` is ours.
    match unsafe { libc::prlimit(pid, resource, std::ptr::null(), &mut found) } {
        0 => Ok(found),
        _ => Err(io::Error::last_os_error()),
    }
}

fn set(pid: i32, resource: libc::__rlimit_resource_t, limit: rlimit) -> io::Result<()> {
    // SAFETY: sets a limit and asks for none; `limit` is ours.
    match unsafe { libc::prlimit(pid, resource, &limit, std::ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

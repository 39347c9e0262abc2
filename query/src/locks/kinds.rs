//! What a function does with locks, by its name.

use replay::library_name;
use serde::Serialize;

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A mutex.
    Mutex,
    /// A read-write lock, locked by a reader.
    Read,
    /// The same, taken by a writer.
    Write,
    /// A spin lock.
    Spin,
    /// A condition variable.
    Condition,
    /// A semaphore.
    Semaphore,
    /// A word of memory that the program's own code waits at, by the system call futex.
    Futex,
}

impl Kind {
    /// Returns its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Mutex => "mutex",
            Kind::Read => "read",
            Kind::Write => "write",
            Kind::Spin => "spin",
            Kind::Condition => "condition",
            Kind::Semaphore => "semaphore",
            Kind::Futex => "futex",
        }
    }

    /// Returns whether the taker holds it until an unlock.
    #[must_use]
    pub fn is_held(self) -> bool {
        !matches!(self, Kind::Condition | Kind::Semaphore | Kind::Futex)
    }

    /// Returns whether a thread that holds it this way excludes others that want it as `other`.
    #[must_use]
    pub fn keeps_out(self, other: Kind) -> bool {
        self.is_held() && (self, other) != (Kind::Read, Kind::Read)
    }
}

/// What a function does. The lock is its first argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Takes a lock, and waits for it.
    Takes(Kind),
    /// Takes a lock if that is free.
    Tries(Kind),
    /// Gives a lock back.
    Gives,
    /// Waits for a condition. The mutex in the second argument is unlocked meanwhile.
    Waits,
    /// Waits for one of Rust's locks. Taking a free lock is inlined into its callers.
    RustTakes(Kind),
    /// Unlocks one of Rust's locks that others may wait for.
    RustGives,
    /// Waits for one of Rust's condition variables.
    RustWaits,
    /// Makes a system call: futex or another.
    Calls,
    /// Waits by the system call futex, whose second argument is the address.
    FutexWaits,
    /// Wakes those who wait so.
    FutexWakes,
}

/// The number of the system call.
const FUTEX: u64 = 202;
/// Its operations, without flags.
const OPERATION: u64 = 0x7f;

impl Act {
    /// Returns what a call with these arguments does, and with which lock; `None`: nothing with locks.
    #[must_use]
    pub fn of_call(self, args: &[u64; 4]) -> Option<(Act, u64)> {
        match (self, args[0], args[2] & OPERATION) {
            (Act::Calls, FUTEX, 0 | 6 | 9 | 11 | 13) => Some((Act::FutexWaits, args[1])),
            (Act::Calls, FUTEX, 1 | 3 | 4 | 5 | 7 | 10) => Some((Act::FutexWakes, args[1])),
            (Act::Calls, ..) => None,
            _ => Some((self, args[0])),
        }
    }
}

/// Returns what a function, or its stub in the procedure linkage table, does with locks, if anything.
#[must_use]
pub fn act(name: &str) -> Option<Act> {
    let called = name.strip_suffix("@plt").unwrap_or(name);
    rust(&name.replace(['<', '>'], ""))
        .or_else(|| posix(library_name(called).trim_start_matches('_')))
}

fn posix(name: &str) -> Option<Act> {
    Some(match name {
        "pthread_mutex_lock" | "pthread_mutex_timedlock" | "pthread_mutex_clocklock" => {
            Act::Takes(Kind::Mutex)
        }
        "pthread_mutex_trylock" => Act::Tries(Kind::Mutex),
        "pthread_rwlock_rdlock" | "pthread_rwlock_timedrdlock" | "pthread_rwlock_clockrdlock" => {
            Act::Takes(Kind::Read)
        }
        "pthread_rwlock_tryrdlock" => Act::Tries(Kind::Read),
        "pthread_rwlock_wrlock" | "pthread_rwlock_timedwrlock" | "pthread_rwlock_clockwrlock" => {
            Act::Takes(Kind::Write)
        }
        "pthread_rwlock_trywrlock" => Act::Tries(Kind::Write),
        "pthread_spin_lock" => Act::Takes(Kind::Spin),
        "pthread_spin_trylock" => Act::Tries(Kind::Spin),
        "pthread_mutex_unlock" | "pthread_rwlock_unlock" | "pthread_spin_unlock" => Act::Gives,
        // In glibc for x86-64 it is the same code as `pthread_spin_unlock`: a lock is free afterwards, whichever was called.
        "pthread_spin_init" => Act::Gives,
        "pthread_cond_wait" | "pthread_cond_timedwait" | "pthread_cond_clockwait" => Act::Waits,
        "sem_wait" | "new_sem_wait" | "sem_timedwait" | "sem_clockwait" => {
            Act::Takes(Kind::Semaphore)
        }
        "sem_trywait" | "new_sem_trywait" => Act::Tries(Kind::Semaphore),
        "syscall" => Act::Calls,
        _ => return None,
    })
}

fn rust(name: &str) -> Option<Act> {
    let is_rust = name.starts_with("std::sys") && name.contains("futex");
    let mut parts = name.rsplit("::");
    let (function, of) = (parts.next()?, parts.next()?);
    Some(match (of, function) {
        _ if !is_rust => return None,
        ("Mutex", "lock_contended") => Act::RustTakes(Kind::Mutex),
        ("RwLock", "read_contended") => Act::RustTakes(Kind::Read),
        ("RwLock", "write_contended") => Act::RustTakes(Kind::Write),
        ("Mutex", "wake") | ("RwLock", "wake_writer_or_readers") => Act::RustGives,
        ("Condvar", "wait" | "wait_timeout" | "wait_optional_timeout") => Act::RustWaits,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_known_by_any_of_their_names() {
        for (name, expected) in [
            ("pthread_mutex_lock", Act::Takes(Kind::Mutex)),
            ("___pthread_mutex_lock", Act::Takes(Kind::Mutex)),
            ("__pthread_rwlock_tryrdlock", Act::Tries(Kind::Read)),
            ("pthread_cond_clockwait", Act::Waits),
            ("__new_sem_wait", Act::Takes(Kind::Semaphore)),
            (
                "std::sys::sync::mutex::futex::Mutex::lock_contended",
                Act::RustTakes(Kind::Mutex),
            ),
            (
                "<std::sys::sync::mutex::futex::Mutex>::lock_contended",
                Act::RustTakes(Kind::Mutex),
            ),
            (
                "std::sys::sync::rwlock::futex::RwLock::wake_writer_or_readers",
                Act::RustGives,
            ),
        ] {
            assert_eq!(act(name), Some(expected), "{name}");
        }
        for name in ["pthread_mutex_init", "app::Mutex::wake", "lock"] {
            assert_eq!(act(name), None, "{name}");
        }
    }

    #[test]
    fn a_system_call_waits_if_it_is_a_futex_that_does() {
        let futex = |operation| Act::Calls.of_call(&[202, 0x1000, operation, 0]);
        assert_eq!(futex(0x80), Some((Act::FutexWaits, 0x1000)));
        assert_eq!(futex(0x81), Some((Act::FutexWakes, 0x1000)));
        assert_eq!(Act::Calls.of_call(&[39, 0, 0, 0]), None);
        assert_eq!(Act::Gives.of_call(&[202, 1, 2, 3]), Some((Act::Gives, 202)));
    }

    #[test]
    fn readers_keep_out_writers_only() {
        assert!(!Kind::Read.keeps_out(Kind::Read));
        assert!(Kind::Read.keeps_out(Kind::Write));
        assert!(Kind::Write.keeps_out(Kind::Read));
        assert!(!Kind::Semaphore.keeps_out(Kind::Semaphore));
    }
}

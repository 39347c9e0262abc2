//! The functions that `--memory` and `--locks` record in addition to those that patterns select: functions of the C and C++ libraries
//! by their exported names, and of Rust's library if it is linked into the program.

use debuginfo::Glob;

use super::filter::Subject;
use super::inner;
use crate::options::Captures;

/// Functions of the C library that allocate, free and map.
const MEMORY: [&str; 16] = [
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "free",
    "cfree",
    "aligned_alloc",
    "memalign",
    "posix_memalign",
    "valloc",
    "pvalloc",
    "mmap",
    "mmap64",
    "munmap",
    "mremap",
    inner::ALIGNED,
];
/// The linker's names of C++'s `operator new` and `operator delete`.
const OPERATORS: [&str; 4] = ["_Znw*", "_Zna*", "_Zdl*", "_Zda*"];
/// Rust's allocator, if it is not inlined.
const RUST_MEMORY: [&str; 6] = [
    "*__rust_alloc",
    "*__rust_alloc_zeroed",
    "*__rust_dealloc",
    "*__rust_realloc",
    "*__rdl_*alloc*",
    "*__rg_*alloc*",
];
/// Functions of the C library that lock, unlock or wait.
const LOCKS: [&str; 25] = [
    "pthread_mutex_lock",
    "pthread_mutex_trylock",
    "pthread_mutex_timedlock",
    "pthread_mutex_clocklock",
    "pthread_mutex_unlock",
    "pthread_rwlock_rdlock",
    "pthread_rwlock_tryrdlock",
    "pthread_rwlock_timedrdlock",
    "pthread_rwlock_clockrdlock",
    "pthread_rwlock_wrlock",
    "pthread_rwlock_trywrlock",
    "pthread_rwlock_timedwrlock",
    "pthread_rwlock_clockwrlock",
    "pthread_rwlock_unlock",
    "pthread_cond_wait",
    "pthread_cond_timedwait",
    "pthread_cond_clockwait",
    "pthread_spin_lock",
    "pthread_spin_trylock",
    "pthread_spin_unlock",
    "sem_wait",
    "sem_timedwait",
    "sem_clockwait",
    "sem_trywait",
    // Rust's and other custom locks wait by these.
    "syscall",
];
/// Functions that Rust's locks call when they have to wait, and when others may wait for them.
const RUST_LOCKS: [&str; 6] = [
    "*std::sys*Mutex*::lock_contended",
    "*std::sys*Mutex*::wake",
    "*std::sys*RwLock*::read_contended",
    "*std::sys*RwLock*::write_contended",
    "*std::sys*RwLock*::wake_writer_or_readers",
    "*std::sys*Condvar*::wait*",
];
/// Files of the C++ library.
const CXX_LIBRARY: [&str; 3] = ["libstdc++.so.", "libc++.so.", "libc++abi.so."];

/// Names of functions.
#[derive(Clone, Debug, Default)]
pub struct Also {
    exported: Vec<&'static str>,
    globs: Vec<Glob>,
    has_operators: bool,
}

impl Also {
    /// Returns the functions that the captures need.
    #[must_use]
    pub fn of(captures: &Captures) -> Also {
        let mut also = Also::default();
        let mut patterns: Vec<&str> = Vec::new();
        if captures.memory {
            also.exported.extend(MEMORY);
            patterns.extend(OPERATORS.iter().chain(&RUST_MEMORY));
            also.has_operators = true;
        }
        if captures.locks {
            also.exported.extend(LOCKS);
            patterns.extend(RUST_LOCKS);
        }
        also.globs = patterns.into_iter().map(Glob::new).collect();
        also
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.exported.is_empty()
    }

    /// Returns whether one of them is known only by its place: `inner::aligned`.
    #[must_use]
    pub fn has_inner(&self) -> bool {
        self.exported.contains(&inner::ALIGNED)
    }

    /// Returns whether a library of this file name, other than the C library, may have some.
    #[must_use]
    pub fn is_in(&self, file_name: &str) -> bool {
        self.has_operators && CXX_LIBRARY.iter().any(|start| file_name.starts_with(start))
    }

    /// Returns whether a stub, `NAME@plt`, jumps to a function of the C library that locks or unlocks: a few of these begin with loops,
    /// and cannot be patched.
    #[must_use]
    pub fn has_stub(&self, linkage: &str) -> bool {
        let target = linkage.strip_suffix("@plt");
        target.is_some_and(|target| LOCKS.contains(&target) && self.exported.contains(&target))
    }

    /// Returns whether a function is one.
    #[must_use]
    pub fn has(&self, subject: Subject<'_>) -> bool {
        if self.has_stub(subject.linkage) {
            return true;
        }
        let is_exported = |name: &str| self.exported.contains(&name);
        is_exported(subject.linkage)
            || is_exported(subject.name)
            || subject.aliases.iter().any(|alias| is_exported(alias))
            || self
                .globs
                .iter()
                .any(|glob| glob.matches(subject.linkage) || glob.matches(subject.name))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::filter::Place;
    use super::*;

    fn has(captures: &Captures, name: &str, linkage: &str) -> bool {
        Also::of(captures).has(Subject {
            name,
            linkage,
            aliases: &[],
            file: None,
            module: Place {
                path: Path::new("/opt/app"),
                is_c_library: false,
            },
        })
    }

    #[test]
    fn each_option_has_its_functions() {
        let memory = Captures {
            memory: true,
            ..Captures::default()
        };
        let locks = Captures {
            locks: true,
            ..Captures::default()
        };
        assert!(Also::of(&Captures::default()).is_empty());
        assert!(has(&memory, "malloc", "malloc"));
        assert!(has(&memory, "operator new(unsigned long)", "_Znwm"));
        assert!(has(
            &memory,
            "__rustc::__rust_alloc",
            "_RNvCs_7___rustc12___rust_alloc"
        ));
        assert!(!has(&memory, "malloc@plt", "malloc@plt"));
        assert!(!has(&memory, "sem_trywait@plt", "sem_trywait@plt"));
        assert!(has(&locks, "sem_trywait@plt", "sem_trywait@plt"));
        assert!(!has(&memory, "malloc_usable_size", "malloc_usable_size"));
        assert!(!has(&memory, "pthread_mutex_lock", "pthread_mutex_lock"));
        assert!(has(&locks, "pthread_mutex_lock", "pthread_mutex_lock"));
        for contended in [
            "std::sys::sync::mutex::futex::Mutex::lock_contended",
            "<std::sys::sync::mutex::futex::Mutex>::lock_contended",
        ] {
            assert!(has(&locks, contended, "_ZN3std3sys"));
        }
        assert!(!has(&locks, "malloc", "malloc"));
        assert!(Also::of(&memory).is_in("libstdc++.so.6.0.28"));
        assert!(!Also::of(&locks).is_in("libstdc++.so.6"));
    }
}

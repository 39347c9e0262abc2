//! Signals that reach the recorder while it records.
//!
//! Ctrl-C and Ctrl-\ are for the program, which receives them from the terminal as we do. If we started the program,
//! they are ignored here, except before the program is released, when it may not have existed to receive them. If we
//! attached, they end the recording. SIGTERM and SIGHUP are passed on to a program that we started, and end the
//! recording of one that we attached to.

use std::sync::atomic::{AtomicI32, Ordering::*};

const WATCHED: [i32; 4] = [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP];

static RECEIVED: AtomicI32 = AtomicI32::new(0);

extern "C" fn note(signal: i32) {
    RECEIVED.store(signal, SeqCst);
}

/// The signal dispositions at the start, to restore in the child.
#[derive(Clone, Copy)]
pub struct ChildSignals {
    found: [libc::sigaction; WATCHED.len()],
}

impl ChildSignals {
    /// Installs our handlers.
    pub fn watch() -> Self {
        // SAFETY: all zeroes is a valid sigaction.
        let mut found: [libc::sigaction; WATCHED.len()] = unsafe { std::mem::zeroed() };
        for (signal, found) in WATCHED.iter().zip(&mut found) {
            // SAFETY: the handler only stores to an atomic; both structures are ours.
            unsafe {
                let mut ours: libc::sigaction = std::mem::zeroed();
                ours.sa_sigaction = note as *const () as usize;
                ours.sa_flags = libc::SA_RESTART;
                libc::sigaction(*signal, &ours, found);
            }
        }
        Self { found }
    }

    /// Saves the current dispositions without changing them.
    pub fn unwatched() -> Self {
        // SAFETY: all zeroes is a valid sigaction.
        let mut found: [libc::sigaction; WATCHED.len()] = unsafe { std::mem::zeroed() };
        for (signal, found) in WATCHED.iter().zip(&mut found) {
            // SAFETY: only queries; the structure is ours.
            unsafe { libc::sigaction(*signal, std::ptr::null(), found) };
        }
        Self { found }
    }

    /// Restores the saved dispositions. Async-signal-safe.
    pub fn restore(&self) {
        for (signal, found) in WATCHED.iter().zip(&self.found) {
            // SAFETY: `found` came from sigaction.
            unsafe { libc::sigaction(*signal, found, std::ptr::null_mut()) };
        }
    }
}

/// Takes the last signal received, if any.
pub fn take() -> Option<i32> {
    match RECEIVED.swap(0, SeqCst) {
        0 => None,
        signal => Some(signal),
    }
}

/// Makes signals that are sent to this process interrupt its other threads, not the calling one.
pub fn leave_signals_to_other_threads() {
    // SAFETY: `all` is ours, and `sigfillset` makes it a valid set.
    unsafe {
        let mut all = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &all, std::ptr::null_mut());
    }
}

/// Sends a signal to a process.
pub fn send(pid: i32, signal: i32) {
    // SAFETY: no memory is passed.
    unsafe { libc::kill(pid, signal) };
}

/// Returns the last signal received without taking it from [`take`].
pub fn received() -> Option<i32> {
    match RECEIVED.load(SeqCst) {
        0 => None,
        signal => Some(signal),
    }
}

/// The action of this process for a signal, to restore after other code has changed it.
#[derive(Clone, Copy)]
pub struct SignalAction {
    signal: i32,
    action: libc::sigaction,
}

impl SignalAction {
    /// Saves the current action for a signal.
    #[must_use]
    pub fn now(signal: i32) -> Self {
        // SAFETY: all zeroes is a valid sigaction, which is ours; the call only queries.
        let action = unsafe {
            let mut found: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &mut found);
            found
        };
        Self { signal, action }
    }

    /// Returns the signal.
    #[must_use]
    pub fn signal(&self) -> i32 {
        self.signal
    }

    /// Returns whether it is that of a program which does not handle the signal.
    #[must_use]
    pub fn is_default(&self) -> bool {
        self.action.sa_sigaction == libc::SIG_DFL
    }

    /// Restores the saved action.
    pub fn put_back(&self) {
        // SAFETY: the action came from sigaction in this process.
        unsafe { libc::sigaction(self.signal, &self.action, std::ptr::null_mut()) };
    }
}

//! Detects when a core is idle.
//!
//! A thread that has lowered its priority cannot raise it again, and may not run for seconds while all cores are busy. So it only
//! reports that it runs, without a lock that others need: the work itself keeps its priority, and can be ended at once.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    thread::{self, Thread},
};

/// The state that the two threads share.
#[derive(Debug)]
struct Shared {
    asker: Thread,
    is_asked: AtomicBool,
    is_idle: AtomicBool,
    is_over: AtomicBool,
}

/// A thread of lowest priority that signals another one when it runs.
#[derive(Debug)]
pub(super) struct IdleCore {
    shared: Arc<Shared>,
    scout: Thread,
}

impl IdleCore {
    /// Starts it for the calling thread.
    ///
    /// # Errors No more threads can be created.
    pub fn watch() -> io::Result<Self> {
        let shared = Arc::new(Shared {
            asker: thread::current(),
            is_asked: AtomicBool::new(false),
            is_idle: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
        });
        let of_scout = Arc::clone(&shared);
        let scout = thread::Builder::new()
            .name("idle-core".to_owned())
            .spawn(move || of_scout.answer())?;
        // It is never joined: it ends when a core is idle.
        Ok(Self {
            shared,
            scout: scout.thread().clone(),
        })
    }

    /// Waits until a core is idle, or `is_given_up`. The thread that makes the latter true wakes this thread.
    pub fn wait(&self, is_given_up: impl Fn() -> bool) {
        self.shared.is_idle.store(false, SeqCst);
        self.shared.is_asked.store(true, SeqCst);
        self.scout.unpark();
        while !self.shared.is_idle.load(SeqCst) && !is_given_up() {
            thread::park();
        }
    }
}

impl Drop for IdleCore {
    fn drop(&mut self) {
        self.shared.is_over.store(true, SeqCst);
        self.scout.unpark();
    }
}

impl Shared {
    fn answer(&self) {
        yield_to_others();
        while !self.is_over.load(SeqCst) {
            match self.is_asked.swap(false, SeqCst) {
                true => {
                    self.is_idle.store(true, SeqCst);
                    self.asker.unpark();
                }
                false => thread::park(),
            }
        }
    }
}

/// Makes this thread run only on an otherwise idle core (sched(7), SCHED_IDLE).
fn yield_to_others() {
    let none = libc::sched_param { sched_priority: 0 };
    // SAFETY: the parameter is ours. Without the right to change it, the priority stays as it was.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &none) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_core_is_told_again_and_again() {
        let core = IdleCore::watch().unwrap();
        for _ in 0..100 {
            core.wait(|| false);
        }
    }

    #[test]
    fn waiting_ends_when_it_is_given_up() {
        // There is no answer.
        let shared = Arc::new(Shared {
            asker: thread::current(),
            is_asked: AtomicBool::new(false),
            is_idle: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
        });
        let core = IdleCore {
            shared,
            scout: thread::current(),
        };
        let is_over = Arc::new(AtomicBool::new(false));
        let (asker, told) = (thread::current(), Arc::clone(&is_over));
        let other = thread::spawn(move || {
            told.store(true, SeqCst);
            asker.unpark();
        });
        core.wait(|| is_over.load(SeqCst));
        other.join().unwrap();
        assert!(is_over.load(SeqCst));
    }
}

//! The recorder's sleep between two passes over the rings. The recorder chooses its length; any thread with work for
//! it ends it. Threads of the program do so while they still have room: before a ring is full, not with each record.

use std::{
    ptr,
    sync::atomic::Ordering::{Relaxed, SeqCst},
    time::Duration,
};

use super::Shared;

pub(super) const SLEEPS: u32 = 1;
pub(super) const SLEEPS_ALONE: u32 = 2;

impl Shared {
    /// Announces that the calling thread is about to sleep. A write or request from now on ends the sleep; the caller
    /// must check again for earlier ones. `by_program`: threads of the program may make the system call that ends it.
    pub fn about_to_sleep(&self, by_program: bool) {
        let word = if by_program { SLEEPS } else { SLEEPS_ALONE };
        self.control().recorder_sleeps.store(word, SeqCst);
    }

    /// Cancels the announcement.
    pub fn stay_awake(&self) {
        self.control().recorder_sleeps.store(0, SeqCst);
    }

    /// Sleeps, after [`about_to_sleep`](Self::about_to_sleep), for at most `longest` if that is given. Returns whether
    /// the sleep was ended early.
    pub fn sleep(&self, longest: Option<Duration>) -> bool {
        let word = &self.control().recorder_sleeps;
        let expected = word.load(Relaxed);
        let timeout = longest.map(|longest| libc::timespec {
            tv_sec: longest.as_secs().try_into().unwrap_or(libc::time_t::MAX),
            tv_nsec: longest.subsec_nanos().into(),
        });
        let timeout = timeout.as_ref().map_or(ptr::null(), ptr::from_ref);
        if expected != 0 {
            // SAFETY: waits on our own word; the timeout, if there is one, outlives the call.
            unsafe {
                libc::syscall(
                    libc::SYS_futex,
                    word.as_ptr(),
                    libc::FUTEX_WAIT,
                    expected,
                    timeout,
                )
            };
        }
        word.swap(0, SeqCst) == 0
    }

    /// Ends the recorder's sleep, if it sleeps.
    pub fn wake(&self) {
        let word = &self.control().recorder_sleeps;
        if word.load(SeqCst) != 0 && word.swap(0, SeqCst) != 0 {
            // SAFETY: wakes a waiter on our own word; no memory is touched.
            unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, 1) };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, thread, time::Instant};

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn shared() -> Arc<Shared> {
        // SAFETY: no arguments.
        let uid = unsafe { libc::getuid() };
        Arc::new(Shared::create(false, uid).unwrap())
    }

    #[test]
    fn what_comes_before_the_sleep_ends_it_at_once() {
        let shared = shared();
        shared.about_to_sleep(true);
        shared.wake();
        assert!(shared.sleep(Some(LONG)));
    }

    #[test]
    fn a_sleep_without_end_is_ended_by_another_thread() {
        let shared = shared();
        shared.about_to_sleep(false);
        let sleeper = thread::spawn({
            let shared = Arc::clone(&shared);
            move || shared.sleep(None)
        });
        shared.wake();
        assert!(sleeper.join().unwrap());
    }

    #[test]
    fn nobody_is_woken_who_stays_awake_and_time_ends_a_sleep() {
        let shared = shared();
        shared.about_to_sleep(true);
        shared.stay_awake();
        shared.wake();
        shared.about_to_sleep(true);
        let began = Instant::now();
        assert!(!shared.sleep(Some(Duration::from_millis(2))));
        assert!(began.elapsed() >= Duration::from_millis(2));
    }
}

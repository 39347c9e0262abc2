//! A flag: a client has gone, or no longer wants its answer. It ends a wait at once, without polling.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

type Wake = Box<dyn Fn() + Send>;

/// Set once the client has gone.
#[derive(Default)]
pub struct Gone {
    is_set: AtomicBool,
    /// Wakes a wait for something else.
    wake: Mutex<Option<Wake>>,
}

/// A registered wake-up; dropping it removes the registration.
pub struct Waiting<'a>(&'a Gone);

impl Gone {
    /// Sets the flag and wakes a registered wait.
    pub fn set(&self) {
        self.is_set.store(true, Ordering::Release);
        if let Some(wake) = &*self.wake() {
            wake();
        }
    }

    /// Clears the flag: the client wants answers again.
    pub fn clear(&self) {
        self.is_set.store(false, Ordering::Release);
    }

    /// Returns whether the flag is set.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Acquire)
    }

    /// Registers `wake`, to be called when the client goes. The caller checks [`Gone::is_set`] before it waits and
    /// after it is woken.
    #[must_use]
    pub fn waiting(&self, wake: impl Fn() + Send + 'static) -> Waiting<'_> {
        *self.wake() = Some(Box::new(wake));
        Waiting(self)
    }

    fn wake(&self) -> MutexGuard<'_, Option<Wake>> {
        self.wake.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        *self.0.wake() = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn who_goes_wakes_what_waits_and_nothing_else() {
        let gone = Gone::default();
        let (woken, wakes) = channel();
        drop(gone.waiting({
            let woken = woken.clone();
            move || woken.send("before").unwrap()
        }));
        let waiting = gone.waiting(move || woken.send("now").unwrap());
        gone.set();
        assert!(gone.is_set());
        drop(waiting);
        gone.set();
        assert_eq!(wakes.iter().collect::<Vec<_>>(), ["now"]);
    }
}

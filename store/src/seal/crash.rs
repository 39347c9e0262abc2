//! Names the moments at which a crash must do no harm; tests crash at each of them.

/// Passes one such moment.
#[cfg(not(test))]
#[inline]
pub(super) fn point() -> crate::error::Result<()> {
    Ok(())
}

#[cfg(test)]
pub(super) use armed::{arm, passed, point};

#[cfg(test)]
mod armed {
    use std::cell::Cell;
    use std::path::Path;

    use crate::error::{Error, Result};

    thread_local! {
        static PASSED: Cell<u32> = const { Cell::new(0) };
        static CRASH_AT: Cell<Option<u32>> = const { Cell::new(None) };
    }

    /// Makes this thread crash at the `crash_at`th point from now on, counting from 0.
    pub(in crate::seal) fn arm(crash_at: Option<u32>) {
        PASSED.set(0);
        CRASH_AT.set(crash_at);
    }

    /// Returns the number of points that this thread has passed since [`arm`].
    pub(in crate::seal) fn passed() -> u32 {
        PASSED.get()
    }

    /// Passes a point, or crashes there.
    pub(in crate::seal) fn point() -> Result<()> {
        let number = PASSED.replace(PASSED.get() + 1);
        match CRASH_AT.get() {
            Some(at) if number >= at => Err(Error::io("crash at", Path::new("point"))(
                std::io::Error::other("test"),
            )),
            _ => Ok(()),
        }
    }
}

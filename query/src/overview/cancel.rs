//! Ends an overview from another thread: before its next question to the recording, and within a few thousand calls while it counts them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::compare::Stop;
use crate::error::{Error, Result};

/// A handle that ends an overview. Its clones end the same one.
#[derive(Clone, Debug, Default)]
pub struct Cancel {
    is_set: Arc<AtomicBool>,
    counting: Stop,
}

impl Cancel {
    /// Ends the overview: it fails with [`Error::Stopped`].
    pub fn cancel(&self) {
        self.is_set.store(true, Ordering::Relaxed);
        self.counting.stop();
    }

    /// Returns what ends the pass over all calls.
    pub(super) fn counting(&self) -> &Stop {
        &self.counting
    }

    /// # Errors
    /// [`Error::Stopped`] if it was cancelled.
    pub(super) fn check(&self) -> Result<()> {
        match self.is_set.load(Ordering::Relaxed) {
            true => Err(Error::Stopped),
            false => Ok(()),
        }
    }
}

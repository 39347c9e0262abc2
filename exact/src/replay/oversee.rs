//! Long runs are overseen: who waits for them is asked, many times in a second, whether to go on.

use std::sync::Arc;

use super::Replay;
use crate::error::{Error, Result};

/// Is told the position from time to time, and says whether to go on.
pub type Overseer = Arc<dyn Fn(u64) -> bool + Send + Sync>;

impl Replay {
    /// From now on, runs are ended with [`Error::Interrupted`] when `overseer` says so. Then [`Self::recover`] is needed.
    pub fn oversee(&mut self, overseer: Option<Overseer>) {
        self.overseer = overseer;
    }

    pub(super) fn ask_overseer(&self) -> Result<()> {
        match &self.overseer {
            Some(goes_on) if !goes_on(self.now.count) => Err(Error::Interrupted),
            _ => Ok(()),
        }
    }

    /// Goes back to a moment that is right in any case, after a run that was interrupted anywhere.
    pub fn recover(&mut self) -> Result<()> {
        self.overseer = None;
        self.watch = None;
        self.found = None;
        let index = self.checkpoints.number(self.now.count);
        self.restore(index.unwrap_or(0))
    }
}

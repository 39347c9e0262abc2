//! Lines that a client runs when a breakpoint has stopped the program.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The lines of each breakpoint, by its number.
#[derive(Debug, Default)]
pub struct AtStops(Mutex<BTreeMap<u32, Vec<String>>>);

impl AtStops {
    /// Gives a breakpoint other lines, or none.
    pub fn set(&self, id: u32, lines: Vec<String>) {
        match lines.is_empty() {
            true => self.lock().remove(&id),
            false => self.lock().insert(id, lines),
        };
    }

    /// Returns the lines of a breakpoint.
    #[must_use]
    pub fn of(&self, id: u32) -> Vec<String> {
        self.lock().get(&id).cloned().unwrap_or_default()
    }

    /// Returns the numbers of all that have lines, in order.
    #[must_use]
    pub fn numbers(&self) -> Vec<u32> {
        self.lock().keys().copied().collect()
    }

    /// Takes over all lines of another session.
    pub fn take_over(&self, other: &AtStops) {
        let theirs = other.lock().clone();
        *self.lock() = theirs;
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, Vec<String>>> {
        // The entries are independent of each other.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

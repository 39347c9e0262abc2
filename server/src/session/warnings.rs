//! The warnings of a session, and which of them nobody has been told yet.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The warnings since the session began.
#[derive(Debug, Default)]
pub(super) struct Warnings(Mutex<Texts>);

#[derive(Debug, Default)]
struct Texts {
    all: Vec<String>,
    /// How many of the first ones were told.
    told: usize,
}

impl Warnings {
    /// Adds a warning.
    pub fn add(&self, text: &str) {
        self.texts().all.push(text.to_owned());
    }

    /// Returns all warnings.
    pub fn all(&self) -> Vec<String> {
        self.texts().all.clone()
    }

    /// Returns those that nobody has been told, which are told from now on.
    pub fn take_untold(&self) -> Vec<String> {
        let mut texts = self.texts();
        let untold = texts.all[texts.told..].to_vec();
        texts.told = texts.all.len();
        untold
    }

    fn texts(&self) -> MutexGuard<'_, Texts> {
        // Each change is one step.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::Warnings;

    #[test]
    fn each_warning_is_told_once() {
        let warnings = Warnings::default();
        warnings.add("one");
        assert_eq!(warnings.take_untold(), ["one"]);
        warnings.add("two");
        warnings.add("three");
        assert_eq!(warnings.take_untold(), ["two", "three"]);
        assert!(warnings.take_untold().is_empty());
        assert_eq!(warnings.all(), ["one", "two", "three"]);
    }
}

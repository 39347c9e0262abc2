//! The warnings of a session, and which of them nobody has been told yet.

use std::sync::{Mutex, MutexGuard, PoisonError};

use debuginfo::Diagnostic;

/// The warnings since the session began.
#[derive(Debug, Default)]
pub(super) struct Warnings(Mutex<Texts>);

#[derive(Debug, Default)]
struct Texts {
    all: Vec<Diagnostic>,
    /// How many of the first ones were told.
    told: usize,
}

impl Warnings {
    /// Adds a warning.
    pub fn add(&self, warning: Diagnostic) {
        self.texts().all.push(warning);
    }

    /// Returns all warnings.
    pub fn all(&self) -> Vec<Diagnostic> {
        self.texts().all.clone()
    }

    /// Returns those that nobody has been told, which are told from now on.
    pub fn take_untold(&self) -> Vec<Diagnostic> {
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
    use super::{Diagnostic, Warnings};

    #[test]
    fn each_warning_is_told_once() {
        let warnings = Warnings::default();
        warnings.add("one".into());
        assert_eq!(warnings.take_untold(), [Diagnostic::from("one")]);
        warnings.add("two".into());
        warnings.add("three".into());
        assert_eq!(
            warnings.take_untold(),
            ["two", "three"].map(Diagnostic::from)
        );
        assert!(warnings.take_untold().is_empty());
        let all = ["one", "two", "three"].map(Diagnostic::from);
        assert_eq!(warnings.all(), all);
    }
}

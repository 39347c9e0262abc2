//! A time limit for questions about a program. After it, memory reads fail, so that code walking through memory comes to
//! an end. Code that ignores the errors is ended by unwinding, where that matters.
//!
//! This does not limit the work: the code that reads values bounds how much a value needs.

use std::{
    panic::resume_unwind,
    time::{Duration, Instant},
};

use crate::diagnostic::Diagnostic;
use crate::machine::Unknown;

/// Time that code walking through memory has, after the limit, to return what it has found.
const GRACE: Duration = Duration::from_secs(1);

/// A point in time after which a question is abandoned.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    time: Duration,
    until: Instant,
}

/// The payload that unwinds out of a question that does not end: see [`std::panic::resume_unwind`].
#[derive(Clone, Copy, Debug)]
pub struct GivenUp(Duration);

impl Limit {
    /// Returns a limit that starts now.
    #[must_use]
    pub fn new(time: Duration) -> Limit {
        Limit {
            time,
            until: Instant::now() + time,
        }
    }

    /// Must be called before memory is read.
    ///
    /// # Errors
    /// The time is over.
    pub fn left(&self) -> Result<(), Unknown> {
        if Instant::now() < self.until {
            return Ok(());
        }
        let what = GivenUp(self.time).diagnostic();
        Err(Unknown {
            hint: what.hint,
            ..Unknown::because(what.message)
        })
    }

    /// The same where a question must end even if its code ignores errors.
    ///
    /// # Errors
    /// The time is over.
    ///
    /// # Panics
    /// The time has been over for a while: unwinds with [`GivenUp`].
    pub fn check(&self) -> Result<(), Unknown> {
        let left = self.left();
        if left.is_err() && Instant::now() > self.until + GRACE {
            resume_unwind(Box::new(GivenUp(self.time)));
        }
        left
    }
}

impl GivenUp {
    /// Returns the message and what to do.
    #[must_use]
    pub fn diagnostic(&self) -> Diagnostic {
        let what = format!(
            "the question took longer than {:?} and was given up",
            self.0
        );
        Diagnostic::new(what).with_hint("ask for a part of it")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_its_time_a_question_reads_nothing() {
        assert_eq!(Limit::new(Duration::from_secs(3600)).left(), Ok(()));
        let over = Limit::new(Duration::ZERO).left().unwrap_err();
        assert_eq!(
            over.reason,
            "the question took longer than 0ns and was given up"
        );
        assert_eq!(over.hint.as_deref(), Some("ask for a part of it"));
    }
}

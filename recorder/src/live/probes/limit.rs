//! A time limit for questions about a stopped program. After it, memory reads fail, so that code walking through memory
//! comes to an end. Code that ignores the errors is ended by unwinding.
//!
//! This does not limit the work: the code that reads values bounds how much a value needs.

use std::{
    panic::resume_unwind,
    time::{Duration, Instant},
};

use debuginfo::{Diagnostic, Unknown};

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
    ///
    /// # Panics
    /// The time has been over for a while: unwinds with [`GivenUp`].
    pub fn check(&self) -> Result<(), Unknown> {
        let now = Instant::now();
        if now < self.until {
            return Ok(());
        }
        let given_up = GivenUp(self.time);
        if now > self.until + GRACE {
            resume_unwind(Box::new(given_up));
        }
        let what = given_up.diagnostic();
        Err(Unknown {
            hint: what.hint,
            ..Unknown::because(what.message)
        })
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
    use crate::live::guard::guarded;

    #[test]
    fn a_question_that_minds_no_error_ends_all_the_same() {
        let limit = Limit::new(Duration::from_millis(20));
        assert!(limit.check().is_ok());
        let refused = std::cell::Cell::new(0_u64);
        let error = guarded(|| {
            loop {
                refused.set(refused.get() + u64::from(limit.check().is_err()));
            }
        });
        let error: crate::live::LiveError = match error {
            Ok(never) => never,
            Err(error) => error,
        };
        assert!(refused.get() > 0);
        assert_eq!(
            error.one_line(),
            "the question took longer than 20ms and was given up; ask for a part of it"
        );
    }
}

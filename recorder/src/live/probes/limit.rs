//! How long a question about a stopped program may take: beyond that its memory is not read any more, so that whatever walks
//! through it comes to an end. What does not mind an error is ended by unwinding.
//!
//! Nothing here is a measure of work: what a value needs at most is bounded where values are read.

use std::{
    panic::resume_unwind,
    time::{Duration, Instant},
};

use debuginfo::{Diagnostic, Unknown};

/// What walks through memory may still say what it has found, for so long.
const GRACE: Duration = Duration::from_secs(1);

/// A time after which a question is given up.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    time: Duration,
    until: Instant,
}

/// What unwinds out of a question that does not end: see [`std::panic::resume_unwind`].
#[derive(Clone, Copy, Debug)]
pub struct GivenUp(Duration);

impl Limit {
    /// From now on.
    #[must_use]
    pub fn new(time: Duration) -> Limit {
        Limit {
            time,
            until: Instant::now() + time,
        }
    }

    /// Is asked before memory is read.
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
    /// Says what happened, and what to do.
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

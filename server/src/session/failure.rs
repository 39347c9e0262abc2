//! Converts the recorder's errors to failures of verbs.

use debuginfo::with_causes;
use recorder::live::LiveError;

use crate::inspect::of_line_error;
use crate::protocol::{Code, Failure};

/// Converts an error of the recorder to a failure.
pub(crate) fn of_recorder(error: &recorder::Error) -> Failure {
    match error {
        recorder::Error::Live(LiveError::Line(error)) => of_line_error(error),
        recorder::Error::Live(LiveError::Expression { position, .. }) => {
            of_recorder_text(code(error), error).at(*position)
        }
        _ => of_recorder_text(code(error), error),
    }
}

/// Makes a failure with the given code from an error's text, including its causes.
pub(crate) fn of_recorder_text(code: Code, error: &recorder::Error) -> Failure {
    // The messages of live control are sentences, and so are most of the store's. The others continue "cannot".
    let before = match error {
        recorder::Error::Live(_) => "",
        recorder::Error::Store(_) | recorder::Error::DebugInfo(_) => "cannot record: ",
        _ => "cannot ",
    };
    Failure {
        hint: error.hint(),
        ..Failure::new(code, format!("{before}{}", with_causes(error)))
    }
}

fn code(error: &recorder::Error) -> Code {
    match error {
        recorder::Error::Pattern { .. }
        | recorder::Error::Probe { .. }
        | recorder::Error::Store(
            store::Error::Exists { .. }
            | store::Error::BadName { .. }
            | store::Error::NotCreated { .. },
        ) => Code::BadRequest,
        recorder::Error::Live(error) => live_code(error),
        error if error.is_about_the_target() => Code::NotStarted,
        _ => Code::Failed,
    }
}

fn live_code(error: &LiveError) -> Code {
    match error {
        LiveError::Ended => Code::NotRunning,
        LiveError::Running(_) | LiveError::NotStopping => Code::NotStopped,
        LiveError::NoThread(_) => Code::NoThread,
        LiveError::NoProbe(_) => Code::BreakpointNotFound,
        LiveError::NoDisplay(_) => Code::DisplayNotFound,
        LiveError::CannotStop { .. } | LiveError::Unwatchable { .. } => Code::InvalidAddress,
        LiveError::Expression { .. } => Code::InvalidCondition,
        LiveError::Evaluate(_) | LiveError::Call(_) | LiveError::Interrupted { .. } => {
            Code::EvalFailed
        }
        LiveError::NoWatchpointLeft => Code::NoWatchpointLeft,
        LiveError::Memory { .. } => Code::ReadFailed,
        LiveError::Closing => Code::Timeout,
        _ => Code::Failed,
    }
}

#[cfg(test)]
mod tests {
    use debuginfo::Diagnostic;

    use super::*;

    #[test]
    fn the_recorders_words_and_next_steps_come_through() {
        let error = recorder::Error::Pattern {
            pattern: "[".to_owned(),
            reason: Diagnostic::new("the bracket is not closed").with_hint("close it"),
        };
        let failure = of_recorder(&error);
        assert_eq!(failure.code, Code::BadRequest);
        assert_eq!(
            failure.message,
            "cannot understand the pattern '[': the bracket is not closed"
        );
        assert_eq!(failure.hint.as_deref(), Some("close it"));
        let error = recorder::Error::Attach {
            pid: 1,
            reason: "no".into(),
        };
        assert_eq!(of_recorder(&error).code, Code::NotStarted);
        // Nothing was evaluated.
        let failure = of_recorder(&LiveError::Closing.into());
        assert_eq!(failure.code, Code::Timeout);
        assert_eq!(failure.hint.as_deref(), Some("ask again"));
    }
}

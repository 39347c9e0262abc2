//! The recorder's errors as failures of verbs: the one place that knows both.

use recorder::live::LiveError;

use crate::protocol::{Code, Failure};

/// Makes the failure of something that the recorder refused.
pub(crate) fn of_recorder(error: &recorder::Error) -> Failure {
    let mut failure = of_recorder_text(code(error), error);
    if let recorder::Error::Live(error) = error {
        match error {
            LiveError::NoCode { valid_lines, .. } => failure.valid_lines = valid_lines.clone(),
            LiveError::Expression { position, .. } => failure.position = Some(*position),
            _ => {}
        }
    }
    failure
}

/// Makes a failure of an error's texts, its causes included; what stands behind the last semicolon is the next step.
pub(crate) fn of_recorder_text(code: Code, error: &recorder::Error) -> Failure {
    // What live control says is a sentence, and what the store says mostly; the others' texts read after "cannot".
    let before = match error {
        recorder::Error::Live(_) => "",
        recorder::Error::Store(_) | recorder::Error::DebugInfo(_) => "cannot record: ",
        _ => "cannot ",
    };
    let error: &dyn std::error::Error = error;
    let text = error.to_string();
    let (mut message, hint) = match text.rsplit_once("; ") {
        Some((message, hint)) => (message.to_owned(), Some(hint.to_owned())),
        None => (text, None),
    };
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        if !message.contains(&text) {
            message += ": ";
            message += &text;
        }
        cause = error.source();
    }
    let message = format!("{before}{message}");
    Failure {
        hint,
        ..Failure::new(code, message)
    }
}

fn code(error: &recorder::Error) -> Code {
    match error {
        recorder::Error::Pattern { .. }
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
        LiveError::NoCode { .. } => Code::InvalidLine,
        LiveError::NoFile { .. } => Code::InvalidFile,
        LiveError::NoColumn { .. } => Code::InvalidColumn,
        LiveError::CannotStop { .. } | LiveError::Unwatchable { .. } => Code::InvalidAddress,
        LiveError::Expression { .. } => Code::InvalidCondition,
        LiveError::Evaluate(_) | LiveError::Call(_) => Code::EvalFailed,
        LiveError::NoWatchpointLeft => Code::NoWatchpointLeft,
        LiveError::Memory { .. } => Code::ReadFailed,
        _ => Code::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recorders_words_and_next_steps_come_through() {
        let error = recorder::Error::Pattern {
            pattern: "[".to_owned(),
            reason: "the bracket is not closed; close it".to_owned(),
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
            reason: "no".to_owned(),
        };
        assert_eq!(of_recorder(&error).code, Code::NotStarted);
    }
}

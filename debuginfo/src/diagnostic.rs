//! A problem and its remedy, kept as two texts until they are shown.

use std::fmt;

/// A message and the next step. `Display` omits the next step; [`one_line`](Self::one_line) includes both.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Diagnostic {
    /// What is wrong, as a fragment in lower case.
    pub message: String,
    /// What to do about it, if anything.
    pub hint: Option<String>,
}

impl Diagnostic {
    /// Makes a diagnostic without a next step.
    pub fn new(message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            message: message.into(),
            hint: None,
        }
    }

    /// Sets the next step.
    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> Diagnostic {
        Diagnostic {
            hint: Some(hint.into()),
            ..self
        }
    }

    /// Changes the message and keeps the next step.
    #[must_use]
    pub fn map(self, change: impl FnOnce(String) -> String) -> Diagnostic {
        Diagnostic {
            message: change(self.message),
            hint: self.hint,
        }
    }

    /// Returns message and next step as one text, for places that have room for one line only.
    #[must_use]
    pub fn one_line(&self) -> String {
        one_line(&self.message, self.hint.as_deref())
    }
}

/// Returns an error's message, followed by those of its causes that it does not already repeat.
#[must_use]
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let mut message = error.to_string();
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    for cause in causes.map(ToString::to_string) {
        if !message.contains(&cause) {
            message += ": ";
            message += &cause;
        }
    }
    message
}

pub(crate) fn one_line(message: &str, hint: Option<&str>) -> String {
    match hint {
        Some(hint) => format!("{message}; {hint}"),
        None => message.to_owned(),
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Diagnostic {}

impl From<String> for Diagnostic {
    fn from(message: String) -> Diagnostic {
        Diagnostic::new(message)
    }
}

impl From<&str> for Diagnostic {
    fn from(message: &str) -> Diagnostic {
        Diagnostic::new(message)
    }
}

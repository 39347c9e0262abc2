//! Why an expression has no value.

use std::fmt;

use crate::ast::Span;
use debuginfo::Diagnostic;
use debuginfo::value::ValueError;

/// The kind of a thing that an expression names but that does not exist here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// A name that refers to nothing.
    Name,
    /// A name of another module that is not in scope here.
    Elsewhere,
    /// A name that refers to different enumerators.
    Ambiguous,
    /// A variable that the named function does not have.
    OfFunction,
    /// A type.
    Type,
}

/// Why an expression has no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvalError {
    /// The part of the expression that failed.
    pub at: Span,
    /// What is wrong.
    pub message: String,
    /// What to do about it, if anything.
    pub hint: Option<String>,
    /// What the expression names that does not exist here. A module loaded later may have it.
    pub missing: Option<Missing>,
    /// The expression has no meaning here, for any values: it names something that does not exist here, or its types
    /// do not fit.
    pub is_meaningless: bool,
    /// The expression has a value, which is not known.
    pub is_unknown: bool,
}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for EvalError {}

impl From<EvalError> for Diagnostic {
    fn from(error: EvalError) -> Diagnostic {
        Diagnostic {
            message: error.message,
            hint: error.hint,
        }
    }
}

impl EvalError {
    pub(crate) fn new(at: Span, what: impl Into<Diagnostic>) -> EvalError {
        let Diagnostic { message, hint } = what.into();
        EvalError {
            at,
            message,
            hint,
            missing: None,
            is_meaningless: false,
            is_unknown: false,
        }
    }

    pub(crate) fn unknown(at: Span, what: impl Into<Diagnostic>) -> EvalError {
        EvalError {
            is_unknown: true,
            ..EvalError::new(at, what)
        }
    }

    pub(crate) fn meaningless(at: Span, what: impl Into<Diagnostic>) -> EvalError {
        EvalError {
            is_meaningless: true,
            ..EvalError::new(at, what)
        }
    }

    /// Makes the error for an operation that a value does not support.
    pub(crate) fn of_value(at: Span, error: &ValueError) -> EvalError {
        let is_meaningless = matches!(
            error,
            ValueError::NoMember { .. } | ValueError::Ambiguous(_) | ValueError::WrongType { .. }
        );
        EvalError {
            is_meaningless,
            ..EvalError::new(at, error.diagnostic())
        }
    }

    pub(crate) fn missing(at: Span, missing: Missing, what: impl Into<Diagnostic>) -> EvalError {
        EvalError {
            missing: Some(missing),
            ..EvalError::meaningless(at, what)
        }
    }

    pub(crate) fn with_hint(self, hint: impl Into<String>) -> EvalError {
        EvalError {
            hint: Some(hint.into()),
            ..self
        }
    }

    /// Returns message and next step as one text, for places that have room for one line only.
    #[must_use]
    pub fn one_line(&self) -> String {
        Diagnostic::from(self.clone()).one_line()
    }
}

/// What an expression or a part of it has, or why it has nothing.
pub(crate) type Answer<T> = Result<T, EvalError>;

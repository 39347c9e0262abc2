//! What can be wrong with a question about a value.

use thiserror::Error;

use crate::diagnostic::Diagnostic;
use crate::machine::Unknown;

/// Why a value cannot be had, converted or written.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ValueError {
    /// The value itself is not known.
    #[error("{}", .0.reason)]
    Unknown(#[from] Unknown),
    /// No such member.
    #[error("{ty} has no member {name}")]
    NoMember {
        /// The type that was asked.
        ty: String,
        /// What was asked for.
        name: String,
        /// Those there are, the first of them.
        known: Vec<String>,
    },
    /// The operation is not for such types.
    #[error("{ty} {what}")]
    WrongType {
        /// The type's name.
        ty: String,
        /// What it is not, as the end of a sentence.
        what: &'static str,
        /// What to do instead, where there is something.
        hint: Option<&'static str>,
    },
    /// A pointer that points to nothing.
    #[error("the pointer is null")]
    Null,
    /// A number does not fit.
    #[error("{text} does not fit {ty}")]
    Range {
        /// What was given.
        text: String,
        /// The type's name.
        ty: String,
        /// What fits.
        range: String,
    },
    /// A text stands for no value of the type.
    #[error("{text} is not a value of {ty}")]
    NotA {
        /// What was given.
        text: String,
        /// The type's name.
        ty: String,
        /// What would be right.
        expected: String,
    },
    /// The value has no place that could be written.
    #[error("it cannot be written: {0}")]
    NotWritable(Diagnostic),
}

impl ValueError {
    /// Returns what to do about it, where there is something.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            ValueError::Unknown(why) => why.hint.clone(),
            ValueError::NoMember { known, .. } if known.is_empty() => None,
            ValueError::NoMember { known, .. } => Some(format!("it has {}", known.join(", "))),
            ValueError::WrongType { hint, .. } => hint.map(str::to_owned),
            ValueError::Null => None,
            ValueError::Range { range, .. } => Some(format!("it holds {range}")),
            ValueError::NotA { expected, .. } => Some(format!("give {expected}")),
            ValueError::NotWritable(why) => why.hint.clone(),
        }
    }

    /// Returns message and next step.
    #[must_use]
    pub fn diagnostic(&self) -> Diagnostic {
        Diagnostic {
            message: self.to_string(),
            hint: self.hint(),
        }
    }
}

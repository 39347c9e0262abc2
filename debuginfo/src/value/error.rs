//! Errors of operations on values.

use thiserror::Error;

use crate::diagnostic::Diagnostic;
use crate::machine::Unknown;
use crate::types::AmbiguousMember;

/// Why a value cannot be read, converted or written.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ValueError {
    /// The value itself is unknown.
    #[error("{}", .0.reason)]
    Unknown(#[from] Unknown),
    /// There is no such member.
    #[error("{ty} has no member {name}")]
    NoMember {
        /// The type that lacks the member.
        ty: String,
        /// The requested name.
        name: String,
        /// The first of the existing members.
        known: Vec<String>,
    },
    /// Several base classes have such a member.
    #[error("{0}")]
    Ambiguous(AmbiguousMember),
    /// The operation does not apply to this type.
    #[error("{ty} {what}")]
    WrongType {
        /// The type's name.
        ty: String,
        /// What the type is not, as the end of a sentence.
        what: &'static str,
        /// What to do instead, if anything.
        hint: Option<&'static str>,
    },
    /// A null pointer.
    #[error("the pointer is null")]
    Null,
    /// A number does not fit.
    #[error("{text} does not fit {ty}")]
    Range {
        /// The given number.
        text: String,
        /// The type's name.
        ty: String,
        /// The range that fits.
        range: String,
    },
    /// A text does not represent a value of the type.
    #[error("{text} is not a value of {ty}")]
    NotA {
        /// The given text.
        text: String,
        /// The type's name.
        ty: String,
        /// What is expected instead.
        expected: String,
    },
    /// The value has no place that can be written.
    #[error("it cannot be written: {0}")]
    NotWritable(Diagnostic),
}

impl ValueError {
    /// Returns what to do about it, if anything.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            ValueError::Unknown(why) => why.hint.clone(),
            ValueError::NoMember { known, .. } if known.is_empty() => None,
            ValueError::NoMember { known, .. } => Some(format!("it has {}", known.join(", "))),
            ValueError::WrongType { hint, .. } => hint.map(str::to_owned),
            ValueError::Null | ValueError::Ambiguous(_) => None,
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

//! What can be wrong with a question about a value.

use thiserror::Error;

use crate::machine::Unknown;

/// Why a value cannot be had, converted or written.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ValueError {
    /// The value itself is not known.
    #[error("{0}")]
    Unknown(#[from] Unknown),
    /// No such member.
    #[error("{ty} has no member {name}{hint}")]
    NoMember {
        /// The type that was asked.
        ty: String,
        /// What was asked for.
        name: String,
        /// What there is, as the end of the sentence.
        hint: String,
    },
    /// The operation is not for such types.
    #[error("{ty} {what}")]
    WrongType {
        /// The type's name.
        ty: String,
        /// What it is not, as the end of a sentence.
        what: &'static str,
    },
    /// A pointer that points to nothing.
    #[error("the pointer is null")]
    Null,
    /// A number does not fit.
    #[error("{text} does not fit {ty}; it holds {range}")]
    Range {
        /// What was given.
        text: String,
        /// The type's name.
        ty: String,
        /// What fits.
        range: String,
    },
    /// A text stands for no value of the type.
    #[error("{text} is no value of {ty}; give {expected}")]
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
    NotWritable(String),
}

//! The expression language of `print`, `set`, conditions, watches and log messages. Expressions are parsed, evaluated
//! at a moment, and compiled for an address to the operations of [`debuginfo::location::ir`].
//!
//! The crate is independent of processes. The caller supplies modules and a [`Machine`](debuginfo::Machine).
#![forbid(unsafe_code)]

pub mod ast;
mod eval;
mod expression;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod kept;
mod number;
mod parse;
mod print;
mod scoped;
pub mod template;
#[cfg(test)]
mod template_tests;

pub use ast::{
    BinaryOp, CastKind, CharKind, Expr, ExprKind, Literal, Span, Suffix, TypeName, UnaryOp,
};
pub use eval::compile::{
    Known, KnownPlace, Logged, Message, MessagePart, NotCompiled, PlainValue, Shown,
    compile_condition, compile_message, is_word, known_argument, known_global, known_local,
    members, missing_names, missing_values, names,
};
pub use eval::{
    Callee, Calls, Context, EvalError, Missing, argument, argument_count, assign, assign_value,
    bytes_as, evaluate, evaluate_condition, find_global, find_local, find_type, is_type,
    miscounted, nearest, private_elsewhere, type_of, unknown_name,
};
pub use expression::Expression;
pub use kept::Kept;
pub use parse::{
    Assignment, MAX_HEIGHT, MAX_LENGTH, ParseError, parse, parse_assignment, parse_assignment_with,
    parse_with,
};
pub use scoped::{is_called, path_of, without_path};
pub use template::{Format, Part, Scripts, Template};

/// In conditions and messages of probes: how often threads have reached the probe, this time included. A variable of
/// this name hides it.
pub const HIT_COUNT: &str = "hitCount";

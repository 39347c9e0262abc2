//! The expression language of `print`, `set`, conditions, watches and log messages.

pub mod ast;
mod eval;
pub mod ir;
pub(crate) mod number;
mod parse;
mod print;
mod scoped;
mod script;
pub mod template;
#[cfg(test)]
mod template_tests;

pub use ast::{BinaryOp, CharKind, Expr, ExprKind, Literal, Span, Suffix, TypeName, UnaryOp};
pub use eval::compile::{
    ENGINE_NAMES, Known, KnownPlace, Logged, Message, MessagePart, NotCompiled, PlainValue, Shown,
    compile_condition, compile_message, compile_script, is_word, known_argument, known_global,
    known_local, missing_names, missing_values, names,
};
pub use eval::{
    Calls, Context, EvalError, Missing, argument, argument_count, assign, assign_value, evaluate,
    evaluate_condition, find_global, find_local, is_type, miscounted, unknown_name,
};
pub use parse::{
    Assignment, MAX_HEIGHT, MAX_LENGTH, ParseError, parse, parse_assignment, parse_assignment_with,
    parse_with,
};
pub use scoped::{is_called, path_of, without_path};
pub use template::{Format, Part, Scripts, Template};

/// In conditions and messages of probes, how often threads have come there, this time included. A variable of this name hides it.
pub const HIT_COUNT: &str = "hitCount";

/// Reads a condition in JavaScript, for who only asks whether reading does harm.
pub(crate) fn read_script(text: &str) {
    let _ = script::parse(text);
}

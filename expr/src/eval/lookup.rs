//! Lookup of single names, for callers with a language of their own.
//!
//! Names from the debug information are resolved as in expressions, scope by scope. A caller can insert names of its
//! own in between.

use crate::ast::Span;
use crate::eval::{Answer, Context, with_evaluator};
use debuginfo::types::Type;
use debuginfo::value::Value;

const NOWHERE: Span = Span { start: 0, end: 0 };

/// Finds a variable or parameter of the frame or of a frame around it that it is inlined into, or a member of the
/// object whose method one of these frames executes.
///
/// # Errors
/// The place of that member is unknown. The text states the reason.
pub fn find_local(name: &str, context: &Context<'_>) -> Result<Option<Value>, String> {
    told(with_evaluator(context, |evaluator| {
        evaluator.local(name, NOWHERE, evaluator.site)
    }))
}

/// Finds a global variable, or an enumerator in scope.
#[must_use]
pub fn find_global(name: &str, context: &Context<'_>) -> Option<Value> {
    with_evaluator(context, |evaluator| {
        let variable = evaluator.global(name);
        let read = variable.map(|variable| variable.read(evaluator.site));
        let read = read.or_else(|| evaluator.hit_count(name));
        read.or_else(|| evaluator.enumerator(name))
    })
}

/// Finds the type that `text` names, as in a cast.
#[must_use]
pub fn find_type(text: &str, context: &Context<'_>) -> Option<Type> {
    with_evaluator(context, |evaluator| evaluator.find_type(text))
}

/// Returns the number of arguments in integer registers of the frame's function, as far as it is known.
#[must_use]
pub fn argument_count(context: &Context<'_>) -> Option<Value> {
    with_evaluator(context, |evaluator| evaluator.argument_count())
}

/// Returns the argument passed in an integer register: 0 to 5.
///
/// # Errors
/// The argument is unknown here. The text states the reason.
pub fn argument(number: i128, context: &Context<'_>) -> Result<Value, String> {
    told(with_evaluator(context, |evaluator| {
        evaluator.argument(number, NOWHERE)
    }))
}

/// Returns the message for an unknown name, with a similar known one.
#[must_use]
pub fn unknown_name(name: &str, context: &Context<'_>) -> String {
    with_evaluator(context, |evaluator| evaluator.unknown_name(name).one_line())
}

fn told<T>(answer: Answer<T>) -> Result<T, String> {
    answer.map_err(|error| error.one_line())
}

//! Single names, for who has a language of its own and asks what its words stand for.
//!
//! What the debug information calls something is found as in expressions, scope by scope, so that the asker can put names
//! of its own in between.

use crate::ast::Span;
use crate::eval::{Answer, Context, with_evaluator};
use debuginfo::types::Type;
use debuginfo::value::Value;

const NOWHERE: Span = Span { start: 0, end: 0 };

/// Finds a variable or parameter of the frame or of one that it is inlined into, or a member of the object whose method one of
/// these is.
///
/// # Errors
/// Where that member is cannot be known; the text says why.
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

/// Returns how many arguments in integer registers the function of the frame has, as far as is known.
#[must_use]
pub fn argument_count(context: &Context<'_>) -> Option<Value> {
    with_evaluator(context, |evaluator| evaluator.argument_count())
}

/// Returns the argument that came in an integer register: 0 to 5.
///
/// # Errors
/// It is not known here; the text says why.
pub fn argument(number: i128, context: &Context<'_>) -> Result<Value, String> {
    told(with_evaluator(context, |evaluator| {
        evaluator.argument(number, NOWHERE)
    }))
}

/// Says that a name is not known, and which known one is like it.
#[must_use]
pub fn unknown_name(name: &str, context: &Context<'_>) -> String {
    with_evaluator(context, |evaluator| evaluator.unknown_name(name).one_line())
}

fn told<T>(answer: Answer<T>) -> Result<T, String> {
    answer.map_err(|error| error.one_line())
}

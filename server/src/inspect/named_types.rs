//! Types of expressions, and types by their names.

use debuginfo::types::{Type, TypeKind};
use expr::Missing;

use super::View;
use super::function_types::function_type;
use super::near_names::with_near_global;
use super::values::{context, parsed};
use crate::protocol::{Code, ExpressionFault, Failure};

/// Returns the type of an expression, or the type that the text names.
///
/// # Errors
/// [`Code::EvalFailed`]: the text is neither.
pub fn type_of(view: &View<'_>, text: &str) -> Result<Type, Failure> {
    let find = |text: &str| expr::find_type(text, &context(view, None));
    let named = || find(text).or_else(|| function_type(text, &find));
    let context = context(view, None);
    let found = parsed(text, &context).and_then(|parsed| {
        let found = expr::type_of(&parsed, &context);
        found.map_err(|error| with_near_global(view, text, &error))
    });
    match found {
        // In its methods, the name of a class is that of its constructors too.
        Ok(ty) if is_function(&ty) => Ok(named().unwrap_or(ty)),
        Ok(ty) => Ok(ty),
        Err(failure) => named()
            .ok_or(failure)
            .or_else(|failure| later_type(view, text, failure)),
    }
}

/// Returns the type that modules have which are not loaded yet: before its first module, a program has no types.
fn later_type(view: &View<'_>, text: &str, failure: Failure) -> Result<Type, Failure> {
    let later = view.recorded.filter(|_| view.space.modules().is_empty());
    let Some(space) = later.map(|recorded| recorded.later_space()) else {
        return Err(of_tag(text).unwrap_or(failure));
    };
    if space.modules().is_empty() {
        return Err(failure);
    }
    let later = View {
        space: &space,
        recorded: None,
        ..view.without_frames()
    };
    type_of(&later, text).map_err(|failure| match failure.expression {
        Some(ExpressionFault::Missing(Missing::Type)) if failure.hint.is_none() => {
            failure.hint("no module of the recording has it")
        }
        _ => failure,
    })
}

/// Says that there is no such type, if the text is `struct NAME` or the like.
fn of_tag(text: &str) -> Option<Failure> {
    let (keyword, name) = text.trim().split_once(char::is_whitespace)?;
    let is_name = |c: char| c.is_alphanumeric() || "_:".contains(c);
    let is_tag = matches!(keyword, "struct" | "union" | "enum" | "class");
    (is_tag && name.trim().chars().all(is_name)).then(|| Failure {
        expression: Some(ExpressionFault::Missing(Missing::Type)),
        ..Failure::new(
            Code::EvalFailed,
            format!("there is no type {keyword} {} here", name.trim()),
        )
    })
}

/// Returns whether a type is that of a function, or of a pointer to one.
fn is_function(ty: &Type) -> bool {
    let ty = ty.strip();
    let target = ty.target().filter(|_| ty.kind() == TypeKind::Pointer);
    target.map_or(ty, |target| target.strip()).kind() == TypeKind::Function
}

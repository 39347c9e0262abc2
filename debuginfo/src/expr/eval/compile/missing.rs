//! Names that stand for nothing at a place: what would fail at every hit is said before the first.

use super::{Compiler, at_address};
use crate::diagnostic::Diagnostic;
use crate::expr::HIT_COUNT;
use crate::expr::ast::{Expr, ExprKind};
use crate::expr::eval::{Evaluator, is_type, with_evaluator};
use crate::expr::parse::parse_with;
use crate::expr::template::{Part, Template};
use crate::space::Space;

/// Words with a meaning of their own.
const WORDS: [&str; 4] = ["args", "this", "self", HIT_COUNT];

/// Says of each name in an expression that nothing has it at `pc`, for what `to_come` is see
/// [`compile_condition`](super::compile_condition). Nothing is said of an expression that cannot be read.
#[must_use]
pub fn missing_names(text: &str, space: &Space, pc: u64, to_come: usize) -> Vec<Diagnostic> {
    at_address(space, pc, to_come, |context| {
        let is_type = |name: &str| is_type(name, context);
        let Ok(expr) = parse_with(text, &is_type) else {
            return Vec::new();
        };
        with_evaluator(context, |evaluator| missing_in(&expr, evaluator))
    })
}

/// The same of the expressions in a log message.
#[must_use]
pub fn missing_values(
    template: &Template,
    space: &Space,
    pc: u64,
    to_come: usize,
) -> Vec<Diagnostic> {
    at_address(space, pc, to_come, |context| {
        with_evaluator(context, |evaluator| {
            let values = template.parts.iter().filter_map(|part| match part {
                Part::Value { expr, .. } => Some(expr),
                Part::Text(_) | Part::Script { .. } => None,
            });
            values
                .flat_map(|expr| missing_in(expr, evaluator))
                .collect()
        })
    })
}

fn missing_in(expr: &Expr, evaluator: &Evaluator<'_>) -> Vec<Diagnostic> {
    let compiler = Compiler { evaluator };
    let mut missing = Vec::new();
    each_name(expr, &mut |name| {
        if !WORDS.contains(&name) && !compiler.means_something(name) {
            missing.push(evaluator.unknown_name(name));
        }
    });
    missing
}

/// Returns the names in an expression, without those of functions that are called.
#[must_use]
pub fn names(expr: &Expr) -> Vec<String> {
    let mut found = Vec::new();
    each_name(expr, &mut |name| found.push(name.to_owned()));
    found
}

/// Tells whether a name may have a meaning that no module gives it.
#[must_use]
pub fn is_word(name: &str) -> bool {
    WORDS.contains(&name)
}

/// Hands all names but those of functions that are called to `see`: some of these are no function of the program.
fn each_name(expr: &Expr, see: &mut dyn FnMut(&str)) {
    match &expr.kind {
        ExprKind::Name(name) => see(name),
        ExprKind::Call {
            function,
            arguments,
        } if matches!(function.kind, ExprKind::Name(_)) => {
            for argument in arguments {
                each_name(argument, see);
            }
        }
        kind => kind.for_each_child(|child| each_name(child, see)),
    }
}

impl Compiler<'_, '_> {
    /// Tells whether a name may stand for something; where that takes a thread, it may.
    fn means_something(&self, name: &str) -> bool {
        let evaluator = self.evaluator;
        let is_local = !matches!(self.local(name), Ok(None));
        is_local
            || evaluator.global(name).is_some()
            || evaluator.enumerates(name)
            || evaluator.function(name).is_some()
            || evaluator.find_type(name).is_some()
            || name.contains("::") && !evaluator.is_unknown_path(name)
    }
}

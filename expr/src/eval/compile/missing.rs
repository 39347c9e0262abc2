//! Names that stand for nothing at a place, calls, and what types do not allow: what would fail at every hit is said before the first.

use crate::HIT_COUNT;
use crate::ast::{Expr, ExprKind};
use crate::eval::calls::is_answered;
use crate::eval::compile::{Compiler, at_address};
use crate::eval::members::LENGTHS;
use crate::eval::{Evaluator, with_evaluator};
use crate::expression::Expression;
use crate::template::{Part, Template};
use debuginfo::types::Language;
use debuginfo::{AddressSpace, Diagnostic};

/// Words with a meaning of their own.
const WORDS: [&str; 4] = ["args", "this", "self", HIT_COUNT];

/// Says of each name in an expression that nothing has it at `pc`, or else what its types do not allow; for what `to_come` is see
/// [`compile_condition`](super::compile_condition). Nothing is said of an expression that cannot be read.
#[must_use]
pub fn missing_names(
    expression: &Expression,
    space: &AddressSpace,
    pc: u64,
    to_come: usize,
) -> Vec<Diagnostic> {
    at_address(space, pc, to_come, |context| {
        let Ok(expr) = expression.within(context) else {
            return Vec::new();
        };
        with_evaluator(context, |evaluator| missing_in(&expr, evaluator))
    })
}

/// The same of the expressions in a log message.
#[must_use]
pub fn missing_values(
    template: &Template,
    space: &AddressSpace,
    pc: u64,
    to_come: usize,
) -> Vec<Diagnostic> {
    at_address(space, pc, to_come, |context| {
        with_evaluator(context, |evaluator| {
            let values = template.parts.iter().filter_map(|part| match part {
                Part::Value { expression, .. } => expression.within(context).ok(),
                Part::Text(_) | Part::Script { .. } => None,
            });
            values
                .flat_map(|expr| missing_in(&expr, evaluator))
                .collect()
        })
    })
}

fn missing_in(expr: &Expr, evaluator: &Evaluator<'_>) -> Vec<Diagnostic> {
    let compiler = Compiler { evaluator };
    let mut missing = Vec::new();
    each_call(expr, &mut |function, arguments| {
        if !compiler.may_be_answered(function, arguments) {
            let message =
                format!("{function} cannot be called here, where only memory is looked at");
            let hint = "if it is JavaScript, write \"js:\" before it";
            missing.push(Diagnostic::new(message).with_hint(hint));
        }
    });
    each_name(expr, &mut |name| {
        if !WORDS.contains(&name) && !compiler.means_something(name) {
            missing.push(evaluator.unknown_name(name));
        }
    });
    if missing.is_empty() {
        missing.extend(never_right(expr, evaluator));
    }
    missing
}

/// Says what in an expression its types do not allow, whichever values there are: a member that there is not, an unknown type. The
/// evaluator's thread is not there, so that nothing is said of what depends on values, among them what pointers lead to.
fn never_right(expr: &Expr, evaluator: &Evaluator<'_>) -> Option<Diagnostic> {
    let mut found = None;
    // Names have been judged, and functions are not called to be judged.
    let mut is_judged = matches!(expr.kind, ExprKind::Name(_) | ExprKind::Call { .. });
    expr.kind.for_each_child(|child| {
        if found.is_none() {
            found = never_right(child, evaluator);
        }
        // What has no value without a thread may have one.
        let is_args = matches!(&child.kind, ExprKind::Name(name) if name == "args");
        is_judged |= calls(child) || !is_args && evaluator.value(child).is_err();
    });
    if found.is_some() || is_judged {
        return found;
    }
    let error = evaluator.value(expr).err()?;
    error.is_meaningless.then(|| error.into())
}

fn calls(expr: &Expr) -> bool {
    let mut found = matches!(expr.kind, ExprKind::Call { .. });
    expr.kind.for_each_child(|child| found |= calls(child));
    found
}

/// Returns the names in an expression, without those of functions that are called.
#[must_use]
pub fn names(expr: &Expr) -> Vec<String> {
    let mut found = Vec::new();
    each_name(expr, &mut |name| found.push(name.to_owned()));
    found
}

/// Returns the members that an expression names and that only debug information can have: no fields of tuples, no lengths, nothing
/// that is called.
#[must_use]
pub fn members(expr: &Expr) -> Vec<&str> {
    let mut found = Vec::new();
    each_member(expr, &mut |name| found.push(name));
    found
}

fn each_member<'e>(expr: &'e Expr, see: &mut dyn FnMut(&'e str)) {
    match &expr.kind {
        ExprKind::Call {
            function,
            arguments,
        } => {
            // Methods of containers are answered although no file names them.
            function
                .kind
                .for_each_child(|child| each_member(child, see));
            for argument in arguments {
                each_member(argument, see);
            }
        }
        kind => {
            if let ExprKind::Member { name, .. } = kind
                && !name.starts_with(|c: char| c.is_ascii_digit())
                && !LENGTHS.contains(&name.as_str())
                && name != "all"
            {
                see(name);
            }
            kind.for_each_child(|child| each_member(child, see));
        }
    }
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

/// Hands all calls to `see`.
fn each_call(expr: &Expr, see: &mut dyn FnMut(&Expr, &[Expr])) {
    if let ExprKind::Call {
        function,
        arguments,
    } = &expr.kind
    {
        see(function, arguments);
    }
    expr.kind.for_each_child(|child| each_call(child, see));
}

/// Returns the variable that members and elements of are named: `a` of `a.b[3]`.
fn variable_of(expr: &Expr) -> Option<&str> {
    match &expr.kind {
        ExprKind::Name(name) => Some(name),
        ExprKind::Member { of, .. } | ExprKind::Index { of, .. } => variable_of(of),
        ExprKind::Call { function, .. } => variable_of(function),
        _ => None,
    }
}

impl Compiler<'_, '_> {
    /// Tells whether a call may have a value without a call: as a conversion, or as an element where indexes stand in parentheses.
    fn may_be_answered(&self, function: &Expr, arguments: &[Expr]) -> bool {
        let is_type = |name: &str| self.evaluator.find_type(name).is_some();
        let has_such_elements = |name: &str| {
            let variable = self.evaluator.variable(name);
            let variable = variable.or_else(|| self.evaluator.global(name));
            variable.is_some_and(|variable| {
                matches!(variable.ty().language(), Language::Fortran | Language::Ada)
            })
        };
        is_answered(function, arguments)
            || matches!(&function.kind, ExprKind::Name(name) if is_type(name))
            || variable_of(function).is_some_and(has_such_elements)
    }

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

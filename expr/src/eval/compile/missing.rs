//! Finds unknown names, calls and type errors at a place. Expressions that would fail at every hit are reported before
//! the first one.

use crate::HIT_COUNT;
use crate::ast::{Expr, ExprKind};
use crate::eval::calls::is_answered;
use crate::eval::compile::{Compiler, at_address};
use crate::eval::members::LENGTHS;
use crate::eval::{Evaluator, Wants, with_evaluator};
use crate::expression::Expression;
use crate::kept::Kept;
use crate::template::{Part, Template};
use debuginfo::types::{Language, TypeKind};
use debuginfo::{AddressSpace, Diagnostic};

/// Words with a special meaning.
const WORDS: [&str; 4] = ["args", "this", "self", HIT_COUNT];

/// Returns a diagnostic for each name in an expression that is unknown at `pc`, or else for a type error. `to_come` is
/// as for [`compile_condition`](super::compile_condition). Returns nothing for an expression that cannot be parsed.
#[must_use]
pub fn missing_names(
    expression: &Expression,
    space: &AddressSpace,
    pc: u64,
    to_come: usize,
    kept: &Kept,
) -> Vec<Diagnostic> {
    at_address(space, pc, to_come, |context| {
        let context = &context.with_kept(kept);
        let Ok(expr) = expression.within(context) else {
            return Vec::new();
        };
        with_evaluator(context, |evaluator| missing_in(&expr, evaluator))
    })
}

/// Like [`missing_names`], for the expressions in a log message.
#[must_use]
pub fn missing_values(
    template: &Template,
    space: &AddressSpace,
    pc: u64,
    to_come: usize,
    kept: &Kept,
) -> Vec<Diagnostic> {
    at_address(space, pc, to_come, |context| {
        let context = &context.with_kept(kept);
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
            let message = format!(
                "{} cannot be called here, where only memory is looked at",
                function.told()
            );
            let hint = "if it is JavaScript, write \"js:\" before it";
            missing.push(Diagnostic::new(message).with_hint(hint));
        }
    });
    each_name(expr, &mut |name| {
        if WORDS.contains(&name) {
            return;
        }
        if let Some(what) = evaluator.ambiguous_member(name) {
            missing.push(what);
        } else if !compiler.means_something(name) {
            missing.push(evaluator.unknown_name(name));
        }
    });
    if missing.is_empty() {
        missing.extend(never_right(expr, evaluator));
    }
    missing
}

/// Finds a type error in an expression that occurs for all values: a missing member, an unknown type. There is no
/// thread, so nothing is reported that depends on values, such as targets of pointers.
fn never_right(expr: &Expr, evaluator: &Evaluator<'_>) -> Option<Diagnostic> {
    let mut found = None;
    // Names have already been checked. Functions are not called for a check.
    let mut is_judged = matches!(expr.kind, ExprKind::Name(_) | ExprKind::Call { .. });
    expr.kind.for_each_child(|child| {
        if found.is_none() {
            found = never_right(child, evaluator);
        }
        // An operand without a value here may have one in a thread.
        let is_args = matches!(&child.kind, ExprKind::Name(name) if name == "args");
        is_judged |= calls(child) || !is_args && evaluator.value(child).is_err();
    });
    let found = found.or_else(|| without_member(expr, evaluator));
    if found.is_some() || is_judged {
        return found;
    }
    let error = evaluator.value(expr).err()?;
    error.is_meaningless.then(|| error.into())
}

/// Finds a member that the type of a value, or of a pointer's target, does not have. Only where types are all that decides:
/// an object of a class may be one of a class that is derived from it, or show what it holds.
fn without_member(expr: &Expr, evaluator: &Evaluator<'_>) -> Option<Diagnostic> {
    let ExprKind::Member { of, .. } = &expr.kind else {
        return None;
    };
    let ty = evaluator.wanting(Wants::Type, of).ok()?.ty.strip();
    let ty = match ty.kind() {
        TypeKind::Pointer => ty.target()?.strip(),
        _ => ty,
    };
    let is_class = matches!(ty.kind(), TypeKind::Struct | TypeKind::Class);
    let is_plain = match ty.language() {
        Language::C => true,
        Language::Cpp => !is_class,
        _ => false,
    };
    let error = evaluator.wanting(Wants::Type, expr).err()?;
    (is_plain && error.is_meaningless).then(|| error.into())
}

fn calls(expr: &Expr) -> bool {
    let mut found = matches!(expr.kind, ExprKind::Call { .. });
    expr.kind.for_each_child(|child| found |= calls(child));
    found
}

/// Returns the names in an expression, except those of called functions.
#[must_use]
pub fn names(expr: &Expr) -> Vec<String> {
    let mut found = Vec::new();
    each_name(expr, &mut |name| found.push(name.to_owned()));
    found
}

/// Returns the members named in an expression that must come from debug information. Excludes fields of tuples,
/// lengths, and called methods.
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
            // Methods of containers are available although no file names them.
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

/// Returns whether a name may have a meaning that does not come from a module.
#[must_use]
pub fn is_word(name: &str) -> bool {
    WORDS.contains(&name)
}

/// Calls `see` with all names, except those of called functions, some of which are not functions of the program.
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

/// Returns the variable whose members and elements are used: `a` of `a.b[3]`.
fn variable_of(expr: &Expr) -> Option<&str> {
    match &expr.kind {
        ExprKind::Name(name) => Some(name),
        ExprKind::Member { of, .. } | ExprKind::Index { of, .. } => variable_of(of),
        ExprKind::Call { function, .. } => variable_of(function),
        _ => None,
    }
}

impl Compiler<'_, '_> {
    /// Returns whether a call may be computed without a call: as a conversion, or as an element with indexes in
    /// parentheses.
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

    /// Returns whether a name may refer to something. True if only a thread can tell.
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

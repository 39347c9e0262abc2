//! Calls: functions that are computed without a call, conversions written as calls, and functions of the program.

use crate::ast::{CastKind, Expr, ExprKind, Span};
use crate::eval::candidates::{function_at, not_called};
use crate::eval::operand::number_value;
use crate::eval::strings::presented;
use crate::eval::{Answer, Callee, Calls, EvalError, Evaluator, Missing, Wants};
use crate::number::{IntKind, Number};
use debuginfo::Diagnostic;
use debuginfo::types::{Language, Type, TypeKind};
use debuginfo::value::Value;
use values::Children;

/// String functions that are computed without a call.
const TEXT_FUNCTIONS: [&str; 4] = ["strlen", "_strlen", "strcmp", "_streq"];
/// Methods that only read.
const LOOKS: [&str; 9] = [
    "len", "size", "length", "is_empty", "empty", "is_some", "is_none", "is_ok", "is_err",
];

/// Returns whether the function's name alone shows that a call may be computed without calling anything.
pub(super) fn is_answered(function: &Expr, arguments: &[Expr]) -> bool {
    match &function.kind {
        ExprKind::Name(name) => {
            TEXT_FUNCTIONS.contains(&name.strip_prefix("std::").unwrap_or(name))
        }
        ExprKind::Register(name) => TEXT_FUNCTIONS.contains(&name.as_str()),
        ExprKind::Member { name, .. } => arguments.is_empty() && LOOKS.contains(&name.as_str()),
        _ => false,
    }
}

impl Evaluator<'_> {
    pub(super) fn call(&self, function: &Expr, arguments: &[Expr], at: Span) -> Answer<Value> {
        if let Some(known) = self.known_function(function, arguments)? {
            return Ok(known);
        }
        if let (ExprKind::Name(name), [of]) = (&function.kind, arguments)
            && !self.has_variable(name)
            && self.function(name).is_none()
            && let Some(ty) = self.find_type(name)
        {
            let value = self.value(of)?;
            return self.convert(&value, &ty, CastKind::Plain, of.at);
        }
        if let ExprKind::Member { of, name, .. } = &function.kind
            && let Some(known) = self.known_method(of, name, arguments, at)?
        {
            return Ok(known);
        }
        let target = self.value(function);
        if let Ok(array) = &target
            && let Some(found) = self.indexed(array, arguments, function.at)?
        {
            return Ok(found);
        }
        // If there is no such member, it may be a method.
        if let (ExprKind::Member { of, name, .. }, Err(_)) = (&function.kind, &target)
            && let Some(result) = self.method_call((of, name), arguments, at)?
        {
            return Ok(result);
        }
        if let Some(result) = self.call_of_cpp(function, &target, arguments, at)? {
            return Ok(result);
        }
        if self.wants.get() == Wants::Type
            && let Some(result) = target.as_ref().ok().and_then(result_type)
        {
            return Ok(not_called(Some(result)));
        }
        let calls = self.callable(&function.told(), at)?;
        let target = match (&function.kind, target) {
            (ExprKind::Name(name), Err(error)) if error.missing == Some(Missing::Elsewhere) => {
                let (entry, file) = self.only_elsewhere(name).ok_or(error)?;
                calls.found_in(name, &file);
                self.function_value(entry)
            }
            (_, target) => target?,
        };
        let values = self.values(arguments)?;
        let result = self.called(calls, (&function.told(), &target), &values);
        result.map_err(|why| EvalError::new(at, why))
    }

    /// Calls a function that the expression writes so.
    pub(super) fn called(
        &self,
        calls: &dyn Calls,
        (name, function): (&str, &Value),
        arguments: &[Value],
    ) -> Result<Value, Diagnostic> {
        let entry = match function.kind() {
            TypeKind::Function => function.address(),
            _ => function.as_address().ok(),
        };
        let mapped = entry.and_then(|entry| Some((self.look.space.at(entry)?, entry)));
        let callee = Callee {
            name,
            function,
            known: mapped.and_then(|(mapped, entry)| function_at(mapped, entry)),
        };
        calls.call(&callee, arguments)
    }

    /// Returns what calls functions of the program. Nothing is called for a type.
    pub(super) fn callable(&self, name: &str, at: Span) -> Answer<&dyn Calls> {
        let is_wanted = self.wants.get() != Wants::Type;
        let calls = self.context.calls.filter(|_| is_wanted);
        calls.ok_or_else(|| {
            let error = EvalError::new(at, format!("{name} cannot be called here"));
            error.with_hint("eval calls functions; everything else only looks at memory")
        })
    }

    /// Returns the element of an array whose language writes indexes like arguments: `mat(2, 1)`. In Ada an access value
    /// stands for the array that it leads to.
    pub(super) fn indexed(&self, of: &Value, indexes: &[Expr], at: Span) -> Answer<Option<Value>> {
        let value = of
            .unreferenced(&self.look)
            .map_err(|e| self.unusable(of, e, at))?;
        let value = match is_access_to_array(&value) {
            true => {
                let target = value.deref(&self.look);
                target.map_err(|e| self.unusable(&value, e, at))?
            }
            false => value,
        };
        let is_array = matches!(value.kind(), TypeKind::Array | TypeKind::Struct);
        let has_such = matches!(value.ty.language(), Language::Fortran | Language::Ada);
        if indexes.is_empty() || !is_array || !has_such {
            return Ok(None);
        }
        let mut found = value;
        for index in indexes {
            let key = self.value(index)?;
            let next = self.element(&found, (&key, index.at), at)?;
            found = next.reached_by(key.certainty);
        }
        Ok(Some(found))
    }

    /// Computes string functions without a call.
    fn known_function(&self, function: &Expr, arguments: &[Expr]) -> Answer<Option<Value>> {
        let name = match &function.kind {
            ExprKind::Name(name) => name.strip_prefix("std::").unwrap_or(name),
            ExprKind::Register(name) => name,
            _ => return Ok(None),
        };
        let text = |of: &Expr| {
            let value = self.value(of)?;
            let bytes = self.text_bytes(&value, of.at)?;
            let bytes = bytes
                .ok_or_else(|| EvalError::new(of.at, format!("{} is not text", value.ty.name())))?;
            Ok((bytes, value.certainty))
        };
        Ok(match (name, arguments) {
            ("strlen" | "_strlen", [of]) => {
                let (bytes, certainty) = text(of)?;
                let length = Number::integer(IntKind::UNSIGNED_LONG, bytes.len() as u128);
                Some(number_value(length, certainty))
            }
            ("strcmp", [a, b]) => {
                let ((a, first), (b, second)) = (text(a)?, text(b)?);
                let order = Number::integer(IntKind::INT, a.cmp(&b) as i128 as u128);
                Some(number_value(order, first.and(second)))
            }
            ("_streq", [a, b]) => {
                let ((a, first), (b, second)) = (text(a)?, text(b)?);
                Some(number_value(Number::Bool(a == b), first.and(second)))
            }
            _ => None,
        })
    }

    /// Computes methods that only read.
    fn known_method(
        &self,
        of: &Expr,
        name: &str,
        arguments: &[Expr],
        at: Span,
    ) -> Answer<Option<Value>> {
        let variant = match name {
            "is_some" => Some("Some"),
            "is_none" => Some("None"),
            "is_ok" => Some("Ok"),
            "is_err" => Some("Err"),
            _ => None,
        };
        if !arguments.is_empty() {
            return Ok(None);
        }
        match (name, variant) {
            ("len" | "size" | "length", _) if self.means_arguments(of) => Ok(self.argument_count()),
            ("len" | "size" | "length", _) => {
                let value = self.value(of)?;
                self.member_of(&self.look, &value, "len", (of.at, at))
                    .map(Some)
            }
            ("is_empty" | "empty", _) => {
                let value = self.value(of)?;
                let length = self.member_of(&self.look, &value, "len", (of.at, at))?;
                let empty = Number::Bool(self.whole(&length, of.at)? == 0);
                Ok(Some(number_value(empty, length.certainty)))
            }
            ("get" | "value", _) => self.held(of, name),
            (_, Some(variant)) => {
                let value = self.value(of)?;
                let value = self.pointee(&value, of.at)?;
                let (live, data) = value
                    .variant(&self.look)
                    .map_err(|e| self.unusable(&value, e, of.at))?;
                let answer = Number::Bool(live == variant);
                Ok(Some(number_value(answer, data.reached)))
            }
            _ => Ok(None),
        }
    }
}

impl Evaluator<'_> {
    /// Returns the pointer that a smart pointer of C++ has, or the value in an optional.
    fn held(&self, of: &Expr, name: &str) -> Answer<Option<Value>> {
        let value = self.value(of)?;
        let value = value
            .unreferenced(&self.look)
            .map_err(|e| self.unusable(&value, e, of.at))?;
        let path = value.ty.strip().own_name().unwrap_or_default();
        let path = path.replace("std::__1::", "std::");
        let (holders, field): (&[&str], _) = match name {
            "get" => (&["std::unique_ptr<", "std::shared_ptr<"], "get()"),
            _ => (&["std::optional<"], "value"),
        };
        if !holders.iter().any(|holder| path.starts_with(holder)) {
            return Ok(None);
        }
        let shown = presented(&value, &self.look, 2);
        Ok(
            match shown.and_then(Result::ok).map(|shown| shown.children) {
                Some(Children::Fields(fields)) => {
                    let mut fields = fields.into_iter();
                    fields.find(|(own, _)| own == field).map(|(_, value)| value)
                }
                _ => None,
            },
        )
    }
}

/// Returns the type of what a function, or a pointer to one, returns.
pub(super) fn result_type(function: &Value) -> Option<Type> {
    let ty = function.ty.strip();
    let ty = match ty.kind() {
        TypeKind::Pointer => ty.target()?.strip(),
        _ => ty,
    };
    (ty.kind() == TypeKind::Function).then(|| ty.target())?
}

/// Returns whether a value is an Ada access value that leads to an array and has no bounds of its own.
fn is_access_to_array(value: &Value) -> bool {
    let ty = value.ty.strip();
    let leads_to_array = || {
        ty.target()
            .is_some_and(|to| to.strip().kind() == TypeKind::Array)
    };
    ty.language() == Language::Ada && ty.kind() == TypeKind::Pointer && leads_to_array()
}

/// Returns the message for a call with the wrong number of arguments.
#[must_use]
pub fn miscounted(name: &str, wanted: usize, given: usize) -> String {
    let plural = if wanted == 1 { "" } else { "s" };
    format!("{name} takes {wanted} argument{plural}, not {given}")
}

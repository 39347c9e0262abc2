//! What names stand for: the frame's variables and the object's members, then JavaScript's own, then globals and
//! enumerators.

use super::super::super::super::parse::parse_with;
use super::super::super::is_type;
use super::super::value::Static;
use super::super::{Result, not};
use super::value::{Js, Kind};
use super::{Translator, numbers};
use crate::machine::Register;

/// The names that the engine has itself, which hide those of globals and enumerators.
pub const ENGINE_NAMES: [&str; 74] = [
    "AggregateError",
    "Array",
    "ArrayBuffer",
    "AsyncDisposableStack",
    "Atomics",
    "BigInt",
    "BigInt64Array",
    "BigUint64Array",
    "Boolean",
    "DOMException",
    "DataView",
    "Date",
    "DisposableStack",
    "Error",
    "EvalError",
    "FinalizationRegistry",
    "Float16Array",
    "Float32Array",
    "Float64Array",
    "Function",
    "Infinity",
    "Int16Array",
    "Int32Array",
    "Int8Array",
    "InternalError",
    "Iterator",
    "JSON",
    "Map",
    "Math",
    "NaN",
    "Number",
    "Object",
    "Promise",
    "Proxy",
    "RangeError",
    "ReferenceError",
    "Reflect",
    "RegExp",
    "Set",
    "SharedArrayBuffer",
    "String",
    "SuppressedError",
    "Symbol",
    "SyntaxError",
    "TypeError",
    "URIError",
    "Uint16Array",
    "Uint32Array",
    "Uint8Array",
    "Uint8ClampedArray",
    "WeakMap",
    "WeakRef",
    "WeakSet",
    "arguments",
    "args",
    "atob",
    "btoa",
    "decodeURI",
    "decodeURIComponent",
    "encodeURI",
    "encodeURIComponent",
    "escape",
    "eval",
    "gc",
    "globalThis",
    "isFinite",
    "isNaN",
    "navigator",
    "parseFloat",
    "parseInt",
    "performance",
    "queueMicrotask",
    "state",
    "undefined",
];

impl Translator<'_, '_> {
    pub(super) fn name(&self, name: &str) -> Result<Js> {
        if let Some(local) = self.local(name)? {
            let mut seen = self.seen(local)?;
            if name == "this" {
                // Functions that are not strict are called with another object where there is none (10.2.1.2).
                seen.absent = None;
            }
            return Ok(seen);
        }
        match name {
            "undefined" => return Ok(Js::undefined()),
            "NaN" => return Ok(Js::number(f64::NAN)),
            "Infinity" => return Ok(Js::number(f64::INFINITY)),
            "unescape" | "$" | "this" => return Err(not(format!("{name} is not a variable"))),
            name if ENGINE_NAMES.contains(&name) => {
                return Err(not(format!("{name} is JavaScript's own")));
            }
            _ => {}
        }
        let evaluator = self.compiler.evaluator;
        if let Some(variable) = evaluator.global(name) {
            return self.seen(self.compiler.variable(&variable)?);
        }
        let enumerator = evaluator.enumerator(name);
        let enumerator = enumerator.ok_or_else(|| not(format!("{name} is not a variable")))?;
        let known = Static::constant(&enumerator);
        self.seen(known.ok_or_else(|| not(format!("{name} has more than 64 bits")))?)
    }

    /// A variable of the frame, a member of the object that is worked on, or a register.
    pub(super) fn local(&self, name: &str) -> Result<Option<Static>> {
        if let Some(register) = name.strip_prefix('$') {
            return match Register::by_name(register) {
                Some(_) => self.compiler.register(register).map(Some),
                None => Ok(None),
            };
        }
        self.compiler.local(name)
    }

    /// Whether a name is JavaScript's own here.
    pub(super) fn is_own(&self, name: &str) -> bool {
        (ENGINE_NAMES.contains(&name) || name == "$") && matches!(self.local(name), Ok(None))
    }

    /// `$("p->next->x")`: an expression of the debugger's own language.
    pub(super) fn expression(&self, text: &str) -> Result<Js> {
        let context = &self.compiler.evaluator.context;
        let is_type = |name: &str| is_type(name, context);
        let expr = parse_with(text, &is_type).map_err(|error| not(error.one_line()))?;
        self.seen(self.compiler.value(&expr)?)
    }

    /// `args[number]`
    pub(super) fn argument(&self, number: u32) -> Result<Js> {
        self.seen(self.compiler.argument(number.into())?)
    }

    /// `args.name`
    pub(super) fn parameter(&self, name: &str) -> Result<Js> {
        if name == "length" {
            let count = self.compiler.evaluator.argument_count();
            let count = count.and_then(|count| count.as_integer().ok());
            let count = numbers::Whole::constant(count.unwrap_or(0) as i64);
            return Ok(Js::of(Kind::Number(numbers::Number::Whole(count))));
        }
        let local = self.local(name)?;
        self.seen(local.ok_or_else(|| not(format!("no parameter {name}")))?)
    }
}

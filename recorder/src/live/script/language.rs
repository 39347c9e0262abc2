//! Which of two languages a condition is in, by its text alone.

use debuginfo::expr::{Expr, ExprKind};

/// Methods of JavaScript's strings, arrays, maps, numbers and regular expressions. Ours knows `len`, `is_empty` and a few
/// more, and no program's method can be called by a condition.
const METHODS: [&str; 62] = [
    "at",
    "charAt",
    "charCodeAt",
    "codePointAt",
    "concat",
    "endsWith",
    "entries",
    "every",
    "exec",
    "filter",
    "find",
    "findIndex",
    "findLast",
    "findLastIndex",
    "flat",
    "flatMap",
    "forEach",
    "get",
    "has",
    "hasOwnProperty",
    "includes",
    "indexOf",
    "join",
    "keys",
    "lastIndexOf",
    "localeCompare",
    "map",
    "match",
    "matchAll",
    "normalize",
    "padEnd",
    "padStart",
    "pop",
    "push",
    "reduce",
    "reduceRight",
    "repeat",
    "replace",
    "replaceAll",
    "reverse",
    "search",
    "shift",
    "slice",
    "some",
    "sort",
    "splice",
    "split",
    "startsWith",
    "substr",
    "substring",
    "test",
    "toExponential",
    "toFixed",
    "toLowerCase",
    "toPrecision",
    "toReversed",
    "toSorted",
    "toString",
    "toUpperCase",
    "trim",
    "trimEnd",
    "trimStart",
];
/// Objects whose members are functions and numbers of JavaScript.
const OBJECTS: [&str; 10] = [
    "Array", "BigInt", "Date", "JSON", "Math", "Number", "Object", "Reflect", "RegExp", "String",
];
/// Functions of JavaScript.
const FUNCTIONS: [&str; 9] = [
    "$", "Array", "BigInt", "Boolean", "Number", "String", "isFinite", "isNaN", "parseInt",
];
/// What no other language has, and nobody writes by mistake.
const SIGNS: [&str; 12] = [
    "=>",
    "?.",
    "??",
    "===",
    "!==",
    "`",
    "typeof ",
    "function",
    "instanceof ",
    "new ",
    "state.",
    "**",
];

/// Tells whether an expression of our language calls what only JavaScript has.
pub fn calls_javascript(expr: &Expr) -> bool {
    let any = |parts: &[&Expr]| parts.iter().any(|part| calls_javascript(part));
    match &expr.kind {
        ExprKind::Name(_)
        | ExprKind::Register(_)
        | ExprKind::Literal(_)
        | ExprKind::SizeOfType(_) => false,
        ExprKind::Member { of, .. } => is_object(of) || any(&[of]),
        ExprKind::Unary(_, of) | ExprKind::Cast { of, .. } | ExprKind::SizeOf(of) => any(&[of]),
        ExprKind::Index { of, index } => any(&[of, index]),
        ExprKind::Binary(_, left, right) => any(&[left, right]),
        ExprKind::Conditional {
            condition,
            if_true,
            if_false,
        } => any(&[condition, if_true, if_false]),
        ExprKind::Range { of, from, to, .. } => {
            any(&[of])
                || [from, to]
                    .into_iter()
                    .flatten()
                    .any(|part| calls_javascript(part))
        }
        ExprKind::Call {
            function,
            arguments,
        } => {
            let own = match &function.kind {
                ExprKind::Member { name, .. } => METHODS.contains(&name.as_str()),
                ExprKind::Name(name) => FUNCTIONS.contains(&name.as_str()),
                _ => false,
            };
            own || any(&[function]) || arguments.iter().any(calls_javascript)
        }
    }
}

/// `Math` in `Math.PI`.
fn is_object(of: &Expr) -> bool {
    matches!(&of.kind, ExprKind::Name(name) if OBJECTS.contains(&name.as_str()))
}

/// Tells whether a text with a mistake was meant to be JavaScript.
pub fn looks_like_javascript(text: &str) -> bool {
    let starts = text.trim_start().starts_with(['[', '/']);
    starts || SIGNS.iter().any(|sign| text.contains(sign))
}

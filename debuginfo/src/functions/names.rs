//! The linker name and the readable name of a function.

use gimli::constants as dw;

use super::scopes::Scopes;
use crate::code::Code;
use crate::demangle::{self, Mangling};
use crate::dies::{Die, DieReader};
use crate::dwarf::Slice;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Names {
    pub readable: String,
    pub linkage: String,
    /// The compiler cloned the function, and the clone's parameters or result may differ from the source.
    pub changed: Option<Change>,
    /// The linker name is mangled.
    pub mangled: bool,
}

/// What the compiler may have changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// Parameters may be missing (`.constprop`).
    Params,
    /// Parameters and the result may be missing (`.isra`, `.part`).
    ParamsAndResult,
}

/// Finds the names of the function that `chain` describes. `top_level`: the last DIE of `chain` is a direct child of
/// its unit. Pass an `svma` without a symbol, such as `u64::MAX`, for an inlined function.
pub(crate) fn names<'a>(
    session: &DieReader<'_, 'a>,
    scopes: &Scopes<'_, '_, 'a>,
    chain: &[Die<'a>],
    svma: u64,
    top_level: bool,
    code: &Code,
) -> Names {
    let string = |name| chain.iter().find_map(|die| session.string(die, name));
    let stated = string(dw::DW_AT_linkage_name).or_else(|| string(dw::DW_AT_MIPS_linkage_name));
    let plain = string(dw::DW_AT_name).map(lossy).unwrap_or_default();
    let stated = stated.map(lossy);
    let linkage = linkage(stated.as_deref(), &plain, svma, code);
    let readable = match demangle::readable(&linkage) {
        Some((name, Mangling::RustLegacy)) => with_generics(name, &plain),
        Some((name, _)) => name,
        None if plain.is_empty() => linkage.clone(),
        None if top_level => plain,
        // The declaration at the end of the chain is the DIE inside its scope.
        None => chain
            .last()
            .map_or(plain.clone(), |die| scopes.qualified(die, &plain)),
    };
    Names {
        changed: change(&linkage),
        mangled: stated.is_some_and(|s| s != readable),
        readable,
        linkage,
    }
}

fn lossy(slice: Slice<'_>) -> String {
    slice.to_string_lossy().into_owned()
}

/// Returns the symbol at `svma` that belongs to the function: the stated one, a variant of it, or any other.
fn linkage(stated: Option<&str>, plain: &str, svma: u64, code: &Code) -> String {
    let expected = stated.unwrap_or(plain);
    let is_variant = |name: &&str| {
        name.strip_prefix(expected)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let mut first = None;
    for name in code.names(svma) {
        if is_variant(&name) {
            return name.to_owned();
        }
        first = first.or(Some(name));
    }
    // Constructors and destructors are described once, under a name (C4, D4) that no symbol has. Functions of unnamed
    // namespaces have no stated name.
    let vague = stated.is_none_or(|s| s.contains("C4E") || s.contains("D4E"));
    first.filter(|_| vague).unwrap_or(expected).to_owned()
}

fn change(linkage: &str) -> Option<Change> {
    let mut changed = None;
    for part in linkage.split('.').skip(1) {
        changed = match part {
            "isra" | "part" => Some(Change::ParamsAndResult),
            "constprop" if changed.is_none() => Some(Change::Params),
            _ => changed,
        };
    }
    changed
}

/// The legacy Rust mangling omits generic arguments of functions. The debug information includes them.
fn with_generics(demangled: String, plain: &str) -> String {
    let Some((base, _)) = plain.split_once('<') else {
        return demangled;
    };
    match demangled.strip_suffix(base) {
        Some(scope) if !base.is_empty() && (scope.is_empty() || scope.ends_with("::")) => {
            format!("{scope}{plain}")
        }
        _ => demangled,
    }
}

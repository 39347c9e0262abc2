//! Finds enumerators by name, as visible in the source at a place. No variable of their type has to exist there.
//!
//! An enumerator of C, or of a C++ enumeration without `class`, is a name of the scope around the enumeration. All
//! others are qualified with their type.

use std::cmp::Reverse;

use super::local_types::{self, LocalType};
use crate::address_space::Mapped;
use crate::location::FrameContext;
use crate::module::Module;
use crate::types::{DieId, EntryKind, Language, Type, name_fit, qualified};

/// Enumerations examined that have an enumerator of one name, at most.
const MAX_CANDIDATES: usize = 256;

/// Finds the enumerators that `name` refers to. Searches in this order: the blocks of the function at the site, its
/// unit, its module, the program. The first place with any determines the result.
pub fn enumerators(site: &FrameContext<'_>, name: &str) -> Vec<(Type, i128)> {
    let local = local_ones(site, name, false);
    if !local.is_empty() {
        return local;
    }
    for mapped in site.space.near(site.lookup_pc) {
        let found = in_module(mapped, site, name);
        if !found.is_empty() {
            return found;
        }
    }
    Vec::new()
}

/// Finds the enumerators that `name` refers to in the functions around the site: those of their outermost blocks, and of
/// inner blocks whose code contains the site. They hide variables of the file.
pub fn local_enumerators(site: &FrameContext<'_>, name: &str) -> Vec<(Type, i128)> {
    local_ones(site, name, true)
}

/// Returns whether an enumeration of a module has an enumerator called `name`, in scope or not.
pub fn has_enumerator(mapped: &Mapped, name: &str) -> bool {
    let module = &mapped.module;
    let candidates = module.types().index().candidates(name).iter();
    let mut candidates = candidates.filter(|entry| entry.kind == EntryKind::Enumerator);
    candidates.next().is_some()
}

fn in_module(mapped: &Mapped, site: &FrameContext<'_>, name: &str) -> Vec<(Type, i128)> {
    let module = &mapped.module;
    let is_here = mapped.range.contains(&site.lookup_pc);
    let unit = is_here.then(|| super::function_at(module, mapped.svma(site.lookup_pc)));
    let unit = unit
        .flatten()
        .map(|function| (function.home, function.index));
    let candidates = module.types().index().candidates(name).iter();
    let candidates = candidates.filter(|entry| entry.kind == EntryKind::Enumerator);
    let function = super::scope_at(site);
    let mut found: Vec<((bool, Distance, u8), Type, i128)> = Vec::new();
    for entry in candidates.take(MAX_CANDIDATES) {
        let ty = Type::at(module, entry.id);
        if let Some((rank, value)) = fitting(&ty, Some(entry.id), name) {
            let is_elsewhere = Some((entry.id.home, entry.id.index)) != unit;
            let distance = distance(module, entry.id, &function);
            found.push(((is_elsewhere, distance, rank), ty, value));
        }
    }
    let best = found.iter().map(|(key, ..)| *key).min();
    found.retain(|(key, ..)| Some(*key) == best);
    found
        .into_iter()
        .map(|(_, ty, value)| (ty, value))
        .collect()
}

/// Whether an enumeration is outside the namespaces around a function, and how near it is inside.
type Distance = (bool, Reverse<usize>);

fn distance(module: &Module, enumeration: DieId, function: &str) -> Distance {
    let scope = qualified(module.types(), enumeration, "");
    let is_around = function.starts_with(&scope);
    (!is_around, Reverse(if is_around { scope.len() } else { 0 }))
}

/// Returns the value of the enumerator of `ty` that `name` refers to, and how well it fits.
fn fitting(ty: &Type, id: Option<DieId>, name: &str) -> Option<(u8, i128)> {
    let last = name.rsplit("::").next().unwrap_or(name);
    let all = ty.enumerators().iter();
    let mut own = all.filter(|e| e.name == name || e.name.rsplit("::").next() == Some(last));
    let enumerator = own.next()?;
    if ty.language() == Language::C {
        return (enumerator.name == name).then_some((0, enumerator.value));
    }
    let plain = enumerator.name.rsplit("::").next().unwrap_or(last);
    let in_type = ty.own_name().map(|own| format!("{own}::{plain}"));
    let in_type = in_type.and_then(|full| name_fit(name, &full));
    let around = match (ty.is_scoped_enum(), ty.module(), id) {
        (true, ..) => None,
        (false, Some(module), Some(id)) => name_fit(name, &qualified(module.types(), id, plain)),
        (false, ..) => (plain == name).then_some(0),
    };
    // "Red" is also the end of "Color::Red", but does not name an enumerator of "enum class Color".
    let in_type = in_type.filter(|_| name.contains("::"));
    let rank = [in_type, around].into_iter().flatten().min()?;
    Some((rank, enumerator.value))
}

/// Finds the enumerators of enumerations declared in the function at the site, starting with the innermost inlined
/// call, then in the classes and functions around it in the source; if `is_strict`, not in blocks that may not contain the site.
fn local_ones(site: &FrameContext<'_>, name: &str, is_strict: bool) -> Vec<(Type, i128)> {
    let Some(mapped) = site.space.at(site.lookup_pc) else {
        return Vec::new();
    };
    let module = &mapped.module;
    let svma = mapped.svma(site.lookup_pc);
    let own = |all: &[LocalType]| {
        let all = all.iter().filter(|one| one.is_enumeration);
        let types = all.map(|one| Type::at(module, one.id));
        let found = types.filter_map(|ty| {
            let (_, value) = fitting(&ty, None, name)?;
            Some((ty, value))
        });
        found.collect::<Vec<_>>()
    };
    let first = |all: &[Vec<LocalType>]| {
        let mut found = all.iter().map(|all| own(all));
        found.find(|found| !found.is_empty()).unwrap_or_default()
    };
    let read = || local_types::read(site, module, svma, is_strict);
    if !is_strict {
        return first(&read());
    }
    let around = module.variables().around(svma, site.inline_depth);
    first(around.types.get_or_init(read))
}

//! Finds the function at an address, and the code of a DIE.

use std::sync::Arc;

use gimli::DwAt;
use gimli::constants as dw;

use super::enclosing::{self, Enclosing};
use crate::dies::{Die, DieReader, Home};
use crate::location::FrameContext;
use crate::model::Svma;
use crate::module::Module;
use crate::nesting::Scope;
use crate::types::{DieId, Language, Type, language_of, qualified, split_scope, with_session};

/// Ranges read of one DIE, at most.
const MAX_RANGES: usize = 1 << 12;
/// Scopes around one function, at most.
const MAX_CLASSES: usize = 32;

/// Returns the DIE of the function whose code contains `svma`.
pub(crate) fn function_at(module: &Module, svma: Svma) -> Option<DieId> {
    copies_at(module, svma).into_iter().next()
}

/// Returns the type of the function whose code contains `svma`.
#[must_use]
pub fn function_type(module: &Arc<Module>, svma: Svma) -> Option<Type> {
    function_at(module, svma).map(|id| Type::of_function(module, id))
}

/// Returns whether the function whose code contains `svma` is a virtual one of C++.
#[must_use]
pub fn is_virtual(module: &Module, svma: Svma) -> bool {
    states(module, svma, dw::DW_AT_virtuality)
}

/// Returns whether other units may name the function whose code contains `svma`. They may not if it is `static`, or in a
/// namespace without a name.
#[must_use]
pub fn is_external(module: &Module, svma: Svma) -> bool {
    states(module, svma, dw::DW_AT_external)
}

/// Returns the unit of the function whose code contains `svma`.
#[must_use]
pub fn unit_of_function(module: &Module, svma: Svma) -> Option<usize> {
    function_at(module, svma).map(|function| function.index)
}

/// Returns whether a function, or a declaration of it, has an attribute that compilers write only where it applies.
fn states(module: &Module, svma: Svma, attribute: DwAt) -> bool {
    let read = function_at(module, svma).and_then(|id| {
        with_session(module.entries(), id, |session, die| {
            let mut chain = session.chain(die).into_iter();
            chain.any(|die| session.attr(&die, attribute).is_some())
        })
    });
    read.unwrap_or(false)
}

/// Returns the function whose code contains `svma`, then the copies of other functions inlined there, outermost first.
pub(super) fn copies_at(module: &Module, svma: Svma) -> Vec<DieId> {
    let Some(unit) = module.units().find(svma.0) else {
        return Vec::new();
    };
    let scopes = unit.scopes(module);
    let chain = scopes.chain(svma.0).into_iter();
    let id = |at: usize| DieId {
        home: Home::Info,
        index: unit.index,
        offset: scopes.list[at].die.0,
    };
    chain.map(id).collect()
}

/// Returns the qualified name of the function at the site, or an empty string if it is unknown. In C++, the functions around it
/// in the source, such as that of a lambda, are part of the name.
pub fn scope_at(site: &FrameContext<'_>) -> String {
    let Some(mapped) = site.space.at(site.lookup_pc) else {
        return String::new();
    };
    let (module, depth) = (&mapped.module, site.inline_depth);
    let svma = mapped.svma(site.lookup_pc);
    let around = module.variables().around(svma, depth);
    let read = || match name_at(module, svma, depth) {
        Some(own) if language_at(site) == Language::Cpp => within(&enclosing::around(site), own),
        own => own.unwrap_or_default(),
    };
    around.scope.get_or_init(read).clone()
}

/// Returns the qualified name of a function behind the names of those around it. A scope that a name shares with the one before is
/// not repeated.
fn within(around: &[Enclosing], own: String) -> String {
    let outer = around.iter().rev().map(Enclosing::full_name);
    let (mut path, mut shared) = (String::new(), String::new());
    for name in outer.chain(std::iter::once(own)) {
        if !path.is_empty() {
            path.push_str("::");
        }
        path.push_str(name.strip_prefix(&shared).unwrap_or(&name));
        shared = split_scope(&name).map_or_else(String::new, |(scope, _)| format!("{scope}::"));
    }
    path
}

/// Returns the qualified name of the function at `svma` that is nested in `inline_depth` inlined calls.
fn name_at(module: &Module, svma: Svma, inline_depth: usize) -> Option<String> {
    let copies = copies_at(module, svma);
    let read = with_session(
        module.entries(),
        *copies.get(inline_depth)?,
        |session, die| {
            let chain = session.chain(die);
            let mut names = chain.iter();
            let name = names.find_map(|d| session.string(d, dw::DW_AT_name))?;
            let scope = DieId::of(chain.last()?);
            Some((name.to_string_lossy().into_owned(), scope))
        },
    );
    let (name, scope) = read.flatten()?;
    Some(qualified(module.types(), scope, &name))
}

/// Returns the classes that the function at the site, and those around it in the source, are declared in, innermost first.
pub fn classes_at(site: &FrameContext<'_>) -> Vec<Type> {
    let Some(mapped) = site.space.at(site.lookup_pc) else {
        return Vec::new();
    };
    let module = &mapped.module;
    let svma = mapped.svma(site.lookup_pc);
    let around = module.variables().around(svma, site.inline_depth);
    let read = || {
        let outer = enclosing::around(site).into_iter();
        let own = declared_at(module, svma, site.inline_depth).into_iter();
        let declared = own.chain(outer.filter_map(|outer| outer.declared()));
        let mut found: Vec<DieId> = Vec::new();
        for class in declared.flat_map(|declared| class_ids(module, declared)) {
            if !found.contains(&class) {
                found.push(class);
            }
        }
        found
    };
    classes(module, around.classes.get_or_init(read))
}

/// Returns the DIE that declares the function at `svma` that is nested in `inline_depth` inlined calls.
pub(super) fn declared_at(module: &Module, svma: Svma, inline_depth: usize) -> Option<DieId> {
    let copies = copies_at(module, svma);
    let copy = *copies.get(inline_depth)?;
    let read = with_session(module.entries(), copy, |session, die| {
        session.chain(die).last().map(DieId::of)
    });
    read.flatten()
}

/// Returns the classes around a declaration, innermost first.
pub(super) fn classes_around(module: &Arc<Module>, declared: DieId) -> Vec<Type> {
    classes(module, &class_ids(module, declared))
}

fn classes(module: &Arc<Module>, ids: &[DieId]) -> Vec<Type> {
    let all = ids.iter().map(|id| Type::at(module, *id).definition());
    all.collect()
}

/// Returns the DIEs of the classes around a declaration, innermost first.
pub(super) fn class_ids(module: &Module, declared: DieId) -> Vec<DieId> {
    let table = module.types().scopes(declared.home, declared.index);
    let around = table.near(declared.offset);
    let around = around.filter(|scope| scope.holds(declared.offset));
    let id = |scope: &Scope| DieId {
        offset: scope.start,
        ..declared
    };
    let is_class = |id: &DieId| {
        let tag = with_session(module.entries(), *id, |session, die| session.tag(die));
        matches!(
            tag.flatten(),
            Some(dw::DW_TAG_class_type | dw::DW_TAG_structure_type | dw::DW_TAG_union_type)
        )
    };
    around.map(id).take(MAX_CLASSES).filter(is_class).collect()
}

/// Returns the language of the code at the site.
#[must_use]
pub fn language_at(site: &FrameContext<'_>) -> Language {
    let mapped = site.space.at(site.lookup_pc);
    let function = mapped.and_then(|m| {
        let id = function_at(&m.module, m.svma(site.lookup_pc))?;
        with_session(m.module.entries(), id, language_of)
    });
    function.unwrap_or(Language::Other)
}

pub(super) fn ranges<'a>(session: &DieReader<'_, 'a>, die: &Die<'a>) -> Vec<(u64, u64)> {
    let dwarf = session.dwarf(die);
    let address = |value| dwarf.attr_address(&die.unit, value).ok().flatten();
    let low = session.attr(die, dw::DW_AT_low_pc).and_then(address);
    if let (Some(low), Some(high)) = (low, session.attr(die, dw::DW_AT_high_pc)) {
        let end = match high.udata_value() {
            Some(size) => Some(low.wrapping_add(size)),
            None => address(high),
        };
        return end
            .filter(|end| low < *end)
            .map(|end| (low, end))
            .into_iter()
            .collect();
    }
    let mut found = Vec::new();
    let Some(value) = session.attr(die, dw::DW_AT_ranges) else {
        return found;
    };
    let Ok(Some(mut list)) = dwarf.attr_ranges(&die.unit, value) else {
        return found;
    };
    while let (Ok(Some(range)), true) = (list.next(), found.len() < MAX_RANGES) {
        if session.spend(1).is_none() {
            break;
        }
        if range.begin < range.end {
            found.push((range.begin, range.end));
        }
    }
    found
}

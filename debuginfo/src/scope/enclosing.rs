//! Functions around a nested function in the source: nested functions of GNU C, internal procedures of Fortran, nested
//! subprograms of Ada. Their variables are in scope, in the frame that the static link names (DWARF 5, 3.3.5
//! "DW_AT_static_link").

use std::sync::Arc;

use gimli::UnitOffset;
use gimli::constants as dw;

use super::Variable;
use super::functions::{copies_at, language_at};
use super::locals::all_of;
use crate::dies::{Die, DieReader};
use crate::location::{self, FrameContext, StaticLink};
use crate::machine::Unknown;
use crate::model::Svma;
use crate::module::Module;
use crate::types::{DieId, Language, qualified, with_session};

/// Functions around one function, at most.
const MAX_AROUND: usize = 32;

/// A function that a nested one is declared in.
#[derive(Debug, Clone)]
pub struct Enclosing {
    module: Arc<Module>,
    outer: Outer,
}

/// A function that a nested one is declared in, without its module, which keeps this value.
#[derive(Debug, Clone)]
pub(super) struct Outer {
    /// Its DIE with code or without, and those that this one refers to.
    dies: Vec<DieId>,
    /// Its name.
    name: String,
    /// The line that declares the function nested in it.
    line: Option<u32>,
}

impl Enclosing {
    /// Returns its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.outer.name
    }

    /// Returns its DIE.
    pub(super) fn die(&self) -> Option<DieId> {
        self.outer.dies.first().copied()
    }

    /// Returns the DIE that declares it.
    pub(super) fn declared(&self) -> Option<DieId> {
        self.outer.dies.last().copied()
    }

    /// Returns its name with the namespaces and classes around it.
    pub(super) fn full_name(&self) -> String {
        match self.declared() {
            Some(declared) => qualified(self.module.types(), declared, &self.outer.name),
            None => self.outer.name.clone(),
        }
    }

    /// Lists the variables called `name` of all its blocks. Of several, those that are declared behind the nested function are
    /// left out.
    #[must_use]
    pub fn called(&self, name: &str) -> Vec<Variable> {
        let own = |die| all_of(&self.module, die);
        let mut found = self.die().map_or_else(Vec::new, own);
        found.retain(|one| one.name == name);
        let is_earlier = |one: &Variable| match (one.line, self.outer.line) {
            (Some(declared), Some(nested)) => declared <= nested,
            _ => true,
        };
        if found.len() > 1 {
            found.retain(is_earlier);
        }
        found
    }

    /// Returns whether a frame is one of its calls.
    #[must_use]
    pub fn is_at(&self, site: &FrameContext<'_>) -> bool {
        let Some(mapped) = site.space.at(site.lookup_pc) else {
            return false;
        };
        if !Arc::ptr_eq(&mapped.module, &self.module) {
            return false;
        }
        let copies = copies_at(&mapped.module, mapped.svma(site.lookup_pc));
        let Some(copy) = copies.get(site.inline_depth) else {
            return false;
        };
        let dies = with_session(mapped.module.entries(), *copy, |session, die| {
            session.chain(die).iter().map(DieId::of).collect::<Vec<_>>()
        });
        dies.is_some_and(|dies| dies.iter().any(|die| self.outer.dies.contains(die)))
    }
}

/// Returns the functions that the function at the site is declared in and whose variables it sees, innermost first. In C++, it
/// sees only static ones.
#[must_use]
pub fn enclosing(site: &FrameContext<'_>) -> Vec<Enclosing> {
    let found = around(site);
    let sees = |language| {
        matches!(
            language,
            Language::C | Language::Cpp | Language::Fortran | Language::Ada
        )
    };
    match !found.is_empty() && sees(language_at(site)) {
        true => found,
        false => Vec::new(),
    }
}

/// Returns the functions around the function at the site in the source, innermost first.
pub(super) fn around(site: &FrameContext<'_>) -> Vec<Enclosing> {
    let Some(mapped) = site.space.at(site.lookup_pc) else {
        return Vec::new();
    };
    let module = &mapped.module;
    let svma = mapped.svma(site.lookup_pc);
    let known = module.variables().around(svma, site.inline_depth);
    let read = || read(module, svma, site.inline_depth);
    let found = known.functions.get_or_init(read).iter();
    let enclosing = |outer: &Outer| Enclosing {
        module: Arc::clone(module),
        outer: outer.clone(),
    };
    found.map(enclosing).collect()
}

fn read(module: &Module, svma: Svma, inline_depth: usize) -> Vec<Outer> {
    let copies = copies_at(module, svma);
    let Some(copy) = copies.get(inline_depth) else {
        return Vec::new();
    };
    let found = with_session(module.entries(), *copy, |session, die| {
        let mut found = Vec::new();
        let mut nested = die.clone();
        // Those around a function that is described elsewhere are found from there.
        while found.len() < MAX_AROUND {
            let outer = outer_of(session, module, &nested);
            let Some(last) = outer.last() else { break };
            let next = last.0.clone();
            found.extend(outer.into_iter().map(|(_, outer)| outer));
            nested = next;
        }
        found
    });
    found.unwrap_or_default()
}

/// Returns the functions whose DIEs contain a function's, innermost first.
fn outer_of<'a>(
    session: &DieReader<'_, 'a>,
    module: &Module,
    nested: &Die<'a>,
) -> Vec<(Die<'a>, Outer)> {
    let known = module.types();
    let chain = session.chain(nested);
    // The copy of an inlined function lies in the one that calls it, but is not declared there.
    let mut functions = chain.iter();
    let around = functions.find_map(|own| {
        if session.tag(own) != Some(dw::DW_TAG_subprogram) {
            return None;
        }
        let table = known.functions(own.home, own.index);
        let near = table.near(own.offset.0);
        let around = near.filter(|scope| scope.holds(own.offset.0));
        let starts: Vec<usize> = around.map(|scope| scope.start).take(MAX_AROUND).collect();
        (!starts.is_empty()).then_some((own, starts))
    });
    let Some((own, starts)) = around else {
        return Vec::new();
    };
    let linked = linker_name(session, &chain);
    let mut line = line_of(session, &chain);
    let function = |start: usize| {
        let outer = own.sibling(UnitOffset(start));
        let outer = match linked.as_deref() {
            Some(linked) => described(session, module, outer, linked),
            None => outer,
        };
        let chain = session.chain(&outer);
        let name = chain.iter().find_map(|d| session.string(d, dw::DW_AT_name));
        let found = Outer {
            dies: chain.iter().map(DieId::of).collect(),
            name: name.map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
            line,
        };
        line = line_of(session, &chain);
        (outer, found)
    };
    starts.into_iter().map(function).collect()
}

/// Returns the DIE that describes a function whose own DIE is empty. Clang places the classes of a function that is inlined
/// at all its calls into such a DIE. `linked`, the linker's name of what these classes declare, contains that of the function.
fn described<'a>(
    session: &DieReader<'_, 'a>,
    module: &Module,
    outer: Die<'a>,
    linked: &str,
) -> Die<'a> {
    let is_empty = |die: &Die<'a>| {
        let stated = [
            dw::DW_AT_name,
            dw::DW_AT_specification,
            dw::DW_AT_abstract_origin,
        ];
        let mut stated = stated.iter();
        stated.all(|name| session.attr(die, *name).is_none())
    };
    if !is_empty(&outer) {
        return outer;
    }
    let table = module.types().functions(outer.home, outer.index);
    let all = table.starts().map(|start| outer.sibling(UnitOffset(start)));
    let named = all.filter_map(|die| {
        let name = linker_name(session, &session.chain(&die))?;
        Some((length_inside(linked, &name)?, die))
    });
    let nearest = named.max_by_key(|(length, _)| *length);
    nearest.map_or(outer, |(_, die)| die)
}

/// Returns the length of the linker's name of a function in that of something local to it; `None`: it is not local to it. The
/// latter is `_ZZ`, the former without its `_Z`, and `E` (Itanium C++ ABI, 5.1.7).
fn length_inside(linked: &str, function: &str) -> Option<usize> {
    let function = function.strip_prefix("_Z")?;
    let rest = linked.strip_prefix("_ZZ")?.strip_prefix(function)?;
    rest.starts_with('E').then_some(function.len())
}

fn linker_name<'a>(session: &DieReader<'_, 'a>, chain: &[Die<'a>]) -> Option<String> {
    let mut chain = chain.iter();
    let name = chain.find_map(|d| session.string(d, dw::DW_AT_linkage_name))?;
    Some(name.to_string_lossy().into_owned())
}

fn line_of<'a>(session: &DieReader<'_, 'a>, chain: &[Die<'a>]) -> Option<u32> {
    let mut chain = chain.iter();
    let line = chain.find_map(|d| session.unsigned(d, dw::DW_AT_decl_line))?;
    u32::try_from(line).ok()
}

/// Returns what leads to the frame of the call that the frame's function is nested in; `None` if the debug information does
/// not state it.
///
/// # Errors
/// It is stated and cannot be read here.
pub fn static_link(site: &FrameContext<'_>) -> Result<Option<StaticLink>, Unknown> {
    match function_here(site).filter(|_| site.inline_depth == 0) {
        Some((module, function)) => location::static_link(site, &module, function),
        None => Ok(None),
    }
}

/// Returns the address that the variables of the frame's function are relative to.
///
/// # Errors
/// It is not stated, or cannot be read here.
pub fn frame_base(site: &FrameContext<'_>) -> Result<u64, Unknown> {
    match function_here(site) {
        Some((module, function)) => location::frame_base(site, &module, function),
        None => Err(Unknown::because("the function of the frame is not known")),
    }
}

/// The function with code that the frame is in.
fn function_here(site: &FrameContext<'_>) -> Option<(Arc<Module>, DieId)> {
    let mapped = site.space.at(site.lookup_pc)?;
    let copies = copies_at(&mapped.module, mapped.svma(site.lookup_pc));
    Some((Arc::clone(&mapped.module), *copies.first()?))
}

#[cfg(test)]
mod tests {
    use super::length_inside;

    #[test]
    fn the_linkers_name_tells_the_function_around() {
        let lambda = "_ZZL5twiceiENK3$_0clEi";
        assert_eq!(length_inside(lambda, "_ZL5twicei"), Some(8));
        assert_eq!(length_inside(lambda, "_ZL5twice"), None);
        assert_eq!(length_inside(lambda, "_ZL5thricei"), None);
        let inner = "_ZZZ4mainENK3$_2clEiENKUlvE_clEv";
        assert_eq!(length_inside(inner, "_ZZ4mainENK3$_2clEi"), Some(17));
        assert_eq!(length_inside("_Z4maini", "_Z4maini"), None);
    }
}

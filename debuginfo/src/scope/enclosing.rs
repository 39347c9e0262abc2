//! Functions around a nested function in the source: nested functions of GNU C, internal procedures of Fortran, nested
//! subprograms of Ada. Their variables are in scope, in the frame that the static link names (DWARF 5, 3.3.5
//! "DW_AT_static_link").

use std::sync::Arc;

use gimli::UnitOffset;
use gimli::constants as dw;

use super::Variable;
use super::functions::{copies_at, language_at};
use super::locals::all_of;
use crate::dies::Die;
use crate::location::{self, FrameContext, StaticLink};
use crate::machine::Unknown;
use crate::module::Module;
use crate::types::{DieId, Language, with_session};

/// Functions around one function, at most.
const MAX_AROUND: usize = 32;

/// A function that a nested one is declared in.
#[derive(Debug, Clone)]
pub struct Enclosing {
    module: Arc<Module>,
    /// Its DIE with code or without, and those that this one refers to.
    pub(super) dies: Vec<DieId>,
    /// Its name.
    pub name: String,
}

impl Enclosing {
    /// Lists the variables of all its blocks.
    #[must_use]
    pub fn variables(&self) -> Vec<Variable> {
        let first = self.dies.first();
        first.map_or_else(Vec::new, |die| all_of(&self.module, *die))
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
        dies.is_some_and(|dies| dies.iter().any(|die| self.dies.contains(die)))
    }
}

/// Returns the functions that the function at the site is declared in and whose variables it sees, innermost first. In C++, it
/// sees only static ones.
#[must_use]
pub fn enclosing(site: &FrameContext<'_>) -> Vec<Enclosing> {
    match language_at(site) {
        Language::C | Language::Cpp | Language::Fortran | Language::Ada => around(site),
        _ => Vec::new(),
    }
}

/// Returns the functions around the function at the site in the source, innermost first.
pub(super) fn around(site: &FrameContext<'_>) -> Vec<Enclosing> {
    let Some(mapped) = site.space.at(site.lookup_pc) else {
        return Vec::new();
    };
    let module = &mapped.module;
    let copies = copies_at(module, mapped.svma(site.lookup_pc));
    let Some(copy) = copies.get(site.inline_depth) else {
        return Vec::new();
    };
    let known = module.types();
    let found = with_session(module.entries(), *copy, |session, die| {
        let chain = session.chain(die);
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
        let function = |start: &usize| {
            let outer = Die {
                offset: UnitOffset(*start),
                ..own.clone()
            };
            let chain = session.chain(&outer);
            let name = chain.iter().find_map(|d| session.string(d, dw::DW_AT_name));
            Enclosing {
                module: Arc::clone(module),
                dies: chain.iter().map(DieId::of).collect(),
                name: name.map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
            }
        };
        starts.iter().map(function).collect()
    });
    found.unwrap_or_default()
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

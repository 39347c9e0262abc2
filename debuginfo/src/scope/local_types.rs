//! Types by name, as the blocks, functions and classes around a place in the source declare them, innermost first.

use gimli::constants as dw;
use gimli::{DwTag, UnitOffset};

use super::enclosing::around;
use super::functions::{class_ids, copies_at, declared_at, language_at, ranges};
use crate::dies::{Die, DieReader};
use crate::location::FrameContext;
use crate::model::Svma;
use crate::module::Module;
use crate::types::{DieId, Language, Type, with_session};

/// Types of one function or class that are read, at most.
const MAX_TYPES: usize = 1024;
/// Depth of nested blocks that are searched, and of base classes.
const MAX_DEPTH: usize = 64;

/// A type that a function or class declares.
#[derive(Debug)]
pub(super) struct LocalType {
    pub id: DieId,
    pub is_enumeration: bool,
    name: Option<String>,
}

/// Finds the type that `name` refers to in the functions and classes of C or C++ around the site.
#[must_use]
pub fn local_type(site: &FrameContext<'_>, name: &str) -> Option<Type> {
    let mapped = site.space.at(site.lookup_pc)?;
    let (module, svma) = (&mapped.module, mapped.svma(site.lookup_pc));
    let around = module.variables().around(svma, site.inline_depth);
    let levels = around.types.get_or_init(|| read(site, module, svma, true));
    let is_it = |one: &&LocalType| one.name.as_deref() == Some(name);
    let found = levels.iter().find_map(|level| level.iter().find(is_it))?;
    let is_of_c = matches!(language_at(site), Language::C | Language::Cpp);
    is_of_c.then(|| Type::at(module, found.id).definition())
}

/// Lists the types that each function and class around the site declares, innermost first. If `is_strict`, those of blocks
/// that may not contain the site, and of the calls that the site is inlined into, are left out.
pub(super) fn read(
    site: &FrameContext<'_>,
    module: &Module,
    svma: Svma,
    is_strict: bool,
) -> Vec<Vec<LocalType>> {
    let within = is_strict.then_some(svma.0);
    let copies = copies_at(module, svma);
    let own = copies.iter().take(site.inline_depth + 1).rev().copied();
    // What a call is inlined into is not around it in the source.
    let own = own.take(if is_strict { 1 } else { copies.len() });
    let declared = declared_at(module, svma, site.inline_depth);
    let mut levels: Vec<_> = own.map(|id| of_function(module, id, within)).collect();
    levels.extend(of_classes(module, declared));
    for outer in around(site) {
        levels.extend(outer.die().map(|id| of_function(module, id, within)));
        levels.extend(of_classes(module, outer.declared()));
    }
    levels
}

fn of_function(module: &Module, function: DieId, within: Option<u64>) -> Vec<LocalType> {
    let types = with_session(module.entries(), function, |session, die| {
        let mut found = Vec::new();
        for die in session.chain(die) {
            declared_in(session, &die, (MAX_DEPTH, within), &mut found);
        }
        found
    });
    types.unwrap_or_default()
}

/// Lists the types of the classes around a declaration, each followed by those of its bases.
fn of_classes(module: &Module, declared: Option<DieId>) -> Vec<Vec<LocalType>> {
    let classes = declared.map_or_else(Vec::new, |declared| class_ids(module, declared));
    let levels = classes.into_iter().flat_map(|class| {
        let found = with_session(module.entries(), class, of_class);
        found.unwrap_or_default()
    });
    levels.collect()
}

/// Lists the types of a class, then those of its bases, and so on.
fn of_class<'a>(session: &DieReader<'_, 'a>, class: &Die<'a>) -> Vec<Vec<LocalType>> {
    let mut levels = Vec::new();
    let mut classes = vec![class.clone()];
    while !classes.is_empty() && levels.len() < MAX_DEPTH {
        let (mut found, mut bases) = (Vec::new(), Vec::new());
        for class in &classes {
            session.each_child(class, |tag, offset| {
                found.extend(declared_as(session, class, tag, offset));
                if tag == dw::DW_TAG_inheritance {
                    bases.extend(session.follow(&class.sibling(offset), dw::DW_AT_type));
                }
                found.len() < MAX_TYPES && bases.len() < MAX_TYPES
            });
        }
        levels.push(found);
        classes = bases;
    }
    levels
}

/// Collects the types that a function or block declares, in blocks to a depth, or only in those that contain an address.
/// Those of inner blocks come first.
fn declared_in<'a>(
    session: &DieReader<'_, 'a>,
    die: &Die<'a>,
    (depth, within): (usize, Option<u64>),
    found: &mut Vec<LocalType>,
) {
    let (mut own, mut blocks) = (Vec::new(), Vec::new());
    session.each_child(die, |tag, offset| {
        own.extend(declared_as(session, die, tag, offset));
        if tag == dw::DW_TAG_lexical_block {
            blocks.push(die.sibling(offset));
        }
        found.len() + own.len() < MAX_TYPES
    });
    let covers = |(begin, end): (u64, u64)| within.is_none_or(|at| (begin..end).contains(&at));
    for block in blocks.into_iter().filter(|_| depth > 0) {
        if within.is_none() || ranges(session, &block).into_iter().any(covers) {
            declared_in(session, &block, (depth - 1, within), found);
        }
    }
    found.append(&mut own);
}

/// Returns the type that a child of a DIE declares.
fn declared_as<'a>(
    session: &DieReader<'_, 'a>,
    parent: &Die<'a>,
    tag: DwTag,
    offset: UnitOffset,
) -> Option<LocalType> {
    let is_type = matches!(
        tag,
        dw::DW_TAG_enumeration_type
            | dw::DW_TAG_structure_type
            | dw::DW_TAG_class_type
            | dw::DW_TAG_union_type
            | dw::DW_TAG_typedef
    );
    let die = is_type.then(|| parent.sibling(offset))?;
    let name = session.string(&die, dw::DW_AT_name);
    Some(LocalType {
        id: DieId::of(&die),
        is_enumeration: tag == dw::DW_TAG_enumeration_type,
        name: name.map(|name| name.to_string_lossy().into_owned()),
    })
}

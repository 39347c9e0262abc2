//! Lists global variables and types with the namespaces and classes around them.

use std::collections::BTreeSet;

use gimli::constants as dw;

use crate::address_space::AddressSpace;
use crate::module::Module;
use crate::types::{DieId, EntryKind, Language, language_of, qualified, with_session};

/// The name of a global variable or of a type.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FullName {
    /// With the namespaces and classes around it.
    pub whole: String,
    /// Without them.
    pub own: String,
}

/// Lists global variables and static members of the program and its libraries, but not of system libraries. Sorted
/// alphabetically, and at most `limit` for each module.
#[must_use]
pub fn full_names_of_globals(space: &AddressSpace, limit: usize) -> Vec<FullName> {
    listed(space, limit, |kind| kind == EntryKind::Variable)
}

/// Lists types of the program and its libraries, but not of system libraries. Sorted alphabetically, and at most `limit`
/// for each module.
#[must_use]
pub fn full_names_of_types(space: &AddressSpace, limit: usize) -> Vec<FullName> {
    let is_type = |kind| matches!(kind, EntryKind::Tagged | EntryKind::Named);
    listed(space, limit, is_type)
}

fn listed(
    space: &AddressSpace,
    limit: usize,
    is_wanted: impl Fn(EntryKind) -> bool,
) -> Vec<FullName> {
    let mut names = BTreeSet::new();
    for mapped in space.modules().iter().filter(|mapped| !mapped.is_system) {
        let module = &mapped.module;
        let ids = module.types().index().ids(&is_wanted).take(limit);
        names.extend(ids.filter_map(|id| named(module, id)));
    }
    names.into_iter().collect()
}

fn named(module: &Module, id: DieId) -> Option<FullName> {
    let read = with_session(module.entries(), id, |session, die| {
        let chain = session.chain(die);
        let own = chain
            .iter()
            .find_map(|d| session.string(d, dw::DW_AT_name))?;
        let is_c = language_of(session, die) == Language::C;
        // The declaration at the end of the chain is the DIE inside its scope.
        let scope = chain.last().map_or(id, DieId::of);
        Some((own.to_string_lossy().into_owned(), is_c, scope))
    });
    let (own, is_c, scope) = read.flatten()?;
    let whole = match is_c {
        true => own.clone(),
        false => qualified(module.types(), scope, &own),
    };
    Some(FullName { whole, own })
}

//! Global variables and static members by name.

use std::collections::BTreeSet;
use std::sync::Arc;

use gimli::constants as dw;

use super::Variable;
use super::known::{Described, Learned};
use crate::dies::Home;
use crate::layout::{ComputedOffset, DieId, EntryKind, Language, Member, MemberOffset};
use crate::layout::{language_of, name_fit, qualified, with_session};
use crate::location::Site;
use crate::module::Module;
use crate::space::{Mapped, Space};

/// Candidates for one name whose full names are compared.
const MAX_CANDIDATES: usize = 4096;
/// Added to the rank of a name that is only declared.
const DECLARED: u8 = 16;

/// Finds the global variable or static member that `name` means at the site, see [`globals`].
#[must_use]
pub fn global(site: &Site<'_>, name: &str) -> Option<Variable> {
    globals(site, name).into_iter().next()
}

/// Finds the global variables and static members called `name`, which may leave out namespaces: those of the site's unit
/// first, then its module's, then the others'; the fullest match first.
#[must_use]
pub fn globals(site: &Site<'_>, name: &str) -> Vec<Variable> {
    let here = site.space.at(site.lookup_pc);
    let unit = here.and_then(|m| super::function_at(&m.module, m.svma(site.lookup_pc)));
    let number = here.map(|m| m.number);
    let others = site.space.modules().iter();
    let others = others.filter(|m| Some(m.number) != number && site.space.names_from(m));
    let mut found = Vec::new();
    for Mapped { module, .. } in here.into_iter().chain(others) {
        let mut own = in_module(module, name);
        let is_here = number.is_some() && here.is_some_and(|m| Arc::ptr_eq(&m.module, module));
        let index = unit.filter(|_| is_here).map(|u| u.index);
        own.sort_by_key(|(rank, variable)| {
            let elsewhere = Some(variable.id.index) != index || variable.id.home != Home::Info;
            (elsewhere, *rank)
        });
        found.extend(own.into_iter().map(|(_, variable)| variable));
    }
    found
}

/// Lists names of global variables and static members of the program and its libraries, not of the system's, in
/// alphabetical order, without their namespaces: of each module at most `limit`.
#[must_use]
pub fn global_names(space: &Space, limit: usize) -> Vec<String> {
    let own = space.modules().iter().filter(|mapped| !mapped.is_system);
    let names = own.flat_map(|Mapped { module, .. }| {
        let index = module.known().index(module);
        index.variables(module, limit)
    });
    let names: BTreeSet<String> = names.collect();
    names.into_iter().collect()
}

fn in_module(module: &Arc<Module>, name: &str) -> Vec<(u8, Variable)> {
    let known = module.known_variables();
    let found = known.called(name, || read(module, name));
    let found = found.iter();
    let mut found: Vec<(u8, Variable)> = found
        .map(|(rank, one)| (*rank, one.variable(module)))
        .collect();
    // A declaration stands for the definition that the module's files share.
    let is_shared = |(rank, one): &(u8, Variable)| *rank < DECLARED && one.is_external();
    if found.iter().any(is_shared) {
        found.retain(|(rank, _)| *rank < DECLARED);
    }
    found
}

fn read(module: &Arc<Module>, name: &str) -> Vec<(u8, Described)> {
    let candidates = module.known().index(module).candidates(name);
    let of_kind = |kind| {
        let variables = candidates.iter().filter(move |e| e.kind == kind);
        variables.take(MAX_CANDIDATES).filter_map(move |entry| {
            let variable = described(module, entry.id)?;
            Some((name_fit(name, &variable.name)?, variable))
        })
    };
    let mut found: Vec<(u8, Described)> = of_kind(EntryKind::Variable).collect();
    // What is declared here may be defined in another module.
    let declared = of_kind(EntryKind::DeclaredVariable);
    found.extend(declared.map(|(rank, variable)| (rank + DECLARED, variable)));
    found
}

/// Finds the variables called `name` that the module's debug information has places for.
pub(super) fn definitions(module: &Arc<Module>, name: &str) -> Vec<Variable> {
    let found = in_module(module, name).into_iter();
    found
        .filter(|(rank, _)| *rank < DECLARED)
        .map(|(_, variable)| variable)
        .collect()
}

fn described(module: &Arc<Module>, id: DieId) -> Option<Described> {
    let read = with_session(module, id, |session, die| {
        let chain = session.chain(die);
        let plain = chain
            .iter()
            .find_map(|d| session.string(d, dw::DW_AT_name))?;
        let line = chain
            .iter()
            .find_map(|d| session.unsigned(d, dw::DW_AT_decl_line));
        let artificial = chain.iter().any(|d| session.flag(d, dw::DW_AT_artificial));
        let is_c = language_of(session, die) == Language::C;
        // The declaration at the end of the chain is the one that lies in its scope.
        let scope = chain.last().map_or(id, DieId::of);
        Some((
            plain.to_string_lossy().into_owned(),
            line,
            artificial,
            is_c,
            scope,
        ))
    });
    let (plain, line, artificial, is_c, scope) = read.flatten()?;
    Some(Described {
        name: match is_c {
            true => plain,
            false => qualified(module, scope, &plain),
        },
        file: None,
        line: line.and_then(|line| u32::try_from(line).ok()),
        is_parameter: false,
        artificial,
        scope_depth: 0,
        shadowed: false,
        id,
        function: None,
        learned: Learned::default(),
    })
}

/// Finds the variable that a static member of a class is; `None` if it is not one, or exists nowhere.
#[must_use]
pub fn static_member(member: &Member, class: &crate::layout::Type) -> Option<Variable> {
    let MemberOffset::Static(ComputedOffset(declaration)) = &member.offset else {
        return None;
    };
    let module = class.module()?;
    let own = described(module, *declaration)?;
    let stated = with_session(module, *declaration, |session, die| {
        session.attr(die, dw::DW_AT_const_value).is_some()
    });
    if stated == Some(true) {
        return Some(Arc::new(own).variable(module));
    }
    let mut found = in_module(module, &own.name);
    found.retain(|(rank, _)| *rank < DECLARED);
    found.sort_by_key(|(rank, _)| *rank);
    found.into_iter().next().map(|(_, variable)| variable)
}

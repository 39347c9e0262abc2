//! Finds global variables and static members by name.

use std::collections::BTreeSet;
use std::sync::Arc;

use gimli::constants as dw;

use super::Variable;
use super::functions::{classes_around, language_at};
use super::imports::{Imported, imported, reach};
use super::known::{Described, Learned};
use crate::address_space::{AddressSpace, Mapped};
use crate::dies::Home;
use crate::location::{FrameContext, is_removed};
use crate::module::Module;
use crate::types::{ComputedOffset, DieId, EntryKind, Language, Member, MemberOffset};
use crate::types::{language_of, name_fit, qualified, with_session};

/// Candidates for one name whose full names are compared, at most.
const MAX_CANDIDATES: usize = 4096;
/// Added to the rank of a variable that is only declared.
const DECLARED: u8 = 16;
/// Added to the rank of a variable that the linker removed. Any other one is preferred.
const REMOVED: u8 = 32;

/// Finds the global variable or static member that `name` refers to at the site; see [`globals`].
#[must_use]
pub fn global(site: &FrameContext<'_>, name: &str) -> Option<Variable> {
    globals(site, name).into_iter().next()
}

/// Finds the global variables and static members called `name`, which may omit namespaces.
///
/// Variables of the innermost namespace around the site's function come first. Those of its unit come before those of
/// other units, and fuller matches before others. A library also sees the exports of the program, and its private
/// variables where nothing else has the name. Variables of other modules are not included unless one of these modules
/// imports the name. The result is empty if `name` is ambiguous.
#[must_use]
pub fn globals(site: &FrameContext<'_>, name: &str) -> Vec<Variable> {
    let found = nearest(site, name);
    if is_hidden_in_system(site, &found) {
        let of_program = private_of_program(site, name);
        if !of_program.is_empty() {
            return of_program;
        }
    }
    if is_undecided(&found) {
        return Vec::new();
    }
    if !found.is_empty() {
        return found.into_iter().map(|one| one.variable).collect();
    }
    let modules = site.space.near(site.lookup_pc);
    if modules.iter().any(|mapped| mapped.module.imports(name)) {
        let foreign = site.space.foreign(site.lookup_pc).into_iter();
        let mut found = foreign.map(|mapped| globals_of(mapped, site, name));
        return found.find(|all| !all.is_empty()).unwrap_or_default();
    }
    private_of_program(site, name)
}

/// Returns whether a system library is at the site, and the candidates are private to other files or namespaces of it. A
/// thread that waits is in such a library; users who ask there mean a variable of the program.
fn is_hidden_in_system(site: &FrameContext<'_>, found: &[Candidate]) -> bool {
    let here = site.space.at(site.lookup_pc);
    found.first().is_some_and(Candidate::is_hidden) && here.is_some_and(|here| here.is_system)
}

/// Finds the variables that are private to the program's files, for code of a library where nothing visible has the name:
/// a waiting thread is in such code. Returns none if the name is ambiguous.
fn private_of_program(site: &FrameContext<'_>, name: &str) -> Vec<Variable> {
    // The module of the site comes first.
    let modules = site.space.near(site.lookup_pc);
    let found = modules
        .get(1)
        .map(|program| candidates(program, site, name));
    let found = found.filter(|found| !is_undecided(found));
    let found = found.unwrap_or_default().into_iter();
    found.map(|one| one.variable).collect()
}

/// Returns the variables to which `name` may equally refer, because nothing at the site prefers one: static variables
/// of other files, or those of other namespaces.
#[must_use]
pub fn rivals(site: &FrameContext<'_>, name: &str) -> Vec<Variable> {
    let found = nearest(site, name);
    let is_decided = !is_undecided(&found)
        || is_hidden_in_system(site, &found) && !private_of_program(site, name).is_empty();
    match is_decided {
        true => Vec::new(),
        false => found.into_iter().map(|one| one.variable).collect(),
    }
}

/// Finds the candidates of the first module where the site sees one without looking into other files or namespaces; else
/// those of the first module that has any. A thread that waits or aborts is in a library, whose private variables must not
/// hide those that the program exports.
fn nearest(site: &FrameContext<'_>, name: &str) -> Vec<Candidate> {
    let modules = site.space.near(site.lookup_pc).into_iter();
    let mut all: Vec<_> = modules.map(|m| visible(m, site, name)).collect();
    let is_seen = |found: &Vec<Candidate>| found.first().is_some_and(|one| !one.is_hidden());
    let is_there = |found: &Vec<Candidate>| {
        found
            .first()
            .is_some_and(|one| one.preference.rank < REMOVED)
    };
    let seen = all
        .iter()
        .position(|found| is_seen(found) && is_there(found));
    let seen = seen.or_else(|| all.iter().position(is_there));
    let chosen = seen.or_else(|| all.iter().position(|found| !found.is_empty()));
    chosen.map(|at| all.swap_remove(at)).unwrap_or_default()
}

/// Finds the candidates of a module that are visible to code at the site.
fn visible(mapped: &Mapped, site: &FrameContext<'_>, name: &str) -> Vec<Candidate> {
    let mut found = candidates(mapped, site, name);
    let here = site.space.at(site.lookup_pc);
    if here.is_some_and(|here| here.number != mapped.number) {
        found.retain(|one| one.variable.is_external());
    }
    found
}

/// A variable that a name may refer to. The candidate with the smallest preference is chosen.
struct Candidate {
    variable: Variable,
    preference: Preference,
}

impl Candidate {
    fn is_hidden(&self) -> bool {
        self.preference.is_elsewhere || self.preference.is_of_other_file
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Preference {
    /// It is outside the namespaces and classes around the site's function, and not imported into them.
    is_elsewhere: bool,
    /// It is private to another file.
    is_of_other_file: bool,
    /// The length of the prefix that its namespaces, or the one that imports it, share with the function's name. Longer is
    /// nearer.
    shared: std::cmp::Reverse<usize>,
    /// Only an import makes it as near as that.
    is_imported: bool,
    is_of_other_unit: bool,
    /// How much of the full name the searched name omits.
    rank: u8,
}

/// Returns whether the first candidate is no better than another variable.
fn is_undecided(found: &[Candidate]) -> bool {
    let [first, second, ..] = found else {
        return false;
    };
    let has_other_name = first.variable.name != second.variable.name;
    let is_other = match first.is_hidden() {
        true => has_other_name || first.variable.id.index != second.variable.id.index,
        false => first.preference.is_imported && has_other_name,
    };
    is_other && first.preference == second.preference
}

/// Finds the variables that a name may mean because of what the source imports at the site, and what is imported.
fn with_imports(
    module: &Arc<Module>,
    site: &FrameContext<'_>,
    name: &str,
) -> (Vec<(u8, Variable)>, Vec<Imported>) {
    let is_path = name.contains("::");
    if !is_path && language_at(site) == Language::Fortran {
        let renamed = renamed(module, site, name);
        if !renamed.0.is_empty() {
            return renamed;
        }
    }
    let mut found = in_module(module, name);
    if !is_path && found.len() < 2 {
        return (found, Vec::new());
    }
    let imported = imported(site, name);
    // A name without a path is the end of the full one, by which it was found already.
    for one in imported.iter().filter(|_| is_path) {
        let more = in_module(module, &one.name).into_iter();
        let more = more.filter(|(_, variable)| one.means(&variable.name));
        for (rank, variable) in more {
            if !found.iter().any(|(_, known)| known.is_same(&variable)) {
                found.push((rank, variable));
            }
        }
    }
    (found, imported)
}

/// Finds what Fortran code at the site calls by another name than its own, as near as can be.
fn renamed(
    module: &Arc<Module>,
    site: &FrameContext<'_>,
    name: &str,
) -> (Vec<(u8, Variable)>, Vec<Imported>) {
    let renamed = imported(site, name).into_iter();
    let found: Vec<(u8, Variable)> = renamed
        .flat_map(|one| in_module(module, &one.name))
        .collect();
    let near = |(_, variable): &(u8, Variable)| Imported {
        name: variable.name.clone(),
        reach: usize::MAX,
    };
    let near = found.iter().map(near).collect();
    (found, near)
}

fn candidates(mapped: &Mapped, site: &FrameContext<'_>, name: &str) -> Vec<Candidate> {
    let (found, imported) = with_imports(&mapped.module, site, name);
    let unit = unit_in(mapped, site);
    // A single candidate needs no preference.
    let function = match found.len() > 1 {
        true => super::scope_at(site),
        false => String::new(),
    };
    let mut found: Vec<Candidate> = found
        .into_iter()
        .map(|(rank, variable)| {
            let scope = variable.name.strip_suffix(name).unwrap_or(&variable.name);
            let is_around = function.starts_with(scope);
            let reach = reach(&imported, &variable.name);
            let shared = if is_around { scope.len() } else { 0 };
            let is_of_other_unit = !is_of_unit(&variable, unit);
            // In Rust, units are not scopes.
            let is_private = || variable.language() != Language::Rust && !variable.is_external();
            let preference = Preference {
                is_elsewhere: !is_around && reach.is_none(),
                is_of_other_file: is_of_other_unit && is_private(),
                shared: std::cmp::Reverse(shared.max(reach.unwrap_or(0))),
                is_imported: reach.is_some_and(|reach| !is_around || reach > shared),
                is_of_other_unit,
                rank,
            };
            Candidate {
                preference,
                variable,
            }
        })
        .collect();
    found.sort_by_key(|one| one.preference);
    found
}

/// Finds the variables of one module, the nearest to the site first.
pub fn globals_of(mapped: &Mapped, site: &FrameContext<'_>, name: &str) -> Vec<Variable> {
    let found = candidates(mapped, site, name).into_iter();
    found.map(|one| one.variable).collect()
}

/// Returns whether a module has a global variable of this name itself, and does not only declare that of another module.
#[must_use]
pub fn defines(mapped: &Mapped, name: &str) -> bool {
    !definitions(&mapped.module, name).is_empty()
}

/// Finds the variables of the units whose file is `file`, or ends with it: `dir/file.c`.
pub fn globals_of_file(mapped: &Mapped, file: &str, name: &str) -> Vec<Variable> {
    let mut found = in_module(&mapped.module, name);
    found.retain(|(rank, variable)| *rank & DECLARED == 0 && variable.is_of_file(file));
    found.sort_by_key(|(rank, _)| *rank);
    found.into_iter().map(|(_, variable)| variable).collect()
}

impl Variable {
    fn language(&self) -> Language {
        let read = with_session(self.module.entries(), self.id, |session, die| {
            language_of(session, die)
        });
        read.unwrap_or(Language::Other)
    }

    /// Returns the source file of its unit, as it was given to the compiler.
    pub fn unit_file(&self) -> Option<String> {
        let read = with_session(self.module.entries(), self.id, |_, die| {
            let name = die.unit.name?;
            Some(String::from_utf8_lossy(name.slice()).into_owned())
        });
        read.flatten()
    }

    /// Returns whether it is a static member of a class.
    #[must_use]
    pub fn is_of_class(&self) -> bool {
        let declared = with_session(self.module.entries(), self.id, |session, die| {
            session.chain(die).last().map(DieId::of)
        });
        let declared = declared.flatten();
        declared.is_some_and(|declared| !classes_around(&self.module, declared).is_empty())
    }

    /// Returns the source file that a variable of C or C++ is private to, if the code at the site is of another file.
    #[must_use]
    pub fn foreign_file(&self, site: &FrameContext<'_>) -> Option<String> {
        let here = site.space.at(site.lookup_pc)?;
        let unit = unit_in(here, site)?;
        let is_own = Arc::ptr_eq(&here.module, &self.module) && is_of_unit(self, Some(unit));
        let is_private = !is_own
            && self.function.is_none()
            && matches!(self.language(), Language::C | Language::Cpp)
            && !self.is_external();
        is_private.then(|| self.unit_file()).flatten()
    }

    fn is_of_file(&self, file: &str) -> bool {
        let whole = self.unit_file();
        let rest = whole.as_deref().and_then(|whole| whole.strip_suffix(file));
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
    }
}

/// Returns whether `name` is a global variable that is visible in the source of the site's function: one of its unit,
/// in the function's own namespaces or in none.
pub fn is_in_file(site: &FrameContext<'_>, name: &str) -> bool {
    let Some(mapped) = site.space.at(site.lookup_pc) else {
        return false;
    };
    let unit = unit_in(mapped, site);
    let found = in_module(&mapped.module, name);
    let mut own = found.iter().filter(|(_, v)| is_of_unit(v, unit)).peekable();
    if own.peek().is_none() {
        return false;
    }
    let function = super::scope_at(site);
    own.any(|(_, variable)| {
        let scope = variable.name.strip_suffix(name).unwrap_or(&variable.name);
        function.starts_with(scope)
    })
}

/// Returns the unit of the code at the site.
#[must_use]
pub fn unit_at(site: &FrameContext<'_>) -> Option<usize> {
    unit_in(site.space.at(site.lookup_pc)?, site)
}

fn unit_in(mapped: &Mapped, site: &FrameContext<'_>) -> Option<usize> {
    let is_here = mapped.range.contains(&site.lookup_pc);
    let svma = mapped.svma(site.lookup_pc);
    let function = is_here.then(|| super::function_at(&mapped.module, svma));
    function.flatten().map(|function| function.index)
}

fn is_of_unit(variable: &Variable, unit: Option<usize>) -> bool {
    Some(variable.id.index) == unit && variable.id.home == Home::Info
}

/// Lists names of global variables and static members of the program and its libraries, but not of system libraries.
/// Sorted alphabetically, without namespaces, and at most `limit` for each module.
#[must_use]
pub fn global_names(space: &AddressSpace, limit: usize) -> Vec<String> {
    let own = space.modules().iter().filter(|mapped| !mapped.is_system);
    let names = own.flat_map(|Mapped { module, .. }| {
        let index = module.types().index();
        index.variables(module.entries(), limit)
    });
    let names: BTreeSet<String> = names.collect();
    names.into_iter().collect()
}

fn in_module(module: &Arc<Module>, name: &str) -> Vec<(u8, Variable)> {
    let known = module.variables();
    let found = known.called(name, || read(module, name));
    let found = found.iter();
    let mut found: Vec<(u8, Variable)> = found
        .map(|(rank, one)| (*rank, one.variable(module)))
        .collect();
    // A declaration stands for the definition that the module's files share.
    if found.iter().any(|(rank, _)| *rank < REMOVED) {
        found.retain(|(rank, _)| *rank < REMOVED);
    }
    let is_shared = |(rank, one): &(u8, Variable)| *rank < DECLARED && one.is_external();
    if found.iter().any(is_shared) {
        found.retain(|(rank, _)| *rank < DECLARED);
    }
    found
}

fn read(module: &Arc<Module>, name: &str) -> Vec<(u8, Described)> {
    let candidates = module.types().index().candidates(name);
    let of_kind = |kind| {
        let variables = candidates.iter().filter(move |e| e.kind == kind);
        variables.take(MAX_CANDIDATES).filter_map(move |entry| {
            let variable = described(module, entry.id)?;
            let fit = name_fit(name, &variable.name);
            let fit = fit.or_else(|| is_of_fortran_module(module, entry.id, name).then_some(0));
            Some((fit?, variable))
        })
    };
    let defined = of_kind(EntryKind::Variable).map(|(rank, variable)| {
        let is_removed = is_removed(module, variable.id);
        (rank + if is_removed { REMOVED } else { 0 }, variable)
    });
    let mut found: Vec<(u8, Described)> = defined.collect();
    // A variable that is only declared here may be defined in another module.
    let declared = of_kind(EntryKind::DeclaredVariable);
    found.extend(declared.map(|(rank, variable)| (rank + DECLARED, variable)));
    found
}

/// Returns whether `name` is `MODULE::VARIABLE` of Fortran: modules are no part of names in the debug information, but of those that
/// gfortran gives the linker.
fn is_of_fortran_module(module: &Arc<Module>, id: DieId, name: &str) -> bool {
    let Some((of, variable)) = name.split_once("::") else {
        return false;
    };
    let linked = with_session(module.entries(), id, |session, die| {
        let linked = session.string(die, dw::DW_AT_linkage_name)?;
        Some(linked.to_string_lossy() == format!("__{of}_MOD_{variable}"))
    });
    linked.flatten() == Some(true)
}

/// Finds the variables called `name` that have a place in the module's debug information.
pub(super) fn definitions(module: &Arc<Module>, name: &str) -> Vec<Variable> {
    let found = in_module(module, name).into_iter();
    found
        .filter(|(rank, _)| *rank < DECLARED)
        .map(|(_, variable)| variable)
        .collect()
}

fn described(module: &Arc<Module>, id: DieId) -> Option<Described> {
    let read = with_session(module.entries(), id, |session, die| {
        let chain = session.chain(die);
        let plain = chain
            .iter()
            .find_map(|d| session.string(d, dw::DW_AT_name))?;
        let line = chain
            .iter()
            .find_map(|d| session.unsigned(d, dw::DW_AT_decl_line));
        let artificial = chain.iter().any(|d| session.flag(d, dw::DW_AT_artificial));
        let is_c = language_of(session, die) == Language::C;
        // The declaration at the end of the chain is the DIE inside its scope.
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
            false => qualified(module.types(), scope, &plain),
        },
        file: None,
        line: line.and_then(|line| u32::try_from(line).ok()),
        is_parameter: false,
        artificial,
        scope_depth: 0,
        block_begins: None,
        block: None,
        shadowed: false,
        inline_depth: 0,
        id,
        function: None,
        learned: Learned::default(),
    })
}

/// Finds the variable of a static member of a class. Returns `None` if it is not static, or is not defined anywhere.
#[must_use]
pub fn static_member(member: &Member, class: &crate::types::Type) -> Option<Variable> {
    let MemberOffset::Static(ComputedOffset(declaration)) = &member.offset else {
        return None;
    };
    let module = class.module()?;
    let own = described(module, *declaration)?;
    let stated = with_session(module.entries(), *declaration, |session, die| {
        session.attr(die, dw::DW_AT_const_value).is_some()
    });
    if stated == Some(true) {
        return Some(Arc::new(own).variable(module));
    }
    let mut found = in_module(module, &own.name);
    found.retain(|(rank, _)| *rank & DECLARED == 0);
    found.sort_by_key(|(rank, _)| *rank);
    found.into_iter().next().map(|(_, variable)| variable)
}

//! Names that C++ code has from other namespaces: `namespace a = b;`, `using namespace n;`, `using n::x;` and inline namespaces; and
//! those that Fortran renames, as in `use shop, only: held => count`.
//!
//! Compilers describe them as imported modules and declarations in the scope that has them (DWARF 5, 3.2.3 and 3.2.5).

use std::sync::Arc;

use gimli::constants as dw;
use gimli::{AttributeSpecification, DwTag, UnitOffset};
use rustc_hash::FxHashMap;

use super::enclosing::around;
use super::functions::{copies_at, ranges, scope_at};
use super::globals::unit_at;
use crate::dies::{Die, DieReader, Home};
use crate::location::FrameContext;
use crate::model::Svma;
use crate::module::Module;
use crate::types::{
    ANONYMOUS, DieId, Language, components, language_of, qualified, split_scope, with_session,
};

/// Imports read of one unit or function, at most.
const MAX_IMPORTS: usize = 1 << 14;
/// Depth of nested blocks that are searched.
const MAX_DEPTH: usize = 64;
/// Imports of imports that are followed.
const MAX_STEPS: usize = 8;
/// Full names that one name may stand for, and namespaces whose names are seen in another one, at most.
const MAX_NAMES: usize = 64;
/// Stands for the blocks of the function. No namespace is called so.
const BLOCKS: &str = "{}";

/// A full name that a name may mean because it, or a scope in it, is imported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// The full name.
    pub name: String,
    /// How near it is: the length of the namespace that has it, with the `::` behind it; most for a block. What a directive
    /// (`using namespace`) gives is had by the innermost namespace around both the directive and its target
    /// ([basic.lookup.unqual] of the C++ standard).
    pub reach: usize,
}

impl Imported {
    /// Returns whether `full` is this name. Namespaces without a name do not count.
    pub(crate) fn means(&self, full: &str) -> bool {
        self.name == full || full.contains(ANONYMOUS) && visible(&self.name) == visible(full)
    }
}

fn visible(name: &str) -> String {
    name.replace(&format!("{ANONYMOUS}::"), "")
}

/// Returns the nearest import that gives `full` its name.
pub(crate) fn reach(all: &[Imported], full: &str) -> Option<usize> {
    let meant = all.iter().filter(|one| one.means(full));
    meant.map(|one| one.reach).max()
}

/// One import.
#[derive(Debug)]
struct Import {
    /// The name in its scope. `None`: all names of the target are seen there.
    name: Option<String>,
    /// The full name of what is imported.
    target: String,
}

/// Imports by the full name of the scope that has them.
#[derive(Debug, Default)]
pub(super) struct Imports(FxHashMap<String, Vec<Import>>);

/// The imports that code at a place sees.
struct Seen {
    lists: [Arc<Imports>; 2],
}

/// Returns the full names that `name` may mean at the site because of what the source imports there, the nearest first. Those
/// that need no import are not included. Not all of them exist.
#[must_use]
pub fn imported(site: &FrameContext<'_>, name: &str) -> Vec<Imported> {
    let Some(seen) = Seen::at(site) else {
        return Vec::new();
    };
    let outermost = name.strip_prefix("::");
    let parts = components(outermost.unwrap_or(name));
    let function = scope_at(site);
    let mut scopes = vec![BLOCKS];
    let mut rest = function.as_str();
    while let Some((outer, _)) = split_scope(rest) {
        scopes.push(outer);
        rest = outer;
    }
    if outermost.is_some() {
        scopes.clear();
    }
    scopes.push("");
    let around = split_scope(&function).map_or("", |(around, _)| around);
    let found = scopes.into_iter().flat_map(|scope| match scope {
        BLOCKS => seen.names(BLOCKS, (around, usize::MAX), &parts),
        scope => seen.names(scope, (scope, length(scope)), &parts),
    });
    found.collect()
}

/// The length of a namespace's name, with the `::` behind it.
fn length(scope: &str) -> usize {
    match scope {
        "" => 0,
        scope => scope.len() + 2,
    }
}

/// The length of the innermost namespace around both.
fn shared(scope: &str, target: &str) -> usize {
    let (scope, target) = (components(scope), components(target));
    let both = scope.iter().zip(&target);
    let same = both.take_while(|(a, b)| a == b && !a.is_empty());
    same.map(|(part, _)| length(part)).sum()
}

impl Seen {
    /// Returns `None` if nothing is imported there.
    fn at(site: &FrameContext<'_>) -> Option<Seen> {
        let mapped = site.space.at(site.lookup_pc)?;
        let unit = unit_at(site)?;
        let module = &mapped.module;
        let known = module.variables();
        let around = known.imports.get(&unit, || Arc::new(of_unit(module, unit)));
        let (svma, depth) = (mapped.svma(site.lookup_pc), site.inline_depth);
        let own = known.local_imports.get(&(svma.0, depth), || {
            Arc::new(of_blocks(site, module, svma, depth))
        });
        let is_any = !around.0.is_empty() || !own.0.is_empty();
        is_any.then_some(Seen {
            lists: [own, around],
        })
    }

    fn of(&self, scope: &str) -> impl Iterator<Item = &Import> {
        let lists = self.lists.iter();
        lists.filter_map(move |list| list.0.get(scope)).flatten()
    }

    /// Returns the full names that the name of these components in a scope may mean through imports. `around` is the namespace
    /// of the scope, and `reach` how near what the scope itself imports is.
    fn names(&self, scope: &str, (around, reach): (&str, usize), parts: &[&str]) -> Vec<Imported> {
        let mut names: Vec<(String, Option<usize>)> = vec![(scope.to_owned(), None)];
        for (at, part) in parts.iter().copied().enumerate() {
            let of_directive = |target: &str| match at {
                0 => shared(around, target),
                _ => reach,
            };
            let mut next = Vec::new();
            for (scope, known) in &names {
                let visible = self.visible_in(scope);
                for (step, space) in visible.iter().enumerate() {
                    let given = (step > 0).then(|| of_directive(space.as_str()));
                    let given = known.or(given);
                    let named = self.of(space);
                    let named = named.filter(|one| one.name.as_deref() == Some(part));
                    let nearest = given.unwrap_or(reach);
                    next.extend(named.map(|one| (one.target.clone(), Some(nearest))));
                    next.extend(inside(space, part).map(|full| (full, given)));
                }
            }
            next.truncate(MAX_NAMES);
            names = next;
        }
        let names = names.into_iter();
        names
            .filter_map(|(name, reach)| {
                let reach = reach?;
                Some(Imported { name, reach })
            })
            .collect()
    }

    /// Returns a scope and the namespaces whose names are seen in it.
    fn visible_in(&self, scope: &str) -> Vec<String> {
        let mut found = vec![scope.to_owned()];
        let mut at = 0;
        while at < found.len() && found.len() < MAX_NAMES {
            let whole = self.of(&found[at]).filter(|one| one.name.is_none());
            let targets: Vec<String> = whole.map(|one| one.target.clone()).collect();
            for target in targets {
                if !found.contains(&target) {
                    found.push(target);
                }
            }
            at += 1;
        }
        found
    }
}

/// Returns the full name of what a namespace has; `None` for blocks, whose own names are found otherwise.
fn inside(space: &str, part: &str) -> Option<String> {
    match space {
        BLOCKS => None,
        "" => Some(part.to_owned()),
        space => Some(format!("{space}::{part}")),
    }
}

/// An import as its DIE states it.
struct Stated {
    at: DieId,
    name: Option<String>,
    target: DieId,
    /// The target's name without its scope.
    plain: String,
}

fn of_unit(module: &Arc<Module>, unit: usize) -> Imports {
    let root = DieId {
        home: Home::Info,
        index: unit,
        offset: 0,
    };
    let stated: Option<Vec<Stated>> = with_session(module.entries(), root, |session, die| {
        if language_of(session, die) != Language::Cpp {
            return Vec::new();
        }
        let all = listed(session, die).into_iter();
        all.filter_map(|at| stated(session, &die.sibling(at)))
            .collect()
    });
    let mut found = Imports::default();
    for one in stated.unwrap_or_default() {
        let scope = qualified(module.types(), one.at, "");
        let scope = scope.strip_suffix("::").unwrap_or(&scope).to_owned();
        found.add(module, scope, one);
    }
    found
}

/// Reads the imports in the blocks around an address. An inner block comes before those around it.
fn of_blocks(site: &FrameContext<'_>, module: &Arc<Module>, svma: Svma, depth: usize) -> Imports {
    let copies = copies_at(module, svma);
    let mut found = Imports::default();
    let Some(copy) = copies.get(depth) else {
        return found;
    };
    let read = |function: DieId| {
        let stated = with_session(module.entries(), function, |session, die| {
            let mut all = Vec::new();
            let language = language_of(session, die);
            if matches!(language, Language::Cpp | Language::Fortran) {
                for die in session.chain(die) {
                    in_block(session, &die, (svma.0, MAX_DEPTH), &mut all);
                }
            }
            (all, language == Language::Fortran)
        });
        stated.unwrap_or_default()
    };
    let (mut all, is_fortran) = read(*copy);
    // An internal procedure has the names of the program unit that it is in.
    if is_fortran {
        let outer = around(site).into_iter().filter_map(|outer| outer.die());
        all.extend(outer.flat_map(|outer| read(outer).0));
    }
    for one in all {
        found.add(module, BLOCKS.to_owned(), one);
    }
    found
}

impl Imports {
    fn add(&mut self, module: &Arc<Module>, scope: String, stated: Stated) {
        let target = qualified(module.types(), stated.target, &stated.plain);
        let import = Import {
            name: stated.name,
            target,
        };
        self.0.entry(scope).or_default().push(import);
    }
}

fn is_import(tag: DwTag) -> bool {
    matches!(
        tag,
        dw::DW_TAG_imported_declaration | dw::DW_TAG_imported_module
    )
}

/// Lists the imports and inline namespaces of a unit outside functions.
fn listed<'a>(session: &DieReader<'_, 'a>, die: &Die<'a>) -> Vec<UnitOffset> {
    let mut found = Vec::new();
    let Ok(mut entries) = die.unit.entries_raw(None) else {
        return found;
    };
    // The depth of the function whose inside is skipped.
    let mut body: Option<isize> = None;
    while !entries.is_empty() && found.len() < MAX_IMPORTS {
        let (offset, depth) = (entries.next_offset(), entries.next_depth());
        body = body.filter(|at| depth > *at);
        let Ok(abbreviation) = entries.read_abbreviation() else {
            break;
        };
        let Some(abbreviation) = abbreviation else {
            continue;
        };
        let (tag, specs) = (abbreviation.tag(), abbreviation.attributes());
        let paid = session.spend(specs.len() / 8 + 1);
        if paid.is_none() || entries.skip_attributes(specs).is_err() {
            break;
        }
        if body.is_some() {
            continue;
        }
        if tag == dw::DW_TAG_subprogram && abbreviation.has_children() {
            body = Some(depth);
        }
        let exports = |spec: &AttributeSpecification| spec.name() == dw::DW_AT_export_symbols;
        let is_inline = tag == dw::DW_TAG_namespace && specs.iter().any(exports);
        if is_inline || is_import(tag) {
            found.push(offset);
        }
    }
    found
}

/// Collects the imports of a function or block and of the blocks in it that cover the address.
fn in_block<'a>(
    session: &DieReader<'_, 'a>,
    die: &Die<'a>,
    (svma, depth): (u64, usize),
    found: &mut Vec<Stated>,
) {
    let (mut imports, mut blocks) = (Vec::new(), Vec::new());
    session.each_child(die, |tag, offset| {
        if is_import(tag) {
            let import = die.sibling(offset);
            imports.extend(renames(session, &import));
            imports.push(import);
        } else if tag == dw::DW_TAG_lexical_block {
            blocks.push(die.sibling(offset));
        }
        imports.len() + blocks.len() < MAX_IMPORTS
    });
    let covers = |block: &Die<'a>| {
        let ranges = ranges(session, block);
        ranges.is_empty()
            || ranges
                .iter()
                .any(|(begin, end)| (*begin..*end).contains(&svma))
    };
    if let Some(depth) = depth.checked_sub(1) {
        for block in blocks.iter().filter(|block| covers(block)) {
            in_block(session, block, (svma, depth), found);
        }
    }
    found.extend(imports.iter().filter_map(|one| stated(session, one)));
}

/// Lists what an imported module of Fortran renames.
fn renames<'a>(session: &DieReader<'_, 'a>, import: &Die<'a>) -> Vec<Die<'a>> {
    session.children(import, &[dw::DW_TAG_imported_declaration])
}

/// Reads an import, or an inline namespace, whose names are those of the namespace around it.
fn stated<'a>(session: &DieReader<'_, 'a>, die: &Die<'a>) -> Option<Stated> {
    let string = |die: &Die<'a>| {
        let name = session.string(die, dw::DW_AT_name)?;
        Some(name.to_string_lossy().into_owned())
    };
    let tag = session.tag(die)?;
    if tag == dw::DW_TAG_namespace {
        return Some(Stated {
            at: DieId::of(die),
            name: None,
            target: DieId::of(die),
            plain: string(die)?,
        });
    }
    let mut target = session.follow(die, dw::DW_AT_import)?;
    // An alias of an alias.
    for _ in 0..MAX_STEPS {
        match session.tag(&target) {
            Some(tag) if is_import(tag) => target = session.follow(&target, dw::DW_AT_import)?,
            _ => break,
        }
    }
    let chain = session.chain(&target);
    let is_fortran = language_of(session, die) == Language::Fortran;
    let (plain, name) = match is_fortran {
        // What it does not rename is found by its own name.
        true => (of_module(session, &chain)?, Some(string(die)?)),
        false => {
            let plain = chain.iter().find_map(string)?;
            let name = match tag {
                dw::DW_TAG_imported_module => None,
                _ => Some(string(die).unwrap_or_else(|| plain.clone())),
            };
            (plain, name)
        }
    };
    Some(Stated {
        at: DieId::of(die),
        name,
        // The declaration at the end of the chain is the DIE inside its scope.
        target: DieId::of(chain.last()?),
        plain,
    })
}

/// Returns the name of what a module of Fortran has, `MODULE::NAME`, by the name that gfortran gives the linker.
fn of_module<'a>(session: &DieReader<'_, 'a>, chain: &[Die<'a>]) -> Option<String> {
    let mut linked = chain.iter();
    let linked = linked.find_map(|die| session.string(die, dw::DW_AT_linkage_name))?;
    let linked = linked.to_string_lossy();
    let (module, name) = linked.strip_prefix("__")?.split_once("_MOD_")?;
    Some(format!("{module}::{name}"))
}

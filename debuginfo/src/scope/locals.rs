//! Lists the variables visible at a place in a function, innermost first.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use gimli::constants as dw;
use gimli::{AttributeValue, DwTag};

use super::Variable;
use super::functions::{copies_at, language_at, ranges};
use super::known::{Described, Learned};
use crate::abi::args::numbered;
use crate::address_space::AddressSpace;
use crate::dies::{Die, DieReader};
use crate::functions::files::Files;
use crate::lines::{InlinedCopy, SourceLine};
use crate::location::FrameContext;
use crate::model::Svma;
use crate::module::Module;
use crate::types::{DieId, Language, with_session};

/// Depth of nested blocks that are searched.
const MAX_DEPTH: usize = 256;
/// Variables listed of one function, at most.
const MAX_VARIABLES: usize = 1 << 14;

/// Lists the parameters and variables visible at the site: the innermost block first, and source order in each block.
/// Variables of an inlined function are listed only for its own frame; see [`FrameContext::inline_depth`].
#[must_use]
pub fn variables_at(site: &FrameContext<'_>) -> Vec<Variable> {
    match described_at(site) {
        Some((module, all)) => all.iter().map(|one| one.variable(module)).collect(),
        None => Vec::new(),
    }
}

/// Returns whether the function at the site has a variable called `name` in any of its blocks. Functions inlined into
/// it do not count.
#[must_use]
pub fn has_variable(site: &FrameContext<'_>, name: &str) -> bool {
    let Some(mapped) = site.space.at(site.lookup_pc) else {
        return false;
    };
    let (module, svma) = (&mapped.module, mapped.svma(site.lookup_pc));
    let all = read(module, svma, site.inline_depth, Blocks::All);
    all.iter().any(|variable| variable.name == name)
}

/// Finds the innermost variable called `name`. If another one may be meant just as well, its value is unknown.
pub fn variable_at(site: &FrameContext<'_>, name: &str) -> Option<Variable> {
    let (module, all) = described_at(site)?;
    let meant = meant(site, (module, &all), name);
    let (first, rivals) = meant.split_first()?;
    Some(Variable {
        rival: rivals.first().and_then(|rival| rival.line),
        ..first.variable(module)
    })
}

/// Returns the variables that `name` may mean: the innermost one, and those that may be in its block. Clang states no block
/// of their own for what a `catch` declares, and puts the static variables of all blocks into the function's.
fn meant<'v>(
    site: &FrameContext<'_>,
    (module, all): (&Module, &'v [Arc<Described>]),
    name: &str,
) -> Vec<&'v Arc<Described>> {
    let mut named = all.iter().filter(|one| one.name == name);
    let Some(first) = named.next() else {
        return Vec::new();
    };
    let beside = named.filter(|one| is_beside(module, first, one) || is_moved_out(first, one));
    let mut found: Vec<_> = std::iter::once(first).chain(beside).collect();
    let may_share = || matches!(language_at(site), Language::C | Language::Cpp);
    if found.len() > 1 && may_share() {
        keep_declared(site, &mut found);
    } else {
        found.truncate(1);
    }
    found
}

/// Returns whether two variables of one name are declared in one block. The parameters of a pack have one name.
fn is_beside(module: &Module, first: &Described, other: &Described) -> bool {
    let is_same_block = first.block.is_some() && first.block == other.block;
    let is_pack = first.is_parameter && other.is_parameter;
    let has_lines = first.line.is_some() && other.line.is_some();
    is_same_block
        && !is_pack
        && has_lines
        && declaration(module, first) != declaration(module, other)
}

/// Returns whether a variable of a block further out is declared behind an inner one. If that is before the site, it was
/// declared in the inner block: what follows the block is not in scope in it.
fn is_moved_out(inner: &Described, outer: &Described) -> bool {
    let is_further_out =
        inner.block.is_some() && outer.block.is_some() && inner.block != outer.block;
    let is_local = !inner.is_parameter && !outer.is_parameter;
    is_further_out
        && is_local
        && inner.file == outer.file
        && inner.line.is_some()
        && inner.line < outer.line
}

/// Returns the DIE that declares a variable in the source.
fn declaration(module: &Module, variable: &Described) -> Option<DieId> {
    let last = with_session(module.entries(), variable.id, |session, die| {
        session.chain(die).last().map(DieId::of)
    });
    last.flatten()
}

/// Removes the variables that are declared behind the site. On the line of a declaration, its variable is meant; behind it,
/// its scope may have ended.
fn keep_declared(site: &FrameContext<'_>, found: &mut Vec<&Arc<Described>>) {
    let Some(here) = line_of(site) else { return };
    let line = |one: &Arc<Described>| {
        let is_here = one.file.as_deref() == Some(&*here.file);
        one.line.filter(|_| is_here)
    };
    let is_declared = |one: &&Arc<Described>| line(one).is_none_or(|line| line <= here.line);
    match found.iter().any(is_declared) {
        true => found.retain(is_declared),
        false => found.truncate(1),
    }
    let own = found.iter().copied();
    let own: Vec<_> = own.filter(|one| line(one) == Some(here.line)).collect();
    if own.len() == 1 {
        *found = own;
    }
}

/// Returns the line at which the call of the site stands: that of the instruction, or of the next inlined call.
fn line_of(site: &FrameContext<'_>) -> Option<SourceLine> {
    let calls = site.space.calls_at(site.lookup_pc);
    match calls.get(site.inline_depth + 1) {
        Some(inner) => inner.call.clone(),
        None => site.space.line_at(site.lookup_pc),
    }
}

/// Lists the variables of all blocks of the function whose code is at `address`.
pub fn variables_of(space: &AddressSpace, address: u64) -> Vec<Variable> {
    all_variables(space, address, 0)
}

/// Lists the variables of all blocks of an inlined copy.
pub fn variables_of_copy(space: &AddressSpace, copy: &InlinedCopy) -> Vec<Variable> {
    let first = copy.ranges.first();
    first.map_or_else(Vec::new, |range| {
        all_variables(space, range.start, copy.inline_depth)
    })
}

/// Lists the variables of all blocks of the function at `address` that is nested in `inline_depth` inlined calls.
fn all_variables(space: &AddressSpace, address: u64, inline_depth: usize) -> Vec<Variable> {
    let Some(mapped) = space.at(address) else {
        return Vec::new();
    };
    let svma = mapped.svma(address);
    let all = read(&mapped.module, svma, inline_depth, Blocks::All);
    let all = all.into_iter().map(Arc::new);
    all.map(|one| one.variable(&mapped.module)).collect()
}

/// Lists the variables of all blocks of a function, given by its DIE.
pub(super) fn all_of(module: &Arc<Module>, function: DieId) -> Vec<Variable> {
    let all = described(module, (function, function), (Svma(0), 0), Blocks::All);
    let all = all.into_iter().map(Arc::new);
    all.map(|one| one.variable(module)).collect()
}

fn described_at<'s>(
    site: &FrameContext<'s>,
) -> Option<(&'s Arc<Module>, Arc<Vec<Arc<Described>>>)> {
    let mapped = site.space.at(site.lookup_pc)?;
    let (module, svma) = (&mapped.module, mapped.svma(site.lookup_pc));
    let depth = site.inline_depth;
    let known = module.variables();
    let all = known.at(svma.0, depth, || read(module, svma, depth, Blocks::Around));
    Some((module, all))
}

/// Which blocks of a function to search.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Blocks {
    /// Those that cover the address.
    Around,
    All,
}

fn read(module: &Arc<Module>, svma: Svma, depth: usize, blocks: Blocks) -> Vec<Described> {
    let copies = copies_at(module, svma);
    let (Some(function), Some(root)) = (copies.first(), copies.get(depth)) else {
        return Vec::new();
    };
    described(module, (*function, *root), (svma, depth), blocks)
}

/// Describes the variables of `root`, which is `function` or nested in `depth` calls that are inlined into it.
fn described(
    module: &Arc<Module>,
    (function, root): (DieId, DieId),
    (svma, depth): (Svma, usize),
    blocks: Blocks,
) -> Vec<Described> {
    let found = with_session(module.entries(), root, |session, die| {
        Walk {
            session,
            files: Files::new(session),
            function,
            inline_depth: depth,
            svma: svma.0,
            blocks,
            begins: None,
            block: None,
            kept: HashSet::new(),
            found: Vec::new(),
            declared: Vec::new(),
        }
        .variables(die)
    });
    found.unwrap_or_default()
}

struct Walk<'w, 't, 'a> {
    session: &'w DieReader<'t, 'a>,
    files: Files<'w, 't, 'a>,
    function: DieId,
    inline_depth: usize,
    svma: u64,
    blocks: Blocks,
    /// Where the innermost block begins that is being visited.
    begins: Option<u64>,
    /// The block whose variables are being listed; `None` while those are that have no instance in it.
    block: Option<DieId>,
    /// The abstract origins of all variables in this instance.
    kept: HashSet<DieId>,
    found: Vec<Described>,
    /// The DIEs that declare them in the source.
    declared: Vec<DieId>,
}

fn is_block(tag: DwTag) -> bool {
    matches!(
        tag,
        dw::DW_TAG_lexical_block | dw::DW_TAG_try_block | dw::DW_TAG_catch_block
    )
}

fn is_variable(tag: DwTag) -> bool {
    matches!(
        tag,
        dw::DW_TAG_variable | dw::DW_TAG_constant | dw::DW_TAG_formal_parameter
    )
}

impl<'a> Walk<'_, '_, 'a> {
    fn variables(mut self, root: &Die<'a>) -> Vec<Described> {
        let mut kept = HashSet::new();
        self.origins(root, &mut kept, 0);
        self.kept = kept;
        self.block(root, 0);
        self.number_packs();
        // Blocks were visited from the outside in. The stable sort keeps the order within each block.
        self.found.sort_by_key(|v| std::cmp::Reverse(v.scope_depth));
        let mut seen = HashSet::new();
        for variable in &mut self.found {
            variable.shadowed = !seen.insert(variable.name.clone());
        }
        self.found
    }

    /// Numbers the parameters of a pack from the second one on, in the order of the source.
    fn number_packs(&mut self) {
        let mut packs: HashMap<String, Vec<(DieId, usize)>> = HashMap::new();
        for (index, (one, declared)) in self.found.iter().zip(&self.declared).enumerate() {
            if one.is_parameter && one.scope_depth == 0 {
                let pack = packs.entry(one.name.clone()).or_default();
                pack.push((*declared, index));
            }
        }
        for (name, mut pack) in packs {
            pack.sort_unstable();
            let mut before = 0;
            for pair in pack.windows(2) {
                before += usize::from(pair[0].0 != pair[1].0);
                self.found[pair[1].1].name = numbered(&name, before);
            }
        }
    }

    fn covers(&self, die: &Die<'a>) -> bool {
        let ranges = ranges(self.session, die);
        ranges
            .iter()
            .any(|(begin, end)| (*begin..*end).contains(&self.svma))
    }

    /// A block is entered if it covers the address, or if it states no addresses at all.
    fn enters(&self, die: &Die<'a>) -> bool {
        let session = self.session;
        let stated = [dw::DW_AT_low_pc, dw::DW_AT_ranges];
        let stated = stated.iter().any(|name| session.attr(die, *name).is_some());
        !stated || self.blocks == Blocks::All || self.covers(die)
    }

    fn block(&mut self, die: &Die<'a>, depth: usize) {
        let (mut variables, mut blocks) = (Vec::new(), Vec::new());
        self.session.each_child(die, |tag, offset| {
            let child = die.sibling(offset);
            if is_variable(tag) {
                variables.push((tag, child));
            } else if tag == dw::DW_TAG_common_block {
                // COMMON of Fortran: what it lists are names of the subprogram.
                self.session.each_child(&child, |tag, offset| {
                    variables.push((tag, child.sibling(offset)));
                    variables.len() < MAX_VARIABLES
                });
                variables.retain(|(tag, _)| is_variable(*tag));
            } else if is_block(tag) && self.enters(&child) {
                blocks.push(child);
            }
            variables.len() < MAX_VARIABLES
        });
        self.block = Some(DieId::of(die));
        for (tag, child) in variables {
            self.variable(&child, tag, depth);
        }
        self.block = None;
        self.removed(die, depth);
        if depth < MAX_DEPTH {
            let around = self.begins;
            for block in blocks {
                let first = ranges(self.session, &block)
                    .first()
                    .map(|(begin, _)| *begin);
                self.begins = first.or(around);
                self.block(&block, depth + 1);
            }
            self.begins = around;
        }
    }

    fn variable(&mut self, die: &Die<'a>, tag: DwTag, depth: usize) {
        if self.found.len() >= MAX_VARIABLES {
            return;
        }
        let session = self.session;
        let chain = session.chain(die);
        let name = chain.iter().find_map(|d| session.string(d, dw::DW_AT_name));
        let Some(name) = name else { return };
        // An `extern` declaration in a block stands for a global variable.
        if session.flag(die, dw::DW_AT_declaration) {
            return;
        }
        let number = |d: &Die<'a>| match session.attr(d, dw::DW_AT_decl_file)? {
            AttributeValue::FileIndex(number) => Some(number),
            value => value.udata_value(),
        };
        let file = chain.iter().find_map(|d| self.files.path(d, number(d)?));
        let line = chain
            .iter()
            .find_map(|d| session.unsigned(d, dw::DW_AT_decl_line));
        self.declared.push(DieId::of(chain.last().unwrap_or(die)));
        self.found.push(Described {
            name: name.to_string_lossy().into_owned(),
            file,
            line: line.and_then(|line| u32::try_from(line).ok()),
            is_parameter: tag == dw::DW_TAG_formal_parameter,
            artificial: chain.iter().any(|d| session.flag(d, dw::DW_AT_artificial)),
            scope_depth: depth,
            block_begins: self.begins,
            block: self.block,
            shadowed: false,
            inline_depth: self.inline_depth,
            id: DieId::of(die),
            function: Some(self.function),
            learned: Learned::default(),
        });
    }

    /// Adds the declarations in the abstract origin of `die`, a block or function, that the compiler omitted from this
    /// instance altogether.
    fn removed(&mut self, die: &Die<'a>, depth: usize) {
        let session = self.session;
        let Some(origin) = session.follow(die, dw::DW_AT_abstract_origin) else {
            return;
        };
        let mut instances = HashSet::new();
        session.each_child(die, |_, offset| {
            let origin = session.follow(&die.sibling(offset), dw::DW_AT_abstract_origin);
            instances.extend(origin.iter().map(DieId::of));
            instances.len() < MAX_VARIABLES
        });
        self.missing(&origin, &instances, depth, 0);
    }

    /// Adds the variables of an abstract block that has no instance, and those of such blocks in it.
    fn missing(
        &mut self,
        origin: &Die<'a>,
        instances: &HashSet<DieId>,
        depth: usize,
        nesting: usize,
    ) {
        let mut missing = Vec::new();
        self.session.each_child(origin, |tag, offset| {
            let child = origin.sibling(offset);
            let is_gone = !instances.contains(&DieId::of(&child));
            if (is_variable(tag) || is_block(tag)) && is_gone {
                missing.push((tag, child));
            }
            missing.len() < MAX_VARIABLES
        });
        for (tag, child) in missing {
            if is_block(tag) {
                if nesting < MAX_DEPTH {
                    self.missing(&child, instances, depth, nesting + 1);
                }
            } else if !self.kept.contains(&DieId::of(&child)) {
                self.variable(&child, tag, depth);
            }
        }
    }

    /// Collects the abstract origins of the variables below `die`.
    fn origins(&self, die: &Die<'a>, kept: &mut HashSet<DieId>, depth: usize) {
        let mut blocks = Vec::new();
        self.session.each_child(die, |tag, offset| {
            let child = die.sibling(offset);
            if is_variable(tag) {
                let origin = self.session.follow(&child, dw::DW_AT_abstract_origin);
                kept.extend(origin.iter().map(DieId::of));
            } else if is_block(tag) {
                blocks.push(child);
            }
            kept.len() < MAX_VARIABLES
        });
        if depth < MAX_DEPTH {
            for block in blocks {
                self.origins(&block, kept, depth + 1);
            }
        }
    }
}

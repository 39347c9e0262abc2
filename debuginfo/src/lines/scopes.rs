//! The functions of one unit and the copies inlined into them, as a tree by address.
//!
//! Scopes are in the order of the debug information, each function before the copies inlined into it. A single walk
//! over a function's scopes therefore finds the chain around an address.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use gimli::constants as dw;
use gimli::{AttributeValue, DwTag, UnitOffset};

use super::model::SourceLine;
use crate::code::Code;
use crate::dies::{Die, DieReader, Home};
use crate::functions::files::Files;
use crate::functions::names::names;
use crate::functions::scopes::Scopes as NameScopes;
use crate::module::Module;

/// Ranges read of one DIE, at most.
const MAX_RANGES: usize = 4096;

/// A function, or one copy of an inlined function.
#[derive(Debug)]
pub(crate) struct FunctionScope {
    /// Offset of its DIE in the unit (in the split unit, if there is one).
    pub die: UnitOffset,
    /// For an inlined copy: the function or copy into which it is inlined, an index into the list.
    pub parent: Option<usize>,
    /// The ranges of its code, the part with the entry first.
    pub ranges: Ranges,
    /// Readable name.
    pub name: Option<Arc<str>>,
    /// The file of the declaration.
    pub file: Option<Arc<str>>,
    /// The line of the declaration.
    pub line: Option<u32>,
    /// For an inlined copy: the line of the call, if it is stated.
    pub call: Option<SourceLine>,
    /// The index after the last scope inlined into it.
    next: usize,
}

impl FunctionScope {
    pub(crate) fn contains(&self, svma: u64) -> bool {
        self.ranges
            .iter()
            .any(|(from, to)| (*from..*to).contains(&svma))
    }

    /// Returns the address of its first instruction.
    pub(crate) fn entry(&self) -> u64 {
        self.ranges.first().map_or(0, |(from, _)| *from)
    }
}

/// All functions with code of a unit, and the inlined copies in them.
#[derive(Debug, Default)]
pub(crate) struct Scopes {
    pub list: Vec<FunctionScope>,
    /// Inlined copies of which no code is left.
    gone: Vec<FunctionScope>,
    /// Start, end and index of the functions' parts, by address.
    functions: Vec<(u64, u64, usize)>,
    /// The ranges of the lexical blocks of each function or copy. Blocks without declarations are omitted, since
    /// compilers create them arbitrarily.
    blocks: HashMap<usize, Vec<Ranges>>,
}

type Ranges = Vec<(u64, u64)>;

impl Scopes {
    /// Reads unit `index` of `module`. From a damaged unit, reads as much as possible.
    pub(super) fn read(module: &Module, index: usize) -> Scopes {
        let read = |session: &DieReader<'_, '_>, index| {
            let root = session.root(Home::Info, index).ok()?;
            session.begin(&root.unit);
            let mut walk = Walk {
                session,
                root: &root,
                code: &module.code,
                files: Files::new(session),
                names: NameScopes::new(session),
                top_level: HashSet::new(),
                scopes: Scopes::default(),
            };
            walk.walk();
            walk.describe();
            Some(walk.scopes)
        };
        let mut scopes = module
            .entries()
            .in_unit(index, read)
            .flatten()
            .unwrap_or_default();
        scopes.functions.sort_unstable();
        scopes
    }

    /// Returns the function around `svma`, then the copies inlined there, outermost first, as indexes.
    pub(crate) fn chain(&self, svma: u64) -> Vec<usize> {
        let after = self.functions.partition_point(|(from, ..)| *from <= svma);
        let mut near = self.functions[..after].iter().rev().take(8);
        let Some((_, _, function)) = near.find(|(_, to, _)| svma < *to) else {
            return Vec::new();
        };
        let mut chain = vec![*function];
        let mut at = function + 1;
        let end = self.list[*function].next;
        while at < end {
            match self.list[at].contains(svma) {
                true => {
                    chain.push(at);
                    at += 1;
                }
                false => at = self.list[at].next.max(at + 1),
            }
        }
        chain
    }

    /// Returns the copies inlined into a function or copy, and into each other, also those of which no code is left.
    pub(crate) fn inside(&self, at: usize) -> impl Iterator<Item = &FunctionScope> {
        let end = self.list[at].next.max(at + 1);
        let is_inside = move |copy: &&FunctionScope| {
            copy.parent
                .is_some_and(|parent| (at..end).contains(&parent))
        };
        let gone = self.gone.iter().filter(is_inside);
        self.list[at + 1..end].iter().chain(gone)
    }

    /// Returns the number of the innermost lexical block of scope `at` around `svma`.
    pub(crate) fn block(&self, at: usize, svma: u64) -> Option<usize> {
        let holds = |ranges: &Ranges| ranges.iter().any(|(from, to)| (*from..*to).contains(&svma));
        let bytes = |ranges: &Ranges| ranges.iter().map(|(from, to)| to - from).sum::<u64>();
        let blocks = self.blocks.get(&at)?.iter().enumerate();
        let holding = blocks.filter(|(_, ranges)| holds(ranges));
        holding
            .min_by_key(|(_, ranges)| bytes(ranges))
            .map(|(number, _)| number)
    }
}

struct Walk<'s, 't, 'a> {
    session: &'s DieReader<'t, 'a>,
    root: &'s Die<'a>,
    code: &'s Code,
    files: Files<'s, 't, 'a>,
    names: NameScopes<'s, 't, 'a>,
    /// The functions that are direct children of the unit.
    top_level: HashSet<usize>,
    scopes: Scopes,
}

/// Returns whether a DIE with these attributes declares something in the block around it.
fn declares(tag: DwTag, has: impl Fn(gimli::DwAt) -> bool) -> bool {
    match tag {
        dw::DW_TAG_variable | dw::DW_TAG_constant => {
            has(dw::DW_AT_name) || has(dw::DW_AT_abstract_origin)
        }
        dw::DW_TAG_label => has(dw::DW_AT_low_pc),
        dw::DW_TAG_structure_type
        | dw::DW_TAG_class_type
        | dw::DW_TAG_union_type
        | dw::DW_TAG_enumeration_type
        | dw::DW_TAG_typedef => has(dw::DW_AT_name),
        _ => false,
    }
}

/// The attributes that state the code of a DIE and the place of an inlined call.
#[derive(Default)]
struct Extent<'a> {
    low: Option<crate::dies::Value<'a>>,
    high: Option<crate::dies::Value<'a>>,
    ranges: Option<crate::dies::Value<'a>>,
    entry: Option<crate::dies::Value<'a>>,
    call_file: Option<u64>,
    call_line: Option<u64>,
    call_column: Option<u64>,
}

impl<'a> Walk<'_, '_, 'a> {
    /// Lists the DIEs with code. Ends early on damage.
    fn walk(&mut self) {
        let unit = self.root.unit.clone();
        let Ok(mut entries) = unit.entries_raw(None) else {
            return;
        };
        // The open scopes, each with the depth of its DIE.
        let mut open: Vec<(isize, usize)> = Vec::new();
        // The last block, with its depth, until a declaration in it is found.
        let mut block: Option<(isize, usize, Ranges)> = None;
        while !entries.is_empty() {
            let (offset, depth) = (entries.next_offset(), entries.next_depth());
            self.close(&mut open, depth);
            let Ok(next) = entries.read_abbreviation() else {
                break;
            };
            let Some(abbreviation) = next else {
                continue;
            };
            let specs = abbreviation.attributes();
            if self.session.spend(specs.len() + 1).is_none() {
                break;
            }
            let tag = abbreviation.tag();
            let wanted = matches!(
                tag,
                dw::DW_TAG_subprogram | dw::DW_TAG_inlined_subroutine | dw::DW_TAG_lexical_block
            );
            if declares(tag, |name| specs.iter().any(|spec| spec.name() == name))
                && let Some((_, owner, ranges)) = block.take_if(|(at, ..)| *at + 1 == depth)
            {
                self.scopes.blocks.entry(owner).or_default().push(ranges);
            }
            if !wanted {
                if entries.skip_attributes(specs).is_err() {
                    break;
                }
                continue;
            }
            let mut extent = Extent::default();
            let read = specs.iter().try_for_each(|spec| {
                extent.take(&entries.read_attribute(*spec)?);
                Ok::<_, gimli::Error>(())
            });
            if read.is_err() {
                break;
            }
            let around = open.last().map(|(_, scope)| *scope);
            if tag == dw::DW_TAG_lexical_block {
                let ranges = around.map(|_| self.ranges(&extent)).unwrap_or_default();
                let around = around.filter(|_| !ranges.is_empty());
                block = around.map(|owner| (depth, owner, ranges));
                if let Some((_, owner, ranges)) = block.take_if(|_| self.inherits(offset)) {
                    self.scopes.blocks.entry(owner).or_default().push(ranges);
                }
                continue;
            }
            if tag == dw::DW_TAG_subprogram && depth == 1 {
                self.top_level.insert(offset.0);
            }
            if self.add(tag, offset, &extent, around) {
                open.push((depth, self.scopes.list.len() - 1));
            }
        }
        self.close(&mut open, isize::MIN);
    }

    /// Returns whether the abstract origin of the block at `offset` declares something.
    fn inherits(&self, offset: UnitOffset) -> bool {
        let block = self.root.sibling(offset);
        let Some(origin) = self.session.follow(&block, dw::DW_AT_abstract_origin) else {
            return false;
        };
        let mut found = false;
        self.session.each_child(&origin, |tag, child| {
            let child = origin.sibling(child);
            found = declares(tag, |name| self.session.attr(&child, name).is_some());
            !found
        });
        found
    }

    /// Ends the scopes that do not enclose a DIE at `depth`.
    fn close(&mut self, open: &mut Vec<(isize, usize)>, depth: isize) {
        while let Some((_, scope)) = open.pop_if(|(at, _)| *at >= depth) {
            self.scopes.list[scope].next = self.scopes.list.len();
        }
    }

    /// Adds a scope for a DIE if it has code.
    fn add(
        &mut self,
        tag: DwTag,
        offset: UnitOffset,
        extent: &Extent<'a>,
        around: Option<usize>,
    ) -> bool {
        let is_function = tag == dw::DW_TAG_subprogram;
        let ranges = self.ranges(extent);
        let has_code = !ranges.is_empty();
        if is_function && !has_code || !is_function && around.is_none() {
            return false;
        }
        let at = self.scopes.list.len();
        if is_function {
            let parts = ranges.iter().map(|(from, to)| (*from, *to, at));
            self.scopes.functions.extend(parts);
        }
        let die = self.root.sibling(offset);
        let small = |value: Option<u64>| u32::try_from(value.unwrap_or(0)).unwrap_or(0);
        let call = extent.call_file.and_then(|number| {
            let line = small(extent.call_line);
            Some(SourceLine {
                file: self.files.path(&die, number).filter(|_| line > 0)?,
                line,
                column: small(extent.call_column),
            })
        });
        let list = match has_code {
            true => &mut self.scopes.list,
            false => &mut self.scopes.gone,
        };
        list.push(FunctionScope {
            die: offset,
            parent: around.filter(|_| !is_function),
            ranges,
            name: None,
            file: None,
            line: None,
            call,
            next: at + 1,
        });
        has_code
    }

    fn ranges(&self, extent: &Extent<'a>) -> Ranges {
        let dwarf = self.session.dwarf(self.root);
        let unit = &*self.root.unit;
        let address = |value| dwarf.attr_address(unit, value).ok()?;
        let mut ranges = Vec::new();
        if let Some(value) = extent.ranges {
            let offset = dwarf.attr_ranges_offset(unit, value).ok().flatten();
            let listed = offset.and_then(|offset| dwarf.ranges(unit, offset).ok());
            let Some(mut listed) = listed else {
                return ranges;
            };
            while let (Ok(Some(range)), true) = (listed.next(), ranges.len() < MAX_RANGES) {
                if self.session.spend(1).is_none() {
                    break;
                }
                ranges.push((range.begin, range.end));
            }
        } else if let Some(low) = extent.low.and_then(address) {
            let high = extent.high.and_then(|high| match high.udata_value() {
                Some(distance) => low.checked_add(distance),
                None => address(high),
            });
            ranges.extend(high.map(|high| (low, high)));
        }
        ranges.retain(|(from, to)| from < to && self.code.is_code(*from));
        let stated = extent.entry.and_then(address);
        let holds = |at: u64| {
            ranges
                .iter()
                .position(|(from, to)| (*from..*to).contains(&at))
        };
        let warm = || {
            ranges
                .iter()
                .position(|(from, _)| !self.code.is_cold(*from))
        };
        if let Some(first) = stated.and_then(holds).or_else(warm) {
            ranges.swap(0, first);
        }
        ranges
    }

    /// Finds names and declarations, only once for DIEs with the same origin.
    fn describe(&mut self) {
        let mut known: HashMap<_, (_, _, _)> = HashMap::new();
        let mut list = std::mem::take(&mut self.scopes.list);
        let mut gone = std::mem::take(&mut self.scopes.gone);
        for scope in list.iter_mut().chain(&mut gone) {
            let is_function = scope.parent.is_none();
            let chain = self.session.chain(&self.root.sibling(scope.die));
            let Some(last) = chain.last().filter(|_| !self.session.is_exhausted()) else {
                break;
            };
            let key = (last.key(), chain.get(1).map(Die::key));
            // A function's symbols may tell more than its DIE. Inlined copies have no symbols.
            let described = match known.get(&key).filter(|_| !is_function) {
                Some(described) => Clone::clone(described),
                None => {
                    let svma = if is_function { scope.entry() } else { u64::MAX };
                    let described = self.described(&chain, svma);
                    if !is_function {
                        known.insert(key, described.clone());
                    }
                    described
                }
            };
            (scope.name, scope.file, scope.line) = described;
        }
        (self.scopes.list, self.scopes.gone) = (list, gone);
    }

    fn described(
        &self,
        chain: &[Die<'a>],
        svma: u64,
    ) -> (Option<Arc<str>>, Option<Arc<str>>, Option<u32>) {
        let last = &chain[chain.len() - 1];
        let is_top = last.home == Home::Info
            && last.index == self.root.index
            && self.top_level.contains(&last.offset.0);
        let readable = names(self.session, &self.names, chain, svma, is_top, self.code).readable;
        let number = |die: &Die<'a>| match self.session.attr(die, dw::DW_AT_decl_file)? {
            AttributeValue::FileIndex(number) => Some(number),
            other => other.udata_value(),
        };
        let file_of = |die: &Die<'a>| self.files.path(die, number(die)?);
        let line_of = |die: &Die<'a>| {
            let line = self.session.unsigned(die, dw::DW_AT_decl_line)?;
            u32::try_from(line).ok().filter(|line| *line > 0)
        };
        let mut file = chain.iter().find_map(file_of);
        let mut line = chain.iter().find_map(line_of);
        if let (None, None, Some(class)) = (&file, line, self.names.around(last)) {
            // The call operator of a lambda is declared at the place of its class.
            (file, line) = (file_of(&class), line_of(&class));
        }
        let name = (!readable.is_empty()).then(|| Arc::from(readable));
        (name, file, line)
    }
}

impl<'a> Extent<'a> {
    fn take(&mut self, attribute: &gimli::Attribute<crate::dwarf::Slice<'a>>) {
        let value = attribute.value();
        let number = || match value {
            AttributeValue::FileIndex(number) => Some(number),
            other => other.udata_value(),
        };
        match attribute.name() {
            dw::DW_AT_low_pc => self.low = Some(value),
            dw::DW_AT_high_pc => self.high = Some(value),
            dw::DW_AT_ranges => self.ranges = Some(value),
            dw::DW_AT_entry_pc => self.entry = Some(value),
            dw::DW_AT_call_file => self.call_file = number(),
            dw::DW_AT_call_line => self.call_line = number(),
            dw::DW_AT_call_column => self.call_column = number(),
            _ => {}
        }
    }
}

//! The name index of a module: types, global variables and enumerators by the last component of their names.
//!
//! It is built once, on all processors, by a walk over the units that reads only names. The walk skips function bodies,
//! whose variables are found through the function.

use std::collections::HashSet;

use gimli::constants as dw;
use gimli::{AttributeSpecification, AttributeValue, DwTag, UnitOffset};

use super::node::DieId;
use super::text;
use crate::dies::{Die, DieReader, Home};
use crate::dwarf::Slice;
use crate::entries::Entries;
use crate::parallel;

/// DIEs indexed of one unit, at most.
const MAX_ENTRIES: usize = 1 << 20;

/// What an entry of the index refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum EntryKind {
    /// A structure, class, union or enumeration with a definition.
    Tagged,
    /// A structure, class, union or enumeration with only a declaration.
    Declared,
    /// A typedef or base type.
    Named,
    /// A variable with a definition.
    Variable,
    /// A variable with only a declaration.
    DeclaredVariable,
    /// A function that is inlined somewhere, or may be.
    Inlined,
    /// An enumerator. The entry refers to its enumeration.
    Enumerator,
}

/// A named DIE.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    hash: u64,
    pub kind: EntryKind,
    pub id: DieId,
}

/// All names, by hash.
#[derive(Debug, Default)]
pub(crate) struct Index {
    entries: Vec<Entry>,
    /// The units of the module's own file that have any names.
    units: HashSet<usize>,
}

impl Index {
    pub(super) fn read(entries: &Entries) -> Index {
        let Some(kept) = entries.units() else {
            return Index::default();
        };
        let table = kept.table();
        let homes = [Home::Info, Home::Types, Home::Supplement];
        let units: Vec<(Home, usize)> = homes
            .into_iter()
            .flat_map(|home| (0..table.headers(home).len()).map(move |index| (home, index)))
            .collect();
        let threads = parallel::threads_for(kept.info_bytes());
        let session = || DieReader::new(table);
        let found = parallel::map(units.len(), threads, session, |session, at| {
            let (home, index) = units[at];
            match home {
                Home::Info => entries.in_whole_unit(session, index, |session, own| {
                    session.stand_for(index, own);
                    names_of(session, home, index)
                }),
                _ => Some(names_of(session, home, index)),
            }
            .unwrap_or_default()
        });
        let mut entries: Vec<Entry> = found.into_iter().flatten().collect();
        entries.sort_unstable_by_key(|e| (e.hash, e.kind, e.id));
        let own = entries.iter().filter(|e| e.id.home == Home::Info);
        let units = own.map(|e| e.id.index).collect();
        Index { entries, units }
    }

    /// Returns some names of the module, at most `limit`, as its DIEs state them.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn names(&self, entries: &Entries, limit: usize) -> Vec<String> {
        self.names_where(entries, limit, |kind| kind != EntryKind::Enumerator)
    }

    /// Returns the names of some variables of the module outside functions, at most `limit`, without namespaces.
    pub(crate) fn variables(&self, entries: &Entries, limit: usize) -> Vec<String> {
        self.names_where(entries, limit, |kind| kind == EntryKind::Variable)
    }

    /// Returns the DIEs of the kinds that `is_wanted` names, outside functions.
    pub(crate) fn ids(&self, is_wanted: impl Fn(EntryKind) -> bool) -> impl Iterator<Item = DieId> {
        let wanted = self
            .entries
            .iter()
            .filter(move |entry| is_wanted(entry.kind));
        wanted.map(|entry| entry.id)
    }

    fn names_where(
        &self,
        entries: &Entries,
        limit: usize,
        is_wanted: impl Fn(EntryKind) -> bool,
    ) -> Vec<String> {
        let wanted = self.entries.iter().filter(|entry| is_wanted(entry.kind));
        let name = |entry: &Entry| {
            let read = super::with_session(entries, entry.id, |session, die| {
                let chain = session.chain(die);
                let name = chain
                    .iter()
                    .find_map(|d| session.string(d, dw::DW_AT_name))?;
                Some(name.to_string_lossy().into_owned())
            });
            read.flatten()
        };
        wanted.take(limit).filter_map(name).collect()
    }

    /// Returns the entries whose names may equal `name`. The caller compares the names.
    pub(crate) fn candidates(&self, name: &str) -> &[Entry] {
        let hash = hash(text::key(name).as_bytes());
        let start = self.entries.partition_point(|e| e.hash < hash);
        let end = self.entries.partition_point(|e| e.hash <= hash);
        &self.entries[start..end]
    }

    /// Returns the units of the module's own file that describe a function as inlined that may be called `name`.
    pub(crate) fn inlining(&self, name: &str) -> impl Iterator<Item = usize> {
        let candidates = self.candidates(name).iter();
        let inlined =
            candidates.filter(|e| e.kind == EntryKind::Inlined && e.id.home == Home::Info);
        inlined.map(|e| e.id.index)
    }

    /// Returns whether a unit of the module's own file has names here. The names of other units, if any, are in
    /// separate files.
    pub(crate) fn lists(&self, unit: usize) -> bool {
        self.units.contains(&unit)
    }
}

fn names_of(session: &DieReader<'_, '_>, home: Home, index: usize) -> Vec<Entry> {
    let mut entries = Vec::new();
    if let Ok(root) = session.root(home, index) {
        session.begin(&root.unit);
        // Nothing after damage is indexed.
        let _ = walk(session, &root, &mut entries);
    }
    entries
}

/// FNV-1a. Names are short, and those with equal hashes are compared anyway.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn kind_of(tag: DwTag) -> Option<EntryKind> {
    match tag {
        dw::DW_TAG_structure_type
        | dw::DW_TAG_class_type
        | dw::DW_TAG_union_type
        | dw::DW_TAG_enumeration_type => Some(EntryKind::Tagged),
        dw::DW_TAG_typedef | dw::DW_TAG_base_type => Some(EntryKind::Named),
        // A Fortran or Ada constant has a value instead of a location.
        dw::DW_TAG_variable | dw::DW_TAG_constant => Some(EntryKind::Variable),
        _ => None,
    }
}

/// The attributes that the index uses.
#[derive(Default)]
struct Seen<'a> {
    name: Option<AttributeValue<Slice<'a>>>,
    declaration: bool,
    specification: bool,
}

fn walk<'a>(
    session: &DieReader<'_, 'a>,
    root: &Die<'a>,
    found: &mut Vec<Entry>,
) -> gimli::Result<()> {
    let unit = &root.unit;
    let mut entries = unit.entries_raw(None)?;
    // The depth of a function body that has to be walked.
    let mut body: Option<isize> = None;
    // The last enumeration and its depth.
    let mut enumeration: Option<(isize, UnitOffset)> = None;
    while !entries.is_empty() && found.len() < MAX_ENTRIES {
        let (offset, depth) = (entries.next_offset(), entries.next_depth());
        if body.is_some_and(|at| depth <= at) {
            body = None;
        }
        let Some(abbreviation) = entries.read_abbreviation()? else {
            continue;
        };
        let (tag, specs) = (abbreviation.tag(), abbreviation.attributes());
        let is_body = matches!(tag, dw::DW_TAG_subprogram | dw::DW_TAG_lexical_block);
        let is_inlined = |spec: &AttributeSpecification| spec.name() == dw::DW_AT_inline;
        if tag == dw::DW_TAG_enumeration_type {
            enumeration = Some((depth, offset));
        }
        let around = enumeration.filter(|(at, _)| *at + 1 == depth);
        let kind = match tag {
            dw::DW_TAG_enumerator if body.is_none() => around.map(|_| EntryKind::Enumerator),
            dw::DW_TAG_subprogram if specs.iter().any(is_inlined) => Some(EntryKind::Inlined),
            tag => kind_of(tag).filter(|_| body.is_none()),
        };
        if is_body && abbreviation.has_children() && body.is_none() {
            body = Some(depth);
        }
        if kind.is_none() {
            entries.skip_attributes(specs)?;
            continue;
        }
        let mut seen = Seen::default();
        for spec in specs {
            let attribute = entries.read_attribute(*spec)?;
            seen.take(&attribute);
        }
        if let Some(kind) = kind {
            let die = root.sibling(offset);
            let mut read = entry(session, &die, kind, &seen);
            if let (EntryKind::Enumerator, Some(read), Some((_, at))) = (kind, &mut read, around) {
                read.id = DieId::of(&root.sibling(at));
            }
            found.extend(read);
        }
    }
    Ok(())
}

impl<'a> Seen<'a> {
    fn take(&mut self, attribute: &gimli::Attribute<Slice<'a>>) {
        let value = attribute.value();
        match attribute.name() {
            dw::DW_AT_name => self.name = Some(value),
            dw::DW_AT_declaration => self.declaration = matches!(value, AttributeValue::Flag(true)),
            dw::DW_AT_specification | dw::DW_AT_abstract_origin => self.specification = true,
            _ => {}
        }
    }
}

fn entry<'a>(
    session: &DieReader<'_, 'a>,
    die: &Die<'a>,
    kind: EntryKind,
    seen: &Seen<'a>,
) -> Option<Entry> {
    let kind = match kind {
        EntryKind::Variable if seen.declaration => EntryKind::DeclaredVariable,
        EntryKind::Tagged if seen.declaration => EntryKind::Declared,
        kind => kind,
    };
    let dwarf = session.dwarf(die);
    let name = match &seen.name {
        Some(value) => dwarf.attr_string(&die.unit, *value).ok()?,
        // The definition of a static member is named by its declaration.
        None if seen.specification => {
            let chain = session.chain(die);
            chain
                .iter()
                .find_map(|d| session.string(d, dw::DW_AT_name))?
        }
        None => return None,
    };
    let bytes = name.slice();
    // Most names have no brackets. For them, the last component is the whole name.
    let hash = match bytes.iter().any(|b| matches!(b, b'<' | b':')) {
        true => hash(text::key(&name.to_string_lossy()).as_bytes()),
        false => hash(bytes),
    };
    Some(Entry {
        hash,
        kind,
        id: DieId::of(die),
    })
}

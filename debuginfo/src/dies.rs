//! Debugging information entries and the references between them, across units, type units and dwz's file.
//!
//! Every chain of references is followed a bounded number of steps, so that damaged or circular ones end.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use gimli::{
    AttributeValue, DwAt, DwTag, Dwarf, Unit, UnitHeader, UnitOffset, UnitSectionOffset, UnitType,
};

use crate::dwarf::Slice;
use crate::error::Warning;

/// Units that a session keeps parsed; beyond it all are forgotten and parsed again when needed.
const MAX_CACHED_UNITS: usize = 128;
/// Children that are looked at below one entry.
const MAX_CHILDREN: usize = 1 << 16;

pub(crate) type Value<'a> = AttributeValue<Slice<'a>>;

/// The section that a unit lies in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Home {
    /// `.debug_info`.
    Info,
    /// `.debug_types` (DWARF 4).
    Types,
    /// `.debug_info` of dwz's file.
    Supplement,
}

/// All unit headers of a file, and where its type units are.
pub(crate) struct UnitTable<'a> {
    pub dwarf: Dwarf<Slice<'a>>,
    info: Vec<UnitHeader<Slice<'a>>>,
    types: Vec<UnitHeader<Slice<'a>>>,
    supplement: Vec<UnitHeader<Slice<'a>>>,
    signatures: HashMap<u64, (Home, usize, UnitOffset)>,
    pub warnings: Vec<Warning>,
}

impl<'a> UnitTable<'a> {
    /// Reads the headers of all units of `dwarf`.
    pub(crate) fn read(mut dwarf: Dwarf<Slice<'a>>) -> UnitTable<'a> {
        dwarf.populate_abbreviations_cache(gimli::AbbreviationsCacheStrategy::Duplicates);
        let mut warnings = Vec::new();
        let info = headers(&dwarf, &mut warnings);
        let supplement = dwarf.sup().map(|sup| headers(sup, &mut warnings));
        let mut types = Vec::new();
        let mut iter = dwarf.type_units();
        while let Ok(Some(header)) = iter.next() {
            types.push(header);
        }
        let mut table = UnitTable {
            dwarf,
            info,
            types,
            supplement: supplement.unwrap_or_default(),
            signatures: HashMap::new(),
            warnings,
        };
        table.find_signatures();
        table
    }

    fn find_signatures(&mut self) {
        for home in [Home::Info, Home::Types] {
            for index in 0..self.headers(home).len() {
                if let UnitType::Type {
                    type_signature,
                    type_offset,
                }
                | UnitType::SplitType {
                    type_signature,
                    type_offset,
                } = self.headers(home)[index].type_()
                {
                    let place = (home, index, type_offset);
                    self.signatures.insert(type_signature.0, place);
                }
            }
        }
    }

    pub(crate) fn headers(&self, home: Home) -> &[UnitHeader<Slice<'a>>] {
        match home {
            Home::Info => &self.info,
            Home::Types => &self.types,
            Home::Supplement => &self.supplement,
        }
    }

    /// The sections that units of `home` refer to.
    pub(crate) fn dwarf(&self, home: Home) -> &Dwarf<Slice<'a>> {
        match home {
            Home::Info | Home::Types => &self.dwarf,
            Home::Supplement => self.dwarf.sup().unwrap_or(&self.dwarf),
        }
    }
}

fn headers<'a>(
    dwarf: &Dwarf<Slice<'a>>,
    warnings: &mut Vec<Warning>,
) -> Vec<UnitHeader<Slice<'a>>> {
    let mut headers = Vec::new();
    let mut iter = dwarf.units();
    loop {
        match iter.next() {
            Ok(Some(header)) => headers.push(header),
            Ok(None) => return headers,
            Err(error) => {
                let last = headers.last().map(header_offset);
                warnings.push(bad_unit(last.unwrap_or(0), error));
                return headers;
            }
        }
    }
}

fn header_offset(header: &UnitHeader<Slice<'_>>) -> usize {
    match header.offset() {
        UnitSectionOffset::DebugInfoOffset(offset) => offset.0,
        UnitSectionOffset::DebugTypesOffset(offset) => offset.0,
    }
}

/// The warning for a unit whose header is at `offset`.
pub(crate) fn bad_unit(offset: usize, error: gimli::Error) -> Warning {
    Warning::BadUnit {
        offset: offset as u64,
        why: error.to_string(),
    }
}

/// One entry, with the parsed unit it lies in.
#[derive(Clone)]
pub(crate) struct Die<'a> {
    pub home: Home,
    pub index: usize,
    pub unit: Rc<Unit<Slice<'a>>>,
    pub offset: UnitOffset,
}

impl Die<'_> {
    /// What tells this entry from all others of the file.
    pub(crate) fn key(&self) -> (Home, usize, usize) {
        (self.home, self.index, self.offset.0)
    }

    /// The same unit, another entry.
    pub(crate) fn sibling(&self, offset: UnitOffset) -> Self {
        Die {
            offset,
            ..self.clone()
        }
    }
}

type UnitCache<'a> = HashMap<(Home, usize), Rc<Unit<Slice<'a>>>>;

/// A reader of entries for one thread.
pub(crate) struct Session<'t, 'a> {
    pub table: &'t UnitTable<'a>,
    units: RefCell<UnitCache<'a>>,
    /// For a split unit: the unit in the main file that holds its directory and line table.
    pub skeleton: Option<(&'t Dwarf<Slice<'a>>, &'t Unit<Slice<'a>>)>,
}

impl<'t, 'a> Session<'t, 'a> {
    pub(crate) fn new(table: &'t UnitTable<'a>) -> Session<'t, 'a> {
        Session {
            table,
            units: RefCell::default(),
            skeleton: None,
        }
    }

    /// The parsed unit `index` of `home`.
    pub(crate) fn unit(&self, home: Home, index: usize) -> gimli::Result<Rc<Unit<Slice<'a>>>> {
        if let Some(unit) = self.units.borrow().get(&(home, index)) {
            return Ok(unit.clone());
        }
        let headers = self.table.headers(home);
        let header = headers.get(index).ok_or(gimli::Error::MissingUnitDie)?;
        let mut unit = self.table.dwarf(home).unit(*header)?;
        if let (Some((_, skeleton)), Home::Info) = (self.skeleton, home) {
            unit.copy_relocated_attributes(skeleton);
        }
        let unit = Rc::new(unit);
        let mut units = self.units.borrow_mut();
        if units.len() >= MAX_CACHED_UNITS {
            units.clear();
        }
        units.insert((home, index), unit.clone());
        Ok(unit)
    }

    /// The root entry of a unit.
    pub(crate) fn root(&self, home: Home, index: usize) -> gimli::Result<Die<'a>> {
        let unit = self.unit(home, index)?;
        let offset = UnitOffset(unit.header.size_of_header());
        Ok(Die {
            home,
            index,
            unit,
            offset,
        })
    }

    pub(crate) fn dwarf(&self, die: &Die<'a>) -> &'t Dwarf<Slice<'a>> {
        self.table.dwarf(die.home)
    }

    /// The value of an attribute, if the entry has it and it can be read.
    pub(crate) fn attr(&self, die: &Die<'a>, name: DwAt) -> Option<Value<'a>> {
        die.unit.entry(die.offset).ok()?.attr_value(name).ok()?
    }

    pub(crate) fn tag(&self, die: &Die<'a>) -> Option<DwTag> {
        Some(die.unit.entry(die.offset).ok()?.tag())
    }

    pub(crate) fn flag(&self, die: &Die<'a>, name: DwAt) -> bool {
        matches!(self.attr(die, name), Some(AttributeValue::Flag(true)))
    }

    pub(crate) fn unsigned(&self, die: &Die<'a>, name: DwAt) -> Option<u64> {
        self.attr(die, name)?.udata_value()
    }

    pub(crate) fn string(&self, die: &Die<'a>, name: DwAt) -> Option<Slice<'a>> {
        let value = self.attr(die, name)?;
        self.dwarf(die).attr_string(&die.unit, value).ok()
    }

    /// The entry that an attribute refers to.
    pub(crate) fn follow(&self, die: &Die<'a>, name: DwAt) -> Option<Die<'a>> {
        self.resolve(die, self.attr(die, name)?)
    }

    /// The entry that a reference found in `die` means.
    pub(crate) fn resolve(&self, die: &Die<'a>, value: Value<'a>) -> Option<Die<'a>> {
        let (home, offset) = match value {
            AttributeValue::UnitRef(offset) => return Some(die.sibling(offset)),
            AttributeValue::DebugInfoRef(offset) if die.home == Home::Supplement => {
                (Home::Supplement, offset.0)
            }
            AttributeValue::DebugInfoRef(offset) => (Home::Info, offset.0),
            AttributeValue::DebugInfoRefSup(offset) => (Home::Supplement, offset.0),
            AttributeValue::DebugTypesRef(signature) => {
                let (home, index, offset) = *self.table.signatures.get(&signature.0)?;
                let unit = self.unit(home, index).ok()?;
                return Some(Die {
                    home,
                    index,
                    unit,
                    offset,
                });
            }
            _ => return None,
        };
        let headers = self.table.headers(home);
        let index = headers.partition_point(|h| header_offset(h) <= offset);
        let index = index.checked_sub(1)?;
        let unit = self.unit(home, index).ok()?;
        let offset = UnitOffset(offset - header_offset(&headers[index]));
        (offset.0 < headers[index].length_including_self()).then_some(Die {
            home,
            index,
            unit,
            offset,
        })
    }

    /// Calls `visit` with tag and offset of each child until it returns false; stops early on damage.
    pub(crate) fn each_child(
        &self,
        die: &Die<'a>,
        mut visit: impl FnMut(DwTag, UnitOffset) -> bool,
    ) {
        let Ok(mut tree) = die.unit.entries_tree(Some(die.offset)) else {
            return;
        };
        let Ok(root) = tree.root() else {
            return;
        };
        let mut children = root.children();
        for _ in 0..MAX_CHILDREN {
            let Ok(Some(child)) = children.next() else {
                return;
            };
            if !visit(child.entry().tag(), child.entry().offset()) {
                return;
            }
        }
    }

    /// The children with one of `tags`, in order.
    pub(crate) fn children(&self, die: &Die<'a>, tags: &[DwTag]) -> Vec<Die<'a>> {
        let mut found = Vec::new();
        self.each_child(die, |tag, offset| {
            if tags.contains(&tag) {
                found.push(die.sibling(offset));
            }
            true
        });
        found
    }

    /// The entry itself, then what it is an instance of and what it completes, nearest first.
    pub(crate) fn chain(&self, die: &Die<'a>) -> Vec<Die<'a>> {
        const MAX_LENGTH: usize = 8;
        let mut chain = vec![die.clone()];
        while let Some(last) = chain.last().filter(|_| chain.len() < MAX_LENGTH) {
            let next = self
                .follow(last, gimli::DW_AT_abstract_origin)
                .or_else(|| self.follow(last, gimli::DW_AT_specification));
            match next {
                Some(next) => chain.push(next),
                None => break,
            }
        }
        chain
    }
}

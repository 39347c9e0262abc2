//! The units of a file: their headers, their abbreviations, and those attributes of the root DIE that other attributes
//! depend on.
//!
//! No cost here exceeds what the file's size warrants. A table of abbreviations is cut where the next one begins. Line
//! tables are read only by code that needs a file name.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use gimli::constants as dw;
use gimli::{
    Abbreviations, AttributeValue, DebugAbbrev, DebugAbbrevOffset, DebugAddrBase,
    DebugLocListsBase, DebugRngListsBase, DebugStrOffsetsBase, Dwarf, LittleEndian, Section, Unit,
    UnitHeader, UnitOffset, UnitSectionOffset, UnitType,
};
use memchr::memmem;

use crate::dwarf::Slice;
use crate::error::Warning;

/// The section that contains a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Home {
    /// `.debug_info`.
    Info,
    /// `.debug_types` (DWARF 4).
    Types,
    /// `.debug_info` of dwz's supplementary file.
    Supplement,
}

/// The explicit offset type lets a header with a longer lifetime replace one with a shorter one.
type Header<'a> = UnitHeader<Slice<'a>, usize>;

/// All unit headers of a file, and the positions of its type units.
pub(crate) struct UnitTable<'a> {
    pub dwarf: Dwarf<Slice<'a>>,
    /// The file that contains the units, for messages.
    pub path: PathBuf,
    info: Vec<Header<'a>>,
    types: Vec<Header<'a>>,
    supplement: Vec<Header<'a>>,
    signatures: HashMap<u64, (Home, usize, UnitOffset)>,
    abbreviations: AbbreviationTables<'a>,
    supplement_abbreviations: AbbreviationTables<'a>,
    pub warnings: Vec<Warning>,
}

/// Returns whether a text of `section` ends there, or before template arguments.
fn ends_a_text(section: &[u8], end: &memmem::Finder<'_>) -> bool {
    let mut rest = section;
    while let Some(at) = end.find(rest) {
        if matches!(rest.get(at + end.needle().len()), None | Some(0 | b'<')) {
            return true;
        }
        rest = &rest[at + 1..];
    }
    false
}

impl<'a> UnitTable<'a> {
    /// Returns whether a DIE may be called `name`: whether the file's strings contain this text, or end with it, with
    /// or without template arguments after it. Always true for files that keep DIEs in other files.
    pub(crate) fn mentions(&self, name: &str) -> bool {
        let dwarf = &self.dwarf;
        let sections = [
            dwarf.debug_str.reader().slice(),
            dwarf.debug_line_str.reader().slice(),
            dwarf.debug_info.reader().slice(),
            dwarf.debug_types.reader().slice(),
        ];
        let ends = [name.as_bytes(), b".dwo"].map(memmem::Finder::new);
        let mut pairs = sections
            .iter()
            .flat_map(|section| ends.each_ref().map(|end| (section, end)));
        pairs.any(|(section, end)| ends_a_text(section, end))
    }

    /// Reads the headers of all units of `dwarf`, which is in `path`, and of its supplementary file.
    pub(crate) fn read(
        dwarf: Dwarf<Slice<'a>>,
        path: &Path,
        supplement_path: Option<&Path>,
    ) -> UnitTable<'a> {
        let mut warnings = Vec::new();
        let info = headers(&dwarf, path, &mut warnings);
        let supplement = dwarf.sup().zip(supplement_path);
        let supplement = supplement.map(|(sup, path)| headers(sup, path, &mut warnings));
        let supplement = supplement.unwrap_or_default();
        let mut types = Vec::new();
        let mut iter = dwarf.type_units();
        while let Ok(Some(header)) = iter.next() {
            types.push(header);
        }
        let mut table = UnitTable {
            abbreviations: AbbreviationTables::of(&dwarf, info.iter().chain(&types)),
            supplement_abbreviations: match dwarf.sup() {
                Some(sup) => AbbreviationTables::of(sup, supplement.iter()),
                None => AbbreviationTables::default(),
            },
            dwarf,
            path: path.to_owned(),
            info,
            types,
            supplement,
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

    pub(crate) fn headers(&self, home: Home) -> &[Header<'a>] {
        match home {
            Home::Info => &self.info,
            Home::Types => &self.types,
            Home::Supplement => &self.supplement,
        }
    }

    /// Returns the sections that units of `home` refer to.
    pub(crate) fn dwarf(&self, home: Home) -> &Dwarf<Slice<'a>> {
        match home {
            Home::Info | Home::Types => &self.dwarf,
            Home::Supplement => self.dwarf.sup().unwrap_or(&self.dwarf),
        }
    }

    /// Returns the position of the type with a signature.
    pub(crate) fn signature(&self, signature: u64) -> Option<(Home, usize, UnitOffset)> {
        self.signatures.get(&signature).copied()
    }

    /// Returns the unit that contains `offset` of its section, and the offset inside it.
    pub(crate) fn locate(&self, home: Home, offset: usize) -> Option<(usize, UnitOffset)> {
        let headers = self.headers(home);
        let index = headers.partition_point(|h| header_offset(h) <= offset);
        let index = index.checked_sub(1)?;
        let inside = UnitOffset(offset - header_offset(&headers[index]));
        (inside.0 < headers[index].length_including_self()).then_some((index, inside))
    }

    fn tables(&self, home: Home) -> &AbbreviationTables<'a> {
        match home {
            Home::Info | Home::Types => &self.abbreviations,
            Home::Supplement => &self.supplement_abbreviations,
        }
    }

    /// Returns the bytes of abbreviations that parsing a unit reads; 0 for a table that is already parsed.
    pub(crate) fn cost(&self, home: Home, index: usize) -> usize {
        let header = self.headers(home).get(index);
        header.map_or(0, |h| self.tables(home).cost(h.debug_abbrev_offset().0))
    }

    /// Parses unit `index` of `home`, without its line table.
    pub(crate) fn unit(&self, home: Home, index: usize) -> gimli::Result<Unit<Slice<'a>>> {
        let headers = self.headers(home);
        let header = headers.get(index).ok_or(gimli::Error::MissingUnitDie)?;
        let abbreviations = self.tables(home).get(header.debug_abbrev_offset().0)?;
        unit(self.dwarf(home), *header, abbreviations)
    }
}

fn headers<'a>(
    dwarf: &Dwarf<Slice<'a>>,
    path: &Path,
    warnings: &mut Vec<Warning>,
) -> Vec<Header<'a>> {
    let mut headers = Vec::new();
    let mut iter = dwarf.units();
    loop {
        match iter.next() {
            Ok(Some(header)) => headers.push(header),
            Ok(None) => return headers,
            Err(error) => {
                let end = |h| header_offset(h) + h.length_including_self();
                let offset = headers.last().map_or(0, end);
                warnings.push(bad_unit(path, offset, error.to_string()));
                return headers;
            }
        }
    }
}

fn header_offset(header: &Header<'_>) -> usize {
    match header.offset() {
        UnitSectionOffset::DebugInfoOffset(offset) => offset.0,
        UnitSectionOffset::DebugTypesOffset(offset) => offset.0,
    }
}

/// Returns the warning for a unit whose header is at `offset`.
pub(crate) fn bad_unit(path: &Path, offset: usize, why: String) -> Warning {
    Warning::BadUnit {
        path: path.to_owned(),
        offset: offset as u64,
        why,
    }
}

/// Abbreviation tables by offset. Tables used by several units are parsed once.
#[derive(Default)]
struct AbbreviationTables<'a> {
    section: Option<DebugAbbrev<Slice<'a>>>,
    /// The offsets in use, sorted.
    offsets: Vec<usize>,
    shared: HashMap<usize, gimli::Result<Arc<Abbreviations>>>,
    /// Recently parsed tables of single units. Queries for single DIEs often return to the same unit.
    recent: Mutex<HashMap<usize, Arc<Abbreviations>>>,
}

/// Tables in [`AbbreviationTables::recent`]. When it is full, all are dropped.
const MAX_RECENT: usize = 64;

impl<'a> AbbreviationTables<'a> {
    fn of<'h>(
        dwarf: &Dwarf<Slice<'a>>,
        units: impl Iterator<Item = &'h Header<'a>>,
    ) -> AbbreviationTables<'a>
    where
        'a: 'h,
    {
        let mut used: Vec<usize> = units.map(|h| h.debug_abbrev_offset().0).collect();
        used.sort_unstable();
        let repeated = used.windows(2).filter(|pair| pair[0] == pair[1]);
        let mut repeated: Vec<usize> = repeated.map(|pair| pair[0]).collect();
        repeated.dedup();
        used.dedup();
        let mut tables = AbbreviationTables {
            section: Some(dwarf.debug_abbrev),
            offsets: used,
            shared: HashMap::new(),
            recent: Mutex::default(),
        };
        let parsed = repeated.into_iter().map(|at| (at, tables.parse(at)));
        tables.shared = parsed.collect();
        tables
    }

    fn get(&self, offset: usize) -> gimli::Result<Arc<Abbreviations>> {
        match self.shared.get(&offset) {
            Some(shared) => shared.clone(),
            None => self.recent(offset),
        }
    }

    fn recent(&self, offset: usize) -> gimli::Result<Arc<Abbreviations>> {
        // Nothing panics while the lock is held. If it did, the table would still be consistent.
        let lock = || self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(table) = lock().get(&offset) {
            return Ok(table.clone());
        }
        let table = self.parse(offset)?;
        let mut recent = lock();
        if recent.len() >= MAX_RECENT {
            recent.clear();
        }
        recent.insert(offset, table.clone());
        Ok(table)
    }

    fn cost(&self, offset: usize) -> usize {
        match self.shared.contains_key(&offset) {
            true => 0,
            false => self.bytes(offset).len().saturating_sub(offset),
        }
    }

    /// Returns the section up to the first table after the one at `offset`.
    fn bytes(&self, offset: usize) -> &'a [u8] {
        let bytes = self.section.map_or(&[][..], |s| s.reader().slice());
        let next = self.offsets.partition_point(|at| *at <= offset);
        let end = self.offsets.get(next).map_or(bytes.len(), |at| *at);
        &bytes[..end.min(bytes.len())]
    }

    /// Parses the table at `offset`, which has to end before the next one begins. If tables could overlap, a small file
    /// could describe as many large ones as it has units.
    fn parse(&self, offset: usize) -> gimli::Result<Arc<Abbreviations>> {
        let section = DebugAbbrev::new(self.bytes(offset), LittleEndian);
        let table = section.abbreviations(DebugAbbrevOffset(offset));
        table.map(Arc::new)
    }
}

/// Parses a unit's root DIE. The line program is omitted, since only file names need it.
fn unit<'a>(
    dwarf: &Dwarf<Slice<'a>>,
    header: Header<'a>,
    abbreviations: Arc<Abbreviations>,
) -> gimli::Result<Unit<Slice<'a>>> {
    let (encoding, file) = (header.encoding(), dwarf.file_type);
    let mut unit = Unit {
        abbreviations,
        name: None,
        comp_dir: None,
        low_pc: 0,
        str_offsets_base: DebugStrOffsetsBase::default_for_encoding_and_file(encoding, file),
        addr_base: DebugAddrBase(0),
        loclists_base: DebugLocListsBase::default_for_encoding_and_file(encoding, file),
        rnglists_base: DebugRngListsBase::default_for_encoding_and_file(encoding, file),
        line_program: None,
        dwo_id: match header.type_() {
            UnitType::Skeleton(id) | UnitType::SplitCompilation(id) => Some(id),
            _ => None,
        },
        header,
    };
    let (mut name, mut directory, mut low_pc) = (None, None, None);
    for attribute in root_attributes(&unit)? {
        match (attribute.name(), attribute.value()) {
            (dw::DW_AT_name, value) => name = Some(value),
            (dw::DW_AT_comp_dir, value) => directory = Some(value),
            (dw::DW_AT_low_pc, value) => low_pc = Some(value),
            (_, AttributeValue::DebugStrOffsetsBase(base)) => unit.str_offsets_base = base,
            (_, AttributeValue::DebugAddrBase(base)) => unit.addr_base = base,
            (_, AttributeValue::DebugLocListsBase(base)) => unit.loclists_base = base,
            (_, AttributeValue::DebugRngListsBase(base)) => unit.rnglists_base = base,
            (_, AttributeValue::DwoId(id)) => unit.dwo_id = unit.dwo_id.or(Some(id)),
            _ => {}
        }
    }
    // The forms of these attributes may need the bases, which may come after them.
    let string = |value: Option<_>| dwarf.attr_string(&unit, value?).ok();
    (unit.name, unit.comp_dir) = (string(name), string(directory));
    if let Some(value) = low_pc {
        unit.low_pc = dwarf.attr_address(&unit, value)?.unwrap_or(0);
    }
    Ok(unit)
}

pub(crate) fn root_attributes<'a>(
    unit: &Unit<Slice<'a>>,
) -> gimli::Result<Vec<gimli::Attribute<Slice<'a>>>> {
    let mut entries = unit.entries_raw(None)?;
    let root = entries.read_abbreviation()?;
    let specs = root.ok_or(gimli::Error::MissingUnitDie)?.attributes();
    // No root DIE has more. One with more would make each of many units expensive.
    const MAX_ATTRIBUTES: usize = 256;
    let specs = specs.iter().take(MAX_ATTRIBUTES);
    specs.map(|spec| entries.read_attribute(*spec)).collect()
}

//! Resolves file numbers to full paths of source files, from the headers of line tables.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use gimli::{AttributeValue, DebugLineOffset, Dwarf, IncompleteLineProgram, Reader, Section, Unit};

use crate::dies::{Die, DieReader, Home};
use crate::dwarf::Slice;
use crate::units::root_attributes;

type Known = HashMap<(Home, usize, u64), Option<Arc<str>>>;
type Program<'a> = IncompleteLineProgram<Slice<'a>>;
/// The section, whether it belongs to the skeleton, and the offset in it.
type TableKey = (Home, bool, usize);
type Tables<'a> = HashMap<TableKey, Option<Rc<Program<'a>>>>;

/// Resolves file numbers and caches the answers.
pub(crate) struct Files<'s, 't, 'a> {
    session: &'s DieReader<'t, 'a>,
    known: RefCell<Known>,
    /// Line tables by offset: a type unit shares the table of its compilation unit.
    tables: RefCell<Tables<'a>>,
}

impl<'s, 't, 'a> Files<'s, 't, 'a> {
    pub(crate) fn new(session: &'s DieReader<'t, 'a>) -> Files<'s, 't, 'a> {
        Files {
            session,
            known: RefCell::default(),
            tables: RefCell::default(),
        }
    }

    /// Returns the path of file `number` of the unit that contains `die`.
    pub(crate) fn path(&self, die: &Die<'a>, number: u64) -> Option<Arc<str>> {
        let key = (die.home, die.index, number);
        if let Some(known) = self.known.borrow().get(&key) {
            return known.clone();
        }
        let path = self.read(die, number).map(Arc::from);
        self.known.borrow_mut().insert(key, path.clone());
        path
    }

    fn read(&self, die: &Die<'a>, number: u64) -> Option<String> {
        let own = (self.session.dwarf(die), &*die.unit);
        // A split unit without a line table uses that of its skeleton.
        let skeleton = self.session.skeleton;
        let (dwarf, unit, offset, other) = match (line_table(own.1), skeleton) {
            (Some(offset), _) => (own.0, own.1, offset, false),
            (None, Some((dwarf, unit))) => (dwarf, unit, line_table(unit)?, true),
            (None, None) => return None,
        };
        let program = self.program(dwarf, unit, (die.home, other, offset.0))?;
        let path = path(dwarf, unit, &program, number)?;
        self.session.spend_bytes(path.len())?;
        Some(path)
    }

    fn program(
        &self,
        dwarf: &Dwarf<Slice<'a>>,
        unit: &Unit<Slice<'a>>,
        key: TableKey,
    ) -> Option<Rc<Program<'a>>> {
        let key = match key {
            (Home::Types, other, offset) => (Home::Info, other, offset),
            key => key,
        };
        if let Some(known) = self.tables.borrow().get(&key) {
            return known.clone();
        }
        let offset = DebugLineOffset(key.2);
        let address_size = unit.header.address_size();
        let cost = header_bytes(dwarf.debug_line.reader(), offset);
        let parsed = cost
            .and_then(|bytes| self.session.spend_bytes(bytes))
            .and_then(|()| {
                let program = dwarf.debug_line.program(offset, address_size, None, None);
                program.ok().map(Rc::new)
            });
        self.tables.borrow_mut().insert(key, parsed.clone());
        parsed
    }
}

pub(crate) fn line_table(unit: &Unit<Slice<'_>>) -> Option<DebugLineOffset> {
    let attributes = root_attributes(unit).ok()?;
    attributes.iter().find_map(|a| match a.value() {
        AttributeValue::DebugLineRef(offset) => Some(offset),
        _ => None,
    })
}

/// Returns the size that a line table's header states for itself, which is the cost of parsing it.
pub(crate) fn header_bytes(section: &Slice<'_>, offset: DebugLineOffset) -> Option<usize> {
    let mut rest = *section;
    rest.skip(offset.0).ok()?;
    let (_, format) = rest.read_initial_length().ok()?;
    let version = rest.read_u16().ok()?;
    if version >= 5 {
        rest.skip(2).ok()?;
    }
    let stated = rest.read_length(format).ok()?;
    Some(stated.min(rest.len()))
}

pub(crate) fn path<'a>(
    dwarf: &Dwarf<Slice<'a>>,
    unit: &Unit<Slice<'a>>,
    program: &Program<'a>,
    number: u64,
) -> Option<String> {
    let header = program.header();
    let file = header.file(number)?;
    let text = |value| {
        let slice = dwarf.attr_string(unit, value).ok()?;
        Some(slice.to_string_lossy().into_owned())
    };
    let mut path = unit
        .comp_dir
        .map(|d| d.to_string_lossy().into_owned())
        .unwrap_or_default();
    // Directory 0 is the unit's own. DWARF 4 and older do not list it; later versions do, possibly as a relative path.
    if let Some(directory) = file.directory(header) {
        let directory = text(directory)?;
        if file.directory_index() != 0 || directory != path {
            join(&mut path, &directory);
        }
    }
    join(&mut path, &text(file.path_name())?);
    Some(path)
}

/// Appends `part` to `path`, or replaces `path` if `part` is absolute. Drops leading `./`.
pub(crate) fn join(path: &mut String, part: &str) {
    if part.starts_with('/') {
        path.clear();
    }
    let mut part = part;
    while let Some(rest) = part.strip_prefix("./") {
        part = rest.trim_start_matches('/');
    }
    if part.is_empty() || part == "." {
        return;
    }
    if !path.is_empty() && !path.ends_with('/') {
        path.push('/');
    }
    path.push_str(part);
}

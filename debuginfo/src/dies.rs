//! DIEs and the references between them, across units, type units and dwz's supplementary file.
//!
//! Every chain of references is followed for a bounded number of steps, so damaged or circular chains end. Each unit
//! also has a total budget of steps, so a small file cannot demand hours of work.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use gimli::constants as dw;
use gimli::{AttributeValue, DwAt, DwTag, Dwarf, Unit, UnitOffset};

use crate::dwarf::Slice;
pub(crate) use crate::units::{Home, UnitTable, bad_unit};

/// Units that a session keeps parsed. When it is full, all are dropped and parsed again on demand.
const MAX_CACHED_UNITS: usize = 128;
/// The step budget of a unit: a constant, plus more for each byte. A step is an attribute or a few bytes of text. The
/// output of gcc and rustc takes up to 5 steps for each byte.
const STEPS_PER_UNIT: u64 = 1 << 15;
const STEPS_PER_BYTE: u64 = 32;
/// Bytes of text or tables that count as one step.
const BYTES_PER_STEP: usize = 2;

pub(crate) type Value<'a> = AttributeValue<Slice<'a>>;

/// A DIE, with the parsed unit that contains it.
#[derive(Clone)]
pub(crate) struct Die<'a> {
    pub home: Home,
    pub index: usize,
    pub unit: Rc<Unit<Slice<'a>>>,
    pub offset: UnitOffset,
}

impl Die<'_> {
    /// Identifies this DIE among all DIEs of the file.
    pub(crate) fn key(&self) -> (Home, usize, usize) {
        (self.home, self.index, self.offset.0)
    }

    /// Returns another DIE of the same unit.
    pub(crate) fn sibling(&self, offset: UnitOffset) -> Self {
        Die {
            offset,
            ..self.clone()
        }
    }
}

type UnitCache<'a> = HashMap<(Home, usize), Rc<Unit<Slice<'a>>>>;

/// Reads DIEs, on one thread.
pub(crate) struct DieReader<'t, 'a> {
    pub table: &'t UnitTable<'a>,
    units: RefCell<UnitCache<'a>>,
    /// Steps left for the unit being read.
    steps: Cell<u64>,
    /// For a split unit: the skeleton unit in the main file, which holds its directory and line table.
    pub skeleton: Option<(&'t Dwarf<Slice<'a>>, &'t Unit<Slice<'a>>)>,
    /// For a split unit: its skeleton's number in the main file, and its own.
    stands_for: Cell<Option<(usize, usize)>>,
}

impl<'t, 'a> DieReader<'t, 'a> {
    pub(crate) fn new(table: &'t UnitTable<'a>) -> DieReader<'t, 'a> {
        DieReader {
            table,
            units: RefCell::default(),
            steps: Cell::new(STEPS_PER_UNIT),
            skeleton: None,
            stands_for: Cell::new(None),
        }
    }

    /// From now on, numbers the split unit `own` like its skeleton. This distinguishes its DIEs from those of other
    /// units of the main file.
    pub(crate) fn stand_for(&self, skeleton: usize, own: usize) {
        if self.skeleton.is_some() {
            self.units.borrow_mut().clear();
            self.stands_for.set(Some((skeleton, own)));
        }
    }

    /// Resets the step budget for a walk over `unit`.
    pub(crate) fn begin(&self, unit: &Unit<Slice<'a>>) {
        let bytes = unit.header.length_including_self() as u64;
        let steps = bytes.saturating_mul(STEPS_PER_BYTE);
        self.steps.set(steps.saturating_add(STEPS_PER_UNIT));
    }

    /// Spends `steps`. Returns `None`, now and from then on, if the unit has too few left.
    pub(crate) fn spend(&self, steps: usize) -> Option<()> {
        let left = self.steps.get().checked_sub(steps as u64);
        self.steps.set(left.unwrap_or(0));
        left.filter(|left| *left > 0).map(drop)
    }

    /// Spends the steps for a table of `bytes` bytes.
    pub(crate) fn spend_bytes(&self, bytes: usize) -> Option<()> {
        self.spend(bytes / BYTES_PER_STEP + 1)
    }

    /// Returns whether the unit's budget is spent, in which case anything read since may be incomplete.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.steps.get() == 0
    }

    /// Returns the parsed unit `index` of `home`.
    pub(crate) fn unit(&self, home: Home, index: usize) -> gimli::Result<Rc<Unit<Slice<'a>>>> {
        if let Some(unit) = self.units.borrow().get(&(home, index)) {
            return Ok(unit.clone());
        }
        let own = match self.stands_for.get() {
            Some((skeleton, own)) if home == Home::Info && index == skeleton => own,
            _ => index,
        };
        let _ = self.spend_bytes(self.table.cost(home, own));
        let mut unit = self.table.unit(home, own)?;
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

    /// Returns the value of an attribute if the DIE has it and it can be read.
    pub(crate) fn attr(&self, die: &Die<'a>, name: DwAt) -> Option<Value<'a>> {
        let mut entry = die.unit.entries_raw(Some(die.offset)).ok()?;
        let specs = entry.read_abbreviation().ok()??.attributes();
        self.spend(specs.len() + 1)?;
        let at = specs.iter().position(|spec| spec.name() == name)?;
        entry.skip_attributes(&specs[..at]).ok()?;
        Some(entry.read_attribute(specs[at]).ok()?.value())
    }

    pub(crate) fn tag(&self, die: &Die<'a>) -> Option<DwTag> {
        self.spend(1)?;
        let mut entry = die.unit.entries_raw(Some(die.offset)).ok()?;
        Some(entry.read_abbreviation().ok()??.tag())
    }

    pub(crate) fn flag(&self, die: &Die<'a>, name: DwAt) -> bool {
        matches!(self.attr(die, name), Some(AttributeValue::Flag(true)))
    }

    pub(crate) fn unsigned(&self, die: &Die<'a>, name: DwAt) -> Option<u64> {
        self.attr(die, name)?.udata_value()
    }

    pub(crate) fn language(&self, die: &Die<'a>) -> Option<gimli::DwLang> {
        let root = die.sibling(gimli::UnitOffset(die.unit.header.size_of_header()));
        match self.attr(&root, gimli::DW_AT_language)? {
            AttributeValue::Language(language) => Some(language),
            _ => None,
        }
    }

    pub(crate) fn string(&self, die: &Die<'a>, name: DwAt) -> Option<Slice<'a>> {
        let value = self.attr(die, name)?;
        let text = self.dwarf(die).attr_string(&die.unit, value).ok()?;
        self.spend_bytes(text.len())?;
        Some(text)
    }

    /// Returns the DIE that an attribute refers to.
    pub(crate) fn follow(&self, die: &Die<'a>, name: DwAt) -> Option<Die<'a>> {
        self.resolve(die, self.attr(die, name)?)
    }

    /// Returns the DIE that a reference found in `die` refers to.
    pub(crate) fn resolve(&self, die: &Die<'a>, value: Value<'a>) -> Option<Die<'a>> {
        let (home, index, offset) = match value {
            AttributeValue::UnitRef(offset) => return Some(die.sibling(offset)),
            AttributeValue::DebugTypesRef(signature) => self.table.signature(signature.0)?,
            AttributeValue::DebugInfoRef(offset) => {
                let home = match die.home {
                    Home::Supplement => Home::Supplement,
                    Home::Info | Home::Types => Home::Info,
                };
                let (index, offset) = self.table.locate(home, offset.0)?;
                let index = match self.stands_for.get() {
                    Some((skeleton, own)) if home == Home::Info && index == own => skeleton,
                    _ => index,
                };
                (home, index, offset)
            }
            AttributeValue::DebugInfoRefSup(offset) => {
                let (index, offset) = self.table.locate(Home::Supplement, offset.0)?;
                (Home::Supplement, index, offset)
            }
            _ => return None,
        };
        let unit = self.unit(home, index).ok()?;
        Some(Die {
            home,
            index,
            unit,
            offset,
        })
    }

    /// Calls `visit` with the tag and offset of each child until it returns false. Stops early on damage.
    pub(crate) fn each_child(
        &self,
        die: &Die<'a>,
        mut visit: impl FnMut(DwTag, UnitOffset) -> bool,
    ) {
        let _ = self.try_each_child(die, &mut visit);
    }

    fn try_each_child(
        &self,
        die: &Die<'a>,
        visit: &mut impl FnMut(DwTag, UnitOffset) -> bool,
    ) -> Option<()> {
        let mut entries = die.unit.entries_raw(Some(die.offset)).ok()?;
        let parent = entries.read_abbreviation().ok()??;
        entries.skip_attributes(parent.attributes()).ok()?;
        // The number of DIEs whose children are being read, `die` included.
        let mut open = u64::from(parent.has_children());
        while open > 0 {
            let offset = entries.next_offset();
            let Some(child) = entries.read_abbreviation().ok()? else {
                self.spend(1)?;
                open -= 1;
                continue;
            };
            let specs = child.attributes();
            self.spend(specs.len() + 1)?;
            if open == 1 && !visit(child.tag(), offset) {
                return Some(());
            }
            if !child.has_children() {
                entries.skip_attributes(specs).ok()?;
                continue;
            }
            let sibling = specs.iter().position(|s| s.name() == dw::DW_AT_sibling);
            if let Some(at) = sibling {
                entries.skip_attributes(&specs[..at]).ok()?;
                let next = entries.read_attribute(specs[at]).ok()?.value();
                match next {
                    AttributeValue::UnitRef(next) if next.0 > entries.next_offset().0 => {
                        entries = die.unit.entries_raw(Some(next)).ok()?;
                        continue;
                    }
                    _ => entries.skip_attributes(&specs[at + 1..]).ok()?,
                }
            } else {
                entries.skip_attributes(specs).ok()?;
            }
            open += 1;
        }
        Some(())
    }

    /// Returns the children that have one of `tags`, in order.
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

    /// Returns the DIE itself, then its abstract origin or specification and so on, nearest first.
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

    /// Returns an attribute of the first DIE of a chain that has it, and that DIE.
    pub(crate) fn stated<'c>(
        &self,
        chain: &'c [Die<'a>],
        name: DwAt,
    ) -> Option<(&'c Die<'a>, Value<'a>)> {
        let mut chain = chain.iter();
        chain.find_map(|die| Some((die, self.attr(die, name)?)))
    }
}

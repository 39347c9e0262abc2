//! The first walk over a unit: finds the DIEs of functions with code, their start addresses and their parameters.

use gimli::constants as dw;
use gimli::{AttributeValue, Unit, UnitOffset};

use crate::code::Code;
use crate::dies::{DieReader, Value};
use crate::dwarf::Slice;

/// Ranges examined for one function, at most.
pub(super) const MAX_RANGES: usize = 4096;

/// A DIE that describes a function with machine code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Candidate {
    pub svma: u64,
    pub die: UnitOffset,
    /// Its formal parameters, as a range of [`Scan::params`].
    pub params: std::ops::Range<u32>,
    pub variadic: bool,
    /// The DIE is a direct child of the unit, so its name has no scope.
    pub top_level: bool,
}

/// Why a unit was not read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Damage {
    Dwarf(gimli::Error),
    /// The unit refers to itself, or to the same parts, over and over.
    Exhausted,
}

impl From<gimli::Error> for Damage {
    fn from(error: gimli::Error) -> Damage {
        Damage::Dwarf(error)
    }
}

#[derive(Debug, Default)]
pub(super) struct Scan {
    pub candidates: Vec<Candidate>,
    pub params: Vec<UnitOffset>,
    /// The unit describes types, so a function without parameter DIEs has no parameters. Otherwise it has only line
    /// information.
    pub described: bool,
    /// The unit's code is optimised: a variable has a location list, or the calls of a function are described.
    pub optimised: bool,
    /// Why the walk ended early.
    pub error: Option<Damage>,
}

/// The attributes of a subprogram that the walk needs.
#[derive(Default)]
struct Extent<'a> {
    low_pc: Option<Value<'a>>,
    ranges: Option<Value<'a>>,
    entry_pc: Option<Value<'a>>,
    declaration: bool,
}

pub(super) fn scan<'a>(session: &DieReader<'_, 'a>, unit: &Unit<Slice<'a>>, code: &Code) -> Scan {
    let mut scan = Scan::default();
    session.begin(unit);
    if let Err(error) = walk(session, unit, code, &mut scan) {
        scan.error = Some(error);
    }
    scan
}

fn walk<'a>(
    session: &DieReader<'_, 'a>,
    unit: &Unit<Slice<'a>>,
    code: &Code,
    scan: &mut Scan,
) -> Result<(), Damage> {
    let mut entries = unit.entries_raw(None)?;
    // The candidate for the last DIE at each depth, if that DIE is one.
    let mut open: Vec<Option<usize>> = Vec::new();
    while !entries.is_empty() {
        let offset = entries.next_offset();
        let depth = entries.next_depth();
        let Some(abbreviation) = entries.read_abbreviation()? else {
            continue;
        };
        let Ok(depth) = usize::try_from(depth) else {
            return Ok(());
        };
        let specs = abbreviation.attributes();
        session.spend(specs.len() + 1).ok_or(Damage::Exhausted)?;
        open.truncate(depth);
        open.resize(depth, None);
        let mut candidate = None;
        match abbreviation.tag() {
            dw::DW_TAG_subprogram => {
                let mut extent = Extent::default();
                scan.optimised |= specs.iter().any(|spec| describes_calls(spec.name()));
                for spec in specs {
                    extent.take(entries.read_attribute(*spec)?);
                }
                let start = extent.start(session, unit, code);
                if let Some(svma) = start.filter(|svma| code.is_code(*svma)) {
                    candidate = Some(scan.candidates.len());
                    let next = scan.params.len() as u32;
                    scan.candidates.push(Candidate {
                        svma,
                        die: offset,
                        params: next..next,
                        variadic: false,
                        top_level: depth == 1,
                    });
                }
            }
            tag => {
                entries.skip_attributes(specs)?;
                scan.optimised |= specs.iter().any(is_location_list);
                let around = open.last().copied().flatten();
                scan.note(tag, offset, around);
                // GCC puts the parameters of a pack into a DIE of its own.
                candidate = around.filter(|_| tag == dw::DW_TAG_GNU_formal_parameter_pack);
            }
        }
        open.push(candidate);
    }
    Ok(())
}

/// LLVM states this attribute for functions of optimised code.
fn describes_calls(name: gimli::DwAt) -> bool {
    matches!(
        name,
        dw::DW_AT_call_all_calls | dw::DW_AT_GNU_all_call_sites
    )
}

fn is_location_list(spec: &gimli::AttributeSpecification) -> bool {
    let is_list = matches!(
        spec.form(),
        dw::DW_FORM_loclistx | dw::DW_FORM_sec_offset | dw::DW_FORM_data4
    );
    spec.name() == dw::DW_AT_location && is_list
}

impl Scan {
    /// Records a DIE whose parent is the candidate `function` (an index into `candidates`), if the parent is one.
    fn note(&mut self, tag: gimli::DwTag, offset: UnitOffset, function: Option<usize>) {
        match tag {
            dw::DW_TAG_formal_parameter => {
                self.described = true;
                if let Some(candidate) = function.map(|f| &mut self.candidates[f])
                    && candidate.params.end as usize == self.params.len()
                {
                    self.params.push(offset);
                    candidate.params.end += 1;
                }
            }
            dw::DW_TAG_unspecified_parameters => {
                if let Some(function) = function {
                    self.candidates[function].variadic = true;
                }
            }
            dw::DW_TAG_base_type
            | dw::DW_TAG_pointer_type
            | dw::DW_TAG_structure_type
            | dw::DW_TAG_class_type
            | dw::DW_TAG_imported_unit => self.described = true,
            _ => {}
        }
    }
}

impl<'a> Extent<'a> {
    fn take(&mut self, attribute: gimli::Attribute<Slice<'a>>) {
        match attribute.name() {
            dw::DW_AT_low_pc => self.low_pc = Some(attribute.value()),
            dw::DW_AT_ranges => self.ranges = Some(attribute.value()),
            dw::DW_AT_entry_pc => self.entry_pc = Some(attribute.value()),
            dw::DW_AT_declaration => {
                self.declaration = matches!(attribute.value(), AttributeValue::Flag(true));
            }
            _ => {}
        }
    }

    /// Returns the address of the function's first instruction.
    fn start(
        &self,
        session: &DieReader<'_, 'a>,
        unit: &Unit<Slice<'a>>,
        code: &Code,
    ) -> Option<u64> {
        if self.declaration {
            return None;
        }
        let dwarf = &session.table.dwarf;
        let address = |value: Option<Value<'a>>| dwarf.attr_address(unit, value?).ok()?;
        if let Some(start) = address(self.entry_pc).or_else(|| address(self.low_pc)) {
            return Some(start);
        }
        let offset = dwarf.attr_ranges_offset(unit, self.ranges?).ok()??;
        let mut ranges = dwarf.ranges(unit, offset).ok()?;
        let mut first = None;
        for _ in 0..MAX_RANGES {
            session.spend(1)?;
            let Ok(Some(range)) = ranges.next() else {
                break;
            };
            if !code.is_code(range.begin) {
                continue;
            }
            // The part with the entry comes first, unless a linker or an old compiler put cold code there.
            if !code.is_cold(range.begin) {
                return Some(range.begin);
            }
            first = first.or(Some(range.begin));
        }
        first
    }
}

//! The units of a module by address. Lines and functions of each unit are read on first use.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use gimli::constants as dw;
use gimli::{AttributeValue, DebugLineOffset, Unit, UnitType};

use super::scopes::Scopes;
use super::table::{self, Lines};
use crate::dies::{Die, DieReader, Home};
use crate::dwarf::Slice;
use crate::functions::files;
use crate::module::Module;
use crate::parallel;
use crate::units::root_attributes;

/// Ranges read of one unit, at most.
const MAX_RANGES: usize = 1 << 20;

/// A unit that has code or a line table.
#[derive(Debug)]
pub(crate) struct CodeUnit {
    /// Its number among the units of `.debug_info`.
    pub index: usize,
    /// The compiler that made the unit.
    compiler: OnceLock<Compiler>,
    /// The unit has location lists.
    has_lists: OnceLock<bool>,
    line_table: Option<DebugLineOffset>,
    files: OnceLock<Vec<Arc<str>>>,
    lines: OnceLock<Lines>,
    scopes: OnceLock<Scopes>,
}

/// Compilers, distinguished by their prologues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compiler {
    /// An LLVM compiler: the line table marks the ends of prologues.
    Llvm,
    /// A GCC compiler: location lists are also valid in prologues.
    Gnu,
    Other,
}

/// All units of a module that have code or a line table.
#[derive(Debug, Default)]
pub(crate) struct Units {
    pub list: Vec<CodeUnit>,
    /// Start address, end address and index into `list`, by address.
    ranges: Vec<(u64, u64, u32)>,
    files: OnceLock<Vec<Arc<str>>>,
    /// The files in the line tables, by the last component of the path: the unit's index in `list` and the file's
    /// number.
    by_name: OnceLock<HashMap<Box<str>, Vec<(u32, u32)>>>,
    /// Units with inlined code whose names are not in the module's index, as indexes into `list`.
    unlisted: OnceLock<Vec<usize>>,
}

impl Units {
    /// Reads the root DIEs of all units.
    pub(crate) fn read(module: &Module) -> Units {
        let Some(kept) = module.entries().units() else {
            return Units::default();
        };
        let count = kept.table().headers(Home::Info).len();
        let threads = parallel::threads_for(kept.info_bytes());
        let found = parallel::map(
            count,
            threads,
            || kept.session(),
            |session, index| root(session, index, module),
        );
        let mut units = Units::default();
        for (unit, ranges) in found.into_iter().flatten() {
            let at = units.list.len() as u32;
            units
                .ranges
                .extend(ranges.iter().map(|(from, to)| (*from, *to, at)));
            units.list.push(unit);
        }
        units.ranges.sort_unstable();
        units
    }

    pub(crate) fn find(&self, svma: u64) -> Option<&CodeUnit> {
        let after = self.ranges.partition_point(|(from, ..)| *from <= svma);
        // Ranges do not overlap in valid files. In others, a few are tried.
        let mut near = self.ranges[..after].iter().rev().take(8);
        let (_, _, at) = near.find(|(_, to, _)| svma < *to)?;
        self.list.get(*at as usize)
    }

    /// Returns all files in the line tables, sorted and without duplicates.
    pub(crate) fn all_files(&self, module: &Module) -> &[Arc<str>] {
        self.files.get_or_init(|| {
            let mut all: HashSet<Arc<str>> = HashSet::new();
            for unit in &self.list {
                all.extend(unit.files(module).iter().cloned());
            }
            let mut all: Vec<Arc<str>> = all.into_iter().filter(|f| !f.is_empty()).collect();
            all.sort_unstable();
            all
        })
    }

    /// Returns the files whose path ends with the component `name`: the unit's index in `list` and the file's number,
    /// by unit.
    pub(super) fn with_name(&self, module: &Module, name: &str) -> &[(u32, u32)] {
        let by_name = self.by_name.get_or_init(|| {
            let mut by_name: HashMap<Box<str>, Vec<(u32, u32)>> = HashMap::new();
            for (at, unit) in self.list.iter().enumerate() {
                for (number, path) in unit.files(module).iter().enumerate() {
                    let places = match last_component(path) {
                        None => continue,
                        Some(name) => match by_name.get_mut(name) {
                            Some(places) => places,
                            None => by_name.entry(name.into()).or_default(),
                        },
                    };
                    places.push((at as u32, number as u32));
                }
            }
            by_name
        });
        by_name.get(name).map_or(&[], Vec::as_slice)
    }

    /// Returns the units that may have inlined copies of a function called `name`, in order. Such a unit describes the
    /// function as inlined, or has its names in a separate file.
    pub(super) fn with_copies(&self, module: &Module, name: &str) -> Vec<&CodeUnit> {
        let index = module.types().index();
        let unlisted = self.unlisted.get_or_init(|| {
            let has_copies = |unit: &CodeUnit| {
                let scopes = unit.scopes(module);
                scopes.list.iter().any(|scope| scope.parent.is_some())
            };
            let units = self.list.iter().enumerate();
            let unlisted = units.filter(|(_, unit)| !index.lists(unit.index) && has_copies(unit));
            unlisted.map(|(at, _)| at).collect()
        });
        let place = |unit: usize| self.list.binary_search_by_key(&unit, |u| u.index).ok();
        let mut places: Vec<usize> = index.inlining(name).filter_map(place).collect();
        places.extend(unlisted);
        places.sort_unstable();
        places.dedup();
        places.into_iter().map(|at| &self.list[at]).collect()
    }
}

/// Returns the file name at the end of a path.
pub(super) fn last_component(path: &str) -> Option<&str> {
    path.rsplit('/').find(|c| !c.is_empty() && *c != ".")
}

impl CodeUnit {
    /// Returns the files of the line table by number, without decoding the rows.
    pub(crate) fn files(&self, module: &Module) -> &[Arc<str>] {
        if let Some(lines) = self.lines.get() {
            return &lines.files;
        }
        let read = || self.with_table(module, table::files).unwrap_or_default();
        self.files.get_or_init(read)
    }

    pub(crate) fn lines(&self, module: &Module) -> &Lines {
        let code = &module.code;
        self.lines.get_or_init(|| {
            let read = self.with_table(module, |dwarf, unit, offset| {
                Lines::read(dwarf, unit, offset, |svma| code.is_code(svma))
            });
            read.unwrap_or_default()
        })
    }

    fn with_table<T>(
        &self,
        module: &Module,
        read: impl FnOnce(&gimli::Dwarf<Slice<'_>>, &Unit<Slice<'_>>, DebugLineOffset) -> T,
    ) -> Option<T> {
        let session = module.entries().units()?.session();
        let unit = session.unit(Home::Info, self.index).ok()?;
        Some(read(&session.table.dwarf, &unit, self.line_table?))
    }

    pub(crate) fn scopes(&self, module: &Module) -> &Scopes {
        self.scopes.get_or_init(|| Scopes::read(module, self.index))
    }

    /// Returns the compiler that made the unit. For a split unit, the split file states it.
    pub(super) fn compiler(&self, module: &Module) -> Compiler {
        let ask = |session: &DieReader<'_, '_>, index| compiler(session, index);
        let read = || {
            module
                .entries()
                .in_unit(self.index, ask)
                .unwrap_or(Compiler::Other)
        };
        *self.compiler.get_or_init(read)
    }

    /// Returns whether variable locations are valid from the first instruction of a function on. They are if gcc emits
    /// location lists.
    pub(super) fn locates_at_entry(&self, module: &Module) -> bool {
        if self.compiler(module) != Compiler::Gnu {
            return false;
        }
        let ask = |session: &DieReader<'_, '_>, index| has_lists(session, index);
        *self
            .has_lists
            .get_or_init(|| module.entries().in_unit(self.index, ask) == Some(true))
    }
}

type Ranges = Vec<(u64, u64)>;

/// Reads the root DIE of unit `index`. Returns `None` for a unit without code and lines.
fn root(session: &DieReader<'_, '_>, index: usize, module: &Module) -> Option<(CodeUnit, Ranges)> {
    let header = session.table.headers(Home::Info).get(index)?;
    if let UnitType::Type { .. } | UnitType::SplitType { .. } = header.type_() {
        return None;
    }
    let unit = session.unit(Home::Info, index).ok()?;
    let line_table = files::line_table(&unit);
    let code = &module.code;
    let mut ranges = Ranges::new();
    let mut listed = session.table.dwarf.unit_ranges(&unit).ok()?;
    while let (Ok(Some(range)), true) = (listed.next(), ranges.len() < MAX_RANGES) {
        if range.begin < range.end && code.is_code(range.begin) {
            ranges.push((range.begin, range.end));
        }
    }
    let unit_of = CodeUnit {
        index,
        compiler: OnceLock::new(),
        has_lists: OnceLock::new(),
        line_table,
        files: OnceLock::new(),
        lines: OnceLock::new(),
        scopes: OnceLock::new(),
    };
    if ranges.is_empty() && line_table.is_some() && states_no_range(&unit) {
        // The rows tell where the code is.
        ranges.extend(unit_of.lines(module).ranges());
    }
    (line_table.is_some() || !ranges.is_empty()).then_some((unit_of, ranges))
}

fn states_no_range(unit: &Unit<Slice<'_>>) -> bool {
    let attributes = root_attributes(unit).unwrap_or_default();
    !attributes
        .iter()
        .any(|a| matches!(a.name(), dw::DW_AT_ranges | dw::DW_AT_high_pc))
}

/// Words in the names of LLVM-based compilers. Distributors prepend their own: `Debian clang version 14.0.6`.
const LLVM: [&str; 9] = [
    "clang", "llvm", "flang", "rustc", "aocc", "zig ", "swift", "ldc", "oneapi",
];

fn compiler(session: &DieReader<'_, '_>, index: usize) -> Compiler {
    let Ok(root) = session.root(Home::Info, index) else {
        return Compiler::Other;
    };
    Compiler::of(session, &root)
}

impl Compiler {
    /// Returns the compiler of the unit with this root.
    pub(crate) fn of<'a>(session: &DieReader<'_, 'a>, root: &Die<'a>) -> Compiler {
        let producer = session.string(root, dw::DW_AT_producer);
        producer.map_or(Compiler::Other, |producer| {
            Compiler::called(&producer.to_string_lossy())
        })
    }

    fn called(producer: &str) -> Compiler {
        if producer.starts_with("GNU ") {
            return Compiler::Gnu;
        }
        let producer = producer.to_lowercase();
        match LLVM.iter().any(|word| producer.contains(word)) {
            true => Compiler::Llvm,
            false => Compiler::Other,
        }
    }
}

/// Returns whether a variable of the unit has a location list.
fn has_lists(session: &DieReader<'_, '_>, index: usize) -> bool {
    let Ok(unit) = session.unit(Home::Info, index) else {
        return false;
    };
    let Ok(mut entries) = unit.entries_raw(None) else {
        return false;
    };
    session.begin(&unit);
    while !entries.is_empty() {
        let Ok(next) = entries.read_abbreviation() else {
            return false;
        };
        let Some(abbreviation) = next else {
            continue;
        };
        let specs = abbreviation.attributes();
        let is_variable = matches!(
            abbreviation.tag(),
            dw::DW_TAG_variable | dw::DW_TAG_formal_parameter
        );
        if session.spend(specs.len() + 1).is_none() {
            return false;
        }
        if !is_variable {
            if entries.skip_attributes(specs).is_err() {
                return false;
            }
            continue;
        }
        for spec in specs {
            let Ok(attribute) = entries.read_attribute(*spec) else {
                return false;
            };
            let is_list = matches!(
                attribute.value(),
                AttributeValue::LocationListsRef(_) | AttributeValue::DebugLocListsIndex(_)
            );
            if is_list && attribute.name() == dw::DW_AT_location {
                return true;
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compilers_are_told_however_distributors_name_them() {
        for (producer, expected) in [
            ("clang version 16.0.6", Compiler::Llvm),
            ("Debian clang version 14.0.6", Compiler::Llvm),
            ("Ubuntu clang version 18.1.3 (1ubuntu1)", Compiler::Llvm),
            (
                "Apple clang version 15.0.0 (clang-1500.3.9.4)",
                Compiler::Llvm,
            ),
            (
                "AMD clang version 16.0.3 (CLANG: AOCC_4.1.0)",
                Compiler::Llvm,
            ),
            ("clang LLVM (rustc version 1.95.0)", Compiler::Llvm),
            (" F90 Flang - 1.5 2017-05-01", Compiler::Llvm),
            ("flang-new version 19.1.0", Compiler::Llvm),
            ("zig 0.11.0", Compiler::Llvm),
            ("GNU C17 12.2.0 -mtune=generic -g", Compiler::Gnu),
            ("GNU AS 2.40", Compiler::Gnu),
            ("Go cmd/compile go1.19.8", Compiler::Other),
            ("", Compiler::Other),
        ] {
            assert_eq!(Compiler::called(producer), expected, "{producer}");
        }
    }
}

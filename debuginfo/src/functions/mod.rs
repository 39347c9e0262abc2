//! All functions with machine code that the debug information describes.
//!
//! There are two walks. The first lists the DIEs with code, unit by unit. Every unit that includes a header describes
//! its inline functions again, so only one DIE is kept for each address. The second walk reads the remaining DIEs in
//! full. Both walks run on all processors. Their results do not depend on how the work is distributed.

mod build;
pub(crate) mod files;
mod mentioned;
pub(crate) mod names;
mod prototyped;
mod results;
mod scan;
pub(crate) mod scopes;
mod short_name;
mod signature;
mod split;
mod undescribed;

use std::sync::OnceLock;

use gimli::{Unit, UnitType};

use crate::code::Code;
use crate::dies::{DieReader, Home, UnitTable, bad_unit};
use crate::dwarf::{DebugSections, Slice};
use crate::error::Warning;
use crate::kept::KeptUnits;
use crate::lines::ByName;
use crate::model::{Function, Functions};
use crate::module::Module;
use crate::parallel;
use build::Built;
pub(crate) use prototyped::lacks_prototype;
use scan::{Candidate, Damage, Scan};
pub use short_name::{brief_name, short_name, short_name_at, told_apart, without_arguments};
use split::Skeleton;
pub(crate) use split::{Neighbours, SplitFiles};

/// What the first walk found in one unit.
struct Walked {
    scan: Scan,
    /// The DIEs are in the split unit.
    split: bool,
    warning: Option<Warning>,
}

/// What both walks need.
struct Reader<'x, 'a> {
    table: &'x UnitTable<'a>,
    code: &'x Code,
    neighbours: Option<Neighbours<'x>>,
}

/// The functions of one module, read on first use.
#[derive(Debug, Default)]
pub(crate) struct KnownFunctions {
    list: OnceLock<Functions>,
    by_name: OnceLock<ByName>,
}

impl KnownFunctions {
    pub(crate) fn list(&self, module: &Module) -> &Functions {
        let read = || match module.entries().units() {
            Some(units) => read(units, &module.code, module.entries().neighbours()),
            None => Functions {
                list: Vec::new(),
                warnings: DebugSections::read(module.files.described()).warnings,
            },
        };
        self.list.get_or_init(read)
    }

    /// Returns whether they have been read.
    fn are_known(&self) -> bool {
        self.by_name.get().is_some()
    }

    pub(crate) fn by_name(&self, module: &Module) -> &ByName {
        let list = || ByName::of(&self.list(module).list, module.code.symbols());
        self.by_name.get_or_init(list)
    }
}

/// Reads all functions of a module. Looks for split debug files among `neighbours`, if given.
fn read(units: &KeptUnits, code: &Code, neighbours: Option<Neighbours<'_>>) -> Functions {
    let table = units.table();
    let reader = Reader {
        table,
        code,
        neighbours,
    };
    let threads = parallel::threads_for(units.info_bytes());
    let count = table.headers(Home::Info).len();
    let session = || DieReader::new(table);
    let walked = parallel::map(count, threads, session, |s, unit| reader.walk(s, unit));
    let chosen = choose(&walked);
    let built = parallel::map(chosen.len(), threads, session, |s, index| {
        let (unit, candidates) = &chosen[index];
        reader.build(s, *unit, &walked[*unit], candidates)
    });
    let mut list = Vec::new();
    let mut doubted = Vec::new();
    let mut warnings = units.warnings();
    warnings.extend(walked.into_iter().filter_map(|w| w.warning));
    for (built, warning) in built {
        list.extend(built.functions);
        doubted.extend(built.doubted);
        warnings.extend(warning);
    }
    list.sort_by_key(|f: &Function| f.svma);
    results::forget_removed(&mut list, &doubted, code);
    Functions { list, warnings }
}

/// Calls `work` with a session and the index of the unit that holds the DIEs of `unit`, which is unit `index` of
/// `session`. For a skeleton this is its split unit (returns `None` if it is not found), else the unit itself. Looks
/// for split files among `neighbours`, if given.
pub(crate) fn in_whole_unit<'a, T>(
    session: &DieReader<'_, 'a>,
    index: usize,
    unit: &Unit<Slice<'a>>,
    neighbours: Option<Neighbours<'_>>,
    work: impl FnOnce(&DieReader<'_, '_>, usize) -> T,
) -> Option<T> {
    let Some(skeleton) = split::skeleton(session, unit) else {
        return Some(work(session, index));
    };
    split::with_split(session.table, unit, &skeleton, neighbours, work).ok()
}

/// Chooses one candidate for each address and groups them by unit: the best described, or else the first.
fn choose(walked: &[Walked]) -> Vec<(usize, Vec<&Candidate>)> {
    let mut all: Vec<(u64, bool, usize, &Candidate)> = Vec::new();
    for (unit, walked) in walked.iter().enumerate() {
        let plain = !walked.scan.described;
        let candidates = walked.scan.candidates.iter();
        all.extend(candidates.map(|c| (c.svma, plain, unit, c)));
    }
    all.sort_by_key(|(svma, plain, unit, candidate)| (*svma, *plain, *unit, candidate.die.0));
    all.dedup_by_key(|(svma, ..)| *svma);
    all.sort_by_key(|(_, _, unit, candidate)| (*unit, candidate.die.0));
    let mut by_unit: Vec<(usize, Vec<&Candidate>)> = Vec::new();
    for (_, _, unit, candidate) in all {
        match by_unit.last_mut() {
            Some((last, list)) if *last == unit => list.push(candidate),
            _ => by_unit.push((unit, vec![candidate])),
        }
    }
    by_unit
}

impl Reader<'_, '_> {
    fn walk(&self, session: &DieReader<'_, '_>, index: usize) -> Walked {
        let header = &self.table.headers(Home::Info)[index];
        let nothing = |warning| Walked {
            scan: Scan::default(),
            split: false,
            warning,
        };
        if let UnitType::Type { .. } | UnitType::SplitType { .. } = header.type_() {
            return nothing(None);
        }
        let offset = self.offset(index);
        let unit = match session.unit(Home::Info, index) {
            Ok(unit) => unit,
            Err(error) => return nothing(Some(self.damaged(offset, error.into()))),
        };
        let damage = |scan: &Scan| scan.error.map(|error| self.damaged(offset, error));
        let mut missing = None;
        if let Some(skeleton) = split::skeleton(session, &unit) {
            let code = &self.code;
            let scanned = self.with_split(session, index, &skeleton, |split, index| {
                let unit = split.unit(Home::Info, index);
                unit.map(|unit| scan::scan(split, &unit, code))
            });
            match scanned {
                Ok(Ok(scan)) => {
                    return Walked {
                        warning: damage(&scan),
                        scan,
                        split: true,
                    };
                }
                Ok(Err(error)) => missing = Some(self.damaged(offset, error.into())),
                Err(warning) => missing = Some(warning),
            }
        }
        let scan = scan::scan(session, &unit, self.code);
        Walked {
            warning: missing.or(damage(&scan)),
            scan,
            split: false,
        }
    }

    fn build(
        &self,
        session: &DieReader<'_, '_>,
        index: usize,
        walked: &Walked,
        candidates: &[&Candidate],
    ) -> (Built, Option<Warning>) {
        let offset = self.offset(index);
        let warned =
            |(built, damage): (_, Option<Damage>)| (built, damage.map(|d| self.damaged(offset, d)));
        if !walked.split {
            let built = build::build(session, index, &walked.scan, candidates, self.code);
            return warned(built);
        }
        let skeleton = session
            .unit(Home::Info, index)
            .ok()
            .and_then(|unit| split::skeleton(session, &unit));
        let built = skeleton.map(|skeleton| {
            self.with_split(session, index, &skeleton, |split, index| {
                build::build(split, index, &walked.scan, candidates, self.code)
            })
        });
        // The first walk found the file. If it is gone now, so are its functions.
        built.and_then(Result::ok).map(warned).unwrap_or_default()
    }

    /// Returns the offset of the unit's header in `.debug_info`.
    fn offset(&self, index: usize) -> usize {
        let header = &self.table.headers(Home::Info)[index];
        header.offset().as_debug_info_offset().map_or(0, |o| o.0)
    }

    fn with_split<T>(
        &self,
        session: &DieReader<'_, '_>,
        index: usize,
        skeleton: &Skeleton,
        then: impl FnOnce(&DieReader<'_, '_>, usize) -> T,
    ) -> Result<T, Warning> {
        let unit = session
            .unit(Home::Info, index)
            .map_err(|error| self.damaged(self.offset(index), error.into()))?;
        let neighbours = self.neighbours;
        split::with_split(session.table, &unit, skeleton, neighbours, then)
    }

    /// Returns the warning for a unit whose header is at `offset`.
    fn damaged(&self, offset: usize, damage: Damage) -> Warning {
        let why = match damage {
            Damage::Dwarf(error) => error.to_string(),
            Damage::Exhausted => "it refers to the same parts too often".to_owned(),
        };
        bad_unit(&self.table.path, offset, why)
    }
}

//! Finds the `.dwo` and `.dwp` files that hold most of a unit's debug information.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gimli::{Dwarf, DwarfPackage, DwoId, Unit, UnitType};

use crate::cache::Cache;
use crate::dies::{DieReader, Home, UnitTable};
use crate::dwarf::{DebugSections, Slice};
use crate::elf::Elf;
use crate::error::Warning;
use crate::kept::KeptSections;
use crate::map::Bytes;

/// What a skeleton unit states about its split unit.
pub(super) struct Skeleton {
    id: DwoId,
    path: PathBuf,
}

/// Reads the reference to a split file from a unit's root. Returns `None` for an ordinary unit.
pub(super) fn skeleton<'a>(
    session: &DieReader<'_, 'a>,
    unit: &Unit<Slice<'a>>,
) -> Option<Skeleton> {
    let id = unit.dwo_id?;
    let name = unit.dwo_name().ok()??;
    let dwarf = &session.table.dwarf;
    let name = dwarf.attr_string(unit, name).ok()?;
    let name = PathBuf::from(name.to_string_lossy().into_owned());
    let directory = unit.comp_dir.map(|d| d.to_string_lossy().into_owned());
    Some(Skeleton {
        id,
        path: PathBuf::from(directory.unwrap_or_default()).join(name),
    })
}

/// Files kept open, at most.
const MAX_FILES: usize = 1 << 10;

/// The files with split units of a module, each opened once. Missing files are remembered too; otherwise each question
/// about a variable or type of the unit would search for the file again.
#[derive(Debug, Default)]
pub(crate) struct SplitFiles {
    opened: Cache<PathBuf, Option<Arc<KeptSections>>, MAX_FILES>,
}

impl SplitFiles {
    fn open(&self, path: &Path) -> Option<Arc<KeptSections>> {
        self.opened.get(path, || {
            let file = Elf::parse_any(path, Bytes::map(path).ok()?).ok()?;
            Some(Arc::new(KeptSections::of_split(file)))
        })
    }

    /// Returns the package (`.dwp`) next to the module, if there is one.
    fn package(&self, module: &Path) -> Option<Arc<KeptSections>> {
        let mut name = module.file_name()?.to_owned();
        name.push(".dwp");
        self.open(&module.with_file_name(name))
    }

    /// Opens the `.dwo` file where the compiler wrote it, or next to the module.
    fn dwo(&self, path: &Path, module: &Path) -> Option<Arc<KeptSections>> {
        let beside = module.with_file_name(path.file_name()?);
        [path, &beside].into_iter().find_map(|path| self.open(path))
    }
}

/// Where to look for split units.
#[derive(Clone, Copy)]
pub(crate) struct Neighbours<'x> {
    /// The module next to which the files are.
    pub module: &'x Path,
    pub files: &'x SplitFiles,
}

/// Opens a skeleton's split unit and calls `then` with a session on its file and its index.
///
/// # Errors
/// A warning if the split unit is missing or damaged.
pub(super) fn with_split<'a, T>(
    table: &UnitTable<'a>,
    skeleton_unit: &Unit<Slice<'a>>,
    skeleton: &Skeleton,
    neighbours: Option<Neighbours<'_>>,
    then: impl FnOnce(&DieReader<'_, '_>, usize) -> T,
) -> Result<T, Warning> {
    let missing = || Warning::SplitUnitMissing {
        name: skeleton.path.display().to_string(),
    };
    let neighbours = neighbours.ok_or_else(missing)?;
    let package = neighbours.files.package(neighbours.module);
    let file;
    let dwarf = match &package {
        Some(package) => {
            let found = from_package(package.sections(), skeleton.id, &table.dwarf);
            found.ok_or_else(missing)?
        }
        None => {
            let found = neighbours.files.dwo(&skeleton.path, neighbours.module);
            file = found.ok_or_else(missing)?;
            let mut dwarf = file.sections().dwarf(None);
            dwarf.make_dwo(&table.dwarf);
            dwarf
        }
    };
    let split = UnitTable::read(dwarf, &skeleton.path, None);
    let mut session = DieReader::new(&split);
    session.skeleton = Some((&table.dwarf, skeleton_unit));
    let count = split.headers(Home::Info).len();
    let is_wanted = |index: &usize| match split.headers(Home::Info)[*index].type_() {
        UnitType::SplitCompilation(id) => id == skeleton.id,
        // Before DWARF 5, the id is an attribute.
        UnitType::Compilation => {
            let unit = session.unit(Home::Info, *index);
            unit.is_ok_and(|u| u.dwo_id == Some(skeleton.id))
        }
        _ => false,
    };
    let index = (0..count).find(is_wanted).ok_or_else(missing)?;
    Ok(then(&session, index))
}

fn from_package<'s>(
    sections: &'s DebugSections<'_>,
    id: DwoId,
    parent: &Dwarf<Slice<'s>>,
) -> Option<Dwarf<Slice<'s>>> {
    let load = |section| Ok::<_, gimli::Error>(sections.get(section));
    let empty = Slice::new(&[], gimli::LittleEndian);
    let package = DwarfPackage::load(load, empty).ok()?;
    package.find_cu(id, parent).ok()?
}

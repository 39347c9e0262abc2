//! Finds the `.dwo` and `.dwp` files that hold the bulk of a unit's debug information.

use std::path::{Path, PathBuf};

use gimli::{Dwarf, DwarfPackage, DwoId, Unit, UnitType};

use crate::dies::{Home, Session, UnitTable};
use crate::dwarf::{DebugSections, Slice};
use crate::elf::Elf;
use crate::error::Warning;
use crate::map::Bytes;

/// What a skeleton unit says of its other half.
pub(super) struct Skeleton {
    id: DwoId,
    path: PathBuf,
}

/// Reads the reference to a split file from a unit's root; `None` for an ordinary unit.
pub(super) fn skeleton<'a>(session: &Session<'_, 'a>, unit: &Unit<Slice<'a>>) -> Option<Skeleton> {
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

/// The files that split units are looked for in.
pub(super) struct Neighbours<'x> {
    module: &'x Path,
    package: Option<DebugSections<'x>>,
}

impl<'x> Neighbours<'x> {
    /// Beside `module`, or all in `package`, whose sections are read here, once.
    pub(super) fn new(module: &'x Path, package: Option<&'x Elf>) -> Neighbours<'x> {
        Neighbours {
            module,
            package: package.map(DebugSections::read_split),
        }
    }
}

/// The package (`.dwp`) beside the module, if there is one.
pub(super) fn package(module: &Path) -> Option<Elf> {
    let mut name = module.file_name()?.to_owned();
    name.push(".dwp");
    let path = module.with_file_name(name);
    let bytes = Bytes::map(&path).ok()?;
    Elf::parse_any(&path, bytes).ok()
}

/// Opens a skeleton's other half and hands a session on it and the index of the right unit to `then`.
///
/// # Errors
/// A warning if the half is nowhere, or damaged.
pub(super) fn with_split<'a, T>(
    table: &UnitTable<'a>,
    skeleton_unit: &Unit<Slice<'a>>,
    skeleton: &Skeleton,
    neighbours: Option<&Neighbours<'_>>,
    then: impl FnOnce(&Session<'_, '_>, usize) -> T,
) -> Result<T, Warning> {
    let missing = || Warning::SplitUnitMissing {
        name: skeleton.path.display().to_string(),
    };
    let neighbours = neighbours.ok_or_else(missing)?;
    let (file, sections);
    let dwarf = match &neighbours.package {
        Some(package) => from_package(package, skeleton.id, &table.dwarf).ok_or_else(missing)?,
        None => {
            file = open_dwo(&skeleton.path, neighbours.module).ok_or_else(missing)?;
            sections = DebugSections::read_split(&file);
            let mut dwarf = sections.dwarf(None);
            dwarf.make_dwo(&table.dwarf);
            dwarf
        }
    };
    let split = UnitTable::read(dwarf, &skeleton.path, None);
    let mut session = Session::new(&split);
    session.skeleton = Some((&table.dwarf, skeleton_unit));
    let count = split.headers(Home::Info).len();
    let is_wanted = |index: &usize| match split.headers(Home::Info)[*index].type_() {
        UnitType::SplitCompilation(id) => id == skeleton.id,
        // Before DWARF 5 the id is an attribute.
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

/// The `.dwo` file where the compiler wrote it, or beside the module.
fn open_dwo(path: &Path, module: &Path) -> Option<Elf> {
    let beside = module.with_file_name(path.file_name()?);
    [path, &beside].into_iter().find_map(|path| {
        let bytes = Bytes::map(path).ok()?;
        Elf::parse_any(path, bytes).ok()
    })
}

//! The modules of a program of which every instruction is recorded: what it mapped from ELF files, and when.

use std::{
    fs::File,
    io::Read,
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

use debuginfo::{AddressSpace, Mapped, Module, is_system_path, shared_module};
use store::control::Control;

const PAGE: u64 = 4096;

/// A mapping of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileMapping {
    /// How many instructions had been executed before it was made.
    pub from: u64,
    /// The same of its end.
    pub until: Option<u64>,
    /// Its addresses.
    pub range: Range<u64>,
    /// Where it begins in the file.
    pub offset: u64,
    /// The file.
    pub path: PathBuf,
}

/// A file that was mapped as a module.
#[derive(Debug)]
pub(super) struct FoundModule {
    /// How many instructions had been executed before it was mapped.
    pub from: u64,
    /// The same of its end.
    pub until: Option<u64>,
    /// From its first to its last mapped byte.
    pub range: Range<u64>,
    pub path: PathBuf,
    pub is_system: bool,
    /// The file, if it can be read.
    pub file: Option<Arc<Module>>,
}

impl FoundModule {
    /// Converts an address of the file to one of the process.
    pub fn address(&self, svma: u64) -> u64 {
        svma.wrapping_add(self.bias())
    }

    /// Its addresses, with the zeros that its file does not hold.
    fn extent(&self) -> Range<u64> {
        let range = self.range.clone();
        match &self.file {
            Some(file) => file.extent(range),
            None => range,
        }
    }

    fn bias(&self) -> u64 {
        let segments = self.file.iter().flat_map(|file| file.load_segments());
        let first = segments.map(|segment| segment.vaddr.0).min().unwrap_or(0);
        // The first mapped page holds the first segment's first byte.
        self.range.start.wrapping_sub(first & !(PAGE - 1))
    }
}

/// Finds the modules, in the order in which they were mapped: the program first.
pub(super) fn find(mappings: &[FileMapping], exe: &Path) -> Vec<FoundModule> {
    let mut firsts: Vec<&FileMapping> = mappings
        .iter()
        .filter(|mapping| mapping.offset == 0)
        .collect();
    firsts.sort_by_key(|mapping| (mapping.from, mapping.path != exe, mapping.range.start));
    let mut found: Vec<FoundModule> = Vec::new();
    for first in firsts {
        // The dynamic linker maps all of a file first, and then its segments over that.
        let is_part = |module: &FoundModule| {
            module.path == first.path
                && module.range.contains(&first.range.start)
                && module.until.is_none_or(|until| until > first.from)
        };
        if found.iter().any(is_part) || !is_elf(&first.path) {
            continue;
        }
        let range = first.range.start..end(first, mappings);
        found.push(FoundModule {
            from: first.from,
            until: first.until,
            range,
            is_system: first.path != exe && is_system_path(&first.path),
            file: Module::open(&first.path).ok().map(shared_module),
            path: first.path.clone(),
        });
    }
    found
}

/// The end of the mappings of the same file that follow a first one.
fn end(first: &FileMapping, mappings: &[FileMapping]) -> u64 {
    let lives = |mapping: &&FileMapping| {
        mapping.path == first.path && first.until.is_none_or(|until| mapping.from < until)
    };
    let mut rest: Vec<&FileMapping> = mappings.iter().filter(lives).collect();
    rest.sort_by_key(|mapping| mapping.range.start);
    let mut end = first.range.end;
    for mapping in rest {
        // Another copy of the file begins with its start again. Between segments there may be holes.
        let is_next = mapping.range.start >= first.range.start && mapping.offset > 0;
        if is_next && mapping.range.start <= end.saturating_add(MOST_HOLE) {
            end = end.max(mapping.range.end);
        }
    }
    end
}

/// Bytes between segments of a file, at most: linkers align them so.
const MOST_HOLE: u64 = 4 << 20;

fn is_elf(path: &Path) -> bool {
    let mut magic = [0; 4];
    let is_file = std::fs::metadata(path).is_ok_and(|found| found.is_file());
    let mut read = || File::open(path)?.read_exact(&mut magic);
    is_file && read().is_ok() && magic == *b"\x7fELF"
}

/// The events of their mapping and unmapping.
pub(super) fn controls(modules: &[FoundModule]) -> Vec<Control> {
    let mut controls = Vec::new();
    for (module, number) in modules.iter().zip(0..) {
        controls.push(Control::ModuleLoad {
            ticks: module.from,
            module: number,
            path: module.path.to_string_lossy().into_owned(),
            build_id: module
                .file
                .as_ref()
                .and_then(|file| file.build_id().map(str::to_owned)),
            addr: module.range.start,
            size: module.extent().end - module.range.start,
            system: module.is_system,
        });
        if let Some(ticks) = module.until {
            controls.push(Control::ModuleUnload {
                ticks,
                module: number,
            });
        }
    }
    controls
}

/// The modules that were mapped at a position, for questions about addresses.
pub(super) fn space(modules: &[FoundModule], position: u64) -> AddressSpace {
    let is_there = |module: &FoundModule| {
        module.from <= position && module.until.is_none_or(|until| until > position)
    };
    let numbered = modules.iter().zip(0..);
    let mapped = numbered.filter(|(module, _)| is_there(module));
    AddressSpace::new(
        mapped
            .filter_map(|(m, number)| as_mapped(m, number))
            .collect(),
    )
}

fn as_mapped(module: &FoundModule, number: u32) -> Option<Mapped> {
    let file = module.file.as_ref()?;
    Some(Mapped {
        number,
        bias: module.bias(),
        range: module.extent(),
        is_system: module.is_system,
        module: Arc::clone(file),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(from: u64, range: Range<u64>, offset: u64, path: &Path) -> FileMapping {
        FileMapping {
            from,
            until: None,
            range,
            offset,
            path: path.to_owned(),
        }
    }

    #[test]
    fn segments_of_a_file_are_one_module() {
        let own = std::env::current_exe().unwrap();
        let text = Path::new("/etc/passwd");
        let mappings = [
            mapping(0, 0x1000..0x2000, 0, &own),
            mapping(0, 0x2000..0x5000, 0x1000, &own),
            mapping(7, 0x9000..0xa000, 0, text),
            mapping(9, 0x7000_0000..0x7000_4000, 0, &own),
            mapping(10, 0x7000_1000..0x7000_6000, 0x1000, &own),
        ];
        let found = find(&mappings, &own);
        let places: Vec<_> = found.iter().map(|m| (m.from, m.range.clone())).collect();
        assert_eq!(places, [(0, 0x1000..0x5000), (9, 0x7000_0000..0x7000_6000)]);
        assert!(!found[0].is_system);
        assert_eq!(controls(&found).len(), 2);
    }

    #[test]
    fn what_is_unmapped_is_no_module_any_more() {
        let own = std::env::current_exe().unwrap();
        let gone = FileMapping {
            until: Some(5),
            ..mapping(1, 0x1000..0x2000, 0, &own)
        };
        let found = find(
            &[gone, mapping(6, 0x1000..0x3000, 0, &own)],
            Path::new("/x"),
        );
        assert_eq!(found.len(), 2);
        let ticks: Vec<_> = controls(&found).iter().map(Control::ticks).collect();
        assert_eq!(ticks, [Some(1), Some(5), Some(6)]);
        assert_eq!(space(&found, 5).modules().len(), 0);
        assert_eq!(space(&found, 6).modules().len(), 1);
    }
}

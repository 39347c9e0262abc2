//! Tracks the modules mapped in the target, and how file addresses map to process addresses.

use std::{cell::LazyCell, ops::Range, path::Path, sync::Arc};

use debuginfo::{Module, is_system_path};

use super::{contents, filter::Place, libraries::Library, linked::Linked};
use crate::process::maps::MappedFile;

const PAGE: u64 = 4096;

/// A mapped module.
#[derive(Debug)]
pub struct LoadedModule {
    /// Its number in the recording, dense from 0.
    pub number: u32,
    /// How it is mapped.
    pub file: MappedFile,
    /// Whether it is a system library.
    pub is_system: bool,
    /// Whether it is one that the runtime has to know.
    pub(super) library: Option<Library>,
    /// Whether it is in another namespace than the executable (`dlmopen(3)`, `LD_AUDIT`).
    pub(crate) is_foreign: bool,
    /// Bias to add to a file address to get the address in the process.
    pub bias: u64,
    /// The file that is mapped, if it was readable.
    pub elf: Option<Arc<Module>>,
    /// Why it was not readable.
    pub problem: Option<String>,
}

/// All modules seen so far.
#[derive(Debug, Default)]
pub struct Modules {
    /// The modules mapped now.
    pub loaded: Vec<LoadedModule>,
    ignored: Vec<MappedFile>,
    seen: u32,
}

/// A change in the list of modules.
#[derive(Debug, Default)]
pub struct Change {
    /// Numbers of the new modules.
    pub added: Vec<u32>,
    /// The modules that are gone.
    pub removed: Vec<LoadedModule>,
}

impl Modules {
    /// Updates the list from the current mappings. `pid` is the process, `exe` its executable, `ignored` the runtime's
    /// own library. Runtime libraries of earlier recordings are skipped too.
    pub fn update(
        &mut self,
        pid: i32,
        files: Vec<MappedFile>,
        exe: &Path,
        ignored: &Path,
    ) -> Change {
        let mut change = Change::default();
        self.ignored
            .retain(|ignored| files.iter().any(|file| same(file, ignored)));
        let (kept, removed) = std::mem::take(&mut self.loaded)
            .into_iter()
            .partition(|module: &LoadedModule| files.iter().any(|file| same(file, &module.file)));
        self.loaded = kept;
        change.removed = removed;
        let linked = LazyCell::new(|| Linked::of(pid));
        for file in files {
            let is_ours = agent::runtime::is_library(&file.path, ignored)
                || file.path.starts_with("/memfd:frida-agent")
                || file.path.starts_with("/dev/") && !file.path.starts_with("/dev/shm/");
            let is_ours = is_ours || self.ignored.iter().any(|ignored| same(&file, ignored));
            if is_ours || self.loaded.iter().any(|module| same(&file, &module.file)) {
                continue;
            }
            change.added.push(self.add(pid, file, exe, &linked));
        }
        while let Some(file) = self.next_needed(&change.added) {
            change.added.push(self.add(pid, file, exe, &linked));
        }
        change
    }

    /// Adds a module and returns its number.
    fn add(&mut self, pid: i32, file: MappedFile, exe: &Path, linked: &Linked) -> u32 {
        let module = LoadedModule::open(self.seen, pid, file, exe, linked);
        let number = module.number;
        self.seen += 1;
        self.loaded.push(module);
        number
    }

    /// Skips those of `files` that are not modules of the recording now: they do not belong to the program.
    pub fn ignore(&mut self, files: &[MappedFile]) {
        let is_loaded =
            |file: &MappedFile| self.loaded.iter().any(|module| same(file, &module.file));
        self.ignored = files
            .iter()
            .filter(|file| !is_loaded(file))
            .cloned()
            .collect();
    }

    /// Takes the next skipped library that a new module of the program needs: from now on it is the program's too.
    fn next_needed(&mut self, added: &[u32]) -> Option<MappedFile> {
        let new = self
            .loaded
            .iter()
            .filter(|module| added.contains(&module.number));
        let needed: Vec<&String> = new
            .filter_map(|module| module.elf.as_deref())
            .flat_map(Module::needed)
            .collect();
        let is_needed = |file: &MappedFile| {
            let name = file.path.file_name().map(|name| name.to_string_lossy());
            name.is_some_and(|name| needed.iter().any(|needed| **needed == name))
        };
        let at = self.ignored.iter().position(is_needed)?;
        Some(self.ignored.swap_remove(at))
    }

    /// Returns whether one of the mapped files contains Go code.
    pub fn have_go(&self) -> bool {
        let mut files = self.loaded.iter().filter_map(|module| module.elf.as_ref());
        files.any(|file| file.has_go())
    }

    /// Returns a mapped module by number.
    pub fn by_number(&self, number: u32) -> Option<&LoadedModule> {
        self.loaded.iter().find(|module| module.number == number)
    }
}

/// Compares file and start address only: the end moves when the program maps or unmaps parts.
fn same(a: &MappedFile, b: &MappedFile) -> bool {
    a.path == b.path && a.range.start == b.range.start
}

impl LoadedModule {
    fn open(number: u32, pid: i32, file: MappedFile, exe: &Path, linked: &Linked) -> Self {
        let is_executable = file.path == exe;
        let (elf, problem) = match contents::open(pid, &file, exe) {
            Ok(elf) => (Some(elf), None),
            Err(problem) => (None, Some(problem)),
        };
        let library = elf.as_deref().and_then(|elf| match is_executable {
            true => Library::of_executable(elf),
            false if linked.is_interpreter(&file.range) => Some(Library::of_interpreter(elf)),
            false => Library::of(elf),
        });
        // The program itself never counts as a system library.
        let is_system = !is_executable && (library.is_some() || is_system_path(&file.path));
        let is_foreign = !is_executable && linked.is_foreign(&file.range);
        let first = elf.as_ref().and_then(|elf| {
            elf.load_segments()
                .iter()
                .map(|segment| segment.vaddr.0)
                .min()
        });
        let bias = file
            .range
            .start
            .wrapping_sub(first.unwrap_or(0) & !(PAGE - 1));
        Self {
            number,
            file,
            is_system,
            library,
            is_foreign,
            bias,
            elf,
            problem,
        }
    }

    /// Returns what patterns see of it.
    pub(super) fn place(&self) -> Place<'_> {
        Place {
            path: &self.file.path,
            is_c_library: self.library.is_some_and(Library::is_of_c),
        }
    }

    /// Its addresses, with the zeros that its file does not hold.
    pub fn extent(&self) -> Range<u64> {
        let mapped = self.file.range.clone();
        match &self.elf {
            Some(elf) => elf.extent(mapped),
            None => mapped,
        }
    }

    /// Converts an address in the file to one in the process.
    pub fn addr_from_svma(&self, svma: u64) -> u64 {
        svma.wrapping_add(self.bias)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, start: u64) -> MappedFile {
        MappedFile {
            path: path.into(),
            range: start..start + 0x1000,
            first: start..start + 0x1000,
            identity: (String::new(), 0),
        }
    }

    #[test]
    fn changes_name_what_came_and_what_went() {
        let mut modules = Modules::default();
        let exe = Path::new("/nowhere/app");
        let mut update = |files| modules.update(1, files, exe, Path::new("/nowhere/runtime.so"));
        let first = update(vec![
            file("/nowhere/app", 0x1000),
            file("/usr/lib/x.so", 0x9000),
            file("/nowhere/runtime.so", 0xf000),
        ]);
        assert_eq!(first.added, [0, 1]);
        let second = update(vec![
            file("/nowhere/app", 0x1000),
            file("/usr/lib/x.so", 0x5000),
        ]);
        assert_eq!((second.added, second.removed.len()), (vec![2], 1));
        assert_eq!(second.removed[0].number, 1);
    }

    #[test]
    fn a_skipped_file_that_went_may_come_again() {
        let mut modules = Modules::default();
        let (exe, runtime) = (Path::new("/nowhere/app"), Path::new("/nowhere/runtime.so"));
        let app = || file("/nowhere/app", 0x1000);
        let maths = || file("/usr/lib/libm.so.6", 0x9000);
        modules.update(1, vec![app()], exe, runtime);
        modules.ignore(&[app(), maths()]);
        let mut update = |files| modules.update(1, files, exe, runtime).added;
        assert!(update(vec![app(), maths()]).is_empty());
        assert!(update(vec![app()]).is_empty());
        assert_eq!(update(vec![app(), maths()]), [1]);
    }

    #[test]
    fn the_program_is_never_a_system_library() {
        let exe = Path::new("/usr/lib/git-core/git");
        let linked = Linked::default();
        let is_system = |path: &str| {
            let file = file(path, 0x1000);
            LoadedModule::open(0, 1, file, exe, &linked).is_system
        };
        assert!(!is_system("/usr/lib/git-core/git"));
        assert!(is_system("/usr/lib/libz.so"));
        assert!(!is_system("/opt/app/libz.so"));
    }
}

//! A module: an ELF file and the files that hold its debug information, as one object.
//!
//! Each kind of answer has a struct of its own that caches its results. This file only combines these structs.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::code::Code;
use crate::elf::Elf;
use crate::entries::Entries;
use crate::error::Result;
use crate::files::Files;
use crate::functions::KnownFunctions;
use crate::lines::{ByName, Units};
use crate::map::Bytes;
use crate::model::Functions;
use crate::scope::KnownVariables;
use crate::separate::{Search, debuginfod_cache};
use crate::types::KnownTypes;
use crate::unwind::{FrameLeaver, Unwind};

/// Options for opening a module.
#[derive(Debug, Clone)]
pub struct OpenOptions {
    search: Search,
}

impl Default for OpenOptions {
    fn default() -> Self {
        OpenOptions {
            search: Search {
                debug_dirs: vec![PathBuf::from("/usr/lib/debug")],
                cache: debuginfod_cache(),
            },
        }
    }
}

impl OpenOptions {
    /// Returns the default options, which search for separate debug files in `/usr/lib/debug` and in the
    /// cache of debuginfod's clients.
    #[must_use]
    pub fn new() -> OpenOptions {
        OpenOptions::default()
    }

    /// Replaces the directories that hold separate debug files (and `.build-id` below them).
    #[must_use]
    pub fn debug_dirs(mut self, dirs: impl IntoIterator<Item = PathBuf>) -> OpenOptions {
        self.search.debug_dirs = dirs.into_iter().collect();
        self
    }

    /// Opens the program or library at `path`, and its separate debug files if there are any.
    ///
    /// # Errors
    /// See [`Module::open`].
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Module> {
        self.open_content(path.as_ref(), path.as_ref())
    }

    /// As [`Self::open`], with the content of another file: that of a file which was at `path` once, and is still mapped.
    ///
    /// # Errors
    /// See [`Module::open`].
    pub fn open_content(&self, path: &Path, content: &Path) -> Result<Module> {
        let bytes = Bytes::map(content).map_err(|source| crate::Error::Open {
            path: content.to_owned(),
            source,
        })?;
        let elf = Elf::parse(path, bytes)?;
        let mut warnings = Vec::new();
        let mut debug = None;
        if !elf.has_debug_info() {
            debug = self.search.debug_file(&elf, &mut warnings);
        }
        let described = debug.as_ref().unwrap_or(&elf);
        let supplement = self.search.supplement(described, &mut warnings);
        Ok(Module::new(Files::with_companions(
            elf, debug, supplement, warnings,
        )))
    }
}

/// A program or shared library, with all debug information found for it.
///
/// Opening is cheap. Each kind of answer is computed on first use and cached.
#[derive(Debug)]
pub struct Module {
    pub(crate) files: Arc<Files>,
    pub(crate) code: Code,
    entries: Arc<Entries>,
    pub(crate) functions: KnownFunctions,
    units: OnceLock<Units>,
    unwind: Unwind,
    types: KnownTypes,
    variables: KnownVariables,
}

impl Module {
    /// Opens the program or library at `path`, and its separate debug files if there are any.
    ///
    /// Separate debug files are looked up by build id in `/usr/lib/debug/.build-id`, then by the name in
    /// `.gnu_debuglink` next to the module, in `.debug/` next to it and in `/usr/lib/debug`. A file with the right name
    /// but the wrong checksum or build id is not used; [`Module::warnings`] reports it.
    ///
    /// # Errors
    /// The file cannot be read, is not ELF, is not a 64-bit little-endian program or library for x86-64, or has damaged
    /// headers.
    pub fn open(path: impl AsRef<Path>) -> Result<Module> {
        OpenOptions::new().open(path)
    }

    /// Opens a module that is already in memory. `path` appears only in messages. No other file is read.
    ///
    /// # Errors
    /// As [`Module::open`], except for reading the file.
    pub fn from_bytes(path: impl AsRef<Path>, bytes: Vec<u8>) -> Result<Module> {
        let elf = Elf::parse(path.as_ref(), Bytes::Owned(bytes))?;
        Ok(Module::new(Files::alone(elf)))
    }

    fn new(files: Files) -> Module {
        let files = Arc::new(files);
        let entries = Arc::new(Entries::new(files.clone()));
        Module {
            code: Code::new(files.clone()),
            functions: KnownFunctions::default(),
            units: OnceLock::new(),
            unwind: Unwind::new(files.clone()),
            types: KnownTypes::new(entries.clone()),
            variables: KnownVariables::default(),
            entries,
            files,
        }
    }

    /// Returns all functions with machine code that the debug information describes, by address.
    ///
    /// Functions that exist only as inlined copies and split-off cold parts are not included. If several units describe
    /// a function, or different functions share an address, one of them is listed. Without debug information the list
    /// is empty; see [`Module::symbols`].
    #[must_use]
    pub fn functions(&self) -> &Functions {
        self.functions.list(self)
    }

    /// Returns whether the module may contain anything called `name`, in any function: a variable, type, enumerator or
    /// function. If not, no lookup of `name` can succeed.
    #[must_use]
    pub fn mentions(&self, name: &str) -> bool {
        let units = self.entries.units();
        // Names may be in files next to this one.
        let is_alone = self.supplement_path().is_none();
        let is_symbol = || {
            let (functions, symbols) = self.by_name().candidates(name);
            !functions.is_empty() || !symbols.is_empty()
        };
        !is_alone || units.is_some_and(|kept| kept.table().mentions(name)) || is_symbol()
    }

    pub(crate) fn entries(&self) -> &Entries {
        &self.entries
    }

    pub(crate) fn by_name(&self) -> &ByName {
        self.functions.by_name(self)
    }

    /// Returns the units by address, with their lines and functions.
    pub(crate) fn units(&self) -> &Units {
        self.units.get_or_init(|| Units::read(self))
    }

    /// Returns where the module's code leaves frames without a return: the unwinder's and longjmp's last jumps.
    #[must_use]
    pub fn frame_leavers(&self) -> &[FrameLeaver] {
        self.unwind.leavers(self)
    }

    /// Returns the unwind tables, and the calls of functions.
    pub(crate) fn unwind(&self) -> &Unwind {
        &self.unwind
    }

    pub(crate) fn types(&self) -> &KnownTypes {
        &self.types
    }

    pub(crate) fn variables(&self) -> &KnownVariables {
        &self.variables
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separate_debug_files_are_searched_where_distributions_install_them() {
        let options = OpenOptions::new();
        assert_eq!(options.search.debug_dirs, [PathBuf::from("/usr/lib/debug")]);
        let other = options.debug_dirs([PathBuf::from("/opt/debug")]);
        assert_eq!(other.search.debug_dirs, [PathBuf::from("/opt/debug")]);
    }
}

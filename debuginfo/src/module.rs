//! A module: an ELF file and the files that hold its debug information, as one thing to ask.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::code::Code;
use crate::demangle;
use crate::dies::{Home, Session};
use crate::dwarf::DebugSections;
use crate::elf::{Dynamic, Elf, TlsSegment, TlsSlot};
use crate::error::{Result, Warning};
use crate::frames;
use crate::functions::{self, Neighbours, SplitFiles};
use crate::kept::KeptUnits;
use crate::lines::{ByName, Units};
use crate::map::Bytes;
use crate::model::{CodeRange, EntryFrame, Functions, PltEntry, Segment, Svma, Symbol};
use crate::plt;
use crate::scope::{KnownVariables, Vtables};
use crate::separate::{Search, hex};
use crate::symbols::{DataSymbols, SymbolFiles, SymbolIndex};
use crate::types::Known;
use crate::unwind::{KnownCalls, UnwindTables};

/// How a module is opened.
#[derive(Debug, Clone)]
pub struct OpenOptions {
    search: Search,
}

impl Default for OpenOptions {
    fn default() -> Self {
        OpenOptions {
            search: Search {
                debug_dirs: vec![PathBuf::from("/usr/lib/debug")],
            },
        }
    }
}

impl OpenOptions {
    /// Returns the usual options: separate debug files are searched for in `/usr/lib/debug`.
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
        let path = path.as_ref();
        let bytes = Bytes::map(path).map_err(|source| crate::Error::Open {
            path: path.to_owned(),
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
        let mut module = Module::new(elf, debug, supplement, warnings);
        module.split = Some(SplitFiles::default());
        Ok(module)
    }
}

/// A program or shared library, with whatever debug information can be found for it.
///
/// Opening is cheap; each kind of answer is worked out when it is first asked for, and kept.
#[derive(Debug)]
pub struct Module {
    elf: Arc<Elf>,
    debug: Option<Arc<Elf>>,
    supplement: Option<Arc<Elf>>,
    /// Files that the debug information names; `None` if none may be opened.
    split: Option<SplitFiles>,
    dynamic: Dynamic,
    build_id: Option<String>,
    warnings: Vec<Warning>,
    symbols: OnceLock<SymbolIndex>,
    named: OnceLock<Vec<Symbol>>,
    by_name: OnceLock<ByName>,
    plt: OnceLock<Vec<PltEntry>>,
    frames: OnceLock<Vec<CodeRange>>,
    starts: OnceLock<Vec<u64>>,
    functions: OnceLock<Functions>,
    kept: OnceLock<Option<KeptUnits>>,
    units: OnceLock<Units>,
    unwind: OnceLock<UnwindTables>,
    calls: KnownCalls,
    variables: KnownVariables,
    known: Known,
    vtables: Vtables,
    tls_slot: OnceLock<Option<TlsSlot>>,
    data: OnceLock<DataSymbols>,
}

impl Module {
    /// Opens the program or library at `path`, and its separate debug files if there are any.
    ///
    /// Separate debug files are looked for by build id in `/usr/lib/debug/.build-id`, then by the name in
    /// `.gnu_debuglink` beside the module, in `.debug/` beside it and in `/usr/lib/debug`. A file with the right name
    /// and the wrong checksum or build id is not used; [`Module::warnings`] says so.
    ///
    /// # Errors
    /// The file cannot be read, is not ELF, is not a 64-bit little-endian program or library for x86-64, or has
    /// damaged headers.
    pub fn open(path: impl AsRef<Path>) -> Result<Module> {
        OpenOptions::new().open(path)
    }

    /// Opens a module that is already in memory; `path` appears in messages only, no other file is read.
    ///
    /// # Errors
    /// As [`Module::open`], except for reading the file.
    pub fn from_bytes(path: impl AsRef<Path>, bytes: Vec<u8>) -> Result<Module> {
        let elf = Elf::parse(path.as_ref(), Bytes::Owned(bytes))?;
        Ok(Module::new(elf, None, None, Vec::new()))
    }

    fn new(
        elf: Elf,
        debug: Option<Elf>,
        supplement: Option<Elf>,
        warnings: Vec<Warning>,
    ) -> Module {
        Module {
            dynamic: elf.dynamic(),
            build_id: elf.build_id().map(hex),
            elf: Arc::new(elf),
            debug: debug.map(Arc::new),
            supplement: supplement.map(Arc::new),
            split: None,
            warnings,
            symbols: OnceLock::new(),
            named: OnceLock::new(),
            by_name: OnceLock::new(),
            plt: OnceLock::new(),
            frames: OnceLock::new(),
            starts: OnceLock::new(),
            functions: OnceLock::new(),
            kept: OnceLock::new(),
            units: OnceLock::new(),
            unwind: OnceLock::new(),
            calls: KnownCalls::default(),
            variables: KnownVariables::default(),
            known: Known::default(),
            vtables: Vtables::default(),
            tls_slot: OnceLock::new(),
            data: OnceLock::new(),
        }
    }

    /// Returns the path the module was opened by.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.elf.path()
    }

    /// Returns the file the debug information comes from, if it is not the module itself.
    #[must_use]
    pub fn debug_path(&self) -> Option<&Path> {
        self.debug.as_deref().map(Elf::path)
    }

    /// Returns dwz's supplementary debug file, if the debug information refers to one that was found.
    #[must_use]
    pub fn supplement_path(&self) -> Option<&Path> {
        self.supplement.as_deref().map(Elf::path)
    }

    /// Returns the files besides the module itself that its debug information is in: their paths, and their build ids in
    /// hexadecimal where they have one. `.dwo` files are not among them.
    #[must_use]
    pub fn companions(&self) -> Vec<(std::path::PathBuf, Option<String>)> {
        let elves = self.debug.iter().chain(&self.supplement);
        let mut found: Vec<_> = elves
            .map(|elf| (elf.path().to_owned(), elf.build_id().map(hex)))
            .collect();
        let mut package = self.path().as_os_str().to_owned();
        package.push(".dwp");
        let package = std::path::PathBuf::from(package);
        if self.split.is_some() && package.is_file() {
            found.push((package, None));
        }
        found
    }

    /// Returns what was found wrong while looking for debug files.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Returns the GNU build id in lower-case hexadecimal, if the module has one.
    #[must_use]
    pub fn build_id(&self) -> Option<&str> {
        self.build_id.as_deref()
    }

    /// Tells whether the module is an executable that may be loaded at any address.
    #[must_use]
    pub fn is_pie(&self) -> bool {
        // Linkers have marked such files since 2015; older ones are told apart from libraries by their interpreter.
        let unmarked = self.interp().is_some() && self.soname().is_none();
        self.elf.is_dyn() && (self.dynamic.says_pie || unmarked)
    }

    /// Tells whether the module is a shared library.
    #[must_use]
    pub fn is_library(&self) -> bool {
        self.elf.is_dyn() && !self.is_pie()
    }

    /// Tells whether Go's linker has made a part of the module: a program, a library, or an archive that is linked into C.
    #[must_use]
    pub fn has_go(&self) -> bool {
        // A linker of C that puts the parts together merges the table of functions into another section. Of the others, a
        // plugin has the data only, and a file without section headers the note.
        const OF_GO: [&str; 2] = [".go.buildinfo", ".noptrdata"];
        let of_go = |name: &str| name.ends_with("gopclntab") || OF_GO.contains(&name);
        let mut sections = self.elf.sections().iter();
        sections.any(|section| of_go(&section.name)) || self.elf.has_note_of(b"Go")
    }

    /// Returns the address of the first instruction that the kernel or the dynamic linker jumps to; 0 for none.
    #[must_use]
    pub fn entry(&self) -> Svma {
        self.elf.entry()
    }

    /// Returns the path of the dynamic linker that the module asks for.
    #[must_use]
    pub fn interp(&self) -> Option<&str> {
        self.elf.interp()
    }

    /// Returns the name by which other modules ask for this library.
    #[must_use]
    pub fn soname(&self) -> Option<&str> {
        self.dynamic.soname.as_deref()
    }

    /// Returns the names of the libraries that the module asks the dynamic linker for.
    #[must_use]
    pub fn needed(&self) -> &[String] {
        &self.dynamic.needed
    }

    /// Returns the address of the symbol that the module defines under exactly this linker name, code or data.
    #[must_use]
    pub fn address_of(&self, name: &str) -> Option<Svma> {
        let found = self.elf.address_of(name);
        let debug = self.debug.as_deref();
        found
            .or_else(|| debug.and_then(|debug| debug.address_of(name)))
            .map(Svma)
    }

    /// Returns the parts of the file that are mapped, in the order of the program headers.
    #[must_use]
    pub fn load_segments(&self) -> &[Segment] {
        self.elf.segments()
    }

    /// Returns `len` bytes at `svma` as the file has them (before relocation); `None` where it has not all of them.
    #[must_use]
    pub fn code(&self, svma: Svma, len: u64) -> Option<&[u8]> {
        self.elf.at(svma.0, len)
    }

    /// Returns the constants of the program's code, texts among them, as the file has them.
    #[must_use]
    pub fn constants(&self) -> &[u8] {
        let section = self.elf.section(".rodata");
        section.map_or(&[], |section| self.elf.section_bytes(section))
    }

    /// Tells whether the module or its debug file holds DWARF.
    #[must_use]
    pub fn has_dwarf(&self) -> bool {
        self.described().has_debug_info()
    }

    /// Returns all functions with machine code that the debug information describes, by address.
    ///
    /// Functions that exist as inlined copies only are not among them, nor are split-off cold parts. Of functions
    /// that several units describe, and of different functions at one address, one is listed. Without debug
    /// information the list is empty: see [`Module::symbols`].
    #[must_use]
    pub fn functions(&self) -> &Functions {
        self.functions.get_or_init(|| self.read_functions())
    }

    fn read_functions(&self) -> Functions {
        let Some(kept) = self.kept_units() else {
            return Functions {
                list: Vec::new(),
                warnings: DebugSections::read(self.described()).warnings,
            };
        };
        let beside = self.neighbours();
        let bytes = kept.info_bytes();
        let mut functions = functions::read(kept.table(), self.code_view(), beside, bytes);
        let mut warnings = kept.warnings();
        warnings.append(&mut functions.warnings);
        functions.warnings = warnings;
        functions
    }

    /// The unit headers, if there is debug information.
    pub(crate) fn kept_units(&self) -> Option<&KeptUnits> {
        let read = || {
            let elf = self.debug.as_ref().unwrap_or(&self.elf);
            elf.has_debug_info()
                .then(|| KeptUnits::read(elf, self.supplement.as_ref()))
                .filter(KeptUnits::has_info)
        };
        self.kept.get_or_init(read).as_ref()
    }

    /// The tables of Rust's traits, and which types they are for.
    pub(crate) fn vtables(&self) -> &Vtables {
        &self.vtables
    }

    /// Returns the linker's name of the code that begins at `svma`, if it has one.
    pub fn linker_name_at(&self, svma: Svma) -> Option<String> {
        let mut names = self.symbol_index().at(self.files(), svma.0);
        names.next().map(|(name, _, _)| name.to_owned())
    }

    /// Returns the linker's names of the code that begins at `svma`: there are several for one function, at most 64 are told.
    #[must_use]
    pub fn linker_names_at(&self, svma: Svma) -> Vec<&str> {
        let names = self.symbol_index().at(self.files(), svma.0);
        names.take(64).map(|(name, ..)| name).collect()
    }

    /// Tells whether the module may have anything called `name`, in whatever function: a variable, type, enumerator or function. What
    /// is not among its names can never be meant.
    #[must_use]
    pub fn mentions(&self, name: &str) -> bool {
        let units = self.kept_units();
        // Names may lie in files beside this one.
        let is_alone = self.supplement_path().is_none();
        let is_symbol = || {
            let (functions, symbols) = self.by_name().candidates(name);
            !functions.is_empty() || !symbols.is_empty()
        };
        !is_alone || units.is_some_and(|kept| kept.table().mentions(name)) || is_symbol()
    }

    /// Returns the names of the C++ types that the module may throw and catch, as far as its symbols tell, and whether these are all.
    #[must_use]
    pub fn thrown_types(&self) -> (Vec<String>, bool) {
        let debug = self.debug.as_deref();
        let files = [Some(&*self.elf), debug].into_iter().flatten();
        let is_complete = files.clone().any(|elf| elf.is_unstripped());
        let names = files.flat_map(|elf| elf.type_infos()).collect();
        (names, is_complete)
    }

    /// Tells whether the module takes what the linker calls `name` from another one.
    pub fn imports(&self, name: &str) -> bool {
        self.elf.imports(name)
    }

    /// What was learned of types and variables so far.
    pub(crate) fn known(&self) -> &Known {
        &self.known
    }

    /// The thread-local storage that the module brings along, if any.
    pub(crate) fn tls(&self) -> Option<TlsSegment> {
        self.elf.tls()
    }

    /// A word that tells where a thread has that storage.
    pub(crate) fn tls_slot(&self) -> Option<TlsSlot> {
        *self.tls_slot.get_or_init(|| self.elf.tls_slot())
    }

    /// Hands a session on unit `index` of `.debug_info` to `work`, with the unit's index there: for a skeleton that is
    /// its split half, if it is found. Attributes of split units are complete ([`Session::skeleton`] is set).
    pub(crate) fn in_unit<T>(
        &self,
        index: usize,
        work: impl FnOnce(&Session<'_, '_>, usize) -> T,
    ) -> Option<T> {
        self.in_whole_unit(&self.kept_units()?.session(), index, work)
    }

    /// As [`Module::in_unit`], with a session on the module's units.
    pub(crate) fn in_whole_unit<'a, T>(
        &self,
        session: &Session<'_, 'a>,
        index: usize,
        work: impl FnOnce(&Session<'_, '_>, usize) -> T,
    ) -> Option<T> {
        let unit = session.unit(Home::Info, index).ok()?;
        let beside = self.neighbours();
        functions::in_whole_unit(session, index, &unit, beside, work)
    }

    /// Where the split halves of units are looked for.
    fn neighbours(&self) -> Option<Neighbours<'_>> {
        let files = self.split.as_ref()?;
        Some(Neighbours {
            module: self.path(),
            files,
        })
    }

    /// The units by address, with their lines and functions.
    pub(crate) fn units(&self) -> &Units {
        self.units.get_or_init(|| Units::read(self))
    }

    /// The rules for unwinding.
    pub(crate) fn unwind_tables(&self) -> &UnwindTables {
        let read = || UnwindTables::read(&self.elf, self.debug.as_deref());
        self.unwind.get_or_init(read)
    }

    /// The calls of functions that were asked about.
    pub(crate) fn known_calls(&self) -> &KnownCalls {
        &self.calls
    }

    /// The variables that were asked about.
    pub(crate) fn known_variables(&self) -> &KnownVariables {
        &self.variables
    }

    /// Returns the code symbols of `.symtab` and `.dynsym`, by address; several may share one.
    #[must_use]
    pub fn symbols(&self) -> Vec<Symbol> {
        self.symbol_index().symbols(self.files())
    }

    /// As [`Module::symbols`], kept: who looks for one name will look for the next.
    pub(crate) fn kept_symbols(&self) -> &[Symbol] {
        self.named.get_or_init(|| self.symbols())
    }

    /// Returns the variables that symbols name.
    pub(crate) fn data(&self) -> &DataSymbols {
        self.data.get_or_init(|| DataSymbols::read(self.files()))
    }

    /// Returns which functions and symbols have a name.
    pub(crate) fn by_name(&self) -> &ByName {
        let list = || ByName::of(&self.functions().list, self.kept_symbols());
        self.by_name.get_or_init(list)
    }

    /// Returns the stubs through which the module calls other modules, by address.
    #[must_use]
    pub fn plt_entries(&self) -> &[PltEntry] {
        let find = || plt::entries(self.files(), self.symbol_index());
        self.plt.get_or_init(find)
    }

    /// Returns the ranges that the unwind tables describe, by address: functions, split-off parts, tables of stubs.
    #[must_use]
    pub fn frames(&self) -> &[CodeRange] {
        self.frames
            .get_or_init(|| frames::read(&self.elf, self.debug.as_deref()))
    }

    /// Returns the range of the unwind tables that holds `svma`. Its end is where the code really ends; what follows
    /// up to [`Module::next_function_start`] is padding.
    #[must_use]
    pub fn frame_at(&self, svma: Svma) -> Option<CodeRange> {
        frames::find(self.frames(), svma)
    }

    /// Returns what the unwind tables say of the stack where control comes to `svma`.
    #[must_use]
    pub fn entry_frame(&self, svma: Svma) -> EntryFrame {
        self.unwind_tables().entry_frame(&self.elf, svma.0)
    }

    /// Returns the ranges of the module's code: its executable sections or, without sections, its executable segments.
    #[must_use]
    pub fn code_ranges(&self) -> Vec<CodeRange> {
        self.elf.code_ranges_listed()
    }

    /// Returns every address at which code is known to begin, lowest first: symbols, ranges of the unwind tables, stubs.
    #[must_use]
    pub fn code_starts(&self) -> &[u64] {
        self.starts()
    }

    /// Returns where the parts begin that GCC made of functions to inline the rest of them (`NAME.part.0`), lowest first.
    #[must_use]
    pub fn starts_of_parts(&self) -> Vec<u64> {
        self.symbol_index().starts_of_parts(self.files())
    }

    /// Returns the lowest address above `svma` at which other code is known to begin: a symbol, a range of the
    /// unwind tables or a stub.
    #[must_use]
    pub fn next_function_start(&self, svma: Svma) -> Option<Svma> {
        let starts = self.starts();
        let after = starts.partition_point(|s| *s <= svma.0);
        starts.get(after).map(|s| Svma(*s))
    }

    /// Returns the first address that does not belong to the function at `svma` any more, when nothing states its
    /// size: the end of its range in the unwind tables, or else the next start or the end of its section. `None` if
    /// `svma` is not code.
    #[must_use]
    pub fn function_end(&self, svma: Svma) -> Option<Svma> {
        let section_end = self.elf.code_section_end(svma.0)?;
        let next = self.next_function_start(svma).map_or(u64::MAX, |s| s.0);
        let frame = self.frame_at(svma).filter(|f| f.start == svma);
        let frame_end = frame.map_or(u64::MAX, |f| f.end.0);
        Some(Svma(section_end.min(next).min(frame_end)))
    }

    /// Returns the readable name and the address of the symbol or stub (`NAME@plt`) whose code holds `svma`.
    #[must_use]
    pub fn symbol_at(&self, svma: Svma) -> Option<(String, Svma)> {
        let stubs = self.plt_entries();
        let after = stubs.partition_point(|stub| stub.svma <= svma);
        let stub = stubs[..after].last();
        if let Some(stub) = stub.filter(|s| svma.0 - s.svma.0 < s.size) {
            let name = demangle::readable(&stub.symbol).map(|(name, _)| name);
            let name = name.unwrap_or_else(|| stub.symbol.clone());
            return Some((format!("{name}@plt"), stub.svma));
        }
        let end = self.elf.code_section_end(svma.0)?;
        let frame_end = self.frame_at(svma).map_or(end, |f| f.end.0);
        let (name, start) = self
            .symbol_index()
            .around(self.files(), svma.0, frame_end)?;
        let readable = demangle::readable(name).map(|(name, _)| name);
        Some((readable.unwrap_or_else(|| name.to_owned()), Svma(start)))
    }

    pub(crate) fn elf(&self) -> &Elf {
        &self.elf
    }

    fn starts(&self) -> &[u64] {
        self.starts.get_or_init(|| {
            let frames = self.frames().iter().map(|f| f.start.0);
            let stubs = self.plt_entries().iter().map(|p| p.svma.0);
            let mut starts: Vec<u64> = self
                .symbol_index()
                .starts()
                .chain(frames)
                .chain(stubs)
                .collect();
            starts.sort_unstable();
            starts.dedup();
            starts
        })
    }

    fn described(&self) -> &Elf {
        self.debug.as_deref().unwrap_or(&self.elf)
    }

    fn files(&self) -> SymbolFiles<'_> {
        SymbolFiles {
            main: &self.elf,
            debug: self.debug.as_deref(),
        }
    }

    fn symbol_index(&self) -> &SymbolIndex {
        self.symbols.get_or_init(|| SymbolIndex::read(self.files()))
    }

    pub(crate) fn code_view(&self) -> Code<'_> {
        Code {
            files: self.files(),
            symbols: self.symbol_index(),
        }
    }
}

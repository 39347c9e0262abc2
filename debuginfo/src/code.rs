//! A module's code by address: its symbols and stubs, where it begins, its bytes.

use std::sync::{Arc, OnceLock};

use crate::demangle;
use crate::files::Files;
use crate::frames;
use crate::model::{CodeRange, EntryFrame, PltEntry, Svma, Symbol, SymbolKind};
use crate::module::Module;
use crate::plt;
use crate::symbols::{DataSymbols, SymbolIndex};

/// Symbols at one address that are looked at; a damaged file may have all of its there.
const MAX_SYMBOLS: usize = 64;

/// Answers questions about addresses and symbols of the module; what they need is read when first asked for.
#[derive(Debug)]
pub(crate) struct Code {
    files: Arc<Files>,
    index: OnceLock<SymbolIndex>,
    readable: OnceLock<Vec<Symbol>>,
    data: OnceLock<DataSymbols>,
    stubs: OnceLock<Vec<PltEntry>>,
    starts: OnceLock<Vec<u64>>,
}

impl Code {
    pub(crate) fn new(files: Arc<Files>) -> Code {
        Code {
            files,
            index: OnceLock::new(),
            readable: OnceLock::new(),
            data: OnceLock::new(),
            stubs: OnceLock::new(),
            starts: OnceLock::new(),
        }
    }

    fn index(&self) -> &SymbolIndex {
        self.index.get_or_init(|| SymbolIndex::read(&self.files))
    }

    /// The code symbols by address, with readable names: who looks for one name will look for the next.
    pub(crate) fn symbols(&self) -> &[Symbol] {
        let read = || self.index().symbols(&self.files);
        self.readable.get_or_init(read)
    }

    /// The variables that symbols name.
    pub(crate) fn data(&self) -> &DataSymbols {
        self.data.get_or_init(|| DataSymbols::read(&self.files))
    }

    fn stubs(&self) -> &[PltEntry] {
        let find = || plt::entries(&self.files, self.index());
        self.stubs.get_or_init(find)
    }

    /// Where code begins, given what the unwind tables describe.
    fn starts(&self, frames: &[CodeRange]) -> &[u64] {
        self.starts.get_or_init(|| {
            let frames = frames.iter().map(|f| f.start.0);
            let stubs = self.stubs().iter().map(|p| p.svma.0);
            let mut starts: Vec<u64> = self.index().starts().chain(frames).chain(stubs).collect();
            starts.sort_unstable();
            starts.dedup();
            starts
        })
    }

    pub(crate) fn is_code(&self, svma: u64) -> bool {
        self.files.main.is_code(svma)
    }

    /// At most `len` bytes of code at `svma`.
    pub(crate) fn bytes(&self, svma: u64, len: usize) -> &[u8] {
        let bytes = self.files.main.from(svma).unwrap_or_default();
        &bytes[..bytes.len().min(len)]
    }

    /// Linker names and kinds of the symbols exactly at `svma`.
    fn at(&self, svma: u64) -> impl Iterator<Item = (&str, SymbolKind)> {
        self.index().at(&self.files, svma).take(MAX_SYMBOLS)
    }

    /// Linker names at `svma`.
    pub(crate) fn names(&self, svma: u64) -> impl Iterator<Item = &str> {
        self.at(svma).map(|(name, _)| name)
    }

    /// Tells whether all symbols at `svma` say that code split off a function begins there.
    pub(crate) fn is_cold(&self, svma: u64) -> bool {
        let mut kinds = self.at(svma).map(|(_, kind)| kind);
        match kinds.next() {
            Some(first) => first == SymbolKind::Cold && kinds.all(|k| k == SymbolKind::Cold),
            None => false,
        }
    }
}

impl Module {
    /// Returns the linker's name of the code that begins at `svma`, if it has one.
    pub fn linker_name_at(&self, svma: Svma) -> Option<String> {
        self.code.names(svma.0).next().map(str::to_owned)
    }

    /// Returns the linker's names of the code that begins at `svma`: there are several for one function, at most 64 are told.
    #[must_use]
    pub fn linker_names_at(&self, svma: Svma) -> Vec<&str> {
        self.code.names(svma.0).collect()
    }

    /// Returns the code symbols of `.symtab` and `.dynsym`, by address; several may share one.
    #[must_use]
    pub fn symbols(&self) -> Vec<Symbol> {
        self.code.index().symbols(&self.files)
    }

    /// Returns the stubs through which the module calls other modules, by address.
    #[must_use]
    pub fn plt_entries(&self) -> &[PltEntry] {
        self.code.stubs()
    }

    /// Returns the ranges that the unwind tables describe, by address: functions, split-off parts, tables of stubs.
    #[must_use]
    pub fn frames(&self) -> &[CodeRange] {
        self.unwind().frames()
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
        self.unwind().tables().entry_frame(svma.0)
    }

    /// Returns every address at which code is known to begin, lowest first: symbols, ranges of the unwind tables, stubs.
    #[must_use]
    pub fn code_starts(&self) -> &[u64] {
        self.code.starts(self.frames())
    }

    /// Returns where the parts begin that GCC made of functions to inline the rest of them (`NAME.part.0`), lowest first.
    #[must_use]
    pub fn starts_of_parts(&self) -> Vec<u64> {
        self.code.index().starts_of_parts(&self.files)
    }

    /// Returns the lowest address above `svma` at which other code is known to begin: a symbol, a range of the
    /// unwind tables or a stub.
    #[must_use]
    pub fn next_function_start(&self, svma: Svma) -> Option<Svma> {
        let starts = self.code_starts();
        let after = starts.partition_point(|s| *s <= svma.0);
        starts.get(after).map(|s| Svma(*s))
    }

    /// Returns the first address that does not belong to the function at `svma` any more, when nothing states its
    /// size: the end of its range in the unwind tables, or else the next start or the end of its section. `None` if
    /// `svma` is not code.
    #[must_use]
    pub fn function_end(&self, svma: Svma) -> Option<Svma> {
        let section_end = self.files.main.code_section_end(svma.0)?;
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
        let end = self.files.main.code_section_end(svma.0)?;
        let frame_end = self.frame_at(svma).map_or(end, |f| f.end.0);
        let (name, start) = self.code.index().around(&self.files, svma.0, frame_end)?;
        let readable = demangle::readable(name).map(|(name, _)| name);
        Some((readable.unwrap_or_else(|| name.to_owned()), Svma(start)))
    }
}

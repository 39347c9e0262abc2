//! A module's code by address: symbols, stubs, function starts and bytes.

use std::sync::{Arc, OnceLock};

use crate::demangle;
use crate::files::Files;
use crate::frames;
use crate::model::{Binding, CodeRange, EntryFrame, PltEntry, Svma, Symbol, SymbolKind};
use crate::module::Module;
use crate::plt;
use crate::symbols::{DataSymbols, SymbolIndex, VariableSymbols};

/// Symbols examined at one address. A damaged file may place all its symbols there.
const MAX_SYMBOLS: usize = 64;

/// Answers questions about addresses and symbols of the module. Reads its tables on first use.
#[derive(Debug)]
pub(crate) struct Code {
    files: Arc<Files>,
    index: OnceLock<SymbolIndex>,
    readable: OnceLock<Vec<Symbol>>,
    data: OnceLock<DataSymbols>,
    variables: OnceLock<VariableSymbols>,
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
            variables: OnceLock::new(),
            stubs: OnceLock::new(),
            starts: OnceLock::new(),
        }
    }

    fn index(&self) -> &SymbolIndex {
        self.index.get_or_init(|| SymbolIndex::read(&self.files))
    }

    /// The code symbols by address, with readable names. They are cached because lookups by name come in series.
    pub(crate) fn symbols(&self) -> &[Symbol] {
        let read = || self.index().symbols(&self.files);
        self.readable.get_or_init(read)
    }

    /// The code symbols of some kinds and addresses, by address.
    pub(crate) fn symbols_where(&self, is_wanted: impl Fn(SymbolKind, u64) -> bool) -> Vec<Symbol> {
        self.index().symbols_where(&self.files, is_wanted)
    }

    /// The addresses and bindings of the functions whose symbols have a linker name.
    pub(crate) fn functions_linked(&self, linkage: &str) -> Vec<(Svma, Binding)> {
        self.index().functions_linked(&self.files, linkage)
    }

    /// The variables named by symbols.
    pub(crate) fn data(&self) -> &DataSymbols {
        self.data.get_or_init(|| DataSymbols::read(&self.files))
    }

    fn variables(&self) -> &VariableSymbols {
        let read = || VariableSymbols::read(&self.files);
        self.variables.get_or_init(read)
    }

    fn stubs(&self) -> &[PltEntry] {
        let find = || plt::entries(&self.files, self.index());
        self.stubs.get_or_init(find)
    }

    /// Returns the addresses where code begins, given the ranges that the unwind tables describe.
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

    /// Returns at most `len` bytes of code at `svma`.
    pub(crate) fn bytes(&self, svma: u64, len: usize) -> &[u8] {
        let bytes = self.files.main.from(svma).unwrap_or_default();
        &bytes[..bytes.len().min(len)]
    }

    /// Returns linker names and kinds of the symbols exactly at `svma`.
    fn at(&self, svma: u64) -> impl Iterator<Item = (&str, SymbolKind)> {
        self.index().at(&self.files, svma).take(MAX_SYMBOLS)
    }

    /// Returns whether all symbols at `svma` are local, which link-time optimisation also makes of others. False if there are none.
    pub(crate) fn is_local(&self, svma: u64) -> bool {
        let mut bindings = self.index().bindings_at(svma).take(MAX_SYMBOLS).peekable();
        bindings.peek().is_some() && bindings.all(|binding| binding == Binding::Local)
    }

    /// The start addresses and the bytes of the sections with code.
    pub(crate) fn sections(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let sections = self.files.main.sections().iter();
        let code = sections.filter(|section| section.is_code());
        code.map(|section| (section.addr, self.files.main.section_bytes(section)))
    }

    pub(crate) fn names(&self, svma: u64) -> impl Iterator<Item = &str> {
        self.at(svma).map(|(name, _)| name)
    }

    /// Returns whether all symbols at `svma` mark the start of code split off a function.
    pub(crate) fn is_cold(&self, svma: u64) -> bool {
        let mut kinds = self.at(svma).map(|(_, kind)| kind);
        match kinds.next() {
            Some(first) => first == SymbolKind::Cold && kinds.all(|k| k == SymbolKind::Cold),
            None => false,
        }
    }
}

impl Module {
    /// Returns the linker name of the code that begins at `svma`, if it has one.
    pub fn linker_name_at(&self, svma: Svma) -> Option<String> {
        self.code.names(svma.0).next().map(str::to_owned)
    }

    /// Returns the linker names of the code that begins at `svma`: one function may have several. Returns at most 64.
    #[must_use]
    pub fn linker_names_at(&self, svma: Svma) -> Vec<&str> {
        self.code.names(svma.0).collect()
    }

    /// Returns the code symbols of `.symtab` and `.dynsym`, by address. Several may share an address.
    #[must_use]
    pub fn symbols(&self) -> Vec<Symbol> {
        self.code.index().symbols(&self.files)
    }

    /// Returns whether other modules can call a function by this linker name.
    #[must_use]
    pub fn exports(&self, linkage: &str) -> bool {
        self.code.index().exports(&self.files, linkage)
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

    /// Returns the range of the unwind tables that contains `svma`. It ends where the code ends; what follows, up to
    /// [`Module::next_function_start`], is padding.
    #[must_use]
    pub fn frame_at(&self, svma: Svma) -> Option<CodeRange> {
        frames::find(self.frames(), svma)
    }

    /// Returns what the unwind tables state about the stack when control reaches `svma`.
    #[must_use]
    pub fn entry_frame(&self, svma: Svma) -> EntryFrame {
        self.unwind().tables().entry_frame(svma.0)
    }

    /// Returns every known start of code, lowest first: symbols, ranges of the unwind tables, stubs.
    #[must_use]
    pub fn code_starts(&self) -> &[u64] {
        self.code.starts(self.frames())
    }

    /// Returns the starts of the parts (`NAME.part.0`) that GCC splits off functions so that it can inline the rest,
    /// lowest first.
    #[must_use]
    pub fn starts_of_parts(&self) -> Vec<u64> {
        self.code.index().starts_of_parts(&self.files)
    }

    /// Returns the lowest known start of other code above `svma`: a symbol, a range of the unwind tables or a stub.
    #[must_use]
    pub fn next_function_start(&self, svma: Svma) -> Option<Svma> {
        let starts = self.code_starts();
        let after = starts.partition_point(|s| *s <= svma.0);
        starts.get(after).map(|s| Svma(*s))
    }

    /// Returns the first address past the function at `svma` when nothing states its size: the end of its range in the
    /// unwind tables, or else the next start or the end of its section. Returns `None` if `svma` is not code.
    #[must_use]
    pub fn function_end(&self, svma: Svma) -> Option<Svma> {
        let section_end = self.files.main.code_section_end(svma.0)?;
        let next = self.next_function_start(svma).map_or(u64::MAX, |s| s.0);
        let frame = self.frame_at(svma).filter(|f| f.start == svma);
        let frame_end = frame.map_or(u64::MAX, |f| f.end.0);
        Some(Svma(section_end.min(next).min(frame_end)))
    }

    /// Returns the readable name and the address of the variable's symbol whose bytes include `svma`.
    #[must_use]
    pub fn variable_symbol_at(&self, svma: Svma) -> Option<(String, Svma)> {
        let (name, start) = self.code.variables().at(svma.0)?;
        let readable = demangle::readable(name).map(|(name, _)| name);
        Some((readable.unwrap_or_else(|| name.to_owned()), Svma(start)))
    }

    /// Returns the first address, the size in bytes and the linker name of each variable that has a symbol.
    pub(crate) fn variable_symbols(&self) -> impl Iterator<Item = (Svma, u64, &str)> {
        self.code.variables().all()
    }

    /// Returns the readable name and the address of the symbol or stub (`NAME@plt`) whose code contains `svma`.
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
        // Code of another section belongs to no symbol before it: not the table of stubs to `_init`.
        if self.files.main.code_section_end(start) != Some(end) {
            return None;
        }
        let readable = demangle::readable(name).map(|(name, _)| name);
        Some((readable.unwrap_or_else(|| name.to_owned()), Svma(start)))
    }
}

//! Code symbols of `.symtab` (in the module or its debug file) and `.dynsym`, by address, and variables by name.

use std::collections::HashMap;

use object::LittleEndian;
use object::elf;
use object::pod::slice_from_all_bytes;

use crate::demangle;
use crate::elf::{Elf, Section, slice};
use crate::files::Files;
use crate::model::{Binding, Svma, Symbol, SymbolKind};

type RawSym = elf::Sym64<LittleEndian>;

/// A code symbol whose name is still in its file.
#[derive(Debug, Clone, Copy)]
struct Entry {
    svma: u64,
    size: u64,
    kind: SymbolKind,
    binding: Binding,
    in_debug_file: bool,
    name_offset: usize,
    name_len: usize,
}

/// Bytes of names read for each byte of the file. If names need more, symbols share parts of endless names.
const MAX_NAMES_RATIO: usize = 16;
/// Bytes of names that are always allowed.
const MIN_NAME_BYTES: usize = 1 << 16;

/// The bytes of names that may still be read from a file's tables.
pub(crate) struct NameBudget(usize);

impl NameBudget {
    pub(crate) fn for_file(elf: &Elf) -> NameBudget {
        let bytes = elf.bytes().len().saturating_mul(MAX_NAMES_RATIO);
        NameBudget(bytes.max(MIN_NAME_BYTES))
    }

    /// Returns the name at the start of `bytes`, if the budget allows it. See [`symbol_name`].
    pub(crate) fn name<'a>(&mut self, bytes: &'a [u8]) -> Option<&'a str> {
        let bytes = &bytes[..bytes.len().min(self.0)];
        let name = symbol_name(bytes)?;
        self.0 -= name.len();
        Some(name)
    }
}

/// All code symbols, sorted by address, and at one address the most visible first.
#[derive(Debug, Default)]
pub(crate) struct SymbolIndex {
    entries: Vec<Entry>,
}

impl Files {
    fn name(&self, entry: &Entry) -> &str {
        let elf = match entry.in_debug_file {
            true => self.described(),
            false => &self.main,
        };
        let raw = elf
            .bytes()
            .get(entry.name_offset..entry.name_offset + entry.name_len);
        std::str::from_utf8(raw.unwrap_or_default()).unwrap_or_default()
    }
}

impl Files {
    /// Returns the texts that hold the names of all symbols of both files.
    pub(crate) fn symbol_names(&self) -> impl Iterator<Item = &[u8]> {
        let elves = [Some(&self.main), self.debug.as_ref()]
            .into_iter()
            .flatten();
        let kinds = [elf::SHT_SYMTAB, elf::SHT_DYNSYM];
        elves.flat_map(move |elf| {
            let tables = kinds
                .into_iter()
                .filter_map(|kind| elf.section_of_kind(kind));
            tables.map(|table| {
                let (_, offset, size) = elf.symbol_table(table);
                slice(elf.bytes(), offset, size).unwrap_or_default()
            })
        })
    }
}

impl SymbolIndex {
    /// Reads the symbol tables of both files.
    pub(crate) fn read(files: &Files) -> SymbolIndex {
        let mut entries = Vec::new();
        let full = files.main.section_of_kind(elf::SHT_SYMTAB);
        match (full, &files.debug) {
            (Some(table), _) => add_table(&files.main, &files.main, table, false, &mut entries),
            (None, Some(debug)) => {
                if let Some(table) = debug.section_of_kind(elf::SHT_SYMTAB) {
                    add_table(&files.main, debug, table, true, &mut entries);
                }
            }
            (None, None) => {}
        }
        if let Some(table) = files.main.section_of_kind(elf::SHT_DYNSYM) {
            add_table(&files.main, &files.main, table, false, &mut entries);
        }
        let key = |e: &Entry| (e.svma, e.binding, files.name(e), e.in_debug_file);
        entries.sort_unstable_by(|a, b| key(a).cmp(&key(b)));
        entries.dedup_by(|a, b| a.svma == b.svma && files.name(a) == files.name(b));
        SymbolIndex { entries }
    }

    /// Returns the addresses and bindings of the functions whose linker name is `linkage`, by address.
    pub(crate) fn functions_linked(&self, files: &Files, linkage: &str) -> Vec<(Svma, Binding)> {
        let entries = self.entries.iter();
        let functions = entries.filter(|entry| entry.kind == SymbolKind::Function);
        let named = functions.filter(|entry| files.name(entry) == linkage);
        named
            .map(|entry| (Svma(entry.svma), entry.binding))
            .collect()
    }

    /// Returns the symbols with readable names, in the index's order.
    pub(crate) fn symbols(&self, files: &Files) -> Vec<Symbol> {
        self.symbols_where(files, |_, _| true)
    }

    /// As [`Self::symbols`], of the kinds and addresses that are wanted: making names readable takes the longest.
    pub(crate) fn symbols_where(
        &self,
        files: &Files,
        is_wanted: impl Fn(SymbolKind, u64) -> bool,
    ) -> Vec<Symbol> {
        let file_bytes =
            files.main.bytes().len() + files.debug.as_ref().map_or(0, |d| d.bytes().len());
        let mut left = file_bytes
            .saturating_mul(MAX_NAMES_RATIO)
            .max(MIN_NAME_BYTES);
        let mut symbol = |e: &Entry| {
            let linkage = files.name(e);
            // A short mangled name may stand for a long readable one.
            let readable = demangle::readable(linkage).map(|(name, _)| name);
            let readable = readable.filter(|name| name.len() <= left);
            left -= readable.as_ref().map_or(0, String::len);
            Symbol {
                svma: Svma(e.svma),
                size: e.size,
                name: readable.unwrap_or_else(|| linkage.to_owned()),
                linkage: linkage.to_owned(),
                kind: e.kind,
                binding: e.binding,
            }
        };
        let wanted = self.entries.iter().filter(|e| is_wanted(e.kind, e.svma));
        wanted.map(&mut symbol).collect()
    }

    /// Returns whether a function of this linker name is visible to other modules.
    pub(crate) fn exports(&self, files: &Files, linkage: &str) -> bool {
        let is_visible = |e: &Entry| e.kind == SymbolKind::Function && e.binding != Binding::Local;
        let mut visible = self.entries.iter().filter(|e| is_visible(e));
        visible.any(|e| e.name_len == linkage.len() && files.name(e) == linkage)
    }

    /// Returns linker names and kinds of the symbols exactly at `svma`.
    pub(crate) fn at<'a>(
        &'a self,
        files: &'a Files,
        svma: u64,
    ) -> impl Iterator<Item = (&'a str, SymbolKind)> {
        let start = self.entries.partition_point(|e| e.svma < svma);
        self.entries[start..]
            .iter()
            .take_while(move |e| e.svma == svma)
            .map(move |e| (files.name(e), e.kind))
    }

    /// Returns the bindings of the symbols exactly at `svma`.
    pub(crate) fn bindings_at(&self, svma: u64) -> impl Iterator<Item = Binding> {
        let start = self.entries.partition_point(|e| e.svma < svma);
        let here = self.entries[start..].iter();
        here.take_while(move |e| e.svma == svma).map(|e| e.binding)
    }

    /// Returns linker name and address of the symbol whose code contains `svma`. A symbol without a size extends to
    /// `limit` (the next known start).
    pub(crate) fn around<'a>(
        &'a self,
        files: &'a Files,
        svma: u64,
        limit: u64,
    ) -> Option<(&'a str, u64)> {
        let after = self.entries.partition_point(|e| e.svma <= svma);
        let last = self.entries[..after].last()?.svma;
        let first = self.entries.partition_point(|e| e.svma < last);
        let holds = |e: &&Entry| match e.size {
            0 => svma < limit,
            size => svma - e.svma < size,
        };
        // The most visible name comes first.
        let found = self.entries[first..after].iter().find(holds)?;
        Some((files.name(found), found.svma))
    }

    /// Returns the addresses of symbols whose linker name has a component `part`, as in `f.part.0`. Sorted.
    pub(crate) fn starts_of_parts(&self, files: &Files) -> Vec<u64> {
        let is_part = |e: &&Entry| files.name(e).split('.').skip(1).any(|part| part == "part");
        let mut found: Vec<u64> = self
            .entries
            .iter()
            .filter(is_part)
            .map(|e| e.svma)
            .collect();
        found.dedup();
        found
    }

    /// Returns the start addresses, sorted, repeated if several symbols share one.
    pub(crate) fn starts(&self) -> impl Iterator<Item = u64> + '_ {
        self.entries.iter().map(|e| e.svma)
    }
}

impl Elf {
    fn section_of_kind(&self, kind: u32) -> Option<&Section> {
        self.sections().iter().find(|s| s.kind == kind)
    }

    /// Returns the names of the types whose run-time type information the file defines or imports, according to its
    /// symbols.
    pub(crate) fn type_infos(&self) -> Vec<String> {
        const PREFIX: &str = "typeinfo for ";
        let tables = [elf::SHT_SYMTAB, elf::SHT_DYNSYM];
        let mut found = Vec::new();
        for table in tables
            .into_iter()
            .filter_map(|kind| self.section_of_kind(kind))
        {
            let (symbols, offset, size) = self.symbol_table(table);
            let names = slice(self.bytes(), offset, size).unwrap_or_default();
            let mut budget = NameBudget::for_file(self);
            for symbol in symbols {
                let at = symbol.st_name.get(LittleEndian) as usize;
                let text = names.get(at..).filter(|text| text.starts_with(b"_ZTI"));
                let readable = text.and_then(|text| demangle::readable(budget.name(text)?));
                let name =
                    readable.and_then(|(name, _)| name.strip_prefix(PREFIX).map(str::to_owned));
                found.extend(name);
            }
        }
        found
    }

    /// Returns whether the file has a full symbol table.
    pub(crate) fn is_unstripped(&self) -> bool {
        self.section_of_kind(elf::SHT_SYMTAB).is_some()
    }

    pub(crate) fn imports(&self, name: &str) -> bool {
        let Some(table) = self.section_of_kind(elf::SHT_DYNSYM) else {
            return false;
        };
        let (symbols, offset, size) = self.symbol_table(table);
        let names = slice(self.bytes(), offset, size).unwrap_or_default();
        let undefined = |s: &&RawSym| s.st_shndx.get(LittleEndian) == elf::SHN_UNDEF;
        symbols.iter().filter(undefined).any(|symbol| {
            let at = symbol.st_name.get(LittleEndian) as usize;
            let text = names
                .get(at..)
                .and_then(|rest| rest.strip_prefix(name.as_bytes()));
            text.is_some_and(|rest| rest.first() == Some(&0))
        })
    }

    /// Returns the symbols of a symbol table section, and the file offset and size of its names.
    pub(crate) fn symbol_table(&self, table: &Section) -> (&[RawSym], u64, u64) {
        let bytes = self.section_bytes(table);
        let whole = bytes.len() - bytes.len() % size_of::<RawSym>();
        let symbols = slice_from_all_bytes(&bytes[..whole]).unwrap_or_default();
        let names = usize::try_from(table.link)
            .ok()
            .and_then(|i| self.sections().get(i))
            .filter(|s| s.kind == elf::SHT_STRTAB);
        let (offset, size) = names.map_or((0, 0), |s| (s.offset, s.size));
        (symbols, offset, size)
    }
}

/// The variables in a module's symbol tables, by linker name.
#[derive(Debug, Default)]
pub(crate) struct DataSymbols {
    /// Variables available to other modules. Thread-local ones have no address.
    exported: HashMap<Box<str>, Option<Svma>>,
    /// Variables available to all files of the module.
    own: HashMap<Box<str>, Svma>,
}

impl DataSymbols {
    /// Reads the symbol tables of both files.
    pub(crate) fn read(files: &Files) -> DataSymbols {
        let mut data = DataSymbols::default();
        each_data_symbol(&files.main, elf::SHT_DYNSYM, |name, svma| {
            data.exported.entry(name.into()).or_insert(svma);
        });
        for elf in std::iter::once(&files.main).chain(&files.debug) {
            each_data_symbol(elf, elf::SHT_SYMTAB, |name, svma| {
                if let Some(svma) = svma {
                    data.own.entry(name.into()).or_insert(svma);
                }
            });
        }
        data
    }

    /// Returns whether the module exports a variable with linker name `name`.
    pub(crate) fn exports(&self, name: &str) -> bool {
        self.exported.contains_key(name)
    }

    /// Returns the address of the exported variable of that name, if all threads share it.
    pub(crate) fn exported(&self, name: &str) -> Option<Svma> {
        *self.exported.get(name)?
    }

    /// Returns the address of the variable of that name that the module's files share.
    pub(crate) fn of_module(&self, name: &str) -> Option<Svma> {
        self.exported(name).or_else(|| self.own.get(name).copied())
    }
}

/// The places of variables in a module, from all its symbol tables, by address.
#[derive(Debug, Default)]
pub(crate) struct VariableSymbols {
    /// The first address, the size, and the linker name. By address, then the largest last.
    list: Vec<(u64, u64, Box<str>)>,
}

impl VariableSymbols {
    /// Reads the symbol tables of both files.
    pub(crate) fn read(files: &Files) -> VariableSymbols {
        let mut list = Vec::new();
        for holder in std::iter::once(&files.main).chain(&files.debug) {
            for table in [elf::SHT_SYMTAB, elf::SHT_DYNSYM] {
                add_variables(holder, table, &mut list);
            }
        }
        list.sort_unstable();
        list.dedup();
        VariableSymbols { list }
    }

    /// Returns the first address, the size and the linker name of each.
    pub(crate) fn all(&self) -> impl Iterator<Item = (Svma, u64, &str)> {
        let list = self.list.iter();
        list.map(|(start, size, name)| (Svma(*start), *size, &**name))
    }

    /// Returns the name and the start of the variable whose bytes include `svma`.
    pub(crate) fn at(&self, svma: u64) -> Option<(&str, u64)> {
        let after = self.list.partition_point(|(start, ..)| *start <= svma);
        // Variables do not overlap, except for aliases of one place.
        let (start, size, name) = self.list[..after].last()?;
        (svma - start < (*size).max(1)).then_some((name, *start))
    }
}

fn add_variables(holder: &Elf, table: u32, list: &mut Vec<(u64, u64, Box<str>)>) {
    let is_variable = |symbol: &RawSym| symbol.st_info & 0xf == elf::STT_OBJECT;
    each_defined(holder, table, is_variable, |symbol, name| {
        let start = symbol.st_value.get(LittleEndian);
        list.push((start, symbol.st_size.get(LittleEndian), name.into()));
    });
}

/// Visits the variables in a table that more than one file can use.
fn each_data_symbol(holder: &Elf, table: u32, mut visit: impl FnMut(&str, Option<Svma>)) {
    let is_shared = |symbol: &RawSym| {
        symbol.st_info >> 4 != elf::STB_LOCAL
            && matches!(symbol.st_info & 0xf, elf::STT_OBJECT | elf::STT_TLS)
    };
    each_defined(holder, table, is_shared, |symbol, name| {
        let is_of_all_threads = symbol.st_info & 0xf == elf::STT_OBJECT;
        let svma = is_of_all_threads.then(|| Svma(symbol.st_value.get(LittleEndian)));
        visit(name, svma);
    });
}

/// Visits the defined symbols of a table that are wanted, with their names.
fn each_defined(
    holder: &Elf,
    table: u32,
    is_wanted: impl Fn(&RawSym) -> bool,
    mut visit: impl FnMut(&RawSym, &str),
) {
    let Some(table) = holder.section_of_kind(table) else {
        return;
    };
    let (symbols, offset, size) = holder.symbol_table(table);
    let names = slice(holder.bytes(), offset, size).unwrap_or_default();
    let mut budget = NameBudget::for_file(holder);
    for symbol in symbols {
        let is_defined = symbol.st_shndx.get(LittleEndian) != elf::SHN_UNDEF;
        let at = symbol.st_name.get(LittleEndian) as usize;
        if is_defined
            && is_wanted(symbol)
            && let Some(name) = names.get(at..).and_then(|rest| budget.name(rest))
        {
            visit(symbol, name);
        }
    }
}

/// Adds the code symbols of `table`, which is in `holder` and describes `code`.
fn add_table(code: &Elf, holder: &Elf, table: &Section, in_debug_file: bool, out: &mut Vec<Entry>) {
    let (symbols, names_offset, names_size) = holder.symbol_table(table);
    let names = slice(holder.bytes(), names_offset, names_size).unwrap_or_default();
    let mut budget = NameBudget::for_file(holder);
    for symbol in symbols {
        let Some((mut kind, binding)) = classify(symbol) else {
            continue;
        };
        let svma = symbol.st_value.get(LittleEndian);
        let offset = symbol.st_name.get(LittleEndian) as usize;
        let Some(name) = names.get(offset..).and_then(|n| budget.name(n)) else {
            continue;
        };
        if !code.is_code(svma) {
            continue;
        }
        if is_cold_part(name) {
            kind = SymbolKind::Cold;
        }
        out.push(Entry {
            svma,
            size: symbol.st_size.get(LittleEndian),
            kind,
            binding,
            in_debug_file,
            // The names are inside the file, so the sum is at most its length.
            name_offset: names_offset as usize + offset,
            name_len: name.len(),
        });
    }
}

fn classify(symbol: &RawSym) -> Option<(SymbolKind, Binding)> {
    if symbol.st_shndx.get(LittleEndian) == elf::SHN_UNDEF {
        return None;
    }
    let kind = match symbol.st_info & 0xf {
        elf::STT_FUNC => SymbolKind::Function,
        elf::STT_GNU_IFUNC => SymbolKind::Ifunc,
        _ => return None,
    };
    let binding = match symbol.st_info >> 4 {
        elf::STB_LOCAL => Binding::Local,
        elf::STB_WEAK => Binding::Weak,
        _ => Binding::Global,
    };
    Some((kind, binding))
}

/// Returns the name at the start of `bytes`, without the version that linkers append in `.symtab`
/// (`memcpy@@GLIBC_2.14`).
fn symbol_name(bytes: &[u8]) -> Option<&str> {
    let name = bytes.split(|b| *b == 0).next()?;
    let plain = name.split(|b| *b == b'@').next()?;
    std::str::from_utf8(plain).ok().filter(|n| !n.is_empty())
}

/// Suffixes that compilers and BOLT append to a function's name for the parts moved out of it. Control jumps into such
/// a part in the middle of the function's frame. GCC's `.part` is not among them, because it is called.
const PARTS: [&str; 4] = ["cold", "warm", "eh", "__part"];

/// Returns whether a linker name belongs to code split off a function: `f.cold`, `f.cold.3`, `f.isra.0.cold`, `f.warm`.
pub(crate) fn is_cold_part(name: &str) -> bool {
    name.split('.').skip(1).any(|part| PARTS.contains(&part))
}

impl Elf {
    /// Returns the address of the defined symbol with linker name `name`, of any kind.
    pub(crate) fn address_of(&self, name: &str) -> Option<u64> {
        let tables = [elf::SHT_DYNSYM, elf::SHT_SYMTAB];
        let tables = tables.iter().filter_map(|kind| self.section_of_kind(*kind));
        tables.into_iter().find_map(|table| {
            let (symbols, offset, size) = self.symbol_table(table);
            let names = slice(self.bytes(), offset, size)?;
            let is_it = |symbol: &&RawSym| {
                let at = symbol.st_name.get(LittleEndian) as usize;
                let found = names
                    .get(at..)
                    .and_then(|rest| rest.strip_prefix(name.as_bytes()));
                symbol.st_shndx.get(LittleEndian) != elf::SHN_UNDEF
                    && found.is_some_and(|rest| matches!(rest.first(), Some(0 | b'@')))
            };
            let symbol = symbols.iter().find(is_it)?;
            Some(symbol.st_value.get(LittleEndian))
        })
    }
}

//! What variables begin with, compared in two builds: their bytes, and what the pointers among them lead to, wherever that lies.

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap, HashSet};

use object::LittleEndian;
use object::elf::{self, R_X86_64_64, R_X86_64_IRELATIVE, R_X86_64_RELATIVE, Rela64};

use crate::demangle;
use crate::elf::Section;
use crate::model::{Segment, Svma};
use crate::module::Module;
use crate::shared_variables::{is_named_by_number, stem};

/// Bytes of a pointer.
const WORD: usize = 8;
/// The kernel maps nothing below this address.
const LOWEST: u64 = 1 << 16;
/// Bytes of a text that is not ended by a zero byte, at most.
const MOST_TEXT: u64 = 1 << 16;
/// Constants without names of their own that are followed from each other.
const MOST_NESTED: u32 = 8;

/// Some bytes of a module's file.
#[derive(Clone, Copy)]
pub(crate) struct Object<'i> {
    pub image: &'i Image<'i>,
    pub start: u64,
    pub size: u64,
}

/// A module, as the dynamic linker makes it.
pub(crate) struct Image<'m> {
    module: &'m Module,
    /// What the dynamic linker writes where.
    written: BTreeMap<u64, Pointer>,
    /// The program is not moved: any word of it that is one of its addresses is taken for a pointer.
    is_fixed: bool,
    /// By address: the sizes of variables.
    sizes: HashMap<u64, u64>,
    /// The names of functions and variables.
    names: OnceCell<HashSet<String>>,
}

/// Where a pointer leads.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Pointer {
    /// To an address of the module.
    Own(u64),
    /// To a symbol of another module, or behind it.
    Imported(String, i64),
}

impl<'m> Image<'m> {
    pub(crate) fn of(module: &'m Module) -> Self {
        let sections = module.files.main.sections();
        let mut written = BTreeMap::new();
        let tables = sections.iter();
        for table in tables.filter(|section| section.kind == elf::SHT_RELA) {
            for relocation in module.files.main.relocations(table) {
                let at = relocation.r_offset.get(LittleEndian);
                let pointer = pointer(module, table, relocation);
                written.extend(pointer.map(|pointer| (at, pointer)));
            }
        }
        for table in sections.iter().filter(|it| it.kind == elf::SHT_RELR) {
            for at in packed(module.files.main.section_bytes(table)) {
                let word = module.code(Svma(at), WORD as u64);
                let word = word.and_then(|bytes| bytes.first_chunk::<WORD>());
                let pointer = word.map(|word| Pointer::Own(u64::from_le_bytes(*word)));
                written.extend(pointer.map(|pointer| (at, pointer)));
            }
        }
        let variables = module.variable_symbols();
        Image {
            module,
            written,
            is_fixed: !module.is_pie() && !module.is_library(),
            sizes: variables.map(|(start, size, _)| (start.0, size)).collect(),
            names: OnceCell::new(),
        }
    }

    fn bytes(&self, start: u64, size: u64) -> Option<&'m [u8]> {
        self.module.code(Svma(start), size)
    }

    fn segment(&self, address: u64) -> Option<&'m Segment> {
        let mut segments = self.module.load_segments().iter();
        let end = |it: &Segment| it.vaddr.0.saturating_add(it.memsz);
        segments.find(|it| it.vaddr.0 <= address && address < end(it))
    }

    fn section(&self, address: u64) -> Option<&'m str> {
        let mut sections = self.module.files.main.sections().iter();
        let is_loaded = |it: &&Section| it.flags & u64::from(elf::SHF_ALLOC) != 0;
        let found = sections.find(|it| is_loaded(it) && it.addr <= address && address < it.end());
        found.map(|section| &*section.name)
    }

    /// Returns the bytes of the file from an address on that the program cannot change.
    fn constant(&self, address: u64) -> Option<&'m [u8]> {
        if self.module.files.main.is_code(address) {
            return None;
        }
        let segment = self.segment(address).filter(|it| !it.flags.write)?;
        let left = (segment.vaddr.0.checked_add(segment.filesz)?).checked_sub(address)?;
        self.bytes(address, left)
    }

    /// Returns the bytes of a text that ends with a zero byte.
    fn text(&self, address: u64) -> Option<&'m [u8]> {
        let bytes = self.constant(address)?;
        let end = bytes.iter().position(|byte| *byte == 0)?;
        Some(&bytes[..end])
    }

    /// Returns the names of what is at an address, and the offset in it; in code, only whether there is one. Names that compilers
    /// make up do not count.
    fn names_at(&self, address: u64) -> Option<(Vec<String>, u64)> {
        let at = Svma(address);
        if let Some((name, start)) = self.module.symbol_at(at) {
            let linkages = self.module.linker_names_at(start).into_iter();
            let names = linkages.map(str::to_owned).chain([name]);
            return Some((names.collect(), u64::from(at != start)));
        }
        let (name, start) = self.module.variable_symbol_at(at)?;
        let name = stem(&name);
        let is_own = !is_made_up(name);
        is_own.then(|| (vec![name.to_owned()], address - start.0))
    }

    /// Returns the constant that begins at an address, if only compilers have given it a name.
    fn nameless(&self, start: u64) -> Option<Object<'_>> {
        let (name, at) = self.module.variable_symbol_at(Svma(start))?;
        let size = *self.sizes.get(&start)?;
        let is_whole = at.0 == start && size > 0 && is_made_up(stem(&name));
        is_whole.then_some(Object {
            image: self,
            start,
            size,
        })
    }

    fn has(&self, name: &str) -> bool {
        let names = self.names.get_or_init(|| {
            let functions = self.module.symbols().into_iter();
            let functions = functions.flat_map(|it| [it.name, it.linkage]);
            let variables = self.module.variable_symbols().map(|(_, _, linkage)| {
                let readable = demangle::readable(linkage).map(|(name, _)| name);
                stem(readable.as_deref().unwrap_or(linkage)).to_owned()
            });
            functions.chain(variables).collect()
        });
        names.contains(name)
    }
}

/// Returns what the dynamic linker writes for a relocation; `None` if that is no pointer.
fn pointer(module: &Module, table: &Section, relocation: &Rela64<LittleEndian>) -> Option<Pointer> {
    let addend = relocation.r_addend.get(LittleEndian);
    match relocation.r_type(LittleEndian, false) {
        R_X86_64_RELATIVE | R_X86_64_IRELATIVE => Some(Pointer::Own(addend.cast_unsigned())),
        R_X86_64_64 => {
            let elf = &module.files.main;
            let symbols = elf.sections().get(table.link as usize)?;
            let (symbols, offset, size) = elf.symbol_table(symbols);
            let symbol = symbols.get(relocation.r_sym(LittleEndian, false) as usize)?;
            if symbol.st_shndx.get(LittleEndian) != elf::SHN_UNDEF {
                let value = symbol.st_value.get(LittleEndian);
                return Some(Pointer::Own(value.wrapping_add_signed(addend)));
            }
            let names = crate::elf::slice(elf.bytes(), offset, size)?;
            let name = names.get(symbol.st_name.get(LittleEndian) as usize..)?;
            let name = name.split(|byte| *byte == 0).next()?;
            let name = String::from_utf8_lossy(name).into_owned();
            Some(Pointer::Imported(name, addend))
        }
        _ => None,
    }
}

/// Returns the addresses in a packed list of relative relocations (`SHT_RELR`): an even word is an address, and each bit of an odd
/// one but the lowest stands for one of the next 63 words.
fn packed(bytes: &[u8]) -> Vec<u64> {
    let mut found = Vec::new();
    let mut next = 0u64;
    for word in bytes.as_chunks::<WORD>().0 {
        let entry = u64::from_le_bytes(*word);
        if entry.is_multiple_of(2) {
            found.push(entry);
            next = entry.wrapping_add(WORD as u64);
            continue;
        }
        let bits = (0..63u64).filter(|bit| entry >> (bit + 1) & 1 == 1);
        found.extend(bits.map(|bit| next.wrapping_add(bit * WORD as u64)));
        next = next.wrapping_add(63 * WORD as u64);
    }
    found
}

/// Tells whether a compiler has made up a name, for a constant that has none in the source.
fn is_made_up(name: &str) -> bool {
    let begins = ["__compound_literal", "C.", ".L"];
    is_named_by_number(name) || name == "C" || begins.iter().any(|it| name.starts_with(it))
}

impl Object<'_> {
    /// Returns the pointers among the object's bytes, by their offsets.
    fn pointers(self, bytes: &[u8]) -> BTreeMap<usize, Pointer> {
        let end = self.start.saturating_add(self.size);
        let written = self.image.written.range(self.start..end);
        let found = written.map(|(at, to)| ((at - self.start) as usize, to.clone()));
        let mut found: BTreeMap<usize, Pointer> = found.collect();
        found.retain(|at, _| at + WORD <= bytes.len());
        if self.image.is_fixed && self.start.is_multiple_of(WORD as u64) {
            for (at, word) in bytes.as_chunks::<WORD>().0.iter().enumerate() {
                let address = u64::from_le_bytes(*word);
                if address >= LOWEST && self.image.segment(address).is_some() {
                    found.entry(at * WORD).or_insert(Pointer::Own(address));
                }
            }
        }
        found
    }
}

/// Objects of two builds that are compared.
#[derive(Clone, Copy)]
pub(crate) struct Pair<'i> {
    own: Object<'i>,
    other: Object<'i>,
    /// Texts do not end with a zero byte: the word behind a pointer to one is its length.
    has_lengths: bool,
    /// How many nameless constants may be followed from here.
    left: u32,
}

impl<'i> Pair<'i> {
    pub(crate) fn new(own: Object<'i>, other: Object<'i>, has_lengths: bool) -> Self {
        Pair {
            own,
            other,
            has_lengths,
            left: MOST_NESTED,
        }
    }

    /// Tells whether the objects, which have the same size, begin with other values.
    pub(crate) fn differs(self) -> bool {
        let bytes = |object: Object<'i>| object.image.bytes(object.start, object.size);
        let (Some(own), Some(other)) = (bytes(self.own), bytes(self.other)) else {
            return false;
        };
        let (of_own, of_other) = (self.own.pointers(own), self.other.pointers(other));
        let mut both = of_own.clone();
        both.retain(|at, _| of_other.contains_key(at));
        // A null pointer is no pointer in such a list.
        let is_listed = !self.own.image.is_fixed && !self.other.image.is_fixed;
        if is_listed && (of_own.len() != both.len() || of_other.len() != both.len()) {
            return true;
        }
        if without(own, &both) != without(other, &both) {
            return true;
        }
        both.iter().any(|(at, to)| {
            let behind = at + WORD;
            let length = match self.has_lengths && !both.contains_key(&behind) {
                true => length(own, behind),
                false => None,
            };
            self.lead_elsewhere(to, &of_other[at], length)
        })
    }

    fn lead_elsewhere(self, own: &Pointer, other: &Pointer, length: Option<usize>) -> bool {
        match (own, other) {
            (Pointer::Imported(..), Pointer::Imported(..)) => own != other,
            (Pointer::Own(own), Pointer::Own(other)) => self.are_others(*own, *other, length),
            // The same name may have come from elsewhere.
            _ => false,
        }
    }

    /// Tells whether something else is at two addresses: another text, function, variable or place in one, or at least another section.
    fn are_others(self, at: u64, at_other: u64, length: Option<usize>) -> bool {
        let (own, other) = (self.own.image, self.other.image);
        if let Some(length) = length
            && let Some(text) = own.constant(at).and_then(|bytes| bytes.get(..length))
            && let Some(twin) = other.constant(at_other).and_then(|it| it.get(..length))
        {
            return text != twin;
        }
        if let (Some(place), Some(twin)) = (own.names_at(at), other.names_at(at_other)) {
            return self.is_other_name(&place, &twin);
        }
        if let (Some(object), Some(twin)) = (own.nameless(at), other.nameless(at_other))
            && let Some(left) = self.left.checked_sub(1)
        {
            let pair = Pair {
                own: object,
                other: twin,
                left,
                ..self
            };
            return object.size != twin.size || pair.differs();
        }
        if !self.has_lengths
            && let (Some(text), Some(twin)) = (own.text(at), other.text(at_other))
        {
            return text != twin;
        }
        own.section(at) != other.section(at_other)
    }

    /// What has a name that only one of the builds knows may have been renamed.
    fn is_other_name(self, own: &(Vec<String>, u64), other: &(Vec<String>, u64)) -> bool {
        if own.0.iter().any(|name| other.0.contains(name)) {
            return own.1 != other.1;
        }
        let own_is_known = own.0.iter().any(|name| self.other.image.has(name));
        own_is_known && other.0.iter().any(|name| self.own.image.has(name))
    }
}

/// Returns bytes without the pointers among them.
fn without(bytes: &[u8], pointers: &BTreeMap<usize, Pointer>) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for at in pointers.keys() {
        bytes[*at..at + WORD].fill(0);
    }
    bytes
}

/// Returns the number at an offset, if it can be the length of a text.
fn length(bytes: &[u8], at: usize) -> Option<usize> {
    let word = bytes.get(at..)?.first_chunk::<WORD>()?;
    let length = u64::from_le_bytes(*word);
    (1..=MOST_TEXT).contains(&length).then_some(length as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_lists_have_words_and_bits() {
        let bytes = |words: &[u64]| -> Vec<u8> {
            words.iter().flat_map(|word| word.to_le_bytes()).collect()
        };
        assert_eq!(packed(&bytes(&[0x1000])), [0x1000]);
        // The words after the first one, but one; then the last of 63, and the first of the next.
        let list = [0x1000, 0b1011, 1 << 63 | 1, 0b11];
        let last = 0x1008 + (63 + 62) * 8;
        let expected = [0x1000, 0x1008, 0x1018, last, last + 8];
        assert_eq!(packed(&bytes(&list)), expected);
    }

    #[test]
    fn lengths_are_small_numbers() {
        let words = |word: u64| word.to_le_bytes();
        assert_eq!(length(&words(5), 0), Some(5));
        assert_eq!(length(&words(0), 0), None);
        assert_eq!(length(&words(1 << 40), 0), None);
        assert_eq!(length(&words(5), 8), None);
    }
}

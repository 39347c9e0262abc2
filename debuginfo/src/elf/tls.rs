//! Where a file's global offset table says of its thread-local storage what the dynamic linker decided (ELF Handling for
//! Thread-Local Storage, section 4.4.6 x86-64 relocations).

use object::LittleEndian;
use object::elf;
use object::pod::slice_from_all_bytes;

use super::{Elf, Section};

/// The thread-local storage that a file brings along (`PT_TLS`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TlsSegment {
    /// Where its first contents are in the file.
    pub vaddr: u64,
    /// Its bytes.
    pub size: u64,
    pub align: u64,
}

/// A word that the dynamic linker has filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TlsSlot {
    /// The word at this address of the file is the module's number (`R_X86_64_DTPMOD64`).
    Number(u64),
    /// The word at `at` is how far from the thread pointer byte `offset` of the storage lies (`R_X86_64_TPOFF64`).
    Distance { at: u64, offset: u64 },
}

impl Elf {
    /// Finds such a word; `None` if no code of the file has needed one, or if it uses descriptors (`-mtls-dialect=gnu2`).
    pub(crate) fn tls_slot(&self) -> Option<TlsSlot> {
        let is_loaded = |s: &&Section| s.flags & u64::from(elf::SHF_ALLOC) != 0;
        let tables = self.sections().iter().filter(is_loaded);
        let mut tables = tables.filter(|s| s.kind == elf::SHT_RELA);
        tables.find_map(|table| {
            let relocations = self.relocations(table);
            relocations
                .iter()
                .find_map(|relocation| self.slot(table, relocation))
        })
    }

    fn slot(&self, table: &Section, relocation: &elf::Rela64<LittleEndian>) -> Option<TlsSlot> {
        let kind = relocation.r_type(LittleEndian, false);
        if !matches!(kind, elf::R_X86_64_DTPMOD64 | elf::R_X86_64_TPOFF64) {
            return None;
        }
        // Without a symbol it is about the file's own storage; symbols of others are about theirs.
        let value = match relocation.r_sym(LittleEndian, false) {
            0 => 0,
            index => {
                let symbols = self.sections().get(table.link as usize)?;
                let symbol = self.symbol_table(symbols).0.get(index as usize)?;
                let is_own = symbol.st_shndx.get(LittleEndian) != elf::SHN_UNDEF;
                is_own.then(|| symbol.st_value.get(LittleEndian))?
            }
        };
        let at = relocation.r_offset.get(LittleEndian);
        let addend = relocation.r_addend.get(LittleEndian);
        Some(match kind {
            elf::R_X86_64_DTPMOD64 => TlsSlot::Number(at),
            _ => TlsSlot::Distance {
                at,
                offset: value.wrapping_add_signed(addend),
            },
        })
    }

    /// The entries of a table of relocations.
    pub(crate) fn relocations(&self, table: &Section) -> &[elf::Rela64<LittleEndian>] {
        let bytes = self.section_bytes(table);
        let entry_size = size_of::<elf::Rela64<LittleEndian>>();
        let whole = bytes.len() - bytes.len() % entry_size;
        slice_from_all_bytes(&bytes[..whole]).unwrap_or_default()
    }
}

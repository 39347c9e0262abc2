//! Finds the words of the global offset table that the dynamic linker fills for thread-local storage (ELF Handling for
//! Thread-Local Storage, section 4.4.6 x86-64 relocations).

use object::LittleEndian;
use object::elf;
use object::pod::slice_from_all_bytes;

use super::{Elf, Section};

/// A file's thread-local storage segment (`PT_TLS`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TlsSegment {
    /// Address of the initial contents in the file.
    pub vaddr: u64,
    /// Size in bytes.
    pub size: u64,
    pub align: u64,
}

/// A word that the dynamic linker fills.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TlsSlot {
    /// The word at this address of the file holds the module's number (`R_X86_64_DTPMOD64`).
    Number(u64),
    /// The word at `at` holds the distance from the thread pointer to byte `offset` of the storage
    /// (`R_X86_64_TPOFF64`).
    Distance { at: u64, offset: u64 },
}

impl Elf {
    /// Finds such a word. Returns `None` if no code in the file needs one, or if it uses descriptors
    /// (`-mtls-dialect=gnu2`).
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
        // Without a symbol, the relocation refers to the file's own storage. An undefined symbol refers to another
        // module's.
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

    pub(crate) fn relocations(&self, table: &Section) -> &[elf::Rela64<LittleEndian>] {
        let bytes = self.section_bytes(table);
        let entry_size = size_of::<elf::Rela64<LittleEndian>>();
        let whole = bytes.len() - bytes.len() % entry_size;
        slice_from_all_bytes(&bytes[..whole]).unwrap_or_default()
    }
}

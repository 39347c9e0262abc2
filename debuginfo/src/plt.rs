//! Names the stubs of the procedure linkage table by following the jump of each stub to its slot.

use std::collections::HashMap;

use object::LittleEndian;
use object::elf;

use crate::elf::{Elf, Section, slice};
use crate::files::Files;
use crate::model::{PltEntry, Svma};
use crate::symbols::{NameBudget, SymbolIndex};
use crate::versions::Versions;

const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
const PLT_SECTIONS: [&str; 4] = [".plt", ".plt.sec", ".plt.got", ".iplt"];

/// Sections of one kind that are read, at most.
const MAX_TABLES: usize = 64;

/// What fills a slot.
struct Import {
    symbol: String,
    library: Option<String>,
}

/// Finds every stub that jumps through a slot filled by a relocation.
pub(crate) fn entries(files: &Files, symbols: &SymbolIndex) -> Vec<PltEntry> {
    let slots = slots(files, symbols);
    let mut found = Vec::new();
    let is_plt = |s: &&Section| PLT_SECTIONS.contains(&s.name.as_str()) && s.is_code();
    let sections = files.main.sections().iter().filter(is_plt);
    for section in sections.take(MAX_TABLES) {
        add_section(&files.main, section, &slots, &mut found);
    }
    found.sort_unstable_by_key(|e| e.svma);
    found.dedup_by_key(|e| e.svma);
    found
}

fn add_section(
    elf: &Elf,
    section: &Section,
    slots: &HashMap<u64, Import>,
    found: &mut Vec<PltEntry>,
) {
    let bytes = elf.section_bytes(section);
    let step = stub_size(section);
    for (index, stub) in bytes.chunks(step).enumerate() {
        let svma = section.addr.wrapping_add((index * step) as u64);
        let slot = jump_slot(svma, stub);
        if let Some((slot, import)) = slot.and_then(|s| Some((s, slots.get(&s)?))) {
            found.push(PltEntry {
                svma: Svma(svma),
                size: stub.len() as u64,
                symbol: import.symbol.clone(),
                library: import.library.clone(),
                slot: Svma(slot),
            });
        }
    }
}

/// Stubs have 16 bytes, except those of `.plt.got` in files without IBT, which have 8.
fn stub_size(section: &Section) -> usize {
    match section.entsize {
        8 => 8,
        _ => 16,
    }
}

/// Returns the slot of `[endbr64] [bnd] jmp *slot(%rip)` at `svma`.
fn jump_slot(svma: u64, stub: &[u8]) -> Option<u64> {
    let mut rest = stub.strip_prefix(&ENDBR64).unwrap_or(stub);
    rest = rest.strip_prefix(&[0xf2]).unwrap_or(rest);
    let operand = rest.strip_prefix(&[0xff, 0x25])?.first_chunk::<4>()?;
    let length = stub.len() - rest.len() + 6;
    let next = svma.wrapping_add(length as u64);
    Some(next.wrapping_add_signed(i64::from(i32::from_le_bytes(*operand))))
}

/// Returns the slots of the global offset table by address, with the symbol that fills each.
fn slots(files: &Files, symbols: &SymbolIndex) -> HashMap<u64, Import> {
    let elf = &files.main;
    let mut slots = HashMap::new();
    let mut budget = NameBudget::for_file(elf);
    let versions = Versions::of(elf);
    // Linkers create only a few tables. Many headers that name the same bytes are damage.
    let tables = elf.sections().iter().filter(|s| s.kind == elf::SHT_RELA);
    for section in tables.take(MAX_TABLES) {
        for relocation in elf.relocations(section) {
            let index = relocation.r_sym(LittleEndian, false);
            let (symbol, library) = match relocation.r_type(LittleEndian, false) {
                elf::R_X86_64_JUMP_SLOT | elf::R_X86_64_GLOB_DAT => (
                    name(elf, section, index, &mut budget),
                    versions.file(index).map(str::to_owned),
                ),
                elf::R_X86_64_IRELATIVE => {
                    let target = relocation.r_addend.get(LittleEndian) as u64;
                    let found = symbols.at(files, target).next();
                    (found.map(|(name, _)| name.to_owned()), None)
                }
                _ => (None, None),
            };
            if let Some(symbol) = symbol {
                let import = Import { symbol, library };
                slots.insert(relocation.r_offset.get(LittleEndian), import);
            }
        }
    }
    slots
}

/// Returns the name of symbol `index` in the table that the relocation section refers to.
fn name(elf: &Elf, relocations: &Section, index: u32, budget: &mut NameBudget) -> Option<String> {
    let table = elf.sections().get(relocations.link as usize)?;
    let (symbols, offset, size) = elf.symbol_table(table);
    let symbol = symbols.get(index as usize)?;
    let names = slice(elf.bytes(), offset, size)?;
    let at = symbol.st_name.get(LittleEndian) as usize;
    budget.name(names.get(at..)?).map(str::to_owned)
}

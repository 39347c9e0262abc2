//! Finds the build id among the notes of an ELF file.

use object::LittleEndian;
use object::elf;
use object::read::elf::NoteIterator;

use super::{Elf, slice};

impl Elf {
    /// The GNU build id, if the file has one: 1 to 64 bytes, usually 20.
    pub(crate) fn build_id(&self) -> Option<&[u8]> {
        let in_sections = self
            .sections
            .iter()
            .filter(|s| s.kind == elf::SHT_NOTE)
            .map(|s| self.section_bytes(s));
        let in_segments = self
            .notes
            .iter()
            .map(|(offset, size)| slice(&self.bytes, *offset, *size).unwrap_or_default());
        in_sections.chain(in_segments).find_map(build_id_in)
    }
}

fn build_id_in(bytes: &[u8]) -> Option<&[u8]> {
    // GNU tools align these notes to 4 bytes; .note.gnu.property, aligned to 8, may share the segment but not the section.
    let mut notes: NoteIterator<'_, elf::FileHeader64<LittleEndian>> =
        NoteIterator::new(LittleEndian, 4, bytes).ok()?;
    while let Ok(Some(note)) = notes.next() {
        let is_id = note.n_type(LittleEndian) == elf::NT_GNU_BUILD_ID && note.name() == b"GNU";
        if is_id && (1..=64).contains(&note.desc().len()) {
            return Some(note.desc());
        }
    }
    None
}

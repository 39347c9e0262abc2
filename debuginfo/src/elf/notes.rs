//! Finds the build id and the authors among the notes of an ELF file.

use object::LittleEndian;
use object::elf;
use object::read::elf::NoteIterator;

use super::{Elf, slice};

/// GNU tools align their notes to 4 bytes; .note.gnu.property, aligned to 8, may share the segment but not the section.
const ALIGN: u64 = 4;

type Notes<'a> = NoteIterator<'a, elf::FileHeader64<LittleEndian>>;

impl Elf {
    /// Returns the GNU build id, if the file has one: 1 to 64 bytes, usually 20.
    pub(crate) fn build_id(&self) -> Option<&[u8]> {
        self.all_notes().find_map(build_id_in)
    }

    /// Returns whether any note has an author of this name.
    pub(crate) fn has_note_of(&self, author: &[u8]) -> bool {
        self.all_notes().any(|bytes| {
            let mut authors = names_in(bytes);
            authors.any(|name| name == author)
        })
    }

    fn all_notes(&self) -> impl Iterator<Item = &[u8]> {
        let in_sections = self
            .sections
            .iter()
            .filter(|s| s.kind == elf::SHT_NOTE)
            .map(|s| self.section_bytes(s));
        let in_segments = self
            .notes
            .iter()
            .map(|(offset, size)| slice(&self.bytes, *offset, *size).unwrap_or_default());
        in_sections.chain(in_segments)
    }
}

fn names_in(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut notes: Option<Notes<'_>> = NoteIterator::new(LittleEndian, ALIGN, bytes).ok();
    std::iter::from_fn(move || Some(notes.as_mut()?.next().ok()??.name()))
}

fn build_id_in(bytes: &[u8]) -> Option<&[u8]> {
    let mut notes: Notes<'_> = NoteIterator::new(LittleEndian, ALIGN, bytes).ok()?;
    while let Ok(Some(note)) = notes.next() {
        let is_id = note.n_type(LittleEndian) == elf::NT_GNU_BUILD_ID && note.name() == b"GNU";
        if is_id && (1..=64).contains(&note.desc().len()) {
            return Some(note.desc());
        }
    }
    None
}

//! Reads the entries of the dynamic section that tell what kind of file this is.

use object::LittleEndian;
use object::elf;
use object::pod::slice_from_all_bytes;

use super::{Elf, slice};

/// Libraries listed, at most. A damaged file may name any number.
const MAX_NEEDED: usize = 4096;

/// What the dynamic section states about the file.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Dynamic {
    pub soname: Option<String>,
    /// `DF_1_PIE`: the linker made a position-independent executable.
    pub says_pie: bool,
    /// The libraries that the file requires.
    pub needed: Vec<String>,
}

impl Elf {
    /// Reads the dynamic section. All fields are empty if there is none.
    pub(crate) fn dynamic(&self) -> Dynamic {
        let mut answer = Dynamic::default();
        let (mut strtab, mut soname) = (None, None);
        let mut needed = Vec::new();
        for entry in self.dynamic_entries() {
            let value = entry.d_val.get(LittleEndian);
            match u32::try_from(entry.d_tag.get(LittleEndian)) {
                Ok(elf::DT_NULL) => break,
                Ok(elf::DT_STRTAB) => strtab = Some(value),
                Ok(elf::DT_SONAME) => soname = Some(value),
                Ok(elf::DT_NEEDED) if needed.len() < MAX_NEEDED => needed.push(value),
                Ok(elf::DT_FLAGS_1) => {
                    answer.says_pie = value & u64::from(elf::DF_1_PIE) != 0;
                }
                _ => {}
            }
        }
        let text = |offset| self.c_string(strtab?.checked_add(offset)?);
        answer.soname = soname.and_then(text);
        answer.needed = needed.into_iter().filter_map(text).collect();
        answer
    }

    fn dynamic_entries(&self) -> &[elf::Dyn64<LittleEndian>] {
        let Some((offset, size)) = self.dynamic else {
            return &[];
        };
        let whole = size - size % size_of::<elf::Dyn64<LittleEndian>>() as u64;
        let bytes = slice(&self.bytes, offset, whole).unwrap_or_default();
        slice_from_all_bytes(bytes).unwrap_or_default()
    }

    fn c_string(&self, svma: u64) -> Option<String> {
        let text = self.from(svma)?.split(|b| *b == 0).next()?;
        Some(String::from_utf8_lossy(text).into_owned())
    }
}

//! Which files must define a module's imported symbols: what `.gnu.version_r` requires (Linux Standard Base, Core
//! Specification, "Symbol Versioning").

use std::collections::HashMap;

use object::elf::{SHT_GNU_VERNEED, SHT_GNU_VERSYM, VERSYM_VERSION, Vernaux, Verneed};
use object::pod;
use object::{LittleEndian, U16};

use crate::elf::{Elf, Section};

/// Files and versions that are read, at most.
const MOST: usize = 4096;

/// The files by the index of each dynamic symbol.
#[derive(Debug, Default)]
pub(crate) struct Versions {
    of_symbols: Vec<u16>,
    files: HashMap<u16, String>,
}

impl Versions {
    /// Reads them; damaged tables have none.
    pub(crate) fn of(elf: &Elf) -> Versions {
        let section = |kind| elf.sections().iter().find(|section| section.kind == kind);
        let (Some(indices), Some(needed)) = (section(SHT_GNU_VERSYM), section(SHT_GNU_VERNEED))
        else {
            return Versions::default();
        };
        let bytes = elf.section_bytes(indices);
        let words = bytes.chunks_exact(2).map(|word| [word[0], word[1]]);
        Versions {
            of_symbols: words.map(u16::from_le_bytes).collect(),
            files: files(elf, needed).unwrap_or_default(),
        }
    }

    /// Returns the file that must define dynamic symbol `index`; `None` if the module does not say.
    pub(crate) fn file(&self, index: u32) -> Option<&str> {
        let version = self.of_symbols.get(index as usize)? & VERSYM_VERSION;
        self.files.get(&version).map(String::as_str)
    }
}

fn files(elf: &Elf, needed: &Section) -> Option<HashMap<u16, String>> {
    let bytes = elf.section_bytes(needed);
    let names = elf.section_bytes(elf.sections().get(needed.link as usize)?);
    let mut files = HashMap::new();
    let mut at = 0_usize;
    for _ in 0..MOST {
        let (file, _) = pod::from_bytes::<Verneed<LittleEndian>>(bytes.get(at..)?).ok()?;
        let name = text(names, file.vn_file.get(LittleEndian) as usize)?;
        let mut aux = at.checked_add(file.vn_aux.get(LittleEndian) as usize)?;
        for _ in 0..count(file.vn_cnt) {
            let (version, _) = pod::from_bytes::<Vernaux<LittleEndian>>(bytes.get(aux..)?).ok()?;
            files.insert(
                version.vna_other.get(LittleEndian) & VERSYM_VERSION,
                name.clone(),
            );
            aux = aux.checked_add(version.vna_next.get(LittleEndian) as usize)?;
        }
        match file.vn_next.get(LittleEndian) {
            0 => break,
            next => at = at.checked_add(next as usize)?,
        }
    }
    Some(files)
}

fn count(number: U16<LittleEndian>) -> usize {
    usize::from(number.get(LittleEndian)).min(MOST)
}

fn text(names: &[u8], at: usize) -> Option<String> {
    let name = names.get(at..)?;
    let len = name.iter().position(|byte| *byte == 0)?;
    Some(String::from_utf8_lossy(&name[..len]).into_owned())
}

//! What the dynamic linker of a program says about its libraries: which ones belong to the executable. A library may also be in another
//! namespace (`dlmopen(3)`, `LD_AUDIT`), with a C library of its own.

use std::{
    fs::{self, File},
    ops::Range,
};

use crate::stop::memory::read_up_to;

/// Keys of the auxiliary vector (getauxval(3)).
const AT_PHDR: u64 = 3;
const AT_PHNUM: u64 = 5;
const AT_BASE: u64 = 7;
/// Kinds of program headers, and their length in bytes (elf(5)).
const PT_DYNAMIC: u32 = 2;
const PT_PHDR: u32 = 6;
const HEADER: u64 = 56;
/// Where the dynamic section says that `struct r_debug` is, and in that the list of the executable's namespace (link.h).
const DT_DEBUG: u64 = 21;
const R_MAP: u64 = 8;
/// In `struct link_map`: the dynamic section, and the next library.
const L_LD: u64 = 16;
const L_NEXT: u64 = 24;
/// Program headers, entries of a dynamic section, and libraries, at most: memory may say anything.
const MOST: u64 = 1 << 16;

/// The libraries of a program as its dynamic linker lists them.
#[derive(Debug, Default)]
pub(super) struct Linked {
    /// Where the interpreter is mapped.
    interpreter: Option<u64>,
    /// The dynamic sections of the executable and its libraries. Empty: not known.
    sections: Vec<u64>,
}

impl Linked {
    /// Reads the lists of `pid`.
    pub fn of(pid: i32) -> Self {
        let vector = fs::read(format!("/proc/{pid}/auxv")).unwrap_or_default();
        let (words, _) = vector.as_chunks::<8>();
        let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let (pairs, _) = words.as_chunks::<2>();
        let value = |key: u64| {
            let found = pairs.iter().find(|pair| pair[0] == key);
            found.map(|pair| pair[1])
        };
        let memory = File::open(format!("/proc/{pid}/mem"));
        let memory = memory.ok().map(Memory);
        let sections = memory.and_then(|memory| {
            let debug = memory.debug(value(AT_PHDR)?, value(AT_PHNUM)?)?;
            memory.sections(debug)
        });
        Self {
            interpreter: value(AT_BASE).filter(|base| *base != 0),
            sections: sections.unwrap_or_default(),
        }
    }

    /// Returns whether the program's interpreter is mapped there.
    pub fn is_interpreter(&self, range: &Range<u64>) -> bool {
        self.interpreter == Some(range.start)
    }

    /// Returns whether a library that is mapped there is in another namespace than the executable.
    pub fn is_foreign(&self, range: &Range<u64>) -> bool {
        !self.sections.is_empty() && !self.sections.iter().any(|at| range.contains(at))
    }
}

struct Memory(File);

impl Memory {
    fn word(&self, address: u64) -> Option<u64> {
        let bytes = read_up_to(&self.0, address, 8);
        bytes.first_chunk().map(|word| u64::from_le_bytes(*word))
    }

    /// Returns where `struct r_debug` is, given the executable's program headers.
    fn debug(&self, headers: u64, count: u64) -> Option<u64> {
        let (mut bias, mut dynamic) = (0, None);
        for header in (0..count.min(MOST)).map(|index| headers + index * HEADER) {
            let address = self.word(header + 16)?;
            match self.word(header)? as u32 {
                PT_PHDR => bias = headers.wrapping_sub(address),
                PT_DYNAMIC => dynamic = Some(address),
                _ => {}
            }
        }
        let dynamic = bias.wrapping_add(dynamic?);
        for index in 0..MOST {
            let entry = dynamic.checked_add(index * 16)?;
            match self.word(entry)? {
                0 => break,
                DT_DEBUG => return self.word(entry.checked_add(8)?).filter(|at| *at != 0),
                _ => {}
            }
        }
        None
    }

    /// Returns the dynamic sections of a list of libraries.
    fn sections(&self, debug: u64) -> Option<Vec<u64>> {
        let mut sections = Vec::new();
        let mut next = self.word(debug.checked_add(R_MAP)?)?;
        for _ in 0..MOST {
            if next == 0 {
                break;
            }
            sections.push(self.word(next.checked_add(L_LD)?)?);
            next = self.word(next.checked_add(L_NEXT)?)?;
        }
        Some(sections)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Maps;

    #[test]
    fn the_libraries_of_this_test_belong_to_it() {
        let pid = std::process::id() as i32;
        let linked = Linked::of(pid);
        let files = Maps::read(pid).unwrap().files();
        let is_called = |end: &str| {
            let mut files = files.iter();
            let found = files.find(|file| file.path.to_string_lossy().contains(end));
            found.unwrap().range.clone()
        };
        let (c, linker) = (is_called("/libc.so"), is_called("/ld-linux"));
        assert!(!linked.is_foreign(&c) && !linked.is_foreign(&linker));
        assert!(linked.is_interpreter(&linker) && !linked.is_interpreter(&c));
        assert!(linked.is_foreign(&(0x1000..0x2000)));
        assert!(!Linked::default().is_foreign(&c));
    }
}

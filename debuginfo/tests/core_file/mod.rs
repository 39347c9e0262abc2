//! A core file as a machine: the threads' registers and the dumped memory. Memory that was not dumped comes from the
//! mapped files.
//!
//! It is meant for tests, which write core files with gdb, so damage is a panic.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use debuginfo::{AddressSpace, Certainty, Machine, Mapped, Module, Register, Unknown};

const PT_LOAD: u32 = 1;
const PT_NOTE: u32 = 4;
const NT_PRSTATUS: u32 = 1;
const NT_FPREGSET: u32 = 2;
const NT_FILE: u32 = 0x4649_4c45;
/// Offsets of the registers and of the thread's number in the note of a thread.
const REGISTERS_AT: usize = 112;
const TID_AT: usize = 32;
/// Offset of xmm0 in the note with the vector registers.
const XMM_AT: usize = 160;
/// DWARF numbers of the registers, in the order of the note. `None` for those without a number.
const ORDER: [Option<u16>; 27] = [
    Some(15),
    Some(14),
    Some(13),
    Some(12),
    Some(6),
    Some(3),
    Some(11),
    Some(10),
    Some(9),
    Some(8),
    Some(0),
    Some(2),
    Some(1),
    Some(4),
    Some(5),
    None,
    Some(16),
    None,
    Some(49),
    Some(7),
    None,
    Some(58),
    Some(59),
    None,
    None,
    None,
    None,
];

/// A thread of the core file.
pub struct Thread {
    pub tid: u32,
    registers: BTreeMap<u16, u64>,
    vectors: Vec<[u8; 16]>,
    /// The area of FXSAVE, with which that of XSAVE begins.
    floating: Vec<u8>,
}

/// A mapped file.
struct FileMapping {
    start: u64,
    end: u64,
    offset: u64,
    path: PathBuf,
}

/// A core file.
pub struct CoreFile {
    bytes: Vec<u8>,
    /// Address, bytes in the file, their offset.
    segments: Vec<(u64, u64, usize)>,
    pub threads: Vec<Thread>,
    mappings: Vec<FileMapping>,
    files: BTreeMap<PathBuf, Vec<u8>>,
    pub space: AddressSpace,
}

fn number(bytes: &[u8], at: usize, len: usize) -> u64 {
    let mut word = [0; 8];
    word[..len].copy_from_slice(&bytes[at..at + len]);
    u64::from_le_bytes(word)
}

impl CoreFile {
    pub fn open(path: &Path) -> CoreFile {
        let bytes = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let mut core = CoreFile {
            segments: Vec::new(),
            threads: Vec::new(),
            mappings: Vec::new(),
            files: BTreeMap::new(),
            space: AddressSpace::default(),
            bytes: Vec::new(),
        };
        let (table, size) = (
            number(&bytes, 32, 8) as usize,
            number(&bytes, 54, 2) as usize,
        );
        for index in 0..number(&bytes, 56, 2) as usize {
            let header = &bytes[table + index * size..][..size];
            let (offset, length) = (number(header, 8, 8) as usize, number(header, 32, 8));
            match number(header, 0, 4) as u32 {
                PT_LOAD => core.segments.push((number(header, 16, 8), length, offset)),
                PT_NOTE => core.notes(&bytes[offset..offset + length as usize]),
                _ => {}
            }
        }
        core.bytes = bytes;
        core.map();
        core
    }

    fn notes(&mut self, mut notes: &[u8]) {
        let padded = |n: usize| n.next_multiple_of(4);
        while notes.len() >= 12 {
            let name = padded(number(notes, 0, 4) as usize);
            let length = number(notes, 4, 4) as usize;
            let kind = number(notes, 8, 4) as u32;
            let contents = &notes[12 + name..12 + name + length];
            match kind {
                NT_PRSTATUS => self.threads.push(thread(contents)),
                NT_FPREGSET => {
                    let thread = self.threads.last_mut().expect("registers come first");
                    let xmm = contents[XMM_AT..].chunks(16).take(16);
                    thread.vectors = xmm.map(|x| x.try_into().expect("16 bytes")).collect();
                    thread.floating = contents.to_vec();
                }
                NT_FILE => self.files_note(contents),
                _ => {}
            }
            notes = &notes[12 + name + padded(length)..];
        }
    }

    fn files_note(&mut self, note: &[u8]) {
        let count = number(note, 0, 8) as usize;
        let page = number(note, 8, 8);
        let mut names = note[16 + count * 24..].split(|b| *b == 0);
        for entry in note[16..16 + count * 24].chunks(24) {
            let name = names.next().expect("a name for each file");
            self.mappings.push(FileMapping {
                start: number(entry, 0, 8),
                end: number(entry, 8, 8),
                offset: number(entry, 16, 8) * page,
                path: PathBuf::from(String::from_utf8_lossy(name).into_owned()),
            });
        }
    }

    /// Opens the mapped files and makes modules of those that are ELF modules.
    fn map(&mut self) {
        let mut ranges: Vec<(PathBuf, u64, u64)> = Vec::new();
        for mapping in &self.mappings {
            match ranges.iter_mut().find(|(path, ..)| *path == mapping.path) {
                Some((_, start, end)) => {
                    *start = mapping.start.min(*start);
                    *end = mapping.end.max(*end);
                }
                None => ranges.push((mapping.path.clone(), mapping.start, mapping.end)),
            }
        }
        let mut modules = Vec::new();
        for (path, start, end) in ranges {
            if let Ok(module) = Module::open(&path) {
                let first = module.load_segments().first().expect("something is mapped");
                modules.push(Mapped {
                    bias: start.wrapping_sub(first.vaddr.0 & !0xfff),
                    module: Arc::new(module),
                    number: modules.len() as u32,
                    range: start..end,
                    is_system: path.starts_with("/usr") || path.starts_with("/lib"),
                });
            }
            self.files
                .insert(path.clone(), std::fs::read(&path).unwrap_or_default());
        }
        self.space = AddressSpace::new(modules);
    }

    /// Returns the machine of the thread with this number.
    pub fn thread(&self, tid: u32) -> CoreThread<'_> {
        let thread = self.threads.iter().find(|t| t.tid == tid);
        CoreThread {
            core: self,
            thread: thread.unwrap_or_else(|| panic!("no thread {tid}")),
        }
    }

    fn byte(&self, address: u64) -> Option<u8> {
        for (start, length, offset) in &self.segments {
            if (*start..start + length).contains(&address) {
                return self.bytes.get(offset + (address - start) as usize).copied();
            }
        }
        let mapping = self
            .mappings
            .iter()
            .find(|m| (m.start..m.end).contains(&address))?;
        let at = address - mapping.start + mapping.offset;
        self.files[&mapping.path].get(at as usize).copied()
    }
}

fn thread(status: &[u8]) -> Thread {
    let registers = ORDER.iter().enumerate().filter_map(|(index, register)| {
        Some(((*register)?, number(status, REGISTERS_AT + index * 8, 8)))
    });
    Thread {
        tid: number(status, TID_AT, 4) as u32,
        registers: registers.collect(),
        vectors: Vec::new(),
        floating: Vec::new(),
    }
}

/// One thread of a core file.
pub struct CoreThread<'c> {
    core: &'c CoreFile,
    thread: &'c Thread,
}

impl Machine for CoreThread<'_> {
    fn memory(&self, address: u64, bytes: &mut [u8]) -> Result<Certainty, Unknown> {
        for (at, byte) in bytes.iter_mut().enumerate() {
            let address = address.wrapping_add(at as u64);
            let found = self.core.byte(address);
            *byte = found.ok_or_else(|| Unknown::because(format!("no memory at {address:#x}")))?;
        }
        Ok(Certainty::Known)
    }

    fn register(&self, register: Register) -> Result<(u64, Certainty), Unknown> {
        let value = self.thread.registers.get(&register.0);
        let value = value.ok_or_else(|| Unknown::because("not in the core file"))?;
        Ok((*value, Certainty::Known))
    }

    fn vector(&self, register: Register) -> Result<([u8; 16], Certainty), Unknown> {
        let index = usize::from(register.0).checked_sub(usize::from(Register::XMM0.0));
        let value = index.and_then(|index| self.thread.vectors.get(index));
        let value = value.ok_or_else(|| Unknown::because("not in the core file"))?;
        Ok((*value, Certainty::Known))
    }

    fn extended(&self) -> Option<Vec<u8>> {
        Some(self.thread.floating.clone())
    }
}

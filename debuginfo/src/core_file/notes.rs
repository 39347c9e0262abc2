//! The notes of a core file: threads, signal, process, auxiliary vector and mapped files. Layouts are those of Linux on
//! x86-64 (`elf_prstatus`, `elf_prpsinfo`, `siginfo_t`, `fs/binfmt_elf.c`).

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use object::LittleEndian;
use object::elf;
use object::read::elf::{FileHeader, NoteIterator, ProgramHeader};

use super::{CORE_REGISTERS, CoreFile, CoreMapping, CoreSignal, CoreThread};

const NT_PRSTATUS: u32 = 1;
const NT_FPREGSET: u32 = 2;
const NT_PRPSINFO: u32 = 3;
const NT_AUXV: u32 = 6;
const NT_X86_XSTATE: u32 = 0x202;
const NT_SIGINFO: u32 = 0x5349_4749;
const NT_FILE: u32 = 0x4649_4c45;

/// `pr_reg` in `elf_prstatus`.
const REGISTERS_AT: usize = 112;
/// Signals whose `siginfo_t` has the address of a fault: SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV.
const WITH_ADDRESS: [i32; 5] = [4, 5, 7, 8, 11];
/// Most threads, mapped files and entries that are read.
const MOST: usize = 1 << 20;

type Notes<'a> = NoteIterator<'a, elf::FileHeader64<LittleEndian>>;

impl CoreFile {
    /// Reads all notes. A note that was cut ends them.
    pub(super) fn read_notes(&mut self, bytes: &[u8]) {
        let Ok(mut notes) = Notes::new(LittleEndian, 4, bytes) else {
            return;
        };
        let mut is_first = true;
        while let Ok(Some(note)) = notes.next() {
            let kind = note.n_type(LittleEndian);
            if is_first {
                // The kernel begins with the thread that got the signal, tools with the process.
                self.process.is_of_kernel = kind == NT_PRSTATUS;
                is_first = false;
            }
            self.read_note(kind, note.desc());
        }
    }

    fn read_note(&mut self, kind: u32, desc: &[u8]) {
        match kind {
            NT_PRSTATUS if self.threads.len() < MOST => self.threads.extend(thread(desc)),
            NT_FPREGSET | NT_X86_XSTATE => {
                // The second one begins with what the first one has.
                if let Some(thread) = self.threads.last_mut()
                    && desc.len() > thread.extended.len()
                {
                    thread.extended = desc.to_vec();
                }
            }
            NT_PRPSINFO => {
                self.process.pid = int(desc, 24).map(|pid| pid as u32);
                self.process.name = text(desc.get(40..56).unwrap_or_default());
                self.process.arguments = text(desc.get(56..136).unwrap_or_default());
            }
            NT_AUXV => {
                let pairs = desc.chunks_exact(16).take(MOST);
                self.auxv = pairs
                    .filter_map(|pair| Some((word(pair, 0)?, word(pair, 8)?)))
                    .collect();
            }
            // Only the first one is that of the thread that got the signal.
            NT_SIGINFO if self.signal.is_none() => self.signal = signal(desc),
            NT_FILE => {
                self.mappings = mappings(desc).unwrap_or_default();
                self.mappings.sort_by_key(|mapping| mapping.range.start);
            }
            _ => {}
        }
    }
}

fn thread(desc: &[u8]) -> Option<CoreThread> {
    let mut registers = [0; CORE_REGISTERS];
    for (number, register) in registers.iter_mut().enumerate() {
        *register = word(desc, REGISTERS_AT + 8 * number)?;
    }
    let signal = desc.get(12..14)?.try_into().ok()?;
    Some(CoreThread {
        tid: int(desc, 32)? as u32,
        signal: i32::from(i16::from_le_bytes(signal)),
        registers,
        extended: Vec::new(),
    })
}

fn signal(desc: &[u8]) -> Option<CoreSignal> {
    let number = int(desc, 0)?;
    let code = int(desc, 8)?;
    // One that a process sent has the sender there.
    let has_address = WITH_ADDRESS.contains(&number) && code > 0;
    Some(CoreSignal {
        number,
        code,
        address: word(desc, 16).filter(|_| has_address),
    })
}

/// Counts, then start, end and offset in pages of each, then all names.
fn mappings(desc: &[u8]) -> Option<Vec<CoreMapping>> {
    let count = usize::try_from(word(desc, 0)?).ok()?;
    let page = word(desc, 8)?;
    let mut names = desc.get(count.checked_mul(24)?.checked_add(16)?..)?;
    let mut found = Vec::new();
    for number in 0..count.min(MOST) {
        let at = 16 + 24 * number;
        let end = names.iter().position(|byte| *byte == 0)?;
        let name = OsString::from_vec(names[..end].to_vec());
        names = &names[end + 1..];
        found.push(CoreMapping {
            range: word(desc, at)?..word(desc, at + 8)?,
            offset: word(desc, at + 16)?.checked_mul(page)?,
            path: name.into(),
        });
    }
    found.retain(|mapping| !mapping.range.is_empty());
    Some(found)
}

/// The build id of an ELF file of which only the beginning is available.
pub(super) fn build_id(head: &[u8]) -> Option<String> {
    let header = elf::FileHeader64::<LittleEndian>::parse(head).ok()?;
    if !header.is_supported() {
        return None;
    }
    let programs = header.program_headers(LittleEndian, head).ok()?;
    for program in programs {
        if program.p_type(LittleEndian) != elf::PT_NOTE {
            continue;
        }
        let (offset, size) = program.file_range(LittleEndian);
        let end = offset.checked_add(size)?;
        let Some(bytes) = head.get(offset as usize..end as usize) else {
            continue;
        };
        let align = program.p_align(LittleEndian).max(4);
        let Ok(mut notes) = Notes::new(LittleEndian, align, bytes) else {
            continue;
        };
        while let Ok(Some(note)) = notes.next() {
            let is_id = note.n_type(LittleEndian) == elf::NT_GNU_BUILD_ID && note.name() == b"GNU";
            if is_id && (1..=64).contains(&note.desc().len()) {
                return Some(
                    note.desc()
                        .iter()
                        .map(|byte| format!("{byte:02x}"))
                        .collect(),
                );
            }
        }
    }
    None
}

/// The segments of an ELF file that are mapped, of which only the beginning is available: the address, the bytes in the file
/// and those in memory of each. `None` if it does not say.
pub(super) fn layout(head: &[u8]) -> Option<Vec<(u64, u64, u64)>> {
    let header = elf::FileHeader64::<LittleEndian>::parse(head).ok()?;
    if !header.is_supported() {
        return None;
    }
    let programs = header.program_headers(LittleEndian, head).ok()?;
    let loaded = programs
        .iter()
        .filter(|program| program.p_type(LittleEndian) == elf::PT_LOAD);
    let sizes = |program: &elf::ProgramHeader64<LittleEndian>| {
        (
            program.p_vaddr(LittleEndian),
            program.p_filesz(LittleEndian),
            program.p_memsz(LittleEndian),
        )
    };
    Some(loaded.map(sizes).collect())
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(8)?)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

fn int(bytes: &[u8], at: usize) -> Option<i32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(i32::from_le_bytes(bytes.try_into().ok()?))
}

fn text(bytes: &[u8]) -> String {
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).trim_end().to_owned()
}

//! A core file: the threads of a process with their registers, its memory, and the files that were mapped into it.
//!
//! It also says what is missing and why: memory that was never in the file, memory that the kernel left out because a
//! mapped file has it, and memory after the point where the file was cut. Nothing here opens the mapped files.

mod notes;
mod write;

use std::ops::Range;
use std::path::{Path, PathBuf};

use object::LittleEndian;
use object::elf;
use object::read::elf::{FileHeader, ProgramHeader};

use crate::elf::checked_header;
use crate::error::{Error, Result};
use crate::map::Bytes;
use crate::module::Module;

pub use write::{CoreImage, ImageSegment, ImageThread, write_head};

/// The registers of the kernel's `user_regs_struct`, in its order.
pub const CORE_REGISTERS: usize = 27;
/// Most segments that are read.
const MAX_SEGMENTS: usize = 1 << 22;
/// The number of bytes at a module's beginning that are searched for a build id and for its segments.
const HEAD_LEN: u64 = 4096;
/// xmm0 in the area that `fxsave` writes, with which an `xsave` area begins too.
const XMM_AT: usize = 160;

/// A thread of a core file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoreThread {
    /// Its number.
    pub tid: u32,
    /// The signal that it was about to get; 0 for none.
    pub signal: i32,
    /// Its registers, in the order of the kernel's `user_regs_struct`.
    pub registers: [u64; CORE_REGISTERS],
    /// Its x87, SSE and later registers in XSAVE's layout, or the 512 bytes of FXSAVE if the file has no more. Empty if it has none.
    pub extended: Vec<u8>,
}

impl CoreThread {
    /// Returns xmm0 to xmm15; `None` if the file does not have them.
    #[must_use]
    pub fn vectors(&self) -> Option<[[u8; 16]; 16]> {
        let area = self.extended.get(XMM_AT..XMM_AT + 256)?;
        let (all, _) = area.as_chunks::<16>();
        all.try_into().ok()
    }
}

/// The signal of the first thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoreSignal {
    /// Its number.
    pub number: i32,
    /// Why it was sent (`si_code`).
    pub code: i32,
    /// The address of the fault, for signals that have one.
    pub address: Option<u64>,
}

/// A part of a file that was mapped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoreMapping {
    /// The addresses.
    pub range: Range<u64>,
    /// The offset in the file, in bytes.
    pub offset: u64,
    /// The file.
    pub path: PathBuf,
}

/// Facts about the process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CoreProcess {
    /// Its number.
    pub pid: Option<u32>,
    /// Its name: at most 15 bytes.
    pub name: String,
    /// Its command line: at most 79 bytes.
    pub arguments: String,
    /// The kernel wrote the file when a signal ended the process; otherwise a tool did, and the process may have
    /// continued.
    pub is_of_kernel: bool,
}

/// A range of memory, as the file describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CoreSegment {
    range: Range<u64>,
    /// The bytes that were written: from `range.start`.
    written: u64,
    /// The bytes that the file has, if it was cut.
    present: u64,
    offset: u64,
    is_writable: bool,
}

/// Why a core file lacks some memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CoreGap {
    /// Nothing was mapped there, according to the file.
    NotMapped,
    /// It was left out, because the process had not changed it or the kernel's settings exclude it.
    LeftOut {
        /// The program could write to it.
        is_writable: bool,
    },
    /// The file was cut before it.
    Cut,
}

/// A run of memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CorePiece<'c> {
    /// The addresses.
    pub range: Range<u64>,
    /// The bytes, or why there are none.
    pub bytes: std::result::Result<&'c [u8], CoreGap>,
}

/// An opened core file.
#[derive(Debug)]
pub struct CoreFile {
    path: PathBuf,
    bytes: Bytes,
    /// By address.
    segments: Vec<CoreSegment>,
    process: CoreProcess,
    threads: Vec<CoreThread>,
    mappings: Vec<CoreMapping>,
    signal: Option<CoreSignal>,
    auxv: Vec<(u64, u64)>,
    /// The length that the file should have.
    whole_len: u64,
}

/// Returns whether a file begins like a core file.
///
/// # Errors
/// It cannot be read.
pub fn is_core_file(path: &Path) -> std::io::Result<bool> {
    use std::io::Read;
    let mut head = [0; 18];
    let mut file = std::fs::File::open(path)?;
    if !file.metadata()?.is_file() {
        return Ok(false);
    }
    match file.read_exact(&mut head) {
        Ok(()) => Ok(head.starts_with(&elf::ELFMAG) && head[16..18] == elf::ET_CORE.to_le_bytes()),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

impl CoreFile {
    /// Opens a core file. A truncated one is opened as far as it goes.
    ///
    /// # Errors
    /// It cannot be read, is not a core file of an x86-64 program, or was cut before its table of contents ends.
    pub fn open(path: &Path) -> Result<CoreFile> {
        let bytes = Bytes::map(path).map_err(|source| Error::Open {
            path: path.to_owned(),
            source,
        })?;
        CoreFile::parse(path, bytes)
    }

    fn parse(path: &Path, bytes: Bytes) -> Result<CoreFile> {
        let not_core = |what| Error::NotCore {
            path: path.to_owned(),
            what,
        };
        let header = checked_header(path, &bytes)?;
        if header.e_type(LittleEndian) != elf::ET_CORE {
            return Err(not_core("it is a program or a library"));
        }
        let mut core = CoreFile {
            path: path.to_owned(),
            segments: Vec::new(),
            process: CoreProcess::default(),
            threads: Vec::new(),
            mappings: Vec::new(),
            signal: None,
            auxv: Vec::new(),
            whole_len: 0,
            bytes: Bytes::Owned(Vec::new()),
        };
        let programs = header.program_headers(LittleEndian, &*bytes);
        let programs = programs.map_err(|_| not_core("its table of contents was cut off"))?;
        let len = bytes.len() as u64;
        let mut notes = Vec::new();
        for program in programs.iter().take(MAX_SEGMENTS) {
            let (offset, size) = program.file_range(LittleEndian);
            core.whole_len = core.whole_len.max(offset.saturating_add(size));
            let present = len.saturating_sub(offset).min(size);
            match program.p_type(LittleEndian) {
                elf::PT_NOTE => notes.push((offset, present)),
                elf::PT_LOAD => {
                    let start = program.p_vaddr(LittleEndian);
                    let memory = program.p_memsz(LittleEndian).max(size);
                    core.segments.push(CoreSegment {
                        range: start..start.saturating_add(memory),
                        written: size,
                        present,
                        offset,
                        is_writable: program.p_flags(LittleEndian) & elf::PF_W != 0,
                    });
                }
                _ => {}
            }
        }
        core.segments.retain(|segment| !segment.range.is_empty());
        core.segments.sort_by_key(|segment| segment.range.start);
        for (offset, size) in notes {
            let end = offset.saturating_add(size);
            let part = bytes.get(offset as usize..end as usize);
            core.read_notes(part.unwrap_or_default());
        }
        core.bytes = bytes;
        match core.threads.is_empty() {
            true => Err(not_core(
                "it has no thread, or was cut before the first one",
            )),
            false => Ok(core),
        }
    }

    /// Returns its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns facts about the process.
    #[must_use]
    pub fn process(&self) -> &CoreProcess {
        &self.process
    }

    /// Returns the threads. The first one got the signal.
    #[must_use]
    pub fn threads(&self) -> &[CoreThread] {
        &self.threads
    }

    /// Returns the mapped files, by address.
    #[must_use]
    pub fn mappings(&self) -> &[CoreMapping] {
        &self.mappings
    }

    /// Returns the signal of the first thread, if the file states it.
    #[must_use]
    pub fn signal(&self) -> Option<CoreSignal> {
        self.signal
    }

    /// Returns an entry of the auxiliary vector.
    #[must_use]
    pub fn auxiliary(&self, key: u64) -> Option<u64> {
        let found = self.auxv.iter().find(|(known, _)| *known == key);
        found.map(|(_, value)| *value)
    }

    /// Returns how many bytes at the end of the file are missing.
    #[must_use]
    pub fn missing_bytes(&self) -> u64 {
        self.whole_len.saturating_sub(self.bytes.len() as u64)
    }

    /// Returns the memory of a range in consecutive runs.
    #[must_use]
    pub fn pieces(&self, range: Range<u64>) -> Vec<CorePiece<'_>> {
        let mut pieces = Vec::new();
        let mut at = range.start;
        while at < range.end {
            let piece = self.piece(at, range.end);
            at = piece.range.end;
            pieces.push(piece);
        }
        pieces
    }

    /// The longest run from `at` on.
    fn piece(&self, at: u64, end: u64) -> CorePiece<'_> {
        let behind = self.segments.partition_point(|s| s.range.start <= at);
        let segment = behind.checked_sub(1).map(|index| &self.segments[index]);
        let Some(segment) = segment.filter(|segment| segment.range.contains(&at)) else {
            let next = self.segments.get(behind).map_or(end, |s| s.range.start);
            return CorePiece {
                range: at..end.min(next),
                bytes: Err(CoreGap::NotMapped),
            };
        };
        let inside = at - segment.range.start;
        let (until, bytes) = if inside < segment.present {
            let until = end.min(segment.range.start.saturating_add(segment.present));
            let from = segment.offset.saturating_add(inside);
            let to = from.saturating_add(until - at);
            let bytes = self.bytes.get(from as usize..to as usize);
            (until, bytes.ok_or(CoreGap::Cut))
        } else if inside < segment.written {
            (
                end.min(segment.range.start.saturating_add(segment.written)),
                Err(CoreGap::Cut),
            )
        } else {
            let is_writable = segment.is_writable;
            (
                end.min(segment.range.end),
                Err(CoreGap::LeftOut { is_writable }),
            )
        };
        CorePiece {
            range: at..until,
            bytes,
        }
    }

    /// Fills `bytes` with the memory at `address`, if the file has all of it.
    #[must_use]
    pub fn read(&self, address: u64, bytes: &mut [u8]) -> Option<()> {
        let end = address.checked_add(bytes.len() as u64)?;
        for piece in self.pieces(address..end) {
            let at = (piece.range.start - address) as usize;
            let found = piece.bytes.ok()?;
            bytes[at..at + found.len()].copy_from_slice(found);
        }
        Some(())
    }

    /// Returns the text that ends with a zero at `address`, as far as the file has it.
    #[must_use]
    pub fn text(&self, address: u64, limit: usize) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        while text.len() < limit {
            let mut byte = [0];
            self.read(address.checked_add(text.len() as u64)?, &mut byte)?;
            if byte == [0] {
                return Some(text);
            }
            text.push(byte[0]);
        }
        Some(text)
    }

    /// Returns the GNU build id of the ELF file whose first byte was mapped at `address`, in hexadecimal, if the core
    /// file has the page. The kernel writes the first page of every mapped ELF file.
    #[must_use]
    pub fn build_id_at(&self, address: u64) -> Option<String> {
        notes::build_id(&self.head_at(address)?)
    }

    /// Returns whether the ELF file whose first byte was mapped at `address` has other segments than `module`, which has then
    /// been linked again; `None` if the core file does not say.
    #[must_use]
    pub fn is_laid_out_otherwise(&self, address: u64, module: &Module) -> Option<bool> {
        let then = notes::layout(&self.head_at(address)?)?;
        let now = module.load_segments().iter();
        let now = now.map(|segment| (segment.vaddr.0, segment.filesz, segment.memsz));
        Some(!now.eq(then))
    }

    /// The first page of an ELF file that was mapped at `address`, as far as the core file has it.
    fn head_at(&self, address: u64) -> Option<Vec<u8>> {
        let mut head = Vec::new();
        for piece in self.pieces(address..address.checked_add(HEAD_LEN)?) {
            match piece.bytes {
                Ok(bytes) => head.extend_from_slice(bytes),
                Err(_) => break,
            }
        }
        Some(head)
    }
}

#[cfg(test)]
mod tests;

//! An ELF file as tables of plain values: header, segments, sections and their bytes.
//!
//! This module checks every offset against the file's length before it hands it out.

mod compress;
mod dynamic;
mod notes;
mod tls;

use std::borrow::Cow;
use std::ops::Range;
use std::path::{Path, PathBuf};

use object::LittleEndian;
use object::elf;
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};

pub(crate) use dynamic::Dynamic;
pub(crate) use tls::{TlsSegment, TlsSlot};

use crate::error::{Error, Result};
use crate::map::Bytes;
use crate::model::{CodeRange, Segment, SegmentFlags, Svma};

/// Bytes of a section name that are kept.
const MAX_NAME_BYTES: usize = 64;
/// Size of the header that every file begins with.
const HEADER_BYTES: u64 = size_of::<Header>() as u64;

type Header = elf::FileHeader64<LittleEndian>;

/// A section header with its name. [`Elf::section_bytes`] returns the bytes.
#[derive(Debug, Clone)]
pub(crate) struct Section {
    pub name: String,
    pub kind: u32,
    pub flags: u64,
    pub addr: u64,
    pub offset: u64,
    pub size: u64,
    pub link: u32,
    pub entsize: u64,
}

impl Section {
    /// Returns the first address after the section, saturated if the header is invalid.
    pub(crate) fn end(&self) -> u64 {
        self.addr.saturating_add(self.size)
    }

    /// Returns whether the section holds code of the running program.
    pub(crate) fn is_code(&self) -> bool {
        let wanted = u64::from(elf::SHF_ALLOC | elf::SHF_EXECINSTR);
        self.flags & wanted == wanted && self.size > 0
    }

    /// Returns whether the section holds code or data of the running program, and not only tables of the linker.
    fn is_placed(&self) -> bool {
        let is_table = matches!(
            self.kind,
            elf::SHT_SYMTAB
                | elf::SHT_STRTAB
                | elf::SHT_RELA
                | elf::SHT_REL
                | elf::SHT_RELR
                | elf::SHT_HASH
                | elf::SHT_GNU_HASH
                | elf::SHT_DYNSYM
                | elf::SHT_GNU_VERSYM
                | elf::SHT_GNU_VERNEED
                | elf::SHT_GNU_VERDEF
        );
        self.flags & u64::from(elf::SHF_ALLOC) != 0 && !is_table && self.name != ".interp"
    }
}

/// A parsed ELF file that owns its bytes.
#[derive(Debug)]
pub(crate) struct Elf {
    path: PathBuf,
    bytes: Bytes,
    file_type: u16,
    entry: u64,
    segments: Vec<Segment>,
    interp: Option<String>,
    dynamic: Option<(u64, u64)>,
    notes: Vec<(u64, u64)>,
    tls: Option<TlsSegment>,
    /// Addresses that the dynamic linker protects after relocation (`PT_GNU_RELRO`), end exclusive.
    relro: Option<Range<u64>>,
    sections: Vec<Section>,
    /// Executable address ranges (start, end exclusive), by start.
    code: Vec<(u64, u64)>,
}

impl Elf {
    /// Parses `bytes`, which were read from `path` (used in messages and to find neighbours).
    ///
    /// # Errors
    /// Not ELF, 32-bit, big-endian, another machine, an object file or a core dump, or headers out of bounds.
    pub(crate) fn parse(path: &Path, bytes: Bytes) -> Result<Elf> {
        let elf = Elf::parse_any(path, bytes)?;
        let what = match elf.file_type {
            elf::ET_EXEC | elf::ET_DYN => return Ok(elf),
            elf::ET_REL => "an object file",
            elf::ET_CORE => "a core dump",
            _ => "an ELF file of unknown type",
        };
        let path = path.to_owned();
        Err(Error::NotLoadable { path, what })
    }

    /// Like [`Elf::parse`], for files that are only read and never mapped: `.dwo`, `.dwp` and dwz's.
    ///
    /// # Errors
    /// Not ELF, 32-bit, big-endian, another machine, or headers out of bounds.
    pub(crate) fn parse_any(path: &Path, bytes: Bytes) -> Result<Elf> {
        let header = checked_header(path, &bytes)?;
        let damaged = |source| Error::Damaged {
            path: path.to_owned(),
            source,
        };
        let mut elf = Elf {
            path: path.to_owned(),
            file_type: header.e_type(LittleEndian),
            entry: header.e_entry(LittleEndian),
            segments: Vec::new(),
            interp: None,
            dynamic: None,
            notes: Vec::new(),
            tls: None,
            relro: None,
            sections: read_sections(header, &bytes).map_err(damaged)?,
            code: Vec::new(),
            bytes: Bytes::Owned(Vec::new()),
        };
        let programs = header
            .program_headers(LittleEndian, &*bytes)
            .map_err(damaged)?;
        for program in programs {
            elf.add_program_header(program, &bytes);
        }
        elf.bytes = bytes;
        elf.code = elf.code_ranges();
        Ok(elf)
    }

    /// Returns the ranges of the executable sections or, in a file without sections, of the executable segments.
    fn code_ranges(&self) -> Vec<(u64, u64)> {
        let sections = self.sections.iter().filter(|s| s.is_code());
        let mut ranges: Vec<_> = sections.map(|s| (s.addr, s.end())).collect();
        if ranges.is_empty() {
            let segments = self.segments.iter().filter(|s| s.flags.execute);
            ranges.extend(segments.map(|s| (s.vaddr.0, s.vaddr.0.saturating_add(s.filesz))));
        }
        ranges.sort_unstable();
        ranges
    }

    pub(crate) fn code_ranges_listed(&self) -> Vec<CodeRange> {
        let ranges = self.code.iter();
        ranges
            .map(|(start, end)| CodeRange {
                start: Svma(*start),
                end: Svma(*end),
            })
            .collect()
    }

    fn add_program_header(&mut self, program: &elf::ProgramHeader64<LittleEndian>, bytes: &[u8]) {
        let (offset, size) = program.file_range(LittleEndian);
        match program.p_type(LittleEndian) {
            elf::PT_LOAD => self.segments.push(Segment {
                vaddr: Svma(program.p_vaddr(LittleEndian)),
                offset,
                filesz: size,
                memsz: program.p_memsz(LittleEndian),
                flags: SegmentFlags::from_bits(program.p_flags(LittleEndian)),
            }),
            elf::PT_INTERP => {
                let raw = slice(bytes, offset, size).unwrap_or_default();
                let text = raw.split(|b| *b == 0).next().unwrap_or_default();
                self.interp = Some(String::from_utf8_lossy(text).into_owned());
            }
            elf::PT_DYNAMIC => self.dynamic = Some((offset, size)),
            elf::PT_TLS => {
                self.tls = Some(TlsSegment {
                    vaddr: program.p_vaddr(LittleEndian),
                    size: program.p_memsz(LittleEndian),
                    align: program.p_align(LittleEndian),
                });
            }
            elf::PT_GNU_RELRO => {
                let start = program.p_vaddr(LittleEndian);
                let end = start.saturating_add(program.p_memsz(LittleEndian));
                self.relro = Some(start..end);
            }
            elf::PT_NOTE => self.notes.push((offset, size)),
            _ => {}
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn is_dyn(&self) -> bool {
        self.file_type == elf::ET_DYN
    }

    pub(crate) fn entry(&self) -> Svma {
        Svma(self.entry)
    }

    pub(crate) fn segments(&self) -> &[Segment] {
        &self.segments
    }

    pub(crate) fn relro(&self) -> Option<Range<u64>> {
        self.relro.clone()
    }

    pub(crate) fn tls(&self) -> Option<TlsSegment> {
        self.tls
    }

    pub(crate) fn interp(&self) -> Option<&str> {
        self.interp.as_deref()
    }

    pub(crate) fn sections(&self) -> &[Section] {
        &self.sections
    }

    pub(crate) fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|s| s.name == name)
    }

    /// Returns the section's bytes as stored in the file. Empty if it has none or its header is out of bounds.
    pub(crate) fn section_bytes(&self, section: &Section) -> &[u8] {
        if section.kind == elf::SHT_NOBITS {
            return &[];
        }
        slice(&self.bytes, section.offset, section.size).unwrap_or_default()
    }

    /// Returns whether [`Elf::contents`] has to decompress the section `name`.
    pub(crate) fn is_compressed(&self, name: &str) -> bool {
        match self.section(name) {
            Some(section) => section.flags & u64::from(elf::SHF_COMPRESSED) != 0,
            None => self.zdebug(name).is_some(),
        }
    }

    /// Returns the bytes of the section called `name`, decompressed, or `None` if no such section has bytes.
    ///
    /// Also finds `.debug_x` as `.zdebug_x`, the older form of a compressed section.
    pub(crate) fn contents(
        &self,
        name: &str,
    ) -> Option<std::result::Result<Cow<'_, [u8]>, String>> {
        if let Some(section) = self.section(name).filter(|s| s.kind != elf::SHT_NOBITS) {
            let raw = self.section_bytes(section);
            return Some(compress::section(raw, self.is_compressed(name)));
        }
        let section = self.zdebug(name)?;
        Some(compress::old_section(self.section_bytes(section)))
    }

    fn zdebug(&self, name: &str) -> Option<&Section> {
        let rest = name.strip_prefix('.')?;
        let mut sections = self.sections.iter();
        sections.find(|s| s.name.strip_prefix(".z") == Some(rest))
    }

    /// Returns the file's `len` bytes at `svma`, before relocation, or `None` if the file has none.
    pub(crate) fn at(&self, svma: u64, len: u64) -> Option<&[u8]> {
        let segment = self.segments.iter().find(|s| s.holds_bytes(svma, len))?;
        let offset = segment.offset.checked_add(svma - segment.vaddr.0)?;
        slice(&self.bytes, offset, len)
    }

    /// Returns the file's bytes from `svma` to the end of its segment.
    pub(crate) fn from(&self, svma: u64) -> Option<&[u8]> {
        let segment = self.segments.iter().find(|s| s.holds_bytes(svma, 1))?;
        let skipped = svma - segment.vaddr.0;
        slice(
            &self.bytes,
            segment.offset.checked_add(skipped)?,
            segment.filesz - skipped,
        )
    }

    pub(crate) fn has_debug_info(&self) -> bool {
        let mut sections = self.sections.iter();
        sections.any(|s| {
            let is_info = matches!(s.name.as_str(), ".debug_info" | ".zdebug_info");
            is_info && s.kind != elf::SHT_NOBITS && s.size > 0
        })
    }

    /// Returns whether `svma` is code: in an executable section or, in a file without sections, an executable segment.
    pub(crate) fn is_code(&self, svma: u64) -> bool {
        self.code_section_end(svma).is_some()
    }

    /// Returns whether the linker may have placed something of the program at `svma`: the address is in a section with
    /// code or data or, in a file without sections, in a segment behind the file's own headers. An object without a
    /// size may be at the end. Linkers write other addresses (0, 1, -1, -2) for what they dropped.
    pub(crate) fn may_place(&self, svma: u64) -> bool {
        let mut sections = self.sections.iter().filter(|s| s.is_placed()).peekable();
        if sections.peek().is_some() {
            return sections.any(|s| s.addr <= svma && svma <= s.end());
        }
        self.segments.iter().any(|segment| {
            let end = segment.vaddr.0.saturating_add(segment.memsz);
            let begin = segment.vaddr.0.saturating_add(match segment.offset {
                0 => HEADER_BYTES,
                _ => 0,
            });
            begin <= svma && svma <= end
        })
    }

    /// Returns the end (exclusive) of the executable section that contains `svma`, or of the segment if the file has no
    /// sections.
    pub(crate) fn code_section_end(&self, svma: u64) -> Option<u64> {
        let after = self.code.partition_point(|(start, _)| *start <= svma);
        let (_, end) = self.code[..after].last()?;
        (svma < *end).then_some(*end)
    }
}

/// Checks the header before anything else is read.
pub(crate) fn checked_header<'a>(path: &Path, bytes: &'a [u8]) -> Result<&'a Header> {
    let path = || path.to_owned();
    if bytes.get(..4) != Some(&elf::ELFMAG) {
        return Err(Error::NotElf { path: path() });
    }
    if bytes.get(4) == Some(&elf::ELFCLASS32) {
        return Err(Error::WrongClass {
            path: path(),
            what: "32-bit",
        });
    }
    if bytes.get(5) == Some(&elf::ELFDATA2MSB) {
        return Err(Error::WrongClass {
            path: path(),
            what: "big-endian",
        });
    }
    let header = Header::parse(bytes).map_err(|source| Error::Damaged {
        path: path(),
        source,
    })?;
    let machine = header.e_machine(LittleEndian);
    if machine != elf::EM_X86_64 {
        return Err(Error::WrongMachine {
            path: path(),
            machine,
        });
    }
    Ok(header)
}

fn read_sections(
    header: &Header,
    bytes: &[u8],
) -> std::result::Result<Vec<Section>, object::read::Error> {
    let table = header.sections(LittleEndian, bytes)?;
    let name = |s: &elf::SectionHeader64<LittleEndian>| {
        let name = table.section_name(LittleEndian, s).unwrap_or_default();
        // All section names that this crate looks up are shorter. Many headers may share one long name, so it is cut.
        let name = &name[..name.len().min(MAX_NAME_BYTES)];
        String::from_utf8_lossy(name).into_owned()
    };
    let read = |s: &elf::SectionHeader64<LittleEndian>| Section {
        name: name(s),
        kind: s.sh_type(LittleEndian),
        flags: s.sh_flags(LittleEndian),
        addr: s.sh_addr(LittleEndian),
        offset: s.sh_offset(LittleEndian),
        size: s.sh_size(LittleEndian),
        link: s.sh_link(LittleEndian),
        entsize: s.sh_entsize(LittleEndian),
    };
    Ok(table.iter().map(read).collect())
}

/// Returns `len` bytes at `offset` if the file is that long.
pub(crate) fn slice(bytes: &[u8], offset: u64, len: u64) -> Option<&[u8]> {
    let start = usize::try_from(offset).ok()?;
    let end = usize::try_from(offset.checked_add(len)?).ok()?;
    bytes.get(start..end)
}

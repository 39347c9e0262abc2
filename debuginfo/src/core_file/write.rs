//! Writes the head of a core file: everything except the memory, which the caller appends segment by segment.
//!
//! The order is that of tools, not of the kernel: the process first. From that, readers know that no signal ended it.

use std::ops::Range;

use super::{CORE_REGISTERS, CoreMapping};

const PAGE: u64 = 4096;
const HEADER_LEN: u64 = 64;
const PROGRAM_LEN: u64 = 56;

/// A thread to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageThread {
    /// Its number.
    pub tid: u32,
    /// The signal that it is about to get; 0 for none.
    pub signal: i32,
    /// Its registers, in the order of the kernel's `user_regs_struct`.
    pub registers: [u64; CORE_REGISTERS],
    /// The area of `xsave`, which begins with the 512 bytes of `fxsave`; fewer if they are unknown.
    pub floating: Vec<u8>,
}

/// A range of memory to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageSegment {
    /// The addresses.
    pub range: Range<u64>,
    /// How many bytes from its start follow in the file.
    pub written: u64,
    /// Read 4, write 2, execute 1.
    pub flags: u32,
}

/// The contents of the head of a core file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CoreImage {
    /// The number of the process.
    pub pid: u32,
    /// Its parent's.
    pub parent: u32,
    /// Its name.
    pub name: String,
    /// Its command line.
    pub arguments: String,
    /// The auxiliary vector, as the kernel gives it.
    pub auxv: Vec<u8>,
    /// The threads, the selected one first.
    pub threads: Vec<ImageThread>,
    /// The mapped files.
    pub mappings: Vec<CoreMapping>,
    /// The memory, by address.
    pub segments: Vec<ImageSegment>,
}

/// Returns the bytes up to the first segment's memory. The memory of the segments follows them without gaps.
///
/// # Panics
/// There are more than 65,000 segments: a core file counts them elsewhere then.
#[must_use]
pub fn write_head(image: &CoreImage) -> Vec<u8> {
    let notes = notes(image);
    let count = image.segments.len() + 1;
    assert!(count < 65_000, "so many segments are counted elsewhere");
    let notes_at = HEADER_LEN + PROGRAM_LEN * count as u64;
    let memory_at = (notes_at + notes.len() as u64).next_multiple_of(PAGE);
    let mut out = Vec::with_capacity(memory_at as usize);
    out.extend(b"\x7fELF\x02\x01\x01\x00");
    out.extend([0; 8]);
    // ET_CORE, EM_X86_64, version 1.
    out.extend(4u16.to_le_bytes());
    out.extend(62u16.to_le_bytes());
    out.extend(1u32.to_le_bytes());
    for word in [0, HEADER_LEN, 0] {
        out.extend(word.to_le_bytes());
    }
    out.extend(0u32.to_le_bytes());
    for half in [
        HEADER_LEN as u16,
        PROGRAM_LEN as u16,
        count as u16,
        64,
        0,
        0,
    ] {
        out.extend(half.to_le_bytes());
    }
    program(&mut out, 4, 4, [notes_at, 0, 0, notes.len() as u64, 0, 4]);
    let mut at = memory_at;
    for segment in &image.segments {
        let size = segment.range.end - segment.range.start;
        let start = segment.range.start;
        let words = [at, start, 0, segment.written, size, PAGE];
        program(&mut out, 1, segment.flags, words);
        at += segment.written;
    }
    out.extend(notes);
    out.resize(memory_at as usize, 0);
    out
}

fn program(out: &mut Vec<u8>, kind: u32, flags: u32, words: [u64; 6]) {
    out.extend(kind.to_le_bytes());
    out.extend(flags.to_le_bytes());
    for word in words {
        out.extend(word.to_le_bytes());
    }
}

fn notes(image: &CoreImage) -> Vec<u8> {
    let mut out = Vec::new();
    note(&mut out, 3, &process(image));
    for thread in &image.threads {
        note(&mut out, 1, &status(image, thread));
        if let Some(old) = thread.floating.get(..512) {
            note(&mut out, 2, old);
        }
        if thread.floating.len() > 512 {
            note_of(&mut out, b"LINUX\0\0\0", 0x202, &thread.floating);
        }
    }
    note(&mut out, 6, &image.auxv);
    note(&mut out, 0x4649_4c45, &files(image));
    out
}

fn note(out: &mut Vec<u8>, kind: u32, desc: &[u8]) {
    note_of(out, b"CORE\0\0\0\0", kind, desc);
}

/// A note of an author, whose name ends with zeros.
fn note_of(out: &mut Vec<u8>, author: &[u8; 8], kind: u32, desc: &[u8]) {
    let name = author.iter().take_while(|byte| **byte != 0).count() as u32 + 1;
    for word in [name, desc.len() as u32, kind] {
        out.extend(word.to_le_bytes());
    }
    out.extend(author);
    out.extend(desc);
    out.resize(out.len().next_multiple_of(4), 0);
}

/// `elf_prpsinfo`.
fn process(image: &CoreImage) -> Vec<u8> {
    let mut desc = vec![0; 136];
    // The state of a process that is stopped.
    desc[1] = b'T';
    desc[24..28].copy_from_slice(&image.pid.to_le_bytes());
    desc[28..32].copy_from_slice(&image.parent.to_le_bytes());
    copy_text(&mut desc[40..56], &image.name);
    copy_text(&mut desc[56..136], &image.arguments);
    desc
}

/// Copies a text, which a zero follows.
fn copy_text(place: &mut [u8], text: &str) {
    let len = text.len().min(place.len() - 1);
    place[..len].copy_from_slice(&text.as_bytes()[..len]);
}

/// `elf_prstatus`.
fn status(image: &CoreImage, thread: &ImageThread) -> Vec<u8> {
    let mut desc = vec![0; 336];
    desc[0..4].copy_from_slice(&thread.signal.to_le_bytes());
    desc[12..14].copy_from_slice(&(thread.signal as i16).to_le_bytes());
    desc[32..36].copy_from_slice(&thread.tid.to_le_bytes());
    desc[36..40].copy_from_slice(&image.parent.to_le_bytes());
    for (place, register) in desc[112..328].chunks_exact_mut(8).zip(thread.registers) {
        place.copy_from_slice(&register.to_le_bytes());
    }
    desc[328] = u8::from(!thread.floating.is_empty());
    desc
}

/// `NT_FILE`.
fn files(image: &CoreImage) -> Vec<u8> {
    let mut desc = Vec::new();
    for word in [image.mappings.len() as u64, PAGE] {
        desc.extend(word.to_le_bytes());
    }
    for mapping in &image.mappings {
        for word in [
            mapping.range.start,
            mapping.range.end,
            mapping.offset / PAGE,
        ] {
            desc.extend(word.to_le_bytes());
        }
    }
    for mapping in &image.mappings {
        desc.extend(mapping.path.as_os_str().as_encoded_bytes());
        desc.push(0);
    }
    desc
}

//! The constants of a module: data that the program cannot change. Few have a symbol with a size, so one ends where the next
//! begins that code or a relocation refers to.

use std::sync::{Arc, OnceLock};

use iced_x86::{Decoder, DecoderOptions, OpKind, Register};
use object::LittleEndian;
use object::elf;

use crate::code_hash::distances;
use crate::model::{Segment, Svma};
use crate::module::Module;

/// Bytes of a constant that are looked at, at most.
const MOST_BYTES: u64 = 256;
/// Modules with more code are not searched for references: reading them takes seconds.
const MOST_CODE: u64 = 64 << 20;
/// A text of fewer characters may be a number, or the address of something in a program with fixed addresses.
const LEAST_TEXT: usize = 4;
/// Distances between constants are greater than this; numbers in tables are often smaller.
const LEAST_DISTANCE: u64 = 64;

/// The constants of a module.
pub(crate) struct Constants {
    module: Arc<Module>,
    /// Where constants begin, in order.
    starts: OnceLock<Vec<u64>>,
}

impl Constants {
    /// Takes a module.
    pub(crate) fn new(module: Arc<Module>) -> Self {
        Self {
            module,
            starts: OnceLock::new(),
        }
    }

    /// Returns bytes of the file that the program cannot change.
    pub(crate) fn bytes(&self, address: u64, len: u64) -> Option<&[u8]> {
        let end = address.checked_add(len)?;
        let segment = self.segment(address)?;
        let is_inside = end <= segment.vaddr.0.saturating_add(segment.filesz);
        match is_inside && !segment.flags.write {
            true => self.module.code(Svma(address), len),
            false => None,
        }
    }

    fn segment(&self, address: u64) -> Option<&Segment> {
        let holds =
            |s: &&Segment| (s.vaddr.0..s.vaddr.0.saturating_add(s.filesz)).contains(&address);
        self.module.load_segments().iter().find(holds)
    }

    /// Returns the constant at an address, with what fills up the place until the next one; empty if there is none.
    pub(crate) fn object(&self, address: u64) -> &[u8] {
        let starts = self.starts();
        let next = starts.get(starts.partition_point(|start| *start <= address));
        let len = next.map_or(1, |next| next - address).min(MOST_BYTES);
        let lens = [len, 64, 16, 4, 1]
            .into_iter()
            .filter(|least| *least <= len);
        lens.filter_map(|len| self.bytes(address, len))
            .next()
            .unwrap_or_default()
    }

    /// Returns the text at an address, which ends with a zero byte. Linkers let texts end in the same bytes, so the next constant
    /// may begin inside it.
    pub(crate) fn text(&self, address: u64) -> Option<&[u8]> {
        let lens = [MOST_BYTES, 64, 16, 4, 1].into_iter();
        let bytes = lens.filter_map(|len| self.bytes(address, len)).next()?;
        let text = bytes.split(|byte| *byte == 0).next()?;
        let is_text = |byte: &u8| matches!(byte, 9..=13 | 32..=126);
        let is_whole = text.len() >= LEAST_TEXT || self.object(address).len() <= text.len() + 1;
        (text.iter().all(is_text) && is_whole).then_some(text)
    }

    /// Returns whether a constant is a table of distances from its start to code or other constants.
    pub(crate) fn is_distances(&self, table: u64) -> bool {
        let is_far =
            |target: u64| target.abs_diff(table) > LEAST_DISTANCE && self.segment(target).is_some();
        self.bytes(table, 8)
            .is_some_and(|two| distances(table, two).all(is_far))
    }

    fn starts(&self) -> &[u64] {
        self.starts.get_or_init(|| {
            let mut starts = Vec::new();
            self.add_referred_by_code(&mut starts);
            self.add_relocated(&mut starts);
            let sections = self.module.files.main.sections().iter();
            starts.extend(sections.flat_map(|it| [it.addr, it.addr.saturating_add(it.size)]));
            starts.retain(|start| self.bytes(*start, 1).is_some());
            starts.sort_unstable();
            starts.dedup();
            starts
        })
    }

    fn add_referred_by_code(&self, starts: &mut Vec<u64>) {
        let code = self.module.code_ranges();
        let len: u64 = code.iter().map(|range| range.end.0 - range.start.0).sum();
        if len > MOST_CODE {
            return;
        }
        let is_fixed = !self.module.is_pie() && !self.module.is_library();
        for range in code {
            let Some(bytes) = self.module.code(range.start, range.end.0 - range.start.0) else {
                continue;
            };
            for it in Decoder::with_ip(64, bytes, range.start.0, DecoderOptions::NONE) {
                for at in 0..it.op_count() {
                    match it.op_kind(at) {
                        OpKind::Memory if is_fixed || it.memory_base() == Register::RIP => {
                            starts.push(it.memory_displacement64());
                        }
                        OpKind::Immediate32 | OpKind::Immediate32to64 | OpKind::Immediate64
                            if is_fixed =>
                        {
                            starts.extend(it.try_immediate(at));
                        }
                        _ => {}
                    }
                }
            }
        }
    }

    fn add_relocated(&self, starts: &mut Vec<u64>) {
        let elf = &self.module.files.main;
        let tables = elf.sections().iter();
        for table in tables.filter(|section| section.kind == elf::SHT_RELA) {
            let relocations = elf.relocations(table).iter();
            let relative =
                relocations.filter(|it| it.r_type(LittleEndian, false) == elf::R_X86_64_RELATIVE);
            starts.extend(relative.map(|it| it.r_addend.get(LittleEndian).cast_unsigned()));
        }
    }
}

//! Decides whether a function's code is the same in two builds, even if the code and everything that it refers to has
//! moved.
//!
//! Operands are hashed unchanged, except addresses: code is hashed by its name, constants by their bytes, texts by the
//! text, tables of jumps by where these lead. Data at other addresses is left out, so equal hashes do not prove that the data
//! is the same.

use std::hash::{Hash, Hasher};

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use rustc_hash::FxHasher;

use crate::model::{Segment, Svma};
use crate::module::Module;

/// Bytes of a function that are decoded, at most.
const MAX_BYTES: u64 = 1 << 20;
/// Bytes of a text that are hashed, at most.
const MAX_TEXT: u64 = 256;

/// Entries of a table of jumps, at most.
const MAX_JUMPS: u64 = 1 << 12;
/// Instructions between a comparison and the table of jumps that it guards, at most.
const NEAR: u32 = 8;

/// The function that is hashed.
struct Own {
    start: u64,
    end: u64,
    has_texts: bool,
    /// The largest number that the last comparison before this instruction lets pass, if it was near.
    limit: Option<u64>,
}

impl Own {
    /// Returns the offset of an address inside the function.
    fn offset(&self, address: u64) -> Option<u64> {
        (self.start..self.end)
            .contains(&address)
            .then(|| address - self.start)
    }
}

impl Module {
    /// Returns a hash of the code of `len` bytes at `start`; `None` if the file does not have it. `has_texts`: texts end
    /// with a zero byte, so they can be part of the hash.
    #[must_use]
    pub fn code_hash(&self, start: Svma, len: u64, has_texts: bool) -> Option<u64> {
        let end = start.0.checked_add(len.min(MAX_BYTES))?;
        let bytes = self.code(start, end - start.0)?;
        let mut hasher = FxHasher::default();
        let mut own = Own {
            start: start.0,
            end,
            has_texts,
            limit: None,
        };
        let mut since = 0;
        for instruction in Decoder::with_ip(64, bytes, start.0, DecoderOptions::NONE) {
            since += 1;
            if instruction.mnemonic() == Mnemonic::Cmp {
                own.limit = instruction.try_immediate(1).ok();
                since = 0;
            } else if since > NEAR {
                own.limit = None;
            }
            self.hash_instruction(&instruction, &own, &mut hasher);
        }
        Some(hasher.finish())
    }

    fn hash_instruction(&self, it: &Instruction, own: &Own, hasher: &mut FxHasher) {
        it.code().hash(hasher);
        (it.has_rep_prefix(), it.has_repne_prefix()).hash(hasher);
        for at in 0..it.op_count() {
            match it.op_kind(at) {
                OpKind::Register => it.op_register(at).hash(hasher),
                OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64 => {
                    self.hash_code(it.near_branch_target(), own, hasher);
                }
                OpKind::Memory if it.memory_base() == Register::RIP => {
                    self.hash_referred(it, own, hasher);
                }
                OpKind::Memory => {
                    let registers = (it.memory_base(), it.memory_index(), it.segment_prefix());
                    (registers, it.memory_index_scale()).hash(hasher);
                    self.hash_number(it.memory_displacement64(), own, hasher);
                }
                OpKind::FarBranch16 | OpKind::FarBranch32 => {}
                _ => self.hash_number(it.try_immediate(at).unwrap_or_default(), own, hasher),
            }
        }
    }

    /// A number may be an address, in a program with fixed addresses.
    fn hash_number(&self, number: u64, own: &Own, hasher: &mut FxHasher) {
        let mut segments = self.load_segments().iter();
        let is_address = number >= 1 << 16
            && !self.is_pie()
            && !self.is_library()
            && segments.any(|s| s.vaddr.0 <= number && number < s.vaddr.0.saturating_add(s.memsz));
        match is_address {
            true => self.hash_content(number, own, hasher),
            false => number.hash(hasher),
        }
    }

    /// Code is hashed by its place in the function, or else by its name. Returns whether it has one.
    fn hash_code(&self, target: u64, own: &Own, hasher: &mut FxHasher) -> bool {
        if let Some(offset) = own.offset(target) {
            offset.hash(hasher);
            return true;
        }
        let symbol = self.symbol_at(Svma(target));
        if let Some((name, start)) = &symbol {
            // Code that was split off has its own layout.
            (name, target == start.0).hash(hasher);
        }
        symbol.is_some()
    }

    fn hash_referred(&self, it: &Instruction, own: &Own, hasher: &mut FxHasher) {
        let address = it.memory_displacement64();
        if it.mnemonic() == Mnemonic::Lea {
            return self.hash_content(address, own, hasher);
        }
        let size = it.memory_size().size() as u64;
        if let Some(bytes) = self.constant(address, size) {
            bytes.hash(hasher);
        }
    }

    /// Hashes the content of an address: code, or a text.
    fn hash_content(&self, address: u64, own: &Own, hasher: &mut FxHasher) {
        if self.hash_code(address, own, hasher) || self.hash_jumps(address, own, hasher) {
            return;
        }
        if !own.has_texts {
            return;
        }
        let lens = [MAX_TEXT, 64, 16, 4, 1].into_iter();
        let bytes = lens.filter_map(|len| self.constant(address, len)).next();
        let text = bytes.and_then(|bytes| bytes.split(|byte| *byte == 0).next());
        let is_text = |text: &&[u8]| text.iter().all(|byte| matches!(byte, 9..=13 | 32..=126));
        text.filter(is_text).hash(hasher);
    }

    /// Hashes a table of jumps within the function: distances from the table, or addresses. Returns whether it is one. The comparison
    /// before it says how many entries it has.
    fn hash_jumps(&self, table: u64, own: &Own, hasher: &mut FxHasher) -> bool {
        let Some(entries) = own.limit.map(|limit| limit.saturating_add(1)) else {
            return false;
        };
        if !(2..=MAX_JUMPS).contains(&entries) {
            return false;
        }
        let distances = self.constant(table, entries * 4).map(|bytes| {
            let words = bytes.as_chunks::<4>().0.iter();
            let targets = words.map(|word| {
                let distance = i64::from(i32::from_le_bytes(*word));
                own.offset(table.wrapping_add_signed(distance))
            });
            targets.collect::<Option<Vec<u64>>>()
        });
        let addresses = || {
            let bytes = self.constant(table, entries * 8)?;
            let words = bytes.as_chunks::<8>().0.iter();
            let targets = words.map(|word| own.offset(u64::from_le_bytes(*word)));
            targets.collect::<Option<Vec<u64>>>()
        };
        let jumps = distances.flatten().or_else(addresses);
        jumps.hash(hasher);
        jumps.is_some()
    }

    /// Returns bytes of the file that the program cannot change.
    fn constant(&self, address: u64, len: u64) -> Option<&[u8]> {
        let end = address.checked_add(len)?;
        let mut segments = self.load_segments().iter();
        let holds =
            |s: &&Segment| s.vaddr.0 <= address && end <= s.vaddr.0.saturating_add(s.filesz);
        let segment = segments.find(holds)?;
        match segment.flags.write {
            true => None,
            false => self.code(Svma(address), len),
        }
    }
}

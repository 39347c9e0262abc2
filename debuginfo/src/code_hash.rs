//! Tells whether a function's code is the same in two builds, although it and everything that it refers to has moved.
//!
//! Operands are hashed as they are, but for addresses: of code its name, of constants their bytes, of texts the text. What
//! is at other addresses is left out, so equal hashes do not prove that data is the same.

use std::hash::{Hash, Hasher};

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use rustc_hash::FxHasher;

use crate::model::Svma;
use crate::module::Module;

/// Bytes of a function that are decoded, at most.
const MAX_BYTES: u64 = 1 << 20;
/// Bytes of a text that are hashed, at most.
const MAX_TEXT: u64 = 256;

impl Module {
    /// Returns a hash of the code of `len` bytes at `start`; `None` if the file does not have it.
    #[must_use]
    pub fn code_hash(&self, start: Svma, len: u64) -> Option<u64> {
        let end = start.0.checked_add(len.min(MAX_BYTES))?;
        let bytes = self.code(start, end - start.0)?;
        let mut hasher = FxHasher::default();
        for instruction in Decoder::with_ip(64, bytes, start.0, DecoderOptions::NONE) {
            self.hash_instruction(&instruction, start.0..end, &mut hasher);
        }
        Some(hasher.finish())
    }

    fn hash_instruction(&self, it: &Instruction, own: std::ops::Range<u64>, hasher: &mut FxHasher) {
        it.code().hash(hasher);
        (
            it.has_rep_prefix(),
            it.has_repne_prefix(),
            it.has_lock_prefix(),
        )
            .hash(hasher);
        for at in 0..it.op_count() {
            match it.op_kind(at) {
                OpKind::Register => it.op_register(at).hash(hasher),
                OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64 => {
                    self.hash_target(it.near_branch_target(), &own, hasher);
                }
                OpKind::Memory if it.memory_base() == Register::RIP => {
                    self.hash_referred(it, it.memory_displacement64(), &own, hasher);
                }
                OpKind::Memory => {
                    let registers = (it.memory_base(), it.memory_index(), it.segment_prefix());
                    (registers, it.memory_index_scale()).hash(hasher);
                    self.hash_number(it.memory_displacement64(), hasher);
                }
                OpKind::FarBranch16 | OpKind::FarBranch32 => {}
                _ => self.hash_number(it.try_immediate(at).unwrap_or_default(), hasher),
            }
        }
    }

    /// A number may be an address, in a program with fixed addresses.
    fn hash_number(&self, number: u64, hasher: &mut FxHasher) {
        let mut segments = self.load_segments().iter();
        let is_address = number >= 1 << 16
            && !self.is_pie()
            && !self.is_library()
            && segments.any(|s| s.vaddr.0 <= number && number < s.vaddr.0.saturating_add(s.memsz));
        match is_address {
            true => self.hash_content(number, hasher),
            false => number.hash(hasher),
        }
    }

    fn hash_target(&self, target: u64, own: &std::ops::Range<u64>, hasher: &mut FxHasher) {
        if own.contains(&target) {
            return (target - own.start).hash(hasher);
        }
        if let Some((name, start)) = self.symbol_at(Svma(target)) {
            // Code that was split off has its own layout.
            (name, target == start.0).hash(hasher);
        }
    }

    fn hash_referred(
        &self,
        it: &Instruction,
        address: u64,
        own: &std::ops::Range<u64>,
        hasher: &mut FxHasher,
    ) {
        if it.mnemonic() == Mnemonic::Lea {
            match own.contains(&address) {
                true => (address - own.start).hash(hasher),
                false => self.hash_content(address, hasher),
            }
            return;
        }
        let size = it.memory_size().size() as u64;
        if let Some(bytes) = self.constant(address, size) {
            bytes.hash(hasher);
        }
    }

    /// What is at an address: a function by its name, a text as it is.
    fn hash_content(&self, address: u64, hasher: &mut FxHasher) {
        if self.symbol_at(Svma(address)).is_some() {
            return self.hash_target(address, &(0..0), hasher);
        }
        for len in [MAX_TEXT, 64, 16, 4, 1] {
            let Some(bytes) = self.constant(address, len) else {
                continue;
            };
            let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
            if text.iter().all(|byte| matches!(byte, 9..=13 | 32..=126)) {
                text.hash(hasher);
            }
            return;
        }
    }

    /// Returns bytes of the file that the program cannot change.
    fn constant(&self, address: u64, len: u64) -> Option<&[u8]> {
        let end = address.checked_add(len)?;
        let mut segments = self.load_segments().iter();
        let of = |s: &&crate::model::Segment| {
            s.vaddr.0 <= address && end <= s.vaddr.0.saturating_add(s.filesz)
        };
        let segment = segments.find(of)?;
        (!segment.flags.write).then(|| self.code(Svma(address), len))?
    }
}

//! Decides whether a function's code is the same in two builds, even if the code and everything that it refers to has
//! moved.
//!
//! Operands are hashed unchanged, except addresses: code is hashed by its name, constants by their bytes, texts by the
//! text, tables of jumps by where these lead, variables by their names. Tables of distances to other constants are left out: equal hashes
//! do not prove that these are the same.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use rustc_hash::FxHasher;

use crate::constants::Constants;
use crate::model::Svma;
use crate::module::Module;
use crate::shared_variables::SharedVariables;

/// Bytes of a function that are decoded, at most.
const MAX_BYTES: u64 = 1 << 20;
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

/// The code of a function, as far as it can be compared with that of another build.
#[derive(Debug, Clone)]
pub struct CodePrint {
    hash: u64,
    /// The constants that it refers to, in the order of its instructions. Where one ends is not always known: it may have some
    /// bytes of the next one.
    constants: Vec<Vec<u8>>,
}

impl CodePrint {
    /// Returns whether two functions have the same code and the same constants.
    #[must_use]
    pub fn is_same(&self, other: &CodePrint) -> bool {
        let mut constants = self.constants.iter().zip(&other.constants);
        self.hash == other.hash
            && self.constants.len() == other.constants.len()
            && constants.all(|(own, other)| {
                let known = own.len().min(other.len());
                own[..known] == other[..known]
            })
    }
}

/// What was found of a function so far.
#[derive(Default)]
struct Print {
    hasher: FxHasher,
    constants: Vec<Vec<u8>>,
}

/// Takes the code of a module's functions.
pub struct CodeHasher {
    module: Arc<Module>,
    shared: Arc<SharedVariables>,
    constants: Constants,
}

impl CodeHasher {
    /// Takes a module, and the variables that it shares with the build that it is compared with.
    #[must_use]
    pub fn new(module: Arc<Module>, shared: Arc<SharedVariables>) -> Self {
        Self {
            constants: Constants::new(Arc::clone(&module)),
            module,
            shared,
        }
    }

    /// Returns the module.
    #[must_use]
    pub fn module(&self) -> &Arc<Module> {
        &self.module
    }

    /// Returns the code of `len` bytes at `start`; `None` if the file does not have it. `has_texts`: texts end
    /// with a zero byte, so that their length is known.
    #[must_use]
    pub fn print(&self, start: Svma, len: u64, has_texts: bool) -> Option<CodePrint> {
        let end = start.0.checked_add(len.min(MAX_BYTES))?;
        let bytes = self.module.code(start, end - start.0)?;
        let mut print = Print::default();
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
            self.hash_instruction(&instruction, &own, &mut print);
        }
        Some(CodePrint {
            hash: print.hasher.finish(),
            constants: print.constants,
        })
    }

    fn hash_instruction(&self, it: &Instruction, own: &Own, print: &mut Print) {
        it.code().hash(&mut print.hasher);
        (it.has_rep_prefix(), it.has_repne_prefix()).hash(&mut print.hasher);
        for at in 0..it.op_count() {
            match it.op_kind(at) {
                OpKind::Register => it.op_register(at).hash(&mut print.hasher),
                OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64 => {
                    self.hash_code(it.near_branch_target(), own, &mut print.hasher);
                }
                OpKind::Memory if it.memory_base() == Register::RIP => {
                    self.hash_referred(it, own, print);
                }
                OpKind::Memory => {
                    let registers = (it.memory_base(), it.memory_index(), it.segment_prefix());
                    (registers, it.memory_index_scale()).hash(&mut print.hasher);
                    self.hash_number(it.memory_displacement64(), own, print);
                }
                OpKind::FarBranch16 | OpKind::FarBranch32 => {}
                _ => self.hash_number(it.try_immediate(at).unwrap_or_default(), own, print),
            }
        }
    }

    /// A number may be an address, in a program with fixed addresses.
    fn hash_number(&self, number: u64, own: &Own, print: &mut Print) {
        match self.is_fixed_address(number) {
            true => self.hash_content(number, own, print),
            false => number.hash(&mut print.hasher),
        }
    }

    fn is_fixed_address(&self, number: u64) -> bool {
        let mut segments = self.module.load_segments().iter();
        number >= 1 << 16
            && !self.module.is_pie()
            && !self.module.is_library()
            && segments.any(|s| s.vaddr.0 <= number && number < s.vaddr.0.saturating_add(s.memsz))
    }

    /// Code is hashed by its place in the function, or else by its name. Returns whether it has one.
    fn hash_code(&self, target: u64, own: &Own, hasher: &mut FxHasher) -> bool {
        if let Some(offset) = own.offset(target) {
            offset.hash(hasher);
            return true;
        }
        let symbol = self.module.symbol_at(Svma(target));
        if let Some((name, start)) = &symbol {
            // Code that was split off has its own layout.
            (name, target == start.0).hash(hasher);
        }
        symbol.is_some()
    }

    fn hash_referred(&self, it: &Instruction, own: &Own, print: &mut Print) {
        let address = it.memory_displacement64();
        if it.mnemonic() == Mnemonic::Lea {
            return self.hash_content(address, own, print);
        }
        let size = it.memory_size().size() as u64;
        match self.constants.bytes(address, size) {
            Some(bytes) => bytes.hash(&mut print.hasher),
            None => self.hash_variable(address, &mut print.hasher),
        }
    }

    /// Hashes what lies at an address that the program can write to.
    fn hash_variable(&self, address: u64, hasher: &mut FxHasher) {
        self.shared.at(&self.module, Svma(address)).hash(hasher);
    }

    /// Hashes the content of an address: code, or a constant.
    fn hash_content(&self, address: u64, own: &Own, print: &mut Print) {
        if self.hash_code(address, own, &mut print.hasher)
            || self.hash_jumps(address, own, &mut print.hasher)
        {
            return;
        }
        if self.constants.bytes(address, 1).is_none() {
            return self.hash_variable(address, &mut print.hasher);
        }
        let text = own.has_texts.then(|| self.constants.text(address));
        if let Some(text) = text.flatten() {
            return text.hash(&mut print.hasher);
        }
        let bytes = self.constants.object(address);
        let leads: Vec<u64> = distances(address, bytes)
            .map_while(|target| own.offset(target))
            .collect();
        if leads.len() > 1 {
            return leads.hash(&mut print.hasher);
        }
        if self.constants.is_distances(address) {
            return;
        }
        print.constants.push(self.without_addresses(bytes));
    }

    /// The bytes of a constant; instead of addresses, hashes of the texts at these.
    fn without_addresses(&self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        for word in bytes.as_chunks_mut::<8>().0 {
            let number = u64::from_le_bytes(*word);
            if self.is_fixed_address(number) {
                let mut hasher = FxHasher::default();
                self.constants.text(number).hash(&mut hasher);
                *word = hasher.finish().to_le_bytes();
            }
        }
        bytes
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
        let near = self.constants.bytes(table, entries * 4).map(|bytes| {
            let targets = distances(table, bytes).map(|target| own.offset(target));
            targets.collect::<Option<Vec<u64>>>()
        });
        let addresses = || {
            let bytes = self.constants.bytes(table, entries * 8)?;
            let words = bytes.as_chunks::<8>().0.iter();
            let targets = words.map(|word| own.offset(u64::from_le_bytes(*word)));
            targets.collect::<Option<Vec<u64>>>()
        };
        let jumps = near.flatten().or_else(addresses);
        jumps.hash(hasher);
        jumps.is_some()
    }
}

/// The addresses that a table of 32-bit distances from its own start has.
pub(crate) fn distances(table: u64, bytes: &[u8]) -> impl Iterator<Item = u64> {
    let words = bytes.as_chunks::<4>().0.iter();
    words.map(move |word| table.wrapping_add_signed(i64::from(i32::from_le_bytes(*word))))
}

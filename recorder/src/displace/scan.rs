//! Finds the branches in a range of code: which addresses are jumped to or called, and from where.
//!
//! Code is decoded from front to back. Where bytes are not an instruction (data between functions, tables in
//! hand-written assembly), [`Branches::of`] continues at the next byte. x86 code decoded from a wrong start falls back
//! into step after a few instructions, but those few may be missed.

use std::ops::Range;

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic};
use serde::{Deserialize, Serialize};

/// A branch or call whose target is encoded in the instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Branch {
    pub to: u64,
    pub from: u64,
    pub is_call: bool,
}

/// The branches in a range of code, by target.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Branches {
    by_target: Vec<Branch>,
}

impl Branches {
    /// Finds the branches in `code`, which is (or will be) at address `start`. Meant for a whole section, once: each
    /// branch takes about 24 bytes.
    pub fn of(code: &[u8], start: u64) -> Branches {
        let mut branches = Branches::default();
        walk(code, start, |step| match step {
            Step::Instruction(instruction) => branches.by_target.extend(branch(instruction)),
            Step::Undecodable => {}
        });
        branches.by_target.sort_unstable();
        branches
    }

    /// Takes branches that were found before.
    pub fn from_list(mut list: Vec<Branch>) -> Branches {
        list.sort_unstable();
        list.dedup();
        Branches { by_target: list }
    }

    /// Returns the same branches for code that lies `bias` bytes higher.
    pub fn moved_up(&self, bias: u64) -> Branches {
        let moved = self.by_target.iter().map(|branch| Branch {
            to: branch.to.wrapping_add(bias),
            from: branch.from.wrapping_add(bias),
            is_call: branch.is_call,
        });
        Branches::from_list(moved.collect())
    }

    /// Returns all branches, lowest target first.
    pub fn list(&self) -> &[Branch] {
        &self.by_target
    }

    /// Adds the branches of other code.
    pub fn extend(&mut self, other: Branches) {
        self.by_target.extend(other.by_target);
        self.by_target.sort_unstable();
    }

    /// Returns the branches whose target lies in `targets`, lowest target first.
    pub fn into_range(&self, targets: Range<u64>) -> impl Iterator<Item = &Branch> {
        let first = self.by_target.partition_point(|b| b.to < targets.start);
        self.by_target[first..]
            .iter()
            .take_while(move |b| b.to < targets.end)
    }

    /// Returns the number of branches found.
    pub fn len(&self) -> usize {
        self.by_target.len()
    }

    /// Returns whether no branch was found.
    pub fn is_empty(&self) -> bool {
        self.by_target.is_empty()
    }
}

/// What a function's own instructions refer to within its first bytes.
#[derive(Debug, Default)]
pub(super) struct References {
    pub(super) branches: Branches,
    /// (instruction, target) of operands that name or read a byte of the range as data.
    pub(super) data: Vec<(u64, u64)>,
}

/// Finds the references in `code` to `range`: branches to it, and rip-relative operands in it.
///
/// If some bytes are not instructions, decoding may have been out of step. Then every offset is tried as the start of a
/// branch, so that none is missed, at the cost of a few false ones.
pub(super) fn references(code: &[u8], start: u64, range: Range<u64>) -> References {
    let mut found = References::default();
    let mut in_step = true;
    walk(code, start, |step| match step {
        Step::Instruction(instruction) => found.note(instruction, &range),
        Step::Undecodable => in_step = false,
    });
    if !in_step {
        let mut decoder = decoder(code, start);
        for offset in 0..code.len() {
            let instruction = decode_at(&mut decoder, start, offset);
            if !instruction.is_invalid() {
                found.note(&instruction, &range);
            }
        }
    }
    found.branches.by_target.sort_unstable();
    found.branches.by_target.dedup();
    found
}

impl References {
    fn note(&mut self, instruction: &Instruction, range: &Range<u64>) {
        if let Some(branch) = branch(instruction)
            && range.contains(&branch.to)
        {
            self.branches.by_target.push(branch);
        }
        if let Some(to) = data_reference(instruction, range) {
            self.data.push((instruction.ip(), to));
        }
    }
}

/// Returns the target of an operand that reads the range or names an address inside it.
fn data_reference(instruction: &Instruction, range: &Range<u64>) -> Option<u64> {
    let named = named(instruction)?;
    named.overlaps(range).then_some(named.to)
}

/// Bytes of code that other code uses as data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Named {
    /// Address of the first byte.
    pub to: u64,
    /// Number of bytes; 1 if only the address is taken.
    len: u64,
    is_address: bool,
}

impl Named {
    /// Returns whether the program would notice a patch of `range`. Naming its first byte is harmless: that is how code
    /// takes a pointer to a function or a label.
    pub fn overlaps(&self, range: &Range<u64>) -> bool {
        let is_pointer = self.is_address && self.to == range.start;
        !is_pointer && self.to < range.end && self.to.saturating_add(self.len) > range.start
    }
}

/// Finds the operands in `code`, located at `start`, that name bytes of `code` relative to rip.
pub fn named_inside(code: &[u8], start: u64) -> Vec<Named> {
    let inside = start..start + code.len() as u64;
    let mut found = Vec::new();
    walk(code, start, |step| {
        if let Step::Instruction(instruction) = step
            && let Some(named) = named(instruction)
            && inside.contains(&named.to)
        {
            found.push(named);
        }
    });
    found
}

fn named(instruction: &Instruction) -> Option<Named> {
    if !instruction.is_ip_rel_memory_operand() || instruction.mnemonic() == Mnemonic::Nop {
        return None;
    }
    let is_address = instruction.mnemonic() == Mnemonic::Lea;
    let len = match is_address {
        true => 1,
        false => instruction.memory_size().size().max(1) as u64,
    };
    Some(Named {
        to: instruction.ip_rel_memory_address(),
        len,
        is_address,
    })
}

/// One step of a walk through code.
pub(super) enum Step<'a> {
    Instruction(&'a Instruction),
    Undecodable,
}

/// Reads code from front to back.
pub(super) fn walk(code: &[u8], start: u64, mut visit: impl FnMut(Step)) {
    let mut decoder = decoder(code, start);
    let mut instruction = Instruction::default();
    while decoder.can_decode() {
        let offset = decoder.position();
        decoder.decode_out(&mut instruction);
        if instruction.is_invalid() {
            visit(Step::Undecodable);
            seek(&mut decoder, start, offset + 1);
        } else {
            visit(Step::Instruction(&instruction));
        }
    }
}

pub(super) fn decoder(code: &[u8], start: u64) -> Decoder<'_> {
    Decoder::with_ip(64, code, start, DecoderOptions::NONE)
}

/// Decodes the instruction at `offset`.
pub(super) fn decode_at(decoder: &mut Decoder, start: u64, offset: usize) -> Instruction {
    seek(decoder, start, offset);
    decoder.decode()
}

fn seek(decoder: &mut Decoder, start: u64, offset: usize) {
    decoder
        .set_position(offset)
        .expect("the offset is at most the length of the code");
    decoder.set_ip(start.wrapping_add(offset as u64));
}

/// Returns `instruction` as a branch, if its target is encoded in it.
pub(super) fn branch(instruction: &Instruction) -> Option<Branch> {
    let is_call = match instruction.flow_control() {
        FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch => false,
        FlowControl::Call if instruction.is_call_near() => true,
        FlowControl::XbeginXabortXend if instruction.mnemonic() == Mnemonic::Xbegin => false,
        _ => return None,
    };
    Some(Branch {
        to: instruction.near_branch_target(),
        from: instruction.ip(),
        is_call,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_are_listed_by_target() {
        // 1000: jne 1005; call 1000; 1007: jmp 1000
        let code = [0x75, 0x05, 0xe8, 0xf9, 0xff, 0xff, 0xff, 0xeb, 0xf7, 0xc3];
        let branches = Branches::of(&code, 0x1000);
        let to_start: Vec<_> = branches
            .into_range(0x1000..0x1001)
            .map(|b| (b.from, b.is_call))
            .collect();
        assert_eq!(to_start, [(0x1002, true), (0x1007, false)]);
        let inside: Vec<_> = branches
            .into_range(0x1001..0x1008)
            .map(|b| b.from)
            .collect();
        assert_eq!(inside, [0x1000]);
        assert_eq!(branches.len(), 3);
        let mut both = Branches::of(&code, 0x2000);
        both.extend(branches);
        assert_eq!(both.into_range(0x1005..0x2001).count(), 3);
    }

    #[test]
    fn branch_hidden_behind_undecodable_bytes_is_found() {
        // 06 is not a 64-bit instruction; 0f swallows the start of the next instruction when decoding continues.
        let code = [
            0x90, 0x90, 0x90, 0x90, 0x90, 0xc3, 0x06, 0x48, 0xb8, 0xeb, 0xf9,
        ];
        let found = references(&code, 0x1000, 0x1000..0x1005);
        assert_eq!(
            found.branches.into_range(0x1001..0x1005).count(),
            1,
            "jmp at 1009 leads to 1004"
        );
    }

    #[test]
    fn naming_the_entry_is_harmless_and_reading_it_is_not() {
        // lea rax, [entry]
        let lea = [0x48, 0x8d, 0x05, 0xf9, 0xff, 0xff, 0xff];
        assert!(references(&lea, 0x1000, 0x1000..0x1005).data.is_empty());
        // mov rax, [entry - 4] reads four bytes of the patch
        let load = [0x48, 0x8b, 0x05, 0xf5, 0xff, 0xff, 0xff];
        assert_eq!(
            references(&load, 0x1000, 0x1000..0x1005).data,
            [(0x1000, 0xffc)]
        );
    }
}

//! Packed blocks: records without the words that an earlier record of the same block implies.
//!
//! Writer and reader keep the same `Known`, so a record is one head word and the words that differ from the prediction.
//! Each block starts anew, so it can be read without the others. Of a call's record only its end, function and slot are
//! interpreted; `docs/format.md` is the norm.

mod pack;
#[cfg(test)]
mod tests;
mod unpack;

pub use pack::{Packed, Packer};
pub use unpack::{PackingFault, Unpacker};

use crate::wire::{
    ENTER_MAX_XMM, ENTER_WORDS, KIND_BITS, KIND_ENTER, KIND_ENTER_NOLEAVE, KIND_ENTER_ONLY,
    KIND_ENTER_TAIL, KIND_LEAVE, LEAVE_WORDS, LEAVE_XMM, SLOT_POSITION, VALUE_SHIFT, WORD_LEN,
    XMM_SHIFT,
};

/// A word as it is in memory and on disk.
pub type Word = [u8; WORD_LEN];

/// Words of a packed block before its first record: the length of the raw records in bytes, and their first ticks.
const PROLOGUE_WORDS: usize = 2;

/// In a head: position of the context. Below it, bit `i` says that word `i + 1` of the record follows.
const CONTEXT_SHIFT: u32 = 16;
/// In a head: position of the signed ticks since the record before; or of the number of raw words that follow.
const TICKS_SHIFT: u32 = 24;
/// In the head of a leave record: its rdx equals the rdx at the call's entry. Otherwise rdx is like any other word.
const SAME_RDX: u64 = 1 << (CONTEXT_SHIFT - 1);
/// Index of rdx in the words that [`Known`] keeps of a leave record, and in the words of an enter record.
const LEAVE_RDX: usize = 2;
const ENTER_RDX: usize = 5;
/// The context of raw words.
const RAW: u64 = 0xff;
/// Contexts of enter records: that many low bits of a function id choose the context.
const FUNCTIONS: usize = 64;
/// Leave records have as many contexts, after those of the enter records.
const CONTEXTS: usize = 2 * FUNCTIONS;
/// Calls that may be open at once before the outermost are forgotten.
const OPEN: usize = 64;
/// Words of the longest record of a call, without its ticks.
const MAX_WORDS: usize = ENTER_WORDS + ENTER_MAX_XMM - 1;
/// The slot in word 1.
const SLOT_MASK: u64 = !0 << SLOT_POSITION;

const _: () = assert!(MAX_WORDS == CONTEXT_SHIFT as usize);

/// The expected content of the next records.
struct Known {
    /// Words 1 and following of the last record of each context.
    words: [[u64; MAX_WORDS]; CONTEXTS],
    /// One bit per context: it has been used in this block. Unused contexts count as zeroes, and cost nothing.
    seen: [u64; CONTEXTS / 64],
    /// Slot and function of the open calls, as a ring buffer: [`SLOT_MASK`] of word 1, and the context.
    open: [u64; OPEN],
    /// Their rdx at the entry.
    rdx: [u64; OPEN],
    depth: usize,
    ticks: u64,
}

impl Known {
    fn new() -> Self {
        Self {
            words: [[0; MAX_WORDS]; CONTEXTS],
            seen: [0; CONTEXTS / 64],
            open: [0; OPEN],
            rdx: [0; OPEN],
            depth: 0,
            ticks: 0,
        }
    }

    fn begin(&mut self, ticks: u64) {
        self.seen = [0; CONTEXTS / 64];
        self.open = [0; OPEN];
        self.rdx = [0; OPEN];
        self.depth = 0;
        self.ticks = ticks;
    }

    /// Returns the last record of a context.
    #[inline(always)]
    fn context(&mut self, context: usize) -> &mut [u64; MAX_WORDS] {
        let context = context % CONTEXTS;
        let (group, bit) = (context / 64, 1 << (context % 64));
        let words = &mut self.words[context];
        if self.seen[group] & bit == 0 {
            self.seen[group] |= bit;
            *words = [0; MAX_WORDS];
        }
        words
    }

    /// Notes an enter record by its word 1 and its rdx. Only a hooked call gets a leave record.
    #[inline(always)]
    fn entered(&mut self, word1: u64, rdx: u64) {
        let is_hooked = kind(word1) == KIND_ENTER;
        // Write above the innermost call in any case: no branch.
        let above = self.depth.wrapping_add(1);
        self.open[above % OPEN] = word1 & SLOT_MASK | enter_context(word1) as u64;
        self.rdx[above % OPEN] = rdx;
        self.depth = if is_hooked { above } else { self.depth };
    }

    /// Removes the innermost call and returns the expected values of its leave.
    #[inline(always)]
    fn left(&mut self) -> Left {
        let innermost = self.depth % OPEN;
        self.depth = self.depth.wrapping_sub(1);
        let open = self.open[innermost];
        Left {
            context: FUNCTIONS + open as usize % FUNCTIONS,
            slot: open & SLOT_MASK,
            rdx: self.rdx[innermost],
        }
    }
}

/// A call that ends.
struct Left {
    context: usize,
    /// As in word 1.
    slot: u64,
    /// As at the entry.
    rdx: u64,
}

/// Returns the context of an enter record by its word 1.
#[inline(always)]
fn enter_context(word1: u64) -> usize {
    (word1 >> VALUE_SHIFT) as usize % FUNCTIONS
}

#[inline(always)]
fn kind(word1: u64) -> u8 {
    (word1 & ((1 << KIND_BITS) - 1)) as u8
}

/// Returns the length in words of an enter record with this word 1; `None`: readers do not accept it.
fn enter_words(word1: u64) -> Option<usize> {
    let is_enter = matches!(
        kind(word1),
        KIND_ENTER | KIND_ENTER_TAIL | KIND_ENTER_NOLEAVE | KIND_ENTER_ONLY
    );
    let xmm = xmm_words(word1);
    (is_enter && xmm <= ENTER_MAX_XMM).then_some(ENTER_WORDS + xmm)
}

/// Returns the length in words of a leave record with this word 1; `None`: readers do not accept it.
fn leave_words(word1: u64) -> Option<usize> {
    let xmm = xmm_words(word1);
    let is_leave = kind(word1) == KIND_LEAVE && (xmm == 0 || xmm == LEAVE_XMM);
    is_leave.then_some(LEAVE_WORDS + xmm)
}

fn xmm_words(word1: u64) -> usize {
    (word1 >> XMM_SHIFT) as usize % (1 << (VALUE_SHIFT - XMM_SHIFT))
}

/// Returns the ticks between two times if they fit a head.
#[inline(always)]
fn ticks_field(earlier: u64, later: u64) -> Option<u64> {
    let passed = later.wrapping_sub(earlier);
    let field = passed << TICKS_SHIFT;
    (field as i64 >> TICKS_SHIFT == passed as i64).then_some(field)
}

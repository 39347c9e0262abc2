//! Unpacks blocks. It accepts any bytes, and never needs more memory than [`PACKED_MAX_LEN`].

use super::{
    CONTEXT_SHIFT, CONTEXTS, ENTER_RDX, FUNCTIONS, Known, LEAVE_RDX, MAX_WORDS, PROLOGUE_WORDS,
    RAW, SAME_RDX, SLOT_MASK, TICKS_SHIFT, Word, enter_words, leave_words,
};
use crate::format::PACKED_MAX_LEN;
use crate::wire::{ENTER_WORDS, LEAVE_WORDS, WORD_LEN};

/// Why a payload is not a packed block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PackingFault {
    /// It ends before its last record, or is not a whole number of words.
    #[error("the packed block is cut short")]
    Short,
    /// Something follows the last record, or the last record extends past the stated length.
    #[error("the packed block is longer than it says")]
    Long,
    /// No block unpacks to that many bytes.
    #[error("no packed block holds {0} bytes")]
    Length(u64),
    /// A head has an unknown context.
    #[error("word {0} of the packed block is no head of a record")]
    Context(usize),
    /// The record's first word does not belong to that context, or more words follow than the record has.
    #[error("word {0} of the packed block begins no record of a call")]
    Record(usize),
}

/// Unpacks blocks, and keeps its buffers.
pub struct Unpacker {
    known: Box<Known>,
    pub(super) out: Vec<Word>,
}

impl Default for Unpacker {
    fn default() -> Self {
        Self {
            known: Box::new(Known::new()),
            out: Vec::new(),
        }
    }
}

impl Unpacker {
    /// Returns the records of the packed block `payload`, as the target wrote them.
    ///
    /// # Errors
    /// The fault.
    pub fn unpack(&mut self, payload: &[u8]) -> Result<&[u8], PackingFault> {
        self.out.clear();
        let (words, []) = payload.as_chunks() else {
            return Err(PackingFault::Short);
        };
        let (prologue, _) = words
            .split_first_chunk::<PROLOGUE_WORDS>()
            .ok_or(PackingFault::Short)?;
        let [len, base] = prologue.map(u64::from_le_bytes);
        if len > PACKED_MAX_LEN as u64 || !len.is_multiple_of(WORD_LEN as u64) {
            return Err(PackingFault::Length(len));
        }
        let end = len as usize / WORD_LEN;
        self.known.begin(base);
        let mut at = PROLOGUE_WORDS;
        while self.out.len() < end {
            at += self.record(words, at, end)?;
        }
        if at != words.len() || self.out.len() != end {
            return Err(PackingFault::Long);
        }
        Ok(self.out.as_flattened())
    }

    /// Unpacks the record whose head is word `at`; returns the number of its packed words.
    #[inline(always)]
    fn record(&mut self, words: &[Word], at: usize, end: usize) -> Result<usize, PackingFault> {
        let (head, rest) = words[at..].split_first().ok_or(PackingFault::Short)?;
        let head = u64::from_le_bytes(*head);
        let context = (head >> CONTEXT_SHIFT & 0xff) as usize;
        if context >= CONTEXTS {
            return self.raw(head, rest, at, end);
        }
        let is_leave = context >= FUNCTIONS;
        let mut mask = head & ((1 << CONTEXT_SHIFT) - 1);
        self.known.ticks = self
            .known
            .ticks
            .wrapping_add((head as i64 >> TICKS_SHIFT) as u64);
        let left = is_leave.then(|| self.known.left());
        let known = self.known.context(context);
        if let Some(left) = left {
            known[0] = left.slot | known[0] & !SLOT_MASK;
            if mask & SAME_RDX != 0 {
                known[LEAVE_RDX] = left.rdx;
            }
            mask &= !SAME_RDX;
        }
        let mut taken = 0;
        if mask & 1 != 0 {
            known[0] = u64::from_le_bytes(*rest.first().ok_or(PackingFault::Short)?);
            taken = 1;
        }
        let word1 = known[0];
        let count = match is_leave {
            true => leave_words(word1),
            false => enter_words(word1),
        };
        let count = count
            .filter(|count| mask >> (count - 1) == 0)
            .ok_or(PackingFault::Record(at))?;
        let mut record = [[0; WORD_LEN]; MAX_WORDS + 1];
        record[1] = word1.to_le_bytes();
        for (i, known) in known[..count - 1].iter_mut().enumerate().skip(1) {
            if mask >> i & 1 != 0 {
                *known = u64::from_le_bytes(*rest.get(taken).ok_or(PackingFault::Short)?);
                taken += 1;
            }
            record[i + 1] = known.to_le_bytes();
        }
        record[0] = self.known.ticks.to_le_bytes();
        if !is_leave {
            self.known
                .entered(word1, u64::from_le_bytes(record[ENTER_RDX]));
        }
        // Copies of a known length need no call.
        match count {
            LEAVE_WORDS => self.out.extend_from_slice(&record[..LEAVE_WORDS]),
            ENTER_WORDS => self.out.extend_from_slice(&record[..ENTER_WORDS]),
            _ => self.out.extend_from_slice(&record[..count]),
        }
        Ok(taken + 1)
    }

    /// Copies words that were not packed.
    #[cold]
    fn raw(
        &mut self,
        head: u64,
        rest: &[Word],
        at: usize,
        end: usize,
    ) -> Result<usize, PackingFault> {
        let count = (head >> TICKS_SHIFT) as usize;
        if head % (1 << TICKS_SHIFT) != RAW << CONTEXT_SHIFT || count == 0 {
            return Err(PackingFault::Context(at));
        }
        if count > end - self.out.len() {
            return Err(PackingFault::Long);
        }
        let raw = rest.get(..count).ok_or(PackingFault::Short)?;
        self.known.ticks = u64::from_le_bytes(raw[0]);
        self.out.extend_from_slice(raw);
        Ok(count + 1)
    }
}

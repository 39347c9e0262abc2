//! Packs the records of a block. Words may have any content; the caller handles records that cannot be packed.
//!
//! This runs once for every call of a traced program, on the way from the rings to the disk, so it has no branch per
//! word: it writes each word, and advances only if the word must be kept.

use super::{
    CONTEXT_SHIFT, ENTER_RDX, Known, LEAVE_RDX, MAX_WORDS, PROLOGUE_WORDS, RAW, SAME_RDX,
    SLOT_MASK, TICKS_SHIFT, Word, enter_context, enter_words, kind, leave_words, ticks_field,
};
use crate::format::PACKED_MAX_LEN;
use crate::wire::{
    ENTER_WORDS, KIND_CAPTURE, KIND_ENTER, KIND_LEAVE, LEAVE_WORDS, Records, VALUE_SHIFT, WORD_LEN,
};

/// Records are packed in pieces of at most this many words: data that is soon read again stays in the processor's
/// cache.
const PIECE_WORDS: usize = 32 << 10;
/// Most words of a packed record. A power of two, so that a masked index is always in bounds.
const ROOM: usize = (MAX_WORDS + 1).next_power_of_two();

const _: () = assert!(PIECE_WORDS * WORD_LEN <= PACKED_MAX_LEN);

/// Returns whether the record at the start of `words` is an event; captures of another record are none.
#[inline(always)]
pub fn is_event(words: &[Word]) -> bool {
    let word1 = words.get(1).map_or(0, |word| u64::from_le_bytes(*word));
    kind(word1) != KIND_CAPTURE
}

/// Packs records, one piece after another.
pub struct Packer {
    known: Box<Known>,
    out: Box<[Word]>,
}

/// A packed piece of a block.
pub struct Packed<'a> {
    /// Number of packed words, from the first on: whole records. 0: the first record can only be stored raw.
    pub taken: usize,
    /// Number of events among them: all records except captures.
    pub events: u64,
    /// The payload of its frame.
    pub payload: &'a [u8],
}

impl Default for Packer {
    fn default() -> Self {
        Self {
            known: Box::new(Known::new()),
            // An unpacked record has a head of its own and at least two words.
            out: vec![[0; WORD_LEN]; PROLOGUE_WORDS + PIECE_WORDS / 2 * 3 + ROOM].into(),
        }
    }
}

impl Packer {
    /// Packs the whole records at the start of `words`, up to one piece.
    pub fn pack(&mut self, words: &[Word]) -> Packed<'_> {
        let base = words.first().map_or(0, |word| u64::from_le_bytes(*word));
        self.known.begin(base);
        let mut taken = 0;
        let mut events = 0;
        let mut len = PROLOGUE_WORDS;
        while let Some((count, packed)) = self.record(&words[taken..], PIECE_WORDS - taken, len) {
            events += u64::from(is_event(&words[taken..]));
            taken += count;
            len += packed;
        }
        self.out[0] = ((taken * WORD_LEN) as u64).to_le_bytes();
        self.out[1] = base.to_le_bytes();
        Packed {
            taken,
            events,
            payload: self.out[..len].as_flattened(),
        }
    }

    /// Packs the record at the start of `words` to word `at`, unless it is longer than `most` words. Returns its length
    /// in words, raw and packed.
    #[inline(always)]
    fn record(&mut self, words: &[Word], most: usize, at: usize) -> Option<(usize, usize)> {
        let word1 = u64::from_le_bytes(*words.get(1)?);
        let out = self.out[at..]
            .first_chunk_mut()
            .expect("a piece leaves room for any record");
        let known = &mut *self.known;
        // Nearly all records have one of these two lengths, which are constants for the loops below.
        if kind_and_xmm(word1) == KIND_LEAVE
            && let Some(record) = words.first_chunk::<LEAVE_WORDS>()
            && LEAVE_WORDS <= most
            && let Some(len) = leave(known, record, out)
        {
            return Some((LEAVE_WORDS, len));
        }
        if kind_and_xmm(word1) == KIND_ENTER
            && let Some(record) = words.first_chunk::<ENTER_WORDS>()
            && ENTER_WORDS <= most
            && let Some(len) = enter(known, record, word1, out)
        {
            return Some((ENTER_WORDS, len));
        }
        self.other(words, word1, most, at)
    }

    /// Packs a record of another length, or stores it raw.
    #[inline(never)]
    fn other(
        &mut self,
        words: &[Word],
        word1: u64,
        most: usize,
        at: usize,
    ) -> Option<(usize, usize)> {
        let known = &mut *self.known;
        if let Some(count) = enter_words(word1).or(leave_words(word1)) {
            let record = words.get(..count).filter(|_| count <= most)?;
            let out = self.out[at..].first_chunk_mut()?;
            let packed = match kind(word1) {
                KIND_LEAVE => leave(known, record, out),
                _ => enter(known, record, word1, out),
            };
            if let Some(len) = packed {
                return Some((count, len));
            }
        }
        let mut records = Records::new(words.as_flattened());
        records.next()?.ok()?;
        let count = records.offset() / WORD_LEN;
        let out = self
            .out
            .get_mut(at..=at + count)
            .filter(|_| count <= most)?;
        out[0] = (RAW << CONTEXT_SHIFT | (count as u64) << TICKS_SHIFT).to_le_bytes();
        out[1..].copy_from_slice(&words[..count]);
        known.ticks = u64::from_le_bytes(words[0]);
        Some((count, count + 1))
    }
}

/// Packs an enter record; returns its length. `None`: its ticks are too far from the ones before.
#[inline(always)]
fn enter(known: &mut Known, record: &[Word], word1: u64, out: &mut [Word; ROOM]) -> Option<usize> {
    let ticks = known.pass(record)?;
    let context = enter_context(word1);
    let (mask, len) = changed(record, known.context(context), out);
    out[0] = head(mask, context, ticks);
    known.entered(word1, u64::from_le_bytes(record[ENTER_RDX]));
    Some(len)
}

/// Packs a leave record; returns its length. `None`: its ticks are too far from the ones before.
#[inline(always)]
fn leave(known: &mut Known, record: &[Word], out: &mut [Word; ROOM]) -> Option<usize> {
    let ticks = known.pass(record)?;
    let left = known.left();
    let words = known.context(left.context);
    words[0] = left.slot | words[0] & !SLOT_MASK;
    let is_same = u64::from_le_bytes(record[LEAVE_RDX + 1]) == left.rdx;
    words[LEAVE_RDX] = if is_same { left.rdx } else { words[LEAVE_RDX] };
    let (mask, len) = changed(record, words, out);
    let same = if is_same { SAME_RDX } else { 0 };
    out[0] = head(mask | same, left.context, ticks);
    Some(len)
}

/// Writes the words of `record` that differ from the `known` ones after the head at the start of `out`, and makes them
/// known. Returns one bit for each of them, and their number with the head.
#[inline(always)]
fn changed(record: &[Word], known: &mut [u64; MAX_WORDS], out: &mut [Word; ROOM]) -> (u64, usize) {
    let mut mask = 0;
    let mut len = 1;
    for (i, (word, known)) in record[1..].iter().zip(known).enumerate() {
        let value = u64::from_le_bytes(*word);
        let differs = value != *known;
        out[len % ROOM] = *word;
        len += usize::from(differs);
        mask |= u64::from(differs) << i;
        *known = value;
    }
    (mask, len)
}

#[inline(always)]
fn head(mask: u64, context: usize, ticks: u64) -> Word {
    (mask | (context as u64) << CONTEXT_SHIFT | ticks).to_le_bytes()
}

#[inline(always)]
fn kind_and_xmm(word1: u64) -> u8 {
    (word1 % (1 << VALUE_SHIFT)) as u8
}

impl Known {
    /// Advances to the time of `record`; returns the time field of its head.
    #[inline(always)]
    fn pass(&mut self, record: &[Word]) -> Option<u64> {
        let ticks = u64::from_le_bytes(record[0]);
        let field = ticks_field(self.ticks, ticks)?;
        self.ticks = ticks;
        Some(field)
    }
}

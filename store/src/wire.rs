//! Decodes the records of a block as the target wrote them; any bytes are accepted, none make it panic.
//!
//! `docs/wire.md` is the norm. A block is a whole number of records; what follows the first record that cannot
//! be read is unreadable, and the caller turns that into a gap.

mod encode;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use encode::{
    EnterFields, push_enter, push_exec, push_fork, push_gap, push_leave, push_output, push_thread,
    push_thread_exit,
};

/// Length of a word in bytes; every record is a whole number of words.
pub const WORD_LEN: usize = 8;

/// A function was entered and its return is hooked.
pub const KIND_ENTER: u8 = 1;
/// A function was entered by a tail call: its return slot was hooked before.
pub const KIND_ENTER_TAIL: u8 = 2;
/// A hooked return was taken.
pub const KIND_LEAVE: u8 = 3;
/// First record of a ring's tenancy: which thread it is.
pub const KIND_THREAD: u8 = 4;
/// Bytes written to a file descriptor.
pub const KIND_OUTPUT: u8 = 5;
/// The thread ends.
pub const KIND_THREAD_EXIT: u8 = 6;
/// Records were lost just before this one.
pub const KIND_GAP: u8 = 7;
/// A function was entered whose return is not hooked.
pub const KIND_ENTER_NOLEAVE: u8 = 8;
/// The process forked.
pub const KIND_FORK: u8 = 9;
/// The process is about to run another program.
pub const KIND_EXEC: u8 = 10;

/// In word 1: bits of the record's kind.
pub const KIND_BITS: u32 = 4;
/// In word 1: position of the number of xmm words at the record's end.
pub const XMM_SHIFT: u32 = 4;
/// In word 1: position of what follows the kind and the number of xmm words (thread ids, reasons, descriptors).
pub const VALUE_SHIFT: u32 = 8;
/// In word 1 of enter records: bits of the function id's low part, from [`VALUE_SHIFT`] on.
pub const FUNCTION_LOW_BITS: u32 = 12;
/// In word 2 of enter records: position of the function id's high part, above the return address.
pub const FUNCTION_HIGH_SHIFT: u32 = 48;
/// Bits of a function id.
pub const FUNCTION_BITS: u32 = FUNCTION_LOW_BITS + u64::BITS - FUNCTION_HIGH_SHIFT;
/// In word 1 of enter and leave records: position of the slot without its low bits.
pub const SLOT_POSITION: u32 = VALUE_SHIFT + FUNCTION_LOW_BITS;
/// Slots are multiples of 8; word 1 keeps them without their low bits.
pub const SLOT_SHIFT: u32 = 3;
/// In word 1 of output and exec records: position of the length.
pub const LEN_SHIFT: u32 = 16;

/// Words of an enter record before its xmm words.
pub const ENTER_WORDS: usize = 9;
/// Words of a leave record before its xmm words.
pub const LEAVE_WORDS: usize = 4;
/// Words of a thread record.
pub const THREAD_WORDS: usize = 6;
/// Words of a thread exit record.
pub const THREAD_EXIT_WORDS: usize = 2;
/// Words of a gap record.
pub const GAP_WORDS: usize = 3;
/// Words of a fork record.
pub const FORK_WORDS: usize = 2;
/// Words of output and exec records before their bytes.
pub const BYTES_WORDS: usize = 2;
/// Most xmm words of an enter record.
pub const ENTER_MAX_XMM: usize = 8;
/// Xmm words of a leave record that has any.
pub const LEAVE_XMM: usize = 2;
/// Integer argument registers of an enter record: rdi rsi rdx rcx r8 r9.
pub const INT_ARGS: usize = 6;
/// Bytes of a thread's name in its record, NUL padded.
pub const THREAD_NAME_LEN: usize = 16;

const ENTER_LEN: usize = ENTER_WORDS * WORD_LEN;
const LEAVE_LEN: usize = LEAVE_WORDS * WORD_LEN;
const THREAD_LEN: usize = THREAD_WORDS * WORD_LEN;
const THREAD_EXIT_LEN: usize = THREAD_EXIT_WORDS * WORD_LEN;
const GAP_LEN: usize = GAP_WORDS * WORD_LEN;
const FORK_LEN: usize = FORK_WORDS * WORD_LEN;
const BYTES_LEN: usize = BYTES_WORDS * WORD_LEN;

const _: () = assert!(crate::control::MAX_FUNCTIONS == 1 << FUNCTION_BITS);

/// Why records were lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum GapReason {
    /// The thread's ring was full and the policy was `drop`.
    RingFull,
    /// There was no ring left for the thread.
    NoFreeRing,
    /// A block could not be read to its end.
    Torn,
    /// A code this release does not know.
    Other(u64),
}

impl GapReason {
    /// Returns the reason that `code` stands for in a gap record.
    pub fn from_code(code: u64) -> Self {
        match code {
            1 => Self::RingFull,
            2 => Self::NoFreeRing,
            3 => Self::Torn,
            other => Self::Other(other),
        }
    }

    /// Returns the code of this reason in a gap record.
    pub fn code(self) -> u64 {
        match self {
            Self::RingFull => 1,
            Self::NoFreeRing => 2,
            Self::Torn => 3,
            Self::Other(code) => code,
        }
    }
}

impl fmt::Display for GapReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RingFull => f.write_str("ring full"),
            Self::NoFreeRing => f.write_str("no free ring"),
            Self::Torn => f.write_str("torn"),
            Self::Other(code) => write!(f, "reason {code}"),
        }
    }
}

/// Which of the three enter records it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnterForm {
    /// A leave record at the same slot will come.
    Hooked,
    /// As `Hooked`, and that leave also ends the call this one replaced.
    Tail,
    /// No leave record will come.
    NoLeave,
}

/// An entered function. Words are read when asked for.
#[derive(Clone, Copy)]
pub struct Enter<'a> {
    fixed: &'a [u8; ENTER_LEN],
    xmm: &'a [u8],
    form: EnterForm,
}

impl Enter<'_> {
    /// Returns which of the three enter records it is.
    #[inline]
    pub fn form(&self) -> EnterForm {
        self.form
    }

    /// Returns the function's id, below 2^28.
    #[inline]
    pub fn function_id(&self) -> u32 {
        let low = (word(self.fixed, 1) >> VALUE_SHIFT) & ((1 << FUNCTION_LOW_BITS) - 1);
        let high = word(self.fixed, 2) >> FUNCTION_HIGH_SHIFT;
        (high << FUNCTION_LOW_BITS | low) as u32
    }

    /// Returns the address of the stack word that holds the return address.
    #[inline]
    pub fn slot(&self) -> u64 {
        slot_from_word1(word(self.fixed, 1))
    }

    /// Returns the address the caller goes on at.
    #[inline]
    pub fn return_addr(&self) -> u64 {
        word(self.fixed, 2) & ((1 << FUNCTION_HIGH_SHIFT) - 1)
    }

    /// Returns rdi, rsi, rdx, rcx, r8 and r9.
    #[inline]
    pub fn args(&self) -> [u64; INT_ARGS] {
        std::array::from_fn(|i| word(self.fixed, 3 + i))
    }

    /// Returns the low 64 bits of xmm`index`, or `None` when they were not captured.
    #[inline]
    pub fn xmm(&self, index: usize) -> Option<u64> {
        word_at(self.xmm, index)
    }

    /// Returns how many xmm registers were captured, from xmm0 on: 0 to 8.
    #[inline]
    pub fn xmm_count(&self) -> usize {
        self.xmm.len() / WORD_LEN
    }
}

impl fmt::Debug for Enter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let xmm: Vec<_> = (0..self.xmm_count()).map_while(|i| self.xmm(i)).collect();
        f.debug_struct("Enter")
            .field("form", &self.form)
            .field("function_id", &self.function_id())
            .field("slot", &self.slot())
            .field("return_addr", &self.return_addr())
            .field("args", &self.args())
            .field("xmm", &xmm)
            .finish()
    }
}

impl PartialEq for Enter<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.form == other.form
            && self.fixed[WORD_LEN + 1..] == other.fixed[WORD_LEN + 1..]
            && self.xmm == other.xmm
    }
}

/// A hooked return that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leave {
    /// Address of the stack word that held the return address.
    pub slot: u64,
    /// First integer return register.
    pub rax: u64,
    /// Second integer return register.
    pub rdx: u64,
    /// Low 64 bits of xmm0 and xmm1, where captured.
    pub xmm: Option<[u64; LEAVE_XMM]>,
}

/// What a record says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Record<'a> {
    /// A function was entered.
    Enter(Enter<'a>),
    /// A function returned.
    Leave(Leave),
    /// Which thread the ring belongs to from here on.
    Thread {
        /// Thread id.
        tid: u32,
        /// Lowest address of its stack, 0 when not known.
        stack_low: u64,
        /// Address just above its stack, 0 when not known.
        stack_high: u64,
        /// Its name, without the padding.
        name: &'a [u8],
    },
    /// Bytes written to a file descriptor.
    Output {
        /// Low 8 bits of the descriptor.
        fd: u8,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// The thread ends.
    ThreadExit {
        /// Thread id.
        tid: u32,
    },
    /// Records were lost just before this one.
    Gap {
        /// How many.
        lost: u64,
        /// Why.
        reason: GapReason,
    },
    /// The process forked.
    Fork {
        /// Process id of the child.
        child_pid: u32,
    },
    /// The process is about to run another program.
    Exec {
        /// Path of the program.
        path: &'a [u8],
    },
}

/// A record and where it stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decoded<'a> {
    /// What the time stamp counter showed; `Clock` turns it into time.
    pub ticks: u64,
    /// Where the record begins, in bytes from the block's start.
    pub offset: usize,
    /// What it says.
    pub record: Record<'a>,
}

/// Why the rest of a block cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireFault {
    /// The block ends inside a record.
    #[error("the block ends inside a record of kind {0}")]
    Torn(u8),
    /// The kind is not one of those known.
    #[error("unknown record kind {0}")]
    UnknownKind(u8),
    /// The number of xmm words is not one this kind can have.
    #[error("a record of kind {kind} cannot have {count} xmm words")]
    XmmCount {
        /// The record's kind.
        kind: u8,
        /// The number found.
        count: u8,
    },
}

/// The record that cannot be read: it and everything after it in the block are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at offset {offset} of the block: {fault}")]
pub struct WireError {
    /// Where the unreadable part begins, in bytes from the block's start.
    pub offset: usize,
    /// Why.
    pub fault: WireFault,
}

/// Iterates over the records of a block; after an error it ends.
///
/// ```
/// use store::wire::{self, Record, Records};
/// let mut block = Vec::new();
/// wire::push_fork(&mut block, 41, 4711);
/// let fork = Records::new(&block).next().unwrap().unwrap();
/// assert_eq!((fork.ticks, fork.record), (41, Record::Fork { child_pid: 4711 }));
/// ```
#[derive(Clone, Debug)]
pub struct Records<'a> {
    rest: &'a [u8],
    block_len: usize,
}

impl<'a> Records<'a> {
    /// Returns an iterator over the records of `block`.
    #[inline]
    pub fn new(block: &'a [u8]) -> Self {
        Self {
            rest: block,
            block_len: block.len(),
        }
    }

    /// Returns where the next record begins, in bytes from the block's start.
    #[inline]
    pub fn offset(&self) -> usize {
        self.block_len - self.rest.len()
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Decoded<'a>, WireError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let offset = self.offset();
        match decode(self.rest) {
            Ok((ticks, record, rest)) => {
                self.rest = rest;
                Some(Ok(Decoded {
                    ticks,
                    offset,
                    record,
                }))
            }
            Err(fault) => {
                self.block_len = offset;
                self.rest = &[];
                Some(Err(WireError { offset, fault }))
            }
        }
    }
}

impl std::iter::FusedIterator for Records<'_> {}

type Step<'a> = Result<(u64, Record<'a>, &'a [u8]), WireFault>;

/// Splits the first record off `bytes`, which is not empty.
#[inline]
fn decode(bytes: &[u8]) -> Step<'_> {
    let (Some(ticks), Some(word1)) = (word_at(bytes, 0), word_at(bytes, 1)) else {
        return Err(WireFault::Torn(0));
    };
    let kind = (word1 & ((1 << KIND_BITS) - 1)) as u8;
    let xmm_count = ((word1 >> XMM_SHIFT) & 0xf) as u8;
    let (record, rest) = match kind {
        KIND_ENTER => enter(bytes, kind, xmm_count, EnterForm::Hooked)?,
        KIND_LEAVE => leave(bytes, kind, xmm_count)?,
        KIND_ENTER_TAIL => enter(bytes, kind, xmm_count, EnterForm::Tail)?,
        KIND_ENTER_NOLEAVE => enter(bytes, kind, xmm_count, EnterForm::NoLeave)?,
        _ if xmm_count != 0 && (KIND_THREAD..=KIND_EXEC).contains(&kind) => {
            return Err(WireFault::XmmCount {
                kind,
                count: xmm_count,
            });
        }
        _ => rare(bytes, kind)?,
    };
    Ok((ticks, record, rest))
}

#[inline]
fn enter(
    bytes: &[u8],
    kind: u8,
    xmm_count: u8,
    form: EnterForm,
) -> Result<(Record<'_>, &[u8]), WireFault> {
    if usize::from(xmm_count) > ENTER_MAX_XMM {
        return Err(WireFault::XmmCount {
            kind,
            count: xmm_count,
        });
    }
    let (fixed, rest) = split::<ENTER_LEN>(bytes, kind)?;
    let (xmm, rest) = rest
        .split_at_checked(usize::from(xmm_count) * WORD_LEN)
        .ok_or(WireFault::Torn(kind))?;
    Ok((Record::Enter(Enter { fixed, xmm, form }), rest))
}

#[inline]
fn leave(bytes: &[u8], kind: u8, xmm_count: u8) -> Result<(Record<'_>, &[u8]), WireFault> {
    let (fixed, rest) = split::<LEAVE_LEN>(bytes, kind)?;
    let (xmm, rest) = match usize::from(xmm_count) {
        0 => (None, rest),
        LEAVE_XMM => {
            let (words, rest) = split::<{ LEAVE_XMM * WORD_LEN }>(rest, kind)?;
            (Some([word(words, 0), word(words, 1)]), rest)
        }
        _ => {
            return Err(WireFault::XmmCount {
                kind,
                count: xmm_count,
            });
        }
    };
    let leave = Leave {
        slot: slot_from_word1(word(fixed, 1)),
        rax: word(fixed, 2),
        rdx: word(fixed, 3),
        xmm,
    };
    Ok((Record::Leave(leave), rest))
}

/// Decodes the kinds that are not on the way of every call.
#[inline(never)]
fn rare(bytes: &[u8], kind: u8) -> Result<(Record<'_>, &[u8]), WireFault> {
    match kind {
        KIND_THREAD => {
            let (fixed, rest) = split::<THREAD_LEN>(bytes, kind)?;
            let name = &fixed[THREAD_LEN - THREAD_NAME_LEN..];
            let name_len = name.iter().position(|b| *b == 0).unwrap_or(name.len());
            let thread = Record::Thread {
                tid: value(word(fixed, 1)),
                stack_low: word(fixed, 2),
                stack_high: word(fixed, 3),
                name: &name[..name_len],
            };
            Ok((thread, rest))
        }
        KIND_OUTPUT => {
            let (fixed, rest) = split::<BYTES_LEN>(bytes, kind)?;
            let (bytes, rest) = padded(rest, word(fixed, 1) >> LEN_SHIFT, kind)?;
            let fd = (word(fixed, 1) >> VALUE_SHIFT) as u8;
            Ok((Record::Output { fd, bytes }, rest))
        }
        KIND_THREAD_EXIT => {
            let (fixed, rest) = split::<THREAD_EXIT_LEN>(bytes, kind)?;
            let tid = value(word(fixed, 1));
            Ok((Record::ThreadExit { tid }, rest))
        }
        KIND_GAP => {
            let (fixed, rest) = split::<GAP_LEN>(bytes, kind)?;
            let lost = word(fixed, 2);
            let reason = GapReason::from_code(word(fixed, 1) >> VALUE_SHIFT);
            Ok((Record::Gap { lost, reason }, rest))
        }
        KIND_FORK => {
            let (fixed, rest) = split::<FORK_LEN>(bytes, kind)?;
            let child_pid = value(word(fixed, 1));
            Ok((Record::Fork { child_pid }, rest))
        }
        KIND_EXEC => {
            let (fixed, rest) = split::<BYTES_LEN>(bytes, kind)?;
            let (path, rest) = padded(rest, word(fixed, 1) >> LEN_SHIFT, kind)?;
            Ok((Record::Exec { path }, rest))
        }
        _ => Err(WireFault::UnknownKind(kind)),
    }
}

/// Splits `len` bytes and their padding up to a whole word off `bytes`.
fn padded(bytes: &[u8], len: u64, kind: u8) -> Result<(&[u8], &[u8]), WireFault> {
    let torn = WireFault::Torn(kind);
    let len = usize::try_from(len).map_err(|_| torn)?;
    let padded_len = len.checked_next_multiple_of(WORD_LEN).ok_or(torn)?;
    let (padded, rest) = bytes.split_at_checked(padded_len).ok_or(torn)?;
    Ok((&padded[..len], rest))
}

#[inline]
fn split<const LEN: usize>(bytes: &[u8], kind: u8) -> Result<(&[u8; LEN], &[u8]), WireFault> {
    bytes
        .split_first_chunk::<LEN>()
        .ok_or(WireFault::Torn(kind))
}

#[inline]
fn slot_from_word1(word1: u64) -> u64 {
    (word1 >> SLOT_POSITION) << SLOT_SHIFT
}

/// Returns the thread or process id in word 1.
fn value(word1: u64) -> u32 {
    (word1 >> VALUE_SHIFT) as u32
}

/// Returns word `index` of a record whose length is known to cover it.
#[inline]
fn word<const LEN: usize>(bytes: &[u8; LEN], index: usize) -> u64 {
    word_at(bytes, index).expect("callers ask for words inside the record")
}

#[inline]
fn word_at(bytes: &[u8], index: usize) -> Option<u64> {
    let word = bytes.get(index * WORD_LEN..)?.first_chunk::<WORD_LEN>()?;
    Some(u64::from_le_bytes(*word))
}

#[cfg(test)]
mod tests;

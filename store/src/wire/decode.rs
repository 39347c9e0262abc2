//! Splits blocks into records.

use super::record::{
    Capture, ENTER_LEN, Enter, EnterForm, GapReason, Leave, Record, Syscall, SyscallEnd,
    are_sections, probe, slot_from_word1, value, word, word_at,
};
use super::{
    BYTES_WORDS, CONDITION_ERROR_WORDS, ENTER_MAX_XMM, FORK_WORDS, FRAMES_LEFT, FRAMES_LEFT_WORDS,
    GAP_WORDS, INT_ARGS, KIND_BITS, KIND_CAPTURE, KIND_CONDITION_ERROR, KIND_ENTER,
    KIND_ENTER_NOLEAVE, KIND_ENTER_ONLY, KIND_ENTER_TAIL, KIND_EXEC, KIND_FORK, KIND_GAP,
    KIND_LEAVE, KIND_LOGPOINT, KIND_OUTPUT, KIND_SYSCALL, KIND_THREAD, KIND_THREAD_EXIT,
    KIND_THREAD_NAME, LEAVE_WORDS, LEAVE_XMM, LEN_SHIFT, LOG_COUNT_SHIFT, LOG_MAX_VALUES,
    LOG_WORDS, RING_WAIT, RING_WAIT_WORDS, STACK_SWITCH, STACK_SWITCH_WORDS, SYSCALL_BEGINS,
    SYSCALL_END_WORDS, SYSCALL_ENDS, SYSCALL_WORDS, THREAD_EXIT_WORDS, THREAD_NAME_LEN,
    THREAD_NAME_WORDS, THREAD_WORDS, VALUE_SHIFT, WORD_LEN, XMM_SHIFT,
};

const LEAVE_LEN: usize = LEAVE_WORDS * WORD_LEN;
const THREAD_LEN: usize = THREAD_WORDS * WORD_LEN;
const THREAD_EXIT_LEN: usize = THREAD_EXIT_WORDS * WORD_LEN;
const RENAMED_LEN: usize = THREAD_NAME_WORDS * WORD_LEN;
const GAP_LEN: usize = GAP_WORDS * WORD_LEN;
const FORK_LEN: usize = FORK_WORDS * WORD_LEN;
const LOG_LEN: usize = LOG_WORDS * WORD_LEN;
const CONDITION_ERROR_LEN: usize = CONDITION_ERROR_WORDS * WORD_LEN;
const BYTES_LEN: usize = BYTES_WORDS * WORD_LEN;

/// A record and its place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decoded<'a> {
    /// The time stamp counter; `Clock` turns it into time.
    pub ticks: u64,
    /// Where the record begins, in bytes from the block's start.
    pub offset: usize,
    /// The record.
    pub record: Record<'a>,
}

/// Why the rest of a block cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireFault {
    /// The block ends inside a record.
    #[error("the block ends inside a record of kind {0}")]
    Torn(u8),
    /// The kind is unknown.
    #[error("unknown record kind {0}")]
    UnknownKind(u8),
    /// This kind cannot have that number of xmm words.
    #[error("a record of kind {kind} cannot have {count} xmm words")]
    XmmCount {
        /// The record's kind.
        kind: u8,
        /// The number found.
        count: u8,
    },
    /// A logpoint cannot have that number of words.
    #[error("a logpoint record cannot have {0} words of values")]
    LogCount(u64),
    /// The sections of a capture do not fill it exactly.
    #[error("the sections of a capture record do not fit into it")]
    Capture,
    /// What a system call's record holds does not fill it exactly.
    #[error("what a system call's record holds does not fit into it")]
    Syscall,
}

/// The unreadable record: it and everything after it in the block are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at offset {offset} of the block: {fault}")]
pub struct WireError {
    /// Where the unreadable part begins, in bytes from the block's start.
    pub offset: usize,
    /// The reason.
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
        KIND_ENTER_ONLY => enter(bytes, kind, xmm_count, EnterForm::Only)?,
        _ if xmm_count != 0 && (KIND_THREAD..=KIND_THREAD_NAME).contains(&kind) => {
            return Err(WireFault::XmmCount {
                kind,
                count: xmm_count,
            });
        }
        KIND_SYSCALL => syscall(bytes, xmm_count)?,
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

/// Decodes one end of a system call, or what else has its kind.
#[inline(never)]
fn syscall(bytes: &[u8], which: u8) -> Result<(Record<'_>, &[u8]), WireFault> {
    const HEAD: usize = (SYSCALL_WORDS - BYTES_WORDS) * WORD_LEN;
    const END_HEAD: usize = (SYSCALL_END_WORDS - BYTES_WORDS) * WORD_LEN;
    if which == FRAMES_LEFT {
        let (fixed, rest) = split::<{ FRAMES_LEFT_WORDS * WORD_LEN }>(bytes, KIND_SYSCALL)?;
        let stack = word(fixed, 2);
        return Ok((Record::FramesLeft { stack }, rest));
    }
    if which == RING_WAIT {
        let (fixed, rest) = split::<{ RING_WAIT_WORDS * WORD_LEN }>(bytes, KIND_SYSCALL)?;
        let since = word(fixed, 2);
        return Ok((Record::RingWait { since }, rest));
    }
    if which == STACK_SWITCH {
        let (fixed, rest) = split::<{ STACK_SWITCH_WORDS * WORD_LEN }>(bytes, KIND_SYSCALL)?;
        let record = Record::StackSwitch {
            from: word(fixed, 2),
            low: word(fixed, 3),
            end: word(fixed, 4),
        };
        return Ok((record, rest));
    }
    if !matches!(which, SYSCALL_BEGINS | SYSCALL_ENDS) {
        return Err(WireFault::UnknownKind(KIND_SYSCALL));
    }
    let (fixed, rest) = split::<BYTES_LEN>(bytes, KIND_SYSCALL)?;
    let (payload, rest) = padded(rest, word(fixed, 1) >> LEN_SHIFT, KIND_SYSCALL)?;
    let record = match which {
        SYSCALL_BEGINS => payload.split_first_chunk::<HEAD>().map(|(head, memory)| {
            let syscall = Syscall {
                number: word(head, 0),
                arguments: &head[WORD_LEN..(1 + INT_ARGS) * WORD_LEN],
                addr: word(head, 1 + INT_ARGS),
                stack: word(head, 2 + INT_ARGS),
                memory,
            };
            (Record::Syscall(syscall), memory)
        }),
        _ => payload
            .split_first_chunk::<END_HEAD>()
            .map(|(head, memory)| {
                let end = SyscallEnd {
                    result: word(head, 0),
                    stack: word(head, 1),
                    memory,
                };
                (Record::SyscallEnd(end), memory)
            }),
    };
    match record {
        Some((record, memory)) if are_sections(memory) => Ok((record, rest)),
        _ => Err(WireFault::Syscall),
    }
}

fn without_padding(name: &[u8]) -> &[u8] {
    let len = name.iter().position(|b| *b == 0).unwrap_or(name.len());
    &name[..len]
}

/// Decodes the rarer kinds.
#[inline(never)]
fn rare(bytes: &[u8], kind: u8) -> Result<(Record<'_>, &[u8]), WireFault> {
    match kind {
        KIND_THREAD => {
            let (fixed, rest) = split::<THREAD_LEN>(bytes, kind)?;
            let name = without_padding(&fixed[THREAD_LEN - THREAD_NAME_LEN..]);
            let thread = Record::Thread {
                tid: value(word(fixed, 1)),
                stack_low: word(fixed, 2),
                stack_high: word(fixed, 3),
                name,
            };
            Ok((thread, rest))
        }
        KIND_THREAD_NAME => {
            let (fixed, rest) = split::<RENAMED_LEN>(bytes, kind)?;
            let tid = value(word(fixed, 1));
            let name = without_padding(&fixed[RENAMED_LEN - THREAD_NAME_LEN..]);
            Ok((Record::ThreadName { tid, name }, rest))
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
            let record = match (word(fixed, 1) >> VALUE_SHIFT) as u8 {
                0 => Record::Exec { path },
                error => Record::ExecFailed { error },
            };
            Ok((record, rest))
        }
        KIND_LOGPOINT => {
            let (fixed, rest) = split::<LOG_LEN>(bytes, kind)?;
            let count = word(fixed, 1) >> LOG_COUNT_SHIFT;
            if count > LOG_MAX_VALUES as u64 {
                return Err(WireFault::LogCount(count));
            }
            let (words, rest) = padded(rest, count * WORD_LEN as u64, kind)?;
            let probe = probe(word(fixed, 1));
            Ok((Record::Logpoint { probe, words }, rest))
        }
        KIND_CONDITION_ERROR => {
            let (fixed, rest) = split::<CONDITION_ERROR_LEN>(bytes, kind)?;
            let (probe, addr) = (probe(word(fixed, 1)), word(fixed, 2));
            Ok((Record::ConditionError { probe, addr }, rest))
        }
        KIND_CAPTURE => {
            let (fixed, rest) = split::<BYTES_LEN>(bytes, kind)?;
            let (payload, rest) = padded(rest, word(fixed, 1) >> LEN_SHIFT, kind)?;
            let flags = u64::from((word(fixed, 1) >> VALUE_SHIFT) as u8);
            let capture = Capture::new(flags, payload).ok_or(WireFault::Capture)?;
            Ok((Record::Capture(capture), rest))
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

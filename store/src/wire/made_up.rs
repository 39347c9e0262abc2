//! Encodes the records that only a recorded program writes, for made-up logs and for the tests of the decoder.

use super::encode::{capture_payload, push, push_value, tag};
use super::{
    CAPTURE_REGISTER_WORDS, GapReason, KIND_CAPTURE, KIND_CONDITION_ERROR, KIND_EXEC, KIND_GAP,
    KIND_LOGPOINT, KIND_SYSCALL, LEN_SHIFT, LOG_COUNT_SHIFT, LOG_MAX_VALUES, PROBE_BITS, RING_WAIT,
    Section, VALUE_SHIFT,
};

/// Appends a gap record.
pub fn push_gap(block: &mut Vec<u8>, ticks: u64, lost: u64, reason: GapReason) {
    push_value(block, ticks, KIND_GAP, reason.code());
    push(block, lost);
}

/// Appends an exec record that says that the last one failed; `error` is not 0.
pub fn push_exec_failed(block: &mut Vec<u8>, ticks: u64, error: u8) {
    push_value(block, ticks, KIND_EXEC, error.into());
}

/// Appends a logpoint record.
///
/// # Panics
/// When there are more than 64 words or the probe's number has more than 28 bits.
pub fn push_logpoint(block: &mut Vec<u8>, ticks: u64, probe: u32, words: &[u64]) {
    assert!(words.len() <= LOG_MAX_VALUES, "at most 64 words");
    assert!(probe >> PROBE_BITS == 0, "28 bits");
    let count = (words.len() as u64) << LOG_COUNT_SHIFT;
    push(block, ticks);
    push(
        block,
        count | u64::from(probe) << VALUE_SHIFT | tag(KIND_LOGPOINT, 0),
    );
    words.iter().for_each(|word| push(block, *word));
}

/// Appends a capture record.
pub fn push_capture(
    block: &mut Vec<u8>,
    ticks: u64,
    registers: Option<[u64; CAPTURE_REGISTER_WORDS]>,
    sections: &[Section<'_>],
) {
    let (flags, payload) = capture_payload(registers, sections);
    push(block, ticks);
    let len = (payload.len() as u64) << LEN_SHIFT;
    push(block, len | flags << VALUE_SHIFT | tag(KIND_CAPTURE, 0));
    block.extend_from_slice(&payload);
}

/// Appends a condition error record.
///
/// # Panics
/// When the probe's number has more than 28 bits.
pub fn push_condition_error(block: &mut Vec<u8>, ticks: u64, probe: u32, addr: u64) {
    assert!(probe >> PROBE_BITS == 0, "28 bits");
    push_value(block, ticks, KIND_CONDITION_ERROR, probe.into());
    push(block, addr);
}

/// Appends the record of a wait for room in the ring that began at `since`, in ticks.
pub fn push_ring_wait(block: &mut Vec<u8>, ticks: u64, since: u64) {
    push(block, ticks);
    push(block, tag(KIND_SYSCALL, RING_WAIT.into()));
    push(block, since);
}

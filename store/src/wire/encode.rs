//! Encodes records as the target does, for synthetic logs and for the tests of the decoder.

use super::{
    ENTER_MAX_XMM, EnterForm, FUNCTION_BITS, GapReason, INT_ARGS, KIND_ENTER, KIND_ENTER_NOLEAVE,
    KIND_ENTER_TAIL, KIND_EXEC, KIND_FORK, KIND_GAP, KIND_LEAVE, KIND_OUTPUT, KIND_THREAD,
    KIND_THREAD_EXIT, LEAVE_XMM, Leave, OUTPUT_LEN_SHIFT, SLOT_SHIFT, THREAD_NAME_LEN, TICKS_SHIFT,
    WORD_LEN, XMM_SHIFT,
};

/// The fields of an enter record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnterFields<'a> {
    /// Which of the three enter records.
    pub form: EnterForm,
    /// Function id, below 2^20.
    pub function_id: u32,
    /// Address of the return address, a multiple of 8 below 2^47.
    pub slot: u64,
    /// Where the caller goes on.
    pub return_addr: u64,
    /// rdi, rsi, rdx, rcx, r8 and r9.
    pub args: [u64; INT_ARGS],
    /// Low 64 bits of xmm0 and following, at most 8.
    pub xmm: &'a [u64],
}

/// Appends an enter record.
///
/// # Panics
/// When a field is outside the range it states.
pub fn push_enter(block: &mut Vec<u8>, ticks: u64, fields: &EnterFields<'_>) {
    let kind = match fields.form {
        EnterForm::Hooked => KIND_ENTER,
        EnterForm::Tail => KIND_ENTER_TAIL,
        EnterForm::NoLeave => KIND_ENTER_NOLEAVE,
    };
    assert!(fields.xmm.len() <= ENTER_MAX_XMM, "at most 8 xmm words");
    assert!(fields.function_id >> FUNCTION_BITS == 0, "20 bits");
    push_word0(block, ticks, kind, fields.xmm.len());
    push(block, word1(fields.slot) | u64::from(fields.function_id));
    push(block, fields.return_addr);
    fields.args.iter().for_each(|arg| push(block, *arg));
    fields.xmm.iter().for_each(|xmm| push(block, *xmm));
}

/// Appends a leave record.
///
/// # Panics
/// When the slot is not a multiple of 8 below 2^47.
pub fn push_leave(block: &mut Vec<u8>, ticks: u64, leave: &Leave) {
    let xmm_count = if leave.xmm.is_some() { LEAVE_XMM } else { 0 };
    push_word0(block, ticks, KIND_LEAVE, xmm_count);
    push(block, word1(leave.slot));
    push(block, leave.rax);
    push(block, leave.rdx);
    leave.xmm.iter().flatten().for_each(|xmm| push(block, *xmm));
}

/// Appends a thread record; a name of more than 16 bytes is cut.
pub fn push_thread(block: &mut Vec<u8>, ticks: u64, tid: u32, stack: (u64, u64), name: &[u8]) {
    push_word0(block, ticks, KIND_THREAD, 0);
    push(block, u64::from(tid));
    push(block, stack.0);
    push(block, stack.1);
    let mut padded = [0; THREAD_NAME_LEN];
    let len = name.len().min(THREAD_NAME_LEN);
    padded[..len].copy_from_slice(&name[..len]);
    block.extend_from_slice(&padded);
}

/// Appends an output record.
pub fn push_output(block: &mut Vec<u8>, ticks: u64, fd: u8, bytes: &[u8]) {
    push_word0(block, ticks, KIND_OUTPUT, 0);
    push(
        block,
        u64::from(fd) | (bytes.len() as u64) << OUTPUT_LEN_SHIFT,
    );
    push_padded(block, bytes);
}

/// Appends a thread exit record.
pub fn push_thread_exit(block: &mut Vec<u8>, ticks: u64, tid: u32) {
    push_word0(block, ticks, KIND_THREAD_EXIT, 0);
    push(block, u64::from(tid));
}

/// Appends a gap record.
pub fn push_gap(block: &mut Vec<u8>, ticks: u64, lost: u64, reason: GapReason) {
    push_word0(block, ticks, KIND_GAP, 0);
    push(block, lost);
    push(block, reason.code());
}

/// Appends a fork record.
pub fn push_fork(block: &mut Vec<u8>, ticks: u64, child_pid: u32) {
    push_word0(block, ticks, KIND_FORK, 0);
    push(block, u64::from(child_pid));
}

/// Appends an exec record.
pub fn push_exec(block: &mut Vec<u8>, ticks: u64, path: &[u8]) {
    push_word0(block, ticks, KIND_EXEC, 0);
    push(block, path.len() as u64);
    push_padded(block, path);
}

fn push_word0(block: &mut Vec<u8>, ticks: u64, kind: u8, xmm_count: usize) {
    assert!(ticks <= crate::clock::MAX_TICKS, "ticks have 56 bits");
    push(
        block,
        ticks << TICKS_SHIFT | (xmm_count as u64) << XMM_SHIFT | u64::from(kind),
    );
}

fn word1(slot: u64) -> u64 {
    assert!(slot.is_multiple_of(8) && slot >> 47 == 0, "slot {slot:#x}");
    (slot >> SLOT_SHIFT) << FUNCTION_BITS
}

fn push(block: &mut Vec<u8>, word: u64) {
    block.extend_from_slice(&word.to_le_bytes());
}

fn push_padded(block: &mut Vec<u8>, bytes: &[u8]) {
    block.extend_from_slice(bytes);
    let padding = bytes.len().next_multiple_of(WORD_LEN) - bytes.len();
    block.extend_from_slice(&[0; WORD_LEN][..padding]);
}

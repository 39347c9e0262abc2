//! Encodes records as the target does, for recordings that are derived from other ones.

use std::ops::Range;

use super::{
    CAPTURE_REGISTER_WORDS, CAPTURE_REGISTERS, ENTER_MAX_XMM, EnterForm, FRAMES_LEFT,
    FUNCTION_BITS, FUNCTION_HIGH_SHIFT, FUNCTION_LOW_BITS, INT_ARGS, KIND_ENTER,
    KIND_ENTER_NOLEAVE, KIND_ENTER_ONLY, KIND_ENTER_TAIL, KIND_EXEC, KIND_FORK, KIND_LEAVE,
    KIND_OUTPUT, KIND_SYSCALL, KIND_THREAD, KIND_THREAD_EXIT, LEAVE_XMM, LEN_SHIFT, Leave,
    SLOT_POSITION, SLOT_SHIFT, STACK_SWITCH, SYSCALL_BEGINS, SYSCALL_ENDS, Section,
    THREAD_NAME_LEN, VALUE_SHIFT, WORD_LEN, XMM_SHIFT,
};

/// The fields of an enter record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnterFields<'a> {
    /// The kind of enter record.
    pub form: EnterForm,
    /// Function id, below 2^28.
    pub function_id: u32,
    /// Address of the return address, a multiple of 8 below 2^47.
    pub slot: u64,
    /// Return address: where the caller continues.
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
        EnterForm::Only => KIND_ENTER_ONLY,
    };
    assert!(fields.xmm.len() <= ENTER_MAX_XMM, "at most 8 xmm words");
    assert!(fields.function_id >> FUNCTION_BITS == 0, "28 bits");
    assert!(fields.return_addr >> FUNCTION_HIGH_SHIFT == 0, "48 bits");
    let id = u64::from(fields.function_id);
    let low = (id & ((1 << FUNCTION_LOW_BITS) - 1)) << VALUE_SHIFT;
    push(block, ticks);
    push(
        block,
        slot_bits(fields.slot) | low | tag(kind, fields.xmm.len()),
    );
    push(
        block,
        id >> FUNCTION_LOW_BITS << FUNCTION_HIGH_SHIFT | fields.return_addr,
    );
    fields.args.iter().for_each(|arg| push(block, *arg));
    fields.xmm.iter().for_each(|xmm| push(block, *xmm));
}

/// Appends a leave record.
///
/// # Panics
/// When the slot is not a multiple of 8 below 2^47.
pub fn push_leave(block: &mut Vec<u8>, ticks: u64, leave: &Leave) {
    let xmm_count = if leave.xmm.is_some() { LEAVE_XMM } else { 0 };
    push(block, ticks);
    push(block, slot_bits(leave.slot) | tag(KIND_LEAVE, xmm_count));
    push(block, leave.rax);
    push(block, leave.rdx);
    leave.xmm.iter().flatten().for_each(|xmm| push(block, *xmm));
}

/// Appends a thread record; a name of more than 16 bytes is cut.
pub fn push_thread(block: &mut Vec<u8>, ticks: u64, tid: u32, stack: (u64, u64), name: &[u8]) {
    push_value(block, ticks, KIND_THREAD, tid.into());
    push(block, stack.0);
    push(block, stack.1);
    push_name(block, name);
}

fn push_name(block: &mut Vec<u8>, name: &[u8]) {
    let mut padded = [0; THREAD_NAME_LEN];
    let len = name.len().min(THREAD_NAME_LEN);
    padded[..len].copy_from_slice(&name[..len]);
    block.extend_from_slice(&padded);
}

/// Appends an output record.
pub fn push_output(block: &mut Vec<u8>, ticks: u64, fd: u8, bytes: &[u8]) {
    push(block, ticks);
    let len = (bytes.len() as u64) << LEN_SHIFT;
    push(
        block,
        len | u64::from(fd) << VALUE_SHIFT | tag(KIND_OUTPUT, 0),
    );
    push_padded(block, bytes);
}

/// Appends a thread exit record.
pub fn push_thread_exit(block: &mut Vec<u8>, ticks: u64, tid: u32) {
    push_value(block, ticks, KIND_THREAD_EXIT, tid.into());
}

/// Appends a fork record.
pub fn push_fork(block: &mut Vec<u8>, ticks: u64, child_pid: u32) {
    push_value(block, ticks, KIND_FORK, child_pid.into());
}

/// Appends an exec record.
pub fn push_exec(block: &mut Vec<u8>, ticks: u64, path: &[u8]) {
    push(block, ticks);
    push(block, (path.len() as u64) << LEN_SHIFT | tag(KIND_EXEC, 0));
    push_padded(block, path);
}

/// Returns the flags of a capture and the words after its head.
pub(crate) fn capture_payload(
    registers: Option<[u64; CAPTURE_REGISTER_WORDS]>,
    sections: &[Section<'_>],
) -> (u64, Vec<u8>) {
    let mut payload = Vec::new();
    registers
        .iter()
        .flatten()
        .for_each(|word| push(&mut payload, *word));
    for section in sections {
        push(&mut payload, section.addr);
        push(&mut payload, section.bytes.len() as u64);
        push_padded(&mut payload, section.bytes);
    }
    (registers.map_or(0, |_| CAPTURE_REGISTERS), payload)
}

/// Appends the record of a system call that begins: its number, its arguments, where it is, the stack pointer.
pub fn push_syscall(
    block: &mut Vec<u8>,
    ticks: u64,
    (number, args): (u64, [u64; INT_ARGS]),
    (addr, stack): (u64, u64),
    memory: &[Section<'_>],
) {
    let mut words = vec![number];
    words.extend(args);
    words.extend([addr, stack]);
    push_syscall_words(block, ticks, SYSCALL_BEGINS, &words, memory);
}

/// Appends the record of a system call that returns at the stack pointer `stack`.
pub fn push_syscall_end(
    block: &mut Vec<u8>,
    ticks: u64,
    result: u64,
    stack: u64,
    memory: &[Section<'_>],
) {
    push_syscall_words(block, ticks, SYSCALL_ENDS, &[result, stack], memory);
}

/// Appends the record of frames that the unwinder or `longjmp` left for the one at `stack`.
pub fn push_frames_left(block: &mut Vec<u8>, ticks: u64, stack: u64) {
    push(block, ticks);
    push(block, tag(KIND_SYSCALL, FRAMES_LEFT.into()));
    push(block, stack);
}

/// Appends the record of a change from the stack with the stack pointer `from` to the one at `to`, or to an unknown one.
pub fn push_stack_switch(block: &mut Vec<u8>, ticks: u64, from: u64, to: Option<Range<u64>>) {
    let to = to.unwrap_or(0..0);
    let head = [ticks, tag(KIND_SYSCALL, STACK_SWITCH.into())];
    let words = head.into_iter().chain([from, to.start, to.end]);
    words.for_each(|word| push(block, word));
}

fn push_syscall_words(
    block: &mut Vec<u8>,
    ticks: u64,
    which: u8,
    words: &[u64],
    memory: &[Section<'_>],
) {
    let (_, sections) = capture_payload(None, memory);
    let len = (words.len() * WORD_LEN + sections.len()) as u64;
    push(block, ticks);
    push(block, len << LEN_SHIFT | tag(KIND_SYSCALL, which.into()));
    words.iter().for_each(|word| push(block, *word));
    block.extend_from_slice(&sections);
}

pub(super) fn push_value(block: &mut Vec<u8>, ticks: u64, kind: u8, value: u64) {
    push(block, ticks);
    push(block, value << VALUE_SHIFT | tag(kind, 0));
}

/// The low byte of word 1.
pub(super) fn tag(kind: u8, xmm_count: usize) -> u64 {
    (xmm_count as u64) << XMM_SHIFT | u64::from(kind)
}

fn slot_bits(slot: u64) -> u64 {
    assert!(slot.is_multiple_of(8) && slot >> 47 == 0, "slot {slot:#x}");
    (slot >> SLOT_SHIFT) << SLOT_POSITION
}

pub(super) fn push(block: &mut Vec<u8>, word: u64) {
    block.extend_from_slice(&word.to_le_bytes());
}

fn push_padded(block: &mut Vec<u8>, bytes: &[u8]) {
    block.extend_from_slice(bytes);
    let padding = bytes.len().next_multiple_of(WORD_LEN) - bytes.len();
    block.extend_from_slice(&[0; WORD_LEN][..padding]);
}

//! The records that the target writes: their layout, a decoder that no bytes make panic, and an encoder.
//!
//! `docs/wire.md` is the norm. A block is a whole number of records. The rest of a block from the first unreadable
//! record on is lost, and the caller turns it into a gap.

mod decode;
mod encode;
#[cfg(any(test, feature = "testing"))]
mod made_up;
mod record;

pub use decode::{Decoded, Records, WireError, WireFault};
pub(crate) use encode::capture_payload;
pub use encode::{
    EnterFields, push_enter, push_exec, push_fork, push_frames_left, push_leave, push_output,
    push_stack_switch, push_syscall, push_syscall_end, push_thread, push_thread_exit,
};
#[cfg(any(test, feature = "testing"))]
pub use made_up::{
    push_capture, push_condition_error, push_exec_failed, push_gap, push_logpoint, push_ring_wait,
};
pub use record::{
    Capture, Enter, EnterForm, GapReason, Leave, Record, Section, Syscall, SyscallEnd, sections,
    thread_pointer,
};

/// Length of a word in bytes; every record is a whole number of words.
pub const WORD_LEN: usize = 8;

/// A function was entered and its return is hooked.
pub const KIND_ENTER: u8 = 1;
/// A function was entered by a tail call: its return slot was hooked before.
pub const KIND_ENTER_TAIL: u8 = 2;
/// A hooked return was taken.
pub const KIND_LEAVE: u8 = 3;
/// First record of a ring's tenancy: names its thread.
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
/// In exec records of failures, in place of an errno.
pub const UNKNOWN_ERROR: u8 = 255;
/// A logpoint was passed: its format makes a message of the words.
pub const KIND_LOGPOINT: u8 = 11;
/// A condition of a live probe could not be evaluated.
pub const KIND_CONDITION_ERROR: u8 = 12;

/// Captured data of the enter or leave right before it in the same ring.
pub const KIND_CAPTURE: u8 = 13;
/// The thread's name changed.
pub const KIND_THREAD_NAME: u8 = 14;

/// A function was entered; its return and its caller are unknown.
pub const KIND_ENTER_ONLY: u8 = 15;

/// A system call, with [`SYSCALL_BEGINS`] or [`SYSCALL_ENDS`] in place of the number of xmm words. Zeroed memory has this
/// kind and 0 there, and is not a record.
pub const KIND_SYSCALL: u8 = 0;
/// A system call begins.
pub const SYSCALL_BEGINS: u8 = 1;
/// A system call returns.
pub const SYSCALL_ENDS: u8 = 2;
/// In the same place: the unwinder or `longjmp` has left frames.
pub const FRAMES_LEFT: u8 = 3;
/// In the same place: the thread has waited for room in its ring.
pub const RING_WAIT: u8 = 4;
/// In the same place: the thread continues on another stack.
pub const STACK_SWITCH: u8 = 5;

/// In word 1: bits of the record's kind.
pub const KIND_BITS: u32 = 4;
/// In word 1: position of the number of xmm words at the record's end.
pub const XMM_SHIFT: u32 = 4;
/// In word 1: position of the field after the kind and the number of xmm words (thread ids, reasons, descriptors).
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
/// In word 1 of output, exec and capture records: position of the length.
pub const LEN_SHIFT: u32 = 16;

/// In word 1 of logpoint records: position of the number of words that follow.
pub const LOG_COUNT_SHIFT: u32 = VALUE_SHIFT + PROBE_BITS;
/// Bits of a live probe's number.
pub const PROBE_BITS: u32 = 28;

/// Words of an enter record before its xmm words.
pub const ENTER_WORDS: usize = 9;
/// Words of a leave record before its xmm words.
pub const LEAVE_WORDS: usize = 4;
/// Words of a thread record.
pub const THREAD_WORDS: usize = 6;
/// Words of a thread exit record.
pub const THREAD_EXIT_WORDS: usize = 2;
/// Length of a thread name record.
pub const THREAD_NAME_WORDS: usize = 4;
/// Words of a gap record.
pub const GAP_WORDS: usize = 3;
/// Words of a fork record.
pub const FORK_WORDS: usize = 2;
/// Words of output and exec records before their bytes.
pub const BYTES_WORDS: usize = 2;
/// Words of a logpoint record before its values.
pub const LOG_WORDS: usize = 2;
/// Words of a condition error record.
pub const CONDITION_ERROR_WORDS: usize = 3;
/// Words of a system call's record before its sections: number, arguments, place, stack pointer.
pub const SYSCALL_WORDS: usize = BYTES_WORDS + 3 + INT_ARGS;
/// The same of its end: result, stack pointer.
pub const SYSCALL_END_WORDS: usize = BYTES_WORDS + 2;
/// Words of the record of frames that were left.
pub const FRAMES_LEFT_WORDS: usize = 3;
/// Words of the record of a wait for room.
pub const RING_WAIT_WORDS: usize = 3;
/// Words of the record of a change to another stack.
pub const STACK_SWITCH_WORDS: usize = 5;
/// Most words of values in a logpoint record.
pub const LOG_MAX_VALUES: usize = 64;
/// In word 1 of capture records, from [`VALUE_SHIFT`] on: the payload begins with registers.
pub const CAPTURE_REGISTERS: u64 = 1;
/// General registers of a capture record, if it has any: rax rdx rcx rbx rsi rdi rbp rsp r8 to r15, in DWARF's order.
pub const CAPTURE_REGISTER_WORDS: usize = 16;
/// Words of a section in a capture record before its bytes: the address and the length.
pub const SECTION_WORDS: usize = 2;
/// In the length of a section: its address is the thread pointer, fs_base.
pub const SECTION_THREAD: u64 = 1 << 63;
/// Most xmm words of an enter record.
pub const ENTER_MAX_XMM: usize = 8;
/// Xmm words of a leave record, if it has any.
pub const LEAVE_XMM: usize = 2;
/// Integer argument registers of an enter record: rdi rsi rdx rcx r8 r9.
pub const INT_ARGS: usize = 6;
/// Bytes of a thread's name in its record, NUL padded.
pub const THREAD_NAME_LEN: usize = 16;

const _: () = assert!(crate::control::MAX_FUNCTIONS == 1 << FUNCTION_BITS);

#[cfg(test)]
mod tests;

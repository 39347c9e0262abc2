//! The types of the records; accessors read the words of an enter record on demand.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{
    CAPTURE_REGISTER_WORDS, CAPTURE_REGISTERS, ENTER_WORDS, FUNCTION_HIGH_SHIFT, FUNCTION_LOW_BITS,
    INT_ARGS, LEAVE_XMM, PROBE_BITS, SECTION_THREAD, SECTION_WORDS, SLOT_POSITION, SLOT_SHIFT,
    VALUE_SHIFT, WORD_LEN,
};

pub(super) const ENTER_LEN: usize = ENTER_WORDS * WORD_LEN;

/// Why records were lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum GapReason {
    /// The thread's ring was full and the policy was `drop`.
    RingFull,
    /// There was no ring left for the thread.
    NoFreeRing,
    /// A block could not be read to its end.
    Torn,
    /// The program has forbidden the thread a feature that recording needs; the number of losses is unknown.
    Forbidden,
    /// A due copy of memory was not made; the number counts copies.
    NotCopied,
    /// A child process without thread-local storage of its own writes into the thread's ring; the number of losses is
    /// unknown.
    Shared,
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
            4 => Self::Forbidden,
            5 => Self::NotCopied,
            6 => Self::Shared,
            other => Self::Other(other),
        }
    }

    /// Returns the code of this reason in a gap record.
    pub fn code(self) -> u64 {
        match self {
            Self::RingFull => 1,
            Self::NoFreeRing => 2,
            Self::Torn => 3,
            Self::Forbidden => 4,
            Self::NotCopied => 5,
            Self::Shared => 6,
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
            Self::Forbidden => f.write_str("time stamp counter forbidden"),
            Self::NotCopied => f.write_str("memory not copied"),
            Self::Shared => f.write_str("ring shared with a child"),
            Self::Other(code) => write!(f, "reason {code}"),
        }
    }
}

/// The kind of an enter record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnterForm {
    /// A leave record at the same slot follows.
    Hooked,
    /// As `Hooked`, and that leave also ends the call this one replaced.
    Tail,
    /// No leave record follows.
    NoLeave,
    /// As `NoLeave`; and slots do not show how calls nest, since stacks move and threads change them (Go).
    Only,
}

/// An entered function. Its accessors read the words on demand.
#[derive(Clone, Copy)]
pub struct Enter<'a> {
    pub(super) fixed: &'a [u8; ENTER_LEN],
    pub(super) xmm: &'a [u8],
    pub(super) form: EnterForm,
}

impl Enter<'_> {
    /// Returns the kind of enter record.
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

    /// Returns the return address.
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

    /// Returns the number of captured xmm registers, from xmm0 on: 0 to 8.
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

/// Captured data of an enter or leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capture<'a> {
    registers: Option<&'a [u8; CAPTURE_REGISTER_WORDS * WORD_LEN]>,
    sections: &'a [u8],
}

/// Memory in a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section<'a> {
    /// Address of its first byte.
    pub addr: u64,
    /// The captured bytes.
    pub bytes: &'a [u8],
}

impl<'a> Capture<'a> {
    /// Decodes `payload`; `None` when it is incomplete.
    pub(crate) fn new(flags: u64, payload: &'a [u8]) -> Option<Self> {
        let (registers, sections) = match flags & CAPTURE_REGISTERS {
            0 => (None, payload),
            _ => {
                let (registers, sections) = payload.split_first_chunk()?;
                (Some(registers), sections)
            }
        };
        are_sections(sections).then_some(Self {
            registers,
            sections,
        })
    }

    /// Returns the general registers by their DWARF numbers, where they were captured.
    pub fn registers(&self) -> Option<[u64; CAPTURE_REGISTER_WORDS]> {
        let words = self.registers?;
        Some(std::array::from_fn(|index| word(words, index)))
    }

    /// Returns the sections as they were recorded.
    pub fn memory(&self) -> &'a [u8] {
        self.sections
    }

    /// Returns the memory, without unreadable parts.
    pub fn sections(&self) -> impl Iterator<Item = Section<'a>> {
        sections(self.sections)
    }
}

/// Returns the memory in the complete sections of a capture, without unreadable parts.
pub fn sections(bytes: &[u8]) -> impl Iterator<Item = Section<'_>> {
    all_sections(bytes).map(|(section, _)| section)
}

/// Returns the thread pointer (fs_base) in the sections of a capture, if there is one.
pub fn thread_pointer(bytes: &[u8]) -> Option<u64> {
    let mut sections = all_sections(bytes);
    sections.find_map(|(section, is_thread)| is_thread.then_some(section.addr))
}

/// The sections, and whether their addresses are the thread pointer.
fn all_sections(bytes: &[u8]) -> impl Iterator<Item = (Section<'_>, bool)> {
    let mut rest = bytes;
    let sections = std::iter::from_fn(move || {
        let is_thread = word_at(rest, 1)? & SECTION_THREAD != 0;
        let (section, after) = split_section(rest)?;
        rest = after;
        Some((section, is_thread))
    });
    sections.filter(|(section, _)| section.addr != 0)
}

/// Splits the first section off `bytes`, with its padding.
fn split_section(bytes: &[u8]) -> Option<(Section<'_>, &[u8])> {
    let (addr, len) = (word_at(bytes, 0)?, word_at(bytes, 1)? & !SECTION_THREAD);
    let rest = bytes.get(SECTION_WORDS * WORD_LEN..)?;
    let len = usize::try_from(len).ok()?;
    let (padded, rest) = rest.split_at_checked(len.checked_next_multiple_of(WORD_LEN)?)?;
    let bytes = &padded[..len];
    Some((Section { addr, bytes }, rest))
}

/// A system call that begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Syscall<'a> {
    /// Its number.
    pub number: u64,
    /// rdi, rsi, rdx, r10, r8 and r9, 8 bytes each.
    pub arguments: &'a [u8],
    /// Where the instruction is.
    pub addr: u64,
    /// The stack pointer there.
    pub stack: u64,
    /// The memory that its arguments point to, as far as it was read: [`sections`].
    pub memory: &'a [u8],
}

/// A system call that returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyscallEnd<'a> {
    /// What the kernel returned; an error is negative.
    pub result: u64,
    /// The stack pointer there, which pairs it with its beginning.
    pub stack: u64,
    /// What the kernel has written, as far as it was read: [`sections`].
    pub memory: &'a [u8],
}

/// Returns whether `bytes` are complete sections.
pub(super) fn are_sections(mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        match split_section(bytes) {
            Some((_, rest)) => bytes = rest,
            None => return false,
        }
    }
    true
}

/// The content of a record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Record<'a> {
    /// A function was entered.
    Enter(Enter<'a>),
    /// A function returned.
    Leave(Leave),
    /// The thread of the ring from here on.
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
    /// The thread's name changed.
    ThreadName {
        /// Thread id.
        tid: u32,
        /// Its name, without the padding.
        name: &'a [u8],
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
    /// The process has not become another program, and goes on.
    ExecFailed {
        /// The error of execve(2), an errno of 1 to 254; 255: it is not known.
        error: u8,
    },
    /// A logpoint was passed.
    Logpoint {
        /// Number of the live probe.
        probe: u32,
        /// The words that its format reads, eight bytes each.
        words: &'a [u8],
    },
    /// Captured data of the enter or leave before it.
    Capture(Capture<'a>),
    /// A condition of a live probe could not be evaluated.
    ConditionError {
        /// Number of the live probe.
        probe: u32,
        /// The address that could not be read.
        addr: u64,
    },
    /// A system call begins.
    Syscall(Syscall<'a>),
    /// A system call returns.
    SyscallEnd(SyscallEnd<'a>),
    /// The unwinder or `longjmp` resumes the program at another frame: the calls below it have ended.
    FramesLeft {
        /// The stack pointer there.
        stack: u64,
    },
    /// The thread continues on another stack: by `swapcontext` or `setcontext`.
    StackSwitch {
        /// The stack pointer before. Calls with lower slots on that stack have ended.
        from: u64,
        /// The lowest address of the other stack; 0 if unknown.
        low: u64,
        /// The address after its last byte; 0 if unknown.
        end: u64,
    },
    /// The thread has waited until now for room in its ring.
    RingWait {
        /// When the wait began, in ticks.
        since: u64,
    },
}

impl Record<'_> {
    /// Returns whether it only extends the record before it.
    #[inline]
    pub fn is_capture(&self) -> bool {
        matches!(self, Self::Capture(_))
    }
}

#[inline]
pub(super) fn slot_from_word1(word1: u64) -> u64 {
    (word1 >> SLOT_POSITION) << SLOT_SHIFT
}

/// Returns the thread or process id in word 1.
pub(super) fn value(word1: u64) -> u32 {
    (word1 >> VALUE_SHIFT) as u32
}

/// Returns the number of the live probe in word 1.
pub(super) fn probe(word1: u64) -> u32 {
    (word1 >> VALUE_SHIFT) as u32 & ((1 << PROBE_BITS) - 1)
}

/// Returns word `index` of a record whose length is known to cover it.
#[inline]
pub(super) fn word<const LEN: usize>(bytes: &[u8; LEN], index: usize) -> u64 {
    word_at(bytes, index).expect("callers ask for words inside the record")
}

#[inline]
pub(super) fn word_at(bytes: &[u8], index: usize) -> Option<u64> {
    let word = bytes.get(index * WORD_LEN..)?.first_chunk::<WORD_LEN>()?;
    Some(u64::from_le_bytes(*word))
}

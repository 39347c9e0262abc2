//! What is asked for registers and memory: a live thread, a recorded moment or a test, all through one trait.
//!
//! Not known is a value here: every answer says how certain it is, and an absent one says why. Nothing in this crate
//! puts a zero or an old value in place of what it could not read.

use std::fmt;

use crate::diagnostic::{Diagnostic, one_line};

/// A register by its DWARF number (System V ABI for x86-64, figure 3.36).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Register(pub u16);

impl Register {
    /// rax.
    pub const RAX: Register = Register(0);
    /// rdx.
    pub const RDX: Register = Register(1);
    /// rcx.
    pub const RCX: Register = Register(2);
    /// rbx.
    pub const RBX: Register = Register(3);
    /// rsi.
    pub const RSI: Register = Register(4);
    /// rdi.
    pub const RDI: Register = Register(5);
    /// rbp.
    pub const RBP: Register = Register(6);
    /// rsp.
    pub const RSP: Register = Register(7);
    /// r8; r9 to r15 follow as 9 to 15.
    pub const R8: Register = Register(8);
    /// The return address, which for the innermost frame is rip.
    pub const RIP: Register = Register(16);
    /// xmm0; xmm1 to xmm15 follow as 18 to 32.
    pub const XMM0: Register = Register(17);
    /// Those that calls preserve, but for rsp: rbx, rbp, and r12 to r15 (System V ABI for x86-64, figure 3.4).
    pub const PRESERVED: [Register; 6] = [
        Register::RBX,
        Register::RBP,
        Register(12),
        Register(13),
        Register(14),
        Register(15),
    ];
    /// The flags.
    pub const RFLAGS: Register = Register(49);
    /// The base of the segment fs: the thread pointer.
    pub const FS_BASE: Register = Register(58);
    /// The base of the segment gs.
    pub const GS_BASE: Register = Register(59);

    const NAMES: [&'static str; 17] = [
        "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12",
        "r13", "r14", "r15", "rip",
    ];

    /// Returns the register's name as gdb has it, without `%`; `None` for numbers that name no register we read.
    #[must_use]
    pub fn name(self) -> Option<String> {
        match self.0 {
            0..=16 => Some(Register::NAMES[usize::from(self.0)].to_owned()),
            17..=32 => Some(format!("xmm{}", self.0 - 17)),
            49 => Some("rflags".to_owned()),
            58 => Some("fs_base".to_owned()),
            59 => Some("gs_base".to_owned()),
            _ => None,
        }
    }

    /// Finds a register by the name that [`Register::name`] gives it, with or without `$` or `%` in front.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Register> {
        let name = name.trim_start_matches(['$', '%']);
        let plain = match name {
            "pc" => "rip",
            "sp" => "rsp",
            "fp" => "rbp",
            "eflags" => "rflags",
            other => other,
        };
        (0..=59)
            .map(Register)
            .find(|register| register.name().is_some_and(|n| n == plain))
    }
}

/// How far a value may be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Certainty {
    /// It is the value at the moment that is looked at.
    Known,
    /// It was seen at an earlier event and may have changed since.
    Stale {
        /// The event that showed it.
        as_of: u64,
    },
}

impl Certainty {
    /// Returns the lesser of two certainties: what is made of both is as old as the older one.
    #[must_use]
    pub fn and(self, other: Certainty) -> Certainty {
        match (self, other) {
            (Certainty::Known, other) => other,
            (this, Certainty::Known) => this,
            (Certainty::Stale { as_of: a }, Certainty::Stale { as_of: b }) => {
                Certainty::Stale { as_of: a.min(b) }
            }
        }
    }
}

/// Whether bytes that were read together had been seen together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ages {
    /// All of them at one event.
    #[default]
    One,
    /// All of them at one event, and some at a later one too: a part that is read by itself may be newer.
    OneOfSeveral,
    /// They are as they were seen last, at several events.
    Several,
}

/// Why a value is not known. It is displayed in the value's place, and therefore with its next step.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Unknown {
    /// A fragment of a sentence, such as `not captured` or `no memory at 0x10`.
    pub reason: String,
    /// What to do about it, where there is something.
    pub hint: Option<String>,
    /// What kind of reason it is, for code that treats some differently.
    pub cause: Cause,
}

/// Kinds of reasons why a value is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cause {
    /// One that needs no special treatment.
    Other,
    /// What is in memory contradicts itself.
    Corrupt,
    /// No more was to be looked at.
    Limit,
}

impl Unknown {
    /// Makes one from a reason.
    pub fn because(reason: impl Into<String>) -> Unknown {
        Unknown {
            reason: reason.into(),
            hint: None,
            cause: Cause::Other,
        }
    }

    /// Makes one for memory that contradicts itself.
    #[must_use]
    pub fn corrupt(how: impl fmt::Display) -> Unknown {
        Unknown {
            cause: Cause::Corrupt,
            ..Unknown::because(format!("corrupt: {how}"))
        }
    }

    /// Makes the one that ends a backtrace of as many frames as were asked for.
    #[must_use]
    pub fn limit(frames: usize) -> Unknown {
        Unknown {
            cause: Cause::Limit,
            ..Unknown::because(format!("the limit of {frames} frames was reached"))
        }
    }

    /// Names the next step.
    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> Unknown {
        Unknown {
            hint: Some(hint.into()),
            ..self
        }
    }
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&one_line(&self.reason, self.hint.as_deref()))
    }
}

impl From<Unknown> for Diagnostic {
    fn from(unknown: Unknown) -> Diagnostic {
        Diagnostic {
            message: unknown.reason,
            hint: unknown.hint,
        }
    }
}

impl std::error::Error for Unknown {}

/// The registers that hold a parameter where its function is entered (System V ABI for x86-64, section 3.2.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryPlace {
    /// Holds all of it, or the bytes before those of `second`.
    pub first: Register,
    /// The first byte that another register holds, counted from 0, and that register.
    pub second: Option<(u8, Register)>,
    /// What the first register holds is the address of the value.
    pub is_indirect: bool,
}

/// One thread at one moment, and the memory it sees. Addresses are the process's.
pub trait Machine {
    /// Returns the machine that this one asks, if it stands before another: of all but registers and memory, what it does not
    /// answer itself that one does.
    fn behind(&self) -> Option<&dyn Machine> {
        None
    }

    /// Fills `bytes` with the memory at `address`: all of it, or an error.
    ///
    /// # Errors
    /// Some of it is not known.
    fn memory(&self, address: u64, bytes: &mut [u8]) -> Result<Certainty, Unknown>;

    /// Tells whether the `len` bytes of memory at `address` are known to have been at event `event` what they are here. It
    /// is asked about bytes that lead to others which were seen at that event last.
    fn was_same(&self, address: u64, len: u64, event: u64) -> bool {
        let behind = self.behind();
        behind.is_some_and(|behind| behind.was_same(address, len, event))
    }

    /// Tells whether the bytes that were read last had been seen together. The answer was the oldest of the events.
    fn ages(&self) -> Ages {
        self.behind().map_or(Ages::One, |behind| behind.ages())
    }

    /// Has memory read as it was at an earlier event, or again as it is here: `None`. What is not known of that event is unknown
    /// then. Returns whether it can.
    fn pin(&self, event: Option<u64>) -> bool {
        self.behind().is_some_and(|behind| behind.pin(event))
    }

    /// Tells whether values are read to be shown whole: what is inside them is then as old as they are, even if it was seen since.
    fn shows_wholes(&self) -> bool {
        self.behind().is_some_and(|behind| behind.shows_wholes())
    }

    /// Tells whether bytes of the heap were read that are older than this moment, and nothing tells of which block they were.
    fn is_of_unknown_block(&self) -> bool {
        self.behind()
            .is_some_and(|behind| behind.is_of_unknown_block())
    }

    /// Tells whether memory holds made up addresses, to learn which memory is looked at: numbers in it mean nothing, and what
    /// does not fit together is no damage.
    fn is_symbolic(&self) -> bool {
        self.behind().is_some_and(|behind| behind.is_symbolic())
    }

    /// What was read last is not used: it was seen at another moment than what led to it, or was more than is needed.
    fn disregarded(&self) {
        if let Some(behind) = self.behind() {
            behind.disregarded();
        }
    }

    /// Returns a general register, [`Register::RIP`], [`Register::RFLAGS`] or a segment base.
    ///
    /// # Errors
    /// It is not known.
    fn register(&self, register: Register) -> Result<(u64, Certainty), Unknown>;

    /// Returns a vector register, [`Register::XMM0`] and following, as its low 16 bytes.
    ///
    /// # Errors
    /// It is not known.
    fn vector(&self, register: Register) -> Result<([u8; 16], Certainty), Unknown>;

    /// Returns the low 8 bytes of a vector register, of which the others may be unknown.
    ///
    /// # Errors
    /// They are not known.
    fn vector_low(&self, register: Register) -> Result<([u8; 8], Certainty), Unknown> {
        let (bytes, certainty) = self.vector(register)?;
        let low = bytes.first_chunk().expect("8 of 16 bytes");
        Ok((*low, certainty))
    }

    /// Returns the canonical frame address of the frame that executes code at `lookup_pc` with a stack pointer of `sp` or
    /// more, if it is known from elsewhere than registers and memory. It is asked only if those do not tell.
    fn frame_address(&self, lookup_pc: u64, sp: u64) -> Option<u64> {
        self.behind()?.frame_address(lookup_pc, sp)
    }

    /// Returns what a register that calls preserve had where the call was made whose return address lies at `slot`, if that is
    /// known from elsewhere than registers and memory. It is asked only if those do not tell.
    fn preserved_register(&self, slot: u64, register: Register) -> Option<u64> {
        self.behind()?.preserved_register(slot, register)
    }

    /// Returns the registers that hold the parameter `name` if the thread stands at the very first instruction of a
    /// function whose caller is known to have put it there. Its description may name a place that is filled later.
    fn entry_parameter(&self, name: &str) -> Option<EntryPlace> {
        self.behind()?.entry_parameter(name)
    }

    /// Returns the program's own return address for the stack word `slot`, which now holds `found`: a hook may have put
    /// another one there.
    ///
    /// # Errors
    /// It is hooked, and what stood there is not known.
    fn return_address(&self, slot: u64, found: u64) -> Result<u64, Unknown> {
        match self.behind() {
            Some(behind) => behind.return_address(slot, found),
            None => Ok(found),
        }
    }

    /// Returns where the instruction that really stands at `pc` comes from, should it have been moved by a hook.
    fn original_pc(&self, pc: u64) -> u64 {
        self.behind().map_or(pc, |behind| behind.original_pc(pc))
    }

    /// Returns how many of the inlined calls that begin where the thread stands count as not made yet, the innermost ones:
    /// the thread stands at the line of the call. Backtraces leave them out. Any number that is too large means all.
    fn calls_to_come(&self) -> usize {
        self.behind().map_or(0, |behind| behind.calls_to_come())
    }

    /// Returns how often threads have come to the probe that is asked about, this time included; `None` where it is asked about
    /// none.
    fn hit_count(&self) -> Option<u64> {
        self.behind()?.hit_count()
    }
}

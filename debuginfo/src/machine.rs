//! The [`Machine`] trait: access to registers and memory, whether of a live thread, a recorded moment or a test.
//!
//! Missing knowledge is explicit. Every answer states how certain it is, and an absent one states the reason. This
//! crate never substitutes a zero or an old value for something it could not read.

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
    /// The callee-saved registers other than rsp: rbx, rbp, and r12 to r15 (System V ABI for x86-64, figure 3.4).
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

    /// The segment registers, from number 50 on.
    const SEGMENTS: [&'static str; 6] = ["es", "cs", "ss", "ds", "fs", "gs"];

    /// Says whether it is a segment register.
    #[must_use]
    pub fn is_segment(self) -> bool {
        (50..=55).contains(&self.0)
    }

    /// Returns the register's name as in gdb, without `%`, or `None` for the number of an unsupported register.
    #[must_use]
    pub fn name(self) -> Option<String> {
        match self.0 {
            0..=16 => Some(Register::NAMES[usize::from(self.0)].to_owned()),
            17..=32 => Some(format!("xmm{}", self.0 - 17)),
            49 => Some("rflags".to_owned()),
            50..=55 => Some(Register::SEGMENTS[usize::from(self.0 - 50)].to_owned()),
            58 => Some("fs_base".to_owned()),
            59 => Some("gs_base".to_owned()),
            _ => None,
        }
    }

    /// Finds a register by its [`Register::name`], optionally prefixed with `$` or `%`.
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

/// A part of a general register that has a name of its own, such as eax.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegisterPart {
    /// The register.
    pub register: Register,
    /// Bits of the register before the part.
    pub offset_bits: u32,
    /// The size of the part in bytes.
    pub bytes: u32,
}

impl RegisterPart {
    /// Finds a part by gdb's name for it, or Intel's, without the `$`.
    #[must_use]
    pub fn by_name(name: &str) -> Option<RegisterPart> {
        let part = |register: &str, offset_bits, bytes| {
            let register = Register::by_name(register)?;
            Some(RegisterPart {
                register,
                offset_bits,
                bytes,
            })
        };
        if let Some(numbered) = name.strip_prefix('r')
            && let Some((digits, width)) = numbered.split_at_checked(numbered.len().wrapping_sub(1))
            && digits
                .parse()
                .is_ok_and(|number: u8| (8..16).contains(&number))
        {
            let bytes = match width {
                "d" => 4,
                "w" => 2,
                "l" | "b" => 1,
                _ => return None,
            };
            return part(&format!("r{digits}"), 0, bytes);
        }
        let letters = ["ax", "bx", "cx", "dx"];
        let others = ["si", "di", "bp", "sp"];
        let whole = |stem: &str| format!("r{stem}");
        if let Some(stem) = name
            .strip_prefix('e')
            .filter(|stem| letters.contains(stem) || others.contains(stem))
        {
            return part(&whole(stem), 0, 4);
        }
        // sp is gdb's name of rsp.
        if letters.contains(&name) || others[..3].contains(&name) {
            return part(&whole(name), 0, 2);
        }
        if let Some(stem) = name.strip_suffix('l') {
            let is_letter = ["a", "b", "c", "d"].contains(&stem);
            return match is_letter {
                true => part(&format!("r{stem}x"), 0, 1),
                false => others.contains(&stem).then(|| part(&whole(stem), 0, 1))?,
            };
        }
        let stem = name.strip_suffix('h')?;
        let is_letter = ["a", "b", "c", "d"].contains(&stem);
        is_letter.then(|| part(&format!("r{stem}x"), 8, 1))?
    }
}

/// How far a value may be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Certainty {
    /// It is the value at the current moment.
    Known,
    /// It was seen at an earlier event and may have changed since.
    Stale {
        /// The event that showed it.
        as_of: u64,
    },
}

impl Certainty {
    /// Returns the lesser of two certainties. A result of two values is as old as the older one.
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

/// Whether bytes that were read together were also seen together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ages {
    /// All bytes were seen at one event.
    #[default]
    One,
    /// All bytes were seen at one event, and some at a later one too. A part that is read alone may be newer.
    OneOfSeveral,
    /// Each byte is as last seen, at several events.
    Several,
}

/// Why a value is unknown. `Display` shows it in place of the value, so it includes the next step.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Unknown {
    /// A fragment of a sentence, such as `not captured` or `no memory at 0x10`.
    pub reason: String,
    /// What to do about it, if anything.
    pub hint: Option<String>,
    /// The kind of reason, for code that treats some kinds specially.
    pub cause: Cause,
}

/// Kinds of reasons why a value is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cause {
    /// A reason without special treatment.
    Other,
    /// The contents of memory contradict themselves.
    Corrupt,
    /// The limit of a query was reached.
    Limit,
}

impl Unknown {
    /// Makes a value from a reason.
    pub fn because(reason: impl Into<String>) -> Unknown {
        Unknown {
            reason: reason.into(),
            hint: None,
            cause: Cause::Other,
        }
    }

    /// Makes a value for memory that contradicts itself.
    #[must_use]
    pub fn corrupt(how: impl fmt::Display) -> Unknown {
        Unknown {
            cause: Cause::Corrupt,
            ..Unknown::because(format!("corrupt: {how}"))
        }
    }

    /// Makes the value that ends a backtrace at the requested number of frames.
    #[must_use]
    pub fn limit(frames: usize) -> Unknown {
        Unknown {
            cause: Cause::Limit,
            ..Unknown::because(format!("the limit of {frames} frames was reached"))
        }
    }

    /// Sets the next step.
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

/// The registers that hold a parameter at function entry (System V ABI for x86-64, section 3.2.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryPlace {
    /// Holds the whole value, or the bytes before those in `second`.
    pub first: Register,
    /// The index of the first byte that another register holds, counted from 0, and that register.
    pub second: Option<(u8, Register)>,
    /// The first register holds the address of the value.
    pub is_indirect: bool,
}

/// One thread at one moment, and the memory it sees. Addresses are those of the process.
pub trait Machine {
    /// Returns the machine that this one wraps, if any. The wrapped machine answers all questions that this one does
    /// not override, except for registers and memory.
    fn behind(&self) -> Option<&dyn Machine> {
        None
    }

    /// Fills `bytes` with the memory at `address`: all of it, or an error.
    ///
    /// # Errors
    /// Some of the memory is unknown.
    fn memory(&self, address: u64, bytes: &mut [u8]) -> Result<Certainty, Unknown>;

    /// Returns whether the `len` bytes at `address` are known to have been the same at event `event` as they are here.
    /// Used for bytes that lead to others that were last seen at that event.
    fn was_same(&self, address: u64, len: u64, event: u64) -> bool {
        let behind = self.behind();
        behind.is_some_and(|behind| behind.was_same(address, len, event))
    }

    /// Returns whether the bytes of the last read were seen together. Its certainty was the oldest of their events.
    fn ages(&self) -> Ages {
        self.behind().map_or(Ages::One, |behind| behind.ages())
    }

    /// Makes memory reads return the contents at an earlier event, or the current contents again for `None`. Anything
    /// not known at that event is then unknown. Returns whether the machine supports this.
    fn pin(&self, event: Option<u64>) -> bool {
        self.behind().is_some_and(|behind| behind.pin(event))
    }

    /// Returns whether values are read to be shown whole. Parts of a value then have the age of the whole, even if they
    /// were seen since.
    fn shows_wholes(&self) -> bool {
        self.behind().is_some_and(|behind| behind.shows_wholes())
    }

    /// Returns whether heap bytes from an earlier moment were read that cannot be assigned to a block.
    fn is_of_unknown_block(&self) -> bool {
        self.behind()
            .is_some_and(|behind| behind.is_of_unknown_block())
    }

    /// Returns whether memory holds made-up addresses, used to learn which memory is read. Numbers in it are
    /// meaningless, and contradictions are not corruption.
    fn is_symbolic(&self) -> bool {
        self.behind().is_some_and(|behind| behind.is_symbolic())
    }

    /// Notes that the result of the last read is not used: it was seen at another moment than what led to it, or is not
    /// needed.
    fn disregarded(&self) {
        if let Some(behind) = self.behind() {
            behind.disregarded();
        }
    }

    /// Returns whether the innermost frame is known not to have existed at event `event`: its registers held something else
    /// then.
    fn is_before_frame(&self, event: u64) -> bool {
        let behind = self.behind();
        behind.is_some_and(|behind| behind.is_before_frame(event))
    }

    /// Returns whether the innermost call has returned. Its registers are then those of its start, and which instruction was its
    /// last is not known: only parameters, as passed, and what lies at one place in the whole function have a value.
    fn has_returned(&self) -> bool {
        self.behind().is_some_and(|behind| behind.has_returned())
    }

    /// Returns rdi where the call that has just returned began, if that was recorded.
    fn first_argument(&self) -> Option<u64> {
        self.behind()?.first_argument()
    }

    /// Returns a general register, [`Register::RIP`], [`Register::RFLAGS`] or a segment base.
    ///
    /// # Errors
    /// The register is unknown.
    fn register(&self, register: Register) -> Result<(u64, Certainty), Unknown>;

    /// Returns the low 16 bytes of a vector register, [`Register::XMM0`] and following.
    ///
    /// # Errors
    /// The register is unknown.
    fn vector(&self, register: Register) -> Result<([u8; 16], Certainty), Unknown>;

    /// Returns the area of XSAVE, in its standard format, where all of it is known; see [`Extended`](crate::Extended).
    fn extended(&self) -> Option<Vec<u8>> {
        self.behind()?.extended()
    }

    /// Returns the low 8 bytes of a vector register. The other bytes may be unknown.
    ///
    /// # Errors
    /// These bytes are unknown.
    fn vector_low(&self, register: Register) -> Result<([u8; 8], Certainty), Unknown> {
        let (bytes, certainty) = self.vector(register)?;
        let low = bytes.first_chunk().expect("8 of 16 bytes");
        Ok((*low, certainty))
    }

    /// Returns the CFA of the frame that executes code at `lookup_pc` with a stack pointer of at least `sp`, if it is
    /// known from a source other than registers and memory. Called only if those do not tell.
    fn frame_address(&self, lookup_pc: u64, sp: u64) -> Option<u64> {
        self.behind()?.frame_address(lookup_pc, sp)
    }

    /// Returns the value that a callee-saved register had at the call whose return address is at `slot`, if it is known
    /// from a source other than registers and memory. Called only if those do not tell.
    fn preserved_register(&self, slot: u64, register: Register) -> Option<u64> {
        self.behind()?.preserved_register(slot, register)
    }

    /// Returns the value of a general register at the entry of the function whose frame has this CFA, and executes code at
    /// `lookup_pc`, if a record of the call tells it.
    fn register_at_entry(&self, lookup_pc: u64, cfa: u64, register: Register) -> Option<u64> {
        self.behind()?.register_at_entry(lookup_pc, cfa, register)
    }

    /// Returns the registers that hold the parameter `name` if the thread is at the very first instruction of a
    /// function, and its caller is known to have put the parameter there. The parameter's description may name a place
    /// that is filled later.
    fn entry_parameter(&self, name: &str) -> Option<EntryPlace> {
        self.behind()?.entry_parameter(name)
    }

    /// Returns the program's own return address for the stack word `slot`, which now holds `found`. A hook may have
    /// replaced it.
    ///
    /// # Errors
    /// The word is hooked, and the original return address is unknown.
    fn return_address(&self, slot: u64, found: u64) -> Result<u64, Unknown> {
        match self.behind() {
            Some(behind) => behind.return_address(slot, found),
            None => Ok(found),
        }
    }

    /// Returns the original address of the instruction at `pc`, which a hook may have moved.
    fn original_pc(&self, pc: u64) -> u64 {
        self.behind().map_or(pc, |behind| behind.original_pc(pc))
    }

    /// Returns how many of the inlined calls that begin at the current address, counted from the innermost, have not
    /// been made yet. The thread is on the line of the call. Backtraces omit these calls. If the number is too large,
    /// none of them has been made.
    fn calls_to_come(&self) -> usize {
        self.behind().map_or(0, |behind| behind.calls_to_come())
    }

    /// Returns how often threads have reached the current probe, this time included, or `None` if there is no current
    /// probe.
    fn hit_count(&self) -> Option<u64> {
        self.behind()?.hit_count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_registers_have_gdbs_names() {
        for (name, whole, offset_bits, bytes) in [
            ("eax", "rax", 0, 4),
            ("esp", "rsp", 0, 4),
            ("bp", "rbp", 0, 2),
            ("dl", "rdx", 0, 1),
            ("dh", "rdx", 8, 1),
            ("sil", "rsi", 0, 1),
            ("spl", "rsp", 0, 1),
            ("r8d", "r8", 0, 4),
            ("r15w", "r15", 0, 2),
            ("r10l", "r10", 0, 1),
        ] {
            let part = RegisterPart::by_name(name).expect(name);
            assert_eq!(Some(part.register), Register::by_name(whole), "{name}");
            assert_eq!(
                (part.offset_bits, part.bytes),
                (offset_bits, bytes),
                "{name}"
            );
        }
        for none in [
            "sp", "rax", "r8", "r7d", "r16d", "r8q", "sih", "el", "l", "h", "r", "", "xl",
        ] {
            assert_eq!(RegisterPart::by_name(none), None, "{none}");
        }
        assert_eq!(Register::by_name("cs"), Some(Register(51)));
    }
}

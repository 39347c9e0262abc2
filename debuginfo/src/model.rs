//! The vocabulary of the answers: addresses, functions, parameters and the places of their values.

use std::fmt;
use std::sync::Arc;

use crate::machine::Register;

/// An address in an ELF file, as stated by its headers and symbols (not an address in a process).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Svma(pub u64);

impl fmt::Display for Svma {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl fmt::LowerHex for Svma {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::LowerHex::fmt(&self.0, f)
    }
}

/// A range of addresses; `end` is exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CodeRange {
    /// First address.
    pub start: Svma,
    /// First address after the range.
    pub end: Svma,
}

impl CodeRange {
    /// Returns the number of bytes, 0 if the range is empty or inverted.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.end.0.saturating_sub(self.start.0)
    }

    /// Returns whether the range is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether `svma` is in the range.
    #[must_use]
    pub fn contains(&self, svma: Svma) -> bool {
        self.start <= svma && svma < self.end
    }
}

/// A `PT_LOAD` segment: how a part of the file is mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// The address at which it is mapped, before the load bias is added.
    pub vaddr: Svma,
    /// The offset of its bytes in the file.
    pub offset: u64,
    /// Bytes taken from the file.
    pub filesz: u64,
    /// Bytes in memory; what exceeds `filesz` is zero.
    pub memsz: u64,
    /// Access rights.
    pub flags: SegmentFlags,
}

impl Segment {
    /// Returns whether all `len` bytes at `svma` come from the file.
    pub(crate) fn holds_bytes(&self, svma: u64, len: u64) -> bool {
        svma.checked_sub(self.vaddr.0)
            .and_then(|skipped| skipped.checked_add(len))
            .is_some_and(|end| end <= self.filesz)
    }
}

/// Access rights of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentFlags {
    /// `PF_R`.
    pub read: bool,
    /// `PF_W`.
    pub write: bool,
    /// `PF_X`.
    pub execute: bool,
}

impl SegmentFlags {
    pub(crate) fn from_bits(bits: u32) -> SegmentFlags {
        SegmentFlags {
            read: bits & 4 != 0,
            write: bits & 2 != 0,
            execute: bits & 1 != 0,
        }
    }
}

/// The kind of a value, as needed to show it as text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ValueKind {
    /// No value at all: `void`, `()`, `!`.
    Void,
    /// A boolean of one byte.
    Bool,
    /// A character: 1 byte (`char`, `char8_t`), 2 or 4 bytes (`char16_t`, `char32_t`, Rust's `char`).
    Char {
        /// Size in bytes.
        bytes: u8,
    },
    /// An integer of 1 to 16 bytes.
    Int {
        /// Size in bytes.
        bytes: u8,
        /// Two's complement if true.
        signed: bool,
    },
    /// A floating-point number: 2, 4, 8 bytes (IEEE), or 16 (x87 extended or IEEE quad).
    Float {
        /// Size in bytes, with padding.
        bytes: u8,
    },
    /// A pointer, a reference or a function pointer: 8 bytes.
    Pointer,
    /// An integer with names for some values.
    Enum {
        /// Size in bytes.
        bytes: u8,
        /// Two's complement if true.
        signed: bool,
        /// Values with their names, in declaration order. Unsigned values are stored as their bit patterns.
        names: Arc<[(i64, String)]>,
    },
    /// A struct, class, union, array, vector or complex number.
    Struct {
        /// Size in bytes.
        bytes: u64,
    },
    /// The debug information does not state the type.
    Unknown,
}

/// The place of a piece of an argument at function entry, before the first instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ParameterPlace {
    /// An integer argument register: 0 to 5 for rdi, rsi, rdx, rcx, r8, r9.
    Int(u8),
    /// A vector argument register: 0 to 7 for xmm0 to xmm7.
    Sse(u8),
    /// On the stack, this many bytes above the stack pointer (which points at the return address): 8 or more.
    Memory {
        /// Bytes above rsp at entry.
        offset: u32,
    },
    /// The value has no bytes (an empty class, a zero-sized type).
    Empty,
    /// It is not passed, as far as the debug information states: the optimiser removed it.
    Removed,
    /// Unknown: optimised out, or passed in a way that the debug information does not state.
    Unknown,
}

/// A formal parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Param {
    /// Its name; empty if it has none.
    pub name: String,
    /// The kind of its value.
    pub kind: ValueKind,
    /// The place at entry of the whole value, or of the bytes before `second_at` if `place2` is set.
    pub place: ParameterPlace,
    /// The place of the rest, for a value passed in two registers (or, in Rust, a register and the stack).
    pub place2: Option<ParameterPlace>,
    /// Offset in the value, in bytes, of the part in `place2`. It is 8, except that Rust also passes pairs of smaller
    /// scalars in two registers.
    pub second_at: u8,
    /// The place holds the address of the value, not the value: large structs in Rust, non-trivial classes in C++.
    pub indirect: bool,
}

/// A register that can hold a piece of a returned value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetReg {
    /// rax.
    Rax,
    /// rdx.
    Rdx,
    /// xmm0.
    Xmm0,
    /// xmm1.
    Xmm1,
}

impl RetReg {
    /// Returns the register.
    #[must_use]
    pub fn register(self) -> Register {
        match self {
            RetReg::Rax => Register::RAX,
            RetReg::Rdx => Register::RDX,
            RetReg::Xmm0 => Register::XMM0,
            RetReg::Xmm1 => Register(Register::XMM0.0 + 1),
        }
    }
}

/// The place of a returned value just after the return instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RetPlace {
    /// Nothing is returned.
    None,
    /// In one register, or in two. The second one holds the value from the stated byte on.
    Regs(RetReg, Option<(RetReg, u8)>),
    /// In memory provided by the caller. Its address was passed in rdi and is returned in rax.
    Hidden,
    /// On the x87 stack (`long double`).
    X87,
    /// Unknown.
    Unknown,
}

/// A function with machine code of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// The address of its first instruction.
    pub svma: Svma,
    /// Size in bytes of the part that begins at `svma`; 0 if unknown.
    pub size: u64,
    /// All its parts, the one with the entry first. There are several if the compiler moved cold code away.
    pub ranges: Vec<CodeRange>,
    /// Readable name with scope and template arguments, without the parameter list: `ns::Class<int>::method`.
    pub name: String,
    /// Name in the symbol table, or the plain name if there is none.
    pub linkage: String,
    /// Absolute path of the source file (relative only if the unit states no directory).
    pub file: Option<Arc<str>>,
    /// Line of the declaration or definition, from 1.
    pub line: Option<u32>,
    /// Named and unnamed parameters in order. Includes `this`, but not a hidden pointer for the result.
    pub params: Vec<Param>,
    /// Every parameter is listed, and its place is known if it is passed at all.
    pub params_known: bool,
    /// More arguments may follow the named ones.
    pub variadic: bool,
    /// The kind of the result.
    pub ret: ValueKind,
    /// The place of the result.
    pub ret_place: RetPlace,
    /// The vector registers that carry its arguments and result.
    pub xmm: UsedXmm,
}

/// Vector registers that carry arguments and results of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsedXmm {
    /// How many of xmm0 to xmm7 carry arguments (0 to 8), up to and including the last one used.
    pub args: u8,
    /// A piece of the result is in xmm0 or xmm1.
    pub ret: bool,
}

/// The functions of a module, and the problems in reading them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Functions {
    /// By `svma`, each address once.
    pub list: Vec<Function>,
    /// Why some functions may be missing or incomplete.
    pub warnings: Vec<crate::Warning>,
}

/// What a symbol refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SymbolKind {
    /// A function.
    Function,
    /// A resolver that the dynamic linker calls to choose the function (`STT_GNU_IFUNC`).
    Ifunc,
    /// Code that a compiler or BOLT moved out of a function (`NAME.cold`, `NAME.warm`); never called.
    Cold,
}

/// What the unwind tables state about the stack when control reaches an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryFrame {
    /// The state after a call: rsp points to the return address, and nothing has been pushed yet.
    Call,
    /// Anything else: the middle of a frame, a signal frame, or no caller at all.
    Other,
    /// No table describes it.
    Unknown,
}

/// The visibility of a symbol to other files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Binding {
    /// Visible everywhere.
    Global,
    /// Visible and replaceable.
    Weak,
    /// Private to its file.
    Local,
}

/// A code symbol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    /// Its address.
    pub svma: Svma,
    /// Its size in bytes; 0 if the file does not state it.
    pub size: u64,
    /// Readable name, as in [`Function::name`].
    pub name: String,
    /// Name in the symbol table, without a version.
    pub linkage: String,
    /// What the symbol refers to.
    pub kind: SymbolKind,
    /// Its visibility.
    pub binding: Binding,
}

/// A stub of the procedure linkage table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PltEntry {
    /// The address of its first instruction.
    pub svma: Svma,
    /// Its size in bytes.
    pub size: u64,
    /// The imported symbol. For an indirect function of the module itself, that function.
    pub symbol: String,
    /// The file that must define it; `None` if the module does not say.
    pub library: Option<String>,
    /// The slot of the global offset table through which it jumps.
    pub slot: Svma,
}

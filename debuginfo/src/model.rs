//! The vocabulary of the answers: addresses, functions, parameters and where their values are.

use std::fmt;
use std::sync::Arc;

/// An address inside an ELF file, as its headers and symbols state it (not one in a process).
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

    /// Tells whether the range holds no address.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Tells whether `svma` lies in the range.
    #[must_use]
    pub fn contains(&self, svma: Svma) -> bool {
        self.start <= svma && svma < self.end
    }
}

/// A `PT_LOAD` segment: how a part of the file is mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Where it is mapped, before the load bias is added.
    pub vaddr: Svma,
    /// Where its bytes begin in the file.
    pub offset: u64,
    /// Bytes taken from the file.
    pub filesz: u64,
    /// Bytes in memory; what exceeds `filesz` is zero.
    pub memsz: u64,
    /// Access rights.
    pub flags: SegmentFlags,
}

impl Segment {
    /// Tells whether all of `len` bytes at `svma` come from the file.
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

/// What a value is, as far as showing it as text needs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ValueKind {
    /// No value at all: `void`, `()`, `!`.
    Void,
    /// A truth value of one byte.
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
        /// Values (bit patterns of unsigned ones) with their names, in the order of the declaration.
        names: Arc<[(i64, String)]>,
    },
    /// A struct, class, union, array, vector or complex number.
    Struct {
        /// Size in bytes.
        bytes: u64,
    },
    /// The debug information does not say.
    Unknown,
}

/// Where a piece of an argument is when the function is entered, before its first instruction.
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
    /// Not known: optimised out, or passed in a way the debug information does not state.
    Unknown,
}

/// A formal parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Param {
    /// Its name; empty if it has none.
    pub name: String,
    /// What it is.
    pub kind: ValueKind,
    /// Where it is at entry: all of it, or the bytes in front of `second_at` if `place2` is set.
    pub place: ParameterPlace,
    /// Where the rest is, for a value passed in two registers (or, in Rust, a register and the stack).
    pub place2: Option<ParameterPlace>,
    /// The byte of the value at which the part in `place2` begins: 8, except that Rust passes a pair of smaller
    /// scalars in two registers as well.
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

/// Where a returned value is just after the return instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RetPlace {
    /// Nothing is returned.
    None,
    /// In one register, or in two: what begins at the stated byte of the value is in the second one.
    Regs(RetReg, Option<(RetReg, u8)>),
    /// In memory that the caller provided: its address came in rdi and is in rax.
    Hidden,
    /// On the x87 stack (`long double`).
    X87,
    /// Not known.
    Unknown,
}

/// A function that has machine code of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its first instruction.
    pub svma: Svma,
    /// Bytes of the part that begins at `svma`; 0 if unknown.
    pub size: u64,
    /// All its parts, the one with the entry first; more than one if the compiler moved cold code away.
    pub ranges: Vec<CodeRange>,
    /// Readable name with scope and template arguments, without the parameter list: `ns::Class<int>::method`.
    pub name: String,
    /// Name in the symbol table, or the plain name if that is not known.
    pub linkage: String,
    /// Absolute path of the source file (relative only if the unit states no directory).
    pub file: Option<Arc<str>>,
    /// Line of the declaration or definition, from 1.
    pub line: Option<u32>,
    /// Named and unnamed parameters in order, `this` included, a hidden pointer for the result not.
    pub params: Vec<Param>,
    /// Every parameter is listed and its place is known.
    pub params_known: bool,
    /// More arguments may follow the named ones.
    pub variadic: bool,
    /// What is returned.
    pub ret: ValueKind,
    /// Where it is returned.
    pub ret_place: RetPlace,
    /// What it uses of the vector registers.
    pub xmm: UsedXmm,
    /// Declared never to return.
    pub noreturn: bool,
}

/// Vector registers that carry arguments and results of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsedXmm {
    /// How many of xmm0 to xmm7 carry arguments (0 to 8), counted up to the last one used.
    pub args: u8,
    /// A piece of the result is in xmm0 or xmm1.
    pub ret: bool,
}

/// The functions of a module, and what could not be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Functions {
    /// By `svma`, each address once.
    pub list: Vec<Function>,
    /// Why some may be missing or incomplete.
    pub warnings: Vec<crate::Warning>,
}

/// What a symbol stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SymbolKind {
    /// A function.
    Function,
    /// A resolver that the dynamic linker calls to choose the function (`STT_GNU_IFUNC`).
    Ifunc,
    /// Code that a compiler or BOLT moved out of a function (`NAME.cold`, `NAME.warm`); never called.
    Cold,
}

/// What the unwind tables say of the stack where control comes to an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryFrame {
    /// What a call leaves: rsp points to the return address, and nothing has been pushed yet.
    Call,
    /// Anything else: the middle of a frame, a signal's, or no caller at all.
    Other,
    /// No table describes it.
    Unknown,
}

/// How a symbol is seen from other files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Binding {
    /// Visible everywhere.
    Global,
    /// Visible, and replaceable.
    Weak,
    /// Private to its file.
    Local,
}

/// A code symbol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    /// Its address.
    pub svma: Svma,
    /// Its size in bytes; 0 if the file does not say.
    pub size: u64,
    /// Readable name, as in [`Function::name`].
    pub name: String,
    /// Name in the symbol table, without a version.
    pub linkage: String,
    /// What it stands for.
    pub kind: SymbolKind,
    /// How it is seen.
    pub binding: Binding,
}

/// A stub of the procedure linkage table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PltEntry {
    /// Its first instruction.
    pub svma: Svma,
    /// Its size in bytes.
    pub size: u64,
    /// The imported symbol; for an indirect function of the module itself, that function.
    pub symbol: String,
    /// The slot of the global offset table that it jumps through.
    pub slot: Svma,
}

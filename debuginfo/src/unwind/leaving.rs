//! Finds where the unwinder and longjmp resume the program: they leave frames without returning from them.
//!
//! They end by setting a new stack pointer and an indirect jump. A stripped library has no symbol for that place. But the
//! code is the same few bytes wherever gcc's `__builtin_eh_return`, glibc's `__longjmp` and musl's `longjmp` were
//! compiled for x86-64.

use memchr::memmem;

use crate::machine::Register;
use crate::model::Svma;
use crate::module::Module;

/// A jump that leaves frames. The stack pointer is already that of the frame in which the program goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameLeaver {
    /// The first of the instructions that set the stack pointer and jump.
    pub start: Svma,
    /// Length of these instructions, in bytes.
    pub len: u64,
    /// Where the new stack pointer is at `start`.
    pub stack: Held,
    /// How many words are taken from that stack before the program goes on.
    pub words: u64,
    /// The jump.
    pub jump: Svma,
    /// Where its target is.
    pub target: Held,
}

/// Where a word is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// In a register.
    Register(Register),
    /// In memory, so many bytes above the address in a register.
    Memory(Register, u64),
}

impl FrameLeaver {
    /// Returns the end of the instructions.
    #[must_use]
    pub fn end(&self) -> Svma {
        Svma(self.start.0 + self.len)
    }
}

/// `mov %rcx,%rsp; pop %rcx; jmp *%rcx`: the end of `_Unwind_RaiseException` and similar functions in libgcc.
const EH_RETURN: Code = Code {
    bytes: &[0x48, 0x89, 0xcc, 0x59, 0xff, 0xe1],
    jump_at: 4,
    stack: Held::Register(Register::RCX),
    words: 1,
    target: Held::Register(Register::RCX),
};
/// `mov %r8,%rsp; mov %r9,%rbp; jmp *%rdx`: the end of glibc's `__longjmp`.
const LONGJMP: Code = Code {
    bytes: &[0x4c, 0x89, 0xc4, 0x4c, 0x89, 0xcd, 0xff, 0xe2],
    jump_at: 6,
    stack: Held::Register(Register::R8),
    words: 0,
    target: Held::Register(Register::RDX),
};
/// `mov 0x30(%rdi),%rsp; jmp *0x38(%rdi)`: the end of musl's `longjmp`.
const LONGJMP_OF_MUSL: Code = Code {
    bytes: &[0x48, 0x8b, 0x67, 0x30, 0xff, 0x67, 0x38],
    jump_at: 4,
    stack: Held::Memory(Register::RDI, 0x30),
    words: 0,
    target: Held::Memory(Register::RDI, 0x38),
};

struct Code {
    bytes: &'static [u8],
    jump_at: u64,
    stack: Held,
    words: u64,
    target: Held,
}

/// Returns the places of a module that leave frames.
pub(super) fn find_in(module: &Module) -> Vec<FrameLeaver> {
    let mut found = Vec::new();
    let segments = module.load_segments().iter();
    for segment in segments.filter(|segment| segment.flags.execute) {
        let Some(code) = module.code(segment.vaddr, segment.filesz) else {
            continue;
        };
        for known in [&EH_RETURN, &LONGJMP, &LONGJMP_OF_MUSL] {
            found.extend(memmem::find_iter(code, known.bytes).map(|offset| {
                let start = Svma(segment.vaddr.0 + offset as u64);
                FrameLeaver {
                    start,
                    len: known.bytes.len() as u64,
                    stack: known.stack,
                    words: known.words,
                    jump: Svma(start.0 + known.jump_at),
                    target: known.target,
                }
            }));
        }
    }
    found
}

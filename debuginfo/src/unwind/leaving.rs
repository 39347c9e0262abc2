//! Finds where the unwinder and longjmp resume the program: they leave frames without returning from them.
//!
//! Both end by setting a new stack pointer and jumping through a register. A stripped library has no symbol for that
//! place. But the code is the same few bytes wherever gcc's `__builtin_eh_return` and glibc's `__longjmp` were compiled
//! for x86-64.

use crate::machine::Register;
use crate::model::Svma;
use crate::module::Module;

/// A jump that leaves frames. The stack pointer is already that of the frame in which the program goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameLeaver {
    /// The jump.
    pub jump: Svma,
    /// The register with its target.
    pub target: Register,
}

/// `mov %rcx,%rsp; pop %rcx; jmp *%rcx`: the end of `_Unwind_RaiseException` and similar functions in libgcc.
const EH_RETURN: Code = Code {
    bytes: &[0x48, 0x89, 0xcc, 0x59, 0xff, 0xe1],
    jump_at: 4,
    target: Register::RCX,
};
/// `mov %r8,%rsp; mov %r9,%rbp; jmp *%rdx`: the end of glibc's `__longjmp`.
const LONGJMP: Code = Code {
    bytes: &[0x4c, 0x89, 0xc4, 0x4c, 0x89, 0xcd, 0xff, 0xe2],
    jump_at: 6,
    target: Register::RDX,
};

struct Code {
    bytes: &'static [u8],
    jump_at: u64,
    target: Register,
}

/// Returns the places of a module that leave frames.
pub(super) fn find_in(module: &Module) -> Vec<FrameLeaver> {
    let mut found = Vec::new();
    let segments = module.load_segments().iter();
    for segment in segments.filter(|segment| segment.flags.execute) {
        let Some(code) = module.code(segment.vaddr, segment.filesz) else {
            continue;
        };
        for known in [&EH_RETURN, &LONGJMP] {
            found.extend(
                find(code, known.bytes)
                    .into_iter()
                    .map(|offset| FrameLeaver {
                        jump: Svma(segment.vaddr.0 + offset as u64 + known.jump_at),
                        target: known.target,
                    }),
            );
        }
    }
    found
}

fn find(code: &[u8], bytes: &[u8]) -> Vec<usize> {
    let mut found = Vec::new();
    let first = bytes[0];
    let mut at = 0;
    while let Some(next) = code[at..].iter().position(|byte| *byte == first) {
        at += next;
        if code[at..].starts_with(bytes) {
            found.push(at);
        }
        at += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_found() {
        let code = [0x90, 0x48, 0x48, 0x89, 0xcc, 0x59, 0xff, 0xe1, 0x48, 0x89];
        assert_eq!(find(&code, EH_RETURN.bytes), [2]);
        assert_eq!(find(&code, &[0x48]), [1, 2, 8]);
        assert!(find(&[], LONGJMP.bytes).is_empty());
    }
}

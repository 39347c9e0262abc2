//! Finds where the unwinder and longjmp resume the program. They leave frames without returning, and a stepping thread
//! must not be lost.
//!
//! Both end by setting a new stack pointer and jumping through a register. A stripped library has no symbol for that
//! place. But the code is the same few bytes wherever gcc's `__builtin_eh_return` and glibc's `__longjmp` were compiled
//! for x86-64.

use super::sites::User;
use crate::{
    live::{event_loop::Tracer, model::Tid},
    stop::ptrace,
};

/// `mov %rcx,%rsp; pop %rcx; jmp *%rcx`: the end of `_Unwind_RaiseException` and similar functions in libgcc.
const EH_RETURN: Code = Code {
    bytes: &[0x48, 0x89, 0xcc, 0x59, 0xff, 0xe1],
    jump_at: 4,
    target: Target::Rcx,
};
/// `mov %r8,%rsp; mov %r9,%rbp; jmp *%rdx`: the end of glibc's `__longjmp`.
const LONGJMP: Code = Code {
    bytes: &[0x4c, 0x89, 0xc4, 0x4c, 0x89, 0xcd, 0xff, 0xe2],
    jump_at: 6,
    target: Target::Rdx,
};

struct Code {
    bytes: &'static [u8],
    jump_at: u64,
    target: Target,
}

#[derive(Clone, Copy, Debug)]
enum Target {
    Rcx,
    Rdx,
}

/// The places found so far.
#[derive(Debug, Default)]
pub(crate) struct UnwindTargets {
    places: Vec<(u64, Target)>,
    modules_seen: Vec<u32>,
}

impl Tracer {
    /// Sets traps where frames are left. The traps stay for the session: only a throw or a longjmp reaches them.
    pub fn find_unwind_targets(&mut self) {
        let space = self.space_now();
        for module in space.modules() {
            if self
                .breakpoints
                .unwind_targets
                .modules_seen
                .contains(&module.number)
            {
                continue;
            }
            self.breakpoints
                .unwind_targets
                .modules_seen
                .push(module.number);
            let segments = module.module.load_segments().iter();
            for segment in segments.filter(|segment| segment.flags.execute) {
                let Some(code) = module.module.code(segment.vaddr, segment.filesz) else {
                    continue;
                };
                for known in [&EH_RETURN, &LONGJMP] {
                    for offset in find(code, known.bytes) {
                        let svma = segment.vaddr.0 + offset as u64 + known.jump_at;
                        let address = module.address(debuginfo::Svma(svma));
                        if self.add_site(address, User::Unwind).is_ok() {
                            self.breakpoints
                                .unwind_targets
                                .places
                                .push((address, known.target));
                        }
                    }
                }
            }
        }
    }

    /// Handles a thread that is about to leave frames.
    pub fn before_unwinding(&mut self, tid: Tid, address: u64) {
        if !self.has_plan(tid) {
            return;
        }
        let target = self
            .breakpoints
            .unwind_targets
            .places
            .iter()
            .find(|(at, _)| *at == address)
            .map(|(_, target)| *target);
        let Ok(registers) = ptrace::registers(tid) else {
            return;
        };
        match target {
            Some(Target::Rcx) => self.will_unwind_to(tid, registers.rcx),
            Some(Target::Rdx) => self.will_unwind_to(tid, registers.rdx),
            None => {}
        }
    }
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

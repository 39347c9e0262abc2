//! Decides which functions of a Go program may be hooked, and where.
//!
//! A goroutine's stack is small and movable, and the runtime reads it. So return addresses must stay in place, and
//! nothing may be written below the stack pointer. Only entries are recorded, right after the check for stack space: a
//! function that finds too little space has its stack moved and starts over, and would count twice.

use debuginfo::{Module, Svma};
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpAccess, OpKind, Register};
use store::control::FunctionDef;

use super::{
    choose::Candidate,
    judge::Judge,
    patch::{Prepared, skipped},
};
use crate::displace::Displacement;

/// Offset in `runtime.g` of the limit that the stack check compares with.
const STACK_GUARD: u64 = 0x10;
/// The check is within this many first instructions.
const CHECKED_WITHIN: usize = 8;
/// Packages whose functions also run outside goroutines: in signal handlers, between threads, in forked children.
const RUNTIME: &[&str] = &[
    "runtime.",
    "runtime/",
    "internal/abi.",
    "internal/bytealg.",
    "internal/cpu.",
    "internal/goarch.",
    "internal/race.",
    "internal/runtime/",
    "internal/syscall/",
    "sync/atomic.",
    "syscall.",
    "vendor/golang.org/x/sys/",
    "golang.org/x/sys/",
];

impl Prepared {
    /// Plans the hook of a function of a Go program.
    pub(super) fn probe_of_go(&mut self, judge: &Judge<'_>, candidate: Candidate) {
        let def = &candidate.def;
        let refused = match judge.elf.has_go() {
            true => refused(def),
            false => Some("Go and other code of one process are not recorded together"),
        };
        let planned = match refused {
            Some(reason) => Err(reason.to_owned()),
            None => displacement_of_go(judge, def),
        };
        match planned {
            Ok((displacement, code)) => {
                self.probes
                    .push((entry_only(candidate), displacement, code));
            }
            Err(reason) => {
                self.skipped
                    .push(skipped(judge.module.number, def.svma, &def.name, reason))
            }
        }
    }
}

/// Returns the address to hook: after the function has checked that its stack has room.
pub(super) fn patched_at(elf: &Module, def: &FunctionDef) -> u64 {
    let code = elf.code(Svma(def.svma), def.size);
    def.svma + body_offset(code.unwrap_or_default())
}

fn displacement_of_go(
    judge: &Judge<'_>,
    def: &FunctionDef,
) -> Result<(Displacement, Vec<u8>), String> {
    let at = patched_at(judge.elf, def);
    let planned = judge.displacement(at, def.size - (at - def.svma))?;
    match refused_code(&planned.1) {
        Some(reason) => Err(reason.to_owned()),
        None => Ok(planned),
    }
}

/// Returns why a function of a Go program must not be hooked.
fn refused(def: &FunctionDef) -> Option<&'static str> {
    let file = def.file.as_deref().unwrap_or_default();
    if !file.ends_with(".go") {
        return Some("it is not written in Go, or was made by the linker");
    }
    let is_runtime = RUNTIME.iter().any(|start| def.name.starts_with(start));
    // Functions that the runtime implements for other packages carry those packages' names.
    if is_runtime || file.contains("/src/runtime/") || file.starts_with("runtime/") {
        return Some("it belongs to Go's runtime, which also runs where no goroutine does");
    }
    None
}

/// Reduces a candidate to what its entry shows: Go chooses its own registers for arguments and results.
fn entry_only(mut candidate: Candidate) -> Candidate {
    candidate.def.params.clear();
    candidate.def.params_known = false;
    candidate.def.ret = store::control::ValueKind::Unknown;
    Candidate {
        xmm_args: 0,
        ret_xmm: false,
        texts: [0; 6],
        pointees: [0; 6],
        ..candidate
    }
}

/// Returns the offset in bytes at which a function has checked its stack space; 0 if it does not check.
fn body_offset(code: &[u8]) -> u64 {
    let mut decoder = Decoder::with_ip(64, code, 0, DecoderOptions::NONE);
    let mut has_compared = false;
    for _ in 0..CHECKED_WITHIN {
        if !decoder.can_decode() {
            break;
        }
        let instruction = decoder.decode();
        if has_compared && instruction.mnemonic() == Mnemonic::Jbe {
            return instruction.next_ip();
        }
        has_compared = compares_with_guard(&instruction);
        let may_precede = matches!(
            instruction.mnemonic(),
            Mnemonic::Cmp | Mnemonic::Lea | Mnemonic::Mov | Mnemonic::Sub | Mnemonic::Jb
        );
        if !may_precede {
            break;
        }
    }
    0
}

/// Recognises `cmp rsp, [r14 + 16]`, or the same with another register for a large frame.
fn compares_with_guard(instruction: &Instruction) -> bool {
    instruction.mnemonic() == Mnemonic::Cmp
        && instruction.op0_kind() == OpKind::Register
        && instruction.op1_kind() == OpKind::Memory
        && instruction.memory_displacement64() == STACK_GUARD
        && instruction.memory_index() == Register::None
        && !matches!(instruction.memory_base(), Register::RSP | Register::RIP)
}

/// Returns why the first instructions must not be displaced. If one of them hits a nil pointer elsewhere, Go's runtime
/// does not know the address and ends the program instead of raising a panic.
fn refused_code(displaced: &[u8]) -> Option<&'static str> {
    let decoder = Decoder::with_ip(64, displaced, 0, DecoderOptions::NONE);
    let mut factory = iced_x86::InstructionInfoFactory::new();
    for instruction in decoder {
        let uses_pointer = factory.info(&instruction).used_memory().iter().any(|used| {
            !matches!(used.access(), OpAccess::NoMemAccess)
                && !matches!(
                    used.base(),
                    Register::RSP | Register::RIP | Register::None | Register::R14
                )
        });
        if uses_pointer {
            return Some("one of its first instructions follows a pointer, which may be nil");
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_body_begins_behind_the_check_for_room() {
        // cmp 0x10(%r14),%rsp; jbe; sub $0x18,%rsp
        let small = [
            0x49, 0x3b, 0x66, 0x10, 0x76, 0x67, 0x48, 0x83, 0xec, 0x18, 0x90,
        ];
        assert_eq!(body_offset(&small), 6);
        // lea -0x7a8(%rsp),%r12; cmp 0x10(%r14),%r12; jbe; sub $0x828,%rsp
        let large = [
            0x4c, 0x8d, 0xa4, 0x24, 0x58, 0xf8, 0xff, 0xff, 0x4d, 0x3b, 0x66, 0x10, 0x0f, 0x86,
            0xbd, 0, 0, 0, 0x48, 0x81, 0xec, 0x28, 0x08, 0, 0,
        ];
        assert_eq!(body_offset(&large), 18);
        // lea (%rax,%rax,2),%rcx; ret
        assert_eq!(body_offset(&[0x48, 0x8d, 0x0c, 0x40, 0xc3]), 0);
        assert_eq!(body_offset(&[]), 0);
    }

    #[test]
    fn a_pointer_that_is_followed_at_once_is_refused() {
        // mov (%rax),%rcx
        assert!(refused_code(&[0x48, 0x8b, 0x08, 0x90, 0x90]).is_some());
        // sub $0x18,%rsp; mov %rbp,0x10(%rsp)
        let frame = [0x48, 0x83, 0xec, 0x18, 0x48, 0x89, 0x6c, 0x24, 0x10];
        assert_eq!(refused_code(&frame), None);
        // lea (%rax,%rax,2),%rcx
        assert_eq!(refused_code(&[0x48, 0x8d, 0x0c, 0x40, 0x90]), None);
    }
}

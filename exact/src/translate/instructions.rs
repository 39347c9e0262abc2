//! What instructions are: which end a block, depend on chance, load flags, or cannot be translated.

use iced_x86::{
    Code as Opcode, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register,
};

/// Decodes a block at `pc`: at most `most` instructions, and none at which another block `begins`.
pub(super) fn decode(
    bytes: &[u8],
    pc: u64,
    most: usize,
    begins: impl Fn(u64) -> bool,
) -> Vec<Instruction> {
    let mut decoder = Decoder::with_ip(64, bytes, pc, DecoderOptions::NONE);
    let mut found = Vec::new();
    while found.len() < most && decoder.can_decode() {
        if !found.is_empty() && begins(decoder.ip()) {
            break;
        }
        let instruction = decoder.decode();
        if instruction.is_invalid() {
            // Cut off by the end of what was read, unless it is the first: that one faults as it does in the program.
            if found.is_empty() && bytes.len() >= 15 {
                found.push(instruction);
            }
            break;
        }
        found.push(instruction);
        if ends_block(&instruction) {
            break;
        }
    }
    found
}

/// Instructions whose results another run would not see again.
pub(crate) fn is_chance(instruction: &Instruction) -> bool {
    matches!(
        instruction.mnemonic(),
        Mnemonic::Rdtsc
            | Mnemonic::Rdtscp
            | Mnemonic::Cpuid
            | Mnemonic::Rdrand
            | Mnemonic::Rdseed
            | Mnemonic::Rdpid
            | Mnemonic::Rdpmc
            | Mnemonic::Xgetbv
    ) || tells_tables(instruction)
        || saves_state(instruction)
}

/// Instructions that tell of the kernel's tables, of which each processor has its own: the limit of one segment is its number.
pub(crate) fn tells_tables(instruction: &Instruction) -> bool {
    matches!(
        instruction.mnemonic(),
        Mnemonic::Lsl
            | Mnemonic::Lar
            | Mnemonic::Sgdt
            | Mnemonic::Sidt
            | Mnemonic::Sldt
            | Mnemonic::Str
            | Mnemonic::Smsw
    )
}

/// Instructions that save state of the processor in memory. Which parts of it are in use depends on what the kernel did meanwhile.
pub(crate) fn saves_state(instruction: &Instruction) -> bool {
    matches!(
        instruction.mnemonic(),
        Mnemonic::Fnstenv
            | Mnemonic::Fnsave
            | Mnemonic::Fxsave
            | Mnemonic::Fxsave64
            | Mnemonic::Xsave
            | Mnemonic::Xsave64
            | Mnemonic::Xsaveopt
            | Mnemonic::Xsaveopt64
            | Mnemonic::Xsavec
            | Mnemonic::Xsavec64
    )
}

pub(super) fn loads_flags(instruction: &Instruction) -> bool {
    matches!(
        instruction.mnemonic(),
        Mnemonic::Popf | Mnemonic::Popfd | Mnemonic::Popfq
    )
}

/// What would see or change that the base of gs is ours, or leaves 64-bit mode; and what uses AMX's tiles, which copies of a process do
/// not get.
pub(crate) fn is_unsupported(instruction: &Instruction) -> bool {
    let uses_tiles = (0..instruction.op_count()).any(|op| {
        instruction.op_kind(op) == OpKind::Register && instruction.op_register(op).is_tmm()
    });
    instruction.segment_prefix() == Register::GS
        || loads_gs(instruction)
        || uses_tiles
        || returns_far(instruction)
        || matches!(
            instruction.mnemonic(),
            Mnemonic::Rdgsbase | Mnemonic::Wrgsbase | Mnemonic::Ldtilecfg | Mnemonic::Sysenter
        )
        || instruction.code() == Opcode::Int_imm8 && !traps_by_number(instruction)
        || instruction.is_jmp_far_indirect()
        || instruction.is_call_far_indirect()
}

/// Whether an instruction that is not translated changes nothing but registers: it can be executed where it lies.
pub(crate) fn changes_registers_alone(instruction: &Instruction) -> bool {
    returns_far(instruction) || loads_gs(instruction)
}

/// `int 3` and `int 4` in two bytes: the only interrupts by number that the kernel lets programs raise, but for its own. Their signal
/// comes behind them.
pub(crate) fn traps_by_number(instruction: &Instruction) -> bool {
    instruction.code() == Opcode::Int_imm8 && matches!(instruction.immediate8(), 3 | 4)
}

/// Whether code is no instruction only because that would be longer than the processor takes: it raises another fault for that.
pub(super) fn is_too_long(code: &[u8]) -> bool {
    const LONGEST: usize = 15;
    const PREFIXES: [u8; 11] = [
        0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x66, 0x67, 0xf0, 0xf2, 0xf3,
    ];
    let is_prefix = |byte: &&u8| PREFIXES.contains(*byte);
    let prefixes = code.iter().take_while(is_prefix).count();
    let is_shorter_one = |dropped: usize| {
        let rest = Decoder::new(64, &code[dropped..], DecoderOptions::NONE).decode();
        !rest.is_invalid() && dropped + rest.len() > LONGEST
    };
    prefixes >= LONGEST || (1..=prefixes).any(is_shorter_one)
}

/// Instructions that load gs, and its base with it. Those that only store it see what is the program's.
fn loads_gs(instruction: &Instruction) -> bool {
    let is_operand = instruction.op_count() > 0
        && instruction.op_kind(0) == OpKind::Register
        && instruction.op_register(0) == Register::GS;
    match instruction.mnemonic() {
        Mnemonic::Mov | Mnemonic::Pop => is_operand,
        Mnemonic::Lgs => true,
        _ => false,
    }
}

/// All returns but the near one, whose target alone is on the stack. Some are the kernel's.
fn returns_far(instruction: &Instruction) -> bool {
    instruction.flow_control() == FlowControl::Return && instruction.mnemonic() != Mnemonic::Ret
}

pub(super) fn ends_block(instruction: &Instruction) -> bool {
    instruction.is_invalid()
        || instruction.flow_control() != FlowControl::Next
        || is_chance(instruction)
        || is_unsupported(instruction)
}

/// Which stack an instruction leaves a thread on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StackAfter {
    Same,
    /// That of the frame pointer.
    Frame,
    Any,
}

/// Whether an instruction may go to another stack. What adds or subtracts a constant does not.
pub(super) fn stack_after(instruction: &Instruction) -> StackAfter {
    let is_stack = |op: u32| {
        op < instruction.op_count()
            && instruction.op_kind(op) == OpKind::Register
            && instruction.op_register(op).full_register() == Register::RSP
    };
    let is_constant = !matches!(instruction.op1_kind(), OpKind::Register | OpKind::Memory);
    match instruction.mnemonic() {
        Mnemonic::Leave => StackAfter::Frame,
        Mnemonic::Push | Mnemonic::Cmp | Mnemonic::Test => StackAfter::Same,
        Mnemonic::Add | Mnemonic::Sub | Mnemonic::And if is_constant => StackAfter::Same,
        Mnemonic::Lea
            if instruction.memory_base() == Register::RSP
                && instruction.memory_index() == Register::None =>
        {
            StackAfter::Same
        }
        Mnemonic::Xchg | Mnemonic::Xadd | Mnemonic::Cmpxchg if is_stack(1) => StackAfter::Any,
        _ if is_stack(0) => StackAfter::Any,
        _ => StackAfter::Same,
    }
}

#[cfg(test)]
mod tests {
    //! Goal: instructions that a recording cannot hold are told from others. Method: machine code from Intel's manual.

    use super::*;

    fn is_refused(code: &[u8]) -> bool {
        let instruction = Decoder::new(64, code, DecoderOptions::NONE).decode();
        assert!(!instruction.is_invalid(), "{code:x?}");
        is_unsupported(&instruction)
    }

    #[test]
    fn interrupts_by_number_are_refused_but_for_traps() {
        for number in [0u8, 1, 2, 5, 0x20, 0x2d, 0x80, 0xff] {
            assert!(is_refused(&[0xcd, number]), "{number}");
        }
        assert!(!is_refused(&[0xcd, 3]) && !is_refused(&[0xcd, 4]));
    }

    #[test]
    fn instructions_that_are_too_long_are_told_from_those_that_are_none() {
        let with = |prefixes: usize, rest: &[u8]| [vec![0x66; prefixes], rest.to_vec()].concat();
        assert!(is_too_long(&with(16, &[0x90])));
        assert!(is_too_long(&with(15, &[0x90, 0x90])));
        assert!(is_too_long(&with(13, &[0x48, 0x89, 0xc8])));
        // push es; lock nop; these are none, however short.
        assert!(!is_too_long(&with(14, &[0x06, 0x90, 0x90])));
        assert!(!is_too_long(&[0xf0, 0x90, 0x90, 0x90]));
        assert!(!is_too_long(&[0x0f, 0xff, 0xc0, 0x90]));
    }

    #[test]
    fn what_tells_of_tables_depends_on_chance() {
        let codes: [&[u8]; 4] = [
            &[0x0f, 0x03, 0xc1],       // lsl eax, cx
            &[0x0f, 0x02, 0xc1],       // lar eax, cx
            &[0x0f, 0x01, 0x00],       // sgdt [rax]
            &[0x66, 0x0f, 0x00, 0xc8], // str ax
        ];
        for code in codes {
            let instruction = Decoder::new(64, code, DecoderOptions::NONE).decode();
            assert!(is_chance(&instruction), "{code:x?}");
        }
    }

    #[test]
    fn other_stacks_are_told_from_frames() {
        let after =
            |code: &[u8]| stack_after(&Decoder::new(64, code, DecoderOptions::NONE).decode());
        let same: [&[u8]; 10] = [
            &[0x54],                         // push rsp
            &[0x5d],                         // pop rbp
            &[0xc3],                         // ret
            &[0x48, 0x83, 0xec, 0x28],       // sub rsp, 40
            &[0x48, 0x81, 0xc4, 0, 1, 0, 0], // add rsp, 256
            &[0x48, 0x83, 0xe4, 0xe0],       // and rsp, -32
            &[0x48, 0x8d, 0x64, 0x24, 0xf8], // lea rsp, [rsp - 8]
            &[0x48, 0x89, 0xe5],             // mov rbp, rsp
            &[0x48, 0x39, 0xc4],             // cmp rsp, rax
            &[0x48, 0x89, 0x04, 0x24],       // mov [rsp], rax
        ];
        assert_eq!(
            same.iter().find(|code| after(code) != StackAfter::Same),
            None
        );
        let any: [&[u8]; 10] = [
            &[0x5c],                   // pop rsp
            &[0x48, 0x89, 0xec],       // mov rsp, rbp
            &[0x48, 0x8b, 0x27],       // mov rsp, [rdi]
            &[0x48, 0x29, 0xc4],       // sub rsp, rax
            &[0x48, 0x03, 0x20],       // add rsp, [rax]
            &[0x48, 0x8d, 0x65, 0xd8], // lea rsp, [rbp - 40]
            &[0x48, 0x8d, 0x24, 0x04], // lea rsp, [rsp + rax]
            &[0x48, 0x94],             // xchg rsp, rax
            &[0x48, 0x87, 0x23],       // xchg [rbx], rsp
            &[0x48, 0x0f, 0x44, 0xe0], // cmove rsp, rax
        ];
        assert_eq!(any.iter().find(|code| after(code) != StackAfter::Any), None);
        assert_eq!(after(&[0xc9]), StackAfter::Frame);
    }

    #[test]
    fn gs_tiles_and_far_returns_are_refused() {
        let refused: [&[u8]; 15] = [
            &[0x65, 0x48, 0x8b, 0x00],       // mov rax, gs:[rax]
            &[0x0f, 0xa9],                   // pop gs
            &[0x8e, 0xe8],                   // mov gs, ax
            &[0x8e, 0x28],                   // mov gs, [rax]
            &[0x0f, 0xb5, 0x00],             // lgs eax, [rax]
            &[0xc4, 0xe2, 0x78, 0x49, 0x00], // ldtilecfg [rax]
            &[0xc4, 0xe2, 0x7b, 0x49, 0xc0], // tilezero tmm0
            &[0xcb],                         // retf
            &[0x48, 0xcb],                   // retfq
            &[0x48, 0xca, 0x08, 0x00],       // retfq 8
            &[0x66, 0xcf],                   // iretw
            &[0xcf],                         // iretd
            &[0x48, 0xcf],                   // iretq
            &[0x48, 0x0f, 0x07],             // sysretq
            &[0x48, 0x0f, 0x35],             // sysexitq
        ];
        assert_eq!(refused.iter().find(|code| !is_refused(code)), None);
        let others: [&[u8]; 9] = [
            &[0x64, 0x48, 0x8b, 0x00],       // mov rax, fs:[rax]
            &[0x0f, 0xa0],                   // push fs
            &[0x0f, 0xa8],                   // push gs
            &[0x8c, 0xe8],                   // mov eax, gs
            &[0x8c, 0x28],                   // mov [rax], gs
            &[0xc4, 0xe2, 0x78, 0x49, 0xc0], // tilerelease
            &[0xc3],                         // ret
            &[0xf3, 0xc3],                   // rep ret
            &[0xc2, 0x08, 0x00],             // ret 8
        ];
        assert_eq!(others.iter().find(|code| is_refused(code)), None);
    }
}

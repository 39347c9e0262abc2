//! Classifies an instruction by how to displace it. Every kind not listed here is refused.

use iced_x86::{Code, ConstantOffsets, FlowControl, Instruction, OpKind, Register};

use super::Refusal;

/// What must be done for an instruction to mean the same at another address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Copied unchanged.
    Plain,
    /// Copied. The four bytes at `field` hold a displacement relative to the next instruction.
    RipRelative { field: usize },
    /// Copied. The kernel may set the instruction pointer back to it (a restarted system call).
    Syscall,
    /// `ret`, or a jump through a register or memory. Copied; control does not come back. `field` as in `RipRelative`.
    Leaves { field: Option<usize> },
    /// `jmp target`
    Jump,
    /// `jcc target`; holds the low four bits of the opcode.
    JumpIf { condition: u8 },
    /// `loop`, `loope`, `loopne`, `jrcxz`: exist only with a one-byte distance.
    CountJump { opcode: u8, ecx: bool },
    /// `call target`
    Call,
    /// `call r/m`; `field` as in `RipRelative`.
    CallIndirect { field: Option<usize> },
}

impl Kind {
    /// Returns whether the displaced copy can continue with the next instruction in memory.
    pub(super) fn falls_through(self) -> bool {
        !matches!(
            self,
            Kind::Leaves { .. } | Kind::Jump | Kind::Call | Kind::CallIndirect { .. }
        )
    }

    /// Returns whether the target is encoded in the instruction.
    pub(super) fn has_target(self) -> bool {
        matches!(
            self,
            Kind::Jump | Kind::JumpIf { .. } | Kind::CountJump { .. } | Kind::Call
        )
    }
}

/// Classifies `instruction`, whose encoding is `bytes`.
///
/// # Errors
/// Why it cannot be displaced.
pub(super) fn classify(
    instruction: &Instruction,
    bytes: &[u8],
    offsets: &ConstantOffsets,
) -> Result<Kind, Refusal> {
    let at = instruction.ip();
    if instruction.is_privileged() {
        return Err(Refusal::Privileged { at });
    }
    let field = rip_field(instruction, offsets)?;
    match instruction.flow_control() {
        FlowControl::Next => Ok(field.map_or(Kind::Plain, |field| Kind::RipRelative { field })),
        FlowControl::UnconditionalBranch => near_branch(instruction, bytes, Kind::Jump),
        FlowControl::ConditionalBranch => conditional(instruction, bytes),
        FlowControl::IndirectBranch => match instruction.code() {
            Code::Jmp_rm64 => Ok(Kind::Leaves { field }),
            Code::Jmp_rm16 | Code::Jmp_rm32 => Err(Refusal::OddBranch { at }),
            _ => Err(Refusal::FarBranch { at }),
        },
        FlowControl::Return => match instruction.code() {
            Code::Retnq | Code::Retnq_imm16 => Ok(Kind::Leaves { field: None }),
            Code::Retnw | Code::Retnw_imm16 | Code::Retnd | Code::Retnd_imm16 => {
                Err(Refusal::OddBranch { at })
            }
            _ => Err(Refusal::FarBranch { at }),
        },
        FlowControl::Call => match instruction.code() {
            Code::Syscall => Ok(Kind::Syscall),
            _ if instruction.is_call_near() => near_branch(instruction, bytes, Kind::Call),
            _ if instruction.is_call_far() => Err(Refusal::FarBranch { at }),
            _ => Err(Refusal::OddSystemCall { at }),
        },
        FlowControl::IndirectCall => match instruction.code() {
            Code::Call_rm64 => call_indirect(instruction, field),
            Code::Call_rm16 | Code::Call_rm32 => Err(Refusal::OddBranch { at }),
            _ => Err(Refusal::FarBranch { at }),
        },
        FlowControl::Interrupt | FlowControl::Exception => Err(Refusal::Trap { at }),
        FlowControl::XbeginXabortXend => Err(Refusal::Transaction { at }),
    }
}

/// Returns the offset of the rip-relative displacement in the encoding, if there is one.
fn rip_field(
    instruction: &Instruction,
    offsets: &ConstantOffsets,
) -> Result<Option<usize>, Refusal> {
    if !instruction.is_ip_rel_memory_operand() {
        return Ok(None);
    }
    let at = instruction.ip();
    if instruction.memory_base() != Register::RIP {
        return Err(Refusal::EipRelative { at });
    }
    assert!(
        offsets.has_displacement() && offsets.displacement_size() == 4,
        "a rip-relative operand has a displacement of four bytes"
    );
    Ok(Some(offsets.displacement_offset()))
}

/// Refuses the operand-size prefix: Intel ignores it on near branches, AMD truncates the target to 16 bits.
fn near_branch(instruction: &Instruction, bytes: &[u8], kind: Kind) -> Result<Kind, Refusal> {
    let at = instruction.ip();
    if instruction.op0_kind() != OpKind::NearBranch64 || prefixes(bytes).contains(&0x66) {
        return Err(Refusal::OddBranch { at });
    }
    Ok(kind)
}

fn conditional(instruction: &Instruction, bytes: &[u8]) -> Result<Kind, Refusal> {
    let length = bytes.len();
    let kind = if instruction.is_jcc_short() {
        Kind::JumpIf {
            condition: bytes[length - 2] & 0xf,
        }
    } else if instruction.is_jcc_near() {
        Kind::JumpIf {
            condition: bytes[length - 5] & 0xf,
        }
    } else if matches!(bytes[length - 2], 0xe0..=0xe3) {
        Kind::CountJump {
            opcode: bytes[length - 2],
            ecx: prefixes(bytes).contains(&0x67),
        }
    } else {
        return Err(Refusal::OddBranch {
            at: instruction.ip(),
        });
    };
    near_branch(instruction, bytes, kind)
}

/// The displaced form pushes the return address first, so the stack pointer is 8 lower when the target is read.
fn call_indirect(instruction: &Instruction, field: Option<usize>) -> Result<Kind, Refusal> {
    let refused = Refusal::CallThroughStack {
        call: instruction.ip(),
    };
    if instruction.op0_kind() == OpKind::Register {
        return match instruction.op0_register() {
            Register::RSP => Err(refused),
            _ => Ok(Kind::CallIndirect { field }),
        };
    }
    match instruction.memory_base() {
        Register::ESP => Err(refused),
        Register::RSP => {
            let distance = instruction.memory_displacement64() as i64;
            let known = instruction.memory_index() == Register::None;
            let overwritten = (-15..0).contains(&distance);
            let fits = i32::try_from(distance + 8).is_ok();
            if known && !overwritten && fits {
                Ok(Kind::CallIndirect { field })
            } else {
                Err(refused)
            }
        }
        _ => Ok(Kind::CallIndirect { field }),
    }
}

/// Returns the legacy prefixes at the start of `bytes`.
fn prefixes(bytes: &[u8]) -> &[u8] {
    let is_prefix = |byte: &u8| {
        matches!(
            byte,
            0x26 | 0x2e | 0x36 | 0x3e | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3
        )
    };
    let count = bytes.iter().take_while(|byte| is_prefix(byte)).count();
    &bytes[..count]
}

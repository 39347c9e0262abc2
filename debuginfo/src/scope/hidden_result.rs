//! Where a function has put a result that does not fit registers: its caller passes an address in rdi (System V ABI, 3.2.3). Functions
//! of C and C++ return that address in rax; what compilers make of private functions and of Rust's need not. The caller's code tells.

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess,
    OpKind, Register as Name,
};

use crate::address_space::AddressSpace;
use crate::disassemble::parts;
use crate::machine::{Machine, Register};

/// Bytes of a caller's code that are looked at, at most.
const MAX_CODE: u64 = 1 << 16;

/// What rdi was set to.
#[derive(Clone, Copy)]
struct Set {
    /// A register that calls preserve, or the stack pointer.
    base: Name,
    /// What is added to it.
    offset: u64,
    /// The instruction.
    at: u64,
}

/// Returns the address that the caller passed for the result of the call that has just returned to `back`; `None` if its code does
/// not tell.
pub(super) fn hidden_result(space: &AddressSpace, machine: &dyn Machine, back: u64) -> Option<u64> {
    let ranges = parts(space, back.checked_sub(1)?)?;
    let (from, to) = ranges
        .into_iter()
        .find(|(from, to)| (*from..*to).contains(&(back - 1)))?;
    if to - from > MAX_CODE {
        return None;
    }
    let mapped = space.at(from)?;
    let code = mapped.module.code(mapped.svma(from), to - from)?;
    let set = set_before(code, from, back)?;
    let (base, _) = machine.register(register(set.base)?).ok()?;
    Some(base.wrapping_add(set.offset))
}

/// How rdi was set for the call that returns to `back`, if nothing jumps in between.
fn set_before(code: &[u8], from: u64, back: u64) -> Option<Set> {
    let mut info = InstructionInfoFactory::new();
    let decoder = Decoder::with_ip(64, code, from, DecoderOptions::NONE);
    let (mut set, mut found, mut targets) = (None, None, Vec::new());
    for instruction in decoder {
        if instruction.next_ip() == back {
            if instruction.flow_control() != FlowControl::Call
                && instruction.flow_control() != FlowControl::IndirectCall
            {
                return None;
            }
            found = set;
        }
        if instruction.near_branch_target() != 0 && !instruction.is_call_near() {
            targets.push(instruction.near_branch_target());
        }
        set = after(&instruction, set, &mut info);
    }
    let found: Set = found?;
    let is_between = |target: &u64| found.at < *target && *target < back;
    (!targets.iter().any(is_between)).then_some(found)
}

fn after(
    instruction: &Instruction,
    set: Option<Set>,
    info: &mut InstructionInfoFactory,
) -> Option<Set> {
    if instruction.is_call_near() || instruction.is_call_near_indirect() {
        return None;
    }
    let writes = |name: Name, info: &mut InstructionInfoFactory| {
        let used = info.info(instruction).used_registers();
        used.iter().any(|used| {
            used.register().full_register() == name
                && !matches!(used.access(), OpAccess::Read | OpAccess::CondRead)
        })
    };
    if writes(Name::RDI, info) {
        return given(instruction);
    }
    set.filter(|set| !writes(set.base, info))
}

/// What an instruction gives rdi.
fn given(instruction: &Instruction) -> Option<Set> {
    let set = |base, offset| Set {
        base,
        offset,
        at: instruction.ip(),
    };
    let is_whole = instruction.op0_register() == Name::RDI;
    match instruction.mnemonic() {
        Mnemonic::Lea if is_whole && instruction.memory_index() == Name::None => Some(set(
            instruction.memory_base(),
            instruction.memory_displacement64(),
        )),
        Mnemonic::Mov if is_whole && instruction.op1_kind() == OpKind::Register => {
            Some(set(instruction.op1_register(), 0))
        }
        _ => None,
    }
}

/// The registers that calls preserve, and the stack pointer.
fn register(name: Name) -> Option<Register> {
    Some(match name {
        Name::RSP => Register::RSP,
        Name::RBX => Register::RBX,
        Name::RBP => Register::RBP,
        Name::R12 => Register(12),
        Name::R13 => Register(13),
        Name::R14 => Register(14),
        Name::R15 => Register(15),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base_of(code: &[u8]) -> Option<(Name, u64)> {
        let back = 0x1000 + code.len() as u64;
        let mut whole = code.to_vec();
        whole.push(0xc3);
        set_before(&whole, 0x1000, back).map(|set| (set.base, set.offset))
    }

    const CALL: [u8; 5] = [0xe8, 0, 0, 0, 0];

    #[test]
    fn the_caller_tells_where_the_result_goes() {
        // lea rdi, [rsp+0x20]; mov esi, 5; call
        let lea = [0x48, 0x8d, 0x7c, 0x24, 0x20, 0xbe, 5, 0, 0, 0];
        assert_eq!(
            base_of(&[&lea[..], &CALL].concat()),
            Some((Name::RSP, 0x20))
        );
        // lea rdi, [rsp+0x20]; push rax; call: the stack pointer has moved.
        let pushed = [0x48, 0x8d, 0x7c, 0x24, 0x20, 0x50];
        assert_eq!(base_of(&[&pushed[..], &CALL].concat()), None);
        // mov rdi, rbx; call
        let kept = [0x48, 0x89, 0xdf];
        assert_eq!(base_of(&[&kept[..], &CALL].concat()), Some((Name::RBX, 0)));
        // mov rdi, [rbx]; call: what was there may have changed.
        let loaded = [0x48, 0x8b, 0x3b];
        assert_eq!(base_of(&[&loaded[..], &CALL].concat()), None);
        // Another call in between has changed it.
        assert_eq!(base_of(&[&kept[..], &CALL, &CALL].concat()), None);
        // je +3; mov rdi, rbx; call: what jumps there has set it otherwise.
        let jumped = [0x74, 3, 0x48, 0x89, 0xdf];
        assert_eq!(base_of(&[&jumped[..], &CALL].concat()), None);
        // je +0; mov rdi, rbx; call: all come by the instruction.
        let before = [0x74, 0, 0x48, 0x89, 0xdf];
        assert_eq!(
            base_of(&[&before[..], &CALL].concat()),
            Some((Name::RBX, 0))
        );
    }
}

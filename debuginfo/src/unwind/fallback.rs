//! Finds the caller of code without unwind tables: by the return address on top of the stack, or by the frame pointer.
//!
//! The result may be wrong, so it is accepted only if a call instruction precedes the return address.

use super::frame::{FrameRegisters, not_preserved};
use crate::address_space::AddressSpace;
use crate::machine::{Certainty, Machine, Register, Unknown};

/// `push %rbp`, `mov %rsp,%rbp`: the usual start of functions with a frame pointer, after an optional `endbr64`.
const PUSH_RBP: &[u8] = &[0x55];
const MOV_RSP_RBP: [&[u8]; 2] = [&[0x48, 0x89, 0xe5], &[0x48, 0x8b, 0xec]];
const ENDBR64: &[u8] = &[0xf3, 0x0f, 0x1e, 0xfa];

/// Finds the CFA and the caller's registers for the code at `pc`. `is_exact`: the code stopped there and is not in a
/// call.
///
/// # Errors
/// There is no plausible return address.
pub(super) fn caller(
    space: &AddressSpace,
    machine: &dyn Machine,
    registers: &FrameRegisters,
    pc: u64,
    is_exact: bool,
) -> Result<(u64, FrameRegisters), Unknown> {
    let why = match space.at(pc) {
        Some(_) => format!("there are no unwind tables for {pc:#x}"),
        None => format!("no module is mapped at {pc:#x}"),
    };
    let failed = |detail: &str| Unknown::because(format!("{why}, and {detail}"));
    let (rsp, _) = registers.get(Register::RSP)?;
    if is_exact {
        // Just after a call, the return address is on top of the stack. After `push %rbp`, rbp is above it.
        let pushed = pushed(machine, pc);
        for above in [pushed, Some(0), Some(8)].into_iter().flatten() {
            let slot = rsp.wrapping_add(above);
            if let Some(target) = return_address(space, machine, slot) {
                let rbp = match above {
                    8 => Saved::At(rsp),
                    _ => Saved::Same,
                };
                return Ok((
                    slot.wrapping_add(8),
                    recovered(machine, registers, slot, target, rbp),
                ));
            }
        }
    }
    let (rbp, _) = registers
        .get(Register::RBP)
        .map_err(|w| failed(&w.reason))?;
    if rbp < rsp || rbp % 8 != 0 {
        return Err(failed("rbp is not a frame pointer"));
    }
    let slot = rbp.wrapping_add(8);
    let target = return_address(space, machine, slot)
        .ok_or_else(|| failed("rbp does not lead to a return address"))?;
    Ok((
        rbp.wrapping_add(16),
        recovered(machine, registers, slot, target, Saved::At(rbp)),
    ))
}

/// Returns the bytes that the prologue has pushed before `pc`, if `pc` is in a prologue.
fn pushed(machine: &dyn Machine, pc: u64) -> Option<u64> {
    let mut before = [0; 1];
    let mut at = [0; 5];
    machine.memory(pc, &mut at).ok()?;
    if at.starts_with(PUSH_RBP) || at.starts_with(ENDBR64) {
        return Some(0);
    }
    machine.memory(pc.wrapping_sub(1), &mut before).ok()?;
    let moves = MOV_RSP_RBP.iter().any(|bytes| at.starts_with(bytes));
    (moves && before == PUSH_RBP).then_some(8)
}

enum Saved {
    Same,
    At(u64),
}

fn recovered(
    machine: &dyn Machine,
    registers: &FrameRegisters,
    slot: u64,
    target: u64,
    rbp: Saved,
) -> FrameRegisters {
    let mut saved = [None; 17];
    let unknown = |n: usize| Err(not_preserved(Register(n as u16)));
    let mut values: [Result<(u64, Certainty), Unknown>; 17] = std::array::from_fn(unknown);
    values[7] = Ok((slot.wrapping_add(8), Certainty::Known));
    values[16] = Ok((target, Certainty::Known));
    saved[16] = Some(slot);
    match rbp {
        Saved::Same => {
            values[6] = registers.get(Register::RBP);
            saved[6] = registers.saved_at(Register::RBP);
        }
        Saved::At(address) => {
            values[6] = word(machine, address);
            saved[6] = Some(address);
        }
    }
    FrameRegisters::recovered(values, saved)
}

fn word(machine: &dyn Machine, address: u64) -> Result<(u64, Certainty), Unknown> {
    let mut bytes = [0; 8];
    let certainty = machine.memory(address, &mut bytes)?;
    Ok((u64::from_le_bytes(bytes), certainty))
}

/// Returns the return address in `slot` if it is plausible: code of a module, just after a call instruction.
fn return_address(space: &AddressSpace, machine: &dyn Machine, slot: u64) -> Option<u64> {
    let (found, _) = word(machine, slot).ok()?;
    let target = machine.return_address(slot, found).ok()?;
    let mapped = space.at(target)?;
    let behind = mapped.svma(target);
    let is_code = mapped.module.code.is_code(behind.0.wrapping_sub(1));
    (is_code && follows_call(&mapped.module, behind.0)).then_some(target)
}

/// Returns whether a call instruction may end at `svma`.
fn follows_call(module: &crate::module::Module, svma: u64) -> bool {
    let view = &module.code;
    (2..=7u64).any(|length| {
        let bytes = view.bytes(svma.wrapping_sub(length), length as usize);
        let mut decoder = iced_x86::Decoder::new(64, bytes, iced_x86::DecoderOptions::NONE);
        let instruction = decoder.decode();
        let is_call = matches!(
            instruction.flow_control(),
            iced_x86::FlowControl::Call | iced_x86::FlowControl::IndirectCall
        );
        is_call && instruction.len() as u64 == length
    })
}

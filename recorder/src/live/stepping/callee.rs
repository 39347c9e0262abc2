//! Determines what an instruction calls or returns to, looking through PLT stubs and our hooks.

use debuginfo::AddressSpace;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, OpKind};

use crate::{
    live::{
        error::{LiveError, LiveResult},
        tracee::{Tracee, hooks::shadow_of, machine::register_value},
    },
    stop::Registers,
};

impl Tracee {
    pub(super) fn instruction_at(&self, pc: u64) -> LiveResult<Instruction> {
        let mut code = [0; 15];
        let missing = |_| LiveError::Memory {
            address: pc,
            len: 1,
        };
        if self.memory.read(pc, &mut code).is_err() {
            let bytes = self.memory.read_up_to(pc, 15);
            if bytes.is_empty() {
                return Err(missing(()));
            }
            code[..bytes.len()].copy_from_slice(&bytes);
        }
        Ok(Decoder::with_ip(64, &code, pc, DecoderOptions::NONE).decode())
    }

    /// Returns the program's own return address in a stack slot.
    pub fn return_address(&self, slot: u64) -> Option<u64> {
        let word = self.memory.word(slot).ok()?;
        if self.memory.hooks_now().leave().is(word) {
            return self.memory.word(shadow_of(slot)).ok();
        }
        Some(word)
    }

    pub(super) fn target_of(&self, call: &Instruction, registers: &Registers) -> Option<u64> {
        match call.op0_kind() {
            OpKind::NearBranch64 => Some(call.near_branch_target()),
            OpKind::Register => register_value(registers, call.op0_register()),
            OpKind::Memory => {
                let at = call.virtual_address(0, 0, |register, _, _| {
                    if register.is_segment_register() {
                        return Some(match register {
                            iced_x86::Register::FS => registers.fs_base,
                            iced_x86::Register::GS => registers.gs_base,
                            _ => 0,
                        });
                    }
                    register_value(registers, register)
                })?;
                self.memory.word(at).ok()
            }
            _ => None,
        }
    }

    /// Returns where to stop in the function that a call of `target` enters, if a user would want to stop there.
    pub(super) fn function_to_enter(&self, space: &AddressSpace, target: u64) -> Option<u64> {
        let target = self.behind_stub(space, target)?;
        if is_system(space, target) {
            return None;
        }
        let function = space.function_at(target)?;
        if function.entry != target || space.line_at(function.after_prologue).is_none() {
            return None;
        }
        Some(function.after_prologue)
    }

    /// Resolves a PLT stub to its function.
    fn behind_stub(&self, space: &AddressSpace, target: u64) -> Option<u64> {
        let Some(module) = space.at(target) else {
            return Some(target);
        };
        let svma = module.svma(target);
        let stub = module
            .module
            .plt_entries()
            .iter()
            .find(|stub| stub.svma <= svma && svma.0 < stub.svma.0 + stub.size);
        let Some(stub) = stub else {
            return Some(target);
        };
        let bound = self.memory.word(module.address(stub.slot)).ok()?;
        if !module.range.contains(&bound) || module.module.plt_entries().is_empty() {
            return Some(bound);
        }
        // Not bound yet (the slot leads back into the stubs), or a function of the module itself.
        let is_stub = space
            .function_at(bound)
            .is_none_or(|function| function.entry != bound);
        if !is_stub {
            return Some(bound);
        }
        space
            .functions_matching(&stub.symbol)
            .first()
            .map(|function| function.entry)
    }
}

pub(super) fn is_system(space: &AddressSpace, pc: u64) -> bool {
    space.at(pc).is_none_or(|module| module.is_system)
}

pub(super) fn is_call(instruction: &Instruction) -> bool {
    matches!(
        instruction.flow_control(),
        FlowControl::Call | FlowControl::IndirectCall
    ) && instruction.mnemonic() == iced_x86::Mnemonic::Call
}

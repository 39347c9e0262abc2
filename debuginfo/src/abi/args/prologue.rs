//! Follows a function's first instructions to see where they store argument registers on the stack.
//!
//! Unoptimised code states only where a parameter is kept, not how it arrived. The first stores tell: a parameter
//! arrived in the register that is stored to its home.

use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic,
    OpAccess, OpKind, Register,
};

use super::locations::stack_place;
use super::{FrameBase, Home, Passed, RBP, RSP};
use crate::model::ParameterPlace;

const MAX_INSTRUCTIONS: usize = 96;
/// An upper bound on the registers that iced-x86 numbers.
const REGISTERS: usize = 256;

/// A store of an argument register to the stack.
#[derive(Debug, Clone, Copy)]
struct Store {
    /// Address relative to the stack pointer at entry.
    at: i64,
    bytes: i64,
    from: ParameterPlace,
}

/// What the first instructions store, and where the frame lies.
#[derive(Debug, Default)]
pub(crate) struct Spills {
    stores: Vec<Store>,
    /// Stack pointer and frame pointer after those instructions, relative to the stack pointer at entry.
    rsp: Option<i64>,
    rbp: Option<i64>,
}

impl Spills {
    /// Returns how a parameter of `size` bytes that is kept at `home` arrived.
    pub(crate) fn came(&self, home: Home, size: u64) -> Option<Passed> {
        let base = match home.base {
            FrameBase::Cfa => 8,
            FrameBase::Register(RBP) => self.rbp?,
            FrameBase::Register(RSP) => self.rsp?,
            FrameBase::Register(_) => return None,
        };
        let at = base.checked_add(home.offset)?;
        if at >= 8 && !home.deref {
            return Some(Passed::at(stack_place(at)));
        }
        let size = if home.deref {
            8
        } else {
            i64::try_from(size).ok()?
        };
        let inside = |s: &&Store| s.at >= at && s.at < at.saturating_add(size.max(1));
        let mut found: Vec<&Store> = Vec::new();
        // A later store to the same place belongs to another variable, or copies the same argument.
        for store in self.stores.iter().filter(inside) {
            if !found.iter().any(|f| f.at == store.at) {
                found.push(store);
            }
        }
        found.sort_unstable_by_key(|s| s.at);
        match found.as_slice() {
            [one] if one.at == at && one.bytes >= size.min(8) => Some(Passed {
                indirect: home.deref,
                ..Passed::at(one.from)
            }),
            [first, second] if first.at == at && !home.deref => Some(Passed {
                place2: Some(second.from),
                second_at: u8::try_from(second.at - first.at).ok()?,
                ..Passed::at(first.from)
            }),
            _ => None,
        }
    }
}

/// What a register holds, as far as this trace needs to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holds {
    Argument(ParameterPlace),
    /// An address: this many bytes from the stack pointer at entry.
    Frame(i64),
    Other,
}

struct State {
    registers: [Holds; REGISTERS],
    spills: Spills,
}

/// Follows the instructions in `code` up to the first jump or call.
pub(crate) fn trace(code: &[u8]) -> Spills {
    let mut state = State::at_entry();
    let mut decoder = Decoder::new(64, code, DecoderOptions::NONE);
    let mut info = InstructionInfoFactory::new();
    for _ in 0..MAX_INSTRUCTIONS {
        if !decoder.can_decode() {
            break;
        }
        let instruction = decoder.decode();
        if instruction.code() == Code::INVALID || instruction.flow_control() != FlowControl::Next {
            // A loop that touches the pages of a large frame: the stack pointer does not have its final value yet.
            if instruction.is_jcc_short_or_near()
                && instruction.near_branch_target() < instruction.ip()
            {
                state.set(Register::RSP, Holds::Other);
            }
            break;
        }
        state.step(&instruction, &mut info);
    }
    state.finish()
}

impl State {
    fn at_entry() -> State {
        let mut registers = [Holds::Other; REGISTERS];
        let ints = [
            Register::RDI,
            Register::RSI,
            Register::RDX,
            Register::RCX,
            Register::R8,
            Register::R9,
        ];
        for (index, register) in ints.into_iter().enumerate() {
            registers[register as usize] = Holds::Argument(ParameterPlace::Int(index as u8));
        }
        for index in 0..8 {
            let register = Register::ZMM0 as usize + usize::from(index);
            registers[register] = Holds::Argument(ParameterPlace::Sse(index));
        }
        registers[Register::RSP as usize] = Holds::Frame(0);
        State {
            registers,
            spills: Spills::default(),
        }
    }

    fn get(&self, register: Register) -> Holds {
        let index = register.full_register() as usize;
        self.registers.get(index).copied().unwrap_or(Holds::Other)
    }

    fn set(&mut self, register: Register, holds: Holds) {
        if let Some(slot) = self.registers.get_mut(register.full_register() as usize) {
            *slot = holds;
        }
    }

    fn frame_offset(&self, register: Register) -> Option<i64> {
        match self.get(register) {
            Holds::Frame(offset) => Some(offset),
            _ => None,
        }
    }

    fn step(&mut self, instruction: &Instruction, info: &mut InstructionInfoFactory) {
        if let Some(offset) = self.frame_offset(Register::RSP) {
            let moved = i64::from(instruction.stack_pointer_increment());
            let rsp = offset.wrapping_add(moved);
            if instruction.is_stack_instruction() && instruction.mnemonic() == Mnemonic::Push {
                let pushed = self.operand(instruction, 0);
                self.set(Register::RSP, Holds::Frame(rsp));
                return self.store(rsp, 8, pushed);
            }
        }
        if self.adjust_stack_pointer(instruction) {
            return;
        }
        let copied = match is_move(instruction.mnemonic()) {
            true => self.operand(instruction, 1),
            false => Holds::Other,
        };
        if let Some((at, bytes)) = self.stack_operand(instruction, 0) {
            if is_move(instruction.mnemonic()) {
                self.store(at, bytes, copied);
            }
            return;
        }
        for used in info.info(instruction).used_registers() {
            let written = matches!(
                used.access(),
                OpAccess::Write
                    | OpAccess::CondWrite
                    | OpAccess::ReadWrite
                    | OpAccess::ReadCondWrite
            );
            if written {
                self.set(used.register(), Holds::Other);
            }
        }
        if is_move(instruction.mnemonic()) && instruction.op0_kind() == OpKind::Register {
            self.set(instruction.op0_register(), copied);
        }
    }

    /// Handles `sub rsp, N`, `add rsp, N`, `and rsp, -N`, `lea rsp/rbp, [rsp + N]`.
    fn adjust_stack_pointer(&mut self, instruction: &Instruction) -> bool {
        if instruction.op0_kind() != OpKind::Register {
            return false;
        }
        let target = instruction.op0_register();
        if instruction.mnemonic() == Mnemonic::Lea {
            let base = self.frame_offset(instruction.memory_base());
            let plain = instruction.memory_index() == Register::None;
            let Some(base) = base.filter(|_| plain) else {
                return false;
            };
            let offset = base.wrapping_add(instruction.memory_displacement64() as i64);
            self.set(target, Holds::Frame(offset));
            return true;
        }
        let (Some(offset), Ok(immediate)) = (
            self.frame_offset(target)
                .filter(|_| target == Register::RSP),
            instruction.try_immediate(1),
        ) else {
            return false;
        };
        let amount = immediate as i64;
        let moved = match instruction.mnemonic() {
            Mnemonic::Sub => offset.wrapping_sub(amount),
            Mnemonic::Add => offset.wrapping_add(amount),
            _ => return false,
        };
        self.set(Register::RSP, Holds::Frame(moved));
        true
    }

    fn operand(&self, instruction: &Instruction, index: u32) -> Holds {
        if index >= instruction.op_count() {
            return Holds::Other;
        }
        match instruction.op_kind(index) {
            OpKind::Register => self.get(instruction.op_register(index)),
            OpKind::Memory => match self.stack_operand(instruction, index) {
                // A reload of an argument that was just stored.
                Some((at, _)) => {
                    let last = self.spills.stores.iter().rev().find(|s| s.at == at);
                    last.map_or(Holds::Other, |s| Holds::Argument(s.from))
                }
                None => Holds::Other,
            },
            _ => Holds::Other,
        }
    }

    /// Returns the address (relative to the stack pointer at entry) and the size of a memory operand in the frame.
    fn stack_operand(&self, instruction: &Instruction, index: u32) -> Option<(i64, i64)> {
        if index >= instruction.op_count()
            || instruction.op_kind(index) != OpKind::Memory
            || instruction.memory_index() != Register::None
        {
            return None;
        }
        let base = self.frame_offset(instruction.memory_base())?;
        let displacement = instruction.memory_displacement64() as i64;
        let bytes = instruction.memory_size().size() as i64;
        Some((base.wrapping_add(displacement), bytes))
    }

    fn store(&mut self, at: i64, bytes: i64, value: Holds) {
        if let Holds::Argument(from) = value {
            self.spills.stores.push(Store { at, bytes, from });
        }
    }

    fn finish(mut self) -> Spills {
        self.spills.rsp = self.frame_offset(Register::RSP);
        self.spills.rbp = self.frame_offset(Register::RBP);
        self.spills
    }
}

/// Returns whether the instruction copies its second operand to the first, possibly truncated or extended.
fn is_move(mnemonic: Mnemonic) -> bool {
    matches!(
        mnemonic,
        Mnemonic::Mov
            | Mnemonic::Movzx
            | Mnemonic::Movss
            | Mnemonic::Movsd
            | Mnemonic::Movaps
            | Mnemonic::Movups
            | Mnemonic::Movapd
            | Mnemonic::Movupd
            | Mnemonic::Movd
            | Mnemonic::Movq
            | Mnemonic::Movdqa
            | Mnemonic::Movdqu
            | Mnemonic::Vmovss
            | Mnemonic::Vmovsd
            | Mnemonic::Vmovaps
            | Mnemonic::Vmovups
    )
}

//! Emulates a function of the program to learn what it would return. Nothing in the program runs or changes.
//!
//! The emulator reads instructions from the program and interprets them. Writes go to a private map that later reads
//! consult first. Only the instructions of short functions that return a text are supported. Anything else makes the
//! result unknown, never a guess.

use std::collections::HashMap;

use iced_x86::{ConditionCode, Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};

/// Maximum number of instructions to emulate.
const MOST_INSTRUCTIONS: usize = 4000;
const LONGEST_INSTRUCTION: usize = 15;
/// The return address of the emulated function: an address that no program has.
const BACK: u64 = 0xffff_ffff_ffff_fff0;
const RAX: usize = 0;
const RDX: usize = 2;
const RSP: usize = 4;
const RSI: usize = 6;
const RDI: usize = 7;

/// The access to the program that emulation needs.
pub(crate) trait Program {
    /// Fills `bytes` from memory; `None` if it is not mapped.
    fn read(&self, address: u64, bytes: &mut [u8]) -> Option<()>;
    /// Returns the function that a call of `target` reaches.
    fn callee(&self, target: u64) -> Option<u64>;
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub function: u64,
    /// The first two arguments.
    pub arguments: [u64; 2],
    /// The thread's stack pointer. Writes below it stay in the private map.
    pub stack: u64,
    /// The base of thread-local storage.
    pub fs_base: u64,
}

/// Returns what `call` would leave in rax and rdx.
pub(crate) fn follow(program: &dyn Program, call: Call) -> Option<(u64, u64)> {
    let mut paper = Paper {
        program,
        registers: [0; 16],
        flags: Flags::default(),
        fs_base: call.fs_base,
        notes: HashMap::new(),
    };
    paper.registers[RDI] = call.arguments[0];
    paper.registers[RSI] = call.arguments[1];
    paper.registers[RSP] = call.stack.checked_sub(4096)? & !15;
    paper.push(BACK)?;
    let mut pc = call.function;
    for _ in 0..MOST_INSTRUCTIONS {
        pc = paper.run(pc)?;
        if pc == BACK {
            return Some((paper.registers[RAX], paper.registers[RDX]));
        }
    }
    None
}

#[derive(Clone, Copy, Debug, Default)]
struct Flags {
    carry: bool,
    zero: bool,
    sign: bool,
    overflow: bool,
}

struct Paper<'a> {
    program: &'a dyn Program,
    registers: [u64; 16],
    flags: Flags,
    fs_base: u64,
    /// Bytes written, by address.
    notes: HashMap<u64, u8>,
}

impl Paper<'_> {
    /// Executes the instruction at `pc`. Returns the address of the next one.
    fn run(&mut self, pc: u64) -> Option<u64> {
        let instruction = self.decode(pc)?;
        let next = instruction.next_ip();
        match instruction.mnemonic() {
            Mnemonic::Nop | Mnemonic::Endbr64 => {}
            Mnemonic::Ret => {
                let back = self.pop()?;
                return Some(back);
            }
            Mnemonic::Call => {
                let target = self.target(&instruction)?;
                self.push(next)?;
                return self.program.callee(target);
            }
            Mnemonic::Jmp => return self.program.callee(self.target(&instruction)?),
            Mnemonic::Push => {
                let value = self.extended(&instruction, 0)?;
                self.push(value)?;
            }
            Mnemonic::Pop => {
                let value = self.pop()?;
                self.set(&instruction, 0, value)?;
            }
            Mnemonic::Leave => {
                self.registers[RSP] = self.registers[5];
                self.registers[5] = self.pop()?;
            }
            Mnemonic::Mov | Mnemonic::Movzx => {
                let value = match instruction.mnemonic() {
                    Mnemonic::Mov => self.extended(&instruction, 1)?,
                    _ => self.get(&instruction, 1)?,
                };
                self.set(&instruction, 0, value)?;
            }
            Mnemonic::Movsx | Mnemonic::Movsxd => {
                let value = self.extended(&instruction, 1)?;
                self.set(&instruction, 0, value)?;
            }
            Mnemonic::Cdqe => self.registers[RAX] = self.registers[RAX] as i32 as u64,
            Mnemonic::Lea => {
                let address = self.address(&instruction)?;
                self.set(&instruction, 0, address)?;
            }
            _ if instruction.is_jcc_short_or_near() => {
                let is_taken = self.holds(instruction.condition_code())?;
                return Some(match is_taken {
                    true => instruction.near_branch_target(),
                    false => next,
                });
            }
            _ => self.compute(&instruction)?,
        }
        Some(next)
    }

    /// Executes an arithmetic or logic instruction.
    fn compute(&mut self, instruction: &Instruction) -> Option<()> {
        let bits = self.width(instruction, 0)? * 8;
        let condition = instruction.condition_code();
        if condition != ConditionCode::None {
            return self.choose(instruction, condition);
        }
        let a = self.get(instruction, 0)?;
        let b = match instruction.op_count() {
            1 => 1,
            2 => cut(self.extended(instruction, 1)?, bits),
            _ => return None,
        };
        let result = match instruction.mnemonic() {
            Mnemonic::Add | Mnemonic::Inc => self.add(a, b, bits),
            Mnemonic::Sub | Mnemonic::Dec | Mnemonic::Cmp => self.subtract(a, b, bits),
            Mnemonic::Neg => self.subtract(0, a, bits),
            Mnemonic::And | Mnemonic::Test => self.logic(a & b, bits),
            Mnemonic::Or => self.logic(a | b, bits),
            Mnemonic::Xor => self.logic(a ^ b, bits),
            // NOT leaves the flags alone.
            Mnemonic::Not => cut(!a, bits),
            Mnemonic::Shl => self.logic(cut(a << (b & 63), bits), bits),
            Mnemonic::Shr => self.logic(a >> (b & 63), bits),
            Mnemonic::Sar => self.logic(cut((signed(a, bits) >> (b & 63)) as u64, bits), bits),
            _ => return None,
        };
        match instruction.mnemonic() {
            Mnemonic::Cmp | Mnemonic::Test => Some(()),
            _ => self.set(instruction, 0, result),
        }
    }

    /// `setcc` and `cmovcc`.
    fn choose(&mut self, instruction: &Instruction, condition: ConditionCode) -> Option<()> {
        let holds = self.holds(condition)?;
        if instruction.op_count() == 1 {
            return self.set(instruction, 0, u64::from(holds));
        }
        // Even if the condition is false, the upper half of a 32-bit register is cleared.
        let from = if holds { 1 } else { 0 };
        let value = self.get(instruction, from)?;
        self.set(instruction, 0, value)
    }

    fn add(&mut self, a: u64, b: u64, bits: u32) -> u64 {
        let result = cut(a.wrapping_add(b), bits);
        self.logic(result, bits);
        self.flags.carry = result < a;
        let same_sign = top(a, bits) == top(b, bits);
        self.flags.overflow = same_sign && top(result, bits) != top(a, bits);
        result
    }

    fn subtract(&mut self, a: u64, b: u64, bits: u32) -> u64 {
        let result = cut(a.wrapping_sub(b), bits);
        self.logic(result, bits);
        self.flags.carry = a < b;
        let other_sign = top(a, bits) != top(b, bits);
        self.flags.overflow = other_sign && top(result, bits) != top(a, bits);
        result
    }

    fn logic(&mut self, result: u64, bits: u32) -> u64 {
        self.flags = Flags {
            carry: false,
            zero: result == 0,
            sign: top(result, bits),
            overflow: false,
        };
        result
    }

    fn holds(&self, condition: ConditionCode) -> Option<bool> {
        let Flags {
            carry,
            zero,
            sign,
            overflow,
        } = self.flags;
        Some(match condition {
            ConditionCode::o => overflow,
            ConditionCode::no => !overflow,
            ConditionCode::b => carry,
            ConditionCode::ae => !carry,
            ConditionCode::e => zero,
            ConditionCode::ne => !zero,
            ConditionCode::be => carry || zero,
            ConditionCode::a => !carry && !zero,
            ConditionCode::s => sign,
            ConditionCode::ns => !sign,
            ConditionCode::l => sign != overflow,
            ConditionCode::ge => sign == overflow,
            ConditionCode::le => zero || sign != overflow,
            ConditionCode::g => !zero && sign == overflow,
            _ => return None,
        })
    }

    fn decode(&self, pc: u64) -> Option<Instruction> {
        let mut code = [0; LONGEST_INSTRUCTION];
        let readable = (1..=LONGEST_INSTRUCTION)
            .rev()
            .find(|len| self.program.read(pc, &mut code[..*len]).is_some())?;
        let mut decoder = Decoder::with_ip(64, &code[..readable], pc, DecoderOptions::NONE);
        let instruction = decoder.decode();
        let repeats = instruction.has_rep_prefix() || instruction.has_repne_prefix();
        let is_plain = !instruction.is_invalid() && !instruction.has_lock_prefix();
        // The prefix of `rep ret` and `bnd jmp` has no effect here.
        let harmless = matches!(
            instruction.mnemonic(),
            Mnemonic::Ret | Mnemonic::Jmp | Mnemonic::Call | Mnemonic::Endbr64 | Mnemonic::Nop
        );
        (is_plain && (!repeats || harmless)).then_some(instruction)
    }

    fn target(&self, instruction: &Instruction) -> Option<u64> {
        match instruction.op0_kind() {
            OpKind::NearBranch64 => Some(instruction.near_branch_target()),
            _ => self.get(instruction, 0),
        }
    }

    fn address(&self, instruction: &Instruction) -> Option<u64> {
        instruction.virtual_address(
            memory_operand(instruction)?,
            0,
            |register, _, _| match register {
                Register::FS => Some(self.fs_base),
                Register::ES | Register::CS | Register::SS | Register::DS => Some(0),
                Register::RIP | Register::EIP => Some(instruction.next_ip()),
                _ => {
                    let value = self.registers[number(register)?];
                    Some(cut(value, register.size() as u32 * 8))
                }
            },
        )
    }

    /// Returns the size of an operand in bytes.
    fn width(&self, instruction: &Instruction, operand: u32) -> Option<u32> {
        let width = match instruction.op_kind(operand) {
            OpKind::Register => instruction.op_register(operand).size(),
            OpKind::Memory => instruction.memory_size().size(),
            OpKind::Immediate8 => 1,
            OpKind::Immediate16 | OpKind::Immediate8to16 => 2,
            OpKind::Immediate32 | OpKind::Immediate8to32 => 4,
            OpKind::Immediate64 | OpKind::Immediate8to64 | OpKind::Immediate32to64 => 8,
            _ => return None,
        };
        matches!(width, 1 | 2 | 4 | 8).then_some(width as u32)
    }

    /// Returns an operand, zero-extended.
    fn get(&self, instruction: &Instruction, operand: u32) -> Option<u64> {
        let width = self.width(instruction, operand)?;
        let value = match instruction.op_kind(operand) {
            OpKind::Register => self.registers[number(instruction.op_register(operand))?],
            OpKind::Memory => self.load(self.address(instruction)?, width as usize)?,
            _ => instruction.try_immediate(operand).ok()?,
        };
        Some(cut(value, width * 8))
    }

    /// Returns an operand, sign-extended.
    fn extended(&self, instruction: &Instruction, operand: u32) -> Option<u64> {
        let bits = self.width(instruction, operand)? * 8;
        Some(signed(self.get(instruction, operand)?, bits) as u64)
    }

    fn set(&mut self, instruction: &Instruction, operand: u32, value: u64) -> Option<()> {
        let width = self.width(instruction, operand)?;
        match instruction.op_kind(operand) {
            OpKind::Register => {
                let register = &mut self.registers[number(instruction.op_register(operand))?];
                *register = match width {
                    8 => value,
                    // A 32-bit write clears the upper half.
                    4 => cut(value, 32),
                    narrow => *register & !cut(u64::MAX, narrow * 8) | cut(value, narrow * 8),
                };
                Some(())
            }
            OpKind::Memory => {
                let address = self.address(instruction)?;
                self.note(address, &value.to_le_bytes()[..width as usize])
            }
            _ => None,
        }
    }

    fn load(&self, address: u64, len: usize) -> Option<u64> {
        let mut bytes = [0; 8];
        for (index, byte) in bytes.iter_mut().take(len).enumerate() {
            let at = address.checked_add(index as u64)?;
            match self.notes.get(&at) {
                Some(noted) => *byte = *noted,
                None => self.program.read(at, std::slice::from_mut(byte))?,
            }
        }
        Some(u64::from_le_bytes(bytes))
    }

    fn note(&mut self, address: u64, bytes: &[u8]) -> Option<()> {
        for (index, byte) in bytes.iter().enumerate() {
            self.notes.insert(address.checked_add(index as u64)?, *byte);
        }
        Some(())
    }

    fn push(&mut self, value: u64) -> Option<()> {
        let at = self.registers[RSP].checked_sub(8)?;
        self.registers[RSP] = at;
        self.note(at, &value.to_le_bytes())
    }

    fn pop(&mut self) -> Option<u64> {
        let at = self.registers[RSP];
        let value = self.load(at, 8)?;
        self.registers[RSP] = at.checked_add(8)?;
        Some(value)
    }
}

/// Returns the number of a general register. Registers that begin at the second byte are not supported.
fn number(register: Register) -> Option<usize> {
    let high = [Register::AH, Register::BH, Register::CH, Register::DH];
    (register.is_gpr() && !high.contains(&register)).then(|| register.full_register().number())
}

fn memory_operand(instruction: &Instruction) -> Option<u32> {
    (0..instruction.op_count()).find(|index| instruction.op_kind(*index) == OpKind::Memory)
}

fn cut(value: u64, bits: u32) -> u64 {
    match bits {
        64.. => value,
        bits => value & ((1 << bits) - 1),
    }
}

fn signed(value: u64, bits: u32) -> i64 {
    let unused = 64 - bits;
    ((value << unused) as i64) >> unused
}

fn top(value: u64, bits: u32) -> bool {
    value >> (bits - 1) & 1 != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::code_asm::*;

    const CODE: u64 = 0x1000;
    const DATA: u64 = 0x8000;

    /// A program of one piece of code and one of data.
    struct Small {
        code: Vec<u8>,
        data: Vec<u8>,
    }

    impl Program for Small {
        fn read(&self, address: u64, bytes: &mut [u8]) -> Option<()> {
            let (from, start) = match address {
                DATA.. => (&self.data, DATA),
                _ => (&self.code, CODE),
            };
            let at = usize::try_from(address.checked_sub(start)?).ok()?;
            bytes.copy_from_slice(from.get(at..at.checked_add(bytes.len())?)?);
            Some(())
        }

        fn callee(&self, target: u64) -> Option<u64> {
            Some(target)
        }
    }

    fn followed(write: impl FnOnce(&mut CodeAssembler)) -> Option<(u64, u64)> {
        let mut assembler = CodeAssembler::new(64).expect("64 bits are known");
        write(&mut assembler);
        let program = Small {
            code: assembler.assemble(CODE).expect("the test's code is right"),
            data: (0..64).collect(),
        };
        let call = Call {
            function: CODE,
            arguments: [DATA, 7],
            stack: 0x10_0000,
            fs_base: DATA,
        };
        follow(&program, call)
    }

    #[test]
    fn a_member_is_returned_as_optimised_code_does() {
        let returned = followed(|a| {
            a.endbr64().unwrap();
            a.mov(rax, qword_ptr(rdi + 8)).unwrap();
            a.mov(edx, esi).unwrap();
            a.ret().unwrap();
        });
        assert_eq!(returned, Some((0x0f0e_0d0c_0b0a_0908, 7)));
    }

    #[test]
    fn a_frame_is_made_and_left_and_a_call_comes_back() {
        let returned = followed(|a| {
            let mut callee = a.create_label();
            a.push(rbp).unwrap();
            a.mov(rbp, rsp).unwrap();
            a.sub(rsp, 16).unwrap();
            a.mov(qword_ptr(rbp - 8), rdi).unwrap();
            a.mov(rdi, qword_ptr(rbp - 8)).unwrap();
            a.call(callee).unwrap();
            a.leave().unwrap();
            a.ret().unwrap();
            a.set_label(&mut callee).unwrap();
            a.movzx(eax, byte_ptr(rdi + 3)).unwrap();
            a.ret().unwrap();
        });
        assert_eq!(returned.map(|(first, _)| first), Some(3));
    }

    #[test]
    fn branches_go_the_way_of_the_flags() {
        for (number, wanted) in [(7, 1), (8, 2)] {
            let returned = followed(|a| {
                let mut other = a.create_label();
                a.cmp(rsi, number).unwrap();
                a.jne(other).unwrap();
                a.mov(eax, 1).unwrap();
                a.ret().unwrap();
                a.set_label(&mut other).unwrap();
                a.mov(eax, 2).unwrap();
                a.ret().unwrap();
            });
            assert_eq!(returned.map(|(first, _)| first), Some(wanted));
        }
    }

    /// Rust tests whether a `String` is present with `0 - i64::MIN`.
    #[test]
    fn an_overflow_is_seen() {
        let returned = followed(|a| {
            a.xor(eax, eax).unwrap();
            a.mov(rcx, i64::MIN).unwrap();
            a.cmp(rax, rcx).unwrap();
            a.seto(al).unwrap();
            a.ret().unwrap();
        });
        assert_eq!(returned.map(|(first, _)| first & 0xff), Some(1));
    }

    #[test]
    fn what_is_not_understood_has_no_answer() {
        let system_call = followed(|a| {
            a.syscall().unwrap();
            a.ret().unwrap();
        });
        assert_eq!(system_call, None);
        let endless = followed(|a| {
            let mut here = a.create_label();
            a.set_label(&mut here).unwrap();
            a.jmp(here).unwrap();
        });
        assert_eq!(endless, None);
        let nowhere = followed(|a| {
            a.mov(rax, qword_ptr(0x10)).unwrap();
            a.ret().unwrap();
        });
        assert_eq!(nowhere, None);
    }
}

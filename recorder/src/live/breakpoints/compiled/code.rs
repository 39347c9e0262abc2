//! Generates machine code for compiled expressions.
//!
//! Values are computed in rax, with rcx and rdx as scratch registers; rbx points to the saved registers of the program.
//! If there is no answer, the code jumps away from wherever it finds out; the stack below rbx is then irrelevant.

use std::collections::BTreeMap;

use debuginfo::Register;
use debuginfo::location::ir::{Int, IntOp, Order};
use iced_x86::{IcedError, code_asm::*};

/// Where the program's registers are saved, relative to rbx.
#[derive(Clone, Debug)]
pub(super) struct Saved {
    /// By DWARF number: bytes above rbx.
    pub registers: BTreeMap<u16, i32>,
    /// Distance of the program's stack pointer above rbx, in bytes.
    pub stack: i32,
    /// xmm0 and xmm1, if they are saved: bytes above rbx.
    pub vectors: Option<[i32; 2]>,
}

pub(super) struct Coder {
    pub asm: CodeAssembler,
    pub saved: Saved,
    /// Where code without an answer continues.
    pub no_answer: CodeLabel,
    /// Indices of instructions that may fault.
    pub loads: Vec<usize>,
}

pub(super) type Done = Result<(), IcedError>;

impl Coder {
    /// Binds a label to the next instruction, even if another label is bound there.
    pub fn place(&mut self, mut label: CodeLabel) -> Done {
        self.asm.set_label(&mut label)?;
        self.asm.zero_bytes()
    }

    pub(super) fn load_follows(&mut self) {
        self.loads.push(self.asm.instructions().len());
    }

    /// Computes a number in rax.
    pub fn int(&mut self, of: &Int) -> Done {
        match of {
            Int::Const(value) => self.asm.mov(rax, *value),
            Int::Register(register) => self.register(*register),
            Int::Vector(register) => self.vector(*register),
            Int::Load { at, bytes, signed } => self.load(at, *bytes, *signed),
            Int::Extend { of, bits, signed } => {
                self.int(of)?;
                self.extend(*bits, *signed)
            }
            Int::Binary { op, left, right } => self.binary(*op, left, right),
            Int::Compare {
                order,
                signed,
                left,
                right,
            } => {
                self.operands(left, right)?;
                self.compare(*order, *signed)
            }
            Int::CompareFloats { order, left, right } => self.compare_floats(*order, left, right),
            Int::Not(of) => {
                self.int(of)?;
                self.asm.test(rax, rax)?;
                self.asm.sete(al)?;
                self.asm.movzx(eax, al)
            }
            Int::And(left, right) => self.shortcut(left, right, true),
            Int::Or(left, right) => self.shortcut(left, right, false),
            Int::Choose {
                condition,
                if_true,
                if_false,
            } => self.choose(condition, if_true, if_false),
            Int::Within { of, low, high } => {
                self.int(of)?;
                self.within(*low, *high)
            }
            Int::NonNull(of) => {
                self.int(of)?;
                self.asm.test(rax, rax)?;
                self.asm.je(self.no_answer)
            }
            Int::OneOf { of, values } => {
                self.int(of)?;
                self.one_of(values)
            }
            Int::Outside { of, ranges } => {
                self.int(of)?;
                self.outside(ranges)
            }
        }
    }

    /// Reads `bytes` bytes of memory.
    fn load(&mut self, at: &Int, bytes: u8, signed: bool) -> Done {
        let place = self.address(at)?;
        self.load_follows();
        match (bytes, signed) {
            (1, true) => self.asm.movsx(rax, byte_ptr(place)),
            (1, false) => self.asm.movzx(eax, byte_ptr(place)),
            (2, true) => self.asm.movsx(rax, word_ptr(place)),
            (2, false) => self.asm.movzx(eax, word_ptr(place)),
            (4, true) => self.asm.movsxd(rax, dword_ptr(place)),
            (4, false) => self.asm.mov(eax, dword_ptr(place)),
            _ => self.asm.mov(rax, qword_ptr(place)),
        }
    }

    /// Compares rax with rcx.
    fn compare(&mut self, order: Order, signed: bool) -> Done {
        self.asm.cmp(rax, rcx)?;
        match (order, signed) {
            (Order::Equal, _) => self.asm.sete(al),
            (Order::NotEqual, _) => self.asm.setne(al),
            (Order::Less, true) => self.asm.setl(al),
            (Order::LessEqual, true) => self.asm.setle(al),
            (Order::Greater, true) => self.asm.setg(al),
            (Order::GreaterEqual, true) => self.asm.setge(al),
            (Order::Less, false) => self.asm.setb(al),
            (Order::LessEqual, false) => self.asm.setbe(al),
            (Order::Greater, false) => self.asm.seta(al),
            (Order::GreaterEqual, false) => self.asm.setae(al),
        }?;
        self.asm.movzx(eax, al)
    }

    fn choose(&mut self, condition: &Int, if_true: &Int, if_false: &Int) -> Done {
        let (other, end) = (self.asm.create_label(), self.asm.create_label());
        self.int(condition)?;
        self.asm.test(rax, rax)?;
        self.asm.je(other)?;
        self.int(if_true)?;
        self.asm.jmp(end)?;
        self.place(other)?;
        self.int(if_false)?;
        self.place(end)
    }

    /// Continues only if the number in rax is one of these.
    fn one_of(&mut self, values: &[u64]) -> Done {
        let known = self.asm.create_label();
        for value in values {
            self.asm.mov(rcx, *value)?;
            self.asm.cmp(rax, rcx)?;
            self.asm.je(known)?;
        }
        self.asm.jmp(self.no_answer)?;
        self.place(known)
    }

    /// Continues only if the number in rax lies in none of these ranges, whose ends are exclusive.
    fn outside(&mut self, ranges: &[(u64, u64)]) -> Done {
        for (from, to) in ranges {
            self.asm.mov(rcx, *from)?;
            self.asm.mov(rdx, rax)?;
            self.asm.sub(rdx, rcx)?;
            self.asm.mov(rcx, to.wrapping_sub(*from))?;
            self.asm.cmp(rdx, rcx)?;
            self.asm.jb(self.no_answer)?;
        }
        Ok(())
    }

    /// Continues only if the number in rax lies between `low` and `high`, both inclusive.
    pub(super) fn within(&mut self, low: i64, high: i64) -> Done {
        self.asm.mov(rcx, low)?;
        self.asm.cmp(rax, rcx)?;
        self.asm.jl(self.no_answer)?;
        self.asm.mov(rcx, high)?;
        self.asm.cmp(rax, rcx)?;
        self.asm.jg(self.no_answer)
    }

    /// Makes an operand of the address `at`. May use rax.
    fn address(&mut self, at: &Int) -> Result<AsmMemoryOperand, IcedError> {
        if let Int::Binary {
            op: IntOp::Add,
            left,
            right,
        } = at
            && let Int::Const(offset) = **right
            && let Ok(offset) = i32::try_from(offset as i64)
        {
            if let Int::Register(register) = **left
                && let Some((base, more)) = self.unsaved(register)
                && let Some(offset) = offset.checked_add(more)
            {
                return Ok(base + offset);
            }
            self.int(left)?;
            return Ok(rax + offset);
        }
        if let Int::Register(register) = at
            && let Some((base, more)) = self.unsaved(*register)
        {
            return Ok(base + more);
        }
        self.int(at)?;
        Ok(rax + 0)
    }

    /// Returns a register that still holds the program's value, and the offset to add.
    fn unsaved(&self, register: Register) -> Option<(AsmRegister64, i32)> {
        match register {
            Register::RSP => Some((rbx, self.saved.stack)),
            register if self.saved.registers.contains_key(&register.0) => None,
            register => Some((general(register)?, 0)),
        }
    }

    pub(super) fn register(&mut self, register: Register) -> Done {
        if let Some(offset) = self.saved.registers.get(&register.0) {
            return self.asm.mov(rax, qword_ptr(rbx + *offset));
        }
        match self.unsaved(register) {
            Some((base, 0)) => self.asm.mov(rax, base),
            Some((base, more)) => self.asm.lea(rax, qword_ptr(base + more)),
            None => self.asm.jmp(self.no_answer),
        }
    }

    fn vector(&mut self, register: Register) -> Done {
        let number = register.0.wrapping_sub(Register::XMM0.0);
        if let (Some(saved), true) = (self.saved.vectors, number < 2) {
            let offset = saved[usize::from(number)];
            return self.asm.mov(rax, qword_ptr(rbx + offset));
        }
        match XMM.get(usize::from(number)) {
            Some(register) => self.asm.movq(rax, *register),
            None => self.asm.jmp(self.no_answer),
        }
    }

    fn extend(&mut self, bits: u8, signed: bool) -> Done {
        match (bits, signed) {
            (8, true) => self.asm.movsx(rax, al),
            (8, false) => self.asm.movzx(eax, al),
            (16, true) => self.asm.movsx(rax, ax),
            (16, false) => self.asm.movzx(eax, ax),
            (32, true) => self.asm.movsxd(rax, eax),
            (32, false) => self.asm.mov(eax, eax),
            (bits, signed) => {
                let unused = 64 - u32::from(bits.clamp(1, 64));
                self.asm.shl(rax, unused)?;
                match signed {
                    true => self.asm.sar(rax, unused),
                    false => self.asm.shr(rax, unused),
                }
            }
        }
    }

    /// Computes two numbers, in rax and rcx.
    fn operands(&mut self, left: &Int, right: &Int) -> Done {
        self.int(left)?;
        if let Int::Const(value) = right {
            return self.asm.mov(rcx, *value);
        }
        self.asm.push(rax)?;
        self.int(right)?;
        self.asm.mov(rcx, rax)?;
        self.asm.pop(rax)
    }

    fn binary(&mut self, op: IntOp, left: &Int, right: &Int) -> Done {
        self.operands(left, right)?;
        match op {
            IntOp::Add => self.asm.add(rax, rcx),
            IntOp::Subtract => self.asm.sub(rax, rcx),
            IntOp::Multiply => self.asm.imul_2(rax, rcx),
            IntOp::And => self.asm.and(rax, rcx),
            IntOp::Or => self.asm.or(rax, rcx),
            IntOp::Xor => self.asm.xor(rax, rcx),
            IntOp::ShiftLeft => self.asm.shl(rax, cl),
            IntOp::ShiftRight { signed: true } => self.asm.sar(rax, cl),
            IntOp::ShiftRight { signed: false } => self.asm.shr(rax, cl),
            IntOp::Divide { signed } => self.divide(signed),
            IntOp::Remainder { signed } => {
                self.divide(signed)?;
                self.asm.mov(rax, rdx)
            }
        }
    }

    fn divide(&mut self, signed: bool) -> Done {
        self.asm.test(rcx, rcx)?;
        self.asm.je(self.no_answer)?;
        if !signed {
            self.asm.xor(edx, edx)?;
            return self.asm.div(rcx);
        }
        self.asm.cmp(rcx, -1)?;
        self.asm.je(self.no_answer)?;
        self.asm.cqo()?;
        self.asm.idiv(rcx)
    }

    fn shortcut(&mut self, left: &Int, right: &Int, both: bool) -> Done {
        let end = self.asm.create_label();
        self.truth(left)?;
        self.asm.test(eax, eax)?;
        match both {
            true => self.asm.je(end)?,
            false => self.asm.jne(end)?,
        }
        self.truth(right)?;
        self.place(end)
    }

    /// Computes 0 or 1 in rax.
    fn truth(&mut self, of: &Int) -> Done {
        self.int(&of.clone().is_true())
    }
}

/// Returns whether the computation needs vector registers.
pub(super) fn takes_vectors(of: &Int) -> bool {
    match of {
        Int::CompareFloats { .. } => true,
        Int::Const(_) | Int::Register(_) | Int::Vector(_) => false,
        Int::Load { at: of, .. }
        | Int::Extend { of, .. }
        | Int::Not(of)
        | Int::Within { of, .. }
        | Int::NonNull(of)
        | Int::OneOf { of, .. }
        | Int::Outside { of, .. } => takes_vectors(of),
        Int::Binary { left, right, .. }
        | Int::Compare { left, right, .. }
        | Int::And(left, right)
        | Int::Or(left, right) => takes_vectors(left) || takes_vectors(right),
        Int::Choose {
            condition,
            if_true,
            if_false,
        } => [condition, if_true, if_false]
            .iter()
            .any(|of| takes_vectors(of)),
    }
}

const XMM: [AsmRegisterXmm; 16] = [
    xmm0, xmm1, xmm2, xmm3, xmm4, xmm5, xmm6, xmm7, xmm8, xmm9, xmm10, xmm11, xmm12, xmm13, xmm14,
    xmm15,
];

/// Returns a general register by its DWARF number.
fn general(register: Register) -> Option<AsmRegister64> {
    const GENERAL: [AsmRegister64; 16] = [
        rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8, r9, r10, r11, r12, r13, r14, r15,
    ];
    GENERAL.get(usize::from(register.0)).copied()
}

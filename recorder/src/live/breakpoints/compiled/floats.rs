//! Generates machine code for floating-point numbers, computed in xmm0 with xmm1 as a scratch register.

use debuginfo::location::ir::{Float, FloatOp, Order};
use iced_x86::code_asm::*;

use super::code::{Coder, Done};

impl Coder {
    pub(super) fn compare_floats(&mut self, order: Order, left: &Float, right: &Float) -> Done {
        self.float(left)?;
        self.push_float()?;
        self.float(right)?;
        self.asm.movsd_2(xmm1, xmm0)?;
        self.pop_float()?;
        match order {
            Order::Equal | Order::NotEqual | Order::Greater | Order::GreaterEqual => {
                self.asm.ucomisd(xmm0, xmm1)?;
            }
            Order::Less | Order::LessEqual => self.asm.ucomisd(xmm1, xmm0)?,
        }
        match order {
            Order::Equal => {
                self.asm.sete(al)?;
                self.asm.setnp(cl)?;
                self.asm.and(al, cl)?;
            }
            Order::NotEqual => {
                self.asm.setne(al)?;
                self.asm.setp(cl)?;
                self.asm.or(al, cl)?;
            }
            Order::Greater | Order::Less => self.asm.seta(al)?,
            Order::GreaterEqual | Order::LessEqual => self.asm.setae(al)?,
        }
        self.asm.movzx(eax, al)
    }

    fn push_float(&mut self) -> Done {
        self.asm.lea(rsp, qword_ptr(rsp - 8))?;
        self.asm.movsd_2(qword_ptr(rsp), xmm0)
    }

    fn pop_float(&mut self) -> Done {
        self.asm.movsd_2(xmm0, qword_ptr(rsp))?;
        self.asm.lea(rsp, qword_ptr(rsp + 8))
    }

    /// Computes a floating-point number in xmm0, with xmm1 as a scratch register.
    fn float(&mut self, of: &Float) -> Done {
        match of {
            Float::Const(value) => {
                self.asm.mov(rax, value.to_bits())?;
                self.asm.movq(xmm0, rax)
            }
            Float::Bits { of, single } => {
                self.int(of)?;
                self.asm.movq(xmm0, rax)?;
                match single {
                    true => self.asm.cvtss2sd(xmm0, xmm0),
                    false => Ok(()),
                }
            }
            Float::Signed(of) => {
                self.int(of)?;
                self.asm.cvtsi2sd(xmm0, rax)
            }
            Float::Round(of) => {
                self.float(of)?;
                self.asm.cvtsd2ss(xmm0, xmm0)?;
                self.asm.cvtss2sd(xmm0, xmm0)
            }
            Float::Negate(of) => {
                self.float(of)?;
                self.asm.movq(rax, xmm0)?;
                self.asm.mov(rcx, 1u64 << 63)?;
                self.asm.xor(rax, rcx)?;
                self.asm.movq(xmm0, rax)
            }
            Float::Binary { op, left, right } => {
                self.float(left)?;
                self.push_float()?;
                self.float(right)?;
                self.asm.movsd_2(xmm1, xmm0)?;
                self.pop_float()?;
                match op {
                    FloatOp::Add => self.asm.addsd(xmm0, xmm1),
                    FloatOp::Subtract => self.asm.subsd(xmm0, xmm1),
                    FloatOp::Multiply => self.asm.mulsd(xmm0, xmm1),
                    FloatOp::Divide => self.asm.divsd(xmm0, xmm1),
                }
            }
        }
    }
}

//! Generates the machine code of a shape for its place in the bench.

use super::bench::{DATA, FUNCTION, HELPERS, POINTERS};
use super::displace_lab::Emitter;
use super::shape::{Back, Call, End, Op, Shape, Simple};

pub struct Assembler {
    e: Emitter,
    base: u64,
    pops: Vec<Vec<u8>>,
}

impl Assembler {
    pub fn assemble(shape: &Shape, base: u64) -> Vec<u8> {
        let mut a = Assembler {
            e: Emitter::at(base + FUNCTION),
            base,
            pops: Vec::new(),
        };
        let mut starts = Vec::new();
        for (index, op) in shape.ops.iter().enumerate() {
            starts.push((a.e.here(), a.pops.len()));
            a.op(op);
            if let Some((to, from, back)) = &shape.back
                && *from == index
            {
                a.branch_back(&starts, *to, back);
            }
        }
        a.end(&shape.end);
        a.e.bytes
    }

    fn slot(&self, slot: u8) -> u64 {
        self.base + DATA + u64::from(slot) * 8
    }

    fn rex(wide: bool, reg: u8, rm: u8) -> u8 {
        0x40 | u8::from(wide) << 3 | (reg >> 3) << 2 | rm >> 3
    }

    fn modrm(reg: u8, rm: u8) -> u8 {
        0xc0 | (reg & 7) << 3 | rm & 7
    }

    /// Emits an instruction with a register and a rip-relative operand.
    fn rip(&mut self, wide: bool, opcode: &[u8], reg: u8, target: u64, after: &[u8]) {
        let mut bytes = vec![Self::rex(wide, reg, 0)];
        bytes.extend_from_slice(opcode);
        bytes.push(0x05 | (reg & 7) << 3);
        self.e.emit_relative(&bytes, target, after);
    }

    fn simple(&mut self, simple: &Simple) {
        match *simple {
            Simple::Alu {
                opcode,
                wide,
                to,
                from,
            } => {
                self.e
                    .emit(&[Self::rex(wide, from, to), opcode, Self::modrm(from, to)]);
            }
            Simple::SetImmediate {
                to,
                value,
                wide: true,
            } => {
                self.e
                    .emit(&[Self::rex(true, 0, to), 0xc7, Self::modrm(0, to)]);
                self.e.emit(&value.to_le_bytes());
            }
            Simple::SetImmediate {
                to,
                value,
                wide: false,
            } => {
                if to >= 8 {
                    self.e.emit(&[0x41]);
                }
                self.e.emit(&[0xb8 | to & 7]);
                self.e.emit(&value.to_le_bytes());
            }
            Simple::Increment { to } if to < 8 => self.e.emit(&[0xff, Self::modrm(0, to)]),
            Simple::Increment { to } => self.e.emit(&[0x41, 0xff, Self::modrm(0, to)]),
            Simple::Lea { to, from, distance } => {
                let modrm = 0x40 | (to & 7) << 3 | from & 7;
                self.e
                    .emit(&[Self::rex(true, to, from), 0x8d, modrm, distance as u8]);
            }
            Simple::ShiftLeft { to } => {
                self.e
                    .emit(&[Self::rex(true, 0, to), 0xd1, Self::modrm(4, to)]);
            }
            Simple::SetCondition { condition, to } => {
                self.e.emit(&[
                    Self::rex(false, 0, to),
                    0x0f,
                    0x90 | condition,
                    Self::modrm(0, to),
                ]);
            }
            Simple::MoveIf {
                condition,
                to,
                from,
            } => {
                let modrm = Self::modrm(to, from);
                self.e
                    .emit(&[Self::rex(true, to, from), 0x0f, 0x40 | condition, modrm]);
            }
            Simple::Nop(length) => self.e.emit(NOPS[usize::from(length) - 1]),
            Simple::EndBranch => self.e.emit(&[0xf3, 0x0f, 0x1e, 0xfa]),
            Simple::FlagsThroughStack => self.e.emit(&[0x9c, 0x9d]),
            Simple::ThroughStack { to } if to < 8 => self.e.emit(&[0x50 | to, 0x58 | to]),
            Simple::ThroughStack { to } => {
                self.e.emit(&[0x41, 0x50 | to & 7, 0x41, 0x58 | to & 7]);
            }
            Simple::RipLoad { to, slot } => self.rip(true, &[0x8b], to, self.slot(slot), &[]),
            Simple::RipStore { from, slot } => self.rip(true, &[0x89], from, self.slot(slot), &[]),
            Simple::RipLea { to, slot } => self.rip(true, &[0x8d], to, self.slot(slot), &[]),
            Simple::RipCompare { slot, value } => {
                self.rip(false, &[0x80], 7, self.slot(slot), &[value]);
            }
            Simple::RipAdd { slot, value } => {
                self.rip(true, &[0x81], 0, self.slot(slot), &value.to_le_bytes());
            }
            // movups xmm0, [..]; movups [..], xmm1; vpaddd xmm1, xmm0, [..]
            Simple::RipVector { slot } => {
                self.e
                    .emit_relative(&[0x0f, 0x10, 0x05], self.slot(slot), &[]);
            }
            Simple::RipVectorStore { slot } => {
                self.e
                    .emit_relative(&[0x0f, 0x11, 0x0d], self.slot(slot), &[]);
            }
            Simple::RipVex { slot } => {
                self.e
                    .emit_relative(&[0xc5, 0xf9, 0xfe, 0x0d], self.slot(slot), &[]);
            }
        }
    }

    fn body(&self, body: &[Simple], after: u64) -> Vec<u8> {
        let mut inner = Assembler {
            e: Emitter::at(self.e.here() + after),
            base: self.base,
            pops: Vec::new(),
        };
        body.iter().for_each(|simple| inner.simple(simple));
        inner.e.bytes
    }

    fn op(&mut self, op: &Op) {
        match op {
            Op::Simple(simple) => self.simple(simple),
            Op::Push(register) if *register < 8 => {
                self.e.emit(&[0x50 | register]);
                self.pops.push(vec![0x58 | register]);
            }
            Op::Push(register) => {
                self.e.emit(&[0x41, 0x50 | register & 7]);
                self.pops.push(vec![0x41, 0x58 | register & 7]);
            }
            Op::Frame => {
                self.e.emit(&[0x55, 0x48, 0x89, 0xe5]);
                self.pops.push(vec![0xc9]);
            }
            Op::Reserve(bytes) => {
                self.e.emit(&[0x48, 0x83, 0xec, *bytes]);
                self.pops.push(vec![0x48, 0x83, 0xc4, *bytes]);
            }
            Op::SkipIf {
                condition,
                long,
                body,
            } => {
                let body = self.body(body, if *long { 6 } else { 2 });
                if *long {
                    self.e
                        .emit(&[0x0f, 0x80 | condition, body.len() as u8, 0, 0, 0]);
                } else {
                    self.e.emit(&[0x70 | condition, body.len() as u8]);
                }
                self.e.emit(&body);
            }
            Op::SkipCount { ecx, body } => {
                let body = self.body(body, 2 + u64::from(*ecx));
                if *ecx {
                    self.e.emit(&[0x67]);
                }
                self.e.emit(&[0xe3, body.len() as u8]);
                self.e.emit(&body);
            }
            Op::SkipAlways { long, padding } => {
                if *long {
                    self.e.emit(&[0xe9, *padding, 0, 0, 0]);
                } else {
                    self.e.emit(&[0xeb, *padding]);
                }
                self.e.emit(&vec![0xcc; usize::from(*padding)]);
            }
            Op::ReturnIf { condition } => {
                let mut epilogue = self.epilogue();
                epilogue.push(0xc3);
                self.e.emit(&[0x70 | condition ^ 1, epilogue.len() as u8]);
                self.e.emit(&epilogue);
            }
            Op::Call(call) => self.call(call),
        }
    }

    fn call(&mut self, call: &Call) {
        let pointer = self.base + DATA + POINTERS;
        match call {
            Call::Direct => self.e.emit_relative(&[0xe8], self.base + HELPERS, &[]),
            Call::ThroughRip => self.e.emit_relative(&[0xff, 0x15], pointer, &[]),
            Call::ThroughRegister => self.e.emit(&[0x41, 0xff, 0xd4]),
            // r13 points to the data
            Call::ThroughData => {
                self.e.emit(&[0x41, 0xff, 0x95]);
                self.e.emit(&(POINTERS as u32).to_le_bytes());
            }
            // push r12; call [rsp]; lea rsp, [rsp+8]
            Call::ThroughStack => {
                self.e
                    .emit(&[0x41, 0x54, 0xff, 0x14, 0x24, 0x48, 0x8d, 0x64, 0x24, 0x08]);
            }
        }
    }

    fn epilogue(&self) -> Vec<u8> {
        self.pops.iter().rev().flatten().copied().collect()
    }

    /// Branches back only to where the stack depth is the same.
    fn branch_back(&mut self, starts: &[(u64, usize)], to: usize, back: &Back) {
        let depth = self.pops.len();
        let Some(&(target, _)) = starts.iter().skip(to).find(|(_, pushed)| *pushed == depth) else {
            return;
        };
        let short =
            |e: &Emitter, length: u64| i8::try_from(target as i64 - (e.here() + length) as i64);
        match back {
            Back::Count(opcode) => {
                if let Ok(distance) = short(&self.e, 2) {
                    self.e.emit(&[*opcode, distance as u8]);
                }
            }
            Back::Decrement { long } => {
                self.e.emit(&[0x49, 0xff, 0xcf]);
                match short(&self.e, 2) {
                    Ok(distance) if !long => self.e.emit(&[0x75, distance as u8]),
                    _ => self.e.emit_relative(&[0x0f, 0x85], target, &[]),
                }
            }
        }
    }

    fn end(&mut self, end: &End) {
        let epilogue = self.epilogue();
        self.e.emit(&epilogue);
        match end {
            End::Return => self.e.emit(&[0xc3]),
            End::ReturnPopping => self.e.emit(&[0xc2, 8, 0]),
            End::JumpDirect => self.e.emit_relative(&[0xe9], self.base + HELPERS, &[]),
            End::JumpThroughRip => {
                self.e
                    .emit_relative(&[0xff, 0x25], self.base + DATA + POINTERS, &[]);
            }
            End::JumpThroughRegister => self.e.emit(&[0x41, 0xff, 0xe4]),
        }
    }
}

const NOPS: [&[u8]; 9] = [
    &[0x90],
    &[0x66, 0x90],
    &[0x0f, 0x1f, 0x00],
    &[0x0f, 0x1f, 0x40, 0x00],
    &[0x0f, 0x1f, 0x44, 0x00, 0x00],
    &[0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00],
    &[0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00],
    &[0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00],
    &[0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00],
];

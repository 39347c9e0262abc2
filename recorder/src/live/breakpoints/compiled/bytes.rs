//! Machine code that looks at texts in memory: byte by byte, and never behind the first byte that decides.

use iced_x86::code_asm::*;

use super::code::{Coder, Done};

impl Coder {
    /// Compares bytes with those that rax points to, and goes to `other` at the first that differs.
    pub(super) fn compare_bytes(&mut self, bytes: &[u8], other: CodeLabel) -> Done {
        for (at, byte) in (0..).zip(bytes) {
            self.load_follows();
            self.asm.cmp(byte_ptr(rax + at), u32::from(*byte))?;
            self.asm.jne(other)?;
        }
        Ok(())
    }

    /// Ends with 1 in rax for who gets here, and 0 for who goes to `other`.
    pub(super) fn one_or_zero(&mut self, other: CodeLabel, end: CodeLabel) -> Done {
        self.asm.mov(eax, 1)?;
        self.asm.jmp(end)?;
        self.place(other)?;
        self.asm.xor(eax, eax)?;
        self.place(end)
    }

    /// Looks for bytes among the rcx ones that rax points to.
    pub(super) fn search(&mut self, bytes: &[u8]) -> Done {
        let (again, next) = (self.asm.create_label(), self.asm.create_label());
        let (nowhere, end) = (self.asm.create_label(), self.asm.create_label());
        self.asm.sub(rcx, bytes.len() as i32)?;
        self.asm.jl(nowhere)?;
        // The last place where they may be.
        self.asm.add(rcx, rax)?;
        self.place(again)?;
        self.asm.cmp(rax, rcx)?;
        self.asm.ja(nowhere)?;
        self.compare_bytes(bytes, next)?;
        self.asm.mov(eax, 1)?;
        self.asm.jmp(end)?;
        self.place(next)?;
        self.asm.inc(rax)?;
        self.asm.jmp(again)?;
        self.place(nowhere)?;
        self.asm.xor(eax, eax)?;
        self.place(end)
    }

    /// Counts the bytes from where rax points to up to a zero.
    pub(super) fn text_length(&mut self, most: u16, open: bool, ascii: bool) -> Done {
        let (again, end) = (self.asm.create_label(), self.asm.create_label());
        self.asm.mov(rdx, rax)?;
        self.asm.xor(ecx, ecx)?;
        self.place(again)?;
        self.asm.cmp(ecx, u32::from(most))?;
        self.asm.je(if open { end } else { self.no_answer })?;
        self.load_follows();
        self.asm.movzx(eax, byte_ptr(rdx + rcx))?;
        self.asm.test(al, al)?;
        self.asm.je(end)?;
        if ascii {
            self.asm.js(self.no_answer)?;
        }
        self.asm.inc(ecx)?;
        self.asm.jmp(again)?;
        self.place(end)?;
        self.asm.mov(eax, ecx)
    }

    /// Goes on with rcx in rax only if none of the rcx bytes that rax points to has its highest bit set.
    pub(super) fn refuse_high_bytes(&mut self) -> Done {
        let (again, end) = (self.asm.create_label(), self.asm.create_label());
        self.asm.lea(rdx, qword_ptr(rax + rcx))?;
        self.place(again)?;
        self.asm.cmp(rax, rdx)?;
        self.asm.je(end)?;
        self.load_follows();
        self.asm.test(byte_ptr(rax), 0x80)?;
        self.asm.jne(self.no_answer)?;
        self.asm.inc(rax)?;
        self.asm.jmp(again)?;
        self.place(end)?;
        self.asm.mov(rax, rcx)
    }
}

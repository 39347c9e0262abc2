//! Records of calls: code that is added at the entries of chosen functions, and before every return.

use super::emit::{Emitter, R11, RAX};
use super::layout;

/// Bytes of a record: an entry's, and a return's.
pub const ENTRY_BYTES: usize = 18 * 8;
pub const RETURN_BYTES: usize = 8 * 8;

/// `pop [r11 + 56]`, with which a return's record gets the return address: no other register is free. It is put back at once.
pub const POP_RETURN_ADDRESS: [u8; 7] = [0x41, 0x8f, 0x83, 56, 0, 0, 0];

/// What a record is, in its first four bytes: a return is zero, an entry the number of the function and one.
pub const RETURN: u32 = 0;

impl Emitter {
    /// `mov [base + offset], register` with rax (0) or r11 as base.
    pub(super) fn put_word(&mut self, base: u8, offset: u32, register: u8) {
        let rex = 0x48 | ((register >> 3) << 2) | (base >> 3);
        self.put(&[rex, 0x89, 0x80 | ((register & 7) << 3) | (base & 7)]);
        self.put(&offset.to_le_bytes());
    }

    /// `movq [base + offset], xmm`
    fn put_vector(&mut self, base: u8, offset: u32, register: u8) {
        self.put(&[0x66]);
        if base >= 8 {
            self.put(&[0x41]);
        }
        self.put(&[0x0f, 0xd6, 0x80 | (register << 3) | (base & 7)]);
        self.put(&offset.to_le_bytes());
    }

    /// `mov dword [base], kind`
    pub(super) fn put_kind(&mut self, base: u8, kind: u32) {
        if base >= 8 {
            self.put(&[0x41]);
        }
        self.put(&[0xc7, base & 7]);
        self.put(&kind.to_le_bytes());
    }

    /// `lea base, [base + bytes]`
    pub(super) fn advance(&mut self, base: u8, bytes: usize) {
        let rex = 0x48 | ((base >> 3) << 2) | (base >> 3);
        self.put(&[rex, 0x8d, 0x80 | ((base & 7) << 3) | (base & 7)]);
        self.put(&(bytes as u32).to_le_bytes());
    }

    /// At the entry of function number `function`: counter, stack pointer, return address, the registers of arguments.
    pub(super) fn record_entry(&mut self, function: u32) {
        const BASE: u8 = 0;
        self.save(R11, layout::SLOT_SCRATCH_2);
        self.save(RAX, layout::SLOT_SCRATCH);
        self.load(RAX, layout::SLOT_RECORDS);
        self.put_kind(BASE, function + 1);
        self.put_word(BASE, 8, 15);
        self.put_word(BASE, 16, 4);
        self.put(&[0x4c, 0x8b, 0x1c, 0x24]); // mov r11, [rsp]
        self.put_word(BASE, 24, 11);
        // rdi, rsi, rdx, rcx, r8, r9 (System V ABI, 3.2.3)
        for (index, register) in [7, 6, 2, 1, 8, 9].into_iter().enumerate() {
            self.put_word(BASE, 32 + 8 * index as u32, register);
        }
        for register in 0..8 {
            self.put_vector(BASE, 80 + 8 * u32::from(register), register);
        }
        self.advance(BASE, ENTRY_BYTES);
        self.save(RAX, layout::SLOT_RECORDS);
        self.load(RAX, layout::SLOT_SCRATCH);
        self.load(R11, layout::SLOT_SCRATCH_2);
    }

    /// Before a return: counter, stack pointer, the registers of results, return address.
    pub(super) fn record_return(&mut self) {
        const BASE: u8 = 11;
        self.save(R11, layout::SLOT_SCRATCH_2);
        self.load(R11, layout::SLOT_RECORDS);
        self.put_kind(BASE, RETURN);
        self.put_word(BASE, 8, 15);
        self.put_word(BASE, 16, 4);
        self.put_word(BASE, 24, 0);
        self.put_word(BASE, 32, 2);
        self.put_vector(BASE, 40, 0);
        self.put_vector(BASE, 48, 1);
        self.put(&POP_RETURN_ADDRESS);
        self.put(&[0x48, 0x8d, 0x64, 0x24, 0xf8]); // lea rsp, [rsp - 8], which leaves the flags
        self.advance(BASE, RETURN_BYTES);
        self.save(R11, layout::SLOT_RECORDS);
        self.load(R11, layout::SLOT_SCRATCH_2);
    }
}

//! Records of calls: code that is added at the entries of chosen functions, and before every return.

use super::emit::{Emitter, R11, RAX, RCX};
use super::layout;

/// Bytes of a record: an entry's without vectors, and a return's.
const ENTRY_BYTES: usize = 10 * 8;
const RETURN_BYTES: usize = 8 * 8;
/// xmm registers that an entry's record has at most.
pub const VECTORS: usize = 8;

/// An address where code is added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hook {
    pub address: u64,
    /// xmm registers that the record has: the first ones.
    pub vectors: u8,
}

/// What a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Return,
    /// At the hook with this number, with so many vectors.
    Entry {
        hook: usize,
        vectors: usize,
    },
}

impl Kind {
    /// From the first four bytes of a record: a return's are zero.
    pub fn of(bytes: [u8; 4]) -> Kind {
        match u32::from_le_bytes(bytes) {
            RETURN => Kind::Return,
            entry => Kind::Entry {
                hook: (entry & ((1 << HOOK_BITS) - 1)) as usize - 1,
                vectors: (entry >> HOOK_BITS) as usize,
            },
        }
    }

    /// Bytes of the record.
    pub fn length(self) -> usize {
        match self {
            Kind::Return => RETURN_BYTES,
            Kind::Entry { vectors, .. } => ENTRY_BYTES + 8 * vectors,
        }
    }
}

/// `pop [r11 + 56]`, with which a return's record gets the return address: no other register is free. It is put back at once.
pub const POP_RETURN_ADDRESS: [u8; 7] = [0x41, 0x8f, 0x83, 56, 0, 0, 0];

/// `bswap rcx; movzx ecx, cl`
const HIGHEST_BYTE_OF_RCX: [u8; 6] = [0x48, 0x0f, 0xc9, 0x0f, 0xb6, 0xc9];

const RETURN: u32 = 0;
/// An entry has the number of its hook and one in so many bits, and the number of vectors above.
const HOOK_BITS: u32 = 28;

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

    /// At hook number `number`: counter, stack pointer, return address, the registers of arguments.
    pub(super) fn record_entry(&mut self, number: u32, vectors: u8) {
        const BASE: u8 = 0;
        self.save(R11, layout::SLOT_SCRATCH_2);
        self.save(RAX, layout::SLOT_SCRATCH);
        self.load(RAX, layout::SLOT_RECORDS);
        let vectors = u32::from(vectors);
        self.put_kind(BASE, vectors << HOOK_BITS | (number + 1));
        self.put_word(BASE, 8, 15);
        self.put_word(BASE, 16, 4);
        self.put(&[0x4c, 0x8b, 0x1c, 0x24]); // mov r11, [rsp]
        self.put_word(BASE, 24, 11);
        // rdi, rsi, rdx, rcx, r8, r9 (System V ABI, 3.2.3)
        for (index, register) in [7, 6, 2, 1, 8, 9].into_iter().enumerate() {
            self.put_word(BASE, 32 + 8 * index as u32, register);
        }
        for register in 0..vectors {
            self.put_vector(BASE, 80 + 8 * register, register as u8);
        }
        self.advance(BASE, ENTRY_BYTES + 8 * vectors as usize);
        self.save(RAX, layout::SLOT_RECORDS);
        self.put(&[0x4c, 0x8d, 0x5c, 0x24, 0xff]); // lea r11, [rsp - 1]
        self.put(&[0x49, 0xf7, 0xd3]); // not r11
        self.save(R11, layout::SLOT_LOWEST);
        self.load(RAX, layout::SLOT_SCRATCH);
        self.load(R11, layout::SLOT_SCRATCH_2);
    }

    /// Before a return that ends no open call, jumps over what is put behind it: the functions that are not recorded
    /// return, too. Changes no flags; the sign of a difference of addresses is its highest byte.
    pub(super) fn skip_return(&mut self) -> u64 {
        self.save(RCX, layout::SLOT_SCRATCH);
        self.load(RCX, layout::SLOT_LOWEST);
        self.put(&[0x48, 0x8d, 0x0c, 0x0c]); // lea rcx, [rsp + rcx]
        self.put(&HIGHEST_BYTE_OF_RCX);
        self.put(&[0xe3, 9 + 5]); // jrcxz to the second of these
        self.load(RCX, layout::SLOT_SCRATCH);
        let distance_at = self.jump();
        self.load(RCX, layout::SLOT_SCRATCH);
        distance_at
    }

    /// The stack pointer is about to be changed to any value: whatever calls are open there, the next return is recorded.
    pub(super) fn forget_lowest(&mut self) {
        self.put(&[0x65, 0x48, 0xc7, 0x04, 0x25]); // mov qword gs:[slot], 0
        self.put(&layout::SLOT_LOWEST.to_le_bytes());
        self.put(&[0; 4]);
    }

    /// The same before `leave`, if it goes down: to another stack, then.
    pub(super) fn forget_lowest_at_leave(&mut self) {
        self.save(RCX, layout::SLOT_SCRATCH);
        self.put(&[0x48, 0x89, 0xe1]); // mov rcx, rsp
        self.put(&[0x48, 0xf7, 0xd1]); // not rcx
        self.put(&[0x48, 0x8d, 0x4c, 0x29, 1]); // lea rcx, [rcx + rbp + 1]
        self.put(&HIGHEST_BYTE_OF_RCX);
        self.put(&[0xe3, 13]); // jrcxz over the next one
        self.forget_lowest();
        self.load(RCX, layout::SLOT_SCRATCH);
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
        self.put(&[0x49, 0x89, 0xe3]); // mov r11, rsp
        self.put(&[0x49, 0xf7, 0xd3]); // not r11
        self.save(R11, layout::SLOT_LOWEST);
        self.load(R11, layout::SLOT_SCRATCH_2);
    }
}

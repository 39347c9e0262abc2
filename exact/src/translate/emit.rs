//! Machine code as bytes: the few instructions that translation adds. None of them changes a flag, but where it says so.

use super::layout;

/// Code that is being put together for a known address.
pub(super) struct Emitter {
    pub(super) base: u64,
    pub(super) bytes: Vec<u8>,
}

/// A register by its number in machine code.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Reg(pub(super) u8);

/// Bytes of a jump that reaches everything.
pub(super) const FAR_JUMP: u64 = 14;

pub(super) const RAX: Reg = Reg(0);
pub(super) const RCX: Reg = Reg(1);
pub(super) const R9: Reg = Reg(9);
pub(super) const R10: Reg = Reg(10);
pub(super) const R11: Reg = Reg(11);
pub(super) const R15: Reg = Reg(15);

impl Emitter {
    pub(super) fn new(base: u64) -> Emitter {
        Emitter {
            base,
            bytes: Vec::with_capacity(512),
        }
    }

    /// The address of the next byte.
    pub(super) fn here(&self) -> u64 {
        self.base + self.bytes.len() as u64
    }

    pub(super) fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn gs(&mut self, opcode: u8, register: Reg, slot: u32) {
        let rex = 0x48 | ((register.0 >> 3) << 2);
        let modrm = 0x04 | ((register.0 & 7) << 3);
        self.put(&[0x65, rex, opcode, modrm, 0x25]);
        self.put(&slot.to_le_bytes());
    }

    /// `mov gs:[slot], register`
    pub(super) fn save(&mut self, register: Reg, slot: u32) {
        self.gs(0x89, register, slot);
    }

    /// `mov dword gs:[slot], number`
    pub(super) fn save_number(&mut self, number: u32, slot: u32) {
        self.put(&[0x65, 0xc7, 0x04, 0x25]);
        self.put(&slot.to_le_bytes());
        self.put(&number.to_le_bytes());
    }

    /// `mov register, gs:[slot]`
    pub(super) fn load(&mut self, register: Reg, slot: u32) {
        self.gs(0x8b, register, slot);
    }

    /// `mov register, value`
    pub(super) fn set(&mut self, register: Reg, value: u64) {
        self.put(&[0x48 | (register.0 >> 3), 0xb8 | (register.0 & 7)]);
        self.put(&value.to_le_bytes());
    }

    /// From the counter in r15 to the program's own r15.
    pub(super) fn swap_in(&mut self) {
        self.save(R15, layout::SLOT_COUNTER);
        self.load(R15, layout::SLOT_R15);
    }

    /// From the program's r15 to the counter.
    pub(super) fn swap_out(&mut self) {
        self.save(R15, layout::SLOT_R15);
        self.load(R15, layout::SLOT_COUNTER);
    }

    /// `lea r15, [r15 + count]`
    pub(super) fn count(&mut self, count: u8) {
        self.put(&[0x4d, 0x8d, 0x7f, count]);
    }

    /// `mov [r15 - 1], r15b`: a fault, if the counter has passed the limit.
    pub(super) fn touch_counter(&mut self) {
        self.put(&[0x45, 0x88, 0x7f, 0xff]);
    }

    /// `mov [r15], r15b`: a fault, if the counter is at the limit.
    pub(super) fn touch_next(&mut self) {
        self.put(&[0x45, 0x88, 0x3f]);
    }

    /// A jump whose distance is filled in later; returns where the four bytes of the distance lie.
    pub(super) fn jump(&mut self) -> u64 {
        self.put(&[0xe9]);
        self.distance()
    }

    /// The same under the condition with this number in machine code.
    pub(super) fn jump_if(&mut self, condition: u8) -> u64 {
        self.put(&[0x0f, 0x80 | condition]);
        self.distance()
    }

    fn distance(&mut self) -> u64 {
        let at = self.here();
        self.put(&[0; 4]);
        at
    }

    /// `push qword [rip + distance]`; returns where the distance lies.
    pub(super) fn push_constant(&mut self) -> u64 {
        self.put(&[0xff, 0x35]);
        self.distance()
    }

    /// Removes the jump that was put last.
    pub(super) fn take_jump_back(&mut self) {
        self.bytes.truncate(self.bytes.len() - 5);
    }

    /// Does nothing up to an address: by instructions of several bytes (Intel, volume 2B, NOP).
    pub(super) fn fill(&mut self, until: u64) {
        const NOTHING: [&[u8]; 9] = [
            &[0x90],
            &[0x66, 0x90],
            &[0x0f, 0x1f, 0x00],
            &[0x0f, 0x1f, 0x40, 0],
            &[0x0f, 0x1f, 0x44, 0, 0],
            &[0x66, 0x0f, 0x1f, 0x44, 0, 0],
            &[0x0f, 0x1f, 0x80, 0, 0, 0, 0],
            &[0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0],
            &[0x66, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0],
        ];
        while let Some(left @ 1..) = until.checked_sub(self.here()) {
            self.put(NOTHING[(left as usize).min(NOTHING.len()) - 1]);
        }
    }

    /// `jmp [rip]` with the address behind it: reaches everything.
    pub(super) fn far_jump(&mut self, to: u64) {
        self.put(&[0xff, 0x25, 0, 0, 0, 0]);
        self.put(&to.to_le_bytes());
    }

    /// rax is an address of the program, rax and rcx are saved: goes to its translation.
    pub(super) fn look_up(&mut self, table: u32) {
        self.put(&[0x0f, 0xb7, 0xc8]); // movzx ecx, ax
        self.put(&[0xff, 0x24, 0xcd]); // jmp [rcx*8 + table]
        self.put(&table.to_le_bytes());
    }

    /// Fills in a distance, counted from the end of its four bytes.
    pub(super) fn aim(&mut self, distance_at: u64, to: u64) {
        let offset = (distance_at - self.base) as usize;
        let distance = to.wrapping_sub(distance_at + 4) as u32;
        self.bytes[offset..offset + 4].copy_from_slice(&distance.to_le_bytes());
    }
}

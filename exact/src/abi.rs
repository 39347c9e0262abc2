//! Where a function that is called for the user finds its arguments and leaves its result (System V ABI, 3.2).

use libc::user_regs_struct;

/// Bytes below the stack pointer that a function may use (3.2.2).
pub const RED_ZONE: u64 = 128;
/// Offset of xmm0 in the layout of FXSAVE and XSAVE.
pub const XMM_OFFSET: usize = 160;
/// The direction flag, clear at each call (3.2.1).
const DIRECTION: u64 = 1 << 10;

/// What a function is called with.
#[derive(Debug, Clone, Copy)]
pub struct Arguments<'a> {
    /// For rdi, rsi, rdx, rcx, r8 and r9.
    pub integers: &'a [u64],
    /// For xmm0 to xmm7, as bits.
    pub floats: &'a [u64],
    /// Bytes to put on the stack, aligned to 16; the integer of that index becomes their address.
    pub texts: &'a [(usize, Vec<u8>)],
}

/// How a thread begins to run a function. The return address belongs where its stack pointer points.
#[derive(Debug, Clone)]
pub struct Entry<'a> {
    pub registers: user_regs_struct,
    /// XSAVE's layout.
    pub extended: Vec<u8>,
    /// Bytes on the stack, each with its address.
    pub texts: Vec<(u64, &'a [u8])>,
}

impl<'a> Arguments<'a> {
    /// Returns how a thread begins to run the function at `function`, from the registers that it has.
    pub fn entry(self, function: u64, before: &user_regs_struct, extended: Vec<u8>) -> Entry<'a> {
        let (integers, texts, stack) = self.placed(before.rsp.wrapping_sub(RED_ZONE));
        let integer = |index: usize| integers.get(index).copied().unwrap_or_default();
        let registers = user_regs_struct {
            rdi: integer(0),
            rsi: integer(1),
            rdx: integer(2),
            rcx: integer(3),
            r8: integer(4),
            r9: integer(5),
            rax: self.floats.len() as u64,
            rip: function,
            // Once the return address is pushed, it is 8 less than a multiple of 16.
            rsp: (stack & !15).wrapping_sub(8),
            // The kernel does not restart a system call that was interrupted before.
            orig_rax: u64::MAX,
            eflags: before.eflags & !DIRECTION,
            ..*before
        };
        Entry {
            registers,
            extended: with_floats(extended, self.floats),
            texts,
        }
    }

    /// Returns the integers with the addresses of the texts, the texts, and the lowest address that they take below `stack`.
    fn placed(self, mut stack: u64) -> (Vec<u64>, Vec<(u64, &'a [u8])>, u64) {
        let mut integers = self.integers.to_vec();
        let mut texts = Vec::new();
        for (index, bytes) in self.texts {
            // They may be numbers, which are aligned.
            stack = stack.wrapping_sub(bytes.len() as u64) & !15;
            texts.push((stack, bytes.as_slice()));
            if let Some(integer) = integers.get_mut(*index) {
                *integer = stack;
            }
        }
        (integers, texts, stack)
    }
}

/// Returns the low eight bytes of xmm0 and xmm1, which hold a result, from XSAVE's layout.
pub fn float_results(extended: &[u8]) -> [u64; 2] {
    let vectors = vectors(extended);
    [0, 1].map(|index| u128::from_le_bytes(vectors[index]) as u64)
}

/// Returns xmm0 to xmm15 from XSAVE's layout. What is missing is zero.
pub fn vectors(extended: &[u8]) -> [[u8; 16]; 16] {
    let mut vectors = [[0; 16]; 16];
    let all = extended.get(XMM_OFFSET..).unwrap_or_default();
    for (vector, bytes) in vectors.iter_mut().zip(all.chunks_exact(16)) {
        vector.copy_from_slice(bytes);
    }
    vectors
}

fn with_floats(mut extended: Vec<u8>, floats: &[u64]) -> Vec<u8> {
    for (index, value) in floats.iter().enumerate() {
        let at = XMM_OFFSET + index * 16;
        if let Some(bytes) = extended.get_mut(at..at + 8) {
            bytes.copy_from_slice(&value.to_le_bytes());
        }
    }
    set_in_use(&mut extended, SSE);
    extended
}

/// The number of the x87 unit's part of XSAVE's layout.
const X87: u8 = 0;
/// The number of the part with xmm0 to xmm15.
pub const SSE: u8 = 1;

/// Says in XSAVE's layout that a part is in use (Intel SDM volume 1, 13.4.2). The processor gives other parts their initial state.
pub fn set_in_use(extended: &mut [u8], part: u8) {
    const STATE_BV: usize = 512;
    if let Some(parts) = extended.get_mut(STATE_BV) {
        *parts |= 1 << part;
    }
}

/// Makes a number the only one on the x87 stack of XSAVE's layout, as where a function returns a `long double`.
pub fn set_x87_result(extended: &mut [u8], number: [u8; 10]) {
    const STATUS_HIGH: usize = 3;
    const TAGS: usize = 4;
    const ST0: usize = 32;
    let Some(legacy) = extended.get_mut(..ST0 + number.len()) else {
        return;
    };
    // The top of the stack is register 7, which alone is not empty (8.1.3 and 10.5.1.1).
    legacy[STATUS_HIGH] |= 7 << 3;
    legacy[TAGS] = 1 << 7;
    legacy[ST0..].copy_from_slice(&number);
    set_in_use(extended, X87);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_where_the_abi_has_them() {
        let before = user_regs_struct::from(&crate::Registers([0; 27]));
        let before = user_regs_struct {
            rsp: 0x1_0000,
            eflags: DIRECTION | 2,
            ..before
        };
        let texts = [(1, b"abc\0".to_vec())];
        let arguments = Arguments {
            integers: &[7, 0],
            floats: &[9],
            texts: &texts,
        };
        let entry = arguments.entry(0x400, &before, vec![0; 512]);
        let text = (0x1_0000 - RED_ZONE - 4) & !15;
        assert_eq!(entry.texts, [(text, &b"abc\0"[..])]);
        let now = entry.registers;
        assert_eq!((now.rdi, now.rsi, now.rdx), (7, text, 0));
        assert_eq!((now.rax, now.rip, now.eflags), (1, 0x400, 2));
        assert_eq!((now.rsp % 16, now.rsp < text), (8, true));
        assert_eq!(float_results(&entry.extended), [9, 0]);
    }

    #[test]
    fn a_part_that_is_changed_is_in_use() {
        let mut area = vec![0; 576];
        area[4] = 0x0f;
        set_x87_result(&mut area, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        assert_eq!((area[3], area[4], area[512]), (0x38, 0x80, 1));
        assert_eq!(area[32..43], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0]);
        assert_eq!(with_floats(area, &[5])[512], 3);
    }
}

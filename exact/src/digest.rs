//! Short values that stand for registers and memory, so that running again can be compared with what was recorded. They are part of
//! the log: who changes them changes its version.

use libc::user_regs_struct;

/// CF, PF, AF, ZF, SF, DF and OF: the flags that are the program's.
const FLAGS: u64 = 0xcd5;
/// An odd number without a pattern: the golden ratio's fraction in 64 bits.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

pub(crate) const PAGE: usize = 4096;

fn mix(state: u64, word: u64) -> u64 {
    (state ^ word).wrapping_mul(FACTOR).rotate_left(29)
}

/// The names of what stands for a thread, in this order.
const NAMES: [&str; 19] = [
    "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13",
    "r14", "r15", "rip", "eflags", "fs_base",
];

fn words(r: &user_regs_struct, rip: u64) -> [u64; NAMES.len()] {
    [
        r.rax,
        r.rbx,
        r.rcx,
        r.rdx,
        r.rsi,
        r.rdi,
        r.rbp,
        r.rsp,
        r.r8,
        r.r9,
        r.r10,
        r.r11,
        r.r12,
        r.r13,
        r.r14,
        r.r15,
        rip,
        r.eflags & FLAGS,
        r.fs_base,
    ]
}

fn of_words(words: [u64; NAMES.len()]) -> u32 {
    let mixed = words.into_iter().fold(FACTOR, mix);
    (mix(mixed, FACTOR) >> 32) as u32
}

/// Stands for the general registers of a thread when nothing of ours is in the way, `rip` being the next instruction.
pub(crate) fn of_registers(r: &user_regs_struct, rip: u64) -> u32 {
    of_words(words(r, rip))
}

/// A register, what it holds (of the flags, those that are the program's), and what differs from that by one bit, with which the
/// registers would have this digest.
pub(crate) fn one_bit_off(r: &user_regs_struct, digest: u32) -> Option<(&'static str, u64, u64)> {
    let words = words(r, r.rip);
    let bits = (0..NAMES.len()).flat_map(|index| (0..u64::BITS).map(move |bit| (index, bit)));
    let mut others = bits.map(|(index, bit)| {
        let mut other = words;
        other[index] ^= 1 << bit;
        (index, other)
    });
    let (index, other) = others.find(|(_, other)| of_words(*other) == digest)?;
    Some((NAMES[index], words[index], other[index]))
}

/// Stands for the x87, SSE and later registers, without what depends on where they were saved.
pub(crate) fn of_extended(extended: &[u8]) -> u32 {
    // MXCSR, the registers of the x87 unit and those of SSE (Intel, volume 1, 10.5.1).
    let parts = [24..28, 32..160, 160..416];
    let words = parts.into_iter().flat_map(|part| {
        extended.get(part).unwrap_or(&[]).chunks(8).map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_le_bytes(word)
        })
    });
    (mix(words.fold(FACTOR, mix), FACTOR) >> 32) as u32
}

/// Adds a page to what stands for a stretch of memory. Pages of zeros add nothing.
pub(crate) fn add_page(state: u64, number: u64, page: &[u8]) -> u64 {
    let mut lanes = [FACTOR; 4];
    let mut any = 0;
    for words in page.chunks_exact(32) {
        for (lane, word) in lanes.iter_mut().zip(words.chunks_exact(8)) {
            let word = word.try_into().map_or(0, u64::from_le_bytes);
            any |= word;
            *lane = mix(*lane, word);
        }
    }
    if any == 0 {
        return state;
    }
    lanes.into_iter().fold(mix(state, number), mix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_register_with_another_bit_is_named() {
        let mut held = [0; 27];
        // Where the registers of a recording have r11, eflags and rip.
        (held[6], held[18], held[16]) = (0x246, 0x246, 0x401000);
        let recorded = user_regs_struct::from(&crate::Registers(held));
        let digest = of_registers(&recorded, recorded.rip);
        assert_eq!(one_bit_off(&recorded, digest), None);
        let one = user_regs_struct {
            r11: 0x1_0246,
            ..recorded
        };
        assert_eq!(one_bit_off(&one, digest), Some(("r11", 0x1_0246, 0x246)));
        let flags = user_regs_struct {
            eflags: 0x206,
            ..recorded
        };
        assert_eq!(one_bit_off(&flags, digest), Some(("eflags", 4, 0x44)));
        let two = user_regs_struct { rbx: 3, ..recorded };
        assert_eq!(one_bit_off(&two, digest), None);
    }
}

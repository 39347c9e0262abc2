//! Finds the places on a stack where the kernel has saved the instruction pointer of code that a signal interrupted.
//!
//! The kernel saves the registers of interrupted code on the handler's stack, in a fixed layout that ends with `rip`,
//! flags and segment selectors. The selectors of 64-bit user code are constants, so such a place can be recognised
//! without unwinding. A false match matters only to a caller that expects its `rip`.

/// Selectors `cs` and `ss` of 64-bit code, as saved in one word (cs, gs, fs, ss of 16 bits each).
const SELECTORS: u64 = 0x002b_0000_0000_0033;
const ALWAYS_SET: u64 = 0x2;
/// Flags that user code can have: the arithmetic ones, TF, IF, DF, NT, RF, AC, ID.
const POSSIBLE_FLAGS: u64 = 0x25_4fd7;

/// An instruction pointer that a signal handler will return to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Interrupted {
    /// Address of the saved value.
    pub(crate) slot: u64,
    pub(crate) rip: u64,
}

/// Finds the saved instruction pointers in `stack`, which begins at the 8-byte aligned `address`.
pub(crate) fn interrupted(stack: &[u8], address: u64) -> Vec<Interrupted> {
    let words: Vec<u64> = stack
        .chunks_exact(8)
        .map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")))
        .collect();
    let saved = |(index, words): (usize, &[u64])| {
        let [rip, flags, selectors] = words else {
            return None;
        };
        let plausible = flags & ALWAYS_SET != 0 && flags & !POSSIBLE_FLAGS == 0;
        (*selectors == SELECTORS && plausible).then_some(Interrupted {
            slot: address + index as u64 * 8,
            rip: *rip,
        })
    };
    words.windows(3).enumerate().filter_map(saved).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn saved_registers_are_recognised() {
        let stack = stack(&[
            1,
            0x5555_0000,
            0x246,
            SELECTORS,
            0,
            0x5555_1111,
            0x10246,
            SELECTORS,
        ]);
        let found = interrupted(&stack, 0x7000);
        assert_eq!(
            found,
            [
                Interrupted {
                    slot: 0x7008,
                    rip: 0x5555_0000
                },
                Interrupted {
                    slot: 0x7028,
                    rip: 0x5555_1111
                },
            ]
        );
    }

    #[test]
    fn other_words_are_not() {
        let no_flags = stack(&[0x5555_0000, 0x5555_0001, SELECTORS]);
        assert_eq!(interrupted(&no_flags, 0x7000), []);
        let kernel_code = stack(&[0x5555_0000, 0x246, 0x0018_0000_0000_0010]);
        assert_eq!(interrupted(&kernel_code, 0x7000), []);
        assert_eq!(interrupted(&stack(&[1, 2]), 0x7000), []);
        assert_eq!(interrupted(&[0x33; 7], 0x7000), []);
    }
}

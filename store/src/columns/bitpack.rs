//! Packs integers of a fixed bit width, lowest bit first, for Parquet's encodings. Independent of pages.

/// Values that are packed at once: `width` whole words.
pub(super) const UNIT: usize = 64;

/// Appends `values`, which may use only the low `width` bits: `8 * width` bytes.
///
/// # Panics
/// When `width` is above 64.
pub(super) fn pack(values: &[u64; UNIT], width: u32, out: &mut Vec<u8>) {
    macro_rules! by_width {
        ($($w:literal)*) => {
            match width {
                0 => {}
                $($w => append(&packed::<$w>(values), out),)*
                _ => panic!("a value has at most 64 bits, not {width}"),
            }
        };
    }
    by_width!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32
        33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64);
}

/// Appends any number of values; the last group of 8 is padded with zeros.
pub(super) fn pack_groups_of_8(values: &[u32], width: u32, out: &mut Vec<u8>) {
    let start = out.len();
    for unit in values.chunks(UNIT) {
        let mut wide = [0; UNIT];
        wide.iter_mut()
            .zip(unit)
            .for_each(|(to, from)| *to = u64::from(*from));
        pack(&wide, width, out);
    }
    out.truncate(start + values.len().div_ceil(8) * width as usize);
}

/// Returns the bits that the largest of some values needs, given the bitwise or of all of them.
pub(super) fn width_of(any_bits: u64) -> u32 {
    u64::BITS - any_bits.leading_zeros()
}

#[inline]
fn packed<const W: usize>(values: &[u64; UNIT]) -> [u64; W] {
    let mut words = [0; W];
    for (i, value) in values.iter().enumerate() {
        let bit = i * W;
        words[bit / 64] |= value << (bit % 64);
        if bit % 64 + W > 64 {
            words[bit / 64 + 1] |= value >> (64 - bit % 64);
        }
    }
    words
}

#[inline]
fn append<const W: usize>(words: &[u64; W], out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + W * 8, 0);
    for (to, word) in out[start..].chunks_exact_mut(8).zip(words) {
        to.copy_from_slice(&word.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_width_keeps_every_bit() {
        for width in 0..=64u32 {
            let mask = u64::MAX.checked_shr(64 - width).unwrap_or(0);
            let values: [u64; UNIT] =
                std::array::from_fn(|i| (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) & mask);
            let mut out = Vec::new();
            pack(&values, width, &mut out);
            assert_eq!(out.len(), 8 * width as usize);
            let bit = |n: usize| u64::from(out[n / 8] >> (n % 8) & 1);
            for (i, value) in values.iter().enumerate() {
                let read = (0..width as usize)
                    .map(|b| bit(i * width as usize + b) << b)
                    .sum::<u64>();
                assert_eq!(read, *value, "width {width}, value {i}");
            }
        }
    }

    #[test]
    fn a_short_group_is_filled_up_to_eight() {
        let mut out = Vec::new();
        pack_groups_of_8(&[1, 2, 3, 1, 2, 3, 1, 2, 3], 2, &mut out);
        assert_eq!(out, [0b0111_1001, 0b1001_1110, 0b11, 0]);
    }
}

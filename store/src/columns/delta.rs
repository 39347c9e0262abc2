//! Writes Parquet's DELTA_BINARY_PACKED: differences in blocks, each with its own minimum and bit widths.

use super::bitpack::{UNIT, pack, width_of};
use super::rle::varint;

/// Differences of a block.
const BLOCK: usize = MINIBLOCKS * UNIT;
/// Parts of a block with a bit width of their own.
const MINIBLOCKS: usize = 4;

/// Appends `values`: at least one.
///
/// # Panics
/// When there are no values.
pub(super) fn encode(values: &[i64], out: &mut Vec<u8>) {
    varint(BLOCK as u64, out);
    varint(MINIBLOCKS as u64, out);
    varint(values.len() as u64, out);
    varint(zigzag(values[0]), out);
    let mut deltas = [0; BLOCK];
    let mut from = 0;
    while from + BLOCK < values.len() {
        let window: &[i64; BLOCK + 1] = values[from..=from + BLOCK]
            .try_into()
            .expect("the slice has that length");
        for i in 0..BLOCK {
            deltas[i] = window[i + 1].wrapping_sub(window[i]);
        }
        block(&mut deltas, BLOCK, out);
        from += BLOCK;
    }
    last_block(&values[from..], out);
}

/// Appends the differences that do not fill a block; `values` begins with the last written value.
fn last_block(values: &[i64], out: &mut Vec<u8>) {
    let len = values.len() - 1;
    if len == 0 {
        return;
    }
    let mut deltas = [0; BLOCK];
    for (delta, pair) in deltas.iter_mut().zip(values.windows(2)) {
        *delta = pair[1].wrapping_sub(pair[0]);
    }
    let filler = smallest(&deltas[..len]);
    deltas[len..].fill(filler);
    block(&mut deltas, len, out);
}

/// Appends one block, without the miniblocks that lie wholly after the first `len` differences.
fn block(deltas: &mut [i64; BLOCK], len: usize, out: &mut Vec<u8>) {
    let min = smallest(deltas);
    varint(zigzag(min), out);
    let mut units = [[0u64; UNIT]; MINIBLOCKS];
    let mut widths = [0; MINIBLOCKS];
    for ((unit, width), part) in units
        .iter_mut()
        .zip(&mut widths)
        .zip(deltas.chunks_exact(UNIT))
    {
        let mut any_bits = 0;
        for (to, delta) in unit.iter_mut().zip(part) {
            *to = delta.wrapping_sub(min) as u64;
            any_bits |= *to;
        }
        *width = width_of(any_bits);
    }
    out.extend(widths.map(|w| w as u8));
    for (unit, width) in units.iter().zip(widths).take(len.div_ceil(UNIT)) {
        pack(unit, width, out);
    }
}

fn smallest(deltas: &[i64]) -> i64 {
    let mut lanes = [i64::MAX; 4];
    let (quads, rest) = deltas.as_chunks::<4>();
    for quad in quads {
        for (lane, delta) in lanes.iter_mut().zip(quad) {
            *lane = (*lane).min(*delta);
        }
    }
    let all = lanes.iter().chain(rest);
    all.copied().fold(i64::MAX, i64::min)
}

fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_example_has_these_bytes() {
        // Values 7, 5, 3, 1, 2, 3, 4, 5 of the format's description: the smallest difference is -2, width 2.
        let mut out = Vec::new();
        encode(&[7, 5, 3, 1, 2, 3, 4, 5], &mut out);
        let mut expected = vec![
            0x80,
            0x02,
            4,
            8,
            14,
            3,
            2,
            0,
            0,
            0,
            0b1100_0000,
            0b0011_1111,
        ];
        expected.resize(expected.len() + 14, 0);
        assert_eq!(out, expected);
    }

    #[test]
    fn a_steady_rise_takes_no_bits() {
        let values: Vec<i64> = (0..513).map(|i| i * 2 + 1).collect();
        let mut out = Vec::new();
        encode(&values, &mut out);
        assert_eq!(
            out,
            [0x80, 0x02, 4, 0x81, 0x04, 2, 4, 0, 0, 0, 0, 4, 0, 0, 0, 0]
        );
    }

    #[test]
    fn the_widest_difference_wraps() {
        let mut out = Vec::new();
        encode(&[i64::MAX, i64::MIN, i64::MAX], &mut out);
        assert_eq!(out.len(), 4 + 10 + 1 + 4 + 16);
    }
}

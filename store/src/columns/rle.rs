//! Writes Parquet's RLE and bit-packing hybrid: dictionary indices, levels and booleans.

use super::bitpack::pack_groups_of_8;

/// Number of equal values from which on a run is shorter than packing them, a multiple of 8.
const MIN_RUN: usize = 16;

/// Appends `values`, each of at most `width` bits, without a length prefix.
pub(super) fn encode(values: &[u32], width: u32, out: &mut Vec<u8>) {
    let mut packed_from = 0;
    let mut at = 0;
    while at + MIN_RUN <= values.len() {
        let first = values[at];
        if values[at..at + MIN_RUN].iter().all(|v| *v == first) {
            let rest = &values[at + MIN_RUN..];
            let more = rest.iter().position(|v| *v != first);
            let len = MIN_RUN + more.unwrap_or(rest.len());
            packed_run(&values[packed_from..at], width, out);
            run(first, len, width, out);
            at += len;
            packed_from = at;
        } else {
            at += 8;
        }
    }
    packed_run(&values[packed_from..], width, out);
}

/// Appends `len` times `value`.
pub(super) fn run(value: u32, len: usize, width: u32, out: &mut Vec<u8>) {
    varint((len as u64) << 1, out);
    out.extend_from_slice(&value.to_le_bytes()[..width.div_ceil(8) as usize]);
}

/// Appends an unsigned integer, seven bits a byte, lowest first.
pub(super) fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends values bit by bit. Their number is a multiple of 8 unless they are the last ones of the page.
fn packed_run(values: &[u32], width: u32, out: &mut Vec<u8>) {
    if !values.is_empty() {
        varint((values.len().div_ceil(8) as u64) << 1 | 1, out);
        pack_groups_of_8(values, width, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(values: &[u32], width: u32, expected: &[u8]) {
        let mut out = Vec::new();
        encode(values, width, &mut out);
        assert_eq!(out, expected, "{values:?}");
    }

    #[test]
    fn a_long_run_is_a_length_and_a_value() {
        check(&[5; 300], 3, &[0xd8, 0x04, 5]);
    }

    #[test]
    fn a_short_run_is_packed() {
        check(&[1; 8], 1, &[0b11, 0xff]);
    }

    #[test]
    fn a_run_may_follow_packed_groups_and_end_anywhere() {
        let values: Vec<u32> = [0, 1, 0, 1, 0, 1, 0, 1]
            .into_iter()
            .chain([1; 17])
            .chain([0])
            .collect();
        check(&values, 1, &[0b11, 0xaa, 34, 1, 0b11, 0]);
    }

    #[test]
    fn no_bits_are_no_bytes_but_still_a_length() {
        check(&[0; 20], 0, &[40]);
    }
}

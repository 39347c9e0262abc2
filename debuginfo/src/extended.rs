//! Registers that have no number in DWARF's table or are wider than it says: ymm and zmm, masks, and those of the x87 unit. They lie in
//! the area of XSAVE (Intel SDM volume 1, chapter 13), in its standard format.

/// A register of the area.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extended {
    /// ymm0 to ymm31, 32 bytes.
    Ymm(usize),
    /// zmm0 to zmm31, 64 bytes.
    Zmm(usize),
    /// k0 to k7, 8 bytes.
    Mask(usize),
    /// st0 to st7 of the x87 unit, counted from the top of its stack: 10 bytes.
    X87(usize),
    /// mxcsr, 4 bytes.
    Mxcsr,
    /// Control, status or last opcode of the x87 unit, 2 bytes each; the number is their offset.
    X87Word(usize),
    /// gdb's ftag, 2 bytes: two bits for each register, 3 if it is empty.
    X87Tag,
}

/// The parts of the area that every processor has at the same place.
const X87_STATUS: usize = 2;
const X87_ABRIDGED_TAG: usize = 4;
const X87_AT: usize = 32;
const MXCSR_AT: usize = 24;
const XMM_AT: usize = 160;
const YMM_HIGH_AT: usize = 576;

/// Where masks, the upper halves of zmm0 to zmm15, and zmm16 to zmm31 begin. Processors with bounds registers, those of Intel, have
/// them in between (CPUID leaf 13 tells; the length of the area does, too).
fn avx512(length: usize) -> [usize; 3] {
    match length >= 2688 {
        true => [1088, 1152, 1664],
        false => [832, 896, 1408],
    }
}

impl Extended {
    /// Finds a register by gdb's name for it, without the `$`.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Extended> {
        let number = |prefix: &str, count: usize| {
            let digits = name.strip_prefix(prefix)?;
            let number: usize = digits.parse().ok()?;
            (number < count && digits == number.to_string()).then_some(number)
        };
        match name {
            "mxcsr" => return Some(Extended::Mxcsr),
            "fctrl" => return Some(Extended::X87Word(0)),
            "fstat" => return Some(Extended::X87Word(X87_STATUS)),
            "fop" => return Some(Extended::X87Word(6)),
            "ftag" => return Some(Extended::X87Tag),
            _ => {}
        }
        let ymm = number("ymm", 32).map(Extended::Ymm);
        let zmm = || number("zmm", 32).map(Extended::Zmm);
        let mask = || number("k", 8).map(Extended::Mask);
        let x87 = || number("st", 8).map(Extended::X87);
        ymm.or_else(zmm).or_else(mask).or_else(x87)
    }

    /// Returns its bytes from an area; `None` if the processor has no such register.
    #[must_use]
    pub fn read(self, area: &[u8]) -> Option<Vec<u8>> {
        let [masks, halves, more] = avx512(area.len());
        let at = |at: usize, length: usize| area.get(at..at + length).map(<[u8]>::to_vec);
        match self {
            Extended::Ymm(number @ 16..) => at(more + (number - 16) * 64, 32),
            Extended::Zmm(number @ 16..) => at(more + (number - 16) * 64, 64),
            Extended::Ymm(number) => {
                let (low, high) = (at(XMM_AT + number * 16, 16)?, YMM_HIGH_AT + number * 16);
                Some([low, at(high, 16)?].concat())
            }
            Extended::Zmm(number) => {
                let (low, high) = (Extended::Ymm(number).read(area)?, halves + number * 32);
                Some([low, at(high, 32)?].concat())
            }
            Extended::Mask(number) => at(masks + number * 8, 8),
            Extended::X87(number) => at(X87_AT + number * 16, 10),
            Extended::Mxcsr => at(MXCSR_AT, 4),
            Extended::X87Word(offset) => at(offset, 2),
            Extended::X87Tag => tag(area).map(|tag| tag.to_le_bytes().to_vec()),
        }
    }
}

/// Returns st0 to st7 of an area as a number of `length` bytes: a `float` (4), a `double` (8), or a `long double` with its padding.
/// The unit holds them all in its own format.
pub(crate) fn x87_number(area: &[u8], number: usize, length: usize) -> Option<Vec<u8>> {
    const IN_MEMORY: usize = 16;
    let mut bytes = Extended::X87(number).read(area)?;
    match length {
        4 => Some((narrowed(&bytes, 23, 8)? as u32).to_le_bytes().to_vec()),
        8 => Some(narrowed(&bytes, 52, 11)?.to_le_bytes().to_vec()),
        _ => {
            bytes.resize(IN_MEMORY, 0);
            Some(bytes)
        }
    }
}

/// Rounds an 80-bit number to the nearest one with fewer bits of fraction and exponent, to the even one of two (IEEE 754, 4.3.1).
fn narrowed(bytes: &[u8], fraction_bits: u32, exponent_bits: u32) -> Option<u64> {
    const EXPONENT: u16 = 0x7fff;
    const BIAS: i32 = 16383;
    let significand = u64::from_le_bytes(*bytes.first_chunk()?);
    let top = u16::from_le_bytes([*bytes.get(8)?, *bytes.get(9)?]);
    let sign = u64::from(top >> 15) << (fraction_bits + exponent_bits);
    let largest = (1_u64 << exponent_bits) - 1;
    let infinite = sign | largest << fraction_bits;
    if top & EXPONENT == EXPONENT {
        let fraction = significand << 1 >> (64 - fraction_bits);
        let quiet = 1_u64 << (fraction_bits - 1);
        return Some(match significand << 1 {
            0 => infinite,
            _ => infinite | fraction | quiet,
        });
    }
    let shift = significand.leading_zeros();
    let significand = u128::from(significand.checked_shl(shift).unwrap_or(0));
    let exponent = i32::from(top & EXPONENT).max(1) - BIAS - shift as i32 + (largest >> 1) as i32;
    if significand != 0 && exponent >= largest as i32 {
        return Some(infinite);
    }
    // A number with the smallest exponent has a smaller significand.
    let dropped = 63 - fraction_bits + 1_i32.saturating_sub(exponent).max(0) as u32;
    if significand == 0 || dropped > 64 {
        return Some(sign);
    }
    let (kept, rest) = (
        significand >> dropped,
        significand & ((1_u128 << dropped) - 1),
    );
    let half = 1_u128 << (dropped - 1);
    let is_up = rest > half || rest == half && kept & 1 == 1;
    let before = (exponent.max(1) - 1) as u64;
    // The significand's first bit, and what rounding carries, add to the exponent.
    let number = (before << fraction_bits) + kept as u64 + u64::from(is_up);
    Some(sign | number)
}

/// The tag word from the abridged one and the registers themselves (Intel SDM volume 1, 10.5.1.1).
fn tag(area: &[u8]) -> Option<u16> {
    let in_use = *area.get(X87_ABRIDGED_TAG)?;
    let top = usize::from(*area.get(X87_STATUS + 1)? >> 3 & 7);
    let mut tag = 0;
    for physical in 0..8 {
        let stacked = (physical + 8 - top) % 8;
        let bytes = area.get(X87_AT + stacked * 16..)?.get(..10)?;
        let exponent = u16::from_le_bytes([bytes[8], bytes[9]]) & 0x7fff;
        let is_zero = exponent == 0 && bytes[..8].iter().all(|byte| *byte == 0);
        let is_valid = (1..0x7fff).contains(&exponent) && bytes[7] & 0x80 != 0;
        let kind = match in_use >> physical & 1 {
            0 => 3,
            _ if is_zero => 1,
            _ if is_valid => 0,
            _ => 2,
        };
        tag |= kind << (physical * 2);
    }
    Some(tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_have_gdbs_names() {
        assert_eq!(Extended::by_name("ymm15"), Some(Extended::Ymm(15)));
        assert_eq!(Extended::by_name("zmm31"), Some(Extended::Zmm(31)));
        assert_eq!(Extended::by_name("k7"), Some(Extended::Mask(7)));
        assert_eq!(Extended::by_name("st0"), Some(Extended::X87(0)));
        for none in [
            "ymm32", "ymm", "ymm01", "st8", "k8", "kept", "xmm0", "string",
        ] {
            assert_eq!(Extended::by_name(none), None, "{none}");
        }
    }

    #[test]
    fn parts_of_a_register_are_put_together() {
        for (length, halves, more) in [(2432, 896, 1408), (2696, 1152, 1664)] {
            let mut area = vec![0; length];
            area[XMM_AT + 16..XMM_AT + 32].fill(1);
            area[YMM_HIGH_AT + 16..YMM_HIGH_AT + 32].fill(2);
            area[halves + 32..halves + 64].fill(3);
            area[more + 64..more + 128].fill(4);
            let zmm = Extended::Zmm(1).read(&area).unwrap();
            assert_eq!((zmm[15], zmm[16], zmm[32], zmm.len()), (1, 2, 3, 64));
            assert_eq!(Extended::Ymm(1).read(&area).unwrap(), zmm[..32]);
            assert_eq!(Extended::Ymm(17).read(&area).unwrap(), [4; 32]);
        }
        // A processor without AVX-512.
        assert_eq!(Extended::Zmm(0).read(&vec![0; 832]), None);
    }

    /// Returns st0 as a `float` and as a `double`.
    fn both(significand: u64, top: u16) -> (f32, f64) {
        let mut area = vec![0; 512];
        area[X87_AT..X87_AT + 8].copy_from_slice(&significand.to_le_bytes());
        area[X87_AT + 8..X87_AT + 10].copy_from_slice(&top.to_le_bytes());
        let single = x87_number(&area, 0, 4).unwrap();
        let double = x87_number(&area, 0, 8).unwrap();
        (
            f32::from_le_bytes(single.try_into().unwrap()),
            f64::from_le_bytes(double.try_into().unwrap()),
        )
    }

    #[test]
    fn numbers_of_the_x87_unit_are_rounded_as_it_stores_them() {
        const ONE: u64 = 1 << 63;
        assert_eq!(both(0xc000_0000_0000_0000, 0x3fff), (1.5, 1.5));
        assert_eq!(both(ONE, 0xbfff), (-1.0, -1.0));
        assert_eq!(both(0, 0), (0.0, 0.0));
        let (single, double) = both(0, 0x8000);
        assert!(single.is_sign_negative() && double.is_sign_negative());
        // A third: rounded up as a float, down as a double.
        assert_eq!(both(0xaaaa_aaaa_aaaa_aaab, 0x3ffd), (1.0 / 3.0, 1.0 / 3.0));
        // Half a unit in the last place goes to the even number.
        assert_eq!(both(ONE | 1 << 39, 0x3fff).0, 1.0);
        assert_eq!(both(ONE | 3 << 39, 0x3fff).0, 1.0 + 2.0 * f32::EPSILON);
        assert_eq!(both(ONE | 1 << 10, 0x3fff).1, 1.0);
        assert_eq!(both(u64::MAX, 0x3fff), (2.0, 2.0));
        assert_eq!(both(ONE, 0x7fff), (f32::INFINITY, f64::INFINITY));
        assert_eq!(both(ONE, 0x7000), (f32::INFINITY, f64::INFINITY));
        assert_eq!(both(u64::MAX, 0x407e), (f32::INFINITY, 2.0_f64.powi(128)));
        let (single, double) = both(ONE | 1 << 62, 0xffff);
        assert!(single.is_nan() && double.is_nan());
        // Numbers below the least normal one.
        assert_eq!(both(ONE, 0x3fff - 149).0, f32::from_bits(1));
        assert_eq!(both(ONE, 0x3fff - 150).0, 0.0);
        assert_eq!(both(ONE | 1, 0x3fff - 150).0, f32::from_bits(1));
        assert_eq!(both(u64::MAX, 0x3fff - 127).0, f32::MIN_POSITIVE);
        assert_eq!(both(ONE, 0x3fff - 1074).1, f64::from_bits(1));
        assert_eq!(both(ONE, 1), (0.0, 0.0));
    }
}

//! Numbers with more digits than a double: `long double` and numbers of 128 bits, and arithmetic with them.

use std::cmp::Ordering;

use rustc_apfloat::ieee::{Double, Quad, X87DoubleExtended};
use rustc_apfloat::{Float, FloatConvert, Round};

use debuginfo::types::FloatFormat;
use debuginfo::value::Value;

/// A number in one of these formats.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Wide {
    /// 64 binary digits: `long double` on x86-64.
    Extended(X87DoubleExtended),
    /// 113 binary digits: `__float128`.
    Quad(Quad),
}

/// The operations of arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// `a + b`
    Add,
    /// `a - b`
    Subtract,
    /// `a * b`
    Multiply,
    /// `a / b`
    Divide,
}

impl Wide {
    /// Reads a value of one of these formats; `None` for others, and where the value is not known.
    #[must_use]
    pub fn of(value: &Value) -> Option<Wide> {
        let format = value.ty.float_format()?;
        let bytes = value.known_bytes().ok()?;
        let raw = |size: usize| {
            let mut wide = [0; 16];
            wide[..size].copy_from_slice(bytes.get(..size)?);
            Some(u128::from_le_bytes(wide))
        };
        match format {
            FloatFormat::Extended => raw(10).map(|bits| {
                let number = X87DoubleExtended::from_bits(bits);
                Wide::Extended(number)
            }),
            FloatFormat::Quad => raw(16).map(|bits| Wide::Quad(Quad::from_bits(bits))),
            _ => None,
        }
    }

    /// Converts a double to the format of this number.
    #[must_use]
    pub fn like(self, number: f64) -> Wide {
        let double = Double::from_bits(u128::from(number.to_bits()));
        match self {
            Wide::Extended(_) => Wide::Extended(double.convert(&mut false).value),
            Wide::Quad(_) => Wide::Quad(double.convert(&mut false).value),
        }
    }

    /// Converts an integer to the format of this number. `raw` has its 128 bits.
    #[must_use]
    pub fn like_integer(self, raw: u128, signed: bool) -> Wide {
        match (self, signed) {
            (Wide::Extended(_), true) => {
                Wide::Extended(X87DoubleExtended::from_i128(raw as i128).value)
            }
            (Wide::Extended(_), false) => Wide::Extended(X87DoubleExtended::from_u128(raw).value),
            (Wide::Quad(_), true) => Wide::Quad(Quad::from_i128(raw as i128).value),
            (Wide::Quad(_), false) => Wide::Quad(Quad::from_u128(raw).value),
        }
    }

    /// Both in the format with more digits.
    fn common(self, other: Wide) -> (Wide, Wide) {
        let quad = |wide| match wide {
            Wide::Extended(number) => Wide::Quad(number.convert(&mut false).value),
            quad => quad,
        };
        match (self, other) {
            (Wide::Extended(_), Wide::Extended(_)) => (self, other),
            _ => (quad(self), quad(other)),
        }
    }

    /// Computes with two numbers, rounding to the nearest.
    #[must_use]
    pub fn compute(self, operation: Operation, other: Wide) -> Wide {
        match self.common(other) {
            (Wide::Extended(a), Wide::Extended(b)) => Wide::Extended(compute(operation, a, b)),
            (Wide::Quad(a), Wide::Quad(b)) => Wide::Quad(compute(operation, a, b)),
            // Both have one format.
            (a, _) => a,
        }
    }

    /// Compares two numbers; `None` if one is none.
    #[must_use]
    pub fn compare(self, other: Wide) -> Option<Ordering> {
        match self.common(other) {
            (Wide::Extended(a), Wide::Extended(b)) => a.partial_cmp(&b),
            (Wide::Quad(a), Wide::Quad(b)) => a.partial_cmp(&b),
            _ => None,
        }
    }

    /// Returns it with the other sign.
    #[must_use]
    pub fn negated(self) -> Wide {
        match self {
            Wide::Extended(number) => Wide::Extended(-number),
            Wide::Quad(number) => Wide::Quad(-number),
        }
    }

    /// Returns whether it is zero, of either sign.
    #[must_use]
    pub fn is_zero(self) -> bool {
        match self {
            Wide::Extended(number) => number.is_zero(),
            Wide::Quad(number) => number.is_zero(),
        }
    }

    /// Rounds it to a double.
    #[must_use]
    pub fn as_float(self) -> f64 {
        let double: Double = match self {
            Wide::Extended(number) => number.convert(&mut false).value,
            Wide::Quad(number) => number.convert(&mut false).value,
        };
        f64::from_bits(double.to_bits() as u64)
    }

    /// Rounds it towards zero to an integer of so many bits; the nearest that there is if it is too large.
    #[must_use]
    pub fn to_integer(self, bits: u8, signed: bool) -> u128 {
        let (bits, zero) = (usize::from(bits), Round::TowardZero);
        match (self, signed) {
            (Wide::Extended(number), true) => {
                number.to_i128_r(bits, zero, &mut false).value as u128
            }
            (Wide::Extended(number), false) => number.to_u128_r(bits, zero, &mut false).value,
            (Wide::Quad(number), true) => number.to_i128_r(bits, zero, &mut false).value as u128,
            (Wide::Quad(number), false) => number.to_u128_r(bits, zero, &mut false).value,
        }
    }

    /// Returns its sixteen bytes in memory.
    #[must_use]
    pub fn bytes(self) -> Vec<u8> {
        let bits = match self {
            Wide::Extended(number) => number.to_bits(),
            Wide::Quad(number) => number.to_bits(),
        };
        bits.to_le_bytes().to_vec()
    }
}

fn compute<F: Float>(operation: Operation, a: F, b: F) -> F {
    let result = match operation {
        Operation::Add => a + b,
        Operation::Subtract => a - b,
        Operation::Multiply => a * b,
        Operation::Divide => a / b,
    };
    result.value
}

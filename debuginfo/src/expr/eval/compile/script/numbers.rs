//! Arithmetic as JavaScript has it, with whole numbers where doubles would give the same.

use super::super::super::super::ir::{EXACT, Float, FloatOp, Int, IntOp, Order};
use super::super::super::super::script::Binary;
use super::super::{Result, not};
use super::value::{boxed, chosen, floats, nowhere, short, short_float};

/// The greatest exponent for which powers are products.
const MOST_FACTORS: i128 = 8;
const EXACT_WIDE: i128 = EXACT as i128;

/// A number.
#[derive(Debug, Clone)]
pub(super) enum Number {
    Whole(Whole),
    Float(Float),
}

/// A whole number between two others, both inclusive. Beyond 2^53 it is a `BigInt`, which is only compared.
#[derive(Debug, Clone)]
pub(super) struct Whole {
    /// Modulo 2^64.
    pub value: Int,
    pub low: i128,
    pub high: i128,
}

impl Whole {
    /// A number of so many bits: 1 to 64.
    pub fn of_bits(value: Int, bits: u64, signed: bool) -> Whole {
        let bits = bits.clamp(1, 64) as u32;
        match signed {
            true => Whole {
                value,
                low: -(1 << (bits - 1)),
                high: (1 << (bits - 1)) - 1,
            },
            false => Whole {
                value,
                low: 0,
                high: (1 << bits) - 1,
            },
        }
    }

    pub fn constant(of: i64) -> Whole {
        Whole {
            value: Int::Const(of as u64),
            low: of.into(),
            high: of.into(),
        }
    }

    /// The number, if it is between the two; no answer otherwise.
    pub fn within(self, low: i128, high: i128) -> Whole {
        if low <= self.low && self.high <= high {
            return self;
        }
        let (low, high) = (low.max(self.low), high.min(self.high));
        let bound = |of: i128| of.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        let value = Int::Within {
            of: boxed(self.value),
            low: bound(low),
            high: bound(high),
        };
        Whole { value, low, high }
    }

    /// The number, if it is no `BigInt`; no answer otherwise.
    pub fn exact(self) -> Whole {
        self.within(-EXACT_WIDE, EXACT_WIDE)
    }

    /// The low 32 bits, with their sign.
    fn low_word(self) -> Whole {
        let of = self.exact();
        if of.low >= i32::MIN.into() && of.high <= i32::MAX.into() {
            return of;
        }
        Whole::of_bits(of.value.extended(32, true), 32, true)
    }

    fn is_constant(&self) -> Option<i128> {
        (self.low == self.high).then_some(self.low)
    }
}

impl Number {
    pub fn constant(of: f64) -> Number {
        match of.trunc() == of && of.abs() <= EXACT as f64 {
            true => Number::Whole(Whole::constant(of as i64)),
            false => Number::Float(Float::Const(of)),
        }
    }

    pub fn float(self) -> Float {
        match self {
            Number::Float(of) => of,
            Number::Whole(whole) => match whole.exact().value {
                Int::Const(value) => Float::Const(value as i64 as f64),
                value => Float::Signed(Box::new(value)),
            },
        }
    }

    /// The low 32 bits, with their sign. What is no whole number has lost what is behind its point.
    fn low_word(self) -> Whole {
        self.truncated(false).low_word()
    }

    /// The number without what is behind its point; no answer for large ones that are no whole numbers by type.
    pub fn truncated(self, down: bool) -> Whole {
        match self {
            Number::Whole(whole) => whole.exact(),
            Number::Float(of) => Whole {
                value: Int::Truncate {
                    of: Box::new(of),
                    down,
                },
                low: -EXACT_WIDE,
                high: EXACT_WIDE,
            },
        }
    }

    /// What counts as true: neither 0 nor NaN.
    pub fn truth(self) -> Result<Int> {
        match self {
            Number::Whole(whole) => Ok(whole.value.is_true()),
            Number::Float(of) => {
                short_float(&of)?;
                let is_zero = floats(Order::NotEqual, of.clone(), Float::Const(0.0));
                let is_number = floats(Order::Equal, of.clone(), of);
                Ok(Int::And(boxed(is_zero), boxed(is_number)))
            }
        }
    }
}

/// Compares two numbers; `BigInt`s are compared with all their digits.
pub(super) fn compared(order: Order, a: Number, b: Number) -> Int {
    match (a, b) {
        (Number::Whole(a), Number::Whole(b)) => {
            let (low, wide) = (a.low.min(b.low), a.high.max(b.high) > i64::MAX.into());
            let signed = !(wide && low >= 0);
            let most = match signed {
                true => i128::from(i64::MAX),
                false => i128::from(u64::MAX),
            };
            // Whoever is too large for a sign has no answer where the other one has one.
            let (a, b) = (
                a.within(i64::MIN.into(), most),
                b.within(i64::MIN.into(), most),
            );
            Int::compare(order, signed, a.value, b.value)
        }
        (a, b) => floats(order, a.float(), b.float()),
    }
}

/// An operator with two numbers.
///
/// # Errors
/// It is not compiled for them.
pub(super) fn computed(op: Binary, a: Number, b: Number) -> Result<Number> {
    match op {
        Binary::Add | Binary::Subtract | Binary::Multiply => Ok(simple(op, a, b)),
        Binary::Divide => divided(a, b),
        Binary::Remainder => remainder(a, b),
        Binary::Power => power(a, b),
        _ => Ok(Number::Whole(bits(op, a, b))),
    }
}

fn simple(op: Binary, a: Number, b: Number) -> Number {
    let (int, float) = match op {
        Binary::Add => (IntOp::Add, FloatOp::Add),
        Binary::Subtract => (IntOp::Subtract, FloatOp::Subtract),
        _ => (IntOp::Multiply, FloatOp::Multiply),
    };
    if let (Number::Whole(a), Number::Whole(b)) = (&a, &b) {
        let (a, b) = (a.clone().exact(), b.clone().exact());
        let run = |x: i128, y: i128| match op {
            Binary::Add => x + y,
            Binary::Subtract => x - y,
            _ => x * y,
        };
        let corners = [
            run(a.low, b.low),
            run(a.low, b.high),
            run(a.high, b.low),
            run(a.high, b.high),
        ];
        let low = corners.iter().copied().min().unwrap_or(i128::MIN);
        let high = corners.iter().copied().max().unwrap_or(i128::MAX);
        if low >= i64::MIN.into() && high <= i64::MAX.into() {
            let value = Int::binary(int, a.value, b.value);
            return Number::Whole(Whole { value, low, high }.exact());
        }
    }
    Number::Float(Float::binary(float, a.float(), b.float()))
}

/// The number as a divisor: no answer for 0, which may be -0.
fn divisor(of: Number) -> Result<Float> {
    match of {
        Number::Whole(whole) if whole.is_constant() == Some(0) => Err(not("a division by 0")),
        Number::Whole(whole) if whole.low > 0 || whole.high < 0 => Ok(Number::Whole(whole).float()),
        Number::Whole(whole) => {
            let whole = whole.exact();
            let value = Int::NonNull(boxed(whole.value));
            Ok(Float::Signed(Box::new(value)))
        }
        Number::Float(Float::Const(value)) if value != 0.0 => Ok(Float::Const(value)),
        Number::Float(of) => {
            short_float(&of)?;
            Ok(Float::Choose {
                condition: boxed(floats(Order::NotEqual, of.clone(), Float::Const(0.0))),
                if_true: Box::new(of),
                if_false: Box::new(Float::Signed(boxed(nowhere()))),
            })
        }
    }
}

fn divided(a: Number, b: Number) -> Result<Number> {
    let quotient = Float::binary(FloatOp::Divide, a.float(), divisor(b)?);
    Ok(Number::Float(quotient))
}

fn remainder(a: Number, b: Number) -> Result<Number> {
    let (Number::Whole(a), Number::Whole(b)) = (a, b) else {
        return Err(not("a remainder of what may be no whole number"));
    };
    let (a, b) = (a.exact(), b.exact());
    let most = (b.low.abs().max(b.high.abs()) - 1).max(0);
    let (low, high) = (a.low.clamp(-most, 0), a.high.clamp(0, most));
    let op = IntOp::Remainder { signed: true };
    let value = Int::binary(op, a.value, b.value);
    Ok(Number::Whole(Whole { value, low, high }))
}

fn power(a: Number, b: Number) -> Result<Number> {
    let exponent = match &b {
        Number::Whole(whole) => whole.is_constant(),
        Number::Float(_) => None,
    };
    let (Some(exponent), Number::Whole(base)) = (exponent, a) else {
        return Err(not("such a power"));
    };
    if let (Some(base), Ok(exponent)) = (base.is_constant(), u32::try_from(exponent))
        && let Some(power) = base.checked_pow(exponent).filter(|p| p.abs() <= EXACT_WIDE)
    {
        return Ok(Number::Whole(Whole::constant(power as i64)));
    }
    if !(1..=MOST_FACTORS).contains(&exponent) {
        return Err(not("such a power"));
    }
    short(&base.value)?;
    let root = (EXACT as f64).powf(1.0 / exponent as f64) as i128;
    let base = base.within(-root, root);
    let mut product = Number::Whole(Whole::constant(1));
    for _ in 0..exponent {
        product = simple(Binary::Multiply, product, Number::Whole(base.clone()));
    }
    Ok(product)
}

fn bits(op: Binary, a: Number, b: Number) -> Whole {
    let (a, b) = (a.low_word(), b.low_word());
    let by = |of: Int| match of {
        Int::Const(by) => Int::Const(by & 31),
        of => Int::binary(IntOp::And, of, Int::Const(31)),
    };
    let signed = |value: Int| Whole::of_bits(value.extended(32, true), 32, true);
    match op {
        Binary::BitAnd => signed(Int::binary(IntOp::And, a.value, b.value)),
        Binary::BitOr => signed(Int::binary(IntOp::Or, a.value, b.value)),
        Binary::BitXor => signed(Int::binary(IntOp::Xor, a.value, b.value)),
        Binary::ShiftLeft => signed(Int::binary(IntOp::ShiftLeft, a.value, by(b.value))),
        Binary::ShiftRight => {
            let op = IntOp::ShiftRight { signed: true };
            signed(Int::binary(op, a.value, by(b.value)))
        }
        _ => {
            let op = IntOp::ShiftRight { signed: false };
            let value = Int::binary(op, a.value.extended(32, false), by(b.value));
            Whole::of_bits(value, 32, false)
        }
    }
}

pub(super) fn negative(of: Number) -> Number {
    match of {
        Number::Whole(whole) => simple(
            Binary::Subtract,
            Number::Whole(Whole::constant(0)),
            Number::Whole(whole),
        ),
        Number::Float(Float::Const(value)) => Number::Float(Float::Const(-value)),
        Number::Float(of) => Number::Float(Float::Negate(Box::new(of))),
    }
}

pub(super) fn complement(of: Number) -> Number {
    let minus_one = Number::Whole(Whole::constant(-1));
    Number::Whole(bits(Binary::BitXor, of, minus_one))
}

pub(super) fn magnitude(of: Number) -> Result<Number> {
    match of {
        Number::Float(of) => Ok(Number::Float(Float::Magnitude(Box::new(of)))),
        Number::Whole(whole) => {
            let whole = whole.exact();
            short(&whole.value)?;
            let is_low = Int::compare(Order::Less, true, whole.value.clone(), Int::Const(0));
            let other = Int::binary(IntOp::Subtract, Int::Const(0), whole.value.clone());
            Ok(Number::Whole(Whole {
                value: chosen(is_low, other, whole.value),
                low: 0,
                high: whole.low.abs().max(whole.high.abs()),
            }))
        }
    }
}

/// One of two numbers.
pub(super) fn one_of(condition: Int, a: Number, b: Number) -> Number {
    match (a, b) {
        (Number::Whole(a), Number::Whole(b)) => {
            let (low, high) = (a.low.min(b.low), a.high.max(b.high));
            // Both are to be read in the same way.
            let is_mixed = low < 0 && high > i64::MAX.into();
            let (a, b) = match is_mixed {
                true => (a.exact(), b.exact()),
                false => (a, b),
            };
            Number::Whole(Whole {
                low: a.low.min(b.low),
                high: a.high.max(b.high),
                value: chosen(condition, a.value, b.value),
            })
        }
        (a, b) => Number::Float(Float::Choose {
            condition: boxed(condition),
            if_true: Box::new(a.float()),
            if_false: Box::new(b.float()),
        }),
    }
}

/// The greater of two numbers (or the lower); no number where one is none.
pub(super) fn extreme(order: Order, a: Number, b: Number) -> Result<Number> {
    if let (Number::Whole(a), Number::Whole(b)) = (&a, &b) {
        let (a, b) = (a.clone().exact(), b.clone().exact());
        short(&a.value)?;
        short(&b.value)?;
        let first = Int::compare(order, true, a.value.clone(), b.value.clone());
        return Ok(one_of(first, Number::Whole(a), Number::Whole(b)));
    }
    let (a, b) = (a.float(), b.float());
    short_float(&a)?;
    short_float(&b)?;
    let choose = |condition, if_true: &Float, if_false: Float| Float::Choose {
        condition: boxed(condition),
        if_true: Box::new(if_true.clone()),
        if_false: Box::new(if_false),
    };
    let is_none = |of: &Float| floats(Order::NotEqual, of.clone(), of.clone());
    let first = floats(order, a.clone(), b.clone());
    let plain = choose(first, &a, b.clone());
    Ok(Number::Float(choose(
        is_none(&a),
        &a,
        choose(is_none(&b), &b, plain),
    )))
}

/// The nearest whole number; halves go up.
pub(super) fn rounded(of: Number) -> Result<Number> {
    let of = match of {
        Number::Whole(whole) => return Ok(Number::Whole(whole.exact())),
        Number::Float(of) => of,
    };
    short_float(&of)?;
    let down = Number::Float(of.clone()).truncated(true);
    let rest = Float::binary(
        FloatOp::Subtract,
        of,
        Float::Signed(Box::new(down.value.clone())),
    );
    let is_up = floats(Order::GreaterEqual, rest, Float::Const(0.5));
    let value = Int::binary(IntOp::Add, down.value, is_up);
    let whole = Whole {
        value,
        low: down.low,
        high: down.high + 1,
    };
    Ok(Number::Whole(whole.exact()))
}

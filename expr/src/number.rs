//! C arithmetic: promotions, the usual conversions, and operations without a result.
//!
//! Integers have up to 128 bits. Signed ones wrap around like unsigned ones, as on the processor.

use crate::ast::{BinaryOp, Literal, Suffix, UnaryOp};
use debuginfo::Diagnostic;
use values::{Operation, Wide};

/// A number that can be used in computations.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Number {
    /// A boolean.
    Bool(bool),
    Integer(Integer),
    /// A floating-point number, of 32 bits if `single`.
    Float {
        value: f64,
        single: bool,
    },
    /// One with more digits than a double.
    Wide(Wide),
}

/// An integer of 8 to 128 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Integer {
    pub kind: IntKind,
    /// Extended to 128 bits according to its sign.
    value: u128,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct IntKind {
    pub signed: bool,
    /// 8 to 128. Bit fields have the bits of their type.
    pub bits: u8,
}

impl IntKind {
    pub(crate) const INT: IntKind = IntKind {
        signed: true,
        bits: 32,
    };
    pub(crate) const LONG: IntKind = IntKind {
        signed: true,
        bits: 64,
    };
    pub(crate) const UNSIGNED_LONG: IntKind = IntKind {
        signed: false,
        bits: 64,
    };

    /// Returns the kind after C's integer promotion: at least an `int`.
    pub(crate) fn promoted(self) -> IntKind {
        let bits = match self.bits {
            0..32 => return IntKind::INT,
            32 => 32,
            // Odd sizes are promoted to the next one.
            33..=64 => 64,
            _ => 128,
        };
        IntKind { bits, ..self }
    }

    /// Returns the kind to which a bit field of `width` bits is promoted, whose declared type has this kind: to `int` if that
    /// holds all values of so many bits (C17 6.3.1.1, C++ [conv.prom]). gdb computes with the declared type instead, and
    /// says that `bits - 5 < 0` is false for an `unsigned bits : 3`; the program says that it is true.
    pub(crate) fn of_bit_field(self, width: u64) -> IntKind {
        match width {
            0..32 => IntKind::INT,
            32 => IntKind { bits: 32, ..self },
            _ => self,
        }
    }

    /// Returns the common kind of two operands, after promotion.
    pub(crate) fn common(self, other: IntKind) -> IntKind {
        let (a, b) = (self.promoted(), other.promoted());
        let (wide, narrow) = if a.bits >= b.bits { (a, b) } else { (b, a) };
        IntKind {
            bits: wide.bits,
            // A wider signed type holds all values of a narrower unsigned one.
            signed: wide.signed && (narrow.signed || narrow.bits < wide.bits),
        }
    }

    pub(crate) fn holds(self, value: u128) -> bool {
        let bits = self.bits - u8::from(self.signed);
        bits >= 128 || value >> bits == 0
    }
}

impl Integer {
    /// Makes an integer from the low bits of `value`.
    pub(crate) fn new(kind: IntKind, value: u128) -> Integer {
        let unused = 128 - u32::from(kind.bits.clamp(1, 128));
        let shifted = value << unused;
        let value = match kind.signed {
            true => (shifted as i128 >> unused) as u128,
            false => shifted >> unused,
        };
        Integer { kind, value }
    }

    /// Returns the bits, extended to 128 according to the sign.
    pub(crate) fn raw(self) -> u128 {
        self.value
    }

    fn as_float(self) -> f64 {
        match self.kind.signed {
            true => self.value as i128 as f64,
            false => self.value as f64,
        }
    }
}

/// Why an operation has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    DivisionByZero,
    /// A shift by a negative number, or by the number of bits or more.
    Shift {
        by: i128,
        bits: u8,
    },
    NotForFloats(&'static str),
    /// `-128 / -1` in 8 bits, and the like.
    Overflow,
}

impl Trouble {
    /// Returns the message.
    pub fn diagnostic(self) -> Diagnostic {
        match self {
            Trouble::DivisionByZero => Diagnostic::new("division by zero"),
            Trouble::Shift { by, bits } => {
                Diagnostic::new(format!("a shift by {by}")).with_hint(format!(
                    "a number of {bits} bits can be shifted by 0 to {}",
                    bits - 1
                ))
            }
            Trouble::NotForFloats(symbol) => {
                Diagnostic::new(format!("\"{symbol}\" is not for floating-point numbers"))
                    .with_hint("convert them to integers")
            }
            Trouble::Overflow => Diagnostic::new("the quotient does not fit its type"),
        }
    }
}

impl Number {
    pub(crate) fn integer(kind: IntKind, value: u128) -> Number {
        Number::Integer(Integer::new(kind, value))
    }

    /// Returns the value of a numeric literal, with C's type for it, or with the stated Rust type.
    pub(crate) fn literal(literal: &Literal) -> Option<Number> {
        Some(match literal {
            Literal::Integer {
                value,
                decimal,
                suffix,
            } => Number::integer(literal_kind(*value, *decimal, *suffix), *value),
            Literal::Float { value, single } => Number::Float {
                value: *value,
                single: *single,
            },
            Literal::Bool(value) => Number::Bool(*value),
            _ => return None,
        })
    }

    pub(crate) fn is_true(self) -> bool {
        match self {
            Number::Bool(value) => value,
            Number::Integer(integer) => integer.raw() != 0,
            Number::Float { value, .. } => value != 0.0,
            Number::Wide(number) => !number.is_zero(),
        }
    }

    /// Returns the number as an integer. Refuses floating-point numbers.
    pub(crate) fn as_integer(self) -> Option<Integer> {
        match self {
            Number::Bool(value) => Some(Integer::new(IntKind::INT, u128::from(value))),
            Number::Integer(integer) => Some(integer),
            Number::Float { .. } | Number::Wide(_) => None,
        }
    }

    pub(crate) fn as_float(self) -> f64 {
        match self {
            Number::Bool(value) => f64::from(u8::from(value)),
            Number::Integer(integer) => integer.as_float(),
            Number::Float { value, .. } => value,
            Number::Wide(number) => number.as_float(),
        }
    }

    /// Returns the number in the format of a wider one.
    fn like(self, wide: Wide) -> Wide {
        match self {
            Number::Bool(value) => wide.like_integer(u128::from(value), false),
            Number::Integer(integer) => wide.like_integer(integer.raw(), integer.kind.signed),
            Number::Float { value, .. } => wide.like(value),
            Number::Wide(number) => number,
        }
    }

    /// Converts to an integer. Rounds floating-point numbers towards zero and saturates them.
    pub(crate) fn to_kind(self, kind: IntKind) -> Integer {
        let raw = match self {
            Number::Bool(value) => u128::from(value),
            Number::Integer(integer) => integer.raw(),
            Number::Wide(number) => number.to_integer(kind.bits, kind.signed),
            Number::Float { value, .. } => {
                let (least, most) = match kind.signed {
                    true => (
                        -(2f64.powi(i32::from(kind.bits) - 1)),
                        2f64.powi(i32::from(kind.bits) - 1),
                    ),
                    false => (0.0, 2f64.powi(i32::from(kind.bits))),
                };
                let whole = value.trunc();
                match () {
                    () if whole.is_nan() => 0,
                    () if whole >= most => limits(kind).1,
                    () if whole < least => limits(kind).0,
                    () if kind.signed => whole as i128 as u128,
                    () => whole as u128,
                }
            }
        };
        Integer::new(kind, raw)
    }
}

fn limits(kind: IntKind) -> (u128, u128) {
    let all = u128::MAX >> (128 - u32::from(kind.bits));
    match kind.signed {
        true => (!(all >> 1), all >> 1),
        false => (0, all),
    }
}

fn literal_kind(value: u128, decimal: bool, suffix: Suffix) -> IntKind {
    let kind = |signed, bits| IntKind { signed, bits };
    let all = [
        (kind(true, 32), !matches!(suffix, Suffix::None)),
        (
            kind(false, 32),
            decimal && suffix == Suffix::None || !matches!(suffix, Suffix::None | Suffix::Unsigned),
        ),
        (
            kind(true, 64),
            matches!(suffix, Suffix::Unsigned | Suffix::UnsignedLong),
        ),
        (
            kind(false, 64),
            decimal && matches!(suffix, Suffix::None | Suffix::Long),
        ),
        (
            kind(true, 128),
            matches!(suffix, Suffix::Unsigned | Suffix::UnsignedLong),
        ),
    ];
    if let Suffix::Sized { signed, bits } = suffix {
        return kind(signed, bits);
    }
    let fits = all
        .iter()
        .find(|(kind, left_out)| !left_out && kind.holds(value));
    fits.map_or(kind(false, 128), |(kind, _)| *kind)
}

/// Applies an operator to a number. The caller handles pointers.
pub(crate) fn unary(op: UnaryOp, of: Number) -> Result<Number, Trouble> {
    match (op, of) {
        (UnaryOp::Not, of) => Ok(Number::Bool(!of.is_true())),
        (UnaryOp::Negate, Number::Float { value, single }) => Ok(Number::Float {
            value: -value,
            single,
        }),
        (UnaryOp::Negate, Number::Wide(number)) => Ok(Number::Wide(number.negated())),
        (UnaryOp::Complement, Number::Float { .. } | Number::Wide(_)) => {
            Err(Trouble::NotForFloats("~"))
        }
        (_, Number::Float { .. } | Number::Wide(_)) => Ok(of),
        (op, of) => {
            let integer = of.as_integer().unwrap_or(Integer::new(IntKind::INT, 0));
            let raw = match op {
                UnaryOp::Negate => integer.raw().wrapping_neg(),
                UnaryOp::Complement => !integer.raw(),
                _ => integer.raw(),
            };
            Ok(Number::integer(integer.kind.promoted(), raw))
        }
    }
}

/// Applies an operator to two numbers. The caller handles `&&`, `||` and `@`.
pub(crate) fn binary(op: BinaryOp, left: Number, right: Number) -> Result<Number, Trouble> {
    if let (Some(left), Some(right)) = (left.as_integer(), right.as_integer()) {
        return integers(op, left, right);
    }
    match (left, right) {
        (Number::Wide(wide), other) => return wides(op, wide, other.like(wide)),
        (other, Number::Wide(wide)) => return wides(op, other.like(wide), wide),
        _ => {}
    }
    let float = |number: Number| match number {
        Number::Float { single, .. } => single,
        // An integer takes the type of the other operand.
        _ => true,
    };
    let single = float(left) && float(right);
    // Operands are rounded first, like in a conversion of an integer to `float`.
    let round = |value: f64| {
        if single {
            f64::from(value as f32)
        } else {
            value
        }
    };
    let (a, b) = (round(left.as_float()), round(right.as_float()));
    let value = match op {
        BinaryOp::Add => a + b,
        BinaryOp::Subtract => a - b,
        BinaryOp::Multiply => a * b,
        BinaryOp::Divide => a / b,
        _ if compares(op) => return Ok(Number::Bool(ordered(op, a.partial_cmp(&b)))),
        _ => return Err(Trouble::NotForFloats(op.symbol())),
    };
    Ok(Number::Float {
        value: round(value),
        single,
    })
}

fn wides(op: BinaryOp, left: Wide, right: Wide) -> Result<Number, Trouble> {
    let operation = match op {
        BinaryOp::Add => Operation::Add,
        BinaryOp::Subtract => Operation::Subtract,
        BinaryOp::Multiply => Operation::Multiply,
        BinaryOp::Divide => Operation::Divide,
        _ if compares(op) => return Ok(Number::Bool(ordered(op, left.compare(right)))),
        _ => return Err(Trouble::NotForFloats(op.symbol())),
    };
    Ok(Number::Wide(left.compute(operation, right)))
}

pub(crate) fn compares(op: BinaryOp) -> bool {
    matches!(op.precedence(), 6 | 7)
}

/// Returns the result of a comparison. Unordered numbers are only unequal.
pub(crate) fn ordered(op: BinaryOp, order: Option<std::cmp::Ordering>) -> bool {
    match order {
        None => op == BinaryOp::NotEqual,
        Some(order) => match op {
            BinaryOp::Equal => order.is_eq(),
            BinaryOp::NotEqual => order.is_ne(),
            BinaryOp::Less => order.is_lt(),
            BinaryOp::LessEqual => order.is_le(),
            BinaryOp::Greater => order.is_gt(),
            _ => order.is_ge(),
        },
    }
}

fn integers(op: BinaryOp, left: Integer, right: Integer) -> Result<Number, Trouble> {
    if matches!(op, BinaryOp::ShiftLeft | BinaryOp::ShiftRight) {
        return shift(op, left, right);
    }
    let kind = left.kind.common(right.kind);
    let (a, b) = (
        Integer::new(kind, left.raw()).raw(),
        Integer::new(kind, right.raw()).raw(),
    );
    if compares(op) {
        let order = match kind.signed {
            true => (a as i128).cmp(&(b as i128)),
            false => a.cmp(&b),
        };
        return Ok(Number::Bool(ordered(op, Some(order))));
    }
    let raw = match op {
        BinaryOp::Add => a.wrapping_add(b),
        BinaryOp::Subtract => a.wrapping_sub(b),
        BinaryOp::Multiply => a.wrapping_mul(b),
        BinaryOp::BitAnd => a & b,
        BinaryOp::BitOr => a | b,
        BinaryOp::BitXor => a ^ b,
        _ => return divide(op, kind, a, b),
    };
    Ok(Number::integer(kind, raw))
}

fn divide(op: BinaryOp, kind: IntKind, a: u128, b: u128) -> Result<Number, Trouble> {
    if b == 0 {
        return Err(Trouble::DivisionByZero);
    }
    let is_division = op == BinaryOp::Divide;
    let raw = match kind.signed {
        true => {
            let (a, b) = (a as i128, b as i128);
            // The only quotient that is out of range.
            if b == -1 && a as u128 == limits(kind).0 {
                return Err(Trouble::Overflow);
            }
            (if is_division { a / b } else { a % b }) as u128
        }
        false if is_division => a / b,
        false => a % b,
    };
    Ok(Number::integer(kind, raw))
}

fn shift(op: BinaryOp, left: Integer, right: Integer) -> Result<Number, Trouble> {
    let kind = left.kind.promoted();
    let by = right.raw() as i128;
    let too_far = right.raw() >= u128::from(kind.bits);
    if too_far {
        return Err(Trouble::Shift {
            by,
            bits: kind.bits,
        });
    }
    let by = right.raw() as u32;
    let raw = match (op, kind.signed) {
        (BinaryOp::ShiftLeft, _) => left.raw() << by,
        (_, true) => (left.raw() as i128 >> by) as u128,
        (_, false) => left.raw() >> by,
    };
    Ok(Number::integer(kind, raw))
}

#[cfg(test)]
#[path = "number_tests.rs"]
mod tests;

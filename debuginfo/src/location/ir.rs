//! Compiled expressions: trees of operations on registers and memory that need no debug information any more.
//!
//! Whoever runs one, the interpreter here or code made of it, gets the number that the evaluator would get, or *no
//! answer*: a null pointer, a division by zero, memory that is not there, and whatever else the evaluator would have to be
//! asked about. No answer is never wrong; it only takes longer.

mod run;

use crate::machine::Register;
use run::extend;

/// A whole number of 64 bits.
#[derive(Debug, Clone, PartialEq)]
pub enum Int {
    /// This number.
    Const(u64),
    /// A general register, by its DWARF number: 0 to 15.
    Register(Register),
    /// The low 64 bits of a vector register.
    Vector(Register),
    /// Memory.
    Load {
        /// Its address.
        at: Box<Int>,
        /// How many bytes: 1, 2, 4 or 8.
        bytes: u8,
        /// Extended to 64 bits by the sign instead of zeros.
        signed: bool,
    },
    /// The low bits of a number, extended to 64 bits.
    Extend {
        /// The number.
        of: Box<Int>,
        /// How many bits count: 1 to 63.
        bits: u8,
        /// By the sign instead of zeros.
        signed: bool,
    },
    /// An operation on two numbers, modulo 2^64.
    Binary {
        /// Which one.
        op: IntOp,
        /// The left operand.
        left: Box<Int>,
        /// The right operand.
        right: Box<Int>,
    },
    /// 1 if the comparison holds, 0 if not.
    Compare {
        /// Which one.
        order: Order,
        /// The operands have a sign.
        signed: bool,
        /// The left operand.
        left: Box<Int>,
        /// The right operand.
        right: Box<Int>,
    },
    /// 1 if the comparison holds, 0 if not; what is not a number is unequal to everything and has no order.
    CompareFloats {
        /// Which one.
        order: Order,
        /// The left operand.
        left: Box<Float>,
        /// The right operand.
        right: Box<Float>,
    },
    /// 1 if the number is 0, otherwise 0.
    Not(Box<Int>),
    /// 1 if neither is 0, otherwise 0; without the left one the right one is not looked at.
    And(Box<Int>, Box<Int>),
    /// 0 if both are 0, otherwise 1; with the left one the right one is not looked at.
    Or(Box<Int>, Box<Int>),
    /// One of two numbers; the other one is not looked at.
    Choose {
        /// Chooses the first unless it is 0.
        condition: Box<Int>,
        /// The first.
        if_true: Box<Int>,
        /// The second.
        if_false: Box<Int>,
    },
    /// The number, if it lies between the two, both inclusive and with signs; no answer otherwise.
    Within {
        /// The number.
        of: Box<Int>,
        /// The least.
        low: i64,
        /// The greatest.
        high: i64,
    },
    /// The number, unless it is 0; no answer then.
    NonNull(Box<Int>),
    /// The number, if it is one of these; no answer otherwise.
    OneOf {
        /// The number.
        of: Box<Int>,
        /// What it may be.
        values: Vec<u64>,
    },
    /// The number, if it lies in none of these ranges; no answer otherwise.
    Outside {
        /// The number.
        of: Box<Int>,
        /// From the first, inclusive, to the second, exclusive.
        ranges: Vec<(u64, u64)>,
    },
}

/// Operations on whole numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntOp {
    /// Addition.
    Add,
    /// Subtraction.
    Subtract,
    /// Multiplication.
    Multiply,
    /// Bits that are set in both.
    And,
    /// Bits that are set in either.
    Or,
    /// Bits that are set in one.
    Xor,
    /// The left one moved up; the right one is below 64.
    ShiftLeft,
    /// The left one moved down; the right one is below 64.
    ShiftRight {
        /// The sign moves in instead of zeros.
        signed: bool,
    },
    /// The quotient, towards zero; no answer for a divisor of 0 or, with signs, -1.
    Divide {
        /// The operands have a sign.
        signed: bool,
    },
    /// What the division leaves; no answer where it has none.
    Remainder {
        /// The operands have a sign.
        signed: bool,
    },
}

/// Comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterEqual,
}

/// A floating-point number of 64 bits.
#[derive(Debug, Clone, PartialEq)]
pub enum Float {
    /// This number.
    Const(f64),
    /// The number that these bits stand for; `single`: the low 32, otherwise all 64.
    Bits {
        /// The bits.
        of: Box<Int>,
        /// It has 32 bits.
        single: bool,
    },
    /// The nearest to a number with a sign.
    Signed(Box<Int>),
    /// The nearest of 32 bits.
    Round(Box<Float>),
    /// With the other sign.
    Negate(Box<Float>),
    /// An operation on two numbers.
    Binary {
        /// Which one.
        op: FloatOp,
        /// The left operand.
        left: Box<Float>,
        /// The right operand.
        right: Box<Float>,
    },
}

/// Operations on floating-point numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FloatOp {
    /// Addition.
    Add,
    /// Subtraction.
    Subtract,
    /// Multiplication.
    Multiply,
    /// Division.
    Divide,
}

impl Int {
    /// Makes an addition; numbers that are known are added.
    #[must_use]
    pub fn plus(self, other: u64) -> Int {
        match self {
            Int::Const(value) => Int::Const(value.wrapping_add(other)),
            of if other == 0 => of,
            Int::Binary {
                op: IntOp::Add,
                left,
                right,
            } if matches!(*right, Int::Const(_)) => {
                let right = right.plus(other);
                Int::binary(IntOp::Add, *left, right)
            }
            of => Int::binary(IntOp::Add, of, Int::Const(other)),
        }
    }

    /// Makes an operation.
    #[must_use]
    pub fn binary(op: IntOp, left: Int, right: Int) -> Int {
        Int::Binary {
            op,
            left: Box::new(left),
            right: Box::new(right),
        }
    }

    /// Makes a comparison.
    #[must_use]
    pub fn compare(order: Order, signed: bool, left: Int, right: Int) -> Int {
        Int::Compare {
            order,
            signed,
            left: Box::new(left),
            right: Box::new(right),
        }
    }

    /// Takes the low `bits` of a number (1 to 64).
    #[must_use]
    pub fn extended(self, bits: u8, signed: bool) -> Int {
        match self {
            of if bits >= 64 => of,
            Int::Const(value) => Int::Const(extend(value, bits, signed)),
            // What was loaded so has no other bits.
            Int::Load {
                at,
                bytes,
                signed: was,
            } if bytes * 8 == bits => Int::Load {
                at,
                bytes,
                signed: if bytes == 8 { was } else { signed },
            },
            of => Int::Extend {
                of: Box::new(of),
                bits,
                signed,
            },
        }
    }

    /// Asks whether a number is not 0.
    #[must_use]
    pub fn is_true(self) -> Int {
        match self {
            Int::Const(value) => Int::Const(u64::from(value != 0)),
            of @ (Int::Compare { .. }
            | Int::CompareFloats { .. }
            | Int::Not(_)
            | Int::And(..)
            | Int::Or(..)) => of,
            of => Int::compare(Order::NotEqual, false, of, Int::Const(0)),
        }
    }
}

impl Float {
    /// Makes an operation.
    #[must_use]
    pub fn binary(op: FloatOp, left: Float, right: Float) -> Float {
        Float::Binary {
            op,
            left: Box::new(left),
            right: Box::new(right),
        }
    }

    /// Rounds to 32 bits, where `single`.
    #[must_use]
    pub fn rounded(self, single: bool) -> Float {
        match (single, self) {
            (false, of) | (true, of @ Float::Bits { single: true, .. }) => of,
            (true, Float::Const(value)) => Float::Const(f64::from(value as f32)),
            (true, of) => Float::Round(Box::new(of)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_extended_by_their_low_bits() {
        assert_eq!(extend(0xff, 8, true), u64::MAX);
        assert_eq!(extend(0x1ff, 8, false), 0xff);
        assert_eq!(extend(5, 3, true), (-3i64) as u64);
        assert_eq!(extend(u64::MAX, 64, true), u64::MAX);
        assert_eq!(
            Int::Const(0x80).extended(8, true),
            Int::Const(-128i64 as u64)
        );
    }

    #[test]
    fn what_the_processor_traps_at_has_no_answer() {
        let divide = |signed| IntOp::Divide { signed };
        assert_eq!(divide(false).run(7, 0), None);
        assert_eq!(divide(true).run(i64::MIN as u64, u64::MAX), None);
        assert_eq!(divide(true).run(-7i64 as u64, 2), Some(-3i64 as u64));
        assert_eq!(
            IntOp::Remainder { signed: true }.run(-7i64 as u64, 2),
            Some(u64::MAX)
        );
    }

    #[test]
    fn numbers_that_are_known_are_added() {
        let rsp = Int::Register(Register::RSP);
        let twice = rsp.clone().plus(8).plus(u64::MAX);
        assert_eq!(twice, Int::binary(IntOp::Add, rsp.clone(), Int::Const(7)));
        assert_eq!(rsp.clone().plus(0), rsp);
    }
}

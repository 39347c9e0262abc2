//! Compiled expressions: trees of operations on registers and memory that no longer need debug information.
//!
//! A tree is run by the interpreter here or by code generated from it. The result is the number that the evaluator
//! would compute, or *no answer*: for a null pointer, a division by zero, missing memory, and everything else that
//! requires the evaluator. No answer is never wrong, only slower.

mod run;

use crate::machine::Register;
use run::extend;

/// A 64-bit integer.
#[derive(Debug, Clone, PartialEq)]
pub enum Int {
    /// A constant.
    Const(u64),
    /// A general register, by its DWARF number: 0 to 15.
    Register(Register),
    /// The low 64 bits of a vector register.
    Vector(Register),
    /// Memory.
    Load {
        /// The address.
        at: Box<Int>,
        /// The number of bytes: 1, 2, 4 or 8.
        bytes: u8,
        /// Sign-extended to 64 bits instead of zero-extended.
        signed: bool,
    },
    /// The low bits of a number, extended to 64 bits.
    Extend {
        /// The number.
        of: Box<Int>,
        /// The number of bits used: 1 to 63.
        bits: u8,
        /// Sign-extended instead of zero-extended.
        signed: bool,
    },
    /// An operation on two numbers, modulo 2^64.
    Binary {
        /// The operation.
        op: IntOp,
        /// The left operand.
        left: Box<Int>,
        /// The right operand.
        right: Box<Int>,
    },
    /// 1 if the comparison holds, 0 if not.
    Compare {
        /// The comparison.
        order: Order,
        /// The operands are signed.
        signed: bool,
        /// The left operand.
        left: Box<Int>,
        /// The right operand.
        right: Box<Int>,
    },
    /// 1 if the comparison holds, 0 if not. A NaN is unequal to everything and unordered.
    CompareFloats {
        /// The comparison.
        order: Order,
        /// The left operand.
        left: Box<Float>,
        /// The right operand.
        right: Box<Float>,
    },
    /// 1 if the number is 0, otherwise 0.
    Not(Box<Int>),
    /// 1 if neither is 0, otherwise 0. If the left one is 0, the right one is not evaluated.
    And(Box<Int>, Box<Int>),
    /// 0 if both are 0, otherwise 1. If the left one is not 0, the right one is not evaluated.
    Or(Box<Int>, Box<Int>),
    /// One of two numbers. The other one is not evaluated.
    Choose {
        /// Selects the first number unless it is 0.
        condition: Box<Int>,
        /// The first number.
        if_true: Box<Int>,
        /// The second number.
        if_false: Box<Int>,
    },
    /// The number if it is between `low` and `high`, both inclusive and signed. Otherwise no answer.
    Within {
        /// The number.
        of: Box<Int>,
        /// The least.
        low: i64,
        /// The greatest.
        high: i64,
    },
    /// The number unless it is 0. Otherwise no answer.
    NonNull(Box<Int>),
    /// The number if it is one of `values`. Otherwise no answer.
    OneOf {
        /// The number.
        of: Box<Int>,
        /// The accepted numbers.
        values: Vec<u64>,
    },
    /// The number if it is in none of `ranges`. Otherwise no answer.
    Outside {
        /// The number.
        of: Box<Int>,
        /// From the first, inclusive, to the second, exclusive.
        ranges: Vec<(u64, u64)>,
    },
}

/// Operations on integers.
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
    /// Bits that are set in exactly one.
    Xor,
    /// The left operand shifted left. The right one is below 64.
    ShiftLeft,
    /// The left operand shifted right. The right one is below 64.
    ShiftRight {
        /// Shifts in the sign instead of zeros.
        signed: bool,
    },
    /// The quotient, rounded towards zero. No answer for a divisor of 0 or, if signed, -1.
    Divide {
        /// The operands are signed.
        signed: bool,
    },
    /// The remainder of the division. No answer if the division has none.
    Remainder {
        /// The operands are signed.
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

/// A 64-bit floating-point number.
#[derive(Debug, Clone, PartialEq)]
pub enum Float {
    /// A constant.
    Const(f64),
    /// The number with these bits: the low 32 if `single`, otherwise all 64.
    Bits {
        /// The bits.
        of: Box<Int>,
        /// It is a 32-bit number.
        single: bool,
    },
    /// The nearest to a signed integer.
    Signed(Box<Int>),
    /// The nearest 32-bit number.
    Round(Box<Float>),
    /// The number with the opposite sign.
    Negate(Box<Float>),
    /// An operation on two numbers.
    Binary {
        /// The operation.
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
    /// Makes an addition. Folds constants.
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
            // A load of this width has no other bits.
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

    /// Makes a test for a number other than 0.
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

    /// Rounds to 32 bits if `single`.
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

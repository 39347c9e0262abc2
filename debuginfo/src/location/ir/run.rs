//! Runs compiled expressions. This is the reference for generated code.

use std::cmp::Ordering;

use super::{Float, FloatOp, Int, IntOp, Order};
use crate::machine::Machine;

impl Int {
    /// Runs the tree. `None` is no answer.
    #[must_use]
    pub fn run(&self, machine: &dyn Machine) -> Option<u64> {
        match self {
            Int::Const(value) => Some(*value),
            Int::Register(register) => machine.register(*register).ok().map(|(value, _)| value),
            Int::Vector(register) => {
                let (bytes, _) = machine.vector(*register).ok()?;
                bytes.first_chunk().map(|low| u64::from_le_bytes(*low))
            }
            Int::Load { at, bytes, signed } => {
                let word = load(machine, at.run(machine)?, *bytes)?;
                Some(extend(word, bytes * 8, *signed))
            }
            Int::Extend { of, bits, signed } => Some(extend(of.run(machine)?, *bits, *signed)),
            Int::Binary { op, left, right } => op.run(left.run(machine)?, right.run(machine)?),
            Int::Compare {
                order,
                signed,
                left,
                right,
            } => {
                let found = compare(left.run(machine)?, right.run(machine)?, *signed);
                Some(u64::from(order.holds(Some(found))))
            }
            Int::CompareFloats { order, left, right } => {
                let (a, b) = (left.run(machine)?, right.run(machine)?);
                Some(u64::from(order.holds(a.partial_cmp(&b))))
            }
            Int::Not(of) => Some(u64::from(of.run(machine)? == 0)),
            Int::And(left, right) => match left.run(machine)? {
                0 => Some(0),
                _ => Some(u64::from(right.run(machine)? != 0)),
            },
            Int::Or(left, right) => match left.run(machine)? {
                0 => Some(u64::from(right.run(machine)? != 0)),
                _ => Some(1),
            },
            Int::Choose {
                condition,
                if_true,
                if_false,
            } => match condition.run(machine)? {
                0 => if_false.run(machine),
                _ => if_true.run(machine),
            },
            Int::Within { of, low, high } => of
                .run(machine)
                .filter(|value| (*low..=*high).contains(&(*value as i64))),
            Int::NonNull(of) => of.run(machine).filter(|value| *value != 0),
            Int::OneOf { of, values } => of.run(machine).filter(|value| values.contains(value)),
            Int::Outside { of, ranges } => of
                .run(machine)
                .filter(|value| !ranges.iter().any(|(from, to)| (*from..*to).contains(value))),
        }
    }
}

fn load(machine: &dyn Machine, at: u64, bytes: u8) -> Option<u64> {
    let mut word = [0; 8];
    let part = word.get_mut(..usize::from(bytes))?;
    machine.memory(at, part).ok()?;
    Some(u64::from_le_bytes(word))
}

fn compare(a: u64, b: u64, signed: bool) -> Ordering {
    match signed {
        true => (a as i64).cmp(&(b as i64)),
        false => a.cmp(&b),
    }
}

impl IntOp {
    pub(super) fn run(self, a: u64, b: u64) -> Option<u64> {
        let by = (b & 63) as u32;
        Some(match self {
            IntOp::Add => a.wrapping_add(b),
            IntOp::Subtract => a.wrapping_sub(b),
            IntOp::Multiply => a.wrapping_mul(b),
            IntOp::And => a & b,
            IntOp::Or => a | b,
            IntOp::Xor => a ^ b,
            IntOp::ShiftLeft => a << by,
            IntOp::ShiftRight { signed: true } => (a as i64 >> by) as u64,
            IntOp::ShiftRight { signed: false } => a >> by,
            _ if b == 0 => return None,
            IntOp::Divide { signed: false } => a / b,
            IntOp::Remainder { signed: false } => a % b,
            _ if b == u64::MAX => return None,
            IntOp::Divide { signed: true } => (a as i64 / b as i64) as u64,
            IntOp::Remainder { signed: true } => (a as i64 % b as i64) as u64,
        })
    }
}

impl Order {
    /// Returns whether the comparison holds for operands in this order. `None`: the operands are unordered.
    #[must_use]
    pub fn holds(self, found: Option<Ordering>) -> bool {
        match found {
            None => self == Order::NotEqual,
            Some(found) => match self {
                Order::Equal => found.is_eq(),
                Order::NotEqual => found.is_ne(),
                Order::Less => found.is_lt(),
                Order::LessEqual => found.is_le(),
                Order::Greater => found.is_gt(),
                Order::GreaterEqual => found.is_ge(),
            },
        }
    }
}

impl Float {
    /// Runs the tree. `None` is no answer.
    #[must_use]
    pub fn run(&self, machine: &dyn Machine) -> Option<f64> {
        Some(match self {
            Float::Const(value) => *value,
            Float::Bits { of, single: true } => f64::from(f32::from_bits(of.run(machine)? as u32)),
            Float::Bits { of, single: false } => f64::from_bits(of.run(machine)?),
            Float::Signed(of) => of.run(machine)? as i64 as f64,
            Float::Round(of) => f64::from(of.run(machine)? as f32),
            Float::Negate(of) => -of.run(machine)?,
            Float::Binary { op, left, right } => {
                let (a, b) = (left.run(machine)?, right.run(machine)?);
                match op {
                    FloatOp::Add => a + b,
                    FloatOp::Subtract => a - b,
                    FloatOp::Multiply => a * b,
                    FloatOp::Divide => a / b,
                }
            }
        })
    }
}

/// Extends the low `bits` of a number (1 to 64) to 64 bits.
pub(super) fn extend(value: u64, bits: u8, signed: bool) -> u64 {
    let unused = 64 - u32::from(bits.clamp(1, 64));
    match signed {
        true => ((value << unused) as i64 >> unused) as u64,
        false => value << unused >> unused,
    }
}

//! Operators on values: numbers, pointers, strings.

use std::cmp::Ordering;

use crate::ast::{BinaryOp, Span, UnaryOp};
use crate::eval::operand::{Operand, number_value, pointer_value};
use crate::eval::{Answer, EvalError, Evaluator};
use crate::number::{self, IntKind, Number, compares, ordered};
use debuginfo::Certainty;
use debuginfo::scope::language_at;
use debuginfo::types::{Language, Type, TypeKind};
use debuginfo::value::Value;

impl Evaluator<'_> {
    pub(super) fn unary(&self, op: UnaryOp, of: &Value, at: Span) -> Answer<Value> {
        if op == UnaryOp::Not {
            let of = self.settled(of, at)?;
            let answer = match self.operand(&of, at)? {
                Operand::Number(Number::Integer(number)) if self.is_complemented(&of.ty) => {
                    Number::integer(number.kind, !number.raw())
                }
                _ => Number::Bool(!self.truth(&of, at)?),
            };
            return Ok(number_value(answer, of.certainty));
        }
        match self.operand(of, at)? {
            Operand::Number(number) => {
                let answer = number::unary(op, number);
                let answer = answer.map_err(|e| EvalError::new(at, e.diagnostic()))?;
                Ok(number_value(answer, of.certainty))
            }
            _ => Err(EvalError::new(
                at,
                format!("\"{}\" is not for {}", op.symbol(), of.ty.name()),
            )),
        }
    }

    /// Returns whether `!` turns all bits of a value of the type: that of a whole number in Rust.
    pub(super) fn is_complemented(&self, ty: &Type) -> bool {
        let language = || match language_at(self.site) {
            Language::Other => ty.language(),
            language => language,
        };
        matches!(ty.strip().kind(), TypeKind::Integer { .. }) && language() == Language::Rust
    }

    pub(super) fn binary(
        &self,
        op: BinaryOp,
        (left, left_at): (&Value, Span),
        (right, right_at): (&Value, Span),
        at: Span,
    ) -> Answer<Value> {
        let certainty = left.certainty.and(right.certainty);
        if compares(op)
            && let Some(order) = self.compare_texts((left, left_at), (right, right_at))?
        {
            return Ok(number_value(
                Number::Bool(ordered(op, Some(order))),
                certainty,
            ));
        }
        if let Some(is_equal) = equal_members(left, right) {
            let answer = match op {
                BinaryOp::Equal => is_equal,
                BinaryOp::NotEqual => !is_equal,
                _ => return self.no_operator(op, (left, left_at), (right, right_at), at),
            };
            return Ok(number_value(Number::Bool(answer), certainty));
        }
        let operands = (self.operand(left, left_at)?, self.operand(right, right_at)?);
        match operands {
            (Operand::Number(a), Operand::Number(b)) => {
                let answer = number::binary(op, a, b);
                let answer = answer.map_err(|e| EvalError::new(at, e.diagnostic()))?;
                Ok(number_value(answer, certainty))
            }
            (Operand::Pointer { address, .. }, Operand::Number(number))
                if compares(op) && number.as_integer().is_some() =>
            {
                let other = number.to_kind(IntKind::UNSIGNED_LONG).raw();
                Ok(compared(op, u128::from(address).cmp(&other), certainty))
            }
            (Operand::Number(number), Operand::Pointer { address, .. })
                if compares(op) && number.as_integer().is_some() =>
            {
                let other = number.to_kind(IntKind::UNSIGNED_LONG).raw();
                Ok(compared(op, other.cmp(&u128::from(address)), certainty))
            }
            (Operand::Pointer { address: a, .. }, Operand::Pointer { address: b, .. })
                if compares(op) =>
            {
                Ok(compared(op, a.cmp(&b), certainty))
            }
            (Operand::Pointer { address, ty }, Operand::Number(number))
                if matches!(op, BinaryOp::Add | BinaryOp::Subtract) =>
            {
                moved(op, (address, ty), number, certainty, at)
            }
            (Operand::Number(number), Operand::Pointer { address, ty }) if op == BinaryOp::Add => {
                moved(op, (address, ty), number, certainty, at)
            }
            (Operand::Pointer { address: a, ty }, Operand::Pointer { address: b, .. })
                if op == BinaryOp::Subtract =>
            {
                let size = i128::from(step(&ty, at)?);
                let distance = (a.wrapping_sub(b) as i64).wrapping_div(size as i64);
                let number = Number::integer(IntKind::LONG, distance as i128 as u128);
                Ok(number_value(number, certainty))
            }
            _ => self.no_operator(op, (left, left_at), (right, right_at), at),
        }
    }

    fn no_operator(
        &self,
        op: BinaryOp,
        (left, left_at): (&Value, Span),
        (right, right_at): (&Value, Span),
        at: Span,
    ) -> Answer<Value> {
        // If an operand cannot be read, that reason is more helpful than the types.
        for (value, at) in [(left, left_at), (right, right_at)] {
            if let Err(why) = value.known_bytes() {
                return Err(self.unusable(value, why, at));
            }
        }
        let names = (left.ty.name(), right.ty.name());
        let message = format!("\"{op}\" is not for {} and {}", names.0, names.1);
        Err(EvalError::new(at, message).with_hint("use their members"))
    }
}

/// Returns whether two C++ pointers to members of one class are equal, or `None` if the values are not that. Those of a
/// base class would have to be converted first.
fn equal_members(left: &Value, right: &Value) -> Option<bool> {
    let class = |value: &Value| value.ty.strip().member_class();
    if class(left)?.strip() != class(right)?.strip() {
        return None;
    }
    let (left, right) = (left.known_bytes().ok()?, right.known_bytes().ok()?);
    // A null pointer to a function is null whatever it adds to `this` (Itanium C++ ABI, 2.3).
    let is_null = left.len() == 16 && left[..8] == [0; 8];
    Some(left == right || is_null && left.get(..8) == right.get(..8))
}

fn compared(op: BinaryOp, order: Ordering, certainty: Certainty) -> Value {
    number_value(Number::Bool(ordered(op, Some(order))), certainty)
}

/// Returns the bytes by which a pointer moves when 1 is added. `void` counts as one byte, as in GNU C.
fn step(pointer: &Type, at: Span) -> Answer<u64> {
    let target = pointer.strip().target();
    let Some(target) = target else { return Ok(1) };
    match target.size() {
        Some(size) if size > 0 => Ok(size),
        _ if matches!(target.strip().kind(), TypeKind::Void | TypeKind::Function) => Ok(1),
        _ => {
            let message = format!("the size of {} is not known", target.name());
            Err(EvalError::new(at, message))
        }
    }
}

fn moved(
    op: BinaryOp,
    (address, ty): (u64, Type),
    by: Number,
    certainty: Certainty,
    at: Span,
) -> Answer<Value> {
    let Some(by) = by.as_integer() else {
        let message = "only whole numbers can be added to a pointer";
        return Err(EvalError::new(at, message));
    };
    let distance = (by.raw() as u64).wrapping_mul(step(&ty, at)?);
    let address = match op {
        BinaryOp::Add => address.wrapping_add(distance),
        _ => address.wrapping_sub(distance),
    };
    Ok(pointer_value(ty, address, certainty))
}

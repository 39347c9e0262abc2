//! Operators and conversions, with the evaluator's arithmetic.

use crate::ast::{BinaryOp, Expr, UnaryOp};
use crate::eval::classes::may_move;
use crate::eval::compile::value::{Bytes, Operand, Static, bool_value, float_value, int_value};
use crate::eval::compile::{Compiler, Result, not};
use crate::eval::operand::int_kind;
use crate::number::{IntKind, compares};
use debuginfo::location::ir::{Float, FloatOp, Int, IntOp, Order};
use debuginfo::types::{Type, TypeKind};

impl Compiler<'_, '_> {
    pub(super) fn unary(&self, op: UnaryOp, of: &Expr) -> Result<Static> {
        let value = self.value(of)?;
        if op == UnaryOp::Not {
            let settled = self.settled(&value)?;
            if self.evaluator.is_complemented(&settled.ty)
                && let Some(Operand::Integer(kind, number)) = self.operand(&settled)?
            {
                let number = Int::binary(IntOp::Xor, number, Int::Const(u64::MAX));
                return Ok(int_value(kind, number.extended(kind.bits, kind.signed)));
            }
            let truth = self.truth(&value, of)?;
            return Ok(bool_value(Int::Not(Box::new(truth))));
        }
        match self.operand(&value)? {
            Some(Operand::Float { value, single }) => match op {
                UnaryOp::Negate => Ok(float_value(Float::Negate(Box::new(value)), single)),
                UnaryOp::Plus => Ok(float_value(value, single)),
                _ => Err(not(format!("\"{}\" is not for {of}", op.symbol()))),
            },
            Some(Operand::Pointer { .. }) | None => {
                Err(not(format!("\"{}\" is not for {of}", op.symbol())))
            }
            Some(number) => {
                let (kind, number) = integer(number);
                let number = match op {
                    UnaryOp::Negate => Int::binary(IntOp::Subtract, Int::Const(0), number),
                    UnaryOp::Complement => Int::binary(IntOp::Xor, number, Int::Const(u64::MAX)),
                    _ => number,
                };
                let kind = kind.promoted();
                Ok(int_value(kind, number.extended(kind.bits, kind.signed)))
            }
        }
    }

    pub(super) fn binary(
        &self,
        op: BinaryOp,
        (left, left_expr): (&Static, &Expr),
        (right, right_expr): (&Static, &Expr),
    ) -> Result<Static> {
        if compares(op) {
            self.refuse_texts(left, right)?;
        }
        let missing = |expr: &Expr| not(format!("{expr} is not a number"));
        let a = self.operand(left)?.ok_or_else(|| missing(left_expr))?;
        let b = self.operand(right)?.ok_or_else(|| missing(right_expr))?;
        match (a, b) {
            (Operand::Pointer { address, ty }, other) => {
                self.with_pointer(op, (address, ty), other)
            }
            (other, Operand::Pointer { address, ty }) => {
                let is_integer = !matches!(other, Operand::Float { .. });
                if compares(op) && is_integer {
                    let (_, number) = integer(other);
                    let order = Int::compare(order(op)?, false, number, address);
                    return Ok(bool_value(order));
                }
                match op {
                    BinaryOp::Add if is_integer => moved(op, (address, ty), other),
                    _ => Err(not(format!("\"{op}\" is not for pointers"))),
                }
            }
            (a @ Operand::Float { .. }, b) | (a, b @ Operand::Float { .. }) => floats(op, a, b),
            (a, b) => integers(op, integer(a), integer(b)),
        }
    }

    /// Refuses strings. They are compared by their contents, which only the evaluator does.
    fn refuse_texts(&self, left: &Static, right: &Static) -> Result<()> {
        for value in [left, right] {
            let kind = self.settled(value)?.kind();
            if matches!(
                kind,
                TypeKind::Array | TypeKind::Struct | TypeKind::Class | TypeKind::Union
            ) {
                return Err(not(format!("{} may be a text", value.ty.name())));
            }
        }
        Ok(())
    }

    fn with_pointer(
        &self,
        op: BinaryOp,
        (address, ty): (Int, Type),
        other: Operand,
    ) -> Result<Static> {
        match other {
            Operand::Pointer { address: b, .. } if compares(op) => {
                Ok(bool_value(Int::compare(order(op)?, false, address, b)))
            }
            Operand::Pointer { address: b, .. } if op == BinaryOp::Subtract => {
                let distance = Int::binary(IntOp::Subtract, address, b);
                let size = Int::Const(step(&ty)?);
                let count = Int::binary(IntOp::Divide { signed: true }, distance, size);
                Ok(int_value(IntKind::LONG, count))
            }
            Operand::Pointer { .. } | Operand::Float { .. } => {
                Err(not(format!("\"{op}\" is not for pointers")))
            }
            number if compares(op) => {
                let (_, number) = integer(number);
                Ok(bool_value(Int::compare(order(op)?, false, address, number)))
            }
            number if matches!(op, BinaryOp::Add | BinaryOp::Subtract) => {
                moved(op, (address, ty), number)
            }
            _ => Err(not(format!("\"{op}\" is not for pointers"))),
        }
    }

    pub(super) fn convert(&self, value: &Static, ty: &Type, of: &Expr) -> Result<Static> {
        let stripped = ty.strip();
        if may_move(&value.ty, &stripped) {
            return Err(not(format!("{of} is converted to another class")));
        }
        let operand = self.operand(value)?;
        let operand = operand.ok_or_else(|| not(format!("{of} is looked at anew")))?;
        let converted = |number| Ok(Static::new(ty.clone(), Bytes::Number(number)));
        match (stripped.kind(), operand) {
            (TypeKind::Bool, Operand::Float { value, .. }) => converted(Int::CompareFloats {
                order: Order::NotEqual,
                left: Box::new(value),
                right: Box::new(Float::Const(0.0)),
            }),
            (TypeKind::Bool, Operand::Pointer { address, .. }) => converted(address.is_true()),
            (TypeKind::Bool, number) => converted(integer(number).1.is_true()),
            (TypeKind::Float, Operand::Float { value, .. }) => {
                let single = single(&stripped)?;
                Ok(Static::new(ty.clone(), Bytes::Float(value.rounded(single))))
            }
            (TypeKind::Float, Operand::Pointer { .. }) => {
                Err(not(format!("{of} is a pointer, and no number")))
            }
            (TypeKind::Float, number) => {
                let single = single(&stripped)?;
                let number = as_float(number).rounded(single);
                Ok(Static::new(ty.clone(), Bytes::Float(number)))
            }
            (_, Operand::Float { .. }) => Err(not(format!("{of} is a floating-point number"))),
            (TypeKind::Pointer, Operand::Pointer { address, .. }) => converted(address),
            (TypeKind::Pointer, number) => converted(integer(number).1),
            (_, operand) => {
                let kind = int_kind(&stripped).filter(|kind| kind.bits <= 64);
                let kind = kind.ok_or_else(|| not(format!("{} is not a number", ty.name())))?;
                let number = match operand {
                    Operand::Pointer { address, .. } => address,
                    number => integer(number).1,
                };
                converted(number.extended(kind.bits, kind.signed))
            }
        }
    }
}

fn single(ty: &Type) -> Result<bool> {
    match ty.size() {
        Some(4) => Ok(true),
        Some(8) => Ok(false),
        _ => Err(not(format!("{} is not computed with", ty.name()))),
    }
}

/// Returns a number as an integer. It must not be a floating-point number.
fn integer(operand: Operand) -> (IntKind, Int) {
    match operand {
        Operand::Integer(kind, number) => (kind, number),
        Operand::Bool(number) => (IntKind::INT, number),
        Operand::Float { .. } | Operand::Pointer { .. } => {
            unreachable!("the caller has looked at what it is")
        }
    }
}

fn order(op: BinaryOp) -> Result<Order> {
    Ok(match op {
        BinaryOp::Equal => Order::Equal,
        BinaryOp::NotEqual => Order::NotEqual,
        BinaryOp::Less => Order::Less,
        BinaryOp::LessEqual => Order::LessEqual,
        BinaryOp::Greater => Order::Greater,
        BinaryOp::GreaterEqual => Order::GreaterEqual,
        _ => return Err(not(format!("\"{op}\" is not a comparison"))),
    })
}

fn integers(op: BinaryOp, left: (IntKind, Int), right: (IntKind, Int)) -> Result<Static> {
    if matches!(op, BinaryOp::ShiftLeft | BinaryOp::ShiftRight) {
        return Ok(shift(op, left, right));
    }
    let kind = left.0.common(right.0);
    let a = left.1.extended(kind.bits, kind.signed);
    let b = right.1.extended(kind.bits, kind.signed);
    if compares(op) {
        return Ok(bool_value(Int::compare(order(op)?, kind.signed, a, b)));
    }
    let signed = kind.signed;
    let op = match op {
        BinaryOp::Add => IntOp::Add,
        BinaryOp::Subtract => IntOp::Subtract,
        BinaryOp::Multiply => IntOp::Multiply,
        BinaryOp::BitAnd => IntOp::And,
        BinaryOp::BitOr => IntOp::Or,
        BinaryOp::BitXor => IntOp::Xor,
        BinaryOp::Divide => IntOp::Divide { signed },
        BinaryOp::Remainder => IntOp::Remainder { signed },
        _ => return Err(not(format!("\"{op}\" is not compiled"))),
    };
    let number = Int::binary(op, a, b).extended(kind.bits, kind.signed);
    Ok(int_value(kind, number))
}

fn shift(op: BinaryOp, left: (IntKind, Int), right: (IntKind, Int)) -> Static {
    let kind = left.0.promoted();
    let by = Int::Within {
        of: Box::new(right.1),
        low: 0,
        high: i64::from(kind.bits) - 1,
    };
    let of = left.1.extended(kind.bits, kind.signed);
    let op = match op {
        BinaryOp::ShiftLeft => IntOp::ShiftLeft,
        _ => IntOp::ShiftRight {
            signed: kind.signed,
        },
    };
    let number = Int::binary(op, of, by).extended(kind.bits, kind.signed);
    int_value(kind, number)
}

fn as_float(operand: Operand) -> Float {
    match operand {
        Operand::Float { value, .. } => value,
        number => {
            let (kind, number) = integer(number);
            // An unsigned number with its highest bit set is rounded differently.
            let is_plain = kind.signed || kind.bits < 64;
            Float::Signed(Box::new(match is_plain {
                true => number,
                false => Int::Within {
                    of: Box::new(number),
                    low: 0,
                    high: i64::MAX,
                },
            }))
        }
    }
}

fn floats(op: BinaryOp, left: Operand, right: Operand) -> Result<Static> {
    let is_single = |operand: &Operand| match operand {
        Operand::Float { single, .. } => *single,
        _ => true,
    };
    let single = is_single(&left) && is_single(&right);
    let a = as_float(left).rounded(single);
    let b = as_float(right).rounded(single);
    if compares(op) {
        return Ok(bool_value(Int::CompareFloats {
            order: order(op)?,
            left: Box::new(a),
            right: Box::new(b),
        }));
    }
    let op = match op {
        BinaryOp::Add => FloatOp::Add,
        BinaryOp::Subtract => FloatOp::Subtract,
        BinaryOp::Multiply => FloatOp::Multiply,
        BinaryOp::Divide => FloatOp::Divide,
        _ => return Err(not(format!("\"{op}\" is not for floating-point numbers"))),
    };
    Ok(float_value(Float::binary(op, a, b).rounded(single), single))
}

/// Returns the bytes by which a pointer moves when 1 is added.
fn step(pointer: &Type) -> Result<u64> {
    let Some(target) = pointer.strip().target() else {
        return Ok(1);
    };
    match target.size() {
        Some(size) if size > 0 => Ok(size),
        _ if matches!(target.strip().kind(), TypeKind::Void | TypeKind::Function) => Ok(1),
        _ => Err(not(format!("the size of {} is not known", target.name()))),
    }
}

fn moved(op: BinaryOp, (address, ty): (Int, Type), by: Operand) -> Result<Static> {
    let (_, by) = integer(by);
    let distance = Int::binary(IntOp::Multiply, by, Int::Const(step(&ty)?));
    let op = match op {
        BinaryOp::Add => IntOp::Add,
        _ => IntOp::Subtract,
    };
    Ok(Static::new(
        ty,
        Bytes::Number(Int::binary(op, address, distance)),
    ))
}

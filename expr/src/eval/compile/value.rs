//! Compile-time values: a type, and where the bytes will be.

use crate::ast::Expr;
use crate::eval::base_type;
use crate::eval::compile::{Compiler, Result, not};
use crate::eval::operand::{self, int_kind, kind_in, stands_for_target};
use crate::number::{IntKind, Number};
use debuginfo::location::ir::{Float, Int, Order};
use debuginfo::types::{BitRange, FloatFormat, Type, TypeKind};
use debuginfo::value::Value;
use debuginfo::{Certainty, Register};

/// Where the bytes of a value will be.
#[derive(Debug, Clone)]
pub(super) enum Bytes {
    /// In memory, at this address.
    Memory(Int),
    /// The low bytes of this number.
    Number(Int),
    /// The low bytes of a vector register.
    Vector(Register),
    /// A computed floating-point number.
    Float(Float),
}

/// A compile-time value.
#[derive(Debug, Clone)]
pub(super) struct Static {
    pub ty: Type,
    pub bytes: Bytes,
    /// For a bit field, its bits, counted from the first byte.
    pub bits: Option<BitRange>,
}

pub(super) enum Operand {
    Bool(Int),
    /// An integer, extended to 64 bits according to its kind.
    Integer(IntKind, Int),
    Float {
        value: Float,
        single: bool,
    },
    Pointer {
        address: Int,
        ty: Type,
    },
}

impl Static {
    pub fn new(ty: Type, bytes: Bytes) -> Static {
        Static {
            ty,
            bytes,
            bits: None,
        }
    }

    /// Makes a value from one that is already known. Returns `None` if it has more than 8 bytes.
    pub fn constant(value: &Value) -> Option<Static> {
        let bytes = value.bytes.as_ref().ok()?;
        let mut word = [0; 8];
        word.get_mut(..bytes.len())?.copy_from_slice(bytes);
        let number = Int::Const(u64::from_le_bytes(word));
        Some(Static::new(value.ty.clone(), Bytes::Number(number)))
    }

    pub fn kind(&self) -> TypeKind {
        self.ty.strip().kind()
    }

    /// Returns its address, if it is in memory.
    pub fn address(&self) -> Option<&Int> {
        match &self.bytes {
            Bytes::Memory(address) if self.bits.is_none() => Some(address),
            _ => None,
        }
    }

    /// Returns it as a floating-point number of type `ty`, and whether that type has 32 bits.
    pub fn float(&self, ty: &Type) -> Result<(Float, bool)> {
        let single = match ty.float_format() {
            Some(FloatFormat::Single) => true,
            Some(FloatFormat::Double) => false,
            _ => return Err(not(format!("{} is not computed with", ty.name()))),
        };
        let number = match &self.bytes {
            Bytes::Float(number) => number.clone(),
            _ => Float::Bits {
                of: Box::new(self.raw(false)?),
                single,
            },
        };
        Ok((number, single))
    }

    /// Returns its bits as a number, sign-extended or zero-extended to 64 bits.
    pub fn raw(&self, signed: bool) -> Result<Int> {
        let size = self.ty.size();
        let (bits, shift) = match self.bits {
            Some(bits) => (bits.size, bits.offset),
            None => (size.unwrap_or(0).saturating_mul(8), 0),
        };
        let bits = u8::try_from(bits)
            .ok()
            .filter(|bits| (1..=64).contains(bits));
        let bits = bits.ok_or_else(|| not(format!("{} is not a number", self.ty.name())))?;
        let word = match &self.bytes {
            Bytes::Memory(at) => {
                let bytes = (shift + u64::from(bits)).div_ceil(8);
                if !matches!(bytes, 1 | 2 | 4 | 8) {
                    return Err(not(format!("{bytes} bytes are not read at once")));
                }
                Int::Load {
                    at: Box::new(at.clone()),
                    bytes: bytes as u8,
                    signed: false,
                }
            }
            Bytes::Number(number) => number.clone(),
            Bytes::Vector(register) => Int::Vector(*register),
            Bytes::Float(_) => return Err(not("a computed number has no bytes")),
        };
        let word = match shift {
            0 => word,
            shift => Int::binary(
                debuginfo::location::ir::IntOp::ShiftRight { signed: false },
                word,
                Int::Const(shift),
            ),
        };
        Ok(word.extended(bits, signed))
    }
}

impl Compiler<'_, '_> {
    /// Converts a value to an operand. Returns `None` if it is neither a number nor a pointer.
    pub(super) fn operand(&self, value: &Static) -> Result<Option<Operand>> {
        let value = self.settled(value)?;
        let ty = value.ty.strip();
        Ok(Some(match ty.kind() {
            TypeKind::Bool => Operand::Bool(value.raw(false)?.is_true()),
            TypeKind::Float => {
                let (value, single) = value.float(&ty)?;
                Operand::Float { value, single }
            }
            TypeKind::Pointer if ty.size() == Some(8) => Operand::Pointer {
                address: value.raw(false)?,
                ty,
            },
            TypeKind::Array if ty.is_plain_array() => match (value.address(), ty.element()) {
                (Some(address), Some(element)) => Operand::Pointer {
                    address: address.clone(),
                    ty: element.pointer(),
                },
                _ => return Ok(None),
            },
            _ => match int_kind(&ty) {
                Some(kind) if kind.bits <= 64 => {
                    let signed = debuginfo::value::number::signedness(&ty);
                    let raw = value.raw(signed.unwrap_or(false))?;
                    let kind = kind_in(kind, value.bits);
                    Operand::Integer(kind, raw.extended(kind.bits, kind.signed))
                }
                Some(_) => return Err(not(format!("{} has more than 64 bits", ty.name()))),
                None => return Ok(None),
            },
        }))
    }

    /// Follows what the language follows implicitly: references, including those of Rust, and its boxes.
    pub(super) fn settled(&self, value: &Static) -> Result<Static> {
        let mut value = match value.kind() {
            TypeKind::Reference | TypeKind::RvalueReference => self.behind_pointer(value)?,
            _ => value.clone(),
        };
        for _ in 0..4 {
            if !stands_for_target(&value.ty) {
                break;
            }
            value = self.behind_pointer(&value)?;
        }
        Ok(value)
    }

    /// Returns whether a value counts as true.
    pub(super) fn truth(&self, value: &Static, expr: &Expr) -> Result<Int> {
        match self.operand(value)? {
            Some(Operand::Bool(value) | Operand::Integer(_, value)) => Ok(value.is_true()),
            Some(Operand::Pointer { address, .. }) => Ok(address.is_true()),
            Some(Operand::Float { value, .. }) => Ok(Int::CompareFloats {
                order: Order::NotEqual,
                left: Box::new(value),
                right: Box::new(Float::Const(0.0)),
            }),
            None => Err(not(format!("{expr} is neither true nor false"))),
        }
    }

    /// Returns the value's number, extended according to its type, unless it is a floating-point number.
    pub(super) fn number_of(&self, value: &Static) -> Option<Int> {
        match self.operand(value).ok()?? {
            Operand::Bool(number) | Operand::Integer(_, number) => Some(number),
            Operand::Pointer { address, .. } if value.kind() == TypeKind::Pointer => Some(address),
            _ => None,
        }
    }
}

pub(super) fn bool_value(number: Int) -> Static {
    Static::new(base_type("bool"), Bytes::Number(number.is_true()))
}

/// Makes an integer of a kind. `number` is extended according to the kind.
pub(super) fn int_value(kind: IntKind, number: Int) -> Static {
    // The type is the evaluator's type for such a number.
    let like = operand::number_value(Number::integer(kind, 0), Certainty::Known);
    Static::new(like.ty, Bytes::Number(number))
}

pub(super) fn float_value(value: Float, single: bool) -> Static {
    let ty = base_type(if single { "float" } else { "double" });
    Static::new(ty, Bytes::Float(value))
}

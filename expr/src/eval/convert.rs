//! Explicit conversions.

use crate::ast::{CastKind, Span};
use crate::eval::operand::{Operand, int_kind};
use crate::eval::{Answer, Evaluator, failed};
use crate::number::Number;
use debuginfo::types::{Type, TypeKind};
use debuginfo::value::Value;

impl Evaluator<'_> {
    /// Converts a value to a type. Numbers and pointers are converted by value. Other values are reinterpreted.
    /// A class becomes another class of the same object.
    pub(super) fn convert(
        &self,
        value: &Value,
        ty: &Type,
        how: CastKind,
        at: Span,
    ) -> Answer<Value> {
        let stripped = ty.strip();
        // A reference is a name for its target.
        if matches!(
            stripped.kind(),
            TypeKind::Reference | TypeKind::RvalueReference
        ) && let Some(target) = stripped.target()
        {
            return self.convert(value, &target, how, at);
        }
        if !matches!(how, CastKind::Reinterpret | CastKind::Const)
            && let Some(found) = self.to_class(value, ty, how, at)?
        {
            return Ok(found);
        }
        if let Some(bytes) = self.converted(value, &stripped, at)? {
            let mut converted = Value::constant(ty.clone(), bytes);
            converted.certainty = value.certainty;
            return Ok(converted);
        }
        values::cast(value, ty, &self.look).map_err(failed(at))
    }

    /// Returns the bytes of a number or pointer, converted to another number or pointer type.
    fn converted(&self, value: &Value, ty: &Type, at: Span) -> Answer<Option<Vec<u8>>> {
        let kind = ty.kind();
        let is_scalar = matches!(kind, TypeKind::Pointer | TypeKind::Float | TypeKind::Bool);
        if !is_scalar && int_kind(ty).is_none() {
            return Ok(None);
        }
        let number = match self.operand(value, at)? {
            Operand::Number(number) => number,
            Operand::Pointer { address, .. } => Number::integer(
                super::super::number::IntKind::UNSIGNED_LONG,
                u128::from(address),
            ),
            Operand::Other => return Ok(None),
        };
        Ok(match kind {
            TypeKind::Bool => Some(vec![u8::from(number.is_true())]),
            TypeKind::Pointer => {
                let kind = super::super::number::IntKind::UNSIGNED_LONG;
                Some((number.to_kind(kind).raw() as u64).to_le_bytes().to_vec())
            }
            TypeKind::Float => match ty.size() {
                Some(4) => Some((number.as_float() as f32).to_le_bytes().to_vec()),
                Some(8) => Some(number.as_float().to_le_bytes().to_vec()),
                _ => None,
            },
            _ => int_kind(ty).map(|kind| {
                let size = usize::from(kind.bits / 8);
                number.to_kind(kind).raw().to_le_bytes()[..size].to_vec()
            }),
        })
    }
}

//! Explicit conversions.

use crate::ast::{CastKind, Expr, ExprKind, Span};
use crate::eval::operand::{Operand, int_kind, stands_for_target};
use crate::eval::ranks::is_reference;
use crate::eval::{Answer, EvalError, Evaluator, Wants, failed};
use crate::number::Number;
use debuginfo::Unknown;
use debuginfo::location::ValuePlace;
use debuginfo::types::{Type, TypeKind};
use debuginfo::value::Value;

impl Evaluator<'_> {
    /// Evaluates a conversion to the type `to`. One to a reference, `T&`, gives an object of the program.
    pub(super) fn cast(&self, to: &str, how: CastKind, of: &Expr, at: Span) -> Answer<Value> {
        let target = to.trim_end_matches('&');
        let ty = self.wanted_type(target, at)?;
        self.before_calls((&ty, target != to), how, of)?;
        let value = self.value(of)?;
        match target == to {
            true => self.convert(&value, &ty, how, of.at),
            false => self.as_object(&value, &ty, how, of.at),
        }
    }

    /// Refuses a conversion of what a call returns before the call, if the types do not allow it.
    fn before_calls(
        &self,
        (ty, to_reference): (&Type, bool),
        how: CastKind,
        of: &Expr,
    ) -> Answer<()> {
        if self.wants.get() == Wants::Type || !has_call(of) {
            return Ok(());
        }
        // An error of the operand itself is told when it is evaluated.
        let Ok(returned) = self.wanting(Wants::Type, of) else {
            return Ok(());
        };
        let is_nowhere = match &returned.place {
            ValuePlace::Implicit(_) => true,
            ValuePlace::Unknown(_) => is_call(of),
            _ => false,
        };
        let has_place = is_reference(&returned.ty.strip()) || !is_nowhere;
        match to_reference {
            true if has_place || how == CastKind::Static || ty.size() == returned.ty.size() => {
                Ok(())
            }
            true => Err(without_place(ty, of.at)),
            false if values::can_cast(&returned.ty, ty, has_place) => Ok(()),
            false => Err(impossible(&returned.ty, ty, of.at)),
        }
    }

    /// Returns the object to which a reference to `ty` leads that `value` is converted to.
    fn as_object(&self, value: &Value, ty: &Type, how: CastKind, at: Span) -> Answer<Value> {
        if self.wants.get() == Wants::Type {
            let why = Unknown::because("only its type is wanted");
            return Ok(Value::unknown(ty.clone(), why));
        }
        let object = value
            .unreferenced(&self.look)
            .map_err(|e| self.unusable(value, e, at))?;
        let moves = !matches!(how, CastKind::Reinterpret | CastKind::Const);
        if moves && let Some(found) = self.to_class(&object, ty, how, at)? {
            return Ok(found);
        }
        // `static_cast<const long&>(i)` leads to a temporary object.
        if how == CastKind::Static && object.ty.strip().name() != ty.strip().name() {
            return self.convert(&object, ty, how, at);
        }
        self.seen_as(&object, ty, at)
    }

    /// Returns what lies in the place of an object, as another type.
    fn seen_as(&self, object: &Value, ty: &Type, at: Span) -> Answer<Value> {
        let has_place = object.bits.is_none() && ty.size() == object.ty.size();
        match object.address() {
            Some(address) => {
                let found = Value::at(ty.clone(), address, self.look.machine);
                Ok(found.reached_by(object.reached))
            }
            None if has_place => Ok(Value {
                ty: ty.clone(),
                ..object.clone()
            }),
            None => Err(without_place(ty, at)),
        }
    }

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
        let has_place = value.address().is_some() || is_reference(&value.ty.strip());
        match values::can_cast(&value.ty, ty, has_place) {
            true => values::cast(value, ty, &self.look).map_err(failed(at)),
            false => Err(impossible(&value.ty, ty, at)),
        }
    }

    /// Returns the bytes of a pointer itself. For a type, any will do.
    pub(super) fn own_bytes(&self, value: &Value, at: Span) -> Answer<Vec<u8>> {
        self.note(value.certainty);
        self.compute_with(value);
        match value.known_bytes() {
            Ok(bytes) => Ok(bytes.to_vec()),
            Err(_) if self.wants.get() == Wants::Type => Ok(vec![0; 8]),
            Err(error) => Err(self.unusable(value, error, at)),
        }
    }

    /// Returns the bytes of a number or pointer, converted to another number or pointer type.
    pub(super) fn converted(&self, value: &Value, ty: &Type, at: Span) -> Answer<Option<Vec<u8>>> {
        let kind = ty.kind();
        // A reference becomes a pointer with its address, not with the number that it stands for.
        if kind == TypeKind::Pointer && stands_for_target(&value.ty) {
            return self.own_bytes(value, at).map(Some);
        }
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

fn is_call(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::Call { .. })
}

fn has_call(expr: &Expr) -> bool {
    let mut found = is_call(expr);
    expr.kind.for_each_child(|child| found |= has_call(child));
    found
}

fn impossible(from: &Type, to: &Type, at: Span) -> EvalError {
    let message = format!("{} cannot be converted to {}", from.name(), to.name());
    EvalError::meaningless(at, message)
}

pub(super) fn without_place(ty: &Type, at: Span) -> EvalError {
    let message = format!("it is not in memory, so no {}& can refer to it", ty.name());
    EvalError::new(at, message)
}

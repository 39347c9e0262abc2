//! Resolves names like the evaluator.

use crate::ast::{Expr, ExprKind};
use crate::eval::compile::value::{Bytes, Static};
use crate::eval::compile::{Compiler, Result, not};
use debuginfo::Register;
use debuginfo::location::Symbolic;
use debuginfo::location::ir::Int;
use debuginfo::scope::Variable;
use debuginfo::types::TypeKind;

impl Compiler<'_, '_> {
    pub(super) fn name(&self, name: &str) -> Result<Static> {
        if let Some(local) = self.local(name)? {
            return Ok(local);
        }
        let own = self.evaluator.local_enumerator(name);
        if let (None, Some(variable)) = (&own, self.evaluator.global(name)) {
            return self.variable(&variable);
        }
        if let Some(enumerator) = own.or_else(|| self.evaluator.enumerator(name)) {
            return Static::constant(&enumerator)
                .ok_or_else(|| not(format!("{name} has more than 64 bits")));
        }
        Err(not(format!("{name} is not a variable")))
    }

    /// Returns a variable or member, as found by [`Evaluator::local`](super::super::Evaluator::local).
    pub(super) fn local(&self, name: &str) -> Result<Option<Static>> {
        for depth in self.evaluator.depths(name) {
            if let Some(variable) = self.evaluator.variable_in(depth, name) {
                return self.variable(&variable).map(Some);
            }
            if let Some(member) = self.member_of_object(depth, name)? {
                return Ok(Some(member));
            }
            if self.evaluator.capture(depth, name).is_some() {
                return Err(not(format!("{name} is captured by a lambda")));
            }
            if let Some(given) = self.evaluator.given_around(depth, name) {
                return self.variable(&given).map(Some);
            }
        }
        match self.evaluator.is_declared_around(name) {
            true => Err(not(format!("{name} is in the frame of another function"))),
            false => Ok(None),
        }
    }

    pub(super) fn variable(&self, variable: &Variable) -> Result<Static> {
        let place = variable.symbolic(self.evaluator.site);
        let place = place.map_err(|why| not(format!("{}: {why}", variable.name)))?;
        let bytes = match place {
            Symbolic::Memory(address) => Bytes::Memory(address),
            Symbolic::Number(number) => Bytes::Number(number),
            Symbolic::Register(register) => match register.0 {
                0..=15 => Bytes::Number(Int::Register(register)),
                number if (Register::XMM0.0..Register::XMM0.0 + 16).contains(&number) => {
                    Bytes::Vector(register)
                }
                _ => return Err(not(format!("{}: an unusual register", variable.name))),
            },
            Symbolic::Bytes(bytes) => Bytes::Number(Int::Const(
                low_word(&bytes).ok_or_else(|| not(format!("{}: too large", variable.name)))?,
            )),
        };
        let value = Static::new(variable.ty(), bytes);
        let in_memory = matches!(value.bytes, Bytes::Memory(_));
        // A value larger than its register is in several registers.
        if !in_memory && value.ty.size().is_none_or(|size| size > 8) {
            return Err(not(format!("{} has more than 64 bits", variable.name)));
        }
        Ok(value)
    }

    /// Returns a member of the object whose method is executed at this inline depth.
    pub(super) fn member_of_object(
        &self,
        inline_depth: usize,
        name: &str,
    ) -> Result<Option<Static>> {
        let Some(variable) = self.evaluator.object_in(inline_depth) else {
            return Ok(None);
        };
        let mut target = variable.ty();
        let mut pointers = 0;
        while let TypeKind::Pointer | TypeKind::Reference | TypeKind::RvalueReference =
            target.strip().kind()
        {
            let Some(next) = target.strip().target() else {
                return Ok(None);
            };
            target = next;
            pointers += 1;
        }
        if pointers > 8 || !self.has_member(&target.strip(), name)? {
            return Ok(None);
        }
        let mut object = self.variable(&variable)?;
        for _ in 0..pointers {
            object = self.behind_pointer(&object)?;
        }
        self.field(&object, name)
    }

    /// Returns the enumerator that `expr` names in the enumeration type of `value`.
    pub(super) fn enumerator_like(&self, expr: &Expr, value: &Static) -> Option<Static> {
        let ExprKind::Name(name) = &expr.kind else {
            return None;
        };
        let value = self.settled(value).ok()?;
        let number = super::super::names::enumerator_of(&value.ty, name)?;
        Static::constant(&super::super::names::enum_value(&value.ty, number))
    }
}

fn low_word(bytes: &[u8]) -> Option<u64> {
    let mut word = [0; 8];
    word.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(u64::from_le_bytes(word))
}

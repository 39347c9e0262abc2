//! Members, elements, and targets of pointers.

use crate::ast::Expr;
use crate::eval::arguments::Argument;
use crate::eval::compile::value::{Bytes, Operand, Static};
use crate::eval::compile::{Compiler, Result, not};
use crate::eval::operand::stands_for_target;
use debuginfo::location::ir::{Int, IntOp};
use debuginfo::scope::{Variable, static_member};
use debuginfo::types::{
    BitRange, Language, Member, MemberOffset, Role, Type, TypeKind, find_member,
};

/// Pointers followed to find a member, and base classes searched for a name, at most.
const MAX_STEPS: usize = 8;
/// Names for the number of elements.
const LENGTHS: [&str; 3] = ["len", "length", "size"];
/// Elements at a larger distance from the first are left to the evaluator, which checks for overflows.
const FARTHEST: i64 = 1 << 32;

impl Compiler<'_, '_> {
    pub(super) fn member(&self, of: &Expr, name: &str) -> Result<Static> {
        if self.evaluator.means_arguments(of) {
            return match name.parse() {
                Ok(number) => self.argument(number),
                Err(_) => Err(not("args is more than one value")),
            };
        }
        let field = match name.starts_with(|c: char| c.is_ascii_digit()) {
            true => format!("__{name}"),
            false => name.to_owned(),
        };
        let mut value = self.value(of)?;
        for _ in 0..MAX_STEPS {
            match value.kind() {
                TypeKind::Struct | TypeKind::Class | TypeKind::Union => {
                    return self.field(&value, &field)?.ok_or_else(|| {
                        not(format!(
                            "{name} is not a plain member of {}",
                            value.ty.name()
                        ))
                    });
                }
                TypeKind::Pointer | TypeKind::Reference | TypeKind::RvalueReference => {
                    if LENGTHS.contains(&name) && value.ty.language() == Language::Rust {
                        return Err(not(format!("{name} may be a length")));
                    }
                    value = self.behind_pointer(&value)?;
                }
                _ => break,
            }
        }
        Err(not(format!("{} has no members", value.ty.name())))
    }

    /// Returns the target of a pointer or reference. A null pointer yields no answer.
    pub(super) fn behind_pointer(&self, value: &Static) -> Result<Static> {
        let ty = value.ty.strip();
        let target = ty.target();
        let target = target.ok_or_else(|| not(format!("{} points to nothing", ty.name())))?;
        if ty.size() != Some(8) || value.bits.is_some() {
            return Err(not(format!("{} is not a pointer of 8 bytes", ty.name())));
        }
        let address = Int::NonNull(Box::new(value.raw(false)?));
        Ok(Static::new(target, Bytes::Memory(address)))
    }

    pub(super) fn has_member(&self, ty: &Type, name: &str) -> Result<bool> {
        Ok(static_field(ty, name)?.is_some() || find(ty, name, MAX_STEPS)?.is_some())
    }

    /// Returns a member of a structure in memory, or `None` if it has none of this name.
    pub(super) fn field(&self, value: &Static, name: &str) -> Result<Option<Static>> {
        let ty = value.ty.strip();
        if let Some(variable) = static_field(&ty, name)? {
            return self.variable(&variable).map(Some);
        }
        let Some((offset, member)) = find(&ty, name, MAX_STEPS)? else {
            return Ok(None);
        };
        let Bytes::Memory(address) = &value.bytes else {
            return Err(not(format!("{} is not in memory", ty.name())));
        };
        if value.bits.is_some() {
            return Err(not("a bit field has no members"));
        }
        Ok(Some(match member.bits {
            None => Static::new(
                member.ty.clone(),
                Bytes::Memory(address.clone().plus(offset)),
            ),
            Some(bits) => Static {
                ty: member.ty.clone(),
                bytes: Bytes::Memory(address.clone().plus(offset + bits.offset / 8)),
                bits: Some(BitRange {
                    offset: bits.offset % 8,
                    size: bits.size,
                }),
            },
        }))
    }

    pub(super) fn deref(&self, of: &Expr) -> Result<Static> {
        let value = self.unreferenced(self.value(of)?)?;
        match value.kind() {
            TypeKind::Pointer => {
                let target = value.ty.strip().target();
                if target.is_none_or(|t| t.strip().kind() == TypeKind::Void) {
                    return Err(not(format!("{of} points to void")));
                }
                self.behind_pointer(&value)
            }
            TypeKind::Array => self.element(&value, Int::Const(0)),
            _ => Err(not(format!("{of} is not a pointer"))),
        }
    }

    pub(super) fn address_of(&self, of: &Expr) -> Result<Static> {
        let value = self.unreferenced(self.value(of)?)?;
        let address = value.address().cloned();
        let address = address.ok_or_else(|| not(format!("{of} has no address")))?;
        Ok(Static::new(value.ty.pointer(), Bytes::Number(address)))
    }

    pub(super) fn index(&self, of: &Expr, index: &Expr) -> Result<Static> {
        let key = match self.operand(&self.value(index)?)? {
            Some(Operand::Bool(number) | Operand::Integer(_, number)) => number,
            _ => return Err(not(format!("{index} is not a whole number"))),
        };
        if self.evaluator.means_arguments(of) {
            return match key {
                Int::Const(number) => self.argument(number as i64 as i128),
                _ => Err(not("which argument is meant depends on the thread")),
            };
        }
        let mut value = self.unreferenced(self.value(of)?)?;
        for _ in 0..MAX_STEPS {
            if !refers_to_elements(&value.ty) {
                break;
            }
            value = self.unreferenced(self.behind_pointer(&value)?)?;
        }
        self.element(&value, key)
    }

    pub(super) fn element(&self, value: &Static, index: Int) -> Result<Static> {
        let ty = value.ty.strip();
        let (base, element) = match ty.kind() {
            TypeKind::Array if !ty.is_plain_array() => {
                return Err(not(format!("{} is not an array of C's kind", ty.name())));
            }
            TypeKind::Array => (value.address().cloned(), ty.element()),
            TypeKind::Pointer => {
                let address = Int::NonNull(Box::new(value.raw(false)?));
                (Some(address), ty.target())
            }
            _ => return Err(not(format!("{} has no plain elements", ty.name()))),
        };
        let (Some(base), Some(element)) = (base, element) else {
            return Err(not(format!("{} is not in memory", ty.name())));
        };
        let size = match element.strip().kind() {
            TypeKind::Void if ty.kind() == TypeKind::Pointer => Some(1),
            _ => element.size(),
        };
        let size = size.filter(|size| *size <= 1 << 30);
        let size = size.ok_or_else(|| not(format!("the size of {}", element.name())))?;
        let address = match index {
            Int::Const(index) if (index as i64).unsigned_abs() < FARTHEST as u64 => {
                base.plus(index.wrapping_mul(size))
            }
            index => {
                let index = Int::Within {
                    of: Box::new(index),
                    low: -FARTHEST,
                    high: FARTHEST,
                };
                let distance = Int::binary(IntOp::Multiply, index, Int::Const(size));
                Int::binary(IntOp::Add, base, distance)
            }
        };
        Ok(Static::new(element, Bytes::Memory(address)))
    }

    pub(super) fn argument(&self, number: i128) -> Result<Static> {
        match self
            .evaluator
            .argument_place(number)
            .map_err(|why| not(why.one_line()))?
        {
            Argument::Register(ty, register) => {
                Ok(Static::new(ty, Bytes::Number(Int::Register(register))))
            }
            Argument::Variable(variable) => self.variable(&variable),
        }
    }

    pub(super) fn unreferenced(&self, value: Static) -> Result<Static> {
        match value.kind() {
            TypeKind::Reference | TypeKind::RvalueReference => self.behind_pointer(&value),
            _ => Ok(value),
        }
    }
}

/// Returns whether the type is a Rust reference to something with elements of its own, or a box of it.
fn refers_to_elements(ty: &Type) -> bool {
    stands_for_target(ty)
        && ty.strip().target().is_some_and(|target| {
            let kind = target.strip().kind();
            matches!(kind, TypeKind::Struct | TypeKind::Array | TypeKind::Pointer)
        })
}

/// Returns the variable of a static member of a C++ class.
fn static_field(ty: &Type, name: &str) -> Result<Option<Variable>> {
    if ty.language() != Language::Cpp {
        return Ok(None);
    }
    let found = find_member(ty, name).map_err(|why| not(why.to_string()))?;
    let found = found.filter(|found| matches!(found.member.offset, MemberOffset::Static(_)));
    Ok(found.and_then(|found| static_member(&found.member, &found.class)))
}

/// Like [`find`], in a C++ class.
fn inherited(ty: &Type, name: &str) -> Result<Option<(u64, Member)>> {
    let depends = || not(format!("where {name} is depends on the object"));
    let found = find_member(ty, name).map_err(|why| not(why.to_string()))?;
    let Some(found) = found else {
        return Ok(None);
    };
    let mut start = 0u64;
    for step in &found.path {
        match (&step.offset, step.bits) {
            (MemberOffset::Bytes(offset), None) => start = start.wrapping_add(*offset),
            _ => return Err(depends()),
        }
    }
    let member = found.member;
    let at = match (&member.offset, member.bits, member.role) {
        (MemberOffset::Bytes(offset), None, Role::Member) => start.wrapping_add(*offset),
        // The bits are counted from the start of the structure.
        (MemberOffset::Bytes(_), Some(_), Role::Member) => start,
        _ => return Err(depends()),
    };
    Ok(Some((at, member)))
}

/// Finds a member, also in base classes and unnamed members. Also returns the offset from the start of `ty` to the
/// structure that contains the member, or to the member itself.
///
/// # Errors
/// The place or the existence of the member depends on the object.
fn find(ty: &Type, name: &str, depth: usize) -> Result<Option<(u64, Member)>> {
    if ty.language() == Language::Cpp {
        return inherited(ty, name);
    }
    let depends = || not(format!("where {name} is depends on the object"));
    let Some(depth) = depth.checked_sub(1) else {
        return Err(depends());
    };
    let members = ty.members();
    let own = members.iter().find(|m| {
        let is_base = matches!(m.role, Role::Base | Role::VirtualBase);
        !is_base && m.name.as_deref() == Some(name)
    });
    if let Some(member) = own {
        return match (&member.offset, member.bits) {
            (MemberOffset::Bytes(offset), None) => Ok(Some((*offset, member.clone()))),
            // The bits are counted from the start of the structure.
            (MemberOffset::Bytes(_), Some(_)) => Ok(Some((0, member.clone()))),
            _ => Err(depends()),
        };
    }
    for member in &members {
        let is_base = matches!(member.role, Role::Base | Role::VirtualBase);
        if is_base {
            let base = member.ty.strip();
            if base.plain_name() == Some(name) || base.own_name().as_deref() == Some(name) {
                return Err(depends());
            }
        }
        if is_base || member.name.is_none() && member.role == Role::Member {
            let inner = match find(&member.ty.strip(), name, depth)? {
                Some(inner) => inner,
                None => continue,
            };
            let MemberOffset::Bytes(offset) = &member.offset else {
                return Err(depends());
            };
            if member.bits.is_some() {
                return Err(depends());
            }
            return Ok(Some((offset + inner.0, inner.1)));
        }
    }
    match ty.variants() {
        Some(_) => Err(depends()),
        None => Ok(None),
    }
}

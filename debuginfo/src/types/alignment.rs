//! The alignment of types, from the System V ABI of x86-64 and from what the source demands.

use super::node::Shape;
use super::{MAX_STEPS, MemberOffset, Role, Type, TypeKind};

/// Types examined for one alignment, at most.
const MAX_TYPES: usize = 4096;

/// Returns the alignment of a type in bytes. `None` if the type has none, or is not described.
pub(super) fn of(ty: &Type) -> Option<u64> {
    let mut left = MAX_TYPES;
    within(ty, MAX_STEPS, &mut left)
}

fn within(ty: &Type, steps: usize, left: &mut usize) -> Option<u64> {
    *left = left.checked_sub(1)?;
    let steps = steps.checked_sub(1)?;
    let stated = ty
        .node()
        .alignment
        .filter(|stated| stated.is_power_of_two());
    if stated.is_some() {
        return stated;
    }
    match ty.kind() {
        TypeKind::Typedef | TypeKind::Qualified => within(&ty.target()?, steps, left),
        TypeKind::Struct | TypeKind::Class | TypeKind::Union => record(ty, steps, left),
        TypeKind::Array if !is_vector(ty) => within(&ty.element()?, steps, left),
        // [expr.alignof] of the C++ standard: a reference is aligned as its target.
        TypeKind::Reference | TypeKind::RvalueReference => within(&ty.target()?, steps, left),
        TypeKind::MemberPointer => Some(8),
        TypeKind::Complex => Some(ty.size()? / 2),
        TypeKind::Void | TypeKind::Unspecified | TypeKind::Function => None,
        _ => ty.size().filter(|size| size.is_power_of_two()),
    }
}

/// Returns whether a type is a vector, which is aligned to its size.
fn is_vector(ty: &Type) -> bool {
    matches!(&ty.node().shape, Shape::Array { form, .. } if form.is_vector)
}

/// The largest alignment of the members. It is 1 if the place of a member violates its own: then the record is packed.
fn record(ty: &Type, steps: usize, left: &mut usize) -> Option<u64> {
    if ty.is_declaration() {
        let defined = ty.definition();
        return match defined.is_declaration() {
            true => None,
            false => within(&defined, steps, left),
        };
    }
    let (size, mut largest) = (ty.size()?, 1);
    let shared = ty.members().into_iter();
    let shared = shared.filter(|member| member.role != Role::Static);
    let variants = ty.variants().map(|variants| variants.list);
    let own = variants.unwrap_or_default().into_iter();
    for member in shared.chain(own.map(|variant| variant.member)) {
        let wanted = within(&member.ty, steps, left)?;
        let is_packed = match member.offset {
            MemberOffset::Bytes(at) => member.bits.is_none() && !at.is_multiple_of(wanted.max(1)),
            MemberOffset::Computed(_) | MemberOffset::Static(_) => false,
        };
        if is_packed {
            return Some(1);
        }
        largest = largest.max(wanted);
    }
    Some(match size.is_multiple_of(largest) {
        true => largest,
        false => 1,
    })
}

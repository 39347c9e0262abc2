//! Members that exist only in the variant selected by a discriminant (Ada and Pascal records).

use super::{Look, Value, ValueError, inside, number};
use crate::types::{Branch, Language, Member, Shape, VariantPart, member_of};

/// Returns the members of the active variants, in source order. Empty for values without variants.
///
/// # Errors
/// A discriminant is unknown.
pub fn live_members(value: &Value, look: &Look<'_>) -> Result<Vec<Member>, ValueError> {
    let ty = value.ty.strip();
    let mut live = Vec::new();
    let Shape::Aggregate {
        variants: Some(part),
        ..
    } = &ty.node().shape
    else {
        return Ok(live);
    };
    // A Rust enum consists of its variants and has no other members.
    if ty.language() == Language::Rust {
        return Ok(live);
    }
    let mut next = Some(part);
    while let Some(part) = next {
        let Some(branch) = live_branch(value, part, look)? else {
            break;
        };
        live.extend(branch.fields.iter().map(|field| member_of(&ty, field)));
        next = branch.inner.as_deref();
    }
    Ok(live)
}

fn live_branch<'p>(
    value: &Value,
    part: &'p VariantPart,
    look: &Look<'_>,
) -> Result<Option<&'p Branch>, ValueError> {
    let Some(discriminant) = &part.discriminant else {
        return Ok(None);
    };
    let discriminant = member_of(&value.ty.strip(), discriminant);
    let discriminant = inside::member_value(value, &discriminant, look)?;
    let (found, bits) = number::raw(&discriminant)?;
    let mask = u128::MAX >> (128 - bits.clamp(1, 128));
    let chosen = part.branches.iter().find(|branch| {
        let mut ranges = branch.values.iter();
        ranges.any(|(low, high)| (low & mask) <= found && found <= (high & mask))
    });
    let others = || part.branches.iter().find(|branch| branch.values.is_empty());
    Ok(chosen.or_else(others))
}

//! Rust enums: finds the active variant.

use super::trail::{Piece, Trail};
use super::{Look, Value, ValueError, inside, number};
use crate::machine::{Certainty, Unknown};
use crate::types::{Discriminants, Variant};

pub(super) fn variant(value: &Value, look: &Look<'_>) -> Result<(String, Value), ValueError> {
    let variants = value.ty.variants().ok_or_else(|| ValueError::WrongType {
        ty: value.ty.name(),
        what: "has no variants",
        hint: None,
    })?;
    let (mut seen, mut certainty) = (None, Certainty::Known);
    let discriminant = match &variants.discriminant {
        Some(member) => {
            let discriminant = inside::member_value(value, member, look)?;
            seen = Piece::of(&discriminant);
            certainty = discriminant.certainty;
            Some(number::raw(&discriminant)?)
        }
        None => None,
    };
    let live = match discriminant {
        Some(found) => selected(&variants.list, found),
        None => variants.only(),
    };
    let live = live.ok_or_else(|| match discriminant {
        Some((found, _)) => Unknown::because(format!("no variant has the discriminant {found}")),
        None => Unknown::because("which variant it has is not described"),
    })?;
    let data = inside::member_value(value, &live.member, look)?;
    if let (Some(discriminant), Some(data)) = (seen, Piece::of(&data)) {
        let mut trail = Trail::default();
        trail.add(discriminant, look.machine)?;
        trail.ends_at(&data, look.machine)?;
    }
    // The structure of a variant has its name even if the member does not.
    let name = live
        .name
        .clone()
        .or_else(|| Some(data.ty.plain_name()?.to_owned()));
    Ok((name.unwrap_or_default(), data.reached_by(certainty)))
}

/// The variant with a discriminant of `bits` bits.
fn selected(list: &[Variant], (found, bits): (u128, u32)) -> Option<&Variant> {
    let mask = u128::MAX >> (128 - bits.clamp(1, 128));
    let is_in = |(low, high): &(u128, u128)| (low & mask) <= found && found <= (high & mask);
    let has_it = |variant: &&Variant| match &variant.discriminants {
        Discriminants::These(ranges) => ranges.iter().any(is_in),
        Discriminants::Others => false,
    };
    let others = |variant: &&Variant| variant.discriminants == Discriminants::Others;
    let named = list.iter().find(has_it);
    named.or_else(|| list.iter().find(others))
}

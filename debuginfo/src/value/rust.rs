//! Rust enums: finds the active variant.

use super::trail::{Piece, Trail};
use super::{Look, Value, ValueError, inside, number};
use crate::machine::{Certainty, Unknown};
use crate::types::Discriminants;

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
    let is_live = |discriminants: &Discriminants| match (discriminants, discriminant) {
        (_, None) => true,
        (Discriminants::Others, _) => false,
        (Discriminants::These(ranges), Some((found, bits))) => {
            let mask = u128::MAX >> (128 - bits.clamp(1, 128));
            ranges
                .iter()
                .any(|(low, high)| (low & mask) <= found && found <= (high & mask))
        }
    };
    let others = |d: &Discriminants| *d == Discriminants::Others;
    let list = &variants.list;
    let live = list.iter().find(|v| is_live(&v.discriminants));
    let live = live.or_else(|| list.iter().find(|v| others(&v.discriminants)));
    let live = live.ok_or_else(|| {
        let found = discriminant.map_or(0, |(found, _)| found);
        Unknown::because(format!("no variant has the discriminant {found}"))
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

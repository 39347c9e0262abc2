//! Ada arrays without bounds of their own: a pair of pointers, to the elements and to the bounds (GNAT's fat pointers).

use super::inside::{self, wrong};
use super::trail::Trail;
use super::{Look, Value, ValueError, number};
use crate::machine::Unknown;
use crate::types::{Bound, Count, Dimension, Language, Type, TypeKind, elements};

/// Returns the array that such a pair represents, or `None` for other values.
pub fn array(value: &Value, look: &Look<'_>) -> Option<Result<Value, ValueError>> {
    let ty = value.ty.strip();
    if ty.language() != Language::Ada || ty.kind() != TypeKind::Struct {
        return None;
    }
    let members = ty.members();
    let names: Vec<Option<&str>> = members.iter().map(|m| m.name.as_deref()).collect();
    if names != [Some("P_ARRAY"), Some("P_BOUNDS")] {
        return None;
    }
    let part = |at: usize| inside::member_value(value, &members[at], look);
    Some(part(0).and_then(|first| found(&first, &part(1)?, look)))
}

fn found(first: &Value, bounds: &Value, look: &Look<'_>) -> Result<Value, ValueError> {
    let described = first.ty.strip().target().map(|target| target.strip());
    let described = described.ok_or_else(|| wrong(&first.ty, "points to nothing"))?;
    let address = inside::pointer(first)?;
    let bounds = inside::deref(bounds, look)?;
    let dimensions = described.dimensions().iter().enumerate();
    let dimensions = dimensions.map(|(at, dimension)| {
        let lower = bound(&bounds, &format!("LB{at}"), look)?;
        let last = bound(&bounds, &format!("UB{at}"), look)?;
        Ok(Dimension {
            count: Count::Known(elements(lower, last)),
            lower: Bound::Known(lower),
            indexes: None,
            ..dimension.clone()
        })
    });
    let dimensions: Result<Vec<Dimension>, ValueError> = dimensions.collect();
    let ty = described.decided(dimensions?);
    let ty: Type = ty.ok_or_else(|| wrong(&first.ty, "points to no array"))?;
    let found = Value::at(ty, address, look.machine).reached_by(first.certainty);
    match Trail::check(&[first, &bounds], &found, look.machine) {
        Ok(()) => Ok(found),
        Err(why) => Err(ValueError::Unknown(why)),
    }
}

fn bound(bounds: &Value, name: &str, look: &Look<'_>) -> Result<i64, ValueError> {
    let bound = number::integer(&inside::member(bounds, name, look)?)?;
    i64::try_from(bound)
        .map_err(|_| ValueError::Unknown(Unknown::because("a bound of the array is too large")))
}

/// Returns the target of an access value: `.all`.
pub(crate) fn all(value: &Value, look: &Look<'_>) -> Result<Value, ValueError> {
    match array(value, look) {
        Some(array) => array,
        None => inside::deref(value, look),
    }
}

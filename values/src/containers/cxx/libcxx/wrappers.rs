//! Thin wrappers of libc++: `tuple`, `optional`, `variant`, `atomic`, and pointers with owners.

use crate::containers::content::Content;
use crate::containers::cxx::libcxx::held;
use crate::containers::cxx::pointers::{counted, pointing};
use crate::containers::cxx::wrappers::{alternative, listed};
use crate::containers::typed_place::{Reach, TypedPlace, argument, argument_value, path_of};
use debuginfo::Unknown;
use debuginfo::types::builtin;

/// Every element is a base class of its own.
pub(super) fn tuple(spot: &TypedPlace) -> Result<Content, Unknown> {
    // A tuple without elements has no bases.
    let Some(base) = spot.find("__base_") else {
        return Ok(listed(Vec::new()));
    };
    let leaves = base.bases().into_iter();
    let leaves = leaves.filter(|leaf| path_of(&leaf.ty) == "std::__tuple_leaf");
    let elements = leaves.map(|leaf| match argument_value(&leaf.ty, 2) {
        // It is empty, and a base of the leaf.
        Some(1) => Ok(leaf.cast(&argument(&leaf.ty, 1)?)),
        _ => leaf.field("__value_"),
    });
    Ok(listed(elements.collect::<Result<Vec<_>, _>>()?))
}

pub(super) fn optional(spot: &TypedPlace, reach: &Reach) -> Result<Content, Unknown> {
    match spot.field("__engaged_")?.number(reach)? {
        0 if !reach.machine.is_symbolic() => Ok(Content::words(" [no contained value]")),
        0 | 1 => {
            let value = spot.field("__val_")?.cast(&argument(&spot.ty, 0)?);
            Ok(Content::around(" = {", "value", value, "}"))
        }
        flag => Err(Unknown::corrupt(format!("a flag of {flag}"))),
    }
}

pub(super) fn variant(spot: &TypedPlace, reach: &Reach) -> Result<Content, Unknown> {
    let holder = spot.any_field(&["__impl_", "__impl"])?;
    let index = holder.field("__index")?;
    let names = ("__tail", "__head");
    alternative(&index, holder.field("__data")?, names, reach, &|first| {
        first.field("__value")
    })
}

pub(super) fn atomic(spot: &TypedPlace) -> Result<Content, Unknown> {
    let holder = spot.field("__a_")?;
    let value = holder.find("__a_value").unwrap_or(holder);
    let value = match argument(&spot.ty, 0) {
        Ok(ty) if ty.size() == value.ty.size() => value.cast(&ty),
        _ => value,
    };
    Ok(Content::around(" = {", "value", value, "}"))
}

pub(super) fn unique(spot: &TypedPlace, reach: &Reach) -> Result<Content, Unknown> {
    pointing("", held(spot, &["__ptr_"])?, true, reach)
}

pub(super) fn shared(spot: &TypedPlace, weak: bool, reach: &Reach) -> Result<Content, Unknown> {
    let pointer = spot.field("__ptr_")?;
    let counts = spot.field("__cntrl_")?;
    if counts.number(reach)? == 0 {
        return pointing(" (empty)", pointer, !weak, reach);
    }
    // The counts follow the pointer to the virtual functions. This layout is frozen, and compilers describe it only where
    // these functions are defined, which is in the library. Both counts are one less than the number.
    let counts = counts.number(reach)?;
    let count = reach.word(counts.wrapping_add(8))?.wrapping_add(1);
    let observers = reach.word(counts.wrapping_add(16))?.wrapping_add(1);
    let long = builtin("long").expect("long is a base type");
    let uses = TypedPlace::bytes(&long, &count.to_le_bytes());
    counted(pointer, (uses, count), observers, reach)
}

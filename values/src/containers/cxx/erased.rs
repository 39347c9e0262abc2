//! `any` and `function`: the name of a function that they point to reveals the type of the content.

use crate::containers::content::{Content, Part};
use crate::containers::names;
use crate::containers::typed_place::{Reach, TypedPlace};
use debuginfo::Unknown;
use debuginfo::types::{Near, find_type};

/// The readable name of the function at `address`.
pub(super) fn function_name(address: u64, reach: &Reach) -> Result<String, Unknown> {
    let linker_name = reach.space.at(address).and_then(|mapped| {
        let svma = mapped.svma(address);
        mapped.module.linker_name_at(svma)
    });
    let unknown = || Unknown::because(format!("no function is known at {address:#x}"));
    let linker_name = linker_name.ok_or_else(unknown)?;
    Ok(debuginfo::function_name(&linker_name).unwrap_or(linker_name))
}

pub(super) fn any(spot: &TypedPlace, reach: &Reach) -> Result<Content, Unknown> {
    let manager = spot.field("_M_manager")?.number(reach)?;
    if manager == 0 {
        return Ok(Content::words(" [no contained value]"));
    }
    let name = function_name(manager, reach)?;
    let (is_inside, rest) = match name.strip_prefix("std::any::_Manager_") {
        Some(rest) => (rest.starts_with("internal<"), rest),
        None => return Err(Unknown::corrupt(format!("{name} manages it"))),
    };
    let contained = names::arguments(rest).first().copied().unwrap_or_default();
    let before = format!(" containing {contained}");
    let Some(ty) = find_type(reach.space, Some(Near::address(manager)), contained) else {
        return Ok(Content::words(before));
    };
    let value = match is_inside {
        true => spot.path(&["_M_storage", "_M_buffer"])?.cast(&ty),
        false => {
            let address = spot.path(&["_M_storage", "_M_ptr"])?.number(reach)?;
            TypedPlace::memory(&ty, address)
        }
    };
    let before = format!("{before} = {{");
    Ok(Content::around(&before, "value", value, "}"))
}

pub(super) fn function(spot: &TypedPlace, reach: &Reach) -> Result<Content, Unknown> {
    if spot.field("_M_manager")?.number(reach)? == 0 {
        return Ok(Content::words(" [empty]"));
    }
    let invoker = spot.field("_M_invoker")?;
    let name = function_name(invoker.number(reach)?, reach)?;
    let held = names::arguments(&name).get(1).copied().unwrap_or_default();
    let functor = spot.path(&["_M_functor", "_M_unused"])?;
    let text = match held.contains("(*)(") {
        true => {
            let pointer = functor.field("_M_function_pointer")?;
            function_name(pointer.number(reach)?, reach)?
        }
        false => held.to_owned(),
    };
    if text.is_empty() {
        return Err(Unknown::corrupt(format!("{name} calls it")));
    }
    Ok(Content::Parts {
        text: vec![Part::words(format!(" = {{{text}}}"))],
        children: vec![("invoker".to_owned(), invoker)],
    })
}

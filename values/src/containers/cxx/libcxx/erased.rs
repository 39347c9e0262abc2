//! `any` and `function` of libc++: the handler's name or the holder's type reveals the content.

use crate::containers::content::Content;
use crate::containers::cxx::erased::function_name;
use crate::containers::cxx::errors::name_in;
use crate::containers::names;
use crate::containers::typed_place::{Reach, TypedPlace};
use debuginfo::Unknown;
use debuginfo::types::{Near, find_type};

pub(super) fn any(spot: &TypedPlace, reach: &Reach) -> Result<Content, Unknown> {
    let handler = spot.any_field(&["__h_", "__h"])?.number(reach)?;
    if handler == 0 {
        return Ok(Content::words(" [no contained value]"));
    }
    let name = function_name(handler, reach)?;
    let rest = name.split_once("__any_imp::_");
    let (is_inside, rest) = match rest {
        Some((_, rest)) if rest.starts_with("SmallHandler<") => (true, rest),
        Some((_, rest)) if rest.starts_with("LargeHandler<") => (false, rest),
        _ => return Err(Unknown::corrupt(format!("{name} manages it"))),
    };
    let contained = names::arguments(rest).first().copied().unwrap_or_default();
    let before = format!(" containing {contained}");
    let Some(ty) = find_type(reach.space, Some(Near::address(handler)), contained) else {
        return Ok(Content::words(before));
    };
    let storage = spot.any_field(&["__s_", "__s"])?;
    let value = match is_inside {
        true => storage.field("__buf")?.cast(&ty),
        false => TypedPlace::memory(&ty, storage.field("__ptr")?.number(reach)?),
    };
    let before = format!("{before} = {{");
    Ok(Content::around(&before, "value", value, "}"))
}

/// A pointer to an object whose own type names the callee.
pub(super) fn function(spot: &TypedPlace, reach: &Reach) -> Result<Content, Unknown> {
    let holder = spot.path(&["__f_", "__f_"])?.number(reach)?;
    if holder == 0 {
        return Ok(Content::words(" [empty]"));
    }
    let table = reach.word(holder)?;
    // The word before a table of virtual functions points to the type.
    let name = name_in(reach.word(table.wrapping_sub(8))?, reach)?;
    let held = names::arguments(&name).first().copied().unwrap_or_default();
    if !name.contains("__function::__func<") || held.is_empty() {
        return Err(Unknown::corrupt(format!("{name} calls it")));
    }
    let text = match held.contains("(*)(") {
        true => function_name(reach.word(holder.wrapping_add(8))?, reach)?,
        false => held.to_owned(),
    };
    Ok(Content::words(format!(" = {{{text}}}")))
}

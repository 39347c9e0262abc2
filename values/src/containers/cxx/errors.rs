//! `error_code`, `error_condition` and `exception_ptr`: the meaning of an error, from the types of its category or
//! object.

use crate::containers::content::{Content, Part};
use crate::containers::typed_place::{Reach, TypedPlace};
use crate::errno::errno_name;
use debuginfo::Unknown;
use debuginfo::types::{Near, find_type};

/// Longest mangled name of a type that is read.
const MAX_NAME: u64 = 4096;
/// Bytes that are read at a time.
const CHUNK: u64 = 64;
/// The header before a thrown object (Itanium C++ ABI, Exception Handling, 2.2.1; libstdc++'s `unwind-cxx.h`). Its first
/// word points to the type.
const HEADER: u64 = 0x70;

/// The readable name in the `std::type_info` at `address`.
pub(super) fn name_in(address: u64, reach: &Reach) -> Result<String, Unknown> {
    let at = reach.word(address.wrapping_add(8))?;
    let mut mangled = Vec::new();
    while (mangled.len() as u64) < MAX_NAME {
        reach.step()?;
        // A name may end where no more memory is mapped: read up to the next multiple.
        let from = at.wrapping_add(mangled.len() as u64);
        let bytes = reach.read(from, CHUNK - from % CHUNK)?;
        match bytes.iter().position(|byte| *byte == 0) {
            Some(end) => {
                mangled.extend(&bytes[..end]);
                break;
            }
            None => mangled.extend(bytes),
        }
    }
    let text = String::from_utf8(mangled);
    let text = text.map_err(|_| Unknown::corrupt("the name of a type is no text"))?;
    // An asterisk says that other modules may have other types of this name.
    Ok(debuginfo::type_name(
        text.strip_prefix('*').unwrap_or(&text),
    ))
}

/// An error number and its category.
pub(super) fn code(
    spot: &TypedPlace,
    (value, category): (&str, &str),
    reach: &Reach,
) -> Result<Content, Unknown> {
    let (value, category) = (spot.field(value)?, spot.field(category)?);
    let table = reach.word(category.number(reach)?)?;
    // The word before a table of virtual functions points to the type.
    let ty = name_in(reach.word(table.wrapping_sub(8))?, reach)?;
    let last = ty.rsplit("::").next().unwrap_or_default();
    // libc++'s own names begin with underscores.
    let known = match last.trim_start_matches('_') {
        "generic_error_category" => Some("generic"),
        "system_error_category" => Some("system"),
        "future_error_category" => Some("future"),
        "io_error_category" => Some("io"),
        "iostream_category" => Some("iostream"),
        _ => None,
    };
    let number = value.number(reach)? as u32 as i32;
    let is_errno = matches!(known, Some("generic" | "system"));
    let name = errno_name(i64::from(number)).filter(|_| is_errno);
    let before = match known {
        Some(name) => format!(" = {{\"{name}\": "),
        None => format!(" = {{{ty}: "),
    };
    let told = match name {
        Some(name) => Part::words(name),
        None => Part::Value(value.clone()),
    };
    Ok(Content::Parts {
        text: vec![Part::words(before), told, Part::words("}")],
        children: vec![("value".to_owned(), value)],
    })
}

/// A thrown object, with its own type.
pub(super) fn thrown(spot: &TypedPlace, reach: &Reach) -> Result<Content, Unknown> {
    let object = spot.field("_M_exception_object")?.number(reach)?;
    if object == 0 {
        return Ok(Content::words(" [no exception]"));
    }
    let info = reach.word(object.wrapping_sub(HEADER))?;
    let name = name_in(info, reach)?;
    let before = format!(" containing {name}");
    // Classes of the library are only declared in the program.
    let ty = find_type(reach.space, Some(Near::address(info)), &name);
    let Some(ty) = ty.filter(|ty| ty.size().is_some()) else {
        return Ok(Content::words(before));
    };
    let value = TypedPlace::memory(&ty, object);
    let before = format!("{before} = {{");
    Ok(Content::around(&before, "value", value, "}"))
}

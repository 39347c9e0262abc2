//! Converts values of C, C++ and Rust to JavaScript.
//!
//! Text, numbers and lists become their JavaScript counterparts. Null pointers and `None` become `null`. Wrappers and
//! smart pointers are looked through. Unknown values stay unknown: using one is an error with the reason.

use debuginfo::types::{Language, Role};
use debuginfo::{Type, TypeKind, Value, ValueError, ValuePlace};
use values::containers::{Container, Key};
use values::{RenderOptions, render_with, text_at};

use super::{
    moment::Moment,
    program::{Answer, Seen},
};

/// Maximum number of pointers and wrappers to look through.
const MAX_STEPS: usize = 16;
/// Maximum number of characters of a text.
const MAX_TEXT: usize = 1 << 16;
/// Maximum number of entries of a map or set.
const MAX_ENTRIES: usize = 1 << 14;
/// Parts of a container that represent its contents.
const HELD: [&str; 5] = ["value", "*get()", "*", "data", "c"];
/// The reason for a value that the compiler has removed.
pub const OPTIMIZED_OUT: &str = "optimized out";

/// Converts a value for conditions.
pub fn seen(moment: &Moment, value: Value) -> Seen {
    converted(moment, value, MAX_STEPS).unwrap_or_else(Seen::Unknown)
}

/// Returns why a value is unavailable.
pub fn reason(error: &ValueError) -> String {
    error.diagnostic().one_line()
}

fn converted(moment: &Moment, value: Value, steps: usize) -> Answer<Seen> {
    let steps = steps.checked_sub(1).ok_or("it leads back to itself")?;
    let look = moment.look();
    let value = value.unreferenced(&look).map_err(|e| reason(&e))?;
    if value.is_optimized_out() {
        return Err(OPTIMIZED_OUT.to_owned());
    }
    let ty = value.ty.strip();
    match ty.kind() {
        TypeKind::Bool => whole(&value).map(|number| Seen::Bool(number != 0)),
        TypeKind::Integer { .. } | TypeKind::Char { .. } => match is_character(&ty) {
            true => character(&value),
            false => whole(&value).map(Seen::Integer),
        },
        TypeKind::Float => values::float(&value)
            .map(Seen::Float)
            .map_err(|e| reason(&e)),
        TypeKind::Enum => enumerator(&value, &ty),
        TypeKind::Pointer => pointer(moment, value, &ty, steps),
        TypeKind::Array => array(moment, value, &ty),
        TypeKind::Struct | TypeKind::Class | TypeKind::Union => {
            structure(moment, value, &ty, steps)
        }
        _ => Ok(Seen::Text(shown(moment, &value))),
    }
}

fn shown(moment: &Moment, value: &Value) -> String {
    render_with(value, &RenderOptions::default(), &moment.look())
}

fn whole(value: &Value) -> Answer<i128> {
    let number = value.as_integer().map_err(|e| reason(&e))?;
    let is_unsigned = value.ty.strip().kind() == TypeKind::Integer { signed: false };
    if number < 0 && is_unsigned {
        return Err(format!(
            "{} is too large a number for a condition",
            number as u128
        ));
    }
    Ok(number)
}

/// Returns whether the type is a character type. Small integers have other names.
fn is_character(ty: &Type) -> bool {
    let names = ["char", "wchar_t", "char8_t", "char16_t", "char32_t"];
    ty.plain_name().is_some_and(|name| names.contains(&name))
}

fn character(value: &Value) -> Answer<Seen> {
    let number = value.as_integer().map_err(|e| reason(&e))?;
    // Bytes above 127 are Latin-1, whether or not `char` is signed.
    let bits = 8 * value.ty.size().unwrap_or(4).min(4) as u32;
    let code = (number as u64 & (u64::MAX >> (64 - bits))) as u32;
    let c = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
    Ok(Seen::Text(c.to_string()))
}

fn enumerator(value: &Value, ty: &Type) -> Answer<Seen> {
    let number = value.as_integer().map_err(|e| reason(&e))?;
    let named = ty.enumerators().iter().find(|e| e.value == number);
    // In C++ and Rust the enumeration's name may precede the enumerator's.
    let last = |name: &str| name.rsplit("::").next().unwrap_or(name).to_owned();
    Ok(Seen::Enumerator {
        of: ty.name(),
        name: named.map(|e| last(&e.name)),
        number,
    })
}

fn pointer(moment: &Moment, value: Value, ty: &Type, steps: usize) -> Answer<Seen> {
    let look = moment.look();
    let is_implicit = matches!(value.place, ValuePlace::ImplicitPointer { .. });
    let address = match value.as_integer() {
        Ok(0) => return Ok(Seen::Null),
        Ok(address) => address,
        Err(_) if is_implicit => 0,
        Err(error) => return Err(reason(&error)),
    };
    let Some(target) = ty.target().map(|target| target.strip()) else {
        return Ok(Seen::Integer(address));
    };
    let is_rust = ty.language() == Language::Rust;
    let is_raw = !is_rust || ty.name().starts_with('*');
    match target.kind() {
        TypeKind::Void | TypeKind::Function | TypeKind::Unspecified => Ok(Seen::Integer(address)),
        _ if is_character(&target) && !is_rust => {
            let width = target.size().unwrap_or(1) as usize;
            let text = text_at(look.machine, address as u64, width, MAX_TEXT);
            let text = text.map_err(|why| why.to_string())?;
            decoded(&text.bytes, width, text.more)
        }
        TypeKind::Struct | TypeKind::Class | TypeKind::Union | TypeKind::Array => {
            let inner = value.deref(&look).map_err(|e| reason(&e))?;
            let seen = converted(moment, inner, steps)?;
            if let Seen::Object(handle) = seen {
                // p[1] is the element after the one pointed to.
                moment.replace(handle, value);
            }
            Ok(seen)
        }
        _ if is_raw => Ok(Seen::Pointer(moment.keep(value))),
        _ => converted(moment, value.deref(&look).map_err(|e| reason(&e))?, steps),
    }
}

/// Decodes characters of 1, 2 or 4 bytes. Invalid ones are replaced.
fn decoded(bytes: &[u8], width: usize, more: bool) -> Answer<Seen> {
    if more {
        return Err(format!(
            "a text of more than {MAX_TEXT} characters is too long for a condition"
        ));
    }
    let units = |width: usize| bytes.chunks_exact(width);
    let text = match width {
        2 => {
            let units: Vec<u16> = units(2).map(|u| u16::from_le_bytes([u[0], u[1]])).collect();
            String::from_utf16_lossy(&units)
        }
        4 => {
            let codes = units(4).map(|u| u32::from_le_bytes([u[0], u[1], u[2], u[3]]));
            let all = codes.map(|c| char::from_u32(c).unwrap_or(char::REPLACEMENT_CHARACTER));
            all.collect()
        }
        _ => String::from_utf8_lossy(bytes).into_owned(),
    };
    Ok(Seen::Text(text))
}

fn array(moment: &Moment, value: Value, ty: &Type) -> Answer<Seen> {
    let element = ty.element().map(|element| element.strip());
    let count = ty.count().unwrap_or(0);
    if let Some(element) = element.filter(|e| is_character(e) && e.language() != Language::Rust) {
        let width = element.size().unwrap_or(1).max(1) as usize;
        let bytes = value.known_bytes().map_err(|e| reason(&e))?;
        let mut units = bytes.chunks_exact(width);
        let end = units.position(|unit| unit.iter().all(|byte| *byte == 0));
        let end = end.map_or(bytes.len(), |end| end * width);
        return decoded(&bytes[..end], width, end / width > MAX_TEXT);
    }
    Ok(Seen::List(moment.keep(value), count))
}

fn structure(moment: &Moment, value: Value, ty: &Type, steps: usize) -> Answer<Seen> {
    let look = moment.look();
    if ty.variants().is_some() && ty.name().starts_with("core::option::Option<") {
        let (live, data) = value.variant(&look).map_err(|e| reason(&e))?;
        if live != "Some" {
            return Ok(Seen::Null);
        }
        let inner = data.member("__0", &look).map_err(|e| reason(&e))?;
        return converted(moment, inner, steps);
    }
    match Container::of(&value, &look) {
        None => Ok(Seen::Object(moment.keep(value))),
        Some(Err(why)) => Err(why.to_string()),
        Some(Ok(container)) => contained(moment, value, ty, &container, steps),
    }
}

fn contained(
    moment: &Moment,
    value: Value,
    ty: &Type,
    container: &Container,
    steps: usize,
) -> Answer<Seen> {
    let look = moment.look();
    if let Some(text) = container.text(&look, MAX_TEXT as u64) {
        let (bytes, is_whole) = text.map_err(|why| why.to_string())?;
        let unit = container.at(0, &look).ok();
        let width = unit.and_then(|unit| unit.ty.size()).unwrap_or(1);
        return decoded(&bytes, width as usize, !is_whole);
    }
    if container.is_keyed() {
        return keyed(moment, ty, container);
    }
    match container.len(&look) {
        Some(Ok(len)) => return Ok(Seen::List(moment.keep(value), len)),
        Some(Err(why)) => return Err(why.to_string()),
        None => {}
    }
    let parts = container.entries(MAX_STEPS, &look).list;
    let held = HELD.iter().find_map(|name| {
        let mut parts = parts.iter();
        parts.find(|part| part.name == *name)
    });
    match held {
        Some(part) => converted(moment, part.value.clone(), steps),
        // A smart pointer that is null, or an optional that is empty.
        None if parts.first().is_some_and(|part| part.name == "get()") => Ok(Seen::Null),
        None if parts.is_empty() && ty.language() == Language::Cpp => Ok(Seen::Null),
        None if parts.is_empty() => Ok(Seen::Text(shown(moment, &value))),
        None => Ok(Seen::Object(moment.keep(value))),
    }
}

fn keyed(moment: &Moment, ty: &Type, container: &Container) -> Answer<Seen> {
    let entries = container.entries(MAX_ENTRIES, &moment.look());
    if let Some(why) = entries.error {
        return Err(why.to_string());
    }
    if entries.more {
        return Err(format!(
            "a container of more than {MAX_ENTRIES} keys is too large for a condition"
        ));
    }
    // An empty container is recognised by its name.
    let name = ty.plain_name().unwrap_or_default().to_lowercase();
    let is_map = name.split('<').next().unwrap_or_default().contains("map");
    let list = entries.list.into_iter();
    if !is_map {
        let keys = list.map(|entry| seen(moment, entry.value));
        return Ok(Seen::Set(keys.collect()));
    }
    let pairs = list.filter_map(|entry| {
        let key = seen(moment, entry.key?);
        Some((key, seen(moment, entry.value)))
    });
    Ok(Seen::Map(pairs.collect()))
}

/// Returns the value that holds the members: the value itself, or what it points to.
pub fn holder(moment: &Moment, value: &Value) -> Answer<Value> {
    match value.kind() {
        TypeKind::Pointer => value.deref(&moment.look()).map_err(|e| reason(&e)),
        _ => Ok(value.clone()),
    }
}

/// Finds a member, or a property that every value has: `$address`, `$type`, and for Rust's enums `$variant`.
///
/// # Errors
/// The member's location is unknown.
pub fn member(moment: &Moment, value: &Value, name: &str) -> Answer<Option<Seen>> {
    let look = moment.look();
    let own = holder(moment, value)?;
    match name {
        "$address" => {
            let address = match value.kind() {
                TypeKind::Pointer => value.as_integer().ok(),
                _ => own.address().map(i128::from),
            };
            let address = address.ok_or("it has no address: it is not in memory")?;
            return Ok(Some(Seen::Integer(address)));
        }
        "$type" => return Ok(Some(Seen::Text(value.ty.name()))),
        _ => {}
    }
    let is_number = name.parse::<u32>().is_ok();
    if is_number && value.kind() == TypeKind::Pointer {
        let index = name.parse().unwrap_or(0);
        let found = value.index(index, &look).map_err(|e| reason(&e))?;
        return Ok(Some(seen(moment, found)));
    }
    // Fields of Rust's tuples are named __0 and so on in debug information.
    let written = match is_number {
        true => format!("__{name}"),
        false => name.to_owned(),
    };
    match own.member(&written, &look) {
        Ok(found) => return Ok(Some(seen(moment, found))),
        Err(ValueError::NoMember { .. } | ValueError::WrongType { .. }) => {}
        Err(error) => return Err(reason(&error)),
    }
    if own.ty.strip().variants().is_some() && ["$variant", "name"].contains(&name) {
        let (live, _) = own.variant(&look).map_err(|e| reason(&e))?;
        return Ok(Some(Seen::Text(live)));
    }
    Ok(part(moment, &own, name))
}

/// Finds a named part of a container without elements: a range, or a tuple of C++.
fn part(moment: &Moment, value: &Value, name: &str) -> Option<Seen> {
    let look = moment.look();
    let container = Container::of(value, &look)?.ok()?;
    let named = |name: String| container.lookup(&Key::Text(name), &look).ok();
    let found = named(name.to_owned()).or_else(|| named(format!("[{name}]")))?;
    Some(seen(moment, found))
}

/// Returns the message that there is no member of this name, with the names that exist.
pub fn missing(moment: &Moment, value: &Value, name: &str) -> String {
    let found = holder(moment, value).and_then(|own| {
        let found = own.member(name, &moment.look());
        found.map(drop).map_err(|e| reason(&e))
    });
    match found {
        Err(why) => why,
        Ok(()) => format!("{} has no member {name}", value.ty.name()),
    }
}

/// Returns the names of all members, including those of base classes and of the active variant.
pub fn members(moment: &Moment, value: &Value) -> Vec<String> {
    let Ok(own) = holder(moment, value) else {
        return Vec::new();
    };
    let mut ty = own.ty.strip();
    if let Ok((_, data)) = own.variant(&moment.look()) {
        ty = data.ty.strip();
    }
    let mut names = Vec::new();
    named_in(&ty, MAX_STEPS, &mut names);
    names
}

fn named_in(ty: &Type, steps: usize, names: &mut Vec<String>) {
    let Some(steps) = steps.checked_sub(1) else {
        return;
    };
    for member in ty.members() {
        let is_base = matches!(member.role, Role::Base | Role::VirtualBase);
        match &member.name {
            Some(name) if !is_base => {
                let digits = name
                    .strip_prefix("__")
                    .filter(|rest| rest.parse::<u32>().is_ok());
                let name = digits.unwrap_or(name);
                if !names.iter().any(|known| known == name) {
                    names.push(name.to_owned());
                }
            }
            _ => named_in(&member.ty.strip(), steps, names),
        }
    }
}

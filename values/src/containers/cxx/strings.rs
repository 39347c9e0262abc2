//! `std::string` in both layouts (short strings inside the object; counted copies), and `std::string_view`.

use crate::containers::content::Content;
use crate::containers::room::{self, Room};
use crate::containers::text::{Form, Text};
use crate::containers::typed_place::{At, Reach, TypedPlace, argument, size};
use crate::strings::literal_prefix;
use debuginfo::Unknown;
use debuginfo::types::Type;

/// Bytes before a counted string: its length, its capacity, its count. This layout is frozen.
const COUNTED_HEADER: u64 = 24;

pub(super) fn form(character: &Type) -> Result<Form, Unknown> {
    Ok(Form::Cpp {
        prefix: literal_prefix(character).unwrap_or_default(),
        unit: size(character)?,
    })
}

pub(super) fn text(
    character: &Type,
    start: TypedPlace,
    len: u64,
    reach: &Reach,
) -> Result<Content, Unknown> {
    let form = form(character)?;
    Ok(Content::Text(Text { form, start, len }.checked(reach)?))
}

/// The address of the characters.
fn start_of(spot: &TypedPlace, reach: &Reach) -> Result<u64, Unknown> {
    let holder = spot.field("_M_dataplus")?;
    let start = match (holder.find("_M_p"), holder.ty.size()) {
        (Some(start), _) => start,
        // clang describes the holder only where it is constructed, which is in the library. It holds only the pointer.
        (None, None) => {
            let word = debuginfo::types::builtin("u64").expect("u64 is a base type");
            holder.inner(&word, 0)
        }
        (None, Some(_)) => holder.field("_M_p")?,
    };
    start.number(reach)
}

pub(super) fn string(spot: &TypedPlace, reach: &Reach) -> Result<Content, Unknown> {
    let character = argument(&spot.ty, 0)?;
    let start = start_of(spot, reach)?;
    let Some(len) = spot.find("_M_string_length") else {
        return counted(&character, start, reach);
    };
    let len = len.number(reach)?;
    check(len, capacity(spot, &character, start, reach)?, reach)?;
    text(
        &character,
        TypedPlace::memory(&character, start),
        len,
        reach,
    )
}

/// The capacity in characters, without the terminating zero.
fn capacity(
    spot: &TypedPlace,
    character: &Type,
    start: u64,
    reach: &Reach,
) -> Result<u64, Unknown> {
    let local = spot.field("_M_local_buf")?;
    let is_local = matches!(local.at, At::Memory(address) if address == start);
    match is_local {
        true => Ok((size(&local.ty)? / size(character)?.max(1)).saturating_sub(1)),
        false => spot.field("_M_allocated_capacity")?.number(reach),
    }
}

/// The characters of a string of single bytes.
pub(in crate::containers) fn room(spot: &TypedPlace, reach: &Reach) -> Result<Room, Unknown> {
    let character = argument(&spot.ty, 0)?;
    if size(&character)? != 1 {
        return Err(Unknown::because("its characters have more than one byte"));
    }
    let Some(len) = spot.find("_M_string_length") else {
        return Err(Unknown::because("copies of it may share its characters"));
    };
    let start = start_of(spot, reach)?;
    Ok(Room {
        start,
        capacity: capacity(spot, &character, start, reach)?,
        len_at: room::length(&len)?,
        is_terminated: true,
        is_utf8: false,
    })
}

fn counted(character: &Type, start: u64, reach: &Reach) -> Result<Content, Unknown> {
    let header = start.wrapping_sub(COUNTED_HEADER);
    let len = reach.word(header)?;
    check(len, reach.word(header.wrapping_add(8))?, reach)?;
    text(character, TypedPlace::memory(character, start), len, reach)
}

pub(super) fn check(len: u64, room: u64, reach: &Reach) -> Result<(), Unknown> {
    if len <= room || reach.machine.is_symbolic() {
        return Ok(());
    }
    Err(Unknown::corrupt(format!(
        "{len} characters in room for {room}"
    )))
}

pub(super) fn view(
    spot: &TypedPlace,
    start: &[&str],
    len: &[&str],
    reach: &Reach,
) -> Result<Content, Unknown> {
    let character = argument(&spot.ty, 0)?;
    let len = spot.any_field(len)?.number(reach)?;
    let start = spot.any_field(start)?.number(reach)?;
    text(
        &character,
        TypedPlace::memory(&character, start),
        len,
        reach,
    )
}

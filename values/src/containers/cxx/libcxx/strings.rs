//! `std::string` of libc++: short strings lie inside the object. A bit of the first byte distinguishes them, in the
//! alternate layout one of the last byte.

use crate::containers::content::Content;
use crate::containers::cxx::libcxx::held;
use crate::containers::cxx::strings::{check, text};
use crate::containers::room::{self, Room};
use crate::containers::typed_place::{Reach, TypedPlace, argument, size};
use debuginfo::Unknown;
use debuginfo::types::{Type, builtin};

/// The parts of a string object.
struct Parts {
    character: Type,
    start: TypedPlace,
    /// In characters.
    len: u64,
    capacity: u64,
    /// The member with the length, unless it is a part of a byte.
    stated: Option<TypedPlace>,
}

fn parts(spot: &TypedPlace, reach: &Reach) -> Result<Parts, Unknown> {
    let character = argument(&spot.ty, 0)?;
    let holder = held(spot, &["__r_", "__rep_"])?;
    let (long, short) = (holder.field("__l")?, holder.field("__s")?);
    // The pointer comes first in the alternate layout.
    let whole = TypedPlace::memory(&long.ty, 0);
    let is_alternate = whole.field("__data_")?.address()? == 0;
    let word = builtin("u64").expect("u64 is a base type");
    let last = size(&long.ty)?.saturating_sub(8);
    let capacity = long.inner(&word, if is_alternate { last } else { 0 });
    let capacity = capacity.number(reach)?;
    let (is_long, short_len, capacity) = match is_alternate {
        false => (capacity & 1 == 1, (capacity & 0xff) >> 1, capacity & !1),
        true => (
            capacity >> 63 == 1,
            (capacity >> 56) & 0x7f,
            capacity & (u64::MAX >> 1),
        ),
    };
    if is_long {
        let stated = long.field("__size_")?;
        let start = long.field("__data_")?.number(reach)?;
        return Ok(Parts {
            start: TypedPlace::memory(&character, start),
            character,
            len: stated.number(reach)?,
            capacity: capacity.saturating_sub(1),
            stated: Some(stated),
        });
    }
    let buffer = short.field("__data_")?;
    let places = size(&buffer.ty)? / size(&character)?.max(1);
    Ok(Parts {
        start: buffer.cast(&character),
        character,
        len: short_len,
        capacity: places.saturating_sub(1),
        stated: None,
    })
}

pub(super) fn string(spot: &TypedPlace, reach: &Reach) -> Result<Content, Unknown> {
    let parts = parts(spot, reach)?;
    check(parts.len, parts.capacity, reach)?;
    text(&parts.character, parts.start, parts.len, reach)
}

/// The characters of a string of single bytes.
pub(in crate::containers::cxx) fn room(spot: &TypedPlace, reach: &Reach) -> Result<Room, Unknown> {
    let parts = parts(spot, reach)?;
    if size(&parts.character)? != 1 {
        return Err(Unknown::because("its characters have more than one byte"));
    }
    let Some(stated) = parts.stated else {
        return Err(Unknown::because("its length is a part of a byte"));
    };
    Ok(Room {
        start: parts.start.address()?,
        capacity: parts.capacity,
        len_at: room::length(&stated)?,
        is_terminated: true,
        is_utf8: false,
    })
}

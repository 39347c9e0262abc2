//! Strings that can be written in place: where their characters are, their capacity, and where their length is. Strings
//! that may share their characters are excluded.

use crate::containers::typed_place::{Reach, TypedPlace, path_of};
use crate::containers::{cxx, rust, spot};
use debuginfo::Unknown;
use debuginfo::value::{Look, Value};

/// The storage of a string's characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// The address of the first one.
    pub start: u64,
    /// The capacity, without a terminating zero.
    pub capacity: u64,
    /// The address of the length, a word.
    pub len_at: u64,
    /// A zero terminates them.
    pub is_terminated: bool,
    /// They must be UTF-8.
    pub is_utf8: bool,
}

/// Returns the room of a `std::string` or `String`; `None` for all other values.
///
/// # Errors
/// It is a string, but damaged, or its characters cannot be written in place.
pub fn room(value: &Value, look: &Look<'_>) -> Option<Result<Room, Unknown>> {
    let reach = Reach::new(look.machine, look.space);
    let spot = spot(value);
    let spot = spot.cast(&spot.ty.strip());
    match path_of(&spot.ty).as_str() {
        "std::basic_string" => Some(cxx::string_room(&spot, &reach)),
        "alloc::string::String" => Some(rust::string_room(&spot, &reach)),
        _ => None,
    }
}

/// The address of a length, which must have one.
pub(super) fn length(spot: &TypedPlace) -> Result<u64, Unknown> {
    spot.address()
        .map_err(|_| Unknown::because("it does not lie in memory"))
}

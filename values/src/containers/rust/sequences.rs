//! `String`, `Vec`, `VecDeque`, `LinkedList` and the strings of the operating system.

use crate::containers::content::Content;
use crate::containers::items::{Each, Element, Items, Ring, Run, Seen, Visit, miscounted};
use crate::containers::room::{self, Room};
use crate::containers::rust::element_type;
use crate::containers::text::{Form, Text};
use crate::containers::typed_place::{
    Reach, Slot, TypedPlace, argument, first_target, path_of, size,
};
use debuginfo::Unknown;
use debuginfo::types::Type;

/// Address, capacity and length of a vector's storage.
struct Parts {
    start: u64,
    capacity: u64,
    len: u64,
}

fn parts(vec: &TypedPlace, reach: &Reach) -> Result<Parts, Unknown> {
    let buffer = vec.field("buf")?;
    // Since 2024 the part that is independent of the element's type is a structure of its own.
    let buffer = buffer.find("inner").unwrap_or(buffer);
    Ok(Parts {
        start: buffer.field("ptr")?.number(reach)?,
        len: vec.field("len")?.number(reach)?,
        capacity: buffer.field("cap")?.number(reach)?,
    })
}

/// A length above the capacity is damage, and so is a capacity beyond memory.
fn check(parts: &Parts, element: &Type, reach: &Reach) -> Result<(), Unknown> {
    let size = size(element)?;
    if size > 0 && parts.len > parts.capacity && !reach.machine.is_symbolic() {
        let Parts { len, capacity, .. } = parts;
        return Err(Unknown::corrupt(format!(
            "{len} elements in room for {capacity}"
        )));
    }
    reach.fits(parts.start, parts.len, size)
}

/// A vector of bytes somewhere inside, as text.
pub(super) fn string(
    spot: &TypedPlace,
    path: &[&str],
    form: Form,
    reach: &Reach,
) -> Result<Content, Unknown> {
    let vec = spot.path(path)?;
    let element = element_type(&vec.ty)?;
    let parts = parts(&vec, reach)?;
    check(&parts, &element, reach)?;
    Ok(Content::Text(Text {
        form,
        start: TypedPlace::memory(&element, parts.start),
        len: parts.len,
    }))
}

/// The bytes of a `String`.
pub(in crate::containers) fn string_room(
    spot: &TypedPlace,
    reach: &Reach,
) -> Result<Room, Unknown> {
    let vec = spot.field("vec")?;
    let parts = parts(&vec, reach)?;
    check(&parts, &element_type(&vec.ty)?, reach)?;
    Ok(Room {
        start: parts.start,
        capacity: parts.capacity,
        len_at: room::length(&vec.field("len")?)?,
        is_terminated: false,
        is_utf8: true,
    })
}

/// A boxed slice of bytes that ends with a zero.
pub(super) fn c_string(spot: &TypedPlace, reach: &Reach) -> Result<Content, Unknown> {
    let inner = spot.field("inner")?;
    let len = inner.field("length")?.number(reach)?;
    let text = Text {
        form: Form::RustBytes,
        start: inner.field("data_ptr")?.target(reach)?,
        len: len.saturating_sub(1),
    };
    Ok(Content::Text(text.checked(reach)?))
}

pub(super) fn vec(spot: &TypedPlace, reach: &Reach) -> Result<Content, Unknown> {
    let element = element_type(&spot.ty)?;
    let parts = parts(spot, reach)?;
    check(&parts, &element, reach)?;
    let items = Run::items(reach, element, parts.start, parts.len)?;
    Ok(Content::Sequence(items))
}

pub(super) fn deque(spot: &TypedPlace, reach: &Reach) -> Result<Content, Unknown> {
    let element = element_type(&spot.ty)?;
    let parts = parts(spot, reach)?;
    check(&parts, &element, reach)?;
    let head = spot.field("head")?.number(reach)?;
    if size(&element)? > 0 && head > parts.capacity {
        let capacity = parts.capacity;
        return Err(Unknown::corrupt(format!(
            "the first element is number {head} of {capacity}"
        )));
    }
    let ring = Ring {
        element,
        start: parts.start,
        capacity: parts.capacity,
        head,
        len: parts.len,
    };
    Ok(Content::Sequence(Items::new(Some(parts.len), ring)))
}

pub(super) fn list(spot: &TypedPlace, reach: &Reach) -> Result<Content, Unknown> {
    let head = spot.field("head")?;
    let unknown = || Unknown::because("the type of the list's nodes is not known");
    let node = first_target(&head.ty).ok_or_else(unknown)?;
    let chain = Chain {
        next: Slot::of(&node, &["next"])?,
        element: Slot::of(&node, &["element"])?,
        first: head.number(reach)?,
        len: spot.field("len")?.number(reach)?,
    };
    Ok(Content::Sequence(Items::new(Some(chain.len), chain)))
}

/// The nodes of a `LinkedList`: `None` is a null pointer.
struct Chain {
    next: Slot,
    element: Slot,
    first: u64,
    len: u64,
}

impl Visit for Chain {
    fn visit(&self, reach: &Reach, from: u64, each: Each) -> Result<(), Unknown> {
        let (mut at, mut seen) = (self.first, Seen::default());
        for i in 0..self.len {
            if at == 0 {
                return Err(miscounted(i, self.len));
            }
            seen.enter(reach, at)?;
            if i >= from && !each(Element::of(self.element.at(at))) {
                return Ok(());
            }
            at = self.next.word(reach, at)?;
        }
        Ok(())
    }
}

/// The text that an iterator over characters has yet to return.
pub(super) fn chars(spot: &TypedPlace, reach: &Reach) -> Result<Content, Unknown> {
    let bytes = spot.field("iter")?;
    let element = argument(&bytes.ty, 0)?;
    let start = bytes.field("ptr")?.innermost().number(reach)?;
    let end = bytes.field("end_or_len")?.number(reach)?;
    let backwards = || Unknown::corrupt(format!("a text from {start:#x} to {end:#x}"));
    let text = Text {
        form: Form::Rust,
        start: TypedPlace::memory(&element, start),
        len: end.checked_sub(start).ok_or_else(backwards)?,
    };
    Ok(Content::Text(text.checked(reach)?))
}

/// The elements that an iterator over contiguous elements has yet to return: those from its pointer up to the one in
/// `end`.
pub(super) fn rest(spot: &TypedPlace, end: &str, reach: &Reach) -> Result<Content, Unknown> {
    let element = argument(&spot.ty, 0)?;
    let start = spot.field("ptr")?.innermost().number(reach)?;
    let end = spot.field(end)?.number(reach)?;
    let size = size(&element)?;
    let bytes = end
        .checked_sub(start)
        .filter(|bytes| size > 0 && bytes % size == 0);
    // Zero-sized elements are counted differently.
    let unknown = || {
        Unknown::because(format!(
            "how many elements from {start:#x} to {end:#x} is not known"
        ))
    };
    let count = bytes.ok_or_else(unknown)? / size;
    reach.fits(start, count, size)?;
    let path = path_of(&spot.ty);
    let name = path.rsplit("::").next().unwrap_or_default();
    let array = TypedPlace::memory(&element.array(count), start);
    Ok(Content::around(&format!("{name}("), "rest", array, ")"))
}

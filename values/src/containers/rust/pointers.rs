//! References, `Box`, `Rc` and `Arc`: thin pointers, pointers with a length, and pointers with a trait's vtable. The
//! target of the latter two may be a structure that ends with elements or with a trait object: `RefCell<dyn Speak>`.

use crate::containers::content::{Content, Part};
use crate::containers::items::Run;
use crate::containers::names;
use crate::containers::rust::{Found, transparent};
use crate::containers::text::{Form, Text};
use crate::containers::typed_place::{Reach, TypedPlace, size};
use debuginfo::Unknown;
use debuginfo::scope::trait_object_type;
use debuginfo::types::Type;

/// A box of one word, shown as its target.
pub(super) fn thin(spot: &TypedPlace, path: &str, reach: &Reach) -> Found {
    (path == "alloc::boxed::Box").then(|| Ok(transparent(spot.target(reach)?)))
}

/// A pointer of two words.
pub(super) fn wide(spot: &TypedPlace, path: &str, reach: &Reach) -> Found {
    let is_pointer = path == "alloc::boxed::Box" || path.starts_with(['&', '*']);
    if !is_pointer {
        return None;
    }
    if spot.find("vtable").is_some() {
        return Some(object(spot, reach));
    }
    let len = spot.find("length")?;
    let name = spot.ty.own_name()?;
    let pointee = pointee(&name);
    Some(slice(spot, &len, pointee, reach))
}

/// The target type in the pointer's name.
fn pointee(name: &str) -> &str {
    let marks = ["&mut ", "&", "*const ", "*mut "];
    let bare = marks.iter().find_map(|mark| name.strip_prefix(mark));
    let boxed = || names::arguments(name).first().copied();
    bare.or_else(boxed).unwrap_or_default()
}

fn slice(
    spot: &TypedPlace,
    len: &TypedPlace,
    pointee: &str,
    reach: &Reach,
) -> Result<Content, Unknown> {
    let start = spot.field("data_ptr")?.target(reach)?;
    let len = len.number(reach)?;
    elements(start, len, pointee, reach)
}

/// The elements of an unsized type, from `start` on.
fn elements(start: TypedPlace, len: u64, pointee: &str, reach: &Reach) -> Result<Content, Unknown> {
    let form = match pointee {
        "str" | "std::path::Path" | "std::ffi::os_str::OsStr" => Form::Rust,
        "core::ffi::c_str::CStr" => Form::RustBytes,
        _ if pointee.starts_with('[') => {
            let items = Run::items(reach, start.ty.clone(), start.address()?, len)?;
            return Ok(Content::Sequence(items));
        }
        _ => return Ok(transparent(ending_with_elements(&start, len, reach)?)),
    };
    let len = match form {
        Form::RustBytes => len.saturating_sub(1),
        _ => len,
    };
    Ok(Content::Text(Text { form, start, len }.checked(reach)?))
}

/// A structure that ends with `len` elements.
fn ending_with_elements(
    start: &TypedPlace,
    len: u64,
    reach: &Reach,
) -> Result<TypedPlace, Unknown> {
    let ty = start.ty.with_elements_at_end(len);
    let ty = ty.ok_or_else(|| unclear(start))?;
    reach.fits(start.address()?, size(&ty)?, 1)?;
    Ok(start.cast(&ty))
}

/// A structure that ends with a trait object; `start` is at or just before it.
fn ending_with_object(
    start: &TypedPlace,
    object: &Type,
    table: u64,
    reach: &Reach,
) -> Result<TypedPlace, Unknown> {
    let found = start
        .ty
        .with_object_at_end(object, alignment(table, reach)?);
    let (ty, alignment) = found.ok_or_else(|| unclear(start))?;
    Ok(TypedPlace::memory(&ty, aligned(start, alignment)?))
}

fn unclear(start: &TypedPlace) -> Unknown {
    Unknown::because(format!("how {} ends is not described", start.ty.name()))
}

/// The alignment in a table of functions.
fn alignment(table: u64, reach: &Reach) -> Result<u64, Unknown> {
    let alignment = reach.word(table.wrapping_add(16))?;
    match alignment.is_power_of_two() {
        true => Ok(alignment),
        false => Err(Unknown::corrupt(format!("an alignment of {alignment}"))),
    }
}

/// The address of `start`, or the next one with this alignment.
fn aligned(start: &TypedPlace, alignment: u64) -> Result<u64, Unknown> {
    let address = start.address()?.wrapping_add(alignment - 1);
    Ok(address & !(alignment - 1))
}

fn is_trait(pointee: &str) -> bool {
    pointee.starts_with("dyn ") || pointee.starts_with("(dyn ")
}

/// The value of a trait object, or of a structure that ends with one; its table gives the type.
fn object(spot: &TypedPlace, reach: &Reach) -> Result<Content, Unknown> {
    let address = spot.field("pointer")?.number(reach)?;
    let table = spot.field("vtable")?.number(reach)?;
    match trait_object_type(table, reach.space) {
        Some(_) => Ok(transparent(behind_table(spot, table, reach)?)),
        None => Ok(nameless(spot, address, table)),
    }
}

/// The target of a pointer that may have two words and may be wrapped. Elements are an array.
pub(super) fn behind(pointer: &TypedPlace, reach: &Reach) -> Result<TypedPlace, Unknown> {
    let pointer = unwrapped(pointer.clone());
    if let Some(len) = pointer.find("length") {
        return array(&pointer, len.number(reach)?, reach);
    }
    match pointer.find("vtable") {
        Some(table) => behind_table(&pointer, table.number(reach)?, reach),
        None => pointer.target(reach),
    }
}

fn array(pointer: &TypedPlace, len: u64, reach: &Reach) -> Result<TypedPlace, Unknown> {
    let start = pointer.field("data_ptr")?.target(reach)?;
    let name = pointer.ty.own_name().unwrap_or_default();
    if !pointee(&name).starts_with('[') {
        return ending_with_elements(&start, len, reach);
    }
    reach.fits(start.address()?, len, size(&start.ty)?)?;
    Ok(start.cast(&start.ty.array(len)))
}

fn behind_table(pointer: &TypedPlace, table: u64, reach: &Reach) -> Result<TypedPlace, Unknown> {
    let start = pointer.field("pointer")?;
    let unknown = || Unknown::because(format!("the table at {table:#x} is of no known type"));
    let ty = trait_object_type(table, reach.space).ok_or_else(unknown)?;
    let name = pointer.ty.own_name().unwrap_or_default();
    if is_trait(pointee(&name)) {
        return Ok(TypedPlace::memory(&ty, start.number(reach)?));
    }
    ending_with_object(&start.target(reach)?, &ty, table, reach)
}

/// The content of a value of unknown type; `spot` is the pointer to it.
fn nameless(spot: &TypedPlace, address: u64, table: u64) -> Content {
    let name = spot.ty.own_name().unwrap_or_default();
    let pointee = pointee(&name);
    Content::words(format!(
        "<{pointee} at {address:#x}, its table at {table:#x} is of no known type>"
    ))
}

/// The pointer to the counts and the value.
fn inner_pointer(spot: &TypedPlace) -> Result<TypedPlace, Unknown> {
    Ok(unwrapped(spot.field("ptr")?))
}

/// The pointer inside `NonNull` and its like: a structure of its own if it has two words.
fn unwrapped(mut pointer: TypedPlace) -> TypedPlace {
    for _ in 0..4 {
        let is_wide = pointer.find("data_ptr").is_some() || pointer.find("vtable").is_some();
        match pointer.find("pointer") {
            Some(inside) if !is_wide => pointer = inside,
            _ => break,
        }
    }
    pointer
}

/// The allocation of an `Rc` or `Arc`.
struct Shared {
    strong: TypedPlace,
    weak: TypedPlace,
    /// The value, or the first element of a slice.
    value: TypedPlace,
    pointer: TypedPlace,
}

fn shared(spot: &TypedPlace, reach: &Reach) -> Result<Shared, Unknown> {
    let pointer = inner_pointer(spot)?;
    let first = pointer.find("data_ptr").or_else(|| pointer.find("pointer"));
    let inner = first.unwrap_or_else(|| pointer.clone()).target(reach)?;
    Ok(Shared {
        strong: inner.field("strong")?.innermost(),
        weak: inner.field("weak")?.innermost(),
        value: inner.any_field(&["value", "data"])?,
        pointer,
    })
}

impl Shared {
    /// The counts as `strong_count` and `weak_count` return them.
    fn counts(&self, reach: &Reach) -> Result<(u64, u64), Unknown> {
        let strong = self.strong.number(reach)?;
        let weak = self.weak.number(reach)?;
        Ok((strong, weak.saturating_sub(1)))
    }

    fn children(&self, reach: &Reach) -> Result<Vec<(String, TypedPlace)>, Unknown> {
        let (_, weak) = self.counts(reach)?;
        let weak = TypedPlace::bytes(&self.weak.ty, &weak.to_le_bytes());
        Ok(vec![
            ("strong".to_owned(), self.strong.clone()),
            ("weak".to_owned(), weak),
        ])
    }

    fn content(&self, spot: &TypedPlace, reach: &Reach) -> Result<Content, Unknown> {
        if let Some(table) = self.pointer.find("vtable") {
            return self.object(spot, table.number(reach)?, reach);
        }
        let Some(len) = self.pointer.find("length") else {
            return Ok(transparent(self.value.clone()));
        };
        let name = spot.ty.own_name().unwrap_or_default();
        elements(
            self.value.clone(),
            len.number(reach)?,
            pointee(&name),
            reach,
        )
    }

    /// The value follows the counts, at the next address with its alignment.
    fn object(&self, spot: &TypedPlace, table: u64, reach: &Reach) -> Result<Content, Unknown> {
        let address = aligned(&self.value, alignment(table, reach)?)?;
        let Some(ty) = trait_object_type(table, reach.space) else {
            return Ok(nameless(spot, address, table));
        };
        let name = spot.ty.own_name().unwrap_or_default();
        if is_trait(pointee(&name)) {
            return Ok(transparent(TypedPlace::memory(&ty, address)));
        }
        let value = ending_with_object(&self.value, &ty, table, reach)?;
        Ok(transparent(value))
    }
}

/// The value that an `Rc` or an `Arc` owns.
pub(super) fn target(spot: &TypedPlace, reach: &Reach) -> Result<TypedPlace, Unknown> {
    Ok(shared(spot, reach)?.value)
}

/// An `Rc` or an `Arc`.
pub(super) fn counted(spot: &TypedPlace, reach: &Reach) -> Result<Content, Unknown> {
    let shared = shared(spot, reach)?;
    let mut content = shared.content(spot, reach)?;
    // Without the counts, the value or the reason why it is not known is still shown.
    let counts = shared.children(reach).unwrap_or_default();
    if let Content::Parts { children, .. } = &mut content {
        children.extend(counts);
    }
    Ok(content)
}

/// A `Weak`, which may have no target, or a target that was dropped.
pub(super) fn weak(spot: &TypedPlace, reach: &Reach) -> Result<Content, Unknown> {
    let pointer = inner_pointer(spot)?;
    let first = pointer.find("data_ptr").or_else(|| pointer.find("pointer"));
    if first.unwrap_or(pointer).number(reach)? == u64::MAX {
        return Ok(Content::words("(Weak)"));
    }
    let shared = shared(spot, reach)?;
    let (strong, _) = shared.counts(reach)?;
    if strong == 0 {
        return Ok(Content::words("(Weak, dropped)"));
    }
    let mut children = match shared.content(spot, reach) {
        Ok(Content::Parts { children, .. }) => children,
        _ => Vec::new(),
    };
    children.extend(shared.children(reach)?);
    Ok(Content::Parts {
        text: vec![Part::words(format!("(Weak, strong: {strong})"))],
        children,
    })
}

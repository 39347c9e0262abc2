//! Structures of Rust that end with a slice, a text or a trait object. The debug information describes the last member
//! as one element, or as a type without members; the second word of the pointer to the structure says the rest.

use std::sync::Arc;

use super::node::{Field, Link, Node, Offset, Shape};
use super::{MAX_STEPS, Role, Type};

/// Types that end with a text.
const TEXTS: [&str; 5] = [
    "str",
    "core::ffi::c_str::CStr",
    "std::ffi::os_str::OsStr",
    "std::path::Path",
    "std::sys::os_str::bytes::Slice",
];

/// What the last member is.
#[derive(Clone, Copy)]
enum Tail<'a> {
    /// So many elements of the described type.
    Elements(u64),
    /// An object of this type with this alignment in bytes.
    Object(&'a Type, u64),
}

impl Type {
    /// Returns the type of a structure that ends with `count` elements. `None` if this type does not end with elements,
    /// or if the debug information does not tell with which.
    #[must_use]
    pub fn with_elements_at_end(&self, count: u64) -> Option<Type> {
        Some(resized(self, Tail::Elements(count), MAX_STEPS)?.0)
    }

    /// Returns the type of a structure that ends with a trait object of type `object`, which is aligned to `alignment`
    /// bytes, and the structure's own alignment. `None` if this type does not end with a trait object.
    #[must_use]
    pub fn with_object_at_end(&self, object: &Type, alignment: u64) -> Option<(Type, u64)> {
        resized(self, Tail::Object(object, alignment), MAX_STEPS)
    }
}

/// Replaces the last member, which may be inside a member. Returns the type and its alignment.
fn resized(ty: &Type, tail: Tail<'_>, steps: usize) -> Option<(Type, u64)> {
    let steps = steps.checked_sub(1)?;
    let ty = ty.strip();
    let (at, field) = last(&ty)?;
    let Offset::Bytes(start) = field.offset else {
        return None;
    };
    let own = Type::linked(ty.module(), &field.ty);
    let (end, alignment) = match tail {
        Tail::Elements(count) if is_element(&ty, start, &own) => {
            (own.array(count), own.alignment().unwrap_or(1))
        }
        Tail::Elements(_) if !ends_with_elements(&own) => return None,
        Tail::Object(object, alignment) if is_trait(&own) => (object.clone(), alignment),
        _ => resized(&own, tail, steps)?,
    };
    with_last(&ty, at, start, end, alignment)
}

/// The last member in the order of the source: only it can be without a size.
fn last(ty: &Type) -> Option<(usize, &Field)> {
    let Shape::Aggregate {
        fields,
        variants: None,
        ..
    } = &ty.node().shape
    else {
        return None;
    };
    let mut numbered = fields.iter().enumerate();
    numbered.rfind(|(_, field)| field.role == Role::Member)
}

/// Returns whether a last member is an element, not a structure that ends with elements. The structure around it has
/// room for none.
fn is_element(around: &Type, start: u64, own: &Type) -> bool {
    let is_aggregate = matches!(
        own.strip().node().shape,
        Shape::Aggregate { variants: None, .. }
    );
    let end = own.size().and_then(|size| start.checked_add(size));
    !is_aggregate || end > around.size()
}

/// Returns whether the name says that a structure ends with elements: `Mutex<[u8]>`, but not `Mutex<[u8; 4]>`.
fn ends_with_elements(ty: &Type) -> bool {
    let name = ty.strip().own_name().unwrap_or_default();
    let inside = name.trim_end_matches('>').strip_suffix(']');
    let is_slice = inside.is_some_and(|inside| {
        let before = inside.trim_end_matches(|c: char| c.is_ascii_digit());
        name.contains("<[") && !before.ends_with("; ")
    });
    let is_text = |text: &str| name == text || name.ends_with(&format!("<{text}>"));
    is_slice || TEXTS.iter().any(|text| is_text(text))
}

fn is_trait(ty: &Type) -> bool {
    let name = ty.strip().own_name().unwrap_or_default();
    name.starts_with("dyn ") || name.starts_with("(dyn ")
}

/// The structure with another last member, at the next place with its alignment.
fn with_last(ty: &Type, at: usize, start: u64, end: Type, alignment: u64) -> Option<(Type, u64)> {
    let start = start.checked_next_multiple_of(alignment)?;
    let whole = alignment.max(ty.alignment().unwrap_or(1));
    let size = start.checked_add(end.size()?)?;
    let mut node = Node::clone(ty.node());
    let Shape::Aggregate { fields, .. } = &mut node.shape else {
        return None;
    };
    let field = fields.get_mut(at)?;
    field.ty = Link::Made(Box::new(end));
    field.offset = Offset::Bytes(start);
    node.size = Some(size.checked_next_multiple_of(whole)?);
    node.alignment = Some(whole);
    Some((Type::new(ty.module().cloned(), Arc::new(node)), whole))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Language, MemberOffset, builtin};

    fn field(name: &str, ty: &Type, offset: u64) -> Field {
        Field {
            name: Some(name.to_owned()),
            ty: Link::Made(Box::new(ty.clone())),
            offset: Offset::Bytes(offset),
            bits: None,
            role: Role::Member,
            artificial: false,
        }
    }

    fn structure(name: &str, fields: Vec<Field>, size: u64, alignment: u64) -> Type {
        let shape = Shape::Aggregate {
            keyword: crate::types::Keyword::Struct,
            fields,
            variants: None,
            arguments: Vec::new(),
        };
        let mut node = Node::made(shape, Some(name.to_owned()), Some(size));
        node.language = Language::Rust;
        node.alignment = Some(alignment);
        Type::new(None, Arc::new(node))
    }

    fn number(name: &str) -> Type {
        builtin(name).expect("a base type")
    }

    /// The offset of the last member, its size, and the size of the structure.
    fn layout(ty: &Type) -> (MemberOffset, Option<u64>, Option<u64>) {
        let last = ty.members().pop().expect("a member");
        (last.offset, last.ty.size(), ty.size())
    }

    #[test]
    fn elements_follow_the_other_members() {
        let (tag, element) = (number("u8"), number("u16"));
        let fields = vec![field("tag", &tag, 0), field("list", &element, 2)];
        let listed = structure("Listed<[u16]>", fields, 2, 2);
        let three = listed.with_elements_at_end(3).expect("it ends with them");
        assert_eq!(layout(&three), (MemberOffset::Bytes(2), Some(6), Some(8)));
        let outer = vec![field("list", &listed, 0)];
        let outer = structure("Outer<Listed<[u16]>>", outer, 2, 2);
        let three = outer.with_elements_at_end(3).expect("it ends with them");
        assert_eq!(layout(&three), (MemberOffset::Bytes(0), Some(8), Some(8)));
    }

    #[test]
    fn an_element_that_is_a_structure_is_not_entered() {
        let byte = number("u8");
        let element = structure(
            "Two",
            vec![field("a", &byte, 0), field("b", &byte, 1)],
            2,
            1,
        );
        let listed = structure("Listed<[Two]>", vec![field("list", &element, 0)], 0, 1);
        let two = listed.with_elements_at_end(2).expect("it ends with them");
        assert_eq!(layout(&two), (MemberOffset::Bytes(0), Some(4), Some(4)));
    }

    #[test]
    fn what_may_be_an_element_or_a_structure_with_elements_is_not_guessed() {
        let byte = number("u8");
        let inner = structure("Inner", vec![field("a", &byte, 0)], 1, 1);
        let word = number("u32");
        let fields = vec![
            field("word", &word, 0),
            field("tag", &byte, 4),
            field("last", &inner, 5),
        ];
        let unclear = structure("Unclear", fields, 8, 4);
        assert!(unclear.with_elements_at_end(2).is_none());
    }

    #[test]
    fn an_object_lies_at_the_next_address_with_its_alignment() {
        let (tag, object) = (number("u8"), number("u128"));
        let nothing = structure("dyn Speak", Vec::new(), 0, 1);
        let cell = structure(
            "UnsafeCell<dyn Speak>",
            vec![field("value", &nothing, 0)],
            0,
            1,
        );
        let fields = vec![field("tag", &tag, 0), field("value", &cell, 1)];
        let tagged = structure("Tagged<dyn Speak>", fields, 1, 1);
        let found = tagged.with_object_at_end(&object, 16);
        let (tagged, alignment) = found.expect("it ends with an object");
        assert_eq!(alignment, 16);
        assert_eq!(
            layout(&tagged),
            (MemberOffset::Bytes(16), Some(16), Some(32))
        );
        assert!(number("u8").with_object_at_end(&object, 16).is_none());
    }

    #[test]
    fn arrays_of_a_fixed_length_are_no_slices() {
        let named = |name: &str| ends_with_elements(&structure(name, Vec::new(), 0, 1));
        assert!(named("Mutex<[u8]>") && named("Mutex<[[u8; 4]]>") && named("A<B<[u8]>>"));
        assert!(named("Cell<str>") && named("std::path::Path"));
        assert!(!named("Mutex<[u8; 4]>") && !named("Vec<u8>") && !named("Named"));
    }
}

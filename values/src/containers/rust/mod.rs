//! Containers of Rust's std, recognised by their paths. Layouts come from the debug information.

mod btree;
mod cells;
mod hash;
mod pointers;
mod sequences;
mod tables;
mod threads;

use crate::containers::content::{Content, Part};
use crate::containers::text::Form;
use crate::containers::typed_place::{Reach, TypedPlace, path_of};
use debuginfo::Unknown;
use debuginfo::types::{Type, TypeKind};

pub(super) use sequences::string_room;

type Found = Option<Result<Content, Unknown>>;

/// Recognises a container of Rust.
pub(super) fn content(spot: &TypedPlace, reach: &Reach) -> Found {
    let spot = spot.cast(&spot.ty.strip());
    let path = path_of(&spot.ty);
    match spot.ty.kind() {
        TypeKind::Pointer | TypeKind::Reference => pointers::thin(&spot, &path, reach),
        TypeKind::Struct => {
            let wide = pointers::wide(&spot, &path, reach);
            wide.or_else(|| structure(&spot, &path, reach))
        }
        _ => None,
    }
}

fn structure(spot: &TypedPlace, path: &str, reach: &Reach) -> Found {
    let content = match path {
        "alloc::string::String" => sequences::string(spot, &["vec"], Form::Rust, reach),
        "std::ffi::os_str::OsString" => {
            sequences::string(spot, &["inner", "inner"], Form::Rust, reach)
        }
        "std::path::PathBuf" => {
            sequences::string(spot, &["inner", "inner", "inner"], Form::Rust, reach)
        }
        "alloc::ffi::c_str::CString" => sequences::c_string(spot, reach),
        "alloc::vec::Vec" => sequences::vec(spot, reach),
        "alloc::collections::vec_deque::VecDeque" => sequences::deque(spot, reach),
        "alloc::collections::linked_list::LinkedList" => sequences::list(spot, reach),
        "alloc::collections::binary_heap::BinaryHeap" => {
            spot.field("data").and_then(|v| sequences::vec(&v, reach))
        }
        "std::collections::hash::map::HashMap" => hash::map(spot, &["base", "table"], reach),
        "hashbrown::map::HashMap" => hash::map(spot, &["table"], reach),
        "std::collections::hash::set::HashSet" => hash::set(spot, &["base", "map", "table"], reach),
        "hashbrown::set::HashSet" => hash::set(spot, &["map", "table"], reach),
        "alloc::collections::btree::map::BTreeMap" => btree::map(spot, reach),
        "alloc::collections::btree::set::BTreeSet" => btree::set(spot, reach),
        "core::slice::iter::Iter" | "core::slice::iter::IterMut" => {
            sequences::rest(spot, "end_or_len", reach)
        }
        "alloc::vec::into_iter::IntoIter" => sequences::rest(spot, "end", reach),
        "core::str::iter::Chars" => sequences::chars(spot, reach),
        "std::thread::join_handle::JoinHandle" | "std::thread::JoinHandle" => {
            return threads::handle(spot, reach);
        }
        "alloc::rc::Rc" | "alloc::sync::Arc" => pointers::counted(spot, reach),
        "alloc::rc::Weak" | "alloc::sync::Weak" => pointers::weak(spot, reach),
        _ => {
            let rest = tables::rest(spot, path, reach);
            return rest.or_else(|| cells::content(spot, path, reach));
        }
    };
    Some(content)
}

/// The content of a wrapper that is shown as the value inside it.
fn transparent(inside: TypedPlace) -> Content {
    Content::Parts {
        text: vec![Part::Value(inside.clone())],
        children: vec![("value".to_owned(), inside)],
    }
}

/// The type of a name's first generic argument, or of argument 0 itself if the debug information lists it.
fn element_type(ty: &Type) -> Result<Type, Unknown> {
    super::typed_place::argument(ty, 0)
}

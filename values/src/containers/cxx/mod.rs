//! Containers of libstdc++, and in `libcxx` of libc++, recognised by their names in `std`. Layouts come from the debug information; the members
//! that exist distinguish versions of the library.

mod erased;
mod errors;
mod hash;
mod iterators;
mod libcxx;
mod lists;
mod pointers;
mod sequences;
mod strings;
mod threads;
mod trees;
mod wrappers;

use crate::containers::content::Content;
use crate::containers::names;
use crate::containers::room::Room;
use crate::containers::typed_place::{Reach, TypedPlace, argument, path_of};
use debuginfo::Unknown;
use debuginfo::types::{Type, TypeKind, find_type};

/// The characters of a string of single bytes.
pub(super) fn string_room(spot: &TypedPlace, reach: &Reach) -> Result<Room, Unknown> {
    let name = spot.ty.own_name().unwrap_or_default();
    match names::libcxx(&name) {
        Some(_) => libcxx::string_room(spot, reach),
        None => strings::room(spot, reach),
    }
}

type Found = Option<Result<(String, Content), Unknown>>;

/// Recognises a container of C++: returns its label and its contents.
pub(super) fn content(spot: &TypedPlace, reach: &Reach) -> Found {
    let spot = spot.cast(&spot.ty.strip());
    if !matches!(spot.ty.kind(), TypeKind::Struct | TypeKind::Class) {
        return None;
    }
    let full = spot.ty.own_name().unwrap_or_default();
    let path = path_of(&spot.ty);
    let name = path.strip_prefix("std::");
    let found = name.and_then(|name| match names::libcxx(&full) {
        Some(_) => libcxx::standard(&spot, name, reach),
        None => standard(&spot, name, reach),
    });
    match found {
        Some(content) => Some(content.map(|content| (path, content))),
        None => iterators::content(&spot, &path, reach),
    }
}

fn standard(spot: &TypedPlace, name: &str, reach: &Reach) -> Option<Result<Content, Unknown>> {
    Some(match name {
        "basic_string" => strings::string(spot, reach),
        "basic_string_view" => strings::view(spot, &["_M_str"], &["_M_len"], reach),
        "filesystem::path" => spot
            .field("_M_pathname")
            .and_then(|text| strings::string(&text, reach)),
        "vector" => sequences::vector(spot, reach),
        "deque" => sequences::deque(spot, reach),
        "array" => sequences::array(spot, "_M_elems", reach),
        "initializer_list" => sequences::span(
            spot,
            &["_M_array", "__begin_"],
            &["_M_len", "__size_"],
            reach,
        ),
        "span" => sequences::span(spot, &["_M_ptr"], &["_M_extent"], reach),
        "bitset" => sequences::bitset(spot, reach),
        "list" => lists::list(spot, reach),
        "forward_list" => lists::forward_list(spot, reach),
        "map" | "multimap" => trees::tree(spot, reach).map(Content::Map),
        "set" | "multiset" => trees::tree(spot, reach).map(Content::Set),
        "unordered_map" | "unordered_multimap" => hash::table(spot, reach).map(Content::Map),
        "unordered_set" | "unordered_multiset" => hash::table(spot, reach).map(Content::Set),
        "tuple" => wrappers::tuple(spot),
        "optional" => wrappers::optional(spot, reach),
        "variant" => wrappers::variant(spot, reach),
        "atomic" => wrappers::atomic(spot, reach),
        "complex" => wrappers::complex(spot, "_M_value"),
        "chrono::duration" => wrappers::duration(spot, "__r"),
        "chrono::time_point" => spot
            .field("__d")
            .and_then(|d| wrappers::duration(&d, "__r")),
        "stack" | "queue" | "priority_queue" => wrappers::adaptor(spot),
        "unique_ptr" => pointers::unique(spot, reach),
        "shared_ptr" | "weak_ptr" => pointers::shared(spot, name == "weak_ptr", reach),
        "reference_wrapper" => pointers::plain(spot, "_M_data", reach),
        "mutex" | "timed_mutex" | "recursive_mutex" | "recursive_timed_mutex" => {
            threads::mutex(spot, reach)
        }
        "shared_mutex" | "shared_timed_mutex" => threads::shared_mutex(spot, reach),
        "condition_variable" => threads::condition(spot, reach),
        "lock_guard" => threads::guard(spot, "_M_device", reach),
        "unique_lock" => threads::movable_guard(spot, ("_M_device", "_M_owns"), reach),
        "thread" => threads::thread(spot, &["_M_id", "_M_thread"], reach),
        "atomic_flag" => threads::flag(spot),
        "any" => erased::any(spot, reach),
        "function" => erased::function(spot, reach),
        "error_code" | "error_condition" => errors::code(spot, ("_M_value", "_M_cat"), reach),
        "__exception_ptr::exception_ptr" => errors::thrown(spot, reach),
        _ => return None,
    })
}

/// The type of the nodes, from the allocator among the bases of `holder`.
fn node_type(holder: &TypedPlace, reach: &Reach) -> Result<Type, Unknown> {
    let bases = holder.bases();
    let mut found = bases
        .iter()
        .filter_map(|base| named_argument(&base.ty, 0, reach));
    let is_node = |ty: &Type| {
        let path = path_of(ty);
        path.contains("_node") && path.starts_with("std::")
    };
    let node = found.find(is_node).map(|ty| ty.strip());
    node.ok_or_else(|| {
        let name = holder.ty.name();
        Unknown::because(format!("the type of the nodes of {name} is not known"))
    })
}

/// Argument `index` of a template, from the type's name if necessary: gcc omits the arguments of some allocators.
fn named_argument(ty: &Type, index: usize, reach: &Reach) -> Option<Type> {
    if let Ok(described) = argument(ty, index) {
        return Some(described);
    }
    let name = ty.strip().own_name()?;
    let arguments = names::arguments(&name);
    find_type(reach.space, None, arguments.get(index)?)
}

/// The member that holds a node's value: an aligned buffer, or in old releases the value itself.
const NODE_VALUE: [&str; 5] = [
    "_M_storage",
    "_M_value_field",
    "_M_data",
    "_M_v",
    "_M_value",
];

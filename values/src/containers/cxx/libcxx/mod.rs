//! Containers of libc++, recognised by its inline namespace. Members have changed their names and wrappers over the
//! releases; walks and forms are those of libstdc++'s containers.

mod erased;
pub(super) mod iterators;
mod nodes;
mod sequences;
mod strings;
mod wrappers;

pub(super) use strings::room as string_room;

use crate::containers::content::Content;
use crate::containers::cxx::{errors, pointers, sequences as runs, strings as texts, threads};
use crate::containers::cxx::{named_argument, wrappers as forms};
use crate::containers::pthread;
use crate::containers::typed_place::{Reach, Slot, TypedPlace, path_of};
use debuginfo::Unknown;
use debuginfo::types::{Type, TypeKind};

/// The content of the type `name` of `std`; `None` if it is not shown in another form than its members.
pub(super) fn standard(
    spot: &TypedPlace,
    name: &str,
    reach: &Reach,
) -> Option<Result<Content, Unknown>> {
    Some(match name {
        "basic_string" => strings::string(spot, reach),
        "basic_string_view" => {
            texts::view(spot, &["__data_", "__data"], &["__size_", "__size"], reach)
        }
        "filesystem::path" | "__fs::filesystem::path" => spot
            .field("__pn_")
            .and_then(|text| strings::string(&text, reach)),
        "vector" => sequences::vector(spot, reach),
        "deque" => sequences::deque(spot, reach),
        "array" => runs::array(spot, "__elems_", reach),
        "span" => runs::span(spot, &["__data_", "__data"], &["__size_", "__size"], reach),
        "bitset" => runs::bitset(spot, reach),
        "list" => nodes::list(spot, reach),
        "forward_list" => nodes::forward_list(spot, reach),
        "map" | "multimap" => nodes::tree(spot, reach).map(Content::Map),
        "set" | "multiset" => nodes::tree(spot, reach).map(Content::Set),
        "unordered_map" | "unordered_multimap" => nodes::table(spot, reach).map(Content::Map),
        "unordered_set" | "unordered_multiset" => nodes::table(spot, reach).map(Content::Set),
        "tuple" => wrappers::tuple(spot),
        "optional" => wrappers::optional(spot, reach),
        "variant" => wrappers::variant(spot, reach),
        "atomic" => wrappers::atomic(spot),
        "complex" => forms::complex(spot, "__re_"),
        "chrono::duration" => forms::duration(spot, "__rep_"),
        "chrono::time_point" => spot
            .field("__d_")
            .and_then(|d| forms::duration(&d, "__rep_")),
        "stack" | "queue" | "priority_queue" => forms::adaptor(spot),
        "unique_ptr" => wrappers::unique(spot, reach),
        "shared_ptr" | "weak_ptr" => wrappers::shared(spot, name == "weak_ptr", reach),
        "reference_wrapper" => pointers::plain(spot, "__f_", reach),
        "mutex" | "recursive_mutex" => spot
            .field("__m_")
            .and_then(|mutex| pthread::mutex(&mutex, reach)),
        "condition_variable" => spot
            .field("__cv_")
            .and_then(|condition| pthread::condition(&condition, reach)),
        "lock_guard" => threads::guard(spot, "__m_", reach),
        "unique_lock" => threads::movable_guard(spot, ("__m_", "__owns_"), reach),
        "thread" => threads::thread(spot, &["__t_"], reach),
        "any" => erased::any(spot, reach),
        "function" => erased::function(spot, reach),
        "error_code" | "error_condition" => errors::code(spot, ("__val_", "__cat_"), reach),
        _ => return None,
    })
}

/// The first of the members `names` that exists. In a pair with something that is mostly empty, such as an allocator, it
/// is the first one of the pair: such pairs existed up to release 19.
fn held(spot: &TypedPlace, names: &[&str]) -> Result<TypedPlace, Unknown> {
    let member = spot.any_field(names)?;
    Ok(member.find("__value_").unwrap_or(member))
}

/// The value of a node. In a map the pair of key and value is in a structure of its own, up to release 20.
fn value_of(node: &Type, reach: &Reach) -> Result<Slot, Unknown> {
    let value = Slot::of(node, &["__value_", "__buffer_"])?;
    let element = named_argument(node, 0, reach);
    let value = match (value.ty.strip().kind(), element) {
        (TypeKind::Array, Some(element)) if value.ty.size() == element.size() => {
            value.cast(&element)
        }
        _ => value,
    };
    match path_of(&value.ty).as_str() {
        "std::__value_type" | "std::__hash_value_type" => {
            let pair = value.inner("__cc_");
            pair.or_else(|_| value.inner("__cc"))
        }
        _ => Ok(value),
    }
}

//! Iterators of libc++.

use crate::containers::cxx::iterators::lists::{Links, forward};
use crate::containers::cxx::iterators::runs::{Block, bit_at, pointer};
use crate::containers::cxx::iterators::trees::{Branches, Header};
use crate::containers::cxx::iterators::{Target, Which};
use crate::containers::cxx::libcxx::nodes::list_node;
use crate::containers::cxx::libcxx::sequences::per_block;
use crate::containers::cxx::libcxx::value_of;
use crate::containers::cxx::named_argument;
use crate::containers::typed_place::{Reach, Slot, TypedPlace, first_target, size};
use debuginfo::Unknown;
use debuginfo::types::Type;

/// What the iterator `name` of `std` points to.
pub(in crate::containers::cxx) fn target(
    spot: &TypedPlace,
    name: &str,
    which: Which,
    reach: &Reach,
) -> Option<Result<Target, Unknown>> {
    Some(match name {
        "__wrap_iter" => spot
            .any_field(&["__i_", "__i"])
            .and_then(|current| pointer(&current, which, reach)),
        "__bit_iterator" => bit(spot, which, reach),
        "__deque_iterator" => deque(spot, which, reach),
        "__tree_iterator" | "__tree_const_iterator" => tree(spot, which, reach),
        "__map_iterator" | "__map_const_iterator" => spot
            .field("__i_")
            .and_then(|inner| tree(&inner, which, reach)),
        "__list_iterator" | "__list_const_iterator" => list(spot, which, reach),
        _ if which == Which::Before => return None,
        "__forward_list_iterator" | "__forward_list_const_iterator" => forward_list(spot, reach),
        "__hash_iterator" | "__hash_const_iterator" => hash(spot, reach),
        "__hash_map_iterator" | "__hash_map_const_iterator" => {
            spot.field("__i_").and_then(|inner| hash(&inner, reach))
        }
        _ => return None,
    })
}

/// Argument `index`, a pointer to a node.
fn node(spot: &TypedPlace, index: usize, reach: &Reach) -> Result<Type, Unknown> {
    let unknown = || Unknown::because("the type of its nodes is not known");
    let pointer = named_argument(&spot.ty.strip(), index, reach);
    let node = pointer.and_then(|pointer| first_target(&pointer));
    node.map(|ty| ty.strip()).ok_or_else(unknown)
}

fn bit(spot: &TypedPlace, which: Which, reach: &Reach) -> Result<Target, Unknown> {
    let word = spot.field("__seg_")?.number(reach)?;
    bit_at(word, spot.field("__ctz_")?.number(reach)?, which, reach)
}

fn deque(spot: &TypedPlace, which: Which, reach: &Reach) -> Result<Target, Unknown> {
    let current = spot.field("__ptr_")?;
    let map = spot.field("__m_iter_")?.number(reach)?;
    let unknown = || Unknown::because("the type of its elements is not known");
    let size = size(&first_target(&current.ty).ok_or_else(unknown)?)?;
    if current.number(reach)? == 0 {
        return Ok(Target::Null);
    }
    let block = Block {
        map,
        first: reach.word(map)?,
        len_bytes: per_block(size).wrapping_mul(size),
    };
    block.target(&current, which, reach)
}

fn tree(spot: &TypedPlace, which: Which, reach: &Reach) -> Result<Target, Unknown> {
    let at = spot.field("__ptr_")?.number(reach)?;
    let node = node(spot, 1, reach)?;
    let branches = Branches {
        left: Slot::of(&node, &["__left_"])?,
        right: Slot::of(&node, &["__right_"])?,
        parent: Slot::of(&node, &["__parent_"])?,
        value: value_of(&node, reach)?,
        header: Header::BehindFirst,
    };
    branches.target(at, which, reach)
}

fn list(spot: &TypedPlace, which: Which, reach: &Reach) -> Result<Target, Unknown> {
    let at = spot.field("__ptr_")?.number(reach)?;
    let node = list_node(&spot.ty, reach)?;
    let links = Links {
        next: Slot::of(&node, &["__next_"])?,
        prev: Slot::of(&node, &["__prev_"])?,
        value: value_of(&node, reach)?,
        is_counted: true,
    };
    links.target(at, which, reach)
}

fn forward_list(spot: &TypedPlace, reach: &Reach) -> Result<Target, Unknown> {
    let at = spot.field("__ptr_")?.number(reach)?;
    let node = node(spot, 0, reach)?;
    Ok(forward(at, &value_of(&node, reach)?))
}

fn hash(spot: &TypedPlace, reach: &Reach) -> Result<Target, Unknown> {
    let at = spot.field("__node_")?.number(reach)?;
    if at == 0 {
        return Ok(Target::Past(Which::Own.past()));
    }
    let node = node(spot, 0, reach)?;
    let value = value_of(&node, reach)?;
    Ok(Target::Element(value.at(at)))
}

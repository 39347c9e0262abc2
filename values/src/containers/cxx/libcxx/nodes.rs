//! Containers of nodes in libc++: `list`, `forward_list`, trees and hash tables.

use crate::containers::content::Content;
use crate::containers::cxx::iterators::node_type;
use crate::containers::cxx::libcxx::{held, value_of};
use crate::containers::cxx::trees::pairs;
use crate::containers::cxx::{hash, lists, named_argument, trees};
use crate::containers::items::Items;
use crate::containers::names;
use crate::containers::typed_place::{Reach, Slot, TypedPlace, first_target};
use debuginfo::Unknown;
use debuginfo::types::{Type, find_type};

fn unknown_nodes() -> Unknown {
    Unknown::because("the type of its nodes is not known")
}

pub(super) fn list(spot: &TypedPlace, reach: &Reach) -> Result<Content, Unknown> {
    let header = spot.field("__end_")?;
    let len = held(spot, &["__size_alloc_", "__size_"])?.number(reach)?;
    let node = list_node(&header.ty, reach)?;
    Ok(lists::chain(lists::Chain {
        next: Slot::of(&node, &["__next_"])?,
        value: value_of(&node, reach)?,
        first: header.field("__next_")?.number(reach)?,
        end: header.address()?,
        len: Some(len),
    }))
}

/// The nodes of a list, from a type with the same arguments.
pub(super) fn list_node(ty: &Type, reach: &Reach) -> Result<Type, Unknown> {
    let name = ty.strip().own_name().unwrap_or_default();
    let namespace = names::libcxx(&name).unwrap_or_default();
    node_type(&ty.strip(), &format!("{namespace}__list_node"), reach)
}

pub(super) fn forward_list(spot: &TypedPlace, reach: &Reach) -> Result<Content, Unknown> {
    let head = held(spot, &["__before_begin_"])?;
    let first = head.field("__next_")?;
    let node = first_target(&first.ty).ok_or_else(unknown_nodes)?.strip();
    Ok(lists::chain(lists::Chain {
        next: Slot::of(&node, &["__next_"])?,
        value: value_of(&node, reach)?,
        first: first.number(reach)?,
        end: 0,
        len: None,
    }))
}

pub(super) fn tree(spot: &TypedPlace, reach: &Reach) -> Result<Items, Unknown> {
    let tree = spot.field("__tree_")?;
    let end = held(&tree, &["__pair1_", "__end_node_"])?;
    let len = held(&tree, &["__pair3_", "__size_"])?.number(reach)?;
    let node = tree_node(&tree.ty.strip(), reach)?;
    let value = value_of(&node, reach)?;
    Ok(trees::items(trees::Tree {
        left: Slot::of(&node, &["__left_"])?,
        right: Slot::of(&node, &["__right_"])?,
        entries: pairs(spot, value)?,
        root: end.field("__left_")?.number(reach)?,
        len,
    }))
}

/// The nodes of a tree, which name what they hold and a pointer to anything.
fn tree_node(tree: &Type, reach: &Reach) -> Result<Type, Unknown> {
    let name = tree.own_name().unwrap_or_default();
    let namespace = names::libcxx(&name).unwrap_or_default();
    let arguments = names::arguments(&name);
    let value = arguments.first().ok_or_else(unknown_nodes)?;
    let name = format!("{namespace}__tree_node<{value}, void*>");
    let node = find_type(reach.space, None, &name).map(|ty| ty.strip());
    node.filter(|ty| ty.size().is_some())
        .ok_or_else(unknown_nodes)
}

pub(super) fn table(spot: &TypedPlace, reach: &Reach) -> Result<Items, Unknown> {
    let table = spot.field("__table_")?;
    let first = held(&table, &["__p1_", "__first_node_"])?;
    let len = held(&table, &["__p2_", "__size_"])?.number(reach)?;
    let node = named_argument(&first.ty.strip(), 0, reach);
    let node = node.and_then(|pointer| first_target(&pointer));
    let node = node.ok_or_else(unknown_nodes)?.strip();
    let value = value_of(&node, reach)?;
    Ok(hash::chain(hash::Chain {
        next: Slot::of(&node, &["__next_"])?,
        entries: pairs(spot, value)?,
        first: first.field("__next_")?.number(reach)?,
        len,
    }))
}

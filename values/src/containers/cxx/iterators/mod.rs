//! Iterators of C++, shown by the element that they point to. An iterator of nodes that may point behind the last element
//! is said to: what lies there is never shown as an element.

pub(super) mod lists;
pub(super) mod runs;
pub(super) mod trees;

use std::sync::Arc;

use crate::containers::content::Content;
use crate::containers::cxx::iterators::lists::Links;
use crate::containers::cxx::iterators::trees::{Branches, Header};
use crate::containers::cxx::{NODE_VALUE, libcxx, named_argument};
use crate::containers::names;
use crate::containers::typed_place::{Reach, Slot, TypedPlace, argument, path_of};
use debuginfo::Unknown;
use debuginfo::types::{Near, Type, TypeKind, find_type};

/// What an iterator points to.
pub(super) enum Target {
    Element(TypedPlace),
    /// This element, or a place without one.
    Either(TypedPlace, &'static str),
    /// A place without an element, such as `end()`.
    Past(&'static str),
    /// Nothing: it belongs to no container.
    Null,
}

/// The element that is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    /// The one that the iterator points to.
    Own,
    /// The one before, which a reverse iterator stands for.
    Before,
}

impl Which {
    /// The name of the place without an element in this direction.
    pub(super) fn past(self) -> &'static str {
        match self {
            Which::Own => "end()",
            Which::Before => "rend()",
        }
    }
}

type Found = Option<Result<Target, Unknown>>;

/// Recognises an iterator: returns its label and its element.
pub(super) fn content(
    spot: &TypedPlace,
    path: &str,
    reach: &Reach,
) -> Option<Result<(String, Content), Unknown>> {
    let found = match path {
        "std::back_insert_iterator" | "std::front_insert_iterator" | "std::insert_iterator" => spot
            .field("container")
            .and_then(|container| container.target(reach))
            .map(|into| {
                (
                    path.to_owned(),
                    Content::around(" of ", "container", into, ""),
                )
            }),
        "std::reverse_iterator" => {
            let found = target(&spot.find("current")?, Which::Before, reach)?;
            found.map(|target| (path.to_owned(), shown(target)))
        }
        "std::move_iterator" => {
            let current = spot.any_field(&["_M_current", "__current_"]).ok()?;
            let found = target(&current, Which::Own, reach)?;
            found.map(|target| (path.to_owned(), shown(target)))
        }
        _ => {
            target(spot, Which::Own, reach)?.map(|target| (label(spot, path, reach), shown(target)))
        }
    };
    Some(found)
}

/// The label of an iterator. It names the container if no other has such iterators.
fn label(spot: &TypedPlace, path: &str, reach: &Reach) -> String {
    let of = match path {
        "__gnu_cxx::__normal_iterator" => argument(&spot.ty, 1).map(|ty| path_of(&ty)).ok(),
        "std::_List_iterator" | "std::_List_const_iterator" => Some("std::list".to_owned()),
        "std::_Fwd_list_iterator" | "std::_Fwd_list_const_iterator" => {
            Some("std::forward_list".to_owned())
        }
        "std::__list_iterator" | "std::__list_const_iterator" => Some("std::list".to_owned()),
        "std::__forward_list_iterator" | "std::__forward_list_const_iterator" => {
            Some("std::forward_list".to_owned())
        }
        "std::_Deque_iterator" | "std::__deque_iterator" => Some("std::deque".to_owned()),
        "std::__bit_iterator" => named_argument(&spot.ty, 0, reach)
            .filter(|ty| path_of(ty) == "std::vector")
            .map(|_| "std::vector<bool>".to_owned()),
        "std::_Bit_iterator" | "std::_Bit_const_iterator" => Some("std::vector<bool>".to_owned()),
        _ => None,
    };
    match of.as_deref() {
        Some("std::basic_string") => "std::string iterator".to_owned(),
        Some(of) if of.starts_with("std::") => format!("{of} iterator"),
        _ => "iterator".to_owned(),
    }
}

fn shown(target: Target) -> Content {
    match target {
        Target::Element(element) => Content::around(" -> ", "*", element, ""),
        Target::Either(element, other) => {
            Content::around(" -> ", "*", element, &format!(" (or {other})"))
        }
        Target::Past(name) => Content::words(format!(" -> {name}")),
        Target::Null => Content::words(" [null]"),
    }
}

/// What an iterator or a pointer points to.
fn target(spot: &TypedPlace, which: Which, reach: &Reach) -> Found {
    let spot = &spot.cast(&spot.ty.strip());
    if spot.ty.kind() == TypeKind::Pointer {
        return Some(runs::pointer(spot, which, reach));
    }
    let name = spot.ty.own_name().unwrap_or_default();
    let path = path_of(&spot.ty);
    if names::libcxx(&name).is_some() {
        return libcxx::iterators::target(spot, path.strip_prefix("std::")?, which, reach);
    }
    Some(match path.as_str() {
        "__gnu_cxx::__normal_iterator" => spot
            .field("_M_current")
            .and_then(|current| runs::pointer(&current, which, reach)),
        "std::_Deque_iterator" => runs::deque(spot, which, reach),
        "std::_Bit_iterator" | "std::_Bit_const_iterator" => runs::bit(spot, which, reach),
        "std::_Rb_tree_iterator" | "std::_Rb_tree_const_iterator" => tree(spot, which, reach),
        "std::_List_iterator" | "std::_List_const_iterator" => list(spot, which, reach),
        "std::_Fwd_list_iterator" | "std::_Fwd_list_const_iterator" if which == Which::Own => {
            forward_list(spot, reach)
        }
        "std::__detail::_Node_iterator" | "std::__detail::_Node_const_iterator"
            if which == Which::Own =>
        {
            hash(spot, reach)
        }
        _ => return None,
    })
}

/// The type of the nodes of an iterator's container: a template with the same arguments.
pub(super) fn node_type(iterator: &Type, template: &str, reach: &Reach) -> Result<Type, Unknown> {
    let name = iterator.own_name().unwrap_or_default();
    let arguments = names::arguments(&name).join(", ");
    // The brackets of the arguments stay apart, as compilers write them.
    let node = find_near(iterator, &format!("{template}<{arguments} >"), reach);
    let unknown = || Unknown::because(format!("the type {template}<{arguments}> is not known"));
    let node = node.filter(|ty| ty.size().is_some());
    node.map(|ty| ty.strip()).ok_or_else(unknown)
}

/// Finds a type by its name, first in the module of `ty`.
pub(super) fn find_near(ty: &Type, name: &str, reach: &Reach) -> Option<Type> {
    let own = ty.module().and_then(|own| {
        let mut modules = reach.space.modules().iter();
        modules.find(|mapped| Arc::ptr_eq(&mapped.module, own))
    });
    find_type(
        reach.space,
        own.map(|mapped| Near::address(mapped.range.start)),
        name,
    )
}

fn element(iterator: &TypedPlace, reach: &Reach) -> Result<Type, Unknown> {
    let unknown = || Unknown::because("the type of its elements is not known");
    named_argument(&iterator.ty, 0, reach).ok_or_else(unknown)
}

fn tree(spot: &TypedPlace, which: Which, reach: &Reach) -> Result<Target, Unknown> {
    let at = spot.field("_M_node")?.number(reach)?;
    let node = node_type(&spot.ty, "std::_Rb_tree_node", reach)?;
    let value = element(spot, reach)?;
    let branches = Branches {
        left: Slot::of(&node, &["_M_left"])?,
        right: Slot::of(&node, &["_M_right"])?,
        parent: Slot::of(&node, &["_M_parent"])?,
        value: Slot::of(&node, &NODE_VALUE)?.cast(&value),
        header: Header::Red(Slot::of(&node, &["_M_color"])?),
    };
    branches.target(at, which, reach)
}

fn list(spot: &TypedPlace, which: Which, reach: &Reach) -> Result<Target, Unknown> {
    let at = spot.field("_M_node")?.number(reach)?;
    let value = element(spot, reach)?;
    let node = node_type(&spot.ty, "std::_List_node", reach)?;
    // Before the new ABI the list had no count.
    let header = find_near(&spot.ty, "std::__detail::_List_node_header", reach);
    let header = header.map(|ty| TypedPlace::memory(&ty.strip(), 0));
    let links = Links {
        next: Slot::of(&node, &["_M_next"])?,
        prev: Slot::of(&node, &["_M_prev"])?,
        value: Slot::of(&node, &NODE_VALUE)?.cast(&value),
        is_counted: header.is_some_and(|header| header.find("_M_size").is_some()),
    };
    links.target(at, which, reach)
}

fn forward_list(spot: &TypedPlace, reach: &Reach) -> Result<Target, Unknown> {
    let at = spot.field("_M_node")?.number(reach)?;
    let node = node_type(&spot.ty, "std::_Fwd_list_node", reach)?;
    let value = Slot::of(&node, &NODE_VALUE)?.cast(&element(spot, reach)?);
    Ok(lists::forward(at, &value))
}

fn hash(spot: &TypedPlace, reach: &Reach) -> Result<Target, Unknown> {
    let current = spot.field("_M_cur")?;
    let at = current.number(reach)?;
    if at == 0 {
        return Ok(Target::Past(Which::Own.past()));
    }
    let node = current.target(reach)?.ty.strip();
    let value = Slot::of(&node, &NODE_VALUE)?.cast(&element(spot, reach)?);
    Ok(Target::Element(value.at(at)))
}

//! `list` and `forward_list`: chains of nodes that end at the container itself, or with a null pointer.

use crate::containers::content::Content;
use crate::containers::cxx::{NODE_VALUE, node_type};
use crate::containers::items::{Each, Element, Items, Seen, Visit, miscounted};
use crate::containers::typed_place::{Reach, Slot, TypedPlace, argument};
use debuginfo::Unknown;

pub(super) fn list(spot: &TypedPlace, reach: &Reach) -> Result<Content, Unknown> {
    let holder = spot.field("_M_impl")?;
    let header = holder.field("_M_node")?;
    // Before the new ABI there was no count.
    let len = header.find("_M_size").or_else(|| header.find("_M_data"));
    let len = match len {
        Some(len) => Some(len.number(reach)?),
        None => None,
    };
    let (next, value) = slots(spot, &holder, reach)?;
    Ok(chain(Chain {
        next,
        value,
        first: header.field("_M_next")?.number(reach)?,
        end: header.address()?,
        len,
    }))
}

pub(super) fn forward_list(spot: &TypedPlace, reach: &Reach) -> Result<Content, Unknown> {
    let holder = spot.field("_M_impl")?;
    let (next, value) = slots(spot, &holder, reach)?;
    Ok(chain(Chain {
        next,
        value,
        first: holder.path(&["_M_head", "_M_next"])?.number(reach)?,
        end: 0,
        len: None,
    }))
}

/// The members of a node: the pointer to the next one, and the value.
fn slots(list: &TypedPlace, holder: &TypedPlace, reach: &Reach) -> Result<(Slot, Slot), Unknown> {
    let node = node_type(holder, reach)?;
    let value = Slot::of(&node, &NODE_VALUE)?;
    Ok((
        Slot::of(&node, &["_M_next"])?,
        value.cast(&argument(&list.ty, 0)?),
    ))
}

/// A chain of nodes with a value each.
pub(super) struct Chain {
    pub next: Slot,
    pub value: Slot,
    pub first: u64,
    /// The pointer of the last node.
    pub end: u64,
    pub len: Option<u64>,
}

pub(super) fn chain(chain: Chain) -> Content {
    Content::Sequence(Items::new(chain.len, chain))
}

impl Visit for Chain {
    fn visit(&self, reach: &Reach, from: u64, each: Each) -> Result<(), Unknown> {
        let (mut at, mut found, mut seen) = (self.first, 0, Seen::default());
        while at != self.end {
            if self.len.is_some_and(|len| found >= len) {
                return Err(miscounted(found + 1, self.len.unwrap_or(0)));
            }
            seen.enter(reach, at)?;
            if found >= from && !each(Element::of(self.value.at(at))) {
                return Ok(());
            }
            found += 1;
            at = self.next.word(reach, at)?;
        }
        match self.len {
            Some(len) if len != found => Err(miscounted(found, len)),
            _ => Ok(()),
        }
    }
}

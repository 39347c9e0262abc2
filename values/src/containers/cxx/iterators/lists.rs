//! Where an iterator over a list points: to a node, or to the header, which stands for the end.
//!
//! All nodes form a ring with the header, which lies in the list itself. Behind its pointers is the number of elements;
//! at the same place nodes have their values.

use crate::containers::cxx::iterators::{Target, Which};
use crate::containers::typed_place::{Reach, Slot};
use debuginfo::Unknown;

/// Most nodes of a ring that are counted.
const MAX_COUNTED: u64 = 1 << 12;
/// The bytes of a header: two pointers and the count. No node has fewer.
const HEADER: u64 = 24;
/// More elements than memory holds.
const TOO_MANY: u64 = (1 << 47) / HEADER;

/// The members of nodes.
pub(in crate::containers::cxx) struct Links {
    pub next: Slot,
    pub prev: Slot,
    pub value: Slot,
    /// The header has a count behind two pointers.
    pub is_counted: bool,
}

/// What lies at an address.
enum Found {
    Node,
    Header,
    /// The memory looks like both.
    Either,
}

impl Links {
    /// The element of the iterator that holds the address `at`.
    pub(in crate::containers::cxx) fn target(
        &self,
        at: u64,
        which: Which,
        reach: &Reach,
    ) -> Result<Target, Unknown> {
        match which {
            _ if at == 0 => Ok(Target::Null),
            Which::Own => self.at(at, which, reach),
            Which::Before => self.at(self.prev.word(reach, at)?, which, reach),
        }
    }

    fn at(&self, at: u64, which: Which, reach: &Reach) -> Result<Target, Unknown> {
        let element = self.value.at(at);
        Ok(match self.find(at, reach)? {
            Found::Node => Target::Element(element),
            Found::Header => Target::Past(which.past()),
            Found::Either => Target::Either(element, which.past()),
        })
    }

    fn find(&self, at: u64, reach: &Reach) -> Result<Found, Unknown> {
        let own = self.node(at, reach)?;
        if reach.machine.is_symbolic() || (self.is_counted && own.count > TOO_MANY) {
            return Ok(Found::Node);
        }
        // The ring must lead back; only its length tells what the count must be.
        let (mut node, mut place, mut counts) = (own, at, Vec::new());
        while node.next != at {
            if counts.len() as u64 >= MAX_COUNTED {
                let is_short = self.is_counted && own.count < MAX_COUNTED;
                return Ok(if is_short { Found::Node } else { Found::Either });
            }
            reach.step()?;
            let next = self.node(node.next, reach)?;
            leads_back(node.next, next.prev, place)?;
            counts.push(next.count);
            (node, place) = (next, node.next);
        }
        leads_back(at, own.prev, place)?;
        let count = counts.len() as u64;
        match (own.count == count, counts.contains(&count)) {
            _ if count == 0 => Ok(Found::Header),
            _ if !self.is_counted => Ok(Found::Either),
            (true, true) => Ok(Found::Either),
            (true, false) => Ok(Found::Header),
            (false, true) => Ok(Found::Node),
            (false, false) => Err(Unknown::corrupt(format!(
                "none of the {} nodes is the end of a list",
                count + 1
            ))),
        }
    }

    fn node(&self, at: u64, reach: &Reach) -> Result<Node, Unknown> {
        let bytes = reach.read(at, HEADER)?;
        let word = |offset: usize| {
            let word = bytes[offset..offset + 8].try_into();
            u64::from_le_bytes(word.expect("eight bytes"))
        };
        // The pointers are the first two words, in either order.
        let (first, second) = (word(0), word(8));
        let (next, prev) = match self.next.at(0).address()? {
            0 => (first, second),
            _ => (second, first),
        };
        Ok(Node {
            next,
            prev,
            count: word(16),
        })
    }
}

/// A node or a header.
#[derive(Clone, Copy)]
struct Node {
    next: u64,
    prev: u64,
    /// The count, if it is a header.
    count: u64,
}

fn leads_back(at: u64, prev: u64, node: u64) -> Result<(), Unknown> {
    match prev == node {
        true => Ok(()),
        false => Err(Unknown::corrupt(format!(
            "the node at {at:#x} does not lead back to {node:#x}"
        ))),
    }
}

/// The element of an iterator over a `forward_list`. The place before the first element cannot be told from a node.
pub(in crate::containers::cxx) fn forward(at: u64, value: &Slot) -> Target {
    match at {
        0 => Target::Past(Which::Own.past()),
        _ => Target::Either(value.at(at), "before_begin()"),
    }
}

//! Where an iterator over a list points: to a node, or to the header, which stands for the end.
//!
//! All nodes form a ring with the header, which lies in the list itself. Behind its pointers is the number of elements;
//! at the same place nodes have their values.

use crate::containers::cxx::iterators::{Target, Which};
use crate::containers::typed_place::{Reach, Slot};
use debuginfo::Unknown;

/// Most nodes of a ring that are counted.
const MAX_COUNTED: u64 = 1 << 14;
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
        let own = self.count(at, reach)?;
        if reach.machine.is_symbolic() {
            return Ok(Found::Node);
        }
        if self.is_counted && own > TOO_MANY {
            return Ok(Found::Node);
        }
        // The ring must lead back; only its length tells what the count must be.
        let (mut node, mut others) = (at, Vec::new());
        loop {
            let next = self.next.word(reach, node)?;
            if self.prev.word(reach, next)? != node {
                let how = format!("the node at {next:#x} does not lead back to {node:#x}");
                return Err(Unknown::corrupt(how));
            }
            if next == at {
                break;
            }
            if others.len() as u64 >= MAX_COUNTED {
                return Ok(match self.is_counted && own < MAX_COUNTED {
                    true => Found::Node,
                    false => Found::Either,
                });
            }
            reach.step()?;
            others.push(self.count(next, reach)?);
            node = next;
        }
        let count = others.len() as u64;
        match (own == count, others.contains(&count)) {
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

    /// The count, if a header lies at `at`.
    fn count(&self, at: u64, reach: &Reach) -> Result<u64, Unknown> {
        match self.is_counted {
            true => reach.word(at.wrapping_add(HEADER - 8)),
            false => Ok(0),
        }
    }
}

/// The element of an iterator over a `forward_list`. The place before the first element cannot be told from a node.
pub(in crate::containers::cxx) fn forward(at: u64, value: &Slot) -> Target {
    match at {
        0 => Target::Past(Which::Own.past()),
        _ => Target::Either(value.at(at), "before_begin()"),
    }
}

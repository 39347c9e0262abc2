//! Where an iterator over a red-black tree points: to a node, or to the header, which stands for the end.
//!
//! Only what the tree itself shows decides which of them it is. A node is linked from its parent.

use crate::containers::cxx::iterators::{Target, Which};
use crate::containers::typed_place::{Reach, Slot};
use debuginfo::Unknown;

/// Most levels of a tree: a red-black tree of all addresses has fewer.
const MAX_LEVELS: usize = 128;

/// The members of nodes.
pub(in crate::containers::cxx) struct Branches {
    pub left: Slot,
    pub right: Slot,
    pub parent: Slot,
    pub value: Slot,
    /// The root is black. The header is red, and its own grandparent, or without a parent.
    pub color: Slot,
}

/// What lies at an address.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    Node,
    Header,
}

fn no_tree(at: u64) -> Unknown {
    Unknown::corrupt(format!("the node at {at:#x} is in no tree"))
}

impl Branches {
    /// The element of the iterator that holds the address `at`.
    pub(in crate::containers::cxx) fn target(
        &self,
        at: u64,
        which: Which,
        reach: &Reach,
    ) -> Result<Target, Unknown> {
        match which {
            _ if at == 0 => Ok(Target::Null),
            Which::Own => self.own(at, reach),
            Which::Before => self.before(at, reach),
        }
    }

    fn own(&self, at: u64, reach: &Reach) -> Result<Target, Unknown> {
        Ok(match self.find(at, reach)? {
            Found::Node => Target::Element(self.value.at(at)),
            Found::Header => Target::Past(Which::Own.past()),
        })
    }

    fn find(&self, at: u64, reach: &Reach) -> Result<Found, Unknown> {
        reach.step()?;
        let color = self.color.at(at).number(reach)?;
        let parent = self.parent.word(reach, at)?;
        if reach.machine.is_symbolic() {
            // This only finds the memory that decides.
            self.is_linked(at, parent, reach)?;
            self.parent.word(reach, parent)?;
            return Ok(Found::Node);
        }
        let is_red = match color {
            0 => true,
            1 => false,
            _ => return Err(no_tree(at)),
        };
        match (parent, is_red) {
            (0, true) => return Ok(Found::Header),
            (0, false) => return Err(no_tree(at)),
            _ if parent == at => return Err(no_tree(at)),
            _ => {}
        }
        let grandparent = self.parent.word(reach, parent);
        match grandparent {
            // The header refers to the root as its parent, and the root to the header.
            Ok(grandparent) if grandparent == at && is_red => return Ok(Found::Header),
            Ok(grandparent) if grandparent == at => return Ok(Found::Node),
            Ok(_) => {}
            // A header is never black.
            Err(_) if !is_red => return Ok(Found::Node),
            Err(why) => return Err(why),
        }
        match self.is_linked(at, parent, reach)? {
            true => Ok(Found::Node),
            false => Err(no_tree(at)),
        }
    }

    fn is_linked(&self, at: u64, parent: u64, reach: &Reach) -> Result<bool, Unknown> {
        let left = self.left.word(reach, parent)?;
        Ok(left == at || self.right.word(reach, parent)? == at)
    }

    /// The last node from `at` on along `side`.
    fn outermost(&self, side: &Slot, at: u64, reach: &Reach) -> Result<u64, Unknown> {
        let mut node = at;
        for _ in 0..MAX_LEVELS {
            reach.step()?;
            match side.word(reach, node)? {
                0 => return Ok(node),
                next => node = next,
            }
        }
        Err(no_tree(at))
    }

    fn before(&self, at: u64, reach: &Reach) -> Result<Target, Unknown> {
        let found = self.find(at, reach)?;
        let place = match found {
            Found::Header => match self.right.word(reach, at)? {
                // The header of an empty tree.
                last if last == at => None,
                last => Some(last),
            },
            Found::Node => match self.left.word(reach, at)? {
                0 => self.above(at, reach)?,
                left => Some(self.outermost(&self.right, left, reach)?),
            },
        };
        match place {
            None => Ok(Target::Past(Which::Before.past())),
            Some(node) => match self.own(node, reach)? {
                Target::Past(_) => Err(no_tree(node)),
                target => Ok(target),
            },
        }
    }

    /// The node above whose right part contains `at`; `None` if there is none, so that `at` is the first.
    fn above(&self, at: u64, reach: &Reach) -> Result<Option<u64>, Unknown> {
        let mut node = at;
        for _ in 0..MAX_LEVELS {
            let parent = self.parent.word(reach, node)?;
            if reach.machine.is_symbolic() {
                return Ok(Some(parent));
            }
            if self.find(parent, reach)? == Found::Header {
                return Ok(None);
            }
            if self.right.word(reach, parent)? == node {
                return Ok(Some(parent));
            }
            node = parent;
        }
        Err(no_tree(at))
    }
}

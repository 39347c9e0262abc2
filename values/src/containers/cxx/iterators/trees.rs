//! Where an iterator over a red-black tree points: to a node, or to the header, which stands for the end.
//!
//! Only what the tree itself shows decides which of them it is. A node is linked from its parent.

use crate::containers::cxx::iterators::{Target, Which};
use crate::containers::typed_place::{Reach, Slot};
use debuginfo::Unknown;

/// Most levels of a tree: a red-black tree of all addresses has fewer.
const MAX_LEVELS: usize = 128;

/// How a library marks the header.
pub(in crate::containers::cxx) enum Header {
    /// It is a node of this color, red, and its own grandparent, or without a parent (libstdc++). The root is black.
    Red(Slot),
    /// It is only the pointer to the root; the word before it points to the first node (libc++).
    BehindFirst,
}

/// The members of nodes.
pub(in crate::containers::cxx) struct Branches {
    pub left: Slot,
    pub right: Slot,
    pub parent: Slot,
    pub value: Slot,
    pub header: Header,
}

/// What lies at an address.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    Node,
    Header,
    /// The memory looks like both.
    Either,
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
            Found::Either => Target::Either(self.value.at(at), Which::Own.past()),
        })
    }

    fn find(&self, at: u64, reach: &Reach) -> Result<Found, Unknown> {
        reach.step()?;
        match &self.header {
            Header::Red(color) => self.by_color(at, color, reach),
            Header::BehindFirst => self.by_first(at, reach),
        }
    }

    fn by_color(&self, at: u64, color: &Slot, reach: &Reach) -> Result<Found, Unknown> {
        let color = color.at(at).number(reach)?;
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

    fn by_first(&self, at: u64, reach: &Reach) -> Result<Found, Unknown> {
        if reach.machine.is_symbolic() {
            let parent = self.parent.word(reach, at)?;
            self.is_linked(at, parent, reach)?;
            self.left.word(reach, at)?;
            return Ok(Found::Node);
        }
        let leads_to_first = self.leads_to_first(at, reach);
        // Behind a header lies the count, and then anything.
        let parent = self.parent.word(reach, at);
        let is_linked = parent.and_then(|parent| self.is_linked(at, parent, reach));
        match (leads_to_first, is_linked) {
            (Ok(true), Ok(true)) => Ok(Found::Either),
            (Ok(true), _) => Ok(Found::Header),
            (_, Ok(true)) => Ok(Found::Node),
            (Err(why), _) => Err(why),
            (Ok(false), Err(why)) => Err(why),
            (Ok(false), Ok(false)) => Err(no_tree(at)),
        }
    }

    /// Returns whether the word before `at` points to the leftmost node below it.
    fn leads_to_first(&self, at: u64, reach: &Reach) -> Result<bool, Unknown> {
        let first = reach.word(at.wrapping_sub(8))?;
        // It is a number of bytes, or null, before most nodes.
        if first == 0 || first % 8 != 0 {
            return Ok(false);
        }
        Ok(self.outermost(&self.left, at, reach)? == first)
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
        let place = match (found, &self.header) {
            (Found::Either, _) => return Err(Unknown::because("it may be the end of its tree")),
            (Found::Header, Header::Red(_)) => match self.right.word(reach, at)? {
                // The header of an empty tree.
                last if last == at => None,
                last => Some(last),
            },
            (Found::Header, Header::BehindFirst) => match self.left.word(reach, at)? {
                0 => None,
                root => Some(self.outermost(&self.right, root, reach)?),
            },
            (Found::Node, _) => match self.left.word(reach, at)? {
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
            match self.find(parent, reach)? {
                Found::Header => return Ok(None),
                Found::Either => {
                    return Err(Unknown::because("where its tree ends is not clear"));
                }
                Found::Node => {}
            }
            if self.right.word(reach, parent)? == node {
                return Ok(Some(parent));
            }
            node = parent;
        }
        Err(no_tree(at))
    }
}

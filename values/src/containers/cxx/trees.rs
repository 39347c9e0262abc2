//! `map`, `set` and their siblings with equal keys: red-black trees.

use crate::containers::cxx::{NODE_VALUE, named_argument, node_type};
use crate::containers::items::{Each, Items, Pair, Seen, Visit, miscounted};
use crate::containers::typed_place::{Reach, Slot, TypedPlace, path_of};
use debuginfo::Unknown;
use debuginfo::types::Type;

pub(super) fn tree(spot: &TypedPlace, reach: &Reach) -> Result<Items, Unknown> {
    let holder = spot.path(&["_M_t", "_M_impl"])?;
    let node = node_type(&holder, reach)?;
    let len = holder.field("_M_node_count")?.number(reach)?;
    Ok(items(Tree {
        left: Slot::of(&node, &["_M_left"])?,
        right: Slot::of(&node, &["_M_right"])?,
        entries: entries(spot, &node, reach)?,
        root: holder.path(&["_M_header", "_M_parent"])?.number(reach)?,
        len,
    }))
}

/// A pair is a key and its value; in a set the value is the key.
pub(super) fn entries(spot: &TypedPlace, node: &Type, reach: &Reach) -> Result<Pair, Unknown> {
    let unknown = || Unknown::because(format!("what {} holds is not known", node.name()));
    let value = named_argument(node, 0, reach).ok_or_else(unknown)?;
    pairs(spot, Slot::of(node, &NODE_VALUE)?.cast(&value))
}

/// The entries of a map or set whose nodes hold `value`.
pub(super) fn pairs(spot: &TypedPlace, value: Slot) -> Result<Pair, Unknown> {
    match path_of(&spot.ty).ends_with("map") {
        true => Pair::of(&value, "first", "second"),
        false => Ok(Pair::single(value)),
    }
}

pub(super) struct Tree {
    pub left: Slot,
    pub right: Slot,
    pub entries: Pair,
    pub root: u64,
    pub len: u64,
}

pub(super) fn items(tree: Tree) -> Items {
    Items::new(Some(tree.len), tree)
}

impl Visit for Tree {
    fn visit(&self, reach: &Reach, from: u64, each: Each) -> Result<(), Unknown> {
        let (mut at, mut above) = (self.root, Vec::new());
        let (mut found, mut seen) = (0, Seen::default());
        while at != 0 || !above.is_empty() {
            while at != 0 {
                seen.enter(reach, at)?;
                above.push(at);
                at = self.left.word(reach, at)?;
            }
            let Some(node) = above.pop() else { break };
            found += 1;
            if found > self.len {
                return Err(miscounted(found, self.len));
            }
            if found > from && !each(self.entries.at(node)) {
                return Ok(());
            }
            at = self.right.word(reach, node)?;
        }
        if found != self.len {
            return Err(miscounted(found, self.len));
        }
        Ok(())
    }
}

//! `unordered_map`, `unordered_set` and their siblings: one chain through all nodes.

use crate::containers::cxx::named_argument;
use crate::containers::cxx::trees::entries;
use crate::containers::items::{Each, Items, Pair, Seen, Visit, miscounted};
use crate::containers::typed_place::{Reach, Slot, TypedPlace, path_of};
use debuginfo::Unknown;
use debuginfo::types::Type;

pub(super) fn table(spot: &TypedPlace, reach: &Reach) -> Result<Items, Unknown> {
    let table = spot.field("_M_h")?;
    let node = node(&table, reach)?;
    let len = table.field("_M_element_count")?.number(reach)?;
    let first = table.path(&["_M_before_begin", "_M_nxt"])?;
    Ok(chain(Chain {
        next: Slot::of(&node, &["_M_nxt"])?,
        entries: entries(spot, &node, reach)?,
        first: first.number(reach)?,
        len,
    }))
}

/// The type of the nodes, from the table's allocator.
fn node(table: &TypedPlace, reach: &Reach) -> Result<Type, Unknown> {
    let bases = table.bases();
    let mut allocators = bases
        .iter()
        .filter(|base| path_of(&base.ty).ends_with("_Hashtable_alloc"));
    let allocator = allocators.find_map(|base| named_argument(&base.ty, 0, reach));
    let node = allocator.and_then(|allocator| named_argument(&allocator, 0, reach));
    let unknown = || Unknown::because("the type of the table's nodes is not known");
    node.map(|ty| ty.strip()).ok_or_else(unknown)
}

/// A chain of nodes that ends with a null pointer.
pub(super) struct Chain {
    pub next: Slot,
    pub entries: Pair,
    pub first: u64,
    pub len: u64,
}

pub(super) fn chain(chain: Chain) -> Items {
    Items::new(Some(chain.len), chain)
}

impl Visit for Chain {
    fn visit(&self, reach: &Reach, from: u64, each: Each) -> Result<(), Unknown> {
        let (mut at, mut found, mut seen) = (self.first, 0, Seen::default());
        while at != 0 {
            seen.enter(reach, at)?;
            found += 1;
            if found > self.len {
                return Err(miscounted(found, self.len));
            }
            if found > from && !each(self.entries.at(at)) {
                return Ok(());
            }
            at = self.next.word(reach, at)?;
        }
        if found != self.len {
            return Err(miscounted(found, self.len));
        }
        Ok(())
    }
}

//! `BTreeMap` and `BTreeSet`: nodes of up to eleven keys, all leaves at the same depth.

use crate::containers::content::Content;
use crate::containers::items::{Each, Element, Items, Visit, miscounted};
use crate::containers::rust::element_type;
use crate::containers::typed_place::{Reach, Slot, TypedPlace, argument, first_target, size};
use debuginfo::Unknown;

/// Height of a tree that could fill all of memory.
const MAX_HEIGHT: u64 = 48;

pub(super) fn map(spot: &TypedPlace, reach: &Reach) -> Result<Content, Unknown> {
    Ok(Content::Map(items(spot, false, reach)?))
}

pub(super) fn set(spot: &TypedPlace, reach: &Reach) -> Result<Content, Unknown> {
    let map = spot.field("map")?;
    Ok(Content::Set(items(&map, true, reach)?))
}

fn items(map: &TypedPlace, keys: bool, reach: &Reach) -> Result<Items, Unknown> {
    let len = map.field("length")?.number(reach)?;
    let root = map.field("root")?;
    // `None` is a null pointer to the root; the other members are at their places in `Some`.
    let variants = root.ty.variants().map(|v| v.list).unwrap_or_default();
    let some = variants.iter().find(|v| v.name.as_deref() == Some("Some"));
    let unknown = || Unknown::because(format!("{} has no root that is known", map.ty.name()));
    let some = some.ok_or_else(unknown)?;
    let root = root.inner(&some.member.ty, 0).field("__0")?;
    let node = root.field("node")?;
    let first = node.number(reach)?;
    let leaf = first_target(&node.ty).ok_or_else(unknown)?;
    let parent = TypedPlace::memory(&leaf, 0).field("parent")?;
    let (key, value) = (element_type(&map.ty)?, argument(&map.ty, 1)?);
    let all = Slot::of(&leaf, &["keys"])?;
    let tree = Tree {
        room: all.ty.count().unwrap_or(0),
        edges: Slot::of(&first_target(&parent.ty).ok_or_else(unknown)?, &["edges"])?,
        len_of_node: Slot::of(&leaf, &["len"])?,
        key_size: size(&key)?,
        value_size: size(&value)?,
        keys: all.cast(&key),
        values: (!keys)
            .then(|| Slot::of(&leaf, &["vals"]))
            .transpose()?
            .map(|v| v.cast(&value)),
        root: first,
        height: match first {
            0 => 0,
            _ => root.field("height")?.number(reach)?,
        },
        len,
    };
    if tree.height > MAX_HEIGHT {
        return Err(Unknown::corrupt(format!(
            "the tree is {} nodes high",
            tree.height
        )));
    }
    Ok(Items::new(Some(len), tree))
}

struct Tree {
    /// The first key of a node.
    keys: Slot,
    /// The first value; `None` if only the keys are elements.
    values: Option<Slot>,
    edges: Slot,
    len_of_node: Slot,
    key_size: u64,
    value_size: u64,
    /// Capacity of a node in keys.
    room: u64,
    root: u64,
    height: u64,
    len: u64,
}

/// A node on the way down, and the index of its next key.
struct Level {
    node: u64,
    height: u64,
    len: u64,
    next: u64,
}

impl Tree {
    fn level(&self, node: u64, height: u64, reach: &Reach) -> Result<Level, Unknown> {
        reach.step()?;
        let len = self.len_of_node.at(node).number(reach)?;
        if len > self.room {
            return Err(Unknown::corrupt(format!(
                "the node at {node:#x} has {len} keys"
            )));
        }
        Ok(Level {
            node,
            height,
            len,
            next: 0,
        })
    }

    fn child(&self, level: &Level, reach: &Reach) -> Result<Level, Unknown> {
        let edge = level.node.wrapping_add(level.next * 8);
        let child = self.edges.word(reach, edge)?;
        self.level(child, level.height - 1, reach)
    }

    fn element(&self, level: &Level) -> Element {
        let at = |slot: &Slot, size: u64| slot.at(level.node.wrapping_add(level.next * size));
        let key = at(&self.keys, self.key_size);
        match &self.values {
            None => Element::of(key),
            Some(values) => Element {
                key: Some(key),
                value: at(values, self.value_size),
            },
        }
    }

    /// Descends to the first leaf below the last level.
    fn descend(&self, path: &mut Vec<Level>, reach: &Reach) -> Result<(), Unknown> {
        while let Some(last) = path.last().filter(|level| level.height > 0) {
            path.push(self.child(last, reach)?);
        }
        Ok(())
    }
}

impl Visit for Tree {
    fn visit(&self, reach: &Reach, from: u64, each: Each) -> Result<(), Unknown> {
        if self.root == 0 {
            return match self.len {
                0 => Ok(()),
                len => Err(miscounted(0, len)),
            };
        }
        let mut path = vec![self.level(self.root, self.height, reach)?];
        self.descend(&mut path, reach)?;
        let mut found = 0;
        while let Some(last) = path.last_mut() {
            if last.next >= last.len {
                path.pop();
                continue;
            }
            let element = self.element(last);
            last.next += 1;
            found += 1;
            if found > self.len {
                return Err(miscounted(found, self.len));
            }
            if found > from && !each(element) {
                return Ok(());
            }
            self.descend(&mut path, reach)?;
        }
        if found != self.len {
            return Err(miscounted(found, self.len));
        }
        Ok(())
    }
}

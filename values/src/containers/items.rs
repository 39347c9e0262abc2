//! The elements of a container: their number, and a walk over them from any index on.

use std::collections::HashSet;

use crate::containers::typed_place::{At, Reach, Slot, TypedPlace, size};
use debuginfo::Unknown;
use debuginfo::types::Type;

/// An element, with its key if it is a map's.
pub(crate) struct Element {
    pub key: Option<TypedPlace>,
    pub value: TypedPlace,
}

impl Element {
    pub(crate) fn of(value: TypedPlace) -> Element {
        Element { key: None, value }
    }
}

/// Offsets of keys and values in the entries of a container.
pub(crate) struct Pair {
    /// `None` if the value is the key.
    key: Option<Slot>,
    value: Slot,
}

impl Pair {
    /// Entries that consist of a key alone.
    pub(crate) fn single(value: Slot) -> Pair {
        Pair { key: None, value }
    }

    /// Entries that are a structure of key and value.
    pub(crate) fn of(entry: &Slot, key: &str, value: &str) -> Result<Pair, Unknown> {
        Ok(Pair {
            key: Some(entry.inner(key)?),
            value: entry.inner(value)?,
        })
    }

    /// The entry of the node at `address`.
    pub(crate) fn at(&self, address: u64) -> Element {
        Element {
            key: self.key.as_ref().map(|key| key.at(address)),
            value: self.value.at(address),
        }
    }
}

/// Receives elements; returns false when it has enough.
pub(crate) type Each<'f> = &'f mut dyn FnMut(Element) -> bool;

/// An iteration over the elements.
pub(crate) trait Visit {
    /// Passes elements from number `from` on to `each`, until there are no more or `each` has enough.
    ///
    /// # Errors
    /// The next element cannot be found; those before it were passed.
    fn visit(&self, reach: &Reach, from: u64, each: Each) -> Result<(), Unknown>;

    /// The address of the first element, if all are contiguous.
    fn start(&self) -> Option<u64> {
        None
    }
}

/// The elements of a container.
pub(crate) struct Items {
    /// The container's own count; `None` if it has none.
    pub len: Option<u64>,
    pub visit: Box<dyn Visit>,
}

impl Items {
    pub(crate) fn new(len: Option<u64>, visit: impl Visit + 'static) -> Items {
        Items {
            len,
            visit: Box::new(visit),
        }
    }

    /// The number of elements, counted if the container does not state it.
    pub(crate) fn len(&self, reach: &Reach) -> Result<u64, Unknown> {
        if let Some(len) = self.len {
            return Ok(len);
        }
        let mut len = 0;
        self.visit.visit(reach, 0, &mut |_| {
            len += 1;
            true
        })?;
        Ok(len)
    }
}

/// Elements one after another.
pub(crate) struct Run {
    pub element: Type,
    pub start: At,
    pub len: u64,
}

impl Run {
    /// Elements in memory, with a length that fits memory.
    pub(crate) fn items(
        reach: &Reach,
        element: Type,
        start: u64,
        len: u64,
    ) -> Result<Items, Unknown> {
        reach.fits(start, len, size(&element)?)?;
        let start = At::Memory(start);
        let run = Run {
            element,
            start,
            len,
        };
        Ok(Items::new(Some(len), run))
    }
}

impl Visit for Run {
    fn visit(&self, _: &Reach, from: u64, each: Each) -> Result<(), Unknown> {
        let size = size(&self.element)?;
        let start = TypedPlace {
            ty: self.element.clone(),
            at: self.start.clone(),
        };
        for i in from..self.len {
            let spot = start.inner(&self.element, i.wrapping_mul(size));
            if !each(Element::of(spot)) {
                break;
            }
        }
        Ok(())
    }

    fn start(&self) -> Option<u64> {
        match self.start {
            At::Memory(address) => Some(address),
            At::Bytes(..) | At::Pieces(..) | At::Nowhere(_) => None,
        }
    }
}

/// Elements in a ring buffer of `capacity` places, from place `head` on.
pub(crate) struct Ring {
    pub element: Type,
    pub start: u64,
    pub capacity: u64,
    pub head: u64,
    pub len: u64,
}

impl Visit for Ring {
    fn visit(&self, _: &Reach, from: u64, each: Each) -> Result<(), Unknown> {
        let size = size(&self.element)?;
        for i in from..self.len {
            let place = self.head.wrapping_add(i);
            let place = if place >= self.capacity {
                place.wrapping_sub(self.capacity)
            } else {
                place
            };
            let address = self.start.wrapping_add(place.wrapping_mul(size));
            if !each(Element::of(TypedPlace::memory(&self.element, address))) {
                break;
            }
        }
        Ok(())
    }
}

/// Single bits, each shown as a `bool`.
pub(crate) struct Bits {
    pub element: Type,
    pub start: TypedPlace,
    /// Number of bits before the first one.
    pub skip: u64,
    pub len: u64,
}

impl Visit for Bits {
    fn visit(&self, reach: &Reach, from: u64, each: Each) -> Result<(), Unknown> {
        let mut byte = None;
        for i in from..self.len {
            let bit = self.skip.wrapping_add(i);
            if byte.is_none() || bit % 8 == 0 {
                let spot = self.start.inner(&self.element, bit / 8);
                byte = spot.read(reach, 1)?.first().copied();
            }
            let set = byte.is_some_and(|b| b >> (bit % 8) & 1 == 1);
            if !each(Element::of(TypedPlace::bytes(
                &self.element,
                &[u8::from(set)],
            ))) {
                break;
            }
        }
        Ok(())
    }
}

/// The visited nodes, so that a cyclic chain ends.
#[derive(Default)]
pub(crate) struct Seen(HashSet<u64>);

impl Seen {
    pub(crate) fn enter(&mut self, reach: &Reach, node: u64) -> Result<(), Unknown> {
        reach.step()?;
        if self.0.insert(node) {
            return Ok(());
        }
        Err(Unknown::corrupt(format!(
            "it leads back to the node at {node:#x}"
        )))
    }
}

/// The error of a walk that ended too early or too late.
pub(crate) fn miscounted(found: u64, stated: u64) -> Unknown {
    Unknown::corrupt(format!("{found} elements are there, {stated} should be"))
}

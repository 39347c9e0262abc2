//! `HashMap` and `HashSet`: hashbrown's table of control bytes, with the entries before them in reverse order.

use crate::containers::content::Content;
use crate::containers::items::{Each, Element, Items, Pair, Visit, miscounted};
use crate::containers::rust::element_type;
use crate::containers::typed_place::{Reach, Slot, TypedPlace, size};
use debuginfo::Unknown;

/// Control bytes that are read at a time.
const CHUNK: u64 = 4096;
/// The bit of a control byte that marks an empty or deleted bucket.
const VACANT: u8 = 0x80;

pub(super) fn map(spot: &TypedPlace, path: &[&str], reach: &Reach) -> Result<Content, Unknown> {
    Ok(Content::Map(items(spot, path, false, reach)?))
}

pub(super) fn set(spot: &TypedPlace, path: &[&str], reach: &Reach) -> Result<Content, Unknown> {
    Ok(Content::Set(items(spot, path, true, reach)?))
}

fn items(spot: &TypedPlace, path: &[&str], keys: bool, reach: &Reach) -> Result<Items, Unknown> {
    let table = spot.path(path)?;
    let entry = element_type(&table.ty)?;
    // Before hashbrown 0.9 the fields belonged to the table itself.
    let inner = table.find("table").unwrap_or(table);
    let mask = inner.field("bucket_mask")?.number(reach)?;
    let whole = Slot::whole(&entry);
    let table = Table {
        size: size(&entry)?,
        entries: match keys {
            true => Pair::single(whole.inner("__0")?),
            false => Pair::of(&whole, "__0", "__1")?,
        },
        control: inner.field("ctrl")?.number(reach)?,
        buckets: mask.wrapping_add(1),
        len: inner.field("items")?.number(reach)?,
    };
    if !table.buckets.is_power_of_two() || table.len > table.buckets {
        return Err(Unknown::corrupt(format!(
            "{} entries in {} buckets",
            table.len, table.buckets
        )));
    }
    reach.fits(0, table.buckets, table.size.max(1))?;
    Ok(Items::new(Some(table.len), table))
}

struct Table {
    entries: Pair,
    /// Size of an entry in bytes.
    size: u64,
    control: u64,
    buckets: u64,
    len: u64,
}

impl Table {
    fn element(&self, bucket: u64) -> Element {
        let behind = bucket.wrapping_add(1).wrapping_mul(self.size);
        self.entries.at(self.control.wrapping_sub(behind))
    }
}

impl Visit for Table {
    fn visit(&self, reach: &Reach, from: u64, each: Each) -> Result<(), Unknown> {
        let (mut bucket, mut found) = (0, 0);
        while found < self.len && bucket < self.buckets {
            let len = CHUNK.min(self.buckets - bucket);
            for _ in 0..len / 16 {
                reach.step()?;
            }
            let control = reach.read(self.control.wrapping_add(bucket), len)?;
            let full = control
                .iter()
                .zip(bucket..)
                .filter(|(c, _)| **c & VACANT == 0);
            for (_, bucket) in full {
                found += 1;
                if found > from && !each(self.element(bucket)) {
                    return Ok(());
                }
            }
            bucket += len;
        }
        if found != self.len {
            return Err(miscounted(found, self.len));
        }
        Ok(())
    }
}

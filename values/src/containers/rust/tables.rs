//! Iterators over hash maps and sets: what hashbrown's walk over the control bytes has yet to return.

use crate::containers::content::Content;
use crate::containers::items::{Each, Element, Items, Visit};
use crate::containers::rust::{Found, element_type};
use crate::containers::typed_place::{Reach, Slot, TypedPlace, size};
use debuginfo::Unknown;

/// Control bytes that are read together: those of an SSE2 register.
const GROUP: u64 = 16;
/// The bit of a control byte that marks an empty or deleted bucket.
const VACANT: u8 = 0x80;

/// The iterators: their paths, the member path to hashbrown's walk, and the part of an entry that they return.
const ITERATORS: [(&str, &[&str], Option<&str>); 11] = [
    ("map::Iter", &["base", "inner"], None),
    ("map::IterMut", &["base", "inner"], None),
    ("map::IntoIter", &["base", "inner", "iter"], None),
    ("map::Drain", &["base", "inner", "iter"], None),
    ("map::Keys", &["inner", "base", "inner"], Some("__0")),
    ("map::Values", &["inner", "base", "inner"], Some("__1")),
    ("map::ValuesMut", &["inner", "base", "inner"], Some("__1")),
    (
        "map::IntoKeys",
        &["inner", "base", "inner", "iter"],
        Some("__0"),
    ),
    (
        "map::IntoValues",
        &["inner", "base", "inner", "iter"],
        Some("__1"),
    ),
    (
        "set::Iter",
        &["base", "iter", "inner", "inner"],
        Some("__0"),
    ),
    (
        "set::IntoIter",
        &["base", "iter", "inner", "iter"],
        Some("__0"),
    ),
];

/// Recognises an iterator of `std::collections`.
pub(super) fn rest(spot: &TypedPlace, path: &str, reach: &Reach) -> Found {
    let name = path.strip_prefix("std::collections::hash::")?;
    let mut known = ITERATORS.iter();
    let (_, way, part) = known.find(|(known, ..)| *known == name)?;
    Some(items(spot, way, *part, reach).map(Content::Sequence))
}

fn items(
    spot: &TypedPlace,
    way: &[&str],
    part: Option<&str>,
    reach: &Reach,
) -> Result<Items, Unknown> {
    let raw = spot.path(way)?;
    let entry = element_type(&raw.ty)?;
    let size = size(&entry)?;
    if size == 0 {
        return Err(Unknown::because("entries without a size are not followed"));
    }
    let whole = Slot::whole(&entry);
    let range = raw.field("iter")?;
    let walk = Walk {
        part: part.map_or(Ok(whole.clone()), |part| whole.inner(part))?,
        size,
        full: range.field("current_group")?.innermost().number(reach)?,
        data: range.field("data")?.innermost().number(reach)?,
        control: range.field("next_ctrl")?.number(reach)?,
        len: raw.field("items")?.number(reach)?,
    };
    reach.fits(0, walk.len, size)?;
    Ok(Items::new(Some(walk.len), walk))
}

/// A walk that has begun. Entries lie before `data`, the first one last.
struct Walk {
    part: Slot,
    /// Size of an entry in bytes.
    size: u64,
    /// A bit for each full bucket of the current group that is still to come.
    full: u64,
    data: u64,
    /// The control bytes of the next group.
    control: u64,
    /// Entries still to come.
    len: u64,
}

impl Visit for Walk {
    fn visit(&self, reach: &Reach, from: u64, each: Each) -> Result<(), Unknown> {
        let Walk {
            mut full,
            mut data,
            mut control,
            ..
        } = *self;
        let mut found = 0;
        while found < self.len {
            if full == 0 {
                reach.step()?;
                let bytes = reach.read(control, GROUP)?;
                let bits = bytes.iter().zip(0..).filter(|(c, _)| **c & VACANT == 0);
                full = bits.map(|(_, bit)| 1u64 << bit).sum();
                data = data.wrapping_sub(GROUP * self.size);
                control = control.wrapping_add(GROUP);
                continue;
            }
            let index = u64::from(full.trailing_zeros());
            full &= full - 1;
            found += 1;
            let entry = data.wrapping_sub((index + 1).wrapping_mul(self.size));
            if found > from && !each(Element::of(self.part.at(entry))) {
                return Ok(());
            }
        }
        Ok(())
    }
}

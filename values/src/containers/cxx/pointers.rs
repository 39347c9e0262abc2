//! `unique_ptr`, `shared_ptr`, `weak_ptr`, atomic ones, and iterators that are plain pointers.

use crate::containers::content::{Content, Part};
use crate::containers::cxx::named_argument;
use crate::containers::cxx::wrappers::elements;
use crate::containers::typed_place::{Reach, TypedPlace, path_of};
use debuginfo::Unknown;
use debuginfo::types::Type;

/// The pointer as `get()` returns it, and its target if that can be read.
pub(super) fn pointing(
    label: &str,
    pointer: TypedPlace,
    alive: bool,
    reach: &Reach,
) -> Result<Content, Unknown> {
    let address = pointer.number(reach)?;
    let mut text = vec![Part::words(format!("{label} = {{get() = {address:#x}"))];
    let mut children = vec![("get()".to_owned(), pointer.clone())];
    let target = pointer.target(reach).ok();
    let target = target.filter(|t| alive && address != 0 && t.ty.size().is_some());
    if let Some(target) = target {
        text.push(Part::words(", *get() = "));
        text.push(Part::Value(target.clone()));
        children.push(("*get()".to_owned(), target));
    }
    text.push(Part::words("}"));
    Ok(Content::Parts { text, children })
}

pub(super) fn unique(spot: &TypedPlace, reach: &Reach) -> Result<Content, Unknown> {
    let holder = spot.field("_M_t")?;
    // The structure around the tuple came with movable deleters.
    let tuple = holder.find("_M_t").unwrap_or(holder);
    let unknown = || Unknown::because("its pointer is not where it was in known releases");
    let is_tuple = path_of(&tuple.ty) == "std::tuple";
    let pointer = elements(&tuple).into_iter().next().filter(|_| is_tuple);
    pointing("", pointer.ok_or_else(unknown)?, true, reach)
}

pub(super) fn shared(spot: &TypedPlace, weak: bool, reach: &Reach) -> Result<Content, Unknown> {
    let pointer = spot.field("_M_ptr")?;
    let counts = spot.path(&["_M_refcount", "_M_pi"])?;
    if counts.number(reach)? == 0 {
        return pointing(" (empty)", pointer, !weak, reach);
    }
    let counts = counts.target(reach)?;
    let uses = counts.field("_M_use_count")?;
    let count = uses.number(reach)?;
    let observers = counts.field("_M_weak_count")?.number(reach)?;
    counted(pointer, (uses, count), observers, reach)
}

/// A pointer whose target has `count` owners, and as many observers, where all owners together count as one.
pub(super) fn counted(
    pointer: TypedPlace,
    (uses, count): (TypedPlace, u64),
    observers: u64,
    reach: &Reach,
) -> Result<Content, Unknown> {
    let observers = observers.saturating_sub(u64::from(count > 0));
    let label = match count {
        0 => format!(" (expired, weak count {observers})"),
        _ => format!(" (use count {count}, weak count {observers})"),
    };
    let mut content = pointing(
        &label,
        pointer,
        count > 0 || reach.machine.is_symbolic(),
        reach,
    )?;
    if let Content::Parts { children, .. } = &mut content {
        let weak = TypedPlace::bytes(&uses.ty, &observers.to_le_bytes());
        children.push(("use count".to_owned(), uses));
        children.push(("weak count".to_owned(), weak));
    }
    Ok(content)
}

/// The `shared_ptr` or `weak_ptr` in an `atomic` of it: a thread that reads or changes it sets a bit of the pointer to the counts.
pub(super) fn atomic(
    atomic: &Type,
    holder: &TypedPlace,
    reach: &Reach,
) -> Result<Content, Unknown> {
    const LOCKED: u64 = 1;
    if reach.machine.is_symbolic() {
        return Err(Unknown::because("its pointer can be locked"));
    }
    let unknown = || Unknown::because(format!("the type in {} is not known", atomic.name()));
    let owner = named_argument(atomic, 0, reach).ok_or_else(unknown)?;
    let counts = holder.path(&["_M_refcount", "_M_val"])?.number(reach)?;
    if counts & LOCKED == 0 {
        let value = holder.cast(&owner);
        return Ok(Content::around(" = {", "value", value, "}"));
    }
    let words = [holder.field("_M_ptr")?.number(reach)?, counts & !LOCKED];
    let value = TypedPlace::bytes(&owner, &words.map(u64::to_le_bytes).concat());
    let before = " [locked, may be half changed] = {";
    Ok(Content::around(before, "value", value, "}"))
}

/// A pointer that is shown as its target.
pub(super) fn plain(spot: &TypedPlace, field: &str, reach: &Reach) -> Result<Content, Unknown> {
    let target = spot.field(field)?.target(reach)?;
    Ok(Content::around(" -> ", "*", target, ""))
}

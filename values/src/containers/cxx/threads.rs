//! What threads use: locks, their guards, condition variables, flags, threads.

use crate::containers::content::{Content, Part};
use crate::containers::pthread;
use crate::containers::typed_place::{Reach, TypedPlace};
use debuginfo::Unknown;

pub(super) fn mutex(spot: &TypedPlace, reach: &Reach) -> Result<Content, Unknown> {
    pthread::mutex(&spot.field("_M_mutex")?, reach)
}

pub(super) fn shared_mutex(spot: &TypedPlace, reach: &Reach) -> Result<Content, Unknown> {
    let inner = spot.find("_M_impl").unwrap_or_else(|| spot.clone());
    pthread::rwlock(&inner.field("_M_rwlock")?, reach)
}

pub(super) fn condition(spot: &TypedPlace, reach: &Reach) -> Result<Content, Unknown> {
    // A structure around it came later.
    let outer = spot.field("_M_cond")?;
    pthread::condition(&outer.find("_M_cond").unwrap_or(outer), reach)
}

/// A guard that holds a lock by reference.
pub(super) fn guard(spot: &TypedPlace, device: &str, reach: &Reach) -> Result<Content, Unknown> {
    let device = spot.field(device)?;
    let unknown = || Unknown::because("it does not refer to a lock");
    let ty = device.ty.strip().target().ok_or_else(unknown)?;
    let lock = TypedPlace::memory(&ty, device.number(reach)?);
    Ok(Content::around(" of ", "lock", lock, ""))
}

/// A guard that may have no lock, or not hold it.
pub(super) fn movable_guard(
    spot: &TypedPlace,
    (device, owns): (&str, &str),
    reach: &Reach,
) -> Result<Content, Unknown> {
    let (device, owns) = (spot.field(device)?, spot.field(owns)?);
    let mut text = vec![Part::words(" = {owns = "), Part::Value(owns.clone())];
    let mut children = vec![("owns".to_owned(), owns)];
    if device.number(reach)? != 0 {
        let lock = device.target(reach)?;
        text.extend([Part::words(", lock = "), Part::Value(lock.clone())]);
        children.push(("lock".to_owned(), lock));
    }
    text.push(Part::words("}"));
    Ok(Content::Parts { text, children })
}

pub(super) fn thread(spot: &TypedPlace, id: &[&str], reach: &Reach) -> Result<Content, Unknown> {
    let id = spot.path(id)?;
    match id.number(reach)? {
        0 => Ok(Content::words(" [no thread]")),
        _ => Ok(Content::around(" = {id = ", "id", id, "}")),
    }
}

pub(super) fn flag(spot: &TypedPlace) -> Result<Content, Unknown> {
    Ok(Content::around(" = {", "value", spot.field("_M_i")?, "}"))
}

//! `JoinHandle`: the name and number of the thread, and what it has returned.

use crate::containers::content::{Content, Part};
use crate::containers::rust::{Found, pointers};
use crate::containers::typed_place::{Reach, TypedPlace};
use debuginfo::Unknown;

/// Recognises the handle of a thread; `None` if its layout is unknown.
pub(super) fn handle(spot: &TypedPlace, reach: &Reach) -> Found {
    let inner = spot.find("__0")?;
    let (thread, packet) = (inner.find("thread")?, inner.find("packet")?);
    let arc = thread.find("inner")?;
    let arc = arc.find("pointer").unwrap_or(arc);
    Some(parts(&arc, &packet, reach))
}

fn parts(thread: &TypedPlace, packet: &TypedPlace, reach: &Reach) -> Result<Content, Unknown> {
    let about = pointers::target(thread, reach)?;
    let id = about.field("id")?.innermost();
    let result = pointers::target(packet, reach)?.path(&["result", "value"])?;
    let (variant, named) = about.field("name")?.variant(reach)?;
    let mut text = vec![Part::words("JoinHandle { ")];
    let mut children = Vec::new();
    if variant == "Some" {
        let name = named.path(&["__0", "inner"])?;
        text.extend([
            Part::words("name: "),
            Part::Value(name.clone()),
            Part::words(", "),
        ]);
        children.push(("name".to_owned(), name));
    }
    text.extend([Part::words("id: "), Part::Value(id.clone())]);
    text.extend([
        Part::words(", result: "),
        Part::Value(result.clone()),
        Part::words(" }"),
    ]);
    children.extend([("id".to_owned(), id), ("result".to_owned(), result)]);
    Ok(Content::Parts { text, children })
}

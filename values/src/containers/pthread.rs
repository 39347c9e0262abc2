//! Locks of glibc by their state: free, or held and by whom. The unions around them only reserve space.
//!
//! C++'s locks contain these. Their fields have the meaning of glibc since 2.25.

use crate::containers::content::{Content, Part};
use crate::containers::typed_place::{Reach, TypedPlace, path_of};
use debuginfo::Unknown;
use debuginfo::types::TypeKind;

type Found = Option<Result<(String, Content), Unknown>>;

/// Bits of `__wrefs` and `__readers` below the number.
const FLAG_BITS: u32 = 3;

/// Recognises a lock of C: returns its label and its contents.
pub(super) fn content(spot: &TypedPlace, reach: &Reach) -> Found {
    let spot = spot.cast(&spot.ty.strip());
    if spot.ty.kind() != TypeKind::Union {
        return None;
    }
    let data = spot.find("__data")?;
    let (name, content) = match path_of(&data.ty).as_str() {
        "__pthread_mutex_s" => ("pthread_mutex_t", mutex(&spot, reach)),
        "__pthread_rwlock_arch_t" => ("pthread_rwlock_t", rwlock(&spot, reach)),
        "__pthread_cond_s" => ("pthread_cond_t", condition(&spot, reach)),
        _ => return None,
    };
    Some(content.map(|content| (name.to_owned(), content)))
}

/// Words and the fields that they describe.
struct Line {
    text: Vec<Part>,
    children: Vec<(String, TypedPlace)>,
}

impl Line {
    fn begin(words: &str) -> Line {
        Line {
            text: vec![Part::words(format!(" = {{{words}"))],
            children: Vec::new(),
        }
    }

    fn with(mut self, name: &str, value: TypedPlace) -> Line {
        self.text.push(Part::words(format!(", {name} = ")));
        self.text.push(Part::Value(value.clone()));
        self.children.push((name.to_owned(), value));
        self
    }

    fn with_number(mut self, name: &str, number: u64) -> Line {
        self.text.push(Part::words(format!(", {name} = {number}")));
        self
    }

    fn end(mut self) -> Content {
        self.text.push(Part::words("}"));
        Content::Parts {
            text: self.text,
            children: self.children,
        }
    }
}

/// A `pthread_mutex_t`.
pub(super) fn mutex(spot: &TypedPlace, reach: &Reach) -> Result<Content, Unknown> {
    /// The bits of its kind that say what the owner may do.
    const TYPE: u64 = 3;
    const RECURSIVE: u64 = 1;
    let data = spot.field("__data")?;
    let (kind, owner) = (data.field("__kind")?, data.field("__owner")?);
    if data.field("__lock")?.number(reach)? == 0 {
        return Ok(Line::begin("locked = false").end());
    }
    let mut line = Line::begin("locked = true");
    // It is locked before the owner is known, and an elided lock has none.
    if owner.number(reach)? != 0 {
        line = line.with("owner", owner);
    }
    if kind.number(reach)? & TYPE == RECURSIVE {
        line = line.with("count", data.field("__count")?);
    }
    Ok(line.end())
}

/// A `pthread_rwlock_t`.
pub(super) fn rwlock(spot: &TypedPlace, reach: &Reach) -> Result<Content, Unknown> {
    let data = spot.field("__data")?;
    let writer = data.field("__cur_writer")?;
    let readers = data.field("__readers")?.number(reach)? >> FLAG_BITS;
    Ok(match (writer.number(reach)?, readers) {
        (0, 0) => Line::begin("locked = false").end(),
        (0, readers) => Line::begin("locked = true")
            .with_number("readers", readers)
            .end(),
        _ => Line::begin("locked = true").with("writer", writer).end(),
    })
}

/// A `pthread_cond_t`.
pub(super) fn condition(spot: &TypedPlace, reach: &Reach) -> Result<Content, Unknown> {
    let waiters = spot.path(&["__data", "__wrefs"])?;
    let waiters = waiters.number(reach)? >> FLAG_BITS;
    Ok(Content::words(format!(" = {{waiters = {waiters}}}")))
}

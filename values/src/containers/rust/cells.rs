//! Thin wrappers of Rust: cells, locks, atomics, ranges, durations.

use std::time::Duration;

use crate::containers::content::{Content, Part};
use crate::containers::rust::pointers::behind;
use crate::containers::rust::{Found, transparent};
use crate::containers::typed_place::{Reach, TypedPlace, argument};
use debuginfo::Unknown;

/// Recognises one by its path.
pub(super) fn content(spot: &TypedPlace, path: &str, reach: &Reach) -> Found {
    let last = path.rsplit("::").next().unwrap_or_default();
    let content = match path {
        "core::cell::Cell" => cell(spot),
        "core::cell::RefCell" => ref_cell(spot, reach),
        "core::cell::UnsafeCell" => spot.field("value").map(transparent),
        "core::cell::Ref" | "core::cell::RefMut" => guarded(spot, "value", reach),
        "core::cell::once::OnceCell" => once_cell(spot, reach),
        "std::sync::once_lock::OnceLock" => once(spot, "value", last, reach),
        "std::sync::lazy_lock::LazyLock" => once(spot, "data", last, reach),
        "std::sync::poison::mutex::Mutex"
        | "std::sync::mutex::Mutex"
        | "std::sync::poison::rwlock::RwLock"
        | "std::sync::rwlock::RwLock" => lock(spot, last, reach),
        "std::sync::poison::mutex::MutexGuard"
        | "std::sync::mutex::MutexGuard"
        | "std::sync::poison::rwlock::RwLockWriteGuard"
        | "std::sync::rwlock::RwLockWriteGuard" => guard(spot, reach),
        "std::sync::poison::rwlock::RwLockReadGuard" | "std::sync::rwlock::RwLockReadGuard" => {
            guarded(spot, "data", reach)
        }
        "std::sync::nonpoison::mutex::Mutex" | "std::sync::nonpoison::rwlock::RwLock" => {
            plain_lock(spot, last, reach)
        }
        "std::sync::poison::condvar::Condvar"
        | "std::sync::nonpoison::condvar::Condvar"
        | "std::sync::condvar::Condvar"
        | "std::sync::mpsc::Sender"
        | "std::sync::mpsc::SyncSender"
        | "std::sync::mpsc::Receiver" => Ok(Content::words(format!("{last} {{ .. }}"))),
        "std::sync::barrier::Barrier" => barrier(spot),
        "std::sync::once::Once" | "std::sync::poison::once::Once" => once_state(spot, reach),
        "std::time::Instant" | "std::time::SystemTime" => timespec(spot, last),
        "core::num::nonzero::NonZero" => Ok(transparent(spot.innermost())),
        "core::num::wrapping::Wrapping" | "core::num::saturating::Saturating" => {
            spot.field("__0").map(transparent)
        }
        "core::ptr::non_null::NonNull" => spot.field("pointer").map(transparent),
        "core::pin::Pin" => spot.any_field(&["__pointer", "pointer"]).map(transparent),
        "core::time::Duration" => duration(spot, reach),
        "core::ops::range::Range" => range(spot, "..", true),
        "core::ops::range::RangeInclusive" => range(spot, "..=", true),
        "core::ops::range::RangeFrom" => range(spot, "..", false),
        "core::ops::range::RangeTo" => before("..", spot),
        "core::ops::range::RangeToInclusive" => before("..=", spot),
        "alloc::borrow::Cow" => cow(spot, reach),
        _ if path.starts_with("core::sync::atomic::Atomic") => atomic(spot, last, reach),
        _ => return None,
    };
    Some(content)
}

fn cell(spot: &TypedPlace) -> Result<Content, Unknown> {
    let value = spot.path(&["value", "value"])?;
    Ok(Content::around("Cell { value: ", "value", value, " }"))
}

fn ref_cell(spot: &TypedPlace, reach: &Reach) -> Result<Content, Unknown> {
    let borrow = spot.field("borrow")?.innermost();
    let value = spot.path(&["value", "value"])?;
    let mut text = vec![Part::words("RefCell { value: "), Part::Value(value.clone())];
    if borrow.number(reach)? != 0 {
        text.extend([Part::words(", borrow: "), Part::Value(borrow.clone())]);
    }
    text.push(Part::words(" }"));
    let children = vec![("value".to_owned(), value), ("borrow".to_owned(), borrow)];
    Ok(Content::Parts { text, children })
}

fn once_cell(spot: &TypedPlace, reach: &Reach) -> Result<Content, Unknown> {
    let inner = spot.path(&["inner", "value"])?;
    let (name, live) = inner.variant(reach)?;
    Ok(match name.as_str() {
        "Some" => Content::around("OnceCell(", "value", live.field("__0")?, ")"),
        _ => Content::words("OnceCell(<uninit>)"),
    })
}

/// A value that exists once its `Once` is complete.
fn once(spot: &TypedPlace, field: &str, name: &str, reach: &Reach) -> Result<Content, Unknown> {
    if !is_complete(&spot.field("once")?, reach)? {
        return Ok(Content::words(format!("{name}(<uninit>)")));
    }
    let value = spot.field(field)?.cast(&argument(&spot.ty, 0)?);
    Ok(Content::around(&format!("{name}("), "value", value, ")"))
}

/// Returns whether a `Once` has run.
fn is_complete(once: &TypedPlace, reach: &Reach) -> Result<bool, Unknown> {
    let state = once.field("inner")?;
    // Older releases number the states upwards, from incomplete to complete.
    Ok(match state.find("state_and_queued") {
        Some(state) => state.number(reach)? & 3 == 0,
        None => state.field("state")?.number(reach)? == 4,
    })
}

fn once_state(spot: &TypedPlace, reach: &Reach) -> Result<Content, Unknown> {
    let is_complete = is_complete(spot, reach)?;
    Ok(Content::words(format!(
        "Once {{ completed: {is_complete}, .. }}"
    )))
}

fn barrier(spot: &TypedPlace) -> Result<Content, Unknown> {
    let count = spot.path(&["lock", "data", "value", "count"])?;
    let all = spot.field("num_threads")?;
    Ok(Content::Parts {
        text: vec![
            Part::words("Barrier { count: "),
            Part::Value(count.clone()),
            Part::words(", num_threads: "),
            Part::Value(all.clone()),
            Part::words(", .. }"),
        ],
        children: vec![("count".to_owned(), count), ("num_threads".to_owned(), all)],
    })
}

/// A moment, as a number of seconds and one of nanoseconds.
fn timespec(spot: &TypedPlace, name: &str) -> Result<Content, Unknown> {
    let time = spot.path(&["__0", "t"])?;
    let (seconds, nanos) = (time.field("tv_sec")?, time.field("tv_nsec")?.innermost());
    Ok(Content::Parts {
        text: vec![
            Part::words(format!("{name} {{ tv_sec: ")),
            Part::Value(seconds.clone()),
            Part::words(", tv_nsec: "),
            Part::Value(nanos.clone()),
            Part::words(" }"),
        ],
        children: vec![
            ("tv_sec".to_owned(), seconds),
            ("tv_nsec".to_owned(), nanos),
        ],
    })
}

/// A lock that a panic does not poison.
fn plain_lock(spot: &TypedPlace, name: &str, reach: &Reach) -> Result<Content, Unknown> {
    let value = spot.path(&["data", "value"])?;
    let locked = if is_locked(spot, reach)? {
        ", locked: true"
    } else {
        ""
    };
    let before = format!("{name} {{ data: ");
    Ok(Content::around(
        &before,
        "data",
        value,
        &format!("{locked}, .. }}"),
    ))
}

/// The first word of either lock is its state; it is not zero while the lock is held.
fn is_locked(spot: &TypedPlace, reach: &Reach) -> Result<bool, Unknown> {
    let state = spot.field("inner")?.any_field(&["futex", "state"]);
    Ok(state.and_then(|s| s.number(reach)).unwrap_or(0) != 0)
}

fn lock(spot: &TypedPlace, name: &str, reach: &Reach) -> Result<Content, Unknown> {
    let value = spot.path(&["data", "value"])?;
    let poisoned = spot.field("poison")?.number(reach)? != 0;
    let locked = if is_locked(spot, reach)? {
        ", locked: true"
    } else {
        ""
    };
    let after = format!("{locked}, poisoned: {poisoned}, .. }}");
    let before = format!("{name} {{ data: ");
    Ok(Content::around(&before, "data", value, &after))
}

/// The value guarded by the lock that `lock` points to.
fn guard(spot: &TypedPlace, reach: &Reach) -> Result<Content, Unknown> {
    let lock = behind(&spot.field("lock")?, reach)?;
    Ok(transparent(lock.path(&["data", "value"])?))
}

/// The target of the pointer in `field`.
fn guarded(spot: &TypedPlace, field: &str, reach: &Reach) -> Result<Content, Unknown> {
    Ok(transparent(behind(&spot.field(field)?, reach)?))
}

fn duration(spot: &TypedPlace, reach: &Reach) -> Result<Content, Unknown> {
    let seconds = spot.field("secs")?.number(reach)?;
    let nanos = spot.field("nanos")?.number(reach)?;
    let nanos = u32::try_from(nanos).ok().filter(|n| *n < 1_000_000_000);
    let nanos = nanos.ok_or_else(|| Unknown::corrupt("a second has fewer nanoseconds"))?;
    Ok(Content::words(format!(
        "{:?}",
        Duration::new(seconds, nanos)
    )))
}

fn range(spot: &TypedPlace, dots: &str, has_end: bool) -> Result<Content, Unknown> {
    let start = spot.field("start")?;
    let mut text = vec![Part::Value(start.clone()), Part::words(dots)];
    let mut children = vec![("start".to_owned(), start)];
    if has_end {
        let end = spot.field("end")?;
        text.push(Part::Value(end.clone()));
        children.push(("end".to_owned(), end));
    }
    Ok(Content::Parts { text, children })
}

fn before(dots: &str, spot: &TypedPlace) -> Result<Content, Unknown> {
    Ok(Content::around(dots, "end", spot.field("end")?, ""))
}

fn cow(spot: &TypedPlace, reach: &Reach) -> Result<Content, Unknown> {
    let (_, live) = spot.variant(reach)?;
    Ok(transparent(live.field("__0")?))
}

fn atomic(spot: &TypedPlace, name: &str, reach: &Reach) -> Result<Content, Unknown> {
    let value = spot.field("v")?.innermost();
    let is_bool = name == "AtomicBool" || argument(&spot.ty, 0).is_ok_and(|t| t.name() == "bool");
    if !is_bool {
        return Ok(transparent(value));
    }
    let text = match value.number(reach)? {
        0 => "false",
        _ => "true",
    };
    Ok(Content::Parts {
        text: vec![Part::words(text)],
        children: vec![("value".to_owned(), value)],
    })
}

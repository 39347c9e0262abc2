//! Containers of Rust's std, libstdc++ and libc++ as users expect them: strings as text, vectors as their elements, maps by
//! key, smart pointers as their targets, locks as free or held.
//!
//! Layouts come from the debug information; the members that exist distinguish versions of a library. Damaged or
//! unfinished containers give an error: every walk is bounded and detects cycles, and no number from memory sizes an
//! allocation.

mod content;
mod cxx;
mod items;
mod line;
mod names;
mod presented;
mod pthread;
mod room;
mod rust;
mod text;
mod typed_place;

use std::ops::Range;
use std::sync::Arc;

use crate::containers::content::Content;
use crate::containers::items::Items;
use crate::containers::typed_place::{At, Reach, TypedPlace};
use crate::{RenderOptions, render_with};
use debuginfo::location::ValuePlace;
use debuginfo::types::{Language, Type};
use debuginfo::value::trail::{APART, Piece, Trail};
use debuginfo::value::{Look, Value, inside};
use debuginfo::{AddressSpace, Cause, Certainty, Machine, Register, Unknown};

pub use line::{Limits, Show};
pub(crate) use presented::printers;
pub use room::{Room, room};

/// The key of a lookup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    /// An integer: an index into a sequence, or a key.
    Integer(i128),
    /// A text: a string key, or a key as displayed, such as `RED` or `(1, 2)`.
    Text(String),
}

/// A part of a container.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The key, in a map.
    pub key: Option<Value>,
    /// Its name below the container: `[3]`, `["key"]`, `value`, `strong`.
    pub name: String,
    /// The element.
    pub value: Value,
}

/// The first parts of a container.
#[derive(Debug, Clone)]
pub struct Entries {
    /// The parts that were found.
    pub list: Vec<Entry>,
    /// The container has more than the limit.
    pub more: bool,
    /// Why there are no more, if the rest of the container is damaged or unknown.
    pub error: Option<Unknown>,
}

/// Parts that were seen at different moments need not be consistent: that is not damage.
fn mixed(why: Unknown, certainty: Certainty) -> Unknown {
    match certainty {
        Certainty::Stale { .. } if why.cause == Cause::Corrupt => Unknown::because(APART),
        _ => why,
    }
}

/// A value that is not shown as its members.
pub struct Container {
    /// The label before the contents: `std::vector`; empty in Rust.
    label: String,
    language: Language,
    content: Content,
    /// The certainty of the reads that led to it.
    certainty: Certainty,
    /// The reads that led to it.
    trail: Trail,
    /// The addresses of the object itself; empty if it is not in memory.
    own: Range<u64>,
}

impl Container {
    /// Recognises a container by its type; `None` for all other values.
    ///
    /// # Errors
    /// It is a container, but unknown, damaged or of an unknown release.
    #[must_use]
    pub fn of(value: &Value, look: &Look<'_>) -> Option<Result<Container, Unknown>> {
        if value.is_apart() {
            let is_one = Container::is_type(&value.ty);
            return is_one.then(|| Err(Unknown::because(APART)));
        }
        let reach = Reach::new(look.machine, look.space);
        let spot = spot(value);
        let led_by = match spot.at {
            // What is read of pieces counts as it is read: the whole is not known.
            At::Memory(_) | At::Pieces(..) => value.reached,
            At::Bytes(..) | At::Nowhere(_) => {
                // No earlier read can contradict this one.
                let _ = reach.led_by(Piece::elsewhere(value.certainty));
                value.certainty
            }
        };
        let found = recognise(&spot, &reach)?;
        let certainty = led_by.and(reach.certainty());
        let trail = reach.into_trail();
        let start = value.address().unwrap_or(0);
        let own = start..start.saturating_add(value.ty.size().unwrap_or(0));
        let found = found.map(|(label, language, content)| Container {
            label,
            language,
            content,
            certainty,
            trail,
            own,
        });
        Some(found.map_err(|why| mixed(why, certainty)))
    }

    /// Returns whether values of `ty` are containers.
    #[must_use]
    pub fn is_type(ty: &Type) -> bool {
        let space = AddressSpace::default();
        let reach = Reach::new(&Nothing, &space);
        let spot = TypedPlace {
            ty: ty.clone(),
            at: At::Nowhere(nothing()),
        };
        recognise(&spot, &reach).is_some()
    }

    fn reach<'a>(&self, machine: &'a dyn Machine, space: &'a AddressSpace) -> Reach<'a> {
        Reach::along(self.trail.clone(), machine, space)
    }

    fn items(&self) -> Option<&Items> {
        match &self.content {
            Content::Sequence(items)
            | Content::Set(items)
            | Content::Map(items)
            | Content::Bits(items) => Some(items),
            Content::Text(_) | Content::Parts { .. } => None,
        }
    }

    /// Returns the address of its text or of its elements, if they are contiguous in memory.
    #[must_use]
    pub fn start(&self) -> Option<u64> {
        match &self.content {
            Content::Text(text) => text.start.address().ok(),
            _ => self.items()?.visit.start(),
        }
    }

    /// Returns whether it is a string with a NUL after its text.
    #[must_use]
    pub fn is_terminated(&self) -> bool {
        match &self.content {
            Content::Text(text) => matches!(text.form, text::Form::Cpp { unit: 1, .. }),
            _ => false,
        }
    }

    /// Returns whether elements are found by index.
    #[must_use]
    pub fn is_numbered(&self) -> bool {
        matches!(
            self.content,
            Content::Sequence(_) | Content::Set(_) | Content::Bits(_)
        )
    }

    /// Returns the number of elements or, for a string, of its units; `None` for containers without elements, such as
    /// smart pointers.
    ///
    /// # Errors
    /// The count is not stored, and counting ended too early.
    #[must_use]
    pub fn len(&self, look: &Look<'_>) -> Option<Result<u64, Unknown>> {
        if let Content::Text(text) = &self.content {
            return Some(Ok(text.len));
        }
        Some(self.items()?.len(&self.reach(look.machine, look.space)))
    }

    /// Returns whether elements are found by key: [`Container::lookup`] takes a key, not an index.
    #[must_use]
    pub fn is_keyed(&self) -> bool {
        matches!(self.content, Content::Set(_) | Content::Map(_))
    }

    /// Returns the string of the container: its first bytes, at most `max`, and whether these are all.
    #[must_use]
    pub fn text(&self, look: &Look<'_>, max: u64) -> Option<Result<(Vec<u8>, bool), Unknown>> {
        let Content::Text(text) = &self.content else {
            return None;
        };
        Some(text.read(&self.reach(look.machine, look.space), max))
    }

    /// Returns element `index`, counted from 0 in the container's order; for a string a unit.
    ///
    /// # Errors
    /// There are fewer, or the elements before it cannot be followed.
    pub fn at(&self, index: u64, look: &Look<'_>) -> Result<Value, Unknown> {
        let reach = self.reach(look.machine, look.space);
        if let Content::Text(text) = &self.content {
            let outside = || beyond(index, text.len);
            return text
                .unit_at(index)
                .map(|s| self.alone(&s, &reach))
                .ok_or_else(outside);
        }
        let unknown = || Unknown::because("it has no elements");
        let items = self.items().ok_or_else(unknown)?;
        if let Some(len) = items.len.filter(|len| index >= *len) {
            return Err(beyond(index, len));
        }
        let mut found = None;
        items.visit.visit(&reach, index, &mut |element| {
            found = Some(element.value);
            false
        })?;
        match found {
            Some(spot) => Ok(self.alone(&spot, &reach)),
            None => Err(beyond(index, items.len(&reach)?)),
        }
    }

    /// Looks up `key`: returns the value in a map, the element in a set, the element
    /// with that index in a sequence, and otherwise the part of that name.
    ///
    /// # Errors
    /// It does not exist, or cannot be found.
    pub fn lookup(&self, key: &Key, look: &Look<'_>) -> Result<Value, Unknown> {
        match (&self.content, key) {
            (Content::Set(items) | Content::Map(items), _) => self.search(items, key, look),
            (Content::Parts { children, .. }, Key::Text(name)) => {
                let reach = self.reach(look.machine, look.space);
                let named = children.iter().find(|(own, _)| own == name);
                let none = || Unknown::because(format!("it has no part {name}"));
                named
                    .map(|(_, spot)| self.part(spot, &reach))
                    .ok_or_else(none)
            }
            (_, Key::Integer(index)) => {
                let outside = || Unknown::because(format!("there is no element {index}"));
                let index = u64::try_from(*index).map_err(|_| outside())?;
                self.at(index, look)
            }
            (_, Key::Text(_)) => Err(Unknown::because("its elements have numbers")),
        }
    }

    fn search(&self, items: &Items, key: &Key, look: &Look<'_>) -> Result<Value, Unknown> {
        let reach = self.reach(look.machine, look.space);
        let (mut found, mut is_apart) = (None, false);
        items.visit.visit(&reach, 0, &mut |element| {
            let own = element.key.as_ref().unwrap_or(&element.value);
            let own = self.alone(own, &reach);
            is_apart |= own.is_apart();
            let matches = is_key(&own, key, look);
            if matches {
                found = Some(element.value);
            }
            !matches
        })?;
        let none = || match key {
            _ if is_apart => Unknown::because(APART),
            Key::Integer(number) => Unknown::because(format!("there is no key {number}")),
            Key::Text(text) => Unknown::because(format!("there is no key {text:?}")),
        };
        found.map(|spot| self.alone(&spot, &reach)).ok_or_else(none)
    }

    /// Returns the first parts, at most `max`: elements with their keys and names, or named parts. Strings have none.
    #[must_use]
    pub fn entries(&self, max: usize, look: &Look<'_>) -> Entries {
        let reach = self.reach(look.machine, look.space);
        let mut entries = Entries {
            list: Vec::new(),
            more: false,
            error: None,
        };
        if let Content::Parts { children, .. } = &self.content {
            let part = |(name, spot): &(String, TypedPlace)| Entry {
                key: None,
                name: name.clone(),
                value: self.part(spot, &reach),
            };
            entries.list = children.iter().take(max).map(part).collect();
            entries.more = children.len() > max;
        }
        let Some(items) = self.items() else {
            return entries;
        };
        let walked = items.visit.visit(&reach, 0, &mut |element| {
            if entries.list.len() >= max {
                entries.more = true;
                return false;
            }
            let key = element.key.map(|spot| self.element(&spot, &reach));
            let name = match &key {
                Some(key) => format!("[{}]", written(key, look)),
                None => format!("[{}]", entries.list.len()),
            };
            entries.list.push(Entry {
                key,
                name,
                value: self.element(&element.value, &reach),
            });
            true
        });
        entries.error = walked.err().map(|why| self.mixed(why, &reach));
        entries
    }

    fn mixed(&self, why: Unknown, reach: &Reach) -> Unknown {
        mixed(why, self.certainty.and(reach.certainty()))
    }

    fn value(&self, spot: &TypedPlace, reach: &Reach) -> Value {
        read(spot, reach).reached_by(self.certainty.and(reach.certainty()))
    }

    /// A named part. A part in the object itself, as in an optional or a variant, is unknown if it was seen when the
    /// object was another; the target of a pointer is what was seen there.
    fn part(&self, spot: &TypedPlace, reach: &Reach) -> Value {
        match spot.at {
            At::Memory(address) if self.own.contains(&address) => self.alone(spot, reach),
            _ => self.value(spot, reach),
        }
    }

    /// A single element: unknown if it was seen when the container was another.
    fn alone(&self, spot: &TypedPlace, reach: &Reach) -> Value {
        self.checked(spot, reach, &|seen| reach.ends_at(seen))
    }

    /// One of several elements: those before it must have been the same when it was seen.
    fn element(&self, spot: &TypedPlace, reach: &Reach) -> Value {
        self.checked(spot, reach, &|seen| reach.led_by(*seen))
    }

    fn checked(
        &self,
        spot: &TypedPlace,
        reach: &Reach,
        check: &dyn Fn(&Piece) -> Result<(), Unknown>,
    ) -> Value {
        let mut value = read(spot, reach);
        if let (At::Memory(address), Ok(bytes)) = (&spot.at, &value.bytes) {
            let len = bytes.len() as u64;
            let seen = Piece::just_read(*address, len, value.certainty, reach.machine);
            if let Err(why) = check(&seen) {
                // Some of its members may be as new as the data that leads here.
                value.bytes = Err(why);
                value.certainty = Certainty::Known;
            }
        }
        value.reached_by(self.certainty.and(reach.certainty()))
    }
}

fn read(spot: &TypedPlace, reach: &Reach) -> Value {
    match &spot.at {
        At::Memory(address) => Value::at(spot.ty.clone(), *address, reach.machine),
        At::Bytes(bytes, start) => {
            let size = spot.ty.size().and_then(|s| usize::try_from(s).ok());
            let end = size.and_then(|size| start.checked_add(size));
            match end.and_then(|end| bytes.get(*start..end)) {
                Some(bytes) => Value::constant(spot.ty.clone(), bytes.to_vec()),
                None => Value::unknown(spot.ty.clone(), nothing()),
            }
        }
        At::Pieces(whole, start) => inside::part(whole, &spot.ty, *start, &reach.look()),
        At::Nowhere(why) => Value::unknown(spot.ty.clone(), why.clone()),
    }
}

fn beyond(index: u64, len: u64) -> Unknown {
    Unknown::because(format!("there is no element {index}")).with_hint(format!("there are {len}"))
}

/// A key as it is shown.
fn written(key: &Value, look: &Look<'_>) -> String {
    render_with(key, &RenderOptions::default(), look)
}

fn is_key(value: &Value, key: &Key, look: &Look<'_>) -> bool {
    match key {
        Key::Integer(number) => value.as_integer().is_ok_and(|own| own == *number),
        Key::Text(text) => {
            let container = Container::of(value, look).and_then(Result::ok);
            let longest = text.len() as u64 + 1;
            match container.and_then(|c| c.text(look, longest)) {
                Some(Ok((own, whole))) => whole && own == text.as_bytes(),
                Some(Err(_)) => false,
                None => written(value, look) == *text,
            }
        }
    }
}

/// The location of a value.
fn spot(value: &Value) -> TypedPlace {
    let at = match (&value.place, &value.bytes) {
        (ValuePlace::Memory(address), _) if value.bits.is_none() => At::Memory(*address),
        (_, Ok(bytes)) => At::Bytes(Arc::from(bytes.as_slice()), 0),
        (ValuePlace::Pieces(_), Err(_)) if value.bits.is_none() => {
            At::Pieces(Arc::new(value.clone()), 0)
        }
        (_, Err(why)) => At::Nowhere(why.clone()),
    };
    TypedPlace {
        ty: value.ty.clone(),
        at,
    }
}

type Recognised = Result<(String, Language, Content), Unknown>;

fn recognise(spot: &TypedPlace, reach: &Reach) -> Option<Recognised> {
    let language = spot.ty.strip().language();
    let found = match language {
        Language::Rust => rust::content(spot, reach)?.map(|content| (String::new(), content)),
        Language::Cpp => match pthread::content(spot, reach) {
            Some(found) => found,
            None => cxx::content(spot, reach)?,
        },
        Language::C => pthread::content(spot, reach)?,
        Language::Fortran | Language::Ada | Language::Other => return None,
    };
    Some(found.map(|(label, content)| (label, language, content)))
}

fn nothing() -> Unknown {
    Unknown::because("there is no value")
}

/// A machine that knows nothing, for questions that concern only types.
struct Nothing;

impl Machine for Nothing {
    fn memory(&self, _: u64, _: &mut [u8]) -> Result<Certainty, Unknown> {
        Err(nothing())
    }

    fn register(&self, _: Register) -> Result<(u64, Certainty), Unknown> {
        Err(nothing())
    }

    fn vector(&self, _: Register) -> Result<([u8; 16], Certainty), Unknown> {
        Err(nothing())
    }
}

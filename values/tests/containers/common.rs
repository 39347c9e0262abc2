//! The members of the fixtures' structure, found as a debugger finds them.

use std::ops::Range;

use debuginfo::location::FrameContext;
use debuginfo::scope::global;
use debuginfo::types::TypeKind;
use debuginfo::value::{Look, Value};
use debuginfo::{Certainty, Machine, Register, Unknown};
use values::containers::Container;
use values::{RenderOptions, render_with};

use crate::snapshot::Snapshot;

/// More than any container of the fixtures has.
pub const ALL: usize = 10_000;

pub fn look(snapshot: &Snapshot) -> Look<'_> {
    Look {
        space: &snapshot.space,
        machine: snapshot,
    }
}

/// A snapshot without a part of memory, as in a recording.
pub struct Without<'s> {
    pub snapshot: &'s Snapshot,
    pub hidden: Range<u64>,
}

impl Without<'_> {
    pub fn look(&self) -> Look<'_> {
        Look {
            space: &self.snapshot.space,
            machine: self,
        }
    }
}

impl Machine for Without<'_> {
    fn memory(&self, address: u64, bytes: &mut [u8]) -> Result<Certainty, Unknown> {
        let end = address.saturating_add(bytes.len() as u64);
        match address < self.hidden.end && self.hidden.start < end {
            true => Err(Unknown::because("it was not seen")),
            false => self.snapshot.memory(address, bytes),
        }
    }

    fn register(&self, register: Register) -> Result<(u64, Certainty), Unknown> {
        self.snapshot.register(register)
    }

    fn vector(&self, register: Register) -> Result<([u8; 16], Certainty), Unknown> {
        self.snapshot.vector(register)
    }
}

/// Iterators that need the hidden container to tell the end from an element show neither.
pub fn iterators_do_not_guess(snapshot: &Snapshot) {
    let look = look(snapshot);
    let member = |holder: &str, name: &str| {
        let value = behind(snapshot, holder).member(name, &look);
        value.expect("a member")
    };
    let shown = |name: &str, hidden: &Value| {
        let start = hidden.address().expect("it lies in memory");
        let size = hidden.ty.size().expect("a size");
        let without = Without {
            snapshot,
            hidden: start..start + size,
        };
        let value = member("iterators", name);
        let text = |options| render_with(&value, &options, &without.look());
        (
            text(RenderOptions::default()),
            text(RenderOptions::one_of_many()),
        )
    };
    let (map, list) = (
        member("everything", "map_many"),
        member("iterators", "list_odd"),
    );
    for (name, hidden) in [
        ("map_end", &map),
        ("map_reverse_first", &map),
        ("map_reverse_end", &map),
        ("list_last", &list),
        ("list_odd_end", &list),
        ("list_reverse", &list),
    ] {
        let (line, short) = shown(name, hidden);
        // Members are shown only where all of the value was asked for.
        assert_eq!(short, "<unknown: it was not seen>", "{name}");
        assert!(
            line.starts_with("<unknown: it was not seen> {"),
            "{name}: {line}"
        );
    }
    // An element that is not next to the header is known without it.
    let (line, _) = shown("map_names", &map);
    assert_eq!(line, "iterator -> {first = \"three\", second = 3}");
    let (line, _) = shown("map_last", &list);
    assert!(line.starts_with("iterator -> {first = "), "{line}");
}

/// What the global pointer `name` points to.
pub fn behind(snapshot: &Snapshot, name: &str) -> Value {
    let site = FrameContext::outside(&snapshot.space, snapshot);
    let variable = global(&site, name).expect("the fixture has this variable");
    let pointer = variable.read(&site);
    pointer
        .deref(&look(snapshot))
        .expect("it points to something")
}

pub fn container(value: &Value, look: &Look<'_>) -> Container {
    let found = Container::of(value, look);
    let found = found.unwrap_or_else(|| panic!("{:?} is no container", value.ty));
    found.unwrap_or_else(|why| panic!("{}: {why}", value.ty.name()))
}

/// Only the container's contents: elements, or keys and values, between braces.
pub fn flat(value: &Value, look: &Look<'_>) -> String {
    let Some(found) = Container::of(value, look) else {
        return plain(value, look);
    };
    let container = found.unwrap_or_else(|why| panic!("{}: {why}", value.ty.name()));
    if let Some(text) = container.text(look, ALL as u64) {
        let (_, whole) = text.expect("a readable text");
        assert!(whole);
        let options = RenderOptions {
            max_string: ALL,
            ..RenderOptions::default()
        };
        return render_with(value, &options, look);
    }
    let entries = container.entries(ALL, look);
    assert_eq!(entries.error, None, "{}", value.ty.name());
    assert!(!entries.more);
    if let Some(len) = container.len(look) {
        assert_eq!(len, Ok(entries.list.len() as u64));
    }
    let mut inside = Vec::new();
    for entry in &entries.list {
        inside.extend(entry.key.as_ref().map(|key| flat(key, look)));
        inside.push(flat(&entry.value, look));
    }
    format!("{{{}}}", inside.join(", "))
}

fn plain(value: &Value, look: &Look<'_>) -> String {
    let ty = value.ty.strip();
    match ty.kind() {
        TypeKind::Struct | TypeKind::Class => {
            let members = ty.members();
            let names = members.iter().filter_map(|m| m.name.as_deref());
            let member = |name| value.member(name, look).expect("a member");
            let members: Vec<String> = names.map(|name| flat(&member(name), look)).collect();
            format!("{{{}}}", members.join(", "))
        }
        TypeKind::Pointer => format!("{:#x}", value.as_address().expect("a pointer")),
        TypeKind::Integer { .. } | TypeKind::Char { .. } => {
            value.as_integer().expect("an integer").to_string()
        }
        _ => render_with(value, &RenderOptions::default(), look),
    }
}

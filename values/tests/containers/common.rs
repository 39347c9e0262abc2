//! The members of the fixtures' structure, found as a debugger finds them.

use debuginfo::location::FrameContext;
use debuginfo::scope::global;
use debuginfo::types::TypeKind;
use debuginfo::value::{Look, Value};
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

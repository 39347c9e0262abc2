//! What an argument points to, as `--pointees` captures it: numbers, structures and arrays that the function cannot write. Others
//! may hold anything until it does.
//!
//! A value is compared in parts, each as an argument of its type is. Padding, bit fields, unions and variants are left out, and so
//! are the types of standard libraries, which hold hash keys and unused room, and those of the moment, such as times.

use debuginfo::types::MemberOffset;
use debuginfo::{Type, TypeKind};
use store::control::ValueKind;

use super::forms::Way;
use super::hash;
use super::origins::{Seen, is_descriptor_name};
use super::places::Places;
use super::targets::{is_character, is_surely_text};

/// Bytes of a value that are captured.
const CAPTURED: usize = 256;
/// Nesting of structures, at most.
const MAX_DEPTH: usize = 16;
/// Parts of a value, at most.
const MAX_PARTS: usize = 256;
/// Structures whose contents are those of the moment or the machine.
const OF_THE_MOMENT: [&str; 12] = [
    "dirent",
    "rusage",
    "sockaddr_in",
    "sockaddr_in6",
    "stat",
    "statvfs",
    "sysinfo",
    "timespec",
    "timeval",
    "timex",
    "tm",
    "tms",
];
/// The crates and namespaces of standard libraries.
const OF_LIBRARIES: [&str; 5] = ["std::", "core::", "alloc::", "hashbrown::", "__gnu_cxx::"];

/// A part of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    offset: usize,
    bytes: usize,
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Word(Way),
    Text,
}

/// Returns the parts of what a parameter of a type points to; none if it is not compared.
pub fn of_pointer(ty: &Type) -> Vec<Part> {
    let ty = ty.strip();
    let mut parts = Vec::new();
    let Some(target) = ty.target() else {
        return parts;
    };
    let name = ty.own_name().unwrap_or_default();
    // A Rust reference refers to a single value, which only `&mut` can change.
    let is_shared = name.starts_with('&') && !name.starts_with("&mut");
    let is_pointer = matches!(ty.kind(), TypeKind::Pointer | TypeKind::Reference);
    let is_text = ty.kind() == TypeKind::Pointer && !is_shared && is_character(&target.strip());
    if is_pointer && !is_text && (target.is_const() || is_shared) {
        add(&mut parts, (&target, ""), 0, MAX_DEPTH);
    }
    parts
}

fn add(to: &mut Vec<Part>, (ty, name): (&Type, &str), offset: usize, depth: usize) {
    let ty = ty.strip();
    let own_name = ty.own_name().unwrap_or_default();
    let is_left_out = OF_LIBRARIES.iter().any(|of| own_name.starts_with(of))
        || OF_THE_MOMENT.contains(&&*own_name);
    if depth == 0 || to.len() >= MAX_PARTS || offset >= CAPTURED || is_left_out {
        return;
    }
    let bytes = ty.size().unwrap_or(0) as usize;
    let kind = match ty.kind() {
        TypeKind::Struct | TypeKind::Class if ty.variants().is_none() => {
            for member in ty.definition().members() {
                if let (MemberOffset::Bytes(at), None) = (&member.offset, member.bits) {
                    let name = member.name.as_deref().unwrap_or_default();
                    let offset = offset.saturating_add(*at as usize);
                    add(to, (&member.ty, name), offset, depth - 1);
                }
            }
            return;
        }
        TypeKind::Array if ty.is_plain_array() => {
            elements(to, &ty, offset, depth - 1);
            return;
        }
        TypeKind::Integer { .. } if bytes == 4 && is_descriptor_name(name) => {
            let what = What::Word(Way::Descriptor);
            to.push(Part {
                offset,
                bytes,
                what,
            });
            return;
        }
        TypeKind::Bool => ValueKind::Bool,
        TypeKind::Pointer | TypeKind::Reference => ValueKind::Pointer,
        TypeKind::Integer { signed } | TypeKind::Char { signed } => ValueKind::Int {
            bytes: bytes as u8,
            signed,
        },
        TypeKind::Enum => ValueKind::Int {
            bytes: bytes as u8,
            signed: false,
        },
        TypeKind::Float => ValueKind::Float { bytes: bytes as u8 },
        _ => return,
    };
    let way = Way::of(&kind, bytes as u64);
    if let Some(way) = way.filter(|_| (1..=8).contains(&bytes)) {
        let what = What::Word(way);
        to.push(Part {
            offset,
            bytes,
            what,
        });
    }
}

fn elements(to: &mut Vec<Part>, array: &Type, offset: usize, depth: usize) {
    let (Some(element), Some(count)) = (array.element(), array.count()) else {
        return;
    };
    let Some(size) = element.size().filter(|size| *size > 0) else {
        return;
    };
    if is_character(&element.strip()) {
        to.push(Part {
            offset,
            bytes: count as usize,
            what: What::Text,
        });
        return;
    }
    for at in 0..count.min(CAPTURED as u64) {
        let offset = offset.saturating_add((at * size) as usize);
        add(to, (&element, ""), offset, depth);
    }
}

/// Hashes a captured value without what differs in each run. `normal` does so with a text.
pub fn hashed(
    parts: &[Part],
    bytes: &[u8],
    places: &Places,
    normal: impl Fn(&str) -> String,
) -> u64 {
    let form = |part: &Part| {
        let end = part.offset.saturating_add(part.bytes);
        match part.what {
            What::Word(way) => {
                let mut word = [0; 8];
                let own = bytes.get(part.offset..end)?;
                word.get_mut(..own.len())?.copy_from_slice(own);
                let form = way.form(u64::from_le_bytes(word), Seen::default(), places);
                Some(form.class)
            }
            What::Text => {
                let own = bytes.get(part.offset..end.min(bytes.len()))?;
                let text = own.split(|byte| *byte == 0).next()?;
                let text = str::from_utf8(text).ok().filter(|_| is_surely_text(text))?;
                Some(hash::of_bytes(normal(text).as_bytes()))
            }
        }
    };
    // What was not captured, or is no text, is the same as itself.
    let forms = parts.iter().map(|part| form(part).unwrap_or(0));
    forms.fold(parts.len() as u64, hash::fold)
}

//! What an argument points to, as `--pointees` captures it: numbers, structures and arrays that the function cannot write. Others
//! may hold anything until it does.
//!
//! A value is compared in parts. Padding, bit fields, unions and variants are left out, and so are the types of standard libraries,
//! which hold hash keys and unused room, and those of the moment, such as times.
//!
//! Except in Rust, programs leave members of structures without a value, and memory has parts of addresses and other chance there.
//! So of members only what hardly is chance counts: small numbers, fractions of usual sizes, texts, and where pointers lead.

use std::ops::Range;

use debuginfo::types::{Language, MemberOffset};
use debuginfo::{Type, TypeKind};
use store::control::ValueKind;

use super::forms::Way;
use super::hash;
use super::origins::Seen;
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

/// Integers below, and above its negative, hardly are parts of addresses.
const SMALL: u64 = 4096;
/// Fractions of usual sizes hardly are addresses.
const USUAL: Range<f64> = 1e-9..1e15;
/// Stands for a number that may be chance.
const ANY: u64 = 0x61_6e79;

/// A part of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    offset: usize,
    bytes: usize,
    what: What,
}

/// How a part is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// As an argument.
    Word(Way),
    /// An integer that may be chance.
    Integer,
    /// A fraction that may be chance.
    Fraction,
    /// Up to a NUL.
    Text,
}

/// Returns the parts of what a parameter of a type points to; none if it is not compared.
pub fn of_pointer(ty: &Type) -> Vec<Part> {
    let ty = ty.strip();
    let mut parts = Vec::new();
    let Some(target) = ty.target() else {
        return parts;
    };
    let value = target.strip();
    let name = ty.own_name().unwrap_or_default();
    // A Rust reference refers to a single value, which only `&mut` can change.
    let is_shared = ty.language() == Language::Rust && name.starts_with('&');
    let is_shared = is_shared && !name.starts_with("&mut");
    let is_pointer = matches!(ty.kind(), TypeKind::Pointer | TypeKind::Reference);
    let is_text = ty.kind() == TypeKind::Pointer && !is_shared && is_character(&value);
    if is_pointer && !is_text && (target.is_const() || is_shared) {
        let has_members = matches!(
            value.kind(),
            TypeKind::Struct | TypeKind::Class | TypeKind::Array
        );
        add(&mut parts, &value, 0, is_shared || !has_members, MAX_DEPTH);
    }
    parts
}

/// Adds the parts of a value at an offset. Surely set: the program gave each of them a value.
fn add(to: &mut Vec<Part>, ty: &Type, offset: usize, is_set: bool, depth: usize) {
    let ty = ty.strip();
    let name = ty.own_name().unwrap_or_default();
    let is_left_out = OF_LIBRARIES.iter().any(|of| name.starts_with(of))
        || OF_THE_MOMENT.contains(&name.as_str());
    if depth == 0 || to.len() >= MAX_PARTS || offset >= CAPTURED || is_left_out {
        return;
    }
    match ty.kind() {
        TypeKind::Struct | TypeKind::Class if ty.variants().is_none() => {
            for member in ty.definition().members() {
                if let (MemberOffset::Bytes(at), None) = (&member.offset, member.bits) {
                    let offset = offset.saturating_add(*at as usize);
                    add(to, &member.ty, offset, is_set, depth - 1);
                }
            }
        }
        TypeKind::Array if ty.is_plain_array() => elements(to, &ty, offset, is_set, depth - 1),
        _ => {
            let bytes = ty.size().unwrap_or(0) as usize;
            let what = if is_set {
                set(&ty, bytes)
            } else {
                likely(&ty, bytes)
            };
            to.extend(what.map(|what| Part {
                offset,
                bytes,
                what,
            }));
        }
    }
}

fn elements(to: &mut Vec<Part>, array: &Type, offset: usize, is_set: bool, depth: usize) {
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
        let offset = offset.saturating_add(at.saturating_mul(size) as usize);
        add(to, &element, offset, is_set, depth);
    }
}

/// Returns how a value is compared that the program has set.
fn set(ty: &Type, bytes: usize) -> Option<What> {
    let size = u8::try_from(bytes)
        .ok()
        .filter(|size| (1..=8).contains(size))?;
    let kind = match ty.kind() {
        TypeKind::Bool => ValueKind::Bool,
        TypeKind::Pointer | TypeKind::Reference => ValueKind::Pointer,
        TypeKind::Integer { signed } | TypeKind::Char { signed } => ValueKind::Int {
            bytes: size,
            signed,
        },
        TypeKind::Enum => ValueKind::Int {
            bytes: size,
            signed: false,
        },
        TypeKind::Float => ValueKind::Float { bytes: size },
        _ => return None,
    };
    Way::of(&kind, bytes as u64).map(What::Word)
}

/// Returns how a value is compared that the program may not have set.
fn likely(ty: &Type, bytes: usize) -> Option<What> {
    match (ty.kind(), bytes) {
        (TypeKind::Bool, 1) => Some(What::Word(Way::Bool)),
        (TypeKind::Pointer | TypeKind::Reference, 8) => Some(What::Word(Way::Pointer)),
        (TypeKind::Integer { .. } | TypeKind::Enum, 4 | 8) => Some(What::Integer),
        (TypeKind::Float, 8) => Some(What::Fraction),
        _ => None,
    }
}

/// Hashes a captured value without what differs in each run. `normal` does so with a text.
pub fn hashed(
    parts: &[Part],
    bytes: &[u8],
    places: &Places,
    normal: impl Fn(&str) -> String,
) -> u64 {
    let own_form = |part: &Part| {
        let end = part.offset.saturating_add(part.bytes);
        if part.what == What::Text {
            let own = bytes.get(part.offset..end.min(bytes.len()))?;
            let text = own.split(|byte| *byte == 0).next()?;
            let text = str::from_utf8(text).ok().filter(|_| is_surely_text(text))?;
            return Some(hash::of_bytes(normal(text).as_bytes()));
        }
        let own = bytes.get(part.offset..end)?;
        let mut word = [0; 8];
        word.get_mut(..own.len())?.copy_from_slice(own);
        Some(form(part.what, u64::from_le_bytes(word), own.len(), places))
    };
    // What was not captured, or is no text, is the same as itself.
    let forms = parts.iter().map(|part| own_form(part).unwrap_or(0));
    forms.fold(parts.len() as u64, hash::fold)
}

fn form(what: What, word: u64, bytes: usize, places: &Places) -> u64 {
    // Numbers of processes and times are others in each run.
    let is_plain = || places.of_integer(word, Seen::default()).class == word;
    let is_told = match what {
        What::Word(way) => return way.form(word, Seen::default(), places).class,
        What::Integer => {
            let number = if bytes == 4 {
                i64::from(word as u32 as i32)
            } else {
                word as i64
            };
            number.unsigned_abs() < SMALL
        }
        What::Fraction => {
            let fraction = f64::from_bits(word).abs();
            fraction == 0.0 || USUAL.contains(&fraction)
        }
        What::Text => false,
    };
    if is_told && is_plain() { word } else { ANY }
}

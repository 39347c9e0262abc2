//! Types that need no debug information: the base types of C and Rust for x86-64.

use std::sync::Arc;

use super::node::{Node, Shape};
use super::{Language, Type, TypeKind};

/// Returns the base type with this name: Rust's (`i32`, `usize`, but not the four-byte `char`) or C's, with its words
/// in any order (`unsigned long int`, `long unsigned`). Returns `None` for other names.
#[must_use]
pub fn builtin(name: &str) -> Option<Type> {
    if let Some((kind, size)) = rust(name) {
        return Some(made(name, kind, size, Language::Rust));
    }
    if name == "void" {
        return Some(void());
    }
    let (canonical, kind, size) = c(name)?;
    Some(made(canonical, kind, size, Language::C))
}

pub(super) fn void() -> Type {
    Type::new(None, Arc::new(Node::made(Shape::Void, None, None)))
}

fn made(name: &str, kind: TypeKind, size: u64, language: Language) -> Type {
    let mut node = Node::made(Shape::Base(kind), Some(name.to_owned()), Some(size));
    node.language = language;
    Type::new(None, Arc::new(node))
}

fn rust(name: &str) -> Option<(TypeKind, u64)> {
    let integer = |signed, size| Some((TypeKind::Integer { signed }, size));
    match name {
        "i8" => integer(true, 1),
        "i16" => integer(true, 2),
        "i32" => integer(true, 4),
        "i64" | "isize" => integer(true, 8),
        "i128" => integer(true, 16),
        "u8" => integer(false, 1),
        "u16" => integer(false, 2),
        "u32" => integer(false, 4),
        "u64" | "usize" => integer(false, 8),
        "u128" => integer(false, 16),
        "f32" => Some((TypeKind::Float, 4)),
        "f64" => Some((TypeKind::Float, 8)),
        _ => None,
    }
}

/// Integer names from C's headers.
fn alias(name: &str) -> Option<&'static str> {
    Some(match name {
        "int8_t" => "signed char",
        "int16_t" => "short",
        "int32_t" => "int",
        "int64_t" | "ssize_t" | "intptr_t" | "ptrdiff_t" => "long",
        "uint8_t" => "unsigned char",
        "uint16_t" => "unsigned short",
        "uint32_t" => "unsigned int",
        "uint64_t" | "size_t" | "uintptr_t" => "unsigned long",
        _ => return None,
    })
}

/// Returns the usual name, the kind and the size of the C base type with these words.
fn c(text: &str) -> Option<(&'static str, TypeKind, u64)> {
    let text = alias(text).unwrap_or(text);
    let (mut signed, mut unsigned, mut short, mut long) = (0, 0, 0, 0);
    let mut base = None;
    for word in text.split_whitespace() {
        match word {
            "signed" => signed += 1,
            "unsigned" => unsigned += 1,
            "short" => short += 1,
            "long" => long += 1,
            "char" | "int" | "float" | "double" | "_Float128" | "__float128" | "_Bool" | "bool"
            | "__int128" | "wchar_t" | "char8_t" | "char16_t" | "char32_t"
                if base.is_none() =>
            {
                base = Some(word);
            }
            _ => return None,
        }
    }
    if signed + unsigned > 1 || short > 1 || long > 2 || short + long > 2 || short * long > 0 {
        return None;
    }
    let plain = signed + unsigned + short + long == 0;
    let is_unsigned = unsigned == 1;
    let integer = |name, other, size| {
        let name = if is_unsigned { other } else { name };
        let kind = TypeKind::Integer {
            signed: !is_unsigned,
        };
        Some((name, kind, size))
    };
    match base {
        Some("char") if short + long == 0 => match (signed, unsigned) {
            (0, 0) => Some(("char", TypeKind::Char { signed: true }, 1)),
            (_, 1) => Some(("unsigned char", TypeKind::Char { signed: false }, 1)),
            _ => Some(("signed char", TypeKind::Char { signed: true }, 1)),
        },
        Some("__int128") if short + long == 0 => integer("__int128", "unsigned __int128", 16),
        Some("int") | None if base.is_some() || !plain => match (short, long) {
            (1, _) => integer("short", "unsigned short", 2),
            (_, 1) => integer("long", "unsigned long", 8),
            (_, 2) => integer("long long", "unsigned long long", 8),
            _ => integer("int", "unsigned int", 4),
        },
        Some("double") if long == 1 && short + signed + unsigned == 0 => {
            Some(("long double", TypeKind::Float, 16))
        }
        Some("_Float128" | "__float128") if plain => Some(("_Float128", TypeKind::Float, 16)),
        Some("double") if plain => Some(("double", TypeKind::Float, 8)),
        Some("float") if plain => Some(("float", TypeKind::Float, 4)),
        Some("_Bool") if plain => Some(("_Bool", TypeKind::Bool, 1)),
        Some("bool") if plain => Some(("bool", TypeKind::Bool, 1)),
        Some("wchar_t") if plain => Some(("wchar_t", TypeKind::Char { signed: true }, 4)),
        Some("char8_t") if plain => Some(("char8_t", TypeKind::Char { signed: false }, 1)),
        Some("char16_t") if plain => Some(("char16_t", TypeKind::Char { signed: false }, 2)),
        Some("char32_t") if plain => Some(("char32_t", TypeKind::Char { signed: false }, 4)),
        _ => None,
    }
}

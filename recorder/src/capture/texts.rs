//! Determines, from their types, which arguments of a function point to text: `char *`, `&str`, `String`,
//! `std::string`, `std::string_view`.

use agent::shared::Text;
use debuginfo::types::{Language, Member, MemberOffset};
use debuginfo::{Type, TypeKind};

use super::parameters::{InRegister, REGISTERS};

/// Maximum nesting of structures to search for a string's address and length.
const MAX_DEPTH: usize = 8;
const WORD: u64 = 8;

/// Returns where the strings of a function's integer arguments are.
pub(crate) fn of(parameters: &[InRegister]) -> [Option<Text>; REGISTERS] {
    let mut texts = [None; REGISTERS];
    for parameter in parameters {
        texts[parameter.register] = of_type(&parameter.ty, parameter.has_address());
    }
    texts
}

/// Returns where the string of an argument is. `is_pointer`: the register holds an address, possibly that of the value
/// itself.
fn of_type(ty: &Type, is_pointer: bool) -> Option<Text> {
    let ty = ty.strip();
    match ty.kind() {
        TypeKind::Pointer | TypeKind::Reference | TypeKind::RvalueReference => {
            let target = ty.target()?.strip();
            match is_character(&target) {
                true if ty.kind() == TypeKind::Pointer => Some(Text::Terminated),
                _ => words(&target),
            }
        }
        TypeKind::Struct | TypeKind::Class => match ty.own_name()?.as_str() {
            "&str" | "&mut str" => Some(Text::Slice),
            name if is_class(name, "basic_string_view") && !is_pointer => Some(Text::View),
            _ if is_pointer => words(&ty),
            _ => None,
        },
        _ => None,
    }
}

/// Returns whether a pointer to this type is a pointer to text.
pub(super) fn is_character(ty: &Type) -> bool {
    let is_c_char =
        ty.language() == Language::Rust && matches!(ty.kind(), TypeKind::Integer { .. });
    ty.size() == Some(1) && (matches!(ty.kind(), TypeKind::Char { .. }) || is_c_char)
}

/// Returns which words of a structure hold the address and length of a string.
fn words(ty: &Type) -> Option<Text> {
    let name = ty.own_name()?;
    if is_class(&name, "basic_string") {
        // libstdc++: address, length, then the text itself or the capacity.
        return Some(Text::Behind {
            address: 0,
            length: 1,
        });
    }
    if name != "alloc::string::String" {
        return None;
    }
    let address = find(ty, 0, MAX_DEPTH, &|member| {
        member.ty.strip().kind() == TypeKind::Pointer
    })?;
    let length = find(ty, 0, MAX_DEPTH, &|member| {
        let is_number = matches!(member.ty.strip().kind(), TypeKind::Integer { .. });
        is_number && member.name.as_deref() == Some("len")
    })?;
    let word = |offset: u64| u8::try_from(offset / WORD).ok().filter(|word| *word < 4);
    Some(Text::Behind {
        address: word(address)?,
        length: word(length)?,
    })
}

/// Matches a class of the standard library for one-byte characters, in any inline namespace.
fn is_class(name: &str, class: &str) -> bool {
    let name = name.strip_prefix("std::").unwrap_or_default();
    let name = name.strip_prefix("__cxx11::").unwrap_or(name);
    let arguments = name.strip_prefix(class).unwrap_or_default();
    arguments.starts_with("<char,") || arguments.starts_with("<char>")
}

/// Finds the first member that `wanted` accepts, in the structure or in nested structures. Returns its offset in bytes.
fn find(ty: &Type, base: u64, depth: usize, wanted: &dyn Fn(&Member) -> bool) -> Option<u64> {
    if depth == 0 {
        return None;
    }
    ty.members().iter().find_map(|member| {
        let MemberOffset::Bytes(offset) = member.offset else {
            return None;
        };
        match wanted(member) {
            true => Some(base + offset),
            false => find(&member.ty.strip(), base + offset, depth - 1, wanted),
        }
    })
}

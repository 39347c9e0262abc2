//! What values of C, C++ and Rust are in JavaScript: the same as the engine is given, before they are there.

use super::super::super::super::ir::{Int, IntOp, Order};
use super::super::value::{Bytes, Static};
use super::super::{Result, not};
use super::Translator;
use super::numbers::{Number, Whole};
use super::operators::address;
use super::texts::{End, Text};
use super::value::{Js, Kind, Nothing, boxed, nowhere, only_if};
use crate::layout::{Language, Role, Type, TypeKind};
use crate::value::containers::{Container, type_path};
use crate::value::is_signed;

/// Pointers and wrappers that are looked through.
const MAX_STEPS: usize = 16;
/// Characters of a text, for the engine as well.
const MAX_TEXT: i64 = 1 << 16;

/// The types of single characters; small integers have other names.
pub(in super::super) fn is_character(ty: &Type) -> bool {
    let names = ["char", "wchar_t", "char8_t", "char16_t", "char32_t"];
    ty.plain_name().is_some_and(|name| names.contains(&name))
}

impl Translator<'_, '_> {
    /// What a value of the program is.
    pub(super) fn seen(&self, value: Static) -> Result<Js> {
        self.presented(value, MAX_STEPS)
    }

    fn presented(&self, value: Static, steps: usize) -> Result<Js> {
        let steps = steps.checked_sub(1);
        let steps = steps.ok_or_else(|| not("it leads back to itself"))?;
        let value = self.compiler.unreferenced(value)?;
        let ty = value.ty.strip();
        match ty.kind() {
            TypeKind::Bool => Ok(Js::bool(value.raw(false)?.is_true())),
            TypeKind::Integer { .. } | TypeKind::Char { .. } => match is_character(&ty) {
                true => character(&value, &ty),
                false => Ok(Js::of(Kind::Number(Number::Whole(whole(&value, &ty)?)))),
            },
            TypeKind::Float => {
                let (number, _) = value.float(&ty)?;
                Ok(Js::of(Kind::Number(Number::Float(number))))
            }
            TypeKind::Enum => Ok(Js::of(Kind::Enumerator {
                number: whole(&value, &ty)?,
                ty,
            })),
            TypeKind::Pointer => self.pointer(value, &ty, steps),
            TypeKind::Array => array(value, &ty),
            TypeKind::Struct | TypeKind::Class | TypeKind::Union => self.structure(value, &ty),
            _ => Err(not(format!("{} is a text of its own", ty.name()))),
        }
    }

    fn pointer(&self, value: Static, ty: &Type, steps: usize) -> Result<Js> {
        if ty.size() != Some(8) || value.bits.is_some() {
            return Err(not(format!("{} is not a pointer of 8 bytes", ty.name())));
        }
        let raw = value.raw(false)?;
        let is_null = Int::compare(Order::Equal, false, raw.clone(), Int::Const(0));
        let here = Int::NonNull(boxed(raw));
        let target = ty.target().map(|target| target.strip());
        let is_rust = ty.language() == Language::Rust;
        let is_raw = !is_rust || ty.name().starts_with('*');
        let seen = match target {
            None => address(here),
            Some(target) => match target.kind() {
                TypeKind::Void | TypeKind::Function | TypeKind::Unspecified => address(here),
                _ if is_character(&target) && !is_rust => {
                    single_bytes(&target)?;
                    let end = End::Zero;
                    Js::of(Kind::Text(Text::Bytes { at: here, end }))
                }
                TypeKind::Struct | TypeKind::Class | TypeKind::Union | TypeKind::Array => {
                    let inner = Static::new(target, Bytes::Memory(here));
                    let mut seen = self.presented(inner, steps)?;
                    if let Kind::Object(of, _) = seen.kind {
                        seen.kind = Kind::Object(of, Some(value));
                    }
                    seen
                }
                _ if is_raw => Js::of(Kind::Pointer(value)),
                _ => self.presented(Static::new(target, Bytes::Memory(here)), steps)?,
            },
        };
        seen.unless(is_null, Nothing::Null)
    }

    fn structure(&self, value: Static, ty: &Type) -> Result<Js> {
        if ty.variants().is_some() {
            return Err(not(format!("what {} holds depends on it", ty.name())));
        }
        if !Container::is_type(ty) {
            return Ok(Js::of(Kind::Object(value, None)));
        }
        let name = ty.own_name().unwrap_or_default();
        let text = match (ty.language(), type_path(&name).as_str()) {
            (Language::Cpp, "std::basic_string") => self.string_of_cxx(&value, ty)?,
            (Language::Cpp, "std::basic_string_view") => {
                single_bytes(&self.target_of(&value, "_M_str")?)?;
                let at = self.word(&value, &["_M_str"])?;
                (at, self.word(&value, &["_M_len"])?)
            }
            (Language::Rust, "&str" | "&mut str") => {
                let at = self.word(&value, &["data_ptr"])?;
                (at, self.word(&value, &["length"])?)
            }
            (Language::Rust, "alloc::string::String") => self.string_of_rust(&value)?,
            _ => return Err(not(format!("{} is a container", ty.name()))),
        };
        let len = Int::Within {
            of: boxed(text.1),
            low: 0,
            high: MAX_TEXT,
        };
        let end = End::Counted(len);
        Ok(Js::of(Kind::Text(Text::Bytes { at: text.0, end })))
    }

    /// Start and length of a `std::string`; one that is damaged has no answer.
    fn string_of_cxx(&self, value: &Static, ty: &Type) -> Result<(Int, Int)> {
        let held = self.part(value, &["_M_dataplus"])?;
        single_bytes(&self.target_of(&held, "_M_p")?)?;
        let at = self.word(&held, &["_M_p"])?;
        let len = self.word(value, &["_M_string_length"])?;
        let unknown = || not(format!("{} is of an unknown layout", ty.name()));
        let local = self.part(value, &["_M_local_buf"])?;
        let room = local.ty.strip().size().ok_or_else(unknown)?;
        let local = local.address().cloned().ok_or_else(unknown)?;
        let is_local = Int::compare(Order::Equal, false, at.clone(), local);
        let capacity = Int::Choose {
            condition: boxed(is_local),
            if_true: boxed(Int::Const(room.saturating_sub(1))),
            if_false: boxed(self.word(value, &["_M_allocated_capacity"])?),
        };
        let fits = Int::compare(Order::LessEqual, false, len.clone(), capacity);
        Ok((at, only_if(fits, len)))
    }

    /// The same for a `String`.
    fn string_of_rust(&self, value: &Static) -> Result<(Int, Int)> {
        let vec = self.part(value, &["vec"])?;
        let buffer = self.part(&vec, &["buf"])?;
        // Since 2024 the part that does not depend on the element's type is a structure of its own.
        let buffer = self.part(&buffer, &["inner"]).unwrap_or(buffer);
        let at = self.word(&buffer, &["ptr"])?;
        let capacity = self.word(&buffer, &["cap"])?;
        let len = self.word(&vec, &["len"])?;
        let fits = Int::compare(Order::LessEqual, false, len.clone(), capacity);
        Ok((at, only_if(fits, len)))
    }

    fn part(&self, of: &Static, path: &[&str]) -> Result<Static> {
        path.iter().try_fold(of.clone(), |value, name| {
            let found = self.compiler.field(&value, name)?;
            found.ok_or_else(|| not(format!("{} is of an unknown layout", value.ty.name())))
        })
    }

    /// A word, which may be wrapped in structures of one member.
    fn word(&self, of: &Static, path: &[&str]) -> Result<Int> {
        let mut value = self.part(of, path)?;
        for _ in 0..MAX_STEPS {
            if !matches!(value.kind(), TypeKind::Struct | TypeKind::Class) {
                break;
            }
            let members = value.ty.strip().members().into_iter();
            let mut sized = members.filter(|m| m.role == Role::Member && m.ty.size() != Some(0));
            let name = sized.next().and_then(|member| member.name);
            let name = name.ok_or_else(|| not("a word is wrapped in an unknown way"))?;
            value = self.part(&value, &[&name])?;
        }
        match value.ty.size() {
            Some(8) => value.raw(false),
            _ => Err(not(format!("{} is not a word", value.ty.name()))),
        }
    }

    /// What a member points to.
    fn target_of(&self, of: &Static, name: &str) -> Result<Type> {
        let target = self.part(of, &[name])?.ty.strip().target();
        target.ok_or_else(|| not(format!("{name} is not a pointer")))
    }
}

/// Refuses texts of wider characters.
fn single_bytes(character: &Type) -> Result<()> {
    match character.size() {
        Some(1) => Ok(()),
        _ => Err(not(format!("a text of {}", character.name()))),
    }
}

fn bits_of(value: &Static, ty: &Type) -> u64 {
    let size = ty.size().unwrap_or(0).saturating_mul(8);
    value.bits.map_or(size, |bits| bits.size)
}

fn whole(value: &Static, ty: &Type) -> Result<Whole> {
    let signed = is_signed(ty).unwrap_or(false);
    Ok(Whole::of_bits(
        value.raw(signed)?,
        bits_of(value, ty),
        signed,
    ))
}

/// One character; bytes above 127 are those of Latin-1, whether `char` has a sign or not.
fn character(value: &Static, ty: &Type) -> Result<Js> {
    let code = value.raw(false)?;
    let most = match bits_of(value, ty) {
        bits @ 1..=8 => (1 << bits) - 1,
        // Numbers that stand for no character are one that does.
        _ => char::MAX as i64,
    };
    let code = match most > 0xff {
        false => code,
        true => either_side_of_pairs(code),
    };
    Ok(Js::of(Kind::Text(Text::Char { code, most })))
}

/// The number of a character; no answer for what is none.
fn either_side_of_pairs(code: Int) -> Int {
    let within = |of: Int, low, high| Int::Within {
        of: boxed(of),
        low,
        high,
    };
    let code = within(code, 0, char::MAX as i64);
    let first = Int::Const(0xd800);
    let distance = Int::binary(IntOp::Subtract, code.clone(), first);
    let is_none = Int::compare(Order::Less, false, distance, Int::Const(0x800));
    Int::Choose {
        condition: boxed(is_none),
        if_true: boxed(nowhere()),
        if_false: boxed(code),
    }
}

fn array(value: Static, ty: &Type) -> Result<Js> {
    if !ty.is_plain_array() {
        return Err(not(format!("{} is not an array of C's kind", ty.name())));
    }
    let (Some(element), Some(count)) = (ty.element(), ty.count()) else {
        return Err(not(format!("the length of {}", ty.name())));
    };
    let element = element.strip();
    let at = value.address().cloned();
    let at = at.ok_or_else(|| not(format!("{} is not in memory", ty.name())))?;
    if is_character(&element) && element.language() != Language::Rust {
        single_bytes(&element)?;
        let end = End::Within(count);
        return Ok(Js::of(Kind::Text(Text::Bytes { at, end })));
    }
    Ok(Js::of(Kind::List(value, count)))
}

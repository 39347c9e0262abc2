//! Function items of Rust: values without bytes, and each function's has a type of its own. rustc describes such a type as it
//! describes a pointer to a function, which has eight bytes. The value of a generic parameter can be either; the place of
//! the parameter tells them apart.

use std::rc::Rc;

use gimli::constants as dw;

use super::args::{Found, Home, Locations};
use super::{Passing, TypeInfo};
use crate::dies::{Die, DieReader};
use crate::model::ParameterPlace;

/// Bytes of a pointer to a function. It is kept at a multiple of that.
pub(crate) const POINTER: u64 = 8;

const ITEM: &str = "it is a function item, which has no bytes";
const UNCLEAR: &str = "it may be a function item, which has no bytes";

/// The type of a parameter: [`Die::key`].
pub(crate) type Key = (crate::dies::Home, usize, usize);

/// What a parameter is whose type is described as a pointer to a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Called {
    Pointer,
    /// A function item: nothing is passed.
    Item,
    /// The debug information and the code do not tell.
    Unclear,
}

impl Called {
    /// Returns how it is passed. `described`: how a pointer is.
    pub(crate) fn passed(self, described: Rc<TypeInfo>) -> Rc<TypeInfo> {
        let (size, align, passing) = match self {
            Called::Pointer => return described,
            Called::Item => (0, 1, Passing::Empty),
            Called::Unclear => (POINTER, POINTER, Passing::Unknown),
        };
        Rc::new(TypeInfo {
            kind: described.kind.clone(),
            size,
            align,
            passing,
        })
    }
}

/// What the parameters of one function tell about the types that are described as pointers to functions. The types of
/// items and of pointers are two, even if they have the same name.
#[derive(Debug, Default)]
pub(crate) struct Told(Vec<(Key, Called)>);

impl Told {
    pub(crate) fn add(&mut self, ty: Key, called: Called) {
        self.0.push((ty, called));
    }

    /// Returns what values of a type are.
    pub(crate) fn of(&self, ty: Key) -> Called {
        let tells = |called| self.0.contains(&(ty, called));
        match (tells(Called::Pointer), tells(Called::Item)) {
            (true, false) => Called::Pointer,
            (false, true) => Called::Item,
            _ => Called::Unclear,
        }
    }
}

/// Returns whether a type is described as a pointer to a function.
pub(crate) fn is_function<'a>(session: &DieReader<'_, 'a>, ty: &Die<'a>) -> bool {
    let is = |die: &Die<'a>, tag| session.tag(die) == Some(tag);
    let target = || session.follow(ty, dw::DW_AT_type);
    is(ty, dw::DW_TAG_pointer_type)
        && target().is_some_and(|of| is(&of, dw::DW_TAG_subroutine_type))
}

/// Returns what the place of a parameter tells about it. `is_stored`: the function's first instructions store an argument
/// to that home.
pub(crate) fn told_by(found: Found, is_stored: impl FnOnce(Home) -> bool) -> Called {
    match found {
        Found::AtEntry(_) | Found::Always(_) => Called::Pointer,
        Found::Home(home) if is_between_words(home) => Called::Item,
        Found::Home(home) => match is_stored(home) {
            true => Called::Pointer,
            false => Called::Unclear,
        },
        Found::Nothing => Called::Unclear,
    }
}

/// Returns whether no pointer is kept at a home: frames begin at a multiple of a word, and so do the pointers in them.
pub(crate) fn is_between_words(home: Home) -> bool {
    !home.deref && home.offset.rem_euclid(POINTER as i64) != 0
}

/// Returns why a variable of `function` has no value though its type is described as a pointer to a function: it is an item, or
/// may be one. `passed`: where the function receives it, if it is a parameter.
pub(crate) fn why_unknown<'a>(
    session: &DieReader<'_, 'a>,
    function: &Die<'a>,
    variable: &Die<'a>,
    passed: Option<ParameterPlace>,
) -> Option<&'static str> {
    let chain = session.chain(variable);
    let ty = chain
        .iter()
        .find_map(|die| session.follow(die, dw::DW_AT_type))?;
    if session.language(variable) != Some(dw::DW_LANG_Rust) || !is_function(session, &ty) {
        return None;
    }
    let aligned = chain
        .iter()
        .find_map(|die| session.unsigned(die, dw::DW_AT_alignment));
    let found = Locations::new(session, function, 0).of(variable);
    let is_between = matches!(found, Found::Home(home) if is_between_words(home));
    match passed {
        _ if is_between || aligned.is_some_and(|bytes| bytes < POINTER) => Some(ITEM),
        Some(ParameterPlace::Empty) => Some(ITEM),
        Some(ParameterPlace::Unknown) => Some(UNCLEAR),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::args::{FrameBase, Passed};

    fn told(offset: i64, is_stored: bool) -> Called {
        let home = Home {
            base: FrameBase::Register(7),
            offset,
            deref: false,
        };
        told_by(Found::Home(home), |_| is_stored)
    }

    #[test]
    fn a_place_tells_items_and_pointers_apart() {
        assert_eq!(told(0x2f, false), Called::Item);
        assert_eq!(told(-1, false), Called::Item);
        assert_eq!(told(0x20, true), Called::Pointer);
        assert_eq!(told(0x28, false), Called::Unclear);
        let register = Found::AtEntry(Passed::at(ParameterPlace::Int(1)));
        assert_eq!(told_by(register, |_| false), Called::Pointer);
        assert_eq!(told_by(Found::Nothing, |_| true), Called::Unclear);
    }

    #[test]
    fn parameters_of_one_type_are_alike() {
        let key = |offset| (crate::dies::Home::Info, 0, offset);
        let mut known = Told::default();
        known.add(key(1), Called::Unclear);
        known.add(key(1), Called::Item);
        known.add(key(2), Called::Pointer);
        known.add(key(3), Called::Pointer);
        known.add(key(3), Called::Item);
        let called = [1, 2, 3, 4].map(|offset| known.of(key(offset)));
        let unclear = Called::Unclear;
        assert_eq!(called, [Called::Item, Called::Pointer, unclear, unclear]);
    }
}

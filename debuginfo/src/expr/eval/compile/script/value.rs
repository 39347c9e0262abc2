//! What values of JavaScript are before they are there.

use super::super::super::super::ir::{Float, Int, Order};
use super::super::value::{Bytes, Static};
use super::super::{Result, not};
use super::numbers::{Number, Whole};
use super::texts::{End, Text};
use crate::layout::Type;

/// Parts of an expression that may be written down twice.
const MOST_PARTS: usize = 300;

/// A value.
#[derive(Debug, Clone)]
pub(super) struct Js {
    pub kind: Kind,
    /// When there is none. Then `kind` has no answer.
    pub absent: Option<Absent>,
}

/// When there is no value.
#[derive(Debug, Clone)]
pub(super) struct Absent {
    pub when: Int,
    pub what: Nothing,
}

/// What stands for no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Nothing {
    Null,
    Undefined,
    /// The one or the other.
    Either,
}

/// What a value is.
#[derive(Debug, Clone)]
pub(super) enum Kind {
    Nothing(Nothing),
    /// 0 or 1.
    Bool(Int),
    Number(Number),
    Text(Text),
    Enumerator {
        number: Whole,
        ty: Type,
    },
    /// A structure, and the pointer that it was found by.
    Object(Static, Option<Static>),
    /// An array of the program, with the number of its elements.
    List(Static, u64),
    /// A pointer to what is no structure.
    Pointer(Static),
    /// A list that stands in the text.
    Literal(Vec<Js>),
}

/// No answer.
pub(super) fn nowhere() -> Int {
    Int::NonNull(Box::new(Int::Const(0)))
}

pub(super) fn boxed(of: Int) -> Box<Int> {
    Box::new(of)
}

pub(super) fn constant(of: bool) -> Int {
    Int::Const(u64::from(of))
}

/// 1 if the number is 0, otherwise 0.
pub(super) fn negated(of: Int) -> Int {
    match of {
        Int::Const(value) => constant(value == 0),
        of => Int::Not(boxed(of)),
    }
}

/// Both; the second is asked only if the first holds.
pub(super) fn both(a: Int, b: Int) -> Int {
    match (a, b) {
        (Int::Const(0), _) => Int::Const(0),
        (Int::Const(_), b) => b.is_true(),
        (a, b) => Int::And(boxed(a), boxed(b)),
    }
}

/// Either; the second is asked only if the first does not hold.
pub(super) fn either(a: Int, b: Int) -> Int {
    match (a, b) {
        (Int::Const(0), b) => b.is_true(),
        (Int::Const(_), _) => Int::Const(1),
        (a, b) => Int::Or(boxed(a), boxed(b)),
    }
}

pub(super) fn chosen(condition: Int, if_true: Int, if_false: Int) -> Int {
    match condition {
        Int::Const(0) => if_false,
        Int::Const(_) => if_true,
        condition => Int::Choose {
            condition: boxed(condition),
            if_true: boxed(if_true),
            if_false: boxed(if_false),
        },
    }
}

/// The number, if `condition` holds; no answer otherwise.
pub(super) fn only_if(condition: Int, of: Int) -> Int {
    chosen(condition, of, nowhere())
}

pub(super) fn floats(order: Order, left: Float, right: Float) -> Int {
    Int::CompareFloats {
        order,
        left: Box::new(left),
        right: Box::new(right),
    }
}

/// Refuses what is too long to be written down twice.
pub(super) fn short(of: &Int) -> Result<()> {
    within_limit(of.parts())
}

/// As [`short`].
pub(super) fn short_float(of: &Float) -> Result<()> {
    within_limit(of.parts())
}

fn within_limit(parts: usize) -> Result<()> {
    match parts <= MOST_PARTS {
        true => Ok(()),
        false => Err(not("it takes too much code")),
    }
}

impl Js {
    pub fn of(kind: Kind) -> Js {
        Js { kind, absent: None }
    }

    pub fn bool(of: Int) -> Js {
        Js::of(Kind::Bool(of))
    }

    pub fn number(of: f64) -> Js {
        Js::of(Kind::Number(Number::constant(of)))
    }

    pub fn text(of: &str) -> Js {
        Js::of(Kind::Text(Text::Const(of.to_owned())))
    }

    pub fn null() -> Js {
        Js::of(Kind::Nothing(Nothing::Null))
    }

    pub fn undefined() -> Js {
        Js::of(Kind::Nothing(Nothing::Undefined))
    }

    /// The value, or nothing of this kind.
    pub fn unless(mut self, when: Int, what: Nothing) -> Result<Js> {
        self.absent = Some(match self.absent {
            None => Absent { when, what },
            Some(absent) => Absent {
                when: either(when, absent.when),
                what: match absent.what == what {
                    true => what,
                    false => Nothing::Either,
                },
            },
        });
        Ok(self)
    }

    /// The value, or undefined when the chain that it stands at the end of has broken off.
    pub fn undefined_without(mut self, without: Option<Int>) -> Result<Js> {
        let Some(without) = without else {
            return Ok(self);
        };
        // What is the same everywhere would have an answer.
        self.kind = match self.kind {
            Kind::Bool(of @ Int::Const(_)) => Kind::Bool(only_if(negated(without.clone()), of)),
            Kind::Number(Number::Whole(whole)) if matches!(whole.value, Int::Const(_)) => {
                let value = only_if(negated(without.clone()), whole.value);
                Kind::Number(Number::Whole(Whole { value, ..whole }))
            }
            kind if witness_of(&kind).is_some() => kind,
            _ => return Err(not("it is the same everywhere")),
        };
        self.unless(without, Nothing::Undefined)
    }

    /// Something that has an answer exactly if the value can be looked at; `None` if it always can.
    pub fn witness(&self) -> Option<Int> {
        let kind = witness_of(&self.kind);
        match &self.absent {
            None => kind,
            Some(absent) => Some(chosen(
                absent.when.clone(),
                Int::Const(1),
                kind.unwrap_or(Int::Const(1)),
            )),
        }
    }

    /// The answer, 0 or 1, once the value has been looked at.
    pub fn before(&self, answer: Int) -> Int {
        match self.witness() {
            None => answer,
            Some(witness) => both(either(witness, Int::Const(1)), answer),
        }
    }

    pub fn is_constant(&self) -> bool {
        self.witness().is_none()
    }
}

/// As [`Js::witness`].
fn witness_of(kind: &Kind) -> Option<Int> {
    let unless_constant = |of: &Int| (!matches!(of, Int::Const(_))).then(|| of.clone());
    match kind {
        Kind::Nothing(_) => None,
        Kind::Bool(of) => unless_constant(of),
        Kind::Number(Number::Whole(whole)) => unless_constant(&whole.value),
        Kind::Number(Number::Float(Float::Const(_))) => None,
        Kind::Number(Number::Float(of)) => Some(floats(Order::Equal, of.clone(), of.clone())),
        Kind::Text(text) => match text {
            Text::Const(_) => None,
            Text::Char { code, .. } => unless_constant(code),
            Text::Name { number, .. } => unless_constant(&number.value),
            Text::Bytes { at, end } => match end {
                End::Zero => Some(Int::Load {
                    at: boxed(at.clone()),
                    bytes: 1,
                    signed: false,
                }),
                End::Within(_) => unless_constant(at),
                End::Counted(len) => unless_constant(len),
            },
        },
        Kind::Enumerator { number, .. } => unless_constant(&number.value),
        Kind::Object(of, _) | Kind::List(of, _) | Kind::Pointer(of) => match &of.bytes {
            Bytes::Memory(at) | Bytes::Number(at) => unless_constant(at),
            Bytes::Vector(_) | Bytes::Float(_) => None,
        },
        Kind::Literal(list) => {
            let parts = list.iter().filter_map(Js::witness);
            parts.reduce(|a, b| Int::And(boxed(either(a, Int::Const(1))), boxed(b)))
        }
    }
}

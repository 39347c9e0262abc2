//! `===` and `==` (ECMAScript 7.2.13 and 7.2.14), and what `includes` asks of each element.

use super::super::super::super::ir::{Int, IntOp, Order};
use super::super::super::super::script::{Binary, Script, Unary};
use super::super::{Result, not};
use super::Translator;
use super::numbers::{Number, Whole, compared};
use super::texts::{self, Text};
use super::value::{Js, Kind, Nothing, both, chosen, constant, either, negated, only_if, short};
use crate::layout::Type;

/// Enumerators that are compared with one by one.
const MOST_ENUMERATORS: usize = 64;

impl Translator<'_, '_> {
    /// Whether two expressions have equal values.
    pub(super) fn equal(&self, left: &Script, right: &Script, loose: bool) -> Result<Int> {
        for (one, other) in [(left, right), (right, left)] {
            if let Script::Unary(Unary::TypeOf, of) = one
                && let Script::Text(name) = other
            {
                return is_of_type(&self.value(of)?, name);
            }
        }
        for (one, other) in [(left, right), (right, left)] {
            if let Some(equal) = self.either_equal(one, other, loose)? {
                return Ok(equal);
            }
        }
        equal(&self.value(left)?, &self.value(right)?, loose)
    }

    /// Whether one of two values, which may be of different kinds, is a constant.
    fn either_equal(&self, one: &Script, other: &Script, loose: bool) -> Result<Option<Int>> {
        let is_constant = || self.value(other).is_ok_and(|other| other.is_constant());
        match one {
            Script::Group(of) => self.either_equal(of, other, loose),
            Script::Binary(Binary::Coalesce, a, b) if is_constant() => {
                let mut a = self.value(a)?;
                let Some(absent) = a.absent.take() else {
                    return Ok(None);
                };
                let there = equal(&a, &self.value(other)?, loose)?;
                let elsewhere = self.equal(b, other, loose)?;
                Ok(Some(chosen(absent.when, elsewhere, there)))
            }
            Script::Conditional {
                condition,
                if_true,
                if_false,
            } if is_constant() => Ok(Some(chosen(
                self.condition(condition)?,
                self.equal(if_true, other, loose)?,
                self.equal(if_false, other, loose)?,
            ))),
            _ => Ok(None),
        }
    }
}

fn is_of_type(value: &Js, name: &str) -> Result<Int> {
    let unknown = || not("whether a number is a BigInt depends on it");
    let here = value.type_name().ok_or_else(unknown)? == name;
    let there = Js::of(value.kind.clone()).before(constant(here));
    let Some(absent) = &value.absent else {
        return Ok(there);
    };
    let elsewhere = match absent.what {
        Nothing::Null => name == "object",
        Nothing::Undefined => name == "undefined",
        Nothing::Either => return Err(not("what is not there is null or undefined")),
    };
    Ok(chosen(absent.when.clone(), constant(elsewhere), there))
}

/// Whether two values are equal; `loose`: as `==` has it.
pub(super) fn equal(a: &Js, b: &Js, loose: bool) -> Result<Int> {
    match (&a.kind, &b.kind) {
        (Kind::Nothing(nothing), _) => return is_nothing(b, *nothing, loose),
        (_, Kind::Nothing(nothing)) => return is_nothing(a, *nothing, loose),
        _ => {}
    }
    let here = kinds_equal(&a.kind, &b.kind, loose)?;
    // Whatever one is, the other one is looked at.
    let alone = |of: &Js| Js::of(of.kind.clone()).before(constant(false));
    match (&a.absent, &b.absent) {
        (None, None) => Ok(here),
        (Some(absent), None) => Ok(chosen(absent.when.clone(), alone(b), here)),
        (None, Some(absent)) => Ok(chosen(absent.when.clone(), alone(a), here)),
        (Some(x), Some(y)) => {
            if !loose && (x.what != y.what || x.what == Nothing::Either) {
                return Err(not("what is not there is null or undefined"));
            }
            short(&y.when)?;
            let without = chosen(y.when.clone(), constant(true), alone(b));
            let with = chosen(y.when.clone(), alone(a), here);
            Ok(chosen(x.when.clone(), without, with))
        }
    }
}

fn is_nothing(value: &Js, nothing: Nothing, loose: bool) -> Result<Int> {
    let is_same = |what: Nothing| match loose || what == nothing {
        _ if !loose && (what == Nothing::Either || nothing == Nothing::Either) => {
            Err(not("what is not there is null or undefined"))
        }
        same => Ok(same),
    };
    match (&value.kind, &value.absent) {
        (Kind::Nothing(what), _) => is_same(*what).map(constant),
        (kind, None) => Ok(Js::of(kind.clone()).before(constant(false))),
        (kind, Some(absent)) => {
            let same = constant(is_same(absent.what)?);
            let there = Js::of(kind.clone()).before(constant(false));
            Ok(chosen(absent.when.clone(), same, there))
        }
    }
}

fn kinds_equal(a: &Kind, b: &Kind, loose: bool) -> Result<Int> {
    let never = || {
        let (a, b) = (Js::of(a.clone()), Js::of(b.clone()));
        a.before(b.before(constant(false)))
    };
    match (a, b) {
        (Kind::Bool(a), Kind::Bool(b)) => Ok(Int::compare(
            Order::Equal,
            false,
            a.clone().is_true(),
            b.clone().is_true(),
        )),
        (Kind::Number(a), Kind::Number(b)) => Ok(compared(Order::Equal, a.clone(), b.clone())),
        (Kind::Text(a), Kind::Text(b)) => texts::equal(a, b),
        (Kind::Enumerator { number: x, ty: s }, Kind::Enumerator { number: y, ty: t }) => {
            // One object for each number of each enumeration, which goes by its name.
            match s.name() == t.name() {
                true => Ok(compared(
                    Order::Equal,
                    Number::Whole(x.clone()),
                    Number::Whole(y.clone()),
                )),
                false => Ok(never()),
            }
        }
        (Kind::Bool(_), Kind::Number(_)) | (Kind::Number(_), Kind::Bool(_)) if loose => {
            let (a, b) = (Js::of(a.clone()), Js::of(b.clone()));
            Ok(compared(Order::Equal, a.any_number()?, b.any_number()?))
        }
        (Kind::Enumerator { number, ty }, Kind::Text(Text::Const(text)))
        | (Kind::Text(Text::Const(text)), Kind::Enumerator { number, ty })
            if loose =>
        {
            loosely_called(number, ty, text)
        }
        (Kind::Enumerator { number, ty }, Kind::Number(other))
        | (Kind::Number(other), Kind::Enumerator { number, ty })
            if loose =>
        {
            // It is its name if it has one, and that is no number.
            let has_name = one_of(number, &values(ty)?);
            let same = compared(Order::Equal, Number::Whole(number.clone()), other.clone());
            Ok(both(negated(has_name), same))
        }
        _ if loose => Err(not("== between values of different kinds")),
        _ => match (is_object(a), is_object(b)) {
            (true, true) => Err(not("objects are never the same")),
            _ => Ok(never()),
        },
    }
}

fn is_object(kind: &Kind) -> bool {
    matches!(
        kind,
        Kind::Object(..)
            | Kind::List(..)
            | Kind::Pointer(_)
            | Kind::Literal(_)
            | Kind::Enumerator { .. }
    )
}

/// `color == "RED"`: what has no name is its number, and the text is none.
fn loosely_called(number: &Whole, ty: &Type, text: &str) -> Result<Int> {
    let is_name = text.starts_with(|c: char| c.is_alphabetic() || c == '_');
    if !is_name || text.starts_with("Infinity") {
        return Err(not("a text may be a number"));
    }
    called(number, ty, text)
}

/// Whether an enumerator has this name, without its enumeration's.
pub(super) fn called(number: &Whole, ty: &Type, text: &str) -> Result<Int> {
    values(ty)?;
    let last = |name: &str| name.rsplit("::").next() == Some(text);
    let all = ty.enumerators();
    // The first one of a number names it.
    let named = all.iter().enumerate().filter(|(at, one)| {
        let first = all[..*at].iter().all(|before| before.value != one.value);
        first && last(&one.name)
    });
    let named: Vec<i128> = named.map(|(_, one)| one.value).collect();
    Ok(one_of(number, &named))
}

/// Whether an enumerator has a name.
pub(super) fn has_name(number: &Whole, ty: &Type) -> Result<Int> {
    Ok(one_of(number, &values(ty)?))
}

/// The numbers of an enumeration.
fn values(ty: &Type) -> Result<Vec<i128>> {
    let mut all: Vec<i128> = ty.enumerators().iter().map(|one| one.value).collect();
    all.sort_unstable();
    all.dedup();
    match all.len() <= MOST_ENUMERATORS {
        true => Ok(all),
        false => Err(not(format!("{} has too many enumerators", ty.name()))),
    }
}

fn one_of(number: &Whole, values: &[i128]) -> Int {
    let is = |value: &i128| {
        let value = Int::Const(*value as u64);
        Int::compare(Order::Equal, false, number.value.clone(), value)
    };
    // Values in a row are one question.
    let in_a_row = values.windows(2).all(|pair| pair[1] == pair[0] + 1);
    match values {
        [] => Js::of(Kind::Number(Number::Whole(number.clone()))).before(constant(false)),
        [first, .., _] if in_a_row => {
            let first = Int::Const(*first as u64);
            let distance = Int::binary(IntOp::Subtract, number.value.clone(), first);
            let count = Int::Const(values.len() as u64);
            Int::compare(Order::Less, false, distance, count)
        }
        [first, rest @ ..] => rest
            .iter()
            .fold(is(first), |any, value| either(any, is(value))),
    }
}

/// Whether a list that stands in the text has an element (ECMAScript 23.1.3.16).
pub(super) fn includes(list: &[Js], value: &Js) -> Result<Int> {
    if let Some(witness) = value.witness() {
        short(&witness)?;
    }
    let nowhere = value.before(constant(false));
    // All of them are looked at before they are compared.
    let mut any = list
        .iter()
        .fold(nowhere, |any, element| element.before(any));
    for element in list {
        any = either(any, same(element, value)?);
    }
    Ok(any)
}

/// The number of the first equal element, or -1.
pub(super) fn index_of(list: &[Js], value: &Js) -> Result<Int> {
    if let Some(witness) = value.witness() {
        short(&witness)?;
    }
    // All of them are looked at before they are compared.
    let all = list
        .iter()
        .fold(value.before(constant(true)), |all, element| {
            element.before(all)
        });
    let mut found = Int::Const(u64::MAX);
    for (at, element) in list.iter().enumerate().rev() {
        found = chosen(same(element, value)?, Int::Const(at as u64), found);
    }
    Ok(only_if(all, found))
}

/// Equality where NaN would be itself, which it is not asked for.
fn same(element: &Js, value: &Js) -> Result<Int> {
    let is_number = |of: &Js| matches!(&of.kind, Kind::Number(Number::Float(_)));
    if is_number(element) && is_number(value) {
        return Err(not("numbers that may be none are looked for"));
    }
    equal(element, value, false)
}

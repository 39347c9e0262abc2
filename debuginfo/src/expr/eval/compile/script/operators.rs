//! Operators, and what counts as true.

use super::super::super::super::ir::{Int, Order};
use super::super::super::super::script::{Binary, Script, Unary};
use super::super::{Result, not};
use super::Translator;
use super::numbers::{self, Number, Whole, compared, computed};
use super::texts::{self, Text};
use super::value::{Absent, Js, Kind, Nothing, both, chosen, constant, either, negated, short};

impl Translator<'_, '_> {
    /// Whether an expression counts as true: 0 or not.
    pub(super) fn condition(&self, expr: &Script) -> Result<Int> {
        match expr {
            Script::Group(of) => self.condition(of),
            Script::Unary(Unary::Not, of) => Ok(negated(self.condition(of)?)),
            Script::Binary(Binary::And, a, b) => Ok(both(self.condition(a)?, self.condition(b)?)),
            Script::Binary(Binary::Or, a, b) => Ok(either(self.condition(a)?, self.condition(b)?)),
            Script::Binary(Binary::Coalesce, a, b) => {
                let a = self.value(a)?;
                match a.absent.clone() {
                    None => a.truth(),
                    Some(absent) => {
                        let here = Js::of(a.kind).truth()?;
                        Ok(chosen(absent.when, self.condition(b)?, here))
                    }
                }
            }
            Script::Conditional {
                condition,
                if_true,
                if_false,
            } => Ok(chosen(
                self.condition(condition)?,
                self.condition(if_true)?,
                self.condition(if_false)?,
            )),
            _ => self.value(expr)?.truth(),
        }
    }

    pub(super) fn unary(&self, op: Unary, of: &Script) -> Result<Js> {
        match op {
            Unary::Not => Ok(Js::bool(negated(self.condition(of)?))),
            Unary::TypeOf => self.type_of(of),
            Unary::Plus => Ok(Js::of(Kind::Number(self.value(of)?.plain_number()?))),
            Unary::Negate => {
                let number = numbers::negative(self.value(of)?.plain_number()?);
                Ok(Js::of(Kind::Number(number)))
            }
            Unary::Complement => {
                let number = numbers::complement(self.value(of)?.plain_number()?);
                Ok(Js::of(Kind::Number(number)))
            }
        }
    }

    pub(super) fn binary(&self, op: Binary, left: &Script, right: &Script) -> Result<Js> {
        match op {
            Binary::And | Binary::Or => {
                let condition = self.condition(left)?;
                let (a, b) = (self.value(left)?, self.value(right)?);
                match op {
                    Binary::And => self.one_of(condition, b, a),
                    _ => self.one_of(condition, a, b),
                }
            }
            Binary::Coalesce => {
                let mut a = self.value(left)?;
                let Some(absent) = a.absent.take() else {
                    return match a.kind {
                        Kind::Nothing(_) => self.value(right),
                        _ => Ok(a),
                    };
                };
                self.one_of(absent.when, self.value(right)?, a)
            }
            Binary::StrictEqual | Binary::Equal => {
                let equal = self.equal(left, right, op == Binary::Equal)?;
                Ok(Js::bool(equal))
            }
            Binary::StrictNotEqual | Binary::NotEqual => {
                let equal = self.equal(left, right, op == Binary::NotEqual)?;
                Ok(Js::bool(negated(equal)))
            }
            Binary::Less => self.ordered(Order::Less, left, right),
            Binary::LessEqual => self.ordered(Order::LessEqual, left, right),
            Binary::Greater => self.ordered(Order::Greater, left, right),
            Binary::GreaterEqual => self.ordered(Order::GreaterEqual, left, right),
            _ => {
                let (a, b) = (self.value(left)?, self.value(right)?);
                if let (Binary::Add, Kind::Text(Text::Const(a)), Kind::Text(Text::Const(b))) =
                    (op, &a.kind, &b.kind)
                {
                    return Ok(Js::text(&format!("{a}{b}")));
                }
                // What has a name adds as a text.
                let is_named = |of: &Js| matches!(of.kind, Kind::Enumerator { .. });
                if op == Binary::Add && (is_named(&a) || is_named(&b)) {
                    return Err(not("a text is made of an enumerator"));
                }
                let (a, b) = (a.plain_number()?, b.plain_number()?);
                computed(op, a, b).map(|number| Js::of(Kind::Number(number)))
            }
        }
    }

    fn ordered(&self, order: Order, left: &Script, right: &Script) -> Result<Js> {
        let (a, b) = (self.value(left)?, self.value(right)?);
        if let (Kind::Text(a), Kind::Text(b)) = (&a.kind, &b.kind) {
            return texts::ordered(order, a, b).map(Js::bool);
        }
        let (a, b) = (a.any_number()?, b.any_number()?);
        Ok(Js::bool(compared(order, a, b)))
    }

    /// `condition ? if_true : if_false`
    pub(super) fn one_of(&self, condition: Int, if_true: Js, if_false: Js) -> Result<Js> {
        short(&condition)?;
        let select = |a: Int, b: Int| chosen(condition.clone(), a, b);
        let kind = match (if_true.kind, if_false.kind) {
            (Kind::Bool(a), Kind::Bool(b)) => Kind::Bool(select(a, b)),
            (Kind::Number(a), Kind::Number(b)) => {
                Kind::Number(numbers::one_of(condition.clone(), a, b))
            }
            _ => return Err(not("one of two values of different kinds")),
        };
        let when = |of: &Option<Absent>| match of {
            None => Int::Const(0),
            Some(absent) => absent.when.clone(),
        };
        let what = match (&if_true.absent, &if_false.absent) {
            (None, None) => return Ok(Js::of(kind)),
            (Some(a), Some(b)) if a.what != b.what => Nothing::Either,
            (Some(one), _) | (None, Some(one)) => one.what,
        };
        let when = select(when(&if_true.absent), when(&if_false.absent));
        Js::of(kind).unless(when, what)
    }

    fn type_of(&self, of: &Script) -> Result<Js> {
        let value = self.value(of)?;
        match (&value.absent, value.type_name()) {
            (None, Some(name)) if value.is_constant() => Ok(Js::text(name)),
            _ => Err(not("the name of a type")),
        }
    }
}

impl Js {
    pub fn truth(&self) -> Result<Int> {
        let here = match &self.kind {
            Kind::Nothing(_) => Int::Const(0),
            Kind::Bool(of) => of.clone().is_true(),
            Kind::Number(number) => number.clone().truth()?,
            Kind::Text(text) => text.truth()?,
            Kind::Enumerator { .. }
            | Kind::Object(..)
            | Kind::List(..)
            | Kind::Pointer(_)
            | Kind::Literal(_) => Js::of(self.kind.clone()).before(constant(true)),
        };
        Ok(match &self.absent {
            None => here,
            Some(absent) => both(negated(absent.when.clone()), here),
        })
    }

    /// What `typeof` says of it where it is there.
    pub fn type_name(&self) -> Option<&'static str> {
        Some(match &self.kind {
            Kind::Nothing(Nothing::Null) => "object",
            Kind::Nothing(Nothing::Undefined) => "undefined",
            Kind::Nothing(Nothing::Either) => return None,
            Kind::Bool(_) => "boolean",
            Kind::Number(Number::Whole(whole)) if whole.clone().exact().high != whole.high => {
                return None;
            }
            Kind::Number(Number::Whole(whole)) if whole.clone().exact().low != whole.low => {
                return None;
            }
            Kind::Number(_) => "number",
            Kind::Text(_) => "string",
            Kind::Enumerator { .. }
            | Kind::Object(..)
            | Kind::List(..)
            | Kind::Pointer(_)
            | Kind::Literal(_) => "object",
        })
    }

    /// What it is in arithmetic, where nothing but numbers and booleans (and enumerators) is looked at.
    pub fn plain_number(&self) -> Result<Number> {
        match &self.kind {
            Kind::Bool(of) => Ok(Number::Whole(Whole {
                value: of.clone().is_true(),
                low: 0,
                high: 1,
            })),
            Kind::Number(Number::Whole(whole)) => Ok(Number::Whole(whole.clone().exact())),
            Kind::Number(number) => Ok(number.clone()),
            Kind::Enumerator { number, .. } => Ok(Number::Whole(number.clone().exact())),
            _ => Err(not("it computes with what is not a number")),
        }
    }

    /// The same for comparisons, which also take a `BigInt`.
    pub fn any_number(&self) -> Result<Number> {
        match &self.kind {
            Kind::Number(number) => Ok(number.clone()),
            _ => self.plain_number(),
        }
    }
}

/// The number that an address is.
pub(super) fn address(of: Int) -> Js {
    Js::of(Kind::Number(Number::Whole(Whole::of_bits(of, 64, false))))
}

//! Functions and methods of JavaScript that only look.

use super::super::super::super::ir::{Float, Int, IntOp, Order};
use super::super::super::super::script::{Binary, Pattern, Script};
use super::super::{Result, not};
use super::Translator;
use super::equality;
use super::numbers::{self, Number, Whole, compared, computed};
use super::texts::Text;
use super::value::{Js, Kind, floats, negated, only_if, short, short_float};

fn number(of: Number) -> Js {
    Js::of(Kind::Number(of))
}

fn whole(value: Int, low: i128, high: i128) -> Js {
    number(Number::Whole(Whole { value, low, high }))
}

/// Constants of `Math` and `Number`.
pub(super) fn constant(of: &str, name: &str) -> Result<Js> {
    use std::f64::consts;
    let value = match (of, name) {
        ("Math", "PI") => consts::PI,
        ("Math", "E") => consts::E,
        ("Math", "LN2") => consts::LN_2,
        ("Math", "LN10") => consts::LN_10,
        ("Math", "LOG2E") => consts::LOG2_E,
        ("Math", "LOG10E") => consts::LOG10_E,
        ("Math", "SQRT2") => consts::SQRT_2,
        ("Math", "SQRT1_2") => consts::FRAC_1_SQRT_2,
        ("Number", "MAX_SAFE_INTEGER") => 9_007_199_254_740_991.0,
        ("Number", "MIN_SAFE_INTEGER") => -9_007_199_254_740_991.0,
        ("Number", "MAX_VALUE") => f64::MAX,
        ("Number", "EPSILON") => f64::EPSILON,
        ("Number", "NaN") => f64::NAN,
        ("Number", "POSITIVE_INFINITY") => f64::INFINITY,
        ("Number", "NEGATIVE_INFINITY") => f64::NEG_INFINITY,
        _ => return Err(not(format!("{of}.{name}"))),
    };
    Ok(Js::number(value))
}

impl Translator<'_, '_> {
    pub(super) fn call(
        &self,
        function: &Script,
        arguments: &[Script],
    ) -> Result<(Js, Option<Int>)> {
        match function {
            Script::Name(name) if self.is_own(name) => Ok((self.function(name, arguments)?, None)),
            Script::Member {
                of,
                name,
                optional: false,
            } if matches!(self.own_name(of), Some("Math" | "Number")) => {
                let of = self.own_name(of).unwrap_or_default();
                Ok((self.own_method(of, name, arguments)?, None))
            }
            Script::Member {
                of,
                name,
                optional: false,
            } if matches!(**of, Script::Pattern(_)) && name == "test" => match &**of {
                Script::Pattern(pattern) => Ok((self.test(pattern, arguments)?, None)),
                _ => Err(not("such a call")),
            },
            Script::Member { of, name, optional } => {
                let (base, without) = self.link(of, *optional)?;
                Ok((self.method(&base, name, arguments)?, without))
            }
            _ => Err(not("such a call")),
        }
    }

    /// The only argument.
    fn only(&self, arguments: &[Script]) -> Result<Js> {
        match arguments {
            [only] => self.value(only),
            _ => Err(not("a call with other than one argument")),
        }
    }

    fn function(&self, name: &str, arguments: &[Script]) -> Result<Js> {
        if let ("$", [Script::Text(text)]) = (name, arguments) {
            return self.expression(text);
        }
        if let ("Boolean", [only]) = (name, arguments) {
            return self.condition(only).map(Js::bool);
        }
        let of = self.only(arguments)?;
        match (name, &of.kind) {
            ("Number", _) => of.plain_number().map(number),
            // A whole number is read back from its text.
            ("parseInt" | "parseFloat", Kind::Number(Number::Whole(whole))) => {
                Ok(number(Number::Whole(whole.clone().exact())))
            }
            ("isNaN" | "isFinite", _) => checked(name, of.plain_number()?).map(Js::bool),
            _ => Err(not(format!("a call of {name}"))),
        }
    }

    fn own_method(&self, of: &str, name: &str, arguments: &[Script]) -> Result<Js> {
        let all = arguments.iter().map(|argument| self.value(argument));
        let all = all.collect::<Result<Vec<Js>>>()?;
        let plain = all.iter().map(Js::plain_number);
        if of == "Number" {
            return match (name, all.as_slice()) {
                // Unlike the functions of these names they know only numbers.
                (
                    _,
                    [
                        Js {
                            kind: Kind::Number(one),
                            ..
                        },
                    ],
                ) => self.about_number(name, one.clone()).map(Js::bool),
                _ => Err(not(format!("Number.{name}"))),
            };
        }
        let plain = plain.collect::<Result<Vec<Number>>>()?;
        match (name, plain.as_slice()) {
            ("max" | "min", [first, rest @ ..]) => {
                let order = match name {
                    "max" => Order::Greater,
                    _ => Order::Less,
                };
                let step = |a: Number, b: &Number| numbers::extreme(order, a, b.clone());
                rest.iter().try_fold(first.clone(), step).map(number)
            }
            ("pow", [base, exponent]) => {
                computed(Binary::Power, base.clone(), exponent.clone()).map(number)
            }
            (name, [only]) => mathematical(name, only.clone()),
            _ => Err(not(format!("Math.{name}"))),
        }
    }

    fn about_number(&self, name: &str, of: Number) -> Result<Int> {
        match (name, &of) {
            ("isNaN" | "isFinite", _) => {
                let of = match of {
                    Number::Whole(whole) => Number::Whole(whole.exact()),
                    of => of,
                };
                checked(name, of)
            }
            ("isInteger", Number::Whole(whole)) => {
                let known = Js::of(Kind::Number(Number::Whole(whole.clone().exact())));
                Ok(known.before(Int::Const(1)))
            }
            _ => Err(not(format!("Number.{name}"))),
        }
    }

    /// `/text/.test(of)`
    fn test(&self, pattern: &Pattern, arguments: &[Script]) -> Result<Js> {
        let of = self.only(arguments)?;
        let Kind::Text(text) = &of.kind else {
            return Err(not("a regular expression for what is not text"));
        };
        let wanted = &pattern.text;
        let found = match (pattern.at_start, pattern.at_end) {
            (true, true) => equality::equal(&Js::of(of.kind.clone()), &Js::text(wanted), false)?,
            (true, false) => text.starts_with(wanted)?,
            (false, true) => text.ends_with(wanted)?,
            (false, false) => text.includes(wanted)?,
        };
        // Nothing would be tested by its name.
        Ok(Js::bool(match of.absent {
            None => found,
            Some(absent) => only_if(negated(absent.when), found),
        }))
    }

    fn method(&self, of: &Js, name: &str, arguments: &[Script]) -> Result<Js> {
        let value = self.only(arguments)?;
        match (&of.kind, name) {
            (Kind::Literal(list), "includes") => equality::includes(list, &value).map(Js::bool),
            (Kind::Literal(list), "indexOf") => {
                let found = equality::index_of(list, &value)?;
                Ok(whole(found, -1, list.len() as i128 - 1))
            }
            (Kind::Text(text), _) if value.absent.is_none() => of_text(text, name, &value),
            _ => Err(not(format!("a call of {name}"))),
        }
    }
}

/// `isNaN` and `isFinite`.
fn checked(name: &str, of: Number) -> Result<Int> {
    let is_finite = name == "isFinite";
    match of {
        Number::Whole(_) => Ok(number(of).before(Int::Const(u64::from(is_finite)))),
        Number::Float(of) => {
            short_float(&of)?;
            Ok(match is_finite {
                false => floats(Order::NotEqual, of.clone(), of),
                true => {
                    let size = Float::Magnitude(Box::new(of));
                    floats(Order::LessEqual, size, Float::Const(f64::MAX))
                }
            })
        }
    }
}

/// The functions of `Math` with one argument, as far as they are exact.
fn mathematical(name: &str, of: Number) -> Result<Js> {
    let whole = |of| number(Number::Whole(of));
    match name {
        "abs" => numbers::magnitude(of).map(number),
        "floor" => Ok(whole(of.truncated(true))),
        "trunc" => Ok(whole(of.truncated(false))),
        "ceil" => {
            let down = Number::Whole(numbers::negative(of).truncated(true));
            Ok(number(numbers::negative(down)))
        }
        "round" => numbers::rounded(of).map(number),
        "sqrt" => Ok(number(Number::Float(Float::Root(Box::new(of.float()))))),
        "fround" => Ok(number(Number::Float(of.float().rounded(true)))),
        "sign" => sign(of),
        _ => Err(not(format!("Math.{name}"))),
    }
}

fn sign(of: Number) -> Result<Js> {
    let Number::Whole(_) = of else {
        return Err(not("the sign of what may be no number"));
    };
    let zero = || Number::Whole(Whole::constant(0));
    let value = number(of.clone());
    short(&value.witness().unwrap_or(Int::Const(0)))?;
    let above = compared(Order::Greater, of.clone(), zero());
    let below = compared(Order::Less, of, zero());
    Ok(whole(Int::binary(IntOp::Subtract, above, below), -1, 1))
}

/// Methods of texts.
fn of_text(text: &Text, name: &str, value: &Js) -> Result<Js> {
    match (name, &value.kind) {
        ("startsWith", Kind::Text(Text::Const(wanted))) => text.starts_with(wanted).map(Js::bool),
        ("endsWith", Kind::Text(Text::Const(wanted))) => text.ends_with(wanted).map(Js::bool),
        ("includes", Kind::Text(Text::Const(wanted))) => text.includes(wanted).map(Js::bool),
        ("includes", Kind::Text(Text::Char { code, .. })) => {
            text.includes_character(code).map(Js::bool)
        }
        ("at" | "charAt" | "charCodeAt", Kind::Number(Number::Whole(at))) => {
            let Int::Const(at) = at.value else {
                return Err(not("so far into a text"));
            };
            let at = u16::try_from(at).map_err(|_| not("so far into a text"))?;
            match name {
                "at" => text.character(at),
                "charAt" => text.character_within(at),
                _ => Ok(number(Number::Whole(text.code(at)?))),
            }
        }
        _ => Err(not(format!("a call of {name}"))),
    }
}

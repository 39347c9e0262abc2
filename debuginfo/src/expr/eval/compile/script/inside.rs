//! Members and elements, and chains of them that may break off.

use super::super::super::super::ir::Int;
use super::super::super::super::script::Script;
use super::super::value::Static;
use super::super::{Result, not};
use super::Translator;
use super::calls;
use super::equality;
use super::numbers::{Number, Whole};
use super::operators::address;
use super::texts::Text;
use super::value::{Js, Kind, Nothing, either, negated, only_if};

/// Elements farther from where a pointer points to are left to the engine.
const FARTHEST: i128 = 1 << 32;

impl Translator<'_, '_> {
    /// A value at the end of a chain, and when the chain has broken off before it.
    pub(super) fn chain(&self, expr: &Script) -> Result<(Js, Option<Int>)> {
        match expr {
            Script::Member { of, name, optional } => {
                if let Some(own) = self.own_member(of, name)? {
                    return Ok((own, None));
                }
                let (base, without) = self.link(of, *optional)?;
                Ok((self.member(&base, name)?, without))
            }
            Script::Index {
                of,
                index,
                optional,
            } => {
                if let (Some(name), Script::Number(number)) = (self.own_name(of), &**index) {
                    let number = (name == "args" && number.fract() == 0.0).then_some(*number);
                    let number = number.ok_or_else(|| not(format!("an element of {name}")))?;
                    return Ok((self.argument(number as u32)?, None));
                }
                let (base, without) = self.link(of, *optional)?;
                let found = match &**index {
                    Script::Text(name) => self.member(&base, name)?,
                    index => self.element(&base, &self.value(index)?)?,
                };
                Ok((found, without))
            }
            Script::Call {
                function,
                arguments,
            } => self.call(function, arguments),
            expr => Ok((self.value(expr)?, None)),
        }
    }

    /// What a part of a chain is taken of.
    pub(super) fn link(&self, of: &Script, optional: bool) -> Result<(Js, Option<Int>)> {
        let (mut base, without) = self.chain(of)?;
        let absent = base.absent.take().filter(|_| optional);
        let without = match (without, absent) {
            (without, None) => without,
            (None, Some(absent)) => Some(absent.when),
            (Some(without), Some(absent)) => Some(either(without, absent.when)),
        };
        Ok((base, without))
    }

    /// The name, if it is one of JavaScript's own objects.
    pub(super) fn own_name<'s>(&self, of: &'s Script) -> Option<&'s str> {
        match of {
            Script::Name(name) if self.is_own(name) => Some(name),
            _ => None,
        }
    }

    /// `Math.PI`, `args.length`
    fn own_member(&self, of: &Script, name: &str) -> Result<Option<Js>> {
        match self.own_name(of) {
            None => Ok(None),
            Some("args") => self.parameter(name).map(Some),
            Some(of) => calls::constant(of, name).map(Some),
        }
    }

    pub(super) fn member(&self, of: &Js, name: &str) -> Result<Js> {
        let none = || not(format!("it has no plain member {name}"));
        match (&of.kind, name) {
            (Kind::Object(value, pointer), "$address") => {
                let at = match pointer {
                    Some(pointer) => Some(Int::NonNull(Box::new(pointer.raw(false)?))),
                    None => value.address().cloned(),
                };
                at.map(address).ok_or_else(none)
            }
            (Kind::Pointer(pointer), "$address") => {
                Ok(address(Int::NonNull(Box::new(pointer.raw(false)?))))
            }
            (Kind::Object(value, _), _) => {
                // Fields of tuples are called __0.
                let written = match name.parse::<u32>() {
                    Ok(_) => format!("__{name}"),
                    Err(_) => name.to_owned(),
                };
                let field = self.compiler.field(value, &written)?;
                self.seen(field.ok_or_else(none)?)
            }
            (Kind::List(_, count), "length") => Ok(length(of, *count as i64)),
            (Kind::Literal(list), "length") => Ok(length(of, list.len() as i64)),
            (Kind::Text(text), "length") => Ok(Js::of(Kind::Number(Number::Whole(text.length()?)))),
            (Kind::Enumerator { number, .. }, "value") => {
                Ok(Js::of(Kind::Number(Number::Whole(number.clone().exact()))))
            }
            (Kind::Enumerator { number, ty }, "name") => {
                let has_name = equality::has_name(number, ty)?;
                let (number, ty) = (number.clone(), ty.clone());
                let name = Js::of(Kind::Text(Text::Name { number, ty }));
                name.unless(negated(has_name), Nothing::Null)
            }
            _ => Err(none()),
        }
    }

    fn element(&self, of: &Js, index: &Js) -> Result<Js> {
        let Kind::Number(Number::Whole(index)) = &index.kind else {
            return Err(not("an element by what is not a whole number"));
        };
        let index = index.clone().exact();
        let constant = match index.value {
            Int::Const(value) => Some(value as i64),
            _ => None,
        };
        match (&of.kind, constant) {
            (Kind::List(value, count), _) => {
                let last = i128::from(*count) - 1;
                if last < index.low {
                    return Err(not(format!("there are {count} elements")));
                }
                self.element_of(value, index.within(0, last))
            }
            (Kind::Pointer(pointer), _) | (Kind::Object(_, Some(pointer)), Some(0..)) => {
                self.element_of(pointer, index.within(-FARTHEST, FARTHEST))
            }
            (Kind::Object(..), Some(at @ 0..)) => self.member(of, &at.to_string()),
            (Kind::Text(text), Some(at @ 0..)) => {
                let at = u16::try_from(at).map_err(|_| not("so far into a text"))?;
                text.character(at)
            }
            (Kind::Literal(list), Some(at)) if list.iter().all(Js::is_constant) => {
                let found = usize::try_from(at).ok().and_then(|at| list.get(at));
                found
                    .cloned()
                    .ok_or_else(|| not("there is no such element"))
            }
            _ => Err(not("such an element")),
        }
    }

    fn element_of(&self, value: &Static, index: Whole) -> Result<Js> {
        self.seen(self.compiler.element(value, index.value)?)
    }
}

/// A length that is known, once what it is of has been looked at.
fn length(of: &Js, count: i64) -> Js {
    let value = only_if(of.before(Int::Const(1)), Int::Const(count as u64));
    let whole = Whole::constant(count);
    Js::of(Kind::Number(Number::Whole(Whole { value, ..whole })))
}

//! Turns conditions in JavaScript into operations on registers and memory, where they only look at plain values.
//!
//! Values are what the engine makes of the program's: numbers are doubles, pointers to structures are objects, C strings
//! are texts. Whole numbers are computed with as such while that gives what doubles would; where it might not, there is no
//! answer. Zero has no sign here: what would tell -0 from 0 is a division, and a divisor of 0 has no answer.

mod calls;
mod equality;
mod inside;
mod names;
mod numbers;
mod operators;
mod presented;
mod texts;
mod value;

use super::super::super::ir::Int;
use super::super::super::script::{Script, parse};
use super::super::with_evaluator;
use super::{Compiler, Result, at_address, not};
use crate::space::Space;
use value::{Js, Kind};

pub use names::ENGINE_NAMES;
pub(super) use presented::is_character;

/// Compiles a condition in JavaScript for the instruction at `pc`, an address of the process. It gives 0 for what
/// JavaScript calls false, and another number for what it calls true. `to_come` is as for
/// [`compile_condition`](super::compile_condition).
///
/// # Errors
/// It cannot be compiled.
pub fn compile_script(text: &str, space: &Space, pc: u64, to_come: usize) -> Result<Int> {
    let expr = parse(text).map_err(not)?;
    at_address(space, pc, to_come, |context| {
        with_evaluator(context, |evaluator| {
            let compiler = Compiler { evaluator };
            Translator { compiler }.condition(&expr)
        })
    })
}

/// Translates for one address.
struct Translator<'c, 'e> {
    compiler: Compiler<'c, 'e>,
}

impl Translator<'_, '_> {
    fn value(&self, expr: &Script) -> Result<Js> {
        match expr {
            Script::Number(number) => Ok(Js::number(*number)),
            Script::Text(text) => Ok(Js::text(text)),
            Script::Bool(value) => Ok(Js::bool(Int::Const(u64::from(*value)))),
            Script::Null => Ok(Js::null()),
            Script::Name(name) => self.name(name),
            Script::List(list) => {
                let list = list.iter().map(|part| self.value(part));
                Ok(Js::of(Kind::Literal(list.collect::<Result<_>>()?)))
            }
            Script::Pattern(_) => Err(not("a regular expression is more than one value")),
            Script::Group(of) => self.value(of),
            Script::Member { .. } | Script::Index { .. } | Script::Call { .. } => {
                let (value, without) = self.chain(expr)?;
                value.undefined_without(without)
            }
            Script::Unary(op, of) => self.unary(*op, of),
            Script::Binary(op, left, right) => self.binary(*op, left, right),
            Script::Conditional {
                condition,
                if_true,
                if_false,
            } => {
                let condition = self.condition(condition)?;
                self.one_of(condition, self.value(if_true)?, self.value(if_false)?)
            }
        }
    }
}

//! Names that are resolved once for an address and read many times, for any thread there.

use crate::eval::compile::value::{Bytes, Static};
use crate::eval::compile::{Compiler, Result, at_address};
use debuginfo::location::ir::{Float, Int};
use debuginfo::location::{Symbolic, ValuePlace};
use debuginfo::scope::Variable;
use debuginfo::types::{Type, TypeKind};
use debuginfo::value::Value;
use debuginfo::{AddressSpace, Machine};

/// What a name refers to at an address.
#[derive(Debug, Clone)]
pub enum Known {
    /// There is no such name.
    Nothing,
    /// A value that is the same for every thread.
    Constant(Value),
    /// A variable.
    Variable(KnownPlace),
}

/// The place of a value, as operations on registers and memory.
#[derive(Debug, Clone)]
pub struct KnownPlace {
    ty: Type,
    place: Symbolic,
    plain: Option<Plain>,
}

/// A value that is a plain number, as operations.
#[derive(Debug, Clone)]
enum Plain {
    Bool(Int),
    Integer { of: Int, signed: bool },
    Float(Float),
}

/// A value that is a plain number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PlainValue {
    /// A boolean.
    Bool(bool),
    /// An integer, but not a character.
    Integer(i128),
    /// A floating-point number of at most 64 bits.
    Float(f64),
}

/// Finds what [`find_local`](super::super::find_local) would find for the innermost frame of any thread at `pc`.
/// Returns `None` if it depends on more than registers and memory.
#[must_use]
pub fn known_local(name: &str, space: &AddressSpace, pc: u64) -> Option<Known> {
    with_compiler(space, pc, |compiler| {
        for depth in compiler.evaluator.depths(name) {
            if let Some(variable) = compiler.evaluator.variable_in(depth, name) {
                return place_of(compiler, &variable);
            }
            if let Some(member) = compiler.member_of_object(depth, name).ok()? {
                return place_of_value(compiler, member);
            }
            if compiler.evaluator.capture(depth, name).is_some() {
                return None;
            }
            if let Some(given) = compiler.evaluator.given_around(depth, name) {
                return place_of(compiler, &given);
            }
        }
        let is_outside = compiler.evaluator.is_declared_around(name);
        (!is_outside).then_some(Known::Nothing)
    })
}

/// Like [`known_local`], for [`find_global`](super::super::find_global).
#[must_use]
pub fn known_global(name: &str, space: &AddressSpace, pc: u64) -> Option<Known> {
    with_compiler(space, pc, |compiler| {
        if let Some(variable) = compiler.evaluator.global(name) {
            return place_of(compiler, &variable);
        }
        let enumerator = compiler.evaluator.enumerator(name);
        Some(enumerator.map_or(Known::Nothing, Known::Constant))
    })
}

/// Like [`known_local`], for [`argument`](super::super::argument).
#[must_use]
pub fn known_argument(number: u32, space: &AddressSpace, pc: u64) -> Option<Known> {
    with_compiler(space, pc, |compiler| {
        let argument: Result<Static> = compiler.argument(number.into());
        place_of_value(compiler, argument.ok()?)
    })
}

fn with_compiler<T>(space: &AddressSpace, pc: u64, ask: impl FnOnce(&Compiler<'_, '_>) -> T) -> T {
    at_address(space, pc, 0, |context| {
        super::with_evaluator(context, |evaluator| ask(&Compiler { evaluator }))
    })
}

fn place_of(compiler: &Compiler<'_, '_>, variable: &Variable) -> Option<Known> {
    let place = variable.symbolic(compiler.evaluator.site).ok()?;
    let ty = variable.ty();
    // The number of an array's elements may be known only at run time.
    ty.size()?;
    let value = compiler.variable(variable).ok();
    let plain = value.and_then(|value| plain_of(compiler, value));
    Some(Known::Variable(KnownPlace { ty, place, plain }))
}

fn place_of_value(compiler: &Compiler<'_, '_>, value: Static) -> Option<Known> {
    let place = match value.bytes.clone() {
        _ if value.bits.is_some() => return None,
        Bytes::Memory(address) => Symbolic::Memory(address),
        Bytes::Number(Int::Register(register)) | Bytes::Vector(register) => {
            Symbolic::Register(register)
        }
        Bytes::Number(number) => Symbolic::Number(number),
        Bytes::Float(_) => return None,
    };
    let ty = value.ty.clone();
    ty.size()?;
    let plain = plain_of(compiler, value);
    Some(Known::Variable(KnownPlace { ty, place, plain }))
}

/// Distinguishes characters from small integers, which have other names.
fn is_character(ty: &Type) -> bool {
    let names = ["char", "wchar_t", "char8_t", "char16_t", "char32_t"];
    ty.plain_name().is_some_and(|name| names.contains(&name))
}

fn plain_of(compiler: &Compiler<'_, '_>, value: Static) -> Option<Plain> {
    let value = compiler.unreferenced(value).ok()?;
    let ty = value.ty.strip();
    match ty.kind() {
        TypeKind::Bool => Some(Plain::Bool(value.raw(false).ok()?.is_true())),
        TypeKind::Integer { signed } if !is_character(&ty) => Some(Plain::Integer {
            of: value.raw(signed).ok()?,
            signed,
        }),
        TypeKind::Float => Some(Plain::Float(value.float(&ty).ok()?.0)),
        _ => None,
    }
}

impl KnownPlace {
    /// Reads a value that is a plain number. Returns `None` if it is something else or cannot be read.
    #[must_use]
    pub fn plain(&self, machine: &dyn Machine) -> Option<PlainValue> {
        Some(match self.plain.as_ref()? {
            Plain::Bool(of) => PlainValue::Bool(of.run(machine)? != 0),
            Plain::Integer { of, signed: true } => {
                PlainValue::Integer(i128::from(of.run(machine)? as i64))
            }
            Plain::Integer { of, signed: false } => {
                PlainValue::Integer(i128::from(of.run(machine)?))
            }
            Plain::Float(of) => PlainValue::Float(of.run(machine)?),
        })
    }

    /// Reads the value. Returns `None` if there is none at this moment. The evaluator gives the reason.
    #[must_use]
    pub fn read(&self, machine: &dyn Machine) -> Option<Value> {
        let place = match &self.place {
            Symbolic::Memory(address) => ValuePlace::Memory(address.run(machine)?),
            Symbolic::Register(register) => ValuePlace::Register(*register),
            Symbolic::Number(number) => {
                ValuePlace::Implicit(number.run(machine)?.to_le_bytes().to_vec())
            }
            Symbolic::Bytes(bytes) => ValuePlace::Implicit(bytes.clone()),
        };
        let value = Value::read(self.ty.clone(), place, machine);
        value.bytes.is_ok().then_some(value)
    }
}

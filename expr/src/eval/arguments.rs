//! `args`: the arguments of a function, by number.
//!
//! `args[N]` is the value passed in the N-th integer argument register (rdi, rsi, rdx, rcx, r8, r9, from 0). At the
//! function's first instruction, it is that register, with the type that the debug information states, or else as a
//! signed 64-bit number. Later in the function, it is the current value of the parameter passed there. A variable
//! called `args` hides it.

use crate::ast::{Expr, ExprKind, Span};
use crate::eval::operand::number_value;
use crate::eval::{Answer, EvalError, Evaluator, base_type};
use crate::number::{IntKind, Number};
use debuginfo::location::ValuePlace;
use debuginfo::scope::{Variable, variables_at};
use debuginfo::types::Type;
use debuginfo::value::Value;
use debuginfo::{Diagnostic, Param, ParameterPlace, Register, ValueKind};

const REGISTERS: [Register; 6] = [
    Register::RDI,
    Register::RSI,
    Register::RDX,
    Register::RCX,
    Register::R8,
    Register(9),
];

/// The place of an argument.
pub(super) enum Argument {
    /// Its register, at the function's first instruction.
    Register(Type, Register),
    /// The parameter's current place.
    Variable(Variable),
}

impl Evaluator<'_> {
    /// Returns whether an expression is the word `args` with its special meaning.
    pub(super) fn means_arguments(&self, expr: &Expr) -> bool {
        matches!(&expr.kind, ExprKind::Name(name) if name == "args")
            && self.variable("args").is_none()
    }

    pub(super) fn argument(&self, number: i128, at: Span) -> Answer<Value> {
        let found = self.argument_place(number);
        let refused = |why: Diagnostic| EvalError {
            is_meaningless: !is_register(number),
            ..EvalError::new(at, why)
        };
        match found.map_err(refused)? {
            Argument::Register(ty, register) => {
                let place = ValuePlace::Register(register);
                Ok(Value::read(ty, place, self.look.machine))
            }
            Argument::Variable(variable) => Ok(variable.read(self.site)),
        }
    }

    pub(super) fn argument_place(&self, number: i128) -> Result<Argument, Diagnostic> {
        if !is_register(number) {
            return Err(Diagnostic::new(format!("no argument {number}"))
                .with_hint("args has 0 to 5, the integer argument registers"));
        }
        let index = number as usize;
        let frame = self.context.frames.get(self.context.index);
        let frame = frame.ok_or("there are no arguments without a frame")?;
        let parameter = frame
            .function_entry
            .and_then(|entry| self.parameter(entry, index));
        if frame.function_entry == Some(frame.pc) && !frame.inlined {
            let ty = parameter.as_ref().and_then(|p| self.type_of(p));
            let ty = ty.unwrap_or_else(|| base_type("long"));
            return Ok(Argument::Register(ty, REGISTERS[index]));
        }
        let variable = parameter.and_then(|p| self.variable_in(0, &p.name));
        variable.map(Argument::Variable).ok_or_else(|| {
            Diagnostic::new(format!(
                "args[{number}] is known at the first instruction of a function only"
            ))
            .with_hint("stop there, or use the parameter's name")
        })
    }

    /// Returns the parameter passed in an integer register, if the register holds all of it.
    fn parameter(&self, entry: u64, index: usize) -> Option<Param> {
        let mapped = self.look.space.at(entry)?;
        let svma = mapped.svma(entry);
        let functions = mapped.module.functions();
        let list = &functions.list;
        let found = list.binary_search_by_key(&svma, |f| f.svma).ok()?;
        let parameters = list[found].params.iter();
        let mut fitting = parameters.filter(|p| {
            p.place == ParameterPlace::Int(index as u8) && p.place2.is_none() && !p.indirect
        });
        fitting.next().cloned()
    }

    fn type_of(&self, parameter: &Param) -> Option<Type> {
        let variables = variables_at(self.site);
        let described = variables
            .iter()
            .find(|v| v.is_parameter && v.name == parameter.name);
        let described = described.map(|v| v.ty());
        described
            .filter(|ty| ty.size().is_some_and(|size| (1..=8).contains(&size)))
            .or_else(|| base_of(&parameter.kind))
    }

    /// Returns the number of arguments, according to the debug information.
    pub(super) fn argument_count(&self) -> Option<Value> {
        let frame = self.context.frames.get(self.context.index)?;
        let entry = frame.function_entry?;
        let count =
            (0..REGISTERS.len()).take_while(|index| self.parameter(entry, *index).is_some());
        let number = Number::integer(IntKind::INT, count.count() as u128);
        Some(number_value(number, debuginfo::Certainty::Known))
    }
}

fn is_register(argument: i128) -> bool {
    usize::try_from(argument).is_ok_and(|index| index < REGISTERS.len())
}

fn base_of(kind: &ValueKind) -> Option<Type> {
    let name = match kind {
        ValueKind::Bool => "bool",
        ValueKind::Char { bytes: 1 } => "char",
        ValueKind::Char { .. } => "char32_t",
        ValueKind::Pointer => return Some(base_type("void").pointer()),
        ValueKind::Int { bytes, signed } | ValueKind::Enum { bytes, signed, .. } => {
            match (bytes, signed) {
                (1, true) => "i8",
                (1, false) => "u8",
                (2, true) => "i16",
                (2, false) => "u16",
                (4, true) => "int",
                (4, false) => "unsigned int",
                (8, true) => "long",
                (8, false) => "unsigned long",
                _ => return None,
            }
        }
        _ => return None,
    };
    Some(base_type(name))
}

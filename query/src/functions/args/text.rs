//! The arguments of one call as text.

use debuginfo::prototypes::{Ellipsis, prototype};
use store::columns::ReadCall;
use store::control::{FunctionDef, Param, ParameterPlace, ValueKind};

use super::super::ellipsis;
use super::Asked;
use super::registers::{INT_REGISTERS, Registers};
use super::scalar::{append, octal, write_hex, write_int, write_sse};
use crate::definitions::Definitions;
use crate::state::{CallTexts, Extent};

/// Returns the arguments of one call, as the column shows them.
pub fn of_call(definitions: &Definitions, call: &ReadCall, asked: &Asked) -> String {
    let function = definitions.function(call.function_id as usize);
    let registers = Registers {
        int: call.args,
        sse: call.xmm,
    };
    let mut texts = CallTexts::new(&asked.states);
    let mut known = OfCall {
        definitions,
        states: Some((asked, &mut texts, call.start_seq)),
    };
    let mut text = String::new();
    write_args(&mut text, function, &registers, &mut known);
    text
}

/// Returns the name of one argument of a call, and its value from the registers.
pub fn one_of_call(function: &FunctionDef, index: usize, call: &ReadCall) -> (String, String) {
    let registers = Registers {
        int: call.args,
        sse: call.xmm,
    };
    let mut text = String::new();
    if let Some(param) = function.params.get(index) {
        let of = Parameter {
            function,
            index,
            param,
            registers: &registers,
        };
        write_param(&mut text, &of, &mut Nothing);
    }
    let (name, value) = text.split_once('=').unwrap_or_default();
    (name.to_owned(), value.to_owned())
}

/// A parameter of a call.
pub struct Parameter<'a> {
    pub function: &'a FunctionDef,
    pub index: usize,
    pub param: &'a Param,
    pub registers: &'a Registers,
}

impl Parameter<'_> {
    /// Returns the register of the function's parameter `index`, if it has one.
    pub fn register(&self, index: usize) -> Option<u64> {
        match self.function.params.get(index)?.place {
            ParameterPlace::Int(register) => self.registers.int.get(usize::from(register)).copied(),
            ParameterPlace::Sse(_) | ParameterPlace::Memory => None,
        }
    }
}

/// Supplies what the registers of a call do not hold.
pub trait Known {
    /// Returns a parameter.
    fn parameter(&mut self, of: &Parameter<'_>) -> Option<String>;
    /// Returns the text at an address, in quotes.
    fn text(&mut self, at: u64, extent: Extent) -> Option<String>;
    /// Returns the bytes before a NUL at an address.
    fn bytes(&mut self, at: u64) -> Option<Vec<u8>>;
    /// Returns what the ellipsis of a function holds.
    fn ellipsis(&self, function: u32) -> Option<Ellipsis>;
}

/// What a recording knows of a call.
pub struct OfCall<'a, 's> {
    pub definitions: &'a Definitions,
    /// The states, and the event that entered the call.
    pub states: Option<(&'a Asked, &'a mut CallTexts<'s>, u64)>,
}

impl Known for OfCall<'_, '_> {
    fn parameter(&mut self, of: &Parameter<'_>) -> Option<String> {
        let (asked, texts, seq) = self.states.as_mut()?;
        asked.parameter(texts, self.definitions, *seq, of)
    }

    fn text(&mut self, at: u64, extent: Extent) -> Option<String> {
        let (_, texts, seq) = self.states.as_mut()?;
        texts.text(*seq, at, extent)
    }

    fn bytes(&mut self, at: u64) -> Option<Vec<u8>> {
        let (_, texts, seq) = self.states.as_mut()?;
        texts.bytes(*seq, at)
    }

    fn ellipsis(&self, function: u32) -> Option<Ellipsis> {
        self.definitions.headers().ellipsis(function)
    }
}

/// Nothing but the registers is known.
pub struct Nothing;

impl Known for Nothing {
    fn parameter(&mut self, _: &Parameter<'_>) -> Option<String> {
        None
    }

    fn text(&mut self, _: u64, _: Extent) -> Option<String> {
        None
    }

    fn bytes(&mut self, _: u64) -> Option<Vec<u8>> {
        None
    }

    fn ellipsis(&self, _: u32) -> Option<Ellipsis> {
        None
    }
}

/// Appends the arguments of one call to `text`; `known` supplies what the registers do not hold.
pub fn write_args(
    text: &mut String,
    function: Option<&FunctionDef>,
    registers: &Registers,
    known: &mut dyn Known,
) {
    match function {
        Some(function) if function.params_known => {
            let ellipsis = known.ellipsis(function.id);
            for (index, param) in function.params.iter().enumerate() {
                if index > 0 {
                    text.push_str(", ");
                }
                let of = Parameter {
                    function,
                    index,
                    param,
                    registers,
                };
                let is_command = |ellipsis| ellipsis::write_command(text, ellipsis, &of);
                if !ellipsis.is_some_and(is_command) {
                    write_param(text, &of, known);
                }
                if let Some(ellipsis) = ellipsis.filter(|_| index + 1 == function.params.len()) {
                    ellipsis::write(text, ellipsis, &of, known);
                }
            }
        }
        _ => {
            for (index, name) in INT_REGISTERS.iter().enumerate() {
                let comma = if index > 0 { ", " } else { "" };
                text.push_str(comma);
                text.push_str(name);
                text.push('=');
                write_hex(text, registers.int[index]);
            }
        }
    }
}

fn write_param(text: &mut String, of: &Parameter<'_>, known: &mut dyn Known) {
    let Parameter {
        index,
        param,
        registers,
        ..
    } = *of;
    match param.name.as_str() {
        "" => append(text, format_args!("arg{index}=")),
        name => {
            text.push_str(name);
            text.push('=');
        }
    }
    if let Some(known) = known.parameter(of) {
        return text.push_str(&known);
    }
    match param.place {
        // Registers hold a part of it: a structure is shown as one.
        ParameterPlace::Int(first) if is_apart(param) => match param.kind {
            ValueKind::Struct { .. } if usize::from(first) < INT_REGISTERS.len() => {
                let bits = registers.int[usize::from(first)];
                append(text, format_args!("{{{bits:#x}, ..}}"));
            }
            _ => text.push('?'),
        },
        ParameterPlace::Int(first) if usize::from(first) < INT_REGISTERS.len() && is_mode(of) => {
            append(
                text,
                format_args!("{}", octal(registers.int[usize::from(first)] as u32)),
            );
        }
        ParameterPlace::Int(first) if usize::from(first) < INT_REGISTERS.len() => {
            write_int(text, &param.kind, &registers.int[usize::from(first)..]);
        }
        ParameterPlace::Sse(index) => {
            let bits = registers.sse.get(usize::from(index)).copied().flatten();
            write_sse(text, &param.kind, bits);
        }
        ParameterPlace::Int(_) | ParameterPlace::Memory => text.push('?'),
    }
}

/// Returns whether a parameter holds the permissions of a file: of a function of the C library, as its header has it.
fn is_mode(of: &Parameter<'_>) -> bool {
    let name = of.param.name.as_str();
    let is_unsigned = matches!(
        of.param.kind,
        ValueKind::Int {
            bytes: 4,
            signed: false
        }
    );
    if !is_unsigned || !matches!(name, "mode" | "mask") || of.function.file.is_some() {
        return false;
    }
    let function = of.function.name.as_str();
    let known = prototype(function.strip_suffix("@plt").unwrap_or(function));
    let param = known.as_ref().and_then(|known| known.params.get(of.index));
    param.is_some_and(|param| param.name == name)
}

/// Returns whether the rest of a parameter is not in the general register after the first one.
fn is_apart(param: &Param) -> bool {
    match (
        param.place,
        param.second.map(|second| second.place),
        &param.kind,
    ) {
        (_, None, _) => false,
        (ParameterPlace::Int(first), Some(ParameterPlace::Int(second)), ValueKind::Int { .. }) => {
            second != first + 1
        }
        _ => true,
    }
}

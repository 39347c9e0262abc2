//! Parameters at function entry: those passed in a register are read from the enter event alone.

use debuginfo::value::Look;
use debuginfo::{
    AddressSpace, Certainty, EntryPlace, Machine, Register, Type, TypeKind, Unknown, Value,
    ValuePlace, at_frame, variables_at,
};
use rustc_hash::FxHashMap;
use store::columns::{EntryColumn, ReadCall};
use values::{RenderOptions, render_with};

use crate::calls::CallHead;
use crate::error::Result;
use crate::machine::StateMachine;
use crate::moment::Moment;
use crate::timeline::Timeline;
use store::control::{ParameterPlace, ValueKind};

/// Where a parameter is at every entry of its function.
#[derive(Clone)]
pub(super) struct Parameter {
    ty: Type,
    register: Register,
    /// The bits of its own size.
    pub mask: u64,
    /// All values that differ in these bits differ as texts.
    pub is_integer: bool,
}

/// One register, and its content.
struct Held(Register, u64);

impl Machine for Held {
    fn memory(&self, _: u64, _: &mut [u8]) -> std::result::Result<Certainty, Unknown> {
        Err(Unknown::because("not captured"))
    }

    fn register(&self, register: Register) -> std::result::Result<(u64, Certainty), Unknown> {
        match register == self.0 {
            true => Ok((self.1, Certainty::Known)),
            false => Err(Unknown::because("not captured")),
        }
    }

    fn vector(&self, _: Register) -> std::result::Result<([u8; 16], Certainty), Unknown> {
        Err(Unknown::because("not captured"))
    }

    fn vector_low(&self, register: Register) -> std::result::Result<([u8; 8], Certainty), Unknown> {
        self.register(register)
            .map(|(bits, certainty)| (bits.to_le_bytes(), certainty))
    }
}

impl Parameter {
    fn new(ty: Type, register: Register) -> Parameter {
        Parameter {
            mask: match ty.size() {
                Some(size @ 1..8) => (1 << (8 * size)) - 1,
                _ => u64::MAX,
            },
            is_integer: matches!(ty.strip().kind(), TypeKind::Integer { .. }),
            ty,
            register,
        }
    }

    /// Returns the column of calls that holds it.
    pub fn column(&self) -> Option<EntryColumn> {
        let number = self.register.0;
        let mut general = ParameterPlace::INT_REGISTERS.iter();
        let general = general.position(|register| *register == number);
        general.map(EntryColumn::General).or_else(|| {
            match usize::from(number.wrapping_sub(Register::XMM0.0)) {
                at @ 0..8 => Some(EntryColumn::Vector(at)),
                _ => None,
            }
        })
    }

    /// Returns the bits of its own size at the start of a call, if they were recorded.
    fn bits(&self, call: &ReadCall) -> Option<u64> {
        let bits = match self.column()? {
            EntryColumn::General(at) => call.args.get(at).copied(),
            EntryColumn::Vector(at) => call.xmm.get(at).copied().flatten(),
        };
        Some(bits? & self.mask)
    }

    /// Writes the value that the register holds.
    pub fn text(&self, bits: u64) -> String {
        let machine = Held(self.register, bits);
        let value = Value::read(
            self.ty.clone(),
            ValuePlace::Register(self.register),
            &machine,
        );
        text_of(&value, &machine)
    }
}

/// Writes a number.
fn text_of(value: &Value, machine: &dyn Machine) -> String {
    let look = Look {
        space: &AddressSpace::default(),
        machine,
    };
    render_with(value, &RenderOptions::default(), &look)
}

/// Cached results about parameters, by function and name.
#[derive(Default)]
pub struct Parameters {
    known: FxHashMap<u32, FxHashMap<String, Option<Parameter>>>,
}

/// The argument registers of one call.
struct Arguments<'a>(&'a ReadCall);

impl Machine for Arguments<'_> {
    fn memory(&self, _: u64, _: &mut [u8]) -> std::result::Result<Certainty, Unknown> {
        Err(Unknown::because("not captured"))
    }

    fn register(&self, register: Register) -> std::result::Result<(u64, Certainty), Unknown> {
        let at = ParameterPlace::INT_REGISTERS
            .iter()
            .position(|number| *number == register.0);
        let at = at.ok_or_else(|| Unknown::because("not captured"))?;
        Ok((self.0.args[at], Certainty::Known))
    }

    fn vector(&self, _: Register) -> std::result::Result<([u8; 16], Certainty), Unknown> {
        Err(Unknown::because("not captured"))
    }

    fn vector_low(&self, register: Register) -> std::result::Result<([u8; 8], Certainty), Unknown> {
        let at = usize::from(register.0.wrapping_sub(Register::XMM0.0));
        let value = self.0.xmm.get(at).copied().flatten();
        let value = value.ok_or_else(|| Unknown::because("not captured"))?;
        Ok((value.to_le_bytes(), Certainty::Known))
    }
}

impl Parameters {
    /// Returns the value of the parameter `name` at the start of `call`. The outer option: whether it can be read
    /// without more data; the inner one: whether it is known.
    ///
    /// # Errors
    /// The files cannot be read.
    pub fn at_entry(
        &mut self,
        timeline: &Timeline,
        call: &CallHead,
        name: &str,
    ) -> Result<Option<Option<String>>> {
        let Some(parameter) = self.of_function(timeline, call, name)? else {
            return Ok(None);
        };
        let call = timeline.call(call)?;
        let machine = Arguments(&call);
        let place = ValuePlace::Register(parameter.register);
        let value = Value::read(parameter.ty.clone(), place, &machine);
        if value.bytes.is_err() {
            return Ok(Some(None));
        }
        Ok(Some(Some(text_of(&value, &machine))))
    }

    /// Returns the bits of the parameters `names` at the start of `call`, and zeros after them; `None` if not all of them
    /// are numbers in registers, and known.
    ///
    /// # Errors
    /// The files cannot be read.
    pub(crate) fn numbers_at_entry<const MOST: usize>(
        &mut self,
        timeline: &Timeline,
        call: &CallHead,
        names: &[String],
    ) -> Result<Option<[u64; MOST]>> {
        let mut numbers = [0; MOST];
        let mut read = None;
        for (name, number) in names.iter().zip(&mut numbers) {
            let Some(parameter) = self.of_function(timeline, call, name)? else {
                return Ok(None);
            };
            let read = match &mut read {
                Some(read) => read,
                None => read.insert(timeline.call(call)?),
            };
            let Some(bits) = parameter.bits(read) else {
                return Ok(None);
            };
            *number = bits;
        }
        Ok((names.len() <= MOST).then_some(numbers))
    }

    fn of_function(
        &mut self,
        timeline: &Timeline,
        call: &CallHead,
        name: &str,
    ) -> Result<Option<&Parameter>> {
        let of_function = self.known.entry(call.function).or_default();
        if !of_function.contains_key(name) {
            let found = parameter(timeline, call, name)?;
            of_function.insert(name.to_owned(), found);
        }
        Ok(of_function[name].as_ref())
    }

    /// Returns the parameter of a function whose entry was examined, if it is a number in a register.
    pub(super) fn found(&self, function: u32, name: &str) -> Option<&Parameter> {
        self.known.get(&function)?.get(name)?.as_ref()
    }
}

/// Finds the parameter `name` of a call's function, if it is a number in a register.
fn parameter(timeline: &Timeline, call: &CallHead, name: &str) -> Result<Option<Parameter>> {
    let Some(tid) = call.tid else {
        return Ok(None);
    };
    let moment = Moment::at(timeline, call.start, tid, 1)?;
    let machine = StateMachine::new(&moment.state, &moment.space);
    let frames = &moment.trace.backtrace.frames;
    let Some(EntryPlace {
        first: register,
        second: None,
        is_indirect: false,
    }) = machine.entry_parameter(name)
    else {
        return Ok(None);
    };
    let function = timeline.function(call.function);
    let mut passed = function.iter().flat_map(|function| &function.params);
    let passed = passed.find(|param| param.name == name);
    let is_double = passed.is_some_and(|param| param.kind == ValueKind::Float { bytes: 8 });
    let found = at_frame(&moment.space, &machine, frames, 0, |site| {
        if site.inline_depth != 0 {
            return None;
        }
        let mut variables = variables_at(site).into_iter();
        let variable = variables.find(|variable| variable.name == name)?;
        let ty = variable.ty();
        let is_number = matches!(
            ty.strip().kind(),
            TypeKind::Integer { .. }
                | TypeKind::Bool
                | TypeKind::Char { .. }
                | TypeKind::Float
                | TypeKind::Enum
        );
        // Without a prototype, a float is passed as a double.
        let fits = ty
            .size()
            .is_some_and(|size| size <= 8 && (size == 8 || !is_double));
        (variable.is_parameter && is_number && fits).then(|| Parameter::new(ty, register))
    });
    Ok(found.flatten())
}

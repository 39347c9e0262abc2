//! Parameters at function entry: those passed in a register are read from the enter event alone.

use debuginfo::value::Look;
use debuginfo::{
    AddressSpace, Certainty, EntryPlace, Machine, Register, Type, TypeKind, Unknown, Value,
    ValuePlace, at_frame, variables_at,
};
use rustc_hash::FxHashMap;
use store::columns::ReadCall;
use values::{RenderOptions, render_with};

use crate::calls::CallHead;
use crate::error::Result;
use crate::machine::StateMachine;
use crate::moment::Moment;
use crate::timeline::Timeline;
use store::control::ParameterPlace;

/// Where a parameter is at every entry of its function.
struct Parameter {
    ty: Type,
    register: Register,
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
        let of_function = self.known.entry(call.function).or_default();
        if !of_function.contains_key(name) {
            let found = parameter(timeline, call, name)?;
            of_function.insert(name.to_owned(), found);
        }
        let Some(parameter) = &of_function[name] else {
            return Ok(None);
        };
        let call = timeline.call(call)?;
        let machine = Arguments(&call);
        let place = ValuePlace::Register(parameter.register);
        let value = Value::read(parameter.ty.clone(), place, &machine);
        if value.bytes.is_err() {
            return Ok(Some(None));
        }
        let look = Look {
            space: &AddressSpace::default(),
            machine: &machine,
        };
        let text = render_with(&value, &RenderOptions::default(), &look);
        Ok(Some(Some(text)))
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
        let fits = ty.size().is_some_and(|size| size <= 8);
        (variable.is_parameter && is_number && fits).then_some(Parameter { ty, register })
    });
    Ok(found.flatten())
}

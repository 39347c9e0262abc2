//! The registers that the text of a call's arguments is made of. Others need not be read from the files.

use store::control::{FunctionDef, Param, ParameterPlace};

use super::args::{INT_REGISTERS, SSE_REGISTERS};
use crate::definitions::Definitions;

/// Which of the general registers, then of the vector registers, are needed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Needed([bool; INT_REGISTERS.len() + SSE_REGISTERS]);

impl Needed {
    /// Returns those of a function; `None` is one without a definition, whose general registers are shown raw.
    pub fn of(function: Option<&FunctionDef>) -> Needed {
        let mut needed = Needed::default();
        match function {
            Some(function) if function.params_known => {
                function.params.iter().for_each(|param| needed.add(param));
            }
            _ => needed.0[..INT_REGISTERS.len()].fill(true),
        }
        needed
    }

    /// Returns those of a function of a recording, with those of its ellipsis.
    pub fn of_defined(definitions: &Definitions, function: &FunctionDef) -> Needed {
        let mut needed = Needed::of(Some(function));
        if definitions.headers().ellipsis(function.id).is_some() {
            needed.0.fill(true);
        }
        needed
    }

    fn add(&mut self, param: &Param) {
        match param.place {
            // A wide integer continues in the next one.
            ParameterPlace::Int(first) => {
                let first = usize::from(first).min(INT_REGISTERS.len());
                let end = (first + 2).min(INT_REGISTERS.len());
                self.0[first..end].fill(true);
            }
            ParameterPlace::Sse(at) if usize::from(at) < SSE_REGISTERS => {
                self.0[INT_REGISTERS.len() + usize::from(at)] = true;
            }
            ParameterPlace::Sse(_) | ParameterPlace::Memory => {}
        }
    }

    /// Returns those of either.
    pub fn or(mut self, other: Needed) -> Needed {
        for (own, other) in self.0.iter_mut().zip(other.0) {
            *own |= other;
        }
        self
    }

    /// Returns whether a register is needed: of the general ones first, then of the vector ones.
    pub fn has(&self, register: usize) -> bool {
        self.0.get(register).copied().unwrap_or(true)
    }
}

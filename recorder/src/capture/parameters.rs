//! Determines which parameters of a function are in integer argument registers, with their types.
//!
//! Only types are inspected: there is no thread and no memory.

use std::sync::Arc;

use debuginfo::location::FrameContext;
use debuginfo::scope::variables_at;
use debuginfo::{AddressSpace, Certainty, Machine, Mapped, Module, Register, Type, Unknown};
use store::control::{FunctionDef, ParameterPlace, ValueKind};

/// Number of integer argument registers.
pub(crate) const REGISTERS: usize = 6;

/// A parameter that begins in an integer argument register.
pub(crate) struct InRegister {
    /// Index of the register: less than [`REGISTERS`].
    pub register: usize,
    pub ty: Type,
    /// Whether the parameter is an address.
    pub is_pointer: bool,
    /// Whether the register holds the address of the parameter.
    pub is_indirect: bool,
}

impl InRegister {
    /// Returns whether the register holds an address, possibly that of the value itself.
    pub fn has_address(&self) -> bool {
        self.is_pointer || self.is_indirect
    }
}

/// Finds the parameters in registers, in order. `space` holds the function's module at its file addresses.
pub(crate) fn in_registers(space: &AddressSpace, function: &FunctionDef) -> Vec<InRegister> {
    let entry = FrameContext {
        lookup_pc: function.svma,
        ..FrameContext::outside(space, &Nothing)
    };
    let variables = variables_at(&entry);
    let found = function.params.iter().filter_map(|param| {
        let ParameterPlace::Int(register) = param.place else {
            return None;
        };
        let variable = variables
            .iter()
            .find(|variable| variable.is_parameter && variable.name == param.name)?;
        let register = usize::from(register);
        (register < REGISTERS).then(|| InRegister {
            register,
            ty: variable.ty(),
            is_pointer: param.kind == ValueKind::Pointer,
            is_indirect: param.is_indirect,
        })
    });
    found.collect()
}

/// Returns an address space of one module at its file addresses.
pub(crate) fn space(module: &Arc<Module>) -> AddressSpace {
    AddressSpace::new(vec![Mapped {
        module: Arc::clone(module),
        number: 0,
        bias: 0,
        range: 0..u64::MAX,
        is_system: false,
    }])
}

struct Nothing;

impl Machine for Nothing {
    fn memory(&self, _: u64, _: &mut [u8]) -> Result<Certainty, Unknown> {
        Err(Unknown::because("there is no memory".to_owned()))
    }

    fn register(&self, _: Register) -> Result<(u64, Certainty), Unknown> {
        Err(Unknown::because("there are no registers".to_owned()))
    }

    fn vector(&self, _: Register) -> Result<([u8; 16], Certainty), Unknown> {
        Err(Unknown::because("there are no registers".to_owned()))
    }
}

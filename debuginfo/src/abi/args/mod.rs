//! Finds where arguments are at function entry, from the signature, the location lists and the first instructions.

mod assign;
mod locations;
mod prologue;

pub(crate) use assign::{Passed, assign, ret_place};
pub(crate) use locations::{Found, FrameBase, Home, Locations};
pub(crate) use prologue::{Spills, trace};

/// DWARF numbers of the integer argument registers: rdi, rsi, rdx, rcx, r8, r9.
const INT_REGISTERS: [u16; 6] = [5, 4, 1, 2, 8, 9];
/// DWARF number of xmm0.
const XMM0: u16 = 17;
/// DWARF numbers of rbp and rsp.
const RBP: u16 = 6;
const RSP: u16 = 7;

/// Returns the DWARF number of the register in `place`, if it is a register.
pub(crate) fn register_of(place: crate::model::ParameterPlace) -> Option<u16> {
    use crate::model::ParameterPlace;
    match place {
        ParameterPlace::Int(index) => INT_REGISTERS.get(usize::from(index)).copied(),
        ParameterPlace::Sse(index) => Some(XMM0 + u16::from(index)),
        _ => None,
    }
}

/// Returns the name of a parameter behind `before` others of the same name. Clang gives all parameters of a pack one name.
pub(crate) fn numbered(name: &str, before: usize) -> String {
    match before {
        0 => name.to_owned(),
        _ => format!("{name}#{before}"),
    }
}

/// Returns the argument register with DWARF number `register`, if it is one.
fn argument_register(register: u16) -> Option<crate::model::ParameterPlace> {
    use crate::model::ParameterPlace;
    if let Some(index) = INT_REGISTERS.iter().position(|r| *r == register) {
        return Some(ParameterPlace::Int(index as u8));
    }
    let xmm = register.checked_sub(XMM0).filter(|x| *x < 8)?;
    Some(ParameterPlace::Sse(xmm as u8))
}

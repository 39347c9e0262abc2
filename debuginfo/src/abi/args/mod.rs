//! Where arguments are when a function is entered: by its signature, by its location lists, by its first instructions.

mod assign;
mod locations;
mod prologue;

pub(crate) use assign::{Passed, assign, ret_place};
pub(crate) use locations::{Found, FrameBase, Home, Locations};
pub(crate) use prologue::{Spills, trace};

/// Integer argument registers as DWARF numbers them: rdi, rsi, rdx, rcx, r8, r9.
const INT_REGISTERS: [u16; 6] = [5, 4, 1, 2, 8, 9];
/// DWARF's number of xmm0.
const XMM0: u16 = 17;
/// DWARF's numbers of rbp and rsp.
const RBP: u16 = 6;
const RSP: u16 = 7;

/// DWARF's number of the register that `place` is, if it is one.
pub(crate) fn register_of(place: crate::model::ParameterPlace) -> Option<u16> {
    use crate::model::ParameterPlace;
    match place {
        ParameterPlace::Int(index) => INT_REGISTERS.get(usize::from(index)).copied(),
        ParameterPlace::Sse(index) => Some(XMM0 + u16::from(index)),
        _ => None,
    }
}

/// The argument register with DWARF's number `register`, if it is one.
fn argument_register(register: u16) -> Option<crate::model::ParameterPlace> {
    use crate::model::ParameterPlace;
    if let Some(index) = INT_REGISTERS.iter().position(|r| *r == register) {
        return Some(ParameterPlace::Int(index as u8));
    }
    let xmm = register.checked_sub(XMM0).filter(|x| *x < 8)?;
    Some(ParameterPlace::Sse(xmm as u8))
}

//! Reads what a function has just returned, from the registers after its return.

use std::sync::Arc;

use gimli::constants as dw;

use super::functions::function_at;
use super::hidden_result::hidden_result;
use crate::address_space::AddressSpace;
use crate::extended::Extended;
use crate::location::{Piece, ValuePlace};
use crate::machine::{Machine, Register, Unknown};
use crate::model::{RetPlace, RetReg, Svma};
use crate::module::Module;
use crate::types::{DieId, Language, Type, with_session};
use crate::value::Value;

/// Returns the type of what the function whose first instruction is at `entry` returns, and where it leaves that. `Ok(None)`
/// means that it returns nothing.
///
/// # Errors
/// Nothing describes the function.
pub fn result(space: &AddressSpace, entry: u64) -> Result<Option<(Type, RetPlace)>, Unknown> {
    let undescribed = || Unknown::because("nothing describes the function");
    let mapped = space.at(entry).ok_or_else(undescribed)?;
    let svma = mapped.svma(entry);
    let module = &mapped.module;
    let id = function_at(module, svma).ok_or_else(undescribed)?;
    let list = &module.functions().list;
    let at = list.binary_search_by_key(&svma, |function| function.svma);
    let function = &list[at.map_err(|_| undescribed())?];
    let ty = stated_type(module, id).filter(|_| function.ret_place != RetPlace::None);
    Ok(ty.map(|ty| (ty, function.ret_place)))
}

/// Reads the return value of the function whose first instruction is at `entry`. `machine` is the thread just after the
/// return. `Ok(None)` means that the function returns nothing.
///
/// # Errors
/// Nothing describes the function, or its result is in an unsupported place.
pub fn returned(
    space: &AddressSpace,
    machine: &dyn Machine,
    entry: u64,
) -> Result<Option<Value>, Unknown> {
    let Some((ty, place)) = result(space, entry)? else {
        return Ok(None);
    };
    let size = ty.size().unwrap_or(0);
    let place = match place {
        RetPlace::None => return Ok(None),
        RetPlace::Regs(first, None) => ValuePlace::Register(first.register()),
        RetPlace::Regs(first, Some(second)) => {
            let (second, from) = second;
            let from = u64::from(from);
            ValuePlace::Pieces(vec![
                piece(first, from),
                piece(second, size.saturating_sub(from)),
            ])
        }
        RetPlace::Hidden => ValuePlace::Memory(hidden(space, machine, &ty)?),
        RetPlace::X87 => ValuePlace::Implicit(on_x87_stack(machine, size)?),
        RetPlace::Unknown => {
            return Err(Unknown::because("nothing tells how it is returned"));
        }
    };
    Ok(Some(Value::read(ty, place, machine)))
}

/// Reads a `long double` of st0, or a complex one of st0 and st1 (System V ABI, 3.2.3), with the padding that it has in memory.
fn on_x87_stack(machine: &dyn Machine, size: u64) -> Result<Vec<u8>, Unknown> {
    let area = machine.extended();
    let area = area.ok_or_else(|| Unknown::because("it is on the x87 stack"))?;
    let mut bytes = Vec::new();
    for number in 0..usize::from(size > 16) + 1 {
        let part = Extended::X87(number).read(&area);
        let part = part.ok_or_else(|| Unknown::because("it is on the x87 stack"))?;
        bytes.extend(part);
        bytes.resize((number + 1) * 16, 0);
    }
    Ok(bytes)
}

/// Returns the address of a result in memory, which the caller passed in rdi.
fn hidden(space: &AddressSpace, machine: &dyn Machine, ty: &Type) -> Result<u64, Unknown> {
    if let Some(address) = machine.first_argument() {
        return Ok(address);
    }
    let (back, _) = machine.register(Register::RIP)?;
    match hidden_result(space, machine, back) {
        Some(address) => Ok(address),
        None if ty.language() != Language::Rust => Ok(machine.register(Register::RAX)?.0),
        None => Err(Unknown::because(
            "its address is not returned by functions of Rust, and the caller's code does not show it",
        )),
    }
}

/// Returns the return type of the function at `svma`, or `None` if it returns nothing or nothing describes it.
#[must_use]
pub fn result_type(module: &Arc<Module>, svma: Svma) -> Option<Type> {
    stated_type(module, function_at(module, svma)?)
}

fn stated_type(module: &Arc<Module>, function: DieId) -> Option<Type> {
    let stated = with_session(module.entries(), function, |session, die| {
        let chain = session.chain(die);
        let ty = chain.iter().find_map(|d| session.follow(d, dw::DW_AT_type));
        ty.map(|ty| DieId::of(&ty))
    });
    Some(Type::at(module, stated.flatten()?))
}

fn piece(of: RetReg, bytes: u64) -> Piece {
    Piece::new(ValuePlace::Register(of.register()), 0, bytes * 8)
}

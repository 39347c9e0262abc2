//! The members that C++ pointers to members stand for, by their representation in the Itanium C++ ABI, section 2.3.

use gimli::constants as dw;
use gimli::{EndianSlice, LittleEndian, Reader as _};

use super::members::{MemberOffset, Role};
use super::read::with_session;
use super::{MAX_STEPS, Type};
use crate::demangle;
use crate::dies::{Die, DieReader, Value};

/// Returns the qualified name of the data member, own or of a base class, that begins `offset` bytes after the start of
/// an object of `class`.
#[must_use]
pub fn member_at(class: &Type, offset: u64) -> Option<String> {
    data_member(class, &class.strip().own_name()?, offset, MAX_STEPS)
}

fn data_member(ty: &Type, owner: &str, offset: u64, steps: usize) -> Option<String> {
    let steps = steps.checked_sub(1)?;
    let members = ty.members();
    let placed = || {
        members.iter().filter_map(|member| match member.offset {
            MemberOffset::Bytes(start) if member.bits.is_none() => Some((member, start)),
            _ => None,
        })
    };
    let own = placed().filter(|(member, _)| member.role == Role::Member);
    for (member, start) in own {
        match &member.name {
            Some(name) if start == offset => return Some(format!("{owner}::{name}")),
            Some(_) => {}
            // The members of an unnamed union are members of the class around it.
            None => {
                if let Some(found) = inside(&member.ty, start, offset)
                    .and_then(|offset| data_member(&member.ty, owner, offset, steps))
                {
                    return Some(found);
                }
            }
        }
    }
    let mut bases = placed().filter(|(member, _)| member.role == Role::Base);
    bases.find_map(|(base, start)| {
        let offset = inside(&base.ty, start, offset)?;
        data_member(&base.ty, &base.ty.strip().own_name()?, offset, steps)
    })
}

/// Returns how far `offset` is inside a part of this type that begins at `start`.
fn inside(ty: &Type, start: u64, offset: u64) -> Option<u64> {
    let within = offset.checked_sub(start)?;
    (within < ty.size()?).then_some(within)
}

/// Returns the name, with its parameters, of the virtual function in `slot` of the table of virtual functions that the
/// part of `class` `adjustment` bytes after its start has. Slots are counted from 0.
#[must_use]
pub fn virtual_function(class: &Type, slot: u64, adjustment: u64) -> Option<String> {
    virtual_in(class, slot, adjustment, MAX_STEPS)
}

fn virtual_in(class: &Type, slot: u64, adjustment: u64, steps: usize) -> Option<String> {
    let steps = steps.checked_sub(1)?;
    let class = class.strip();
    let own = (adjustment == 0).then(|| declared_in(&class, slot));
    own.flatten().or_else(|| {
        let members = class.members();
        let mut bases = members.iter().filter(|member| member.role == Role::Base);
        bases.find_map(|base| match base.offset {
            MemberOffset::Bytes(start) => {
                let adjustment = inside(&base.ty, start, adjustment)?;
                virtual_in(&base.ty, slot, adjustment, steps)
            }
            _ => None,
        })
    })
}

/// Returns the name of the function that `class` itself declares for `slot`.
fn declared_in(class: &Type, slot: u64) -> Option<String> {
    let module = class.module()?;
    let found = with_session(&module.types().entries, class.node().id?, |session, die| {
        let definition = session.follow(die, dw::DW_AT_signature);
        let die = definition.as_ref().unwrap_or(die);
        let functions = session.children(die, &[dw::DW_TAG_subprogram]);
        let mut functions = functions.into_iter();
        // Clang gives slot 0 to destructors that the program does not write down. No pointer can lead to them.
        let function = functions.find(|function| {
            slot_of(session, function) == Some(slot)
                && !session.flag(function, dw::DW_AT_artificial)
        })?;
        name(session, &function, class)
    });
    found.flatten()
}

fn slot_of<'a>(session: &DieReader<'_, 'a>, function: &Die<'a>) -> Option<u64> {
    constant(&session.attr(function, dw::DW_AT_vtable_elem_location)?)
}

/// Compilers write the slot as an expression that pushes one constant.
fn constant(location: &Value<'_>) -> Option<u64> {
    let Some(expression) = location.exprloc_value() else {
        return location.udata_value();
    };
    let (first, rest) = expression.0.slice().split_first()?;
    let mut rest = EndianSlice::new(rest, LittleEndian);
    match gimli::DwOp(*first) {
        dw::DW_OP_constu => rest.read_uleb128().ok(),
        dw::DW_OP_const1u => rest.read_u8().ok().map(u64::from),
        dw::DW_OP_const2u => rest.read_u16().ok().map(u64::from),
        literal if (dw::DW_OP_lit0.0..=dw::DW_OP_lit31.0).contains(&literal.0) => {
            Some(u64::from(literal.0 - dw::DW_OP_lit0.0))
        }
        _ => None,
    }
}

fn name<'a>(session: &DieReader<'_, 'a>, function: &Die<'a>, class: &Type) -> Option<String> {
    if let Some(linkage) = session.string(function, dw::DW_AT_linkage_name) {
        let linkage = linkage.to_string_lossy();
        let (name, _) = demangle::readable(&linkage)?;
        let (parameters, qualifiers) = demangle::parameters(&linkage).unwrap_or_default();
        let gap = if qualifiers.is_empty() { "" } else { " " };
        return Some(format!("{name}({parameters}){gap}{qualifiers}"));
    }
    let name = session.string(function, dw::DW_AT_name)?;
    Some(format!("{}::{}", class.own_name()?, name.to_string_lossy()))
}

//! The text of C++ pointers to members, as gdb writes them. Their representation is that of the Itanium C++ ABI,
//! section 2.3.

use crate::scalar::symbol;
use debuginfo::types::{Type, TypeKind, member_at, virtual_function};
use debuginfo::value::Look;

/// The bytes of a pointer into the table of virtual functions for each function.
const SLOT_BYTES: u64 = 8;

pub(super) fn text(ty: &Type, raw: u128, look: &Look<'_>) -> String {
    let is_function = ty
        .target()
        .is_some_and(|target| target.strip().kind() == TypeKind::Function);
    match is_function {
        true => function(ty, raw as u64, (raw >> 64) as u64, look),
        false => data(ty, raw as u64),
    }
}

/// An offset. 0 is a valid one, so the null pointer is -1.
fn data(ty: &Type, offset: u64) -> String {
    if offset == u64::MAX {
        return "NULL".to_owned();
    }
    match ty
        .member_class()
        .and_then(|class| member_at(&class, offset))
    {
        Some(name) => format!("&{name}"),
        None => offset.to_string(),
    }
}

/// An address, or 1 more than an offset in the table of virtual functions; and what is added to `this`.
fn function(ty: &Type, pointer: u64, adjustment: u64, look: &Look<'_>) -> String {
    if pointer == 0 {
        return "NULL".to_owned();
    }
    if pointer % 2 == 1 {
        let offset = pointer - 1;
        let class = ty.member_class();
        let name =
            class.and_then(|class| virtual_function(&class, offset / SLOT_BYTES, adjustment));
        return match name {
            Some(name) => format!("&virtual {name}"),
            None => format!("&virtual <unknown: no function at offset {offset} of the vtable>"),
        };
    }
    let target = match symbol(look, pointer) {
        Some(symbol) => format!("{pointer:#x} <{symbol}>"),
        None => format!("{pointer:#x}"),
    };
    match adjustment {
        0 => target,
        _ => format!("{target}, this adjustment {adjustment}"),
    }
}

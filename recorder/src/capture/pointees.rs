//! Determines, from parameter types, how many bytes to capture at the address in each argument register.
//!
//! This covers pointers and references to sized types, and structures passed by address; at most the first
//! [`POINTEE_MAX`] bytes are captured. Text that the function may write is captured at the return; `texts` captures its
//! contents at entry. A register that holds the address of a result in memory is captured at the return too.

use std::sync::Arc;

use agent::shared::{POINTEE_MAX, POINTEE_RESULT, POINTEE_TEXT};
use debuginfo::scope::result_type;
use debuginfo::{Module, Svma, Type, TypeKind};
use store::control::{FunctionDef, RetPlace};

use super::parameters::{InRegister, REGISTERS};
use super::texts::is_character;

/// The register that holds the address of a result in memory: rdi.
const RESULT: usize = 0;

/// Returns the values for the runtime: `HS_POINTEE_`, or 0.
pub(crate) fn of(
    module: &Arc<Module>,
    function: &FunctionDef,
    parameters: &[InRegister],
) -> [u16; REGISTERS] {
    let mut pointees = [0; REGISTERS];
    for parameter in parameters {
        pointees[parameter.register] = match parameter.is_indirect {
            true => len(&parameter.ty.strip()),
            false => of_pointer(&parameter.ty),
        };
    }
    if function.ret_place == Some(RetPlace::Memory) {
        let result = result_type(module, Svma(function.svma)).map_or(0, |ty| len(&ty));
        if result != 0 {
            pointees[RESULT] = result | POINTEE_RESULT;
        }
    }
    pointees
}

/// Returns what to capture through a pointer or reference.
fn of_pointer(ty: &Type) -> u16 {
    let ty = ty.strip();
    let Some(target) = ty.target() else {
        return 0;
    };
    let value = target.strip();
    // A Rust reference refers to a single value.
    let is_reference = ty.own_name().is_some_and(|name| name.starts_with('&'));
    match ty.kind() {
        TypeKind::Reference | TypeKind::RvalueReference => len(&value),
        TypeKind::Pointer if is_reference || !is_character(&value) => len(&value),
        TypeKind::Pointer if target.is_const() => 0,
        TypeKind::Pointer => POINTEE_MAX | POINTEE_TEXT | POINTEE_RESULT,
        _ => 0,
    }
}

/// Returns how many bytes of such a value to capture.
fn len(ty: &Type) -> u16 {
    let ty = ty.strip();
    let has_value = !matches!(
        ty.kind(),
        TypeKind::Void | TypeKind::Unspecified | TypeKind::Function
    );
    let size = ty.definition().size().filter(|_| has_value).unwrap_or(0);
    u16::try_from(size).unwrap_or(POINTEE_MAX).min(POINTEE_MAX)
}

//! What arguments lead to: how many bytes are captured behind each argument register, by the types of the parameters.
//!
//! Pointers and references to what has a size count, and structures that are passed by their address; of more than
//! [`POINTEE_MAX`] bytes the first ones. Text that the function may write is captured at the return; what it was before is left to
//! `texts`. Where a result lies in memory, the register has its address too, and it is captured at the return.

use std::sync::Arc;

use agent::shared::{POINTEE_MAX, POINTEE_RESULT, POINTEE_TEXT};
use debuginfo::scope::result_type;
use debuginfo::{Module, Svma, Type, TypeKind};
use store::control::{FunctionDef, RetPlace};

use super::parameters::{InRegister, REGISTERS};
use super::texts::is_character;

/// The register that has the address of a result in memory: rdi.
const RESULT: usize = 0;

/// Returns what the runtime is told: `HS_POINTEE_`, or 0.
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

/// What is captured behind a pointer or reference.
fn of_pointer(ty: &Type) -> u16 {
    let ty = ty.strip();
    let Some(target) = ty.target() else {
        return 0;
    };
    let value = target.strip();
    // A reference of Rust is one to a single value.
    let is_reference = ty.own_name().is_some_and(|name| name.starts_with('&'));
    match ty.kind() {
        TypeKind::Reference | TypeKind::RvalueReference => len(&value),
        TypeKind::Pointer if is_reference || !is_character(&value) => len(&value),
        TypeKind::Pointer if target.is_const() => 0,
        TypeKind::Pointer => POINTEE_MAX | POINTEE_TEXT | POINTEE_RESULT,
        _ => 0,
    }
}

/// How many bytes of such a value are captured.
fn len(ty: &Type) -> u16 {
    let ty = ty.strip();
    let has_value = !matches!(
        ty.kind(),
        TypeKind::Void | TypeKind::Unspecified | TypeKind::Function
    );
    let size = ty.definition().size().filter(|_| has_value).unwrap_or(0);
    u16::try_from(size).unwrap_or(POINTEE_MAX).min(POINTEE_MAX)
}

//! Parameters of functions of the C library that no debug information describes, as its headers declare them. Their registers
//! are those of the entry.

use debuginfo::prototypes::{PointedText, Prototype, PrototypeParam, is_c_library, prototype};
use debuginfo::scope::function_type;
use debuginfo::types::{Type, builtin};
use debuginfo::value::Look;
use debuginfo::{Certainty, Frame, Machine, Register, Value, ValueKind, ValuePlace};
use store::control::ParameterPlace as Registers;
use values::write_enumerators;

use super::View;
use super::values::{Manner, ValueFormat, VariableReport, shown};

/// Returns the parameters of the selected frame, if headers alone know them and the frame is at the entry of its function.
pub(super) fn parameters(view: &View<'_>, manner: Manner) -> Vec<VariableReport> {
    let Ok(frame) = view.frame() else {
        return Vec::new();
    };
    if view.frame != 0 || frame.inlined || frame.function_entry != Some(frame.pc) {
        return Vec::new();
    }
    let known = declaration(view, frame);
    let all = known.into_iter().flat_map(|known| known.params);
    all.filter_map(|param| report(view, manner, &param))
        .collect()
}

fn declaration(view: &View<'_>, frame: &Frame) -> Option<Prototype> {
    let entry = frame.function_entry?;
    let mapped = view.space.at(entry)?;
    let svma = mapped.svma(entry);
    if let Some(target) = frame.function.as_deref()?.strip_suffix("@plt") {
        let stubs = mapped.module.plt_entries();
        let library = stubs
            .iter()
            .find(|stub| stub.svma == svma)?
            .library
            .as_deref();
        return prototype(target).filter(|_| library.is_some_and(is_c_library));
    }
    let file = mapped.module.path().file_name()?.to_string_lossy();
    if !mapped.is_system || !is_c_library(&file) || function_type(&mapped.module, svma).is_some() {
        return None;
    }
    let names = mapped.module.linker_names_at(svma);
    names.into_iter().find_map(prototype)
}

fn report(view: &View<'_>, manner: Manner, param: &PrototypeParam) -> Option<VariableReport> {
    let register = match param.place {
        debuginfo::ParameterPlace::Int(at) => *Registers::INT_REGISTERS.get(usize::from(at))?,
        debuginfo::ParameterPlace::Sse(at) => Register::XMM0.0 + u16::from(at),
        _ => return None,
    };
    if is_older_than_frame(view.machine, Register(register)) {
        return None;
    }
    let ty = match param.text {
        Some(PointedText::Seldom | PointedText::Often) => builtin("char")?.pointer(),
        Some(PointedText::Data) | None => type_of_kind(&param.kind)?,
    };
    let place = ValuePlace::Register(Register(register));
    let value = Value::read(ty, place, view.machine);
    let look = Look {
        space: view.space,
        machine: view.machine,
    };
    let natural = manner.format == ValueFormat::Natural;
    let manner = match natural && is_mode(param) {
        true => manner.in_format(ValueFormat::Octal),
        false => manner,
    };
    let mut shown = shown(&value, param.name, manner, &look);
    if let (true, Some(text), ValueKind::Enum { names, .. }) =
        (natural, &mut shown.value, &param.kind)
        && let Ok(number) = value.as_integer()
    {
        text.clear();
        write_enumerators(text, number, names);
    }
    Some(VariableReport {
        name: param.name.to_owned(),
        type_name: value.ty.name(),
        shown,
        is_parameter: true,
        shadowed: false,
        line: None,
        at_entry: false,
        optimized_out: false,
    })
}

/// Returns whether a register was last seen before the frame existed: then it held something else.
fn is_older_than_frame(machine: &dyn Machine, register: Register) -> bool {
    let certainty = match register.0 >= Register::XMM0.0 {
        true => machine.vector_low(register).map(|(_, certainty)| certainty),
        false => machine.register(register).map(|(_, certainty)| certainty),
    };
    matches!(certainty, Ok(Certainty::Stale { as_of }) if machine.is_before_frame(as_of))
}

/// Returns whether a parameter holds the permissions of a file.
fn is_mode(param: &PrototypeParam) -> bool {
    let is_word = matches!(
        param.kind,
        ValueKind::Int {
            bytes: 4,
            signed: false
        }
    );
    is_word && matches!(param.name, "mode" | "mask")
}

/// Returns the type of values of a kind.
pub(crate) fn type_of_kind(kind: &ValueKind) -> Option<Type> {
    let name = match kind {
        ValueKind::Void => "void",
        ValueKind::Bool => "bool",
        ValueKind::Char { bytes: 1 }
        | ValueKind::Int {
            bytes: 1,
            signed: true,
        } => "char",
        ValueKind::Int { bytes: 1, .. } => "unsigned char",
        ValueKind::Int {
            bytes: 2,
            signed: true,
        } => "short",
        ValueKind::Int { bytes: 2, .. } => "unsigned short",
        ValueKind::Int {
            bytes: 4,
            signed: true,
        }
        | ValueKind::Enum { bytes: 4, .. } => "int",
        ValueKind::Int { bytes: 4, .. } => "unsigned int",
        ValueKind::Int {
            bytes: 8,
            signed: true,
        } => "long",
        ValueKind::Int { bytes: 8, .. } => "unsigned long",
        ValueKind::Float { bytes: 4 } => "float",
        ValueKind::Float { bytes: 8 } => "double",
        ValueKind::Pointer => return Some(builtin("void")?.pointer()),
        _ => return None,
    };
    builtin(name)
}

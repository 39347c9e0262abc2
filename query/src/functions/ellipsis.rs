//! Arguments of an ellipsis, as far as the arguments before it tell: `mode=0640` of open, `arg=FD_CLOEXEC` of fcntl, what a
//! format asks for. Those on the stack are not recorded with a call and read `?`; where the number of arguments is not known
//! either, dots end the list.

use debuginfo::prototypes::{Ellipsis, Formatted, formatted};
use debuginfo::syscalls::number;
use store::control::ValueKind;

use super::args::{
    INT_REGISTERS, Known, Parameter, SSE_REGISTERS, append, octal, write_int, write_sse,
};
use crate::state::Extent;
use crate::syscalls::{Argument, Call, command_name, each_argument, has_signature, name};

/// Appends a named argument that is a command or the number of a system call by its name: `request=FIONREAD`. Returns
/// whether it is one.
pub fn write_command(text: &mut String, ellipsis: Ellipsis, of: &Parameter<'_>) -> bool {
    let Some(value) = of.register(of.index) else {
        return false;
    };
    let named = match (ellipsis, of.param.name.as_str()) {
        (Ellipsis::Command(call), "cmd" | "request" | "option") => {
            command_name(call, value).map(str::to_owned)
        }
        (Ellipsis::SystemCall, "sysno") => name(value).map(|name| format!("SYS_{name}")),
        _ => None,
    };
    if let Some(named) = &named {
        append(text, format_args!("{}={named}", of.param.name));
    }
    named.is_some()
}

/// Appends the arguments of an ellipsis; `last` is the last parameter before it.
pub fn write(text: &mut String, ellipsis: Ellipsis, last: &Parameter<'_>, known: &mut dyn Known) {
    match ellipsis {
        Ellipsis::Mode => write_mode(text, last),
        Ellipsis::Command(call) => write_arguments_of_command(text, call, last, known),
        Ellipsis::SystemCall => write_arguments_of_call(text, last, known),
        Ellipsis::Format => write_formatted(text, last, known),
    }
}

const UNKNOWN_NUMBER: &str = ", ...";

fn write_mode(text: &mut String, last: &Parameter<'_>) {
    let flags = last.register(last.index).unwrap_or(0);
    if !Ellipsis::makes_file(flags) {
        return;
    }
    let Some([mode, other]) = last.registers.int.get(last.index + 1..last.index + 3) else {
        return text.push_str(UNKNOWN_NUMBER);
    };
    append(text, format_args!(", mode={}", octal(*mode as u32)));
    match last.function.name.trim_end_matches("@plt") {
        "sem_open" => append(text, format_args!(", value={}", *other as u32)),
        "mq_open" => append(text, format_args!(", attr={other:#x}")),
        _ => {}
    }
}

fn write_arguments_of_command(
    text: &mut String,
    call: &str,
    last: &Parameter<'_>,
    known: &mut dyn Known,
) {
    let command = last.register(last.index).unwrap_or(0);
    // Of other commands the number of arguments is not known; of these functions it is one at most.
    if call == "prctl" && command_name(call, command).is_none() {
        return text.push_str(UNKNOWN_NUMBER);
    }
    let number = number(call).unwrap_or(u64::MAX);
    for argument in arguments(number, last.registers.int, known) {
        match (argument.index, call) {
            (index, _) if index <= last.index => {}
            // As its manual page counts.
            (index, "prctl") => append(text, format_args!(", arg{}={}", index + 1, argument.text)),
            _ => append(text, format_args!(", arg={}", argument.text)),
        }
    }
}

fn write_arguments_of_call(text: &mut String, last: &Parameter<'_>, known: &mut dyn Known) {
    let [number, given @ ..] = last.registers.int;
    if !has_signature(number) {
        return text.push_str(UNKNOWN_NUMBER);
    }
    let mut all = [0; INT_REGISTERS.len()];
    all[..given.len()].copy_from_slice(&given);
    for Argument {
        index, text: shown, ..
    } in arguments(number, all, known)
    {
        let shown = if index < given.len() { &shown } else { "?" };
        append(text, format_args!(", arg{}={shown}", index + 1));
    }
}

/// Returns the arguments of a system call, with the texts that are known.
fn arguments(number: u64, registers: [u64; 6], known: &mut dyn Known) -> Vec<Argument> {
    let begun: Vec<u8> = registers
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    let mut all = each_argument(&Call {
        number,
        begun: &begun,
        written: &[],
        result: None,
    });
    for argument in &mut all {
        let at = registers[argument.index];
        let extent = match argument.kind {
            "path" => Extent::Terminated,
            "in" => Extent::Bytes(registers.get(argument.index + 1).copied().unwrap_or(0)),
            _ => continue,
        };
        if let Some(shown) = known.text(at, extent) {
            argument.text = shown;
        }
    }
    all
}

fn write_formatted(text: &mut String, last: &Parameter<'_>, known: &mut dyn Known) {
    let format = last.register(last.index).and_then(|at| known.bytes(at));
    let Some(format) = format else {
        return text.push_str(UNKNOWN_NUMBER);
    };
    let (asked, is_all) = formatted(&format);
    let (mut general, mut vector, mut previous) = (last.index + 1, 0, None);
    for (index, asked) in asked.into_iter().enumerate() {
        append(text, format_args!(", arg{}=", last.index + 1 + index));
        match asked {
            Formatted::LongDouble => text.push('?'),
            Formatted::Double => {
                let bits = last.registers.sse.get(vector).copied().flatten();
                vector = (vector + 1).min(SSE_REGISTERS);
                write_sse(text, &ValueKind::Float { bytes: 8 }, bits);
            }
            asked => {
                let bits = last.registers.int.get(general).copied();
                general += 1;
                match bits {
                    Some(bits) => write_word(text, asked, bits, previous, known),
                    None => text.push('?'),
                }
                previous = bits;
            }
        }
    }
    if !is_all {
        text.push_str(UNKNOWN_NUMBER);
    }
}

/// Appends an argument in a general register; `previous` is the one before it, if known.
fn write_word(
    text: &mut String,
    asked: Formatted,
    bits: u64,
    previous: Option<u64>,
    known: &mut dyn Known,
) {
    // A negative precision is taken as if there were none.
    let precision = previous.and_then(|bits| u64::try_from(bits as i32).ok());
    let extent = match (asked, precision) {
        (Formatted::TextOf(most), _) | (Formatted::TextOfPrevious, Some(most)) => {
            Extent::AtMost(most)
        }
        _ => Extent::Terminated,
    };
    let kind = match asked {
        Formatted::Int { bytes, signed } => ValueKind::Int { bytes, signed },
        Formatted::Char => ValueKind::Char,
        Formatted::Text | Formatted::TextOf(_) | Formatted::TextOfPrevious => {
            if let Some(shown) = known.text(bits, extent) {
                return text.push_str(&shown);
            }
            ValueKind::Pointer
        }
        Formatted::Pointer | Formatted::Double | Formatted::LongDouble => ValueKind::Pointer,
    };
    write_int(text, &kind, &[bits]);
}

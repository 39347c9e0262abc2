//! `return`: leaves the innermost function at once, as if it had reached its end.
//!
//! The thread continues at a `ret` instruction of the function with the caller's stack and callee-saved registers. So
//! the return is recorded like any other.

use debuginfo::scope::result;
use debuginfo::types::{Type, TypeKind};
use debuginfo::value::{Value, number};
use debuginfo::{Machine, Register, RetPlace, RetReg};
use recorder::live::{Motion, Tid};
use serde::{Deserialize, Serialize};

use super::{Call, Command, Does, Form, Needs, Takes, Text, Verb, Word, stepping};
use crate::inspect::{self, View};
use crate::protocol::{Code, Failure};
use crate::session::{LiveSession, MotionReport, of_recorder_text};

/// The `return` verb.
pub struct Return;

/// The arguments of `return`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReturnArgs {
    /// What it returns: an expression, converted to the function's type. Default: what its registers hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// A register and its new bytes.
type NewRegister = (Register, Vec<u8>);

/// Where a result goes.
#[derive(Debug, PartialEq, Eq)]
enum Returned {
    Registers(Vec<NewRegister>),
    /// To the top of the x87 stack.
    X87([u8; 10]),
}

impl Verb for Return {
    const NAME: &'static str = "return";
    const DOC: &'static str = "Leave the current function at once: return, return -1\n\nThe value becomes one of the function's type, as in C. The rest of the function does not run, nor do its destructors. finish lets it run to its end.";
    const NEEDS: Needs = Needs::StoppedProgram;
    const DOES: Does = Does::Change;
    const TAKES: Takes = Takes::Expression;
    type Args = ReturnArgs;
    type Reply = MotionReport;

    fn run(call: &Call<'_>, args: ReturnArgs) -> Result<MotionReport, Failure> {
        let session = call.live()?;
        let timeout = stepping::patience(call, None)?;
        let stop = session.stopped()?;
        let (end, value) = session.look(|view| {
            let end = at_the_end(view)?;
            let text = args.value.as_deref().filter(|text| !text.is_empty());
            let value = text.map(|text| returned(view, text)).transpose()?;
            Ok((end, value))
        })?;
        let changes = match value {
            None => end,
            Some(Returned::Registers(value)) => value.into_iter().chain(end).collect(),
            Some(Returned::X87(number)) => {
                let written = session.live.write_x87_result(stop.tid, "$st0", number);
                written.map_err(|error| of_recorder_text(Code::WriteFailed, &error))?;
                end
            }
        };
        for (register, bytes) in &changes {
            write(&session, stop.tid, *register, bytes)?;
        }
        let finish = Motion::Finish { frame: 0 };
        Ok(stepping::go(call, &session, &stop, finish, false, timeout)?.report)
    }
}

impl Command for Return {
    const WORDS: &'static [Word] = &[Word::new(
        "value",
        "VALUE",
        Form::Operand,
        "What it returns: an expression",
    )
    .optional()];

    fn text(reply: &MotionReport, _: &ReturnArgs) -> Text {
        Text::stepping(reply)
    }
}

fn write(session: &LiveSession, tid: Tid, register: Register, bytes: &[u8]) -> Result<(), Failure> {
    let name = register.name().unwrap_or_default();
    session
        .live
        .write_register(tid, &format!("${name}"), register, bytes)
        .map(drop)
        .map_err(|error| of_recorder_text(Code::WriteFailed, &error))
}

/// The registers as they are where the innermost function returns.
fn at_the_end(view: &View<'_>) -> Result<Vec<NewRegister>, Failure> {
    let refused = |why: &str| {
        Failure::new(Code::NotAllowed, why.to_owned()).hint("let it run to its end: finish")
    };
    let innermost = view.frames.first().filter(|_| view.frame == 0);
    let Some(innermost) = innermost else {
        return Err(
            Failure::new(Code::NotAllowed, "only the innermost function can be left")
                .hint("select it: frame 0; leave several with: until LOCATION"),
        );
    };
    if innermost.inlined {
        return Err(refused("an inlined function has no return of its own"));
    }
    if innermost.is_signal || innermost.is_tail_call {
        return Err(refused("this frame does not return to its caller"));
    }
    let (Some(cfa), true) = (innermost.cfa, view.frames.len() > 1) else {
        return Err(refused("where it returns to is not known"));
    };
    let code =
        inspect::disassemble_around(view.space, view.machine, innermost.lookup_pc, None, false)?;
    let ends = |text: &str| text == "ret" || text == "retq" || text.starts_with("ret ");
    let end = code.instructions.iter().find(|one| ends(&one.text));
    let end = end.and_then(|one| {
        let digits = one.address.trim_start_matches("0x");
        u64::from_str_radix(digits, 16).ok()
    });
    let Some(end) = end else {
        return Err(refused("the function has no instruction that returns"));
    };
    let caller = view.at_frame(1).frame_machine()?;
    let mut changes = Vec::new();
    for register in Register::PRESERVED {
        let (value, _) = caller.register(register).map_err(|unknown| {
            let name = register.name().unwrap_or_default();
            refused(&format!("{name} of its caller is not known: {unknown}"))
        })?;
        changes.push((register, value.to_le_bytes().to_vec()));
    }
    let stack = cfa.wrapping_sub(8);
    changes.push((Register::RSP, stack.to_le_bytes().to_vec()));
    changes.push((Register::RIP, end.to_le_bytes().to_vec()));
    Ok(changes)
}

/// Returns where the value of an expression goes as the result of the innermost function.
fn returned(view: &View<'_>, text: &str) -> Result<Returned, Failure> {
    let refused = |why: String| Failure::new(Code::NotAllowed, why);
    let entry = view.frames.first().and_then(|frame| frame.function_entry);
    let described = entry.and_then(|entry| result(view.space, entry).ok());
    let (ty, place) = match described {
        Some(Some((ty, place))) if ty.strip().kind() != TypeKind::Unspecified => (ty, place),
        Some(None) => {
            let refusal = refused("the function returns nothing".to_owned());
            return Err(refusal.hint("leave it without a value: return"));
        }
        // Nothing tells the function's type.
        _ => {
            let register = by_its_own_type(text, &inspect::value_of(view, text)?)?;
            return Ok(Returned::Registers(vec![register]));
        }
    };
    let elsewhere = |place: &str| {
        let refusal = refused(format!("{} is returned {place}", ty.name()));
        refusal.hint("let the function run to its end, finish, and set the caller's variable")
    };
    match place {
        RetPlace::Regs(first, second) => {
            let bytes = inspect::bytes_as(view, text, &ty)?;
            Ok(Returned::Registers(in_registers(&ty, bytes, first, second)))
        }
        RetPlace::X87 if ty.size().is_some_and(|size| size <= 16) => {
            let bytes = inspect::bytes_as(view, text, &ty)?;
            let number = bytes.first_chunk().copied();
            number
                .map(Returned::X87)
                .ok_or_else(|| elsewhere("on the x87 stack"))
        }
        RetPlace::X87 => Err(elsewhere("in two registers of the x87 unit")),
        RetPlace::Hidden => Err(elsewhere("in memory of the caller")),
        _ => Err(elsewhere("in a place that nothing describes")),
    }
}

/// Returns the registers that carry a result. A number fills the whole of a general one.
fn in_registers(
    ty: &Type,
    mut bytes: Vec<u8>,
    first: RetReg,
    second: Option<(RetReg, u8)>,
) -> Vec<NewRegister> {
    let Some((second, from)) = second else {
        let is_negative = number::signedness(ty) == Some(true)
            && bytes.last().is_some_and(|byte| byte & 0x80 != 0);
        if first == RetReg::Rax && bytes.len() < 8 {
            bytes.resize(8, if is_negative { 0xff } else { 0 });
        }
        return vec![(first.register(), bytes)];
    };
    let rest = bytes.split_off(usize::from(from).min(bytes.len()));
    vec![(first.register(), bytes), (second.register(), rest)]
}

/// Returns the register that carries a value as the result of a function of the value's own type.
fn by_its_own_type(text: &str, value: &Value) -> Result<NewRegister, Failure> {
    let size = value.ty.size().unwrap_or(0);
    let is_float = value.ty.strip().kind() == TypeKind::Float;
    let wrong = || {
        Failure::new(
            Code::NotAllowed,
            format!("{text} is no value that one register returns"),
        )
        .hint("return a number or a pointer")
    };
    if is_float {
        let bytes = value.known_bytes().map_err(|_| wrong())?;
        return match bytes.len() {
            4 | 8 => Ok((Register::XMM0, bytes.to_vec())),
            _ => Err(wrong()),
        };
    }
    if size > 8 {
        return Err(wrong());
    }
    let number = value
        .as_integer()
        .map(|number| number as u64)
        .or_else(|_| value.as_address())
        .map_err(|_| wrong())?;
    Ok((Register::RAX, number.to_le_bytes().to_vec()))
}

#[cfg(test)]
mod tests {
    use debuginfo::types::builtin;

    use super::*;

    fn registers(
        name: &str,
        bytes: &[u8],
        first: RetReg,
        second: Option<(RetReg, u8)>,
    ) -> Vec<(String, Vec<u8>)> {
        let ty = builtin(name).expect("a type of C");
        let found = in_registers(&ty, bytes.to_vec(), first, second).into_iter();
        let name = |register: Register| register.name().expect("its name");
        found
            .map(|(register, bytes)| (name(register), bytes))
            .collect()
    }

    #[test]
    fn a_result_is_where_the_abi_has_it() {
        let one = |name: &str, bytes: &[u8]| vec![(name.to_owned(), bytes.to_vec())];
        let minus = registers("int", &[0xfe, 0xff, 0xff, 0xff], RetReg::Rax, None);
        assert_eq!(
            minus,
            one("rax", &[0xfe, 255, 255, 255, 255, 255, 255, 255])
        );
        let large = registers("u8", &[0xfe], RetReg::Rax, None);
        assert_eq!(large, one("rax", &[0xfe, 0, 0, 0, 0, 0, 0, 0]));
        let float = registers("float", &[0, 0, 0x20, 0xc0], RetReg::Xmm0, None);
        assert_eq!(float, one("xmm0", &[0, 0, 0x20, 0xc0]));
        let both = registers("i128", &[7; 12], RetReg::Rax, Some((RetReg::Xmm0, 8)));
        let [rax, xmm0] = [one("rax", &[7; 8]), one("xmm0", &[7; 4])];
        assert_eq!(both, [rax, xmm0].concat());
    }
}

//! `return`: leaves the innermost function at once, as if it had reached its end.
//!
//! The thread continues at a `ret` instruction of the function with the caller's stack and callee-saved registers. So
//! the return is recorded like any other.

use debuginfo::value::Value;
use debuginfo::{Machine, Register};
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
    /// What it returns: a number or a pointer. Default: the value in the register.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// A register and its new bytes.
type NewRegister = (Register, Vec<u8>);

impl Verb for Return {
    const NAME: &'static str = "return";
    const DOC: &'static str = "Leave the current function at once: return, return -1\n\nThe rest of the function does not run, nor do its destructors. finish lets it run to its end.";
    const NEEDS: Needs = Needs::StoppedProgram;
    const DOES: Does = Does::Change;
    const TAKES: Takes = Takes::Expression;
    type Args = ReturnArgs;
    type Reply = MotionReport;

    fn run(call: &Call<'_>, args: ReturnArgs) -> Result<MotionReport, Failure> {
        let session = call.live()?;
        let timeout = stepping::patience(call, None)?;
        let stop = session.stopped()?;
        let changes = session.look(|view| {
            let mut changes = at_the_end(view)?;
            if let Some(text) = args.value.as_deref().filter(|text| !text.is_empty()) {
                changes.insert(0, returned(text, &inspect::value_of(view, text)?)?);
            }
            Ok(changes)
        })?;
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
        "What it returns: a number or a pointer",
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

/// The register that carries a result, with it.
fn returned(text: &str, value: &Value) -> Result<NewRegister, Failure> {
    let size = value.ty.size().unwrap_or(0);
    let is_float = value.ty.strip().kind() == debuginfo::types::TypeKind::Float;
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

//! `jump`: makes the thread continue at another place.

use debuginfo::Register;
use recorder::live::Motion;
use serde::{Deserialize, Serialize};

use super::{Call, Command, Does, Form, Needs, Takes, Text, Verb, Word, memory, stepping};
use crate::inspect::{self, View};
use crate::location::{LineTarget, ParsedLocation, Target};
use crate::protocol::{Code, Failure};
use crate::session::{MotionReport, of_recorder, of_recorder_text};

/// The `jump` verb.
pub struct Jump;

/// The arguments of `jump`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JumpArgs {
    /// The place.
    pub at: Target,
    /// How long to wait, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_secs: Option<f64>,
}

impl Verb for Jump {
    const NAME: &'static str = "jump";
    const DOC: &'static str = "Continue at another place in the function: jump 42, jump orders.c:42\n\nOnly the instruction pointer changes; the stack and the other registers stay. A place in another function is refused: its frame does not exist.";
    const NEEDS: Needs = Needs::StoppedProgram;
    const DOES: Does = Does::Change;
    const TAKES: Takes = Takes::Location;
    type Args = JumpArgs;
    type Reply = MotionReport;

    fn run(call: &Call<'_>, args: JumpArgs) -> Result<MotionReport, Failure> {
        let session = call.live()?;
        let timeout = stepping::patience(call, args.timeout_secs)?;
        let stop = session.stopped()?;
        let address = session.look(|view| place(view, &args.at))?;
        let bytes = address.to_le_bytes();
        session
            .live
            .write_register(stop.tid, "$rip", Register::RIP, &bytes)
            .map_err(|error| of_recorder_text(Code::WriteFailed, &error))?;
        let after = session
            .live
            .resume(stop.tid, Motion::Continue, true)
            .map_err(|error| of_recorder(&error))?;
        Ok(stepping::wait(call, &session, after, timeout)?.report)
    }
}

impl Command for Jump {
    const WORDS: &'static [Word] = &[
        Word::new(
            "at",
            "LOCATION",
            Form::Text,
            "A line, file:line or 0xADDRESS, in the function of the innermost frame",
        ),
        stepping::TIMEOUT,
    ];

    fn text(reply: &MotionReport, _: &JumpArgs) -> Text {
        Text::stepping(reply)
    }
}

/// The address of a place in the innermost function.
fn place(view: &View<'_>, at: &Target) -> Result<u64, Failure> {
    let Some(innermost) = view.frames.first().filter(|_| view.frame == 0) else {
        return Err(Failure::new(
            Code::NotAllowed,
            "only the innermost frame can go on elsewhere",
        )
        .hint("select it: frame 0"));
    };
    let space = view.space;
    let of_line = |line: LineTarget| {
        let found = space.resolve_line(&line.file, line.line, line.column);
        let places = found.map_err(|error| crate::inspect::of_line_error(&error))?;
        Ok::<_, Failure>(places.into_iter().map(|place| place.address).collect())
    };
    let candidates: Vec<u64> = match at.parse()? {
        ParsedLocation::Line(line) => of_line(line)?,
        ParsedLocation::LineHere(line) => of_line(inspect::line_here(view, line)?)?,
        ParsedLocation::Address(address) => vec![address],
        ParsedLocation::Function(name) => {
            let found = space.functions_matching(&name).into_iter();
            let entries: Vec<u64> = found.map(|function| function.after_prologue).collect();
            match entries.is_empty() {
                // An expression that is an address, as in gdb's jump *$pc.
                true => vec![memory::address(view, &name)?],
                false => entries,
            }
        }
    };
    let own = innermost.function_entry;
    let is_inside = |address: &u64| {
        let function = space.function_at(*address);
        own.is_some() && function.map(|function| function.entry) == own
    };
    candidates.into_iter().find(is_inside).ok_or_else(|| {
        let name = innermost.function.as_deref().unwrap_or("this function");
        Failure::new(
            Code::NotAllowed,
            format!("{at} is not in {name}, whose frame the thread is in"),
        )
        .hint("to call another function: call f(1); to leave this one: finish, or return")
    })
}

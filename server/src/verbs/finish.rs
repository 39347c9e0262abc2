//! `finish`: runs until the function of the selected frame has returned to its caller, and reports the return value.
//! For an inlined call, runs until the call is done; there is no return value to read.

use debuginfo::Frame;
use recorder::live::{Motion, Reason, Stop};
use replay::moves::Direction;

use super::{Call, Command, Does, Needs, Text, TimeoutArgs, Verb, Word, stepping};
use crate::inspect::ReturnedReport;
use crate::protocol::Failure;
use crate::session::{LiveSession, MotionReport, Session};

/// The `finish` verb.
pub struct Finish;

impl Verb for Finish {
    const NAME: &'static str = "finish";
    const DOC: &'static str = "Run until the current function returns";
    const ALIASES: &'static [&'static str] = &["out"];
    const NEEDS: Needs = Needs::Stop;
    const DOES: Does = Does::Move;
    type Args = TimeoutArgs;
    type Reply = MotionReport;

    fn run(call: &Call<'_>, args: TimeoutArgs) -> Result<MotionReport, Failure> {
        let session = match call.target()? {
            Session::Live(session) => session,
            Session::Recorded(past) => return past.finish(Direction::Forward, &|| call.is_gone()),
        };
        let timeout = stepping::patience(call, args.timeout_secs)?;
        let stop = session.stopped()?;
        // Tail calls may have left frames between this frame and the one to which it returns.
        let moment = session.moment_of(stop.clone(), 64)?;
        let frame = moment.frame;
        let awaited = Awaited::of(&moment.backtrace.frames, frame);
        let came = stepping::go(
            call,
            &session,
            &stop,
            Motion::Finish { frame },
            false,
            timeout,
        )?;
        let at = came.stop.filter(|at| at.tid == stop.tid);
        let returned = at.zip(awaited);
        Ok(MotionReport {
            returned: returned.and_then(|(at, awaited)| awaited.returned(&session, &at)),
            ..came.report
        })
    }
}

impl Command for Finish {
    const WORDS: &'static [Word] = &[stepping::TIMEOUT];

    fn text(reply: &MotionReport, _: &Self::Args) -> Text {
        Text::stepping(reply)
    }
}

/// A call whose return is awaited.
struct Awaited {
    function: Option<String>,
    entry: u64,
    /// The return address.
    back: u64,
    /// The stack pointer after the return.
    stack: u64,
}

impl Awaited {
    /// Returns the call of a frame; `None` for an inlined one.
    fn of(frames: &[Frame], index: usize) -> Option<Awaited> {
        let frame = frames.get(index)?;
        if frame.inlined || frame.is_tail_call {
            return None;
        }
        Some(Awaited {
            function: frame.function.clone(),
            entry: frame.function_entry?,
            back: replay::returns_to(frames, index)?,
            stack: frame.cfa?,
        })
    }

    /// Reads the return value, if the thread stopped because the call returned.
    fn returned(&self, session: &LiveSession, stop: &Stop) -> Option<ReturnedReport> {
        if stop.reason != Reason::Step || stop.pc != self.back {
            return None;
        }
        let machine = session.live.machine(stop.tid).ok()?;
        let registers = &machine.registers.general;
        // A handler may begin right after the call. The unwinder and longjmp jump to it through one of these registers.
        let is_landing = [registers.rcx, registers.rdx].contains(&stop.pc);
        if registers.rsp != self.stack || is_landing {
            return None;
        }
        let space = session.live.space();
        let name = self.function.clone();
        ReturnedReport::read(&space, &machine, name, self.entry, session.live.kept())
    }
}

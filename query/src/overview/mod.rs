//! What a colleague would say first about a recording: how the program ended, what it printed and what failed, its
//! threads, where the time went, what is unusual, and what to ask next. Every claim has its `seq`.
//!
//! One file per section; `tally.rs` counts for several of them in one pass, `source.rs` serves all of them. `text.rs`
//! writes the overview within a number of lines. Where the recording lacks information, nothing is claimed.

mod cancel;
mod ending;
mod errors;
mod failures;
mod freed;
mod left;
mod lines;
mod made;
mod panic;
mod program;
mod questions;
mod results;
mod source;
mod stops;
mod syscalls;
mod tally;
mod text;
mod threads;
mod time;
mod unusual;

use serde::Serialize;
use store::manifest::EVERY_INSTRUCTION;

pub use cancel::Cancel;
pub use ending::{Crash, Ending, FrameSummary, How, LAST_EXEC, Seen, goes_on_after};
pub use errors::{ErrorLine, Errors};
pub use failures::{FailedSyscall, FailureKind, Failures, Value};
pub use freed::{FreedBlock, Step};
pub(crate) use made::{Made, is_made};
pub use program::Program;
pub use questions::{Question, Way, candidates};
pub use source::{By, CallLine, FileLine};
pub(crate) use source::{Source, line_of_call, told};
pub(crate) use stops::now_ns;
pub use syscalls::{About, FailedSyscalls, SyscallFailures};
pub use text::{all_within, within};
pub use threads::{Thread, ThreadEnd, Threads};
pub use time::{FunctionTime, Time};
pub use unusual::Unusual;

use crate::error::Result;
use crate::locks::{Waiter, locks};
use crate::session::Session;
use stops::Stops;

/// What to know first about a recording.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Overview {
    /// What was recorded.
    pub program: Program,
    /// How it ended.
    pub ending: Ending,
    /// What it printed to standard error.
    pub errors: Errors,
    /// Calls that look like failures.
    pub failures: FailedCalls,
    /// System calls that failed, if system calls were recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_syscalls: Option<FailedSyscalls>,
    /// Its threads.
    pub threads: Threads,
    /// Threads that waited for each other's locks at the end, if locks were recorded: each for the next.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deadlocks: Vec<Vec<Waiter>>,
    /// Where the time went.
    pub time: Time,
    /// What is unusual.
    pub unusual: Vec<Unusual>,
    /// What to ask next.
    pub next: Vec<Question>,
}

/// Calls that look like failures, by function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FailedCalls {
    /// Those that are reported.
    pub told: Vec<Failures>,
    /// How many more functions there are.
    pub more: u64,
}

/// Examines a recording. `recording` is its name on a command line, for the questions.
///
/// # Errors
/// The recording cannot be read.
pub fn overview(session: &Session, recording: &str) -> Result<Overview> {
    cancellable(session, recording, &Cancel::default())
}

/// The same as [`overview()`], until `cancel` ends it.
///
/// # Errors
/// The recording cannot be read; [`crate::Error::Stopped`].
pub fn cancellable(session: &Session, recording: &str, cancel: &Cancel) -> Result<Overview> {
    let mut source = Source::new(session)?.until(cancel);
    let ending = ending::ending(&source)?;
    let stops = Stops::of(&source)?;
    source.leave_out(stops.made());
    // Times that count instructions are not those of the clock.
    let is_by_clock = !source.has_captured(EVERY_INSTRUCTION);
    // The recording may still be written when the program has ended.
    let until_ns = match ending.how {
        How::Running | How::Standing { .. } if is_by_clock => stops.until_ns(&source),
        _ => None,
    };
    let end = ending.last(&source, until_ns)?;
    let mut all = tally::tallies(&source, end)?;
    stops.take_out(&source, &mut all, end.1)?;
    let tallies = all.functions;
    let calls = tallies.iter().map(|tally| tally.calls).sum();
    let program = program::program(&source, (calls, tallies.len() as u64), until_ns)?;
    let errors = errors::errors(&source)?;
    let (told, more) = failures::failures(&source, (&tallies, &all.results), ending.has_failed())?;
    let failed_syscalls = syscalls::failed_syscalls(&source, ending.has_failed())?;
    let died = ending.crash.as_ref().map(|crash| (crash.tid, crash.seq));
    let threads = threads::threads(&source, &all.threads, died)?;
    let deadlocks = match source.has_captured("locks") {
        true => locks(session, &mut |_, _| ())?.deadlocks,
        false => Vec::new(),
    };
    let time = time::time(&source, &tallies);
    let ran_ns = program.duration_ns.unwrap_or_default();
    let mut unusual = unusual::unusual(&source, &tallies, &threads, ran_ns);
    if matches!(ending.how, How::Exited { .. }) {
        let left = left::still_allocated(&source, program.gaps > 0)?;
        unusual.splice(..0, left);
    }
    if ending.has_failed() {
        // Events that happened once say more about a failure than slow calls.
        unusual.sort_by_key(|what| !matches!(what, Unusual::OnceLate { .. }));
    }
    let mut overview = Overview {
        program,
        ending,
        errors,
        failures: FailedCalls { told, more },
        failed_syscalls,
        threads,
        deadlocks,
        time,
        unusual,
        next: Vec::new(),
    };
    overview.next = questions::questions(&overview, recording);
    Ok(overview)
}

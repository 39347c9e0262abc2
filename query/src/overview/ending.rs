//! How the program ended, and what the thread that ended it did.

use std::collections::BTreeSet;

use replay::{CallHead, Timeline};
use serde::Serialize;
use store::recording::RecordingState;

use super::freed::{self, FreedBlock};
use super::panic;
use super::source::{CallLine, MOST_AROUND, Source, told};
use crate::error::Result;
use crate::rows::Row;

/// Most frames of the thread that died.
const FRAMES: usize = 12;
/// Most calls that ended before.
const BEFORE: usize = 3;
/// Most exceptions that are reported.
const EXCEPTIONS: usize = 3;
/// Most calls around a panic.
const AROUND_PANIC: usize = 5;
/// The exit code of a Rust program whose main thread panicked.
const PANICKED: i64 = 101;

/// How the program ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ending {
    /// In which way.
    #[serde(flatten)]
    pub how: How,
    /// The event of it.
    pub seq: Option<u64>,
    /// When that was, in ns since the recording began.
    pub ts_ns: Option<i64>,
    /// The last program that it executed in its place before that, and the event: the calls of that one are not recorded.
    pub became: Option<(u64, String)>,
    /// The last moment of the thread that a signal ended.
    pub crash: Option<Crash>,
    /// The last calls of the main thread, the last one first, if the exit code is not 0; of a panic: the calls of the program's own
    /// source that were open then.
    pub last_calls: Vec<CallLine>,
    /// The event at which a panic began that ended the main thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub panic: Option<u64>,
    /// The last exceptions, panics and signals, except the one that ended it; the last one first.
    pub exceptions: Vec<Seen>,
    /// How many there were.
    pub exception_count: u64,
}

impl Ending {
    /// Returns whether the program reported a failure.
    pub(super) fn has_failed(&self) -> bool {
        matches!(self.how, How::Exited { code } if code != 0)
    }

    /// Returns the event at which the program ended, and its time in ns: that of the signal, of its exit, or the recording's
    /// last. `until_ns`: up to when it is known, if it runs.
    ///
    /// # Errors
    /// The recording cannot be read.
    pub(super) fn last(&self, source: &Source<'_>, until_ns: Option<i64>) -> Result<(u64, i64)> {
        let extent = source.session().extent();
        Ok(match (&self.crash, source.timeline(), &self.how) {
            (Some(crash), ..) => (crash.seq, crash.ts_ns),
            (None, Some(timeline), How::Exited { .. }) => {
                (told(timeline.last_own())?, told(timeline.ended_ns())?)
            }
            _ => (
                extent.events.saturating_sub(1),
                until_ns.unwrap_or(extent.last_ts_ns),
            ),
        })
    }
}

/// In which way a program ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum How {
    /// It exited.
    Exited {
        /// With this code.
        code: i64,
    },
    /// A signal killed it.
    Killed {
        /// The signal's name.
        signal: String,
    },
    /// A live session holds it at a signal that will end it.
    Standing {
        /// The signal's name.
        signal: String,
    },
    /// It became another program.
    Became,
    /// It is a core file.
    Core {
        /// The signal that had hit the program; `None` if it has none.
        signal: Option<String>,
        /// The signal ended the program: the kernel wrote the file. Otherwise a tool did, and the program may have
        /// gone on.
        has_ended: bool,
    },
    /// The recorder left it running.
    Detached,
    /// It runs: the recording is being written.
    Running,
    /// The recording does not show it.
    NotSeen,
}

/// The last moment of a thread that a signal ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Crash {
    /// The event.
    pub seq: u64,
    /// When the signal arrived, in ns since the recording began.
    pub ts_ns: i64,
    /// The thread.
    pub tid: u32,
    /// Its name.
    pub thread: Option<String>,
    /// The address of the fault.
    pub address: Option<String>,
    /// Its frames, the innermost first: those with a source line or a recorded call.
    pub frames: Vec<FrameSummary>,
    /// How many frames are omitted.
    pub more_frames: u64,
    /// The stack is deeper than was looked at: only recorded calls are counted in `more_frames`.
    pub is_cut: bool,
    /// Its last calls that had ended, the last one first.
    pub ended: Vec<CallLine>,
    /// Freed blocks that it still used, if allocations were recorded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub freed: Vec<FreedBlock>,
}

/// A frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FrameSummary {
    /// The function.
    pub function: String,
    /// The source file of the thread's position.
    pub file: Option<String>,
    /// The line there.
    pub line: Option<u32>,
    /// The file name of its module, if that is known.
    pub module: Option<String>,
    /// The enter event of its call, if that was recorded.
    pub seq: Option<u64>,
    /// The arguments of the call.
    pub args: Option<String>,
}

/// An exception, panic or signal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Seen {
    /// The event.
    pub seq: u64,
    /// The thread.
    pub tid: Option<u32>,
    /// Its type, or the signal's name.
    pub what: String,
    /// Its message.
    pub message: Option<String>,
    /// The program ended by it.
    pub unhandled: bool,
}

/// Describes the end.
///
/// # Errors
/// The recording cannot be read.
pub fn ending(source: &Source<'_>) -> Result<Ending> {
    let sql = format!(
        "select kind, value, aux, seq, ts_ns, text from events \
         where kind in ('process_exit', 'detached', 'exec', 'exec_failed') order by seq desc limit {LAST_EVENTS}"
    );
    let rows = source.ask(&sql)?;
    let end = rows
        .first()
        .filter(|row| row.text(0) != Some("exec_failed"));
    let how = match (of_core(source)?, how(source, end)) {
        (Some(how), _) => how,
        (None, how @ (How::Running | How::NotSeen)) => standing(source)?.unwrap_or(how),
        (None, how) => how,
    };
    let seq = end.and_then(|row| row.count(3));
    let ts_ns = end.and_then(|row| row.number(4));
    let became = became(source, &how, &rows)?;
    let crash = crash(source, &how)?;
    let panic = match how {
        How::Exited { code: PANICKED } => panic::of_main(source)?,
        _ => None,
    };
    let last_calls = match (&how, seq, &panic) {
        (_, _, Some(panic)) => of_panic(source, &panic.open)?,
        (How::Exited { code: 1.. }, Some(seq), _) => of_main(source, seq)?,
        _ => Vec::new(),
    };
    let (exceptions, exception_count) = exceptions(source, &how, crash.as_ref())?;
    Ok(Ending {
        how,
        seq,
        ts_ns,
        became,
        crash,
        last_calls,
        panic: panic.map(|panic| panic.seq),
        exceptions,
        exception_count,
    })
}

/// How many of the last events about the program's end are read: most programs have one.
const LAST_EVENTS: usize = 4;

/// The program that another one became before its end. `last` are the last events about that.
fn became(source: &Source<'_>, how: &How, last: &[Row]) -> Result<Option<(u64, String)>> {
    if *how == How::Became {
        return Ok(None);
    }
    let of_row = |row: &Row, (seq, program): (usize, usize)| {
        let program = row.text(program).unwrap_or_default();
        Some((row.count(seq)?, program.to_owned()))
    };
    let exec = match last.iter().find(|row| row.text(0) == Some("exec")) {
        Some(row) => of_row(row, (3, 5)),
        None if last.len() < LAST_EVENTS => None,
        None => {
            let rows = source.ask(LAST_EXEC)?;
            rows.first().and_then(|row| of_row(row, (0, 1)))
        }
    };
    let Some((seq, program)) = exec else {
        return Ok(None);
    };
    let later = source.ask(&goes_on_after(seq))?;
    let later = later.first().and_then(|row| row.count(0));
    Ok((later == Some(0)).then_some((seq, program)))
}

/// Asks for the program that the recorded one last tried to become.
pub const LAST_EXEC: &str =
    "select seq, text from events where kind = 'exec' order by seq desc limit 1";

/// Asks how much shows that a program went on after it had tried to become another one. Older recordings do not tell failures.
pub fn goes_on_after(seq: u64) -> String {
    format!(
        "select count(*) from events where seq > {seq} and \
         (kind in ('enter', 'stdout', 'stderr', 'exec_failed') or (kind = 'leave' and not unwound and open_at_end is not true))"
    )
}

/// The end of a program according to its core file.
fn of_core(source: &Source<'_>) -> Result<Option<How>> {
    if !source.timeline().is_some_and(Timeline::is_core) {
        return Ok(None);
    }
    let sql =
        "select type, phase from exceptions where signal is not null order by seq desc limit 1";
    let rows = source.ask(sql)?;
    let last = rows.first();
    Ok(Some(How::Core {
        signal: last.and_then(|row| row.text(0)).map(str::to_owned),
        has_ended: last.is_some_and(|row| row.text(1) == Some("unhandled")),
    }))
}

fn how(source: &Source<'_>, end: Option<&Row>) -> How {
    match end.map(|row| (row.text(0).unwrap_or_default(), row.number(1), row.text(2))) {
        Some(("detached", ..)) => How::Detached,
        Some(("exec", ..)) => How::Became,
        Some((_, _, Some(signal))) => How::Killed {
            signal: signal.to_owned(),
        },
        Some((_, Some(code), None)) => How::Exited { code },
        _ if source.session().extent().state == RecordingState::Live => How::Running,
        _ => How::NotSeen,
    }
}

/// The end that a live session holds back.
fn standing(source: &Source<'_>) -> Result<Option<How>> {
    let Some(timeline) = source.timeline() else {
        return Ok(None);
    };
    let Some(seq) = told(timeline.crash())? else {
        return Ok(None);
    };
    let sql = format!(
        "select type from exceptions where phase = 'unhandled' and seq <= {seq} order by seq desc limit 1"
    );
    let rows = source.ask(&sql)?;
    let signal = rows.first().and_then(|row| row.text(0));
    Ok(signal.map(|signal| How::Standing {
        signal: signal.to_owned(),
    }))
}

fn of_panic(source: &Source<'_>, open: &[CallHead]) -> Result<Vec<CallLine>> {
    let nearest = open.iter().take(AROUND_PANIC);
    nearest.map(|call| source.described(call)).collect()
}

fn of_main(source: &Source<'_>, seq: u64) -> Result<Vec<CallLine>> {
    let Some(timeline) = source.timeline() else {
        return Ok(Vec::new());
    };
    let threads = told(timeline.threads())?;
    let Some(main) = threads.first() else {
        return Ok(Vec::new());
    };
    // Calls that were open when the program exited come last. Its end has closed them.
    let last = told(timeline.last_own())?.min(seq.saturating_sub(1));
    let open = source.around(main.tid, last)?;
    let ended = source.ended_before(main.tid, last + 1, BEFORE)?;
    let mut last: Vec<CallHead> = open.into_iter().chain(ended).take(BEFORE).collect();
    // A function that returned the exit code says little: its own last calls follow.
    if let Some((outer, end)) = last.last().and_then(|call| Some((*call, call.end?))) {
        let inside = source.ended_before(main.tid, end, BEFORE - last.len())?;
        last.extend(inside.iter().filter(|call| call.start > outer.start));
    }
    last.iter().map(|call| source.described(call)).collect()
}

fn crash(source: &Source<'_>, how: &How) -> Result<Option<Crash>> {
    let Some(timeline) = source.timeline() else {
        return Ok(None);
    };
    let seq = match (told(timeline.crash())?, how) {
        (Some(seq), _) => seq,
        // If the kernel did not write it, the thread that the signal hit comes last.
        (
            None,
            How::Core {
                signal: Some(_), ..
            },
        ) => timeline.last(),
        (None, _) => return Ok(None),
    };
    let threads = told(timeline.threads())?;
    // In static programs, it may not be known which thread the signal hit.
    let tid = match timeline.thread_at(seq) {
        Err(replay::Error::NoThread { .. }) => return Ok(None),
        tid => told(tid)?,
    };
    let thread = threads.into_iter().find(|thread| thread.tid == tid);
    let sql = format!(
        "select addr, ts_ns from exceptions where {} and seq <= {seq} order by seq desc limit 1",
        fatal(how)
    );
    let signal = source.ask(&sql)?;
    let signal = |column| signal.first().and_then(|row| row.number(column));
    let address = signal(0);
    let ts_ns = match signal(1) {
        Some(ts_ns) => ts_ns,
        None => told(timeline.ts_ns(seq))?,
    };
    let (frames, more_frames, is_cut) = frames(source, tid, seq)?;
    let ended = source.ended_before(tid, seq, BEFORE)?;
    let freed = match source.has_captured("memory") {
        true => freed::freed(source, tid, seq, address.map(|address| address as u64))?,
        false => Vec::new(),
    };
    Ok(Some(Crash {
        seq,
        ts_ns,
        tid,
        thread: thread.and_then(|thread| thread.name),
        address: address.map(|address| format!("{address:#x}")),
        frames,
        more_frames,
        is_cut,
        ended: ended
            .iter()
            .map(|call| source.described(call))
            .collect::<Result<_>>()?,
        freed,
    }))
}

/// Joins the stack at an event with the calls that were open: a call's frame ends behind its return address.
fn frames(source: &Source<'_>, tid: u32, seq: u64) -> Result<(Vec<FrameSummary>, u64, bool)> {
    let open = source.around(tid, seq)?;
    let mut open = open.iter().peekable();
    let mut found = Vec::new();
    let sql = format!(
        "select function, file, line, pc, cfa, cast(inlined as int) from backtrace({seq}) order by frame limit {MOST_AROUND}"
    );
    // Without a captured stack, only the recorded calls are known.
    let stack = source.ask(&sql).unwrap_or_default();
    let cfa_of = |row: &Row| row.number(4).map(|cfa| cfa as u64);
    let shown: BTreeSet<u64> = stack.iter().filter_map(cfa_of).collect();
    for (number, row) in stack.iter().enumerate() {
        let is_inlined = row.number(5) == Some(1);
        let mut made = None;
        if let Some(cfa) = cfa_of(row).filter(|_| !is_inlined) {
            let end = |call: &CallHead| call.slot.wrapping_add(8);
            while let Some(call) = open
                .next_if(|call| end(call) == cfa || end(call) < cfa && !shown.contains(&end(call)))
            {
                match end(call) == cfa {
                    // Of calls that share a return address, the first is the function, and others jumped to it.
                    true => made = made.or(Some(call)),
                    false => found.push(of_call(source, call)?),
                }
            }
        }
        let made = made.map(|call| source.described(call)).transpose()?;
        let module = row
            .number(3)
            .and_then(|pc| module_at(source, pc as u64, seq));
        let is_of_interest = made.is_some() || row.text(1).is_some() || number == 0;
        if is_of_interest || module.as_ref().is_some_and(|(_, is_system)| !is_system) {
            let address = || row.number(3).map(|pc| format!("{pc:#x}"));
            let name = row.text(0).map(str::to_owned);
            found.push(FrameSummary {
                function: name.or_else(address).unwrap_or_default(),
                file: row.text(1).map(str::to_owned),
                line: row.number(2).and_then(|line| u32::try_from(line).ok()),
                module: module.map(|(name, _)| name),
                seq: made.as_ref().map(|call| call.seq),
                args: made.map(|call| call.args),
            });
        }
    }
    // The functions that start a program or a thread are the same everywhere.
    let of_calls = found
        .iter()
        .rposition(|place: &FrameSummary| place.seq.is_some());
    if let Some(last) = of_calls.filter(|_| open.len() == 0) {
        found.truncate(last + 1);
    }
    // Calls that the stack does not show come after what it shows.
    for call in open {
        found.push(of_call(source, call)?);
    }
    let more = found.len().saturating_sub(FRAMES) as u64;
    found.truncate(FRAMES);
    if stack.len() < MOST_AROUND {
        return Ok((found, more, false));
    }
    let sql = format!(
        "select count(*) from calls where tid = {tid} and start_seq <= {seq} and (end_seq is null or end_seq > {seq})"
    );
    let open = source.ask(&sql)?;
    let open = open.first().and_then(|row| row.number(0)).unwrap_or(0);
    let shown = found.iter().filter(|place| place.seq.is_some()).count() as u64;
    let open = u64::try_from(open).unwrap_or(0);
    Ok((found, more.max(open.saturating_sub(shown)), true))
}

/// A call that was open, of which no frame is known.
fn of_call(source: &Source<'_>, call: &CallHead) -> Result<FrameSummary> {
    let call = source.described(call)?;
    Ok(FrameSummary {
        function: call.function,
        file: call.file,
        line: call.line,
        module: None,
        seq: Some(call.seq),
        args: Some(call.args),
    })
}

/// The file name of the module at an address, and whether it belongs to the system.
pub(super) fn module_at(source: &Source<'_>, address: u64, seq: u64) -> Option<(String, bool)> {
    let space = source.timeline()?.modules().space(seq);
    let mapped = space.at(address)?;
    let name = mapped.module.path().file_name()?;
    Some((name.to_string_lossy().into_owned(), mapped.is_system))
}

/// Which rows of `exceptions` are of the signal that ended the program.
fn fatal(how: &How) -> &'static str {
    match how {
        How::Core { .. } => "signal is not null",
        _ => "phase = 'unhandled' and signal is not null",
    }
}

fn exceptions(source: &Source<'_>, how: &How, crash: Option<&Crash>) -> Result<(Vec<Seen>, u64)> {
    let last = crash.map_or(u64::MAX, |crash| crash.seq);
    // The signal that ended the program is reported with the crash.
    let others = format!("not ({} and seq <= {last})", fatal(how));
    let sql = format!(
        "select seq, tid, type, message, phase, count(*) over () from exceptions where {others} order by seq desc limit {EXCEPTIONS}"
    );
    let rows = source.ask(&sql)?;
    let total = rows.first().and_then(|row| row.count(5));
    let seen = rows.iter().filter_map(|row| {
        Some(Seen {
            seq: row.count(0)?,
            tid: row.number(1).and_then(|tid| u32::try_from(tid).ok()),
            what: row.text(2).unwrap_or("an exception").to_owned(),
            message: row
                .text(3)
                .filter(|text| !text.is_empty())
                .map(str::to_owned),
            unhandled: row.text(4) == Some("unhandled"),
        })
    });
    Ok((seen.collect(), total.unwrap_or(0)))
}

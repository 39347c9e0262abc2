//! A recording under examination: the current position in time, moves from there, and values over time.
//!
//! Verbs treat its moments like those of a live program: `inspect` does not know which kind a moment is. Verbs that
//! would change the program are refused.

mod arrivals;
mod asked;
mod breaks;
mod call_span;
mod catches;
mod describe;
mod displays;
mod entries;
mod history;
mod judge;
mod last_write;
mod log_lines;
mod logged_writes;
mod looked;
mod moves;
mod object;
mod recursion;
mod remote_call;
mod second_run;
mod threads;
mod watch;
mod watched;
mod why;
mod words;
mod writes;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use debuginfo::with_source_copies;
use expr::Kept;
use recorder::Observer;
use recorder::live::Displays;
use replay::{Instant, Moment, Target, Timeline};
use store::Reader;

pub use asked::Later;
pub use breaks::{Break, BreakWanted};
pub use catches::{CatchWanted, Happened};
pub use history::{Change, SECOND_RUN};
pub use log_lines::{LogLine, LogLines, LogWanted};
pub(crate) use looked::Looked;
pub use moves::{CallLine, OutputLine, OutputLines};
pub(crate) use object::is_address;
pub use object::{BlockCall, BlockReport, ObjectReply};
pub use watch::{WatchLine, WatchesReply};
pub use why::{WhyEnd, WhyReply, WhyStep};

use crate::protocol::{Code, ExpressionFault, Failure};
use crate::session::{AtStops, LastShown, MAX_FRAMES, Probes};

/// How many outer frames to read: the value of a parameter may be known from the callers' arguments.
pub(crate) const CALLERS: usize = 16;

/// The current position: an event, a thread and a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The event.
    pub seq: u64,
    /// This many instructions after it, counting all threads; 0 unless every instruction is recorded.
    pub steps: u64,
    /// The thread.
    pub tid: u32,
    /// The frame, counted from 0 for the innermost.
    pub frame: usize,
    /// How many of the inlined calls that begin there are still to come for the thread, if a move has led there.
    pub calls_to_come: Option<usize>,
}

impl Position {
    /// The innermost frame of a thread at an event.
    pub(crate) fn of_event(seq: u64, tid: u32) -> Position {
        Position {
            seq,
            steps: 0,
            tid,
            frame: 0,
            calls_to_come: None,
        }
    }

    /// The moment.
    pub(crate) fn instant(&self) -> Instant {
        Instant {
            seq: self.seq,
            steps: self.steps,
        }
    }
}

/// A recording and the current position in it.
pub struct Past {
    timeline: Timeline,
    position: Mutex<Position>,
    /// The user has chosen the position: it is not only where the recording opened.
    is_chosen: AtomicBool,
    breaks: Mutex<Vec<Break>>,
    watches: Mutex<Vec<watch::Watch>>,
    /// The highest number of a breakpoint or watch so far: none is given again.
    last_id: AtomicU32,
    /// What is shown after every move.
    displays: Mutex<Displays>,
    /// The session's number; 0 if a prompt opened the recording without a daemon.
    session: u32,
    /// The folder of the client that began the session.
    folder: PathBuf,
    /// It is the past of a program under control.
    is_of_a_program: bool,
    /// The values that the session keeps.
    kept: Arc<Kept>,
    /// What was shown last.
    last_shown: Mutex<LastShown>,
    /// What clients run when a breakpoint has stopped a run.
    at_stops: AtStops,
    /// Errors of conditions, to be reported with the next answer.
    untold: Mutex<Vec<String>>,
}

/// The first event; with every instruction, the last of those with which the program's modules are mapped, before its own
/// first instruction: its variables are known there.
fn beginning(timeline: &Timeline) -> u64 {
    let is_at_start = |seq: &u64| {
        let kind = timeline.event(*seq).map(|event| event.kind().to_owned());
        kind.is_ok_and(|kind| {
            matches!(
                kind.as_str(),
                "process_start" | "thread_start" | "module_load"
            )
        })
    };
    match timeline.has_every_instruction() {
        false => 0,
        true => (0..).take_while(is_at_start).last().unwrap_or(0),
    }
}

impl Past {
    /// Opens the recording that `path` names. The position is the first event of a thread, or the point at which a
    /// signal ended the program if that is known.
    ///
    /// # Errors
    /// The recording cannot be read.
    pub fn open(path: &Path, temp_dir: &Path) -> Result<Past, Failure> {
        let reader = Reader::open(path, temp_dir).map_err(|error| of_replay(&error.into()))?;
        Self::new(Arc::new(reader))
    }

    /// As [`Past::open`], for an opened recording.
    ///
    /// # Errors
    /// The recording cannot be read.
    pub fn new(reader: Arc<Reader>) -> Result<Past, Failure> {
        let timeline = Timeline::new(reader).map_err(|error| of_replay(&error))?;
        let crash = timeline.crash().map_err(|error| of_replay(&error))?;
        let stop = crash.filter(|seq| timeline.is_stop(*seq));
        // A core file that no signal made shows its first thread last.
        let stop = stop.or(timeline.is_core().then(|| timeline.last()));
        let seq = stop.unwrap_or_else(|| beginning(&timeline));
        let tid = timeline.thread_at(seq).unwrap_or(0);
        Ok(Past {
            timeline,
            position: Mutex::new(Position::of_event(seq, tid)),
            is_chosen: AtomicBool::new(false),
            breaks: Mutex::default(),
            watches: Mutex::default(),
            last_id: AtomicU32::new(0),
            displays: Mutex::default(),
            session: 0,
            folder: PathBuf::new(),
            is_of_a_program: false,
            kept: Arc::default(),
            last_shown: Mutex::default(),
            at_stops: AtStops::default(),
            untold: Mutex::default(),
        })
    }

    /// Sets the number of the session and the folder of its client.
    #[must_use]
    pub fn numbered(self, session: u32, folder: &Path) -> Past {
        Past {
            session,
            folder: folder.to_owned(),
            ..self
        }
    }

    /// Marks the recording as the past of a live session, to which `goto live` returns. `earlier` is the same past as
    /// opened before the program continued; its breakpoints are kept.
    #[must_use]
    pub fn of_session(self, session: u32, folder: &Path, earlier: Option<&Past>) -> Past {
        Past {
            breaks: Mutex::new(earlier.map(Past::all_breaks).unwrap_or_default()),
            last_id: AtomicU32::new(earlier.map_or(0, |past| past.last_id.load(Ordering::Relaxed))),
            is_of_a_program: true,
            ..self.numbered(session, folder)
        }
    }

    /// Returns what was shown last.
    #[must_use]
    pub fn last_shown(&self) -> &Mutex<LastShown> {
        &self.last_shown
    }

    /// Returns the lines that run when a breakpoint has stopped a run.
    pub(crate) fn at_stops(&self) -> &AtStops {
        &self.at_stops
    }

    /// Makes the session keep its values with those of the program.
    #[must_use]
    pub fn keeping(self, kept: &Arc<Kept>) -> Past {
        Past {
            kept: Arc::clone(kept),
            ..self
        }
    }

    /// Returns the values that the session keeps.
    #[must_use]
    pub fn kept(&self) -> &Kept {
        &self.kept
    }

    pub(super) fn shared_kept(&self) -> &Arc<Kept> {
        &self.kept
    }

    /// Returns the session's number.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.session
    }

    /// Returns the folder of the client that began the session.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the recording.
    #[must_use]
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// Returns the current position.
    #[must_use]
    pub fn position(&self) -> Position {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, Position> {
        self.position.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The position, to be changed for the user.
    fn choose(&self) -> MutexGuard<'_, Position> {
        self.is_chosen.store(true, Ordering::Relaxed);
        self.lock()
    }

    fn breaks(&self) -> MutexGuard<'_, Vec<Break>> {
        self.breaks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watches(&self) -> MutexGuard<'_, Vec<watch::Watch>> {
        self.watches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports a text with the next answer.
    fn tell(&self, text: String) {
        let mut untold = self.untold.lock().unwrap_or_else(PoisonError::into_inner);
        untold.push(text);
    }

    /// Returns the texts to report with an answer.
    pub(crate) fn take_untold(&self) -> Vec<String> {
        let mut untold = self.untold.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut untold)
    }

    /// Gives the next breakpoint or watch its number, from 1. As in gdb, the number of a removed one is not given again.
    fn next_id(&self) -> u32 {
        self.last_id.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Moves to another event. Selects the event's thread, or keeps the current one if the event has none.
    ///
    /// # Errors
    /// There is no such event.
    pub fn go_to(&self, seq: u64) -> Result<Position, Failure> {
        let event = self.timeline.event(seq).map_err(|e| of_replay(&e))?;
        let mut position = self.choose();
        let tid = event.tid().unwrap_or(position.tid);
        *position = Position::of_event(seq, tid);
        Ok(*position)
    }

    /// Moves to a moment between events, and selects a thread or keeps the current one.
    ///
    /// # Errors
    /// There is no such event.
    pub(crate) fn go_to_instant(
        &self,
        instant: Instant,
        tid: Option<u32>,
    ) -> Result<Position, Failure> {
        let Instant { seq, steps } = instant;
        if steps == 0 && tid.is_none() {
            return self.go_to(seq);
        }
        let running = self.timeline.thread_after(seq, steps);
        let tid = match tid {
            Some(tid) => tid,
            None => running.map_err(|e| of_replay(&e))?,
        };
        let mut position = self.choose();
        *position = Position {
            steps,
            ..Position::of_event(seq, tid)
        };
        Ok(*position)
    }

    /// Returns the current position, or the innermost frame at event `at` of its thread.
    ///
    /// # Errors
    /// There is no such event.
    pub fn position_at(&self, at: Option<u64>) -> Result<Position, Failure> {
        let Some(seq) = at else {
            return Ok(self.position());
        };
        let event = self.timeline.event(seq).map_err(|e| of_replay(&e))?;
        let tid = match event.tid() {
            Some(tid) => tid,
            None => self.timeline.thread_at(seq).map_err(|e| of_replay(&e))?,
        };
        Ok(Position::of_event(seq, tid))
    }

    /// Selects a frame.
    pub fn select_frame(&self, frame: usize) {
        self.lock().frame = frame;
    }

    /// Returns to a position in which this recording was before.
    pub fn return_to(&self, position: Position) {
        *self.choose() = position;
    }

    /// Moves to the last stop of a thread, or to the last event if no thread is given or it never stopped.
    ///
    /// # Errors
    /// The recording cannot be read.
    pub fn go_to_last_stop(&self, tid: Option<u32>) -> Result<Position, Failure> {
        let stop = tid.and_then(|tid| self.timeline.last_stop(tid));
        self.go_to(stop.unwrap_or(self.timeline.last()))
    }

    /// Moves to a place in time.
    ///
    /// # Errors
    /// There is no such place.
    pub fn go_to_target(&self, text: &str) -> Result<Position, Failure> {
        let target = Target::parse(text).map_err(|e| of_replay(&e))?;
        let instant = self.timeline.find_instant(&target);
        self.go_to_instant(instant.map_err(|e| of_replay(&e))?, None)
    }

    /// Runs `work` on the current moment.
    pub(crate) fn look<T>(
        &self,
        limit: usize,
        work: impl FnOnce(&Looked<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.look_at(self.position(), limit, work)
    }

    /// Runs `work` on the moment at a position.
    pub(crate) fn look_at<T>(
        &self,
        position: Position,
        limit: usize,
        work: impl FnOnce(&Looked<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let limit = limit.max(position.frame + CALLERS);
        let (instant, tid) = (position.instant(), position.tid);
        let to_come = position.calls_to_come;
        let moment = Moment::before_calls(&self.timeline, instant, tid, to_come, limit);
        let moment = moment.map_err(|error| of_replay(&error))?;
        let looked = self.looked(&moment, position);
        let result = with_source_copies(self.timeline.sources(), || work(&looked));
        result.map_err(|failure| looked.explained(failure))
    }

    fn looked<'m>(&'m self, moment: &'m Moment<'m>, position: Position) -> Looked<'m> {
        Looked {
            moment,
            machine: moment.machine(),
            position,
            kept: &self.kept,
        }
    }

    /// Returns whether this is the past of a live session.
    #[must_use]
    pub fn is_of_a_session(&self) -> bool {
        self.is_of_a_program
    }

    /// Makes the refusal of a verb that needs the program.
    pub(crate) fn needs_the_program(&self, command: &str) -> Failure {
        let command = spoken(command);
        match self.is_of_a_program {
            false => {
                let refusal = Failure::new(
                    Code::NotAllowed,
                    format!("{command} needs a program that runs, and this is a recording"),
                );
                match in_a_recording(&command) {
                    Some(instead) => refusal.hint(instead),
                    None => refusal,
                }
            }
            true => Failure::new(
                Code::NotAllowed,
                format!(
                    "{command} works only in the present; you are at event {} of the program's past",
                    self.position().instant()
                ),
            )
            .hint("go back first: goto live"),
        }
    }

    /// Returns the recording's folder.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.timeline.recording().dir().to_owned()
    }
}

/// Returns what comes nearest in a recording to a verb that needs the program.
fn in_a_recording(command: &str) -> Option<&'static str> {
    Some(match command {
        "detach" | "stop" => "close ends the session of a recording, quit leaves its prompt",
        "attach" => "in a shell: hindsight attach PID",
        "handle" | "info signals" => "catch signal stops at signals that were recorded",
        "jump" => "another moment: goto PLACE",
        "restart" => "record the program again: hindsight rerun RECORDING",
        "return" => "to where the call returned: finish",
        "status" => "where tells the moment, info proc the process",
        "set" => "a variable of the session can be set: set $n 3",
        _ if command.starts_with("assigning to ") => {
            "a variable of the session can be set: set $n 3"
        }
        _ => return None,
    })
}

/// Returns a verb's name as people write it: `info signals`, `reverse-continue`. Other words stay as they are.
fn spoken(verb: &str) -> String {
    if verb.contains(' ') {
        return verb.to_owned();
    }
    match verb.split_once('_') {
        Some((first @ ("info" | "save"), rest)) => format!("{first} {}", rest.replace('_', "-")),
        _ => verb.replace('_', "-"),
    }
}

/// Returns whether a path names a core file.
#[must_use]
pub fn is_core_file(path: &Path) -> bool {
    debuginfo::is_core_file(path).unwrap_or(false)
}

/// Finds the folder of the recording that a path names. The recording of a core file is made if there is none yet;
/// `program` is its program, if it is not where the core file says. See [`completed`], too.
///
/// # Errors
/// There is neither a recording nor a core file, or it cannot be read.
pub fn located(path: &Path, program: Option<PathBuf>) -> Result<PathBuf, Failure> {
    let found = replay::locate(path, &replay::CoreOptions { program });
    let found = found.map_err(|error| of_replay(&error))?;
    completed(&found)?;
    Ok(found)
}

/// Writes the events of a recording of every instruction whose recorder died before it did so. Others stay as they are.
///
/// # Errors
/// It has nothing that could be run again, or cannot be written.
pub fn completed(folder: &Path) -> Result<(), Failure> {
    completed_with(folder, &Untold)
}

/// As [`completed`]; the observer is told when something is to be done.
///
/// # Errors
/// As there.
pub fn completed_with(folder: &Path, observer: &dyn Observer) -> Result<(), Failure> {
    // They were understood when it began.
    let probes = |options: &[String]| Probes::of_options(options).parsed().unwrap_or_default();
    match recorder::complete(folder, probes, observer) {
        Ok(_) => Ok(()),
        Err(error) => {
            let message = format!(
                "the recorder of {} did not close it, and its events cannot be written now: {error}",
                folder.display()
            );
            let hint = error.hint();
            let hint = hint.unwrap_or_else(|| {
                "it needs room on the disk and the right to trace processes; hindsight rm removes it"
                    .to_owned()
            });
            Err(Failure::new(Code::Failed, message).hint(hint))
        }
    }
}

/// Where nobody reads messages.
struct Untold;

impl Observer for Untold {}

/// Returns how many frames an expression needs: a name with a scope may be a variable of any function on the stack.
pub(crate) fn frames_for(expression: &str) -> usize {
    match expression.contains("::") {
        true => MAX_FRAMES,
        false => 1,
    }
}

/// Converts an error of `replay` to a failure.
#[must_use]
pub fn of_replay(error: &replay::Error) -> Failure {
    let code = match error {
        replay::Error::NoEvent { .. } | replay::Error::Target(_) | replay::Error::NoMove(_) => {
            Code::NoEvent
        }
        replay::Error::NoThread { .. } => Code::NoThread,
        replay::Error::Expression { .. } => Code::EvalFailed,
        replay::Error::EmptyFile { .. } | replay::Error::NoProgram { .. } => Code::BadRequest,
        _ => Code::Failed,
    };
    let failure = Failure {
        hint: error.hint(),
        ..Failure::new(code, error.to_string())
    };
    match error {
        replay::Error::Expression {
            position: Some(position),
            ..
        } => Failure {
            expression: Some(ExpressionFault::Unreadable),
            ..failure.at(*position)
        },
        _ => failure,
    }
}

/// Converts an error of `store` to a failure.
pub(crate) fn of_store(error: store::Error) -> Failure {
    of_replay(&replay::Error::Store(error))
}

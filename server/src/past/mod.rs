//! A recording that is looked at: where in time it is looked at, and the verbs of a stopped program about that moment.
//!
//! The verbs take the same arguments and give the same replies as those of live control, by the same code: `inspect` does
//! not know whether a moment is live or recorded. What would change the program is refused.

mod describe;
mod history;
mod moves;
mod verbs;
mod watch;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use debuginfo::with_source_copies;
use replay::{Moment, StateMachine, Target, Timeline};
use serde::Serialize;
use serde_json::Value;
use store::Reader;

pub use history::{Change, HistoryArgs, HistoryReply, LastWriteReply};
pub use moves::{
    CallLine, CallsArgs, CallsReply, CountArgs, GotoArgs, NoteLine, NotesReply, OutputLine,
    OutputLines, OutputLinesArgs,
};
pub use watch::{WatchLine, WatchRemoveArgs, WatchesReply};

use crate::inspect::View;
use crate::protocol::{Code, Failure};

/// Frames around the one that is looked at: what callers passed may tell the value of a parameter.
const CALLERS: usize = 16;
/// No backtrace is longer.
const MAX_FRAMES: usize = 10_000;

/// What is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The event.
    pub seq: u64,
    /// The thread.
    pub tid: u32,
    /// The frame, from the innermost.
    pub frame: usize,
}

/// A recording and what is looked at in it.
pub struct Past {
    timeline: Timeline,
    position: Mutex<Position>,
    breaks: Mutex<Vec<Break>>,
    /// The live session whose past this is.
    session: Option<u32>,
    watches: Mutex<Vec<watch::Watch>>,
    /// Set while somebody wants long searches to end.
    interrupt: Arc<AtomicBool>,
}

/// Functions at whose entry a run through time stops.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Break {
    /// Its number, from 1.
    pub id: u32,
    /// What was asked for.
    pub location: String,
    /// The ids of the functions.
    pub functions: std::collections::BTreeSet<u32>,
}

/// A moment as verbs look at it.
pub(crate) struct Looked<'m> {
    pub moment: &'m Moment<'m>,
    pub machine: StateMachine<'m>,
    pub position: Position,
}

impl Looked<'_> {
    /// Returns what `inspect` asks. Moments without frames have an empty list.
    pub fn view(&self) -> View<'_> {
        View {
            space: &self.moment.space,
            machine: &self.machine,
            frames: &self.moment.trace.backtrace.frames,
            frame: self.position.frame,
        }
    }

    /// The same failure, which may come of a module that is missing here: that one is named.
    fn explained(&self, failure: Failure) -> Failure {
        let is_of_modules = matches!(
            failure.code,
            Code::EvalFailed
                | Code::InvalidFile
                | Code::InvalidFunction
                | Code::InvalidLine
                | Code::NoFrame
        );
        // What only another module has here may be one of a module that cannot be asked too.
        let elsewhere = failure.hint.clone();
        let elsewhere = elsewhere.filter(|_| failure.message.starts_with("no \""));
        if !is_of_modules || failure.hint.is_some() && elsewhere.is_none() {
            return failure;
        }
        // Where a text is none of the language, no module is to blame.
        if failure.message.starts_with("the expression ") {
            return failure;
        }
        let somewhere = || {
            self.somewhere()
                .filter(|_| failure.code == Code::EvalFailed)
        };
        // What has no name here may have one in a module that cannot be asked.
        let is_unknown = failure.code != Code::EvalFailed || failure.message.starts_with("no ");
        let first = || {
            let modules = self.moment.state.timeline().modules();
            modules
                .first_absent(self.position.seq)
                .filter(|_| is_unknown)
        };
        match self.absent().or_else(somewhere).or_else(first) {
            Some(why) => failure.hint(match elsewhere {
                Some(elsewhere) => format!("{elsewhere}; {why}"),
                None => why,
            }),
            None => failure,
        }
    }

    /// Why the module that is looked at cannot be used.
    fn absent(&self) -> Option<String> {
        let timeline = self.moment.state.timeline();
        let modules = timeline.modules();
        let Position { seq, tid, frame } = self.position;
        let frames = &self.moment.trace.backtrace.frames;
        let here = frames.get(frame).filter(|frame| frame.pc_is_known);
        match here {
            Some(frame) => modules.why_absent(frame.pc, seq),
            None => {
                let call = timeline.innermost(tid, seq).ok().flatten();
                let function = call.and_then(|call| timeline.function(call.function));
                function.and_then(|function| modules.why_unusable(function.module))
            }
        }
    }

    /// What to do where only the function is known, and not where in it the thread was.
    fn somewhere(&self) -> Option<String> {
        let frames = &self.moment.trace.backtrace.frames;
        let frame = frames.get(self.position.frame)?;
        let function = frame.function.as_ref().filter(|_| !frame.pc_is_known)?;
        Some(format!(
            "where in {function} the thread was at this event is not known, and so its variables are not: step, or step back"
        ))
    }

    /// The same where there is a frame.
    pub fn frame_view(&self) -> Result<View<'_>, Failure> {
        let view = self.view();
        match view.frames.is_empty() {
            false => Ok(view),
            true => {
                let end = self.moment.trace.backtrace.end.as_ref();
                let why = end.map_or_else(String::new, |why| format!(": {why}"));
                Err(Failure::new(
                    Code::NoFrame,
                    format!(
                        "no frame of thread {} is known at event {}{why}",
                        self.position.tid, self.position.seq
                    ),
                )
                .hint("go to an event that shows one: next, or continue"))
            }
        }
    }
}

impl Past {
    /// Opens the recording that `path` names and looks at its first event of a thread, or where a signal ended the program if
    /// that is known.
    ///
    /// # Errors
    /// The recording cannot be read.
    pub fn open(path: &Path, temp_dir: &Path) -> Result<Past, Failure> {
        let reader = Reader::open(path, temp_dir).map_err(|error| of_replay(&error.into()))?;
        Self::new(Arc::new(reader))
    }

    /// The same for an opened recording.
    ///
    /// # Errors
    /// The recording cannot be read.
    pub fn new(reader: Arc<Reader>) -> Result<Past, Failure> {
        let timeline = Timeline::new(reader).map_err(|error| of_replay(&error))?;
        let stop = timeline.crash().map_err(|error| of_replay(&error))?;
        let stop = stop.filter(|seq| timeline.is_stop(*seq));
        let seq = stop.unwrap_or(0);
        let tid = timeline.thread_at(seq).unwrap_or(0);
        Ok(Past {
            timeline,
            position: Mutex::new(Position { seq, tid, frame: 0 }),
            breaks: Mutex::default(),
            session: None,
            watches: Mutex::default(),
            interrupt: Arc::default(),
        })
    }

    /// Says that it is the past of a live session, to which `goto live` returns. `earlier` is how it was looked at before the
    /// program went on: its breakpoints stay.
    #[must_use]
    pub fn of_session(mut self, session: u32, earlier: Option<&Past>) -> Past {
        self.session = Some(session);
        self.breaks = Mutex::new(earlier.map(Past::all_breaks).unwrap_or_default());
        self
    }

    /// Returns the recording.
    #[must_use]
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// Returns what is looked at.
    #[must_use]
    pub fn position(&self) -> Position {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, Position> {
        self.position.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn breaks(&self) -> MutexGuard<'_, Vec<Break>> {
        self.breaks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watches(&self) -> MutexGuard<'_, Vec<watch::Watch>> {
        self.watches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what ends a search through time when it is set. Whoever sets it clears it before the next one.
    #[must_use]
    pub fn interrupt(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.interrupt)
    }

    fn is_interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }

    /// The number of the next breakpoint or watch.
    fn next_id(&self) -> u32 {
        let last_break = self.breaks().last().map(|last| last.id);
        let last_watch = self.watches().last().map(|last| last.id);
        last_break.max(last_watch).map_or(1, |last| last + 1)
    }

    /// Looks at another event, at its thread if it has one and at the same thread otherwise.
    ///
    /// # Errors
    /// There is no such event.
    pub fn go_to(&self, seq: u64) -> Result<Position, Failure> {
        let event = self.timeline.event(seq).map_err(|e| of_replay(&e))?;
        let mut position = self.lock();
        let tid = event.tid().unwrap_or(position.tid);
        *position = Position { seq, tid, frame: 0 };
        Ok(*position)
    }

    /// Looks at the last stop of a thread; at the last event where no thread is named, or it never stopped.
    ///
    /// # Errors
    /// The recording cannot be read.
    pub fn go_to_last_stop(&self, tid: Option<u32>) -> Result<Position, Failure> {
        let stop = tid.and_then(|tid| self.timeline.last_stop(tid));
        self.go_to(stop.unwrap_or(self.timeline.last()))
    }

    /// Looks at a place in time.
    ///
    /// # Errors
    /// There is no such place.
    pub fn go_to_target(&self, text: &str) -> Result<Position, Failure> {
        let target = Target::parse(text).map_err(|e| of_replay(&e))?;
        let seq = self.timeline.find(&target).map_err(|e| of_replay(&e))?;
        self.go_to(seq)
    }

    /// Looks at the moment.
    pub(crate) fn look<T>(
        &self,
        limit: usize,
        work: impl FnOnce(&Looked<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.look_at(self.position(), limit, work)
    }

    /// Looks at a moment.
    pub(crate) fn look_at<T>(
        &self,
        position: Position,
        limit: usize,
        work: impl FnOnce(&Looked<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let limit = limit.max(position.frame + CALLERS);
        let moment = Moment::at(&self.timeline, position.seq, position.tid, limit)
            .map_err(|error| of_replay(&error))?;
        let machine = moment.machine();
        let looked = Looked {
            moment: &moment,
            machine,
            position,
        };
        let result = with_source_copies(self.timeline.sources(), || work(&looked));
        result.map_err(|failure| looked.explained(failure))
    }

    /// Sets a breakpoint: a run through time stops where one of its functions is entered. Returns it.
    ///
    /// # Errors
    /// [`Code::InvalidFunction`]: nothing that was recorded matches.
    pub fn add_break(&self, location: &str) -> Result<Break, Failure> {
        let line = location
            .rsplit_once(':')
            .and_then(|(file, line)| Some((file, line.parse::<u32>().ok()?)));
        let functions = match line {
            Some((file, line)) => {
                self.check_line(file, line)?;
                self.timeline.functions_at_line(file, line)
            }
            None => self.timeline.functions_matching(location),
        };
        if functions.is_empty() {
            return Err(Failure::new(
                Code::InvalidFunction,
                format!("no recorded function is called {location}"),
            )
            .hint("write a function's name, in which * stands for any text, or file:line; SELECT name FROM functions lists them"));
        }
        let added = Break {
            id: self.next_id(),
            location: location.to_owned(),
            functions,
        };
        self.breaks().push(added.clone());
        Ok(added)
    }

    /// Refuses a line behind the last one of its file that has code, as far as modules tell that are there.
    fn check_line(&self, file: &str, line: u32) -> Result<(), Failure> {
        let modules = self.timeline.modules();
        let moments = [self.position().seq, self.timeline.last()];
        let last = moments.iter().find_map(|seq| {
            let lines = modules.space(*seq).valid_lines(file);
            lines.ok()?.last().copied()
        });
        match last {
            Some(last) if line > last => {
                let message =
                    format!("no code at {file}:{line}; the last line with code is {last}");
                Err(Failure {
                    valid_lines: vec![last],
                    ..Failure::new(Code::InvalidLine, message)
                })
            }
            _ => Ok(()),
        }
    }

    /// Returns the breakpoints.
    #[must_use]
    pub fn all_breaks(&self) -> Vec<Break> {
        self.breaks().clone()
    }

    /// Takes a breakpoint away, or all of them.
    ///
    /// # Errors
    /// [`Code::BreakpointNotFound`].
    pub fn remove_break(&self, id: Option<u32>) -> Result<usize, Failure> {
        let mut breaks = self.breaks();
        let before = breaks.len();
        breaks.retain(|known| id.is_some_and(|id| known.id != id));
        match (id, before - breaks.len()) {
            (Some(id), 0) => Err(Failure::new(
                Code::BreakpointNotFound,
                format!("there is no breakpoint {id}"),
            )
            .hint("list them with: break")),
            (_, removed) => Ok(removed),
        }
    }

    /// Serves a verb: `args` are what is told of it for live programs, or in this module.
    ///
    /// # Errors
    /// The verb's.
    ///
    /// # Panics
    /// When `args` are those of another verb.
    pub fn serve(&self, command: &str, args: Value) -> Result<Value, Failure> {
        let served = verbs::serve(self, command, args);
        match self.session {
            None => served,
            Some(_) => served.map_err(with_the_way_back),
        }
    }

    /// Says whether it is the past of a live session.
    #[must_use]
    pub fn is_of_a_session(&self) -> bool {
        self.session.is_some()
    }

    /// Says why a verb that needs the program is not for the past.
    pub(crate) fn needs_the_program(&self, command: &str) -> Failure {
        match self.session {
            None => Failure::new(
                Code::NotAllowed,
                format!(
                    "{command} needs a program that runs: this is a recording, and what it recorded does not change"
                ),
            ),
            Some(_) => Failure::new(
                Code::NotAllowed,
                format!(
                    "{command} needs the program as it is now, and event {} of its past is looked at",
                    self.position().seq
                ),
            )
            .hint("return to it first: goto live"),
        }
    }

    /// Returns the recording's folder.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.timeline.recording().dir().to_owned()
    }
}

/// Where the past ends, the program is.
fn with_the_way_back(failure: Failure) -> Failure {
    match (failure.code, &failure.hint) {
        (Code::NoEvent, None) => failure.hint("to the program as it is now: goto live"),
        (Code::NoEvent, Some(hint)) => {
            let hint = format!("{hint}; to the program as it is now: goto live");
            failure.hint(hint)
        }
        _ => failure,
    }
}

/// Makes a failure of a refusal of `replay`.
#[must_use]
pub fn of_replay(error: &replay::Error) -> Failure {
    let code = match error {
        replay::Error::NoEvent { .. } | replay::Error::Target(_) | replay::Error::NoMove(_) => {
            Code::NoEvent
        }
        replay::Error::NoThread { .. } => Code::NoThread,
        replay::Error::Expression { .. } => Code::EvalFailed,
        _ => Code::Failed,
    };
    let text = error.to_string();
    let failure = match text.split_once("; ") {
        Some((message, hint)) => Failure::new(code, message).hint(hint),
        None => Failure::new(code, text),
    };
    match error {
        replay::Error::Expression { position, .. } => Failure {
            position: *position,
            ..failure
        },
        _ => failure,
    }
}

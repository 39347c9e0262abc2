//! A recording that is looked at: where in time it is looked at, moves from there, and values along time.
//!
//! Verbs look at its moments as at those of a live program: `inspect` does not know which of the two a moment is. What would
//! change the program is refused.

mod describe;
mod history;
mod moves;
mod threads;
mod watch;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use debuginfo::with_source_copies;
use expr::Missing;
use replay::{Moment, StateMachine, Target, Timeline};
use serde::{Deserialize, Serialize};
use store::Reader;

pub use history::Change;
pub(crate) use moves::steps;
pub use moves::{CallLine, OutputLine, OutputLines};
pub use watch::{WatchLine, WatchesReply};

use crate::inspect::{RecordedMoment, View};
use crate::protocol::{Code, Details, ExpressionFault, Failure};

/// Frames around the one that is looked at: what callers passed may tell the value of a parameter.
const CALLERS: usize = 16;

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
    watches: Mutex<Vec<watch::Watch>>,
    /// The session's number; 0 where a prompt has opened it by itself.
    session: u32,
    /// The folder of the client that began the session.
    folder: PathBuf,
    /// It is the past of a program under control.
    is_of_a_program: bool,
}

/// Functions at whose entry a run through time stops.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
            recorded: Some(self),
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
        // What only another module has here may be one of a module that cannot be asked too; so may a file that none names.
        let elsewhere = failure.hint.clone();
        let missing = match failure.expression {
            // No module is to blame for what cannot be read.
            Some(ExpressionFault::Unreadable) => return failure,
            Some(ExpressionFault::Missing(missing)) => Some(missing),
            None => None,
        };
        let elsewhere = elsewhere.filter(|_| missing == Some(Missing::Elsewhere));
        if !is_of_modules || failure.hint.is_some() && elsewhere.is_none() {
            return failure;
        }
        let somewhere = || {
            self.somewhere()
                .filter(|_| failure.code == Code::EvalFailed)
        };
        // What has no name here may have one in a module that cannot be asked.
        let is_unknown = failure.code != Code::EvalFailed
            || matches!(
                missing,
                Some(Missing::Name | Missing::Elsewhere | Missing::Type)
            );
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
}

impl RecordedMoment for Looked<'_> {
    fn no_frame(&self) -> Failure {
        let end = self.moment.trace.backtrace.end.as_ref();
        let why = end.map_or_else(String::new, |why| format!(": {why}"));
        Failure::new(
            Code::NoFrame,
            format!(
                "no frame of thread {} is known at event {}{why}",
                self.position.tid, self.position.seq
            ),
        )
        .hint("go to an event that shows one: next, or continue")
    }

    fn absent_module(&self) -> Option<String> {
        self.absent()
    }

    fn in_left_call(&self, work: &mut dyn FnMut(&View<'_>)) -> Result<(), Failure> {
        let space = &self.moment.space;
        let left = self.moment.in_left_call(|machine, frames| {
            work(&View {
                space,
                machine,
                frames,
                frame: 0,
                recorded: None,
            });
        });
        left.map(drop).map_err(|error| of_replay(&error))
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
            watches: Mutex::default(),
            session: 0,
            folder: PathBuf::new(),
            is_of_a_program: false,
        })
    }

    /// Makes it a session with this number, of a client in this folder.
    #[must_use]
    pub fn numbered(self, session: u32, folder: &Path) -> Past {
        Past {
            session,
            folder: folder.to_owned(),
            ..self
        }
    }

    /// Says that it is the past of a live session, to which `goto live` returns. `earlier` is how it was looked at before the
    /// program went on: its breakpoints stay.
    #[must_use]
    pub fn of_session(self, session: u32, folder: &Path, earlier: Option<&Past>) -> Past {
        Past {
            breaks: Mutex::new(earlier.map(Past::all_breaks).unwrap_or_default()),
            is_of_a_program: true,
            ..self.numbered(session, folder)
        }
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

    /// Looks at a frame.
    pub fn select_frame(&self, frame: usize) {
        self.lock().frame = frame;
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
                let failure = Failure::new(Code::InvalidLine, format!("no code at {file}:{line}"));
                Err(failure
                    .hint(format!("the last line with code is {last}"))
                    .details(Details {
                        valid_lines: vec![last],
                        ..Details::default()
                    }))
            }
            _ => Ok(()),
        }
    }

    /// Returns the breakpoints.
    #[must_use]
    pub fn all_breaks(&self) -> Vec<Break> {
        self.breaks().clone()
    }

    /// Takes a breakpoint away, or all of them. Returns those that were.
    ///
    /// # Errors
    /// [`Code::BreakpointNotFound`].
    pub fn remove_break(&self, id: Option<u32>) -> Result<Vec<Break>, Failure> {
        let is_meant = |known: &mut Break| id.is_none_or(|id| known.id == id);
        let removed: Vec<Break> = self.breaks().extract_if(.., is_meant).collect();
        match (id, removed.is_empty()) {
            (Some(id), true) => Err(Failure::new(
                Code::BreakpointNotFound,
                format!("there is no breakpoint {id}"),
            )
            .hint("list them with: break")),
            _ => Ok(removed),
        }
    }

    /// Says whether it is the past of a live session.
    #[must_use]
    pub fn is_of_a_session(&self) -> bool {
        self.is_of_a_program
    }

    /// Says why a verb that needs the program is not for the past.
    pub(crate) fn needs_the_program(&self, command: &str) -> Failure {
        match self.is_of_a_program {
            false => Failure::new(
                Code::NotAllowed,
                format!(
                    "{command} needs a program that runs: this is a recording, and what it recorded does not change"
                ),
            ),
            true => Failure::new(
                Code::NotAllowed,
                format!(
                    "{command} needs the program as it is now; you are at event {} of its past",
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

/// Makes a failure of a refusal of `store`.
pub(crate) fn of_store(error: store::Error) -> Failure {
    of_replay(&replay::Error::Store(error))
}

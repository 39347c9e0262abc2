//! The past of a live session: its own recording, up to the point where the program stopped. It is reopened when it
//! has grown.

use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use debuginfo::Frame;
use recorder::live::{Status, Tid};
use recorder::{Ending, Observer, Steps};
use store::Recording;
use store::seal::Counter;

use super::{LiveSession, MAX_FRAMES, of_recorder};
use crate::past::{Past, of_store};
use crate::protocol::{Code, Failure};

/// How long to wait until the recording includes all events so far. It takes milliseconds, unless the disk is busy.
const SETTLE_PATIENCE: Duration = Duration::from_secs(10);

/// The opened past.
#[derive(Default)]
pub(super) struct Opened {
    past: Option<Arc<Past>>,
    /// The user is in the past, not at the program's current state.
    is_entered: bool,
    counter: Option<Counter>,
    /// Instructions that are being recorded.
    steps: Option<Steps>,
    /// The instructions that led to the program's current position.
    exact: Option<Exact>,
}

/// Recorded instructions.
struct Exact {
    past: Arc<Past>,
    /// The newest stop when they were recorded, and whether the program had ended: it has not moved since.
    stop: u64,
    has_ended: bool,
}

/// What has become of recording instructions.
pub struct RecordedSteps {
    pub recording: PathBuf,
    pub instructions: u64,
    /// The last event of the recording.
    pub last: u64,
    /// Why it ended.
    pub ending: Ending,
    /// What the recording lacks.
    pub incomplete: Option<String>,
}

/// Steps are reported by the verb that waits for them.
struct Silent;

impl Observer for Silent {}

impl LiveSession {
    /// Opens the past at the program's current position.
    ///
    /// # Errors
    /// [`Code::NotStopped`]: the program runs. The recording cannot be read.
    pub fn past(&self) -> Result<Arc<Past>, Failure> {
        if matches!(self.live.status(), Status::Running) {
            let failure = Failure::new(
                Code::NotStopped,
                "the program is running; its past can be examined while it is stopped",
            );
            return Err(failure.hint("stop it first: pause"));
        }
        // An error was, or will be, reported by the verb that ends the recording.
        let _ = self.finish_steps();
        if let Some(exact) = self.exact_past() {
            let last = exact.timeline().last();
            exact.go_to(last)?;
            exact.show_displays(&self.live.displays());
            return Ok(exact);
        }
        // If the recording can no longer be written, show what it contains.
        let _ = self.live.settle(SETTLE_PATIENCE);
        let mut opened = self.opened();
        let events = self.count(&mut opened)?.events();
        let is_whole = |past: &&Arc<Past>| past.timeline().events() == events;
        let past = match opened.past.as_ref().filter(is_whole) {
            Some(past) => Arc::clone(past),
            None => {
                let past = Past::open(self.live.recording(), &store::temp_dir())?;
                let past = past.of_session(self.id, &self.folder, opened.past.as_deref());
                Arc::new(past.keeping(self.live.kept()))
            }
        };
        opened.past = Some(Arc::clone(&past));
        drop(opened);
        let tid = self.stopped().ok().map(|stop| stop.tid as u32);
        past.go_to_last_stop(tid)?;
        past.show_displays(&self.live.displays());
        Ok(past)
    }

    /// Selects in the past, which stands where the program does, the frame that is selected in the program.
    ///
    /// # Errors
    /// [`Code::NoFrame`]: the recording does not show that frame. A variable with its function needs none.
    pub(crate) fn select_frame_in(&self, past: &Past, expression: &str) -> Result<(), Failure> {
        let Ok(stop) = self.stopped() else {
            return Ok(());
        };
        if self.frame_of(&stop) == 0 {
            return Ok(());
        }
        let now = self.moment_of(stop, 1)?;
        let Some(selected) = now.backtrace.frames.get(now.frame) else {
            return Ok(());
        };
        let index = past.look(MAX_FRAMES, |looked| {
            let frames = &looked.moment.trace.backtrace.frames;
            Ok(frames.iter().position(|frame| is_same(frame, selected)))
        })?;
        match index {
            Some(index) => past.select_frame(index),
            None if expr::path_of(expression).is_some() => {}
            None => return Err(not_shown(now.frame, expression)),
        }
        Ok(())
    }

    /// Enters the past, which [`LiveSession::past`] has opened.
    pub fn enter_past(&self) {
        self.opened().is_entered = true;
    }

    /// Returns to the program's current state.
    pub fn leave_past(&self) {
        self.opened().is_entered = false;
    }

    /// Returns the past if the user has entered it.
    #[must_use]
    pub fn entered_past(&self) -> Option<Arc<Past>> {
        let exact = self.exact_past();
        let opened = self.opened();
        let past = exact.or_else(|| opened.past.clone());
        past.filter(|_| opened.is_entered)
    }

    /// Returns the event of a thread's last stop, if the recording has it.
    #[must_use]
    pub fn last_stop_event(&self, tid: u32) -> Option<u64> {
        let _ = self.live.settle(SETTLE_PATIENCE);
        let counted = self.count(&mut self.opened()).ok()?.last_stop(tid);
        // The event may have been sealed before the counter first read the log.
        counted.or_else(|| self.past().ok()?.timeline().last_stop(tid))
    }

    /// Records the next instructions of a stopped thread. Returns a number below that of the next stop to show.
    ///
    /// # Errors
    /// Instructions are being recorded already. The thread runs, or nothing can be recorded where it stands.
    pub fn record_steps(&self, tid: Tid, instructions: u64) -> Result<u64, Failure> {
        self.finish_steps()?;
        if self.opened().steps.is_some() {
            let failure = Failure::new(Code::NotAllowed, "instructions are being recorded already");
            return Err(failure.hint("end that first: full off"));
        }
        let begun = Steps::begin(&self.live, tid, instructions, &Silent);
        let (steps, after) = begun.map_err(|error| of_recorder(&error))?;
        self.opened().steps = Some(steps);
        Ok(after)
    }

    /// How many instructions are recorded so far, if they are being recorded.
    #[must_use]
    pub fn recorded_steps(&self) -> Option<Arc<AtomicU64>> {
        self.opened().steps.as_ref().map(Steps::progress)
    }

    /// Closes the recording of instructions if that has ended. They are the session's past until the program moves on.
    ///
    /// # Errors
    /// It could not be written, or cannot be run again. Nothing is kept then.
    pub fn finish_steps(&self) -> Result<Option<RecordedSteps>, Failure> {
        let Some(steps) = self.opened().steps.take_if(|steps| !steps.goes_on()) else {
            return Ok(None);
        };
        let finished = steps.finish(&Silent).map_err(|error| of_recorder(&error))?;
        let Some(outcome) = finished else {
            return Ok(None);
        };
        let recording = outcome.full.outcome.recording.clone();
        let past = Past::open(&recording, &store::temp_dir())?;
        let recorded = RecordedSteps {
            recording,
            instructions: outcome.full.instructions,
            last: past.timeline().last(),
            ending: outcome.ending,
            incomplete: outcome.full.outcome.incomplete,
        };
        let mut opened = self.opened();
        let past = past.of_session(self.id, &self.folder, opened.past.as_deref());
        opened.exact = Some(Exact {
            past: Arc::new(past.keeping(self.live.kept())),
            stop: self.live.newest_stop(),
            has_ended: self.has_ended(),
        });
        Ok(Some(recorded))
    }

    /// Returns the recording of the instructions that led to the program's position, and its last event, if they are the past that
    /// questions are about.
    #[must_use]
    pub fn exact_recording(&self) -> Option<(PathBuf, u64)> {
        let past = self.exact_past()?;
        Some((past.path(), past.timeline().last()))
    }

    /// From now on the past is that of the whole session. Returns whether it was not.
    pub fn forget_exact_past(&self) -> bool {
        let is_exact = self.exact_past().is_some();
        self.opened().exact = None;
        is_exact
    }

    /// The recorded instructions, if the program stands at their end.
    fn exact_past(&self) -> Option<Arc<Past>> {
        let (stop, has_ended) = (self.live.newest_stop(), self.has_ended());
        let opened = self.opened();
        let exact = opened.exact.as_ref()?;
        let is_there = (exact.stop, exact.has_ended) == (stop, has_ended);
        is_there.then(|| Arc::clone(&exact.past))
    }

    fn count<'o>(&self, opened: &'o mut Opened) -> Result<&'o mut Counter, Failure> {
        let counter = match opened.counter.take() {
            Some(counter) => counter,
            None => {
                let recording = Recording::open(self.live.recording());
                let recording = recording.map_err(of_store)?;
                Counter::open(&recording).map_err(of_store)?
            }
        };
        let counter = opened.counter.insert(counter);
        counter.advance().map_err(of_store)?;
        Ok(counter)
    }

    fn opened(&self) -> MutexGuard<'_, Opened> {
        // Each part is consistent at all times.
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether a recorded frame is the program's own one.
fn is_same(recorded: &Frame, own: &Frame) -> bool {
    let place = |frame: &Frame| (frame.pc, frame.cfa, frame.inline_depth);
    recorded.pc_is_known && own.cfa.is_some() && place(recorded) == place(own)
}

fn not_shown(frame: usize, expression: &str) -> Failure {
    let message = format!("the recording does not show frame {frame} at this stop");
    Failure::new(Code::NoFrame, message).hint(match expression {
        "" => "select frame 0: frame 0",
        _ => "select frame 0: frame 0; or name the variable with its function: FUNCTION::VARIABLE",
    })
}

//! Sessions: a program under control with its live recording, or a recording that was opened.
//!
//! `either` is one of the two. For a live session, `begin` starts or attaches, `report` describes the program, `moment`
//! prepares a stopped thread for `inspect`, and `past` opens the recording up to the stop. `sessions` holds all of
//! them. Only this folder and the verbs use [`recorder::live::Live`].

mod at_stops;
mod begin;
mod calls;
mod either;
mod failure;
mod first;
mod follow;
mod moment;
mod past;
mod report;
mod sessions;
mod warnings;
mod watched;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use debuginfo::Diagnostic;
use recorder::live::{Live, ProbeId, Status, Tid};

pub use at_stops::AtStops;
pub use begin::{Attach, Besides, Launch, Origin, Recording};
pub use calls::{Caller, ProgramCalls, StoppedThread};
pub use either::{LastShown, Listed, Session};
pub(crate) use failure::{of_recorder, of_recorder_text};
pub use first::{FirstLogpoint, Probes, logged_place};
pub use follow::{Follow, FollowMode, FollowedReport, Waits};
pub(crate) use moment::{MAX_FRAMES, no_thread};
pub use moment::{Moment, RunningMachine};
pub use past::RecordedSteps;
pub use report::{
    DisplayReport, ExitReport, LineReport, MotionReport, PlaceReport, ReasonReport, SessionReport,
    StateWord, StopReport, WatchChange, hex,
};
pub use sessions::Sessions;
pub use watched::{Watched, WatchedFrame};

use self::warnings::Warnings;
use crate::output::Output;
use crate::protocol::{Code, Failure};

/// One program under control.
pub struct LiveSession {
    /// Its number, from 1.
    pub id: u32,
    /// How the session began, in enough detail to restart it.
    pub origin: Origin,
    /// The folder of the client that began the session.
    pub folder: PathBuf,
    /// The program's name, as given.
    pub program: String,
    /// The recorder's handle of the program.
    pub live: Live,
    /// The program's output.
    pub output: Arc<Output>,
    /// How long the evaluation of one value may take.
    pub question_time: Duration,
    selection: Mutex<Selection>,
    warnings: Arc<Warnings>,
    watched: Mutex<HashMap<ProbeId, Watched>>,
    opened: Mutex<past::Opened>,
    last_shown: Mutex<LastShown>,
    /// What clients run when a breakpoint has stopped the program.
    pub at_stops: AtStops,
    /// Whether it follows the copies that its program makes of itself.
    pub follow: Follow,
}

/// The user's selection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// The thread, if one was selected.
    pub tid: Option<Tid>,
    /// The stop to which `frame` belongs; any other stop starts at frame 0.
    pub stop: u64,
    /// The frame, counted from 0 for the innermost.
    pub frame: usize,
}

impl LiveSession {
    /// Returns the user's selection.
    #[must_use]
    pub fn selection(&self) -> Selection {
        *self.chosen()
    }

    /// Selects a thread's innermost frame.
    pub fn select_thread(&self, tid: Tid) {
        *self.chosen() = Selection {
            tid: Some(tid),
            ..Selection::default()
        };
    }

    /// Selects a frame of a stop.
    pub fn select_frame(&self, tid: Tid, stop: u64, frame: usize) {
        *self.chosen() = Selection {
            tid: Some(tid),
            stop,
            frame,
        };
    }

    /// Returns the recorder's warnings since the start.
    #[must_use]
    pub fn warnings(&self) -> Vec<Diagnostic> {
        self.warnings.all()
    }

    /// Returns the warnings that no client has been told.
    pub(crate) fn take_untold_warnings(&self) -> Vec<Diagnostic> {
        self.warnings.take_untold()
    }

    /// Adds a warning.
    pub(crate) fn warn(&self, warning: Diagnostic) {
        self.warnings.add(warning);
    }

    /// Returns whether the program has ended or was detached from.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        matches!(self.live.status(), Status::Ended(_))
    }

    /// Checks that the program has not ended.
    ///
    /// # Errors
    /// [`Code::NotRunning`] if it has.
    pub fn must_run(&self) -> Result<(), Failure> {
        match self.live.status() {
            Status::Ended(exit) => Err(self.ended_failure(exit)),
            Status::Running | Status::Stopped(_) => Ok(()),
        }
    }

    fn ended_failure(&self, exit: recorder::Exit) -> Failure {
        let recording = self.live.recording();
        let mut failure = Failure::new(
            Code::NotRunning,
            format!(
                "{} {}; its recording is {}",
                self.program,
                self.exit_words(exit),
                recording.display()
            ),
        )
        .hint(match self.origin {
            Origin::Started(_) => "look at its recording: hindsight goto last; or run it again: hindsight restart",
            Origin::Attached(_) => "look at its recording: hindsight goto last; or attach to another process: hindsight attach PID",
        });
        failure.details.recording = Some(recording.to_owned());
        failure
    }

    fn watched(&self) -> MutexGuard<'_, HashMap<ProbeId, Watched>> {
        // The entries are independent of each other.
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn chosen(&self) -> MutexGuard<'_, Selection> {
        // The selection holds only numbers and is consistent at all times.
        self.selection
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

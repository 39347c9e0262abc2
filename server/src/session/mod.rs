//! Sessions: a program under control with its live recording, or a recording that was opened.
//!
//! `either` is one of the two. Of a live one `begin` starts or attaches, `report` says what its program does, `moment` is a
//! stopped thread as `inspect` wants it, `past` its recording up to the stop. `sessions` knows all of them. All use of
//! [`recorder::live::Live`] is in this folder and in the verbs.

mod begin;
mod calls;
mod either;
mod failure;
mod moment;
mod past;
mod report;
mod sessions;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use debuginfo::Type;
use recorder::live::{Live, ProbeId, Status, Tid};

pub use begin::{Attach, Launch, Origin, Recording};
pub use calls::ProgramCalls;
pub use either::Session;
pub(crate) use failure::{of_recorder, of_recorder_text};
pub(crate) use moment::{MAX_FRAMES, no_thread};
pub use moment::{Moment, RunningMachine};
pub use report::{
    DisplayReport, ExitReport, LineReport, MotionReport, PlaceReport, ReasonReport, SessionReport,
    StateWord, StopReport, WatchChange, hex,
};
pub use sessions::Sessions;

use crate::output::Output;
use crate::protocol::{Code, Failure};

/// One program under control.
pub struct LiveSession {
    /// Its number, from 1.
    pub id: u32,
    /// How it came to be: enough to do it again.
    pub origin: Origin,
    /// The folder of the client that began it.
    pub folder: PathBuf,
    /// Its program, as it was given.
    pub program: String,
    /// The handle.
    pub live: Live,
    /// What the program printed.
    pub output: Arc<Output>,
    /// How long it may take to find out one value.
    pub question_time: Duration,
    selection: Mutex<Selection>,
    warnings: Arc<Mutex<Vec<String>>>,
    // What watched places hold: their stops tell of values, not of bytes.
    watched_types: Mutex<HashMap<ProbeId, Type>>,
    opened: Mutex<past::Opened>,
}

/// What the person looks at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// The thread, once one was chosen.
    pub tid: Option<Tid>,
    /// The stop of that thread that `frame` is about; another stop begins at frame 0.
    pub stop: u64,
    /// The frame, from 0, the innermost.
    pub frame: usize,
}

impl LiveSession {
    /// Returns what the person looks at.
    #[must_use]
    pub fn selection(&self) -> Selection {
        *self.chosen()
    }

    /// Looks at a thread's innermost frame.
    pub fn select_thread(&self, tid: Tid) {
        *self.chosen() = Selection {
            tid: Some(tid),
            ..Selection::default()
        };
    }

    /// Looks at a frame of a stop.
    pub fn select_frame(&self, tid: Tid, stop: u64, frame: usize) {
        *self.chosen() = Selection {
            tid: Some(tid),
            stop,
            frame,
        };
    }

    /// Keeps of what type a watched place is.
    pub fn remember_type(&self, probe: ProbeId, ty: Type) {
        self.types().insert(probe, ty);
    }

    /// Returns the warnings of the recorder since the start.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        self.warnings
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Says whether the program has ended or was left.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        matches!(self.live.status(), Status::Ended(_))
    }

    /// Refuses what needs a program.
    ///
    /// # Errors
    /// [`Code::NotRunning`] when it has ended.
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
                report::exit_words(exit),
                recording.display()
            ),
        )
        .hint(match self.origin {
            Origin::Started(_) => "run it again: hindsight restart",
            Origin::Attached(_) => "attach to another process: hindsight attach PID",
        });
        failure.details.recording = Some(recording.to_owned());
        failure
    }

    fn types(&self) -> MutexGuard<'_, HashMap<ProbeId, Type>> {
        // Each entry stands alone.
        self.watched_types
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn chosen(&self) -> MutexGuard<'_, Selection> {
        // Numbers only: whole at any time.
        self.selection
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

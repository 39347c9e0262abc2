//! The past of a live session: its own recording, up to the point where the program stopped. It is reopened when it
//! has grown.

use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use recorder::live::Status;
use store::Recording;
use store::seal::Counter;

use super::LiveSession;
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
}

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
        Ok(past)
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
        let opened = self.opened();
        opened.past.clone().filter(|_| opened.is_entered)
    }

    /// Returns the event of a thread's last stop, if the recording has it.
    #[must_use]
    pub fn last_stop_event(&self, tid: u32) -> Option<u64> {
        let _ = self.live.settle(SETTLE_PATIENCE);
        let counted = self.count(&mut self.opened()).ok()?.last_stop(tid);
        // The event may have been sealed before the counter first read the log.
        counted.or_else(|| self.past().ok()?.timeline().last_stop(tid))
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

//! Ends a recording that is as large as the user allows.

use std::time::{Duration, Instant};

use super::{Session, folder_bytes};
use crate::{Exit, Observer, Result, options::Target, process::status::ExitWatch};

/// How often its size is looked at: at 2 GB/s, the log grows by 40 MB meanwhile.
const EVERY: Duration = Duration::from_millis(20);

/// The size over time.
#[derive(Debug, Default)]
pub(super) struct Size {
    looked: Option<Instant>,
    /// The recording has ended because of it.
    pub is_reached: bool,
}

impl Session {
    /// Returns whether the recording has become as large as it may be. Says so, and leaves the status of a program that is our
    /// child to [`end_of`].
    pub(super) fn has_reached_its_size(&mut self, observer: &dyn Observer) -> Result<bool> {
        let Some(most) = self.options.max_size else {
            return Ok(false);
        };
        let size = &mut self.so_far.size;
        if size.looked.is_some_and(|looked| looked.elapsed() < EVERY) {
            return Ok(false);
        }
        size.looked = Some(Instant::now());
        let bytes = folder_bytes(self.writing.open.recording().dir());
        if bytes < most {
            return Ok(false);
        }
        size.is_reached = true;
        if matches!(self.options.target, Target::Spawn { .. }) {
            self.target.watch.leave_status();
        }
        let message = format!(
            "the recording ends here: it takes {} MB, and --max-size is {} MB; the program continues unrecorded",
            bytes / 1_000_000,
            most / 1_000_000
        );
        self.warn(&message.into(), observer)?;
        Ok(true)
    }
}

/// Waits until our child `pid` has ended; returns how. Passes signals on to it.
pub(super) fn end_of(pid: i32) -> Exit {
    let watch = ExitWatch::new(pid, true);
    watch.map_or(Exit::Detached, |watch| watch.wait_for_end())
}

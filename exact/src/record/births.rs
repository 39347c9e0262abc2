//! New threads and processes: they may stop for the first time before it is known who made them.

use crate::error::{Context, Result};
use crate::ptrace;

/// Those that have, and are not known yet.
#[derive(Debug, Default)]
pub(super) struct Births(Vec<i32>);

impl Births {
    /// An unknown thread has stopped.
    pub(super) fn came_early(&mut self, tid: i32) {
        self.0.push(tid);
    }

    /// What a thread that has stopped for that has made, once it has stopped too.
    pub(super) fn child_of(&mut self, parent: i32) -> Result<i32> {
        let child = ptrace::event_message(parent).context("read an event")? as i32;
        if let Some(index) = self.0.iter().position(|tid| *tid == child) {
            self.0.swap_remove(index);
            return Ok(child);
        }
        while ptrace::wait(child, false)
            .context("wait for a new thread")?
            .is_none()
        {}
        Ok(child)
    }
}

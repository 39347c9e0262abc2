//! Checks the snapshots of memory: every page can be read, and every snapshot that an event names exists.

use std::path::Path;

use super::Report;
use crate::error::{Error, Result};
use crate::memory::Memory;
use crate::recording::Recording;

/// Checks the existing copies, and that each one named by an event exists. Needs the events of the log and the columns.
pub(super) fn check(
    recording: &Recording,
    report: &mut Report,
    progress: &mut impl FnMut(u64),
) -> Result<()> {
    let checked = Memory::open(recording).and_then(|mut memory| {
        for path in memory.paths() {
            let len = path.metadata().map_err(Error::io("read", path))?.len();
            report.file(path, len);
            progress(len);
        }
        memory.check()?;
        (0..report.memory_copies).try_for_each(|id| memory.must_have(id))
    });
    match checked {
        Ok(()) => {}
        Err(error @ Error::Io { .. }) => return Err(error),
        Err(error) => report.damage(damaged(&error).unwrap_or(recording.dir()), &error),
    }
    Ok(())
}

/// Returns the file of an error.
fn damaged(error: &Error) -> Option<&Path> {
    match error {
        Error::Corrupt { path, .. }
        | Error::Truncated { path, .. }
        | Error::Foreign { path, .. }
        | Error::NewerFormat { path, .. }
        | Error::OlderFormat { path, .. } => Some(path),
        _ => None,
    }
}

//! The log of every instruction becomes a recording: the program is run once more, its events and calls are written and sealed.

use exact::{Outline, Summary};
use store::{
    format::INSTRUCTIONS_DIR,
    log::LogWriter,
    recording::OpenRecording,
    seal::{Ending, SealOptions, Sealer},
};

use super::{calls::Writing, story::Story};
use crate::{Death, Observer, Result, arm::Filter};

/// What must be known beside the log.
pub(super) struct Logged {
    pub argv: Vec<String>,
    pub cwd: String,
    /// Whose calls become events.
    pub filter: Filter,
    /// Whether to keep the segments of events after sealing.
    pub keep_log: bool,
}

/// What has become of it.
#[derive(Default)]
pub(super) struct Finished {
    pub events: u64,
    pub calls: u64,
    pub threads: u64,
    /// Functions whose calls were looked for.
    pub armed: u64,
    pub death: Option<Death>,
    /// Why not everything is known that the log has.
    pub problem: Option<String>,
}

/// Writes the events. `summary`: how recording ended, if that was seen.
///
/// # Errors
/// The log cannot be read, or the events cannot be written: the recording then stays marked as unfinished.
pub(super) fn finish(
    (open, mut log): (OpenRecording, LogWriter),
    what: &Logged,
    summary: Option<&Summary>,
    observer: &dyn Observer,
) -> Result<Finished> {
    let folder = open.recording().dir().join(INSTRUCTIONS_DIR);
    let story = Story::of(&folder, what, summary)?;
    let Outline { threads, end, .. } = &story.outline;
    let writing = Writing::new(&mut log, &story.functions, story.controls, threads);
    let problem = story.problem.or(writing.calls(&folder, *end)?);
    let seal = SealOptions {
        keep_log: what.keep_log,
        ..SealOptions::default()
    };
    let sealer = Sealer::own(open.recording(), seal)?;
    let closed = log.close()?;
    let sealed = sealer.finish(Ending::Close, |progress| {
        observer.sealing(progress.events, progress.bytes_done, progress.bytes_total);
    })?;
    open.close(closed)?;
    Ok(Finished {
        events: sealed.events,
        calls: sealed.parts.iter().map(|part| part.part.calls).sum(),
        threads: threads.len() as u64,
        armed: story.functions.definitions.len() as u64,
        death: story.death,
        problem,
    })
}

//! The log of every instruction becomes a recording: the program is run once more, its events and calls are written and sealed.

use std::{
    panic::resume_unwind,
    sync::atomic::{
        AtomicBool,
        Ordering::{Acquire, Release},
    },
    thread,
    time::Duration,
};

use exact::{Outline, Summary};
use store::{
    format::INSTRUCTIONS_DIR,
    log::LogWriter,
    recording::OpenRecording,
    seal::{Ending, SealOptions, Sealer},
};

use super::{calls::Writing, probing::InOrder, story::Story};
use crate::{Death, Observer, Result, arm::Filter, live::FirstProbes};

/// Events that are sealed at once.
const STEP_EVENTS: u64 = 1 << 16;
/// How long to gather log before sealing it: sealing little costs nearly as much as sealing much.
const GATHERING: Duration = Duration::from_millis(20);

/// What must be known beside the log.
pub(super) struct Logged {
    pub argv: Vec<String>,
    pub cwd: String,
    /// Whose calls become events.
    pub filter: Filter,
    /// Logpoints and places whose writes become events.
    pub first: FirstProbes,
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
    /// Processes that it made, which are not recorded.
    pub children: u64,
    /// For each probe, why it has no place, if it has none.
    pub unplaced: Vec<Option<String>>,
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
    let Outline {
        threads: threads_of_program,
        end,
        ..
    } = &story.outline;
    let seal = SealOptions {
        keep_log: what.keep_log,
        ..SealOptions::default()
    };
    let sealer = Sealer::own(open.recording(), seal)?;
    let is_written = AtomicBool::new(false);
    let mut unplaced = story.probing.unplaced.clone();
    let (written, answered, sealer) = thread::scope(|threads| {
        let sealing = threads.spawn(|| seal_meanwhile(sealer, &is_written));
        let mut answers = story.probing.answer(threads, &folder, *end);
        let events = std::mem::take(&mut answers.events);
        let writing = Writing::new(
            &mut log,
            &story.functions,
            InOrder::new(story.controls, events),
            threads_of_program,
        );
        let executed = story.outline.executed.as_ref();
        let written = writing.calls(&folder, *end, executed, observer);
        is_written.store(true, Release);
        sealing.thread().unpark();
        (
            written,
            answers.end(),
            sealing.join().unwrap_or_else(|panic| resume_unwind(panic)),
        )
    });
    let (written, sealer) = (written?, sealer?);
    let (problems, not_found) = answered;
    for (index, why) in not_found {
        unplaced[index] = Some(why);
    }
    let closed = log.close()?;
    let sealed = sealer.finish(Ending::Close, |progress| {
        observer.sealing(progress.events, progress.bytes_done, progress.bytes_total);
    })?;
    open.close(closed)?;
    Ok(Finished {
        events: sealed.events,
        calls: sealed.parts.iter().map(|part| part.part.calls).sum(),
        threads: threads_of_program.len() as u64,
        armed: story.functions.definitions.len() as u64,
        death: story.death,
        children: written.children,
        unplaced,
        problem: story
            .problem
            .or(written.problem)
            .or(problems.into_iter().next()),
    })
}

/// Seals what there is, until all is written.
fn seal_meanwhile(mut sealer: Sealer, is_written: &AtomicBool) -> store::Result<Sealer> {
    while !is_written.load(Acquire) {
        if sealer.step(STEP_EVENTS)?.caught_up {
            thread::park_timeout(GATHERING);
        }
    }
    Ok(sealer)
}

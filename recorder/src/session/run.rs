//! Runs a session from its program's start to the sealed recording.

use std::{fs, path::Path, sync::Arc, thread};

use store::{
    Reader,
    seal::{Ending, SealOptions, Sealed, SealedPart, Sealer},
};

use super::{
    LiveSide, Session, follow,
    sealing::{Wanted, closed_early, seal_in_background},
    size, unmatched,
};
use crate::{Counting, Error, Exit, Observer, Outcome, Result, Target, signals, wake::Event};

impl Session {
    /// Drains until the end, then seals.
    pub(crate) fn run(mut self, observer: &dyn Observer) -> Result<Outcome> {
        self.writing.unbegun.0 = None;
        let wanted = Wanted::default();
        let recording = self.writing.open.recording().clone();
        let options = SealOptions {
            keep_log: self.options.keep_log,
            ..SealOptions::default()
        };
        let failed = |source| Error::system("watch the program")(source);
        let over = Event::new().map_err(failed)?;
        let end = self.target.watch.try_clone().map_err(failed)?;
        let shared = Arc::clone(&self.shared);
        let (ended, sealer) = thread::scope(|scope| {
            let sealing = scope.spawn(|| seal_in_background(&recording, options, &wanted));
            scope.spawn(|| end.wait(&over, || shared.wake()));
            let ended = self.follow(&wanted, observer);
            wanted.stop();
            sealing.thread().unpark();
            over.signal();
            (
                ended,
                sealing.join().unwrap_or_else(|_| Err(closed_early())),
            )
        });
        let ended = ended?;
        if ended.unhooked
            && let Some(guardian) = self.guardian.take()
        {
            let has_become = self.live.as_ref().is_some_and(LiveSide::has_become);
            match ended.exit {
                _ if has_become => guardian.farewell(),
                Exit::Detached => guardian.leave_pipes(),
                Exit::Code(_) | Exit::Signal(_) => guardian.farewell(),
            }
        }
        // Checked at the end, since plugins loaded later may have had such functions.
        let filter = self.armer().filter().clone();
        for warning in unmatched::warnings(&filter, &self.arming.modules.loaded) {
            observer.warning(&warning);
        }
        let duration_ns = self.so_far.began.elapsed().as_nanos() as u64;
        let outlives =
            self.so_far.size.is_reached && matches!(self.options.target, Target::Spawn { .. });
        let pid = self.target.pid;
        let (sealed, incomplete) = self.close(ended.incomplete, sealer, observer);
        let is_left = sealed.is_none() && incomplete.is_none();
        let counted = match &sealed {
            Some(sealed) => Some((sealed.events, calls_of(&sealed.parts))),
            None if is_left => None,
            None => counted(&recording),
        };
        let counting = match counted {
            Some(_) => Counting::Done,
            None if is_left => Counting::Left,
            None => Counting::Failed,
        };
        let (events, calls) = counted.unwrap_or_default();
        Ok(Outcome {
            bytes_on_disk: folder_bytes(recording.dir()),
            counting,
            had_children: ended.had_children,
            recording: recording.dir().to_path_buf(),
            events,
            calls,
            threads: ended.threads,
            gaps_lost: ended.lost,
            duration_ns,
            armed: ended.armed,
            skipped: ended.skipped,
            exit: match outlives {
                true => size::end_of(pid),
                false => ended.exit,
            },
            death: ended.death,
            incomplete,
        })
    }

    /// Closes the log, seals the rest and removes the mark of an unfinished recording.
    fn close(
        self,
        incomplete: Option<String>,
        sealer: store::Result<Sealer>,
        observer: &dyn Observer,
    ) -> (Option<Sealed>, Option<String>) {
        drop(self.owner);
        if let Some(why) = &incomplete {
            let why = why.strip_prefix(follow::ENDS_HERE).unwrap_or(why);
            self.writing.open.ended_early(why);
        }
        let closed = self.writing.log.close();
        let sealed = sealer.and_then(|sealer| {
            // Earlier signals were for the program.
            let _ = signals::take();
            sealer.finish_while(Ending::Close, |progress| {
                observer.sealing(progress.events, progress.bytes_done, progress.bytes_total);
                signals::received() != Some(libc::SIGINT)
            })
        });
        let result = match (closed, sealed) {
            (Ok(closed), Ok(sealed)) => match incomplete {
                None => self
                    .writing
                    .open
                    .close(closed)
                    .map(|_| (Some(sealed), None)),
                Some(reason) => Ok((Some(sealed), Some(reason))),
            },
            (Err(error), Ok(sealed)) => Ok((Some(sealed), incomplete.or(Some(error.one_line())))),
            // The log is complete: the next reader seals the rest.
            (Ok(closed), Err(store::Error::SealingLeft)) => {
                self.writing.open.close(closed).map(|_| (None, incomplete))
            }
            (_, Err(error)) => Ok((None, incomplete.or(Some(error.one_line())))),
        };
        result.unwrap_or_else(|error: store::Error| (None, Some(error.one_line())))
    }
}

fn calls_of(parts: &[SealedPart]) -> u64 {
    parts.iter().map(|part| part.part.calls).sum()
}

/// The events and calls of a recording that could not be sealed, where it lies. A reader's folder may have more room.
fn counted(recording: &store::Recording) -> Option<(u64, u64)> {
    let reader = Reader::open(recording.dir(), &store::temp_dir()).ok()?;
    Some((reader.events(), calls_of(reader.parts())))
}

pub(crate) fn folder_bytes(dir: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(dir) else {
        return 0;
    };
    let lengths = entries.flatten().map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => folder_bytes(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    });
    lengths.sum()
}

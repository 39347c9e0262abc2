//! The recording of instructions of a program under control: a folder of its own, beside that of the session.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use crossbeam::channel::{Receiver, bounded};
use exact::{Ending, Summary};
use store::{Recording, recording::OnTaken};

use super::{FullOptions, FullOutcome, FullPart, image::Image};
use crate::{
    Captures, Error, Observer, Result, Surroundings,
    arm::Filter,
    live::{
        FirstProbes, Live, LiveError, Tid,
        full::{BEHIND_IT, Recorded, Wanted},
    },
};

/// Instructions of a thread of a live session that are being recorded, or have been.
pub struct Steps {
    image: Image,
    progress: Arc<AtomicU64>,
    ended: Receiver<Recorded>,
}

/// What was recorded.
#[derive(Clone, Debug)]
pub struct StepsOutcome {
    /// As of any recording of every instruction.
    pub full: FullOutcome,
    /// Why recording ended.
    pub ending: Ending,
}

impl Steps {
    /// Records the next instructions of a stopped thread. All other threads are stopped, and stay so; any other stop ends it earlier.
    /// Returns also a number below that of the next stop to show.
    ///
    /// # Errors
    /// As [`Live::resume`], and if the recording cannot be written. The program is as it was then.
    pub fn begin(
        live: &Live,
        tid: Tid,
        instructions: u64,
        observer: &dyn Observer,
    ) -> Result<(Steps, u64)> {
        let own = Recording::open(live.recording())?;
        let options = options(live, &own);
        let filter = Filter::new(&options.include, &options.exclude)?;
        let cwd = fs::read_link(format!("/proc/{}/cwd", live.pid())).unwrap_or_default();
        let path = options.output.clone().unwrap_or_default();
        let image = Image::create(
            (&path, OnTaken::Number),
            (&options, own.manifest().lineage),
            &filter,
            &cwd,
            observer,
        )?;
        let progress = Arc::<AtomicU64>::default();
        let (reply, ended) = bounded(1);
        let words = options.argv.iter();
        let wanted = Wanted {
            instructions,
            folder: image.folder(),
            spare: image.spare(),
            command: words
                .map(|word| word.to_string_lossy().into_owned())
                .collect(),
            progress: Arc::clone(&progress),
            ended: reply,
        };
        match live.record_next(tid, wanted) {
            Ok(after) => Ok((
                Steps {
                    image,
                    progress,
                    ended,
                },
                after,
            )),
            Err(error) => {
                image.remove();
                Err(error)
            }
        }
    }

    /// How many instructions are recorded so far.
    #[must_use]
    pub fn progress(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.progress)
    }

    /// Returns whether recording goes on.
    #[must_use]
    pub fn goes_on(&self) -> bool {
        self.ended.is_empty()
    }

    /// Waits for the end of recording, and closes it: its calls and events are written, and it is run again to see that all is
    /// as it was recorded. `None`: nothing was recorded, because something else came first or the program ended before its next
    /// instruction, and nothing is kept.
    ///
    /// # Errors
    /// The recording could not be written, it has no instruction, or it cannot be run again: then nothing is kept.
    pub fn finish(self, observer: &dyn Observer) -> Result<Option<StepsOutcome>> {
        let Ok(recorded) = self.ended.recv() else {
            self.image.remove();
            return Ok(None);
        };
        let recorded = match recorded {
            Ok(recorded) => recorded,
            Err(why) => {
                self.image.remove();
                return Err(not_recorded(&why));
            }
        };
        if recorded.instructions == 0 {
            self.image.remove();
            return nothing(recorded).map_or(Ok(None), Err);
        }
        let checked = match checked(&self.image.folder()) {
            Ok(checked) => checked,
            Err(error) => {
                self.image.remove();
                return Err(error);
            }
        };
        let instructions = checked.end.unwrap_or(recorded.instructions);
        self.progress.store(instructions, Relaxed);
        let (code, signal) = match recorded.ending {
            _ if checked.why.is_some() => (None, None),
            Ending::GoesOn(_) => (None, None),
            Ending::Exit(code) => (Some(code), None),
            Ending::Signal(signal) => (None, Some(signal)),
        };
        let summary = Summary {
            instructions,
            code,
            signal,
            fatal: None,
            is_full: recorded.refused.is_some(),
            lost: recorded.refused.or(checked.why),
            doubt: None,
            next: None,
            blocks: 0,
            code_bytes: 0,
        };
        let full = self.image.ended().finish(summary, observer)?;
        Ok(Some(StepsOutcome {
            full,
            ending: recorded.ending,
        }))
    }
}

/// What running it again has shown.
#[derive(Default)]
struct Checked {
    /// Where it was cut off, and why.
    end: Option<u64>,
    why: Option<String>,
}

/// Runs a log again. Where what comes out differs from what was recorded, what follows the last registers that agreed is cut off.
fn checked(folder: &Path) -> Result<Checked> {
    let verify = || exact::verify(folder, &mut |_, _| true);
    let Some(found) = verify()?.contradiction else {
        return Ok(Checked::default());
    };
    let why = format!(
        "run again, instruction {} gives something else ({}: {}, and not {}); what follows instruction {} is left out",
        found.position, found.what, found.found, found.expected, found.agreed
    );
    if found.agreed == 0 {
        return Err(not_recorded(&why));
    }
    exact::cut(folder, found.agreed, &why)?;
    match verify()?.contradiction {
        Some(_) => Err(not_recorded(&why)),
        None => Ok(Checked {
            end: Some(found.agreed),
            why: Some(why),
        }),
    }
}

/// Why there is no instruction; `None`: the program has ended, which is told as any end.
fn nothing(recorded: exact::Recorded) -> Option<Error> {
    let (why, hint) = match (recorded.refused, recorded.ending) {
        (Some(refused), _) => (refused, "make room on the disk, and record again"),
        (None, Ending::GoesOn(why)) => (why, BEHIND_IT),
        (None, Ending::Exit(_) | Ending::Signal(_)) => return None,
    };
    let mut what = debuginfo::Diagnostic::new(format!("no instruction was recorded: {why}"));
    what.hint = Some(hint.to_owned());
    Some(LiveError::Motion(what).into())
}

fn not_recorded(why: &str) -> Error {
    let mut what = debuginfo::Diagnostic::new(format!("the instructions were not recorded: {why}"));
    what.hint = Some("record the whole run instead: hindsight record --full -- PROGRAM".to_owned());
    LiveError::Motion(what).into()
}

/// The same functions as in the session, of the same program.
fn options(live: &Live, own: &Recording) -> FullOptions {
    let process = PathBuf::from(format!("/proc/{}", live.pid()));
    let manifest = own.manifest();
    let of = |option: &str| {
        let patterns = manifest.settings.filters.iter();
        let patterns = patterns.filter_map(|filter| filter.strip_prefix(option));
        patterns.map(str::to_owned).collect::<Vec<String>>()
    };
    FullOptions {
        part: FullPart::All,
        output: Some(beside(live.recording())),
        include: of("-f "),
        exclude: of("-x "),
        captures: Captures::default(),
        first: FirstProbes::default(),
        labels: manifest.labels.clone(),
        surroundings: Surroundings {
            env: Some(super::image::pairs(
                &fs::read(process.join("environ")).unwrap_or_default(),
            )),
            ..Surroundings::default()
        },
        keep_log: false,
        parent: None,
        argv: manifest.argv.iter().map(OsString::from).collect(),
    }
}

/// `run-full` for the recording `run`.
fn beside(recording: &Path) -> PathBuf {
    super::image::beside(recording, Path::new("full"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_beside_the_session() {
        let beside = beside(Path::new("/tmp/run.hindsight"));
        assert_eq!(beside, Path::new("/tmp/run-full"));
    }
}

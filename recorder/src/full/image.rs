//! The recording of one program of a process: of the one that was started, or of what it became by execve(2).

use std::{
    ffi::{OsStr, OsString},
    fs,
    ops::RangeInclusive,
    os::unix::{ffi::OsStrExt, fs::DirBuilderExt},
    path::{Path, PathBuf},
    time::Instant,
};

use exact::{Next, Summary};
use store::{
    format::{INSTRUCTIONS_DIR, RECORDING_SUFFIX, SPARE_FILES},
    log::LogWriter,
    manifest::Lineage,
    recording::{Created, OnTaken, OpenRecording},
    storage::{Spare, free_bytes},
};

use super::{
    FullOptions, FullOutcome, exit,
    finish::{Finished, Logged, finish},
    manifest, parts, texts,
};
use crate::{
    Counting, Error, Observer, Outcome, Result,
    arm::Filter,
    session::{alone, default_name, folder_bytes, run_of},
};

const ROOM_OF_LOG: u64 = 4 << 20;
/// The events' share of what is free, between two bounds.
const EVENTS_PART: u64 = 8;
const ROOM_OF_EVENTS: RangeInclusive<u64> = 2 << 20..=16 << 20;

/// What can be done about a disk that was full.
pub(super) const MORE_ROOM: &str =
    "free some space, record elsewhere with -o, or only what matters with --full=FUNCTION";

/// A recording in progress.
pub(super) struct Image {
    open: OpenRecording,
    log: LogWriter,
    what: Logged,
    /// For the log, and for the events; given back when it has ended.
    spares: [Option<Spare>; 2],
    began: Instant,
    duration_ns: u64,
    /// The program that it became.
    pub became: Option<PathBuf>,
    /// What else could not be done.
    pub problem: Option<String>,
}

impl Image {
    /// Creates the recording, with room for its end.
    pub fn create(
        (path, on_taken): (&Path, OnTaken),
        (options, process): (&FullOptions, Option<Lineage>),
        filter: &Filter,
        cwd: &Path,
        observer: &dyn Observer,
    ) -> Result<Image> {
        let mut manifest = manifest(options, process, cwd)?;
        let program = options.argv.first().map(Path::new);
        manifest.run_of = program.and_then(|program| run_of(path, &default_name(program)));
        let Created { open, log } = OpenRecording::create(path, on_taken, manifest)?;
        let dir = open.recording().dir();
        observer.created(dir);
        let spares = kept_room(&dir.join(INSTRUCTIONS_DIR));
        if spares.is_err() {
            // If it cannot be removed, `check` says what it is.
            let _ = fs::remove_dir_all(dir);
        }
        Ok(Image {
            spares: spares?,
            open,
            log,
            what: Logged {
                argv: texts(&options.argv),
                cwd: cwd.to_string_lossy().into_owned(),
                filter: filter.clone(),
                first: options.first.clone(),
                keep_log: options.keep_log,
            },
            began: Instant::now(),
            duration_ns: 0,
            became: None,
            problem: None,
        })
    }

    /// Creates that of what the program has become, beside the first one.
    pub fn next(
        &self,
        next: &Next,
        options: &FullOptions,
        filter: &Filter,
        observer: &dyn Observer,
    ) -> Result<Image> {
        let name = default_name(&next.program);
        let path = match &options.output {
            None => name,
            Some(output) => beside(output, &name),
        };
        let process = PathBuf::from(format!("/proc/{}", next.pid()));
        let mut options = options.clone();
        options.argv.clone_from(&next.arguments);
        let variables = fs::read(process.join("environ")).unwrap_or_default();
        options.surroundings.env = Some(pairs(&variables));
        options.surroundings.stdin = None;
        let cwd = fs::read_link(process.join("cwd")).unwrap_or_default();
        let process = alone(next.pid()).map(|process| Lineage {
            parent_run: Some(self.open.recording().manifest().recording_id),
            ..process
        });
        let name = (path.as_path(), OnTaken::Number);
        Image::create(name, (&options, process), filter, &cwd, observer)
    }

    pub fn dir(&self) -> &Path {
        self.open.recording().dir()
    }

    /// The folder of the instructions.
    pub fn folder(&self) -> PathBuf {
        self.dir().join(INSTRUCTIONS_DIR)
    }

    /// The file that is removed for the end of the log.
    pub fn spare(&self) -> Option<PathBuf> {
        self.spares[0].as_ref().map(|spare| spare.path().to_owned())
    }

    /// Nothing was recorded. If it cannot be removed, `check` says what it is.
    pub fn remove(self) {
        let _ = fs::remove_dir_all(self.dir());
    }

    /// The program has ended.
    pub fn ended(mut self) -> Image {
        self.duration_ns = self.began.elapsed().as_nanos() as u64;
        self
    }

    /// Writes its events and closes it.
    pub fn finish(self, summary: Summary, observer: &dyn Observer) -> Result<FullOutcome> {
        let dir = self.dir().to_owned();
        drop(self.spares);
        let finished = finish((self.open, self.log), &self.what, Some(&summary), observer);
        if let Err(Error::Exact(exact::Error::Damaged(_))) = &finished
            && let Some(lost) = summary.lost.as_ref().filter(|_| summary.is_full)
        {
            let _ = fs::remove_dir_all(&dir);
            return Err(parts::no_room(lost));
        }
        let is_finished = finished.is_ok();
        let (finished, unfinished) = match finished {
            Ok(finished) => (finished, None),
            // All that matters is in the log.
            Err(Error::Store(error)) => (Finished::default(), Some(unfinished(&error))),
            Err(error) => return Err(error),
        };
        let lost = summary.lost.clone().map(|why| match summary.is_full {
            true => format!("{why}; {MORE_ROOM}"),
            false => why,
        });
        let doubt = summary.doubt.clone();
        let reasons = [lost, doubt, self.problem, finished.problem, unfinished];
        let reasons: Vec<String> = reasons.into_iter().flatten().collect();
        let outcome = Outcome {
            events: finished.events,
            calls: finished.calls,
            threads: finished.threads,
            gaps_lost: 0,
            duration_ns: self.duration_ns,
            bytes_on_disk: folder_bytes(&dir),
            recording: dir,
            armed: finished.armed,
            skipped: 0,
            exit: exit(&summary),
            death: finished.death,
            incomplete: (!reasons.is_empty()).then(|| reasons.join("; ")),
            counting: match is_finished {
                true => Counting::Done,
                false => Counting::Failed,
            },
            had_children: false,
        };
        Ok(FullOutcome {
            outcome,
            instructions: summary.instructions,
            children: finished.children,
            became: self.became,
            unplaced: finished.unplaced,
            next: None,
        })
    }
}

/// Why the events are not there yet.
fn unfinished(error: &store::Error) -> String {
    format!(
        "its calls and events could not be written ({error}); free some space: the next command that opens it writes them"
    )
}

/// Creates the folder of the instructions, and keeps some room in it.
fn kept_room(folder: &Path) -> Result<[Option<Spare>; 2]> {
    let made = fs::DirBuilder::new().mode(0o700).create(folder);
    made.map_err(Error::system("create the folder of the instructions"))?;
    let keep = |name: &str, bytes| {
        let spare = Spare::keep(&folder.join(name), bytes);
        spare.map_err(Error::system(format!(
            "keep room for the end of the recording: {} MiB must be free",
            (ROOM_OF_LOG + ROOM_OF_EVENTS.start()) >> 20
        )))
    };
    let free = free_bytes(folder).unwrap_or(0);
    let of_log = keep(SPARE_FILES[0], ROOM_OF_LOG)?;
    let bytes = (free / EVENTS_PART).clamp(*ROOM_OF_EVENTS.start(), *ROOM_OF_EVENTS.end());
    Ok([of_log, keep(SPARE_FILES[1], bytes)?])
}

/// `run-app` for the output `run` and the program `app`.
pub(super) fn beside(output: &Path, name: &Path) -> PathBuf {
    let bytes = output.as_os_str().as_bytes();
    let bytes = bytes.strip_suffix(b"/").unwrap_or(bytes);
    let stem = bytes
        .strip_suffix(RECORDING_SUFFIX.as_bytes())
        .unwrap_or(bytes);
    let mut path = OsString::from(OsStr::from_bytes(stem));
    path.push("-");
    path.push(name);
    path.into()
}

/// The variables of an environment as the kernel shows it.
pub(super) fn pairs(variables: &[u8]) -> Vec<(OsString, OsString)> {
    let texts = variables.split(|byte| *byte == 0);
    let pairs = texts.filter_map(|text| {
        let at = text.iter().position(|byte| *byte == b'=')?;
        let of = |bytes: &[u8]| OsStr::from_bytes(bytes).to_owned();
        Some((of(&text[..at]), of(&text[at + 1..])))
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_became_is_recorded_beside_it() {
        let of = |output: &str| beside(Path::new(output), Path::new("app"));
        assert_eq!(of("run"), Path::new("run-app"));
        assert_eq!(of("/tmp/run.hindsight/"), Path::new("/tmp/run-app"));
    }

    #[test]
    fn an_environment_is_pairs() {
        let found = pairs(b"A=1\0B=\0nothing\0C=x=y\0");
        let found: Vec<_> = found
            .iter()
            .map(|(a, b)| (a.to_str(), b.to_str()))
            .collect();
        let text = |text| Some(text);
        assert_eq!(
            found,
            [
                (text("A"), text("1")),
                (text("B"), text("")),
                (text("C"), text("x=y"))
            ]
        );
    }
}

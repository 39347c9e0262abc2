//! Records every instruction of a program: the recording has few events, and beside them the log from which `exact` runs
//! the program again.
//!
//! When the program has ended it is run once more, to find its calls.
//!
//! The clock of such a recording counts instructions: the time of an event is the number of instructions that all threads
//! had executed before it.

mod calls;
mod complete;
mod ending;
mod finish;
mod modules;
mod parts;
mod signals;
mod story;

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs, io,
    ops::RangeInclusive,
    os::unix::{ffi::OsStrExt, fs::DirBuilderExt},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicI32, Ordering::Release},
    },
    time::{Duration, Instant},
};

use exact::Summary;
use store::{
    format::{FORMAT_VERSION, INSTRUCTIONS_DIR},
    manifest::{ByteBuf, ClockCalibration, EVERY_INSTRUCTION, Launch, Manifest, Settings, Stdin},
    recording::{Created, OnTaken, OpenRecording},
    storage::{Spare, free_bytes},
};

pub use self::complete::{complete, is_to_complete};
use self::finish::{Finished, Logged, finish};
use crate::{
    Error, Exit, Observer, Outcome, Result, Surroundings,
    arm::Filter,
    process::spawn,
    session::{default_name, folder_bytes, new_id, own_stdin, start_of, this_machine},
};

/// Files that keep room on the disk, and how many bytes: of the events' share of what is free, between two bounds.
const SPARE_OF_LOG: &str = "spare.log";
const SPARE_OF_EVENTS: &str = "spare.events";
const ROOM_OF_LOG: u64 = 4 << 20;
const ROOM_OF_EVENTS: RangeInclusive<u64> = 2 << 20..=16 << 20;
const EVENTS_PART: u64 = 8;

/// Which part of a run is recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum FullPart {
    #[default]
    All,
    /// All of it from so long after its start on.
    After(Duration),
    /// While a thread is in a call of a function with one of these names or patterns.
    Calls(Vec<String>),
}

/// How a program is recorded with every instruction.
#[derive(Clone, Debug)]
pub struct FullOptions {
    /// Which part of its run.
    pub part: FullPart,
    /// The output folder; `None`: the program's name in the current folder, made unique.
    pub output: Option<PathBuf>,
    /// Patterns of functions whose calls become events; none: all of the program's own functions.
    pub include: Vec<String>,
    /// Patterns of functions whose calls do not.
    pub exclude: Vec<String>,
    /// What to call this run, by key.
    pub labels: BTreeMap<String, String>,
    /// What the program finds.
    pub surroundings: Surroundings,
    /// Whether to keep the log's segments after sealing.
    pub keep_log: bool,
    /// Program (looked up in PATH) and arguments.
    pub argv: Vec<OsString>,
}

/// What was recorded.
#[derive(Clone, Debug)]
pub struct FullOutcome {
    /// As of any recording.
    pub outcome: Outcome,
    /// Instructions executed.
    pub instructions: u64,
}

/// Records every instruction of a program until it ends.
///
/// # Errors
/// If the program cannot be started or recorded, or the recording cannot be written.
pub fn record_full(options: &FullOptions, observer: &dyn Observer) -> Result<FullOutcome> {
    let program = program(options)?;
    let filter = Filter::new(&options.include, &options.exclude)?;
    let path = options.output.clone();
    let on_taken = match path {
        Some(_) => OnTaken::Refuse,
        None => OnTaken::Number,
    };
    let path = path.unwrap_or_else(|| default_name(&program));
    let cwd = std::env::current_dir().map_err(Error::system("find the current folder"))?;
    let Created { open, log } = OpenRecording::create(&path, on_taken, manifest(options, &cwd)?)?;
    let dir = open.recording().dir().to_owned();
    observer.created(&dir);
    let folder = dir.join(INSTRUCTIONS_DIR);
    let began = Instant::now();
    let ran = kept_room(&folder).and_then(|room| {
        // What is kept for the events is given back when the program has ended.
        run(&program, options, &folder, room.0.as_ref())
    });
    let summary = match ran {
        Ok(summary) => summary,
        Err(error) => {
            // Nothing was recorded. If it cannot be removed, `check` says what it is.
            let _ = fs::remove_dir_all(&dir);
            return Err(error);
        }
    };
    let duration_ns = began.elapsed().as_nanos() as u64;
    let what = Logged {
        argv: texts(&options.argv),
        cwd: cwd.to_string_lossy().into_owned(),
        filter,
        keep_log: options.keep_log,
    };
    let finished = finish((open, log), &what, Some(&summary), observer);
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
    let reasons = [lost, finished.problem, unfinished];
    let reasons: Vec<String> = reasons.into_iter().flatten().collect();
    let outcome = Outcome {
        events: finished.events,
        calls: finished.calls,
        threads: finished.threads,
        gaps_lost: 0,
        duration_ns,
        bytes_on_disk: folder_bytes(&dir),
        recording: dir,
        armed: finished.armed,
        skipped: 0,
        exit: exit(&summary),
        death: finished.death,
        incomplete: (!reasons.is_empty()).then(|| reasons.join("; ")),
        is_left: false,
        is_counted: is_finished,
    };
    Ok(FullOutcome {
        outcome,
        instructions: summary.instructions,
    })
}

/// What can be done about a disk that was full.
const MORE_ROOM: &str =
    "free some space, record elsewhere with -o, or only what matters with --full=FUNCTION";

/// Why the events are not there yet.
fn unfinished(error: &store::Error) -> String {
    format!(
        "its calls and events could not be written ({error}); free some space: the next command that opens it writes them"
    )
}

/// Keeps some room on the disk, in the folder of the instructions: for the end of their log, and for the events.
fn kept_room(folder: &Path) -> Result<(Option<Spare>, Option<Spare>)> {
    let made = fs::DirBuilder::new().mode(0o700).create(folder);
    made.map_err(Error::system("create the folder of the instructions"))?;
    let keep = |name: &str, bytes| {
        let spare = Spare::keep(&folder.join(name), bytes);
        spare.map_err(Error::system("keep room for the end of the recording"))
    };
    let free = free_bytes(folder).unwrap_or(0);
    let of_log = keep(SPARE_OF_LOG, ROOM_OF_LOG)?;
    let bytes = (free / EVENTS_PART).clamp(*ROOM_OF_EVENTS.start(), *ROOM_OF_EVENTS.end());
    Ok((of_log, keep(SPARE_OF_EVENTS, bytes)?))
}

/// Finds the program as a shell does.
fn program(options: &FullOptions) -> Result<PathBuf> {
    let name = &options.argv[0];
    spawn::refuse_what_only_a_shell_would_run(name)?;
    spawn::find_in_path(name).ok_or_else(|| Error::Start {
        program: name.to_string_lossy().into_owned(),
        source: match Path::new(name).exists() {
            true => io::ErrorKind::PermissionDenied.into(),
            false => io::ErrorKind::NotFound.into(),
        },
    })
}

/// Runs the program and records it. Signals that would end us meanwhile are the program's.
fn run(
    program: &Path,
    options: &FullOptions,
    folder: &Path,
    spare: Option<&Spare>,
) -> Result<Summary> {
    let started = Arc::new(AtomicI32::new(0));
    let pid = Arc::clone(&started);
    let how = exact::Options {
        when: parts::when(&options.part)?,
        fixed_addresses: options.surroundings.no_aslr,
        environment: options.surroundings.env.clone(),
        input: options.surroundings.stdin.clone(),
        default_signals: Vec::new(),
        output: None,
        spare: spare.map(|spare| spare.path().to_owned()),
        started: Some(Box::new(move |id| pid.store(id, Release))),
    };
    let record = || exact::record(program, &options.argv, folder, how);
    let recorded = signals::passed_on(&started, record);
    recorded.map_err(|error| match error {
        exact::Error::Nothing { code, signal } => parts::nothing(&options.part, code, signal),
        exact::Error::Start { source, .. } => Error::Start {
            program: options.argv[0].to_string_lossy().into_owned(),
            source,
        },
        error => error.into(),
    })
}

fn exit(summary: &Summary) -> Exit {
    match (summary.code, summary.signal) {
        (_, Some(signal)) => Exit::Signal(signal),
        (Some(code), None) => Exit::Code(code),
        (None, None) => Exit::Detached,
    }
}

fn manifest(options: &FullOptions, cwd: &Path) -> Result<Manifest> {
    Ok(Manifest {
        format_version: FORMAT_VERSION,
        recording_id: new_id()?,
        hindsight_version: env!("CARGO_PKG_VERSION").into(),
        frida_version: None,
        host: this_machine(),
        argv: texts(&options.argv),
        cwd: cwd.to_string_lossy().into_owned(),
        start_unix_ns: start_of(),
        clock: ClockCalibration {
            tsc_hz: 1e9,
            tsc_base: 0,
        },
        settings: Settings {
            keep_log: options.keep_log,
            filters: filters(options),
            captures: vec![EVERY_INSTRUCTION.to_owned()],
            no_aslr: options.surroundings.no_aslr,
            ..Settings::default()
        },
        launch: Some(launch(options, cwd)),
        labels: options.labels.clone(),
        run_of: None,
        lineage: None,
    })
}

/// What it takes to start the program once more.
fn launch(options: &FullOptions, cwd: &Path) -> Launch {
    let bytes = |text: &OsStr| ByteBuf::from(text.as_bytes().to_vec());
    let env = match &options.surroundings.env {
        Some(env) => env.clone(),
        None => std::env::vars_os().collect(),
    };
    let pairs = env
        .iter()
        .map(|(name, value)| ByteBuf::from([name.as_bytes(), b"=", value.as_bytes()].concat()));
    let mut words = parts::words(&options.part);
    for (option, patterns) in [("-f", &options.include), ("-x", &options.exclude)] {
        words.extend(
            patterns
                .iter()
                .flat_map(|pattern| [option.to_owned(), pattern.clone()]),
        );
    }
    words.extend(
        options
            .labels
            .iter()
            .flat_map(|(key, value)| ["--label".to_owned(), format!("{key}={value}")]),
    );
    words.extend(options.keep_log.then(|| "--keep-log".to_owned()));
    words.extend(options.surroundings.no_aslr.then(|| "--no-aslr".to_owned()));
    Launch {
        argv: options.argv.iter().map(|word| bytes(word)).collect(),
        cwd: bytes(cwd.as_os_str()),
        env: pairs.collect(),
        stdin: match &options.surroundings.stdin {
            Some(file) => Stdin::File(bytes(file.as_os_str())),
            None => own_stdin(),
        },
        options: words,
    }
}

/// The patterns as `info` shows them.
fn filters(options: &FullOptions) -> Vec<String> {
    let included = options
        .include
        .iter()
        .map(|pattern| format!("-f {pattern}"));
    let excluded = options
        .exclude
        .iter()
        .map(|pattern| format!("-x {pattern}"));
    included.chain(excluded).collect()
}

fn texts(words: &[OsString]) -> Vec<String> {
    let words = words.iter();
    words
        .map(|word| word.to_string_lossy().into_owned())
        .collect()
}

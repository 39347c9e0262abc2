//! Records every instruction of a program: the recording has few events, and beside them the log from which `exact` runs
//! the program again.
//!
//! When the program has ended it is run once more, to find its calls.
//!
//! The clock of such a recording counts instructions: the time of an event is the number of instructions that all threads
//! had executed before it.

mod calls;
mod ending;
mod modules;
mod parts;
mod signals;
mod story;

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs, io,
    os::unix::{ffi::OsStrExt, fs::DirBuilderExt},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicI32, Ordering::Release},
    },
    time::{Duration, Instant},
};

use exact::{Outline, Summary};
use store::{
    format::{FORMAT_VERSION, INSTRUCTIONS_DIR},
    manifest::{ByteBuf, ClockCalibration, EVERY_INSTRUCTION, Launch, Manifest, Settings, Stdin},
    recording::{Created, OnTaken, OpenRecording},
    seal::{Ending, SealOptions, Sealer},
};

use self::{calls::Writing, story::Story};
use crate::{
    Error, Exit, Observer, Outcome, Result, Surroundings,
    arm::Filter,
    process::spawn,
    session::{default_name, folder_bytes, new_id, own_stdin, start_of, this_machine},
};

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
    let Created { open, mut log } =
        OpenRecording::create(&path, on_taken, manifest(options, &cwd)?)?;
    let dir = open.recording().dir().to_owned();
    observer.created(&dir);
    let folder = dir.join(INSTRUCTIONS_DIR);
    let began = Instant::now();
    let summary = match run(&program, options, &folder) {
        Ok(summary) => summary,
        Err(error) => {
            // Nothing was recorded. If it cannot be removed, `check` says what it is.
            let _ = fs::remove_dir_all(&dir);
            return Err(error);
        }
    };
    let duration_ns = began.elapsed().as_nanos() as u64;
    let story = Story::of(&folder, options, &filter, &cwd)?;
    let Outline { threads, end, .. } = &story.outline;
    let writing = Writing::new(&mut log, &story.functions, story.controls, threads);
    let problem = story.problem.or(writing.calls(&folder, *end)?);
    let seal = SealOptions {
        keep_log: options.keep_log,
        ..SealOptions::default()
    };
    let sealer = Sealer::own(open.recording(), seal)?;
    let closed = log.close()?;
    let sealed = sealer.finish(Ending::Close, |progress| {
        observer.sealing(progress.events, progress.bytes_done, progress.bytes_total);
    })?;
    open.close(closed)?;
    let outcome = Outcome {
        events: sealed.events,
        calls: sealed.parts.iter().map(|part| part.part.calls).sum(),
        threads: threads.len() as u64,
        gaps_lost: 0,
        duration_ns,
        bytes_on_disk: folder_bytes(&dir),
        recording: dir,
        armed: story.functions.definitions.len() as u64,
        skipped: 0,
        exit: exit(&summary),
        death: story.death,
        incomplete: summary.lost.or(problem),
        is_left: false,
    };
    Ok(FullOutcome {
        outcome,
        instructions: summary.instructions,
    })
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
fn run(program: &Path, options: &FullOptions, folder: &Path) -> Result<Summary> {
    let made = fs::DirBuilder::new().mode(0o700).create(folder);
    made.map_err(Error::system("create the folder of the instructions"))?;
    let started = Arc::new(AtomicI32::new(0));
    let pid = Arc::clone(&started);
    let how = exact::Options {
        when: parts::when(&options.part)?,
        fixed_addresses: options.surroundings.no_aslr,
        environment: options.surroundings.env.clone(),
        input: options.surroundings.stdin.clone(),
        default_signals: Vec::new(),
        output: None,
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

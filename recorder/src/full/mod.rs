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
mod image;
mod modules;
mod parts;
mod probing;
mod signals;
mod steps;
mod story;
mod thread;
mod writes;

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicI32, Ordering::Release},
    },
    time::Duration,
};

use exact::Summary;
use store::{
    format::FORMAT_VERSION,
    manifest::{
        ByteBuf, ClockCalibration, EVERY_INSTRUCTION, Launch, Lineage, Manifest, Settings, Stdin,
    },
    recording::{OnTaken, set_process},
};

use self::image::Image;
pub use self::{
    complete::{complete, is_to_complete},
    steps::{Steps, StepsOutcome},
};
use crate::{
    Captures, Error, Exit, Observer, Outcome, Result, Surroundings,
    arm::{Also, Filter},
    clock::monotonic_ns,
    live::FirstProbes,
    process::{
        executable::{find_in_path, refuse_what_only_a_shell_would_run},
        limits,
    },
    session::{
        alone, default_name, logged, new_id, own_stdin, probe_words, refuse_full, start_of,
        this_machine,
    },
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
    /// Functions of libraries whose calls become events, too: [`Captures::memory`] and [`Captures::locks`]. Everything else that
    /// can be captured is known at every instruction.
    pub captures: Captures,
    /// Logpoints, and places whose writes become events. They are answered when the program has ended.
    pub first: FirstProbes,
    /// What to call this run, by key.
    pub labels: BTreeMap<String, String>,
    /// What the program finds.
    pub surroundings: Surroundings,
    /// Whether to keep the log's segments after sealing.
    pub keep_log: bool,
    /// The process that started the recorder, if the program is to end with it.
    pub parent: Option<u32>,
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
    /// Processes that it made, which are not recorded.
    pub children: u64,
    /// The program that it became at its end.
    pub became: Option<PathBuf>,
    /// For each logpoint and logged place, why it has no place in this program, if it has none.
    pub unplaced: Vec<Option<String>>,
    /// The recording of that one.
    pub next: Option<Box<FullOutcome>>,
}

impl FullOutcome {
    /// Returns the recording of the program that the process ended with.
    #[must_use]
    pub fn last(&self) -> &FullOutcome {
        self.next.as_deref().map_or(self, FullOutcome::last)
    }

    /// For each logpoint and logged place, why none of the programs has it, if so. The last one says why.
    fn unplaced_everywhere(&self) -> Vec<Option<String>> {
        let Some(next) = &self.next else {
            return self.unplaced.clone();
        };
        let later = next.unplaced_everywhere();
        let own = self.unplaced.iter().map(Option::is_some);
        own.zip(later)
            .map(|(is_unplaced, later)| later.filter(|_| is_unplaced))
            .collect()
    }
}

/// Records every instruction of a program until it ends. What it becomes by execve(2) gets a recording of its own.
///
/// # Errors
/// If the program cannot be started or recorded, or the recording cannot be written.
pub fn record_full(options: &FullOptions, observer: &dyn Observer) -> Result<FullOutcome> {
    let program = program(options)?;
    refuse_full(&program)?;
    let filter = Filter::new(&options.include, &options.exclude)?;
    let filter = filter.and_also(Also::of(&options.captures));
    let cwd = std::env::current_dir().map_err(Error::system("find the current folder"))?;
    let on_taken = match options.output {
        Some(_) => OnTaken::Refuse,
        None => OnTaken::Number,
    };
    let path = options.output.clone();
    let path = path.unwrap_or_else(|| default_name(&program));
    let first = Image::create((&path, on_taken), (options, None), &filter, &cwd, observer)?;
    let images = run(&program, options, &filter, first, observer)?;
    let mut next: Option<Box<FullOutcome>> = None;
    for (image, summary) in images.into_iter().rev() {
        let mut outcome = image.finish(summary, observer)?;
        outcome.next = next;
        next = Some(Box::new(outcome));
    }
    for pattern in filter.unmatched() {
        observer.warning(&format!("-f '{pattern}' matches no function").into());
    }
    let whole = next.expect("the program that was started is among them");
    for (spec, why) in options.first.specs.iter().zip(whole.unplaced_everywhere()) {
        if let Some(why) = why {
            observer.warning(&format!("nothing is logged for {}: {why}", spec.location).into());
        }
    }
    Ok(*whole)
}

/// Finds the program as a shell does.
fn program(options: &FullOptions) -> Result<PathBuf> {
    let name = &options.argv[0];
    refuse_what_only_a_shell_would_run(name)?;
    find_in_path(name).ok_or_else(|| Error::Start {
        program: name.to_string_lossy().into_owned(),
        source: match Path::new(name).exists() {
            true => io::ErrorKind::PermissionDenied.into(),
            false => io::ErrorKind::NotFound.into(),
        },
    })
}

/// Runs the program and records it, and what it becomes. Signals that would end us meanwhile are the program's.
fn run(
    program: &Path,
    options: &FullOptions,
    filter: &Filter,
    first: Image,
    observer: &dyn Observer,
) -> Result<Vec<(Image, Summary)>> {
    let started = Arc::new(AtomicI32::new(0));
    let pid = Arc::clone(&started);
    let dir = first.dir().to_owned();
    let (when, matched) = parts::when(&options.part)?;
    let how = exact::Options {
        when,
        fixed_addresses: options.surroundings.no_aslr,
        environment: options.surroundings.env.clone(),
        input: options.surroundings.stdin.clone(),
        // Rust's runtime ignores it, and the program would inherit that.
        default_signals: vec![libc::SIGPIPE],
        in_child: Some(limits::put_back_own),
        output: None,
        spare: first.spare(),
        started: Some(Box::new(move |id| {
            pid.store(id, Release);
            if let Some(process) = alone(id) {
                // Without it, the recording only does not say which process it is of.
                let _ = set_process(&dir, process);
            }
        })),
    };
    signals::passed_on((&started, options.parent), || {
        let recorded = exact::record(program, &options.argv, &first.folder(), how);
        let summary = match recorded {
            Ok(summary) => summary,
            Err(error) => {
                first.remove();
                return Err(why_not(options, &matched, error));
            }
        };
        let mut images = vec![(first.ended(), summary)];
        while let Some((last, summary)) = images.last_mut()
            && let Some(next) = summary.next.take()
        {
            last.became = Some(next.program.clone());
            let begun = refuse_full(&next.program)
                .and_then(|()| last.next(&next, options, filter, observer));
            match begun {
                Ok(image) => {
                    let summary = next.record(&image.folder(), image.spare())?;
                    images.push((image.ended(), summary));
                }
                Err(error) => {
                    last.problem = Some(format!(
                        "{}, which it became, is not recorded: cannot {}",
                        next.program.display(),
                        error.one_line()
                    ));
                    (summary.code, summary.signal) = next.release();
                }
            }
        }
        Ok(images)
    })
}

fn why_not(options: &FullOptions, matched: &parts::Matched, error: exact::Error) -> Error {
    match error {
        exact::Error::Nothing { code, signal } => {
            parts::nothing(&options.part, matched, code, signal)
        }
        exact::Error::Start { source, .. } => Error::Start {
            program: options.argv[0].to_string_lossy().into_owned(),
            source,
        },
        error => error.into(),
    }
}

fn exit(summary: &Summary) -> Exit {
    match (summary.code, summary.signal) {
        (_, Some(signal)) => Exit::Signal(signal),
        (Some(code), None) => Exit::Code(code),
        (None, None) => Exit::Detached,
    }
}

fn manifest(options: &FullOptions, process: Option<Lineage>, cwd: &Path) -> Result<Manifest> {
    Ok(Manifest {
        format_version: FORMAT_VERSION,
        recording_id: new_id()?,
        hindsight_version: env!("CARGO_PKG_VERSION").into(),
        frida_version: None,
        host: this_machine(),
        argv: texts(&options.argv),
        cwd: cwd.to_string_lossy().into_owned(),
        start_unix_ns: start_of(),
        start_monotonic_ns: Some(monotonic_ns()),
        clock: ClockCalibration {
            tsc_hz: 1e9,
            tsc_base: 0,
        },
        settings: Settings {
            keep_log: options.keep_log,
            filters: filters(options),
            captures: [vec![EVERY_INSTRUCTION.to_owned()], options.captures.names()].concat(),
            no_aslr: options.surroundings.no_aslr,
            log_writes: logged(&options.first),
            ..Settings::default()
        },
        launch: Some(launch(options, cwd)),
        labels: options.labels.clone(),
        run_of: None,
        lineage: process,
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
    let captures = &options.captures;
    words.extend(captures.memory.then(|| "--memory".to_owned()));
    words.extend(captures.locks.then(|| "--locks".to_owned()));
    words.extend(probe_words(&options.first));
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

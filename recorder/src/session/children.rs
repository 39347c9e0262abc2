//! Records a program and all processes that it starts. This process starts the program and collects its status; each
//! program that is executed has a recorder of its own.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use debuginfo::Diagnostic;
use store::{
    manifest::Lineage,
    recording::{OnTaken, Recording, RecordingState},
    set::{self, Fact, Process, ProcessLog},
};

use super::{
    manifest::{default_name, words},
    program::{pass_on_signal, why_failed},
};
use crate::{
    Error, Exit, RecordOptions, Result, Target,
    live::{
        Stdio,
        family::{Recorder, now},
    },
    process::{
        ExitWatch, Parked, limits,
        spawn::{self, Started},
    },
    session::{check_mapped, way_into},
    signals::ChildSignals,
    stop::procfs,
};

/// How often to check whether the recorders are done.
const PAUSE: Duration = Duration::from_millis(5);
/// How long to wait for what is still to be told of processes that have ended. A recorder that was killed tells nothing.
const PATIENCE: Duration = Duration::from_secs(2);

/// A program that was recorded with the processes that it started.
#[derive(Clone, Debug)]
pub struct SetOutcome {
    /// The set's folder.
    pub set: PathBuf,
    /// How the program ended.
    pub exit: Exit,
    /// Its processes, and the programs that they executed.
    pub processes: Vec<Process>,
    /// How long the program ran, in nanoseconds.
    pub duration_ns: u64,
    /// Why facts about its processes are missing, if some are.
    pub incomplete: Option<String>,
}

/// Records the program of `options` and the processes that it starts, each program into a recording of its own.
/// `recorder` is the command that records one of them: it calls [`record_parked`](crate::live::record_parked) with the
/// member that it reads; the options of `record` and the set's folder are appended. `on_taken`: what to do if a set with
/// the requested name exists. Returns once the program has ended and all recordings of ended processes are complete. The
/// recording of running processes continues.
///
/// # Errors
/// If the program cannot be started or recorded. It is then killed.
///
/// # Panics
/// If the target is not a program to start.
pub fn record_children(
    options: &RecordOptions,
    on_taken: OnTaken,
    recorder: &[OsString],
) -> Result<SetOutcome> {
    let Target::Spawn { argv } = &options.target else {
        panic!("a program that is to be started was promised");
    };
    let signals = ChildSignals::watch();
    let recorded = record_set(options, (argv, on_taken), recorder, &signals);
    signals.restore();
    recorded
}

fn record_set(
    options: &RecordOptions,
    (argv, on_taken): (&[OsString], OnTaken),
    recorder: &[OsString],
    signals: &ChildSignals,
) -> Result<SetOutcome> {
    limits::lift_own().map_err(|reason| Error::Unsupported {
        path: PathBuf::from(&argv[0]),
        reason,
    })?;
    let name = options.output.clone();
    let is_numbered = name.is_none() || on_taken == OnTaken::Number;
    let name = name.unwrap_or_else(|| default_name(Path::new(&argv[0])));
    let log = Arc::new(ProcessLog::create(&name, is_numbered)?);
    let mut command = recorder.to_vec();
    command.extend(words(options, None).into_iter().map(OsString::from));
    command.extend(["-o".into(), log.dir().as_os_str().to_owned()]);
    let begun = Instant::now();
    let started = start(options, argv, signals, &log, command);
    if started.is_err() {
        // It has no recording, and its name is free again.
        let _ = std::fs::remove_dir_all(log.dir());
    }
    let watch = started?;
    let exit = watch.wait_for_end();
    let duration_ns = begun.elapsed().as_nanos() as u64;
    // A recorder tells the end before the kernel reports it to us. There may be none any more.
    if !is_end_told(log.dir(), watch.pid()) {
        tell_end(&log, watch.pid(), exit);
    }
    // Whatever happened to the set, the program's own end is known.
    let (processes, incomplete) = match when_settled(log.dir()) {
        Ok(processes) => (
            with_end(processes, watch.pid(), exit),
            set::why_incomplete(log.dir()),
        ),
        Err(error) => (Vec::new(), Some(error.one_line())),
    };
    Ok(SetOutcome {
        set: log.dir().to_path_buf(),
        exit,
        processes,
        duration_ns,
        incomplete,
    })
}

/// Starts the program and its recorder, unless it has ended before its first instruction.
fn start(
    options: &RecordOptions,
    argv: &[OsString],
    signals: &ChildSignals,
    log: &Arc<ProcessLog>,
    command: Vec<OsString>,
) -> Result<ExitWatch> {
    let check = |exe: &Path| way_into(exe).map(drop);
    let surroundings = (&Stdio::Inherit, &options.surroundings);
    let (started, _) = spawn::start(argv, signals, surroundings, check, check_mapped)?;
    let watch = |pid| ExitWatch::new(pid, true).map_err(Error::system("watch the program"));
    let parked = match started {
        Started::Ended(pid) => {
            tell_begin(log, pid, argv)?;
            let why = "it ended before its first instruction".to_owned();
            log.add(&Fact::Unrecorded { pid, why })?;
            return watch(pid);
        }
        Started::Parked(parked) => parked,
    };
    let pid = parked.pid;
    let watch = watch(pid).inspect_err(|_| spawn::kill(pid))?;
    // It may have arrived before the program existed.
    pass_on_signal(&watch, true);
    let handed = tell_begin(log, pid, argv).and_then(|()| hand_over(log, parked, command));
    match handed {
        Ok(()) => Ok(watch),
        Err(error) => {
            let program = argv[0].to_string_lossy().into_owned();
            let error = why_failed(program, &watch, true, error);
            spawn::kill(pid);
            Err(error)
        }
    }
}

fn hand_over(log: &Arc<ProcessLog>, parked: Parked, command: Vec<OsString>) -> Result<()> {
    let path = parked.exe.clone();
    let lineage = Lineage {
        pid: parked.pid,
        parent_pid: std::process::id() as i32,
        parent_run: None,
    };
    let recorder = Recorder {
        log: Arc::clone(log),
        command,
        parked,
        lineage,
        is_copy: false,
    };
    let started = recorder.start().map_err(|why| Error::Unsupported {
        path,
        reason: Diagnostic::new(why),
    });
    started.map(drop)
}

fn tell_begin(log: &ProcessLog, pid: i32, argv: &[OsString]) -> Result<()> {
    let words = argv.iter().map(|word| word.to_string_lossy().into_owned());
    let argv: Vec<String> = words.collect();
    log.add(&Fact::Begin {
        pid,
        parent: std::process::id() as i32,
        unix_ns: now(),
        argv: argv.clone(),
    })?;
    let unix_ns = now();
    Ok(log.add(&Fact::Image { pid, unix_ns, argv })?)
}

/// The exit code, and the signal.
fn ending(exit: Exit) -> (Option<i32>, Option<i32>) {
    match exit {
        Exit::Code(code) => (Some(code), None),
        Exit::Signal(signal) => (None, Some(signal)),
        Exit::Detached => (None, None),
    }
}

/// Adds the program's own end, if the disk did not take it.
fn with_end(mut processes: Vec<Process>, pid: i32, exit: Exit) -> Vec<Process> {
    let mut rows = processes.iter_mut();
    if let Some(last) = rows.rfind(|process| process.pid == pid)
        && last.end_unix_ns.is_none()
    {
        last.end_unix_ns = Some(now());
        (last.exit_code, last.exit_signal) = ending(exit);
    }
    processes
}

fn tell_end(log: &ProcessLog, pid: i32, exit: Exit) {
    let (code, signal) = ending(exit);
    // The program has ended normally even if the disk fails.
    let _ = log.add(&Fact::End {
        pid,
        unix_ns: now(),
        code,
        signal,
    });
}

/// Returns whether the set knows how a process has ended.
fn is_end_told(set: &Path, pid: i32) -> bool {
    let processes = set::processes(set).unwrap_or_default();
    let last = processes.iter().rev().find(|process| process.pid == pid);
    last.is_some_and(|process| process.end_unix_ns.is_some())
}

/// Returns the processes, once no recorder of one that has ended still writes, or has still to tell whether it is recorded.
fn when_settled(set: &Path) -> Result<Vec<Process>> {
    let until = Instant::now() + PATIENCE;
    loop {
        let processes = set::processes(set)?;
        let is_waiting = Instant::now() < until;
        let is_unsettled =
            |process: &Process| is_unsettled(set, process) || is_waiting && is_untold(process);
        if !processes.iter().any(is_unsettled) {
            return Ok(processes);
        }
        std::thread::sleep(PAUSE);
    }
}

/// Returns whether it is still to be told why the program of a process that has ended is not recorded.
fn is_untold(process: &Process) -> bool {
    let is_begun = process.image_unix_ns.is_some() && !process.became_another;
    let is_told = process.recording.is_some() || process.is_pruned || !process.notes.is_empty();
    let has_ended = || {
        process.end_unix_ns.is_some() || procfs::is_dead(procfs::state(process.pid, process.pid))
    };
    is_begun && !is_told && has_ended()
}

fn is_unsettled(set: &Path, process: &Process) -> bool {
    let is_live = |name: &String| {
        let recording = Recording::open(&set.join(name));
        recording.is_ok_and(|recording| recording.state() == RecordingState::Live)
    };
    process.end_unix_ns.is_some() && process.recording.as_ref().is_some_and(is_live)
}

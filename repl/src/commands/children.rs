//! `record --children`: a program and all processes that it starts, each program in a recording of its own; and the
//! recorder of one of them.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use debuginfo::Diagnostic;
use recorder::live;
use recorder::{Exit, Member, Observer, RecordOptions, SetOutcome, Target};
use serde_json::json;
use server::inspect::signal_name;
use server::quantity::{count, duration, grouped};
use store::recording::OnTaken;
use store::set::{Fact, Process, ProcessLog};

use crate::commands::processes;
use crate::commands::unrecorded::by_reason;
use crate::error::Error;
use crate::exit;
use crate::json;
use crate::recording::size_on_disk;
use crate::render::{Paint, Terminal, bytes, escaped};

/// Records a program and the processes that it starts. Returns the program's own exit code, and the set's folder.
///
/// # Errors
/// When the program could not be recorded.
pub fn record(
    options: &RecordOptions,
    with_copies: bool,
    as_json: bool,
) -> Result<(u8, PathBuf), Error> {
    let outcome = record_set(options, with_copies, OnTaken::Refuse)?;
    if as_json {
        eprintln!("{}", json::answer(summary_json(&outcome)));
    } else {
        let named = options.output.as_ref().and_then(|output| output.parent());
        let beside = named.unwrap_or(Path::new(""));
        tell(&outcome, beside);
        if let Exit::Signal(signal) = outcome.exit {
            eprintln!("hindsight: {} ended the program", signal_name(signal));
        }
    }
    Ok((exit::of_program(outcome.exit), outcome.set))
}

/// Records a program and the processes that it starts; `with_copies`: also those that execute no program.
///
/// # Errors
/// When the program could not be recorded.
pub fn record_set(
    options: &RecordOptions,
    with_copies: bool,
    on_taken: OnTaken,
) -> Result<SetOutcome, Error> {
    let words = ["record", "--parked", "--copies"].map(OsString::from);
    let words = words.into_iter().take(if with_copies { 3 } else { 2 });
    let recorder = own_command(words)?;
    let outcome = recorder::record_children(options, on_taken, &recorder);
    let outcome = outcome.map_err(|source| Error::Record { source })?;
    // Its recordings may be removed: the set is a run all the same.
    if let Err(error) = store::catalog::tell(&outcome.set) {
        tracing::debug!(%error, "the catalog of runs does not know the set");
    }
    Ok(outcome)
}

/// This program, with these arguments.
fn own_command(args: impl IntoIterator<Item = OsString>) -> Result<Vec<OsString>, Error> {
    let exe = std::env::current_exe().map_err(|source| Error::Io {
        action: "find hindsight's own file".to_owned(),
        source,
    })?;
    Ok(std::iter::once(exe.into()).chain(args).collect())
}

/// Records one process of a set, which standard input describes. Another recorder starts this, not the user, and reads
/// the answer.
///
/// # Errors When standard input is empty. What the recorder reports goes to the one that started it.
pub fn record_one(mut options: RecordOptions, records_copies: bool) -> Result<u8, Error> {
    let mut told = String::new();
    let read = io::stdin().read_to_string(&mut told);
    let member = read.and_then(|_| Ok(serde_json::from_str::<Member>(&told)?));
    let member = member.map_err(|source| Error::Io {
        action: "read which process is to be recorded".to_owned(),
        source,
    })?;
    let member = Arc::new(Member {
        set: options.output.take().unwrap_or_default(),
        recorder: own_command(std::env::args_os().skip(1))?,
        records_copies,
        ..member
    });
    let warnings = Warnings {
        pid: member.parked.pid,
        recording: OnceLock::new(),
        log: ProcessLog::open(&member.set).map_err(|source| Error::Store { source })?,
    };
    options.target = Target::Parked(Arc::clone(&member));
    let recorded = live::record_parked(options, &member, &warnings, |recording| {
        answer(live::RECORDED, &recording.to_string_lossy());
    });
    match recorded {
        Ok(_) => Ok(exit::DONE),
        Err(error) => {
            // It is not an answer if the program was already recorded.
            answer(live::REFUSED, &live::why_refused(&error));
            Ok(exit::FAILED)
        }
    }
}

fn answer(word: &str, text: &str) {
    let line = format!("{word}{}\n", text.replace('\n', " "));
    // The requester may be gone.
    let _ = io::stdout()
        .write_all(line.as_bytes())
        .and_then(|()| io::stdout().flush());
}

/// Leaves warnings in the set, because no user reads what this process prints.
struct Warnings {
    pid: i32,
    /// The recording's folder in the set, once it exists.
    recording: OnceLock<String>,
    log: ProcessLog,
}

impl Observer for Warnings {
    fn created(&self, recording: &Path) {
        let name = recording.file_name().unwrap_or_default();
        let _ = self.recording.set(name.to_string_lossy().into_owned());
        if let Err(error) = store::catalog::tell(recording) {
            tracing::debug!(%error, "the catalog of runs does not know the recording");
        }
    }

    fn warning(&self, warning: &Diagnostic) {
        let _ = self.log.add(&Fact::Warning {
            pid: self.pid,
            text: warning.one_line(),
            recording: self.recording.get().cloned(),
        });
    }
}

/// Says what was recorded, and what of that is not known.
pub fn tell(outcome: &SetOutcome, beside: &Path) {
    if !outcome.processes.is_empty() {
        eprintln!("hindsight: {}", summary(outcome, beside));
    }
    if let Some(why) = &outcome.incomplete {
        warn(why);
    }
}

/// Warns of something that does not change how the program ended.
pub fn warn(text: &str) {
    let colour = Terminal::detect().stderr_colour;
    let word = colour.paint(Paint::Warning, "warning:");
    eprintln!("hindsight: {word} {}", escaped(text));
}

/// One line, which names the set's folder below `beside`: `make.children: 37 processes, 35 recordings, 2.4 s, 12 MB; 2 programs not
/// recorded; ...`.
fn summary(outcome: &SetOutcome, beside: &Path) -> String {
    let name = beside.join(outcome.set.file_name().unwrap_or_default());
    let name = escaped(&name.to_string_lossy()).into_owned();
    let counts = Counts::of(outcome);
    let mut line = format!(
        "{name}: {}, {}, {}, {}",
        processes(counts.processes),
        count(counts.recordings, "recording"),
        duration(outcome.duration_ns),
        bytes(size_on_disk(&outcome.set)),
    );
    if counts.unrecorded > 0 {
        line += &format!("; {} not recorded", count(counts.unrecorded, "program"));
        line += &why_unrecorded(outcome);
    }
    if counts.copies > 0 {
        let copies = match counts.copies {
            1 => "1 copy of its parent, made by fork, is not recorded".to_owned(),
            copies => format!("{copies} copies of their parents, made by fork, are not recorded"),
        };
        line += &format!("; {copies}");
    }
    if counts.running > 0 {
        line += &format!("; {} still running", counts.running);
    }
    line + &format!(
        "; list them: hindsight processes {}",
        store::shell::word(&name)
    )
}

/// Why programs are not recorded: `: it is a 32-bit ELF file`, or of several reasons the most frequent, with its number: ` (2 of them: ...)`. Empty if no
/// reason is known.
fn why_unrecorded(outcome: &SetOutcome) -> String {
    let programs = outcome.processes.iter().filter(|row| is_unrecorded(row));
    let all = programs.clone().count();
    let reasons = by_reason(
        programs
            .filter_map(|row| row.notes.last())
            .map(String::as_str),
    );
    match reasons.first() {
        None => String::new(),
        Some((reason, number)) if *number == all as u64 => format!(": {}", escaped(reason)),
        Some((reason, number)) => {
            format!(" ({} of them: {})", grouped(*number), escaped(reason))
        }
    }
}

/// Returns whether a process executed a program that has no recording. That of a program that has just begun may be about to begin,
/// too.
fn is_unrecorded(process: &Process) -> bool {
    let may_begin = process.notes.is_empty() && processes::is_running(process);
    is_without(process) && process.image_unix_ns.is_some() && !may_begin
}

/// Returns whether a process has never had a recording.
fn is_without(process: &Process) -> bool {
    process.recording.is_none() && !process.is_pruned
}

fn processes(number: u64) -> String {
    match number {
        1 => "1 process".to_owned(),
        number => format!("{} processes", grouped(number)),
    }
}

struct Counts {
    processes: u64,
    recordings: u64,
    /// Programs that are not recorded.
    unrecorded: u64,
    /// Processes that executed no program.
    copies: u64,
    running: u64,
}

impl Counts {
    fn of(outcome: &SetOutcome) -> Counts {
        let count = |what: &dyn Fn(&Process) -> bool| {
            outcome.processes.iter().filter(|row| what(row)).count() as u64
        };
        Counts {
            processes: store::set::number(&outcome.processes) as u64,
            recordings: count(&|row| row.recording.is_some()),
            unrecorded: count(&is_unrecorded),
            copies: count(&|row| is_without(row) && row.image_unix_ns.is_none()),
            running: count(&processes::is_running),
        }
    }
}

/// Returns what is told of a set when it is done.
pub fn summary_json(outcome: &SetOutcome) -> serde_json::Value {
    let (code, signal) = match outcome.exit {
        Exit::Code(code) => (Some(code), None),
        Exit::Signal(signal) => (None, Some(signal)),
        Exit::Detached => (None, None),
    };
    json!({
        "set": json::path(&outcome.set),
        "duration_ns": outcome.duration_ns,
        "bytes_on_disk": size_on_disk(&outcome.set),
        "exit_code": code,
        "exit_signal": signal,
        "processes": processes::as_json(&outcome.processes),
        "incomplete": outcome.incomplete,
    })
}

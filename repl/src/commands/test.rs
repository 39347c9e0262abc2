//! `hindsight test`: records a test command and all processes that it starts, and keeps the recordings of those that
//! failed.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use recorder::{Captures, Exit, RecordOptions, SetOutcome, Surroundings, Target};
use store::format::MAX_LABEL_LEN;
use store::labels::{Changes, change};
use store::recording::{OnTaken, Recording};
use store::set::{Fact, Process, ProcessLog};

use crate::commands::captured::Captured;
use crate::commands::keeping::Keeping;
use crate::commands::{children, guard, processes, target};
use crate::error::Error;
use crate::exit;
use crate::json::answer;
use crate::recording::refuse_within;
use crate::render::escaped;

const EXAMPLES: &str = "\
Examples:
  hindsight test --record-to runs -- cargo test
  hindsight test --record-to runs -x 'std::*' -- ctest -j2
  hindsight test --record-to runs --keep all -- make check
  hindsight processes runs/make               which process ended how

Exits with the command's own status.";

/// Most failed processes that are named.
const MOST_NAMED: usize = 20;

/// Run a test command and keep the recordings of failed processes
///
/// Records every program that the command starts, as record --children does, into a folder below DIR with the name of the
/// command. Then removes the recordings of processes that ended with 0. Forked processes that execute no program, such as
/// workers of a test runner, are recorded only with --copies.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The folder for the recordings; it is created if there is none
    #[arg(long, value_name = "DIR")]
    record_to: PathBuf,
    /// Which recordings stay: those of processes that failed, or did not end; all; or none
    #[arg(long, value_name = "WHICH", default_value = "failed")]
    keep: Keep,
    /// Also record forked copies, from the fork on; each fork takes longer
    #[arg(long)]
    copies: bool,
    /// Record only functions that match: a name in the program (with * and ?), a whole name in any library, LIBRARY:NAME
    /// (libc.so.6:*printf), file:GLOB or module:GLOB; may be repeated
    #[arg(short = 'f', long = "function", value_name = "PATTERN")]
    include: Vec<String>,
    /// Do not record functions that match; overrides --function; may be repeated
    #[arg(short = 'x', long, value_name = "PATTERN")]
    exclude: Vec<String>,
    #[command(flatten)]
    keeping: Keeping,
    #[command(flatten)]
    captured: Captured,
    /// Print the summary as JSON, on standard error
    #[arg(long)]
    json: bool,
    /// The test command and its arguments
    #[arg(value_name = "COMMAND", trailing_var_arg = true, required = true)]
    command: Vec<OsString>,
}

/// Which recordings stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Keep {
    /// All
    All,
    /// Those of processes that did not end with 0
    Failed,
    /// None: only the list of processes
    None,
}

impl Keep {
    fn keeps(self, process: &Process) -> bool {
        match self {
            Self::All => true,
            Self::Failed => !has_passed(process),
            // Recordings of running processes are still being written.
            Self::None => process.end_unix_ns.is_none(),
        }
    }
}

/// Runs the command and returns the exit code: the command's own.
///
/// # Errors
/// When nothing could be recorded.
pub fn run(args: Args) -> Result<u8, Error> {
    let program = args.command[0].clone();
    target::check_program(&program)?;
    let dir = args.record_to.clone();
    refuse_within(&dir)?;
    std::fs::create_dir_all(&dir).map_err(|source| Error::Io {
        action: format!("make the folder {}", dir.display()),
        source,
    })?;
    let name = Path::new(&program).file_name().unwrap_or(&program);
    let output = dir.join(name);
    let keep = args.keep;
    let command = args
        .command
        .join(" ".as_ref())
        .to_string_lossy()
        .replace(char::is_control, " ");
    let (as_json, with_copies) = (args.json, args.copies);
    let options = options(args, output);
    let mut outcome = children::record_set(&options, with_copies, OnTaken::Number)?;
    if !as_json {
        // It tells what was recorded, and the next line what is left of that.
        children::tell(&outcome, &dir);
    }
    // Whatever became of the recordings, the command's own status counts.
    if let Err(error) = finish(&mut outcome, keep, &command) {
        match as_json {
            true => outcome.incomplete = outcome.incomplete.or(Some(error.to_string())),
            false => children::warn(&error.to_string()),
        }
    }
    let pruned = outcome.processes.iter().filter(|row| row.is_pruned).count() as u64;
    if as_json {
        let mut facts = children::summary_json(&outcome);
        facts["removed"] = pruned.into();
        eprintln!("{}", answer(facts));
        return Ok(exit::of_program(outcome.exit));
    }
    if pruned > 0 {
        let of = match keep {
            Keep::None => "",
            Keep::All | Keep::Failed => " of what passed",
        };
        eprintln!(
            "hindsight: removed {}{of}",
            server::quantity::count(pruned, "recording")
        );
    }
    for line in failures(&outcome, keep) {
        eprintln!("hindsight: {line}");
    }
    Ok(exit::of_program(outcome.exit))
}

fn options(args: Args, output: PathBuf) -> RecordOptions {
    RecordOptions {
        output: Some(output),
        include: args.include,
        exclude: args.exclude,
        on_full: args.keeping.on_full.into(),
        snapshots: args.keeping.snapshot,
        keep_log: args.keeping.keep_log,
        max_size: None,
        surroundings: Surroundings::default(),
        captures: Captures::from(args.captured),
        labels: BTreeMap::new(),
        guardian: guard::command(),
        target: Target::Spawn { argv: args.command },
    }
}

/// Whether a process ended with 0. One that executed another program is judged by that.
fn has_passed(process: &Process) -> bool {
    process.became_another || process.exit_code == Some(0)
}

/// Removes recordings and labels those that stay. Of a set whose list is gone nothing is known that could be done.
fn finish(outcome: &mut SetOutcome, keep: Keep, command: &str) -> Result<(), Error> {
    if outcome.processes.is_empty() {
        return Ok(());
    }
    let pruned = prune(outcome, keep);
    label(outcome, keep, command).and(pruned)
}

/// Removes recordings.
fn prune(outcome: &mut SetOutcome, keep: Keep) -> Result<(), Error> {
    let failed = |source| Error::Store { source };
    let log = ProcessLog::open(&outcome.set).map_err(failed)?;
    for process in &mut outcome.processes {
        if process.recording.is_some() && !keep.keeps(process) {
            log.prune(process).map_err(failed)?;
            process.recording = None;
            process.is_pruned = true;
        }
    }
    Ok(())
}

/// Gives the set, and each recording that stays, the labels `test`, the command, and `result`.
fn label(outcome: &SetOutcome, keep: Keep, command: &str) -> Result<(), Error> {
    let failed = |source| Error::Store { source };
    let kept = outcome
        .processes
        .iter()
        .filter(|process| keep.keeps(process));
    // Labels have a limit; a command is recognized by its beginning.
    let command = &command[..command.floor_char_boundary(MAX_LABEL_LEN)];
    let labels = |result: &str| -> Changes {
        let wanted = [("test", command), ("result", result)];
        wanted
            .map(|(key, value)| (key.to_owned(), Some(value.to_owned())))
            .into()
    };
    let result = match outcome.exit {
        Exit::Code(0) => "passed",
        _ => "failed",
    };
    let labels_of_set = Fact::Labels {
        labels: labels(result),
    };
    let log = ProcessLog::open(&outcome.set).map_err(failed)?;
    log.add(&labels_of_set).map_err(failed)?;
    for (process, name) in kept.filter_map(|process| Some((process, process.recording.as_ref()?))) {
        let result = match (process.end_unix_ns, has_passed(process)) {
            (None, _) if processes::is_running(process) => "running",
            // Its recorder was killed.
            (None, _) => "not seen",
            (_, true) => "passed",
            (_, false) => "failed",
        };
        let recording = Recording::open_exact(&outcome.set.join(name)).map_err(failed)?;
        change(&recording, &labels(result)).map_err(failed)?;
    }
    Ok(())
}

/// A line for each program that failed, and each recorded copy of one: `./parse_test a ended with 1: runs/make.children/parse_test.hindsight`.
fn failures(outcome: &SetOutcome, keep: Keep) -> Vec<String> {
    let is_named = |process: &Process| {
        process.image_unix_ns.is_some() || process.recording.is_some() || process.is_pruned
    };
    let failed = outcome.processes.iter().filter(|process| {
        process.end_unix_ns.is_some() && is_named(process) && !has_passed(process)
    });
    let failed: Vec<&Process> = failed.collect();
    let named = failed.iter().take(MOST_NAMED).map(|process| {
        let recording = process.recording.as_ref().filter(|_| keep != Keep::None);
        let place = recording.map_or_else(String::new, |name| {
            format!(": {}", outcome.set.join(name).display())
        });
        let line = processes::program(process);
        format!(
            "{} ended with {}{}",
            escaped(&line),
            processes::exit_of(process),
            escaped(&place)
        )
    });
    let mut lines: Vec<String> = named.collect();
    if failed.len() > MOST_NAMED {
        lines.push(format!("and {} more", failed.len() - MOST_NAMED));
    }
    lines
}

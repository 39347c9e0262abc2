//! `hindsight report`: what was slow, by function, by caller, as a tree of calls, and as files for other programs; also
//! memory and locks.

mod below;
mod entries;
mod locks;
mod memory;
mod text;
mod told;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use query::report::{FunctionTime, report};
use query::{Report, Session};
use serde_json::json;
use store::Recording;

use crate::ask::open_session;
use crate::error::Error;
use crate::exit;
use crate::json::answer;
use crate::output::{self, to_stdout};
use crate::progress::Progress;
use crate::recording::to_read;
use crate::render::Terminal;

const EXAMPLES: &str = "\
Examples:
  hindsight report app                      the functions that took longest
  hindsight report app parse                who called parse, and what it called
  hindsight report app --tree --depth 6     where in the tree of calls the time was spent
  hindsight report app --tree --call 1208   the calls below the one that begins at event 1208
  hindsight report app --threads            thread by thread
  hindsight report app --memory             what was not freed, and the most there was
  hindsight report app --locks              who waited for which lock, and who held it
  hindsight report app --flamegraph app.svg
  hindsight report app --speedscope app.json   for speedscope.app
  hindsight report app --folded | flamegraph.pl > app.svg
  hindsight sql app \"select * from report order by inclusive_ns desc\"

Times are the program's: what recording a call cost is measured in each recording and taken out, as well as \
the time in which a thread was stopped by a live session, or waited for functions to be armed. --raw shows \
what was measured.";

/// Show where the time went: functions, callers, call tree, flame graph
///
/// A function has two times: that of its calls without the recorded calls that they made (self), and with them (inclusive;
/// calls inside each other count once). Waiting is time too.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The recording, with or without .hindsight
    #[arg(value_name = "RECORDING")]
    recording: PathBuf,
    /// Show the callers and callees of this function instead
    #[arg(value_name = "FUNCTION", conflicts_with_all = ["tree", "threads", "folded", "flamegraph", "speedscope"])]
    function: Option<String>,
    /// Show the tree of calls, folded by function
    #[arg(long, conflicts_with_all = ["folded", "flamegraph", "speedscope"])]
    tree: bool,
    /// With --tree: show the single calls below the one that begins at this event, with their arguments (the column
    /// start_seq of the table calls)
    #[arg(
        long,
        value_name = "SEQ",
        requires = "tree",
        conflicts_with = "threads"
    )]
    call: Option<u64>,
    /// Show each thread on its own
    #[arg(long)]
    threads: bool,
    /// Print folded stacks, for flamegraph.pl and others
    #[arg(long, conflicts_with_all = ["json", "flamegraph", "speedscope"])]
    folded: bool,
    /// Write a flame graph as SVG
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    flamegraph: Option<PathBuf>,
    /// Write a profile for speedscope.app
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    speedscope: Option<PathBuf>,
    /// Show memory that was not freed, by call site, and the heap's peak (record --memory)
    #[arg(long, conflicts_with_all = ["function", "tree", "threads", "folded", "flamegraph", "speedscope", "raw"])]
    memory: bool,
    /// Show locks: who waited for whom at the end, and how long threads waited for each lock and held it (record --locks)
    #[arg(long, conflicts_with_all = ["memory", "function", "tree", "threads", "folded", "flamegraph", "speedscope", "raw"])]
    locks: bool,
    /// Show times as measured, including the cost of recording
    #[arg(long)]
    raw: bool,
    /// Show at most this many functions or lines of the tree, 0 for all [default: 25, with --json all]
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// With --tree: show this many levels of calls
    #[arg(long, value_name = "N", default_value_t = 12, requires = "tree")]
    depth: usize,
    /// Print everything as JSON
    #[arg(long)]
    json: bool,
}

/// Functions that are shown unless the user says how many.
const FUNCTIONS: usize = 25;

impl Args {
    /// Returns how many functions or lines are shown at most.
    fn most(&self) -> usize {
        match self.limit {
            Some(0) => usize::MAX,
            Some(limit) => limit,
            None if self.json => usize::MAX,
            None => FUNCTIONS,
        }
    }
}

/// Runs the command and returns the exit code.
///
/// # Errors
/// When there is no such recording or function, or a file cannot be written.
pub fn run(args: &Args, terminal: &Terminal) -> Result<u8, Error> {
    let path = to_read(&args.recording)?;
    if args.memory {
        return of_memory(&path, args, terminal);
    }
    if args.locks {
        return of_locks(&path, args, terminal);
    }
    if let Some(seq) = args.call {
        return of_call(&path, seq, args, terminal);
    }
    let found = read(&path, terminal)?;
    if found.only_entries {
        return entries::run(&found, args, terminal);
    }
    let name = args.recording.to_string_lossy();
    let mut wrote = false;
    if let Some(file) = &args.flamegraph {
        write_file(file, |out| {
            found.write_flame_graph(out, &name, args.raw, args.threads)
        })?;
        wrote = true;
    }
    if let Some(file) = &args.speedscope {
        write_file(file, |out| found.write_speedscope(out, &name, args.raw))?;
        wrote = true;
    }
    if wrote {
        return Ok(exit::DONE);
    }
    let chosen = match &args.function {
        Some(wanted) => Some(text::chosen(&found, wanted)?),
        None => None,
    };
    let mut out = output::stdout();
    let written = match chosen {
        _ if args.folded => found.write_folded(&mut out, args.raw, args.threads),
        Some(functions) if args.json => {
            writeln!(out, "{:#}", answer(around_json(&found, &functions)))
        }
        None if args.json => writeln!(out, "{:#}", answer(json_of(&found, args))),
        Some(functions) => text::around(&mut out, &found, &functions, args, terminal)
            .and_then(|()| unit(&mut out, &path)),
        None if args.tree => {
            text::tree(&mut out, &found, args, terminal).and_then(|()| unit(&mut out, &path))
        }
        None => {
            text::functions(&mut out, &found, args, terminal).and_then(|()| unit(&mut out, &path))
        }
    };
    written.and_then(|()| out.flush()).map_err(to_stdout)?;
    Ok(exit::DONE)
}

fn of_memory(path: &Path, args: &Args, terminal: &Terminal) -> Result<u8, Error> {
    let found = with_progress(path, terminal, query::memory::memory)?;
    let mut out = output::stdout();
    let written = match args.json {
        true => writeln!(out, "{:#}", answer(json!(found))),
        false => memory::memory(&mut out, &found, args.most(), terminal)
            .and_then(|()| unit(&mut out, path)),
    };
    written.and_then(|()| out.flush()).map_err(to_stdout)?;
    Ok(exit::DONE)
}

fn of_locks(path: &Path, args: &Args, terminal: &Terminal) -> Result<u8, Error> {
    let found = with_progress(path, terminal, query::locks::locks)?;
    let mut out = output::stdout();
    let written = match args.json {
        true => writeln!(out, "{:#}", answer(json!(found))),
        false => locks::locks(&mut out, &found, args.most(), terminal)
            .and_then(|()| unit(&mut out, path)),
    };
    written.and_then(|()| out.flush()).map_err(to_stdout)?;
    Ok(exit::DONE)
}

fn of_call(path: &Path, seq: u64, args: &Args, terminal: &Terminal) -> Result<u8, Error> {
    let session = open_session(path)?;
    let find = || query::report::below(&session, seq, args.depth, args.most());
    let found = Progress::new(terminal).alive("reading calls", find);
    let found = found.map_err(|source| Error::Query { source })?;
    let found = below::checked(found, seq)?;
    let mut out = output::stdout();
    let written = match args.json {
        true => writeln!(out, "{:#}", answer(json!(found))),
        false => {
            below::tree(&mut out, &found, args.depth, terminal).and_then(|()| unit(&mut out, path))
        }
    };
    written.and_then(|()| out.flush()).map_err(to_stdout)?;
    Ok(exit::DONE)
}

/// Sums up a recording, with a bar if that takes a while.
///
/// # Errors
/// It cannot be read.
pub fn read(path: &Path, terminal: &Terminal) -> Result<Report, Error> {
    with_progress(path, terminal, report)
}

/// What times are in a recording of every instruction.
const INSTRUCTIONS: &str = "times count instructions: 1 us is 1,000 of them";

/// Writes what the times are, unless they are times.
fn unit(out: &mut dyn Write, path: &Path) -> io::Result<()> {
    let recording = Recording::open(path);
    match recording.is_ok_and(|own| own.manifest().settings.has_every_instruction()) {
        true => writeln!(out, "{INSTRUCTIONS}"),
        false => Ok(()),
    }
}

fn with_progress<T>(
    path: &Path,
    terminal: &Terminal,
    read: impl Fn(&Session, &mut dyn FnMut(u64, u64)) -> query::Result<T>,
) -> Result<T, Error> {
    let session = open_session(path)?;
    let progress = Progress::new(terminal);
    let found = read(&session, &mut |done, all| progress.adding_up(done, all));
    progress.finish();
    found.map_err(|source| Error::Query { source })
}

/// Functions that are shown after recording.
const FUNCTIONS_AFTER: usize = 15;

/// Writes the functions that took longest to stderr, right after they were recorded.
///
/// # Errors
/// The recording cannot be read.
pub fn after_recording(path: &Path, terminal: &Terminal) -> Result<(), Error> {
    let found = read(path, terminal)?;
    let args = Args {
        recording: path.to_owned(),
        function: None,
        tree: false,
        call: None,
        threads: false,
        folded: false,
        flamegraph: None,
        speedscope: None,
        memory: false,
        locks: false,
        raw: false,
        limit: Some(FUNCTIONS_AFTER),
        depth: 1,
        json: false,
    };
    let failed = |source| Error::io("write to stderr", source);
    if found.only_entries {
        let mut out = std::io::stderr().lock();
        return entries::functions(&mut out, &found, &args, terminal).map_err(failed);
    }
    text::functions(&mut std::io::stderr().lock(), &found, &args, terminal).map_err(failed)
}

/// Writes a file at once: an interrupted command leaves none. A device or a pipe stays what it is.
fn write_file(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> Result<(), Error> {
    let failed = |source| Error::io(format!("write {}", path.display()), source);
    if path.metadata().is_ok_and(|meta| !meta.is_file()) {
        let written = File::options().write(true).open(path).and_then(|file| {
            let mut out = BufWriter::new(file);
            write(&mut out)?;
            out.flush()
        });
        return written.map_err(failed);
    }
    let mut beside = path.as_os_str().to_owned();
    beside.push(".part");
    let beside = PathBuf::from(beside);
    let written = File::create(&beside).and_then(|file| {
        let mut out = BufWriter::new(file);
        write(&mut out)?;
        out.flush()?;
        std::fs::rename(&beside, path)
    });
    written
        .inspect_err(|_| _ = std::fs::remove_file(&beside))
        .map_err(failed)
}

fn json_of(found: &Report, args: &Args) -> serde_json::Value {
    let limited = |functions: &[FunctionTime]| -> Vec<FunctionTime> {
        functions.iter().take(args.most()).cloned().collect()
    };
    let threads = found.threads.iter().map(|thread| {
        let mut of = json!(thread);
        if args.threads {
            of["functions"] = json!(limited(&found.of_thread(thread.tid)));
        }
        of
    });
    let mut all = json!({
        "cost": found.cost,
        "function_count": found.functions.len(),
        "functions": limited(&found.functions),
        "threads": threads.collect::<Vec<_>>(),
    });
    if args.tree {
        all["tree"] = text::tree_json(found, args);
    }
    all
}

fn around_json(found: &Report, functions: &[&FunctionTime]) -> serde_json::Value {
    let each = functions.iter().map(|function| {
        let callers = found.callers(function.function_id);
        let callees = found.callees(function.function_id);
        json!({
            "function": function,
            "callers": callers.map(|(by, edge)| edge_json(by, edge)).collect::<Vec<_>>(),
            "callees": callees.map(|(of, edge)| edge_json(Some(of), edge)).collect::<Vec<_>>(),
        })
    });
    json!({ "cost": found.cost, "functions": each.collect::<Vec<_>>() })
}

fn edge_json(function: Option<&FunctionTime>, edge: &query::report::EdgeTime) -> serde_json::Value {
    json!({
        "function": function.map(|function| &function.function),
        "function_id": function.map(|function| function.function_id),
        "calls": edge.calls,
        "inclusive_ns": edge.inclusive_ns,
        "raw_inclusive_ns": edge.raw_inclusive_ns,
    })
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::fs::FileTypeExt;

    use super::*;

    #[test]
    fn a_pipe_is_written_to_and_a_file_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, 0o600.into()).unwrap();
        let read = std::thread::spawn({
            let pipe = pipe.clone();
            move || {
                let mut text = String::new();
                File::open(pipe).unwrap().read_to_string(&mut text).unwrap();
                text
            }
        });
        write_file(&pipe, |out| out.write_all(b"drawn")).unwrap();
        assert_eq!(read.join().unwrap(), "drawn");
        assert!(pipe.metadata().unwrap().file_type().is_fifo());
        let file = folder.path().join("file");
        std::fs::write(&file, "old").unwrap();
        write_file(&file, |out| out.write_all(b"new")).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "new");
    }
}

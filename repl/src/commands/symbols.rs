//! `hindsight symbols`: which modules have debug information and where it was found, and fetching what is missing.

mod fetch;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use debuginfo::Module;
use replay::Timeline;
use serde_json::{Value, json};
use server::past::of_replay;
use store::recording::with_suffix;

use self::fetch::{Fetched, Server};
use crate::error::Error;
use crate::exit;
use crate::json::answer;
use crate::output::{self, to_stdout};
use crate::progress::Progress;
use crate::recording::OfCore;
use crate::render::{Align, Column, Layout, Table, Terminal};

const EXAMPLES: &str = "\
Examples:
  hindsight symbols list app            the modules of the recording app
  hindsight symbols list ./app          a program and the libraries that it loads
  export DEBUGINFOD_URLS=https://debuginfod.debian.net
  hindsight symbols fetch app           gets what is missing from there

Debug information is looked for in the module itself, below /usr/lib/debug by build id, by the name in .gnu_debuglink, \
and in the cache of debuginfod's clients: $DEBUGINFOD_CACHE_PATH, or ~/.cache/debuginfod_client. Only fetch asks \
servers, once each; a recording that is opened later finds what was fetched.";

/// Show which modules have debug information; fetch what is missing
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, clap::Subcommand)]
enum Task {
    /// List the modules and where their debug information was found
    List(Of),
    /// Get missing debug information from the servers of DEBUGINFOD_URLS
    Fetch(Of),
}

#[derive(Debug, clap::Args)]
struct Of {
    /// A recording, a core file, or a program
    #[arg(value_name = "RECORDING|FILE")]
    of: PathBuf,
    #[command(flatten)]
    core: OfCore,
    /// Print the modules as JSON
    #[arg(long)]
    json: bool,
}

/// Where a module's debug information is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DebugFile {
    /// In the module.
    Own,
    /// Below `/usr/lib/debug`.
    System,
    /// In the cache of debuginfod's clients.
    Cache,
    /// In another file, next to the module.
    Beside,
    /// There is none.
    Missing,
    /// The module's file cannot be used.
    Unusable,
}

impl DebugFile {
    fn words(self) -> (&'static str, &'static str) {
        match self {
            DebugFile::Own => ("own", "in the module"),
            DebugFile::System => ("system", "/usr/lib/debug"),
            DebugFile::Cache => ("debuginfod", "debuginfod's cache"),
            DebugFile::Beside => ("split", "a file of its own"),
            DebugFile::Missing => ("missing", "none"),
            DebugFile::Unusable => ("unusable", "not known"),
        }
    }
}

/// A module, and what is known about its debug information.
#[derive(Debug)]
struct Known {
    path: PathBuf,
    build_id: Option<String>,
    source: DebugFile,
    /// The file with the debug information, if it is a separate one.
    file: Option<PathBuf>,
    /// The build id of dwz's file that it refers to and that was not found.
    wants: Option<String>,
    note: Option<String>,
}

/// Runs the command and returns the exit code.
///
/// # Errors
/// When there is no such recording or program; with `fetch` also when no server is named.
pub fn run(args: &Args, terminal: &Terminal) -> Result<u8, Error> {
    match &args.task {
        Task::List(of) => {
            let modules = modules(of)?;
            show(&modules, &[], of.json, terminal)?;
            Ok(exit::DONE)
        }
        Task::Fetch(of) => {
            let server = Server::of_environment()?;
            let progress = Progress::new(terminal);
            let mut fetched = Vec::new();
            for known in modules(of)? {
                if let Some(id) = missing(&known) {
                    fetched.push((known.path.clone(), server.fetch(&id, &progress)));
                }
            }
            // A debug file may refer to dwz's, which servers have under its own build id.
            for known in modules(of)? {
                if let Some(id) = &known.wants {
                    fetched.push((known.path.clone(), server.fetch(id, &progress)));
                }
            }
            progress.finish();
            let modules = modules(of)?;
            show(&modules, &fetched, of.json, terminal)?;
            let failed = fetched
                .iter()
                .any(|(_, result)| !matches!(result, Fetched::Stored(..)));
            Ok(if failed { exit::FAILED } else { exit::DONE })
        }
    }
}

/// The build id of a module without debug information, if it has one.
fn missing(known: &Known) -> Option<String> {
    known
        .build_id
        .clone()
        .filter(|_| known.source == DebugFile::Missing)
}

fn modules(of: &Of) -> Result<Vec<Known>, Error> {
    match is_program(&of.of) {
        true => of_program(&of.of),
        false => of_recording(&of.core.locate(&of.of)?),
    }
}

/// A file is a program unless it is a core file, or a recording of its name is next to it and no folder is given.
fn is_program(path: &Path) -> bool {
    const TYPE_OFFSET: usize = 16;
    const CORE: u8 = 4;
    let mut head = [0; TYPE_OFFSET + 2];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut head));
    let is_elf = read.is_ok() && head.starts_with(b"\x7fELF") && head[TYPE_OFFSET] != CORE;
    let has_folder = path.components().count() > 1 || path.starts_with(".");
    let is_bare = !has_folder && !path.to_string_lossy().contains('/');
    is_elf && !(is_bare && with_suffix(path).is_dir())
}

fn of_recording(path: &Path) -> Result<Vec<Known>, Error> {
    let failed = |error| Error::from(server::Error::from(of_replay(&error)));
    let timeline = Timeline::open(path, &store::temp_dir()).map_err(failed)?;
    let mut found = BTreeMap::new();
    for mapped in timeline.modules().all_usable() {
        found.insert(mapped.module.path().to_owned(), known(&mapped.module));
    }
    for absent in timeline.modules().all_absent() {
        found
            .entry(absent.path.clone())
            .or_insert(unusable(absent.path, absent.why));
    }
    Ok(found.into_values().collect())
}

fn of_program(path: &Path) -> Result<Vec<Known>, Error> {
    let program = open(path);
    let module = program.map_err(|why| Error::usage(format!("{}: {why}", path.display()), None))?;
    let mut found = vec![known(&module)];
    let Some(interpreter) = module.interp() else {
        return Ok(found);
    };
    // The dynamic linker lists what it would load, without running any of it.
    let listed = Command::new(interpreter).arg("--list").arg(path).output();
    let text = listed.map(|output| output.stdout).unwrap_or_default();
    for line in String::from_utf8_lossy(&text).lines() {
        let (_, rest) = line.split_once("=> ").unwrap_or(("", line));
        let file = rest.trim().rsplit_once(" (").map_or("", |(file, _)| file);
        if file.starts_with('/') {
            let library = open(Path::new(file));
            found.push(match library {
                Ok(library) => known(&library),
                Err(why) => unusable(PathBuf::from(file), why),
            });
        }
    }
    Ok(found)
}

fn open(path: &Path) -> Result<Module, String> {
    Module::open(path).map_err(|error| error.to_string())
}

fn unusable(path: PathBuf, why: String) -> Known {
    Known {
        path,
        build_id: None,
        source: DebugFile::Unusable,
        file: None,
        wants: None,
        note: Some(why),
    }
}

fn known(module: &Module) -> Known {
    let file = module.debug_path().map(Path::to_owned);
    let is_cached =
        |file: &Path| debuginfo::debuginfod_cache().is_some_and(|dir| file.starts_with(dir));
    let source = match &file {
        _ if !module.has_dwarf() => DebugFile::Missing,
        None => DebugFile::Own,
        Some(file) if is_cached(file) => DebugFile::Cache,
        Some(file) if file.starts_with("/usr/lib/debug") => DebugFile::System,
        Some(_) => DebugFile::Beside,
    };
    let warnings = module.warnings().iter();
    let warnings: Vec<String> = warnings.map(ToString::to_string).collect();
    Known {
        path: module.path().to_owned(),
        build_id: module.build_id().map(str::to_owned),
        source,
        file,
        wants: module.missing_supplement(),
        note: (!warnings.is_empty()).then(|| warnings.join("; ")),
    }
}

fn show(
    modules: &[Known],
    fetched: &[(PathBuf, Fetched)],
    json: bool,
    terminal: &Terminal,
) -> Result<(), Error> {
    let mut out = output::stdout();
    let written = if json {
        let facts = json!({
            "modules": modules.iter().map(as_json).collect::<Vec<_>>(),
            "fetched": fetched.iter().map(|(path, result)| result.as_json(path)).collect::<Vec<_>>(),
        });
        writeln!(out, "{:#}", answer(facts))
    } else {
        let layout = match terminal.stdout {
            true => Layout::Fit(Terminal::size().0),
            false => Layout::Whole,
        };
        let rows = table(modules).flush(&mut out, layout, terminal.stdout_colour);
        rows.and_then(|()| {
            fetched.iter().try_for_each(|(path, result)| {
                writeln!(out, "{}: {}", path.display(), result.words())
            })
        })
    };
    written.and_then(|()| out.flush()).map_err(to_stdout)
}

fn as_json(known: &Known) -> Value {
    json!({
        "path": crate::json::path(&known.path),
        "build_id": known.build_id,
        "debug": known.source.words().0,
        "file": known.file.as_deref().map(crate::json::path),
        "missing_supplement": known.wants,
        "note": known.note,
    })
}

fn table(modules: &[Known]) -> Table {
    let column = |name: &str| Column {
        name: name.to_owned(),
        align: Align::Left,
    };
    let mut table = Table::new(["module", "debug information", "file"].map(column).to_vec());
    for known in modules {
        let file = known.file.as_ref().map(|file| file.display().to_string());
        let id = known.build_id.as_ref().map(|id| format!("build id {id}"));
        let without = match known.source {
            DebugFile::Missing => Some(id.unwrap_or_else(|| "no build id".to_owned())),
            _ => None,
        };
        let last = known.note.clone().or(file).or(without).unwrap_or_default();
        table.push(vec![
            Some(known.path.display().to_string()),
            Some(known.source.words().1.to_owned()),
            Some(last),
        ]);
    }
    table
}

//! `hindsight sql`: runs SQL queries on a recording, once or at a prompt.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufWriter, IsTerminal, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use arrow::error::ArrowError;
use query::runs::find;
use rustix::fs::{AtFlags, CWD};
use server::quantity::count;
use tempfile::NamedTempFile;

use crate::ask::{Asker, Records, View, note_extent, parquet_needs_a_file, show_document, warn};
use crate::error::Error;
use crate::format::Format;
use crate::recording::{OfCore, complete};
use crate::render::{Paint, Terminal, bytes, escaped};
use crate::{exit, prompt, statement};

/// The default limit of rows on a terminal.
const ROWS_ON_TERMINAL: usize = 1_000;

const EXAMPLES: &str = "\
Examples:
  hindsight sql app                             a prompt; Tab completes
  hindsight sql app '\\d'                        the tables
  hindsight sql app \"select * from calls order by dur_ns desc limit 10\"
  hindsight sql app \"select function, count(*) from calls group by function\"
  hindsight sql app \"select * from calls\" -o calls.parquet
  hindsight sql app -f jsonl \"select * from gaps\" | jq .lost
  hindsight sql app < questions.sql             statements from stdin
  hindsight sql 'runs/*' \"select run, count(*) from calls group by run\"

Tables: calls, events, report, functions, modules, threads, output, gaps,
probes, pauses, logpoints, writes, exceptions, syscalls, files,
processes, allocations, locks, instructions, lines, memory_writes,
memory_reads, notes, runs.
Times are nanoseconds since the recording began (ts_ns, dur_ns); seq numbers
every event of the recording in one order.";

/// Query one or more recordings in SQL
///
/// Prints the answer to QUERY, which may be several statements with semicolons between them. Without QUERY, opens a
/// prompt, or runs the statements on stdin if that is not a terminal. You can ask a recording while it is being written.
///
/// With several recordings, a folder of them or a pattern, every table begins with the column run, and functions of a
/// state take the run first: value(run, seq, 'x').
#[derive(Debug, clap::Args)]
#[command(
    after_help = EXAMPLES,
    override_usage = "hindsight sql [OPTIONS] <RECORDING>... [QUERY]"
)]
pub struct Args {
    /// Recordings, with or without .hindsight, folders of them or patterns; then the question, or a command of the
    /// prompt like \d; - reads from stdin
    #[arg(value_name = "RECORDING", required = true, num_args = 1..)]
    words: Vec<OsString>,
    /// The output format [default: by the name of the output file, else table]
    #[arg(short, long, value_name = "FORMAT")]
    format: Option<Format>,
    /// Print one JSON document; its result is the rows of one question
    #[arg(long, conflicts_with_all = ["format", "output"])]
    json: bool,
    /// Write the answer to this new file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Show at most this many rows of a table, 0 for all [default: 1000 on a terminal, else all]
    #[arg(long, value_name = "N")]
    rows: Option<usize>,
    /// Memory for sorts, groups and joins, such as 512MB or 8GB [default: a quarter of the machine's memory]
    #[arg(long, value_name = "SIZE", value_parser = crate::size::parse)]
    memory: Option<usize>,
    /// Show how long each query took
    #[arg(long)]
    timing: bool,
    #[command(flatten)]
    core: OfCore,
}

/// The queries, or where to read them.
enum QuestionInput {
    Prompt,
    Stdin,
    Text(String),
}

/// Runs the command and returns the exit code.
///
/// # Errors
/// When there is no such recording, or the query is wrong or cannot be answered.
pub fn run(args: Args, terminal: &Terminal) -> Result<u8, Error> {
    let view = view(&args, terminal);
    let (recordings, query) = recordings_and_query(&args.words)?;
    let source = match query.as_deref() {
        None if terminal.interactive && args.output.is_none() => QuestionInput::Prompt,
        None if args.output.is_some() && std::io::stdin().is_terminal() => {
            return Err(Error::usage(
                "-o needs a question",
                Some(
                    "write it after the recording: hindsight sql RECORDING QUERY -o FILE"
                        .to_owned(),
                ),
            ));
        }
        None | Some("-") => QuestionInput::Stdin,
        Some(text) => QuestionInput::Text(text.to_owned()),
    };
    if view.format == Format::Parquet && args.output.is_none() {
        return Err(parquet_needs_a_file());
    }
    let interruptible = terminal.stdout || args.output.is_some();
    let mut options = query::Options::default();
    if let Some(memory) = args.memory {
        options.memory_bytes = memory;
    }
    let mut asker = opened(&recordings, &args.core, options, interruptible, terminal)?;
    asker.show_life(terminal);
    warn(&asker, terminal);
    if let Some(note) = asker.extent().as_ref().and_then(note_extent) {
        let word = terminal.stderr_colour.paint(Paint::Warning, "note:");
        eprintln!("hindsight: {word} {}", escaped(&note));
    }
    match (source, &args.output) {
        (QuestionInput::Prompt, _) => prompt::interactive(asker, view),
        (QuestionInput::Stdin, None) if args.json => document(&mut asker, &of_stdin()?),
        (QuestionInput::Text(text), None) if args.json => document(&mut asker, &text),
        (QuestionInput::Stdin, None) => prompt::script(asker, view, std::io::stdin().lock()),
        (QuestionInput::Text(text), None) => {
            questions(&text)?;
            prompt::text(asker, view, &text)
        }
        (QuestionInput::Stdin, Some(file)) => {
            let written = write_file(&mut asker, &of_stdin()?, view.format, file);
            warn(&asker, terminal);
            written
        }
        (QuestionInput::Text(text), Some(file)) => {
            let written = write_file(&mut asker, &text, view.format, file);
            warn(&asker, terminal);
            written
        }
    }
}

/// Splits the words: the last of several is the query, unless it names recordings too.
fn recordings_and_query(words: &[OsString]) -> Result<(Vec<PathBuf>, Option<String>), Error> {
    let paths = |words: &[OsString]| words.iter().map(PathBuf::from).collect::<Vec<_>>();
    let [first, others @ ..] = words else {
        return Err(Error::usage("no recording is named", None));
    };
    let Some((last, between)) = others.split_last() else {
        return Ok((paths(words), None));
    };
    let text = last.to_string_lossy();
    let may_be_path = text != "-" && !text.contains(char::is_whitespace);
    if may_be_path && !find(&paths(std::slice::from_ref(last))).folders.is_empty() {
        return Ok((paths(words), None));
    }
    let mut recordings = vec![PathBuf::from(first)];
    recordings.extend(paths(between));
    match last.to_str() {
        Some(query) => Ok((recordings, Some(query.to_owned()))),
        None => Err(Error::usage("the question is not UTF-8", None)),
    }
}

/// Opens the recordings. One that is given by name is queried directly; several, or those of a folder or a pattern, as
/// runs.
fn opened(
    words: &[PathBuf],
    core: &OfCore,
    options: query::Options,
    interruptible: bool,
    terminal: &Terminal,
) -> Result<Asker, Error> {
    let found = find(words);
    if let [word] = words
        && (found.by_name || found.folders.is_empty())
    {
        return Asker::open_with(&core.locate(word)?, options, interruptible);
    }
    if found.folders.is_empty() {
        return Err(Error::Query {
            source: query::Error::NoRuns,
        });
    }
    if let Some((word, _)) = found.nothing.iter().find(|(word, _)| is_mistake(word)) {
        return Err(Error::usage(
            format!("there is no recording {}", word.display()),
            Some("the question comes last: hindsight sql RECORDING... QUERY".to_owned()),
        ));
    }
    for (path, why) in &found.nothing {
        let word = terminal.stderr_colour.paint(Paint::Warning, "warning:");
        let text = format!("{} is left out: {why}", path.display());
        eprintln!("hindsight: {word} {}", escaped(&text));
    }
    found
        .folders
        .iter()
        .try_for_each(|folder| complete(folder))?;
    Asker::open_many(found.folders, options, interruptible)
}

/// Returns whether a word that means no recording is not even a folder or a pattern. A question may look like a pattern.
fn is_mistake(word: &Path) -> bool {
    let text = word.to_string_lossy();
    let is_pattern = text.contains(['*', '?', '[']) && !text.contains(char::is_whitespace);
    !is_pattern && !word.is_dir()
}

fn view(args: &Args, terminal: &Terminal) -> View {
    let by_name = || args.output.as_deref().and_then(Format::of_file);
    let format = args
        .format
        .or(args.json.then_some(Format::Json))
        .or_else(by_name);
    let rows = match args.rows {
        Some(0) => None,
        Some(rows) => Some(rows),
        None => terminal.stdout.then_some(ROWS_ON_TERMINAL),
    };
    View {
        format: format.unwrap_or(Format::Table),
        rows,
        records: Records::Auto,
        timing: args.timing,
        terminal: terminal.clone(),
    }
}

fn of_stdin() -> Result<String, Error> {
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .map_err(|source| Error::io("read stdin", source))?;
    Ok(text)
}

/// Prints the answer to one question as a response.
fn document(asker: &mut Asker, text: &str) -> Result<u8, Error> {
    let questions = questions(text)?;
    let [sql] = questions.as_slice() else {
        let help = "ask one at a time, or use --format json, which prints an array for each";
        return Err(Error::usage(
            "--json takes one question",
            Some(help.to_owned()),
        ));
    };
    show_document(asker, sql)?;
    Ok(exit::DONE)
}

fn questions(text: &str) -> Result<Vec<&str>, Error> {
    let all: Vec<&str> = statement::statements(text)
        .into_iter()
        .map(|(_, sql)| sql)
        .collect();
    if all.is_empty() {
        let help = "for example: hindsight sql app \"select * from calls limit 10\"";
        return Err(Error::usage("the question is empty", Some(help.to_owned())));
    }
    Ok(all)
}

/// Where an answer is written. A file gets its name when it is complete, because a truncated answer could pass for a
/// complete one.
enum OutputFile {
    /// It vanishes with this process, whatever ends it.
    Unnamed(File),
    /// On file systems that have no such files.
    Hidden(NamedTempFile),
    /// Something that exists and is not a regular file, such as a named pipe.
    Other(File),
}

impl OutputFile {
    /// Prepares to write to `path`. Does not overwrite an existing file, which may be the answer to another query.
    fn of(path: &Path) -> Result<OutputFile, Error> {
        let cannot_write = |source| Error::io(format!("write {}", path.display()), source);
        // /dev/stdout may be a file too.
        let is_other =
            path.starts_with("/dev") || std::fs::metadata(path).is_ok_and(|meta| !meta.is_file());
        if is_other {
            let opened = File::options().write(true).open(path);
            return opened.map(OutputFile::Other).map_err(cannot_write);
        }
        if path.symlink_metadata().is_ok() {
            return Err(exists_already(path));
        }
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        std::fs::metadata(folder).map_err(cannot_write)?;
        let unnamed = File::options()
            .write(true)
            .mode(0o666)
            .custom_flags(libc::O_TMPFILE)
            .open(folder);
        if let Ok(file) = unnamed {
            return Ok(OutputFile::Unnamed(file));
        }
        let file = tempfile::Builder::new()
            .prefix(".hindsight-")
            .permissions(std::fs::Permissions::from_mode(0o666))
            .tempfile_in(folder);
        file.map(OutputFile::Hidden)
            .map_err(|error| cannot_write(error.kind().into()))
    }

    fn file(&self) -> &File {
        match self {
            OutputFile::Hidden(file) => file.as_file(),
            OutputFile::Unnamed(file) | OutputFile::Other(file) => file,
        }
    }

    /// Gives the complete file its name and returns its size in bytes.
    fn keep(self, path: &Path) -> Result<Option<u64>, Error> {
        let kept = match self {
            OutputFile::Unnamed(file) => name(&file, path).map(|()| file),
            OutputFile::Hidden(file) => file.persist_noclobber(path).map_err(|failed| failed.error),
            OutputFile::Other(_) => return Ok(None),
        };
        let file = kept.map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => exists_already(path),
            _ => Error::io(format!("write {}", path.display()), error),
        })?;
        Ok(file.metadata().ok().map(|meta| meta.len()))
    }
}

/// Gives a file without a name one that nothing has yet (open(2), O_TMPFILE).
fn name(file: &File, path: &Path) -> std::io::Result<()> {
    let own = format!("/proc/self/fd/{}", file.as_raw_fd());
    let flags = AtFlags::SYMLINK_FOLLOW;
    rustix::fs::linkat(CWD, own, CWD, path, flags).map_err(Into::into)
}

fn exists_already(path: &Path) -> Error {
    Error::usage(
        format!("{} exists already", path.display()),
        Some("choose another name or remove it".to_owned()),
    )
}

/// Returns the system's error in one of the engine's.
fn of_arrow(error: ArrowError) -> std::io::Error {
    match error {
        ArrowError::IoError(_, source) => source,
        ArrowError::CsvError(text) => std::io::Error::other(text),
        error => std::io::Error::other(error),
    }
}

/// Writes the answer to one query to `path` and reports it on stderr.
fn write_file(asker: &mut Asker, text: &str, format: Format, path: &Path) -> Result<u8, Error> {
    let questions = questions(text)?;
    let [sql] = questions.as_slice() else {
        let help = "ask one at a time, each into a file of its own";
        return Err(Error::usage(
            "a file takes the answer to one question",
            Some(help.to_owned()),
        ));
    };
    let Some(writer) = format.file_writer() else {
        let help = "choose one by --format or by the file's ending";
        return Err(Error::usage(
            "the format table is for terminals; files take csv, json, jsonl or parquet",
            Some(help.to_owned()),
        ));
    };
    let answer = asker.ask(sql, None)?;
    let cannot_write = |source| Error::io(format!("write {}", path.display()), source);
    let place = OutputFile::of(path)?;
    let mut out = BufWriter::with_capacity(1 << 20, place.file());
    let rows = asker
        .write(answer, writer, &mut out, true)
        .and_then(|rows| out.flush().map(|()| rows).map_err(cannot_write));
    drop(out);
    // Where the disk is full is more than that it is.
    let rows = rows.map_err(|error| {
        let Error::Query { source } = error else {
            return error;
        };
        match source {
            query::Error::Write(source) => cannot_write(source),
            query::Error::Arrow(source) => cannot_write(of_arrow(source)),
            query::Error::Parquet(source) => cannot_write(std::io::Error::other(source)),
            source => Error::Query { source },
        }
    })?;
    let size = match place.keep(path)? {
        Some(size) => format!(", {}", bytes(size)),
        None => String::new(),
    };
    let name = path.to_string_lossy();
    eprintln!(
        "hindsight: {}: {}{size}",
        escaped(&name),
        count(rows, "row")
    );
    Ok(exit::DONE)
}

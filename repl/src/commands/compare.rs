//! `hindsight compare`: the differences between two recordings of a program, and the function that made the
//! difference.

mod annotations;
mod findings;
mod formats;
mod html;
mod junit;
mod sarif;
mod slower;

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use query::Session;
use query::compare::{Asked, COLUMNS, Comparison, Role, RuleTexts, Rules, Stop, TextLine};
use serde::{Deserialize, Serialize};
use server::quantity::count;

use crate::ask::open_session;
use crate::error::Error;
use crate::exit;
use crate::json::answer;
use crate::output::{self, to_stdout};
use crate::progress::Progress;
use crate::recording::to_read;
use crate::render::{Colour, Paint, Terminal, escaped};
use crate::sets;

/// Most calls that differ and are described in JSON, unless the user requests all.
const SOME_CALLS: usize = 1000;
/// The same with `--full`.
const MOST_CALLS: usize = 10_000;

/// Where lines are cut that no person may read.
const COLUMNS_IN_PIPES: usize = 600;

const EXAMPLES: &str = "\
Examples:
  hindsight record -o good ./app in.txt; hindsight record -o bad ./app in.txt
  hindsight compare good bad
  hindsight compare good bad --json | jq .result.suspects
  hindsight compare good bad --html report.html --junit report.xml
  hindsight compare --baseline a1 a2 a3 a4 a5 --candidate b1 b2 b3 b4 b5   is it slower?
  hindsight compare good bad --accept known.json   ignore today's differences in later runs

Exit codes: 0 the same, 1 different, 2 wrong usage, 3 not comparable: the message says why.

hindsight.toml in the working directory lists what to ignore:
  [compare.ignore]
  functions = [\"log_*\"]
  inside = [\"table_find\"]
  results = [\"now\"]
  args = [\"open_session:id\"]
  output = [\"^took .* ms\"]
  kinds = [\"exit\"]";

/// Show where two recordings of a program differ
///
/// Compares two runs of one build, or of two builds. Ignores addresses, process and thread ids, times, names of temporary
/// files and moved lines. The functions that most likely made the difference come first.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The first recording, A
    #[arg(
        value_name = "A",
        required_unless_present = "baseline",
        requires = "b",
        conflicts_with = "baseline"
    )]
    a: Option<PathBuf>,
    /// The second recording, B
    #[arg(value_name = "B", conflicts_with = "baseline")]
    b: Option<PathBuf>,
    /// Print everything as JSON
    #[arg(long)]
    json: bool,
    /// Print all calls that differ, up to 10,000
    #[arg(long)]
    full: bool,
    /// Ignore the differences listed in FILE. If FILE does not exist, create it with the present differences; on a
    /// build server, where CI is set, FILE must exist
    #[arg(long, value_name = "FILE")]
    accept: Option<PathBuf>,
    /// Rank functions by what they did alone, not by whether their code differs
    #[arg(long)]
    no_code: bool,
    #[command(flatten)]
    formats: formats::Formats,
    #[command(flatten)]
    slower: slower::Args,
}

/// A file of accepted differences.
#[derive(Debug, Serialize, Deserialize)]
struct Accepted {
    /// For those who read the file.
    about: String,
    /// The differences.
    fingerprints: BTreeSet<String>,
}

/// Runs the command and returns the exit code.
///
/// # Errors
/// When a recording cannot be read, or both cannot be compared.
pub fn run(args: &Args, terminal: &Terminal) -> Result<u8, Error> {
    match (&args.a, &args.b) {
        (Some(a), Some(b)) => compare(args, (a, b), terminal),
        _ => slower::run(&args.slower, args.json),
    }
}

fn compare(args: &Args, (a, b): (&Path, &Path), terminal: &Terminal) -> Result<u8, Error> {
    refuse_sets(a, b)?;
    let paths = (to_read(a)?, to_read(b)?);
    let accepted = match &args.accept {
        Some(file) => accepted(file)?,
        None => None,
    };
    let new_file = args.accept.as_deref().filter(|_| accepted.is_none());
    for file in args.formats.files().chain(new_file) {
        formats::refuse_unwritable(file)?;
    }
    let most_calls = match (args.full, args.json) {
        (true, _) => MOST_CALLS,
        (false, true) => SOME_CALLS,
        (false, false) if args.formats.describe_calls() => SOME_CALLS,
        (false, false) => 0,
    };
    let asked = Asked {
        accepted: accepted.clone().unwrap_or_default(),
        ..asked(most_calls, !args.no_code)?
    };
    let names = (a.to_string_lossy(), b.to_string_lossy());
    let (a, b) = (opened(&paths.0)?, opened(&paths.1)?);
    let progress = Progress::new(terminal);
    let compared = |asked: &Asked| {
        let work = || query::compare::compare((&a, &names.0), (&b, &names.1), asked);
        progress.alive("comparing", work).map_err(failed)
    };
    let found = compared(&asked)?;
    // What is accepted now counts as accepted now, in the reports and the exit code, as in each later run.
    let judged = match new_file.filter(|_| !found.fingerprints.is_empty()) {
        Some(_) => compared(&Asked {
            accepted: found.fingerprints.iter().copied().collect(),
            ..asked
        })?,
        None => found.clone(),
    };
    let besides = args.formats.write(&judged).map_err(unwritten)?;
    let mut out = output::stdout();
    let written = if args.json {
        let json = answer(serde_json::to_value(&judged).expect("it is JSON"));
        writeln!(out, "{json:#}")
    } else {
        let text = painted(
            &found.lines(args.full, columns(terminal)),
            terminal.stdout_colour,
        );
        write!(out, "{text}{besides}")
    };
    shown(written.and_then(|()| out.flush()))?;
    if let Some(file) = new_file {
        accept(file, &found).map_err(unwritten)?;
        tell_accepted(file, &found, &judged, terminal);
    }
    Ok(if judged.is_same {
        exit::DONE
    } else {
        exit::FAILED
    })
}

/// Refuses sets of recordings, and names members that both have.
///
/// # Errors
/// One of them is a set.
fn refuse_sets(a: &Path, b: &Path) -> Result<(), Error> {
    let sets = [a, b].map(sets::named);
    let Some(set) = sets.iter().flatten().next() else {
        return Ok(());
    };
    let members = sets.each_ref().map(|set| match set {
        Some(set) => sets::members(set),
        None => Vec::new(),
    });
    let shared = match &sets {
        [Some(_), Some(_)] => members[0].iter().find(|name| members[1].contains(name)),
        [Some(_), None] => members[0].first(),
        _ => members[1].first(),
    };
    let word = |(word, set): (&Path, &Option<PathBuf>)| {
        let path = match (set, shared) {
            (Some(set), Some(name)) => set.join(name),
            (Some(set), None) => set.join("NAME"),
            (None, _) => word.to_owned(),
        };
        store::shell::word(&path.to_string_lossy())
    };
    let [first, second] = [(a, &sets[0]), (b, &sets[1])].map(word);
    let name = store::shell::word(&set.to_string_lossy());
    Err(Error::usage(
        format!(
            "{} is a set of recordings, and one pair of recordings is compared at a time",
            set.display()
        ),
        Some(format!(
            "compare a recording of each: hindsight compare {first} {second}; `hindsight processes {name}` names them all"
        )),
    ))
}

/// Returns where lines are cut: at the edge of the terminal, and in a file or a pipe only where they are very long.
fn columns(terminal: &Terminal) -> usize {
    match terminal.stdout {
        true => Terminal::size().0.max(COLUMNS),
        false => COLUMNS_IN_PIPES,
    }
}

/// Writes the lines of a comparison: those of A in the colour for the old state, those of B in the colour for the new
/// one.
pub fn painted(lines: &[TextLine], colour: Colour) -> String {
    let mut text = String::new();
    for line in lines {
        let paint = match line.role {
            Role::Heading => Paint::Heading,
            Role::A => Paint::Removed,
            Role::B => Paint::Added,
            Role::Context => Paint::Dim,
            Role::Plain => {
                text += &format!("{}\n", line.text);
                continue;
            }
        };
        text += &format!("{}\n", colour.paint(paint, &line.text));
    }
    text
}

/// Returns what to compare in this folder: its project may have rules that exclude something.
///
/// # Errors
/// The rules are wrong.
pub fn asked(most_calls: usize, with_code: bool) -> Result<Asked, Error> {
    let texts = server::compare_rules(Path::new(".")).map_err(|source| Error::Live { source })?;
    let rules = Rules::read(&texts_of(texts)).map_err(|source| Error::Query { source })?;
    Ok(Asked {
        rules,
        accepted: BTreeSet::new(),
        most_calls,
        with_code,
        stop: Stop::default(),
    })
}

/// Returns the name of a recording as a user writes it.
pub fn name_of(path: PathBuf) -> String {
    let name = path.file_stem().map(|name| name.to_string_lossy());
    name.map_or_else(
        || path.to_string_lossy().into_owned(),
        |name| name.into_owned(),
    )
}

fn texts_of(rules: server::CompareRules) -> RuleTexts {
    RuleTexts {
        functions: rules.functions,
        inside: rules.inside,
        results: rules.results,
        args: rules.args,
        output: rules.output,
        kinds: rules.kinds,
        place: server::PROJECT_FILE.to_owned(),
    }
}

/// Opens a recording of those that are compared.
///
/// # Errors
/// It cannot be read, which is no difference either, or Ctrl-C is pressed.
pub fn opened(path: &Path) -> Result<Session, Error> {
    open_session(path).map_err(|error| match error {
        Error::Query { source } => failed(source),
        other => other,
    })
}

/// An unreadable recording is not different, as exit code 1 would mean.
pub fn failed(source: query::Error) -> Error {
    let source = match source {
        query::Error::NotComparable { .. } => source,
        other => query::Error::NotComparable {
            hint: other.hint(),
            message: other.to_string(),
        },
    };
    Error::Query { source }
}

/// Takes the result of writing to stdout. Whoever reads no further gets the exit code all the same.
fn shown(written: io::Result<()>) -> Result<(), Error> {
    match written.map_err(to_stdout) {
        Ok(()) | Err(Error::ReaderGone) => Ok(()),
        Err(error) => Err(unwritten(error)),
    }
}

/// A report that cannot be written after all is no difference either.
fn unwritten(error: Error) -> Error {
    match error {
        Error::Io { .. } => failed(query::Error::NotComparable {
            hint: error.help(),
            message: error.to_string(),
        }),
        other => other,
    }
}

/// Reads a file of accepted differences; `None` if there is none yet.
///
/// # Errors
/// It is wrong, or there is none on a build server: there it would be new in each run, and the job would pass for ever.
fn accepted(file: &Path) -> Result<Option<BTreeSet<u64>>, Error> {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && is_build_server() => {
            let file = file.display();
            let help = format!(
                "run the same command by hand, read what it prints, and commit {file}; or unset CI"
            );
            return Err(Error::usage(
                format!(
                    "there is no {file}, and on a build server (CI is set) --accept writes none"
                ),
                Some(help),
            ));
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            let help = "name a file that --accept wrote, or one that does not exist yet";
            return Err(Error::usage(
                format!("cannot read {}: {error}", file.display()),
                Some(help.to_owned()),
            ));
        }
    };
    let wrong = |why: String| {
        let help = "it is a file that --accept wrote, and has not been changed";
        Error::usage(
            format!("{} has no accepted differences: {why}", file.display()),
            Some(help.to_owned()),
        )
    };
    let read: Accepted = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    let number = |text: &String| {
        u64::from_str_radix(text, 16).map_err(|_| wrong(format!("{text:?} is no fingerprint")))
    };
    read.fingerprints
        .iter()
        .map(number)
        .collect::<Result<_, _>>()
        .map(Some)
}

/// Build servers set `CI`.
fn is_build_server() -> bool {
    let value = std::env::var_os("CI").unwrap_or_default();
    !["", "0", "false"].iter().any(|no| value == *no)
}

/// Says that a file of accepted differences is new, and what that means.
fn tell_accepted(file: &Path, found: &Comparison, judged: &Comparison, terminal: &Terminal) {
    let word = terminal.stderr_colour.paint(Paint::Warning, "note:");
    let wrote = format!(
        "there was no {0}: wrote {1} to it",
        file.display(),
        count(found.fingerprints.len() as u64, "known difference")
    );
    let so = match (found.is_same, judged.is_same) {
        (true, _) => "nothing differs now",
        (false, true) => "all of them are accepted, now and in later runs with this file",
        (false, false) if !found.lone.threads.is_empty() => {
            "they are accepted, but a thread that only one side has cannot be accepted"
        }
        (false, false) => {
            "they are accepted, but not those of the threads that were not gone through"
        }
    };
    eprintln!("hindsight: {word} {}; {so}", escaped(&wrote));
}

/// Writes the differences of a comparison into a new file.
fn accept(file: &Path, found: &Comparison) -> Result<(), Error> {
    if found.has_too_many {
        let message = "there are more than 100,000 differences, too many to accept one by one";
        let help = "leave functions or lines of output out in hindsight.toml";
        return Err(Error::usage(message, Some(help.to_owned())));
    }
    let accepted = Accepted {
        about: format!(
            "differences between {} and {} that are accepted",
            found.a.name, found.b.name
        ),
        fingerprints: found
            .fingerprints
            .iter()
            .map(|number| format!("{number:016x}"))
            .collect(),
    };
    let json = serde_json::to_string_pretty(&accepted).expect("it is JSON");
    formats::write(file, &(json + "\n"))
}

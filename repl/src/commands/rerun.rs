//! `hindsight rerun`: records the program of a recording again, with the same arguments, environment, folder and options, and
//! with probes that answer what the first run left open.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use clap::Parser;
use serde_json::json;
use server::past::{Change, Past};
use server::quantity::grouped;
use server::verbs::{Column, Text, place_of_change};
use store::Recording;
use store::manifest::{ByteBuf, Launch, Manifest, OnFull, Stdin};

use crate::commands::live::written;
use crate::commands::probing::Probing;
use crate::commands::record::{self, Ran};
use crate::error::Error;
use crate::json::answer;
use crate::progress::Progress;
use crate::recording::locate;
use crate::render::Terminal;

const EXAMPLES: &str = "\
Examples:
  hindsight rerun app --log-writes cache.head     which lines write it, and what
  hindsight rerun app --log-writes 0x404028:4     the same of an address; it is the same in each run with --no-aslr
  hindsight rerun app --logpoint app.c:42 'len={len}' -o second
  hindsight rerun app --full                      every instruction: last-write then names the one that wrote

Exits with the program's own status, as record does.";

/// Writes of a place that are shown.
const ROWS: usize = 20;

/// Run a recording's program again and record it
///
/// Runs the program with the same arguments, environment, folder and standard input, and with the recorded options, into
/// a new recording. With --log-writes, it then shows the last writes: the line, the old and the new value. With --full, it records every
/// instruction, with the same functions, logpoints and logged places.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The recording, with or without .hindsight
    #[arg(value_name = "RECORDING")]
    recording: PathBuf,
    #[command(flatten)]
    probing: Probing,
    /// Record every instruction this time: you know each register and each byte at every moment. Leaves out what was kept
    /// with calls, which is then known anyway
    #[arg(long)]
    full: bool,
    /// Also record calls that allocate and free memory (report --memory, object)
    #[arg(long)]
    memory: bool,
    /// Also record calls that lock, unlock or wait (report --locks)
    #[arg(long)]
    locks: bool,
    /// Let logpoints and logged variables wait for libraries that are loaded later
    #[arg(long)]
    pending: bool,
    /// Where to write [default: the recording's name with a number, in this folder]
    #[arg(short, long, value_name = "NAME")]
    output: Option<PathBuf>,
    /// Print the summary and the writes as JSON (on stderr: stdout is the program's)
    #[arg(long)]
    json: bool,
}

/// The words of `record`.
#[derive(Debug, Parser)]
#[command(name = "hindsight record", no_binary_name = true)]
struct Words {
    #[command(flatten)]
    args: record::Args,
}

/// Runs the command and returns the exit code: the program's own.
///
/// # Errors
/// When the recording cannot be read, or nothing could be recorded.
pub fn run(args: &Args, terminal: &Terminal) -> Result<u8, Error> {
    let path = locate(&args.recording)?;
    let recording = Recording::open(&path).map_err(|source| Error::Store { source })?;
    let manifest = recording.manifest();
    let progress = Progress::new(terminal);
    let launch = match &manifest.launch {
        Some(launch) => launch.clone(),
        None => {
            progress.warning(
                "the recording does not say how its program was started: its command line is used, and the environment of this one",
            );
            guessed(manifest)?
        }
    };
    let output = output(args, &path)?;
    let words = words(args, &launch, &output);
    let stdin = stdin(&launch.stdin, &progress);
    let cwd = PathBuf::from(text(&launch.cwd));
    std::env::set_current_dir(&cwd)
        .map_err(|source| Error::io(format!("go to its folder {}", cwd.display()), source))?;
    progress.finish();
    let parsed = Words::try_parse_from(words).map_err(|error| {
        let what = format!("the recorded options are not understood: {}", error.kind());
        Error::usage(&what, None)
    })?;
    let env = manifest.launch.is_some().then(|| environment(&launch.env));
    let surroundings = record::Given { env, stdin };
    let ran = record::run_like(parsed.args, surroundings, terminal)?;
    let logged = &args.probing.probes.log_writes;
    if !logged.is_empty() {
        tell(&ran, logged, args.json, terminal)?;
    }
    Ok(ran.code)
}

/// Prints the last writes of each place.
fn tell(ran: &Ran, logged: &[String], json: bool, terminal: &Terminal) -> Result<(), Error> {
    let past = Past::open(&ran.recording, &store::temp_dir()).map_err(server::Error::from)?;
    let mut all = Vec::new();
    for target in logged {
        let target = recorded_name(target);
        let (changes, count) = past
            .logged_writes(&target, ROWS)
            .map_err(server::Error::from)?;
        match json {
            true => all.push(json!({ "place": target, "writes": count, "last": changes })),
            false => eprint!("{}", written(&shown(&target, &changes, count), terminal)),
        }
    }
    if json {
        eprintln!("{}", answer(json!({ "log_writes": all })));
    }
    Ok(())
}

/// The name under which the writes of a place are recorded: an address has its length.
fn recorded_name(target: &str) -> String {
    let parsed = server::session::logged_place(target);
    parsed.map_or_else(|_| target.to_owned(), |place| place.to_string())
}

fn shown(target: &str, changes: &[Change], count: u64) -> Text {
    if changes.is_empty() {
        return Text::line(format!("No write to {target} was seen."));
    }
    let said = match count {
        1 => format!("One write to {target}:"),
        count if count <= changes.len() as u64 => format!("{count} writes to {target}:"),
        count => format!(
            "The last {} of {} writes to {target}:",
            changes.len(),
            grouped(count)
        ),
    };
    let rows = changes.iter().map(|change| {
        vec![
            change.seq.to_string(),
            change.thread.to_string(),
            change.old.clone().unwrap_or_default(),
            change.value.clone(),
            place_of_change(change),
        ]
    });
    let columns = [
        Column::number("Event"),
        Column::number("Thread"),
        Column::text("Old"),
        Column::text("New"),
        Column::text("Place"),
    ];
    Text::line(said).and(Text::table(&columns, rows.collect()))
}

/// The whole path of the new recording.
fn output(args: &Args, of: &Path) -> Result<PathBuf, Error> {
    let here = std::env::current_dir().map_err(|source| Error::io("find this folder", source))?;
    if let Some(output) = &args.output {
        return Ok(here.join(output));
    }
    let stem = of
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let base = match stem.rsplit_once('-') {
        Some((base, number)) if number.parse::<u32>().is_ok() => base.to_owned(),
        _ => stem,
    };
    let names = (2u32..)
        .map(|number| store::recording::with_suffix(&here.join(format!("{base}-{number}"))));
    let mut free = names.filter(|path| !path.exists());
    Ok(free.next().unwrap_or_else(|| here.join(base)))
}

/// Options that a recording of every instruction takes over, and how many values they have. What was kept with calls is left out.
const IN_FULL: [(&str, usize); 9] = [
    ("-f", 1),
    ("-x", 1),
    ("--label", 1),
    ("--no-aslr", 0),
    ("--keep-log", 0),
    ("--log-writes", 1),
    ("--logpoint", 2),
    ("--condition", 1),
    ("--pending", 0),
];

/// The words for `record`: the recorded options, the new ones, and the program.
fn words(args: &Args, launch: &Launch, output: &Path) -> Vec<OsString> {
    let probes = &args.probing.probes;
    let mut words: Vec<OsString> = Vec::new();
    words.extend(args.full.then(|| "--full".into()));
    words.extend(taken_over(args, launch).map(OsString::from));
    for place in &probes.log_writes {
        words.extend(["--log-writes".into(), place.into()]);
    }
    for point in &probes.logpoints {
        words.extend(["--logpoint".into(), point.at.to_string().into()]);
        words.push(point.message.as_str().into());
        if let Some(condition) = &point.condition {
            words.extend(["--condition".into(), condition.into()]);
        }
    }
    let pending = args.pending || launch.options.iter().any(|option| option == "--pending");
    words.extend(pending.then(|| "--pending".into()));
    words.extend(besides(args, launch));
    words.extend(at_the_end(args, launch, output));
    words
}

/// The recorded options that hold again, with their values.
fn taken_over<'a>(args: &Args, launch: &'a Launch) -> impl Iterator<Item = &'a String> {
    let mut rest = launch.options.as_slice();
    let mut taken: Vec<&[String]> = Vec::new();
    while let Some(option) = rest.first() {
        let known = IN_FULL.iter().find(|(name, _)| name == option);
        let values = known.map_or(0, |(_, values)| *values);
        let (own, others) = rest.split_at(rest.len().min(1 + values));
        rest = others;
        match option.as_str() {
            // These are added once, below.
            "--pending" | "--memory" | "--locks" => {}
            // The processor has four watchpoints: the new ones replace the recorded ones.
            "--log-writes" if !args.probing.probes.log_writes.is_empty() => {}
            _ if args.full && known.is_none() => {}
            _ => taken.push(own),
        }
    }
    taken.into_iter().flatten()
}

/// Which functions of libraries are recorded too: those that were, and those that are wanted now.
fn besides(args: &Args, launch: &Launch) -> impl Iterator<Item = OsString> {
    let is_wanted = |option: &str, now: bool| now || launch.options.iter().any(|own| own == option);
    let memory = is_wanted("--memory", args.memory).then(|| "--memory".into());
    let locks = is_wanted("--locks", args.locks).then(|| "--locks".into());
    memory.into_iter().chain(locks)
}

/// Where to write, and the program with its arguments.
fn at_the_end(args: &Args, launch: &Launch, output: &Path) -> Vec<OsString> {
    let mut words: Vec<OsString> = Vec::new();
    words.extend(args.json.then(|| "--json".into()));
    words.extend([
        "--output".into(),
        output.as_os_str().to_owned(),
        "--".into(),
    ]);
    words.extend(launch.argv.iter().map(text));
    words
}

fn text(bytes: &ByteBuf) -> OsString {
    OsString::from_vec(bytes.to_vec())
}

fn environment(pairs: &[ByteBuf]) -> Vec<(OsString, OsString)> {
    let split = |pair: &ByteBuf| {
        let at = pair.iter().position(|byte| *byte == b'=')?;
        let part = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
        Some((part(&pair[..at]), part(&pair[at + 1..])))
    };
    pairs.iter().filter_map(split).collect()
}

/// The file that is its standard input again; `None`: it gets ours, and any difference is reported.
fn stdin(recorded: &Stdin, progress: &Progress) -> Option<PathBuf> {
    match recorded {
        Stdin::File(path) => {
            let path = PathBuf::from(text(path));
            if path.exists() {
                return Some(path);
            }
            progress.warning(&format!(
                "its standard input was {}, which is gone: that of this command is used",
                path.display()
            ));
        }
        Stdin::Terminal => {}
        Stdin::Once => progress.warning(
            "its standard input was a pipe, or the middle of a file, which cannot be read once more: that of this command is used",
        ),
    }
    None
}

/// How to start the program of a recording without that information.
fn guessed(manifest: &Manifest) -> Result<Launch, Error> {
    let bytes = |text: &String| ByteBuf::from(text.clone().into_bytes());
    if manifest.argv.is_empty() {
        let help = "record it again: hindsight record PROGRAM ARGUMENTS";
        let what = "the recording does not say which program it is of";
        return Err(Error::usage(what, Some(help.to_owned())));
    }
    let settings = &manifest.settings;
    let mut options: Vec<String> = Vec::new();
    for filter in &settings.filters {
        let (option, pattern) = filter.split_once(' ').unwrap_or(("-f", filter));
        options.extend([option.to_owned(), pattern.to_owned()]);
    }
    if settings.on_full == OnFull::Drop {
        options.extend(["--on-full".to_owned(), "drop".to_owned()]);
    }
    if settings.keep_log {
        options.push("--keep-log".to_owned());
    }
    for captured in &settings.captures {
        match (captured.as_str(), captured.strip_prefix("watch ")) {
            ("registers", _) => options.push("--regs".to_owned()),
            ("texts", _) => options.push("--strings".to_owned()),
            ("pointees", _) => options.push("--pointees".to_owned()),
            ("system calls", _) => options.push("--syscalls".to_owned()),
            ("memory" | "locks", _) => options.push(format!("--{captured}")),
            (_, Some(watch)) => options.extend(["--watch".to_owned(), watch.to_owned()]),
            (other, None) => {
                if let Some(len) = other.strip_suffix(" bytes of stack") {
                    options.extend(["--stack".to_owned(), len.to_owned()]);
                }
            }
        }
    }
    Ok(Launch {
        argv: manifest.argv.iter().map(bytes).collect(),
        cwd: bytes(&manifest.cwd),
        env: Vec::new(),
        stdin: Stdin::Terminal,
        options,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(options: &[&str]) -> Launch {
        let bytes = |text: &str| ByteBuf::from(text.as_bytes().to_vec());
        Launch {
            argv: vec![bytes("./app"), bytes("-x")],
            cwd: bytes("/"),
            env: Vec::new(),
            stdin: Stdin::Terminal,
            options: options.iter().map(|word| (*word).to_owned()).collect(),
        }
    }

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn asked(line: &[&str]) -> Args {
        Line::parse_from([&["rerun"], line].concat()).args
    }

    fn made(line: &[&str], recorded: &[&str]) -> Vec<String> {
        let words = words(&asked(line), &launch(recorded), Path::new("/new"));
        let words = words.into_iter().map(|word| word.into_string().unwrap());
        words.collect()
    }

    #[test]
    fn recorded_options_stay_and_logged_places_are_replaced() {
        let recorded = ["-f", "parse*", "--log-writes", "old", "--pending"];
        let words = made(&["app", "--log-writes", "new"], &recorded);
        let expected = [
            "-f",
            "parse*",
            "--log-writes",
            "new",
            "--pending",
            "--output",
            "/new",
            "--",
            "./app",
            "-x",
        ];
        assert_eq!(words, expected);
        assert!(Words::try_parse_from(words).is_ok());
        let kept = made(&["app"], &recorded);
        assert!(kept.contains(&"old".to_owned()));
    }

    #[test]
    fn logpoints_keep_their_conditions() {
        let line = ["app", "--logpoint", "f", "n={n}", "--condition", "n > 1"];
        let words = made(&line, &[]);
        assert_eq!(
            words[..5],
            ["--logpoint", "f", "n={n}", "--condition", "n > 1"]
        );
    }

    #[test]
    fn every_instruction_needs_no_other_options() {
        let recorded = [
            "-f",
            "parse*",
            "--strings",
            "--memory",
            "--watch",
            "x",
            "--logpoint",
            "f",
            "n={n}",
            "--condition",
            "n > 1",
            "--no-aslr",
        ];
        let words = made(&["app", "--full", "--log-writes", "y"], &recorded);
        let expected = [
            "--full",
            "-f",
            "parse*",
            "--logpoint",
            "f",
            "n={n}",
            "--condition",
            "n > 1",
            "--no-aslr",
            "--log-writes",
            "y",
            "--memory",
            "--output",
            "/new",
            "--",
            "./app",
            "-x",
        ];
        assert_eq!(words, expected);
        assert!(Words::try_parse_from(words).is_ok());
    }

    #[test]
    fn a_variable_without_a_value_is_none() {
        let pairs = [&b"A=b=c"[..], b"odd", b"E="].map(|pair| ByteBuf::from(pair.to_vec()));
        let expected = [("A", "b=c"), ("E", "")].map(|(n, v)| (n.into(), v.into()));
        assert_eq!(environment(&pairs), expected);
    }
}

//! `hindsight record`: runs a program, or attaches to one, and records every call it makes into `NAME.hindsight`. The
//! program keeps stdin, stdout and its exit status; Hindsight's messages go to stderr.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use query::overview::{LAST_EXEC, goes_on_after};
use recorder::live::{self, LiveOptions, Stdio};
use recorder::{Captures, Counting, Death, Exit, Outcome, RecordOptions, Surroundings, Target};
use serde_json::json;
use server::inspect::signal_name;
use server::quantity::duration;
use server::quantity::{count, grouped};
use store::recording::may_be_created;
use store::set;

use crate::ask::Asker;
use crate::commands::captured::Captured;
use crate::commands::children;
use crate::commands::keeping::Keeping;
use crate::commands::probing::Probing;
use crate::commands::recorded::{Attached, Besides, Family, Functions, Kept};
use crate::commands::started::Started;
use crate::commands::{failed_probes, full, guard, pack, report, target, unrecorded};
use crate::error::Error;
use crate::exit;
use crate::json::answer;
use crate::progress::Progress;
use crate::recording::refuse_new_within;
use crate::render::{Terminal, bytes, escaped, per};

const EXAMPLES: &str = "\
Examples:
  hindsight record ./app --port 8080            what follows the program is its own
  hindsight record -o run1 -f 'parse*' ./app    only functions that match
  hindsight record -x 'std::*' -x '*alloc*' ./app
  hindsight record --log-writes total ./app     and every write to a variable, with its line
  hindsight record --memory --locks ./app       and who allocates, frees, locks and waits
  hindsight record --children -- make -j2       and every process that it starts
  hindsight record --full ./app                 every instruction: go to any of them, forwards and backwards
  hindsight record '--full=parse_*' ./app       the same for the calls of these functions alone
  hindsight record --attach 4711 --for 10       look at a running program
  hindsight sql app \"select * from calls\"       then ask

Exits with the program's own status (128 + signal), or with 4 if it could not be started.";

/// Record a program while it runs
///
/// Runs a program, or attaches to one, and records every call of its functions: arguments, return values and times,
/// from all threads, into the folder NAME.hindsight. You need not recompile the program, and it needs no debug
/// information; with debug information, arguments have names and types.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Where to write [default: the program's name with .hindsight, in this folder]
    #[arg(short, long, value_name = "NAME")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub functions: Functions,
    #[command(flatten)]
    pub keeping: Keeping,
    #[command(flatten)]
    pub captured: Captured,
    #[command(flatten)]
    pub besides: Besides,
    #[command(flatten)]
    pub probing: Probing,
    #[command(flatten)]
    pub every: full::Every,
    /// Let logpoints and logged variables wait for libraries that are loaded later
    #[arg(long)]
    pub pending: bool,
    /// Load the program and its libraries at the same addresses in each run
    #[arg(long, conflicts_with = "pid")]
    pub no_aslr: bool,
    #[command(flatten)]
    pub kept: Kept,
    #[command(flatten)]
    pub attached: Attached,
    #[command(flatten)]
    pub family: Family,
    #[command(flatten)]
    pub told: Told,
    /// The program and its arguments
    #[arg(
        value_name = "PROGRAM",
        trailing_var_arg = true,
        required_unless_present_any = ["pid", "parked"]
    )]
    pub command: Vec<OsString>,
}

/// What is told when the program has ended.
#[derive(Debug, clap::Args)]
pub struct Told {
    /// Print a report of the slowest functions at the end, as hindsight report does (on stderr: stdout is the program's)
    #[arg(long, conflicts_with_all = ["children", "parked", "json"])]
    pub report: bool,
    /// Print the summary as JSON (on stderr: stdout is the program's)
    #[arg(long)]
    pub json: bool,
}

/// Runs the command and returns the exit code: the program's own.
///
/// # Errors
/// When nothing could be recorded.
pub fn run(args: Args, terminal: &Terminal) -> Result<u8, Error> {
    run_like(args, Given::default(), terminal).map(|ran| ran.code)
}

/// What a program inherits from another run.
#[derive(Debug, Default)]
pub struct Given {
    /// Its environment; `None`: ours.
    pub env: Option<Vec<(OsString, OsString)>>,
    /// The file that is its standard input; `None`: ours is.
    pub stdin: Option<PathBuf>,
}

/// Its outcome.
#[derive(Debug)]
pub struct Ran {
    /// The exit code: the program's own.
    pub code: u8,
    /// The new recording.
    pub recording: PathBuf,
}

impl Ran {
    /// No caller uses the result of one process of a set.
    fn of_nothing(code: u8) -> Ran {
        let recording = PathBuf::new();
        Ran { code, recording }
    }
}

/// Runs the command with a program that inherits from another run.
///
/// # Errors
/// When nothing could be recorded.
pub fn run_like(args: Args, given: Given, terminal: &Terminal) -> Result<Ran, Error> {
    let progress = match args.attached {
        Attached {
            pid: Some(pid),
            duration: None,
        } if !args.told.json => Progress::of_attached(terminal, pid),
        _ => Progress::new(terminal),
    };
    let (json, portable, with_report) = (args.told.json, args.kept.portable, args.told.report);
    let has_chosen = !args.functions.include.is_empty() || !args.functions.exclude.is_empty();
    refuse(&args)?;
    if args.family.parked {
        let copies = args.family.copies;
        return children::record_one(options(args, given), copies).map(Ran::of_nothing);
    }
    if !args.every.parts.is_empty() {
        return full::record(args, given, terminal);
    }
    if args.family.children {
        let copies = args.family.copies;
        let (code, recording) = children::record(&options(args, given), copies, json)?;
        return Ok(Ran { code, recording });
    }
    let first = args.probing.probes(args.pending).parsed();
    let first = first.map_err(server::Error::from)?;
    let has_probes = args.probing.is_given();
    let with_syscalls = args.besides.syscalls;
    let record = options(args, given);
    let outcome = match has_probes {
        true => {
            let options = LiveOptions {
                record,
                stop_on_entry: false,
                stdio: Stdio::Inherit,
                first,
            };
            live::record_with_probes(options, &progress)
        }
        false => recorder::record(record, &progress),
    };
    let outcome = outcome.map_err(|source| Error::Record { source });
    progress.finish();
    let outcome = outcome?;
    if outcome.counting == Counting::Left {
        return Ok(left(outcome, json));
    }
    if let Some(reason) = outcome.incomplete.as_ref()
        && !progress.has_said(reason)
    {
        progress.warning(&format!("the recording is incomplete: {reason}"));
    }
    let (became, started) = aftermath(&outcome, with_syscalls);
    if has_probes && let Ok(mut asker) = Asker::open(&outcome.recording) {
        for sentence in failed_probes::sentences(&mut asker) {
            progress.warning(&sentence);
        }
    }
    if let Some(program) = &became {
        progress.warning(&unrecorded::became_line(program));
    }
    let packed = match portable {
        true => pack::pack_or_warn(&outcome.recording, &progress),
        false => 0,
    };
    if json {
        let outcome = Outcome {
            bytes_on_disk: outcome.bytes_on_disk + packed,
            ..outcome.clone()
        };
        let facts = summary_json(&outcome, became, started.number());
        eprintln!("{}", answer(facts));
    } else {
        let packed = pack::in_summary(packed);
        eprintln!("hindsight: {}{packed}", summary(&outcome));
        if outcome.armed == 0 && !has_chosen {
            for line in unrecorded::why_no_function(&outcome.recording) {
                eprintln!("hindsight: {line}");
            }
        }
        if let Some(death) = death_line(&outcome) {
            eprintln!("hindsight: {death}");
        }
        if let Some(line) = started.line() {
            eprintln!("hindsight: {line}");
        }
    }
    if with_report && let Err(error) = report::after_recording(&outcome.recording, terminal) {
        progress.warning(&format!("there is no report: {error}"));
    }
    Ok(Ran {
        code: exit::of_program(outcome.exit),
        recording: outcome.recording,
    })
}

/// Reports that Ctrl-C has ended sealing. The next steps after a recording would have to finish it first.
fn left(outcome: Outcome, json: bool) -> Ran {
    if json {
        eprintln!("{}", answer(summary_json(&outcome, None, None)));
    } else {
        let name = outcome.recording.display().to_string();
        eprintln!(
            "hindsight: {}: recorded; sealing was interrupted and continues when you next open it; nothing is lost",
            escaped(&name)
        );
    }
    Ran {
        code: exit::of_program(outcome.exit),
        recording: outcome.recording,
    }
}

/// Refuses wrong arguments before anything is downloaded or started, as far as possible without a recorder.
fn refuse(args: &Args) -> Result<(), Error> {
    if args.attached.duration.is_some() && args.attached.pid.is_none() {
        let help = "name a running process: hindsight record --attach PID --for 10";
        return Err(Error::usage("--for needs --attach", Some(help.to_owned())));
    }
    if args.family.parked {
        return Ok(());
    }
    if !args.every.parts.is_empty() {
        full::refuse(args)?;
    }
    if args.family.children && args.probing.is_given() {
        return Err(Error::usage(
            "--children takes no --logpoint and no --log-writes",
            Some("set them in a recording of one program".to_owned()),
        ));
    }
    if args.family.copies && !args.family.children {
        let help = "write hindsight record --children --copies -- PROGRAM".to_owned();
        return Err(Error::usage("--copies needs --children", Some(help)));
    }
    if let Some(path) = &args.output {
        refuse_new_within(path)?;
        let checked = match args.family.children {
            true => set::may_be_created(path),
            false => may_be_created(path),
        };
        checked.map_err(|source| Error::Record {
            source: source.into(),
        })?;
    }
    match (args.attached.pid, args.command.first()) {
        (Some(pid), _) => target::check_process(pid),
        (None, Some(program)) => target::check_program(program).map_err(|error| {
            let is_apart = args.command.get(1).is_some_and(|word| word == "--");
            match is_apart && !args.every.parts.is_empty() {
                true => meant_for_full(program, &args.command[1..]),
                false => error,
            }
        }),
        (None, None) => Ok(()),
    }
}

/// The program looks like the value of --full, which is written with `=`.
fn meant_for_full(name: &OsStr, rest: &[OsString]) -> Error {
    let name = name.to_string_lossy();
    let rest: Vec<_> = rest.iter().map(|word| word.to_string_lossy()).collect();
    Error::usage(
        format!("there is no program {name}"),
        Some(format!(
            "for the calls of {name}: hindsight record --full={name} {}",
            rest.join(" ")
        )),
    )
}

fn options(args: Args, given: Given) -> RecordOptions {
    RecordOptions {
        output: args.output,
        include: args.functions.include,
        exclude: args.functions.exclude,
        on_full: args.keeping.on_full.into(),
        snapshots: args.keeping.snapshot,
        keep_log: args.keeping.keep_log,
        max_size: args.kept.max_size.map(|bytes| bytes as u64),
        surroundings: Surroundings {
            no_aslr: args.no_aslr,
            env: given.env,
            stdin: given.stdin,
            name: None,
        },
        captures: Captures {
            system_calls: args.besides.syscalls,
            memory: args.besides.memory,
            locks: args.besides.locks,
            ..args.captured.into()
        },
        guardian: guard::command(),
        labels: args.kept.labels.into_iter().collect(),
        target: match args.attached.pid {
            Some(pid) => Target::Attach {
                pid,
                duration: args.attached.duration,
            },
            None => Target::Spawn { argv: args.command },
        },
    }
}

/// One line: `app.hindsight: 242,785 calls, 485,574 events, 1 thread, 0 lost, 0.41 s, 2.1 MB (8.9 B/call)`.
fn summary(outcome: &Outcome) -> String {
    let per_call = per(outcome.bytes_on_disk, outcome.calls);
    let per_call = per_call.filter(|_| outcome.counting == Counting::Done);
    let per_call = per_call
        .map(|n| format!(" ({n} B/call)"))
        .unwrap_or_default();
    let name = outcome.recording.to_string_lossy();
    let lost = match &outcome.incomplete {
        None => format!("{} lost", grouped(outcome.gaps_lost)),
        Some(_) => "the rest not recorded".to_owned(),
    };
    let mut line = format!(
        "{}: {}, {}, {}, {lost}, {}, {}{per_call}",
        escaped(&name),
        counted(outcome, outcome.calls, "call"),
        counted(outcome, outcome.events, "event"),
        count(outcome.threads, "thread"),
        duration(outcome.duration_ns),
        bytes(outcome.bytes_on_disk),
    );
    if outcome.skipped > 0 {
        let all = outcome.armed + outcome.skipped;
        line += &format!(
            "; {} of {} not recorded (see the table probes)",
            grouped(outcome.skipped),
            count(all, "function")
        );
    }
    line
}

/// A number of calls or events, if it is known.
pub fn counted(outcome: &Outcome, number: u64, what: &str) -> String {
    match outcome.counting == Counting::Done {
        true => count(number, what),
        false => format!("{what}s not counted"),
    }
}

/// One line: `SIGSEGV ended the program in parse (app.c:17), address 0x0, thread 4711; look at it: hindsight repl app`.
pub fn death_line(outcome: &Outcome) -> Option<String> {
    let signal = match (outcome.exit, &outcome.death) {
        (Exit::Signal(signal), _) => signal,
        (_, Some(death)) => death.signal,
        _ => return None,
    };
    let mut line = format!("{} ended the program", signal_name(signal));
    let Some(death) = &outcome.death else {
        return Some(line);
    };
    let name = outcome.recording.with_extension("");
    line += &place(death);
    line += &format!(
        ", thread {}; look at it: hindsight repl {}",
        death.tid,
        store::shell::word(&escaped(&name.to_string_lossy()))
    );
    Some(line)
}

/// ` in parse (app.c:17), address 0x0`, as far as known.
fn place(death: &Death) -> String {
    let mut text = String::new();
    if let Some(function) = &death.function {
        text += &format!(" in {}", escaped(function));
    }
    if let (Some(file), Some(line)) = (&death.file, death.line) {
        let file = Path::new(file)
            .file_name()
            .map(|name| name.to_string_lossy());
        text += &format!(" ({}:{line})", escaped(&file.unwrap_or_default()));
    }
    if let Some(addr) = death.addr {
        text += &format!(", address {addr:#x}");
    }
    text
}

/// Returns the program that replaced the recorded one, if any, and the processes that it has started.
fn aftermath(outcome: &Outcome, with_syscalls: bool) -> (Option<String>, Started) {
    let Ok(mut asker) = Asker::open(&outcome.recording) else {
        return (None, Started::default());
    };
    let started = Started::ask(&mut asker, with_syscalls, outcome.had_children);
    let became = match outcome.exit {
        Exit::Detached => None,
        Exit::Code(_) | Exit::Signal(_) => became(&mut asker),
    };
    (became, started)
}

/// Returns the program that replaced the recorded one, if the recording ended that way. Launchers and wrapper scripts
/// do so, and a user who recorded one should know.
fn became(asker: &mut Asker) -> Option<String> {
    let mut row = asker.texts(LAST_EXEC).ok()?.pop()?;
    let (program, seq) = (row.pop()??, row.pop()??);
    let later = goes_on_after(seq.parse().ok()?);
    (asker.number(&later).ok()? == 0).then_some(program)
}

/// The summary as JSON. `children`: how many processes it has started, if that is known.
pub fn summary_json(
    outcome: &Outcome,
    became: Option<String>,
    children: Option<u64>,
) -> serde_json::Value {
    let (code, signal) = match outcome.exit {
        Exit::Code(code) => (Some(code), None),
        Exit::Signal(signal) => (None, Some(signal)),
        Exit::Detached => (None, None),
    };
    let counted = |number: u64| (outcome.counting == Counting::Done).then_some(number);
    json!({
        "recording": crate::json::path(&outcome.recording),
        "events": counted(outcome.events),
        "calls": counted(outcome.calls),
        "threads": outcome.threads,
        "lost": outcome.gaps_lost,
        "duration_ns": outcome.duration_ns,
        "bytes_on_disk": outcome.bytes_on_disk,
        "functions_armed": outcome.armed,
        "functions_skipped": outcome.skipped,
        "exit_code": code,
        "exit_signal": signal,
        "death": outcome.death.as_ref().map(|death| json!({
            "signal": signal_name(death.signal),
            "thread": death.tid,
            "address": death.addr.map(|addr| format!("{addr:#x}")),
            "function": death.function,
            "file": death.file,
            "line": death.line,
        })),
        "detached": matches!(outcome.exit, Exit::Detached),
        "incomplete": outcome.incomplete,
        "sealed": outcome.counting != Counting::Left,
        "became": became,
        "children_not_recorded": children,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn outcome() -> Outcome {
        Outcome {
            recording: "app.hindsight".into(),
            events: 485_574,
            calls: 242_785,
            threads: 1,
            gaps_lost: 0,
            duration_ns: 410_000_000,
            bytes_on_disk: 2_149_000,
            armed: 12,
            skipped: 0,
            exit: Exit::Code(0),
            death: None,
            incomplete: None,
            counting: Counting::Done,
            had_children: false,
        }
    }

    #[test]
    fn the_summary_is_one_line() {
        expect!["app.hindsight: 242,785 calls, 485,574 events, 1 thread, 0 lost, 0.41 s, 2.1 MB (8.9 B/call)"]
            .assert_eq(&summary(&outcome()));
    }

    #[test]
    fn what_could_not_be_counted_is_not_zero() {
        let outcome = Outcome {
            events: 0,
            calls: 0,
            counting: Counting::Failed,
            ..outcome()
        };
        expect![
            "app.hindsight: calls not counted, events not counted, 1 thread, 0 lost, 0.41 s, 2.1 MB"
        ]
        .assert_eq(&summary(&outcome));
        assert!(summary_json(&outcome, None, None)["calls"].is_null());
    }

    #[test]
    fn the_end_by_a_signal_is_one_line() {
        assert_eq!(death_line(&outcome()), None);
        let killed = Outcome {
            exit: Exit::Signal(9),
            ..outcome()
        };
        expect!["SIGKILL ended the program"].assert_eq(&death_line(&killed).unwrap());
        let crashed = Outcome {
            exit: Exit::Signal(11),
            death: Some(Death {
                signal: 11,
                tid: 4711,
                addr: Some(0x10),
                function: Some("parse".to_owned()),
                file: Some("/src/app.c".to_owned()),
                line: Some(17),
            }),
            ..outcome()
        };
        expect!["SIGSEGV ended the program in parse (app.c:17), address 0x10, thread 4711; look at it: hindsight repl app"]
            .assert_eq(&death_line(&crashed).unwrap());
    }

    #[test]
    fn the_summary_of_nothing_divides_by_nothing() {
        let outcome = Outcome {
            calls: 0,
            events: 5,
            threads: 0,
            skipped: 3,
            armed: 0,
            ..outcome()
        };
        expect![
            "app.hindsight: 0 calls, 5 events, 0 threads, 0 lost, 0.41 s, 2.1 MB; 3 of 3 functions not recorded (see the table probes)"
        ]
        .assert_eq(&summary(&outcome));
    }
}

//! `hindsight record --full`: records every instruction of a program, so that its state is known at each of them.

use std::time::Duration;

use recorder::live::FirstProbes;
use recorder::{Captures, FullOptions, FullOutcome, FullPart, OnFull, Surroundings};
use rustix::process::{self, Signal};
use serde_json::{Value, json};
use server::quantity::{count, duration, grouped};

use crate::ask::Asker;
use crate::commands::record::{self, Args, Given, Ran};
use crate::commands::{failed_probes, pack, report};
use crate::error::Error;
use crate::exit;
use crate::json::answer;
use crate::progress::Progress;
use crate::render::{Terminal, bytes, escaped};

/// What is recorded instruction by instruction.
#[derive(Debug, clap::Args)]
pub struct Every {
    /// Record every instruction: you know each register and each byte at every moment, and can run the program
    /// backwards. The program takes 2 to 5 times as long, on one processor. Finding many calls afterwards takes longer;
    /// -f selects fewer. --full=after:2s begins when the program has run for 2 seconds. --full=NAME records the calls of
    /// functions with this name or pattern (may be repeated). See docs/full.md
    #[arg(
        id = "full",
        long = "full",
        value_name = "PART",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "",
        value_parser = parse_part
    )]
    pub parts: Vec<Part>,
    /// With --full: end the program when this process, which started the recorder, ends
    #[arg(long, value_name = "PID", hide = true, requires = "full")]
    pub with_parent: Option<u32>,
}

/// Runs the command.
///
/// # Errors
/// When nothing could be recorded.
pub fn record(args: Args, given: Given, terminal: &Terminal) -> Result<Ran, Error> {
    let progress = Progress::new(terminal);
    if let Some(parent) = args.every.with_parent {
        end_with(parent)?;
    }
    let (json, portable, with_report) = (args.told.json, args.kept.portable, args.told.report);
    let has_probes = args.probing.is_given();
    let first = first(&args)?;
    let options = FullOptions {
        part: part(&args.every.parts)?,
        output: args.output,
        include: args.functions.include,
        exclude: args.functions.exclude,
        captures: Captures {
            memory: args.besides.memory,
            locks: args.besides.locks,
            ..Captures::default()
        },
        first,
        labels: args.kept.labels.into_iter().collect(),
        surroundings: Surroundings {
            no_aslr: args.no_aslr,
            env: given.env,
            stdin: given.stdin,
            name: None,
        },
        keep_log: args.keeping.keep_log,
        parent: args.every.with_parent,
        argv: args.command,
    };
    let recorded = recorder::record_full(&options, &progress);
    progress.finish();
    let mut full = recorded.map_err(|source| Error::Record { source })?;
    let mut next = Some(&mut full);
    while let Some(full) = next {
        if let Some(reason) = &full.outcome.incomplete {
            progress.warning(&format!("the recording is incomplete: {reason}"));
        }
        if has_probes && let Ok(mut asker) = Asker::open(&full.outcome.recording) {
            for sentence in failed_probes::sentences(&mut asker) {
                progress.warning(&sentence);
            }
        }
        let packed = match portable {
            true => pack::pack_or_warn(&full.outcome.recording, &progress),
            false => 0,
        };
        if !json {
            told(full, packed);
        }
        full.outcome.bytes_on_disk += packed;
        next = full.next.as_deref_mut();
    }
    if json {
        eprintln!("{}", answer(summary_json(&full)));
    }
    let last = &full.last().outcome;
    if with_report && let Err(error) = report::after_recording(&last.recording, terminal) {
        progress.warning(&format!("there is no report: {error}"));
    }
    Ok(Ran {
        code: exit::of_program(last.exit),
        recording: last.recording.clone(),
    })
}

/// The logpoints and the places whose writes are logged.
fn first(args: &Args) -> Result<FirstProbes, Error> {
    let first = args.probing.probes(args.pending).parsed();
    let first = first.map_err(server::Error::from)?;
    match first.script() {
        None => Ok(first),
        Some(script) => Err(Error::usage(
            format!("--full takes no JavaScript in a logpoint: {script}"),
            Some("write it as an expression, as for print: n > 3 && p->len == 0".to_owned()),
        )),
    }
}

/// Has the kernel send SIGTERM, which the program gets, when the process that started this one ends. If it ignores that, the recorder
/// kills it.
fn end_with(parent: u32) -> Result<(), Error> {
    let failed = |source: rustix::io::Errno| Error::io("follow the parent's end", source.into());
    process::set_parent_process_death_signal(Some(Signal::TERM)).map_err(failed)?;
    let now = process::getppid().map(|pid| pid.as_raw_nonzero().get());
    // It may have ended before.
    match now.and_then(|pid| u32::try_from(pid).ok()) == Some(parent) {
        true => Ok(()),
        false => Err(failed(rustix::io::Errno::SRCH)),
    }
}

/// Says what was recorded of one program.
fn told(full: &FullOutcome, packed: u64) {
    eprintln!("hindsight: {}{}", summary(full), pack::in_summary(packed));
    if let Some(death) = record::death_line(&full.outcome) {
        eprintln!("hindsight: {death}");
    }
    if let Some(line) = children_line(full.children) {
        eprintln!("hindsight: {line}");
    }
    if let Some(line) = became_line(full) {
        eprintln!("hindsight: {line}");
    }
}

/// `it started 2 processes, which are not recorded; record one by itself: hindsight record --full -- PROGRAM`.
fn children_line(children: u64) -> Option<String> {
    let what = match children {
        0 => return None,
        1 => "1 process, which is".to_owned(),
        children => format!("{} processes, which are", grouped(children)),
    };
    Some(format!(
        "it started {what} not recorded; record one by itself: hindsight record --full -- PROGRAM"
    ))
}

/// `it became /usr/bin/env, recorded as env.hindsight`.
fn became_line(full: &FullOutcome) -> Option<String> {
    let became = full.became.as_ref()?.to_string_lossy();
    let name = escaped(&became);
    Some(match &full.next {
        Some(next) => {
            let recording = next.outcome.recording.to_string_lossy();
            format!("it became {name}, recorded as {}", escaped(&recording))
        }
        None => format!("it became {name}: hindsight record --full -- {name}"),
    })
}

/// What `--full` is given: nothing, a time, or the name of functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    All,
    After(Duration),
    Calls(String),
}

/// Reads one.
///
/// # Errors
/// The time cannot be read.
pub fn parse_part(text: &str) -> Result<Part, String> {
    match text.strip_prefix("after:") {
        _ if text.is_empty() => Ok(Part::All),
        // Before a part, nothing is traced that could be counted, and another run would count otherwise.
        Some(place) if place.chars().all(|c| c.is_ascii_digit() || c == '+') => {
            Err("write a time with its unit, as after:2s, or a function, as --full=NAME: events have numbers only once they are recorded".to_owned())
        }
        Some(time) => crate::duration::with_unit(time).map(Part::After),
        None => Ok(Part::Calls(text.to_owned())),
    }
}

/// What is recorded when all of these are given.
fn part(given: &[Part]) -> Result<FullPart, Error> {
    match given {
        [Part::All] => return Ok(FullPart::All),
        [Part::After(time)] => return Ok(FullPart::After(*time)),
        _ => {}
    }
    let names = given.iter().map(|part| match part {
        Part::Calls(name) => Some(name.clone()),
        Part::All | Part::After(_) => None,
    });
    let names: Option<Vec<String>> = names.collect();
    names.map(FullPart::Calls).ok_or_else(|| {
        let help = "give one --full, one --full=after:TIME, or --full=NAME as often as you like";
        Error::usage(
            "these uses of --full do not go together".to_owned(),
            Some(help.to_owned()),
        )
    })
}

/// Refuses options that select what to record, or that need calls.
///
/// # Errors
/// One of them is given.
pub fn refuse(args: &Args) -> Result<(), Error> {
    let keeping = &args.keeping;
    let captured = &args.captured;
    let on_full: OnFull = keeping.on_full.into();
    let given = [
        ("--attach", args.attached.pid.is_some()),
        ("--children", args.family.children),
        ("--regs", captured.regs),
        ("--stack", captured.stack.is_some()),
        ("--strings", captured.strings),
        ("--pointees", captured.pointees),
        ("--watch", !captured.watch.is_empty()),
        (
            "--snapshot",
            keeping.snapshot != recorder::SnapshotTimes::default(),
        ),
        ("--on-full", on_full != OnFull::default()),
        ("--max-size", args.kept.max_size.is_some()),
    ];
    let Some((option, _)) = given.into_iter().find(|(_, is_given)| *is_given) else {
        return Ok(());
    };
    let help = match option {
        "--attach" => "start the program with it: hindsight record --full -- PROGRAM",
        "--max-size" => "leave it out: a recording of every instruction ends when the disk is full",
        "--children" => "record the process that matters: hindsight record --full -- PROGRAM",
        _ => "leave it out: every register and every byte is known at every instruction",
    };
    let message = format!("--full does not go with {option}");
    Err(Error::usage(message, Some(help.to_owned())))
}

/// One line: `app.hindsight: 2,481,002 instructions, 12,019 calls, 1 thread, 0.41 s, 2.1 MB (0.87 B/instruction)`.
fn summary(full: &FullOutcome) -> String {
    let outcome = &full.outcome;
    let name = outcome.recording.to_string_lossy();
    format!(
        "{}: {}, {}, {}, {}, {}{}",
        escaped(&name),
        count(full.instructions, "instruction"),
        record::counted(outcome, outcome.calls, "call"),
        count(outcome.threads, "thread"),
        duration(outcome.duration_ns),
        bytes(outcome.bytes_on_disk),
        per_instruction(full),
    )
}

fn per_instruction(full: &FullOutcome) -> String {
    if full.instructions == 0 {
        return String::new();
    }
    let ratio = full.outcome.bytes_on_disk as f64 / full.instructions as f64;
    match ratio {
        ratio if ratio < 0.001 => String::new(),
        ratio if ratio < 0.1 => format!(" ({ratio:.3} B/instruction)"),
        ratio => format!(" ({ratio:.2} B/instruction)"),
    }
}

fn summary_json(full: &FullOutcome) -> Value {
    let outcome = &full.outcome;
    let became = full.became.as_ref();
    let became = became.map(|program| program.to_string_lossy().into_owned());
    let mut facts = record::summary_json(outcome, became, Some(full.children));
    facts["instructions"] = json!(full.instructions);
    facts["next"] = json!(full.next.as_deref().map(summary_json));
    if let Some(facts) = facts.as_object_mut() {
        facts.remove("functions_skipped");
    }
    facts
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use recorder::{Counting, Exit, Outcome};

    use super::*;
    use expect_test::expect;

    #[test]
    fn a_part_begins_at_a_time_or_in_a_function() {
        let after = |text: &str| parse_part(text).ok();
        assert_eq!(after("after:2s"), Some(Part::After(Duration::from_secs(2))));
        assert_eq!(after("parse_*"), Some(Part::Calls("parse_*".to_owned())));
        for place in ["after:100", "after:5+3", "after:"] {
            assert_eq!(after(place), None, "{place}");
        }
    }

    fn full(instructions: u64) -> FullOutcome {
        FullOutcome {
            outcome: Outcome {
                recording: PathBuf::from("app.hindsight"),
                events: 12,
                calls: 0,
                threads: 1,
                gaps_lost: 0,
                duration_ns: 410_000_000,
                bytes_on_disk: 2_149_000,
                armed: 0,
                skipped: 0,
                exit: Exit::Code(0),
                death: None,
                incomplete: None,
                counting: Counting::Done,
                had_children: false,
            },
            instructions,
            children: 0,
            became: None,
            unplaced: Vec::new(),
            next: None,
        }
    }

    #[test]
    fn the_summary_is_one_line() {
        expect![
            "app.hindsight: 24,810,022 instructions, 0 calls, 1 thread, 0.41 s, 2.1 MB (0.087 B/instruction)"
        ]
        .assert_eq(&summary(&full(24_810_022)));
        expect!["app.hindsight: 0 instructions, 0 calls, 1 thread, 0.41 s, 2.1 MB"]
            .assert_eq(&summary(&full(0)));
    }

    #[test]
    fn what_is_not_recorded_is_told() {
        let first = FullOutcome {
            children: 2,
            became: Some(PathBuf::from("/usr/bin/env")),
            ..full(7)
        };
        expect!["it started 2 processes, which are not recorded; record one by itself: hindsight record --full -- PROGRAM"]
            .assert_eq(&children_line(first.children).unwrap());
        expect!["it became /usr/bin/env: hindsight record --full -- /usr/bin/env"]
            .assert_eq(&became_line(&first).unwrap());
        let both = FullOutcome {
            next: Some(Box::new(full(8))),
            ..first
        };
        expect!["it became /usr/bin/env, recorded as app.hindsight"]
            .assert_eq(&became_line(&both).unwrap());
        let facts = summary_json(&both);
        assert_eq!(facts["became"], "/usr/bin/env");
        assert_eq!(facts["next"]["instructions"], 8);
        assert_eq!((children_line(0), became_line(&full(7))), (None, None));
    }

    #[test]
    fn facts_without_calls_are_not_told() {
        let facts = summary_json(&full(7));
        assert_eq!(facts["instructions"], 7);
        assert_eq!(facts.get("functions_skipped"), None);
    }
}

//! `hindsight check`: reads every byte of a recording and verifies each checksum and each rule of the format.

mod replay;

use std::io::Write;
use std::path::{Path, PathBuf};

use query::runs::find;
use serde_json::{Value, json};
use server::quantity::{count, grouped};
use store::check::{Finding, Report, Severity};
use store::{Recording, recording::RecordingState};

use crate::error::Error;
use crate::exit;
use crate::json::answer;
use crate::output::{self, to_stdout};
use crate::progress::Progress;
use crate::recording::{OfCore, size_on_disk};
use crate::render::{Colour, Paint, Terminal, bytes, escaped};
use crate::report::without_numbers;
use crate::sets;

const EXAMPLES: &str = "\
Examples:
  hindsight check app
  hindsight check app --json | jq .result.findings
  hindsight check make.children               all recordings of a set
  hindsight check app --replay        made by record --full: runs it again, and compares
  hindsight check app && cp -r app.hindsight archive/

Exits with 0 when everything holds, 1 when something is damaged, 3 when the recording was not closed, or when its core file was cut or is gone.";

/// Verify every checksum and rule of a recording
///
/// Reads the whole recording. A note reports what is merely unusual; a report of damage names the file and the offset.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The recording, with or without .hindsight, a set of recordings, or a core file
    #[arg(value_name = "RECORDING")]
    recording: PathBuf,
    #[command(flatten)]
    core: OfCore,
    /// Run every instruction again, compare with what was recorded, and name the first contradiction
    #[arg(long)]
    replay: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Whole,
    Damaged,
    /// Intact as far as it goes, but the recorder has not closed it, or not yet.
    NotClosed(RecordingState),
    /// The recording is of a core file that lacks so many bytes at its end.
    Cut(u64),
    /// The recording is of a core file that is gone or was changed.
    NoCore,
}

/// Runs the command and returns the exit code of the verdict.
///
/// # Errors
/// When there is no recording or it cannot be read at all.
pub fn run(args: &Args, terminal: &Terminal) -> Result<u8, Error> {
    if let Some(dir) = sets::named(&args.recording) {
        return of_set(&dir, args.json, terminal);
    }
    let path = args.core.locate(&args.recording)?;
    let (mut report, mut verdict) = checked(&path, terminal)?;
    let lost = replay::lost(&path, &mut report);
    if !report.is_whole() {
        verdict = Verdict::Damaged;
    }
    let replayed = match args.replay {
        true => Some(replay::run(&path, terminal)?),
        false => None,
    };
    let verdict = match verdict {
        Verdict::Whole
            if replayed
                .as_ref()
                .is_some_and(|run| run.contradiction.is_some()) =>
        {
            Verdict::Damaged
        }
        verdict => verdict,
    };
    let mut out = output::stdout();
    let written = if args.json {
        let mut all = as_json(&path, &report, verdict);
        if let Some(replayed) = &replayed {
            all["replay"] = replay::as_json(replayed);
        }
        if let Some(lost) = &lost {
            all["not_recorded"] = json!(lost);
        }
        writeln!(out, "{:#}", answer(all))
    } else {
        let colour = terminal.stdout_colour;
        write_report(&mut out, &path, &report, verdict, colour)
            .and_then(|()| match &lost {
                Some(lost) => writeln!(out, "  end      not recorded: {}", escaped(lost)),
                None => Ok(()),
            })
            .and_then(|()| match &replayed {
                Some(replayed) => replay::write(&mut out, replayed, colour),
                None => Ok(()),
            })
    };
    written.and_then(|()| out.flush()).map_err(to_stdout)?;
    Ok(code(verdict))
}

fn code(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Whole => exit::DONE,
        Verdict::Damaged => exit::FAILED,
        Verdict::NotClosed(_) | Verdict::Cut(_) | Verdict::NoCore => exit::INCOMPLETE,
    }
}

/// Checks each recording of a set. Damage of one counts more than another that is not closed.
fn of_set(dir: &Path, json: bool, terminal: &Terminal) -> Result<u8, Error> {
    let mut out = output::stdout();
    let (mut reports, mut codes) = (Vec::new(), Vec::new());
    let folders = find(&[dir.to_owned()]).folders;
    for path in &folders {
        let (report, verdict) = checked(path, terminal)?;
        codes.push(code(verdict));
        if json {
            reports.push(as_json(path, &report, verdict));
        } else {
            let written = write_report(&mut out, path, &report, verdict, terminal.stdout_colour);
            written.map_err(to_stdout)?;
        }
    }
    let of = |code: u8| codes.iter().filter(|own| **own == code).count() as u64;
    let worst = [exit::FAILED, exit::INCOMPLETE]
        .into_iter()
        .find(|code| of(*code) > 0);
    let worst = worst.unwrap_or(exit::DONE);
    let written = if json {
        let verdict = match worst {
            exit::DONE => "whole",
            exit::FAILED => "damaged",
            _ => "incomplete",
        };
        writeln!(
            out,
            "{:#}",
            answer(
                json!({ "set": crate::json::path(dir), "verdict": verdict, "recordings": reports })
            )
        )
    } else {
        let parts = [
            (exit::DONE, "whole"),
            (exit::FAILED, "damaged"),
            (exit::INCOMPLETE, "not closed"),
        ];
        let parts = parts.into_iter().filter(|(code, _)| of(*code) > 0);
        let parts: String = parts
            .map(|(code, word)| format!(", {} {word}", grouped(of(code))))
            .collect();
        let all = count(folders.len() as u64, "recording");
        writeln!(out, "{}: {all}{parts}", escaped(&dir.to_string_lossy()))
    };
    written.and_then(|()| out.flush()).map_err(to_stdout)?;
    Ok(worst)
}

fn checked(path: &Path, terminal: &Terminal) -> Result<(Report, Verdict), Error> {
    let progress = Progress::new(terminal);
    let total = size_on_disk(path);
    let mut done = 0;
    let report = store::check::check(path, |bytes| {
        done += bytes;
        progress.reading(done, total);
    });
    progress.finish();
    let mut report = report.map_err(|source| Error::Store { source })?;
    let verdict = match verdict(path, &report) {
        Verdict::Whole => of_core(path, &mut report),
        verdict => verdict,
    };
    Ok((report, verdict))
}

/// Judges the core file that a whole recording is of, if it is of one.
fn of_core(path: &Path, report: &mut Report) -> Verdict {
    let Ok(recording) = Recording::open(path) else {
        return Verdict::Damaged;
    };
    match ::replay::cut_bytes(&recording) {
        Ok(None | Some(0)) => Verdict::Whole,
        Ok(Some(missing)) => Verdict::Cut(missing),
        Err(error) => {
            report.findings.push(Finding {
                severity: Severity::Odd,
                path: path.to_owned(),
                offset: None,
                what: error.to_string(),
            });
            Verdict::NoCore
        }
    }
}

fn verdict(path: &Path, report: &Report) -> Verdict {
    if !report.is_whole() {
        return Verdict::Damaged;
    }
    match Recording::open(path).map(|recording| recording.state()) {
        Ok(RecordingState::Closed) => Verdict::Whole,
        Ok(state) => Verdict::NotClosed(state),
        // The recording was intact a moment ago.
        Err(_) => Verdict::Damaged,
    }
}

fn write_report(
    out: &mut dyn Write,
    path: &Path,
    report: &Report,
    verdict: Verdict,
    colour: Colour,
) -> std::io::Result<()> {
    let name = path.to_string_lossy();
    let (paint, words) = match verdict {
        Verdict::Whole => (Paint::Heading, "whole".to_owned()),
        Verdict::Damaged => (Paint::Error, "damaged".to_owned()),
        Verdict::NotClosed(RecordingState::Live) => (
            Paint::Warning,
            "whole so far; it is being written".to_owned(),
        ),
        Verdict::NotClosed(_) => (
            Paint::Warning,
            "incomplete: the recorder did not close it; what is there is whole".to_owned(),
        ),
        Verdict::Cut(missing) => (
            Paint::Warning,
            format!(
                "cut: the core file lacks its last {}; what is there is whole",
                bytes(missing)
            ),
        ),
        Verdict::NoCore => (
            Paint::Warning,
            "incomplete: its core file is gone or was changed, and with it memory and registers; what is there is whole".to_owned(),
        ),
    };
    let words = colour.paint(paint, words);
    writeln!(out, "{}: {words}", escaped(&name))?;
    let read: u64 = report.files.iter().map(|file| file.len_bytes).sum();
    writeln!(
        out,
        "  read     {}, {}",
        count(report.files.len() as u64, "file"),
        bytes(read)
    )?;
    let columns = &report.columns;
    if columns.parts > 0 {
        writeln!(
            out,
            "  columns  {}, {} ({} without an end), {}, {}",
            count(columns.parts, "part"),
            count(columns.calls, "call"),
            grouped(columns.unfinished),
            count(columns.events, "other event"),
            count(columns.functions, "function"),
        )?;
    }
    let log = &report.log;
    if log.segments > 0 {
        writeln!(
            out,
            "  log      {}, {}, {}, {}, {} lost",
            count(log.segments, "segment"),
            count(log.frames, "frame"),
            count(log.records, "record"),
            count(log.threads, "thread"),
            grouped(log.lost),
        )?;
    }
    for finding in &report.findings {
        write_finding(out, path, finding, colour)?;
    }
    Ok(())
}

fn write_finding(
    out: &mut dyn Write,
    folder: &Path,
    finding: &Finding,
    colour: Colour,
) -> std::io::Result<()> {
    let paint = match finding.severity {
        Severity::Note => Paint::Dim,
        Severity::Odd => Paint::Warning,
        Severity::Damage => Paint::Error,
    };
    let word = severity(finding.severity);
    let path = finding.path.strip_prefix(folder).unwrap_or(&finding.path);
    write!(out, "  {} ", colour.paint(paint, format!("{word}:")))?;
    if path != Path::new("") {
        write!(out, "{}", escaped(&path.to_string_lossy()))?;
        if let Some(offset) = finding.offset {
            write!(out, " at offset {offset}")?;
        }
        write!(out, ": ")?;
    }
    writeln!(out, "{}", escaped(&without_numbers(&finding.what)))
}

fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Note => "note",
        Severity::Odd => "odd",
        Severity::Damage => "damage",
    }
}

fn as_json(path: &Path, report: &Report, verdict: Verdict) -> Value {
    let findings: Vec<Value> = report
        .findings
        .iter()
        .map(|finding| {
            json!({
                "severity": severity(finding.severity),
                "path": crate::json::path(&finding.path),
                "offset": finding.offset,
                "what": without_numbers(&finding.what),
            })
        })
        .collect();
    let (log, columns) = (&report.log, &report.columns);
    json!({
        "recording": crate::json::path(path),
        "verdict": match verdict {
            Verdict::Whole => "whole",
            Verdict::Damaged => "damaged",
            Verdict::NotClosed(RecordingState::Live) => "live",
            Verdict::NotClosed(_) => "incomplete",
            Verdict::Cut(_) => "cut",
            Verdict::NoCore => "no_core",
        },
        "missing_bytes": match verdict {
            Verdict::Cut(missing) => Some(missing),
            _ => None,
        },
        "files": report.files.len(),
        "bytes": report.files.iter().map(|file| file.len_bytes).sum::<u64>(),
        "columns": {
            "parts": columns.parts,
            "calls": columns.calls,
            "unfinished_calls": columns.unfinished,
            "other_events": columns.events,
            "functions": columns.functions,
            "events": columns.next_seq,
        },
        "log": {
            "segments": log.segments,
            "frames": log.frames,
            "blocks": log.blocks,
            "controls": log.controls,
            "watermarks": log.watermarks,
            "threads": log.threads,
            "records": log.records,
            "lost": log.lost,
            "torn_bytes": log.torn_bytes,
            "unreadable_bytes": log.unreadable_bytes,
        },
        "findings": findings,
    })
}

//! `check --replay`: every instruction of a recording is run again, and what comes out is compared with the log.

use std::io::{self, Write};
use std::path::Path;

use exact::{Contradiction, Verdict};
use serde_json::{Value, json};
use server::quantity::{count, grouped};
use store::Recording;
use store::check::{CheckedFile, Finding, Report, Severity};
use store::format::{INSTRUCTIONS_DIR, INSTRUCTIONS_FILE};
use store::recording::RecordingState;

use crate::error::Error;
use crate::progress::Progress;
use crate::render::{Colour, Paint, Terminal, bytes, escaped};

/// Runs the recording in a folder.
///
/// # Errors
/// It has not every instruction, or cannot be run here.
pub fn run(folder: &Path, terminal: &Terminal) -> Result<Verdict, Error> {
    let recording = Recording::open(folder).map_err(|source| Error::Store { source })?;
    if !recording.manifest().settings.has_every_instruction() {
        let name = folder.display();
        return Err(Error::usage(
            format!("{name} has calls, and not every instruction: it cannot be run again"),
            Some("record with: hindsight record --full -- PROGRAM".to_owned()),
        ));
    }
    let progress = Progress::new(terminal);
    let ran = exact::verify(&folder.join(INSTRUCTIONS_DIR), &mut |done, all| {
        progress.running_again(done, all);
        true
    });
    progress.finish();
    ran.map_err(|error| {
        Error::usage(
            format!("the recording cannot be run again: {error}"),
            Some(
                "it needs the same kind of processor, and the right to trace processes. With these, something is missing in it that the kernel or \
                 another process wrote: docs/full.md, Limits"
                    .to_owned(),
            ),
        )
    })
}

/// Reads the log of every instruction, if the recording has one. Returns why it does not go to the end of the program; damage is
/// added to the report.
pub fn lost(folder: &Path, report: &mut Report) -> Option<String> {
    let recording = Recording::open(folder).ok()?;
    let is_full = recording.manifest().settings.has_every_instruction();
    if !is_full || recording.state() == RecordingState::Live {
        return None;
    }
    let path = folder.join(INSTRUCTIONS_DIR);
    let log = path.join(INSTRUCTIONS_FILE);
    if let Ok(found) = log.metadata() {
        report.files.push(CheckedFile {
            path: log.clone(),
            len_bytes: found.len(),
        });
    }
    match exact::outline(&path) {
        Ok(outline) => outline.lost,
        Err(error) => {
            report.findings.push(Finding {
                severity: Severity::Damage,
                path: log,
                offset: None,
                what: error.to_string(),
            });
            None
        }
    }
}

/// Writes what was found, as lines of the report.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut dyn Write, verdict: &Verdict, colour: Colour) -> io::Result<()> {
    writeln!(
        out,
        "  replay   {}, registers compared {}, {} of memory{}",
        count(verdict.instructions, "instruction"),
        count(verdict.registers, "time"),
        bytes(verdict.memory),
        if verdict.whole {
            ""
        } else {
            "; not to the end"
        },
    )?;
    let Some(first) = &verdict.contradiction else {
        return Ok(());
    };
    let Contradiction {
        position,
        agreed,
        tid,
        what,
        expected,
        found,
    } = first;
    let word = colour.paint(Paint::Error, "damage:");
    let told = format!("{what}: recorded was {expected}; run again, it is {found}");
    writeln!(
        out,
        "  {word} at instruction {}, thread {tid}: {}; the registers that were compared up to instruction {} are as recorded, but memory is compared only at the end: the cause may lie before that",
        grouped(*position),
        escaped(&told),
        grouped(*agreed),
    )
}

/// Returns the same as JSON.
pub fn as_json(verdict: &Verdict) -> Value {
    json!({
        "instructions": verdict.instructions,
        "registers_compared": verdict.registers,
        "memory_bytes_compared": verdict.memory,
        "whole": verdict.whole,
        "contradiction": verdict.contradiction.as_ref().map(|first| json!({
            "position": first.position,
            "agreed": first.agreed,
            "tid": first.tid,
            "what": first.what,
            "expected": first.expected,
            "found": first.found,
        })),
    })
}

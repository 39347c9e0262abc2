//! What `hindsight info` says of a set: all of its recordings together.

use std::io::Write;

use server::inspect::signal_name;
use server::quantity::{count, duration, grouped};
use store::set::Process;

use super::Page;
use crate::error::Error;
use crate::exit;
use crate::json::answer;
use crate::output::{self, to_stdout};
use crate::recording::size_on_disk;
use crate::render::{Terminal, bytes, date};
use crate::sets::Whole;

/// Prints the facts of a set and returns the exit code.
///
/// # Errors
/// When stdout cannot be written to.
pub fn run(set: &Whole, as_json: bool, terminal: &Terminal) -> Result<u8, Error> {
    let mut out = output::stdout();
    let written = if as_json {
        writeln!(out, "{:#}", answer(set.as_json()))
    } else {
        let colour = terminal.stdout_colour;
        Page {
            out: &mut out,
            colour,
        }
        .set(set)
    };
    written.and_then(|()| out.flush()).map_err(to_stdout)?;
    Ok(exit::DONE)
}

impl Page<'_> {
    fn set(&mut self, set: &Whole) -> std::io::Result<()> {
        let recordings = set.recordings.len() + set.unreadable.len();
        let holds = format!(
            "{} ({} of {})",
            set.dir.display(),
            count(recordings as u64, "recording"),
            match store::set::number(&set.processes) {
                1 => "1 process".to_owned(),
                processes => format!("{} processes", grouped(processes as u64)),
            }
        );
        self.line("set", &holds)?;
        if let Some(first) = set.first() {
            self.line("program", &first.argv.join(" "))?;
        }
        self.line("started", &date(set.start_unix_ns()))?;
        let lasted = set.duration_ns().map_or("not known".to_owned(), duration);
        self.line("lasted", &lasted)?;
        self.line("ended", &set.ending().map_or("not known".to_owned(), ended))?;
        let failed = set.failed().len();
        if failed > 0 {
            self.line(
                "failed",
                &format!(
                    "{} of {}",
                    grouped(failed as u64),
                    grouped(store::set::number(&set.processes) as u64)
                ),
            )?;
        }
        let (programs, copies) = set.unrecorded();
        if programs + copies > 0 {
            let parts = [(programs, "program"), (copies, "copy")];
            let parts = parts.iter().filter(|(number, _)| *number > 0);
            let parts: Vec<String> = parts
                .map(|(number, word)| match (*word, *number) {
                    ("copy", 1) => "1 copy of its parent".to_owned(),
                    ("copy", number) => {
                        format!("{} copies of their parents", grouped(number as u64))
                    }
                    (word, number) => count(number as u64, word),
                })
                .collect();
            self.line("unrecorded", &parts.join(", "))?;
        }
        for (path, error) in &set.unreadable {
            self.line("unreadable", &format!("{}: {error}", path.display()))?;
        }
        writeln!(self.out)?;
        let (calls, events, is_partly) = set.rows();
        let partly = if is_partly {
            ", and those of recordings that are not closed"
        } else {
            ""
        };
        self.line(
            "rows",
            &format!(
                "{}, {}{partly}",
                count(calls, "call"),
                count(events, "event")
            ),
        )?;
        self.line("on disk", &bytes(size_on_disk(&set.dir)))?;
        writeln!(self.out)?;
        let name = store::shell::word(&set.dir.to_string_lossy());
        self.line("next", &format!("hindsight overview {name}"))?;
        self.line("", &format!("hindsight ls {name}"))
    }
}

/// Returns how a process ended.
fn ended(process: &Process) -> String {
    match (process.exit_code, process.exit_signal) {
        (Some(code), _) => format!("with exit code {code}"),
        (None, Some(signal)) => format!("by {}", signal_name(signal)),
        (None, None) if process.end_unix_ns.is_none() => "not yet, or out of sight".to_owned(),
        (None, None) => "not known how".to_owned(),
    }
}

//! `hindsight info`: what was recorded, when, how much and with which settings.

mod of_set;

use std::io::{self, Write};
use std::path::PathBuf;

use server::quantity::duration;
use server::quantity::{count, grouped};
use store::recording::RecordingState;

use crate::ask::Asker;
use crate::error::Error;
use crate::exit;
use crate::facts::{End, Facts};
use crate::json::answer;
use crate::listing;
use crate::output::{self, to_stdout};
use crate::recording::OfCore;
use crate::render::{Colour, Paint, Terminal, bytes, date, escaped, per};
use crate::sets::{self, Whole};

const EXAMPLES: &str = "\
Examples:
  hindsight info app
  hindsight info make.children                what a set of record --children has as a whole
  hindsight info app --json | jq .result.rows.calls
  hindsight info app --json | jq -e '.result | .state == \"closed\" and .lost == 0'";

/// How many modules with recorded functions are named. Modules without are only counted.
const MODULES_SHOWN: usize = 20;

/// Tables that only live control or options fill. An empty one is not shown.
const SELDOM: [&str; 7] = [
    "pauses",
    "logpoints",
    "writes",
    "exceptions",
    "syscalls",
    "files",
    "processes",
];

/// Show what a recording holds
///
/// Shows the program, when and where it ran, how it ended, how much was recorded and lost, the size on disk and the settings.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The recording, with or without .hindsight, a set of recordings, or a core file
    #[arg(value_name = "RECORDING")]
    recording: PathBuf,
    #[command(flatten)]
    core: OfCore,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command and returns the exit code.
///
/// # Errors
/// When there is no such recording or it cannot be read.
pub fn run(args: &Args, terminal: &Terminal) -> Result<u8, Error> {
    if let Some(dir) = sets::named(&args.recording) {
        return of_set::run(&Whole::read(&dir)?, args.json, terminal);
    }
    let mut asker = Asker::open(&args.core.locate(&args.recording)?)?;
    let facts = Facts::gather(&mut asker)?;
    let mut out = output::stdout();
    let written = if args.json {
        writeln!(out, "{:#}", answer(facts.as_json()))
    } else {
        let colour = terminal.stdout_colour;
        Page {
            out: &mut out,
            colour,
        }
        .write(&facts)
    };
    written.and_then(|()| out.flush()).map_err(to_stdout)?;
    Ok(exit::DONE)
}

struct Page<'a> {
    out: &'a mut dyn Write,
    colour: Colour,
}

impl Page<'_> {
    fn write(&mut self, facts: &Facts) -> io::Result<()> {
        let manifest = &facts.manifest;
        self.line(
            "recording",
            &format!("{} ({})", facts.recording.display(), state(facts)),
        )?;
        self.line("program", &manifest.argv.join(" "))?;
        if !facts.labels.is_empty() {
            self.line("labels", &listing::labels(&facts.labels))?;
        }
        self.line("folder", &manifest.cwd)?;
        self.line("started", &date(manifest.start_unix_ns))?;
        let lasted = match manifest.settings.has_every_instruction() {
            true => count(facts.duration_ns, "instruction"),
            false => duration(facts.duration_ns),
        };
        self.line("lasted", &lasted)?;
        self.line("ended", &end(&facts.end, facts.state))?;
        let host = [manifest.host.kernel.as_str(), manifest.host.cpu.as_str()];
        let known: Vec<&str> = host.into_iter().filter(|name| !name.is_empty()).collect();
        if !known.is_empty() {
            self.line("on", &known.join(", "))?;
        }
        self.line("made by", &made_by(facts))?;
        self.line("settings", &settings(facts))?;
        writeln!(self.out)?;
        self.numbers(facts)?;
        self.modules(facts)
    }

    fn numbers(&mut self, facts: &Facts) -> io::Result<()> {
        let rows: Vec<String> = facts
            .tables
            .iter()
            .filter(|(table, rows)| *rows > 0 || !SELDOM.contains(table))
            // A recording always has the process itself.
            .filter(|(table, rows)| *rows > 1 || *table != "processes")
            .map(|(table, rows)| match (rows, table.strip_suffix('s')) {
                (1, Some(one)) => format!("1 {one}"),
                _ => format!("{} {table}", grouped(*rows)),
            })
            .collect();
        self.line("rows", &rows.join(", "))?;
        if facts.unfinished > 0 {
            self.line(
                "unfinished",
                &format!("{} had not returned", count(facts.unfinished, "call")),
            )?;
        }
        self.line("lost", &lost(facts))?;
        let sizes: Vec<String> = facts
            .disk
            .iter()
            .skip(1)
            .filter(|(_, n)| *n > 0)
            .map(|(name, n)| format!("{name} {}", bytes(*n)))
            .collect();
        let total = facts.disk.first().map_or(0, |(_, n)| *n);
        let per_call = per(total, facts.rows_of("calls"));
        let per_call = per_call
            .map(|n| format!(", {n} B/call"))
            .unwrap_or_default();
        self.line(
            "on disk",
            &format!("{} ({}){per_call}", bytes(total), sizes.join(", ")),
        )
    }

    fn modules(&mut self, facts: &Facts) -> io::Result<()> {
        let traced: Vec<_> = facts
            .modules
            .iter()
            .filter(|module| module.functions > 0)
            .collect();
        if traced.is_empty() && facts.modules.is_empty() {
            return Ok(());
        }
        writeln!(self.out)?;
        for (i, module) in traced.iter().take(MODULES_SHOWN).enumerate() {
            let build = module
                .build_id
                .as_deref()
                .map(|id| format!(", build id {id}"))
                .unwrap_or_default();
            let text = format!(
                "{}: {}{build}",
                module.path,
                count(module.functions, "function")
            );
            self.line(if i == 0 { "modules" } else { "" }, &text)?;
        }
        let unnamed = facts.modules.len() - traced.len().min(MODULES_SHOWN);
        if unnamed > 0 {
            let unnamed = grouped(unnamed as u64);
            if traced.is_empty() {
                self.line("modules", &format!("{unnamed}; see the table modules"))?;
            } else {
                self.line("", &format!("and {unnamed} more; see the table modules"))?;
            }
        }
        Ok(())
    }

    fn line(&mut self, name: &str, text: &str) -> io::Result<()> {
        let pad = 11usize.saturating_sub(name.len());
        writeln!(
            self.out,
            "{}{:pad$}{}",
            self.colour.paint(Paint::Heading, name),
            "",
            escaped(text)
        )
    }
}

fn state(facts: &Facts) -> String {
    match (facts.state, &facts.why_incomplete) {
        (RecordingState::Closed, _) => "closed cleanly".to_owned(),
        (RecordingState::Live, _) => "being written".to_owned(),
        (RecordingState::Interrupted, Some(why)) => format!("incomplete: {why}"),
        (RecordingState::Interrupted, None) => {
            "incomplete: its recorder did not close it".to_owned()
        }
    }
}

fn end(end: &End, state: RecordingState) -> String {
    match (end, state) {
        (End::Code(code), _) => format!("with exit code {code}"),
        (End::Signal(signal), _) => format!("by {signal}"),
        (End::Detached, _) => "not: the recorder detached and the program kept running".to_owned(),
        (End::NotSeen, RecordingState::Live) => "not yet".to_owned(),
        (End::NotSeen, _) => "after the end of the recording".to_owned(),
    }
}

fn made_by(facts: &Facts) -> String {
    let manifest = &facts.manifest;
    let frida = manifest
        .frida_version
        .as_deref()
        .map(|version| format!(", Frida {version}"))
        .unwrap_or_default();
    format!(
        "hindsight {}{frida}, format {}",
        manifest.hindsight_version, manifest.format_version
    )
}

fn settings(facts: &Facts) -> String {
    let settings = &facts.manifest.settings;
    let filters = match settings.filters.as_slice() {
        [] => "all functions".to_owned(),
        filters => filters.join(" "),
    };
    let log = if settings.keep_log { ", log kept" } else { "" };
    let captures = match settings.captures.as_slice() {
        [] => String::new(),
        captures => format!("; with {}", captures.join(", ")),
    };
    let logged = match settings.log_writes.as_slice() {
        [] => String::new(),
        places => format!("; writes to {} logged", places.join(", ")),
    };
    let aslr = match settings.no_aslr {
        true => "; the same addresses in each run (--no-aslr)",
        false => "",
    };
    format!(
        "{filters}; {} when full{log}{captures}{logged}{aslr}",
        facts.on_full()
    )
}

fn lost(facts: &Facts) -> String {
    let gaps = facts.rows_of("gaps");
    let events = match (facts.lost, facts.unknown_gaps) {
        (lost, 0) => count(lost, "event"),
        (0, _) => "an unknown number of events".to_owned(),
        (lost, _) => format!("at least {}", count(lost, "event")),
    };
    let torn = match facts.torn_bytes {
        0 => String::new(),
        n => format!("; the log ends with {} of an unfinished frame", bytes(n)),
    };
    match gaps {
        0 => format!("nothing{torn}"),
        gaps => format!("{events} in {}{torn}", count(gaps, "gap")),
    }
}

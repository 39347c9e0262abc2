//! Which program was recorded, for how long, and how much of it.

use serde::Serialize;
use store::manifest::EVERY_INSTRUCTION;
use store::recording::RecordingState;

use super::source::{Source, told};
use crate::error::Result;

/// The state of a recording that is being written.
const LIVE: &str = "live";

/// What was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Program {
    /// The command line.
    pub argv: Vec<String>,
    /// Its working directory.
    pub cwd: String,
    /// `closed`, `live` or `incomplete`.
    pub state: &'static str,
    /// How long it was recorded, in ns since the process began, or how many instructions; `None`: they are still to be counted.
    pub duration_ns: Option<u64>,
    /// How many events there are; the last one has one less as its `seq`.
    pub events: u64,
    /// How many calls, without those that a debugger had it make.
    pub calls: u64,
    /// How many functions were called.
    pub functions: u64,
    /// The filters that chose the functions, as given; none: the program's own.
    pub filters: Vec<String>,
    /// What was captured with calls.
    pub captures: Vec<String>,
    /// Places where events were lost.
    pub gaps: u64,
    /// How many events were lost there, if known.
    pub lost: u64,
    /// The first such place.
    pub first_gap: Option<u64>,
    /// What a core file lacks, and which files are not those of the program.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

impl Program {
    /// Returns whether its times count instructions.
    #[must_use]
    pub fn counts_instructions(&self) -> bool {
        self.captures.iter().any(|own| own == EVERY_INSTRUCTION)
    }

    /// Returns whether its instructions, events and calls are still to be counted: that is done when the program has ended.
    #[must_use]
    pub fn is_to_be_counted(&self) -> bool {
        self.counts_instructions() && self.state == LIVE
    }
}

/// Describes the program. Its calls and functions are already counted; `until_ns`: up to when it is known, if it runs.
///
/// # Errors
/// The recording cannot be read.
pub fn program(
    source: &Source<'_>,
    (calls, functions): (u64, u64),
    until_ns: Option<i64>,
) -> Result<Program> {
    let extent = source.session().extent();
    let manifest = source.session().reader().recording().manifest();
    let sql = "select count(*), sum(lost), min(seq) from gaps where reason <> 'memory not copied'";
    let gaps = source.ask(sql)?;
    let gap = |column| gaps.first().and_then(|row| row.count(column));
    // Times count from the beginning of the recording, before the program was there.
    let began_ns = extent
        .last_ts_ns
        .saturating_sub_unsigned(extent.duration_ns);
    let mut program = Program {
        argv: manifest.argv.clone(),
        cwd: manifest.cwd.clone(),
        state: match extent.state {
            RecordingState::Closed => "closed",
            RecordingState::Live => LIVE,
            RecordingState::Interrupted => "incomplete",
        },
        duration_ns: until_ns
            .and_then(|until_ns| u64::try_from(until_ns - began_ns).ok())
            .or(Some(extent.duration_ns)),
        events: extent.events,
        calls,
        functions,
        filters: manifest.settings.filters.clone(),
        captures: manifest.settings.captures.clone(),
        gaps: gap(0).unwrap_or(0),
        lost: gap(1).unwrap_or(0),
        first_gap: gap(2),
        remarks: match source.timeline() {
            Some(timeline) => told(replay::remarks(timeline))?,
            None => Vec::new(),
        },
    };
    if program.is_to_be_counted() {
        program.duration_ns = None;
    }
    Ok(program)
}

//! Prepares an opened recording for queries.

use store::columns::SealedFile;
use store::recording::RecordingState;
use store::seal::SealedPart;
use store::{Reader, Recording};

use crate::definitions::Definitions;
use crate::error::Result;
use crate::parts::OpenedPart;
use crate::state::States;
use crate::tables::Sources;

/// The part of a recording that a session sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Whether the recording was closed, live or interrupted when it was opened.
    pub state: RecordingState,
    /// Number of events; the last one has `seq` one less.
    pub events: u64,
    /// Time of the last event, in ns since the recording began.
    pub last_ts_ns: i64,
    /// How long the program was recorded, in ns.
    pub duration_ns: u64,
    /// Bytes at the end of the log that are not a whole frame and were omitted.
    pub torn_bytes: u64,
}

impl Extent {
    /// Returns the extent of `reader`.
    pub fn of(reader: &Reader) -> Self {
        Self {
            state: reader.recording().state(),
            events: reader.events(),
            last_ts_ns: reader.last_ts_ns(),
            duration_ns: reader.duration_ns(),
            torn_bytes: reader.torn_bytes(),
        }
    }
}

/// Returns the sources of a recording's tables; `states` evaluates at events.
///
/// # Errors
/// When a sealed file cannot be read.
pub fn sources(reader: &Reader, states: &States) -> Result<Sources> {
    let mut definitions = Definitions::default();
    reader.definitions(|control| definitions.add(control))?;
    let files = |file: fn(&SealedPart) -> (&SealedFile, u64)| {
        let parts = reader.parts().iter().map(file);
        let filled = parts.filter(|(_, rows)| *rows > 0);
        filled
            .map(|(file, _)| OpenedPart::open(file))
            .collect::<Result<Vec<_>>>()
    };
    let calls = files(|part| (&part.calls, part.part.calls))?;
    let events = files(|part| (&part.events, part.part.events))?;
    let with_states = files(|part| (&part.states, part.part.states))?;
    let recording = reader.recording();
    Ok(Sources::new(
        &calls,
        &events,
        &with_states,
        definitions,
        recording,
        states,
    ))
}

/// Returns sources without rows, for the properties that the tables of all recordings share.
pub fn no_sources(recording: &Recording) -> Sources {
    let states = States::of_none();
    Sources::new(&[], &[], &[], Definitions::default(), recording, &states)
}

//! What a report is made of: the sealed files of calls, the definitions, and when threads were stopped.

use std::sync::Arc;

use replay::Timeline;
use store::columns::EventsFile;

use super::away::Away;
use super::stops::Stops;
use crate::asking::execution;
use crate::definitions::Definitions;
use crate::error::Result;
use crate::overview::now_ns;
use crate::parts::{OpenedPart, PartFile, has_only_entries};
use crate::state::{States, failed};

/// The sources of a report.
#[derive(Debug)]
pub struct Source {
    pub(crate) calls: Vec<Arc<PartFile>>,
    pub(crate) definitions: Arc<Definitions>,
    pub(crate) states: States,
    /// Only the entries of calls are recorded, so there are no times.
    pub(crate) only_entries: bool,
}

impl Source {
    /// Takes the files of calls, in order.
    pub fn new(calls: &[OpenedPart], definitions: &Arc<Definitions>, states: &States) -> Self {
        let groups = || calls.iter().flat_map(|part| part.footer.row_groups());
        Source {
            only_entries: has_only_entries(groups()),
            calls: calls
                .iter()
                .map(|opened| Arc::clone(&opened.part))
                .collect(),
            definitions: Arc::clone(definitions),
            states: states.clone(),
        }
    }

    /// Gives back the memory of the footers that a query over all calls has read.
    pub(crate) fn forget_pages(&self) {
        for part in &self.calls {
            part.forget_pages();
        }
    }

    /// Returns the timeline; `None` if no recording is opened, or it has no events.
    ///
    /// # Errors
    /// The recording cannot be read.
    pub(crate) fn timeline(&self) -> Result<Option<&Timeline>> {
        match self.states.reader() {
            Some(reader) if reader.events() > 0 => {
                Ok(Some(self.states.timeline().map_err(execution)?))
            }
            _ => Ok(None),
        }
    }

    /// Returns a function's name, or its number if it has none.
    pub(crate) fn function_name(&self, id: u32) -> String {
        match self.definitions.function(id as usize) {
            Some(function) => function.name.clone(),
            None => format!("function {id}"),
        }
    }

    /// Tells whether nothing was captured with calls.
    pub(super) fn is_plain(&self) -> bool {
        let recording = self.states.reader().map(|reader| reader.recording());
        recording.is_none_or(|recording| !recording.manifest().settings.captures_with_calls())
    }

    /// Returns how long a thread waited for a processor, in ns, if that is known. Where times count instructions, no thread did.
    pub(super) fn processor_wait_ns(&self, tid: u32) -> Option<u64> {
        let recording = self.states.reader().map(|reader| reader.recording());
        match recording.is_some_and(|own| own.manifest().settings.has_every_instruction()) {
            true => Some(0),
            false => self.definitions.processor_waits().get(&tid).copied(),
        }
    }

    /// Finds out which time was nobody's.
    ///
    /// # Errors
    /// The recording cannot be read.
    pub(super) fn away(&self) -> Result<Away> {
        let Some(reader) = self.states.reader() else {
            return Ok(Away::default());
        };
        let until_ns = match (now_ns(reader), self.timeline()?) {
            (Some(now_ns), _) => now_ns,
            (None, None) => reader.last_ts_ns(),
            (None, Some(timeline)) => timeline
                .ended_ns()
                .map_err(|error| execution(failed(error)))?,
        };
        let mut stops = Stops::default();
        let filled = reader.parts().iter().filter(|part| part.part.events > 0);
        for part in filled {
            let file = EventsFile::open(&part.events)?;
            for page in 0..file.pages().len() {
                stops.read(&file, page)?;
            }
        }
        Ok(stops.away(until_ns))
    }
}

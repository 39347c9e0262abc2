//! What a report is made of: the sealed files of calls, the definitions, and when threads were held.

use std::sync::Arc;

use super::away::Away;
use crate::definitions::Definitions;
use crate::error::Result;
use crate::parts::PartFile;
use crate::state::States;

/// The sources of a report.
#[derive(Debug)]
pub struct Source {
    pub(super) calls: Vec<Arc<PartFile>>,
    pub(super) definitions: Arc<Definitions>,
    states: States,
}

impl Source {
    /// Takes the files of calls, in order.
    pub fn new(calls: &[Arc<PartFile>], definitions: &Arc<Definitions>, states: &States) -> Self {
        Source {
            calls: calls.to_vec(),
            definitions: Arc::clone(definitions),
            states: states.clone(),
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
        Ok(Away::new(reader.last_ts_ns(), Vec::new()))
    }
}

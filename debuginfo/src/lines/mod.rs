//! Lines and addresses: the code of a line, the line of an address, and where a function's body begins.
//!
//! Line tables and functions are decoded unit by unit, on the first query for an address or a file of the unit.
//! [`AddressSpace`] takes and returns addresses of the process. Everything below it uses addresses of the file.

mod by_name;
mod functions;
mod line_goal;
mod model;
mod past;
mod pattern;
mod prologue;
mod resolve;
mod scopes;
mod source;
mod steps;
mod table;
mod units;

use std::sync::Arc;

pub use line_goal::{LineGoal, Look};
pub use model::{FunctionPlace, InlinedCall, InlinedCopy, LineError, LinePlace, SourceLine};
pub use pattern::names_function;
pub(crate) use pattern::{key, without_tags};
pub use source::{SourceCopies, SourceError, SourceText, with_source_copies};
pub use steps::{CallAt, Standing, StepLine};

pub(crate) use by_name::ByName;
pub(crate) use prologue::around as prologue_of;
pub(crate) use units::{Compiler, Units};

use crate::address_space::{AddressSpace, Mapped};

impl crate::Module {
    /// Returns all source files that the module's line tables name. Reads the header of every line table.
    #[must_use]
    pub fn source_files(&self) -> Vec<Arc<str>> {
        self.units().all_files(self).to_vec()
    }
}

impl AddressSpace {
    /// Returns the line of the instruction at `address`. Inside an inlined function, this is the line there. Returns
    /// `None` for code without line tables or without a line.
    #[must_use]
    pub fn line_at(&self, address: u64) -> Option<SourceLine> {
        let mapped = self.at(address)?;
        let unit = mapped.module.units().find(mapped.svma(address).0)?;
        let lines = unit.lines(&mapped.module);
        lines.source_line(lines.row_at(mapped.svma(address).0)?)
    }

    /// Returns all source files that the line tables of the modules name, sorted and without duplicates. Reads the
    /// header of every line table.
    #[must_use]
    pub fn source_files(&self) -> Vec<Arc<str>> {
        let files = |m: &Mapped| m.module.units().all_files(&m.module).to_vec();
        let mut all: Vec<Arc<str>> = self.modules().iter().flat_map(files).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

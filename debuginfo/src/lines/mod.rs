//! Lines and addresses: which code belongs to a line, which line to an address, where functions begin in earnest.
//!
//! Line tables and functions are decoded unit by unit, when an address or a file of the unit is first asked about.
//! Questions and answers of [`AddressSpace`] are in addresses of the process; everything below it uses those of the file.

mod by_name;
mod functions;
mod model;
mod pattern;
mod prologue;
mod resolve;
mod scopes;
mod source;
mod steps;
mod table;
mod units;

use std::sync::Arc;

pub use model::{FunctionPlace, LineError, LinePlace, SourceLine};
pub use source::{SourceCopies, SourceError, SourceText, with_source_copies};
pub use steps::{CallAt, Standing, StepLine};

pub(crate) use by_name::ByName;
pub(crate) use prologue::around as prologue_of;
pub(crate) use units::Units;

use crate::address_space::{AddressSpace, Mapped};

impl crate::Module {
    /// Returns all source files that the module's line tables name. Reads the header of every line table.
    #[must_use]
    pub fn source_files(&self) -> Vec<Arc<str>> {
        self.units().all_files(self).to_vec()
    }
}

impl AddressSpace {
    /// Returns the line that the instruction at `address` belongs to; inside an inlined function, the line there. `None`
    /// for code without line tables and for code that no line stands for.
    #[must_use]
    pub fn line_at(&self, address: u64) -> Option<SourceLine> {
        let mapped = self.at(address)?;
        let unit = mapped.module.units().find(mapped.svma(address).0)?;
        let lines = unit.lines(&mapped.module);
        lines.source_line(lines.row_at(mapped.svma(address).0)?)
    }

    /// Returns all source files that the line tables of the modules name, sorted, each once. Reads the header of every
    /// line table.
    #[must_use]
    pub fn source_files(&self) -> Vec<Arc<str>> {
        let files = |m: &Mapped| m.module.units().all_files(&m.module).to_vec();
        let mut all: Vec<Arc<str>> = self.modules().iter().flat_map(files).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

//! The modules of one process at one moment, by address: the bridge between addresses in the process and in files.

use std::ops::Range;
use std::sync::Arc;

use crate::model::Svma;
use crate::module::Module;

/// A module as it is mapped.
#[derive(Debug, Clone)]
pub struct Mapped {
    /// The file's answers.
    pub module: Arc<Module>,
    /// The recording's number of it.
    pub number: u32,
    /// Added to an [`Svma`] it gives the address in the process, modulo 2^64.
    pub bias: u64,
    /// From its first to its last mapped byte.
    pub range: Range<u64>,
    /// It belongs to the system, not to the program: stepping does not stop in it, though it may have line tables.
    pub is_system: bool,
}

impl Mapped {
    /// Converts an address of the process.
    #[must_use]
    pub fn svma(&self, address: u64) -> Svma {
        Svma(address.wrapping_sub(self.bias))
    }

    /// Converts an address of the file.
    #[must_use]
    pub fn address(&self, svma: Svma) -> u64 {
        svma.0.wrapping_add(self.bias)
    }
}

/// All modules of a process.
#[derive(Debug, Clone, Default)]
pub struct AddressSpace {
    modules: Vec<Mapped>,
    hidden: Option<Mapped>,
}

impl AddressSpace {
    /// Makes one of modules in the order in which they were loaded (the program first).
    #[must_use]
    pub fn new(modules: Vec<Mapped>) -> AddressSpace {
        AddressSpace {
            modules,
            hidden: None,
        }
    }

    /// Adds a module that is not the program's: backtraces go through its frames and do not show them.
    #[must_use]
    pub fn with_hidden(self, hidden: Option<Mapped>) -> AddressSpace {
        AddressSpace { hidden, ..self }
    }

    /// Returns the module that is not the program's.
    #[must_use]
    pub fn hidden(&self) -> Option<&Mapped> {
        self.hidden.as_ref()
    }

    /// Tells whether code at `address` is not the program's.
    pub(crate) fn is_hidden(&self, address: u64) -> bool {
        let hidden = self.hidden.as_ref();
        hidden.is_some_and(|hidden| hidden.range.contains(&address))
    }

    /// As [`Self::at`], and the hidden module too.
    pub(crate) fn unwound_at(&self, address: u64) -> Option<&Mapped> {
        match self.is_hidden(address) {
            true => self.hidden.as_ref(),
            false => self.at(address),
        }
    }

    /// Returns the modules in the order in which they were loaded.
    #[must_use]
    pub fn modules(&self) -> &[Mapped] {
        &self.modules
    }

    /// Finds the module that is mapped at `address`.
    #[must_use]
    pub fn at(&self, address: u64) -> Option<&Mapped> {
        self.modules.iter().find(|m| m.range.contains(&address))
    }
}

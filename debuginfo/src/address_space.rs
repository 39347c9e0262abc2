//! The modules of one process at one moment, by address. Maps addresses in the process to addresses in files.

use std::ops::Range;
use std::sync::Arc;

use crate::model::Svma;
use crate::module::Module;

/// A module as it is mapped into a process.
#[derive(Debug, Clone)]
pub struct Mapped {
    /// The module's file.
    pub module: Arc<Module>,
    /// The module's number in the recording.
    pub number: u32,
    /// The difference from an [`Svma`] to the address in the process, modulo 2^64.
    pub bias: u64,
    /// The addresses from the first to the last byte, `.bss` included: see [`Module::extent`].
    pub range: Range<u64>,
    /// The module belongs to the system, not to the program. Stepping does not stop in it, even if it has line tables.
    pub is_system: bool,
}

impl Mapped {
    /// Converts an address of the process to an address of the file.
    #[must_use]
    pub fn svma(&self, address: u64) -> Svma {
        Svma(address.wrapping_sub(self.bias))
    }

    /// Converts an address of the file to an address of the process.
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
    /// Makes an address space of modules in load order (the program first).
    #[must_use]
    pub fn new(modules: Vec<Mapped>) -> AddressSpace {
        AddressSpace {
            modules,
            hidden: None,
        }
    }

    /// Adds a module that is not part of the program. Backtraces pass through its frames but do not show them.
    #[must_use]
    pub fn with_hidden(self, hidden: Option<Mapped>) -> AddressSpace {
        AddressSpace { hidden, ..self }
    }

    /// Returns the module that is not part of the program.
    #[must_use]
    pub fn hidden(&self) -> Option<&Mapped> {
        self.hidden.as_ref()
    }

    /// Returns whether code at `address` is not part of the program.
    pub(crate) fn is_hidden(&self, address: u64) -> bool {
        let hidden = self.hidden.as_ref();
        hidden.is_some_and(|hidden| hidden.range.contains(&address))
    }

    /// Like [`Self::at`], but also finds the hidden module.
    pub(crate) fn unwound_at(&self, address: u64) -> Option<&Mapped> {
        match self.is_hidden(address) {
            true => self.hidden.as_ref(),
            false => self.at(address),
        }
    }

    /// Returns the modules in load order.
    #[must_use]
    pub fn modules(&self) -> &[Mapped] {
        &self.modules
    }

    /// Finds the module mapped at `address`.
    #[must_use]
    pub fn at(&self, address: u64) -> Option<&Mapped> {
        self.modules.iter().find(|m| m.range.contains(&address))
    }
}

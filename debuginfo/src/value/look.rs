//! The context for reading values.

use crate::address_space::AddressSpace;
use crate::machine::Machine;

/// The context for reading values: the modules, and a moment of the process.
#[derive(Clone, Copy)]
pub struct Look<'a> {
    /// The modules, for symbols and places of static members.
    pub space: &'a AddressSpace,
    /// Registers and memory.
    pub machine: &'a dyn Machine,
}

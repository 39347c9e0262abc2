//! What values are looked at with.

use crate::address_space::AddressSpace;
use crate::machine::Machine;

/// What values are looked at with: the modules, and the moment.
#[derive(Clone, Copy)]
pub struct Look<'a> {
    /// The modules, for symbols and places of static members.
    pub space: &'a AddressSpace,
    /// Registers and memory.
    pub machine: &'a dyn Machine,
}

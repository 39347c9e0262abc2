//! What values are looked at with.

use crate::machine::Machine;
use crate::space::Space;

/// What values are looked at with: the modules, and the moment.
#[derive(Clone, Copy)]
pub struct Look<'a> {
    /// The modules, for symbols and places of static members.
    pub space: &'a Space,
    /// Registers and memory.
    pub machine: &'a dyn Machine,
}

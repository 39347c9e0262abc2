//! Traps and jumps in the program's code: the sites at which threads are to stop, and the probes that the program
//! evaluates there itself.

mod addresses;
pub(crate) mod compiled;
pub(crate) mod jumps;
pub(crate) mod orphan_traps;
pub(crate) mod sites;
pub(crate) mod unwind_targets;

use self::{
    compiled::Compiling, orphan_traps::TrapHandler, sites::Sites, unwind_targets::UnwindTargets,
};
/// Everything changed in the program's code for live control.
#[derive(Debug, Default)]
pub(crate) struct Breakpoints {
    pub sites: Sites,
    /// The probes that the program evaluates itself.
    pub compiling: Compiling,
    pub unwind_targets: UnwindTargets,
    /// The runtime's SIGTRAP handler in the program, unless the program has its own.
    pub orphan_handler: Option<TrapHandler>,
}

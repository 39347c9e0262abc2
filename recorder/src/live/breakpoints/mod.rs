//! Traps and jumps in the program's code: the sites that somebody wants a stop at, and what the program judges there itself.

pub(crate) mod compiled;
pub(crate) mod jumps;
pub(crate) mod orphan_traps;
pub(crate) mod sites;
pub(crate) mod unwind_targets;

use self::{
    compiled::Compiling, orphan_traps::TrapHandler, sites::Sites, unwind_targets::UnwindTargets,
};

/// All that was changed in the program's code for live control.
#[derive(Debug, Default)]
pub(crate) struct Breakpoints {
    pub sites: Sites,
    /// What the program judges itself.
    pub compiling: Compiling,
    pub unwind_targets: UnwindTargets,
    /// What handles SIGTRAP in the program unless it has a handler of its own.
    pub orphan_handler: Option<TrapHandler>,
}

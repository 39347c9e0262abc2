//! The frame bases that compilers state as a register: rbp or rsp, as they are once the prologue has run.
//!
//! Before that, and behind the end of the frame, the register holds something else. But it keeps one distance to the
//! canonical frame address while the function runs, which the unwind tables tell at every instruction.

use std::sync::Arc;

use super::Site;
use crate::machine::Register;
use crate::module::Module;
use crate::unwind::{frame_distance, tail_calls};

/// By how much the canonical frame address exceeds the register that the function around `svma` states as its frame base;
/// `None` if the unwind tables do not tell.
pub(super) fn distance(module: &Arc<Module>, svma: u64, register: Register) -> Option<i64> {
    if !matches!(register, Register::RBP | Register::RSP) {
        return None;
    }
    let entry = tail_calls::entry_of(module, svma)?;
    frame_distance(module, entry, register.0)
}

/// The address in the module's file that `site` looks variables up at.
pub(super) fn svma_of(site: &Site<'_>, bias: u64) -> u64 {
    site.lookup_pc.wrapping_sub(bias)
}

//! Plans the patches where the unwinder and longjmp leave frames, so that the recording tells when calls end without a
//! return.

use debuginfo::{FrameLeaver, Held, Module, Register};

use super::LoadedModule;
use crate::displace::{Displacement, Limits, branches_into, plan};

/// The runtime's code before frames are left by the unwinder and by longjmp, as its replacements name it.
pub(super) const BEFORE: [&str; 3] = [
    "hs_unwinder_leaves",
    "hs_longjmp_leaves",
    "hs_longjmp_of_musl_leaves",
];

/// A place to be patched.
#[derive(Debug)]
pub(super) struct Site {
    pub displacement: Displacement,
    /// The displaced bytes.
    pub code: Vec<u8>,
    /// Index in [`BEFORE`].
    pub by: usize,
}

/// Returns the places of a module that can be patched. Calls that others leave end at the next event that shows it.
pub(super) fn find(module: &LoadedModule, elf: &Module) -> Vec<Site> {
    let leavers = elf.frame_leavers();
    if leavers.is_empty() {
        return Vec::new();
    }
    let ranges = elf.code_ranges();
    let code: Vec<(u64, &[u8])> = ranges
        .iter()
        .filter_map(|range| Some((range.start.0, elf.code(range.start, range.len())?)))
        .collect();
    let around = leavers.iter().map(|leaver| leaver.start.0..leaver.end().0);
    let branches = branches_into(&code, elf.code_starts(), around).moved_up(module.bias);
    let site = |leaver: &FrameLeaver| {
        let by = match leaver.stack {
            Held::Register(Register::RCX) => 0,
            Held::Register(Register::R8) => 1,
            Held::Memory(Register::RDI, 0x30) => 2,
            _ => return None,
        };
        let code = elf.code(leaver.start, leaver.len)?;
        let limits = Limits::up_to(module.addr_from_svma(leaver.end().0)).with_branches(&branches);
        let entry = module.addr_from_svma(leaver.start.0);
        let displacement = plan(code, entry, leaver.len, limits).ok()?;
        let code = code[..displacement.len_bytes()].to_vec();
        Some(Site {
            displacement,
            code,
            by,
        })
    };
    leavers.iter().filter_map(site).collect()
}

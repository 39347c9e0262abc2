//! Determines where a jump can replace a statement's first instructions.
//!
//! Compilers never aim an invisible jump (a table, a computed goto) into the middle of one instruction, but they may
//! aim it at the next instruction. So a patch that covers more than one instruction is refused in functions that jump
//! through registers or memory. Landing pads of exceptions are refused too: control does not fall into them, which
//! displacing needs.

use std::{collections::HashMap, ops::Range, sync::Arc};

use debuginfo::{AddressSpace, Mapped};
use iced_x86::{Decoder, DecoderOptions, FlowControl};

use crate::{
    displace::{self, Branches, Displacement, Limits, Named, PATCH_BYTES},
    live::tracee::{hooks::Hook, memory::LiveMemory},
};

/// More bytes than a patch displaces.
const ENOUGH: u64 = 64;

/// Cached facts about code.
#[derive(Debug, Default)]
pub(super) struct Surveys {
    /// By module number.
    branches: HashMap<u32, Arc<Branches>>,
    /// Functions with computed jumps, by entry.
    computed: HashMap<u64, bool>,
    /// What parts of functions use of themselves as data, by start address. Cached because places are planned by the
    /// thousand and functions may be large.
    named: HashMap<u64, Arc<[Named]>>,
}

impl Surveys {
    /// Clears the cache after modules were loaded or unloaded.
    pub fn clear(&mut self) {
        self.branches.clear();
        self.computed.clear();
        self.named.clear();
    }

    /// Plans the jump at `address`, in code of the program that no hook has moved.
    ///
    /// # Errors
    /// Why there can be none.
    pub fn in_program(
        &mut self,
        space: &AddressSpace,
        memory: &LiveMemory,
        address: u64,
    ) -> Result<Displacement, String> {
        let mapped = space.at(address).ok_or("its module is not known")?;
        let function = space
            .function_at(address)
            .ok_or("its function is not known")?;
        let range = function
            .ranges
            .iter()
            .find(|range| range.contains(&address));
        let range = range.ok_or("where its function ends is not known")?.clone();
        let patch = address..address + PATCH_BYTES as u64;
        let named = self.named_in(memory, &range)?;
        if named.iter().any(|named| named.overlaps(&patch)) {
            return Err("its function uses these bytes as data".to_owned());
        }
        let code = read(memory, address..range.end.min(address + ENOUGH))?;
        let branches = self.branches_of(mapped, memory)?;
        let limits = Limits::up_to(range.end).with_branches(&branches);
        let size = code.len() as u64;
        let planned = displace::plan(&code, address, size, limits);
        let planned = planned.map_err(|refusal| refusal.to_string())?;
        if planned.instruction_count() > 1
            && self.jumps_unseen(memory, function.entry, &function.ranges)?
        {
            return Err("its first instruction is too short, and its function jumps where it cannot be seen".to_owned());
        }
        Ok(planned)
    }

    fn named_in(
        &mut self,
        memory: &LiveMemory,
        range: &Range<u64>,
    ) -> Result<Arc<[Named]>, String> {
        if let Some(known) = self.named.get(&range.start) {
            return Ok(Arc::clone(known));
        }
        let code = read(memory, range.clone())?;
        let found: Arc<[Named]> = displace::named_inside(&code, range.start).into();
        self.named.insert(range.start, Arc::clone(&found));
        Ok(found)
    }

    fn branches_of(
        &mut self,
        mapped: &Mapped,
        memory: &LiveMemory,
    ) -> Result<Arc<Branches>, String> {
        if let Some(known) = self.branches.get(&mapped.number) {
            return Ok(Arc::clone(known));
        }
        let mut all = Branches::default();
        let segments = mapped.module.load_segments().iter();
        for segment in segments.filter(|segment| segment.flags.execute) {
            let start = mapped.address(segment.vaddr);
            let code = read(memory, start..start + segment.filesz)?;
            all.extend(Branches::of(&code, start));
        }
        let all = Arc::new(all);
        self.branches.insert(mapped.number, Arc::clone(&all));
        Ok(all)
    }

    fn jumps_unseen(
        &mut self,
        memory: &LiveMemory,
        entry: u64,
        ranges: &[Range<u64>],
    ) -> Result<bool, String> {
        if let Some(known) = self.computed.get(&entry) {
            return Ok(*known);
        }
        let mut found = false;
        for range in ranges {
            let code = read(memory, range.clone())?;
            let decoder = Decoder::with_ip(64, &code, range.start, DecoderOptions::NONE);
            found |= decoder
                .into_iter()
                .any(|instruction| instruction.flow_control() == FlowControl::IndirectBranch);
        }
        self.computed.insert(entry, found);
        Ok(found)
    }
}

/// Plans the jump at `copy`, to which a hook has moved an instruction.
///
/// # Errors
/// Why there can be none.
pub(super) fn in_hook(hook: &Hook, copy: u64) -> Result<Displacement, String> {
    let moved = &hook.trampoline;
    let end = moved.at + moved.bytes.len() as u64;
    let branches = Branches::of(&moved.bytes, moved.at);
    let code = &moved.bytes[(copy - moved.at) as usize..];
    let limits = Limits::up_to(end).with_branches(&branches);
    let size = code.len() as u64;
    displace::plan(code, copy, size, limits).map_err(|refusal| refusal.to_string())
}

fn read(memory: &LiveMemory, range: Range<u64>) -> Result<Vec<u8>, String> {
    let mut code = vec![0; (range.end - range.start) as usize];
    let read = memory.read(range.start, &mut code);
    read.map_err(|_| "its code cannot be read".to_owned())?;
    Ok(code)
}

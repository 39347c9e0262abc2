//! What the recorder itself has changed in the program's code, so that everybody else can see it as it was.
//!
//! An address is *patched* where a byte of ours stands, *original* as the file has it. A function's first instructions
//! were moved to a trampoline; return addresses of hooked calls stand in the shadow of their slot.

use std::{collections::BTreeMap, ops::Range, sync::RwLock};

use agent::shared::SHADOW_BIT;

use crate::{arm::stubs::Patch, displace::Trampoline, return_trampoline::ReturnTrampoline};

/// A hooked function entry.
#[derive(Clone, Debug)]
pub(crate) struct Hook {
    /// The displaced bytes, as they were.
    pub expected: Vec<u8>,
    /// How many of them the jump replaced.
    pub jump: [u8; 5],
    /// Where they are now.
    pub trampoline: Trampoline,
}

/// All changes, by address.
#[derive(Debug, Default)]
pub(crate) struct Hooks {
    entries: BTreeMap<u64, Hook>,
    /// Entries by where their trampolines begin.
    trampolines: BTreeMap<u64, u64>,
    /// Memory for stubs, trampolines and slots.
    ours: Vec<Range<u64>>,
    /// The runtime's library.
    runtime: Range<u64>,
    leave: ReturnTrampoline,
}

/// The changes as the tracer, the patcher and readers of memory share them.
pub(crate) type SharedHooks = RwLock<Hooks>;

impl Hooks {
    pub fn set_runtime(&mut self, range: Range<u64>, leave: ReturnTrampoline) {
        self.runtime = range;
        self.leave = leave;
    }

    pub fn add_region(&mut self, range: Range<u64>) {
        self.ours.push(range);
    }

    pub fn add(&mut self, patch: &Patch) {
        self.trampolines.insert(patch.trampoline.at, patch.entry);
        self.entries.insert(
            patch.entry,
            Hook {
                expected: patch.expected.clone(),
                jump: patch.jump,
                trampoline: patch.trampoline.clone(),
            },
        );
    }

    pub fn forget(&mut self, range: &Range<u64>) {
        self.entries.retain(|entry, _| !range.contains(entry));
        self.trampolines.retain(|_, entry| !range.contains(entry));
    }

    pub fn clear(&mut self) {
        self.entries.clear();
        self.trampolines.clear();
    }

    /// Returns the hook whose displaced bytes hold `address`, with its entry.
    pub fn over(&self, address: u64) -> Option<(u64, &Hook)> {
        let (entry, hook) = self.entries.range(..=address).next_back()?;
        (address - entry < hook.expected.len() as u64).then_some((*entry, hook))
    }

    /// Returns where the instruction of the program that `pc` is a copy of stands in the file's layout.
    pub fn original_pc(&self, pc: u64) -> Option<u64> {
        let (at, entry) = self.trampolines.range(..=pc).next_back()?;
        let hook = self.entries.get(entry)?;
        let end = at + hook.trampoline.bytes.len() as u64;
        if pc >= end {
            return None;
        }
        hook.trampoline.original(pc)
    }

    /// Tells whether `address` lies in code or memory that is not the program's.
    pub fn is_ours(&self, address: u64) -> bool {
        self.runtime.contains(&address) || self.ours.iter().any(|range| range.contains(&address))
    }

    /// Returns the return addresses that are ours; the program's own then stand in the shadow.
    pub fn leave(&self) -> &ReturnTrampoline {
        &self.leave
    }

    /// Puts the program's own bytes over our jumps in `bytes`, which were read at `address`.
    pub fn mask(&self, address: u64, bytes: &mut [u8]) {
        let end = address.saturating_add(bytes.len() as u64);
        let first = address.saturating_sub(16);
        for (entry, hook) in self.entries.range(first..end) {
            for (index, byte) in hook.expected.iter().take(hook.jump.len()).enumerate() {
                let at = entry + index as u64;
                if at >= address && at < end {
                    bytes[(at - address) as usize] = *byte;
                }
            }
        }
    }
}

/// Returns where the return address of a hooked slot is kept.
pub(crate) fn shadow_of(slot: u64) -> u64 {
    slot ^ (1 << SHADOW_BIT)
}

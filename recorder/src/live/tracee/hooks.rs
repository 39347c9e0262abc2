//! The recorder's own changes in the program's code, so that they can be hidden from everyone else.
//!
//! A byte is *patched* where we replaced it, and *original* as in the file. The first instructions of a hooked
//! function were moved to a trampoline. The return addresses of hooked calls are kept in the shadow of their slot.

use std::{collections::BTreeMap, ops::Range, sync::RwLock};

use agent::shared::SHADOW_BIT;

use crate::{arm::stubs::Patch, displace::Trampoline, return_trampoline::ReturnTrampoline};

/// A hooked function entry.
#[derive(Clone, Debug)]
pub(crate) struct Hook {
    /// The original displaced bytes.
    pub expected: Vec<u8>,
    /// The jump written over the first of them.
    pub jump: [u8; 5],
    /// The displaced instructions at their new address.
    pub trampoline: Trampoline,
}

/// All changes, by address.
#[derive(Debug, Default)]
pub(crate) struct Hooks {
    entries: BTreeMap<u64, Hook>,
    /// Entries by the start of their trampolines.
    trampolines: BTreeMap<u64, u64>,
    /// Memory for stubs, trampolines and slots.
    ours: Vec<Range<u64>>,
    /// The runtime's library.
    runtime: Range<u64>,
    leave: ReturnTrampoline,
    /// The function in it that the C library calls as a thread ends.
    thread_exits: Option<u64>,
}

/// The changes, shared by the tracer, the patcher and readers of memory.
pub(crate) type SharedHooks = RwLock<Hooks>;

impl Hooks {
    pub fn set_runtime(
        &mut self,
        range: Range<u64>,
        leave: ReturnTrampoline,
        thread_exits: Option<u64>,
    ) {
        self.runtime = range;
        self.leave = leave;
        self.thread_exits = thread_exits;
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

    /// Returns the hook whose displaced bytes contain `address`, with its entry.
    pub fn over(&self, address: u64) -> Option<(u64, &Hook)> {
        let (entry, hook) = self.entries.range(..=address).next_back()?;
        (address - entry < hook.expected.len() as u64).then_some((*entry, hook))
    }

    /// Returns the original address of the instruction that `pc` is a copy of.
    pub fn original_pc(&self, pc: u64) -> Option<u64> {
        self.trampoline_at(pc)?.original(pc)
    }

    /// Returns the displaced instructions that `pc` lies in.
    pub fn trampoline_at(&self, pc: u64) -> Option<&Trampoline> {
        let (_, entry) = self.trampolines.range(..=pc).next_back()?;
        let trampoline = &self.entries.get(entry)?.trampoline;
        (pc < trampoline.at + trampoline.bytes.len() as u64).then_some(trampoline)
    }

    /// Returns whether `address` lies in our own code or memory.
    pub fn is_ours(&self, address: u64) -> bool {
        self.runtime.contains(&address) || self.ours.iter().any(|range| range.contains(&address))
    }

    /// Returns whether `address` lies in the runtime's code.
    pub fn is_of_runtime(&self, address: u64) -> bool {
        self.runtime.contains(&address)
    }

    /// Returns whether the runtime's function that the C library calls as a thread ends begins at `address`.
    pub fn ends_thread(&self, address: u64) -> bool {
        self.thread_exits == Some(address)
    }

    /// Returns where that is in so many bytes at `address`.
    pub fn end_of_thread_in(&self, address: u64, bytes: usize) -> Option<usize> {
        let offset = self.thread_exits?.checked_sub(address)?;
        usize::try_from(offset)
            .ok()
            .filter(|offset| *offset < bytes)
    }

    /// Returns our return addresses. The program's own are in the shadow.
    pub fn leave(&self) -> &ReturnTrampoline {
        &self.leave
    }

    /// Returns each of our jumps: its address, its bytes, and the program's own bytes under it.
    pub fn patches(&self) -> impl Iterator<Item = (u64, [u8; 5], &[u8])> {
        self.entries
            .iter()
            .map(|(entry, hook)| (*entry, hook.jump, &hook.expected[..hook.jump.len()]))
    }

    /// Replaces our jumps by the program's own bytes in `bytes`, which were read at `address`.
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

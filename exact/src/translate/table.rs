//! The table by which indirect jumps find the translations of their targets: the low 16 bits of an address lead to a chain of checks, the
//! last of which leads to a trap.

use rustc_hash::{FxHashMap, FxHashSet};

use super::caches::Caches;
use super::emit::{Emitter, RAX, RCX};
use super::{CodeSpan, layout};

pub(super) struct Table {
    /// Where it lies: below 2 GiB, with the blocks of threads behind it.
    pub(super) low: u64,
    /// From the low 16 bits of an address to where the last check for them continues.
    chains: FxHashMap<u16, u64>,
    checked: FxHashSet<u64>,
}

impl Table {
    pub(super) fn new(low: u64) -> Table {
        assert!(
            low + layout::LOW_BYTES < 1 << 31,
            "the table is addressed by 32 bits"
        );
        Table {
            low,
            chains: FxHashMap::default(),
            checked: FxHashSet::default(),
        }
    }

    pub(super) fn owns(&self, address: u64) -> bool {
        (self.low..self.low + layout::LOW_BYTES).contains(&address)
    }

    /// Nothing is known of what it leads to; returns what was.
    pub(super) fn set_aside(&mut self) -> Table {
        let low = self.low;
        std::mem::replace(self, Table::new(low))
    }

    /// Has all of them lead to the trap.
    pub(super) fn clear(&mut self, caches: &mut Caches) {
        self.chains.clear();
        self.checked.clear();
        let miss = caches.miss().to_le_bytes();
        caches.write(self.low, miss.repeat(layout::TABLE_ENTRIES as usize));
    }

    /// Has jumps to `pc` find its translation.
    pub(super) fn check(&mut self, pc: u64, body: u64, caches: &mut Caches) {
        let Some(cache) = caches.with(body) else {
            return;
        };
        let (mut e, mut places) = (caches.begin(cache), Vec::new());
        let links = self.check_all(&[(pc, body)], &mut e, &mut places, caches.miss());
        caches.end(cache, e, places);
        for (at, to) in links {
            caches.write(at, to.to_le_bytes().to_vec());
        }
    }

    /// Appends the checks by which jumps to addresses find their translations. Returns what is to be written then: where, and the addresses.
    pub(super) fn check_all(
        &mut self,
        bodies: &[(u64, u64)],
        e: &mut Emitter,
        places: &mut Vec<CodeSpan>,
        miss: u64,
    ) -> Vec<(u64, u64)> {
        let mut links = Vec::new();
        for (pc, body) in bodies.iter().copied() {
            if !self.checked.insert(pc) {
                continue;
            }
            let at = e.here();
            e.set(RCX, pc.wrapping_neg());
            e.put(&[0x48, 0x8d, 0x0c, 0x01]); // lea rcx, [rcx + rax]
            e.put(&[0xe3, 14]); // jrcxz over the jump
            let next = e.here() + 6;
            e.far_jump(miss);
            e.load(RCX, layout::SLOT_RCX);
            e.load(RAX, layout::SLOT_RAX);
            let distance_at = e.jump();
            e.aim(distance_at, body);
            // In these few instructions the thread is already at `pc`, as far as the program can see.
            places.push(CodeSpan {
                at,
                pc,
                ahead: 0,
                boundary: false,
                swapped: false,
                saved: true,
            });
            let bucket = pc as u16;
            let before = self.chains.insert(bucket, next);
            links.push((before.unwrap_or(self.low + u64::from(bucket) * 8), at));
        }
        links
    }
}

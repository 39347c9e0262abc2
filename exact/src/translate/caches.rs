//! The memory that translated code lies in, and what has to be written into it. What the code does is not known here.

use super::emit::Emitter;
use super::places::Places;
use super::{CodeSpan, layout};

/// Bytes that a cache must have left for a block.
const LEFT: u64 = 64 << 10;
/// Code that is no further away than this from all of a cache reaches it, and what the code reaches, by 32 bits of distance.
const NEAR: u64 = 1 << 30;

/// [`layout::CACHE_BYTES`] that can be executed.
struct Cache {
    base: u64,
    used: u64,
    places: Places,
}

impl Cache {
    /// An empty one, with the trap that indirect jumps come to at first.
    fn new(base: u64) -> Cache {
        let mut places = Places::default();
        places.add(CodeSpan {
            at: base,
            pc: 0,
            ahead: 0,
            boundary: false,
            swapped: false,
            saved: true,
        });
        Cache {
            base,
            used: 16,
            places,
        }
    }

    fn has_room(&self) -> bool {
        self.used + LEFT < layout::CACHE_BYTES
    }

    fn owns(&self, address: u64) -> bool {
        (self.base..self.base + layout::CACHE_BYTES).contains(&address)
    }
}

/// All caches of a program, by their numbers.
#[derive(Default)]
pub(super) struct Caches {
    all: Vec<Cache>,
    /// What the program's memory does not have yet.
    writes: Vec<(u64, Vec<u8>)>,
}

impl Caches {
    pub(super) fn add(&mut self, base: u64) {
        self.write(base, vec![0xcc; 16]);
        self.all.push(Cache::new(base));
    }

    /// All are empty again.
    pub(super) fn clear(&mut self) {
        for cache in &mut self.all {
            *cache = Cache::new(cache.base);
        }
    }

    pub(super) fn count(&self) -> usize {
        self.all.len()
    }

    /// Where they lie.
    pub(super) fn bases(&self) -> impl Iterator<Item = u64> {
        self.all.iter().map(|cache| cache.base)
    }

    /// The trap that indirect jumps come to at first.
    pub(super) fn miss(&self) -> u64 {
        self.all[0].base
    }

    pub(super) fn bytes_used(&self) -> u64 {
        self.all.iter().map(|cache| cache.used).sum()
    }

    /// The one for a block at `pc`: near it, if there is room.
    pub(super) fn near(&self, pc: u64) -> Option<usize> {
        let near = |cache: &Cache| cache.base.abs_diff(pc) < NEAR && cache.has_room();
        self.all.iter().rposition(near)
    }

    /// The one that has this address.
    pub(super) fn with(&self, address: u64) -> Option<usize> {
        self.all.iter().position(|cache| cache.owns(address))
    }

    /// Whether the last one has room for a block.
    pub(super) fn has_room(&self) -> bool {
        self.all.last().is_some_and(Cache::has_room)
    }

    /// Whether some cache has none.
    pub(super) fn is_full(&self) -> bool {
        self.all.iter().any(|cache| !cache.has_room())
    }

    pub(super) fn place(&self, address: u64) -> Option<CodeSpan> {
        let has = |cache: &&Cache| (cache.base..cache.base + cache.used).contains(&address);
        self.all.iter().find(has)?.places.find(address)
    }

    pub(super) fn instruction_in(&self, head: u64, number: u8) -> Option<u64> {
        let cache = &self.all[self.with(head)?];
        cache.places.instruction_in(head, number)
    }

    /// Code for a cache, behind what it has.
    pub(super) fn begin(&self, cache: usize) -> Emitter {
        let cache = &self.all[cache];
        Emitter::new(cache.base + cache.used)
    }

    /// The code is complete, and means this.
    pub(super) fn end(&mut self, cache: usize, code: Emitter, places: Vec<CodeSpan>) {
        let cache = &mut self.all[cache];
        places.into_iter().for_each(|place| cache.places.add(place));
        cache.used = (code.here() - cache.base).next_multiple_of(16);
        self.write(code.base, code.bytes);
    }

    /// The program's memory is to have this.
    pub(super) fn write(&mut self, at: u64, bytes: Vec<u8>) {
        self.writes.push((at, bytes));
    }

    pub(super) fn take_writes(&mut self) -> Vec<(u64, Vec<u8>)> {
        std::mem::take(&mut self.writes)
    }
}

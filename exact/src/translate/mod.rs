//! Translation of the program's code, block by block, into code that counts instructions and comes back where something has to be
//! recorded. The program's own code is never changed. r15 holds the counter, and the program's r15 lies in memory (the least used
//! register of compilers); gs points to a block of the thread. Flags, the stack and all other registers are the program's own.

mod block;
mod blocks;
mod caches;
mod emit;
pub mod hooks;
mod instructions;
pub mod layout;
pub mod notes;
mod places;
mod table;
mod window;

use iced_x86::InstructionInfoFactory;
use rustc_hash::{FxHashMap, FxHashSet};

pub(crate) use instructions::{
    changes_registers_alone, is_chance, is_unsupported, saves_state, tells_tables, traps_by_number,
};
pub use places::CodeSpan;
pub(crate) use window::Window;

use blocks::Blocks;
use caches::Caches;
use emit::Emitter;
use table::Table;

/// The bytes of the program's code.
pub trait Code {
    /// Fills as much of `into` as can be read from `address` on; returns how many bytes that are.
    fn read(&self, address: u64, into: &mut [u8]) -> usize;

    /// Whether code at an address may be translated before it is needed: nothing changes it that would not be seen.
    fn may_be_ahead(&self, _address: u64) -> bool {
        false
    }
}

/// What translated code is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Counts.
    Record,
    /// Counts, and writes to the address that the counter then is, before each block.
    Replay,
}

/// Why translated code has stopped at a trap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trap {
    /// An indirect jump to an address that the table does not have; rax holds it.
    Miss,
    /// A jump to code that has no translation, or is not linked with it; the distance to fill in lies at `distance_at`.
    Exit {
        target: u64,
        distance_at: u64,
    },
    /// A translation that was forgotten.
    Moved {
        target: u64,
    },
    /// Before a system call.
    SystemCall {
        next: u64,
    },
    /// After it.
    Returned {
        next: u64,
    },
    /// Before an instruction whose results no other run would see again; it lies behind the trap.
    Chance {
        pc: u64,
        next: u64,
    },
    /// A stop that was set: before the instruction at `pc`.
    Stop {
        pc: u64,
    },
    /// A place to stop at, set for a moment.
    Goal,
    /// Before and after an instruction whose reads and writes are noted, but not by code that is added.
    Before {
        pc: u64,
    },
    After {
        pc: u64,
    },
    /// Before an instruction that loads the flags from the stack; it lies behind the trap.
    Flags {
        pc: u64,
    },
    /// Before an instruction that cannot be translated.
    Unsupported {
        pc: u64,
    },
}

/// A jump to code that has no translation.
#[derive(Debug, Clone, Copy)]
struct Exit {
    target: u64,
    stub: u64,
    distance_at: u64,
}

/// Translations that are not used for a while.
pub struct Aside {
    blocks: Blocks,
    table: Table,
    resets: usize,
}

/// All translated code of one program.
pub struct Translator {
    mode: Mode,
    caches: Caches,
    table: Table,
    blocks: Blocks,
    traps: FxHashMap<u64, Trap>,
    /// By what they lead to: exits whose targets have no translation yet.
    waiting: FxHashMap<u64, Vec<Exit>>,
    resets: usize,
    stops: FxHashSet<u64>,
    /// Where calls are recorded: by address the number, and that of vectors; with any, all returns are.
    hooks: FxHashMap<u64, (u32, u8)>,
    notes: notes::Notes,
    /// Where the indirect jumps of code that is recorded lie, by the numbers that they leave behind.
    origins: Vec<u64>,
    info: InstructionInfoFactory,
}

impl Translator {
    /// `low` is the start of [`layout::LOW_BYTES`] below 2 GiB.
    pub fn new(mode: Mode, low: u64) -> Translator {
        Translator {
            mode,
            caches: Caches::default(),
            table: Table::new(low),
            blocks: Blocks::default(),
            traps: FxHashMap::default(),
            waiting: FxHashMap::default(),
            resets: 0,
            stops: FxHashSet::default(),
            hooks: FxHashMap::default(),
            notes: notes::Notes::default(),
            origins: Vec::new(),
            info: InstructionInfoFactory::new(),
        }
    }

    /// Where the table and the blocks of threads lie.
    pub fn low(&self) -> u64 {
        self.table.low
    }

    /// Whether a block at `pc` needs a new cache near it.
    pub fn needs_cache(&self, pc: u64) -> bool {
        self.caches.near(pc).is_none()
    }

    /// Takes over a new cache: [`layout::CACHE_BYTES`] that can be executed.
    pub fn add_cache(&mut self, base: u64) {
        self.traps.insert(base, Trap::Miss);
        self.caches.add(base);
        if self.caches.count() == 1 {
            self.table.clear(&mut self.caches);
        }
    }

    /// What has to be written into the program's memory before it goes on.
    pub fn take_writes(&mut self) -> Vec<(u64, Vec<u8>)> {
        self.caches.take_writes()
    }

    /// The trap whose instruction lies at `at`.
    pub fn trap(&self, at: u64) -> Option<Trap> {
        self.traps.get(&at).copied()
    }

    /// What translated code at this address means; `None` outside of it.
    pub fn place(&self, address: u64) -> Option<CodeSpan> {
        self.caches.place(address)
    }

    /// Where the caches lie.
    pub fn caches(&self) -> impl Iterator<Item = u64> {
        self.caches.bases()
    }

    /// Whether an address lies in what is ours.
    pub fn owns(&self, address: u64) -> bool {
        self.caches.with(address).is_some() || self.table.owns(address)
    }

    /// Whether there is a translation of the code at `pc`.
    pub fn knows(&self, pc: u64) -> bool {
        self.blocks.get(pc).is_some()
    }

    /// Whether there is room for a block that is far from all caches.
    pub fn has_room(&self) -> bool {
        self.caches.has_room()
    }

    /// The indirect jump, call or return that has left this number behind.
    pub fn origin(&self, number: u64) -> Option<u64> {
        self.origins.get(usize::try_from(number).ok()?).copied()
    }

    /// How many blocks there are, and how many bytes they take.
    pub fn size(&self) -> (usize, u64) {
        (self.blocks.count(), self.caches.bytes_used())
    }

    /// The translation of the code at `pc`, made if there is none. `None`: there is no code.
    pub fn entry(&mut self, pc: u64, code: &dyn Code) -> Option<u64> {
        match self.blocks.get(pc) {
            None => block::translate(self, pc, code),
            known => known,
        }
    }

    /// Makes an exit lead to the translation that is now there.
    pub fn link(&mut self, stub: u64, distance_at: u64, body: u64) {
        let distance = body.wrapping_sub(distance_at + 4) as i64;
        if i32::try_from(distance).is_ok() {
            let bytes = (distance as i32).to_le_bytes().to_vec();
            self.caches.write(distance_at, bytes);
        } else {
            let mut jump = Emitter::new(stub);
            jump.far_jump(body);
            self.caches.write(stub, jump.bytes);
        }
    }

    /// There are new translations, in which some exits lead nowhere yet: links exits that waited for these.
    fn link_waiting(&mut self, bodies: &[(u64, u64)], unknown: Vec<Exit>) {
        for (pc, body) in bodies {
            for exit in self.waiting.remove(pc).unwrap_or_default() {
                self.link(exit.stub, exit.distance_at, *body);
            }
        }
        for exit in unknown {
            self.waiting.entry(exit.target).or_default().push(exit);
        }
    }

    /// Makes indirect jumps to `pc` find its translation.
    pub fn check(&mut self, pc: u64, body: u64) {
        self.table.check(pc, body, &mut self.caches);
    }

    /// Whether anything in this range has been translated.
    pub fn has_code_in(&self, start: u64, end: u64) -> bool {
        !self.blocks.pages_in(start, end).is_empty()
    }

    /// In the block that is counted at `head`, where the program is before one of its instructions, the first having number 0.
    pub fn instruction_in(&self, head: u64, number: u8) -> Option<u64> {
        self.caches.instruction_in(head, number)
    }

    /// Sets a stop that the process needs for a moment, or takes it away.
    pub fn set_goal(&mut self, at: u64, is_set: bool) {
        match is_set {
            true => self.traps.insert(at, Trap::Goal),
            false => self.traps.remove(&at),
        };
    }

    /// The pages in a range of which anything has been translated.
    pub fn pages_in(&self, start: u64, end: u64) -> Vec<u64> {
        self.blocks.pages_in(start, end)
    }

    /// What of a page has been translated, from where to where each. It may reach into the pages around it.
    pub fn blocks_in(&self, page: u64) -> &[(u64, u64)] {
        self.blocks.of(page)
    }

    /// The pages of the program from which blocks were made since this was asked.
    pub fn take_fresh(&mut self) -> Vec<u64> {
        self.blocks.take_fresh()
    }

    /// Forgets the translations of what lies in this range: the program's code there has changed. What leads to them will lead to
    /// new ones. Threads inside of them must go on by [`Self::entry`].
    pub fn forget_range(&mut self, start: u64, end: u64) {
        // Some of them lie in what is forgotten now, and the new beginning of that is not to be written over.
        self.waiting.clear();
        for (pc, body) in self.blocks.take(start, end) {
            self.traps.insert(body, Trap::Moved { target: pc });
            self.caches.write(body, vec![0xcc]);
        }
    }

    /// Makes a forgotten translation lead to the new one.
    pub fn lead(&mut self, from: u64, body: u64) {
        let mut jump = Emitter::new(from);
        jump.far_jump(body);
        self.traps.remove(&from);
        self.caches.write(from, jump.bytes);
    }

    /// Whether some cache has no room for a block.
    pub fn is_full(&self) -> bool {
        self.caches.is_full()
    }

    /// How often [`Self::reset`] was used.
    pub fn resets(&self) -> usize {
        self.resets
    }

    /// Sets where calls are recorded, before anything is translated.
    pub fn set_hooks(&mut self, hooks: &[hooks::Hook]) {
        let numbered = hooks.iter().zip(0..);
        self.hooks = numbered
            .map(|(hook, number)| (hook.address, (number, hook.vectors)))
            .collect();
        self.forget();
    }

    /// Sets what code notes; if that is new, all translations are made anew.
    pub fn set_notes(&mut self, wanted: notes::Wanted) {
        if self.notes.wanted != wanted {
            self.notes = notes::Notes::new(wanted);
            self.reset();
        }
    }

    /// What the records of notes are about, by their numbers.
    pub fn sites(&self) -> &[notes::Site] {
        &self.notes.sites
    }

    /// Sets where translated code stops; if that is new, all translations are made anew. Returns whether it is.
    pub fn set_stops(&mut self, stops: &[u64]) -> bool {
        let stops = stops.iter().copied().collect();
        if self.stops == stops {
            return false;
        }
        self.stops = stops;
        self.forget();
        true
    }

    /// Sets one more stop; translations near it are made anew. Threads inside of them must go on by [`Self::entry`].
    /// Returns whether it is new.
    pub fn add_stop(&mut self, pc: u64) -> bool {
        let is_new = self.stops.insert(pc);
        if is_new {
            self.forget_range(pc, pc + 1);
        }
        is_new
    }

    /// Where the thread is that waits in a call, in the translation of `syscall` at `body`.
    pub fn in_call(&self, body: u64) -> Option<u64> {
        // In front of it are a stop, the counting and the exchange of r15.
        (body..body + 64).find(|at| matches!(self.trap(*at), Some(Trap::Returned { .. })))
    }

    /// From now on there are no translations. No thread may go on in what was there.
    pub fn set_aside(&mut self) -> Aside {
        self.waiting.clear();
        let aside = Aside {
            blocks: std::mem::take(&mut self.blocks),
            table: self.table.set_aside(),
            resets: self.resets,
        };
        self.table.clear(&mut self.caches);
        aside
    }

    /// Those that were set aside are there again, and what was translated since is forgotten. `table`: what then lay at [`Self::low`],
    /// for all [`layout::TABLE_ENTRIES`].
    pub fn take_back(&mut self, aside: Aside, table: Vec<u8>) {
        if self.resets != aside.resets {
            // The caches have been emptied.
            return self.forget();
        }
        self.waiting.clear();
        self.blocks = aside.blocks;
        self.table = aside.table;
        self.caches.write(self.table.low, table);
    }

    /// Starts anew with empty caches. No thread may go on in what was there.
    pub fn reset(&mut self) {
        self.resets += 1;
        self.traps.clear();
        self.caches.clear();
        for base in self.caches.bases() {
            self.traps.insert(base, Trap::Miss);
        }
        self.forget();
    }

    /// Forgets all translations: the program's code has changed. Threads must go on by [`Self::entry`].
    pub fn forget(&mut self) {
        self.waiting.clear();
        self.blocks.clear();
        self.table.clear(&mut self.caches);
    }
}

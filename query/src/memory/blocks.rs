//! The lives of all blocks: which call returned each, and which freed it.
//!
//! Calls are read backwards, so a block's end is seen before its beginning. A block exists from the leave of the call that
//! returns it to the enter of the call that frees it: between that enter and its leave, another thread may get the same
//! address. One allocation function may call another, as `operator new` calls malloc; the outer one made the block.
//! A call that did not return, as where the program died in it, is known to have freed a block only if its address was allocated
//! again.

use rustc_hash::FxHashMap;
use store::control::FunctionDef;

use super::pages::{PageCall, PageEvent, Pages};
use crate::callers::Found;
use replay::{Role, Size, role};

/// Most bytes of a header that an allocator keeps before a block.
const MOST_HEADER: u64 = 4096;

/// A call that allocated or freed a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Its enter event.
    pub seq: u64,
    /// The event from which on the block existed, or no longer existed.
    pub at: u64,
    /// The time of that event, in ns.
    pub ts_ns: i64,
    /// The thread; 0 if unknown.
    pub tid: u32,
    /// The function.
    pub function: u32,
    /// The path to the call.
    pub node: u32,
}

/// How a block ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It existed when the recording ended.
    Live,
    /// It was freed.
    Freed,
    /// At this event its address was allocated again; no recorded call had freed it.
    Lost(u64),
}

/// A block of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its first byte.
    pub address: u64,
    /// The requested size in bytes; `None` if the block was allocated before the recording.
    pub size: Option<u64>,
    /// How many of them were left when the recording ended. Mappings may be unmapped in parts.
    pub live_bytes: u64,
    /// It is mapped pages, not a block of the heap.
    pub is_pages: bool,
    /// The call that made it; `None` if none was recorded.
    pub made: Option<Moment>,
    /// The call that freed it.
    pub freed: Option<Moment>,
    /// How it ended.
    pub end: End,
}

/// The note of a call of an allocation function, for the calls that it makes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Note {
    /// The blocks that it and those around it return; 0 for none.
    made: [u64; 3],
    /// The block that it or one around it frees; 0 for none.
    freed: u64,
    /// The outermost call whose block is unknown.
    unknown: Option<Unknown>,
}

#[derive(Clone, Copy, Debug)]
struct Unknown {
    seq: u64,
    function: u32,
    node: u32,
    size: u64,
}

/// What later calls did with an address.
#[derive(Default)]
struct Later {
    frees: Vec<Moment>,
    /// Calls that were to free it, and did not return.
    tries: Vec<Moment>,
    /// The event at which the next block there was allocated.
    next: Option<u64>,
}

/// The blocks, as the calls are seen.
pub struct Lives {
    roles: Vec<Option<Role>>,
    later: FxHashMap<u64, Later>,
    blocks: Vec<Block>,
    pages: Vec<PageEvent>,
    /// Calls that stored the address of a block in unrecorded memory.
    stored: u64,
    found: u64,
    /// A call that returns blocks was seen.
    pub has_makers: bool,
}

impl Lives {
    /// Takes the functions, in the order of their ids.
    pub fn new<'f>(functions: impl Iterator<Item = &'f FunctionDef>) -> Lives {
        let mut roles = Vec::new();
        for function in functions {
            let id = function.id as usize;
            if roles.len() <= id {
                roles.resize(id + 1, None);
            }
            roles[id] = role(function);
        }
        Lives {
            roles,
            later: FxHashMap::default(),
            blocks: Vec::new(),
            pages: Vec::new(),
            stored: 0,
            found: 0,
            has_makers: false,
        }
    }

    /// Returns what each function does with memory, by its id.
    #[must_use]
    pub fn roles(&self) -> Vec<bool> {
        self.roles.iter().map(Option::is_some).collect()
    }

    /// Adds a call. All calls that end later must be added before.
    pub fn add(&mut self, found: &Found<'_, Note>) -> Note {
        let call = found.call;
        let role = self.roles.get(call.function as usize).copied().flatten();
        let around = found.around.copied().unwrap_or_default();
        let Some(role) = role else {
            return around;
        };
        if role.is_of_pages() {
            // malloc maps memory for many blocks.
            if found.around.is_none() {
                self.pages.extend(page_call(role, found));
            }
            return around;
        }
        let made = call.rax.filter(|made| *made != 0 && !call.is_unwound);
        match role {
            Role::Makes(size) => self.makes(found, made, size, around),
            Role::Stores(size) => self.stores(found, size, around),
            Role::Frees => self.frees(found, call.args[0], around),
            Role::Moves(size) => {
                let is_done = made.is_some() || call.rax == Some(0) && size.of(&call.args) == 0;
                let after = self.makes(found, made, size, around);
                match is_done {
                    true => self.frees(found, call.args[0], after),
                    false => after,
                }
            }
            Role::Maps | Role::Unmaps | Role::Remaps => around,
        }
    }

    fn makes(
        &mut self,
        found: &Found<'_, Note>,
        made: Option<u64>,
        size: Size,
        around: Note,
    ) -> Note {
        self.has_makers = true;
        let call = found.call;
        let (Some(address), Some(at), Some(ts_ns)) = (made, call.end, call.end_ns()) else {
            return around;
        };
        let size = size.of(&call.args);
        let block = address..address.saturating_add(size.max(1));
        if !around.made.iter().any(|outer| block.contains(outer)) {
            let unknown = around.unknown.unwrap_or(Unknown {
                seq: call.start,
                function: call.function,
                node: found.node,
                size,
            });
            self.found += u64::from(around.unknown.is_some());
            self.made(
                address,
                unknown.size,
                Moment {
                    seq: unknown.seq,
                    at,
                    ts_ns,
                    tid: call.tid,
                    function: unknown.function,
                    node: unknown.node,
                },
            );
        }
        let [first, second, _] = around.made;
        Note {
            made: [address, first, second],
            unknown: None,
            ..around
        }
    }

    fn made(&mut self, address: u64, size: u64, made: Moment) {
        let later = self.later.entry(address).or_default();
        let next = later.next;
        let is_its = |free: &Moment| free.at > made.at && next.is_none_or(|next| free.at < next);
        let mut freed = take_first(&mut later.frees, is_its);
        if freed.is_none() {
            let tried = take_first(&mut later.tries, is_its);
            freed = tried.filter(|_| next.is_some());
        }
        let end = match (freed, later.next) {
            (Some(_), _) => End::Freed,
            (None, Some(next)) => End::Lost(next),
            (None, None) => End::Live,
        };
        later.next = Some(made.at);
        self.blocks.push(Block {
            address,
            size: Some(size),
            live_bytes: if end == End::Live { size } else { 0 },
            is_pages: false,
            made: Some(made),
            freed,
            end,
        });
    }

    fn stores(&mut self, found: &Found<'_, Note>, size: Size, around: Note) -> Note {
        self.has_makers = true;
        let call = found.call;
        if call.rax.is_none_or(|error| error as u32 != 0)
            || around.made.iter().any(|made| *made != 0)
        {
            return around;
        }
        self.stored += 1;
        let unknown = Unknown {
            seq: call.start,
            function: call.function,
            node: found.node,
            size: size.of(&call.args),
        };
        Note {
            unknown: around.unknown.or(Some(unknown)),
            ..around
        }
    }

    fn frees(&mut self, found: &Found<'_, Note>, address: u64, around: Note) -> Note {
        let call = found.call;
        // A call that goes on, as where a live program stands in it, has not freed anything either.
        let has_returned = call.end.is_some() && !call.is_unwound;
        let is_of_outer =
            around.freed >= address && around.freed - address < MOST_HEADER && around.freed != 0;
        if address == 0 {
            return around;
        }
        if is_of_outer {
            if has_returned {
                self.has_freed(around.freed, call.tid);
            }
            return around;
        }
        let later = self.later.entry(address).or_default();
        let list = match has_returned {
            true => &mut later.frees,
            false => &mut later.tries,
        };
        list.push(Moment {
            seq: call.start,
            at: call.start,
            ts_ns: call.ts_ns,
            tid: call.tid,
            function: call.function,
            node: found.node,
        });
        Note {
            freed: address,
            ..around
        }
    }

    /// Says that the call of a thread which was to free a block did so, though it did not return itself: the one that it made did.
    fn has_freed(&mut self, address: u64, tid: u32) {
        let Some(later) = self.later.get_mut(&address) else {
            return;
        };
        // The call around it was added last of its thread.
        if let Some(at) = later.tries.iter().rposition(|free| free.tid == tid) {
            let freed = later.tries.remove(at);
            later.frees.push(freed);
        }
    }

    /// Returns all blocks in the order of their allocation, first those from before the recording; calls that did not return, of
    /// blocks that had been freed before or that nobody made; and the number of blocks with an unknown address.
    #[must_use]
    pub fn finish(self) -> (Vec<Block>, Vec<Block>, u64) {
        let mut blocks = self.blocks;
        let mut tried = Vec::new();
        for (address, later) in self.later {
            let unmade = |freed: Moment| Block {
                address,
                size: None,
                live_bytes: 0,
                is_pages: false,
                made: None,
                freed: Some(freed),
                end: End::Freed,
            };
            blocks.extend(later.frees.into_iter().map(unmade));
            tried.extend(later.tries.into_iter().map(unmade));
        }
        blocks.extend(Pages::of(self.pages));
        blocks.sort_by_key(|block| {
            (
                block.made.map(|made| made.at),
                block.freed.map(|freed| freed.at),
            )
        });
        tried.sort_by_key(|block| block.freed.map(|freed| freed.at));
        (blocks, tried, self.stored - self.found.min(self.stored))
    }
}

/// Takes the first of the calls that `is_its` selects.
fn take_first(calls: &mut Vec<Moment>, is_its: impl Fn(&Moment) -> bool) -> Option<Moment> {
    let own = calls.iter().enumerate().filter(|(_, call)| is_its(call));
    let (index, _) = own.min_by_key(|(_, call)| call.at)?;
    Some(calls.swap_remove(index))
}

fn page_call(role: Role, found: &Found<'_, Note>) -> Option<PageEvent> {
    let call = found.call;
    let returned = call.rax.filter(|_| !call.is_unwound)?;
    let failed = (returned as i64).wrapping_neg() > 0 && (returned as i64).wrapping_neg() < 4096;
    if failed {
        return None;
    }
    let [first, second, third, _] = call.args;
    let (what, at, ts_ns) = match role {
        Role::Maps => (
            PageCall {
                unmaps: 0..0,
                maps: returned..returned.saturating_add(second),
            },
            call.end?,
            call.end_ns()?,
        ),
        Role::Remaps => (
            PageCall {
                unmaps: first..first.saturating_add(second),
                maps: returned..returned.saturating_add(third),
            },
            call.end?,
            call.end_ns()?,
        ),
        _ => (
            PageCall {
                unmaps: first..first.saturating_add(second),
                maps: 0..0,
            },
            call.start,
            call.ts_ns,
        ),
    };
    Some(PageEvent {
        what,
        by: Moment {
            seq: call.start,
            at,
            ts_ns,
            tid: call.tid,
            function: call.function,
            node: found.node,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::callers::Call;

    const NAMES: [&str; 7] = [
        "malloc",
        "free",
        "realloc",
        "operator new(unsigned long)",
        "posix_memalign",
        "_mid_memalign",
        "operator delete(void*)",
    ];
    const MALLOC: u32 = 0;
    const FREE: u32 = 1;
    const REALLOC: u32 = 2;
    const NEW: u32 = 3;
    const POSIX_MEMALIGN: u32 = 4;
    const ALIGNED: u32 = 5;
    const DELETE: u32 = 6;

    fn functions() -> Vec<FunctionDef> {
        let function = |(id, name): (u32, &&str)| FunctionDef {
            id,
            ..FunctionDef::named((*name).to_owned(), String::new())
        };
        (0..).zip(&NAMES).map(function).collect()
    }

    fn call(function: u32, start: u64, end: u64, args: [u64; 2], rax: u64) -> Call {
        Call {
            start,
            end: Some(end),
            ts_ns: start as i64,
            dur_ns: (end - start) as i64,
            function,
            tid: 1,
            parent: None,
            ret_addr: 0,
            args: [args[0], args[1], 640, 0],
            rax: Some(rax),
            is_unwound: false,
        }
    }

    /// The blocks of calls, each with the number of the one that made it. In the order of their ends, the last one first.
    fn blocks(calls: &[(Call, Option<usize>)]) -> (Vec<Block>, u64) {
        let all = functions();
        let mut lives = Lives::new(all.iter());
        let mut notes: Vec<Note> = Vec::new();
        for (call, around) in calls {
            let note = lives.add(&Found {
                call,
                node: call.function,
                around: around.map(|around| &notes[around]),
            });
            notes.push(note);
        }
        let (blocks, _, unknown) = lives.finish();
        (blocks, unknown)
    }

    fn told(block: &Block) -> (u64, Option<u64>, Option<u64>, Option<u64>) {
        let seq = |by: Moment| by.seq;
        (
            block.address,
            block.size,
            block.made.map(seq),
            block.freed.map(seq),
        )
    }

    #[test]
    fn blocks_at_one_address_have_their_own_ends() {
        let (found, _) = blocks(&[
            (call(MALLOC, 20, 21, [24, 0], 0x100), None),
            // Another thread gets the address before the freeing call returns.
            (call(FREE, 8, 12, [0x100, 0], 0), None),
            (call(MALLOC, 9, 11, [16, 0], 0x100), None),
            (call(MALLOC, 1, 2, [8, 0], 0x100), None),
            (call(FREE, 0, 1, [0x900, 0], 0), None),
            (call(FREE, 0, 1, [0, 0], 0), None),
        ]);
        let found: Vec<_> = found.iter().map(|block| (told(block), block.end)).collect();
        assert_eq!(
            found,
            [
                ((0x900, None, None, Some(0)), End::Freed),
                ((0x100, Some(8), Some(1), Some(8)), End::Freed),
                ((0x100, Some(16), Some(9), None), End::Lost(21)),
                ((0x100, Some(24), Some(20), None), End::Live),
            ]
        );
    }

    #[test]
    fn realloc_ends_a_block_and_makes_one() {
        let (found, _) = blocks(&[
            (call(REALLOC, 7, 8, [0x100, 99], 0), None),
            (call(REALLOC, 5, 6, [0x200, 50], 0x100), None),
            (call(REALLOC, 3, 4, [0x200, 30], 0x200), None),
            (call(REALLOC, 1, 2, [0, 10], 0x200), None),
        ]);
        let found: Vec<_> = found.iter().map(told).collect();
        assert_eq!(
            found,
            [
                (0x200, Some(10), Some(1), Some(3)),
                (0x200, Some(30), Some(3), Some(5)),
                (0x100, Some(50), Some(5), None),
            ]
        );
    }

    #[test]
    fn a_call_that_did_not_return_frees_only_what_was_allocated_again() {
        let died = |function, start, address| Call {
            end: None,
            dur_ns: -1,
            rax: None,
            is_unwound: true,
            ..call(function, start, start, [address, 0], 0)
        };
        // The program died in the second free of a block.
        let twice = [
            (died(FREE, 7, 0x100), None),
            (call(FREE, 5, 6, [0x100, 0], 0), None),
            (call(MALLOC, 1, 2, [8, 0], 0x100), None),
        ];
        // In the first one.
        let once = [
            (died(FREE, 7, 0x100), None),
            (call(MALLOC, 1, 2, [8, 0], 0x100), None),
        ];
        // A live program stands in the second one.
        let goes_on = Call {
            is_unwound: false,
            ..died(FREE, 7, 0x100)
        };
        let live = [
            (goes_on, None),
            (call(FREE, 5, 6, [0x100, 0], 0), None),
            (call(MALLOC, 1, 2, [8, 0], 0x100), None),
        ];
        // While it left the first one, the address was allocated again.
        let reused = [
            (died(FREE, 7, 0x100), None),
            (call(MALLOC, 8, 9, [8, 0], 0x100), None),
            (call(MALLOC, 1, 2, [8, 0], 0x100), None),
        ];
        // In a function around the one that freed it.
        let inner = [
            (died(DELETE, 7, 0x100), None),
            (call(FREE, 8, 9, [0x100, 0], 0), Some(0)),
            (call(MALLOC, 1, 2, [8, 0], 0x100), None),
        ];
        for (calls, expected) in [
            (&twice[..], vec![(Some(5), End::Freed)]),
            (&live, vec![(Some(5), End::Freed)]),
            (&once, vec![(None, End::Live)]),
            (&reused, vec![(Some(7), End::Freed), (None, End::Live)]),
            (&inner, vec![(Some(7), End::Freed)]),
        ] {
            let (found, _) = blocks(calls);
            let found: Vec<_> = found
                .iter()
                .map(|block| (block.freed.map(|freed| freed.seq), block.end))
                .collect();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_block_has_the_outer_one_of_two_functions() {
        let (found, unknown) = blocks(&[
            (call(NEW, 1, 4, [24, 0], 0x100), None),
            (call(MALLOC, 2, 3, [24, 0], 0x100), Some(0)),
            (call(POSIX_MEMALIGN, 0, 3, [0x7000, 64], 0), None),
            (call(ALIGNED, 1, 2, [64, 640], 0x240), Some(2)),
        ]);
        let made: Vec<_> = found
            .iter()
            .map(|block| (block.address, block.size, block.made.map(|by| by.function)))
            .collect();
        assert_eq!(
            made,
            [
                (0x240, Some(640), Some(POSIX_MEMALIGN)),
                (0x100, Some(24), Some(NEW)),
            ]
        );
        assert_eq!(unknown, 0);
        let (_, unknown) = blocks(&[(call(POSIX_MEMALIGN, 0, 3, [0x7000, 64], 0), None)]);
        assert_eq!(unknown, 1);
    }
}

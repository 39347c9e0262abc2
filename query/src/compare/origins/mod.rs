//! Where pointers and descriptors come from: which call of the thread allocated the block that an address lies in, and which
//! one opened a descriptor.
//!
//! Such calls are numbered in each thread, in the order of their ends. Two threads that have done the same have the same
//! numbers, so these are compared until the threads first do something else. What other threads or calls that are not
//! recorded allocated or opened has no number.

mod blocks;
mod descriptors;
mod starts;

use rustc_hash::FxHashMap;
use store::control::FunctionDef;

pub use blocks::Within;
pub use descriptors::{is_descriptor_name, returns_descriptor};

use super::forms::Word;
use super::hashing::Hashing;
use super::read::{Batch, CallFiles, Position};
use crate::error::Result;
use blocks::{Blocks, Lives};
use descriptors::Descriptors;
use replay::{Role, Size, role_of};

/// Blocks and descriptors that are kept. Of a recording with more, all memory is one class, and so are all descriptors.
const MOST: usize = 1 << 20;

/// Where a word was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The thread.
    pub tid: u32,
    /// The enter event of the call.
    pub start: u64,
    /// The event that has the word: that one, or the leave event.
    pub at: u64,
    /// The stack pointer of the call, where pointers to the stack are compared by their distance from it; otherwise zero.
    pub sp: u64,
}

/// From when to when something was there, and which call made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The leave event of the call that made it.
    pub from: u64,
    /// The enter event of the call that ended it; `u64::MAX` if none did.
    pub until: u64,
    /// The thread that made it.
    pub tid: u32,
    /// The number of the call among those of its thread, from 0.
    pub number: u32,
}

impl Span {
    /// Tells whether it was there at an event.
    fn has(&self, seq: u64) -> bool {
        self.from <= seq && seq <= self.until
    }
}

/// What a function does that matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Does {
    /// Something with memory.
    Memory(Role),
    /// Returns a new descriptor.
    Opens,
    /// Closes the descriptor in its first argument.
    Closes,
}

impl Does {
    /// Returns what a function does, if anything. `is_library` says that it is not the program's own.
    pub fn of(function: &FunctionDef, is_library: bool) -> Option<Does> {
        let name = function.name.strip_suffix("@plt");
        let name = name.unwrap_or(&function.name);
        let memory = role_of(name, &function.linkage).filter(|role| !role.is_of_pages());
        match memory {
            Some(role) => Some(Does::Memory(role)),
            None if is_library && descriptors::opens(name) => Some(Does::Opens),
            None if is_library && descriptors::closes(name) => Some(Does::Closes),
            None => None,
        }
    }

    /// Returns the arguments that it is told by.
    fn words(self) -> &'static [Word] {
        use Word::Int;
        let size = |size| match size {
            Size::Argument(1) => [Int(0), Int(1)].as_slice(),
            Size::Argument(2) => &[Int(2)],
            Size::Argument(3) => &[Int(0), Int(3)],
            Size::Product(0) => &[Int(0), Int(1)],
            Size::Product(_) => &[Int(0), Int(1), Int(2)],
            Size::Argument(_) => &[Int(0)],
        };
        match self {
            Does::Memory(Role::Makes(of) | Role::Moves(of) | Role::Stores(of)) => size(of),
            Does::Memory(_) | Does::Closes => &[Int(0)],
            Does::Opens => &[],
        }
    }
}

/// The blocks and descriptors of a recording.
#[derive(Debug, Default)]
pub struct Origins {
    blocks: Blocks,
    descriptors: Descriptors,
    /// Places in blocks are compared of blocks of the first thread with a lower number.
    placed_below: u32,
    /// They are compared of all blocks: both recordings are of one build.
    is_placed: bool,
    first_tid: u32,
}

/// Returns the words that are read to find them.
pub fn words(does: &[Option<Does>]) -> Vec<Word> {
    let mut words = vec![Word::Rax];
    for word in does.iter().flatten().flat_map(|does| does.words()) {
        if !words.contains(word) {
            words.push(*word);
        }
    }
    words
}

/// Reads a recording's calls. `does` is by function id, `first_tid` the thread that the program began with. What was made where
/// calls are not compared, by `hashing`, has no number: one run may make more there. `None`: there are too many blocks or
/// descriptors.
///
/// # Errors
/// A file cannot be read.
pub fn read(
    files: &CallFiles,
    does: &[Option<Does>],
    first_tid: u32,
    hashing: &Hashing,
) -> Result<Option<Origins>> {
    let mut found = Found::default();
    if does.iter().any(Option::is_some) {
        let mut calls = files.calls(Position::default(), None);
        while let Some(batch) = calls.next()? {
            for at in 0..batch.rows() {
                let does = does.get(batch.function(at) as usize).copied().flatten();
                match does {
                    Some(does) if hashing.covers(batch.tid(at), batch.start(at)) => {
                        found.add_uncounted(does, &batch, at);
                    }
                    Some(does) => found.add(does, &batch, at),
                    None => {}
                }
            }
            if found.lives.len() > MOST || found.descriptors.len() > MOST {
                return Ok(None);
            }
        }
    }
    Ok(Some(Origins {
        blocks: found.lives.finish(),
        descriptors: found.descriptors,
        placed_below: 0,
        is_placed: false,
        first_tid,
    }))
}

/// What was found so far.
#[derive(Default)]
struct Found {
    lives: Lives,
    descriptors: Descriptors,
    /// The next number of each thread.
    numbers: FxHashMap<u32, u32>,
}

impl Found {
    /// Adds a call that is not compared: it only frees and closes.
    fn add_uncounted(&mut self, does: Does, batch: &Batch, at: usize) {
        let start = batch.start(at);
        let first = batch.word(at, Word::Int(0)).unwrap_or(0);
        let returned = batch.word(at, Word::Rax).filter(|_| !batch.unwound(at));
        match does {
            Does::Memory(Role::Frees) => self.lives.free(first, start),
            Does::Memory(Role::Moves(_)) if returned.is_some_and(|address| address != 0) => {
                self.lives.free(first, start);
            }
            Does::Closes => {
                if let Some(number) = descriptors::number(first) {
                    self.descriptors.close(number, start);
                }
            }
            Does::Memory(_) | Does::Opens => {}
        }
    }

    fn add(&mut self, does: Does, batch: &Batch, at: usize) {
        // A call that had not ended may have freed or not.
        let Some(end) = batch.end(at) else { return };
        let tid = batch.tid(at);
        let start = batch.start(at);
        let arg = |number: usize| batch.word(at, Word::Int(number as u8)).unwrap_or(0);
        let returned = batch.word(at, Word::Rax).filter(|_| !batch.unwound(at));
        let size = |size: Size| match size {
            Size::Argument(number) => arg(number),
            Size::Product(first) => arg(first).saturating_mul(arg(first + 1)),
        };
        let mut span = || {
            let next = self.numbers.entry(tid).or_default();
            let number = *next;
            *next = next.saturating_add(1);
            Span {
                from: end,
                until: u64::MAX,
                tid,
                number,
            }
        };
        match does {
            Does::Memory(Role::Makes(of)) => {
                let span = span();
                if let Some(address) = returned.filter(|address| *address != 0) {
                    self.lives.make(address, size(of), span, start);
                }
            }
            Does::Memory(Role::Moves(of)) => {
                let span = span();
                let is_freed = returned == Some(0) && size(of) == 0;
                if let Some(address) = returned.filter(|address| *address != 0 || is_freed) {
                    self.lives.free(arg(0), start);
                    if address != 0 {
                        self.lives.make(address, size(of), span, start);
                    }
                }
            }
            Does::Memory(Role::Frees) => self.lives.free(arg(0), start),
            Does::Memory(_) => drop(span()),
            Does::Opens => {
                let span = span();
                if let Some(number) = returned.and_then(descriptors::number) {
                    self.descriptors.open(number, span);
                }
            }
            Does::Closes => {
                if let Some(number) = descriptors::number(arg(0)) {
                    self.descriptors.close(number, start);
                }
            }
        }
    }
}

impl Origins {
    /// Says of both recordings which places in blocks are compared: all if they are of one build; else those in blocks of the
    /// first thread, up to the first one with another size. From there on structures may have other parts.
    pub fn place(a: &mut Origins, b: &mut Origins, is_same_build: bool) {
        let (own, other) = (a.blocks.sizes(a.first_tid), b.blocks.sizes(b.first_tid));
        let pairs = own.iter().zip(&other);
        let same = pairs.take_while(|(own, other)| own == other).count();
        let next = [own.get(same), other.get(same)].into_iter().flatten();
        let below = next.map(|(number, _)| *number).min().unwrap_or(u32::MAX);
        for side in [a, b] {
            (side.placed_below, side.is_placed) = (below, is_same_build);
        }
    }

    /// Returns the block of the thread's own that an address lies in.
    #[inline]
    pub fn block(&self, address: u64, seen: Seen) -> Option<Within> {
        let found = self.blocks.at(address, seen.at)?;
        (found.span.tid == seen.tid).then_some(found)
    }

    /// Tells whether there are blocks.
    pub fn has_blocks(&self) -> bool {
        !self.blocks.is_empty()
    }

    /// Reads what is known of a block that begins at an address, and returns any of it.
    #[inline]
    pub fn touch(&self, address: u64) -> u64 {
        self.blocks.touch(address)
    }

    /// Tells whether places in a block are compared.
    pub fn is_placed(&self, span: Span) -> bool {
        self.is_placed || span.tid == self.first_tid && span.number < self.placed_below
    }

    /// Returns the call of the thread's own that opened a descriptor.
    pub fn descriptor(&self, number: u32, seen: Seen) -> Option<Span> {
        let span = self.descriptors.at(number, seen.at)?;
        (span.tid == seen.tid).then_some(span)
    }

    /// Tells whether the descriptor of this number was opened within a call, or by it.
    #[inline]
    pub fn is_opened_within(&self, number: u64, seen: Seen) -> bool {
        !self.descriptors.is_empty()
            && u32::try_from(number)
                .ok()
                .and_then(|number| self.descriptor(number, seen))
                .is_some_and(|span| span.from > seen.start)
    }
}

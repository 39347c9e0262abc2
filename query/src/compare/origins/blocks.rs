//! Blocks of memory: which one an address lay in at an event.
//!
//! The addresses at which blocks began are kept in order, as a tree: a node knows how far the blocks below it reach. So the
//! few that may have held an address are found without looking at the others. Most pointers lead to the first byte of a block:
//! those are looked up (`starts.rs`).

use std::collections::BTreeMap;

use super::Span;
use super::starts::Starts;

/// A block at one time.
#[derive(Clone, Copy, Debug)]
struct Life {
    address: u64,
    span: Span,
    size: u64,
    /// The lives behind this one that began at the same address.
    later: u32,
}

impl Life {
    fn end(&self) -> u64 {
        self.address.saturating_add(self.size.max(1))
    }
}

/// A place in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Within {
    /// The block.
    pub span: Span,
    /// Its bytes before that place.
    pub offset: u64,
}

/// Blocks, as the calls are read in the order of their ends.
#[derive(Debug, Default)]
pub struct Lives {
    all: Vec<Life>,
    /// By address: those that are there.
    there: BTreeMap<u64, usize>,
}

impl Lives {
    /// Returns how many blocks there have been.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// A call that began at event `start` returned a block. One that it got from another function is the same block.
    pub fn make(&mut self, address: u64, size: u64, span: Span, start: u64) {
        let life = Life {
            address,
            span,
            size,
            later: 0,
        };
        while let Some((other, at)) = self.last_below(life.end()) {
            let known = &mut self.all[at];
            if known.end() <= address {
                break;
            }
            if known.span.tid == span.tid && known.span.from > start {
                return;
            }
            // It was freed by what is not recorded.
            known.span.until = span.from - 1;
            self.there.remove(&other);
        }
        self.there.insert(address, self.all.len());
        self.all.push(life);
    }

    fn last_below(&self, end: u64) -> Option<(u64, usize)> {
        let (address, at) = self.there.range(..end).next_back()?;
        Some((*address, *at))
    }

    /// A call that began at event `start` freed a block.
    pub fn free(&mut self, address: u64, start: u64) {
        let Some(at) = self.there.get(&address) else {
            return;
        };
        let known = &mut self.all[*at].span;
        // What another thread got since at the same address is not what this call freed.
        if known.from < start {
            known.until = start;
            self.there.remove(&address);
        }
    }

    /// Returns all of them.
    pub fn finish(self) -> Blocks {
        let mut blocks = Blocks {
            lives: self.all,
            ..Blocks::default()
        };
        let lives = &mut blocks.lives;
        lives.sort_unstable_by_key(|life| (life.address, life.span.from));
        let mut first = 0;
        for same in lives.chunk_by_mut(|one, next| one.address == next.address) {
            let address = same[0].address;
            let reach = same.iter().map(Life::end).max().unwrap_or(address);
            let count = same.len() as u32;
            for (later, life) in (0..count).rev().zip(same) {
                life.later = later;
            }
            blocks.starts.add(address, first);
            blocks.nodes.push(Node {
                address,
                first,
                reach,
            });
            first += count;
        }
        widen(&mut blocks.nodes);
        blocks
    }
}

/// An address at which blocks began.
#[derive(Clone, Copy, Debug)]
struct Node {
    address: u64,
    /// How far the blocks reach that began here or at a node below.
    reach: u64,
    /// The first life here.
    first: u32,
}

/// Makes each node of the tree reach as far as those below it, and returns how far the root does. The root is in the middle.
fn widen(nodes: &mut [Node]) -> u64 {
    let middle = nodes.len() / 2;
    let (before, rest) = nodes.split_at_mut(middle);
    let Some((node, after)) = rest.split_first_mut() else {
        return 0;
    };
    node.reach = node.reach.max(widen(before)).max(widen(after));
    node.reach
}

/// All blocks of a recording.
#[derive(Debug, Default)]
pub struct Blocks {
    /// Where blocks began, in order.
    nodes: Vec<Node>,
    /// By address and time.
    lives: Vec<Life>,
    /// The first life at each address.
    starts: Starts,
}

impl Blocks {
    /// Returns the block that an address lay in at an event.
    #[inline]
    pub fn at(&self, address: u64, seq: u64) -> Option<Within> {
        // There is one block at a time.
        self.beginning(address, seq)
            .or_else(|| self.within(0..self.nodes.len(), address, seq))
    }

    /// Tells whether there are none.
    pub fn is_empty(&self) -> bool {
        self.lives.is_empty()
    }

    /// Reads the first life at an address, and returns any of it.
    #[inline]
    pub fn touch(&self, address: u64) -> u64 {
        let first = self.starts.near(address);
        let life = first.and_then(|first| self.lives.get(first as usize));
        life.map_or(0, |life| life.address ^ life.size)
    }

    /// Returns the block that began at an address.
    #[inline]
    fn beginning(&self, address: u64, seq: u64) -> Option<Within> {
        let mut first = self.starts.near(address)? as usize;
        loop {
            let life = self.lives.get(first)?;
            if life.address >= address {
                return match life.address == address {
                    true => self.of_address(first, address, seq),
                    false => None,
                };
            }
            first += 1 + life.later as usize;
        }
    }

    fn within(&self, nodes: std::ops::Range<usize>, address: u64, seq: u64) -> Option<Within> {
        if nodes.is_empty() {
            return None;
        }
        let middle = nodes.start + nodes.len() / 2;
        let node = self.nodes[middle];
        if node.reach <= address {
            return None;
        }
        if node.address > address {
            return self.within(nodes.start..middle, address, seq);
        }
        self.within(middle + 1..nodes.end, address, seq)
            .or_else(|| self.of_address(node.first as usize, address, seq))
            .or_else(|| self.within(nodes.start..middle, address, seq))
    }

    /// Returns the block that held an address, if its life is `first` or one of the later ones at the same place.
    #[inline]
    fn of_address(&self, first: usize, address: u64, seq: u64) -> Option<Within> {
        let mut life = &self.lives[first];
        if life.later > 0 {
            let lives = &self.lives[first..=first + life.later as usize];
            let after = lives.partition_point(|life| life.span.from <= seq);
            life = lives[..after].last()?;
        }
        let is_it = life.span.has(seq) && address < life.end();
        is_it.then_some(Within {
            span: life.span,
            offset: address - life.address,
        })
    }

    /// Returns the sizes of a thread's blocks by their numbers, in order.
    pub fn sizes(&self, tid: u32) -> Vec<(u32, u64)> {
        let own = self.lives.iter().filter(|life| life.span.tid == tid);
        let mut sizes: Vec<(u32, u64)> = own.map(|life| (life.span.number, life.size)).collect();
        sizes.sort_unstable();
        sizes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(from: u64, number: u32) -> Span {
        Span {
            from,
            until: u64::MAX,
            tid: 1,
            number,
        }
    }

    #[test]
    fn an_address_is_of_the_block_that_was_there() {
        let mut lives = Lives::default();
        lives.make(0x100, 0x40, span(2, 0), 1);
        lives.free(0x100, 10);
        lives.make(0x120, 0x10, span(12, 1), 11);
        // Within `operator new`, malloc made the same block.
        lives.make(0x120, 0x10, span(13, 2), 10);
        // What freed 0x120 is not recorded.
        lives.make(0x100, 0x100, span(20, 3), 19);
        // It began before that block was made.
        lives.free(0x100, 15);
        lives.make(0x800, 0, span(30, 4), 29);
        let blocks = lives.finish();
        let at = |address, seq| {
            let found = blocks.at(address, seq)?;
            Some((found.span.number, found.offset))
        };
        for (address, seq, expected) in [
            (0x100, 1, None),
            (0x100, 2, Some((0, 0))),
            (0x13f, 10, Some((0, 0x3f))),
            (0x13f, 11, None),
            (0x12f, 12, Some((1, 0xf))),
            (0x130, 12, None),
            (0x120, 19, Some((1, 0))),
            (0x120, 20, Some((3, 0x20))),
            (0x1ff, 99, Some((3, 0xff))),
            (0x200, 99, None),
            (0x800, 99, Some((4, 0))),
            (0x801, 99, None),
            (0x0, 99, None),
        ] {
            assert_eq!(at(address, seq), expected, "{address:#x} at {seq}");
        }
        assert_eq!(blocks.sizes(1), [(0, 0x40), (1, 0x10), (3, 0x100), (4, 0)]);
        assert!(blocks.sizes(2).is_empty());
    }

    #[test]
    fn blocks_are_found_as_by_looking_at_all() {
        let mut seed = 7u64;
        let mut next = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % below
        };
        let mut lives = Lives::default();
        let mut seq = 0;
        for number in 0..300 {
            seq += 4;
            let (address, size) = (0x1000 + 8 * next(400), 1 + next(300));
            lives.make(address, size, span(seq, number), seq - 1);
            if next(2) == 0 {
                lives.free(address, seq + 1);
            }
        }
        let all = lives.all.clone();
        let blocks = lives.finish();
        for _ in 0..20_000 {
            let (address, seq) = (0xfff + next(3600), next(seq + 8));
            let mut found = all
                .iter()
                .filter(|life| (life.address..life.end()).contains(&address) && life.span.has(seq));
            let expected = found
                .next()
                .map(|life| (life.span.number, address - life.address));
            assert!(found.next().is_none(), "one block at a time");
            let found = blocks.at(address, seq);
            assert_eq!(
                found.map(|found| (found.span.number, found.offset)),
                expected
            );
        }
    }
}

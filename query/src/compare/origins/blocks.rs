//! Blocks of memory: which one an address lay in at an event.
//!
//! The addresses at which blocks began are kept in order, as a tree: a node knows how far the blocks below it reach. So the
//! few that may have held an address are found without looking at the others. Most pointers lead to the first byte of a block:
//! those are looked up.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::Span;

/// A block at one time.
#[derive(Clone, Copy, Debug)]
struct Life {
    span: Span,
    size: u64,
}

impl Life {
    fn end(&self, address: u64) -> u64 {
        address.saturating_add(self.size.max(1))
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
    all: Vec<(u64, Life)>,
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
        let life = Life { span, size };
        while let Some((other, at)) = self.last_below(life.end(address)) {
            let known = &mut self.all[at].1;
            if known.end(other) <= address {
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
        self.all.push((address, life));
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
        let known = &mut self.all[*at].1.span;
        // What another thread got since at the same address is not what this call freed.
        if known.from < start {
            known.until = start;
            self.there.remove(&address);
        }
    }

    /// Returns all of them.
    pub fn finish(mut self) -> Blocks {
        self.all
            .sort_by_key(|(address, life)| (*address, life.span.from));
        let mut blocks = Blocks::default();
        let mut reach = Vec::new();
        for (address, life) in &self.all {
            if blocks.addresses.last() != Some(address) {
                blocks.firsts.push(blocks.lives.len() as u32);
                blocks.nodes.insert(*address, blocks.addresses.len() as u32);
                blocks.addresses.push(*address);
                reach.push(0);
            }
            if let Some(reach) = reach.last_mut() {
                *reach = life.end(*address).max(*reach);
            }
            blocks.lives.push(*life);
        }
        blocks.firsts.push(blocks.lives.len() as u32);
        widen(&mut reach);
        blocks.reach = reach;
        blocks
    }
}

/// Makes each node of the tree reach as far as those below it, and returns how far the root does. The root is in the middle.
fn widen(reach: &mut [u64]) -> u64 {
    let middle = reach.len() / 2;
    let Some((own, after)) = reach.split_at_mut(middle).1.split_first_mut() else {
        return 0;
    };
    let after = widen(after);
    let own_end = *own;
    let before = widen(&mut reach[..middle]);
    reach[middle] = own_end.max(after).max(before);
    reach[middle]
}

/// All blocks of a recording.
#[derive(Debug, Default)]
pub struct Blocks {
    /// Where blocks began, in order.
    addresses: Vec<u64>,
    /// The place of each.
    nodes: FxHashMap<u64, u32>,
    /// How far the blocks of each node reach.
    reach: Vec<u64>,
    /// The first life at each address, and the number of all.
    firsts: Vec<u32>,
    lives: Vec<Life>,
}

impl Blocks {
    /// Returns the block that an address lay in at an event.
    #[inline]
    pub fn at(&self, address: u64, seq: u64) -> Option<Within> {
        if self.addresses.first().is_none_or(|first| address < *first) {
            return None;
        }
        let node = self.nodes.get(&address);
        // There is one block at a time.
        node.and_then(|node| self.of_node(*node as usize, address, seq))
            .or_else(|| self.within(0..self.addresses.len(), address, seq))
    }

    fn within(&self, nodes: std::ops::Range<usize>, address: u64, seq: u64) -> Option<Within> {
        if nodes.is_empty() {
            return None;
        }
        let middle = nodes.start + nodes.len() / 2;
        if self.reach[middle] <= address {
            return None;
        }
        if self.addresses[middle] > address {
            return self.within(nodes.start..middle, address, seq);
        }
        self.within(middle + 1..nodes.end, address, seq)
            .or_else(|| self.of_node(middle, address, seq))
            .or_else(|| self.within(nodes.start..middle, address, seq))
    }

    fn of_node(&self, node: usize, address: u64, seq: u64) -> Option<Within> {
        let begun = self.addresses[node];
        let lives = &self.lives[self.firsts[node] as usize..self.firsts[node + 1] as usize];
        let after = lives.partition_point(|life| life.span.from <= seq);
        let life = lives[..after].last()?;
        let is_it = life.span.has(seq) && address < life.end(begun);
        is_it.then_some(Within {
            span: life.span,
            offset: address - begun,
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
            let (address, size) = (0x1000 + 16 * next(200), 1 + next(300));
            lives.make(address, size, span(seq, number), seq - 1);
            if next(2) == 0 {
                lives.free(address, seq + 1);
            }
        }
        let all = lives.all.clone();
        let blocks = lives.finish();
        for _ in 0..20_000 {
            let (address, seq) = (0xfff + next(3600), next(seq + 8));
            let mut found = all.iter().filter(|(begun, life)| {
                (*begun..life.end(*begun)).contains(&address) && life.span.has(seq)
            });
            let expected = found
                .next()
                .map(|(begun, life)| (life.span.number, address - begun));
            assert!(found.next().is_none(), "one block at a time");
            let found = blocks.at(address, seq);
            assert_eq!(
                found.map(|found| (found.span.number, found.offset)),
                expected
            );
        }
    }
}

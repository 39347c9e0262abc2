//! Finds where a recorded program keeps its data, using its snapshots.

use std::ops::Range;

use replay::Timeline;
use store::memory::{Memory, PAGE_LEN, Seen as Page};

use crate::bench::Subject;

/// Returns the program's own data: pages of it that ever held something.
pub fn data(timeline: &Timeline, subject: &Subject) -> Vec<Range<u64>> {
    let mut memory = Memory::open(timeline.recording()).unwrap();
    let last = memory.len() as u32 - 1;
    let regions = memory.regions(last).to_vec();
    let path = subject.path.to_str().expect("a path of letters");
    let mut ranges: Vec<Range<u64>> = Vec::new();
    let mut end = 0;
    for region in regions {
        // Memory without file contents follows the file's mapping.
        let is_own = region.name == path || region.name.is_empty() && region.addr == end;
        if !is_own {
            continue;
        }
        end = region.addr + region.len;
        for page in (region.addr..end).step_by(PAGE_LEN as usize) {
            let is_used = (0..=last).any(|id| {
                let seen = memory.page(id, page).unwrap();
                matches!(seen, Page::Bytes(bytes) if bytes.iter().any(|byte| *byte != 0))
            });
            match ranges.last_mut() {
                _ if !is_used => {}
                Some(range) if range.end == page => range.end += PAGE_LEN,
                _ => ranges.push(page..page + PAGE_LEN),
            }
        }
    }
    assert!(!ranges.is_empty(), "the program has data");
    ranges
}

/// Returns the memory of the main thread's stack.
pub fn stack(timeline: &Timeline) -> Range<u64> {
    let memory = Memory::open(timeline.recording()).unwrap();
    let regions = memory.regions(memory.len() as u32 - 1);
    let stack = regions.iter().find(|region| region.name == "[stack]");
    let stack = stack.expect("it has a stack");
    stack.addr..stack.addr + stack.len
}

/// Ids of the only thread, in the recorded run and in gdb's: a mutex stores its owner's id.
#[derive(Clone, Copy, Debug)]
pub struct Owner {
    pub ours: u32,
    pub theirs: u32,
}

impl Owner {
    /// Returns the offsets at which bytes differ from gdb's where those count. The address is a multiple of four.
    pub fn differences(self, ours: &[u8], theirs: &[Option<u8>]) -> Vec<usize> {
        let differs = |at: &usize| theirs[*at].is_some_and(|other| other != ours[*at]);
        let is_owner = |at: &usize| {
            let word = at / 4 * 4..at / 4 * 4 + 4;
            let theirs = theirs.get(word.clone()).into_iter().flatten().flatten();
            ours.get(word)
                .is_some_and(|word| *word == self.ours.to_le_bytes())
                && theirs.eq(&self.theirs.to_le_bytes())
        };
        let differing = (0..ours.len()).filter(differs);
        differing.filter(|at| !is_owner(at)).collect()
    }
}

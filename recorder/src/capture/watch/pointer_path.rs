//! Paths through pointers to memory, starting from what the runtime has, and their encoding for the runtime.

use agent::shared::{
    WATCH_BASE_SHIFT, WATCH_CALLER_ENTER, WATCH_CALLER_LEAVE, WATCH_FUNCTION_SHIFT, WATCH_PARTLY,
    WATCH_TEXT,
};
use debuginfo::Register;

/// A path to memory: an address, then pointers to follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PointerPath {
    /// The register to which the address is relative.
    pub base: Option<Register>,
    /// Relative to the base, modulo 2^64.
    pub address: u64,
    /// Offset to add after each pointer, modulo 2^64.
    pub offsets: Vec<u64>,
}

pub(super) type Reads = Vec<Read>;

/// Memory to capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Read {
    pub way: PointerPath,
    pub len: usize,
    pub until: Until,
}

/// Where the captured memory ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Until {
    /// Captured in full or not at all.
    Len,
    /// As much as is mapped.
    There,
    /// After a NUL.
    Nul,
}

/// At which events to capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    Always,
    /// When the function with this number is entered.
    Entered(u32),
    /// When a function that returns to one of these addresses is entered or left.
    Called(Sites),
}

/// Return sites of a function's calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sites {
    /// The first return address.
    pub from: u64,
    /// End of the range, exclusive.
    pub to: u64,
    pub at_enters: bool,
    pub at_leaves: bool,
}

/// Drops the pointers that other paths go through: the runtime captures them anyway.
pub(super) fn without_steps(reads: Reads) -> Reads {
    let mut kept: Reads = Vec::new();
    for read in &reads {
        let way = &read.way;
        let is_step = |other: &Read| {
            let other = &other.way;
            read.len == 8
                && other.base == way.base
                && other.address == way.address
                && other.offsets.len() > way.offsets.len()
                && other.offsets.starts_with(&way.offsets)
        };
        if !reads.iter().any(is_step) && !kept.contains(read) {
            kept.push(read.clone());
        }
    }
    kept
}

/// Drops memory that lies within other captured memory.
pub(super) fn without_parts(reads: Reads) -> Reads {
    let is_in = |part: &Read, whole: &Read| {
        let last = |way: &PointerPath| way.offsets.last().copied().unwrap_or(way.address);
        let mut same = part.way.clone();
        match same.offsets.last_mut() {
            Some(offset) => *offset = last(&whole.way),
            None => same.address = last(&whole.way),
        }
        let from = last(&part.way).wrapping_sub(last(&whole.way));
        same == whole.way
            && whole.until == Until::Len
            && part.len < whole.len
            && from <= (whole.len - part.len) as u64
    };
    let kept = reads
        .iter()
        .filter(|part| !reads.iter().any(|whole| is_in(part, whole)));
    kept.cloned().collect()
}

/// Encodes the reads for the runtime: docs/wire.md, the control page.
pub(super) fn program(reads: &[Read], when: When) -> Vec<u64> {
    // Without reads, the value consists of registers alone.
    let none = Read {
        way: PointerPath {
            base: None,
            address: 0,
            offsets: Vec::new(),
        },
        len: 0,
        until: Until::Len,
    };
    let reads = match (reads, when) {
        ([], When::Called(_)) => std::slice::from_ref(&none),
        _ => reads,
    };
    let mut words = Vec::new();
    for Read { way, len, until } in reads {
        let base = way.base.map_or(0, |register| 1 + u64::from(register.0));
        let head = way.offsets.len() as u64 | base << WATCH_BASE_SHIFT;
        match when {
            When::Always => words.push(head),
            When::Entered(function) => {
                words.push(head | (1 + u64::from(function)) << WATCH_FUNCTION_SHIFT);
            }
            When::Called(sites) => {
                let enters = if sites.at_enters {
                    WATCH_CALLER_ENTER
                } else {
                    0
                };
                let leaves = if sites.at_leaves {
                    WATCH_CALLER_LEAVE
                } else {
                    0
                };
                words.extend([head | enters | leaves, sites.from, sites.to]);
            }
        }
        words.push(way.address);
        words.extend(&way.offsets);
        let until = match until {
            Until::Len => 0,
            Until::There => WATCH_PARTLY,
            Until::Nul => WATCH_TEXT,
        };
        words.push(*len as u64 | until);
    }
    words
}

//! Pages that cannot be written at the moment, because code in them has been translated, and what is known of how the program writes
//! to them: where code and data share pages, most writes change no code, and these need not be recorded.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::address_space::PAGE;
use crate::log::Span;

/// No more bytes than these are data beside code; what writes more makes new code.
const DATA: usize = 16;
/// So many writes beside its code are passed after the first one, and at most.
const PASSED: Range<u32> = 4..1 << 20;

/// A page whose writes are prevented.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Guard {
    /// The pages whose code that protects: itself, or others that are the same memory.
    pub(super) codes: Vec<u64>,
    /// The program's protection of it.
    pub(super) protection: u32,
}

/// A page with code, as it was when it was looked at last.
#[derive(Debug, Default)]
struct Seen {
    bytes: Vec<u8>,
    /// Writes beside the code since its translations were forgotten, and how many may be.
    passed: u32,
    most: u32,
}

#[derive(Debug, Default)]
pub(super) struct Guards {
    pages: FxHashMap<u64, Guard>,
    seen: FxHashMap<u64, Seen>,
}

impl Guards {
    pub(super) fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Writes to a page are to be prevented, for the code in `code`. Returns whether they were not.
    pub(super) fn add(&mut self, page: u64, code: u64, protection: u32) -> bool {
        let is_new = !self.pages.contains_key(&page);
        let guard = self.pages.entry(page).or_insert_with(|| Guard {
            codes: Vec::new(),
            protection,
        });
        if !guard.codes.contains(&code) {
            guard.codes.push(code);
        }
        is_new
    }

    /// The same again.
    pub(super) fn put_back(&mut self, page: u64, guard: Guard) {
        self.pages.insert(page, guard);
    }

    /// Writes to a page are prevented no more.
    pub(super) fn take(&mut self, page: u64) -> Option<Guard> {
        self.pages.remove(&page)
    }

    pub(super) fn has(&self, page: u64) -> bool {
        self.pages.contains_key(&page)
    }

    /// Takes out those in a range.
    pub(super) fn take_in(&mut self, start: u64, end: u64) -> Vec<(u64, Guard)> {
        let pages = self.pages.keys().copied();
        let range = start / PAGE..end.div_ceil(PAGE);
        let found: Vec<u64> = pages.filter(|page| range.contains(page)).collect();
        let mut taken = Vec::new();
        for page in found {
            taken.extend(self.pages.remove(&page).map(|guard| (page, guard)));
        }
        taken
    }

    /// The program has other memory or another protection there: nothing of ours is left. Returns code elsewhere that was protected by it.
    pub(super) fn replaced(&mut self, span: Span) -> Vec<u64> {
        let range = span.start / PAGE..span.end.div_ceil(PAGE);
        self.seen.retain(|page, _| !range.contains(page));
        let taken = self.take_in(span.start, span.end).into_iter();
        let codes = taken.flat_map(|(_, guard)| guard.codes);
        codes.filter(|code| !range.contains(code)).collect()
    }

    /// A page with code holds this when its writes begin to be prevented.
    pub(super) fn see(&mut self, code: u64, bytes: Vec<u8>) {
        let seen = self.seen.entry(code).or_default();
        if !seen.bytes.is_empty() {
            seen.most = match count(&seen.bytes, &bytes) {
                0..=DATA => (seen.most * 4).clamp(PASSED.start, PASSED.end),
                _ => 0,
            };
        }
        seen.passed = 0;
        seen.bytes = bytes;
    }

    /// Something was written to a page with code, which holds this now. Returns whether the translations of its code, from where to
    /// where each, are still right, and are to be kept.
    pub(super) fn passes(&mut self, code: u64, bytes: Vec<u8>, blocks: &[(u64, u64)]) -> bool {
        let Some(seen) = self.seen.get_mut(&code) else {
            return false;
        };
        let start = code * PAGE;
        let is_same = |(from, end): &(u64, u64)| {
            let from = from.saturating_sub(start) as usize;
            let end = (end - start).min(PAGE) as usize;
            matches!((seen.bytes.get(from..end), bytes.get(from..end)),
                (Some(before), Some(now)) if before == now)
        };
        let passes = seen.passed < seen.most && !blocks.is_empty() && blocks.iter().all(is_same);
        if passes {
            seen.passed += 1;
            seen.bytes = bytes;
        }
        passes
    }
}

/// How many bytes differ.
fn count(before: &[u8], now: &[u8]) -> usize {
    let both = before.iter().zip(now);
    both.filter(|(before, now)| before != now).count()
}

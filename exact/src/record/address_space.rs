//! What is known of the program's address space: where its code can be executed, and where it can change.

use std::ops::Range;

use super::files::Files;
use super::guards::Guards;
use super::others::Others;
use crate::log::{Space, Span};

pub(super) const PAGE: u64 = 4096;

#[derive(Debug, Default)]
pub(super) struct AddressSpace {
    /// Memory that can be written and executed.
    both: Vec<Span>,
    /// Pages of it that cannot be written at the moment.
    pub(super) guards: Guards,
    /// What can change elsewhere.
    pub(super) files: Files,
    pub(super) others: Others,
    /// Memory whose code can be executed, as far as it is known.
    executable: Vec<Span>,
    /// Before recording began, or began again, the program has mapped shared memory: where it can be written is not known.
    pub(super) has_shared_before: bool,
    /// The end of the heap, once the program has asked for it.
    pub(super) brk: u64,
}

impl AddressSpace {
    /// The program has this protection there from now on.
    pub(super) fn protect(&mut self, span: Span) {
        let both = (libc::PROT_WRITE | libc::PROT_EXEC) as u32;
        self.executable
            .retain(|known| known.end <= span.start || span.end <= known.start);
        self.both = std::mem::take(&mut self.both)
            .into_iter()
            .flat_map(|known| without(known, span))
            .collect();
        if span.protection & both == both {
            self.both.push(span);
        }
    }

    /// These are all of its mappings.
    pub(super) fn set(&mut self, spans: &[Span]) {
        self.both.clear();
        self.executable.clear();
        spans.iter().for_each(|span| self.protect(*span));
    }

    /// Memory has been moved, and has the same protection. It is not known any more what can be executed.
    pub(super) fn move_to(&mut self, from: Span, to: Span) {
        let has = |span: &Span| (span.start..span.end).contains(&from.start);
        let moved = self.both.iter().find(|span| has(span)).copied();
        self.protect(Span {
            protection: 0,
            ..from
        });
        let protection = moved.map_or(0, |span| span.protection);
        self.protect(Span { protection, ..to });
        self.executable.clear();
    }

    /// What of these, in ascending order, can be executed is all that can be.
    pub(super) fn set_executable(&mut self, mut spans: Vec<Span>) {
        spans.retain(|span| span.protection & libc::PROT_EXEC as u32 != 0);
        spans.dedup_by(|next, span| {
            let joins = span.end == next.start;
            if joins {
                span.end = next.end;
            }
            joins
        });
        self.executable = spans;
    }

    /// The memory around `pc` that can be executed; `None` if that is not known.
    pub(super) fn executable_around(&self, pc: u64) -> Option<Range<u64>> {
        let known = self.executable.iter();
        let mut spans = known.map(|span| span.start..span.end);
        spans.find(|span| span.contains(&pc))
    }

    /// Pages by which the program can write to a page with code, each with its protection.
    pub(super) fn writable(&self, code: u64) -> Vec<(u64, u32)> {
        let has = |span: &&Span| (span.start..span.end).contains(&(code * PAGE));
        let spans = self.both.iter().filter(has);
        let own = spans.map(|span| (code, span.protection));
        let others = self.files.writable(code).into_iter();
        own.chain(others.filter(|(page, _)| *page != code))
            .collect()
    }

    /// Whether another process, or the program elsewhere, may write to a page.
    pub(super) fn may_be_shared(&self, page: u64) -> bool {
        self.has_shared_before || self.files.is_shared(page)
    }

    /// The end of the heap is here now. Returns what that means.
    pub(super) fn set_brk(&mut self, now: u64) -> Option<Space> {
        let before = std::mem::replace(&mut self.brk, now);
        let (before, now) = (before.next_multiple_of(PAGE), now.next_multiple_of(PAGE));
        let span = |start, end| Span {
            start,
            end,
            protection: 3,
        };
        match before {
            0 => None,
            _ if now > before => Some(Space::Map(span(before, now))),
            _ if now < before => Some(Space::Unmap(span(now, before))),
            _ => None,
        }
    }
}

/// What is left of a span.
pub(super) fn without(span: Span, gone: Span) -> impl Iterator<Item = Span> {
    let before = Span {
        end: span.end.min(gone.start),
        ..span
    };
    let after = Span {
        start: span.start.max(gone.end),
        ..span
    };
    let parts = [before, after].into_iter();
    parts.filter(|part| part.start < part.end)
}

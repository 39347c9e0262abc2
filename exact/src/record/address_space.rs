//! What is known of the program's address space: where its code can be executed, and where it can change.

use rustc_hash::FxHashSet;

use crate::log::{Space, Span};

pub(super) const PAGE: u64 = 4096;

#[derive(Debug, Default)]
pub(super) struct AddressSpace {
    /// Memory that can be written and executed.
    both: Vec<Span>,
    /// Pages of it that cannot be written at the moment, because code in them has been translated.
    guarded: FxHashSet<u64>,
    /// Memory whose code can be executed, as far as it is known.
    executable: Vec<Span>,
    /// The end of the heap, once the program has asked for it.
    pub(super) brk: u64,
}

impl AddressSpace {
    /// The program has this protection there from now on.
    pub(super) fn protect(&mut self, span: Span) {
        let both = (libc::PROT_WRITE | libc::PROT_EXEC) as u32;
        self.executable
            .retain(|known| known.end <= span.start || span.end <= known.start);
        self.both
            .retain(|known| !(span.start <= known.start && known.end <= span.end));
        self.guarded
            .retain(|page| !(span.start..span.end).contains(&(page * PAGE)));
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

    /// It is not known any more what can be executed.
    pub(super) fn forget_executable(&mut self) {
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

    /// The end of the memory from `pc` on that can be executed; `None` if that is not known.
    pub(super) fn executable_until(&self, pc: u64) -> Option<u64> {
        let mut known = self.executable.iter();
        let span = known.find(|span| (span.start..span.end).contains(&pc));
        span.map(|span| span.end)
    }

    /// Code in this page has been translated. Returns whether writes to the page must be prevented from now on.
    pub(super) fn guard(&mut self, page: u64) -> bool {
        let has = |span: &Span| (span.start..span.end).contains(&(page * PAGE));
        self.both.iter().any(has) && self.guarded.insert(page)
    }

    /// Writes to this page are prevented no more. Returns whether they were.
    pub(super) fn unguard(&mut self, page: u64) -> bool {
        self.guarded.remove(&page)
    }

    /// The same for all pages where they were.
    pub(super) fn unguard_all(&mut self) -> FxHashSet<u64> {
        std::mem::take(&mut self.guarded)
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

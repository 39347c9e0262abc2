//! Finds events other than calls, by number or by thread, in the sealed files of events.

use std::sync::Arc;

use store::columns::{EventsFile, ReadEvent};
use store::seal::SealedPart;

use crate::cache::Cache;
use crate::error::Result;
use crate::event::Kind;
use crate::marks::Mark;
use crate::pages::{Page, Pages};

/// Pages whose heads are kept: 8,192 events of 24 bytes each.
const PAGES: usize = 64;

/// Events that are kept as a whole: one question asks about the same event several times. A stop has up to 64 KiB of stack.
const EVENTS: usize = 16;

/// The head of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub seq: u64,
    pub ts_ns: i64,
    pub tid: Option<u32>,
    pub kind: Kind,
}

/// All events other than calls.
pub(crate) struct Others {
    files: Vec<EventsFile>,
    pages: Pages,
    heads: Cache<u32, Vec<Head>>,
    events: Cache<u64, ReadEvent>,
}

impl Others {
    /// Opens the files of events.
    pub(crate) fn open(parts: &[SealedPart]) -> Result<Self> {
        let (mut files, mut pages) = (Vec::new(), Pages::default());
        for part in parts.iter().filter(|part| part.part.events > 0) {
            let file = EventsFile::open(&part.events)?;
            pages.add(file.pages());
            files.push(file);
        }
        Ok(Self {
            files,
            pages,
            heads: Cache::new(PAGES),
            events: Cache::new(EVENTS),
        })
    }

    /// Returns how many pages there are.
    pub(crate) fn pages(&self) -> usize {
        self.pages.len()
    }

    /// Returns the heads of the events of a page.
    pub(crate) fn heads(&self, page: usize) -> Result<Arc<Vec<Head>>> {
        self.heads.get(page as u32, || self.read_heads(page))
    }

    /// The same, without caching.
    pub(crate) fn read_heads(&self, page: usize) -> Result<Vec<Head>> {
        let Page { file, page, .. } = self.pages.get(page);
        let mut heads = Vec::new();
        self.files[file].heads(page, |head| {
            heads.push(Head {
                seq: head.seq,
                ts_ns: head.ts_ns,
                tid: head.tid,
                kind: Kind::of_name(head.kind),
            });
        })?;
        Ok(heads)
    }

    /// Returns the head of event `seq`, if it is not an enter or leave.
    pub(crate) fn head(&self, seq: u64) -> Result<Option<Head>> {
        let Some(at) = self.pages.holding(seq) else {
            return Ok(None);
        };
        let heads = self.heads(at)?;
        let found = heads.binary_search_by_key(&seq, |head| head.seq);
        Ok(found.ok().map(|at| heads[at]))
    }

    /// Reads the event `seq`, if it is not an enter or leave.
    pub(crate) fn event(&self, seq: u64) -> Result<Option<ReadEvent>> {
        if let Some(known) = self.events.find(&seq) {
            return Ok(Some(ReadEvent::clone(&known)));
        }
        if self.head(seq)?.is_none() {
            return Ok(None);
        }
        let Some(at) = self.pages.holding(seq) else {
            return Ok(None);
        };
        let read = self.files[self.pages.get(at).file].event(seq)?;
        Ok(read.map(|event| ReadEvent::clone(&self.events.put(seq, event))))
    }

    /// Reads the events of `marks`, in order; missing ones are omitted. A page with several of them is read once.
    pub(crate) fn events(&self, marks: &[Mark]) -> Result<Vec<ReadEvent>> {
        let mut found = Vec::with_capacity(marks.len());
        for near in marks.chunk_by(|a, b| self.pages.holding(a.seq) == self.pages.holding(b.seq)) {
            match (near, self.pages.holding(near[0].seq)) {
                ([only], _) => found.extend(self.event(only.seq)?),
                (_, None) => {}
                (_, Some(at)) => {
                    let Page { file, page, .. } = self.pages.get(at);
                    let seqs: Vec<u64> = near.iter().map(|mark| mark.seq).collect();
                    found.extend(self.files[file].events(page, &seqs)?);
                }
            }
        }
        Ok(found)
    }

    /// Finds the last event in `floor..=seq` that `wanted` accepts.
    pub(crate) fn last(
        &self,
        floor: u64,
        seq: u64,
        wanted: impl Fn(&Head) -> bool,
    ) -> Result<Option<Head>> {
        let end = self.pages.beginning_before(seq.saturating_add(1));
        for at in (0..end).rev() {
            if self.pages.get(at).last < floor {
                return Ok(None);
            }
            let heads = self.heads(at)?;
            let mut inside = heads.iter().rev();
            let found = inside.find(|head| head.seq <= seq && head.seq >= floor && wanted(head));
            if let Some(head) = found {
                return Ok(Some(*head));
            }
        }
        Ok(None)
    }

    /// Returns all events of a kind, in order.
    pub(crate) fn of_kind(&self, kind: Kind) -> Result<Vec<Head>> {
        let mut found = Vec::new();
        for page in 0..self.pages.len() {
            let heads = self.read_heads(page)?;
            found.extend(heads.into_iter().filter(|head| head.kind == kind));
        }
        Ok(found)
    }

    /// Returns the events of a kind, by its name in queries: all of them, or those that `wanted` accepts.
    pub(crate) fn named(
        &self,
        kind: &str,
        wanted: Option<&dyn Fn(&ReadEvent) -> bool>,
    ) -> Result<Vec<u64>> {
        let mut found = Vec::new();
        for number in 0..self.pages.len() {
            let Page { file, page, .. } = self.pages.get(number);
            let mut seqs = Vec::new();
            self.files[file].heads(page, |head| {
                if head.kind == kind {
                    seqs.push(head.seq);
                }
            })?;
            match wanted {
                None => found.append(&mut seqs),
                Some(_) if seqs.is_empty() => {}
                Some(wanted) => {
                    let events = self.files[file].events(page, &seqs)?;
                    let events = events.iter().filter(|event| wanted(event));
                    found.extend(events.map(|event| event.seq));
                }
            }
        }
        Ok(found)
    }

    /// Finds the first event in `seq..=ceiling` that `wanted` accepts.
    pub(crate) fn first(
        &self,
        seq: u64,
        ceiling: u64,
        wanted: impl Fn(&Head) -> bool,
    ) -> Result<Option<Head>> {
        let first = self.pages.reaching(seq);
        for at in first..self.pages.len() {
            if self.pages.get(at).first > ceiling {
                return Ok(None);
            }
            let heads = self.heads(at)?;
            let mut inside = heads.iter();
            let found = inside.find(|head| head.seq >= seq && head.seq <= ceiling && wanted(head));
            if let Some(head) = found {
                return Ok(Some(*head));
            }
        }
        Ok(None)
    }
}

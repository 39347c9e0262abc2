//! When threads were stopped by a live session or waited for the recorder, as their events tell one after another.

use rustc_hash::{FxHashMap, FxHashSet};
use store::columns::EventsFile;

use super::away::{Away, Raised};
use crate::error::Result;
use crate::overview::{Made, is_made};

/// What an event says about its thread.
#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Raised,
    Paused,
    Resumed,
}

/// The stops that ended, and those that have begun.
#[derive(Default)]
pub struct Stops {
    /// Threads that stand, and since when, in ns.
    since: FxHashMap<u32, i64>,
    raised: Raised,
    made: Made,
    held: Vec<(u32, i64, i64)>,
    slept: FxHashMap<u32, u64>,
}

impl Stops {
    /// Reads a page of events; those before it have been read.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(&mut self, file: &EventsFile, page: usize) -> Result<()> {
        let (mut heads, mut whole) = (Vec::new(), Vec::new());
        file.heads(page, |event| {
            let Some(tid) = event.tid else { return };
            let what = match event.kind {
                "arming" | "ring_wait" => return whole.push(event.seq),
                "exception" => What::Raised,
                "pause" => What::Paused,
                "resume" => {
                    whole.push(event.seq);
                    What::Resumed
                }
                _ => return,
            };
            heads.push((what, tid, event.seq, event.ts_ns));
        })?;
        let calls = self.read_whole(file, page, &whole)?;
        for (what, tid, seq, ts_ns) in heads {
            match what {
                // Afterwards the thread stands where it stood.
                What::Resumed if calls.contains(&seq) => self.made.begin(tid, seq),
                _ => self.add(what, tid, seq, ts_ns),
            }
        }
        Ok(())
    }

    /// Adds waits, and returns the events at which threads were let go to make a call for the debugger.
    fn read_whole(
        &mut self,
        file: &EventsFile,
        page: usize,
        seqs: &[u64],
    ) -> Result<FxHashSet<u64>> {
        let mut calls = FxHashSet::default();
        if seqs.is_empty() {
            return Ok(calls);
        }
        for event in file.events(page, seqs)? {
            match (event.kind.as_str(), event.tid, event.value) {
                ("resume", ..) if is_made(event.text.as_deref()) => {
                    calls.insert(event.seq);
                }
                ("arming" | "ring_wait", Some(tid), Some(ns)) => {
                    self.held.push((tid, event.ts_ns - ns, event.ts_ns));
                    *self.slept.entry(tid).or_default() += u64::try_from(ns).unwrap_or(0);
                }
                _ => {}
            }
        }
        Ok(calls)
    }

    fn add(&mut self, what: What, tid: u32, seq: u64, ts_ns: i64) {
        match what {
            What::Raised => self.raised = Raised::new(tid, seq, ts_ns),
            What::Paused => {
                let since = self.raised.stopped_ns(tid, seq, ts_ns);
                self.since.entry(tid).or_insert(since);
            }
            What::Resumed => {
                self.made.end(tid, seq);
                let since = self.since.remove(&tid);
                self.held.extend(since.map(|since| (tid, since, ts_ns)));
            }
        }
    }

    /// Returns the time that was nobody's. Threads that still stand do so until the end, in ns.
    pub fn away(mut self, until_ns: i64) -> Away {
        let open = self.since.into_iter();
        self.held
            .extend(open.map(|(tid, since)| (tid, since, until_ns)));
        Away::new(until_ns, self.held)
            .with_sleeps(self.slept)
            .with_made(self.made)
    }
}

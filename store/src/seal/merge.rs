//! Releases the records of all threads and the control events in one order: by time, control events first, then by
//! ring and tenancy.
//!
//! It releases only what is older than the watermark, because nothing older can still arrive. Records of a later
//! frame that claim to be older count as of the watermark. Memory holds the records between two watermarks.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::describe;
use super::live::Live;
use super::pair::{self, Numbered, Sink};
use super::queue::{Block, LAST_TICKS};
use super::stacks::{Open, Stacks};
use super::thread::{Shared, Thread};
use crate::control::Control;
use crate::error::Result;

/// Everything that waits for its release, and the open calls of all threads.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Merge {
    controls: VecDeque<(u64, Control)>,
    threads: Vec<Thread>,
    #[serde(skip)]
    index: HashMap<(u32, u32), usize>,
    watermark: u64,
    /// Absent in states of the format's first version.
    #[serde(default)]
    live: Live,
    /// Stacks of coroutines that no thread uses.
    #[serde(default)]
    parked: Stacks,
    #[serde(skip)]
    release: Option<Release>,
    #[serde(skip)]
    pool: Vec<Vec<u8>>,
}

/// A release in progress: the next record of each source that has one.
#[derive(Debug, Default)]
struct Release {
    /// Records from here on stay.
    limit: u64,
    heads: BinaryHeap<Reverse<Head>>,
}

/// The next record of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Head {
    ticks: u64,
    source: RecordSource,
}

/// The sources of records, in the order that decides between records of one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum RecordSource {
    Controls,
    Thread { id: (u32, u32), index: usize },
}

impl Merge {
    /// Drops data that need not be stored with the merge.
    pub(super) fn trim(&mut self) {
        self.threads
            .iter_mut()
            .for_each(|thread| thread.queue.trim());
    }

    /// Makes a restored merge usable.
    pub(super) fn restore(&mut self) {
        let numbered = self.threads.iter().enumerate();
        self.index = numbered.map(|(i, t)| (t.id, i)).collect();
    }

    /// Returns the watermark so far, in ticks.
    pub(super) fn watermark(&self) -> u64 {
        self.watermark
    }

    /// Appends a block of records.
    pub(super) fn push_block(&mut self, ring: u32, tenancy: u32, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let id = (ring, tenancy);
        let index = match self.index.get(&id) {
            Some(index) => *index,
            None => self.add_thread(id),
        };
        let mut owned = self.pool.pop().unwrap_or_default();
        owned.clear();
        owned.extend_from_slice(bytes);
        self.threads[index].queue.push(Block {
            bytes: owned,
            at: 0,
            floor: self.watermark,
        });
    }

    /// Appends a control event; definitions are none.
    pub(super) fn push_control(&mut self, control: Control) {
        let Some(ticks) = control.ticks() else {
            return;
        };
        let last = self.controls.back().map_or(0, |(ticks, _)| *ticks);
        let ticks = ticks.min(LAST_TICKS).max(self.watermark).max(last);
        self.controls.push_back((ticks, control));
    }

    /// Begins to release everything older than `ticks`; nothing older comes any more.
    pub(super) fn set_watermark(&mut self, ticks: u64) {
        self.watermark = self.watermark.max(ticks.min(LAST_TICKS));
        self.begin_release(self.watermark);
    }

    /// Begins to release everything: the log ends here.
    pub(super) fn set_end(&mut self) {
        self.begin_release(u64::MAX);
    }

    /// Returns whether a release is in progress.
    pub(super) fn is_releasing(&self) -> bool {
        self.release.is_some()
    }

    /// Releases until nothing is left or `budget` events were released. Subtracts them from `budget`.
    ///
    /// # Errors
    /// Those of the sink.
    pub(super) fn release<S: Sink>(
        &mut self,
        budget: &mut u64,
        out: &mut Numbered<S>,
    ) -> Result<()> {
        let Some(mut release) = self.release.take() else {
            return Ok(());
        };
        while let Some(Reverse(head)) = release.heads.pop() {
            if *budget == 0 {
                release.heads.push(Reverse(head));
                self.release = Some(release);
                return Ok(());
            }
            let next = match head.source {
                RecordSource::Controls => self.release_control(budget, out)?,
                RecordSource::Thread { index, .. } => {
                    let stop_at = release.stop_at(head.source);
                    let mut shared = Shared {
                        live: &self.live,
                        parked: &mut self.parked,
                        pool: &mut self.pool,
                    };
                    self.threads[index].release(stop_at, budget, &mut shared, out)?
                }
            };
            release.add(next, head.source);
        }
        Ok(())
    }

    /// Calls `each` for every open call, by its number, with its thread's id and its time in callees.
    ///
    /// # Errors
    /// Those of `each`.
    pub(super) fn each_open(
        &self,
        mut each: impl FnMut(Option<u32>, &Open) -> Result<()>,
    ) -> Result<()> {
        let threads = self.threads.iter();
        let used = threads.flat_map(|thread| thread.open().map(|open| (thread.tid(), open)));
        let parked = self.parked.open().map(|open| (None, open));
        let mut open: Vec<(Option<u32>, &Open)> = used.chain(parked).collect();
        open.sort_unstable_by_key(|(_, open)| open.start.seq);
        open.into_iter()
            .try_for_each(|(tid, open)| each(open.tid.or(tid), open))
    }

    fn begin_release(&mut self, limit: u64) {
        assert!(
            self.release.is_none(),
            "one release ends before the next begins"
        );
        let mut release = Release {
            limit,
            heads: BinaryHeap::new(),
        };
        let controls = self.controls.front().map(|(ticks, _)| *ticks);
        release.add(controls, RecordSource::Controls);
        for (index, thread) in self.threads.iter().enumerate() {
            release.add(
                thread.queue.head_ticks(),
                RecordSource::Thread {
                    id: thread.id,
                    index,
                },
            );
        }
        self.release = Some(release);
    }

    /// Adds a thread and forgets earlier tenants of its ring that have no records left.
    fn add_thread(&mut self, id: (u32, u32)) -> usize {
        let (ring, tenancy) = id;
        self.threads
            .retain(|t| t.id.0 != ring || t.id.1 > tenancy || !t.is_over());
        self.threads.push(Thread::new(id));
        self.restore();
        self.threads.len() - 1
    }

    /// Releases the first control event and returns the time of the next one.
    fn release_control<S: Sink>(
        &mut self,
        budget: &mut u64,
        out: &mut Numbered<S>,
    ) -> Result<Option<u64>> {
        *budget = budget.saturating_sub(1);
        let Some((ticks, control)) = self.controls.pop_front() else {
            return Ok(None);
        };
        let ts_ns = out.clock.ns_from_ticks(ticks);
        match &control {
            Control::ThreadEnd {
                ring, tenancy, tid, ..
            } => {
                self.end_thread((*ring, *tenancy), *tid, ts_ns, out)?;
            }
            Control::ProcessExit { .. } => {
                self.end_all_threads(ts_ns, out)?;
                describe::control(&control, &mut self.live, ts_ns, out)?;
            }
            _ => describe::control(&control, &mut self.live, ts_ns, out)?,
        }
        Ok(self.controls.front().map(|(ticks, _)| *ticks))
    }

    fn end_thread<S: Sink>(
        &mut self,
        id: (u32, u32),
        tid: u32,
        ts_ns: i64,
        out: &mut Numbered<S>,
    ) -> Result<()> {
        match self.index.get(&id) {
            Some(index) => {
                let thread = &mut self.threads[*index];
                thread.end(tid, ts_ns, out)
            }
            None => Ok(()),
        }
    }

    fn end_all_threads<S: Sink>(&mut self, ts_ns: i64, out: &mut Numbered<S>) -> Result<()> {
        let mut order: Vec<usize> = (0..self.threads.len()).collect();
        order.sort_unstable_by_key(|i| self.threads[*i].id);
        for index in order {
            let thread = &mut self.threads[index];
            thread.end_calls(ts_ns, out)?;
        }
        pair::end_all(&mut self.parked, None, ts_ns, out)
    }
}

impl Release {
    /// Notes that a source's next record is at `ticks`, unless that is too late for this release.
    fn add(&mut self, ticks: Option<u64>, source: RecordSource) {
        if let Some(ticks) = ticks
            && ticks < self.limit
        {
            self.heads.push(Reverse(Head { ticks, source }));
        }
    }

    /// Returns the ticks from which on other sources precede `source`.
    fn stop_at(&self, source: RecordSource) -> u64 {
        let Some(Reverse(other)) = self.heads.peek() else {
            return self.limit;
        };
        let goes_first = u64::from(source < other.source);
        self.limit.min(other.ticks + goes_first)
    }
}

//! Moves records from the rings of the target's threads to the log, and notices threads that are gone.
//!
//! Nothing is decoded here; the log packs the records. A watermark follows each pass. Records found later became
//! visible after the pass began. They are not ordered before the watermark in the recording even if their own time is
//! earlier (a thread was interrupted between taking the time and making the record visible).

mod log;

use std::time::{Duration, Instant};

use agent::shared::Shared;
use store::{
    control::{Control, GapReason},
    wire::Records,
};

pub(crate) use self::log::Log;
use crate::{
    clock,
    process::{
        ProcessorWaits,
        status::{may_sleep, thread_exists, thread_name},
    },
};

/// Number of passes between checks for threads that did not announce their end, and the maximum time between checks.
const PASSES_PER_ROLL_CALL: u32 = 64;
const ROLL_CALL_PERIOD: Duration = Duration::from_millis(500);

/// Delay until readers can see what threads wrote. Each flush costs a separate write.
const FLUSH_INTERVAL: Duration = Duration::from_millis(5);
/// Above this many bytes per interval, whole buffers of the log are soon written anyway.
const FLOOD_BYTES: u64 = 1 << 20;

/// The single reader of all rings.
#[derive(Debug)]
pub struct Drain<'a> {
    shared: &'a Shared,
    pid: i32,
    roll: Roll,
    waits: ProcessorWaits,
    flushed: Instant,
    moved_since: u64,
    /// The last watermark is older than the newest records, so readers cannot see those yet.
    owes_watermark: bool,
    /// A time in ticks after all records that came after the exit.
    after_newest: u64,
    /// The log holds something that was not flushed.
    unflushed: bool,
    /// Something was flushed and not reported yet.
    has_flushed: bool,
    flooded: bool,
    /// The disk is full: records are discarded, so that no thread waits for room.
    discarding: bool,
    threads: u64,
    lost: u64,
}

/// When all threads were last looked at.
#[derive(Debug)]
struct Roll {
    passes: u32,
    called: Instant,
}

impl Roll {
    /// Counts a pass. Returns whether all threads are to be looked at in it.
    fn is_called(&mut self) -> bool {
        self.passes = self.passes.wrapping_add(1);
        let is_called = self.passes.is_multiple_of(PASSES_PER_ROLL_CALL)
            || self.called.elapsed() > ROLL_CALL_PERIOD;
        if is_called {
            self.called = Instant::now();
        }
        is_called
    }
}

impl<'a> Drain<'a> {
    pub fn new(shared: &'a Shared, pid: i32) -> Self {
        Self {
            shared,
            pid,
            roll: Roll {
                passes: 0,
                called: Instant::now(),
            },
            waits: ProcessorWaits::new(clock::monotonic_ns()),
            flushed: Instant::now(),
            moved_since: 0,
            owes_watermark: false,
            after_newest: 0,
            unflushed: false,
            has_flushed: false,
            flooded: false,
            discarding: false,
            threads: 0,
            lost: 0,
        }
    }

    /// Returns how many threads have been seen or have ended so far.
    pub fn threads(&self) -> u64 {
        self.threads
    }

    /// Returns whether the program writes about as fast as it can.
    pub fn is_flooded(&self) -> bool {
        self.flooded
    }

    /// Returns whether readers of the log can see more than at the previous call.
    pub fn take_flushed(&mut self) -> bool {
        std::mem::take(&mut self.has_flushed)
    }

    /// Returns how many records were lost so far.
    pub fn lost(&self) -> u64 {
        self.lost
            + self
                .shared
                .taken()
                .map(|index| self.shared.lost(index))
                .sum::<u64>()
    }

    /// Discards everything that threads write from now on.
    pub fn discard(&mut self) {
        self.discarding = true;
        self.shared.stop();
    }

    /// Returns the time in ticks, which stands still when the program has exited: the exit is an event at its own time,
    /// and the merge puts no event before a watermark or another event of ours.
    pub fn now(&self) -> u64 {
        let now = clock::ticks();
        self.shared.exited_at().map_or(now, |exit| exit.min(now))
    }

    /// Returns when the program ended, in ticks. While the kernel ends its threads, they may still write records.
    pub fn end(&self) -> u64 {
        self.now().max(self.after_newest)
    }

    /// Looks at how long each thread has waited for a processor, once the program has ended.
    pub fn look_at_waits(&mut self) {
        for index in self.shared.taken() {
            let tid = self.shared.tenant(index).tid;
            self.waits.look_at_last(self.pid, index, tid);
        }
    }

    /// Moves everything available now. Returns the number of bytes moved. `noted`: the log has received other events
    /// since the last pass, which readers must see even if no thread has written anything.
    ///
    /// The time of the watermark is read first: what comes meanwhile is later.
    ///
    /// # Errors
    /// If the log takes no more.
    pub fn pass(&mut self, log: &mut Log, noted: bool) -> store::Result<u64> {
        let watermark = self.now();
        let roll_call = self.roll.is_called();
        self.waits.begin_pass(clock::monotonic_ns());
        let mut moved = 0;
        for index in self.shared.taken() {
            moved += self.ring(index, roll_call, log)?;
        }
        // A program that now waits in its newest call writes nothing that would bring another watermark.
        let has_news = moved != 0 || noted;
        if (has_news || self.owes_watermark) && !self.discarding {
            log.append_watermark(watermark)?;
            self.owes_watermark = has_news;
            self.unflushed = true;
        }
        self.moved_since += moved;
        if self.flushed.elapsed() > FLUSH_INTERVAL {
            self.flooded = self.moved_since >= FLOOD_BYTES;
            if !self.flooded {
                log.flush();
            }
            self.has_flushed |= std::mem::take(&mut self.unflushed);
            self.flushed = Instant::now();
            self.moved_since = 0;
        }
        let lost = self.shared.take_lost_no_ring();
        self.lost += lost;
        if lost != 0 && !self.discarding {
            log.append_control(&Control::Gap {
                ticks: watermark,
                tid: 0,
                lost,
                reason: GapReason::NoFreeRing,
            })?;
        }
        Ok(moved)
    }

    /// Reports records that threads lost last and wrote nothing after, and how long threads waited. All threads must have ended.
    ///
    /// # Errors
    /// If the log takes no more.
    pub fn finish(&self, log: &mut Log) -> store::Result<()> {
        if self.discarding {
            return Ok(());
        }
        let lifetime = |index| self.shared.lifetime(index);
        for (tid, ns) in self.waits.rest(lifetime, clock::monotonic_ns()) {
            log.append_control(&Control::ProcessorWait { tid, ns })?;
        }
        self.shared
            .taken()
            .try_for_each(|index| self.tell_lost(index, self.shared.tenant(index).tid, log))
    }

    fn tell_lost(&self, index: usize, tid: u32, log: &mut Log) -> store::Result<()> {
        let lost = self.shared.lost_untold(index);
        if lost == 0 {
            return Ok(());
        }
        log.append_control(&Control::Gap {
            ticks: self.now(),
            tid,
            lost,
            reason: GapReason::RingFull,
        })
    }

    fn ring(&mut self, index: usize, roll_call: bool, log: &mut Log) -> store::Result<u64> {
        let tenant = self.shared.tenant(index);
        if tenant.tid == 0 {
            return Ok(0); // a thread is just taking the ring
        }
        // The end of the process also ends its threads, and is an event of its own. Whether ended threads are noticed
        // before that end is a matter of chance.
        let pid = self.pid.cast_unsigned();
        let has_left = tenant.exiting && tenant.tid != pid;
        let is_missed = || roll_call && thread_exists(self.pid, pid);
        let is_gone = !thread_exists(self.pid, tenant.tid) && (has_left || is_missed());
        // In a sandbox the thread could not ask for its name.
        if self.shared.is_nameless(index)
            && let Some(name) = thread_name(self.pid, tenant.tid)
        {
            self.shared.name_thread(index, &name);
        }
        if self.shared.is_exiting() {
            self.waits.look_at_last(self.pid, index, tenant.tid);
        } else if self.waits.is_due(index) {
            self.waits.look(self.pid, index, tenant.tid);
        }
        let pending = self.shared.pending(index);
        let moved = (pending.first.len() + pending.second.len()) as u64;
        if moved != 0 {
            if self.shared.is_exiting() {
                let newest = newest(pending.first).max(newest(pending.second));
                self.after_newest = self.after_newest.max(newest + 1);
            }
            if !self.discarding {
                log.append_block(
                    index as u32,
                    tenant.tenancy,
                    [pending.first, pending.second],
                )?;
            }
            self.shared.release(index, pending.head);
        }
        if let Some(wait) = self.shared.asks_to_sleep(index)
            && may_sleep(self.pid, tenant.tid)
        {
            self.shared.let_sleep(index, wait);
        }
        // The check comes before the read: a thread that was gone then has written nothing since.
        if is_gone {
            self.threads += 1;
            self.lost += self.shared.lost(index);
            let lifetime = self.shared.lifetime(index);
            let waited_ns = self.waits.end(index, lifetime, clock::monotonic_ns());
            if !self.discarding {
                self.tell_lost(index, tenant.tid, log)?;
                if let Some(ns) = waited_ns {
                    let tid = tenant.tid;
                    log.append_control(&Control::ProcessorWait { tid, ns })?;
                }
                let (ring, tenancy) = (index as u32, tenant.tenancy);
                log.append_control(&Control::ThreadEnd {
                    ticks: self.now(),
                    ring,
                    tenancy,
                    tid: tenant.tid,
                })?;
            }
            self.shared.free(index);
        }
        Ok(moved)
    }
}

/// Returns the latest time of the records in a block, in ticks; 0: there is none.
fn newest(block: &[u8]) -> u64 {
    Records::new(block)
        .map_while(Result::ok)
        .map(|record| record.ticks)
        .max()
        .unwrap_or(0)
}

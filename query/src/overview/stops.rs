//! Stops of a live session, and waits for functions to be armed: the time in which threads were stopped is nobody's. Of a program that is being recorded, the end
//! is now, or the moment at which it was stopped.

use std::time::{SystemTime, UNIX_EPOCH};

use rustc_hash::{FxHashMap, FxHashSet};
use store::Reader;
use store::recording::RecordingState;

use super::made::{Made, is_made};
use super::source::{Source, told};
use super::tally::Tallies;
use crate::error::Result;
use crate::report::Raised;

/// Most events of stops that are looked at.
const MOST: usize = 100_000;

/// A thread was stopped.
struct Stop {
    tid: u32,
    seq: u64,
    from_ns: i64,
    /// `None`: it still is.
    to_ns: Option<i64>,
}

/// All stops of a recording.
pub struct Stops {
    all: Vec<Stop>,
    made: Made,
}

/// Returns the time of the clock, in ns since a recording began, if it is being written; never less than the last event's.
pub fn now_ns(reader: &Reader) -> Option<i64> {
    if reader.recording().state() != RecordingState::Live {
        return None;
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    let now = i64::try_from(now.as_nanos()).ok()?;
    let since = now.saturating_sub(reader.recording().manifest().start_unix_ns);
    Some(since.max(reader.last_ts_ns()))
}

/// Returns the events at which threads were let go to make a call for the debugger.
fn calls(source: &Source<'_>) -> Result<FxHashSet<u64>> {
    let sql = format!(
        "select seq, text from events where kind = 'resume' and tid is not null order by seq limit {MOST}"
    );
    let rows = source.ask(&sql)?;
    let calls = rows.iter().filter(|row| is_made(row.text(1)));
    Ok(calls.filter_map(|row| row.count(0)).collect())
}

impl Stops {
    /// Reads them.
    ///
    /// # Errors
    /// The recording cannot be read.
    pub fn of(source: &Source<'_>) -> Result<Stops> {
        let sql = format!(
            "select seq, tid, ts_ns, kind, value from events where kind in ('pause', 'resume', 'arming', 'ring_wait', 'exception') \
             and tid is not null order by seq limit {MOST}"
        );
        let mut all: Vec<Stop> = Vec::new();
        let mut made = Made::default();
        let calls = calls(source)?;
        let mut open: FxHashMap<u32, usize> = FxHashMap::default();
        let mut raised = Raised::default();
        for row in source.ask(&sql)? {
            let tid = row.number(1).and_then(|tid| u32::try_from(tid).ok());
            let (Some(seq), Some(tid), Some(ts_ns)) = (row.count(0), tid, row.number(2)) else {
                continue;
            };
            let stop = |from_ns, to_ns| Stop {
                tid,
                seq,
                from_ns,
                to_ns,
            };
            match row.text(3) {
                // Afterwards it stands where it stood.
                Some("resume") if calls.contains(&seq) => made.begin(tid, seq),
                Some("resume") => {
                    made.end(tid, seq);
                    if let Some(at) = open.remove(&tid) {
                        all[at].to_ns = Some(ts_ns);
                    }
                }
                // A thread waited until functions were armed, or for room in its ring.
                Some("arming" | "ring_wait") => {
                    all.push(stop(ts_ns - row.number(4).unwrap_or(0), Some(ts_ns)))
                }
                Some("exception") => raised = Raised::new(tid, seq, ts_ns),
                _ => {
                    let since_ns = raised.stopped_ns(tid, seq, ts_ns);
                    open.entry(tid).or_insert_with(|| {
                        all.push(stop(since_ns, None));
                        all.len() - 1
                    });
                }
            }
        }
        Ok(Stops { all, made })
    }

    /// Returns the calls that the debugger had threads make.
    pub fn made(&self) -> Made {
        self.made.clone()
    }

    /// Returns the end of what is known of a program that is being recorded: now, or when it was stopped; `None` if it is not
    /// being recorded.
    pub fn until_ns(&self, source: &Source<'_>) -> Option<i64> {
        let now_ns = now_ns(source.session().reader())?;
        let open = self.all.iter().filter(|stop| stop.to_ns.is_none());
        Some(open.map(|stop| stop.from_ns).min().unwrap_or(now_ns))
    }

    /// Takes the stops out of the calls that were running then. `end_ns` is when the program ended.
    ///
    /// # Errors
    /// The recording cannot be read.
    pub fn take_out(&self, source: &Source<'_>, all: &mut Tallies, end_ns: i64) -> Result<()> {
        let Some(timeline) = source.timeline() else {
            return Ok(());
        };
        for stop in &self.all {
            let to_ns = stop.to_ns.unwrap_or(end_ns).min(end_ns);
            let held_ns = u64::try_from(to_ns - stop.from_ns).unwrap_or(0);
            let open = match held_ns {
                0 => Vec::new(),
                _ => told(timeline.calls_around(stop.tid, stop.seq, 1))?,
            };
            let Some(call) = open.first() else {
                continue;
            };
            if let Ok(at) = all
                .functions
                .binary_search_by_key(&call.function, |tally| tally.function)
            {
                let tally = &mut all.functions[at];
                tally.self_ns = tally.self_ns.saturating_sub(held_ns);
                if tally.longest == Some(call.start) {
                    tally.longest_ns = tally.longest_ns.saturating_sub(held_ns);
                }
                if tally.open.1 == Some(call.start) {
                    tally.open.0 = tally.open.0.saturating_sub(held_ns);
                }
            }
            if let Ok(at) = all.threads.binary_search_by_key(&stop.tid, |(tid, _)| *tid) {
                let thread = &mut all.threads[at].1;
                if thread.longest.is_some_and(|(seq, _)| seq == call.start) {
                    thread.longest_ns = thread.longest_ns.saturating_sub(held_ns);
                }
            }
        }
        Ok(())
    }
}

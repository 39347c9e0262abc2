//! The threads: how much each did, how it ended or what it is in.

use std::collections::BTreeMap;

use serde::Serialize;

use super::longest::Wanted;
use super::source::{Source, told};
use crate::error::Result;

/// Threads that are told.
const THREADS: usize = 8;

/// The threads of the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Threads {
    /// How many there were.
    pub total: u64,
    /// Those that are told: the one that died, then those with the most calls.
    pub told: Vec<Thread>,
}

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Thread {
    /// Its number.
    pub tid: u32,
    /// Its name.
    pub name: Option<String>,
    /// How many recorded calls it made.
    pub calls: u64,
    /// Its first event.
    pub first_seq: u64,
    /// What became of it.
    #[serde(flatten)]
    pub end: ThreadEnd,
    /// The longest time of one of its calls without the calls that it made, in ns.
    pub longest_ns: u64,
}

/// What became of a thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum ThreadEnd {
    /// A signal in it ended the program.
    Died {
        /// The event.
        end_seq: u64,
    },
    /// It ended.
    Ended {
        /// The event.
        end_seq: u64,
    },
    /// When the recording ended, it was in a call that had not ended.
    In {
        /// The function.
        function: String,
        /// The enter event of the call.
        in_seq: u64,
        /// How long it had been in it, in ns, without recorded calls since.
        for_ns: u64,
        /// The last thing that it did: its last event.
        last_seq: u64,
    },
    /// When the recording ended, it was in no recorded call.
    Outside {
        /// Its last event.
        last_seq: u64,
    },
}

/// Describes the threads. `died` is the one that a signal ended, and the event of that: calls that ended later were ended
/// by it.
///
/// # Errors
/// The recording cannot be read.
pub fn threads(source: &Source<'_>, died: Option<(u32, u64)>) -> Result<Threads> {
    let Some(timeline) = source.timeline() else {
        return Ok(Threads {
            total: 0,
            told: Vec::new(),
        });
    };
    let until = died.map_or(i64::MAX as u64, |(_, seq)| seq);
    let sql = format!(
        "select tid, count(*), min(start_seq), max(case when end_seq <= {until} then self_ns end) \
         from calls where tid is not null group by tid"
    );
    let counted = source.ask(&sql)?;
    let counted: BTreeMap<u32, (u64, u64, u64)> = counted
        .iter()
        .filter_map(|row| {
            let tid = u32::try_from(row.number(0)?).ok()?;
            let longest = row.number(3).and_then(|ns| u64::try_from(ns).ok());
            Some((tid, (row.count(1)?, row.count(2)?, longest.unwrap_or(0))))
        })
        .collect();
    let known = told(timeline.threads())?;
    let mut all: Vec<Thread> = Vec::new();
    for thread in &known {
        let (calls, _, longest_ns) = counted.get(&thread.tid).copied().unwrap_or_default();
        all.push(Thread {
            tid: thread.tid,
            name: thread.name.clone().filter(|name| !name.is_empty()),
            calls,
            first_seq: thread.first,
            end: match thread.exit {
                Some(end_seq) => ThreadEnd::Ended { end_seq },
                None => ThreadEnd::Outside { last_seq: 0 },
            },
            longest_ns,
        });
    }
    for (tid, (calls, first_seq, longest_ns)) in counted {
        if known.iter().all(|thread| thread.tid != tid) {
            all.push(Thread {
                tid,
                name: None,
                calls,
                first_seq,
                end: ThreadEnd::Outside { last_seq: 0 },
                longest_ns,
            });
        }
    }
    let total = all.len() as u64;
    let is_dead = |thread: &Thread| died.is_some_and(|(tid, _)| tid == thread.tid);
    all.sort_by_key(|thread| (!is_dead(thread), u64::MAX - thread.calls, thread.first_seq));
    all.truncate(THREADS);
    for thread in &mut all {
        thread.end = match (died, &thread.end) {
            (Some((tid, end_seq)), _) if tid == thread.tid => ThreadEnd::Died { end_seq },
            (_, ThreadEnd::Ended { end_seq }) => ThreadEnd::Ended { end_seq: *end_seq },
            _ => last_of(source, thread)?,
        };
    }
    Ok(Threads { total, told: all })
}

/// Says what a thread was in when the recording ended.
fn last_of(source: &Source<'_>, thread: &Thread) -> Result<ThreadEnd> {
    let timeline = source.timeline().expect("there are threads");
    let last = told(timeline.last_of_thread(thread.tid, timeline.last(), 0))?;
    let last_seq = last.unwrap_or(thread.first_seq);
    let open = source.around(thread.tid, timeline.last())?;
    let Some(call) = open.first() else {
        return Ok(ThreadEnd::Outside { last_seq });
    };
    let since = told(timeline.ts_ns(last_seq))?;
    Ok(ThreadEnd::In {
        function: source.name(call.function),
        in_seq: call.start,
        for_ns: u64::try_from(timeline.last_ts_ns() - since).unwrap_or(0),
        last_seq,
    })
}

impl Threads {
    /// Returns the longest calls of threads that may have waited: those of at least `least_ns`.
    pub fn long_calls(&self, least_ns: u64) -> impl Iterator<Item = (Wanted, u64)> {
        let long = self.told.iter().filter(move |t| t.longest_ns >= least_ns);
        long.map(|thread| (Wanted::OfThread(thread.tid), thread.longest_ns))
    }
}

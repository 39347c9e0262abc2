//! The threads: how much each did, how it ended or which call it is in.

use replay::{Event, Timeline};
use serde::Serialize;

use super::source::{Source, told};
use super::tally::OfThread;
use crate::error::Result;

/// Most threads that are reported.
const THREADS: usize = 8;

/// The threads of the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Threads {
    /// How many there were.
    pub total: u64,
    /// Those that are reported: the one that died, then those with the most calls.
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
    /// The enter event of that call, and its function.
    #[serde(skip)]
    pub(super) longest: Option<(u64, u32)>,
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
        /// Its last event.
        last_seq: u64,
    },
    /// When the recording ended, it was in no recorded call.
    Outside {
        /// Its last event.
        last_seq: u64,
    },
}

/// Describes the threads, of which `counted` made calls. `died` is the one that a signal ended, and the event of that: calls that ended later were ended
/// by it.
///
/// # Errors
/// The recording cannot be read.
pub fn threads(
    source: &Source<'_>,
    counted: &[(u32, OfThread)],
    died: Option<(u32, u64)>,
) -> Result<Threads> {
    let Some(timeline) = source.timeline() else {
        return Ok(Threads {
            total: 0,
            told: Vec::new(),
        });
    };
    let known = told(timeline.threads())?;
    let mut all: Vec<Thread> = Vec::new();
    for thread in &known {
        let at = counted.binary_search_by_key(&thread.tid, |(tid, _)| *tid);
        let own = at.map_or(OfThread::default(), |at| counted[at].1);
        all.push(Thread {
            tid: thread.tid,
            name: thread.name.clone().filter(|name| !name.is_empty()),
            calls: own.calls,
            first_seq: thread.first,
            end: match thread.exit {
                Some(end_seq) => ThreadEnd::Ended { end_seq },
                None => ThreadEnd::Outside { last_seq: 0 },
            },
            longest_ns: own.longest_ns,
            longest: own.longest,
        });
    }
    for (tid, own) in counted {
        if known.iter().all(|thread| thread.tid != *tid) {
            all.push(Thread {
                tid: *tid,
                name: None,
                calls: own.calls,
                first_seq: own.first,
                end: ThreadEnd::Outside { last_seq: 0 },
                longest_ns: own.longest_ns,
                longest: own.longest,
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
            _ => last_of(source, thread, died.map(|(_, end_seq)| end_seq))?,
        };
    }
    Ok(Threads { total, told: all })
}

/// Returns what a thread was in when the recording ended, or when a signal ended the program: all calls end after that.
fn last_of(source: &Source<'_>, thread: &Thread, died: Option<u64>) -> Result<ThreadEnd> {
    let timeline = source.timeline().expect("there are threads");
    // The end of the program closes the calls that were open, with events of their own.
    let (end, end_ns) = match died {
        Some(died) => (died, told(timeline.ts_ns(died))?),
        None => (told(timeline.last_own())?, told(timeline.ended_ns())?),
    };
    let (last, end_ns) = match told(timeline.last_of_thread(thread.tid, end, 0))? {
        // What a debugger stopped waits no longer.
        Some(stop) if is_pause(timeline, stop)? => {
            let before = told(timeline.last_of_thread(thread.tid, stop.saturating_sub(1), 0))?;
            (before, told(timeline.ts_ns(stop))?)
        }
        last => (last, end_ns),
    };
    let last_seq = last.unwrap_or(thread.first_seq);
    let open = source.around(thread.tid, end)?;
    let Some(call) = open.first() else {
        return Ok(ThreadEnd::Outside { last_seq });
    };
    let since = told(timeline.ts_ns(last_seq))?;
    Ok(ThreadEnd::In {
        function: source.name(call.function),
        in_seq: call.start,
        for_ns: u64::try_from(end_ns - since).unwrap_or(0),
        last_seq,
    })
}

fn is_pause(timeline: &Timeline, seq: u64) -> Result<bool> {
    let event = told(timeline.event(seq))?;
    Ok(matches!(event, Event::Other(event) if event.kind == "pause"))
}

impl Threads {
    /// Returns the threads that may have waited: with a call of at least `least_ns`.
    pub fn long_calls(&self, least_ns: u64) -> impl Iterator<Item = &Thread> {
        self.told.iter().filter(move |t| t.longest_ns >= least_ns)
    }
}

//! What recording a call costs, as the recording itself shows it.
//!
//! The program's thread takes the time of an enter late and that of a leave early in what it does for them. So a part of
//! the cost lies inside the call, from its enter to its leave, and another part outside, in the time of its caller. The
//! shortest calls that made no others, and the shortest time between two calls of one caller, consist of little else.
//! They are looked for in some row groups from all over the recording.

use rustc_hash::FxHashMap;

use super::read::{Call, Groups, Rows};
use crate::error::Result;

/// Row groups that are looked at.
const MOST_GROUPS: usize = 8;
/// Times of so many ns or more are not counted apart.
const LONG_NS: usize = 1024;
/// Calls from which a median is taken.
const ENOUGH: u64 = 100;

/// What recording costs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Costs {
    inside_ps: u64,
    outside_ps: u64,
}

impl Costs {
    /// Makes costs that are the same for all calls, in ps.
    pub fn of(inside_ps: u64, outside_ps: u64) -> Costs {
        Costs {
            inside_ps,
            outside_ps,
        }
    }

    /// Returns what lies in a call of a function, in ps.
    #[inline]
    pub fn inside_ps(&self, _function: u32) -> u64 {
        self.inside_ps
    }

    /// Returns what lies in the caller of a function, in ps.
    #[inline]
    pub fn outside_ps(&self, _function: u32) -> u64 {
        self.outside_ps
    }

    /// Finds out.
    ///
    /// # Errors
    /// The recording cannot be read.
    pub fn measured(groups: &Groups) -> Result<Costs> {
        let mut shortest = Shortest::default();
        let step = groups.len().div_ceil(MOST_GROUPS).max(1);
        for index in (0..groups.len()).step_by(step) {
            shortest.add(&groups.read(index)?);
        }
        Ok(shortest.costs())
    }
}

/// How often which time was seen.
#[derive(Debug)]
struct Times {
    counts: Box<[u32; LONG_NS]>,
    total: u64,
}

impl Times {
    fn new() -> Times {
        Times {
            counts: Box::new([0; LONG_NS]),
            total: 0,
        }
    }

    fn add(&mut self, ns: i64) {
        let ns = usize::try_from(ns).unwrap_or(0).min(LONG_NS - 1);
        self.counts[ns] = self.counts[ns].saturating_add(1);
        self.total += 1;
    }

    /// Returns the time that so much of all times, from 0 to 1, do not exceed.
    fn quantile(&self, part: f64) -> usize {
        let wanted = (self.total as f64 * part) as u64;
        let mut seen = 0;
        let reached = self.counts.iter().position(|count| {
            seen += u64::from(*count);
            seen > wanted
        });
        reached.unwrap_or(LONG_NS - 1)
    }
}

/// The call that ended last at some depth of a thread.
#[derive(Clone, Copy, Debug)]
struct Later {
    parent: Option<u64>,
    ts_ns: i64,
}

/// Times that may be short.
#[derive(Debug, Default)]
struct Shortest {
    /// Of calls that made no others, by function.
    leaves: FxHashMap<u32, Times>,
    /// Between two calls of one caller, by the functions of both.
    gaps: FxHashMap<(u32, u32), Times>,
}

impl Shortest {
    /// Adds the calls of a row group. What lies across its bounds is left out.
    fn add(&mut self, rows: &Rows) {
        let mut threads: FxHashMap<u32, Vec<Option<(u32, Later)>>> = FxHashMap::default();
        for row in (0..rows.ended()).rev() {
            let call = rows.call(row);
            let later = threads.entry(call.tid).or_default();
            later.resize(call.depth + 1, None);
            self.look(&call, later[call.depth]);
            later[call.depth] = Some((
                call.function,
                Later {
                    parent: call.parent,
                    ts_ns: call.ts_ns,
                },
            ));
        }
    }

    fn look(&mut self, call: &Call, later: Option<(u32, Later)>) {
        if call.child_ns == 0 {
            let times = self.leaves.entry(call.function).or_insert_with(Times::new);
            times.add(call.dur_ns);
        }
        if let Some((function, later)) = later
            && later.parent == call.parent
        {
            let pair = (call.function, function);
            let times = self.gaps.entry(pair).or_insert_with(Times::new);
            times.add(later.ts_ns - (call.ts_ns + call.dur_ns));
        }
    }

    fn costs(&self) -> Costs {
        let median = |times: &Times| (times.total >= ENOUGH).then(|| times.quantile(0.5) as u64);
        let inside_ns = self.leaves.values().filter_map(median).min();
        let outside_ns = self.gaps.values().filter_map(median).min();
        Costs::of(
            inside_ns.unwrap_or(0) * 1000,
            outside_ns.unwrap_or(0) * 1000,
        )
    }
}

//! What recording a call costs, as the recording itself shows it.
//!
//! The program's thread takes the time of an enter late and that of a leave early in what it does for them. So a part of
//! the cost lies inside the call, from its enter to its leave, and another part outside, in the time of its caller. Calls
//! of the smallest functions, and two calls of one caller with nothing between them, consist of little else. What these
//! took on average is the cost, with the caches and the recorder as they were while the program ran: a loop that is
//! measured at the start would show less, and so do the shortest calls. They are looked for in some row groups from all
//! over the recording.

use rustc_hash::FxHashMap;

use super::read::{Call, Groups, Rows};
use crate::error::Result;

/// Row groups that are looked at.
const MOST_GROUPS: usize = 8;
/// Times of so many ns or more are left out: something else happened in them, such as an interrupt.
const LONG_NS: i64 = 1000;
/// Calls from which an average is taken.
const ENOUGH: u64 = 100;
/// The part of all such times whose averages are small. A single function may be smaller than others by accident.
const SMALL_PART: f64 = 0.25;
/// No average that exceeds the smallest one by this factor is that of a small function.
const SMALL_FACTOR: f64 = 1.3;
/// Where nothing is captured, each part costs less than this, in ps. Functions whose calls take longer are not small.
const MOST_PS: u64 = 40_000;

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

    /// Finds out. `is_plain`: no call has captures.
    ///
    /// # Errors
    /// The recording cannot be read.
    pub fn measured(groups: &Groups, is_plain: bool) -> Result<Costs> {
        let mut shortest = Shortest::default();
        let step = groups.len().div_ceil(MOST_GROUPS).max(1);
        for index in (0..groups.len()).step_by(step) {
            shortest.add(&groups.read(index)?);
        }
        let costs = shortest.costs();
        let most_ps = if is_plain { MOST_PS } else { u64::MAX };
        Ok(Costs::of(
            costs.inside_ps.min(most_ps),
            costs.outside_ps.min(most_ps),
        ))
    }
}

/// Times of one kind.
#[derive(Clone, Copy, Debug, Default)]
struct Times {
    sum_ns: i64,
    count: u64,
}

impl Times {
    fn add(&mut self, ns: i64) {
        if (0..LONG_NS).contains(&ns) {
            self.sum_ns += ns;
            self.count += 1;
        }
    }

    fn mean_ps(self) -> Option<u64> {
        let sum_ps = u64::try_from(self.sum_ns).ok()? * 1000;
        (self.count >= ENOUGH).then(|| sum_ps / self.count)
    }
}

/// Returns the average that those of the smaller kinds do not exceed, in ps; 0 if there are too few times.
fn smallest_ps(all: impl Iterator<Item = Times>) -> u64 {
    let means = all.filter_map(|times| Some((times.mean_ps()?, times.count)));
    let mut means: Vec<(u64, u64)> = means.collect();
    means.sort_unstable();
    let total: u64 = means.iter().map(|(_, count)| count).sum();
    let wanted = (total as f64 * SMALL_PART) as u64;
    let mut seen = 0;
    let reached = means.iter().find(|(_, count)| {
        seen += count;
        seen > wanted
    });
    let (Some((least_ps, _)), Some((mean_ps, _))) = (means.first(), reached) else {
        return 0;
    };
    (*mean_ps).min((*least_ps as f64 * SMALL_FACTOR) as u64)
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
            let times = self.leaves.entry(call.function).or_default();
            times.add(call.dur_ns);
        }
        if let Some((function, later)) = later
            && later.parent == call.parent
        {
            let pair = (call.function, function);
            let times = self.gaps.entry(pair).or_default();
            times.add(later.ts_ns - (call.ts_ns + call.dur_ns));
        }
    }

    fn costs(&self) -> Costs {
        Costs::of(
            smallest_ps(self.leaves.values().copied()),
            smallest_ps(self.gaps.values().copied()),
        )
    }
}

//! What recording a call costs, as the recording itself shows it: one measurement for reports and for the comparison of
//! builds.
//!
//! The program's thread takes the time of an enter late and that of a leave early in what it does for them. So a part of
//! the cost lies inside the call, from its enter to its leave, and another part outside, in the time of its caller. Calls
//! of the smallest functions, and two calls of one caller with nothing between them, consist of little else. What these
//! took on average is the cost, with the caches and the recorder as they were while the program ran: a loop that is
//! measured at the start would show less, and so do the shortest calls. All calls are looked at, as the cost changes with the
//! speed of the machine while the program runs.
//!
//! A few of these times are much longer. Where a record is the first in its page of the ring, the kernel maps the page: that
//! happens to at most one record in fifty, takes microseconds, and belongs to the cost. In the longest ones the thread
//! waited: for room in the ring, for a processor, for an interrupt. The first two are taken out elsewhere (`away.rs`,
//! `waits.rs`). How much of the rest recording caused is not known, so it stays; but it may be the cost.

use rustc_hash::FxHashMap;

use super::read::{Call, Rows};

/// Shorter times than this many ns are usual ones.
const SLOW_NS: i64 = 1000;
/// In times of this many ns or more, the thread waited.
const LONG_NS: i64 = 10_000;
/// More slow times than this part of all are not those of new pages. A record of an enter has 72 bytes of 4,096.
const MOST_SLOW_PART: f64 = 0.02;
/// Calls from which an average is taken.
const ENOUGH: u64 = 100;
/// The part of all such times whose averages are small. A single function may be smaller than others by accident.
const SMALL_PART: f64 = 0.25;
/// No average that exceeds the smallest one by this factor is that of a small function.
const SMALL_FACTOR: f64 = 1.3;
/// Where nothing is captured, each part costs less than this, in ps, and so do new pages. Functions whose calls take longer
/// are not small.
const MOST_PS: u64 = 40_000;
/// Recording may have cost less than it seems by this factor.
const UNSURE_FACTOR: u64 = 2;
/// Where nothing is captured, the cost is not further from what was found, in ps.
const MOST_UNSURE_PS: u64 = 100_000;

/// A call takes this long at least, in ns, whatever recording it cost: nothing takes no time.
pub const LEAST_NS: u64 = 1;

/// What recording adds to each call in one place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// As far as it is known, in ps.
    pub ps: u64,
    /// What it may have been at most, in ps.
    pub most_ps: u64,
}

impl Cost {
    /// Nothing was found.
    const UNKNOWN: Cost = Cost {
        ps: 0,
        most_ps: MOST_UNSURE_PS,
    };
}

/// A time without the cost of recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// As far as the cost is known, in ns.
    pub ns: u64,
    /// If recording cost only a part of what it seems, in ns.
    pub most_ns: u64,
}

/// What recording costs. A part is `None` if there were too few calls to find out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    inside: Option<Cost>,
    outside: Option<Cost>,
}

impl Costs {
    /// Makes costs of what is known of both parts.
    pub fn of(inside: Option<Cost>, outside: Option<Cost>) -> Costs {
        Costs { inside, outside }
    }

    /// Returns what lies in a call.
    pub fn inside(&self) -> Cost {
        self.inside.unwrap_or(Cost::UNKNOWN)
    }

    /// Returns what lies in the caller.
    pub fn outside(&self) -> Cost {
        self.outside.unwrap_or(Cost::UNKNOWN)
    }

    /// Returns what is to be taken out of a call, in ps.
    #[inline]
    pub fn inside_ps(&self) -> u64 {
        self.inside().ps
    }

    /// Returns what is to be taken out of the caller, in ps.
    #[inline]
    pub fn outside_ps(&self) -> u64 {
        self.outside().ps
    }

    /// Returns the time that is left of `ns`, which include `cost_ps` of recording, in `calls` calls.
    pub fn left(ns: i64, cost_ps: u64, calls: u64) -> Left {
        let ns = u64::try_from(ns).unwrap_or(0);
        let least_ns = (calls * LEAST_NS).min(ns);
        let without = |cost_ps: u64| ns.saturating_sub(cost_ps.div_ceil(1000)).max(least_ns);
        Left {
            ns: without(cost_ps),
            most_ns: without(cost_ps / UNSURE_FACTOR),
        }
    }

    /// Returns the costs that several recordings of two builds have in common: the smaller one of both medians. A build
    /// whose small functions became slower must not pass for one that is more expensive to record.
    pub fn common(before: &[Costs], after: &[Costs]) -> Costs {
        let part = |get: fn(&Costs) -> Option<Cost>| {
            let side = |costs: &[Costs]| {
                let mut known: Vec<Cost> = costs.iter().filter_map(get).collect();
                known.sort_unstable_by_key(|cost| cost.ps);
                known.get(known.len().checked_sub(1)? / 2).copied()
            };
            let both = [side(before), side(after)];
            both.into_iter().flatten().min_by_key(|cost| cost.ps)
        };
        Costs::of(part(|costs| costs.inside), part(|costs| costs.outside))
    }
}

/// A sum of times.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    ns: i64,
    count: u64,
}

impl Sum {
    fn add(&mut self, other: Sum) {
        self.ns += other.ns;
        self.count += other.count;
    }

    /// Returns its part of each of `count` times, in ps.
    fn each_ps(self, count: u64) -> u64 {
        let ps = u64::try_from(self.ns).unwrap_or(0).saturating_mul(1000);
        ps / count.max(1)
    }
}

/// Times of one kind.
#[derive(Clone, Copy, Debug, Default)]
struct Times {
    usual: Sum,
    slow: Sum,
    long: Sum,
}

impl Times {
    fn add(&mut self, ns: i64) {
        let sum = match ns {
            ..0 => return,
            0..SLOW_NS => &mut self.usual,
            SLOW_NS..LONG_NS => &mut self.slow,
            LONG_NS.. => &mut self.long,
        };
        sum.add(Sum { ns, count: 1 });
    }

    fn join(&mut self, other: &Times) {
        self.usual.add(other.usual);
        self.slow.add(other.slow);
        self.long.add(other.long);
    }

    fn mean_ps(&self) -> Option<u64> {
        let count = self.usual.count;
        (count >= ENOUGH).then(|| self.usual.each_ps(count))
    }
}

/// Returns the cost that the smaller kinds of times show; `None` if there are too few times.
fn smallest(all: impl Iterator<Item = Times>, is_plain: bool) -> Option<Cost> {
    let means = all.filter_map(|times| Some((times.mean_ps()?, times)));
    let mut means: Vec<(u64, Times)> = means.collect();
    means.sort_unstable_by_key(|(mean_ps, times)| (*mean_ps, times.usual.count));
    let total: u64 = means.iter().map(|(_, times)| times.usual.count).sum();
    let wanted = (total as f64 * SMALL_PART) as u64;
    let mut seen = 0;
    let reached = means.iter().find(|(_, times)| {
        seen += times.usual.count;
        seen > wanted
    });
    let limit_ps = (means.first()?.0 as f64 * SMALL_FACTOR) as u64;
    let usual_ps = reached?.0.min(limit_ps);
    let mut small = Times::default();
    for (_, times) in means.iter().filter(|(mean_ps, _)| *mean_ps <= limit_ps) {
        small.join(times);
    }
    Some(cost(usual_ps, &small, is_plain))
}

/// Returns the cost that is `usual_ps` in the usual ones of some times.
fn cost(usual_ps: u64, times: &Times, is_plain: bool) -> Cost {
    let limited = |ps: u64, most_ps: u64| if is_plain { ps.min(most_ps) } else { ps };
    let count = times.usual.count + times.slow.count + times.long.count;
    let (slow_ps, long_ps) = (times.slow.each_ps(count), times.long.each_ps(count));
    let (pages_ps, waited_ps) = match times.slow.count as f64 <= count as f64 * MOST_SLOW_PART {
        true => (slow_ps, long_ps),
        false => (0, slow_ps + long_ps),
    };
    let ps = limited(usual_ps, MOST_PS) + limited(pages_ps, MOST_PS);
    Cost {
        ps,
        most_ps: ps + limited(waited_ps.max(ps / 2), MOST_UNSURE_PS),
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
pub struct Shortest {
    /// Of calls that made no others, by function.
    leaves: FxHashMap<u32, Times>,
    /// Between two calls of one caller, by the functions of both.
    gaps: FxHashMap<(u32, u32), Times>,
}

impl Shortest {
    /// Looks at the calls of a row group. What lies across its bounds is left out.
    pub fn of(rows: &Rows) -> Shortest {
        let mut shortest = Shortest::default();
        shortest.look_at(rows);
        shortest
    }

    /// Adds those of other row groups.
    pub fn add(&mut self, other: &Shortest) {
        for (function, times) in &other.leaves {
            self.leaves.entry(*function).or_default().join(times);
        }
        for (pair, times) in &other.gaps {
            self.gaps.entry(*pair).or_default().join(times);
        }
    }

    fn look_at(&mut self, rows: &Rows) {
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

    /// Finds out what recording costs. `is_plain`: no call has captures.
    pub fn costs(&self, is_plain: bool) -> Costs {
        let inside = smallest(self.leaves.values().copied(), is_plain);
        // The smallest functions take time, too.
        let inside = inside.map(|cost| Cost {
            ps: cost.ps.saturating_sub(LEAST_NS * 1000),
            ..cost
        });
        Costs::of(inside, smallest(self.gaps.values().copied(), is_plain))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times of one kind: how many of which length.
    fn times(all: &[(u64, i64)]) -> Times {
        let mut times = Times::default();
        for (count, ns) in all {
            for _ in 0..*count {
                times.add(*ns);
            }
        }
        times
    }

    fn of(all: &[&[(u64, i64)]]) -> Option<Cost> {
        smallest(all.iter().map(|all| times(all)), true)
    }

    #[test]
    fn new_pages_of_the_ring_belong_to_the_cost_and_waiting_may() {
        let found = of(&[&[(9_890, 20), (100, 1_200), (10, 50_000)]]).expect("there are enough");
        // 20 ns of nearly all, and 1,200 of each hundredth.
        assert_eq!(found.ps, 20_000 + 12_000);
        assert_eq!(found.most_ps, found.ps + 50_000);
        // Of the smallest function alone, and at least half of the cost is unsure.
        let calm = of(&[&[(10_000, 20)], &[(10_000, 300), (10_000, 5_000)]]);
        let expected = Cost {
            ps: 20_000,
            most_ps: 30_000,
        };
        assert_eq!(calm, Some(expected));
    }

    #[test]
    fn work_that_is_often_slow_is_no_cost() {
        let found = of(&[&[(9_000, 20), (1_000, 2_000)]]).expect("there are enough");
        assert_eq!(found.ps, 20_000);
        assert_eq!(found.most_ps, found.ps + MOST_UNSURE_PS);
    }

    /// The average cost of all calls may exceed what calls of one function took.
    #[test]
    fn no_call_takes_no_time() {
        let left = |ns, cost_ps, calls| {
            let left = Costs::left(ns, cost_ps, calls);
            (left.ns, left.most_ns)
        };
        assert_eq!(left(50_000, 20_000_000, 1000), (30_000, 40_000));
        assert_eq!(left(20_200, 20_000_000, 1000), (1000, 10_200));
        assert_eq!(left(19_000, 20_000_000, 1000), (1000, 9_000));
        assert_eq!(left(300, 20_000_000, 1000), (300, 300));
        assert_eq!(left(-5, 20_000_000, 1000), (0, 0));
        assert_eq!(left(70, 0, 3), (70, 70));
    }

    #[test]
    fn too_few_calls_show_nothing() {
        assert_eq!(of(&[&[(99, 20)], &[(99, 20)]]), None);
        let unknown = Costs::default();
        assert_eq!((unknown.inside_ps(), unknown.outside_ps()), (0, 0));
        assert_eq!(unknown.outside().most_ps, MOST_UNSURE_PS);
    }

    #[test]
    fn what_recordings_have_in_common_is_the_smaller_median() {
        let costs = |ps: &[u64]| -> Vec<Costs> {
            let cost = |ps: &u64| Cost {
                ps: *ps,
                most_ps: 2 * ps,
            };
            let costs = |ps| Costs::of(Some(cost(ps)), None);
            ps.iter().map(costs).collect()
        };
        let found = Costs::common(&costs(&[10, 90, 20]), &costs(&[50, 40, 60]));
        assert_eq!((found.inside_ps(), found.outside), (20, None));
        let found = Costs::common(&[Costs::default(); 3], &costs(&[50, 40, 60]));
        assert_eq!(found.inside_ps(), 50);
    }
}

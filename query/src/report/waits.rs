//! Takes the time in which threads waited for a processor out of the calls. The kernel counts it for each thread, and says
//! neither when nor how often.
//!
//! A thread that loses its processor does not get it back within microseconds, so such waits are in calls with much time of
//! their own. Where nearly all calls on a path are short, the few long ones have waited for what they took longer. The calls on
//! the other paths have waited for the rest, as their part in the thread's time suggests, but not longer than their long ones took.
//! What recording them cost, and the least that they take, was not spent waiting.
//!
//! What is certain is less: a path has waited for what no other path can have waited for.
//!
//! A thread that sleeps until the recorder has done something waits for a processor when it wakes up. That is among the waits that
//! the kernel counts, and in no call already.

use std::collections::BTreeMap;

use super::away::Away;
use super::cost::{Costs, LEAST_NS};
use super::tree::{NONE, Node, Tree};
use super::walk::Walk;

/// Nearly all calls on a path are short if there are so many for each long one.
const SHORT_FOR_EACH_LONG: u64 = 100;
/// Calls that take longer than this on average, in ns, do not take so long because they wait for a processor.
const LONGEST_WAIT_NS: i64 = 200_000_000;

/// How long the calls on a path waited, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Waited {
    ns: i64,
    /// What of it may have been waits of others.
    unsure_ns: i64,
}

/// Takes them out, and returns how much that was in all, in ns.
pub fn take_out(
    walk: &mut Walk<'_>,
    waits: &BTreeMap<u32, u64>,
    away: &Away,
    costs: &Costs,
) -> i64 {
    let waited = shared_out(&walk.tree, waits, away, costs);
    let mut with_callees_ns: Vec<i64> = waited.iter().map(|waited| waited.ns).collect();
    for id in (0..waited.len()).rev() {
        let node = walk.tree.nodes()[id].clone();
        if node.parent == NONE {
            continue;
        }
        with_callees_ns[node.parent as usize] += with_callees_ns[id];
        let Some(function) = walk.functions.get_mut(node.function as usize) else {
            continue;
        };
        let own = walk.tree.node(id as u32);
        own.away_ns += waited[id].ns;
        own.unsure_ns += waited[id].unsure_ns;
        function.away_ns += waited[id].ns;
        function.unsure_ns += waited[id].unsure_ns;
        if node.is_outermost {
            function.inclusive.away_ns += with_callees_ns[id];
        }
        if node.is_outermost_edge {
            walk.edges[node.edge as usize].inclusive.away_ns += with_callees_ns[id];
        }
    }
    waited.iter().map(|waited| waited.ns).sum()
}

/// Returns how long the calls on each path waited.
fn shared_out(tree: &Tree, waits: &BTreeMap<u32, u64>, away: &Away, costs: &Costs) -> Vec<Waited> {
    let nodes = tree.nodes();
    let mut made = vec![0; nodes.len()];
    for node in nodes.iter().filter(|node| node.parent != NONE) {
        made[node.parent as usize] += node.calls;
    }
    let mut root_of: Vec<u32> = (0..).take(nodes.len()).collect();
    let mut paths: BTreeMap<u32, Vec<Share>> = BTreeMap::new();
    for (id, node) in nodes.iter().enumerate() {
        if node.parent == NONE {
            continue;
        }
        root_of[id] = root_of[node.parent as usize];
        let own_ns = node.self_ns - node.away_ns;
        if node.function != NONE && own_ns > 0 {
            let cost_ps = node.calls * costs.inside_ps() + made[id] * costs.outside_ps();
            let kept_ns = (cost_ps.div_ceil(1000) + node.calls * LEAST_NS).cast_signed();
            // What was nobody's time is in long calls, too, and was taken out before.
            let long_ns = (node.long_ns - node.away_ns).max(0);
            let most_ns = long_ns.min((own_ns - kept_ns).max(0));
            paths.entry(root_of[id]).or_default().push(Share {
                path: id,
                own_ns,
                most_ns,
                likely_ns: likely_ns(node, own_ns, long_ns).min(most_ns),
            });
        }
    }
    let mut waited = vec![Waited::default(); nodes.len()];
    for (tid, root) in tree.threads() {
        if let (Some(ns), Some(paths)) = (waits.get(tid), paths.remove(root)) {
            let total = Total::of(&paths, *ns, away.slept_ns(*tid));
            share_out(paths, total, &mut waited);
        }
    }
    waited
}

/// How long a thread waited for a processor in its calls, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Total {
    ns: u64,
    /// At least.
    least_ns: u64,
}

impl Total {
    /// `ns`: in all; `slept_ns`: how long it slept for the recorder, and may have waited meanwhile. What does not fit into long
    /// calls was there; of what may have been in either, a half is taken to be.
    fn of(paths: &[Share], ns: u64, slept_ns: u64) -> Total {
        let long_ns: i64 = paths.iter().map(|share| share.most_ns).sum();
        let asleep_ns = ns.saturating_sub(long_ns.cast_unsigned()).min(slept_ns);
        let most_asleep_ns = ns.min(slept_ns);
        Total {
            ns: ns - asleep_ns.midpoint(most_asleep_ns),
            least_ns: ns - most_asleep_ns,
        }
    }
}

/// Returns how much longer the long calls on a path took than as many of the others, in ns, if nearly all are short.
fn likely_ns(node: &Node, own_ns: i64, long_ns: i64) -> i64 {
    let (long, short) = (node.long_calls, node.calls - node.long_calls);
    let is_rare = long > 0 && short >= SHORT_FOR_EACH_LONG * long;
    if !is_rare || long_ns > LONGEST_WAIT_NS * long.cast_signed() {
        return 0;
    }
    let usual_ns = (own_ns - long_ns).max(0) as f64 / short as f64;
    (long_ns as f64 - usual_ns * long as f64).max(0.0) as i64
}

/// The time of the calls on a path.
struct Share {
    path: usize,
    own_ns: i64,
    /// What of it they may have waited.
    most_ns: i64,
    /// What of it they have very likely waited.
    likely_ns: i64,
}

/// Shares the waits of a thread out.
fn share_out(mut paths: Vec<Share>, total: Total, waited: &mut [Waited]) {
    let most_ns: Vec<(usize, i64)> = paths.iter().map(|s| (s.path, s.most_ns)).collect();
    let left_ns = take_likely(&mut paths, total.ns as f64, waited);
    take_by_part(paths, left_ns, waited);
    find_unsure(&most_ns, total.least_ns, waited);
}

/// Takes what paths have very likely waited out of them, and returns what is left of `ns`.
fn take_likely(paths: &mut [Share], ns: f64, waited: &mut [Waited]) -> f64 {
    let likely_ns: f64 = paths.iter().map(|share| share.likely_ns as f64).sum();
    let part = (ns / likely_ns.max(1.0)).min(1.0);
    let mut left_ns = ns;
    for share in paths {
        let own_ns = (share.likely_ns as f64 * part) as i64;
        waited[share.path].ns = own_ns;
        share.own_ns -= own_ns;
        share.most_ns -= own_ns;
        left_ns -= own_ns as f64;
    }
    left_ns
}

/// Takes the rest out of all paths, as their part in the thread's time suggests.
fn take_by_part(mut paths: Vec<Share>, mut left_ns: f64, waited: &mut [Waited]) {
    let part = |share: &Share| share.most_ns as f64 / share.own_ns as f64;
    paths.sort_by(|a, b| part(a).total_cmp(&part(b)));
    let mut whole_ns: f64 = paths.iter().map(|share| share.own_ns as f64).sum();
    // Those that cannot have waited for their part leave it to the others.
    for share in &paths {
        let wanted_ns = left_ns * share.own_ns as f64 / whole_ns;
        let own_ns = wanted_ns.min(share.most_ns as f64) as i64;
        waited[share.path].ns += own_ns;
        left_ns -= own_ns as f64;
        whole_ns -= share.own_ns as f64;
    }
}

/// Finds out how much of the waits of each path others may have waited instead. `most_ns`: how long each may have waited;
/// `least_ns`: how long all have waited at least.
fn find_unsure(most_ns: &[(usize, i64)], least_ns: u64, waited: &mut [Waited]) {
    let all_ns: i64 = most_ns.iter().map(|(_, ns)| ns).sum();
    let shared_ns = all_ns.min(least_ns.cast_signed());
    for (path, most_ns) in most_ns {
        let certain_ns = (shared_ns - (all_ns - most_ns)).max(0);
        let own = &mut waited[*path];
        own.unsure_ns = (own.ns - certain_ns).max(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Time, long calls and likely waits of each path, and the waits of the thread; returns what each waited.
    fn waited(paths: &[(i64, i64, i64)], ns: u64) -> Vec<Waited> {
        let share = |(path, (own_ns, most_ns, likely_ns)): (usize, &(i64, i64, i64))| Share {
            path,
            own_ns: *own_ns,
            most_ns: *most_ns,
            likely_ns: *likely_ns,
        };
        let shares = paths.iter().enumerate().map(share).collect();
        let mut waited = vec![Waited::default(); paths.len()];
        share_out(shares, Total { ns, least_ns: ns }, &mut waited);
        waited
    }

    /// The same where no path has very likely waited.
    fn shared(paths: &[(i64, i64)], ns: u64) -> Vec<i64> {
        let paths: Vec<_> = paths.iter().map(|(own, most)| (*own, *most, 0)).collect();
        ns_of(&waited(&paths, ns))
    }

    fn ns_of(waited: &[Waited]) -> Vec<i64> {
        waited.iter().map(|waited| waited.ns).collect()
    }

    #[test]
    fn all_that_is_long_was_waiting_if_the_waits_were_as_long() {
        assert_eq!(
            shared(&[(1000, 700), (500, 200), (90, 0)], 900),
            [700, 200, 0]
        );
        assert_eq!(shared(&[(1000, 700)], 5000), [700]);
    }

    #[test]
    fn a_function_that_computes_for_long_keeps_its_time() {
        // 2000 of computing and 2000 of short calls, each interrupted for 250.
        assert_eq!(shared(&[(2250, 2250), (2250, 250)], 500), [250, 250]);
        // Long calls of a function that takes little of the time are its own.
        let waited = shared(&[(100_000, 90_000), (1000, 1000)], 9000);
        assert!(
            (8900..=9000).contains(&waited[0]) && waited[1] < 100,
            "{waited:?}"
        );
    }

    #[test]
    fn rare_long_calls_of_a_short_function_have_waited_first() {
        // 9,000 calls of 25 ns, one of which took 100 us, and 9 of 20 us each that waited for 60 us together.
        let all = [(325_000, 99_975, 99_975), (240_000, 240_000, 0)];
        assert_eq!(ns_of(&waited(&all, 159_975)), [99_975, 60_000]);
        // Only a part of what is likely, if there was no more.
        let two = [(2000, 2000, 1000), (2000, 2000, 3000), (9000, 9000, 0)];
        assert_eq!(ns_of(&waited(&two, 1000)), [250, 750, 0]);
    }

    #[test]
    fn what_others_may_have_waited_is_not_certain() {
        let unsure = |paths: &[(i64, i64, i64)], ns| {
            let all = waited(paths, ns).into_iter();
            all.map(|waited| waited.unsure_ns).collect::<Vec<_>>()
        };
        // Nobody else can have waited.
        assert_eq!(unsure(&[(1000, 700, 0), (90, 0, 0)], 500), [0, 0]);
        // Each may have waited for all of it, or the other one.
        assert_eq!(unsure(&[(800, 800, 0), (800, 800, 0)], 400), [200, 200]);
        // The first one for 600 at least: 300 is left for the other one.
        assert_eq!(unsure(&[(900, 900, 0), (300, 300, 0)], 900), [75, 225]);
    }

    #[test]
    fn a_thread_waits_for_a_processor_when_the_recorder_has_let_it_sleep() {
        let long = |most_ns| Share {
            path: 0,
            own_ns: 900,
            most_ns,
            likely_ns: 0,
        };
        let total = |most_ns, ns, slept_ns| {
            let found = Total::of(&[long(most_ns)], ns, slept_ns);
            (found.ns, found.least_ns)
        };
        assert_eq!(total(700, 500, 0), (500, 500));
        assert_eq!(total(300, 500, 0), (500, 500));
        // 0 to 100 of it.
        assert_eq!(total(700, 500, 100), (450, 400));
        // 200 to 300 of it.
        assert_eq!(total(300, 500, 300), (250, 200));
        assert_eq!(total(0, 500, 800), (0, 0));
    }

    #[test]
    fn long_calls_among_many_short_ones_are_likely_waits() {
        let mut tree = Tree::new(10);
        let root = tree.add_thread(7);
        let (path, _) = tree.child(root, 0);
        let node = tree.node(path);
        (node.calls, node.long_calls) = (1001, 1);
        assert_eq!(likely_ns(node, 70_000, 50_000), 49_980);
        // It computed.
        assert_eq!(likely_ns(node, 300_020_000, 300_000_000), 0);
        node.long_calls = 20;
        assert_eq!(likely_ns(node, 70_000, 50_000), 0);
        node.long_calls = 0;
        assert_eq!(likely_ns(node, 70_000, 0), 0);
    }

    #[test]
    fn waits_of_other_threads_are_not_shared() {
        let mut tree = Tree::new(10);
        for (tid, self_ns) in [(7, 100_000), (8, 300_000)] {
            let root = tree.add_thread(tid);
            let (path, _) = tree.child(root, 0);
            let node = tree.node(path);
            (node.self_ns, node.long_ns, node.away_ns) = (self_ns, self_ns, 1000);
        }
        let waits = BTreeMap::from([(8, 50_000), (9, 70_000)]);
        let shared = |tree: &Tree| {
            let away = Away::default();
            ns_of(&shared_out(tree, &waits, &away, &Costs::default()))
        };
        assert_eq!(shared(&tree), [0, 0, 0, 50_000]);
        // Short calls have not waited, whatever the thread waited for room in its ring.
        tree.node(3).long_ns = 20_000;
        assert_eq!(shared(&tree), [0, 0, 0, 19_000]);
    }
}

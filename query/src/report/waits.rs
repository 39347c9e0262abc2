//! Takes the time in which threads waited for a processor out of the calls. The kernel counts it for each thread, and says
//! neither when nor how often.
//!
//! A thread that loses its processor does not get it back within microseconds, so such waits are in calls with much time of
//! their own. If all of that time is not more than the waits, it was spent waiting. Otherwise the calls on a path have waited
//! as long as their part in the thread's time suggests, but not longer than their long ones took. What recording them cost, and
//! the least that they take, was not spent waiting.

use std::collections::BTreeMap;

use super::cost::{Costs, LEAST_NS};
use super::tree::{NONE, Tree};
use super::walk::Walk;

/// Takes them out, and returns how much that was in all, in ns.
pub fn take_out(walk: &mut Walk<'_>, waits: &BTreeMap<u32, u64>, costs: &Costs) -> i64 {
    let waited_ns = shared_out(&walk.tree, waits, costs);
    let mut with_callees_ns = waited_ns.clone();
    for id in (0..waited_ns.len()).rev() {
        let node = walk.tree.nodes()[id].clone();
        if node.parent == NONE {
            continue;
        }
        with_callees_ns[node.parent as usize] += with_callees_ns[id];
        let Some(function) = walk.functions.get_mut(node.function as usize) else {
            continue;
        };
        walk.tree.node(id as u32).away_ns += waited_ns[id];
        function.away_ns += waited_ns[id];
        if node.is_outermost {
            function.inclusive.away_ns += with_callees_ns[id];
        }
        if node.is_outermost_edge {
            walk.edges[node.edge as usize].inclusive.away_ns += with_callees_ns[id];
        }
    }
    waited_ns.iter().sum()
}

/// Returns how long the calls on each path waited.
fn shared_out(tree: &Tree, waits: &BTreeMap<u32, u64>, costs: &Costs) -> Vec<i64> {
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
            paths.entry(root_of[id]).or_default().push(Share {
                path: id,
                own_ns,
                // What was nobody's time is in long calls, too, and was taken out before.
                most_ns: (node.long_ns - node.away_ns).clamp(0, (own_ns - kept_ns).max(0)),
            });
        }
    }
    let mut waited_ns = vec![0; nodes.len()];
    for (tid, root) in tree.threads() {
        if let (Some(ns), Some(paths)) = (waits.get(tid), paths.remove(root)) {
            share_out(paths, *ns, &mut waited_ns);
        }
    }
    waited_ns
}

/// The time of the calls on a path.
struct Share {
    path: usize,
    own_ns: i64,
    /// What of it they may have waited.
    most_ns: i64,
}

/// Shares the waits of a thread out.
fn share_out(mut paths: Vec<Share>, ns: u64, waited_ns: &mut [i64]) {
    let part = |share: &Share| share.most_ns as f64 / share.own_ns as f64;
    paths.sort_by(|a, b| part(a).total_cmp(&part(b)));
    let mut left_ns = ns as f64;
    let mut whole_ns: f64 = paths.iter().map(|share| share.own_ns as f64).sum();
    // Those that cannot have waited for their part leave it to the others.
    for share in &paths {
        let wanted_ns = left_ns * share.own_ns as f64 / whole_ns;
        let own_ns = wanted_ns.min(share.most_ns as f64) as i64;
        waited_ns[share.path] = own_ns;
        left_ns -= own_ns as f64;
        whole_ns -= share.own_ns as f64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Time and long calls of each path, and the waits of the thread; returns what each waited.
    fn shared(paths: &[(i64, i64)], ns: u64) -> Vec<i64> {
        let shares = paths
            .iter()
            .enumerate()
            .map(|(path, (own_ns, most_ns))| Share {
                path,
                own_ns: *own_ns,
                most_ns: *most_ns,
            });
        let mut waited_ns = vec![0; paths.len()];
        share_out(shares.collect(), ns, &mut waited_ns);
        waited_ns
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
    fn waits_of_other_threads_are_not_shared() {
        let mut tree = Tree::new(10);
        for (tid, self_ns) in [(7, 100_000), (8, 300_000)] {
            let root = tree.add_thread(tid);
            let (path, _) = tree.child(root, 0);
            let node = tree.node(path);
            (node.self_ns, node.long_ns, node.away_ns) = (self_ns, self_ns, 1000);
        }
        let waits = BTreeMap::from([(8, 50_000), (9, 70_000)]);
        assert_eq!(
            shared_out(&tree, &waits, &Costs::default()),
            [0, 0, 0, 50_000]
        );
        // Short calls have not waited, whatever the thread waited for room in its ring.
        tree.node(3).long_ns = 20_000;
        assert_eq!(
            shared_out(&tree, &waits, &Costs::default()),
            [0, 0, 0, 19_000]
        );
    }
}

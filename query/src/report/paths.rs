//! The paths of calls as they are shown: with times that are not negative, those of a path with all that continues it, and
//! for all threads together.

use rustc_hash::FxHashMap;

use super::at_least_0;
use super::cost::{Costs, Left};
use super::tree::{NONE, Node, Tree};

/// The paths of calls. A path comes after the one that it continues.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paths {
    /// All of them.
    pub all: Vec<Path>,
    /// Threads: their id and the number of their path. One without an id stands for all threads together.
    pub threads: Vec<(Option<u32>, usize)>,
}

/// Calls on one path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Path {
    /// The path without its last function; `None` for a thread.
    pub parent: Option<usize>,
    /// Its last function; `None` for a thread, and for all those for which there was no room.
    pub function: Option<u32>,
    /// The path does not have that function twice.
    pub is_outermost: bool,
    /// How many calls.
    pub calls: u64,
    /// Without the cost of recording.
    pub times: Times,
    /// As measured.
    pub raw: Times,
}

/// Times of the calls on one path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Their own, in ns.
    pub self_ns: u64,
    /// The same at most, in ns: the cost of recording is not known exactly, nor which calls waited for a processor.
    pub self_most_ns: u64,
    /// With all that they made, in ns: the sum over the paths that continue this one.
    pub inclusive_ns: u64,
}

fn times_of(node: &Node, cost_ps: u64) -> Times {
    let own_ns = node.self_ns - node.away_ns;
    let mut times = Times::of(Costs::left(own_ns, cost_ps, node.calls));
    times.self_most_ns += at_least_0(node.unsure_ns);
    times
}

impl Times {
    fn of(own: Left) -> Times {
        Times {
            self_ns: own.ns,
            self_most_ns: own.most_ns,
            inclusive_ns: own.ns,
        }
    }
}

impl Path {
    /// Returns its times: as measured, or without the cost of recording.
    pub fn times(&self, raw: bool) -> Times {
        if raw { self.raw } else { self.times }
    }
}

impl Paths {
    /// Takes the paths of a tree.
    pub(super) fn of(tree: &Tree, costs: &Costs) -> Paths {
        let nodes = tree.nodes();
        let mut cost_ps = vec![0u64; nodes.len()];
        for (id, node) in nodes.iter().enumerate() {
            if node.parent == NONE {
                continue;
            }
            cost_ps[id] += node.calls * costs.inside_ps();
            // Those without room called each other.
            let is_rest = node.function == NONE;
            let caller = if is_rest { id } else { node.parent as usize };
            cost_ps[caller] += node.calls * costs.outside_ps();
        }
        let all = nodes.iter().zip(cost_ps).map(|(node, cost_ps)| Path {
            parent: (node.parent != NONE).then_some(node.parent as usize),
            function: (node.function != NONE).then_some(node.function),
            is_outermost: node.is_outermost,
            calls: node.calls,
            times: match node.parent {
                // A thread has no time of its own.
                NONE => Times::default(),
                _ => times_of(node, cost_ps),
            },
            raw: Times::of(Costs::left(node.self_ns, 0, 0)),
        });
        let threads = tree.threads().iter();
        let mut paths = Paths {
            all: all.collect(),
            threads: threads
                .map(|(tid, node)| (Some(*tid), *node as usize))
                .collect(),
        };
        paths.add_up();
        paths
    }

    /// Computes the times with all that was called.
    fn add_up(&mut self) {
        for id in (0..self.all.len()).rev() {
            let Path {
                parent, times, raw, ..
            } = self.all[id];
            if let Some(parent) = parent {
                let parent = &mut self.all[parent];
                parent.times.inclusive_ns += times.inclusive_ns;
                parent.raw.inclusive_ns += raw.inclusive_ns;
            }
        }
    }

    /// Returns the paths of all threads together.
    #[must_use]
    pub fn together(&self) -> Paths {
        let mut joint = Paths {
            all: vec![Path::default()],
            threads: vec![(None, 0)],
        };
        let mut known: FxHashMap<(usize, Option<u32>), usize> = FxHashMap::default();
        let mut to = vec![0; self.all.len()];
        for (id, path) in self.all.iter().enumerate() {
            let Some(parent) = path.parent else {
                continue;
            };
            let parent = to[parent];
            let found = *known.entry((parent, path.function)).or_insert_with(|| {
                joint.all.push(Path {
                    parent: Some(parent),
                    function: path.function,
                    is_outermost: path.is_outermost,
                    ..Path::default()
                });
                joint.all.len() - 1
            });
            to[id] = found;
            let sum = &mut joint.all[found];
            sum.calls += path.calls;
            for (sum, own) in [(&mut sum.times, path.times), (&mut sum.raw, path.raw)] {
                sum.self_ns += own.self_ns;
                sum.self_most_ns += own.self_most_ns;
                sum.inclusive_ns += own.self_ns;
            }
        }
        joint.add_up();
        joint
    }

    /// Returns the paths that continue each one, those with the most time first.
    #[must_use]
    pub fn children(&self, raw: bool) -> Vec<Vec<usize>> {
        let mut children = vec![Vec::new(); self.all.len()];
        for (id, path) in self.all.iter().enumerate() {
            if let Some(parent) = path.parent {
                children[parent].push(id);
            }
        }
        for own in &mut children {
            own.sort_by_key(|id| {
                let path = &self.all[*id];
                (u64::MAX - path.times(raw).inclusive_ns, path.function)
            });
        }
        children
    }
}

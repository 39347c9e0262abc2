//! What a recording contributes to the comparison: the time of each function in that run, and what recording cost.

use std::collections::HashMap;

use crate::compare::module_key;
use crate::error::Result;
use crate::report::{Cost, Costs, LEAST_NS};
use crate::session::Session;

/// A function in two builds of a program.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Named {
    /// Its name.
    pub function: String,
    /// The name of its module, the same in other builds; empty for the program itself.
    pub module: String,
}

/// The time of one function's calls in one run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// How many there were.
    pub calls: f64,
    /// How many recorded calls they made.
    pub made: f64,
    /// Their time without these, as measured, in ns.
    pub self_ns: f64,
}

impl Sample {
    /// Returns the time without what recording cost, in ns.
    pub fn ns(&self, costs: &Costs) -> f64 {
        let cost = |calls: f64, ps: u64| calls * ps as f64 / 1e3;
        let cost_ns = cost(self.calls, costs.inside_ps()) + cost(self.made, costs.outside_ps());
        (self.self_ns - cost_ns).max(self.calls * LEAST_NS as f64)
    }

    /// Returns how far that may be from the truth, because recording the calls that `other` does not have may have cost half
    /// as much as it seems, or in this run as much as it may at most.
    pub fn unsure(&self, other: &Sample, costs: &Costs, own: &Costs) -> Unsure {
        let more = |own: f64, other: f64| (own - other).max(0.0) / 1e3;
        let (calls, made) = (more(self.calls, other.calls), more(self.made, other.made));
        let further_ps =
            |common: Cost, own: Cost| (own.most_ps.max(common.most_ps) - common.ps) as f64;
        let less_ns = calls * further_ps(costs.inside(), own.inside())
            + made * further_ps(costs.outside(), own.outside());
        let more_ns = calls * costs.inside_ps() as f64 + made * costs.outside_ps() as f64;
        let least_ns = self.calls.min(other.calls) * LEAST_NS as f64;
        Unsure {
            less_ns: less_ns.min((self.ns(costs) - least_ns).max(0.0)),
            more_ns: more_ns / 2.0,
        }
    }

    fn add(&mut self, other: Sample) {
        self.calls += other.calls;
        self.made += other.made;
        self.self_ns += other.self_ns;
    }
}

/// How much less or more a time may be than it seems, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Unsure {
    /// If recording cost more than was taken out.
    pub less_ns: f64,
    /// If it cost less.
    pub more_ns: f64,
}

/// One run.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// Its functions.
    pub functions: HashMap<Named, Sample>,
    /// What recording cost.
    pub costs: Costs,
    /// Whether the waits for a processor of all threads are known, and not in the times.
    pub knows_waits: bool,
}

impl Run {
    /// Returns a function.
    pub fn of(&self, named: &Named) -> Sample {
        self.functions.get(named).copied().unwrap_or_default()
    }

    /// Returns all functions together.
    pub fn whole(&self) -> Sample {
        let mut whole = Sample::default();
        for sample in self.functions.values() {
            whole.add(*sample);
        }
        whole
    }
}

/// Reads a recording.
///
/// # Errors
/// The recording cannot be read.
pub fn run(session: &Session) -> Result<Run> {
    let (all, costs, knows_waits) = session.report_source().spent()?;
    let definitions = session.definitions();
    let mut functions: HashMap<Named, Sample> = HashMap::new();
    for spent in all {
        let Some(function) = definitions.function(spent.function as usize) else {
            continue;
        };
        let named = Named {
            function: function.name.clone(),
            module: module_key(definitions.module(function.module)),
        };
        functions.entry(named).or_default().add(Sample {
            calls: spent.calls as f64,
            made: spent.made as f64,
            self_ns: spent.self_ns.max(0) as f64,
        });
    }
    Ok(Run {
        functions,
        costs,
        knows_waits,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs(ps: u64, most_ps: u64) -> Costs {
        let cost = Some(Cost { ps, most_ps });
        Costs::of(cost, cost)
    }

    #[test]
    fn what_recording_cost_is_taken_out_of_both_parts() {
        let sample = Sample {
            calls: 100.0,
            made: 1000.0,
            self_ns: 50_000.0,
        };
        let common = costs(20_000, 30_000);
        assert_eq!(sample.ns(&common), 50_000.0 - 1100.0 * 20.0);
        // Nothing takes less than no time.
        assert_eq!(sample.ns(&costs(90_000, 90_000)), 100.0);
    }

    #[test]
    fn only_further_calls_are_unsure() {
        let sample = |made: f64| Sample {
            calls: 1.0,
            made,
            self_ns: 90_000.0,
        };
        let (common, own) = (costs(20_000, 30_000), costs(5_000, 60_000));
        let unsure = |own_calls: Sample, other: f64| {
            let unsure = own_calls.unsure(&sample(other), &common, &own);
            (unsure.less_ns, unsure.more_ns)
        };
        assert_eq!(unsure(sample(1000.0), 1000.0), (0.0, 0.0));
        assert_eq!(unsure(sample(1000.0), 2000.0), (0.0, 0.0));
        // 40 ns of each may come on top, and 10 may be too much.
        assert_eq!(unsure(sample(1000.0), 900.0), (4000.0, 1000.0));
        // No more than there is; further calls may have taken no time.
        let many = Sample {
            calls: 100.0,
            ..sample(4000.0)
        };
        for sample in [sample(4000.0), many] {
            assert_eq!(unsure(sample, 0.0).0, sample.ns(&common) - 1.0);
        }
    }
}

//! Is a build slower than another? Several recordings of each answer that: a difference counts only if recordings of the
//! same build would hardly differ as much.
//!
//! The time of all functions together is tested, and that of each function that takes a notable part of it. All of these are one
//! family: the chance that equal builds raise any alarm is the level (Holm). The whole program has half of the weight, so it is
//! found by few recordings, however many functions there are. The times before are lengthened by the least change that counts, so
//! what is tested is whether the difference is larger than that: equal builds are called slower less often than the level says.
//!
//! Recording lengthens each call, by about the same in all recordings: that is taken out as a report does. If one side has
//! more calls, what recording these may have cost at least or at most must not make the difference. If it may, the answer is not sure.

mod rank;
mod samples;
mod shift;
mod text;

use std::collections::BTreeSet;

use serde::Serialize;

pub use shift::Shift;
use values::quantity::count;

use crate::compare::{Identities, check_differs, check_program, check_whole};
use crate::error::{Error, Result};
use crate::report::Costs;
use crate::session::Session;
use samples::{Named, Run, Sample, Unsure};

/// Functions with a smaller part of the time are not tested: a correction for thousands of functions would hide all.
const LEAST_SHARE: f64 = 0.01;
/// The whole program has half of the weight of all tests: its chance counts twice.
const WHOLE_TESTS: usize = 2;
/// So many functions with a notable part of the time are few.
const FEW_FUNCTIONS: usize = 10;

/// When a difference counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// The chance that equal builds raise an alarm, of the whole program or of any function, from 0 to 1.
    pub alpha: f64,
    /// The least change, as a fraction of the time before: 0.05 is 5 %.
    pub change: f64,
}

impl Default for Level {
    /// Of twenty pairs of equal builds, at most one raises an alarm in more than 90 % of all cases: 0.975^20 + 20 * 0.025 * 0.975^19
    /// is 0.912.
    fn default() -> Self {
        Level {
            alpha: 0.025,
            change: 0.05,
        }
    }
}

/// What became of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It is longer.
    Slower,
    /// It is shorter.
    Faster,
    /// No relevant difference was seen.
    Same,
    /// There is a difference, but what recording more calls cost may explain it.
    Unsure,
    /// The candidate has calls of the function, the baseline has none.
    New,
    /// The baseline has calls of the function, the candidate has none.
    Gone,
}

/// A time on both sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Times {
    /// The median of the baseline's recordings, in ns.
    pub before_ns: f64,
    /// The median of the candidate's, in ns.
    pub after_ns: f64,
    /// How much longer it is. The interval has room for what recording more calls may have cost.
    pub shift: Option<Shift>,
    /// How many more calls the candidate has, or makes; less than zero if it has fewer. The median.
    pub more_calls: f64,
    /// How much of the difference the cost of recording these may explain, beyond what was taken out, in ns.
    pub unsure_ns: f64,
    /// The chance that builds which differ by no more than the least change that counts would show the candidate this much
    /// slower, corrected for the number of tests.
    pub slower_by_chance: f64,
    /// The same for faster.
    pub faster_by_chance: f64,
    /// What this means.
    pub verdict: Verdict,
    /// The same chances and ratio if recording cost what it seems to have cost.
    #[serde(skip)]
    seen: Seen,
    /// The ratio if recording cost as much as it may have: for slower and for faster.
    #[serde(skip)]
    ratios: (f64, f64),
}

/// What there would be to say if the cost of recording were known.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Seen {
    slower_by_chance: f64,
    faster_by_chance: f64,
}

/// A function on both sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FunctionTimes {
    /// Its name.
    pub function: String,
    /// The name of its module; empty for the program itself.
    pub module: String,
    /// Its calls in a recording of the baseline: the median.
    pub calls_before: f64,
    /// The same of the candidate.
    pub calls_after: f64,
    /// The time of its calls without the recorded calls that they made.
    #[serde(flatten)]
    pub times: Times,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Slower {
    /// How many recordings there are of the baseline, and of the candidate.
    pub recordings: (usize, usize),
    /// The chance of a false alarm that is accepted.
    pub alpha: f64,
    /// The least change that counts, as a part of the time before.
    pub change: f64,
    /// What recording a call cost within the call, in ns: it is taken out.
    pub inside_ns: f64,
    /// What it cost in the caller.
    pub outside_ns: f64,
    /// All functions together.
    pub all: Times,
    /// Those that take a notable part of the time; those that changed most come first.
    pub functions: Vec<FunctionTimes>,
    /// How many functions were not tested, because they take less than a hundredth of the time.
    pub not_tested: usize,
    /// How many recordings have waits for a processor in their times: of some threads it is not known how long they waited.
    pub unknown_waits: usize,
    /// How many recordings per side would be needed to test this many functions; `None` if these suffice.
    pub needed: Option<usize>,
}

impl Slower {
    /// Returns whether anything is slower.
    #[must_use]
    pub fn is_slower(&self) -> bool {
        let functions = self.functions.iter().map(|function| &function.times);
        std::iter::once(&self.all)
            .chain(functions)
            .any(|times| times.verdict == Verdict::Slower)
    }
}

/// Compares the recordings of two builds.
///
/// # Errors
/// A recording cannot be read or is not whole, there are too few, or they are not of one program.
pub fn slower(baseline: &[Session], candidate: &[Session], level: Level) -> Result<Slower> {
    enough(baseline.len(), candidate.len(), level.alpha)?;
    check_all(baseline, candidate)?;
    let read = |sessions: &[Session]| {
        sessions
            .iter()
            .map(samples::run)
            .collect::<Result<Vec<_>>>()
    };
    let (before, after) = (read(baseline)?, read(candidate)?);
    Ok(judge(&before, &after, level))
}

/// Refuses recordings that are not whole, not of one program, or named twice.
fn check_all(baseline: &[Session], candidate: &[Session]) -> Result<()> {
    let all: Vec<&Session> = baseline.iter().chain(candidate).collect();
    for (at, session) in all.iter().enumerate() {
        let name = name(session);
        check_whole(session, &name)?;
        session.check_ends(&name)?;
        for other in all.iter().skip(at + 1) {
            check_differs((session, &name), (other, &self::name(other)))?;
        }
    }
    let Some((first, rest)) = all.split_first() else {
        return Ok(());
    };
    for other in rest {
        let identities = Identities::of(first.definitions(), other.definitions());
        check_program((first, &name(first)), (other, &name(other)), &identities)?;
    }
    Ok(())
}

/// Refuses so few recordings that no difference between them could be distinguished from chance.
fn enough(baseline: usize, candidate: usize, alpha: f64) -> Result<()> {
    let chance = rank::smallest(baseline, candidate);
    let Some(least) = needed(baseline.min(candidate), WHOLE_TESTS, alpha) else {
        return Ok(());
    };
    if chance * WHOLE_TESTS as f64 <= alpha + 1e-9 {
        return Ok(());
    }
    let too_few = match (baseline, candidate) {
        (1, 1) => "one recording a side is too few".to_owned(),
        _ => format!(
            "{} and {} are too few",
            count(baseline as u64, "recording"),
            count(candidate as u64, "recording")
        ),
    };
    let of_functions = needed(least, WHOLE_TESTS * FEW_FUNCTIONS, alpha).unwrap_or(least);
    Err(Error::NotComparable {
        message: format!(
            "{too_few} to show a difference: even if all of the candidate are slower, chance alone does that in \
             {:.1} % of all cases, and the whole program gets half of the {} %",
            chance * 100.0,
            alpha * 100.0
        ),
        hint: Some(format!(
            "make {least} of each build at least, in turn and on the same machine; {of_functions} are enough to judge each of \
             {FEW_FUNCTIONS} functions, too"
        )),
    })
}

/// Returns the name of a recording.
fn name(session: &Session) -> String {
    let folder = session.reader().recording().dir();
    let name = folder.file_stem().unwrap_or(folder.as_os_str());
    name.to_string_lossy().into_owned()
}

/// The runs of both builds.
struct Sides<'r> {
    before: &'r [Run],
    after: &'r [Run],
    /// What recording cost in all of them.
    costs: Costs,
    level: Level,
}

fn judge(before: &[Run], after: &[Run], level: Level) -> Slower {
    let costs = |runs: &[Run]| runs.iter().map(|run| run.costs).collect::<Vec<Costs>>();
    let costs = Costs::common(&costs(before), &costs(after));
    let sides = Sides {
        before,
        after,
        costs,
        level,
    };
    let names: BTreeSet<&Named> = before
        .iter()
        .chain(after)
        .flat_map(|run| run.functions.keys())
        .collect();
    let tested = &sides.notable(before, &names) | &sides.notable(after, &names);
    let mut functions: Vec<FunctionTimes> =
        tested.iter().map(|named| sides.function(named)).collect();
    let mut all = sides.whole(&names);
    correct(&mut all, &mut functions, level);
    functions.sort_by(|a, b| moved(&b.times).total_cmp(&moved(&a.times)));
    Slower {
        recordings: (before.len(), after.len()),
        alpha: level.alpha,
        change: level.change,
        inside_ns: costs.inside_ps() as f64 / 1e3,
        outside_ns: costs.outside_ps() as f64 / 1e3,
        needed: needed(
            before.len().min(after.len()),
            tests(&all, functions.len(), level),
            level.alpha,
        ),
        all,
        functions,
        not_tested: names.len() - tested.len(),
        unknown_waits: before
            .iter()
            .chain(after)
            .filter(|run| !run.knows_waits)
            .count(),
    }
}

fn moved(times: &Times) -> f64 {
    (times.after_ns - times.before_ns).abs()
}

impl Sides<'_> {
    /// Returns the functions that take a notable part of the time of most runs of a side.
    fn notable<'n>(&self, runs: &[Run], names: &BTreeSet<&'n Named>) -> BTreeSet<&'n Named> {
        let whole_ns: Vec<f64> = runs.iter().map(|run| self.ns(run.whole())).collect();
        let is_notable = |named: &&&Named| {
            let all = runs.iter().zip(&whole_ns);
            let shares = all.map(|(run, whole_ns)| self.ns(run.of(named)) / whole_ns.max(1.0));
            median(shares.collect()) >= LEAST_SHARE
        };
        names.iter().filter(is_notable).copied().collect()
    }

    /// Returns a time without what recording cost.
    fn ns(&self, sample: Sample) -> f64 {
        sample.ns(&self.costs)
    }

    fn function(&self, named: &Named) -> FunctionTimes {
        let of = |run: &Run| run.of(named);
        FunctionTimes {
            function: named.function.clone(),
            module: named.module.clone(),
            calls_before: usual(self.before, of).calls,
            calls_after: usual(self.after, of).calls,
            times: self.times(of, |runs, others| self.unsure(runs, others, of)),
        }
    }

    /// Compares the times of all functions together. What is unsure of them is no more than what is of each.
    fn whole(&self, names: &BTreeSet<&Named>) -> Times {
        self.times(Run::whole, |runs, others| {
            let mut parts = vec![Unsure::default(); runs.len()];
            for named in names {
                let own = self.unsure(runs, others, |run| run.of(named));
                for (sum, own) in parts.iter_mut().zip(own) {
                    sum.less_ns += own.less_ns;
                    sum.more_ns += own.more_ns;
                }
            }
            let together = self.unsure(runs, others, Run::whole);
            let both = parts.into_iter().zip(together);
            both.map(|(parts, together)| Unsure {
                less_ns: parts.less_ns.min(together.less_ns),
                more_ns: parts.more_ns.min(together.more_ns),
            })
            .collect()
        })
    }

    /// Compares what `of` takes of each run. `unsure` tells how much of it is unsure in each run of a side, as it has more
    /// calls than those of the other one.
    fn times(
        &self,
        of: impl Fn(&Run) -> Sample + Copy,
        unsure: impl Fn(&[Run], &[Run]) -> Vec<Unsure>,
    ) -> Times {
        let taken = |runs: &[Run]| runs.iter().map(|run| self.ns(of(run))).collect();
        let compared = Compared {
            before: taken(self.before),
            after: taken(self.after),
            unsure_before: unsure(self.before, self.after),
            unsure_after: unsure(self.after, self.before),
        };
        let (before, after) = (usual(self.before, of), usual(self.after, of));
        let (calls, made) = (after.calls - before.calls, after.made - before.made);
        let is_caller = made.abs() > calls.abs();
        Times {
            more_calls: if is_caller { made } else { calls },
            ..compared.times(self.level)
        }
    }

    /// Returns how far the time of each run may be from the truth, as it has calls that the other side does not have.
    fn unsure(
        &self,
        runs: &[Run],
        others: &[Run],
        of: impl Fn(&Run) -> Sample + Copy,
    ) -> Vec<Unsure> {
        let other = usual(others, of);
        let unsure = |run: &Run| of(run).unsure(&other, &self.costs, &run.costs);
        runs.iter().map(unsure).collect()
    }
}

/// Returns the medians of all runs.
fn usual(runs: &[Run], of: impl Fn(&Run) -> Sample + Copy) -> Sample {
    let usual = |get: fn(Sample) -> f64| median(runs.iter().map(|run| get(of(run))).collect());
    Sample {
        calls: usual(|sample| sample.calls),
        made: usual(|sample| sample.made),
        self_ns: usual(|sample| sample.self_ns),
    }
}

/// Times of both sides in ns, and how far they may be from the truth.
struct Compared {
    before: Vec<f64>,
    after: Vec<f64>,
    unsure_before: Vec<Unsure>,
    unsure_after: Vec<Unsure>,
}

impl Compared {
    fn times(&self, level: Level) -> Times {
        let moved = |times: &[f64], unsure: &[Unsure], by: fn(&Unsure) -> f64| -> Vec<f64> {
            let all = times.iter().zip(unsure);
            all.map(|(ns, unsure)| ns + by(unsure)).collect()
        };
        let least = |times: &[f64], unsure: &[Unsure]| moved(times, unsure, |by| -by.less_ns);
        let most = |times: &[f64], unsure: &[Unsure]| moved(times, unsure, |by| by.more_ns);
        // As little slower as it may be, and as little faster.
        let slower = (
            most(&self.before, &self.unsure_before),
            least(&self.after, &self.unsure_after),
        );
        let faster = (
            least(&self.before, &self.unsure_before),
            most(&self.after, &self.unsure_after),
        );
        let ratios = (
            shift::shift(&slower.0, &slower.1),
            shift::shift(&faster.0, &faster.1),
        );
        let shift = shift::shift(&self.before, &self.after).map(|shift| Shift {
            low: ratios.0.map_or(0.0, |slower| slower.low).min(shift.low),
            high: ratios
                .1
                .map_or(f64::MAX, |faster| faster.high)
                .max(shift.high),
            ..shift
        });
        let mut times = Times {
            before_ns: median(self.before.clone()),
            after_ns: median(self.after.clone()),
            shift,
            more_calls: 0.0,
            unsure_ns: self.unsure_ns(shift),
            slower_by_chance: chance(&slower.0, &slower.1, level),
            faster_by_chance: chance(&faster.1, &faster.0, level),
            verdict: Verdict::Same,
            seen: Seen {
                slower_by_chance: chance(&self.before, &self.after, level),
                faster_by_chance: chance(&self.after, &self.before, level),
            },
            ratios: (
                ratios.0.map_or(1.0, |shift| shift.ratio),
                ratios.1.map_or(1.0, |shift| shift.ratio),
            ),
        };
        times.verdict = verdict(&times, level);
        times
    }

    /// Returns how much of the difference may be the cost of recording: the median.
    fn unsure_ns(&self, shift: Option<Shift>) -> f64 {
        let (longer, shorter) = match shift.is_some_and(|shift| shift.ratio < 1.0) {
            false => (&self.unsure_after, &self.unsure_before),
            true => (&self.unsure_before, &self.unsure_after),
        };
        median(longer.iter().map(|unsure| unsure.less_ns).collect())
            + median(shorter.iter().map(|unsure| unsure.more_ns).collect())
    }
}

/// Returns the chance to see the second times this much longer if they are so by no more than the least change that counts.
fn chance(shorter: &[f64], longer: &[f64], level: Level) -> f64 {
    let lengthened: Vec<f64> = shorter.iter().map(|ns| ns * (1.0 + level.change)).collect();
    rank::one_sided(&lengthened, longer)
}

/// Corrects for the number of tests: those of the functions, and of all together with as much weight as these have.
fn correct(all: &mut Times, functions: &mut [FunctionTimes], level: Level) {
    let chances: [fn(&mut Times) -> &mut f64; 4] = [
        |times| &mut times.slower_by_chance,
        |times| &mut times.faster_by_chance,
        |times| &mut times.seen.slower_by_chance,
        |times| &mut times.seen.faster_by_chance,
    ];
    let weight = functions.len().max(1) as f64;
    for chance in chances {
        let of_functions = functions
            .iter_mut()
            .map(|function| (*chance(&mut function.times), 1.0));
        let tests: Vec<(f64, f64)> = std::iter::once((*chance(all), weight))
            .chain(of_functions)
            .collect();
        let times = std::iter::once(&mut *all)
            .chain(functions.iter_mut().map(|function| &mut function.times));
        for (times, corrected) in times.zip(rank::corrected(&tests)) {
            *chance(times) = corrected;
        }
    }
    all.verdict = verdict(all, level);
    for function in functions {
        function.times.verdict = match (function.calls_before, function.calls_after) {
            (0.0, 1.0..) => Verdict::New,
            (1.0.., 0.0) => Verdict::Gone,
            _ => verdict(&function.times, level),
        };
    }
}

fn verdict(times: &Times, level: Level) -> Verdict {
    let Some(shift) = times.shift else {
        return Verdict::Same;
    };
    // Probabilities are fractions of small numbers: 0.05 means 1/20.
    let is_rare = |probability: f64| probability <= level.alpha + 1e-9;
    let is_slower = |ratio: f64| ratio >= 1.0 + level.change;
    let is_faster = |ratio: f64| ratio <= 1.0 / (1.0 + level.change);
    let seen = &times.seen;
    match () {
        () if is_rare(times.slower_by_chance) && is_slower(times.ratios.0) => Verdict::Slower,
        () if is_rare(times.faster_by_chance) && is_faster(times.ratios.1) => Verdict::Faster,
        () if is_rare(seen.slower_by_chance) && is_slower(shift.ratio) => Verdict::Unsure,
        () if is_rare(seen.faster_by_chance) && is_faster(shift.ratio) => Verdict::Unsure,
        () => Verdict::Same,
    }
}

/// Returns by how much the chance of a function that differs most is multiplied. Where the whole program differs, the functions get
/// its part of the level.
fn tests(all: &Times, functions: usize, level: Level) -> usize {
    let chance = all.slower_by_chance.min(all.faster_by_chance);
    match chance <= level.alpha + 1e-9 {
        true => functions,
        false => WHOLE_TESTS * functions,
    }
}

/// Returns how many recordings per side are needed if the least chance is multiplied by `tests`, if `have` are too few.
fn needed(have: usize, tests: usize, alpha: f64) -> Option<usize> {
    let can = |count: usize| rank::smallest(count, count) * tests as f64 <= alpha + 1e-9;
    match can(have) {
        true => None,
        false => (have..100).find(|&count| can(count)),
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    shift::middle(&values)
}

#[cfg(test)]
mod tests;

//! Is a build slower than another? Several recordings of each answer that: a difference counts only if recordings of the
//! same build would hardly differ as much.
//!
//! The time of all functions together is tested first. Then each function that takes a notable part of it is tested, with a
//! correction for their number (Holm). The times before are lengthened by the least change that counts, so what is tested is
//! whether the difference is larger than that: on a noisy machine equal builds are called slower less often than the level says.

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
use crate::session::Session;
use samples::{Named, Run, Sample};

/// Functions with a smaller part of the time are not tested: a correction for thousands of functions would hide all.
const LEAST_SHARE: f64 = 0.01;

/// When a difference counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// The chance of a false alarm, from 0 to 1.
    pub alpha: f64,
    /// The least change, as a fraction of the time before: 0.05 is 5 %.
    pub change: f64,
}

impl Default for Level {
    fn default() -> Self {
        Level {
            alpha: 0.05,
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
    /// How much longer it is.
    pub shift: Option<Shift>,
    /// The chance that builds which differ by no more than the least change that counts would show the candidate this much
    /// slower, corrected for the number of tests.
    pub slower_by_chance: f64,
    /// The same for faster.
    pub faster_by_chance: f64,
    /// What this means.
    pub verdict: Verdict,
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
    /// What recording a call adds to the time of its caller, in ns: it is subtracted. The median.
    pub overhead_ns: f64,
    /// All functions together.
    pub all: Times,
    /// Those that take a notable part of the time; those that changed most come first.
    pub functions: Vec<FunctionTimes>,
    /// How many functions were not tested, because they take less than a hundredth of the time.
    pub not_tested: usize,
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
    let Some(needed) = needed(baseline.min(candidate), 1, alpha) else {
        return Ok(());
    };
    if chance <= alpha + 1e-9 {
        return Ok(());
    }
    let recordings = |number: usize| count(number as u64, "recording");
    Err(Error::NotComparable {
        message: format!(
            "{} and {} cannot show a difference: even if all of the candidate are slower, chance alone does that in \
             {:.1} % of all cases, and {} % are asked for",
            recordings(baseline),
            recordings(candidate),
            chance * 100.0,
            alpha * 100.0
        ),
        hint: Some(format!(
            "make {needed} of each build at least, in turn and on the same machine; six tell of single functions, too"
        )),
    })
}

/// Returns the name of a recording.
fn name(session: &Session) -> String {
    let folder = session.reader().recording().dir();
    let name = folder.file_stem().unwrap_or(folder.as_os_str());
    name.to_string_lossy().into_owned()
}

fn judge(before: &[Run], after: &[Run], level: Level) -> Slower {
    let totals = |runs: &[Run]| runs.iter().map(Run::total_ns).collect::<Vec<f64>>();
    let all = times(&totals(before), &totals(after), level);
    let names: BTreeSet<&Named> = before
        .iter()
        .chain(after)
        .flat_map(|run| run.functions.keys())
        .collect();
    let (tested, rest): (Vec<&Named>, Vec<&Named>) = names
        .into_iter()
        .partition(|named| is_notable(before, named) || is_notable(after, named));
    let mut functions: Vec<FunctionTimes> = tested
        .iter()
        .map(|named| function(named, before, after, level))
        .collect();
    correct(&mut functions, level);
    functions.sort_by(|a, b| moved(&b.times).total_cmp(&moved(&a.times)));
    let overheads: Vec<f64> = before
        .iter()
        .chain(after)
        .map(|run| run.overhead_ns)
        .collect();
    Slower {
        recordings: (before.len(), after.len()),
        alpha: level.alpha,
        change: level.change,
        overhead_ns: median(overheads),
        all,
        needed: needed(before.len().min(after.len()), functions.len(), level.alpha),
        functions,
        not_tested: rest.len(),
    }
}

fn moved(times: &Times) -> f64 {
    (times.after_ns - times.before_ns).abs()
}

/// Returns whether a function takes a notable part of the time of most runs.
fn is_notable(runs: &[Run], named: &Named) -> bool {
    let share = |run: &Run| {
        let sample = run.functions.get(named).copied().unwrap_or_default();
        sample.self_ns / run.total_ns().max(1.0)
    };
    median(runs.iter().map(share).collect()) >= LEAST_SHARE
}

fn function(named: &Named, before: &[Run], after: &[Run], level: Level) -> FunctionTimes {
    let samples = |runs: &[Run]| -> Vec<Sample> {
        let sample = |run: &Run| run.functions.get(named).copied().unwrap_or_default();
        runs.iter().map(sample).collect()
    };
    let (before, after) = (samples(before), samples(after));
    let own = |samples: &[Sample]| samples.iter().map(|s| s.self_ns).collect::<Vec<f64>>();
    let calls = |samples: &[Sample]| median(samples.iter().map(|s| s.calls as f64).collect());
    FunctionTimes {
        function: named.function.clone(),
        module: named.module.clone(),
        calls_before: calls(&before),
        calls_after: calls(&after),
        times: times(&own(&before), &own(&after), level),
    }
}

fn times(before: &[f64], after: &[f64], level: Level) -> Times {
    let lengthened =
        |times: &[f64]| -> Vec<f64> { times.iter().map(|ns| ns * (1.0 + level.change)).collect() };
    let mut times = Times {
        before_ns: median(before.to_vec()),
        after_ns: median(after.to_vec()),
        shift: shift::shift(before, after),
        slower_by_chance: rank::one_sided(&lengthened(before), after),
        faster_by_chance: rank::one_sided(&lengthened(after), before),
        verdict: Verdict::Same,
    };
    times.verdict = verdict(&times, level);
    times
}

/// Corrects for the number of functions.
fn correct(functions: &mut [FunctionTimes], level: Level) {
    let of = |get: fn(&Times) -> f64| {
        let all: Vec<f64> = functions
            .iter()
            .map(|function| get(&function.times))
            .collect();
        rank::corrected(&all)
    };
    let slower = of(|times| times.slower_by_chance);
    let faster = of(|times| times.faster_by_chance);
    for ((function, slower), faster) in functions.iter_mut().zip(slower).zip(faster) {
        function.times.slower_by_chance = slower;
        function.times.faster_by_chance = faster;
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
    if is_rare(times.slower_by_chance) && shift.ratio >= 1.0 + level.change {
        return Verdict::Slower;
    }
    if is_rare(times.faster_by_chance) && shift.ratio <= 1.0 / (1.0 + level.change) {
        return Verdict::Faster;
    }
    Verdict::Same
}

/// Returns how many recordings per side are needed to test one function among `tests`, if `have` are too few.
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
mod tests {
    use super::*;

    /// Noise of a few per cent that is the same in each run of the test (a linear congruential generator).
    struct Noise(u64);

    impl Noise {
        fn next(&mut self) -> f64 {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let part = (self.0 >> 33) as f64 / (1_u64 << 31) as f64;
            1.0 + (part - 0.5) * 0.12
        }

        /// Runs of a program with `functions` functions, of which `f0` takes `factor` times as long.
        fn runs(&mut self, count: usize, functions: usize, factor: f64) -> Vec<Run> {
            let run = |_| {
                // A busy machine makes all functions of a run slower.
                let all = self.next();
                let functions = (0..functions).map(|at| {
                    let base = 1e6 / (at + 1) as f64 * if at == 0 { factor } else { 1.0 };
                    let sample = Sample {
                        calls: 100,
                        self_ns: base * all * self.next(),
                    };
                    (named(at), sample)
                });
                Run {
                    functions: functions.collect(),
                    overhead_ns: 20.0,
                }
            };
            (0..count).map(run).collect()
        }
    }

    fn named(at: usize) -> Named {
        Named {
            function: format!("f{at}"),
            module: "program".to_owned(),
        }
    }

    #[test]
    fn too_few_recordings_are_refused_and_enough_are_named() {
        for (before, after, alpha, needed) in [
            (1, 1, 0.05, 3),
            (2, 2, 0.05, 3),
            (2, 3, 0.05, 3),
            (3, 3, 0.01, 5),
        ] {
            let refused = enough(before, after, alpha).unwrap_err();
            let hint = refused.hint().unwrap();
            assert!(
                hint.starts_with(&format!("make {needed} of each build")),
                "{hint}"
            );
        }
        // One of twenty, and of twenty-one.
        assert!(enough(3, 3, 0.05).is_ok());
        assert!(enough(2, 5, 0.05).is_ok());
    }

    #[test]
    fn a_change_that_does_not_count_is_no_difference_however_sure_it_is() {
        let before: Vec<f64> = (0..8).map(|at| 1000.0 + f64::from(at)).collect();
        let after = |factor: f64| -> Vec<f64> { before.iter().map(|ns| ns * factor).collect() };
        let level = Level::default();
        assert_eq!(times(&before, &after(1.04), level).verdict, Verdict::Same);
        assert!(times(&before, &after(1.04), level).slower_by_chance > 0.9);
        assert_eq!(times(&before, &after(1.07), level).verdict, Verdict::Slower);
        assert_eq!(times(&after(1.07), &before, level).verdict, Verdict::Faster);
        let any = Level {
            change: 0.0,
            ..level
        };
        assert_eq!(times(&before, &after(1.04), any).verdict, Verdict::Slower);
    }

    #[test]
    fn noise_is_seldom_called_slower() {
        for recordings in [3, 5, 8] {
            let mut noise = Noise(7);
            let pairs = 400;
            let alarms = (0..pairs).filter(|_| {
                let (before, after) = (
                    noise.runs(recordings, 20, 1.0),
                    noise.runs(recordings, 20, 1.0),
                );
                judge(&before, &after, Level::default()).is_slower()
            });
            let alarms = alarms.count();
            assert!(
                alarms <= pairs / 20,
                "{alarms} of {pairs} with {recordings} recordings a side"
            );
        }
    }

    #[test]
    fn a_function_that_is_half_as_fast_is_named() {
        let mut noise = Noise(3);
        let found = judge(
            &noise.runs(6, 12, 1.0),
            &noise.runs(6, 12, 2.0),
            Level::default(),
        );
        assert!(found.is_slower() && found.all.verdict == Verdict::Slower);
        let slower: Vec<&str> = found
            .functions
            .iter()
            .filter(|function| function.times.verdict == Verdict::Slower)
            .map(|function| function.function.as_str())
            .collect();
        assert_eq!(slower, ["f0"]);
        assert_eq!(found.needed, None);
        let faster = judge(
            &noise.runs(6, 12, 2.0),
            &noise.runs(6, 12, 1.0),
            Level::default(),
        );
        assert!(!faster.is_slower());
        assert_eq!(faster.functions[0].times.verdict, Verdict::Faster);
    }

    #[test]
    fn three_recordings_tell_of_the_whole_and_name_no_function() {
        let mut noise = Noise(5);
        let found = judge(
            &noise.runs(3, 12, 1.0),
            &noise.runs(3, 12, 2.0),
            Level::default(),
        );
        assert_eq!(found.all.verdict, Verdict::Slower);
        assert!(
            found
                .functions
                .iter()
                .all(|f| f.times.verdict == Verdict::Same)
        );
        let needed = found.needed.expect("three are too few");
        assert!(
            needed > 3 && rank::smallest(needed, needed) * found.functions.len() as f64 <= 0.05
        );
        assert!(
            found.text(10).contains("too few to name one of"),
            "{}",
            found.text(10)
        );
    }

    #[test]
    fn functions_of_one_side_are_new_or_gone() {
        let mut noise = Noise(9);
        let (before, mut after) = (noise.runs(5, 4, 1.0), noise.runs(5, 4, 1.0));
        for run in &mut after {
            let moved = run.functions.remove(&named(1)).expect("it is there");
            run.functions.insert(named(9), moved);
        }
        let found = judge(&before, &after, Level::default());
        let verdict = |at| {
            let of = |function: &&FunctionTimes| function.function == named(at).function;
            found
                .functions
                .iter()
                .find(of)
                .map(|function| function.times.verdict)
        };
        assert_eq!(
            (verdict(1), verdict(9)),
            (Some(Verdict::Gone), Some(Verdict::New))
        );
    }
}

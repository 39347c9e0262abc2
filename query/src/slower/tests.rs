//! Goal: a difference between builds is told where there is one, and chance or the cost of recording are hardly ever taken for
//! one. Method: made-up runs with noise. Of what takes long each run does a third; `WHOLE=1` all.

use share::in_turn;

use super::*;
use crate::report::Cost;

// Which part of its samples a run of all tests takes.
#[allow(dead_code)]
#[path = "../../../tests/src/share.rs"]
mod share;

const COST: Cost = Cost {
    ps: 20_000,
    most_ps: 50_000,
};

/// Noise that is the same in each run of the test (a linear congruential generator), and how far its highest and lowest values
/// are apart.
struct Noise(u64, f64);

impl Noise {
    fn next(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let part = (self.0 >> 33) as f64 / (1_u64 << 31) as f64;
        1.0 + (part - 0.5) * self.1
    }

    /// Runs of a program with `functions` functions, of which `f0` takes `factor` times as long.
    fn runs(&mut self, count: usize, functions: usize, factor: f64) -> Vec<Run> {
        let run = |_| {
            // A busy machine makes all functions of a run slower.
            let all = self.next();
            let functions = (0..functions).map(|at| {
                let base = 1e6 / (at + 1) as f64 * if at == 0 { factor } else { 1.0 };
                let sample = Sample {
                    calls: 100.0,
                    made: 0.0,
                    self_ns: base * all * self.next(),
                };
                (named(at), sample)
            });
            Run {
                functions: functions.collect(),
                costs: Costs::of(Some(COST), Some(COST)),
                knows_waits: true,
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
        (1, 1, 0.05, 4),
        (2, 2, 0.05, 4),
        (3, 3, 0.05, 4),
        (4, 4, 0.025, 5),
        (3, 3, 0.01, 5),
    ] {
        let refused = enough(before, after, alpha).unwrap_err();
        let hint = refused.hint().unwrap();
        assert!(
            hint.starts_with(&format!("make {needed} of each build")),
            "{hint}"
        );
    }
    // One of 70, of 55 and of 252, twice.
    assert!(enough(4, 4, 0.05).is_ok());
    assert!(enough(2, 9, 0.05).is_ok());
    assert!(enough(5, 5, Level::default().alpha).is_ok());
    let hint = enough(4, 4, 0.025).unwrap_err();
    let hint = hint.hint().unwrap();
    assert!(
        hint.ends_with("6 are enough to judge each of 10 functions, too"),
        "{hint}"
    );
}

#[test]
fn a_change_that_does_not_count_is_no_difference_however_sure_it_is() {
    let before: Vec<f64> = (0..8).map(|at| 1000.0 + f64::from(at)).collect();
    let after = |factor: f64| -> Vec<f64> { before.iter().map(|ns| ns * factor).collect() };
    let level = Level::default();
    let times = |before: &[f64], after: &[f64], level: Level| {
        let compared = Compared {
            before: before.to_vec(),
            after: after.to_vec(),
            unsure_before: vec![Unsure::default(); before.len()],
            unsure_after: vec![Unsure::default(); after.len()],
        };
        compared.times(level)
    };
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
    for recordings in in_turn([8, 3, 5]) {
        let mut noise = Noise(7, 0.12);
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

/// Returns which part of pairs of equal builds raises an alarm.
fn alarms(pairs: usize, recordings: usize, functions: usize) -> f64 {
    let mut noise = Noise(23, 0.12);
    // Each difference counts: the level alone keeps alarms away.
    let level = Level {
        change: 0.0,
        ..Level::default()
    };
    let is_alarm = |_: &usize| {
        let before = noise.runs(recordings, functions, 1.0);
        judge(&before, &noise.runs(recordings, functions, 1.0), level).is_slower()
    };
    (0..pairs).filter(is_alarm).count() as f64 / pairs as f64
}

#[test]
fn of_twenty_pairs_of_equal_builds_at_most_one_raises_an_alarm() {
    let all = [(4000, 5, 3), (4000, 5, 1), (1500, 8, 12)];
    for (pairs, recordings, functions) in in_turn(all) {
        let part = alarms(pairs, recordings, functions);
        let what = format!("{part} with {recordings} recordings a side, {functions} functions");
        assert!(part > 0.0 && part <= Level::default().alpha, "{what}");
        let at_most_one = (1.0 - part).powi(20) + 20.0 * part * (1.0 - part).powi(19);
        assert!(at_most_one > 0.9, "{what}: {at_most_one}");
    }
}

#[test]
fn a_slowdown_of_a_tenth_is_found_by_five_quiet_recordings_a_side() {
    let mut noise = Noise(29, 0.02);
    for _ in 0..100 {
        // The first of twelve functions takes 32 % of the time, and the whole 10 % more if it takes 31 % more.
        let found = judge(
            &noise.runs(5, 12, 1.0),
            &noise.runs(5, 12, 1.31),
            Level::default(),
        );
        assert_eq!(found.all.verdict, Verdict::Slower, "{found:#?}");
        // One of three functions, where the whole is within what does not count.
        let found = judge(
            &noise.runs(5, 3, 1.0),
            &noise.runs(5, 3, 1.1),
            Level::default(),
        );
        assert_eq!(verdict_of(&found, 0), Verdict::Slower, "{found:#?}");
    }
}

#[test]
fn a_function_that_is_half_as_fast_is_named() {
    let mut noise = Noise(3, 0.12);
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

/// Adds calls of a leaf to a function of each run, with the time that they and recording them took there, in ns a call.
fn call_leaf(runs: &mut [Run], calls: f64, (inside_ns, outside_ns): (f64, f64)) {
    for run in runs {
        let caller = run.functions.get_mut(&named(1)).expect("it is there");
        caller.made += calls;
        caller.self_ns += calls * outside_ns;
        let leaf = Sample {
            calls,
            made: 0.0,
            self_ns: calls * inside_ns,
        };
        run.functions.insert(named(9), leaf);
    }
}

fn verdict_of(found: &Slower, at: usize) -> Verdict {
    let name = named(at).function;
    let mut functions = found.functions.iter();
    let found = functions.find(|function| function.function == name);
    found.expect("it is tested").times.verdict
}

#[test]
fn what_recording_more_calls_may_cost_is_not_called_slower() {
    let mut noise = Noise(11, 0.12);
    let (mut before, mut after) = (noise.runs(8, 4, 1.0), noise.runs(8, 4, 1.0));
    // 45 ns a call lie between what recording seems to cost and what it may cost.
    call_leaf(&mut before, 1e3, (21.0, 45.0));
    call_leaf(&mut after, 1e5, (45.0, 45.0));
    let found = judge(&before, &after, Level::default());
    assert!(!found.is_slower(), "{found:#?}");
    assert_eq!(verdict_of(&found, 1), Verdict::Unsure);
    assert_eq!(found.all.verdict, Verdict::Unsure);
    let shift = found.all.shift.expect("there are times");
    // The other functions take as long as before.
    assert!(
        (0.6..1.05).contains(&shift.low) && shift.ratio > 2.0,
        "{shift:?}"
    );
    let text = found.text(10);
    for part in [
        "Not sure: what recording more calls cost may explain the difference",
        "99,000 more calls: the cost of recording them may explain",
        "subtracted as the cost of recording: 20 ns within each call, 20 ns in its caller",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    // The other way round, too.
    let found = judge(&after, &before, Level::default());
    assert_eq!(found.all.verdict, Verdict::Unsure);
    assert!(found.text(10).contains("99,000 fewer calls"));
}

#[test]
fn recordings_whose_waits_are_not_known_are_counted() {
    let mut noise = Noise(17, 0.12);
    let (before, mut after) = (noise.runs(8, 4, 1.0), noise.runs(8, 4, 1.0));
    let said = "with waits for a processor in the times";
    let found = judge(&before, &after, Level::default());
    assert_eq!(found.unknown_waits, 0);
    assert!(!found.text(10).contains(said), "{}", found.text(10));
    after[3].knows_waits = false;
    let found = judge(&before, &after, Level::default());
    assert_eq!(found.unknown_waits, 1);
    let text = found.text(10);
    assert!(text.contains(&format!("  1 recording {said}")), "{text}");
}

#[test]
fn more_calls_that_work_are_slower() {
    let mut noise = Noise(13, 0.12);
    let (mut before, mut after) = (noise.runs(8, 4, 1.0), noise.runs(8, 4, 1.0));
    call_leaf(&mut before, 1e3, (200.0, 200.0));
    call_leaf(&mut after, 1e5, (200.0, 200.0));
    let found = judge(&before, &after, Level::default());
    assert_eq!(found.all.verdict, Verdict::Slower);
    assert_eq!(verdict_of(&found, 1), Verdict::Slower);
    assert_eq!(verdict_of(&found, 9), Verdict::Slower);
}

#[test]
fn what_was_perhaps_not_the_cost_of_more_calls_is_not_called_faster() {
    let mut noise = Noise(19, 0.12);
    let (mut before, mut after) = (noise.runs(8, 4, 1.0), noise.runs(8, 4, 1.0));
    call_leaf(&mut before, 1e3, (20.0, 20.0));
    // What is taken out is more than these calls took, and so it is of the work beside them.
    call_leaf(&mut after, 4e4, (20.0, 12.0));
    let found = judge(&before, &after, Level::default());
    assert_eq!(verdict_of(&found, 1), Verdict::Unsure);
}

#[test]
fn as_many_calls_of_a_leaf_that_became_slower_are_found() {
    let mut noise = Noise(17, 0.12);
    let (mut before, mut after) = (noise.runs(8, 4, 1.0), noise.runs(8, 4, 1.0));
    call_leaf(&mut before, 1e5, (21.0, 25.0));
    call_leaf(&mut after, 1e5, (31.0, 25.0));
    // Recorded, the smallest functions of the candidate look like a recorder that costs more.
    for run in &mut after {
        let cost = Cost {
            ps: 31_000,
            most_ps: 90_000,
        };
        run.costs = Costs::of(Some(cost), Some(COST));
    }
    let found = judge(&before, &after, Level::default());
    assert_eq!(verdict_of(&found, 9), Verdict::Slower);
    assert_eq!(found.all.verdict, Verdict::Slower);
}

#[test]
fn five_recordings_tell_of_the_whole_and_name_none_of_many_functions() {
    let mut noise = Noise(5, 0.12);
    let found = judge(
        &noise.runs(5, 12, 1.0),
        &noise.runs(5, 12, 2.0),
        Level::default(),
    );
    assert_eq!(found.all.verdict, Verdict::Slower);
    assert!(
        found
            .functions
            .iter()
            .all(|f| f.times.verdict == Verdict::Same)
    );
    // 12 of 924 are less than one of forty, 12 of 252 are more.
    assert_eq!(found.needed, Some(6));
    let said = "5 recordings a side are too few to name one of 12 functions with a chance of 2.5 %: record 6 a side";
    assert!(found.text(10).contains(said), "{}", found.text(10));
    // Where the whole is not slower, the functions have half of the level: 24 of 924 are too many.
    let found = judge(
        &noise.runs(5, 12, 1.0),
        &noise.runs(5, 12, 1.0),
        Level::default(),
    );
    assert_eq!(found.needed, Some(7), "{found:#?}");
}

#[test]
fn functions_of_one_side_are_new_or_gone() {
    let mut noise = Noise(9, 0.12);
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

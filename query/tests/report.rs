//! Goal: a report sums up the table `calls`: own times, times with callees where recursion counts once, callers, paths; on several
//! threads, with stacks that interleave and calls that never end. Method: random recordings, and a model that follows each call's
//! parents one by one; recordings with a known cost of recording.

mod common;

use std::collections::{BTreeMap, HashMap};

use common::{Asked, shop};
use proptest::prelude::*;
use query::Report;
use query::report::report;
use store::synth::Synth;

const FUNCTIONS: u32 = 5;
const THREADS: u32 = 3;
/// Where a thread's stacks are: its own, then that of a coroutine.
const STACKS: [u64; 2] = [0x7f00_0008_0000, 0x5000_0000_0000];

fn of(asked: &Asked) -> Report {
    report(&asked.session, &mut |_, _| ()).unwrap()
}

/// What a thread does next.
#[derive(Clone, Debug)]
struct Step {
    thread: u32,
    stack: usize,
    /// `None`: it leaves.
    enters: Option<u32>,
    after_ns: u64,
}

fn step() -> impl Strategy<Value = Step> {
    let enters = prop_oneof![
        3 => (0..FUNCTIONS).prop_map(Some),
        2 => Just(None),
    ];
    let stack = prop_oneof![5 => Just(0), 1 => Just(1)];
    (0..THREADS, stack, enters, 0u64..50).prop_map(|(thread, stack, enters, after_ns)| Step {
        thread,
        stack,
        enters,
        after_ns,
    })
}

/// A recording of those steps.
fn made(steps: &[Step]) -> Synth {
    let mut synth = Synth::new();
    for id in 0..FUNCTIONS {
        synth.function(&format!("f{id}"));
    }
    let mut open: HashMap<(u32, usize), u64> = HashMap::new();
    let mut now = 10;
    for thread in 0..THREADS {
        synth.at(now).thread(100 + thread);
    }
    for step in steps {
        now += step.after_ns;
        let depth = open.entry((step.thread, step.stack)).or_default();
        let base = STACKS[step.stack] + u64::from(step.thread) * 0x10_0000;
        synth.thread(100 + step.thread);
        match step.enters {
            Some(id) => {
                *depth += 1;
                synth.at(now).enter(id, base - *depth * 64);
            }
            None if *depth > 0 => {
                synth.at(now).leave(base - *depth * 64);
                *depth -= 1;
            }
            None => {}
        }
    }
    synth
}

/// A call of the table.
struct Row {
    function: u32,
    tid: i64,
    parent: Option<i64>,
    end: Option<i64>,
    whole_ns: i64,
    own_ns: i64,
}

/// Sums of the model.
#[derive(Debug, Default, PartialEq, Eq)]
struct Model {
    /// Calls, own time, inclusive time.
    functions: BTreeMap<u32, (u64, u64, u64)>,
    /// Calls and inclusive time.
    edges: BTreeMap<(Option<u32>, u32), (u64, u64)>,
    folded: BTreeMap<String, u64>,
}

fn model(asked: &Asked) -> Model {
    let rows = rows(asked);
    let caller = |row: &Row| {
        let parent = row.parent.filter(|parent| {
            // What had ended before did not call it: another stack of its thread was left.
            match (rows[parent].end, row.end) {
                (Some(parent), Some(own)) => parent > own,
                (Some(_), None) => false,
                (None, _) => true,
            }
        });
        parent.map(|parent| (parent, &rows[&parent]))
    };
    let mut own_ns: BTreeMap<i64, i64> = rows.iter().map(|(seq, row)| (*seq, row.own_ns)).collect();
    for row in rows.values().filter(|row| row.end.is_none()) {
        if let Some((parent, _)) = caller(row) {
            *own_ns.get_mut(&parent).unwrap() -= row.whole_ns;
        }
    }
    let mut functions: BTreeMap<u32, (u64, i64, i64)> = BTreeMap::new();
    let mut edges: BTreeMap<(Option<u32>, u32), (u64, i64)> = BTreeMap::new();
    let mut paths: BTreeMap<(i64, String), i64> = BTreeMap::new();
    for (seq, row) in &rows {
        let mut around = Vec::new();
        let mut at = row;
        while let Some((_, by)) = caller(at) {
            around.push(by.function);
            at = by;
        }
        let sum = functions.entry(row.function).or_default();
        sum.0 += 1;
        sum.1 += own_ns[seq];
        if !around.contains(&row.function) {
            sum.2 += row.whole_ns;
        }
        let edge = (around.first().copied(), row.function);
        let pairs = around.windows(2).map(|pair| (Some(pair[1]), pair[0]));
        let outermost = around.last().map(|last| (None, *last));
        let is_around = pairs.chain(outermost).any(|pair| pair == edge);
        let sum = edges.entry(edge).or_default();
        sum.0 += 1;
        if !is_around {
            sum.1 += row.whole_ns;
        }
        let names = around.iter().rev().chain([&row.function]);
        let names: Vec<String> = names.map(|id| format!("f{id}")).collect();
        *paths.entry((row.tid, names.join(";"))).or_default() += own_ns[seq];
    }
    let positive = |ns: i64| u64::try_from(ns).unwrap_or(0);
    let mut folded: BTreeMap<String, u64> = BTreeMap::new();
    for ((_, path), ns) in paths {
        if ns > 0 {
            *folded.entry(path).or_default() += positive(ns);
        }
    }
    let functions = functions.into_iter();
    let edges = edges.into_iter();
    Model {
        functions: functions
            .map(|(id, (calls, own, all))| (id, (calls, positive(own), positive(all))))
            .collect(),
        edges: edges
            .map(|(edge, (calls, all))| (edge, (calls, positive(all))))
            .collect(),
        folded,
    }
}

fn rows(asked: &Asked) -> BTreeMap<i64, Row> {
    let last_ns = asked.session.extent().last_ts_ns;
    let sql = "select start_seq, coalesce(end_seq, -1), coalesce(parent, -1), function_id, tid, ts_ns, dur_ns, self_ns \
               from calls";
    let text = asked.ask(sql);
    let some = |number: i64| (number >= 0).then_some(number);
    let mut rows = BTreeMap::new();
    for line in text.lines() {
        let number: Vec<i64> = line.split(" | ").map(|n| n.parse().unwrap()).collect();
        let [seq, end, parent, function, tid, ts_ns, dur_ns, own_ns] = number[..] else {
            panic!("{line}");
        };
        let is_open = some(end).is_none();
        let whole_ns = if is_open { last_ns - ts_ns } else { dur_ns };
        rows.insert(
            seq,
            Row {
                function: u32::try_from(function).unwrap(),
                tid,
                parent: some(parent),
                end: some(end),
                whole_ns,
                own_ns: if is_open { whole_ns } else { own_ns },
            },
        );
    }
    let inner: Vec<(i64, i64)> = rows
        .values()
        .filter(|row| row.end.is_some())
        .filter_map(|row| Some((row.parent?, row.whole_ns)))
        .collect();
    for (parent, ns) in inner {
        // For a call that ended, it is `self_ns`.
        let parent: &mut Row = rows.get_mut(&parent).unwrap();
        if parent.end.is_none() {
            parent.own_ns -= ns;
        }
    }
    rows
}

fn reported(report: &Report) -> Model {
    let mut text = Vec::new();
    report.write_folded(&mut text, true, false).unwrap();
    let text = String::from_utf8(text).unwrap();
    let line = |line: &str| {
        let (path, ns) = line.rsplit_once(' ').unwrap();
        (path.to_owned(), ns.parse().unwrap())
    };
    let functions = report.functions.iter();
    let edges = report.edges.iter();
    Model {
        functions: functions
            .map(|f| (f.function_id, (f.calls, f.raw_self_ns, f.raw_inclusive_ns)))
            .collect(),
        edges: edges
            .map(|e| ((e.caller, e.callee), (e.calls, e.raw_inclusive_ns)))
            .collect(),
        folded: text.lines().map(line).collect(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_report_adds_up_what_calls_have(steps in prop::collection::vec(step(), 1..120)) {
        let asked = Asked::new(|path| made(&steps).record(path));
        prop_assert_eq!(reported(&of(&asked)), model(&asked));
    }
}

#[test]
fn a_shop_is_reported() {
    let asked = Asked::new(|path| shop().record(path));
    let report = of(&asked);
    let calls: u64 = report.functions.iter().map(|f| f.calls).sum();
    assert_eq!(calls, 9);
    let names: Vec<_> = report.threads.iter().map(|t| t.name.as_deref()).collect();
    assert_eq!(names, [Some("synth-100"), Some("synth-101")]);
    let of_threads: u64 = [100, 101]
        .iter()
        .flat_map(|tid| report.of_thread(*tid))
        .map(|f| f.calls)
        .sum();
    assert_eq!(of_threads, calls);
}

#[test]
fn a_recording_without_calls_has_an_empty_report() {
    let asked = Asked::new(|path| Synth::new().record(path));
    let report = of(&asked);
    assert!(report.functions.is_empty() && report.threads.is_empty());
    assert_eq!(asked.ask("select * from report"), "");
}

/// Inside and outside cost of each call, in ns.
const COST: (u64, u64) = (20, 30);

/// `main` calls `work` and `tiny` in turn. Their own times are known: 100, 500 and 1 ns a turn.
fn costly(turns: u64) -> Synth {
    let mut synth = Synth::new();
    let [main, work, tiny] = ["main", "work", "tiny"].map(|name| synth.function(name));
    let slot = STACKS[0];
    let mut now = 1000;
    synth.at(now).thread(100).at(now).enter(main, slot);
    for _ in 0..turns {
        for (id, own_ns) in [(work, 500), (tiny, 1)] {
            now += COST.1 / 2;
            synth.at(now).enter(id, slot - 64);
            now += COST.0 + own_ns;
            synth.at(now).leave(slot - 64);
            now += COST.1 / 2;
        }
        now += 100;
    }
    now += COST.0;
    synth.at(now).leave(slot);
    synth
}

#[test]
fn the_cost_of_recording_is_taken_out() {
    let turns = 1000;
    let asked = Asked::new(|path| costly(turns).record(path));
    let report = of(&asked);
    let time = |name: &str| {
        report
            .functions
            .iter()
            .find(|f| f.function == name)
            .unwrap()
    };
    let [main, work, tiny] = ["main", "work", "tiny"].map(time);
    assert_eq!(work.self_ns, turns * 500);
    assert_eq!(work.raw_self_ns, turns * (500 + COST.0));
    // The smallest functions are taken to need so much.
    assert_eq!(tiny.self_ns, turns);
    assert_eq!(main.self_ns, turns * 100);
    assert_eq!(main.inclusive_ns, turns * 601);
    assert_eq!(
        main.raw_inclusive_ns,
        turns * (601 + 2 * (COST.0 + COST.1)) + COST.0
    );
    assert!((work.share - 500.0 / 601.0).abs() < 1e-9);
    let sql =
        "select function, calls, self_ns, inclusive_ns, raw_self_ns from report order by 3 desc";
    assert_eq!(
        asked.ask(sql),
        "work | 1000 | 500000 | 500000 | 520000\n\
         main | 1 | 100000 | 601000 | 160020\n\
         tiny | 1000 | 1000 | 1000 | 21000\n"
    );
}

#[test]
fn files_for_other_programs_have_all_the_time() {
    let asked = Asked::new(|path| costly(1000).record(path));
    let report = of(&asked);
    let mut folded = Vec::new();
    report.write_folded(&mut folded, false, true).unwrap();
    assert_eq!(
        String::from_utf8(folded).unwrap(),
        "synth-100 (100);main 100000\nsynth-100 (100);main;work 500000\nsynth-100 (100);main;tiny 1000\n"
    );
    let mut speedscope = Vec::new();
    report
        .write_speedscope(&mut speedscope, "test", false)
        .unwrap();
    let file: serde_json::Value = serde_json::from_slice(&speedscope).unwrap();
    let profile = &file["profiles"][0];
    assert_eq!(profile["endValue"], 601_000);
    let events = profile["events"].as_array().unwrap();
    let text = |event: &serde_json::Value| {
        let frame = event["frame"].as_u64().unwrap() as usize;
        let name = file["shared"]["frames"][frame]["name"].as_str().unwrap();
        format!("{}{name}@{}", event["type"].as_str().unwrap(), event["at"])
    };
    let events: Vec<String> = events.iter().map(text).collect();
    assert_eq!(
        events,
        [
            "Omain@0",
            "Owork@100000",
            "Cwork@600000",
            "Otiny@600000",
            "Ctiny@601000",
            "Cmain@601000"
        ]
    );
    let mut svg = Vec::new();
    report
        .write_flame_graph(&mut svg, "a <b>", false, false)
        .unwrap();
    let svg = String::from_utf8(svg).unwrap();
    assert!(svg.contains("a &lt;b&gt;"), "{svg}");
    assert!(
        svg.contains("<title>work\n0.500 ms (83.19 %), 0.500 ms of its own, 1,000 calls</title>"),
        "{svg}"
    );
}

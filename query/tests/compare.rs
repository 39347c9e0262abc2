//! Goal: a comparison reports exactly what differs, independent of the numbers of functions and threads. Method: synthetic
//! recordings of small call trees, written as text.

use std::collections::BTreeSet;

use arrow::util::display::{ArrayFormatter, FormatOptions};
use proptest::prelude::*;
use query::Session;
use query::compare::{
    Asked, Comparison, How, Kind, RuleTexts, Rules, Stop, ThreadEvent, Twin, compare, compare_both,
};
use store::manifest::RecordingId;
use store::recording::{Created, OnTaken, OpenRecording};
use store::synth::{Synth, manifest};
use store::wire::{EnterFields, EnterForm};
use tempfile::TempDir;

const SLOT: u64 = 0x7f00_0000_8000;

/// A recording of calls: `f1(g2=3)=4` is a call of `f` with the argument 1 that calls `g(2)`, which returns 3; it returns 4. At `.` the
/// thread ends. Each text is a thread of its own. Functions get numbers in the order of `names`.
fn recorded(id: u8, names: &str, threads: &[&str]) -> (TempDir, Session) {
    let mut synth = Synth::new();
    let ids: Vec<(char, u32)> = names
        .chars()
        .map(|name| (name, synth.function(&name.to_string())))
        .collect();
    let id_of = |name: char| {
        ids.iter()
            .find(|(own, _)| *own == name)
            .expect("it has a number")
            .1
    };
    for (number, text) in threads.iter().enumerate() {
        synth.thread(100 * u32::from(id) + number as u32);
        let mut depth = 0u64;
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            let slot = |depth: u64| SLOT + ((number as u64) << 20) - 64 * depth;
            let mut digit = || chars.next().and_then(|c| c.to_digit(10)).expect("a digit");
            match c {
                '(' | ')' | ' ' => {}
                '.' => {
                    synth.thread_exit();
                }
                '=' => {
                    depth -= 1;
                    let value = digit();
                    synth.leave_value(slot(depth), value.into());
                }
                name => {
                    let arg = digit();
                    synth.enter_full(&EnterFields {
                        form: EnterForm::Hooked,
                        function_id: id_of(name),
                        slot: slot(depth),
                        return_addr: 0x5555_0000_1000,
                        args: [arg.into(), 0, 0, 0, 0, 0],
                        xmm: &[],
                    });
                    depth += 1;
                }
            }
        }
    }
    synth.watermark();
    let dir = tempfile::tempdir().unwrap();
    let manifest = store::Manifest {
        recording_id: RecordingId([id; 16]),
        ..manifest()
    };
    let Created { open, mut log } =
        OpenRecording::create(&dir.path().join("test"), OnTaken::Refuse, manifest).unwrap();
    synth.append_to(&mut log).unwrap();
    let recording = open.close(log.close().unwrap()).unwrap();
    let session = Session::open(recording.dir()).unwrap();
    (dir, session)
}

fn asked() -> Asked {
    Asked {
        rules: Rules::default(),
        accepted: BTreeSet::new(),
        most_calls: 100,
        with_code: true,
        stop: Stop::default(),
    }
}

fn compared_as(a: &[&str], b: &[&str], asked: &Asked) -> Comparison {
    let (_own, a) = recorded(1, "mfgh", a);
    let (_other, b) = recorded(2, "hgfm", b);
    compare((&a, "a"), (&b, "b"), asked).unwrap()
}

fn compared(a: &str, b: &str) -> Comparison {
    compared_as(&[a], &[b], &asked())
}

/// The differences in a line: how and by which function the threads diverged, and all calls that differ.
fn told(a: &str, b: &str) -> String {
    let found = compared(a, b);
    let Some(parting) = &found.threads[0].parting else {
        assert!(found.is_same);
        return "same".to_owned();
    };
    assert!(!found.is_same);
    let how = match parting.how {
        How::Result => "result",
        How::Arguments => "arguments",
        How::Call => "call",
        How::Nesting => "nesting",
        How::Start => "start",
    };
    let kind = |kind: Kind| match kind {
        Kind::Arguments => "args",
        Kind::Result => "result",
        Kind::Inside => "inside",
        Kind::OnlyA => "-",
        Kind::OnlyB => "+",
    };
    let calls = found
        .calls
        .iter()
        .map(|call| format!(" {} {}", kind(call.kind), call.function));
    let function = parting.function.as_deref().unwrap_or("nobody");
    format!("{function} {how}:{}", calls.collect::<String>())
}

#[test]
fn the_function_that_did_it_is_told() {
    for (a, b, expected) in [
        ("m0(f1=2)=0", "m0(f1=2)=0", "same"),
        ("m0(f1=2)=0", "m0(f1=3)=0", "f result: result f"),
        ("m0(f1=2)=0", "m0(f2=2)=0", "m arguments: args f"),
        ("m0(f1=2)=0", "m0(f1=2)=1", "m result: result m"),
        ("m0(f1=2)=0", "m0(f1=2 g1=1)=0", "m call: + g inside m"),
        ("m0(f1=2 g1=1)=0", "m0(f1=2)=0", "m call: - g inside m"),
        ("m0(f1=2)=0", "m0(g1=2)=0", "m call: - f + g"),
        // The result of the inner one is the first difference, although the outer one differs too.
        (
            "m0(f1(g1=1)=2)=0",
            "m0(f1(g1=2)=3)=0",
            "g result: result g result f",
        ),
        // The outer one was called first, with another argument: its caller is responsible.
        (
            "m0(f1(g1=1)=2)=0",
            "m0(f2(g2=1)=2)=0",
            "m arguments: args g args f",
        ),
        (
            "m0(f1(g1=1)=2)=0",
            "m0(f1(g2=1)=2)=0",
            "f arguments: args g",
        ),
        // The same calls in the same order, made by other callers.
        (
            "m0(f1=2 g1=1)=0",
            "m0(g1(f1=2)=1)=0",
            "m nesting: inside g inside m",
        ),
        ("m1=0", "m2=0", "nobody start: args m"),
        (
            "m0(f1=1 f2=2 f3=3 f4=4)=0",
            "m0(f1=1 f3=3 f4=4)=0",
            "m arguments: - f inside m",
        ),
        // A call in which the thread ends has not returned: not even 0, or nothing.
        ("m0(f1.", "m0(f1.", "same"),
        ("m0(f1=0 .", "m0(f1.", "f result: result f"),
        ("m0(f1.", "m0(f1=0)=0.", "f result: result f result m"),
    ] {
        assert_eq!(told(a, b), expected, "{a} {b}");
    }
}

#[test]
fn functions_of_one_recording_are_told_apart() {
    let (_own, a) = recorded(1, "mf", &["m0(f1=2)=0"]);
    let (_other, b) = recorded(2, "mfg", &["m0(g1(f1=2)=0)=0"]);
    let found = compare((&a, "a"), (&b, "b"), &asked()).unwrap();
    assert!(
        found.is_same,
        "a call through a function that the other build has inlined is the same"
    );
    let lone: Vec<_> = found
        .lone
        .functions
        .iter()
        .map(|lone| (lone.side, &*lone.function, lone.calls))
        .collect();
    assert_eq!(lone, [('b', "g", 1)]);
}

#[test]
fn threads_are_compared_each_with_its_own() {
    let a = ["m0=0", "f1=1", "g1=1", "f2=2"];
    let found = compared_as(&a, &["m0=0", "g1=1", "f1=1", "f2=2"], &asked());
    assert!(found.is_same, "{found:?}");
    let found = compared_as(&a, &["m0=0", "f1=1", "g1=1", "f2=3"], &asked());
    let differing: Vec<_> = found
        .threads
        .iter()
        .filter(|thread| thread.differing > 0)
        .collect();
    assert_eq!(differing.len(), 1);
    assert_eq!((&*differing[0].function, differing[0].number), ("f", 1));
    let found = compared_as(&a, &a[..3], &asked());
    assert!(!found.is_same);
    assert_eq!(found.lone.threads.len(), 1);
}

#[test]
fn rules_and_accepted_differences_are_passed_over() {
    let (a, b) = (["m0(f1=2)=0"], ["m0(f1=3)=0"]);
    let with = |texts: RuleTexts| Asked {
        rules: Rules::read(&texts).unwrap(),
        ..asked()
    };
    let one = |text: &str| vec![text.to_owned()];
    for (rules, is_same) in [
        (RuleTexts::default(), false),
        (
            RuleTexts {
                functions: one("f"),
                ..RuleTexts::default()
            },
            true,
        ),
        (
            RuleTexts {
                results: one("?"),
                ..RuleTexts::default()
            },
            true,
        ),
        (
            RuleTexts {
                args: one("f:n"),
                ..RuleTexts::default()
            },
            false,
        ),
    ] {
        assert_eq!(
            compared_as(&a, &b, &with(rules.clone())).is_same,
            is_same,
            "{rules:?}"
        );
    }
    let known = compared_as(&a, &b, &asked()).fingerprints;
    assert_eq!(known.len(), 1);
    let accepting = Asked {
        accepted: known.into_iter().collect(),
        ..asked()
    };
    let found = compared_as(&a, &b, &accepting);
    assert_eq!((found.is_same, found.accepted), (true, 1));
    assert!(!compared_as(&a, &["m0(f1=4)=0"], &accepting).is_same);
}

#[test]
fn long_threads_meet_again_after_a_difference() {
    let calls = |skipped: u32, other: u32| {
        let call = |i: u32| match i {
            i if i == skipped => String::new(),
            i => format!(
                "f{}(g{}={})={} ",
                i % 10,
                i / 10 % 10,
                i / 100 % 10,
                if i == other { 1 } else { i / 1000 }
            ),
        };
        format!("m0({})=0", (0..10_000).map(call).collect::<String>())
    };
    let found = compared(&calls(u32::MAX, u32::MAX), &calls(5000, 7777));
    let kinds: Vec<_> = found
        .calls
        .iter()
        .map(|call| (call.kind, &*call.function))
        .collect();
    let expected = [
        (Kind::OnlyA, "f"),
        (Kind::OnlyA, "g"),
        (Kind::Result, "f"),
        (Kind::Inside, "m"),
    ];
    assert_eq!(kinds, expected);
    assert_eq!(
        found.threads[0]
            .parting
            .as_ref()
            .unwrap()
            .function
            .as_deref(),
        Some("m")
    );
}

#[test]
fn tables_have_the_same() {
    let (own, _a) = recorded(1, "mfgh", &["m0(f1=2)=0"]);
    let (other, b) = recorded(2, "hgfm", &["m0(f1=3 g1=1)=0"]);
    let [a, b_path] = [&own, &other].map(|dir| dir.path().join("test").display().to_string());
    let rows = |sql: String| -> usize {
        b.sql(&sql)
            .unwrap()
            .map(|batch| batch.unwrap().num_rows())
            .sum()
    };
    assert_eq!(
        rows(format!(
            "select * from diff_functions('{a}', '{b_path}') where other_results = 1 and function = 'f'"
        )),
        1
    );
    assert_eq!(
        rows(format!("select * from diff_calls('{a}', '{b_path}')")),
        3
    );
    let error = b
        .sql("select * from diff_calls('nowhere')")
        .map(drop)
        .unwrap_err();
    assert!(
        error.to_string().contains("takes two recordings"),
        "{error}"
    );
    let error = b
        .sql(&format!("select * from diff_calls('{a}', '{a}')"))
        .map(drop)
        .unwrap_err();
    assert!(
        error.to_string().contains("are the same recording"),
        "{error}"
    );
}

/// The rows of an answer, each as a line.
fn lines(session: &Session, sql: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for batch in session.sql(sql).unwrap() {
        let batch = batch.unwrap();
        let options = FormatOptions::default();
        let columns = batch.columns().iter();
        let columns: Vec<_> = columns
            .map(|column| ArrayFormatter::try_new(column, &options).unwrap())
            .collect();
        for row in 0..batch.num_rows() {
            let cells = columns.iter().map(|column| column.value(row).to_string());
            lines.push(cells.collect::<Vec<_>>().join("|"));
        }
    }
    lines
}

#[test]
fn counts_and_times_of_functions_are_those_of_their_calls() {
    let (own, a) = recorded(1, "mfgh", &["m0(f1=2 f2=2 g1=1)=0", "f3=3"]);
    let (other, b) = recorded(2, "hgfm", &["m0(f1=3 g1=1 g2(f1=1)=1)=0"]);
    let [path_a, path_b] = [&own, &other].map(|dir| dir.path().join("test").display().to_string());
    for (side, session) in [("a", &a), ("b", &b)] {
        let told = format!(
            "select function, calls_{side}, total_ns_{side}, self_ns_{side} \
             from diff_functions('{path_a}', '{path_b}') order by function"
        );
        let calls = "select function, count(*), sum(dur_ns), sum(self_ns) \
                     from calls group by function order by function";
        let told = lines(session, &told);
        assert_eq!(told.len(), 3, "{told:?}");
        assert_eq!(told, lines(session, calls), "{side}");
    }
}

#[test]
fn recursion_counts_once() {
    let own_only = |found: &Comparison, name: &str| {
        let all = &mut found.functions.iter();
        let pair = all.find(|pair| pair.function == name).expect(name);
        let known = |(a, b): (Option<u64>, Option<u64>)| (a.expect("known"), b.expect("known"));
        (known(pair.total_ns), known(pair.self_ns))
    };
    for calls in [
        // Direct: f calls f, twice.
        "m0(f1(f2(f3=0)=0 f2=0)=0)=0",
        // Mutual.
        "m0(f1(g1(f2(g2=0)=0 f3=0)=0)=0)=0",
    ] {
        let found = compared(calls, calls);
        let (m, f) = (own_only(&found, "m"), own_only(&found, "f"));
        // The only call of m is all but its own time in f.
        assert_eq!(f.0, (m.0.0 - m.1.0, m.0.1 - m.1.1), "{calls}");
    }
    // One after the other, and in two threads, all count.
    let found = compared_as(&["f1=0 f1=0", "f1=0"], &["f1=0 f1=0", "f1=0"], &asked());
    let f = own_only(&found, "f");
    assert_eq!(f.0, f.1);
    assert!(f.0.0 > 0);
}

#[test]
fn differing_calls_are_counted_by_side() {
    let found = compared("m0(f1=2 g1=1 g2=1)=0", "m0(f1=3 g1=1 h1=1 h2=1 h3=1)=0");
    let text = found.text(false);
    // f and m differ on both sides, g(2) is of A alone, the calls of h are of B.
    assert!(
        text.contains("Differences: 3 calls of A and 5 calls of B, in 4 functions\n"),
        "{text}"
    );
}

#[test]
fn a_stopped_comparison_ends() {
    let asked = asked();
    asked.stop.stop();
    let (_own, a) = recorded(1, "mfgh", &["m0(f1=2)=0"]);
    let (_other, b) = recorded(2, "mfgh", &["m0(f1=2)=0"]);
    let ended = compare((&a, "a"), (&b, "b"), &asked);
    assert!(matches!(ended, Err(query::Error::Stopped)), "{ended:?}");
}

/// The twins of events of the first recording, as events of the second one; `~`: it has no such call, and was there.
fn twins(a: &str, b: &str, seqs: &[u64]) -> Vec<String> {
    let (_own, a) = recorded(1, "mfgh", &[a]);
    let (_other, b) = recorded(2, "hgfm", &[b]);
    let asked = asked();
    let (_, twins) = compare_both((&a, "a"), (&b, "b"), &asked).unwrap();
    let twin = |seq: &u64| {
        let at = ThreadEvent {
            seq: *seq,
            tid: 100,
        };
        match twins.twin((&a, &b), &asked, at).unwrap() {
            Some(Twin::Same(place)) => {
                assert_eq!(place.tid, 200);
                place.seq.to_string()
            }
            Some(Twin::Before(place)) => format!("~{}", place.seq),
            None => "none".to_owned(),
        }
    };
    seqs.iter().map(twin).collect()
}

#[test]
fn moments_of_two_recordings_belong_together() {
    // Event 0 begins the thread. Then come m, f, f's end, g, g's end, m's end.
    let seqs = [0, 1, 2, 3, 4, 5, 6];
    for (a, b, expected) in [
        (
            "m0(f1=2 g1=1)=0",
            "m0(f1=2 g1=1)=0",
            ["0", "1", "2", "3", "4", "5", "6"],
        ),
        // A call before.
        (
            "m0(f1=2 g1=1)=0",
            "m0(h1=1 f1=2 g1=1)=0",
            ["0", "1", "4", "5", "6", "7", "8"],
        ),
        // Other arguments and results.
        (
            "m0(f1=2 g1=1)=0",
            "m0(f3=4 g1=1)=0",
            ["0", "1", "2", "3", "4", "5", "6"],
        ),
        // The second one has no f: nothing of its calls had ended before.
        (
            "m0(f1=2 g1=1)=0",
            "m0(g1=1)=0",
            ["0", "1", "none", "none", "2", "3", "4"],
        ),
        // It has no g: it was at the end of f.
        (
            "m0(f1=2 g1=1)=0",
            "m0(f1=2)=0",
            ["0", "1", "2", "3", "~3", "~3", "4"],
        ),
    ] {
        assert_eq!(twins(a, b, &seqs), expected, "{a} {b}");
    }
}

#[test]
fn moments_far_behind_a_difference_belong_together() {
    let many = |calls: usize| "f1=2 g2=3 ".repeat(calls);
    let a = format!("m0({}f7=7 {})=0", many(6_000), many(6_000));
    let b = format!("m0({}h1=1 {})=0", many(6_000), many(6_000));
    let before = [2, 1_001, 16_383, 24_001];
    let expected = before.map(|seq| seq.to_string());
    assert_eq!(twins(&a, &b, &before), expected);
    // f(7) is at 24,002 and 24,003, where the other one has h(1): as many events.
    let after = [24_004, 24_005, 40_000, 48_003];
    let expected = after.map(|seq| seq.to_string());
    assert_eq!(twins(&a, &b, &after), expected);
    assert_eq!(twins(&a, &b, &[24_002]), ["~24001"]);
}

/// The calls of each side that differ.
fn differing(a: &Session, b: &Session) -> (u64, u64) {
    let found = compare((a, "a"), (b, "b"), &asked()).unwrap();
    let mut sums = (0, 0);
    for function in &found.functions {
        let both = function.arguments + function.results + function.inside;
        sums.0 += function.only.0 + both;
        sums.1 += function.only.1 + both;
    }
    sums
}

/// Numbers below `below` that look random, always the same ones for a seed.
fn numbers(seed: u64, count: usize, below: u64) -> Vec<u64> {
    let mut state = seed;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % below
    };
    (0..count).map(|_| next()).collect()
}

/// `main`, which calls an operation for each number below 50. That makes two calls itself.
fn operations(numbers: &[u64]) -> String {
    let leaf = |x: u64| format!("l{}={}", x % 10, x * 7 % 13 % 10);
    let operation = |x: &u64| {
        let name = ["a", "b", "c", "d", "e"][*x as usize / 10];
        let (first, second) = (leaf(*x), leaf(x + 1));
        format!("{name}{}({first} {second})={} ", x % 10, x % 7)
    };
    format!(
        "m0({})=0",
        numbers.iter().map(operation).collect::<String>()
    )
}

#[test]
fn a_block_of_inserted_calls_is_the_only_difference() {
    let numbers_a = numbers(1, 20_000, 50);
    for inserted in [20, 40, 100, 1000] {
        let mut numbers_b = numbers_a.clone();
        numbers_b.splice(3000..3000, numbers(2, inserted, 50));
        let [text_a, text_b] = [&numbers_a, &numbers_b].map(|numbers| operations(numbers));
        let (_own, a) = recorded(1, "mlabcde", &[&text_a]);
        let (_other, b) = recorded(2, "edcbalm", &[&text_b]);
        // `main` made more calls.
        let more = 3 * inserted as u64 + 1;
        assert_eq!(differing(&a, &b), (1, more), "{inserted}");
        assert_eq!(differing(&b, &a), (more, 1), "{inserted}");
    }
}

#[test]
fn a_block_larger_than_the_windows_before_is_found() {
    let numbers_a = numbers(3, 60_000, 50);
    let mut numbers_b = numbers_a.clone();
    numbers_b.splice(1000..1000, numbers(4, 20_000, 50));
    let [text_a, text_b] = [&numbers_a, &numbers_b].map(|numbers| operations(numbers));
    let (_own, a) = recorded(1, "mlabcde", &[&text_a]);
    let (_other, b) = recorded(2, "mlabcde", &[&text_b]);
    assert_eq!(differing(&a, &b), (1, 60_001));
    assert_eq!(differing(&b, &a), (60_001, 1));
}

/// Calls of three functions with a few different arguments.
fn plain(numbers: &[u64]) -> String {
    let call = |x: &u64| {
        let name = ["f", "g", "h"][*x as usize % 3];
        format!("{name}{}={} ", x / 3, x % 10)
    };
    numbers.iter().map(call).collect()
}

/// A random sequence over a small alphabet; where a block is replaced, by how many calls, and by which ones.
fn replaced() -> impl Strategy<Value = (Vec<u64>, usize, usize, Vec<u64>)> {
    // Of a handful of different calls, many alignments are equally good.
    (8u64..30).prop_flat_map(|below| {
        let calls = prop::collection::vec(0..below, 1..3000);
        let others = prop::collection::vec(0..below, 0..=500);
        (calls, any::<prop::sample::Index>(), 0usize..=500, others).prop_map(
            |(calls, at, removed, others)| {
                let at = at.index(calls.len());
                let removed = removed.min(calls.len() - at);
                (calls, at, removed, others)
            },
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn one_block_is_all_that_differs((calls, at, removed, others) in replaced()) {
        let block = (removed + others.len()) as u64;
        let mut changed = calls.clone();
        changed.splice(at..at + removed, others);
        let (_own, a) = recorded(1, "fgh", &[&plain(&calls)]);
        let (_other, b) = recorded(2, "hgf", &[&plain(&changed)]);
        let (of_a, of_b) = differing(&a, &b);
        prop_assert!(of_a + of_b <= block + 64, "{of_a} and {of_b} of {block}");
        prop_assert_eq!(differing(&b, &a), (of_b, of_a));
    }
}

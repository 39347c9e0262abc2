//! Goal: a join of a table with itself has every row, also where a filter that another join finds while it runs could
//! reach the wrong one of two columns with the same name. Method: loops over the calls of a written recording.

mod common;

use common::{Asked, SLOT};
use store::synth::Synth;

/// A call with twelve calls inside, and with a chain of three.
fn nested() -> Synth {
    let mut synth = Synth::new();
    let (outer, leaf) = (synth.function("outer"), synth.function("leaf"));
    synth.thread(7).enter(outer, SLOT);
    for _ in 0..12 {
        synth.enter(leaf, SLOT - 64).leave(SLOT - 64);
    }
    for depth in 1..=3 {
        synth.enter(leaf, SLOT - 64 * depth);
    }
    for depth in (0..=3).rev() {
        synth.leave(SLOT - 64 * depth);
    }
    synth
}

/// A call and the one around it.
#[derive(Clone, Copy)]
struct Call {
    seq: u64,
    parent: Option<u64>,
}

fn calls(asked: &Asked) -> Vec<Call> {
    let lines = asked.ask("SELECT start_seq, parent FROM calls");
    let call = |line: &str| {
        let (seq, parent) = line.split_once(" | ").expect("two columns");
        let seq = seq.parse().expect("a number");
        let parent = parent.parse().ok();
        Call { seq, parent }
    };
    lines.lines().map(call).collect()
}

/// The calls for which this is true, each with the one around it, in the order of their numbers.
fn with_parents(calls: &[Call], is_wanted: impl Fn(&Call, u64) -> bool) -> Vec<String> {
    let inside = calls.iter().filter_map(|call| Some((call, call.parent?)));
    let wanted = inside.filter(|(call, parent)| is_wanted(call, *parent));
    let mut pairs: Vec<(u64, u64)> = wanted.map(|(call, parent)| (call.seq, parent)).collect();
    pairs.sort_unstable();
    let texts = pairs.iter();
    texts
        .map(|(seq, parent)| format!("{seq} | {parent}"))
        .collect()
}

#[test]
fn joins_of_calls_with_their_callers_keep_every_row() {
    let asked = Asked::new(|path| nested().record(path));
    let calls = calls(&asked);
    assert_eq!(calls.len(), 16);
    let inside = |parent: u64| calls.iter().filter(move |call| call.parent == Some(parent));
    let all = with_parents(&calls, |_, _| true);
    let later = with_parents(&calls, |call, parent| {
        inside(parent).any(|other| other.seq < call.seq)
    });
    assert_eq!((all.len(), later.len()), (15, 12));
    let both =
        "SELECT a.start_seq, b.start_seq FROM calls a JOIN calls b ON a.parent = b.start_seq";
    for (condition, expected) in [
        ("b.start_seq IN (SELECT parent FROM calls)", &all),
        (
            "EXISTS (SELECT 1 FROM calls x WHERE x.parent = b.start_seq)",
            &all,
        ),
        (
            "EXISTS (SELECT 1 FROM calls x WHERE x.parent = b.start_seq AND x.start_seq < a.start_seq)",
            &later,
        ),
    ] {
        let sql = format!("{both} WHERE {condition} ORDER BY 1, 2");
        let found = asked.ask(&sql);
        let found: Vec<&str> = found.lines().collect();
        assert_eq!(&found, expected, "{condition}");
    }
}

//! Goal: caches that persist from one moment to the next change no answer. Method: all events of recorded programs, in random order
//! and with one list of places, are compared with moments that are made by unwinding, some of them in a freshly opened recording:
//! the frame, and the values of expressions there, with their bytes, places, certainty and errors.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use debuginfo::Certainty;
use debuginfo::value::Look;
use expr::Context;
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use replay::{
    CallHead, Effort, Moment, Places, QUESTION_TIME, StateMachine, Timeline, with_question_time,
};
use values::{RenderOptions, render_known, render_with};

/// Names of all kinds: parameters, variables, global ones, members, what they point to, registers, numbers, and
/// mistakes.
const EXPRESSIONS: [&str; 42] = [
    "id",
    "pieces",
    "each",
    "customer",
    "order",
    "*order",
    "order->pieces",
    "order->customer",
    "&order->each",
    "(*order).each * 2",
    "discount",
    "sum",
    "sum + discount",
    "line",
    "counts",
    "counts[1]",
    "first",
    "*first",
    "first->customer",
    "second->id",
    "late",
    "last",
    "number",
    "sold",
    "&sold",
    "sold + 1",
    "takings",
    "shop",
    "shop[1]",
    "text",
    "refused",
    "thread",
    "$rip",
    "$rsp",
    "$rbx",
    "$xmm0",
    "sizeof(struct order)",
    "sizeof order->each",
    "pieces == 2 && each > 1",
    "settle",
    "nobody",
    "this",
];

fn recording(name: &str) -> PathBuf {
    let recordings = Path::new(env!("CARGO_MANIFEST_DIR")).join("../repl/tests/recordings");
    recordings.join(name)
}

fn open(path: &Path, temp: &Path) -> Timeline {
    Timeline::open(path, temp).expect("it is whole")
}

/// All that is told of a moment.
fn told(moment: &Moment<'_>) -> Vec<String> {
    let mut all = vec![format!("{:?}", moment.trace)];
    let each = |text| format!("{text}: {:?}", told_of(moment, text));
    all.extend(EXPRESSIONS.into_iter().map(each));
    all
}

/// The result of an expression, and its text if all of it is known.
fn told_of(moment: &Moment<'_>, text: &str) -> (String, Option<String>) {
    let frames = &moment.trace.backtrace.frames;
    let machine = StateMachine::new(&moment.state, &moment.space);
    let is_known = frames.first().is_some_and(|frame| frame.pc_is_known);
    let context = Context::new(
        &moment.space,
        &machine,
        if is_known { frames } else { &[] },
        0,
    );
    let look = Look {
        space: &moment.space,
        machine: &machine,
    };
    let options = RenderOptions::default();
    let expression = expr::parse(text).expect("it is an expression");
    let value = expr::evaluate(&expression, &context);
    let known = value
        .as_ref()
        .ok()
        .and_then(|value| render_known(value, &options, &look));
    let shown = value
        .as_ref()
        .map(|value| render_with(value, &options, &look));
    (format!("{value:?} {shown:?}"), known)
}

/// Compares all events, `anew` of them with a freshly opened recording. Returns how many values were known.
fn compare(name: &str, anew: usize) -> usize {
    let (path, temp) = (recording(name), tempfile::tempdir().unwrap());
    let (timeline, other) = (open(&path, temp.path()), open(&path, temp.path()));
    let mut seqs: Vec<u64> = (0..timeline.events()).collect();
    seqs.shuffle(&mut StdRng::seed_from_u64(11));
    let mut places = Places::default();
    let mut known = 0;
    for (at, seq) in seqs.into_iter().enumerate() {
        let event = timeline.event(seq).unwrap();
        let short = told(&places.moment(&timeline, seq, event).unwrap());
        let long = |timeline: &Timeline| {
            let tid = timeline.thread_at(seq).unwrap();
            told(&Moment::at(timeline, seq, tid, 1).unwrap())
        };
        assert_eq!(short, long(&other), "{name} at event {seq}");
        if at < anew {
            let alone = open(&path, temp.path());
            assert_eq!(short, long(&alone), "{name} at event {seq} alone");
        }
        known += short
            .iter()
            .filter(|text| text.contains(", Some(\""))
            .count();
    }
    known
}

#[test]
fn moments_are_the_same_whatever_was_looked_at_before() {
    for name in ["orders.hindsight", "captured.hindsight", "shop.hindsight"] {
        let known = compare(name, 8);
        assert!(known > 100, "{name}: only {known} values are known");
    }
}

/// The answer with fewer registers equals the answer with all of them.
#[test]
fn what_needs_few_registers_is_the_same_with_them() {
    let mut counts = BTreeMap::new();
    for name in ["orders.hindsight", "captured.hindsight", "shop.hindsight"] {
        let (path, temp) = (recording(name), tempfile::tempdir().unwrap());
        let timeline = open(&path, temp.path());
        for (effort, text) in [Effort::Nothing, Effort::Shown]
            .into_iter()
            .flat_map(|effort| EXPRESSIONS.map(|text| (effort, text)))
        {
            let (mut places, mut usual) = (Places::default(), Places::default());
            for seq in 0..timeline.events() {
                let event = timeline.event(seq).unwrap();
                let ask = |moment: &Moment<'_>| {
                    let (told, known) = told_of(moment, text);
                    known.map(|known| (told, known))
                };
                let short = places.ask_with(effort, &timeline, &event, ask);
                if let Some(short) = short.unwrap() {
                    let long = ask(&usual.moment(&timeline, seq, event).unwrap());
                    assert_eq!(short, long, "{name} at event {seq}: {text}");
                    *counts.entry(effort).or_insert(0) += u32::from(short.is_some());
                }
            }
        }
    }
    for effort in [Effort::Nothing, Effort::Shown] {
        let known = counts.get(&effort);
        assert!(known > Some(&100), "{effort:?}: only {known:?} are known");
    }
}

/// A question that has read memory for longer than it may says so, and has no half of an answer.
#[test]
fn a_question_has_a_limit_of_time() {
    let temp = tempfile::tempdir().unwrap();
    let timeline = open(&recording("captured.hindsight"), temp.path());
    let ask = |seq, time| {
        let tid = timeline.thread_at(seq).unwrap();
        let moment = Moment::at(&timeline, seq, tid, 1).unwrap();
        with_question_time(time, || told_of(&moment, "sold + sold"))
    };
    let is_known = |seq: &u64| ask(*seq, QUESTION_TIME).1.is_some();
    let known: Vec<u64> = (0..timeline.events()).filter(is_known).collect();
    assert!(known.len() > 10, "{known:?}");
    for seq in known {
        let (told, value) = ask(seq, Duration::ZERO);
        assert_eq!(value, None, "at event {seq}");
        let words = "the question took longer than 0ns and was given up";
        assert!(told.contains(words), "at event {seq}: {told}");
    }
}

/// The calls around a thread at an event, the innermost first.
fn open_calls(timeline: &Timeline, tid: u32, seq: u64) -> Vec<CallHead> {
    let innermost = timeline.innermost(tid, seq).unwrap();
    std::iter::successors(innermost, |call| timeline.parent(call).unwrap()).collect()
}

/// Bytes that a stack held before a function was entered are not its variables.
#[test]
fn no_variable_is_older_than_its_frame() {
    let mut checked = 0;
    for name in ["orders.hindsight", "captured.hindsight", "shop.hindsight"] {
        let (path, temp) = (recording(name), tempfile::tempdir().unwrap());
        let timeline = open(&path, temp.path());
        for seq in 0..timeline.events() {
            let tid = timeline.thread_at(seq).unwrap();
            let moment = Moment::at(&timeline, seq, tid, 16).unwrap();
            let machine = StateMachine::new(&moment.state, &moment.space);
            let frames = &moment.trace.backtrace.frames;
            for call in open_calls(&timeline, tid, seq) {
                let is_its = |frame: &debuginfo::Frame| frame.cfa == Some(call.slot + 8);
                let Some(index) = frames.iter().position(is_its) else {
                    continue;
                };
                let context = Context::new(&moment.space, &machine, frames, index);
                for text in EXPRESSIONS {
                    let expression = expr::parse(text).expect("it is an expression");
                    let Ok(value) = expr::evaluate(&expression, &context) else {
                        continue;
                    };
                    let on_stack = |at: &u64| (call.slot - (1 << 16)..call.slot).contains(at);
                    if let (Certainty::Stale { as_of }, true, Some(_)) = (
                        value.certainty,
                        value.bytes.is_ok(),
                        value.address().filter(on_stack),
                    ) {
                        assert!(as_of >= call.start, "{name} at event {seq}: {text}");
                        checked += 1;
                    }
                }
            }
        }
    }
    assert!(checked > 50, "only {checked} values are stale");
}

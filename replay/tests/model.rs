//! A synthetic recording of two threads against a model that folds over all its events: the timeline, by page indexes, must
//! find what the fold finds, at any position and in any order.
//!
//! The recording has several parts and pages, calls that are unwound and calls that have not ended, stops, register and memory
//! writes, and output. Seeds are fixed.

use std::collections::{BTreeMap, BTreeSet};

use debuginfo::Register;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use replay::moves::{Direction, Stops};
use replay::{Event, Seen, State, Timeline};
use store::columns::{ReadCall, ReadEvent, read_calls, read_events};
use store::control::{
    ByteBuf, Control, LiveProbe, Passed, PauseReason, ProbeKind, ProbePlace, ProbeState, Write,
};
use store::seal::{Ending, SealOptions, Sealed, Sealer};
use store::synth::{Synth, pause};
use store::wire::{EnterFields, EnterForm, Leave};
use tempfile::TempDir;

const THREADS: [u32; 2] = [100, 101];
const TOP: [u64; 2] = [0x7f00_0010_0000, 0x7f00_0020_0000];
const ARGUMENTS: [u16; 6] = [5, 4, 1, 2, 8, 9];
/// Where the first logpoint is.
const LOGGED: u64 = 0x5555_0000_1230;

/// A recording, and all its rows.
struct Made {
    timeline: Timeline,
    calls: Vec<ReadCall>,
    events: Vec<ReadEvent>,
    _dir: TempDir,
}

fn made(seed: u64, steps: usize) -> Made {
    let dir = tempfile::tempdir().unwrap();
    let synth = program(seed, steps);
    let recording = synth.record(&dir.path().join("run")).unwrap();
    let options = SealOptions {
        part_calls: steps as u64 / 5,
        ..SealOptions::default()
    };
    let sealer = Sealer::own(&recording, options).unwrap();
    let sealed: Sealed = sealer.finish(Ending::Close, |_| {}).unwrap();
    assert!(sealed.parts.len() > 2, "several parts");
    let (mut calls, mut events) = (Vec::new(), Vec::new());
    for part in &sealed.parts {
        calls.extend(read_calls(&part.calls.path).unwrap());
        events.extend(read_events(&part.events.path).unwrap());
    }
    let timeline = Timeline::open(&dir.path().join("run"), dir.path()).unwrap();
    assert_eq!(timeline.events(), sealed.events);
    Made {
        timeline,
        calls,
        events,
        _dir: dir,
    }
}

/// A random walk of two threads through calls, with stops of one of them.
fn program(seed: u64, steps: usize) -> Synth {
    let mut random = StdRng::seed_from_u64(seed);
    let mut synth = Synth::new();
    let functions: Vec<u32> = ["main", "parse", "print", "rare"]
        .iter()
        .map(|name| synth.function(name))
        .collect();
    let mut stacks: [Vec<u64>; 2] = Default::default();
    // The first logpoint is set in one place, the other in two.
    for (id, addresses) in [(1, &[LOGGED][..]), (2, &[LOGGED, LOGGED + 8])] {
        synth.live(|ticks| Control::Probe(logpoint(ticks, id, addresses)));
    }
    for step in 0..steps {
        let who = random.random_range(0..2);
        synth.thread(THREADS[who]);
        let depth = stacks[who].len();
        match random.random_range(0..1000) {
            0..3 => stop(&mut synth, THREADS[who], &mut random),
            3..7 => _ = synth.output(1, b"line\n"),
            7..10 => {
                let (tid, probe) = (THREADS[who], random.random_range(1..3));
                synth.live(|ticks| Control::Logpoint {
                    ticks,
                    tid,
                    probe,
                    message: format!("step {step}"),
                    values: Vec::new(),
                    passed: passed(step as u64).map(Box::new),
                    error: None,
                });
            }
            10..14 if depth > 2 => {
                // Several calls are left at once, without a record of their own.
                let left = random.random_range(1..=2);
                stacks[who].truncate(depth - left);
                let slot = stacks[who].pop().expect("deeper than that");
                synth.leave_value(slot, step as u64);
            }
            14..520 if depth < 40 => {
                let slot = stacks[who].last().map_or(TOP[who], |slot| slot - 0x40) - 8;
                stacks[who].push(slot);
                let rare = random.random_range(0..500) == 0;
                let function = if rare { 3 } else { random.random_range(0..3) };
                let arg = |i: u64| step as u64 * 10 + i;
                synth.enter_full(&EnterFields {
                    form: EnterForm::Hooked,
                    function_id: functions[function],
                    slot,
                    return_addr: 0x40_0000 + step as u64,
                    args: [arg(0), arg(1), arg(2), arg(3), arg(4), arg(5)],
                    xmm: &[7, step as u64],
                });
            }
            _ => {
                if let Some(slot) = stacks[who].pop() {
                    synth.leave_full(&Leave {
                        slot,
                        rax: step as u64,
                        rdx: 1,
                        xmm: None,
                    });
                }
            }
        }
        if step % 97 == 0 {
            synth.watermark();
        }
    }
    synth
}

/// What is captured of the thread that passes a logpoint in a step, if anything.
fn passed(step: u64) -> Option<Passed> {
    let mut random = StdRng::seed_from_u64(step);
    random.random_bool(0.5).then(|| Passed {
        pc: random.random_range(0..1 << 47),
        registers: random.random_bool(0.8).then(|| random.random()),
        stack_addr: 0x7f00_0000_7fc8,
        stack: ByteBuf::from(random.random::<[u8; 24]>().to_vec()),
    })
}

/// What was kept with an event.
fn passed_at(event: &ReadEvent) -> Option<Passed> {
    let step = event.text.as_deref()?.strip_prefix("step ")?;
    passed(step.parse().ok()?)
}

fn logpoint(ticks: u64, id: u32, addresses: &[u64]) -> LiveProbe {
    let place = |addr: &u64| ProbePlace {
        addr: *addr,
        module: None,
        svma: None,
        function: None,
        file: None,
        line: None,
    };
    LiveProbe {
        ticks,
        id,
        kind: ProbeKind::Logpoint,
        location: "parse".into(),
        condition: None,
        hit_count: 0,
        action: "step".into(),
        state: ProbeState::Bound,
        places: addresses.iter().map(place).collect(),
    }
}

/// A stop with a register and a memory write, then the thread continues.
fn stop(synth: &mut Synth, tid: u32, random: &mut StdRng) {
    synth.live(|ticks| Control::Pause(Box::new(pause(ticks, tid, PauseReason::Breakpoint))));
    let value: u64 = random.random();
    if random.random_bool(0.5) {
        synth.live(|ticks| {
            Control::Write(Write {
                ticks,
                tid,
                target: "$rbx".into(),
                addr: None,
                register: Some("rbx".into()),
                old: None,
                new: value.to_le_bytes().to_vec().into(),
                by: "user".into(),
            })
        });
    }
    if random.random_bool(0.5) {
        synth.live(|ticks| {
            Control::Write(Write {
                ticks,
                tid: 0,
                target: "x".into(),
                addr: Some(0x7f00_0000_7fd0),
                register: None,
                old: None,
                new: value.to_le_bytes()[..4].to_vec().into(),
                by: "user".into(),
            })
        });
    }
    synth.live(|ticks| Control::Resume {
        ticks,
        tid,
        action: "continue".into(),
    });
}

/// What the model knows of a thread.
#[derive(Clone, Default)]
struct Thread {
    /// Open calls, as `start_seq`, the innermost last.
    open: Vec<u64>,
    last: Option<u64>,
    /// Value and the event that showed it.
    registers: BTreeMap<u16, (u64, u64)>,
    /// The stop since which nothing of the thread happened.
    held_since: Option<u64>,
}

/// The state by folding over all events.
#[derive(Clone, Default)]
struct Model {
    threads: BTreeMap<u32, Thread>,
    /// Bytes and the events that showed them.
    memory: BTreeMap<u64, (u8, u64)>,
    /// The thread that just passed the logpoint with one place.
    logged: Option<u32>,
}

enum Row<'a> {
    Enter(&'a ReadCall),
    Leave(&'a ReadCall),
    Other(&'a ReadEvent),
}

impl Made {
    fn rows(&self) -> Vec<Row<'_>> {
        let mut rows: BTreeMap<u64, Row<'_>> = BTreeMap::new();
        for call in &self.calls {
            rows.insert(call.start_seq, Row::Enter(call));
            if let Some(end) = call.end_seq {
                rows.insert(end, Row::Leave(call));
            }
        }
        for event in &self.events {
            rows.insert(event.seq, Row::Other(event));
        }
        assert_eq!(rows.len() as u64, self.timeline.events(), "seqs are dense");
        rows.into_values().collect()
    }
}

impl Model {
    fn apply(&mut self, seq: u64, row: &Row<'_>) {
        self.logged = match row {
            Row::Other(event) if event.kind == "logpoint" && event.probe == Some(1) => {
                event.tid.filter(|_| passed_at(event).is_none())
            }
            _ => None,
        };
        let tid = match row {
            Row::Enter(call) | Row::Leave(call) => call.tid,
            Row::Other(event) => event.tid,
        };
        if let Row::Other(event) = row
            && event.kind == "write"
            && let (Some(address), Some(bytes)) = (event.addr, &event.bytes)
        {
            for (at, byte) in (address..).zip(bytes) {
                self.memory.insert(at, (*byte, seq));
            }
        }
        let Some(tid) = tid else { return };
        let thread = self.threads.entry(tid).or_default();
        thread.last = Some(seq);
        let mut set = |number: u16, value: u64| {
            thread.registers.insert(number, (value, seq));
        };
        match row {
            Row::Enter(call) => {
                for (number, value) in ARGUMENTS.into_iter().zip(call.args) {
                    set(number, value);
                }
                set(7, call.sp);
                thread.registers.remove(&16); // no module: where the function is is not known
                thread.open.push(seq);
                thread.held_since = None;
            }
            Row::Leave(call) => {
                if let (Some(rax), Some(rdx)) = (call.rax, call.rdx) {
                    set(0, rax);
                    set(1, rdx);
                    set(7, call.sp + 8);
                    set(16, call.ret_addr);
                }
                let at = thread
                    .open
                    .iter()
                    .rposition(|start| *start == call.start_seq);
                thread.open.remove(at.expect("it was open"));
                thread.held_since = None;
            }
            Row::Other(event) if event.kind == "pause" => {
                let state = pause(0, tid, PauseReason::Breakpoint);
                let registers = state.registers.unwrap();
                for (name, value) in store::control::REGISTER_NAMES.iter().zip(registers.general) {
                    if let Some(register) = Register::by_name(name) {
                        set(register.0, value);
                    }
                }
                set(16, state.pc);
                for (at, byte) in (state.stack_addr..).zip(&*state.stack) {
                    self.memory.insert(at, (*byte, seq));
                }
                thread.held_since = Some(seq);
            }
            Row::Other(event) if event.kind == "write" => {
                if let (Some(name), Some(bytes)) = (&event.aux, &event.bytes) {
                    let register = Register::by_name(name).unwrap();
                    let value = u64::from_le_bytes(bytes.as_slice().try_into().unwrap());
                    set(register.0, value);
                }
            }
            Row::Other(event) => {
                thread.held_since = None;
                let passed = (event.kind == "logpoint").then(|| passed_at(event));
                let Some(passed) = passed.flatten() else {
                    return;
                };
                for (number, value) in (0..).zip(passed.registers.into_iter().flatten()) {
                    set(number, value);
                }
                set(16, passed.pc);
                for (at, byte) in (passed.stack_addr..).zip(&*passed.stack) {
                    self.memory.insert(at, (*byte, seq));
                }
            }
        }
    }

    /// Holds the timeline to the model.
    fn check(&self, timeline: &Timeline, seq: u64, what: &str) {
        for (tid, thread) in &self.threads {
            let state = State::new(timeline, seq, *tid).unwrap();
            for number in (0..=16).chain([49, 58, 59]) {
                let seen = state.register(Register(number));
                let expected = match thread.registers.get(&number) {
                    _ if number == 16 && self.logged == Some(*tid) => Some((LOGGED, seq, true)),
                    None => None,
                    Some((value, shown)) => {
                        let held = thread.held_since.is_some_and(|since| *shown >= since);
                        Some((*value, *shown, *shown == seq || held))
                    }
                };
                let found = seen
                    .value()
                    .map(|value| (*value, seen.shown_at().unwrap(), seen.is_known()));
                assert_eq!(
                    found, expected,
                    "{what}: register {number} of {tid} at {seq}"
                );
            }
            let open = timeline.innermost(*tid, seq).unwrap();
            assert_eq!(
                open.map(|call| call.start),
                thread.open.last().copied(),
                "{what}: innermost call of {tid} at {seq}"
            );
            assert_eq!(
                timeline.last_of_thread(*tid, seq, 0).unwrap(),
                thread.last,
                "{what}: last event of {tid} at {seq}"
            );
        }
        let state = State::new(timeline, seq, THREADS[0]).unwrap();
        let (address, len) = (0x7f00_0000_7fb0, 0x60);
        let runs = state.memory(address, len).unwrap();
        let mut at = address;
        for run in &runs {
            assert_eq!(run.address, at, "runs follow each other");
            at += run.len;
            for (offset, address) in (run.address..at).enumerate() {
                let found = run.bytes.value().map(|bytes| {
                    let shown = run.bytes.shown_at().unwrap();
                    (bytes[offset], shown, run.bytes.is_known())
                });
                let expected = self.memory.get(&address);
                let expected = expected.map(|(byte, shown)| (*byte, *shown, *shown == seq));
                assert_eq!(found, expected, "{what}: byte {address:#x} at {seq}");
            }
        }
        assert_eq!(at, address + len);
    }
}

#[test]
fn a_state_is_what_a_fold_over_all_events_gives() {
    for seed in [1, 2] {
        let made = made(seed, 6_000);
        let rows = made.rows();
        let mut model = Model::default();
        let mut models = Vec::new();
        for (seq, row) in rows.iter().enumerate() {
            model.apply(seq as u64, row);
            let is_stop = matches!(row, Row::Other(event) if event.kind != "stdout");
            if seq % 211 == 0 || is_stop || seq < 30 || seq + 30 > rows.len() {
                models.push((seq as u64, model.clone()));
            }
        }
        for (seq, model) in &models {
            model.check(&made.timeline, *seq, "forwards");
        }
        // Random walks reach the same states, regardless of what was read before.
        let mut random = StdRng::seed_from_u64(seed + 100);
        for _ in 0..100 {
            let (seq, model) = &models[random.random_range(0..models.len())];
            model.check(&made.timeline, *seq, "at random");
        }
        for (seq, model) in models.iter().rev().take(100) {
            model.check(&made.timeline, *seq, "backwards");
        }
    }
}

#[test]
fn every_event_is_found_by_its_number() {
    let made = made(3, 60_000);
    for (seq, row) in made.rows().iter().enumerate() {
        let found = made.timeline.event(seq as u64).unwrap();
        match (row, &found) {
            (Row::Enter(call), Event::Enter(head)) => {
                assert_eq!(&&made.timeline.call(head).unwrap(), call);
            }
            (Row::Leave(call), Event::Leave(head)) => {
                assert_eq!((head.start, head.end), (call.start_seq, call.end_seq));
                assert_eq!(head.unwound, call.unwound);
            }
            (Row::Other(event), Event::Other(found)) => assert_eq!(&&**found, event),
            _ => panic!("event {seq} is {found:?}"),
        }
        assert_eq!(found.seq(), seq as u64);
    }
    let past_the_end = made.timeline.event(made.timeline.events());
    assert!(matches!(past_the_end, Err(replay::Error::NoEvent { .. })));
}

#[test]
fn moves_go_where_a_scan_of_all_events_goes() {
    let made = made(4, 20_000);
    let timeline = &made.timeline;
    let rows = made.rows();
    let mut levels: BTreeMap<u32, i64> = BTreeMap::new();
    // For each event its thread, and the thread's level after it.
    let seen: Vec<(Option<u32>, i64)> = rows
        .iter()
        .map(|row| {
            let (tid, change) = match row {
                Row::Enter(call) => (call.tid, 1),
                Row::Leave(call) => (call.tid, -1),
                Row::Other(event) => (event.tid, 0),
            };
            let level = levels.entry(tid.unwrap_or(0)).or_default();
            *level += change;
            (tid, *level)
        })
        .collect();
    let rare: BTreeSet<u32> = timeline.functions_matching("rare");
    assert_eq!(rare.len(), 1);
    let is_rare =
        |seq: &usize| matches!(rows[*seq], Row::Enter(call) if rare.contains(&call.function_id));
    let stops = Stops {
        functions: rare.clone(),
        ..Stops::default()
    };
    let is_kind =
        |seq: &usize, kind: &str| matches!(rows[*seq], Row::Other(event) if event.kind == kind);
    let is_stop = |seq: &usize| is_rare(seq) || is_kind(seq, "pause");
    let logging = Stops {
        logpoints: true,
        passes_pauses: true,
        ..Stops::default()
    };
    assert!((0..rows.len()).any(|seq| is_kind(&seq, "logpoint")));
    let mut random = StdRng::seed_from_u64(9);
    for _ in 0..2_000 {
        let at = random.random_range(0..rows.len());
        let (Some(tid), level) = seen[at] else {
            continue;
        };
        let same = |seq: &usize| seen[*seq].0 == Some(tid);
        let outside = |seq: &usize| same(seq) && seen[*seq].1 <= level;
        let next = (at + 1..rows.len()).find(outside);
        assert_eq!(
            timeline.next(tid, at as u64).ok(),
            next.map(|seq| seq as u64),
            "next of {at}"
        );
        let back = (0..at).rev().find(outside);
        assert_eq!(
            timeline.next_back(tid, at as u64).ok(),
            back.map(|seq| seq as u64),
            "next back of {at}"
        );
        let first = (at + 1..rows.len()).find(same);
        let found = timeline.first_of_thread(tid, at as u64 + 1).unwrap();
        assert_eq!(found, first.map(|seq| seq as u64), "thread's next of {at}");
        let run = timeline.run(at as u64, &stops, Direction::Forward).unwrap();
        let scanned = (at + 1..rows.len()).find(is_stop);
        assert_eq!(run, scanned.map(|seq| seq as u64), "continue from {at}");
        let run = |direction| timeline.run(at as u64, &logging, direction).unwrap();
        let is_logged = |seq: &usize| is_kind(seq, "logpoint");
        let scanned = (at + 1..rows.len()).find(is_logged);
        assert_eq!(
            run(Direction::Forward),
            scanned.map(|seq| seq as u64),
            "to a logpoint from {at}"
        );
        let scanned = (0..at).rev().find(is_logged);
        assert_eq!(
            run(Direction::Back),
            scanned.map(|seq| seq as u64),
            "back to a logpoint from {at}"
        );
        let run = timeline.run(at as u64, &stops, Direction::Back).unwrap();
        let scanned = (0..at).rev().find(is_stop);
        assert_eq!(
            run,
            scanned.map(|seq| seq as u64),
            "reverse-continue from {at}"
        );
    }
}

#[test]
fn values_that_were_never_seen_are_unknown() {
    let made = made(5, 3_000);
    let state = State::new(&made.timeline, 10, THREADS[0]).unwrap();
    for register in [Register::RBX, Register::RFLAGS, Register(12)] {
        let seen = state.register(register);
        let Seen::Unknown(reason) = &seen else {
            panic!("{seen:?}");
        };
        assert_eq!(reason.to_string(), "unknown: not captured");
    }
    let runs = state.memory(0x1000, 16).unwrap();
    assert_eq!(runs.len(), 1);
    assert!(matches!(runs[0].bytes, Seen::Unknown(_)), "{runs:?}");
}

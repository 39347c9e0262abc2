//! Goal: a state does not depend on the path to it. Method: a random walk, forwards and backwards by every kind of move, through
//! a synthetic recording with captures, stops, writes and copies of memory; after every tenth move all registers and pieces of
//! memory must equal those of a freshly opened recording at that event. Seeds are fixed.

use std::collections::BTreeSet;

use debuginfo::Register;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use replay::moves::{Direction, Stops};
use replay::{Error, Run, Seen, State, Timeline};
use store::control::{Control, PauseReason, Snapshot, SnapshotReason, Write};
use store::memory::{PAGE_LEN, Region, SnapshotWriter};
use store::seal::{Ending, SealOptions, Sealer};
use store::storage::Disk;
use store::synth::{Synth, pause};
use store::wire::{CAPTURE_REGISTER_WORDS, EnterFields, EnterForm, Leave, Section, push_capture};
use tempfile::TempDir;

const THREADS: [u32; 2] = [100, 101];
const TOP: [u64; 2] = [0x7f00_0010_0000, 0x7f00_0020_0000];
/// Data of the program: pages of which copies are made.
const DATA: u64 = 0x5555_0000_0000;
const DATA_PAGES: u64 = 4;
/// Where the stops that [`pause`] makes have their stack.
const STOPPED: u64 = 0x7f00_0000_7fb0;
const MOVES: usize = 2_000;
/// Moves from one comparison to the next.
const COMPARED: usize = 10;

/// A program, and which pages each copy of its memory holds.
struct Program {
    synth: Synth,
    copies: Vec<Vec<u64>>,
}

struct Made {
    timeline: Timeline,
    dir: TempDir,
}

impl Made {
    fn open(&self) -> Timeline {
        Timeline::open(&self.dir.path().join("run"), self.dir.path()).unwrap()
    }
}

/// All pages of which there are copies: data, and the ends of both stacks.
fn pages() -> Vec<u64> {
    let data = (0..DATA_PAGES).map(|page| DATA + page * PAGE_LEN);
    data.chain(TOP.map(|top| top - PAGE_LEN)).collect()
}

fn made(seed: u64, steps: usize) -> Made {
    let dir = tempfile::tempdir().unwrap();
    let Program { synth, copies } = program(seed, steps);
    let path = dir.path().join("run");
    let recording = synth.record(&path).unwrap();
    let regions: Vec<Region> = pages()
        .into_iter()
        .map(|addr| Region {
            addr,
            len: PAGE_LEN,
            zeroed: true,
            name: String::new(),
        })
        .collect();
    let mut random = StdRng::seed_from_u64(seed);
    for (id, pages) in copies.iter().enumerate() {
        let of = recording.manifest().recording_id;
        let mut writer = SnapshotWriter::create(&Disk, recording.dir(), of, id as u32).unwrap();
        for page in pages {
            let bytes: Vec<u8> = (0..PAGE_LEN).map(|_| random.random()).collect();
            writer.append(*page, &bytes).unwrap();
        }
        writer.finish(regions.clone()).unwrap();
    }
    let options = SealOptions {
        part_calls: steps as u64 / 5,
        ..SealOptions::default()
    };
    let sealer = Sealer::own(&recording, options).unwrap();
    let sealed = sealer.finish(Ending::Close, |_| {}).unwrap();
    assert!(sealed.parts.len() > 2, "several parts");
    let timeline = Timeline::open(&path, dir.path()).unwrap();
    Made { timeline, dir }
}

/// Two threads that call and return; captures, copies of memory and stops come between.
fn program(seed: u64, steps: usize) -> Program {
    let mut random = StdRng::seed_from_u64(seed);
    let mut synth = Synth::new();
    let functions = ["main", "parse", "print", "rare"].map(|name| synth.function(name));
    let mut stacks: [Vec<u64>; 2] = Default::default();
    let mut copies = Vec::new();
    synth.thread(THREADS[0]);
    copy(&mut synth, &mut copies, SnapshotReason::Start, &mut random);
    for step in 0..steps {
        let who = random.random_range(0..2);
        synth.thread(THREADS[who]);
        let depth = stacks[who].len();
        match random.random_range(0..1000) {
            0..4 => copy(
                &mut synth,
                &mut copies,
                SnapshotReason::Interval,
                &mut random,
            ),
            4..10 => stop(&mut synth, &mut copies, THREADS[who], &mut random),
            10..20 => _ = synth.output(1, b"line\n"),
            20..24 if depth > 2 => {
                // Several calls are left at once, without a record of their own.
                stacks[who].truncate(depth - random.random_range(1..=2));
                let slot = stacks[who].pop().expect("deeper than that");
                synth.leave_value(slot, step as u64);
            }
            24..520 if depth < 40 => {
                let slot = stacks[who].last().map_or(TOP[who], |slot| slot - 0x40) - 8;
                stacks[who].push(slot);
                let is_rare = random.random_range(0..300) == 0;
                let function = if is_rare {
                    3
                } else {
                    random.random_range(0..3)
                };
                synth.enter_full(&EnterFields {
                    form: EnterForm::Hooked,
                    function_id: functions[function],
                    slot,
                    return_addr: 0x40_0000 + step as u64,
                    args: std::array::from_fn(|at| step as u64 * 10 + at as u64),
                    xmm: &[7, step as u64],
                });
                capture(&mut synth, slot, &mut random);
            }
            _ => {
                let Some(slot) = stacks[who].pop() else {
                    continue;
                };
                synth.leave_full(&Leave {
                    slot,
                    rax: step as u64,
                    rdx: 1,
                    xmm: None,
                });
                capture(&mut synth, slot + 8, &mut random);
            }
        }
        if step % 97 == 0 {
            synth.watermark();
        }
    }
    Program { synth, copies }
}

/// What is captured with most calls: registers, a piece of the stack, and at times some of the data.
fn capture(synth: &mut Synth, rsp: u64, random: &mut StdRng) {
    if random.random_range(0..4) == 0 {
        return;
    }
    let mut registers: [u64; CAPTURE_REGISTER_WORDS] = random.random();
    registers[7] = rsp;
    let bytes: [u8; 0x60] = std::array::from_fn(|_| random.random());
    let page = random.random_range(0..DATA_PAGES);
    let stack = Section {
        addr: rsp,
        bytes: &bytes[..0x40],
    };
    let data = Section {
        addr: DATA + page * PAGE_LEN + random.random_range(0..64) * 8,
        bytes: &bytes[0x40..],
    };
    let sections = [stack, data];
    let count = random.random_range(1..=2);
    let registers = random.random_bool(0.8).then_some(registers);
    let mut record = Vec::new();
    push_capture(&mut record, synth.ticks(), registers, &sections[..count]);
    synth.raw(&record);
}

/// A copy of some pages; the others have not changed.
fn copy(
    synth: &mut Synth,
    copies: &mut Vec<Vec<u64>>,
    reason: SnapshotReason,
    random: &mut StdRng,
) {
    let mut changed = pages();
    if !copies.is_empty() {
        changed.retain(|_| random.random_bool(0.4));
    }
    let id = copies.len() as u32;
    copies.push(changed);
    synth.live(|ticks| {
        Control::Snapshot(Snapshot {
            ticks,
            id,
            reason,
            covered: pages().len() as u64 * PAGE_LEN,
            changed: PAGE_LEN,
        })
    });
}

/// A stop with a copy of memory, a register and a memory write, then the thread continues.
fn stop(synth: &mut Synth, copies: &mut Vec<Vec<u64>>, tid: u32, random: &mut StdRng) {
    if random.random_bool(0.5) {
        copy(synth, copies, SnapshotReason::Pause, random);
    }
    synth.live(|ticks| Control::Pause(Box::new(pause(ticks, tid, PauseReason::Breakpoint))));
    let value: u64 = random.random();
    let at = DATA + random.random_range(0..512) * 8;
    let targets = [(None, Some("rbx")), (Some(at), None), (Some(STOPPED), None)];
    for (addr, register) in targets {
        if random.random_bool(0.5) {
            synth.live(|ticks| {
                Control::Write(Write {
                    ticks,
                    tid: if register.is_some() { tid } else { 0 },
                    target: "x".into(),
                    addr,
                    register: register.map(Into::into),
                    old: None,
                    new: value.to_le_bytes().to_vec().into(),
                    by: "user".into(),
                })
            });
        }
    }
    synth.live(|ticks| Control::Resume {
        ticks,
        tid,
        action: "continue".into(),
    });
}

/// All that is compared of an event.
#[derive(Debug, PartialEq)]
struct Account {
    /// Of each thread: registers, vectors, the call that it is in, and its last event.
    threads: Vec<(Vec<Seen<u64>>, Vec<Seen<Vec<u8>>>, Option<u64>, Option<u64>)>,
    memory: Vec<Vec<Run>>,
}

fn account(timeline: &Timeline, seq: u64, ranges: &[(u64, u64)]) -> Account {
    let mut threads = Vec::new();
    for tid in THREADS {
        let state = State::new(timeline, seq, tid).unwrap();
        let general = (0..=16).chain([49, 58, 59]);
        let registers = general.map(|number| state.register(Register(number)));
        let vectors = (0..16).map(|number| state.vector(Register(Register::XMM0.0 + number)));
        let innermost = timeline.innermost(tid, seq).unwrap();
        threads.push((
            registers.collect(),
            vectors.collect(),
            innermost.map(|call| call.start),
            timeline.last_of_thread(tid, seq, 0).unwrap(),
        ));
    }
    let state = State::new(timeline, seq, THREADS[0]).unwrap();
    let memory = ranges
        .iter()
        .map(|(addr, len)| state.memory(*addr, *len).unwrap());
    Account {
        threads,
        memory: memory.collect(),
    }
}

/// Where memory is read: around both stack pointers, at stops, and at random places of the data.
fn places(timeline: &Timeline, seq: u64, random: &mut StdRng) -> Vec<(u64, u64)> {
    let mut places = vec![(STOPPED, 0x60)];
    for (tid, top) in THREADS.into_iter().zip(TOP) {
        let state = State::new(timeline, seq, tid).unwrap();
        let rsp = state.register(Register::RSP).value().copied();
        places.push((rsp.unwrap_or(top - 0x100) - 0x40, 0x100));
    }
    for _ in 0..3 {
        let at = random.random_range(0..DATA_PAGES * PAGE_LEN - 0x80);
        places.push((DATA + at, 0x80));
    }
    places
}

/// A move of one kind or another; `None` where there is none of that kind from here.
fn moved(
    timeline: &Timeline,
    seq: u64,
    stops: &Stops,
    random: &mut StdRng,
) -> Option<(u64, usize)> {
    let tid = THREADS[random.random_range(0..2)];
    let kind = random.random_range(0..10);
    let count = random.random_range(1..30);
    let found = match kind {
        0 => timeline.step(seq, count, Direction::Forward),
        1 => timeline.step(seq, count, Direction::Back),
        2 => timeline.next(tid, seq),
        3 => timeline.next_back(tid, seq),
        4 => timeline.finish(tid, seq),
        5 => timeline.reverse_finish(tid, seq),
        6 | 7 => {
            let direction = [Direction::Forward, Direction::Back][kind - 6];
            let found = timeline.run(seq, stops, direction).unwrap();
            return found.map(|seq| (seq, kind));
        }
        8 => timeline.step(seq, 1, Direction::Forward),
        _ => timeline.step(seq, 1, Direction::Back),
    };
    match found {
        Ok(seq) => Some((seq, kind)),
        Err(Error::NoMove(_)) => None,
        Err(error) => panic!("from event {seq}: {error}"),
    }
}

#[test]
fn a_state_does_not_depend_on_the_way_to_it() {
    let made = made(21, 3_000);
    let walked = &made.timeline;
    let mut random = StdRng::seed_from_u64(22);
    let stops = Stops {
        functions: walked.functions_matching("rare"),
        ..Stops::default()
    };
    let mut seq = walked.last() / 2;
    let (mut seen, mut kinds) = (BTreeSet::new(), [0; 10]);
    let (mut known, mut stale) = (0, 0);
    for number in 0..MOVES {
        // Sometimes jump elsewhere: moves out of calls lead to the ends.
        if number % 50 == 1 {
            seq = random.random_range(0..walked.events());
        }
        let (to, kind) = loop {
            if let Some(found) = moved(walked, seq, &stops, &mut random) {
                break found;
            }
        };
        let places = places(walked, to, &mut random);
        if number % COMPARED == 0 {
            let found = account(walked, to, &places);
            let expected = account(&made.open(), to, &places);
            assert_eq!(found, expected, "move {number}, {kind}, from {seq} to {to}");
            for run in found.memory.iter().flatten() {
                match run.bytes {
                    Seen::Known { .. } => known += 1,
                    Seen::Stale { .. } => stale += 1,
                    Seen::Unknown(_) => {}
                }
            }
        }
        kinds[kind] += 1;
        seen.insert(to);
        seq = to;
    }
    assert!(kinds.iter().all(|count| *count > 50), "{kinds:?}");
    assert!(seen.len() > MOVES / 4, "only {} events", seen.len());
    assert!(known > 100 && stale > 1_000, "{known}, {stale}");
}

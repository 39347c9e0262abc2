//! At random calls and returns of SQLite and of Lua (a thousand with `WHOLE=1`), recorded with registers, part of the stack and periodic
//! snapshots, known values are what gdb sees there, and stale values are what gdb sees at the event that showed them.

use std::{collections::BTreeSet, ops::Range, time::Duration};

use debuginfo::Register;
use e2e::{Scratch, in_turn, share};
use recorder::{Captures, SnapshotTimes, live::Motion};
use replay::{Event, Moment as Past, Seen, State, Timeline};

use crate::{
    bench::{Controlled, Random, Subject},
    beside::{Compared, same_frames_and_variables, same_registers},
    claims::{Claim, claims},
    course::{Answer, Course, Walk, Walked},
    data::{Owner, data, stack},
    stops::other_seed,
};

/// Number of captured bytes of the stack.
const STACK: u64 = 1024;
/// Number of bytes to compare at random places.
const SAMPLE: u64 = 64;
/// Number of snapshots whose whole memory is compared.
const SNAPSHOTS: usize = 12;

fn recorded(subject: &Subject, scratch: &Scratch) -> Timeline {
    let captures = Captures {
        registers: true,
        stack_len: STACK as u32,
        ..Captures::default()
    };
    let every = SnapshotTimes::Every(Duration::from_millis(2));
    let mut controlled =
        Controlled::start_with(subject, scratch, "positions", &[], captures, every);
    while controlled.go(Motion::Continue).is_some() {}
    controlled.end_as_alone(subject, scratch);
    let path = scratch.join("positions.hindsight");
    Timeline::open(&path, scratch.path()).expect("the recording can be read")
}

/// Returns the events of snapshots between calls.
fn copies(course: &Course<'_>) -> Vec<u64> {
    let is_copy = |event: &&Event| matches!(event, Event::Other(e) if e.kind == "snapshot");
    let copies = course.events.iter().filter(is_copy).map(Event::seq);
    copies.filter(|seq| course.around(*seq).is_some()).collect()
}

/// Returns the places to query at one position: the stack from rsp on, and random ones.
fn places(
    timeline: &Timeline,
    rsp: u64,
    stack: &Range<u64>,
    data: &[Range<u64>],
    random: &mut Random,
) -> Vec<Range<u64>> {
    let mut inside = |range: &Range<u64>| {
        let words = (range.end - range.start - SAMPLE) / 8;
        let start = range.start + random.below(words as usize) as u64 * 8;
        start..start + SAMPLE
    };
    let code = &timeline.modules().space(timeline.last());
    let code = code.modules()[0].range.clone();
    let mut places = vec![rsp..(rsp + STACK).min(stack.end)];
    places.push(inside(&(rsp - STACK..stack.end)));
    places.push(inside(&(code.start..data[0].start)));
    let pages: u64 = data.iter().map(|range| range.end - range.start).sum();
    for _ in 0..2 {
        let mut at = inside(&(0..pages));
        for range in data {
            let len = range.end - range.start;
            if at.start < len {
                let start = (range.start + at.start).min(range.end - SAMPLE);
                places.push(start..start + SAMPLE);
                break;
            }
            at = at.start - len..at.end;
        }
    }
    places
}

/// What a recording reports of one position.
struct Position {
    seq: u64,
    claims: Vec<Claim>,
}

/// Chooses positions among these moments and queries the recording for their memory.
fn choose(
    timeline: &Timeline,
    mut moments: Vec<u64>,
    data: &[Range<u64>],
    seed: u64,
    wanted: usize,
    compared: &mut Compared,
) -> Vec<Position> {
    let mut random = Random(seed + other_seed());
    let mut chosen = BTreeSet::new();
    while chosen.len() < wanted && !moments.is_empty() {
        chosen.insert(random.take(&mut moments));
    }
    let stack = stack(timeline);
    let mut positions = Vec::new();
    for seq in chosen {
        let tid = timeline.thread_at(seq).unwrap();
        let state = State::new(timeline, seq, tid).unwrap();
        let rsp = Register::by_name("rsp").expect("a register");
        let Seen::Known { value: rsp, .. } = state.register(rsp) else {
            panic!("event {seq}: rsp is captured");
        };
        let places = places(timeline, rsp, &stack, data, &mut random);
        let mut all = Vec::new();
        for place in places {
            all.extend(claims(&state, place, &stack, &mut compared.bytes));
        }
        positions.push(Position { seq, claims: all });
    }
    positions
}

/// Makes gdb visit all positions, and the moments that showed stale values.
fn walk(
    course: &Course<'_>,
    positions: &[Position],
    copies: &[u64],
    data: &[Range<u64>],
    subject: &Subject,
    scratch: &Scratch,
) -> Walked {
    let mut walk = Walk::new(course);
    if subject.is_optimised() {
        walk.is_optimised();
    }
    walk.keeps(data.to_vec());
    for position in positions {
        walk.at(position.seq).looks = true;
        for claim in &position.claims {
            for seq in claim.moments(course) {
                walk.at(seq).reads.push((claim.address, claim.len()));
            }
        }
    }
    for copy in copies {
        let (before, behind) = course.around(*copy).expect("it was chosen so");
        walk.at(before).dumps = true;
        walk.at(behind).dumps = true;
    }
    if let Some((seq, seed)) = course.seeding() {
        walk.at(seq).seed = Some(seed);
    }
    walk.go_all(subject, scratch)
}

fn owner(state: &State<'_>, walked: &Walked) -> Owner {
    Owner {
        ours: state.tid(),
        theirs: walked.pid,
    }
}

/// Compares the report of a position with gdb.
fn differences(
    timeline: &Timeline,
    course: &Course<'_>,
    position: &Position,
    walked: &Walked,
    is_optimised: bool,
    compared: &mut Compared,
) -> Vec<String> {
    let seq = position.seq;
    let theirs = &walked.answers[&seq];
    let tid = timeline.thread_at(seq).unwrap();
    let past = Past::at(timeline, seq, tid, 60).unwrap();
    let event = &course.events[seq as usize];
    let mut found = same_registers(timeline, course, &past.state, theirs, compared);
    if !is_optimised {
        let differing = same_frames_and_variables(&past, event, &theirs.moment, compared);
        found.extend(differing);
    }
    let owner = owner(&past.state, walked);
    for claim in &position.claims {
        let moments = claim.moments(course);
        let seen: Vec<&Answer> = moments.iter().map(|seq| &walked.answers[seq]).collect();
        let wrong = claim.check(&seen, owner, &mut compared.bytes);
        found.extend(wrong.map(|wrong| wrong.to_string()));
    }
    found
}

/// Compares all of the program's data in a snapshot with what gdb sees at the events around it.
fn copied(
    timeline: &Timeline,
    course: &Course<'_>,
    copy: u64,
    walked: &Walked,
    compared: &mut Compared,
) -> Vec<String> {
    let tid = timeline.thread_at(copy).unwrap();
    let state = State::new(timeline, copy, tid).unwrap();
    let (before, behind) = course.around(copy).expect("it was chosen so");
    let owner = owner(&state, walked);
    let mut found = Vec::new();
    for ((start, before), (_, behind)) in walked.dump(before).into_iter().zip(walked.dump(behind)) {
        let runs = state.memory(start, before.len() as u64).unwrap();
        for run in runs {
            let Seen::Known { value, .. } = run.bytes else {
                found.push(format!("event {copy}: {:#x} is not known", run.address));
                continue;
            };
            let from = (run.address - start) as usize;
            let around = before[from..].iter().zip(&behind[from..]).take(value.len());
            let theirs: Vec<Option<u8>> = around.map(|(a, b)| (a == b).then_some(*a)).collect();
            let moving = theirs.iter().filter(|byte| byte.is_none()).count();
            compared.copied.moving += moving;
            compared.copied.known += theirs.len() - moving;
            for at in owner.differences(&value, &theirs) {
                let address = run.address + at as u64;
                let (ours, other) = (value[at], theirs[at]);
                found.push(format!(
                    "event {copy}: {address:#x} is {ours:x}, gdb: {other:x?}"
                ));
            }
        }
    }
    found
}

fn positions_are_the_same(artifact: &str, seed: u64, whole: usize) {
    let wanted = share(whole);
    let scratch = Scratch::new(artifact);
    let subject = Subject::new(artifact);
    let timeline = recorded(&subject, &scratch);
    let course = Course::of(&timeline);
    let data = data(&timeline, &subject);
    let mut compared = Compared::default();
    let moments = course.moments().collect();
    let positions = choose(&timeline, moments, &data, seed, wanted, &mut compared);
    let mut copies = copies(&course);
    copies.truncate(SNAPSHOTS);
    let walked = walk(&course, &positions, &copies, &data, &subject, &scratch);
    let mut found = Vec::new();
    for position in &positions {
        found.extend(differences(
            &timeline,
            &course,
            position,
            &walked,
            subject.is_optimised(),
            &mut compared,
        ));
    }
    for copy in &copies {
        found.extend(copied(&timeline, &course, *copy, &walked, &mut compared));
    }
    eprintln!(
        "{artifact}: {} positions among {} events, {} copies of memory, {compared:?}",
        positions.len(),
        course.events.len(),
        copies.len()
    );
    assert!(
        found.is_empty(),
        "{} differ:\n{}",
        found.len(),
        found.join("\n")
    );
    let is_return =
        |position: &&Position| matches!(course.events[position.seq as usize], Event::Leave(_));
    let returns = positions.iter().filter(is_return).count();
    assert_eq!(positions.len(), wanted);
    assert!(3 * returns > wanted, "{returns} of {wanted} are returns");
    compared.are_enough(wanted, subject.is_optimised());
    assert!(copies.len() > 1, "{} copies of memory", copies.len());
}

/// The same at returns from functions of small programs, which end before memory is copied again.
fn returns_are_the_same(artifact: &str, seed: u64, whole: usize) {
    let wanted = share(whole);
    let scratch = Scratch::new(artifact);
    let subject = Subject::new(artifact);
    let timeline = recorded(&subject, &scratch);
    let course = Course::of(&timeline);
    let data = data(&timeline, &subject);
    let mut compared = Compared::default();
    let is_return = |seq: &u64| matches!(course.events[*seq as usize], Event::Leave(_));
    let returns = course.moments().filter(is_return).collect();
    let positions = choose(&timeline, returns, &data, seed, wanted, &mut compared);
    let walked = walk(&course, &positions, &[], &data, &subject, &scratch);
    let mut found = Vec::new();
    for position in &positions {
        found.extend(differences(
            &timeline,
            &course,
            position,
            &walked,
            subject.is_optimised(),
            &mut compared,
        ));
    }
    eprintln!("{artifact}: {} returns, {compared:?}", positions.len());
    assert!(
        found.is_empty(),
        "{} differ:\n{}",
        found.len(),
        found.join("\n")
    );
    assert_eq!(positions.len(), wanted);
    compared.are_enough_of_returns(wanted, subject.is_optimised());
}

#[test]
fn returns_in_cxx_are_those_of_gdb() {
    returns_are_the_same("shapes_O0", 113, 150);
    returns_are_the_same("shapes_O2", 127, 150);
}

/// Optimised code keeps values in registers across calls. (Optimised Lua would need the recorded run's time of day, which is not
/// reported.)
#[test]
fn positions_in_programs_are_those_of_gdb() {
    for (artifact, seed, whole) in in_turn([
        ("sqlite_O0", 53, 1000),
        ("sqlite_O2", 71, 500),
        ("lua_O0", 59, 1000),
    ]) {
        positions_are_the_same(artifact, seed, whole);
    }
}

//! Memory is copied at each pause of live control. At random pauses of SQLite and Lua, all of the program's data, and
//! what its variables point to, is what gdb sees there. Later it is reported with that age.

use std::collections::BTreeMap;

use debuginfo::Certainty;
use e2e::Scratch;
use expr::{Context, evaluate, is_type, parse_with};
use recorder::live::{Location, Motion};
use replay::{Event, Moment as Past, Seen, State, StateMachine, Timeline};

use crate::{
    bench::{Controlled, Random, Subject},
    course::{Answer, Course, Walk, Walked},
    data::{Owner, data},
    stops::other_seed,
};

const PAUSES: usize = 60;
/// Maximum call number of a function to wait for.
const MOST_HITS: usize = 200;

/// Function addresses, and the call at which to pause in each.
type Chosen = BTreeMap<u64, usize>;

fn recorded(subject: &Subject, scratch: &Scratch, name: &str, pauses: &Chosen) -> Timeline {
    let mut controlled = Controlled::start(subject, scratch, name);
    for (address, hit) in pauses {
        controlled.break_at(Location::Address(*address), *hit as u64, true);
    }
    while controlled.go(Motion::Continue).is_some() {}
    controlled.end_as_alone(subject, scratch);
    let path = scratch.join(&format!("{name}.hindsight"));
    Timeline::open(&path, scratch.path()).expect("the recording can be read")
}

fn choose(course: &Course<'_>, seed: u64) -> Chosen {
    let mut random = Random(seed + other_seed());
    let mut functions: Vec<(u64, usize)> = course.functions();
    functions.sort_unstable();
    let mut chosen = Chosen::new();
    while chosen.len() < PAUSES && !functions.is_empty() {
        let (address, calls) = random.take(&mut functions);
        chosen.insert(address, 1 + random.below(calls.min(MOST_HITS)));
    }
    chosen
}

/// Returns the pauses at breakpoints, each with the entry of the function at whose first instruction it is: the call
/// has been recorded, and nothing of it has run.
fn pauses(course: &Course<'_>) -> Vec<(u64, u64)> {
    let is_pause = |event: &&Event| matches!(event, Event::Other(e) if e.kind == "pause" && e.aux.as_deref() == Some("breakpoint"));
    let seqs = course.events.iter().filter(is_pause).map(Event::seq);
    let entry = |seq: u64| {
        let mut before = course.events[..seq as usize].iter().rev();
        let entry = before.find(|event| !matches!(event, Event::Other(_)));
        let entry = entry.filter(|event| matches!(event, Event::Enter(_)));
        (seq, entry.expect("the function was entered").seq())
    };
    seqs.map(entry).collect()
}

/// Counts of comparisons.
#[derive(Debug, Default)]
struct Compared {
    bytes: usize,
    fields: usize,
    stale: usize,
    constant: usize,
}

/// Compares all of the program's data at a pause with gdb's.
fn same_data(
    state: &State<'_>,
    later: &State<'_>,
    entry: u64,
    walked: &Walked,
    compared: &mut Compared,
) -> Vec<String> {
    let mut found = Vec::new();
    let pause = state.seq();
    let owner = Owner {
        ours: state.tid(),
        theirs: walked.pid,
    };
    for (start, theirs) in walked.dump(entry) {
        let mut at = start;
        for run in state.memory(start, theirs.len() as u64).unwrap() {
            assert_eq!(run.address, at, "event {pause}: runs follow each other");
            at += run.len;
            let Seen::Known { value, .. } = run.bytes else {
                found.push(format!("event {pause}: {:#x} is not known", run.address));
                continue;
            };
            let from = (run.address - start) as usize;
            let theirs = &theirs[from..from + value.len()];
            compared.bytes += value.len();
            let counts: Vec<Option<u8>> = theirs.iter().copied().map(Some).collect();
            let wrong = owner.differences(&value, &counts);
            if let Some(first) = wrong.first() {
                let here = first / 8 * 8..first / 8 * 8 + 8;
                found.push(format!(
                    "event {pause}: {:#x} is {:x?}, gdb: {:x?}; {} bytes differ",
                    run.address + here.start as u64,
                    &value[here.clone()],
                    &theirs[here],
                    wrong.len()
                ));
            }
        }
        // Once the program runs again, the data is as old as the snapshot, but for what the dynamic linker has protected.
        for run in later.memory(start, theirs.len() as u64).unwrap() {
            let is_relro = is_relro(later, run.address, run.len);
            match run.bytes {
                Seen::Stale { as_of, .. } if as_of <= pause && !is_relro => compared.stale += 1,
                Seen::Known { value, .. } if is_relro => {
                    let from = (run.address - start) as usize;
                    assert_eq!(value, theirs[from..from + value.len()]);
                    compared.constant += 1;
                }
                other => found.push(format!(
                    "event {}: {:#x} is {:?}",
                    later.seq(),
                    run.address,
                    other.shown_at()
                )),
            }
        }
    }
    found
}

/// Returns whether memory is of a module that has been made read-only after relocation.
fn is_relro(state: &State<'_>, address: u64, len: u64) -> bool {
    let space = state.timeline().modules().space(state.seq());
    let mapped = space.at(address);
    mapped.is_some_and(|mapped| {
        let module = &mapped.module;
        module.is_relro(mapped.svma(address), mapped.svma(address + len))
    })
}

/// Compares what the callers' variables point to with gdb.
fn same_fields(past: &Past<'_>, theirs: &Answer, compared: &mut Compared) -> Vec<String> {
    let machine = StateMachine::new(&past.state, &past.space);
    let mut found = Vec::new();
    for (level, text, number) in &theirs.fields {
        let context = Context::new(&past.space, &machine, &past.trace.backtrace.frames, *level);
        let is_type = |name: &str| is_type(name, &context);
        let expression = parse_with(text, &is_type).expect("an expression");
        let value = evaluate(&expression, &context).map_err(|error| error.to_string());
        let ours = value.and_then(|value| {
            let number = value.as_integer().map_err(|error| error.to_string())?;
            Ok((number as u64, value.certainty))
        });
        compared.fields += 1;
        if ours != Ok((*number, Certainty::Known)) {
            let seq = past.state.seq();
            found.push(format!(
                "event {seq}: #{level} {text} is {ours:x?}, gdb: {number:x}"
            ));
        }
    }
    found
}

fn pauses_are_the_same(artifact: &str, seed: u64) {
    let scratch = Scratch::new(artifact);
    let subject = Subject::new(artifact);
    let first = recorded(&subject, &scratch, "first", &Chosen::new());
    let chosen = choose(&Course::of(&first), seed);
    let timeline = recorded(&subject, &scratch, "pauses", &chosen);
    let course = Course::of(&timeline);
    let data = data(&timeline, &subject);
    let pauses = pauses(&course);
    assert_eq!(pauses.len(), chosen.len());
    let mut walk = Walk::new(&course);
    walk.keeps(data);
    for (_, entry) in &pauses {
        let asked = walk.at(*entry);
        asked.dumps = true;
        asked.fields = true;
    }
    if let Some((seq, seed)) = course.seeding() {
        walk.at(seq).seed = Some(seed);
    }
    let walked = walk.go_all(&subject, &scratch);
    let mut compared = Compared::default();
    let mut found = Vec::new();
    for (pause, entry) in &pauses {
        let tid = timeline.thread_at(*pause).unwrap();
        let past = Past::at(&timeline, *pause, tid, 60).unwrap();
        let later = State::new(&timeline, course.behind(*pause), tid).unwrap();
        found.extend(same_data(
            &past.state,
            &later,
            *entry,
            &walked,
            &mut compared,
        ));
        found.extend(same_fields(&past, &walked.answers[entry], &mut compared));
    }
    eprintln!("{artifact}: {} pauses, {compared:?}", pauses.len());
    assert!(
        found.is_empty(),
        "{} differ:\n{}",
        found.len(),
        found.join("\n")
    );
    assert_eq!(pauses.len(), PAUSES);
    assert!(compared.bytes >= PAUSES * 40_000, "{compared:?}");
    assert!(compared.fields >= PAUSES * 100, "{compared:?}");
}

#[test]
fn memory_at_pauses_of_sqlite_is_that_of_gdb() {
    pauses_are_the_same("sqlite_O0", 61);
}

#[test]
fn memory_at_pauses_of_lua_is_that_of_gdb() {
    pauses_are_the_same("lua_O0", 67);
}

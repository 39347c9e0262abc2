//! What a recording later reports about its moments is what gdb sees in the running program. At stops this covers all
//! registers, the frames and every variable on the saved stack; at function entries the argument registers, the return
//! address, and as much of the backtrace as is reported.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;

use debuginfo::{Frame, Machine, Register};
use e2e::{Scratch, in_turn, share};
use recorder::live::*;
use replay::{Event, Moment as Past, State, StateMachine, Timeline};
use store::control::{FunctionDef, ParameterPlace};

use crate::{
    bench::{Controlled, Random, Subject, gdb},
    moment::{Moment, Vectors, described, vectors},
    places,
    stops::{Stop, choose},
};

/// Integer arguments, in order.
const ARGUMENTS: [&str; 6] = ["rdi", "rsi", "rdx", "rcx", "r8", "r9"];
/// A variable of SQLite's parser that is declared between `switch` and its first `case`, where the compiler's pattern for
/// variables without a value does not reach. It holds what earlier calls have left on the stack, and these are not the
/// same: loading the agent takes part of the heap, so that `malloc` asks the kernel for more in another call.
const WITHOUT_VALUE: &str = "yylhsminor.";
/// Maximum call number of a function to wait for.
const MOST_HITS: usize = 60;

fn record(subject: &Subject, scratch: &Scratch, name: &str, stops: &[Stop], traced: bool) {
    let untraced: &[&str] = if traced { &[] } else { &["*"] };
    let mut controlled = Controlled::start_without(subject, scratch, name, untraced);
    for stop in stops {
        let location = Location::Line {
            file: stop.file.clone(),
            line: stop.line,
            column: None,
        };
        controlled.break_at(location, stop.hit, true);
    }
    while controlled.go(Motion::Continue).is_some() {}
    controlled.end_as_alone(subject, scratch);
}

fn open(scratch: &Scratch, name: &str) -> Timeline {
    let path = scratch.join(&format!("{name}.hindsight"));
    Timeline::open(&path, scratch.path()).expect("the recording can be read")
}

fn recorded_stops_are_the_same(artifact: &str, seed: u64, whole: usize) {
    let wanted = share(whole);
    let scratch = Scratch::new(artifact);
    let subject = Subject::new(artifact);
    let stops = choose(&subject, &scratch, seed, wanted);
    let mut plan = String::new();
    for stop in &stops {
        writeln!(plan, "{}\t{}", places::planned(stop), stop.hit).unwrap();
    }
    let plan_file = scratch.join("plan");
    std::fs::write(&plan_file, plan).expect("the folder is writable");
    let output = gdb(&subject, &scratch, "stops.py", &plan_file);
    let theirs = Moment::all(&output);
    assert_eq!(theirs.len(), stops.len());
    let mut differences = places::wrong(&subject, &output);
    // Thunks leave other bytes in variables that have no value yet, so values are compared without tracing.
    for (name, traced) in [("recorded", true), ("untraced", false)] {
        record(&subject, &scratch, name, &stops, traced);
        let timeline = open(&scratch, name);
        let (mut known, mut unknown) = (0, 0);
        let mut compared = 0;
        let mut at_entry = Vectors::new();
        let mut moved = None;
        for (seq, tid) in timeline.stops() {
            let event = timeline.other(seq).unwrap().expect("a stop is an event");
            let state = State::new(&timeline, seq, tid).unwrap();
            let space = timeline.modules().space(seq);
            let machine = StateMachine::new(&state, &space);
            if event.aux.as_deref() != Some("breakpoint") {
                assert_eq!(event.aux.as_deref(), Some("entry"));
                at_entry = vectors(&machine);
                continue;
            }
            let mut ours = Moment::of(&space, &machine);
            let mut theirs = theirs[compared].clone();
            compared += 1;
            match subject.pads_vectors() {
                true => ours.vectors.clear(),
                false => ours.forget_vectors(&at_entry, &theirs, &output),
            }
            if artifact.starts_with("shapes") {
                move_back(&mut ours, &theirs, &mut moved);
            }
            // What was not captured is reported as unknown; gdb knows more there.
            let is_unknown = |text: &String| text.contains("unknown:");
            let missing: Vec<(usize, String)> = ours
                .variables
                .iter()
                .filter(|(_, _, text)| is_unknown(text))
                .map(|(level, name, _)| (*level, name.clone()))
                .collect();
            known += ours.variables.len() - missing.len();
            unknown += missing.len();
            let is_told = |(level, name, _): &(usize, String, String)| {
                !missing.contains(&(*level, name.clone()))
            };
            let has_value = |variable: &(usize, String, String)| {
                is_told(variable) && !variable.1.starts_with(WITHOUT_VALUE)
            };
            ours.variables.retain(has_value);
            theirs.variables.retain(has_value);
            // For strings on the heap only the address was captured.
            for (level, name, text) in &mut theirs.variables {
                let same = |(l, n, _): &&(usize, String, String)| l == level && n == name;
                if let Some((_, _, pointer)) = ours.variables.iter().find(same)
                    && text.starts_with(&format!("{pointer} \""))
                {
                    text.clone_from(pointer);
                }
            }
            differences.extend(ours.differences(&theirs, !traced));
        }
        assert_eq!(compared, stops.len());
        eprintln!("{artifact}, {name}: {compared} stops, {known} variables known, {unknown} not");
        assert!(known > 5 * unknown, "memory is copied at each stop");
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// Where exceptions are allocated: the first pages after the program's data.
const HEAP: Range<u64> = 0x5555_5555_9000..0x5555_5558_0000;

/// Loading the agent takes part of the heap. What the program allocates after it, such as the exceptions of the C++
/// program, lies further up by the same few bytes at all stops. Moves registers that point there back.
fn move_back(ours: &mut Moment, theirs: &Moment, moved: &mut Option<u64>) {
    for (name, value) in &mut ours.registers {
        let Some(other) = theirs.registers.get(name) else {
            continue;
        };
        let distance = value.wrapping_sub(*other);
        let is_moved = (1..0x1000).contains(&distance) && distance % 16 == 0;
        if is_moved && HEAP.contains(other) && moved.is_none_or(|before| before == distance) {
            *moved = Some(distance);
            *value = *other;
        }
    }
}

/// Chooses function entries that `accepts` takes: events, each with its address and hit number for gdb.
pub fn choose_entries(
    timeline: &Timeline,
    seed: u64,
    wanted: usize,
    accepts: impl Fn(&FunctionDef) -> bool,
) -> BTreeMap<u64, (u64, usize)> {
    let mut random = Random(seed);
    let mut functions: Vec<u32> = timeline.functions().map(|f| f.id).collect();
    let mut chosen = BTreeMap::new();
    while chosen.len() < wanted && !functions.is_empty() {
        let function = random.take(&mut functions);
        if !timeline.function(function).is_some_and(&accepts) {
            continue;
        }
        let mut entries = timeline.entries(function, usize::MAX).unwrap();
        entries.sort_unstable();
        entries.truncate(MOST_HITS);
        let Some(address) = timeline.entry_of(function, timeline.last() / 2) else {
            continue;
        };
        if !entries.is_empty() {
            let hit = random.below(entries.len());
            chosen.insert(entries[hit].0, (address, hit + 1));
        }
    }
    chosen
}

fn entries_are_the_same(artifact: &str, seed: u64, whole: usize) {
    let wanted = share(whole);
    let scratch = Scratch::new(artifact);
    let subject = Subject::new(artifact);
    record(&subject, &scratch, "entries", &[], true);
    let timeline = open(&scratch, "entries");
    let chosen = choose_entries(&timeline, seed, wanted, |_| true);
    let mut plan = String::new();
    for (address, hit) in chosen.values() {
        writeln!(plan, "{address:x}\t{hit}").unwrap();
    }
    let plan_file = scratch.join("plan");
    std::fs::write(&plan_file, plan).expect("the folder is writable");
    let theirs = Moment::all(&gdb(&subject, &scratch, "entries.py", &plan_file));
    assert_eq!(theirs.len(), chosen.len(), "gdb stops at the same calls");
    let mut differences = Vec::new();
    let (mut frames, mut all_frames) = (0, 0);
    for (seq, theirs) in chosen.keys().zip(&theirs) {
        let tid = timeline.thread_at(*seq).unwrap();
        let past = Past::at(&timeline, *seq, tid, 60).unwrap();
        let machine = StateMachine::new(&past.state, &past.space);
        let Event::Enter(call) = timeline.event(*seq).unwrap() else {
            panic!("event {seq} was chosen as an entry");
        };
        let function = timeline.function(call.function).expect("it was defined");
        for (name, value) in &theirs.registers {
            // The others hold what earlier calls left in them, and traced calls return through a thunk.
            let argument = ARGUMENTS.iter().position(|argument| argument == name);
            let is_taken = |at: usize| {
                let mut params = function.params.iter();
                params.any(|param| param.place == ParameterPlace::Int(at as u8))
            };
            if argument.is_some_and(|at| !is_taken(at)) {
                continue;
            }
            let ours = match name.as_str() {
                "[rsp]" => {
                    let mut word = [0; 8];
                    let read = machine.memory(theirs.registers["rsp"], &mut word);
                    read.map(|certainty| (u64::from_le_bytes(word), certainty))
                }
                name => machine.register(Register::by_name(name).expect("a register")),
            };
            match ours {
                Ok((ours, debuginfo::Certainty::Known)) if ours == *value => {}
                other => differences.push(format!(
                    "event {seq}, {}: {name} is {other:x?}, gdb: {value:x}",
                    theirs.place
                )),
            }
        }
        // Up to the first gap all frames must be reported; after it, the reported frames must exist, in order.
        let ours = &past.trace.backtrace.frames;
        let first_gap = past.trace.gaps.first().copied().unwrap_or(ours.len());
        let mut at = 0;
        all_frames += theirs.frames.len();
        // gdb's tail calls are left out, since it shows fewer.
        let is_compared = |frame: &Frame| frame.pc_is_known && !frame.is_tail_call;
        for (index, frame) in ours.iter().enumerate().filter(|(_, f)| is_compared(f)) {
            let text = described(frame);
            let mut others = theirs.frames[at..].iter();
            let found = others.position(|theirs| same_frame(artifact, &text, theirs));
            match found {
                Some(skipped) if skipped == 0 || index >= first_gap => {
                    at += skipped + 1;
                    frames += 1;
                }
                _ => differences.push(format!(
                    "event {seq}: frame {index} is {text:?}, gdb: {:?}",
                    theirs.frames
                )),
            }
        }
    }
    eprintln!(
        "{artifact}: {} entries, {frames} of {all_frames} frames told",
        chosen.len()
    );
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert!(
        frames * 2 > all_frames,
        "{frames} of {all_frames} frames are told"
    );
}

/// gdb writes names of Rust functions differently, and places code without a line differently. Whether a call is
/// inlined and its address are the same.
fn same_frame(artifact: &str, ours: &str, theirs: &str) -> bool {
    let place = |text: &str| -> Vec<String> {
        let parts = text.rsplitn(3, ' ').take(2);
        parts.map(str::to_owned).collect()
    };
    match artifact.starts_with("orders") {
        true => place(ours) == place(theirs),
        false => ours == theirs,
    }
}

#[test]
fn recorded_stops_in_programs_are_those_of_gdb() {
    for (artifact, seed) in in_turn([
        ("sqlite_O0", 11),
        ("orders_O0", 101),
        ("lua_O0", 13),
        ("shapes_O0", 107),
        ("shapes_O2", 109),
        ("orders_O2", 103),
    ]) {
        recorded_stops_are_the_same(artifact, seed, 12);
    }
}

#[test]
fn recorded_entries_in_programs_are_those_of_gdb() {
    for (artifact, seed) in in_turn([("lua_O0", 17), ("lua_O2", 19), ("orders_O2", 23)]) {
        entries_are_the_same(artifact, seed, 20);
    }
}

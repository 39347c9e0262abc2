//! With all registers and part of the stack captured, a recording shows at function entries what gdb sees there in the
//! running program: every register, the stack, the frames, and the variables of the callers.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    ops::Range,
};

use debuginfo::{Certainty, Machine, Register, Unknown};
use e2e::{Scratch, in_turn, share};
use recorder::{Captures, SnapshotTimes, live::Motion};
use replay::{Event, Moment as Past, Seen, StateMachine, Timeline};
use store::control::ParameterPlace;

use crate::{
    bench::{Controlled, Subject, gdb},
    moment::Moment,
    recorded::choose_entries,
};

/// The captured registers, and rip.
pub const REGISTERS: [&str; 17] = [
    "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13",
    "r14", "r15", "rip",
];
/// Number of captured bytes of the stack, and of those compared with gdb.
const CAPTURED: u32 = 4096;
const COMPARED: usize = 512;

fn recorded(subject: &Subject, scratch: &Scratch) -> Timeline {
    let captures = Captures {
        registers: true,
        stack_len: CAPTURED,
        ..Captures::default()
    };
    let snapshots = SnapshotTimes::default();
    let mut controlled =
        Controlled::start_with(subject, scratch, "captured", &[], captures, snapshots);
    while controlled.go(Motion::Continue).is_some() {}
    controlled.end_as_alone(subject, scratch);
    let path = scratch.join("captured.hindsight");
    Timeline::open(&path, scratch.path()).expect("the recording can be read")
}

/// Caller-saved registers: at an entry they hold arguments, or what earlier calls left there.
pub const SCRATCH: [&str; 9] = ["rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11"];
/// Integer arguments, in order.
const ARGUMENTS: [&str; 6] = ["rdi", "rsi", "rdx", "rcx", "r8", "r9"];

/// A machine without the registers that were recorded at the entries of earlier calls: gdb has no such record.
struct OfNow<'a>(&'a dyn Machine);

impl Machine for OfNow<'_> {
    fn behind(&self) -> Option<&dyn Machine> {
        Some(self.0)
    }

    fn memory(&self, address: u64, bytes: &mut [u8]) -> Result<Certainty, Unknown> {
        self.0.memory(address, bytes)
    }

    fn register(&self, register: Register) -> Result<(u64, Certainty), Unknown> {
        self.0.register(register)
    }

    fn vector(&self, register: Register) -> Result<([u8; 16], Certainty), Unknown> {
        self.0.vector(register)
    }

    fn register_at_entry(&self, _: u64, _: u64, _: Register) -> Option<u64> {
        None
    }
}

/// Returns what the recording says about an entry, up to where the backtrace becomes uncertain, without what only the
/// records of earlier calls tell; and the bytes of its stack.
fn moment(timeline: &Timeline, seq: u64) -> (Moment, Vec<u8>) {
    let tid = timeline.thread_at(seq).unwrap();
    let past = Past::at(timeline, seq, tid, 60).unwrap();
    let machine = StateMachine::new(&past.state, &past.space);
    let frames = &past.trace.backtrace.frames;
    let told = past.trace.gaps.first().copied().unwrap_or(frames.len());
    let frames = &frames[..told];
    let said = Moment::with(&past.space, &OfNow(&machine), &REGISTERS, frames);
    let whole = Moment::with(&past.space, &machine, &REGISTERS, frames);
    // A structure that lies nowhere has its length alone.
    let no_value = ["unknown:", "<optimized out>"];
    let is_value = |v: &&(usize, String, String)| {
        !v.2.ends_with(" bytes") && !no_value.iter().any(|text| v.2.contains(text))
    };
    for variable in said.variables.iter().filter(is_value) {
        assert!(
            whole.variables.contains(variable),
            "event {seq}: the records of earlier calls change {variable:?}"
        );
    }
    let runs = past.state.memory(said.registers["rsp"], COMPARED as u64);
    let known = runs.unwrap().into_iter().map(|run| match run.bytes {
        Seen::Known { value, .. } => value,
        other => panic!("event {seq}: {other:?} at {:#x}", run.address),
    });
    (said, known.flatten().collect())
}

/// Returns whether the entered function takes an argument in a register.
pub fn is_argument(timeline: &Timeline, seq: u64, name: &str) -> bool {
    let Event::Enter(call) = timeline.event(seq).unwrap() else {
        panic!("event {seq} was chosen as an entry");
    };
    let function = timeline.function(call.function).expect("it was defined");
    let place = ARGUMENTS.iter().position(|argument| *argument == name);
    place.is_some_and(|at| {
        let mut params = function.params.iter();
        params.any(|param| param.place == ParameterPlace::Int(at as u8))
    })
}

/// Returns the variable that a part belongs to.
pub fn variable_of(part: &str) -> String {
    let end = part.find(['.', '[']).unwrap_or(part.len());
    part[..end].to_owned()
}

/// Drops variables on the stack whose bytes differ from gdb's, and with `beyond` also those outside the compared range:
/// they need not have their value yet. The stack that the program needs is compared separately.
fn leave_idle(ours: &mut Moment, theirs: &Moment, stack: &[u8], beyond: bool) {
    let rsp = theirs.registers["rsp"];
    let is_idle_at = |range: &Range<u64>| {
        let bytes = (range.start - rsp) as usize..(range.end - rsp) as usize;
        match (stack.get(bytes.clone()), theirs.stack.get(bytes)) {
            (Some(ours), Some(theirs)) => ours != theirs,
            _ => beyond,
        }
    };
    let is_idle = |(level, name, _): &(usize, String, String)| {
        let name = variable_of(name);
        // Several variables may have the same name.
        let mut places = theirs.places.iter().filter(|place| place.0 == *level);
        places.any(|(_, other, range)| *other == name && range.start >= rsp && is_idle_at(range))
    };
    ours.variables.retain(|variable| !is_idle(variable));
}

/// Keeps the variables of which both sides report a value, starting at frame `from`. At the first instruction of a
/// function gdb assumes its parameters to be where the prologue will put them. Memory behind pointers was not captured,
/// and nothing beyond the captured part of the stack.
pub fn told_of_both(ours: &mut Moment, theirs: &mut Moment, from: usize) {
    let is_told = |(level, name, text): &&(usize, String, String)| {
        let same = |v: &&(usize, String, String)| v.0 == *level && v.1 == *name;
        let other = theirs.variables.iter().find(same).map_or("", |v| &v.2);
        let has_place = !text.ends_with(" bytes") || other.ends_with(" bytes");
        let is_known = !text.contains("unknown:") && !text.contains("<stale:") && has_place;
        *level >= from && is_known && !ours.undeclared.contains(&(*level, variable_of(name)))
    };
    let told: Vec<(usize, String, String)> =
        ours.variables.iter().filter(is_told).cloned().collect();
    theirs
        .variables
        .retain(|(level, name, _)| told.iter().any(|v| v.0 == *level && v.1 == *name));
    ours.variables = told;
    // gdb does not report unions and types with variants in parts.
    let names: Vec<(usize, String)> = theirs
        .variables
        .iter()
        .map(|(level, name, _)| (*level, name.clone()))
        .collect();
    let is_there = |(level, name, _): &(usize, String, String)| {
        let is_part = name.contains(['.', '[']);
        !is_part || names.contains(&(*level, name.clone()))
    };
    ours.variables.retain(is_there);
    for (_, _, text) in ours.variables.iter_mut().chain(&mut theirs.variables) {
        // Of strings and functions only the address is compared.
        if let Some(digits) = text.strip_prefix("0x") {
            let end = digits.find(|c: char| !c.is_ascii_hexdigit());
            text.truncate(2 + end.unwrap_or(digits.len()));
        }
    }
}

fn differences(
    timeline: &Timeline,
    seq: u64,
    theirs: &Moment,
    subject: &Subject,
    compared: &mut Compared,
) -> Vec<String> {
    let (mut ours, stack) = moment(timeline, seq);
    let mut theirs = theirs.clone();
    let mut found = Vec::new();
    for name in REGISTERS {
        let (own, other) = (ours.registers[name], theirs.registers[name]);
        let counts = !SCRATCH.contains(&name) || is_argument(timeline, seq, name);
        if own != other && counts {
            found.push(format!("event {seq}: {name} is {own:x}, gdb: {other:x}"));
        }
    }
    theirs.frames.truncate(ours.frames.len());
    for frame in theirs.frames.iter_mut().chain(&mut ours.frames) {
        // gdb appends the parentheses of the call to the destructors of local classes.
        *frame = frame.replacen("() ", " ", 1);
    }
    for (own, other) in ours.frames.iter().zip(&mut theirs.frames) {
        // For code without a line gdb reports a neighbouring line; the address is the same.
        let parts = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let (mine, gdbs) = (parts(own), parts(other));
        let is_lineless = own.contains(" :0 ") && mine.last() == gdbs.last();
        if is_lineless && mine.first() == gdbs.first() {
            other.clone_from(own);
        }
    }
    compared.frames += ours.frames.len();
    if subject.pads_vectors() {
        // Further out there are too many copies of moved values.
        ours.variables.retain(|(level, ..)| *level < 3);
    }
    if subject.has_idle_variables() {
        let before = ours.variables.len();
        leave_idle(&mut ours, &theirs, &stack, subject.pads_vectors());
        compared.idle += before - ours.variables.len();
    }
    told_of_both(&mut ours, &mut theirs, 1);
    compared.variables += ours.variables.len();
    // Registers were already compared.
    ours.registers.clear();
    found.extend(ours.differences(&theirs, true));
    for (what, own, other) in lasting(&stack, &theirs) {
        compared.lasting += other.len();
        if own != other {
            found.push(format!("event {seq}: {what} is {own:x?}, gdb: {other:x?}"));
        }
    }
    found
}

/// Returns the parts of the stack to which the program gave a value: name, our bytes, and gdb's.
fn lasting<'a>(
    stack: &'a [u8],
    theirs: &'a Moment,
) -> impl Iterator<Item = (String, &'a [u8], &'a [u8])> {
    let rsp = theirs.registers["rsp"];
    theirs.lasting.iter().filter_map(move |(range, what)| {
        let from = range.start.saturating_sub(rsp) as usize;
        let to = ((range.end - rsp) as usize).min(theirs.stack.len());
        let bytes = from..to;
        let told = (stack.get(bytes.clone())?, &theirs.stack[bytes]);
        Some((format!("{what} (rsp + {from})"), told.0, told.1))
    })
}

/// How much was compared.
#[derive(Debug, Default)]
struct Compared {
    frames: usize,
    variables: usize,
    /// Variables of optimised code without a value yet.
    idle: usize,
    /// Bytes of the stack.
    lasting: usize,
}

fn captured_entries_are_the_same(artifact: &str, seed: u64, whole: usize) {
    let wanted = share(whole);
    let scratch = Scratch::new(artifact);
    let subject = Subject::new(artifact);
    let timeline = recorded(&subject, &scratch);
    let chosen = choose_entries(&timeline, seed, wanted, |function| {
        Subject::does_the_same(function.file.as_deref().unwrap_or_default())
    });
    let mut plan = String::new();
    for (address, hit) in chosen.values() {
        writeln!(plan, "{address:x}\t{hit}\t1").unwrap();
    }
    let theirs = asked(&subject, &scratch, &plan);
    let planned: Vec<u64> = chosen.values().map(|(address, _)| *address).collect();
    let reached: Vec<u64> = theirs
        .iter()
        .map(|moment| moment.registers["rip"])
        .collect();
    assert_eq!(reached, planned, "gdb stops at the same calls");
    let mut compared = Compared::default();
    let entries = chosen.keys().zip(&theirs);
    let found: Vec<String> = entries
        .flat_map(|(seq, theirs)| differences(&timeline, *seq, theirs, &subject, &mut compared))
        .collect();
    eprintln!("{artifact}: {} entries, {compared:?}", chosen.len());
    assert!(found.is_empty(), "{}", found.join("\n"));
    assert!(compared.frames >= 3 * chosen.len(), "{compared:?}");
    assert!(compared.variables >= chosen.len(), "{compared:?}");
    // The return address, saved registers and, if they have their values, variables.
    assert!(compared.lasting >= 24 * chosen.len(), "{compared:?}");
}

fn asked(subject: &Subject, scratch: &Scratch, plan: &str) -> Vec<Moment> {
    let plan_file = scratch.join("plan");
    let kind = match subject.has_idle_variables() {
        true => "idle",
        false => "plain",
    };
    std::fs::write(&plan_file, format!("{kind}\n{plan}")).expect("the folder is writable");
    Moment::all(&gdb(subject, scratch, "captured.py", &plan_file))
}

#[test]
fn captured_entries_in_programs_are_those_of_gdb() {
    for (artifact, seed) in in_turn([
        ("lua_O0", 29),
        ("sqlite_O2", 89),
        ("orders_O0", 37),
        ("shapes_O0", 43),
        ("orders_O2", 139),
        ("shapes_O2", 47),
        ("lua_O2", 83),
    ]) {
        captured_entries_are_the_same(artifact, seed, 30);
    }
}

/// Callee-saved registers, and an argument.
const OF_THREADS: [&str; 8] = ["rdi", "rbx", "rbp", "rsp", "r12", "r13", "r14", "r15"];

/// Returns whether two words are equal, or point to the same place of a thread's stack, whose address differs.
pub fn is_same_word(ours: u64, theirs: u64, delta: u64) -> bool {
    let is_near = theirs >> 32 == 0x7fff || theirs >> 32 == 0x7ffe;
    ours == theirs || is_near && ours.wrapping_sub(theirs) == delta
}

/// Threads reach the same function in any order: the argument distinguishes their calls.
fn captured_entries_of_threads_are_the_same(artifact: &str) {
    let scratch = Scratch::new(artifact);
    let subject = Subject::new(artifact);
    let timeline = recorded(&subject, &scratch);
    let function = timeline
        .functions()
        .find(|function| function.name == "is_odd");
    let function = function.expect("it is traced").id;
    let address = timeline.entry_of(function, timeline.last() / 2).unwrap();
    let theirs = asked(&subject, &scratch, &format!("{address:x}\t1\t200\n"));
    assert_eq!(theirs.len(), 200);
    let mut by_argument: BTreeMap<u64, u64> = BTreeMap::new();
    for (seq, _) in timeline.entries(function, usize::MAX).unwrap() {
        if let Event::Enter(call) = timeline.event(seq).unwrap() {
            by_argument.insert(timeline.call(&call).unwrap().args[0], seq);
        }
    }
    let mut threads = BTreeSet::new();
    let (mut variables, mut words) = (0, 0);
    let mut found = Vec::new();
    for theirs in &theirs {
        let seq = by_argument[&theirs.registers["rdi"]];
        threads.insert(timeline.thread_at(seq).unwrap());
        let (ours, stack) = moment(&timeline, seq);
        let delta = ours.registers["rsp"].wrapping_sub(theirs.registers["rsp"]);
        for (level, name, text) in ours.variables.iter().filter(|v| v.0 == 1) {
            let same = |v: &&(usize, String, String)| v.0 == *level && v.1 == *name;
            let other = theirs.variables.iter().find(same).map(|v| v.2.as_str());
            if ["i", "seed", "odd"].contains(&name.as_str()) && !text.contains("<optimized out>") {
                if Some(text.as_str()) != other {
                    found.push(format!("event {seq}: {name} is {text}, gdb: {other:?}"));
                }
                variables += 1;
            }
        }
        assert_eq!(ours.registers["rip"], theirs.registers["rip"]);
        for name in OF_THREADS {
            let (own, other) = (ours.registers[name], theirs.registers[name]);
            if !is_same_word(own, other, delta) {
                found.push(format!("event {seq}: {name} is {own:x}, gdb: {other:x}"));
            }
        }
        for (what, own, other) in lasting(&stack, theirs) {
            let word = |bytes: &[u8]| bytes.try_into().map(u64::from_le_bytes);
            let is_same = match (word(own), word(other)) {
                (Ok(own), Ok(other)) => is_same_word(own, other, delta),
                _ => own == other,
            };
            words += 1;
            if !is_same {
                found.push(format!("event {seq}: {what} is {own:x?}, gdb: {other:x?}"));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    eprintln!("{artifact}: {variables} variables, {words} words of the stack");
    assert!(threads.len() > 1, "{threads:?}");
    assert!(
        variables >= 2 * theirs.len(),
        "{variables} variables compared"
    );
    assert!(words >= 4 * theirs.len(), "{words} words compared");
}

#[test]
fn captured_entries_of_threads_are_those_of_gdb() {
    for artifact in in_turn(["threads_O0", "threads", "threads_O2"]) {
        captured_entries_of_threads_are_the_same(artifact);
    }
}

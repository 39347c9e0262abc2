//! What a pause records: all registers, and up to 64 KiB of the stack.
//! Method: a program with a distinct value in every register and a deeper stack is stopped. Registers are compared with
//! gdb's and with what the program put there, the stack with what the kernel reads in the stopped process.

use std::{
    collections::BTreeSet,
    fs::File,
    ops::Range,
    os::unix::fs::FileExt,
    time::{Duration, Instant},
};

use debuginfo::Register;
use e2e::Scratch;
use recorder::live::*;
use replay::{Seen, State, Timeline};
use store::{
    columns::{ReadState, read_states},
    control::{MAX_STACK_LEN, REGISTER_NAMES},
};

use crate::{
    bench::{Controlled, Subject, built, gdb},
    moment::Moment,
};

/// The value that the program puts into its registers. The two highest bytes are the register's number.
const VALUE: u64 = 0x1111_2222_3333;
/// DWARF numbers of the registers with such values.
const SET: [u16; 15] = [0, 1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14, 15];
/// The carry and direction flags.
const FLAGS: u64 = 1 | 1 << 10;
/// Bytes of the window below rsp, where leaf functions keep variables.
const RED_ZONE: u64 = 128;

/// A stack at a stop: its window, and its end.
struct Kept {
    bytes: Vec<u8>,
    window: Range<u64>,
    end: u64,
}

/// Reads the stack of a stopped process through the kernel.
fn kept(pid: i32, rsp: u64) -> Kept {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).expect("it runs");
    let line = maps.lines().find(|line| line.ends_with("[stack]"));
    let (_, rest) = line
        .and_then(|line| line.split_once('-'))
        .expect("it has a stack");
    let end = rest.split(' ').next().unwrap_or_default();
    let end = u64::from_str_radix(end, 16).expect("a number");
    let start = rsp - RED_ZONE;
    let window = start..end.min(start + MAX_STACK_LEN as u64);
    let mut bytes = vec![0; (window.end - window.start) as usize];
    let memory = File::open(format!("/proc/{pid}/mem")).expect("it is ours");
    memory
        .read_exact_at(&mut bytes, window.start)
        .expect("the stack is there");
    Kept { bytes, window, end }
}

/// Returns the recorded rows of pauses at breakpoints.
fn states(timeline: &Timeline) -> Vec<ReadState> {
    let recording = timeline.recording().dir();
    // The program's end is reported before the recording is closed and sealed.
    let since = Instant::now();
    while recording.join("incomplete").exists() {
        assert!(
            since.elapsed() < Duration::from_secs(120),
            "it is not closed"
        );
        std::thread::sleep(Duration::from_millis(1));
    }
    let columns = recording.join("columns");
    let mut files: Vec<_> = std::fs::read_dir(columns)
        .expect("the recording is closed")
        .map(|entry| entry.expect("it can be listed").path())
        .filter(|path| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.starts_with("states-"))
        })
        .collect();
    files.sort_unstable();
    let rows = files.iter().flat_map(|file| read_states(file).unwrap());
    rows.filter(|row| row.reason == "breakpoint").collect()
}

#[test]
fn a_pause_keeps_all_registers_and_the_stack() {
    let scratch = Scratch::new("windows");
    let subject = Subject {
        path: built(&scratch, "deep.c", &["-O1"]),
        args: &[],
        sources: &["/programs/"],
    };
    for (name, untraced) in [("untraced", &["*"][..]), ("traced", &[])] {
        let mut controlled = Controlled::start_without(&subject, &scratch, name, untraced);
        let entry = controlled.break_at(Location::Function("everything".to_owned()), 0, true);
        let space = controlled.live.space();
        let stop = controlled.go(Motion::Continue).expect("it is called");
        assert_eq!(
            space.function_at(stop.pc).map(|place| place.entry),
            Some(entry.places[0].address)
        );
        let machine = controlled.live.machine(stop.tid).expect("it is stopped");
        let lines = debuginfo::disassemble_function(&space, &machine, stop.pc);
        let lines = lines.expect("its code can be read");
        // Here all registers have their values.
        let here = lines.iter().find(|line| line.text.trim() == "nop");
        let here = here.expect("the function has one").address;
        controlled.break_at(Location::Address(here), 0, false);
        let mut seen = Vec::new();
        while let Some(stop) = controlled.go(Motion::Continue) {
            let machine = controlled.live.machine(stop.tid).expect("it is stopped");
            assert_eq!(stop.pc, here);
            seen.push(kept(stop.tid, machine.registers.general.rsp));
        }
        controlled.end_as_alone(&subject, &scratch);
        let [shallow, deep] = &seen[..] else {
            panic!("{} stops", seen.len());
        };
        assert_eq!(shallow.window.end, shallow.end);
        assert!(deep.end > deep.window.end + 64 * 1024, "it is deep");
        assert_eq!(deep.bytes.len(), MAX_STACK_LEN);

        let plan_file = scratch.join("plan");
        let plan = format!("*{here:#x}\t1\t\n");
        std::fs::write(&plan_file, plan).expect("the folder is writable");
        let theirs = Moment::all(&gdb(&subject, &scratch, "every.py", &plan_file));
        assert_eq!(theirs.len(), 2);

        let path = scratch.join(&format!("{name}.hindsight"));
        let timeline = Timeline::open(&path, scratch.path()).expect("the recording can be read");
        let rows = states(&timeline);
        for (number, (kept, theirs)) in seen.iter().zip(&theirs).enumerate() {
            // The first row is that of the function's beginning.
            let row = &rows[number + 1];
            same_registers(&timeline, row, theirs, here);
            assert_eq!(row.stack_addr, Some(kept.window.start), "{name}");
            same_stack(
                row.stack.as_deref().unwrap_or_default(),
                kept,
                untraced.is_empty(),
            );
            same_state(&timeline, row, kept);
        }
    }
}

/// Compares the registers of a pause with gdb's, and with what the program put there.
fn same_registers(timeline: &Timeline, row: &ReadState, theirs: &Moment, here: u64) {
    assert_eq!(row.pc, here);
    let tid = row.tid.expect("a thread");
    let state = State::new(timeline, row.seq, tid).unwrap();
    let registers = row.registers.as_ref().expect("they are kept");
    let by_name = |name: &str| {
        let at = REGISTER_NAMES.iter().position(|other| *other == name);
        registers.general[at.expect("a name of a register")]
    };
    for (name, value) in &theirs.registers {
        assert_eq!(by_name(name), *value, "{name}");
        let register = Register::by_name(name).expect("a register");
        assert_eq!(state.register(register).value(), Some(value), "{name}");
    }
    for number in SET {
        let name = Register(number).name().expect("a register");
        assert_eq!(
            by_name(&name),
            ((u64::from(number) * 0x0101) << 48) | VALUE,
            "{name}"
        );
    }
    assert_eq!(by_name("eflags") & FLAGS, FLAGS);
    for (number, bytes) in registers.vectors.iter().enumerate() {
        let value = u128::from_le_bytes(*bytes);
        assert_eq!(theirs.vectors.get(&number), Some(&value), "xmm{number}");
        let wanted: [u8; 16] = std::array::from_fn(|byte| (number * 16 + byte) as u8);
        assert_eq!(*bytes, wanted, "xmm{number}");
        let register = Register(Register::XMM0.0 + number as u16);
        assert_eq!(state.vector(register).value(), Some(&wanted.to_vec()));
    }
}

/// Compares a recorded stack with what the kernel showed. If functions are traced, the kernel shows the address of our
/// return trampoline instead of their return addresses.
fn same_stack(stack: &[u8], kept: &Kept, traced: bool) {
    assert_eq!(stack.len(), kept.bytes.len());
    let words = stack.chunks(8).zip(kept.bytes.chunks(8));
    let differing: Vec<_> = words.filter(|(ours, theirs)| ours != theirs).collect();
    if !traced {
        assert!(differing.is_empty(), "{differing:x?}");
        return;
    }
    let leave: BTreeSet<&[u8]> = differing.iter().map(|(_, theirs)| *theirs).collect();
    assert_eq!(leave.len(), 1, "{differing:x?}");
    // In the small stack those of `dig`, twice, and of `main`.
    assert!(differing.len() >= 3, "{differing:x?}");
}

/// Queries the state for the window: it must be known, with the recorded bytes.
fn same_state(timeline: &Timeline, row: &ReadState, kept: &Kept) {
    let tid = row.tid.expect("a thread");
    let state = State::new(timeline, row.seq, tid).unwrap();
    let len = kept.window.end - kept.window.start;
    let mut all = Vec::new();
    for run in state.memory(kept.window.start, len).unwrap() {
        let Seen::Known { value, .. } = run.bytes else {
            panic!("event {}: {:#x} is not known", row.seq, run.address);
        };
        all.extend(value);
    }
    assert!(row.stack.as_ref() == Some(&all), "event {}", row.seq);
}

//! Goal: both ends of a system call are paired, and the call that made it is known. Method: synthetic logs, and the
//! sealed events.

mod seal_support;

use seal_support::{TOP, folder, parts_of, record, seal};
use store::columns::ReadEvent;
use store::synth::Synth;
use store::wire::{Section, sections};

const SIGNAL_STACK: u64 = 0x6000_0000_0000;
const READ: u64 = 0;
const WRITE: u64 = 1;
const EXIT_GROUP: u64 = 231;
const NONE: [u64; 6] = [0; 6];

fn events(build: impl FnOnce(&mut Synth), part_calls: u64) -> Vec<ReadEvent> {
    let mut synth = Synth::new();
    for name in ["f", "g"] {
        synth.function(name);
    }
    build(&mut synth);
    let dir = folder();
    let recording = record(dir.path(), &synth.frames());
    seal(&recording, parts_of(part_calls), 3).events
}

/// Kind, number or result, and the call around or the beginning.
fn told(events: &[ReadEvent]) -> Vec<(&str, Option<i64>, Option<u64>)> {
    let mut told = Vec::new();
    for event in events {
        if event.kind.starts_with("syscall") {
            told.push((event.kind.as_str(), event.value, event.size));
        }
    }
    told
}

#[test]
fn a_call_of_a_handler_lies_inside_the_one_that_it_interrupts() {
    let events = events(
        |s| {
            s.thread(1).enter(0, TOP - 8);
            s.syscall(READ, NONE, TOP - 64, &[]);
            s.enter(1, SIGNAL_STACK - 8);
            s.syscall(WRITE, NONE, SIGNAL_STACK - 64, &[]);
            s.syscall_end(5, SIGNAL_STACK - 64, &[]);
            s.leave(SIGNAL_STACK - 8);
            s.syscall_end(-4, TOP - 64, &[]);
            s.leave(TOP - 8);
            s.syscall(EXIT_GROUP, NONE, TOP - 8, &[]);
        },
        1000,
    );
    assert_eq!(
        told(&events),
        [
            ("syscall", Some(0), Some(1)),
            ("syscall", Some(1), Some(3)),
            ("syscall_end", Some(5), Some(4)),
            ("syscall_end", Some(-4), Some(2)),
            ("syscall", Some(231), None),
        ]
    );
}

#[test]
fn a_call_that_was_jumped_out_of_has_no_end() {
    let events = events(
        |s| {
            s.thread(1).syscall(READ, NONE, TOP - 64, &[]);
            s.syscall(WRITE, NONE, TOP - 64, &[]);
            s.syscall_end(1, TOP - 64, &[]);
            // Of a call that began before the recording did.
            s.syscall_end(9, TOP - 128, &[]);
        },
        1000,
    );
    assert_eq!(
        told(&events),
        [
            ("syscall", Some(0), None),
            ("syscall", Some(1), None),
            ("syscall_end", Some(1), Some(2)),
            ("syscall_end", Some(9), None),
        ]
    );
}

#[test]
fn open_calls_outlive_a_part() {
    let events = events(
        |s| {
            s.thread(1).syscall(READ, NONE, TOP - 640, &[]);
            for _ in 0..5 {
                s.enter(0, TOP - 64).leave(TOP - 64).watermark();
            }
            s.syscall_end(3, TOP - 640, &[]);
        },
        1,
    );
    let ends: Vec<_> = told(&events).into_iter().map(|(_, _, size)| size).collect();
    assert_eq!(ends, [None, Some(1)]);
}

#[test]
fn arguments_and_memory_are_kept() {
    let args = [3, 0x1000, 4, 5, 6, 7];
    let memory = [Section {
        addr: 0x1000,
        bytes: b"/etc",
    }];
    let events = events(
        |s| {
            s.thread(1).syscall(WRITE, args, TOP - 64, &memory);
            s.syscall_end(4, TOP - 64, &memory);
        },
        1000,
    );
    let bytes: Vec<&[u8]> = events
        .iter()
        .filter_map(|event| event.bytes.as_deref())
        .collect();
    let [begun, ended] = bytes[..] else {
        panic!("both ends have bytes");
    };
    let words: Vec<u64> = begun[..48]
        .chunks_exact(8)
        .map(|word| u64::from_le_bytes(word.try_into().unwrap()))
        .collect();
    assert_eq!(words, args);
    assert_eq!(sections(&begun[48..]).collect::<Vec<_>>(), memory);
    assert_eq!(sections(ended).collect::<Vec<_>>(), memory);
}

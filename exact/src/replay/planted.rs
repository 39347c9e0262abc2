//! Goal: a comparison finds what is wrong with a recording. Method: a program to which all matters that a recording has to tell is
//! recorded; the recording is right. Then one thing is made wrong in it, for each of many kinds of things, and that must be found.
//! `SEED` repeats a choice of entries.
//!
//! Kinds that no comparison can find, since they change nothing that runs: names of files and of the program, protections of memory,
//! bytes from the kernel that nobody looks at and that are written over before the end, what a fault was told to be, and turns of a thread
//! in which it executes nothing.

use std::path::Path;

use rand::{Rng, SeedableRng, rngs::StdRng};
use tempfile::TempDir;

use super::tested::printed;
use super::verify;
use crate::log::{Entry, Reader, Registers, Writer};

/// Where registers lie in `user_regs_struct`.
const RAX: usize = 10;
const RSP: usize = 19;
/// Where a signal's frame has the instruction pointer.
const FRAME_RIP: usize = 176;

fn entries(folder: &Path) -> Vec<Entry> {
    let mut reader = Reader::open(folder).unwrap();
    std::iter::from_fn(|| reader.next().unwrap()).collect()
}

/// The log, and what is chosen in it.
struct Plant {
    entries: Vec<Entry>,
    random: StdRng,
    /// Where the error lies, in instructions: at the start if nothing was chosen.
    planted: u64,
}

impl Plant {
    /// Any entry of a kind, once `main` has begun.
    fn any(&mut self, kind: impl Fn(&Entry) -> bool) -> usize {
        let main = self
            .entries
            .iter()
            .position(|entry| is_call(entry, libc::SYS_pipe) || is_call(entry, libc::SYS_pipe2))
            .unwrap();
        let found: Vec<usize> = (main..self.entries.len())
            .filter(|index| kind(&self.entries[*index]))
            .collect();
        assert!(!found.is_empty());
        let index = found[self.random.random_range(0..found.len())];
        self.planted = self.entries[index].at();
        index
    }

    fn change(&mut self, kind: impl Fn(&Entry) -> bool, change: impl Fn(&mut Entry)) {
        let index = self.any(kind);
        let before = format!("{:?}", self.entries[index]);
        change(&mut self.entries[index]);
        assert_ne!(before, format!("{:?}", self.entries[index]));
        self.planted = self.planted.min(self.entries[index].at());
    }

    fn drop(&mut self, kind: impl Fn(&Entry) -> bool) {
        let index = self.any(kind);
        self.entries.remove(index);
    }
}

fn is_call(entry: &Entry, wanted: i64) -> bool {
    matches!(entry, Entry::SystemCall { number, .. } if *number == wanted as u64)
}

fn is_read(entry: &Entry) -> bool {
    is_call(entry, libc::SYS_read)
}

fn is_signal(entry: &Entry) -> bool {
    matches!(entry, Entry::Signal { .. })
}

fn is_switch(entry: &Entry) -> bool {
    matches!(entry, Entry::Switch { .. })
}

fn is_chance(entry: &Entry) -> bool {
    matches!(entry, Entry::Chance { .. })
}

fn is_return(entry: &Entry) -> bool {
    matches!(entry, Entry::Return { .. })
}

fn at(entry: &mut Entry) -> &mut u64 {
    match entry {
        Entry::SystemCall { at, .. }
        | Entry::Chance { at, .. }
        | Entry::Repeated { at, .. }
        | Entry::Signal { at, .. }
        | Entry::Return { at, .. }
        | Entry::Thread { at, .. }
        | Entry::Code { at, .. }
        | Entry::Switch { at, .. }
        | Entry::End { at, .. }
        | Entry::Gap { at }
        | Entry::Resumed { at, .. }
        | Entry::Check { at, .. }
        | Entry::Exit { at, .. }
        | Entry::Lost { at, .. }
        | Entry::Executed { at, .. } => at,
        Entry::Start { .. } | Entry::Before { .. } => panic!("a start is always at the start"),
    }
}

fn registers(entry: &mut Entry) -> &mut [u64; 27] {
    match entry {
        Entry::Chance {
            registers: Registers(registers),
            ..
        } => registers,
        Entry::Start { context, .. }
        | Entry::Signal { context, .. }
        | Entry::Return { context, .. }
        | Entry::Thread { context, .. } => &mut context.registers.0,
        _ => panic!("it has no registers"),
    }
}

fn bytes(entry: &mut Entry) -> &mut Vec<u8> {
    match entry {
        Entry::SystemCall { writes, .. }
        | Entry::Signal { writes, .. }
        | Entry::End { writes, .. } => &mut writes[0].bytes,
        Entry::Start { memory, .. } => &mut memory.last_mut().unwrap().bytes,
        _ => panic!("it writes nothing"),
    }
}

type Planting = fn(&mut Plant);

const PLANTED: [(&str, Planting); 30] = [
    ("a result", |p| {
        p.change(is_read, |entry| {
            if let Entry::SystemCall { result, .. } = entry {
                *result -= 1;
            }
        })
    }),
    ("a byte from the kernel", |p| {
        p.change(is_read, |entry| bytes(entry)[3] ^= 4)
    }),
    ("a call one instruction later", |p| {
        p.change(is_read, |entry| *at(entry) += 1)
    }),
    ("a call one instruction earlier", |p| {
        p.change(is_read, |entry| *at(entry) -= 1)
    }),
    ("the thread of a call", |p| {
        p.change(is_read, |entry| {
            if let Entry::SystemCall { tid, .. } = entry {
                *tid += 1000;
            }
        })
    }),
    ("the number of a call", |p| {
        p.change(is_read, |entry| {
            if let Entry::SystemCall { number, .. } = entry {
                *number = libc::SYS_write as u64;
            }
        })
    }),
    ("a call is missing", |p| p.drop(is_read)),
    ("a call comes twice", |p| {
        let index = p.any(is_read);
        let entry = p.entries[index].clone();
        p.entries.insert(index, entry);
    }),
    ("a signal is missing", |p| p.drop(is_signal)),
    ("a signal one instruction later", |p| {
        p.change(is_signal, |entry| *at(entry) += 1)
    }),
    ("a signal one instruction earlier", |p| {
        p.change(is_signal, |entry| *at(entry) -= 1)
    }),
    ("the number of a signal", |p| {
        p.change(is_signal, |entry| {
            if let Entry::Signal { number, .. } = entry {
                *number += 1;
            }
        })
    }),
    ("a handler's stack pointer", |p| {
        p.change(is_signal, |entry| registers(entry)[RSP] += 8)
    }),
    ("the frame of a signal", |p| {
        p.change(is_signal, |entry| bytes(entry)[FRAME_RIP] ^= 1)
    }),
    ("what a handler returns to", |p| {
        p.change(is_return, |entry| registers(entry)[RAX] ^= 1)
    }),
    ("the end of a handler is missing", |p| p.drop(is_return)),
    ("the processor's clock", |p| {
        p.change(is_chance, |entry| registers(entry)[RAX] ^= 1)
    }),
    ("a register beside the clock", |p| {
        p.change(is_chance, |entry| registers(entry)[RSP] ^= 64)
    }),
    ("the clock is missing", |p| p.drop(is_chance)),
    ("a turn of another thread", |p| {
        let first = registers_of_first(p);
        p.change(is_switch, move |entry| {
            if let Entry::Switch { tid, .. } = entry {
                *tid = if *tid == first { first + 1 } else { first };
            }
        })
    }),
    ("a turn one instruction later", |p| {
        p.change(is_switch, |entry| *at(entry) += 1)
    }),
    ("a turn is missing", |p| {
        // One in which something is executed.
        let index = loop {
            let index = p.any(is_switch);
            let here = p.entries[index].at();
            if p.entries[index + 1].at() > here {
                break index;
            }
        };
        p.entries.remove(index);
    }),
    ("a thread is missing", |p| {
        p.drop(|entry| matches!(entry, Entry::Thread { .. }))
    }),
    ("what tells that a thread has ended", |p| {
        p.change(
            |entry| matches!(entry, Entry::End { .. }),
            |entry| bytes(entry)[0] ^= 1,
        )
    }),
    ("code that changes", |p| {
        p.drop(|entry| matches!(entry, Entry::Code { .. }))
    }),
    ("memory that is mapped", |p| {
        p.change(
            |entry| is_call(entry, libc::SYS_mmap),
            |entry| {
                if let Entry::SystemCall { space, .. } = entry {
                    *space = None;
                }
            },
        )
    }),
    ("the stack pointer at the start", |p| {
        registers(&mut p.entries[0])[RSP] += 16
    }),
    ("memory at the start", |p| {
        let bytes = bytes(&mut p.entries[0]);
        let last = bytes.len() - 12;
        bytes[last] ^= 1;
    }),
    ("the exit code", |p| {
        p.change(
            |entry| matches!(entry, Entry::Exit { .. }),
            |entry| {
                if let Entry::Exit { code, .. } = entry {
                    *code += 1;
                }
            },
        )
    }),
    ("the end", |p| {
        p.change(
            |entry| matches!(entry, Entry::Exit { .. }),
            |entry| *at(entry) += 1,
        )
    }),
];

fn registers_of_first(plant: &Plant) -> i32 {
    match &plant.entries[0] {
        Entry::Start { tid, .. } => *tid,
        _ => panic!("a start comes first"),
    }
}

#[test]
fn every_planted_error_is_found() {
    let seed = std::env::var("SEED").map_or(20, |seed| seed.parse().unwrap());
    println!("SEED={seed}");
    let folder = TempDir::new().unwrap();
    let source = include_str!("../../tests/programs/checked.c");
    printed(source, 7, folder.path());
    let verdict = verify(folder.path(), &mut |_, _| true).unwrap();
    assert_eq!(verdict.contradiction, None);
    assert!(
        verdict.whole && verdict.registers > 100 && verdict.memory > 0,
        "{verdict:?}"
    );
    let mut missed = Vec::new();
    for (name, plant) in PLANTED {
        let mut planted = Plant {
            entries: entries(folder.path()),
            random: StdRng::seed_from_u64(seed),
            planted: 0,
        };
        plant(&mut planted);
        let other = TempDir::new().unwrap();
        let mut writer = Writer::create(other.path(), None).unwrap();
        for entry in &planted.entries {
            writer.add(entry).unwrap();
        }
        writer.finish().unwrap();
        match verify(other.path(), &mut |_, _| true) {
            Ok(verdict) => match verdict.contradiction {
                // Nothing can be found before it was planted. Registers may agree beyond that place: memory is compared at the end.
                Some(found)
                    if found.position < planted.planted || found.agreed > found.position =>
                {
                    missed.push(format!("{name}: planted at {}: {found:?}", planted.planted));
                }
                Some(found) => println!("{name}: {found:?}"),
                None => missed.push(name.to_owned()),
            },
            Err(error) => missed.push(format!("{name}: {error}")),
        }
    }
    assert!(missed.is_empty(), "{missed:?}");
}

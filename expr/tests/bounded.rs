//! Goal: showing a value takes a bounded amount of work for any contents of memory, and split debug files are opened
//! once. Method: containers that were never constructed are shown, from a core file whose reads are counted.

#[path = "../../debuginfo/tests/common/mod.rs"]
mod common;
#[path = "../../debuginfo/tests/core_file/mod.rs"]
mod core_file;

use std::cell::Cell;
use std::path::PathBuf;
use std::process::Command;

use common::{Bench, program, run};
use core_file::CoreFile;
use debuginfo::{AddressSpace, Certainty, Frame, Machine, Register, Unknown, backtrace};
use expr::Context;
use values::{RenderOptions, render};

/// Memory reads allowed for one value: the shown elements and their own parts.
const MOST_READS: usize = 4000;
/// Bytes allowed for its text.
const MOST_TEXT: usize = 1 << 16;

/// A machine that counts reads.
struct Counting<'m> {
    machine: &'m dyn Machine,
    reads: Cell<usize>,
}

impl Machine for Counting<'_> {
    fn memory(&self, address: u64, bytes: &mut [u8]) -> Result<Certainty, Unknown> {
        self.reads.set(self.reads.get() + 1);
        self.machine.memory(address, bytes)
    }

    fn register(&self, register: Register) -> Result<(u64, Certainty), Unknown> {
        self.machine.register(register)
    }

    fn vector(&self, register: Register) -> Result<([u8; 16], Certainty), Unknown> {
        self.machine.vector(register)
    }
}

fn stopped(bench: &Bench, path: &std::path::Path) -> (PathBuf, u32) {
    let mut gdb = Command::new("gdb");
    gdb.args(["-nx", "-batch", "-x"])
        .arg(program("languages.py"))
        .arg(path);
    gdb.env("CORES", bench.dir()).env("NAME", "stopped");
    gdb.env("BREAK", "stop").env("FRAMES", "0").env("ASK", "");
    let output = run(&mut gdb);
    let stop = output.lines().find_map(|line| line.strip_prefix("STOP\t"));
    let (core, tid) = stop.and_then(|s| s.split_once('\t')).expect("a stop");
    (PathBuf::from(core), tid.parse().expect("a thread"))
}

fn shown(text: &str, space: &AddressSpace, machine: &dyn Machine, frames: &[Frame]) -> String {
    let context = Context::new(space, machine, frames, 1);
    let parsed = expr::parse(text).expect("an expression");
    let value = expr::evaluate(&parsed, &context).expect("a value");
    render(&value, &RenderOptions::default(), machine, space)
}

#[test]
fn containers_that_were_not_made_take_little_work() {
    for options in [&["-g", "-O0"][..], &["-g", "-O0", "-gsplit-dwarf"]] {
        let bench = Bench::new();
        let path = bench.compile("g++", &program("unmade.cpp"), "unmade", options);
        let (core, tid) = stopped(&bench, &path);
        let core = CoreFile::open(&core);
        let thread = core.thread(tid);
        let frames = backtrace(&core.space, &thread, 8).frames;
        for name in ["ss", "nested"] {
            let machine = Counting {
                machine: &thread,
                reads: Cell::new(0),
            };
            let text = shown(name, &core.space, &machine, &frames);
            let (reads, bytes) = (machine.reads.get(), text.len());
            assert!(reads <= MOST_READS, "{name}: {reads} reads");
            assert!(bytes <= MOST_TEXT, "{name}: {bytes} bytes");
            assert!(text.contains("corrupt"), "{name}: {text:.300}");
        }
        let good = shown("good", &core.space, &thread, &frames);
        assert!(good.contains(r#"{"one", "two"}"#), "{good}");
    }
}

#[test]
fn split_files_are_opened_once() {
    let bench = Bench::new();
    let options = ["-g", "-O0", "-gsplit-dwarf"];
    let path = bench.compile("g++", &program("unmade.cpp"), "unmade", &options);
    let (core, tid) = stopped(&bench, &path);
    let core = CoreFile::open(&core);
    let thread = core.thread(tid);
    let frames = backtrace(&core.space, &thread, 8).frames;
    let good = shown("good", &core.space, &thread, &frames);
    assert!(good.contains(r#"{"one", "two"}"#), "{good}");
    let mut gone = 0;
    for file in std::fs::read_dir(bench.dir()).expect("a folder") {
        let file = file.expect("a file").path();
        if file.extension().is_some_and(|e| e == "dwo") {
            std::fs::remove_file(file).expect("it can be removed");
            gone += 1;
        }
    }
    assert_eq!(gone, 1);
    // Its types have not been read before.
    let map = shown("numbers", &core.space, &thread, &frames);
    assert!(map.contains(r#"[1] = "first", [2] = "second""#), "{map}");
}

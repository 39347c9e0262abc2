//! Goal: backtraces equal those of gdb, frame by frame: address, function, file, line and saved registers. Method: gdb
//! runs optimised and unoptimised programs in three languages, stops at functions called in many ways, prints its
//! frames and writes a core file. The core file serves as the machine. Frames of tail calls, which have no physical
//! frame, are omitted, because gdb also finds them across modules. Those of one module are compared at stops of live
//! programs.
//! Of several compilers or options each run takes a part; `WHOLE=1` all.

mod common;
mod core_file;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::share::in_turn;
use common::{Bench, hex, program, run};
use core_file::CoreFile;
use debuginfo::{Frame, FrameMachine, Machine, Register, Unknown, backtrace};

/// A frame according to gdb.
#[derive(Debug)]
struct Theirs {
    pc: u64,
    name: String,
    file: String,
    line: u32,
    kind: String,
    /// It has debug information.
    described: bool,
    registers: Vec<(Register, u64)>,
}

/// One stop: the core file, the thread, the frames.
struct Stop {
    core: PathBuf,
    tid: u32,
    frames: Vec<Theirs>,
}

fn stops(bench: &Bench, program_path: &Path) -> Vec<Stop> {
    let mut gdb = Command::new("gdb");
    gdb.args(["-nx", "-batch", "-x"]).arg(program("frames.py"));
    gdb.arg(program_path)
        .env("CORES", bench.dir())
        .env("LC_ALL", "C");
    let output = run(&mut gdb);
    let mut stops: Vec<Stop> = Vec::new();
    for line in output.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        match fields[..] {
            ["STOP", core, tid] => stops.push(Stop {
                core: PathBuf::from(core),
                tid: tid.parse().expect("a thread"),
                frames: Vec::new(),
            }),
            ["FRAME", pc, name, file, line, kind, described, registers] => {
                let register = |text: &str| {
                    let (name, value) = text.split_once('=').expect("name=value");
                    (Register::by_name(name).expect("a register"), hex(value))
                };
                let stop = stops.last_mut().expect("a stop comes first");
                stop.frames.push(Theirs {
                    pc: hex(pc),
                    name: name.to_owned(),
                    file: file.to_owned(),
                    line: line.parse().expect("a line"),
                    kind: kind.to_owned(),
                    described: described == "True",
                    registers: registers.split_whitespace().map(register).collect(),
                });
            }
            ["END", why] => panic!("gdb could not go on: {why}"),
            _ => {}
        }
    }
    assert!(!stops.is_empty(), "gdb said:\n{output}");
    stops
}

/// Returns the last component of a name, without generic arguments. For one without a name, like a closure, this is the
/// component before it. The two sides write scopes of unnamed entities differently. Aliases in glibc differ by a
/// prefix.
fn plain(name: &str) -> String {
    let mut out = String::new();
    let mut depth = 0;
    for c in name.chars() {
        match c {
            '<' | '{' | '(' => depth += 1,
            '>' | '}' | ')' => depth -= 1,
            c if depth == 0 => out.push(c),
            _ => {}
        }
    }
    let mut components = out.rsplit("::").filter(|c| !c.is_empty());
    let last = components.next().unwrap_or_default();
    let last = last.strip_suffix(" const").unwrap_or(last);
    last.strip_prefix("__GI_").unwrap_or(last).to_owned()
}

fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

fn agree(ours: &Frame, theirs: &Theirs, what: &str) {
    let (name, source) = (&ours.function, &ours.source);
    let context = format!(
        "{what}: ours {:x} {name:?} {source:?}, theirs {theirs:x?}",
        ours.pc
    );
    assert_eq!(ours.pc, theirs.pc, "pc: {context}");
    assert_eq!(ours.inlined, theirs.kind == "inline", "inlined: {context}");
    assert_eq!(ours.is_signal, theirs.kind == "signal", "signal: {context}");
    let name = ours.function.clone().unwrap_or_default();
    if theirs.described || !theirs.name.is_empty() {
        assert_eq!(plain(&name), plain(&theirs.name), "name: {context}");
    }
    if theirs.described {
        let line = ours.source.as_ref().map_or(0, |s| s.line);
        assert_eq!(line, theirs.line, "line: {context}");
        let file = ours.source.as_ref().map(|s| s.file.to_string());
        assert_eq!(
            base(&file.unwrap_or_default()),
            base(&theirs.file),
            "file: {context}"
        );
    }
    for (register, value) in &theirs.registers {
        let found = ours.registers.get(*register).map(|(value, _)| value);
        assert_eq!(found.as_ref(), Ok(value), "{register:?}: {context}");
    }
}

/// Compares all stops of a program. Returns the number of frames.
fn agrees(bench: &Bench, program_path: &Path) -> usize {
    let mut count = 0;
    for stop in stops(bench, program_path) {
        let core = CoreFile::open(&stop.core);
        let machine = core.thread(stop.tid);
        let mut ours = backtrace(&core.space, &machine, 1000);
        ours.frames.retain(|frame| !frame.is_tail_call);
        let theirs: Vec<&Theirs> = stop.frames.iter().filter(|f| f.kind != "tail").collect();
        let what = format!("{} of {}", stop.core.display(), program_path.display());
        for (ours, theirs) in ours.frames.iter().zip(&theirs) {
            agree(ours, theirs, &what);
        }
        assert_eq!(
            ours.frames.len(),
            theirs.len(),
            "{what}: {:#?}",
            ours.frames
        );
        assert_eq!(ours.end, None, "{what}");
        count += theirs.len();
    }
    count
}

fn built(bench: &Bench, compiler: &str, source: &str, options: &[&str]) -> PathBuf {
    bench.compile(compiler, &program(source), "frames", options)
}

#[test]
fn frames_of_unoptimised_c_are_those_of_gdb() {
    let bench = Bench::new();
    let path = built(&bench, "gcc", "frames.c", &["-g", "-O0", "-pthread"]);
    assert!(agrees(&bench, &path) > 50);
}

#[test]
fn frames_of_optimised_c_are_those_of_gdb() {
    let bench = Bench::new();
    let path = built(&bench, "gcc", "frames.c", &["-g", "-O2", "-pthread"]);
    assert!(agrees(&bench, &path) > 50);
}

#[test]
fn frames_are_found_by_debug_frame_where_there_is_no_other_table() {
    let bench = Bench::new();
    let options = [
        "-g",
        "-gdwarf-4",
        "-O2",
        "-pthread",
        "-fno-asynchronous-unwind-tables",
        "-fno-unwind-tables",
    ];
    let path = built(&bench, "gcc", "frames.c", &options);
    assert!(agrees(&bench, &path) > 50);
}

/// A function that jumped to the one which calls a function that never returns: the return address is behind the last instruction.
#[test]
fn tail_calls_before_a_call_that_never_returns_are_those_of_gdb() {
    const SOURCE: &str = "#include <stdlib.h>
volatile int sink;
__attribute__((noinline, noreturn)) void stop_here(void) { sink++; exit(0); }
__attribute__((noinline)) void last(int x) { sink++; if (x) stop_here(); sink = x; }
__attribute__((noinline)) void middle(int x) { sink++; last(x + sink); }
__attribute__((noinline)) int first(int x) { sink++; middle(x); return sink + 1; }
int main(int c, char **v) { return first(c) + sink; }
";
    let bench = Bench::new();
    let source = bench.write("tails.c", SOURCE);
    let path = bench.compile("gcc", &source, "tails", &["-g", "-O2"]);
    let all = stops(&bench, &path);
    assert_eq!(all.len(), 1);
    let theirs = all[0].frames.iter().take(5);
    let theirs = theirs.map(|frame| (plain(&frame.name), frame.kind == "tail", frame.line));
    let core = CoreFile::open(&all[0].core);
    let ours = backtrace(&core.space, &core.thread(all[0].tid), 1000).frames;
    let ours = ours.iter().take(5).map(|frame| {
        let name = plain(frame.function.as_deref().unwrap_or_default());
        let line = frame.source.as_ref().map_or(0, |source| source.line);
        (name, frame.is_tail_call, line)
    });
    let ours: Vec<_> = ours.collect();
    assert_eq!(ours, theirs.collect::<Vec<_>>());
    assert_eq!(ours[2], ("middle".to_owned(), true, 5));
}

#[test]
fn frames_of_split_debug_files_are_those_of_gdb() {
    let bench = Bench::new();
    let path = built(
        &bench,
        "gcc",
        "frames.c",
        &["-g", "-gsplit-dwarf", "-O2", "-pthread"],
    );
    assert!(agrees(&bench, &path) > 50);
}

#[test]
fn frames_of_cxx_are_those_of_gdb() {
    for level in in_turn(["-O0", "-O2"]) {
        let bench = Bench::new();
        let path = built(&bench, "g++", "frames.cpp", &["-g", level]);
        assert!(agrees(&bench, &path) > 30, "{level}");
    }
}

#[test]
fn frames_of_rust_are_those_of_gdb() {
    for level in ["opt-level=0", "opt-level=2"] {
        let bench = Bench::new();
        let path = built(&bench, "rustc", "frames.rs", &["-g", "-C", level]);
        assert!(agrees(&bench, &path) > 30, "{level}");
    }
}

/// A machine whose hook replaced one return address.
struct Hooked<'m> {
    machine: &'m dyn Machine,
    slot: u64,
    original: Result<u64, Unknown>,
}

impl Machine for Hooked<'_> {
    fn memory(&self, address: u64, bytes: &mut [u8]) -> Result<debuginfo::Certainty, Unknown> {
        let certainty = self.machine.memory(address, bytes)?;
        if address == self.slot && bytes.len() == 8 {
            bytes.copy_from_slice(&0x7777_0000_0000u64.to_le_bytes());
        }
        Ok(certainty)
    }

    fn register(&self, register: Register) -> Result<(u64, debuginfo::Certainty), Unknown> {
        self.machine.register(register)
    }

    fn vector(&self, register: Register) -> Result<([u8; 16], debuginfo::Certainty), Unknown> {
        self.machine.vector(register)
    }

    fn return_address(&self, slot: u64, found: u64) -> Result<u64, Unknown> {
        match slot == self.slot {
            true => self.original.clone(),
            false => Ok(found),
        }
    }
}

#[test]
fn replaced_return_addresses_are_asked_for() {
    let bench = Bench::new();
    let path = built(&bench, "gcc", "frames.c", &["-g", "-O0", "-pthread"]);
    let stop = &stops(&bench, &path)[0];
    let core = CoreFile::open(&stop.core);
    let machine = core.thread(stop.tid);
    let whole = backtrace(&core.space, &machine, 1000);
    let slot = whole.frames[0].cfa.expect("known") - 8;
    let mut hooked = Hooked {
        machine: &machine,
        slot,
        original: Ok(whole.frames[1].pc),
    };
    let same = backtrace(&core.space, &hooked, 1000);
    let pcs = |frames: &[Frame]| frames.iter().map(|f| f.pc).collect::<Vec<_>>();
    assert_eq!(pcs(&same.frames), pcs(&whole.frames));
    hooked.original = Err(Unknown::because("its record is gone"));
    let cut = backtrace(&core.space, &hooked, 1000);
    assert_eq!(cut.frames.len(), 1);
    assert_eq!(cut.end, Some(Unknown::because("its record is gone")));
}

#[test]
fn a_limit_and_a_damaged_stack_end_a_backtrace() {
    let bench = Bench::new();
    let path = built(&bench, "gcc", "frames.c", &["-g", "-O0", "-pthread"]);
    let stop = &stops(&bench, &path)[0];
    let core = CoreFile::open(&stop.core);
    let machine = core.thread(stop.tid);
    let three = backtrace(&core.space, &machine, 3);
    assert_eq!(three.frames.len(), 3);
    assert!(three.end.expect("not whole").reason.contains("limit of 3"));
    // A caller that is its own caller: the same frame again, at no higher address.
    let (rbp, _) = machine.register(Register::RBP).expect("in the core");
    let looped = Looped {
        machine: &machine,
        saved_rbp: rbp,
        value: rbp,
    };
    let trace = backtrace(&core.space, &looped, 1000);
    assert!(trace.frames.len() < 10, "{}", trace.frames.len());
    assert!(
        trace
            .end
            .expect("damaged")
            .reason
            .contains("stack is damaged")
    );
}

/// A machine whose innermost saved frame pointer points at itself.
struct Looped<'m> {
    machine: &'m dyn Machine,
    saved_rbp: u64,
    value: u64,
}

impl Machine for Looped<'_> {
    fn memory(&self, address: u64, bytes: &mut [u8]) -> Result<debuginfo::Certainty, Unknown> {
        let certainty = self.machine.memory(address, bytes)?;
        if address == self.saved_rbp && bytes.len() == 8 {
            bytes.copy_from_slice(&self.value.to_le_bytes());
        }
        Ok(certainty)
    }

    fn register(&self, register: Register) -> Result<(u64, debuginfo::Certainty), Unknown> {
        self.machine.register(register)
    }

    fn vector(&self, register: Register) -> Result<([u8; 16], debuginfo::Certainty), Unknown> {
        self.machine.vector(register)
    }
}

#[test]
fn callers_know_what_calls_preserve_and_nothing_else() {
    let bench = Bench::new();
    let path = built(&bench, "gcc", "frames.c", &["-g", "-O2", "-pthread"]);
    let stop = &stops(&bench, &path)[1];
    let core = CoreFile::open(&stop.core);
    let machine = core.thread(stop.tid);
    let frames = backtrace(&core.space, &machine, 1000).frames;
    let innermost = FrameMachine::of(&machine, &frames, 0);
    let caller = FrameMachine::of(&machine, &frames, 1);
    assert!(innermost.register(Register::RDI).is_ok());
    assert!(innermost.vector(Register::XMM0).is_ok());
    let why = caller.register(Register::RDI).expect_err("not preserved");
    assert_eq!(
        why.reason,
        "rdi is not saved by the functions that were called"
    );
    assert!(caller.vector(Register::XMM0).is_err());
    assert!(caller.register(Register::FS_BASE).is_ok());
    let (rip, _) = caller.register(Register::RIP).expect("known");
    assert_eq!(rip, frames[1].pc);
    assert_eq!(
        frames[1].registers.saved_at(Register::RIP),
        frames[0].cfa.map(|c| c - 8)
    );
}

#[test]
fn frame_pointers_are_followed_and_said_to_be_uncertain_where_there_are_no_tables() {
    let bench = Bench::new();
    let options = [
        "-O0",
        "-pthread",
        "-fno-asynchronous-unwind-tables",
        "-fno-unwind-tables",
        "-fno-omit-frame-pointer",
    ];
    let path = built(&bench, "gcc", "frames.c", &options);
    let stop = &stops(&bench, &path)[0];
    let core = CoreFile::open(&stop.core);
    let machine = core.thread(stop.tid);
    let trace = backtrace(&core.space, &machine, 1000);
    let names: Vec<_> = trace
        .frames
        .iter()
        .map(|f| f.function.as_deref().unwrap_or("?"))
        .collect();
    let expected = [
        "stop_here",
        "recurse",
        "recurse",
        "recurse",
        "recurse",
        "main",
    ];
    assert_eq!(names[..6], expected);
    let end = trace.end.expect("not certain").reason;
    assert!(
        end.contains("there are no unwind tables for frame 0"),
        "{end}"
    );
}

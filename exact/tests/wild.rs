//! Goal: calls, jumps and returns to where no code is, and instructions that the processor refuses, end or divert a program as they do
//! without recording, and the recording runs again to there. Method: a program makes one fault; it is run natively and recorded, at the
//! same addresses, with a handler that tells all registers, with handlers that go on, and without one.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use exact::{Options, Replay, Summary, record, verify};
use tempfile::TempDir;

const FAULTS: [&str; 54] = [
    "null",
    "unmapped",
    "noncanonical",
    "kernel",
    "call_r15",
    "call_r11",
    "call_r15_null",
    "call_r11_null",
    "call_memory",
    "call_of_null",
    "jmp",
    "jmp_null",
    "ret",
    "ret_null",
    "ret_16",
    "ret_16_far",
    "ret_r15",
    "ret_r11",
    "stack_gone",
    "stack_nowhere",
    "call_stack_gone",
    "smash",
    "smash_part",
    "data",
    "stack",
    "heap",
    "half",
    "half_data",
    "ends",
    "ends_data",
    "ends_none",
    "bad_end",
    "ud2",
    "bad",
    "hlt",
    "in",
    "cli",
    "int3",
    "int_3",
    "int_4",
    "int81",
    "long",
    "jump",
    "call",
    "branch",
    "gs",
    "set_gs",
    "far_ret",
    "system_ret",
    "moved",
    "divide",
    "x87",
    "sse",
    "read_only",
];
/// Those that stand for the others where a handler goes on.
const SOME: [&str; 13] = [
    "null",
    "noncanonical",
    "call_r15",
    "call_r11",
    "ret_16",
    "smash",
    "stack_gone",
    "data",
    "half",
    "int3",
    "int_3",
    "int_4",
    "int81",
];

/// What is the same in each run.
#[derive(Debug, PartialEq)]
struct Seen {
    text: String,
    code: Option<i32>,
    signal: Option<i32>,
}

fn compiled(folder: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/wild.c");
    let program = folder.join("wild");
    let mut compiler = Command::new("gcc");
    compiler.args(["-O0", "-g", "-w", "-fno-stack-protector", "-o"]);
    let status = compiler.arg(&program).arg(&source).status();
    assert!(status.expect("the compiler is installed").success());
    program
}

fn environment() -> Vec<(OsString, OsString)> {
    vec![("PATH".into(), "/usr/bin:/bin".into())]
}

fn native(command: &[OsString], folder: &Path) -> Seen {
    let path = folder.join("native");
    let output = File::create(&path).expect("the folder can be written");
    let mut native = Command::new(&command[0]);
    native.args(&command[1..]).env_clear().envs(environment());
    native.stdout(output);
    // SAFETY: one system call, which may be made between fork(2) and execve(2).
    unsafe {
        native.pre_exec(|| {
            libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong);
            Ok(())
        });
    }
    let status = native.status().expect("it can be started");
    Seen {
        text: fs::read_to_string(&path).expect("it is text"),
        code: status.code(),
        signal: status.signal(),
    }
}

fn recorded(command: &[OsString], folder: &Path) -> (Seen, Summary) {
    let output = folder.join("output");
    let options = Options {
        output: Some(output.clone()),
        input: Some(PathBuf::from("/dev/null")),
        environment: Some(environment()),
        fixed_addresses: true,
        ..Options::default()
    };
    let program = PathBuf::from(&command[0]);
    let summary = record(&program, command, folder, options).expect("it can be recorded");
    let seen = Seen {
        text: fs::read_to_string(&output).expect("it is text"),
        code: summary.code,
        signal: summary.signal,
    };
    (seen, summary)
}

/// The number behind a word.
fn number(text: &str, word: &str, radix: u32) -> u64 {
    let mut words = text.split_whitespace();
    words.find(|found| *found == word).expect("it tells that");
    let found = words.next().expect("there is a number");
    let digits = found.trim_start_matches("0x").replace("(nil)", "0");
    u64::from_str_radix(&digits, radix).expect("a number")
}

/// The general registers that the handler has told, as in gregs of ucontext_t.
fn told(text: &str) -> Vec<u64> {
    let line = text.lines().nth(2).expect("it tells registers");
    let words = line.split_whitespace().take(18);
    words
        .map(|word| u64::from_str_radix(word, 16).expect("a number"))
        .collect()
}

/// Records a fault; returns what is otherwise than it should be.
fn contradictions(program: &Path, fault: &str, how: &str) -> Result<(), String> {
    let folder = TempDir::new().expect("a folder");
    let command = [
        OsString::from(program),
        OsString::from(fault),
        OsString::from(how),
    ];
    let native = native(&command, folder.path());
    let (seen, summary) = recorded(&command, folder.path());
    if summary.lost.is_some() {
        return Err(format!("lost: {:?}", summary.lost));
    }
    if seen != native {
        return Err(format!("natively {native:?}\nrecorded {seen:?}"));
    }
    let verdict = verify(folder.path(), &mut |_, _| true).map_err(|error| error.to_string())?;
    if !verdict.whole || verdict.contradiction.is_some() {
        return Err(format!("{verdict:?}"));
    }
    if how != "none" {
        return Ok(());
    }
    let mut replay = Replay::open(folder.path()).map_err(|error| error.to_string())?;
    let end = replay.end();
    for place in [end, end - 1, end, end - 200, end] {
        replay
            .goto(place)
            .map_err(|error| format!("to {place}: {error}"))?;
    }
    // Where the program was killed, it stands as its handler would have told.
    let told_by = [command[0].clone(), command[1].clone(), "tell".into()];
    let text = self::native(&told_by, folder.path()).text;
    let fatal = summary.fatal.ok_or("no signal")?;
    let now = replay.registers().map_err(|error| error.to_string())?;
    let expected = (
        number(&text, "signal", 10),
        number(&text, "code", 10),
        number(&text, "addr", 16),
    );
    let found = (fatal.signal as u64, fatal.code as u64, fatal.address);
    if expected != found {
        return Err(format!("natively {expected:x?}, recorded {found:x?}"));
    }
    let order = [
        now.r8, now.r9, now.r10, now.r11, now.r12, now.r13, now.r14, now.r15, now.rdi, now.rsi,
        now.rbp, now.rbx, now.rdx, now.rax, now.rcx, now.rsp, now.rip,
    ];
    // "none" and "tell" have the same length: the stack lies at the same place.
    let differ: Vec<String> = order
        .iter()
        .zip(told(&text))
        .enumerate()
        .filter(|(_, (now, then))| *now != then)
        .map(|(index, (now, then))| format!("greg {index}: {now:x} natively {then:x}"))
        .collect();
    match differ.is_empty() {
        true => Ok(()),
        false => Err(format!("{differ:?}")),
    }
}

fn all(how: &str, faults: &[&str]) {
    let folder = TempDir::new().expect("a folder");
    let program = compiled(folder.path());
    let only = std::env::var("FAULT").ok();
    let mut wrong = Vec::new();
    for fault in faults {
        if only.as_ref().is_some_and(|only| only != fault) {
            continue;
        }
        if let Err(text) = contradictions(&program, fault, how) {
            wrong.push(format!("{fault}: {text}"));
        }
    }
    assert!(wrong.is_empty(), "{how}:\n{}", wrong.join("\n"));
}

#[test]
fn a_handler_sees_what_it_sees_natively() {
    all("tell", &FAULTS);
}

#[test]
fn a_fault_ends_the_program_where_it_does_natively() {
    // Which exception of vectors it was is noted in mxcsr by the instruction that faults, which running again stands before.
    let faults = FAULTS.map(|fault| if fault == "sse" { "x87" } else { fault });
    all("none", &faults);
}

#[test]
fn a_handler_jumps_out_of_the_fault() {
    all("jump", &SOME);
}

#[test]
fn a_handler_mends_and_returns() {
    all("mend", &SOME);
}

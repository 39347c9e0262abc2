//! Goal: what programs do seldom is recorded as it is, too: instructions that repeat and are interrupted, flags that stay as they were,
//! faults of SSE, system calls of old. Method: each is recorded and compared with a native run, and the recording is run again, with all
//! values that it has to compare.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use exact::{Options, Replay, Summary, record, verify};
use tempfile::TempDir;

struct Run {
    folder: TempDir,
    output: String,
    summary: Summary,
}

/// Records a program, and runs the recording again.
fn recorded(source: &str, words: &[&str]) -> Run {
    let folder = TempDir::new().expect("a folder");
    let (program, output) = (folder.path().join("program"), folder.path().join("output"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/programs")
        .join(source);
    let gcc = Command::new("gcc")
        .args(["-O1", "-g", "-pthread", "-o"])
        .args([&program, &source])
        .status();
    assert!(gcc.expect("gcc is installed").success());
    let options = Options {
        output: Some(output.clone()),
        input: Some(PathBuf::from("/dev/null")),
        ..Options::default()
    };
    let mut command = vec![program.clone().into_os_string()];
    command.extend(words.iter().map(OsString::from));
    let summary = record(&program, &command, folder.path(), options).expect("it can be recorded");
    let output = fs::read_to_string(output).expect("the output is there");
    let verdict = verify(folder.path(), &mut |_, _| true).expect("it can be run again");
    assert_eq!(verdict.contradiction, None);
    assert!(verdict.whole, "{verdict:?}");
    Run {
        folder,
        output,
        summary,
    }
}

fn rip(replay: &mut Replay, position: u64) -> u64 {
    replay.goto(position).expect("a position");
    replay.registers().expect("registers").rip
}

/// Each writes a byte, and then all of the memory by one instruction, which is at the address that the program tells.
#[test]
fn writes_by_instructions_that_repeat_are_found_where_they_are() {
    let run = recorded("repeats.c", &[]);
    let addresses = run.output.split_whitespace();
    let addresses: Vec<u64> = addresses
        .map(|word| u64::from_str_radix(word.trim_start_matches("0x"), 16).expect("a number"))
        .collect();
    let (to, repeated) = addresses.split_first().expect("addresses");
    let mut replay = Replay::open(run.folder.path()).expect("it can be opened");
    let end = replay.end();
    for (offset, length) in [
        (2001, 1),
        (2000, 8),
        (1, 1),
        (3999, 1),
        (3992, 8),
        (0, 1),
        (0, 8),
    ] {
        let at = to + offset;
        replay.goto(0).expect("the start");
        let found = replay.writes(at, length, end, usize::MAX).expect("writes");
        // The byte is written by an instruction of three bytes, right before.
        let expected: Vec<u64> = match offset {
            0 => repeated.iter().flat_map(|at| [at - 3, *at]).collect(),
            _ => repeated.to_vec(),
        };
        let writers: Vec<u64> = found.iter().map(|at| rip(&mut replay, *at)).collect();
        assert_eq!(writers, expected, "{offset} {length}: {found:?}");
        for position in &found {
            let last = replay.last_write(at, length, position + 1);
            assert_eq!(last.expect("it can be searched"), Some(*position));
            // In single steps, which are made where little is to be run.
            replay.goto(position - 2).expect("a position");
            let near = replay.writes(at, length, position + 1, usize::MAX);
            assert_eq!(near.expect("writes").last(), Some(position));
        }
    }
}

/// A signal in the middle of such an instruction is told when that is done.
#[test]
fn instructions_that_repeat_are_interrupted() {
    let run = recorded("repeats.c", &["and signals"]);
    let (_, last) = run.output.split_once('\n').expect("two lines");
    assert_eq!(last, "1760 ticks\n");
    assert_eq!((run.summary.code, run.summary.lost), (Some(3), None));
}

/// What it wrote before the fault is there, whether a handler lets it go on or the program ends.
#[test]
fn instructions_that_repeat_have_faults_in_the_middle() {
    let run = recorded("faults.c", &["a handler"]);
    let native = Command::new(run.folder.path().join("program")).output();
    let native = native.expect("it can be started").stdout;
    assert!(native.starts_with(b"8 "));
    assert_eq!(run.output, String::from_utf8_lossy(&native));
    assert_eq!((run.summary.code, run.summary.lost), (Some(0), None));
    for ending in ["up", "down", "from"] {
        let run = recorded("faults.c", &["no handler", ending]);
        assert_eq!(run.summary.signal, Some(libc::SIGSEGV));
        assert!(run.summary.fatal.is_some());
    }
}

/// A shift by nothing, or a comparison of nothing, changes no flag.
#[test]
fn flags_stay_as_they_were() {
    let run = recorded("flags.c", &[]);
    assert_eq!(run.output, "2250\n");
    assert_eq!((run.summary.code, run.summary.lost), (Some(0), None));
}

/// Each of them is executed where it lies, and the program goes on in translated code.
#[test]
fn far_returns_and_loads_of_gs_are_recorded() {
    let run = recorded("far.c", &[]);
    assert_eq!(run.output, "8000\n");
    assert_eq!((run.summary.code, run.summary.lost), (Some(0), None));
    let mut replay = Replay::open(run.folder.path()).expect("it can be opened");
    let places = replay.end() - 20_000..replay.end() - 19_940;
    let forwards: Vec<u64> = places.clone().map(|at| rip(&mut replay, at)).collect();
    let backwards = places.rev().map(|at| rip(&mut replay, at));
    let mut backwards: Vec<u64> = backwards.collect();
    backwards.reverse();
    assert_eq!(forwards, backwards);
    let codes = forwards.iter().map(|at| {
        let mut code = [0; 2];
        assert_eq!(replay.read(*at, &mut code), 2);
        code
    });
    let codes: Vec<[u8; 2]> = codes.collect();
    // lretq, iretq, pop gs, mov gs.
    for code in [[0x48, 0xca], [0x48, 0xcf], [0x0f, 0xa9], [0x8e, 0xe8]] {
        assert!(codes.contains(&code), "{code:x?}");
    }
}

/// The flag by which an instruction is resumed (RF) is in no register behind a system call, though a handler has returned to that with it.
#[test]
fn a_call_that_is_resumed_keeps_no_flag_of_that() {
    let run = recorded("resumes.c", &[]);
    assert_eq!(run.output, "not kept\n");
    assert_eq!((run.summary.code, run.summary.lost), (Some(0), None));
}

/// The processor tells in MXCSR what was wrong.
#[test]
fn a_fault_of_sse_ends_a_program() {
    let run = recorded("divides.c", &[]);
    assert_eq!(run.summary.signal, Some(libc::SIGFPE));
    let fatal = run.summary.fatal.expect("it is known");
    assert_eq!((fatal.signal, fatal.code), (libc::SIGFPE, 3));
}

/// What /proc tells of a process is not in the folder of a thread that has ended.
#[test]
fn the_first_thread_ends_before_the_last_one() {
    let run = recorded("alone.c", &[]);
    assert_eq!((&*run.output, run.summary.code), ("alone\n", Some(0)));
    assert_eq!(run.summary.lost, None);
    let run = recorded("alone.c", &["by a fault"]);
    assert_eq!(run.output, "alone\n");
    assert_eq!(
        (run.summary.signal, run.summary.lost),
        (Some(libc::SIGSEGV), None)
    );
    let fatal = run.summary.fatal.expect("it is known");
    assert_eq!(fatal.address, 8);
    let mut replay = Replay::open(run.folder.path()).expect("it can be opened");
    let end = replay.end();
    replay.goto(end).expect("the end can be reached");
    assert_eq!(replay.thread(), fatal.tid);
}

/// They end the recording before they are made. The program goes on, with a timer, a thread that waits, and code that it writes.
#[test]
fn a_program_goes_on_with_a_system_call_of_old() {
    let run = recorded("old_calls.c", &[]);
    assert_eq!(run.output, "1 5 6 1 0\n");
    assert_eq!(run.summary.code, Some(5));
    let lost = run.summary.lost.expect("recording has ended");
    assert!(
        lost.starts_with("the system call by int 0x80 or sysenter at 0x")
            && lost.ends_with("and the program went on unrecorded"),
        "{lost}"
    );
    let mut replay = Replay::open(run.folder.path()).expect("it can be opened");
    let end = replay.end();
    let at = rip(&mut replay, end);
    let mut code = [0; 2];
    assert_eq!(replay.read(at, &mut code), 2);
    assert_eq!(code, [0xcd, 0x80]);
}

/// It ends the recording before the calls come back as signals. Where they come back again and again, the kernel ends the program.
#[test]
fn a_program_goes_on_whose_system_calls_come_back() {
    let run = recorded("dispatched.c", &[]);
    assert_eq!((&*run.output, run.summary.code), ("0\n1\n", Some(3)));
    let lost = run.summary.lost.expect("recording has ended");
    assert!(
        lost.starts_with("the program has its system calls come back as signals")
            && lost.ends_with("and the program went on unrecorded"),
        "{lost}"
    );
    let run = recorded("dispatched.c", &["again and again"]);
    assert_eq!(run.output, "0\n");
    assert_eq!(run.summary.signal, Some(libc::SIGSYS));
    assert!(run.summary.lost.is_some());
}

/// Natively it ends the program: the kernel would return to where a program of 32 bits has its vDSO.
#[test]
fn a_program_goes_on_with_sysenter() {
    let run = recorded("old_calls.c", &["sysenter"]);
    let lost = run.summary.lost.expect("recording has ended");
    assert!(
        lost.starts_with("the system call by int 0x80 or sysenter at 0x"),
        "{lost}"
    );
    assert!(run.summary.signal.is_some(), "{:?}", run.summary.code);
}

//! The system calls of a program as strace shows them, and as they are recorded.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use e2e::{Hindsight, Program, Recording, Scratch, Status};

/// Calls that only strace sees, and one that the runtime replaces (docs/limits.md).
const NOT_COMPARED: [&str; 3] = ["rt_sigreturn", "restart_syscall", "prlimit64"];

/// A call: name, arguments, result, error.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    pub name: String,
    pub args: String,
    pub result: String,
}

/// Calls by thread, in the order in which the threads appear.
fn by_thread(calls: Vec<(String, Call)>) -> Vec<Vec<Call>> {
    let mut numbers = BTreeMap::new();
    let mut threads: Vec<Vec<Call>> = Vec::new();
    for (tid, call) in calls {
        let index = *numbers.entry(tid).or_insert(threads.len());
        if index == threads.len() {
            threads.push(Vec::new());
        }
        threads[index].push(call);
    }
    threads
}

/// Runs a program under strace. Returns the calls of each thread.
pub fn traced(folder: &Path, program: &Path, args: &[&str]) -> Vec<Vec<Call>> {
    traced_with(folder, program, args, &[])
}

/// The same with more options of strace.
///
/// Python's own allocator would map one more or one less arena, by the address at which the kernel maps them.
fn traced_with(folder: &Path, program: &Path, args: &[&str], options: &[&str]) -> Vec<Vec<Call>> {
    let log = folder.with_extension("strace");
    let log_text = log.to_str().expect("the folder's name is text");
    let ended = Program::new("/usr/bin/strace", folder)
        .args(["-f", "-o", log_text, "-e", "signal=none"])
        .args(options)
        .args([program])
        .args(args)
        .env("PYTHONHASHSEED", "0")
        .env("PYTHONMALLOC", "malloc")
        .run();
    assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
    let text = fs::read_to_string(&log).expect("strace has written its log");
    let mut calls = Vec::new();
    let mut open: BTreeMap<&str, usize> = BTreeMap::new();
    for line in text.lines() {
        let (tid, rest) = line.split_once(' ').expect("lines begin with the thread");
        let rest = rest.trim_start();
        if let Some(resumed) = rest.strip_prefix("<... ") {
            let index = open.remove(tid).expect("it was interrupted before");
            let (_, after) = resumed.split_once(" resumed>").expect("that is their form");
            let call: &mut (String, Call) = &mut calls[index];
            finish(&mut call.1, after);
            continue;
        }
        let Some((name, after)) = rest.split_once('(') else {
            continue;
        };
        if name.contains(' ') {
            continue;
        }
        let mut call = Call {
            name: name.to_owned(),
            args: String::new(),
            result: String::new(),
        };
        if let Some(begun) = after.strip_suffix(" <unfinished ...>") {
            call.args = begun.to_owned();
            open.insert(tid, calls.len());
        } else {
            finish(&mut call, after);
        }
        calls.push((tid.to_owned(), call));
    }
    by_thread(calls)
}

/// Parses the rest of a line: arguments, result.
fn finish(call: &mut Call, rest: &str) {
    let (args, result) = rest.rsplit_once(" = ").unwrap_or((rest, "?"));
    call.args
        .push_str(args.trim_end().strip_suffix(')').unwrap_or(args));
    let mut words = result.split(' ');
    let value = words.next().unwrap_or_default();
    call.result = match value {
        "-1" => format!("-1 {}", words.next().unwrap_or_default()),
        value => value.to_owned(),
    };
}

/// The recorded calls of each thread.
pub fn recorded(recording: &Recording) -> Vec<Vec<Call>> {
    let rows = recording.rows("SELECT tid, name, args, result, errno FROM syscalls ORDER BY seq");
    let calls = rows.iter().map(|row| {
        let text = |column: &str| row[column].as_str().unwrap_or_default().to_owned();
        let result = match (row["result"].as_i64(), row["errno"].as_str()) {
            (Some(_), Some(errno)) => format!("-1 {errno}"),
            (Some(result), None) => result.to_string(),
            (None, _) => "?".to_owned(),
        };
        let call = Call {
            name: text("name"),
            args: text("args"),
            result,
        };
        (row["tid"].to_string(), call)
    });
    by_thread(calls.collect())
}

pub fn names(calls: &[Call], left_out: &[&str]) -> Vec<String> {
    let names = calls.iter().map(|call| call.name.clone());
    names
        .filter(|name| !left_out.contains(&name.as_str()))
        .collect()
}

pub fn files_for(folder: &Path) {
    fs::create_dir_all(folder.join("more")).expect("the folder can be made");
    fs::write(folder.join("words"), "pear\nfig\napple\n".repeat(400)).expect("it can be written");
    fs::write(folder.join("more/list.txt"), "one\ntwo\n").expect("it can be written");
    fs::write(folder.join("main.rs"), "fn main() {}\n").expect("it can be written");
}

/// The names of the calls before the program's entry point: by the dynamic linker, and by constructors of libraries. The dynamic
/// linker and the C library say what they do (ld.so(8)); the latter writes this first of all.
fn before_entry(folder: &Path, program: &Path, args: &[&str]) -> Vec<String> {
    files_for(folder);
    let says_all = ["-E", "LD_DEBUG=files"];
    let calls = traced_with(folder, program, args, &says_all).swap_remove(0);
    let begins = "\"initialize program: \"";
    let is_entry = |call: &Call| call.name == "writev" && call.args.contains(begins);
    let entry = calls.iter().position(is_entry).expect("it says so");
    let to_say_it = ["writev", "getpid"];
    names(&calls[..entry], &[&NOT_COMPARED[..], &to_say_it].concat())
}

/// A recorded program has more mappings than others, and reads their list in more steps.
fn leave_out_mappings(calls: &mut Vec<Call>) {
    let mut is_reading = false;
    calls.retain(|call| {
        is_reading = match call.name.as_str() {
            "openat" => call.args.contains("\"/proc/self/maps\""),
            "close" => false,
            _ => is_reading,
        };
        !(is_reading && call.name == "read")
    });
}

/// Runs a program both ways, and compares its main thread from the entry point on. Returns both.
pub fn compared(program: &str, args: &[&str]) -> (Vec<Call>, Vec<Call>) {
    compared_with(program, args, &[])
}

/// The same with more options of `record`.
pub fn compared_with(program: &str, args: &[&str], options: &[&str]) -> (Vec<Call>, Vec<Call>) {
    let (mut expected, mut found) = both_ways(program, args, options, &[]);
    (expected.swap_remove(0), found.swap_remove(0))
}

/// The same for all threads, except calls that are left out. Of the main thread, exactly the calls before the entry point are not
/// recorded; none of these is returned.
pub fn both_ways(
    program: &str,
    args: &[&str],
    options: &[&str],
    left_out: &[&str],
) -> (Vec<Vec<Call>>, Vec<Vec<Call>>) {
    let scratch = Scratch::new("beside_strace");
    let (one, other) = (scratch.join("native/x"), scratch.join("record/x"));
    files_for(&one);
    files_for(&other);
    let mut expected = traced(&one, Path::new(program), args);
    let mut loading = before_entry(&scratch.join("loading/x"), Path::new(program), args);
    let run = Program::new(program, &other)
        .args(args)
        .env("PYTHONHASHSEED", "0")
        .env("PYTHONMALLOC", "malloc");
    let recording =
        Hindsight::recorded(&scratch, "rec", &[&["--syscalls"], options].concat(), &run);
    let mut found = recorded(&recording);
    for calls in expected.iter_mut().chain(&mut found) {
        calls.retain(|call| !NOT_COMPARED.contains(&call.name.as_str()));
        leave_out_mappings(calls);
    }
    for calls in expected.iter_mut().chain(&mut found) {
        calls.retain(|call| !left_out.contains(&call.name.as_str()));
    }
    loading.retain(|name| !left_out.contains(&name.as_str()));
    let (wanted, got) = (names(&expected[0], &[]), names(&found[0], &[]));
    assert!(!got.is_empty(), "{program}: nothing was recorded");
    let lost = wanted.len().saturating_sub(got.len());
    assert_eq!(got, wanted[lost..], "{program} {args:?}");
    assert_eq!(wanted[..lost], loading, "{program} {args:?}: what is lost");
    let check = recording.command("check", &[]);
    assert_eq!(check.status, Status::Code(0), "{}", check.text());
    expected[0].drain(..lost);
    (expected, found)
}

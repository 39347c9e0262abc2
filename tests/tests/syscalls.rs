//! Goal: `record --syscalls` keeps the system calls that a program makes, all of them and in order, and the program does not
//! notice. Method: programs of Debian under strace and recorded; fixtures that make calls in every way, natively and recorded.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::Path;

use e2e::{
    Comparison, Hindsight, Nesting, Program, Recording, Scratch, Status, compiled, fixture_artifact,
};
use serde_json::json;

/// Calls that only strace sees, those that loading the runtime has already made (the heap), and those that the runtime
/// replaces (docs/limits.md).
const NOT_COMPARED: [&str; 5] = [
    "rt_sigreturn",
    "restart_syscall",
    "brk",
    "getrandom",
    "prlimit64",
];
/// The C library loads this file once, and has already done so for the runtime's loader.
const LOADED_BEFORE: &str = "gconv-modules.cache";
/// It opens it, looks at its size, maps it, closes it and wakes threads that wait for it.
const LOADING: [&str; 5] = ["openat", "newfstatat", "mmap", "close", "futex"];

/// A call: name, arguments, result, error.
#[derive(Clone, Debug, PartialEq)]
struct Call {
    name: String,
    args: String,
    result: String,
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
///
/// Python's own allocator would map one more or one less arena, by the address at which the kernel maps them.
fn traced(folder: &Path, program: &Path, args: &[&str]) -> Vec<Vec<Call>> {
    let log = folder.with_extension("strace");
    let log_text = log.to_str().expect("the folder's name is text");
    let ended = Program::new("/usr/bin/strace", folder)
        .args(["-f", "-o", log_text, "-e", "signal=none"])
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
fn recorded(recording: &Recording) -> Vec<Vec<Call>> {
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

fn names(calls: &[Call], left_out: &[&str]) -> Vec<String> {
    let names = calls.iter().map(|call| call.name.clone());
    names
        .filter(|name| !left_out.contains(&name.as_str()))
        .collect()
}

fn files_for(folder: &Path) {
    fs::create_dir_all(folder.join("more")).expect("the folder can be made");
    fs::write(folder.join("words"), "pear\nfig\napple\n".repeat(400)).expect("it can be written");
    fs::write(folder.join("more/list.txt"), "one\ntwo\n").expect("it can be written");
    fs::write(folder.join("main.rs"), "fn main() {}\n").expect("it can be written");
}

/// Calls of the dynamic linker, and of constructors of libraries, before the program's entry point.
const BEFORE_ENTRY: [&str; 26] = [
    "execve",
    "brk",
    "arch_prctl",
    "mmap",
    "access",
    "openat",
    "newfstatat",
    "fstat",
    "read",
    "pread64",
    "close",
    "mprotect",
    "munmap",
    "set_tid_address",
    "set_robust_list",
    "rseq",
    "prlimit64",
    "statfs",
    "faccessat",
    "faccessat2",
    "stat",
    "readlink",
    "uname",
    "getrandom",
    "lseek",
    "futex",
];

fn leave_out_loading(calls: &mut Vec<Call>) {
    let is_there = |call: &Call| call.args.contains(LOADED_BEFORE) && call.result != "-1 ENOENT";
    if let Some(at) = calls.iter().position(is_there) {
        let loading = calls.splice(at..at + LOADING.len(), []);
        let loading: Vec<Call> = loading.collect();
        assert_eq!(names(&loading, &[]), LOADING);
    }
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
fn compared(program: &str, args: &[&str]) -> (Vec<Call>, Vec<Call>) {
    compared_with(program, args, &[])
}

/// The same with more options of `record`.
fn compared_with(program: &str, args: &[&str], options: &[&str]) -> (Vec<Call>, Vec<Call>) {
    let scratch = Scratch::new("beside_strace");
    let (one, other) = (scratch.join("native/x"), scratch.join("record/x"));
    files_for(&one);
    files_for(&other);
    let mut expected = traced(&one, Path::new(program), args).swap_remove(0);
    let run = Program::new(program, &other)
        .args(args)
        .env("PYTHONHASHSEED", "0")
        .env("PYTHONMALLOC", "malloc");
    let recording =
        Hindsight::recorded(&scratch, "rec", &[&["--syscalls"], options].concat(), &run);
    let mut found = recorded(&recording).swap_remove(0);
    for calls in [&mut expected, &mut found] {
        calls.retain(|call| !NOT_COMPARED.contains(&call.name.as_str()));
        leave_out_mappings(calls);
    }
    leave_out_loading(&mut expected);
    let (wanted, got) = (names(&expected, &[]), names(&found, &[]));
    assert!(!got.is_empty(), "{program}: nothing was recorded");
    assert!(
        wanted.ends_with(&got),
        "{program} {args:?}\nstrace:   {wanted:?}\nrecorded: {got:?}"
    );
    for name in &wanted[..wanted.len() - got.len()] {
        assert!(
            BEFORE_ENTRY.contains(&name.as_str()),
            "{program}: {name} is missing"
        );
    }
    let check = recording.command("check", &[]);
    assert_eq!(check.status, Status::Code(0), "{}", check.text());
    let before = expected.len() - found.len();
    (expected.split_off(before), found)
}

macro_rules! same_calls_as_strace {
    ($($fact:ident: $program:expr, [$($arg:literal),*];)*) => {$(
        #[test]
        fn $fact() {
            let _ = compared($program, &[$($arg),*]);
        }
    )*};
}

same_calls_as_strace! {
    ls_lists_a_folder: "/bin/ls", ["-l", "."];
    cat_copies_a_file_out: "/bin/cat", ["words"];
    cp_copies_a_file: "/bin/cp", ["words", "copy"];
    find_walks: "/usr/bin/find", [".", "-name", "*.txt"];
    sort_sorts: "/usr/bin/sort", ["words"];
    gzip_packs: "/bin/gzip", ["-c", "words"];
    tar_packs: "/bin/tar", ["-cf", "out.tar", "words", "more"];
    perl_runs_a_line: "/usr/bin/perl", ["-e", "open(F, '<', 'words'); print scalar(<F>); close(F)"];
    python_runs_a_line: "/usr/bin/python3", ["-S", "-c", "print(open('words').read(4))"];
    bash_runs_a_line: "/bin/bash", ["-c", "read x < words; echo $x"];
    mv_renames: "/bin/mv", ["words", "letters"];
    cargo_tells_its_version: env!("CARGO"), ["--version"];
}

/// The compiler's library has too many functions to record all of them.
#[test]
fn rustfmt_formats_a_file() {
    let program = Path::new(env!("CARGO")).with_file_name("rustfmt");
    let program = program.to_str().expect("its name is text");
    let (expected, found) = compared_with(program, &["--check", "main.rs"], &["-f", "main"]);
    let opens = |calls: &[Call]| -> Vec<String> {
        let opens = calls.iter().filter(|call| call.name == "openat");
        opens.map(|call| call.args.clone()).collect()
    };
    let expected: Vec<String> = opens(&expected)
        .iter()
        .map(|args| args.replace("/native/x", "/record/x"))
        .collect();
    assert_eq!(opens(&found), expected);
    assert!(
        expected.iter().any(|args| args.contains("main.rs")),
        "{expected:?}"
    );
}

/// Compares two calls in which each argument is an address in both, or in neither.
fn same_but_for_addresses(wanted: &Call, got: &Call) {
    assert_eq!(masked(&got.args), masked(&wanted.args), "{wanted:?}");
}

/// Arguments in which each hexadecimal number, which may be an address, is the same word.
fn masked(args: &str) -> String {
    let mut text = String::new();
    let mut rest = args;
    while let Some((before, after)) = rest.split_once("0x") {
        text += before;
        text += "ADDRESS";
        rest = after.trim_start_matches(|c: char| c.is_ascii_hexdigit());
    }
    text + rest
}

/// Arguments, counted from 0, that are not as strace shows them (docs/limits.md), or differ from run to run.
const OTHER_ARGUMENTS: [(&str, usize); 8] = [
    ("sigaltstack", 1),
    ("sched_getaffinity", 2),
    ("sysinfo", 0),
    ("statx", 2),
    ("statx", 3),
    ("statx", 4),
    ("statfs", 1),
    ("fstatfs", 1),
];
/// Calls whose results are numbers of processes.
const OTHER_RESULTS: [&str; 3] = ["gettid", "getpid", "set_tid_address"];

/// Separates arguments at the commas that are in no brackets and no text.
fn separated(args: &str) -> Vec<&str> {
    let (mut parts, mut from) = (Vec::new(), 0);
    let (mut depth, mut in_text, mut is_escaped) = (0, false, false);
    for (at, c) in args.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if in_text => is_escaped = true,
            '"' => in_text = !in_text,
            _ if in_text => {}
            '[' | '{' | '(' => depth += 1,
            ']' | '}' | ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(args[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(args[from..].trim());
    parts
}

/// Arguments without those that are not compared, without strace's remarks, and without what a call found: strace shows that with
/// the result.
fn comparable(call: &Call) -> Call {
    let mut args = separated(&call.args);
    for (name, index) in OTHER_ARGUMENTS {
        if name == call.name {
            args[index] = "*";
        }
    }
    let args = args.iter().map(|arg| {
        let arg = arg.split_once(" /* ").map_or(*arg, |(before, _)| before);
        match call.name.as_str() {
            "poll" => arg.split_once(" => ").map_or(arg, |(before, _)| before),
            _ => arg,
        }
    });
    let args: Vec<&str> = args.collect();
    let is_other = OTHER_RESULTS.contains(&call.name.as_str());
    Call {
        name: call.name.clone(),
        args: args.join(", "),
        result: if is_other {
            "*".to_owned()
        } else {
            call.result.clone()
        },
    }
}

#[test]
fn operations_of_futex_have_their_own_arguments() {
    let program = fixture_artifact("syscalls", "futexes");
    let program = program.to_str().expect("its name is text");
    let (expected, found) = compared(program, &[]);
    let of = |calls: &[Call]| -> Vec<Call> {
        let begun = calls.iter().position(|call| call.name == "futex");
        calls[begun.expect("it makes some")..].to_vec()
    };
    let (expected, found) = (of(&expected), of(&found));
    let compared = ["futex", "pipe2", "dup3", "eventfd2", "memfd_create"];
    for (wanted, got) in expected.iter().zip(&found) {
        if compared.contains(&wanted.name.as_str()) {
            same_but_for_addresses(wanted, got);
            assert_eq!(got.result, wanted.result, "{wanted:?}");
        }
    }
    let futexes = found.iter().filter(|call| call.name == "futex");
    assert_eq!(futexes.count(), 14);
}

/// Calls without addresses as arguments are shown as in strace, and so are their results.
#[test]
fn arguments_and_results_are_those_of_strace() {
    let mut seen = HashSet::new();
    for (program, args) in [
        ("/bin/cat", &["words"][..]),
        ("/bin/cp", &["words", "copy"]),
        ("/bin/mv", &["words", "letters"]),
        ("/bin/mkdir", &["-p", "made/below"]),
        ("/bin/ls", &["."]),
        ("/bin/rm", &["-r", "more"]),
        ("/usr/bin/touch", &["new"]),
        ("/bin/ln", &["-s", "words", "link"]),
        ("/bin/sleep", &["0.01"]),
        ("/bin/ls", &["-l", "."]),
        ("/usr/bin/sort", &["words"]),
        ("/usr/bin/stat", &["-f", "words"]),
        (
            "/usr/bin/python3",
            &[
                "-S",
                "-X",
                "faulthandler",
                "-c",
                "import select; p = select.poll(); p.register(1, select.POLLOUT); p.poll(0)",
            ],
        ),
        (
            "/usr/bin/python3",
            &[
                "-S",
                "-c",
                "import _signal; _signal.signal(15, _signal.SIG_IGN); _signal.signal(15, _signal.SIG_DFL)",
            ],
        ),
    ] {
        let (expected, found) = compared(program, args);
        for (wanted, got) in expected.iter().zip(&found) {
            let (mut wanted, mut got) = (comparable(wanted), comparable(got));
            wanted.args = wanted.args.replace("/native/x", "/record/x");
            same_but_for_addresses(&wanted, &got);
            seen.insert(wanted.name.clone());
            if wanted.result.starts_with("0x") {
                continue;
            }
            (wanted.args, got.args) = (masked(&wanted.args), masked(&got.args));
            // The column holds a number, which strace writes in octal here.
            let octal = match wanted.name.as_str() {
                "umask" => i64::from_str_radix(&wanted.result, 8).ok(),
                _ => None,
            };
            if let Some(result) = octal {
                wanted.result = result.to_string();
            }
            assert_eq!(got, wanted, "{program} {args:?}");
        }
    }
    for name in [
        "openat",
        "read",
        "write",
        "close",
        "unlinkat",
        "mkdir",
        "exit_group",
        "rt_sigaction",
        "mmap",
        "getdents64",
        "poll",
        "sched_getaffinity",
        "sigaltstack",
        "statfs",
        "statx",
        "sysinfo",
    ] {
        assert!(seen.contains(name), "{name} was compared nowhere");
    }
}

/// Actions that are all the default one, with other flags and masks each time: the runtime has its own in their place.
const ACTIONS: &str = r#"
#include <signal.h>
static struct sigaction with(int flags, int blocked)
{
  struct sigaction action = { .sa_handler = SIG_DFL, .sa_flags = flags };
  sigaddset(&action.sa_mask, blocked);
  return action;
}
int main(void)
{
  struct sigaction old, first = with(SA_RESTART, SIGUSR1), second = with(SA_NODEFER, SIGUSR2);
  struct sigaction ignored = { .sa_handler = SIG_IGN };
  sigaction(SIGTERM, &first, &old);
  sigaction(SIGTERM, &second, &old);
  sigaction(SIGTERM, 0, &old);
  sigaction(SIGTERM, &ignored, &old);
  sigaction(SIGTERM, &first, &old);
  sigaction(SIGTERM, 0, &old);
  return 0;
}
"#;

#[test]
fn default_actions_have_the_programs_flags_and_masks() {
    let scratch = Scratch::new("actions");
    let program = compiled(&scratch, "actions.c", ACTIONS, &[]);
    let (expected, found) = compared(program.to_str().expect("its name is text"), &[]);
    let of = |calls: &[Call]| -> Vec<(String, String)> {
        let calls = calls.iter().filter(|call| call.name == "rt_sigaction");
        calls
            .map(|call| (masked(&call.args), call.result.clone()))
            .collect()
    };
    let expected = of(&expected);
    assert_eq!(expected.len(), 6);
    assert_eq!(of(&found), expected);
}

#[test]
fn each_thread_has_its_calls() {
    let scratch = Scratch::new("threads");
    let folder = scratch.join("traced");
    fs::create_dir_all(&folder).expect("the folder can be made");
    let program = fixture_artifact("syscalls", "files");
    let expected = traced(&folder, &program, &[]);
    let run = Program::new(&program, scratch.path());
    let recording = Hindsight::recorded(&scratch, "rec", &["--syscalls"], &run);
    let found = recorded(&recording);
    assert_eq!(found.len(), expected.len(), "as many threads");
    for (wanted, got) in expected.iter().zip(&found).skip(1) {
        // A thread waits for another only if that has not finished.
        let left_out = ["futex", "rt_sigreturn", "restart_syscall", "brk"];
        assert_eq!(names(got, &left_out), names(wanted, &left_out));
    }
}

/// With every instruction there is no vDSO: asking for the time is a system call, and the dynamic linker takes its memory at another
/// moment. The call that ends the program is its event process_exit.
const NOT_OF_ALL: [&str; 8] = [
    "mmap",
    "exit_group",
    "clock_gettime",
    "gettimeofday",
    "time",
    "brk",
    "rt_sigreturn",
    "restart_syscall",
];

/// A recording of every instruction has all calls, from the first on, without --syscalls: the same as strace shows.
#[test]
fn every_instruction_has_every_call() {
    for (program, args) in [
        ("/bin/cat", &["words"][..]),
        ("/bin/cp", &["words", "copy"]),
        (
            "/usr/bin/python3",
            &["-S", "-c", "print(open('words').read(4))"],
        ),
    ] {
        let scratch = Scratch::new("full_beside_strace");
        let (one, other) = (scratch.join("native/x"), scratch.join("record/x"));
        files_for(&one);
        files_for(&other);
        let mut expected = traced(&one, Path::new(program), args).swap_remove(0);
        let run = Program::new(program, &other)
            .args(args)
            .env("PYTHONHASHSEED", "0")
            .env("PYTHONMALLOC", "malloc");
        let recording = Hindsight::recorded(&scratch, "rec", &["--full"], &run);
        let mut found = recorded(&recording).swap_remove(0);
        assert_eq!(expected.remove(0).name, "execve");
        for calls in [&mut expected, &mut found] {
            calls.retain(|call| !NOT_OF_ALL.contains(&call.name.as_str()));
        }
        assert_eq!(names(&found, &[]), names(&expected, &[]), "{program}");
        let mut alike = 0;
        for (wanted, got) in expected.iter().zip(&found) {
            let has_address = |call: &Call| call.args.contains("0x") || call.args.contains('{');
            let is_other = matches!(
                wanted.name.as_str(),
                "getpid" | "gettid" | "set_tid_address" | "rseq"
            );
            if is_other
                || has_address(wanted)
                || has_address(got)
                || wanted.result.starts_with("0x")
            {
                continue;
            }
            assert_eq!(got, wanted, "{program}");
            alike += 1;
        }
        assert!(alike > 10, "{program}: {alike}");
        let files = "SELECT count(*) FROM files WHERE path LIKE '%words' AND bytes_read > 0";
        assert_eq!(recording.number(files), 1, "{program}");
    }
}

/// Threads that wait have begun their calls before they let others go on.
#[test]
fn every_instruction_has_the_calls_of_threads() {
    let scratch = Scratch::new("full_threads");
    let folder = scratch.join("traced");
    fs::create_dir_all(&folder).expect("the folder can be made");
    let program = fixture_artifact("syscalls", "files");
    let mut expected = traced(&folder, &program, &[]);
    let run = Program::new(&program, scratch.path());
    let recording = Hindsight::recorded(&scratch, "rec", &["--full"], &run);
    let found = recorded(&recording);
    assert_eq!(found.len(), expected.len(), "as many threads");
    assert_eq!(expected[0].remove(0).name, "execve");
    let mut alike = 0;
    for (mut wanted, mut got) in expected.into_iter().zip(found) {
        for calls in [&mut wanted, &mut got] {
            // A thread waits for another only if that has not finished.
            let is_left_out =
                |name: &str| NOT_OF_ALL.contains(&name) || ["futex", "rseq"].contains(&name);
            calls.retain(|call| !is_left_out(&call.name));
        }
        assert_eq!(names(&got, &[]), names(&wanted, &[]));
        for (wanted, got) in wanted.iter().zip(&got) {
            // Numbers of processes and threads differ.
            let is_number = matches!(
                wanted.name.as_str(),
                "getpid" | "gettid" | "set_tid_address" | "clone" | "clone3" | "wait4"
            );
            if !is_number && !wanted.result.starts_with("0x") {
                assert_eq!(got.result, wanted.result, "{wanted:?}");
                alike += 1;
            }
        }
    }
    assert!(alike > 20, "{alike}");
    let check = recording.command("check", &[]);
    assert_eq!(check.status, Status::Code(0), "{}", check.text());
}

/// A fixture behaves the same with its system calls recorded.
fn survives(fixture: &str, artifact: &str, args: &[&str], options: &[&str]) -> Comparison {
    let scratch = Scratch::new(&format!("syscalls_{artifact}"));
    let program = Program::new(fixture_artifact(fixture, artifact), scratch.path()).args(args);
    let options = [&["--syscalls"], options].concat();
    Comparison::of_program(scratch, &program, &options, Nesting::Jumps)
}

macro_rules! survives_with_its_calls_recorded {
    ($($fact:ident: $fixture:literal / $artifact:literal $([$($arg:literal),*])?;)*) => {$(
        #[test]
        fn $fact() {
            let _ = survives($fixture, $artifact, &[$($($arg),*)?], &[]);
        }
    )*};
}

survives_with_its_calls_recorded! {
    calls_in_every_way: "syscalls" / "syscalls";
    calls_of_a_static_program_in_every_way: "syscalls" / "syscalls_static";
    buffers_that_are_unmapped_meanwhile: "syscalls" / "unmapped";
    threads_that_end_by_cancellation: "thread_ends" / "thread_ends_c";
    threads_that_end_by_cancellation_with_destructors: "thread_ends" / "thread_ends_cpp";
    a_program_that_outlives_its_main_thread: "main_pthread_exit" / "main_pthread_exit";
    five_thousand_short_threads: "many_threads" / "many_threads" ["5000", "1"];
    two_hundred_threads_at_once: "many_threads" / "many_threads" ["200", "200"];
    threads_of_musl: "many_threads" / "many_threads_musl" ["200", "20"];
    spawned_programs: "spawn" / "spawn";
    small_stacks: "thread_stacks" / "thread_stacks";
    programs_that_live_on_faults: "segv_handler" / "segv_handler";
    closed_descriptors: "closes_fds" / "closes_fds" ["close"];
    programs_that_look_at_themselves: "self_view" / "self_view" ["one"];
    plugins_come_and_go: "plugin" / "plugin_host";
    exceptions: "cpp_exceptions" / "cpp_exceptions_O2";
    backtraces: "backtrace" / "backtrace_c";
}

/// Functions of the C library may be recorded too: their patches are next to those of the calls.
#[test]
fn recorded_functions_of_the_c_library_make_recorded_calls() {
    let options = ["-f", "open", "-f", "main"];
    let both = survives("syscalls", "files", &[], &options);
    let inside = both.recording.number(
        "SELECT count(*) FROM syscalls s JOIN calls c ON s.call = c.start_seq \
         WHERE c.function LIKE '%open%' AND s.name = 'openat' AND s.args LIKE '%/dev/zero%'",
    );
    assert_eq!(inside, 21, "each opening is a call of open");
}

#[test]
fn calls_that_cannot_be_recorded_are_named() {
    let both = survives("syscalls", "syscalls", &[], &[]);
    let rows = both.recording.rows(
        "SELECT function, module, reason FROM probes WHERE state = 'skipped' AND function LIKE 'system call%'",
    );
    // rt_sigreturn, and no other one.
    let mut in_libc = 0;
    for row in &rows {
        let text = |column: &str| row[column].as_str().expect("text");
        let is_return = text("function").starts_with("system call 15 in ");
        let is_told = text("reason").contains("a signal handler returns there");
        assert_eq!(is_told, is_return, "{row:?}");
        in_libc += usize::from(is_return && text("module").ends_with("libc.so.6"));
    }
    assert_eq!(in_libc, 1, "{rows:?}");
}

#[test]
fn nothing_is_recorded_that_was_not_asked_for() {
    let scratch = Scratch::new("unasked");
    let program = Program::new("/bin/true", scratch.path());
    let (_, recording) = Hindsight::record(&scratch, &[], &program);
    assert_eq!(recording.number("SELECT count(*) FROM syscalls"), 0);
    assert_eq!(recording.number("SELECT count(*) FROM files"), 0);
    let skipped = "SELECT count(*) FROM probes WHERE function LIKE 'system call%'";
    assert_eq!(recording.number(skipped), 0);
}

#[test]
fn files_have_their_bytes() {
    let scratch = Scratch::new("files");
    files_for(scratch.path());
    let program = Program::new("/bin/cp", scratch.path()).args(["words", "copy"]);
    let (_, recording) = Hindsight::record(&scratch, &["--syscalls"], &program);
    let size = i64::try_from("pear\nfig\napple\n".repeat(400).len()).expect("it is small");
    for (path, column) in [("words", "bytes_read"), ("copy", "bytes_written")] {
        let row = recording.row(&format!(
            "SELECT opened_by, {column} AS bytes, closed_seq > opened_seq AS closed FROM files WHERE path = '{path}'"
        ));
        assert_eq!(row["opened_by"], "openat", "{row:?}");
        assert_eq!(row["bytes"], size, "{row:?}");
        assert_eq!(row["closed"], true, "{row:?}");
    }
}

/// The call that created a process, and the process's status as its parent received it.
#[test]
fn processes_have_their_ends() {
    let scratch = Scratch::new("processes_table");
    let program = Program::new(fixture_artifact("happens", "happens"), scratch.path()).ending(5);
    let (_, recording) = Hindsight::record(&scratch, &["--syscalls"], &program);
    let rows = recording.rows(
        "SELECT parent, program, made_by, exit_code, exit_signal, ended_seq > seq AS waited FROM processes ORDER BY seq",
    );
    let own = recording.number("SELECT value FROM events WHERE kind = 'process_start'");
    assert_eq!(rows.len(), 4, "{rows:#?}");
    let (begun, forked) = (&rows[0], &rows[1]);
    let (spawned, executed) = (&rows[2], &rows[3]);
    let path = begun["program"].as_str().expect("text");
    assert!(path.ends_with("happens"), "{begun:#?}");
    // The recorder started it.
    assert!(
        begun["parent"]
            .as_i64()
            .is_some_and(|parent| parent > 1 && parent != own),
        "{begun:#?}"
    );
    assert_eq!(forked["parent"], own);
    assert_eq!(
        (&forked["exit_code"], &forked["waited"]),
        (&json!(3), &json!(true)),
        "{forked:#?}"
    );
    assert!(["clone", "fork"].contains(&forked["made_by"].as_str().expect("text")));
    assert_eq!(spawned["exit_code"], 0, "{spawned:#?}");
    assert!(
        ["clone3", "clone", "vfork"].contains(&spawned["made_by"].as_str().expect("text")),
        "{spawned:#?}"
    );
    assert_eq!(executed["made_by"], "execve");
    let path = executed["program"].as_str().expect("text");
    assert!(path.ends_with("happens"), "{path}");
    assert_eq!(executed["parent"], begun["parent"], "{executed:#?}");
    let called = recording.row(
        "SELECT c.function FROM processes p JOIN calls c ON c.start_seq = p.call ORDER BY p.seq LIMIT 1",
    );
    assert_eq!(called["function"], "forks");
    // Without system calls it is only known that there was one.
    let scratch = Scratch::new("processes_plain");
    let (_, recording) = Hindsight::record(&scratch, &[], &program);
    let row =
        recording.row("SELECT made_by, exit_code FROM processes ORDER BY seq LIMIT 1 OFFSET 1");
    assert_eq!(
        (&row["made_by"], row["exit_code"].is_null()),
        (&json!("fork"), true)
    );
}

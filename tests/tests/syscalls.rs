//! Goal: `record --syscalls` keeps the system calls that a program makes, all of them and in order, and the program does not
//! notice. Method: programs of Debian under strace and recorded; fixtures that make calls in every way, natively and recorded.

#[path = "syscalls/arguments.rs"]
mod arguments;
#[path = "syscalls/beside_strace.rs"]
mod beside_strace;
#[path = "syscalls/each_call.rs"]
mod each_call;

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use e2e::{Comparison, Hindsight, Nesting, Program, Scratch, Status, compiled, fixture_artifact};

use arguments::{OTHER_RESULTS, comparable, masked, same_but_for_addresses};
use beside_strace::{Call, both_ways, compared, compared_with, files_for, names, recorded, traced};

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

/// Three threads, each of which reads a file of its own and asks for one that is not there.
const THREADS: &str = "
import os, threading
files = [os.open('words', os.O_RDONLY) for n in range(3)]
def work(n):
    for k in range(4):
        os.pread(files[n], 10 * n + k, n)
    try:
        os.stat('missing%d' % n)
    except OSError:
        os.lseek(files[n], n, 0)
threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
[os.close(file) for file in files]
";
/// A thread waits for another only if that has not finished, and takes memory where the kernel has some.
const BY_CHANCE: [&str; 5] = ["futex", "mmap", "munmap", "mprotect", "madvise"];

/// The main thread is one of them.
#[test]
fn each_thread_of_python_has_its_calls_and_results_in_order() {
    let args = ["-S", "-c", THREADS];
    let (expected, found) = both_ways("/usr/bin/python3", &args, &[], &BY_CHANCE);
    assert_eq!((expected.len(), found.len()), (4, 4));
    let is_number = |name: &str| OTHER_RESULTS.contains(&name) || name.starts_with("clone");
    for (thread, (wanted, got)) in expected.iter().zip(&found).enumerate() {
        let (mut got_names, mut wanted_names) = (names(got, &[]), names(wanted, &[]));
        // Python does not wait for the ends of threads that it has joined: the program may end first.
        if thread > 0 {
            for names in [&mut got_names, &mut wanted_names] {
                let last = names.iter().rposition(|name| name == "lseek");
                names.truncate(last.expect("its last call") + 1);
            }
        }
        assert_eq!(got_names, wanted_names, "thread {thread}");
        for (wanted, got) in wanted.iter().zip(got) {
            if !is_number(&wanted.name) && !wanted.result.starts_with("0x") {
                assert_eq!(got.result, wanted.result, "thread {thread}: {wanted:?}");
            }
        }
        let reads = got.iter().filter(|call| call.name == "pread64");
        let missing = got.iter().filter(|call| call.result == "-1 ENOENT");
        if thread > 0 {
            assert_eq!((reads.count(), missing.count()), (4, 1), "thread {thread}");
        }
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

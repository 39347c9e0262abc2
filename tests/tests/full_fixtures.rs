//! Goal: what is odd in a program does not keep it from being recorded with every instruction. Method: each fixture that is odd in a way
//! of its own is recorded and run again; its output and its end are those without recording, and nothing contradicts the recording. Each run takes a third
//! of the fixtures; `WHOLE=1` all.

use std::thread;

use e2e::{Ended, Hindsight, Program, Scratch, Status, fixture_artifact, fixture_source, in_turn};

/// Odd programs that are not recorded here: fixture, artifact and why.
const LEFT_OUT: &[(&str, &str, &str)] = &[
    ("endless", "endless", "it does not end"),
    (
        "go",
        "",
        "its collector's threads wait by reading the time, and each read is a system call: docs/full.md, Limits",
    ),
    ("go_cgo", "", "as go"),
    ("go_library", "", "as go"),
    (
        "longjmp",
        "signal_jumps",
        "it waits for many signals of a timer, which comes each millisecond at most: docs/full.md, Limits",
    ),
    (
        "many_threads",
        "",
        "it takes long: one thread runs at a time",
    ),
    ("profiler", "", "as signal_jumps"),
    ("signals", "", "as signal_jumps"),
];

/// Fixture, artifact and arguments.
const PROGRAMS: &[(&str, &str, &[&str])] = &[
    ("abi_values", "abi_values_O0", &[]),
    ("changes", "changes", &[]),
    ("closes_fds", "closes_fds", &["close"]),
    ("closes_fds", "closes_fds", &["range"]),
    ("coroutines", "contexts", &[]),
    ("coroutines", "neighbours", &[]),
    ("coroutines", "switches", &[]),
    ("cpp_exceptions", "cpp_exceptions_O2", &[]),
    ("cpp_exceptions", "cpp_exceptions_static_pie", &[]),
    ("crashes", "crashes", &["abort"]),
    ("crashes", "crashes", &["segv"]),
    ("deep_recursion", "deep_recursion", &[]),
    ("exits", "exits", &["kill9", "100"]),
    ("exits", "exits", &["return", "100"]),
    ("exits", "exits", &["thread_exit", "100"]),
    ("fork", "fork", &[]),
    ("fork", "fork_static", &[]),
    ("ifunc", "ifunc", &[]),
    ("init_fini", "init_fini", &[]),
    ("inlined", "inlined_O2", &[]),
    ("ipa_ra", "ipa_ra", &[]),
    ("longjmp", "longjmp_O2", &[]),
    ("longjmp", "longjmp_musl", &[]),
    ("main_pthread_exit", "main_pthread_exit", &[]),
    ("memory_limits", "memory_limits", &["data"]),
    ("memory_limits", "memory_limits", &["space"]),
    ("no_time", "no_time", &[]),
    ("own_traps", "own_traps_O2", &[]),
    ("plugin", "plugin_host", &[]),
    ("published", "published", &[]),
    ("rust_panic", "rust_panic_O2", &[]),
    ("sandbox_threads", "sandbox_threads", &[]),
    ("sanitized", "address", &[]),
    ("seccomp", "seccomp", &[]),
    ("segv_handler", "segv_handler", &[]),
    ("self_view", "self_view", &[]),
    ("shared_library", "shared_library", &[]),
    ("spawn", "spawn", &[]),
    ("stdio", "stdio", &["mixed"]),
    ("stores", "stores_O2", &[]),
    ("strict_thread", "strict_thread", &["itself"]),
    ("strict_thread", "strict_thread", &["option"]),
    ("tail_calls", "tail_calls", &[]),
    ("thread_ends", "thread_ends_c", &[]),
    ("thread_ends", "thread_ends_static", &[]),
    ("thread_locals", "thread_locals", &[]),
    ("thread_stacks", "thread_stacks", &[]),
    ("thrown", "panicked_O2", &[]),
    ("thrown", "thrown_O2", &[]),
    ("tiny_functions", "tiny_functions", &[]),
    ("together", "together", &[]),
    ("unlimited_stack", "unlimited_stack", &[]),
    ("vector_args", "vector_args", &[]),
];

/// Records one without its calls, which other tests are about, and runs it again. Returns what is wrong.
fn wrong((fixture, artifact, args): (&str, &str, &[&str])) -> Option<String> {
    let scratch = Scratch::new(&format!("full-{artifact}"));
    let program = Program::new(fixture_artifact(fixture, artifact), scratch.path()).args(args);
    // AddressSanitizer looks for leaks by tracing the program, which has a tracer already.
    let program = program.env("ASAN_OPTIONS", "detect_leaks=0");
    let native = program.run();
    let (ended, recording) = Hindsight::record(&scratch, &["--full", "-x", "*"], &program);
    let same = |ended: &Ended| (ended.text(), ended.status.as_shell_code());
    if same(&ended) != same(&native) {
        let [recorded, native] = [&ended, &native].map(same);
        return Some(format!(
            "{artifact} {args:?}: {recorded:?} and not {native:?}: {}",
            ended.errors()
        ));
    }
    let checked = recording.command("check", &["--replay", "--json"]);
    let replay = &checked.result()["replay"];
    let is_whole = checked.status == Status::Code(0) && replay["whole"] == true;
    (!is_whole).then(|| format!("{artifact} {args:?}: {replay:#}{}", ended.errors()))
}

#[test]
fn odd_programs_are_as_recorded() {
    // Two at a time: most of them wait.
    let programs: Vec<_> = in_turn(PROGRAMS.iter().copied()).collect();
    let (first, second) = programs.split_at(programs.len() / 2);
    let found: Vec<String> = thread::scope(|threads| {
        let half = |programs: &[(&'static str, &'static str, &'static [&'static str])]| {
            let programs = programs.to_vec();
            threads.spawn(move || {
                let found = programs.into_iter().filter_map(wrong);
                found.collect::<Vec<String>>()
            })
        };
        let halves = [half(first), half(second)];
        halves
            .into_iter()
            .flat_map(|half| half.join().expect("no panic"))
            .collect()
    });
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn what_is_left_out_is_not_recorded_elsewhere_in_the_list() {
    for (fixture, artifact, why) in LEFT_OUT {
        assert!(fixture_source(fixture).is_dir(), "{fixture}");
        let is_it = |(other, of, _): &(&str, &str, &[&str])| {
            other == fixture && (artifact.is_empty() || of == artifact)
        };
        assert!(!PROGRAMS.iter().any(is_it), "{fixture}: {why}");
    }
}

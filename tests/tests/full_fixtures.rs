//! Goal: what is odd in a program does not keep it from being recorded with every instruction. Method: each fixture that is odd in a way
//! of its own is recorded and run again; its output and its end are those without recording, and nothing contradicts the recording.

use std::thread;

use e2e::{Ended, Hindsight, Program, Scratch, Status, fixture_artifact};

/// Fixture, artifact and arguments. Not among them are `signal_jumps`, whose timer fires too often, and `go` (docs/full.md, Limits), and
/// those that do not end, or take long: `endless`, `many_threads`.
const PROGRAMS: &[(&str, &str, &[&str])] = &[
    ("abi_values", "abi_values_O0", &[]),
    ("changes", "changes", &[]),
    ("coroutines", "contexts", &[]),
    ("coroutines", "neighbours", &[]),
    ("coroutines", "switches", &[]),
    ("cpp_exceptions", "cpp_exceptions_O2", &[]),
    ("cpp_exceptions", "cpp_exceptions_static_pie", &[]),
    ("deep_recursion", "deep_recursion", &[]),
    ("fork", "fork", &[]),
    ("fork", "fork_static", &[]),
    ("ifunc", "ifunc", &[]),
    ("init_fini", "init_fini", &[]),
    ("inlined", "inlined_O2", &[]),
    ("ipa_ra", "ipa_ra", &[]),
    ("longjmp", "longjmp_O2", &[]),
    ("longjmp", "longjmp_musl", &[]),
    ("main_pthread_exit", "main_pthread_exit", &[]),
    ("own_traps", "own_traps_O2", &[]),
    ("plugin", "plugin_host", &[]),
    ("published", "published", &[]),
    ("rust_panic", "rust_panic_O2", &[]),
    ("seccomp", "seccomp", &[]),
    ("segv_handler", "segv_handler", &[]),
    ("self_view", "self_view", &[]),
    ("shared_library", "shared_library", &[]),
    ("spawn", "spawn", &[]),
    ("stdio", "stdio", &["mixed"]),
    ("stores", "stores_O2", &[]),
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
    let native = program.run();
    let (ended, recording) = Hindsight::record(&scratch, &["--full", "-x", "*"], &program);
    let same = |ended: &Ended| (ended.text(), ended.status);
    if same(&ended) != same(&native) {
        let [recorded, native] = [&ended, &native].map(same);
        return Some(format!(
            "{artifact}: {recorded:?} and not {native:?}: {}",
            ended.errors()
        ));
    }
    let checked = recording.command("check", &["--replay", "--json"]);
    let replay = &checked.result()["replay"];
    let is_whole = checked.status == Status::Code(0) && replay["whole"] == true;
    (!is_whole).then(|| format!("{artifact}: {replay:#}{}", ended.errors()))
}

#[test]
fn odd_programs_are_as_recorded() {
    // Two at a time: most of them wait.
    let (first, second) = PROGRAMS.split_at(PROGRAMS.len() / 2);
    let found: Vec<String> = thread::scope(|threads| {
        let half = |programs: &'static [_]| {
            threads.spawn(move || {
                programs
                    .iter()
                    .copied()
                    .filter_map(wrong)
                    .collect::<Vec<String>>()
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

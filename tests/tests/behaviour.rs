//! Goal: any recorded program does exactly what it does natively; and its recording is sound and complete. Method: each
//! fixture runs both ways; standard output, standard error and status must be equal byte for byte; the counts of calls
//! that the fixture prints must be in the recording (see `e2e::Comparison`). Of several builds of a fixture each run takes a part;
//! `WHOLE=1` all.

use e2e::{Comparison, Nesting, Program, Scratch, fixture_artifact, in_turn};

/// Declares one test for each line `fact: fixture/artifact [arguments]`. Of several builds or ways, each run takes a third, and one
/// at least.
macro_rules! same_when_recorded {
    ($($fact:ident: $($fixture:literal / $artifact:literal $([$($arg:literal),*])?)|+;)*) => {$(
        #[test]
        fn $fact() {
            let all: Vec<(&str, &str, Vec<&str>)> =
                vec![$(($fixture, $artifact, vec![$($($arg),*)?])),+];
            for (fixture, artifact, args) in in_turn(all) {
                let _ = Comparison::of(fixture, artifact, &args);
            }
        }
    )*};
}

same_when_recorded! {
    recursion_keeps_its_results: "fib" / "fib_O2";
    a_million_calls_of_one_nanosecond_are_all_recorded: "tight" / "tight";
    cpp_exceptions_pass_through_traced_frames: "cpp_exceptions" / "cpp_exceptions_O0" | "cpp_exceptions" / "cpp_exceptions_O2";
    rust_panics_pass_through_traced_frames: "rust_panic" / "rust_panic_O2" | "rust_panic" / "rust_panic_O0";
    longjmp_leaves_many_frames: "longjmp" / "longjmp_O0" | "longjmp" / "longjmp_O2";
    pthread_exit_and_cancel_run_cleanup_handlers: "thread_ends" / "thread_ends_c";
    pthread_exit_and_cancel_run_destructors: "thread_ends" / "thread_ends_cpp";
    the_program_outlives_its_main_thread: "main_pthread_exit" / "main_pthread_exit";
    five_thousand_short_threads_are_recorded: "many_threads" / "many_threads" ["5000", "1"];
    two_hundred_threads_at_once_are_recorded: "many_threads" / "many_threads" ["200", "200"];
    vfork_spawn_system_and_popen_work: "spawn" / "spawn";
    a_hundred_thousand_frames_are_open_at_once: "deep_recursion" / "deep_recursion";
    tail_calls_keep_their_results: "tail_calls" / "tail_calls";
    variadic_functions_get_all_arguments: "varargs" / "varargs_O2" | "varargs" / "varargs_O0";
    values_of_every_class_pass_through: "abi_values" / "abi_values_O0" | "abi_values" / "abi_values_O2";
    a_program_sees_its_own_frames_in_backtraces: "backtrace" / "backtrace_c" | "backtrace" / "backtrace_c_O2";
    exceptions_in_flight_are_counted_right: "backtrace" / "backtrace_cpp";
    rust_backtraces_name_the_same_lines: "rust_backtrace" / "rust_backtrace";
    functions_before_and_after_main_are_recorded: "init_fini" / "init_fini";
    functions_chosen_at_load_time: "ifunc" / "ifunc" | "ifunc" / "ifunc_now";
    plugins_come_and_go: "plugin" / "plugin_host";
    functions_hard_to_patch_keep_working: "tiny_functions" / "tiny_functions";
    registers_that_callers_rely_on_survive: "ipa_ra" / "ipa_ra";
    vector_registers_that_callers_rely_on_survive: "ipa_ra" / "ipa_ra_avx";
    five_thousand_functions_are_traced_at_once: "many_functions" / "many_functions";
    position_independent_or_not: "layouts" / "pie" | "layouts" / "no_pie";
    // A file of its own, none, compressed, and of another version.
    whatever_debug_information_there_is: "layouts" / "stripped_debug" | "layouts" / "symbols_only" | "layouts" / "compressed" | "layouts" / "dwarf4";
    resolved_at_once_with_an_old_hash_table: "layouts" / "bind_now";
    // Landing pads, padding, and canaries.
    whatever_begins_a_function: "layouts" / "patchable" | "layouts" / "cet" | "layouts" / "stack_protector";
    address_sanitizer: "layouts" / "asan";
    // Optimised for size when it is linked, and code and data in one segment.
    however_it_is_linked: "layouts" / "sections" | "layouts" / "one_segment";
    calls_cross_between_program_and_library: "shared_library" / "shared_library";
    threads_on_stacks_of_their_own_choice: "thread_stacks" / "thread_stacks" | "thread_stacks" / "thread_stacks_no_pie";
    programs_that_live_on_faults: "segv_handler" / "segv_handler";
    all_descriptors_closed: "closes_fds" / "closes_fds" ["close"] | "closes_fds" / "closes_fds" ["closefrom"] | "closes_fds" / "closes_fds" ["range"];
    descriptors_replaced: "closes_fds" / "closes_fds" ["dup"];
    a_program_sees_its_own_arguments_environment_and_limits: "self_view" / "self_view" ["one", "two words", ""];
    typed_values: "typed_args" / "typed_args_O2";
}

#[test]
fn forked_children_work_and_stay_out_of_the_recording() {
    let _ = Comparison::of_with("fork", "fork", &[], Nesting::Proper, |p| p.ending(3));
}

#[test]
fn a_program_that_forbids_itself_system_calls() {
    let _ = Comparison::of_with("seccomp", "seccomp", &[], Nesting::Proper, |p| p.ending(31));
}

/// How often a handler runs depends on the time: at least as often as the program waits for.
fn assert_handled(mode: &str, at_least: i64) {
    for artifact in in_turn(["signals_O0", "signals_O2"]) {
        let both = Comparison::of("signals", artifact, &[mode]);
        let handled = both.recording.calls_of("in_handler");
        assert!(handled >= at_least, "{artifact}: {handled}");
    }
}

#[test]
fn handlers_run_traced_functions() {
    assert_handled("same", 4000);
}

#[test]
fn handlers_run_on_their_own_stack() {
    assert_handled("alt", 4000);
}

#[test]
fn handlers_run_in_several_threads() {
    assert_handled("threads", 3000);
}

/// AVX2 is required.
#[test]
fn wide_vectors_survive() {
    let both = Comparison::of("vector_args", "vector_args", &[]);
    let text = both.native.text();
    assert!(
        text.starts_with("avx2 1 "),
        "a processor with AVX2 is needed: {text}"
    );
    assert_eq!(both.recording.calls_of("add256"), 1000);
}

#[test]
fn masks_and_the_widest_vectors_survive_where_the_processor_has_them() {
    let both = Comparison::of("vector_args", "vector_args", &[]);
    let text = both.native.text();
    let has_them = is_x86_feature_detected!("avx512bw");
    assert_eq!(text.contains(" avx512 1 "), has_them, "{text}");
    let calls = if has_them { 1000 } else { 0 };
    assert_eq!(both.recording.calls_of("add512"), calls);
}

/// 3,000 jumps, many out of the writing of a record.
#[test]
fn handlers_jump_out_of_whatever_they_interrupt() {
    let _ = Comparison::of_with("longjmp", "signal_jumps", &[], Nesting::Jumps, |p| p);
}

#[test]
fn coroutines_by_swapcontext_run_on_heap_stacks() {
    let _ = Comparison::of_with("coroutines", "contexts", &[], Nesting::Coroutines, |p| p);
}

#[test]
fn coroutines_switched_by_hand_throw_on_their_own_stacks() {
    let _ = Comparison::of_with("coroutines", "switches", &[], Nesting::Coroutines, |p| p);
}

#[test]
fn an_unlimited_stack_moves_everything_and_changes_nothing() {
    let scratch = Scratch::new("unlimited");
    let path = fixture_artifact("unlimited_stack", "unlimited_stack");
    // The limit is inherited: the shell lifts it for all its children, the recorder included.
    let program = Program::new(path, scratch.path());
    let native = program
        .wrapped(
            "/bin/sh".as_ref(),
            ["-c", "ulimit -s unlimited; exec \"$0\""],
        )
        .run();
    assert!(native.text().starts_with("unlimited 1\n"), "{native:?}");
    let lift = ["-c", "ulimit -s unlimited; exec \"$0\" \"$@\""];
    let record = e2e::Hindsight::record_command(&scratch, "rec", &[], &program)
        .wrapped("/bin/sh".as_ref(), lift);
    let recorded = record.run();
    assert_eq!(native.text(), recorded.text(), "{}", recorded.errors());
    assert_eq!(native.status, recorded.status);
    assert_eq!(
        e2e::Recording::new(scratch.join("rec.hindsight")).calls_of("climb"),
        152_002
    );
}

#[test]
fn a_daemon_outlives_its_recording() {
    let scratch = Scratch::new("daemon");
    let file = scratch.join("result");
    let program = Program::new(fixture_artifact("closes_fds", "closes_fds"), scratch.path())
        .args(["daemon".as_ref(), file.as_os_str()]);
    let result = || {
        e2e::wait_until("the daemon's result", || {
            std::fs::read_to_string(&file).ok()
        })
    };
    let native = program.run();
    let native_result = result();
    std::fs::remove_file(&file).expect("the daemon has written it");
    let (recorded, recording) = e2e::Hindsight::record(&scratch, &[], &program);
    assert_eq!(native.status, recorded.status, "{}", recorded.errors());
    assert_eq!(native_result, result());
    assert_eq!(recording.calls_of("mix"), 20_000, "only the parent's");
}

/// A handler that walks the stack may find the thread in one of our stubs, which have no unwind tables: such a walk ends
/// there, and never goes wrong. The number of early ends depends on the time that the program spends in stubs: this one does
/// little else, and half of its walks or more are complete. docs/transparency.md describes this.
#[test]
fn half_of_the_walks_of_a_profiler_or_more_find_their_way() {
    for artifact in in_turn(["profiler_O0", "profiler_O2"]) {
        let scratch = Scratch::new(artifact);
        let program = Program::new(fixture_artifact("profiler", artifact), scratch.path());
        assert_eq!(program.run().text(), "broken 0 of 3000\n", "natively");
        let (recorded, recording) = e2e::Hindsight::record(&scratch, &[], &program);
        let text = recorded.text();
        let broken: u32 = text
            .strip_prefix("broken ")
            .and_then(|rest| rest.strip_suffix(" of 3000\n"))
            .and_then(|number| number.parse().ok())
            .unwrap_or_else(|| panic!("{text}{}", recorded.errors()));
        assert!(broken <= 1500, "{broken} of 3000 walks ended early");
        assert_eq!(recording.command("check", &[]).status, e2e::Status::Code(0));
    }
}

/// Without names there is little to trace, but the program's behaviour must not change.
#[test]
fn a_stripped_program_behaves_the_same() {
    let scratch = Scratch::new("stripped");
    let program = Program::new(fixture_artifact("layouts", "stripped"), scratch.path());
    let native = program.run();
    let (recorded, recording) = e2e::Hindsight::record(&scratch, &[], &program);
    assert_eq!(native.text(), recorded.text(), "{}", recorded.errors());
    assert_eq!(native.status, recorded.status);
    assert_eq!(
        recording.number("SELECT count(*) FROM events WHERE kind = 'process_exit'"),
        1
    );
}

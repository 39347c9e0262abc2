//! Goal: programs that Frida cannot be loaded into are recorded like others: static ones, position-independent or not, those
//! of musl, and Go's. Method: as in `behaviour`, each runs both ways; live control, attaching and a killed recorder are
//! tested again with them. For Go only entries are recorded, which are compared with the program's own counts.
//! Of several builds of a program each run takes a part; `WHOLE=1` all.

use e2e::{
    Comparison, Hindsight, Live, Nesting, Program, Recording, Scratch, Signal, Status, Steady,
    compiled, fixture_artifact, in_turn, wait_until,
};

/// Declares one test for each line `fact: fixture/artifact [arguments]`.
macro_rules! same_when_recorded {
    ($($fact:ident: $fixture:literal / $artifact:literal $([$($arg:literal),*])?;)*) => {$(
        #[test]
        fn $fact() {
            let _ = Comparison::of($fixture, $artifact, &[$($($arg),*)?]);
        }
    )*};
}

same_when_recorded! {
    a_static_program: "fib" / "fib_static";
    a_static_position_independent_program: "fib" / "fib_static_pie";
    a_static_program_of_musl: "fib" / "fib_musl";
    a_program_of_musl_with_its_linker: "fib" / "fib_musl_shared";
    layouts_static: "layouts" / "static";
    layouts_static_pie: "layouts" / "static_pie";
    exceptions_pass_through_traced_frames: "cpp_exceptions" / "cpp_exceptions_static";
    exceptions_pass_where_the_program_may_lie_anywhere: "cpp_exceptions" / "cpp_exceptions_static_pie";
    longjmp_leaves_many_frames: "longjmp" / "longjmp_static";
    longjmp_of_musl_leaves_many_frames: "longjmp" / "longjmp_musl";
    handlers_run_traced_functions: "signals" / "signals_static" ["same"];
    handlers_run_on_their_own_stack: "signals" / "signals_static" ["alt"];
    handlers_run_in_several_threads: "signals" / "signals_static" ["threads"];
    pthread_exit_and_cancel_run_cleanup_handlers: "thread_ends" / "thread_ends_static";
    two_thousand_short_threads: "many_threads" / "many_threads_static" ["2000", "1"];
    two_hundred_threads_at_once: "many_threads" / "many_threads_static" ["200", "200"];
    two_thousand_short_threads_of_musl: "many_threads" / "many_threads_musl" ["2000", "1"];
    vfork_spawn_system_and_popen_work: "spawn" / "spawn_static";
    vfork_spawn_system_and_popen_of_musl_work: "spawn" / "spawn_musl";
    output_of_stdio: "stdio" / "stdio_static";
    output_of_the_stdio_of_musl: "stdio" / "stdio_musl";
}

#[test]
fn forked_children_stay_out_of_the_recording() {
    let ending = |program: Program| program.ending(3);
    let _ = Comparison::of_with("fork", "fork_static", &[], Nesting::Proper, ending);
}

#[test]
fn what_it_prints_is_in_the_recording() {
    for artifact in in_turn(["fib_static", "fib_static_pie", "fib_musl"]) {
        let comparison = Comparison::of("fib", artifact, &[]);
        let recorded = comparison.recording.output("stdout");
        assert_eq!(recorded, comparison.native.stdout, "{artifact}");
        let denied = "SELECT count(*) FROM events WHERE kind = 'warning' AND text LIKE 'what the program prints%'";
        assert_eq!(comparison.recording.number(denied), 0, "{artifact}");
    }
}

/// The C library and the unwinder are then functions of the program itself.
#[test]
fn a_static_program_without_debug_information_is_recorded_whole() {
    let scratch = Scratch::new("symbols");
    let path = fixture_artifact("thread_ends", "thread_ends_symbols");
    let program = Program::new(path, scratch.path());
    let native = program.run();
    assert_eq!(native.status, Status::Code(0), "{}", native.errors());
    let (recorded, recording) = Hindsight::record(&scratch, &[], &program);
    assert_eq!(native.text(), recorded.text(), "{}", recorded.errors());
    assert_eq!(native.status, recorded.status, "{}", recorded.errors());
    // It has several names, one of which is shown.
    let threads = "SELECT count(*) FROM calls WHERE function LIKE '%pthread_create%'";
    assert_eq!(recording.number(threads), 200);
    let refused = "SELECT count(DISTINCT function) FROM probes WHERE state = 'skipped' AND function IN \
                   ('_Unwind_RaiseException', '_Unwind_Resume', '_Unwind_ForcedUnwind', '_Unwind_Backtrace')";
    assert_eq!(recording.number(refused), 4, "entries of the unwinder");
    assert_eq!(recording.command("check", &[]).status, Status::Code(0));
}

/// Static, and position-independent: then it names a dynamic linker but does not need it.
#[test]
fn entries_of_go_functions_are_recorded() {
    for artifact in in_turn(["counts", "counts_pie"]) {
        assert_entries_of_go(artifact);
    }
}

fn assert_entries_of_go(artifact: &str) {
    let scratch = Scratch::new(&format!("go-{artifact}"));
    let program = Program::new(fixture_artifact("go", artifact), scratch.path());
    let native = program.run();
    assert_eq!(native.status, Status::Code(7), "{}", native.errors());
    let (recorded, recording) = Hindsight::record(&scratch, &[], &program);
    assert_eq!(native.text(), recorded.text(), "{}", recorded.errors());
    assert_eq!(native.status, recorded.status, "{}", recorded.errors());
    let mut counted = 0;
    for line in native.text().lines() {
        let words: Vec<&str> = line.split(' ').collect();
        if let ["calls", name, count] = words[..] {
            let expected: i64 = count.parse().expect("a number");
            assert_eq!(recording.calls_of(name), expected, "{name}");
            counted += 1;
        }
    }
    assert_eq!(counted, 12);
    let told =
        "SELECT count(*) FROM probes WHERE state = 'armed' AND reason NOT LIKE 'only entries%'";
    assert_eq!(recording.number(told), 0);
    let known = "SELECT count(*) FROM calls WHERE unwound OR parent IS NOT NULL OR end_seq IS NOT NULL \
                 OR dur_ns IS NOT NULL OR self_ns IS NOT NULL OR ret IS NOT NULL OR args <> '?'";
    assert_eq!(recording.number(known), 0);
    let ends = "SELECT count(*) FROM events WHERE kind = 'leave'";
    assert_eq!(recording.number(ends), 0);
    let times = "SELECT count(*) FROM report WHERE self_ns IS NOT NULL OR inclusive_ns IS NOT NULL";
    assert_eq!(recording.number(times), 0);
    let report = recording.command("report", &[]);
    assert!(
        report.text().contains("times and callers are not known"),
        "{}",
        report.text()
    );
    let warned = "SELECT count(*) FROM events WHERE kind = 'warning' AND text LIKE 'of Go functions only entries%'";
    assert_eq!(recording.number(warned), 1);
    let runtime = "SELECT count(*) FROM calls WHERE function LIKE 'runtime.%'";
    assert_eq!(recording.number(runtime), 0);
    assert_eq!(recording.command("check", &[]).status, Status::Code(0));
}

#[test]
fn a_static_program_stops_at_main_and_steps() {
    for artifact in in_turn(["control_static", "control_musl"]) {
        let path = fixture_artifact("control", artifact);
        let live = Live::started("static_control", &["--break", "main"], &path, &[]);
        assert_eq!(live.print("argc"), "1", "{artifact}");
        let stop = live.moved(&["step"]);
        assert_eq!(stop["function"], "main", "{artifact}: {stop}");
        assert_eq!(live.run_to_end(), 7, "{artifact}");
    }
}

/// The second one finds the remains of the first one in the program.
#[test]
fn a_static_program_is_attached_to_twice() {
    let scratch = Scratch::new("attached");
    let steady = Steady::new(&scratch);
    let program = steady.built_as("steady_static", &scratch, 0).args(["100"]);
    let running = program.start();
    wait_until("the program's work", || {
        (steady.rounds() > 100).then_some(())
    });
    for name in ["first", "second"] {
        let path = scratch.join(name);
        let pid = running.pid().to_string();
        let target = path.to_str().expect("paths of tests are text");
        let words = ["record", "--attach", &pid, "--for", "0.3", "-o", target];
        let ended = Hindsight::command(&scratch, &words).run();
        assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
        let recording = Recording::new(scratch.join(&format!("{name}.hindsight")));
        assert!(
            recording.calls_of("churn") > 10,
            "{name}: {}",
            ended.errors()
        );
        assert_eq!(recording.number("SELECT count(*) FROM gaps"), 0, "{name}");
    }
    steady.stop();
    assert_eq!(running.finish().status, Status::Code(21));
    assert_eq!(steady.wrong(), 0);
}

#[test]
fn a_static_program_outlives_its_recorder() {
    let scratch = Scratch::new("outlives");
    let steady = Steady::new(&scratch);
    let program = steady.built_as("steady_static", &scratch, 0).args(["100"]);
    let (running, recording) = Hindsight::start_recording(&scratch, &[], &program);
    wait_until("the program's work", || (steady.rounds() > 0).then_some(()));
    wait_until("its calls in the recording", || {
        (recording.calls_of("churn") > 100).then_some(())
    });
    running.signal(Signal::KILL);
    let before = steady.rounds();
    wait_until("more of its work", || {
        (steady.rounds() > before + 100).then_some(())
    });
    steady.stop();
    wait_until("the program's end", || steady.has_finished().then_some(()));
    assert_eq!(steady.wrong(), 0);
    assert_eq!(running.finish().status, Status::Signal(9));
    assert!(recording.calls_of("churn") > 100);
}

#[test]
fn a_dynamic_linker_that_is_run_by_name_is_refused() {
    let scratch = Scratch::new("linker");
    let linker = std::path::PathBuf::from("/lib64/ld-linux-x86-64.so.2");
    let program = Program::new(linker, scratch.path()).args(["/bin/true"]);
    let ended = Hindsight::record_command(&scratch, "rec", &[], &program).run();
    assert_eq!(ended.status, Status::Code(4), "{}", ended.errors());
    assert!(
        ended.errors().contains("it is a library"),
        "{}",
        ended.errors()
    );
}

/// While the runtime is loaded, the program waits in a loop at its first instruction, which is longer than these functions.
#[test]
fn functions_right_behind_the_entry_are_recorded() {
    let source = "int v;\n__asm__(\".globl _start\\n_start: call f\\n mov %eax, %edi\\n mov $60, %eax\\n syscall\\n\");\n\
        __attribute__((noinline, used)) int g(int x) { v += x; return x * 3; }\n\
        __attribute__((noinline, used)) int f(void) { return g(2) + g(3); }\n";
    let scratch = Scratch::new("behind_entry");
    let flags = [
        "-O1",
        "-g",
        "-nostdlib",
        "-static",
        "-fno-asynchronous-unwind-tables",
    ];
    let path = compiled(&scratch, "bare.c", source, &flags);
    let program = Program::new(path, scratch.path());
    assert_eq!(program.run().status, Status::Code(15));
    let (recorded, recording) = Hindsight::record(&scratch, &[], &program);
    assert_eq!(recorded.status, Status::Code(15), "{}", recorded.errors());
    let rows = recording.rows("SELECT function FROM calls ORDER BY start_seq");
    let called: Vec<&str> = rows
        .iter()
        .filter_map(|row| row["function"].as_str())
        .collect();
    assert_eq!(called, ["f", "g", "g"]);
    let changed = "SELECT count(*) FROM events WHERE kind = 'warning' AND text LIKE '%in memory%'";
    assert_eq!(recording.number(changed), 0);
}

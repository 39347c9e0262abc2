//! Goal: for any end of a program, `record` ends with its status and the recording holds all that it did. Method: the
//! fixture counts its finished calls in a shared file that outlives it.

use e2e::{
    Hindsight, Program, Recording, Scratch, Signal, Status, fixture_artifact, split_own_lines,
};
use std::path::Path;
use std::time::Duration;

const CALLS: i64 = 30_000;

fn exits(scratch: &Scratch, how: &str, calls: i64, counter: &Path) -> Program {
    Program::new(fixture_artifact("exits", "exits"), scratch.path()).args([
        how.to_owned(),
        calls.to_string(),
        counter.display().to_string(),
    ])
}

/// Calls that the program has counted; 0 before it has created the file.
fn count_in(file: &Path) -> i64 {
    let bytes = std::fs::read(file).unwrap_or_default();
    bytes
        .first_chunk()
        .map_or(0, |word| i64::from_le_bytes(*word))
}

/// Ends the program in this way, natively and recorded; returns the recording.
fn check_end(how: &str, expected: Status) -> (Scratch, Recording) {
    let scratch = Scratch::new(how);
    let native = exits(&scratch, how, CALLS, &scratch.join("native")).run();
    assert_eq!(native.status, expected);
    let counter = scratch.join("counter");
    let (recorded, recording) =
        Hindsight::record(&scratch, &[], &exits(&scratch, how, CALLS, &counter));
    let (their_errors, own) = split_own_lines(&recorded.stderr);
    assert_eq!(
        recorded.status,
        Status::Code(expected.as_shell_code()),
        "{own:?}"
    );
    assert_eq!(native.text(), recorded.text());
    assert_eq!(native.errors(), String::from_utf8_lossy(&their_errors));
    assert_eq!(count_in(&counter), CALLS);
    let begun = recording.number("SELECT count(*) FROM calls WHERE function = 'do_work'");
    assert_eq!(begun, 1, "do_work was entered");
    assert!(
        recording.calls_of("work") >= CALLS,
        "{} of {CALLS} calls",
        recording.calls_of("work")
    );
    assert_eq!(recording.number("SELECT count(*) FROM gaps"), 0);
    assert_eq!(recording.command("check", &[]).status, Status::Code(0));
    (scratch, recording)
}

/// Declares one test for each line `fact: how, code N` or `fact: how, signal N "NAME"`.
macro_rules! ends {
    ($($fact:ident: $how:literal, code $code:literal;)*) => {$(
        #[test]
        fn $fact() {
            let (_scratch, recording) = check_end($how, Status::Code($code));
            assert_eq!(recording.number("SELECT value FROM events WHERE kind = 'process_exit'"), $code);
        }
    )*};
    ($($fact:ident: $how:literal, signal $number:literal $name:literal;)*) => {$(
        #[test]
        fn $fact() {
            let (_scratch, recording) = check_end($how, Status::Signal($number));
            let row = recording.row("SELECT aux FROM events WHERE kind = 'process_exit'");
            assert_eq!(row["aux"], $name);
        }
    )*};
}

ends! {
    returning_from_main: "return", code 17;
    calling_exit_with_handlers: "exit", code 18;
    calling_underscore_exit: "_exit", code 19;
    calling_exit_group_by_hand: "raw_exit", code 20;
    calling_quick_exit: "quick_exit", code 21;
    calling_exit_in_a_thread: "thread_exit", code 23;
}

ends! {
    dying_by_a_bad_pointer: "segv", signal 11 "SIGSEGV";
    dying_by_ones_own_sigkill: "kill9", signal 9 "SIGKILL";
    dying_by_sigterm: "term", signal 15 "SIGTERM";
    dying_by_abort: "abort", signal 6 "SIGABRT";
    dying_by_a_trap: "trap", signal 5 "SIGTRAP";
    dying_by_an_illegal_instruction: "ill", signal 4 "SIGILL";
    dying_by_division: "fpe", signal 8 "SIGFPE";
    dying_by_stack_overflow: "overflow", signal 11 "SIGSEGV";
    dying_by_abort_in_a_thread: "thread_abort", signal 6 "SIGABRT";
    dying_by_a_bad_pointer_in_a_thread: "thread_segv", signal 11 "SIGSEGV";
}

/// Another process kills the program with SIGKILL while it works: every call that it had counted is in the recording.
#[test]
fn a_killed_program_loses_nothing_it_had_done() {
    for wanted in [1_000, 200_000, 700_000] {
        let scratch = Scratch::new("killed");
        let counter = scratch.join("counter");
        let (running, recording) = Hindsight::start_recording(
            &scratch,
            &[],
            &exits(&scratch, "return", 1 << 40, &counter),
        );
        e2e::wait_until("calls to be made", || {
            (count_in(&counter) >= wanted).then_some(())
        });
        let pid = e2e::wait_until("the program", || pid_of(&counter));
        e2e::kill(pid, e2e::Signal::KILL);
        let ended = running.finish();
        assert_eq!(ended.status, Status::Code(137), "{}", ended.errors());
        let counted = count_in(&counter);
        let finished =
            recording.number("SELECT count(*) FROM calls WHERE function = 'work' AND NOT unwound AND end_seq IS NOT NULL");
        assert!(
            (0..=2).contains(&(finished - counted)),
            "counted {counted}, recorded {finished}"
        );
        assert_eq!(recording.command("check", &[]).status, Status::Code(0));
    }
}

/// The process that has the file mapped, other than this one.
fn pid_of(mapped: &Path) -> Option<i32> {
    let name = mapped.to_str()?;
    std::fs::read_dir("/proc")
        .ok()?
        .flatten()
        .find_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let maps = std::fs::read_to_string(entry.path().join("maps")).ok()?;
            maps.contains(name).then_some(pid)
        })
}

/// Ctrl-C reaches the program too, at any moment of the start, also while it is prepared.
#[test]
fn a_signal_while_the_recording_begins_is_told() {
    let scratch = Scratch::new("early-signal");
    for delay in (0..16).map(|step| Duration::from_millis(25 * step)) {
        let words = ["record", "-o", "early", "--", "sleep", "20"];
        let recorder = Program::new(Hindsight::path(), scratch.path()).args(words);
        let running = recorder.start();
        std::thread::sleep(delay);
        running.signal_group(Signal::INT);
        let ended = running.finish();
        let recording = scratch.join("early.hindsight");
        let told = match (recording.exists(), ended.status) {
            (true, _) => "SIGINT ended the program",
            // It was itself killed before it had a program.
            (false, Status::Signal(2)) => continue,
            (false, _) => {
                "error: cannot record sleep: signal 2 ended it before its recording began"
            }
        };
        assert_eq!(
            ended.status,
            Status::Code(130),
            "{delay:?}: {}",
            ended.errors()
        );
        assert!(
            ended.errors().contains(told),
            "{delay:?}: {}",
            ended.errors()
        );
        if recording.exists() {
            std::fs::remove_dir_all(&recording).expect("it can be removed");
        }
    }
}

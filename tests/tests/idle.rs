//! Goal: while there is nothing to do, Hindsight does nothing. Method: the kernel counts how often each of our threads has waited; over
//! two seconds in which the program sleeps or is stopped, these counts hardly change.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use e2e::{Hindsight, Live, Program, Scratch, Signal, wait_until};

const WATCHED: Duration = Duration::from_secs(2);
/// A recorder checks the rings of a running program at least every 50 ms, with one or two waits each.
const OF_RUNNING: u64 = 100;
/// If nothing runs, there is nothing to check.
const OF_STANDING: u64 = 10;

/// The number of waits of a process's threads.
fn waits(pid: i32) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("the process lives");
    let of = |task: &Path| {
        let status = fs::read_to_string(task.join("status")).unwrap_or_default();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        line.map_or(0, |count| count.trim().parse::<u64>().expect("a number"))
    };
    tasks.flatten().map(|task| of(&task.path())).sum()
}

/// Waits until a process waits at most this often in [`WATCHED`], and as often in a longer time on a busy machine.
fn check_rests(pid: i32, most: u64) {
    let began = Instant::now();
    wait_until("the process rests", || {
        let (since, before) = (Instant::now(), waits(pid));
        std::thread::sleep(WATCHED);
        let count = waits(pid) - before;
        let times = since.elapsed().as_secs_f64() / WATCHED.as_secs_f64();
        eprintln!("{count} waits after {:?}", began.elapsed());
        (count as f64 <= most as f64 * times).then_some(())
    });
}

#[test]
fn a_session_whose_program_is_stopped_does_not_wake() {
    let live = Live::started(
        "idle_stopped",
        &["--stop-on-entry"],
        Path::new("/bin/sleep"),
        &["1000"],
    );
    check_rests(live.daemon().expect("it serves"), OF_STANDING);
}

#[test]
fn a_session_whose_program_sleeps_hardly_wakes() {
    let live = Live::started("idle_left", &[], Path::new("/bin/sleep"), &["1000"]);
    check_rests(live.daemon().expect("it serves"), OF_RUNNING);
}

#[test]
fn the_recorder_of_a_program_that_sleeps_hardly_wakes() {
    let scratch = Scratch::new("idle_recorder");
    let program = Program::new("/bin/sleep", scratch.path()).args(["1000"]);
    let (recorder, _) = Hindsight::start_recording(&scratch, &[], &program);
    check_rests(recorder.pid(), OF_RUNNING);
    // The program gets it too.
    recorder.signal(Signal::TERM);
    let ended = recorder.finish();
    assert!(ended.errors().contains("recorded"), "{ended:?}");
}

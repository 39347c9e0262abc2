//! Goal: Ctrl-C while a recording is sealed ends at once and loses nothing, and so does SIGTERM. Method: a program with so many calls that
//! sealing continues after its end, whose recorder is then interrupted; and opening the recording of a killed recorder.

use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use e2e::{Hindsight, Program, Recording, Scratch, fixture_artifact, wait_until};
use rustix::process::Signal;

/// The children of a process.
fn children(pid: i32) -> String {
    let path = format!("/proc/{pid}/task/{pid}/children");
    std::fs::read_to_string(path).unwrap_or_default()
}

/// The length of a recording's log on disk.
fn log_bytes(recording: &Recording) -> u64 {
    let files = std::fs::read_dir(recording.path().join("log"));
    let files = files.into_iter().flatten().flatten();
    let lengths = files.filter_map(|file| file.metadata().ok());
    lengths.map(|length| length.blocks() * 512).sum()
}

#[test]
fn sealing_behind_the_program_is_left_with_its_exit_code() {
    // On a fast machine little is left to seal after the end; on a busy one the recorder begins with it later.
    for (n, wait_ms) in [
        ("31", 30),
        ("34", 30),
        ("36", 30),
        ("36", 300),
        ("36", 1000),
    ] {
        let scratch = Scratch::new("left_behind");
        let program = Program::new(fixture_artifact("fib", "fib_O2"), scratch.path()).args([n]);
        let (recorder, recording) = Hindsight::start_recording(&scratch, &["-f", "fib"], &program);
        let pid = recorder.pid();
        wait_until("the program has begun", || {
            (!children(pid).is_empty()).then_some(())
        });
        wait_until("the program has ended", || {
            children(pid).trim().is_empty().then_some(())
        });
        std::thread::sleep(Duration::from_millis(wait_ms));
        let sent = Instant::now();
        recorder.signal(Signal::INT);
        let ended = recorder.finish();
        let errors = ended.errors();
        if !errors.contains("sealing was interrupted") {
            assert!(errors.contains(" calls, "), "{errors}");
            continue;
        }
        assert!(sent.elapsed() < Duration::from_secs(60), "at once");
        assert_eq!(ended.status.as_shell_code(), 0, "the program's own");
        let told = ended.text();
        let (_, calls) = told.split_once("calls fib ").expect("it says how many");
        let calls: i64 = calls.trim().parse().expect("a number");
        assert_eq!(recording.calls_of("fib"), calls, "nothing is lost");
        let check = recording.command("check", &[]);
        assert_eq!(check.status.as_shell_code(), 0, "{}", check.text());
        // The opening has gone on: everything is sealed, and the log is no longer needed.
        let log = std::fs::read_dir(recording.path().join("log")).expect("a folder");
        assert_eq!(log.count(), 0, "{}", check.text());
        return;
    }
    panic!("sealing has never gone on behind the end");
}

#[test]
fn an_opening_is_left_and_leaves_nothing_behind() {
    let scratch = Scratch::new("left_opening");
    let program = Program::new(fixture_artifact("fib", "fib_O2"), scratch.path()).args(["41"]);
    let (recorder, recording) = Hindsight::start_recording(&scratch, &["-f", "fib"], &program);
    let pid = recorder.pid();
    wait_until("the program has begun", || {
        (!children(pid).is_empty()).then_some(())
    });
    wait_until("a log whose sealing takes seconds", || {
        (log_bytes(&recording) > 600_000_000).then_some(())
    });
    recorder.signal(Signal::KILL);
    drop(recorder.finish());
    let temp = scratch.join("temp");
    std::fs::create_dir(&temp).expect("the folder is writable");
    let path = recording.path().to_str().expect("text");
    let sql = ["sql", path, "SELECT count(*) FROM calls"];
    let export = ["export", path, "--to", "lake", "--table", "runs"];
    let is_there = || std::fs::read_dir(&temp).is_ok_and(|mut files| files.next().is_some());
    for (args, signal, code, told) in [
        (
            &sql[..],
            Signal::INT,
            130,
            "the recording can be opened again",
        ),
        (&sql[..], Signal::TERM, 143, ""),
        (&export[..], Signal::TERM, 143, "ended by SIGTERM"),
    ] {
        let opening = Hindsight::command(&scratch, args)
            .env("TMPDIR", &temp)
            .start();
        wait_until("it seals", || is_there().then_some(()));
        std::thread::sleep(Duration::from_millis(250));
        opening.signal(signal);
        let ended = opening.finish();
        let errors = ended.errors();
        assert_eq!(ended.status.as_shell_code(), code, "{signal:?}: {errors}");
        assert!(errors.contains(told), "{signal:?}: {errors}");
        assert!(!is_there(), "{signal:?}: nothing is left behind");
    }
    assert!(!scratch.join("lake").exists(), "nothing was exported");
}

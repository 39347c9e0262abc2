//! Goal: a recording with a limit ends when it has that size, and the program does not notice. Method: a program whose calls would
//! take many times as much is recorded, and compared with its native run.

use std::path::{Path, PathBuf};

use e2e::{Hindsight, Program, Recording, Scratch, Signal, Status, compiled, wait_until};

/// Makes so many calls, or as many as it can until SIGTERM.
const PROGRAM: &str = "#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
static volatile sig_atomic_t seen;
static void on(int signal) { seen = signal; }
__attribute__((noinline)) long step(long n) { __asm__ volatile(\"\"); return n * 6364136223846793005 + 1; }
int main(int argc, char **argv) {
    long calls = argc > 1 ? atol(argv[1]) : -1, at = 1;
    signal(SIGTERM, on);
    for (long i = 0; i != calls && !seen; i++) at = step(at);
    printf(\"%ld %d\\n\", at, (int)seen);
    return 7;
}
";

/// Some 700 MB, and 48 B in the log.
const CALLS: &str = "15000000";

fn program(scratch: &Scratch) -> PathBuf {
    compiled(scratch, "steps.c", PROGRAM, &["-O1", "-g"])
}

fn bytes(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).expect("it is a folder");
    let entries = entries.map(|entry| entry.expect("it can be read"));
    let sizes = entries.map(|entry| match entry.metadata().expect("it can be read") {
        found if found.is_dir() => bytes(&entry.path()),
        found => found.len(),
    });
    sizes.sum()
}

/// It has the first calls and says why there are no more.
fn ends_at_its_size(recording: &Recording) {
    let calls = recording.calls_of("step");
    assert!((100_000..14_000_000).contains(&calls), "{calls}");
    let size = bytes(recording.path());
    assert!((1 << 20..500 << 20).contains(&size), "{size}");
    let told = recording
        .rows("SELECT text FROM events WHERE kind = 'warning' AND text LIKE '%--max-size%'");
    assert_eq!(told.len(), 1, "{told:?}");
    let last = recording.row("SELECT kind FROM events ORDER BY seq DESC LIMIT 1");
    assert_eq!(last["kind"], "detached");
    let check = recording.command("check", &[]);
    assert_eq!(check.status, Status::Code(0), "{}", check.text());
}

#[test]
fn a_recording_ends_at_its_size_and_the_program_goes_on() {
    let scratch = Scratch::new("max_size");
    let program = Program::new(program(&scratch), scratch.path()).args([CALLS]);
    let native = program.run();
    assert_eq!(native.status, Status::Code(7));
    let (ended, recording) = Hindsight::record(&scratch, &["--max-size", "20MB"], &program);
    assert_eq!((ended.status, ended.text()), (native.status, native.text()));
    let said = ended.errors();
    let words = [
        "the recording ends here: it takes ",
        " MB, and --max-size is 20 MB; the program continues unrecorded",
    ];
    assert!(words.iter().all(|word| said.contains(word)), "{said}");
    ends_at_its_size(&recording);
    let open = "SELECT count(*) FROM calls WHERE function = 'main' AND end_seq IS NULL";
    assert_eq!(recording.number(open), 1, "its end is not known");
}

#[test]
fn logpoints_end_with_the_recording() {
    let scratch = Scratch::new("max_size_logpoint");
    let program = Program::new(program(&scratch), scratch.path()).args([CALLS]);
    let native = program.run();
    let options = ["--max-size", "20MB", "--logpoint", "main", "argc {argc}"];
    let (ended, recording) = Hindsight::record(&scratch, &options, &program);
    assert_eq!((ended.status, ended.text()), (native.status, native.text()));
    ends_at_its_size(&recording);
    let logged = recording.rows("SELECT text FROM events WHERE kind = 'logpoint'");
    assert_eq!(logged.len(), 1);
    assert_eq!(logged[0]["text"], "argc 2");
}

#[test]
fn signals_reach_a_program_that_outlives_its_recording() {
    let scratch = Scratch::new("max_size_signal");
    let program = Program::new(program(&scratch), scratch.path());
    let (running, recording) =
        Hindsight::start_recording(&scratch, &["--max-size", "20MB"], &program);
    wait_until("the recording is closed", || {
        let state = recording.command("info", &["--json"]);
        (state.status == Status::Code(0) && state.result()["state"] == "closed").then_some(())
    });
    running.signal(Signal::TERM);
    let ended = running.finish();
    assert_eq!(ended.status, Status::Code(7), "{}", ended.errors());
    assert!(ended.text().ends_with(" 15\n"), "{}", ended.text());
    ends_at_its_size(&recording);
}

#[test]
fn an_attached_recording_ends_at_its_size() {
    let scratch = Scratch::new("max_size_attach");
    let running = Program::new(program(&scratch), scratch.path()).start();
    let pid = running.pid().to_string();
    let ended = Hindsight::command(
        &scratch,
        &[
            "record",
            "--attach",
            &pid,
            "-o",
            "rec",
            "--max-size",
            "20MB",
        ],
    )
    .run();
    assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
    ends_at_its_size(&Recording::new(scratch.join("rec.hindsight")));
    running.signal(Signal::TERM);
    let native = running.finish();
    assert_eq!(native.status, Status::Code(7), "{}", native.errors());
}

#[test]
fn a_size_that_makes_no_sense_is_refused() {
    let scratch = Scratch::new("max_size_refused");
    for (words, said) in [
        (
            &["--max-size", "20"][..],
            "write a number and a unit, as 512MB or 8GB",
        ),
        (&["--max-size", "1kB"], "it must be at least 1MiB"),
        (&["--max-size", "1GB", "--children"], "cannot be used with"),
        (
            &["--max-size", "1GB", "--full"],
            "--full does not go with --max-size",
        ),
    ] {
        let words = [&["record"], words, &["--", "true"]].concat();
        let ended = Hindsight::command(&scratch, &words).run();
        assert_eq!(ended.status, Status::Code(2), "{words:?}");
        let errors = ended.errors();
        assert!(errors.contains(said), "{words:?}: {errors}");
    }
}

//! Goal: `catch signal` stops runs through a recording, forwards and backwards, at each signal that was recorded. Method: a program gets
//! signals in a known order, handles some, and is ended by the last one; its variable tells how many came before.

use e2e::{Hindsight, Program, Recording, Scratch, Status, compiled};

const SOURCE: &str = r#"#include <signal.h>
#include <stdio.h>
static volatile int got;
static void on_first(int s) { (void)s; got += 1; }
static void on_second(int s) { (void)s; got += 10; }
int main(void) {
  signal(SIGUSR1, on_first);
  signal(SIGUSR2, on_second);
  for (int i = 0; i < 3; i++) raise(SIGUSR1);
  raise(SIGUSR2);
  printf("%d\n", got);
  fflush(stdout);
  *(volatile int *)16 = 1;
  return 0;
}
"#;

/// Records the program with these options.
fn recorded(scratch: &Scratch, options: &[&str]) -> Recording {
    let program = compiled(scratch, "app.c", SOURCE, &["-O0", "-g"]);
    let program = Program::new(program, scratch.path());
    let (ended, recording) = Hindsight::record(scratch, options, &program);
    assert_eq!(ended.status, Status::Code(128 + 11), "{}", ended.errors());
    assert_eq!(ended.text(), "13\n");
    recording
}

/// The answers and the errors at the prompt.
fn said(recording: &Recording, lines: &[&str]) -> String {
    let ended = recording.prompt(lines);
    ended.text() + &ended.errors()
}

/// The events of a kind with this signal; 0: any.
fn events(recording: &Recording, signal: i64) -> Vec<i64> {
    let sql = format!("SELECT seq FROM exceptions WHERE {signal} IN (0, signal) ORDER BY seq");
    let rows = recording.rows(&sql);
    rows.iter().filter_map(|row| row["seq"].as_i64()).collect()
}

/// The stop at which the program ended.
fn crash(recording: &Recording) -> i64 {
    recording.number("SELECT seq FROM events WHERE kind = 'pause'")
}

/// The events at which breakpoint 1 stopped, in the order of the stops.
fn stops(text: &str) -> Vec<i64> {
    let event = |line: &str| {
        let (_, rest) = line.split_once(" at breakpoint 1, at event ")?;
        rest.split(',').next()?.parse().ok()
    };
    text.lines().filter_map(event).collect()
}

/// The values that were printed.
fn values(text: &str) -> Vec<&str> {
    let lines = text.lines().filter(|line| line.starts_with('$'));
    lines
        .filter_map(|line| Some(line.split_once(" = ")?.1))
        .collect()
}

#[test]
fn handled_signals_stop_runs_both_ways() {
    let scratch = Scratch::new("full-signals");
    let recording = recorded(&scratch, &["--full"]);
    let first = events(&recording, 10);
    assert_eq!((first.len(), events(&recording, 0).len()), (3, 5));
    let to = ["continue", "print got"];
    let forwards = [&["catch signal SIGUSR1", "goto first"][..], &to, &to, &to].concat();
    let text = said(&recording, &forwards);
    assert!(
        text.contains("Catchpoint 1: signal SIGUSR1 (3 events)\n"),
        "{text}"
    );
    assert_eq!(stops(&text), first, "{text}");
    assert_eq!(values(&text), ["0", "1", "2"], "{text}");
    // From the last of them on, nothing stops but the program's end.
    let after = [&forwards[..], &["continue", "continue"]].concat();
    let text = said(&recording, &after);
    let crash = crash(&recording);
    assert!(text.contains(&format!("at event {crash}, ")), "{text}");
    assert!(text.contains("stops here"), "{text}");
    // Backwards from the stop at the end.
    let back = ["reverse-continue", "print got"];
    let backwards = [
        &["goto crash", "catch signal usr1"][..],
        &back,
        &back,
        &back,
    ]
    .concat();
    let text = said(&recording, &backwards);
    let mut reversed = first;
    reversed.reverse();
    assert_eq!(stops(&text), reversed, "{text}");
    assert_eq!(values(&text), ["2", "1", "0"], "{text}");
}

#[test]
fn any_signal_stops_and_the_fatal_one_where_its_thread_stood() {
    let scratch = Scratch::new("full-any-signal");
    let recording = recorded(&scratch, &["--full"]);
    let mut all = events(&recording, 0);
    let fatal = all.pop().expect("the program crashed");
    let crash = crash(&recording);
    assert!(crash > fatal);
    all.push(crash);
    let runs = ["continue"; 5];
    let lines = [&["catch signal", "goto first"][..], &runs].concat();
    let text = said(&recording, &lines);
    assert_eq!(stops(&text), all, "{text}");
    let text = said(&recording, &["catch signal 11", "goto first", "continue"]);
    assert_eq!(stops(&text), [crash], "{text}");
    assert!(text.contains("SIGSEGV at address 0x10"), "{text}");
    let text = said(
        &recording,
        &["catch signal SIGTERM", "catch signal SIGNONE"],
    );
    for expected in [
        "signal SIGTERM: no such signal was seen while the program was recorded",
        "SELECT * FROM exceptions",
        "there is no signal SIGNONE",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

/// Other recordings have only the signal that ended the program.
#[test]
fn the_fatal_signal_stops_runs_through_an_ordinary_recording() {
    let scratch = Scratch::new("plain-signals");
    let recording = recorded(&scratch, &[]);
    let crash = crash(&recording);
    for signal in ["signal", "signal SIGSEGV"] {
        let catch = format!("catch {signal}");
        let text = said(&recording, &[&catch, "goto first", "continue"]);
        assert!(
            text.contains(&format!("Catchpoint 1: {signal} (1 event)\n")),
            "{text}"
        );
        assert_eq!(stops(&text), [crash], "{text}");
        let text = said(&recording, &[&catch, "goto last", "reverse-continue"]);
        assert_eq!(stops(&text), [crash], "{text}");
    }
    let text = said(&recording, &["catch signal SIGUSR1"]);
    assert!(
        text.contains("no such signal was seen") && text.contains("record --full"),
        "{text}"
    );
}

//! Goal: the summaries of a program that a signal ended tell its stack once, its frames as they were, and no time that the recorder
//! took; and a block that was freed twice is named. Method: programs whose last moments their sources tell, with and without symbols.

use e2e::{Hindsight, Live, Program, Recording, Scratch, Status};
use serde_json::Value;

const TWICE: &str = r#"
#include <stdlib.h>
__attribute__((noinline)) static void drop(char *p) { free(p); }
int main(void) {
  char *a = malloc(40), *b = malloc(40);
  drop(b);
  drop(a);
  drop(a); // again
  return 0;
}
"#;
const ZERO: &str = r#"
#include <stdio.h>
#include <unistd.h>
static int nothing;
__attribute__((noinline)) int divide(int n) { return n / nothing; }
int main(void) {
  usleep(50000);
  printf("%d\n", divide(7));
  return 0;
}
"#;

fn built(scratch: &Scratch, source: &str, name: &str, options: &[&str]) -> Program {
    std::fs::write(scratch.join("app.c"), source).expect("writable");
    let gcc = Program::new("/usr/bin/gcc", scratch.path())
        .args([options, &["-o", name, "app.c"]].concat());
    let ended = gcc.run();
    assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
    Program::new(scratch.join(name), scratch.path())
}

fn recorded(scratch: &Scratch, name: &str, options: &[&str], program: &Program) -> Recording {
    let ended = Hindsight::record_command(scratch, name, options, program).run();
    assert!(
        matches!(ended.status, Status::Code(129..)),
        "{}",
        ended.errors()
    );
    Recording::new(scratch.join(&format!("{name}.hindsight")))
}

#[test]
fn a_double_free_is_told_with_both_frees_and_one_stack() {
    let scratch = Scratch::new("freed-twice");
    let program = built(&scratch, TWICE, "twice", &["-g", "-O0"]);
    let recording = recorded(&scratch, "twice", &["--memory"], &program);
    let overview = recording.command("overview", &[]).text();
    let frames = |name: &str| {
        let crash = overview
            .lines()
            .skip_while(|line| !line.starts_with("Ended by"));
        let crash = crash.take_while(|line| !line.starts_with("Time"));
        crash
            .filter(|line| line.trim_start().starts_with(name))
            .count()
    };
    let line = 1 + TWICE
        .lines()
        .position(|line| line.contains("// again"))
        .expect("a line");
    for function in ["main(", "drop("] {
        assert_eq!(frames(function), 1, "{function} in {overview}");
    }
    assert!(
        overview.contains(&format!("main() at app.c:{line}, seq")),
        "{overview}"
    );
    assert!(
        !overview.contains("drop at") && !overview.contains("free(ptr=0x0"),
        "{overview}"
    );
    assert!(
        overview.contains("hindsight report ") && overview.contains(" --memory"),
        "{overview}"
    );
    let report = recording.command("report", &["--memory"]).text();
    let told = report.lines().next().expect("a line");
    assert!(
        told.starts_with("freed twice: 0x") && told.contains("(40 bytes, allocated at seq "),
        "{report}"
    );
    assert!(
        told.ends_with(&format!("< main (app.c:{line})")),
        "{report}"
    );
    let seqs = recording
        .rows("select start_seq from calls where function = 'free' order by 1 desc limit 2");
    let again = seqs[0]["start_seq"].as_i64().expect("an event");
    assert!(
        told.contains(&format!("again seq {again} in drop")),
        "{report}"
    );
}

#[test]
fn the_frame_that_failed_is_told_without_symbols_too() {
    let scratch = Scratch::new("stripped-end");
    let program = built(&scratch, ZERO, "zero", &["-O1", "-s"]);
    let recording = recorded(&scratch, "zero", &[], &program);
    let overview = recording.command("overview", &[]).text();
    let mut crash = overview
        .lines()
        .skip_while(|line| !line.starts_with("Ended by SIGFPE"));
    let heading = crash.next().expect("the signal is told");
    let address = heading
        .split_whitespace()
        .find(|word| word.starts_with("0x"))
        .expect("an address");
    let address = address.trim_end_matches(',');
    let first = crash.next().expect("a frame");
    assert_eq!(
        first,
        format!("  {address} in zero, not recorded"),
        "{overview}"
    );
    // Without a dynamic linker, the thread of the signal is not known.
    let program = built(&scratch, ZERO, "static", &["-O1", "-s", "-static-pie"]);
    let recording = recorded(&scratch, "static", &[], &program);
    for verb in ["overview", "report"] {
        let ended = recording.command(verb, &[]);
        assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
    }
    let overview = recording.command("overview", &[]).text();
    assert!(overview.contains("was ended by SIGFPE after"), "{overview}");
}

#[test]
fn the_last_moment_of_a_static_program_is_told() {
    let scratch = Scratch::new("static-end");
    for options in [["-g", "-static"], ["-g", "-static-pie"]] {
        let program = built(&scratch, ZERO, "zero", &options);
        let name = options[1].trim_start_matches('-');
        let recording = recorded(&scratch, name, &[], &program);
        let addr = "select count(*) from exceptions where type = 'SIGFPE' and addr is not null";
        assert_eq!(recording.number(addr), 1, "{name}");
        let pause =
            "select count(*) from events where kind = 'pause' and text like '%in divide at%'";
        assert_eq!(recording.number(pause), 1, "{name}");
    }
}

/// The recorder copies registers and memory when a signal has ended the program, and needs longer than the program.
#[test]
fn the_time_of_a_call_ends_with_the_signal() {
    let scratch = Scratch::new("end-of-time");
    let program = built(&scratch, ZERO, "zero", &["-O0", "-g"]);
    let recording = recorded(&scratch, "zero", &[], &program);
    let last = recording.row("select max(ts_ns) as ts from events where kind = 'exception'");
    let call = recording.row("select ts_ns as ts from calls where function = 'divide'");
    let at = |row: &e2e::Row| row["ts"].as_i64().expect("a time");
    let report = recording.command("report", &["--json"]).result();
    let functions = report["functions"].as_array().expect("functions");
    let divide = functions
        .iter()
        .find(|f| f["function"] == "divide")
        .expect("it was called");
    let self_ns = divide["self_ns"].as_i64().expect("a time");
    assert!(
        self_ns <= at(&last) - at(&call),
        "{divide:#} {last:?} {call:?}"
    );
    let info = recording.command("info", &["--json"]).result();
    let began = recording.row("select ts_ns as ts from events where kind = 'process_start'");
    let ended = recording.row("select ts_ns as ts from events where kind = 'process_exit'");
    assert_eq!(
        info["duration_ns"].as_i64(),
        Some(at(&ended) - at(&began)),
        "{info:#}"
    );
}

const LEFT: &str = r#"
#include <stdio.h>
__attribute__((noinline)) static int fill(int n) {
  volatile int values[64];
  for (int i = 0; i < 64; i++) values[i] = n + i;
  return values[n & 63];
}
__attribute__((noinline)) static int best(int n) {
  volatile int most = 0;
  most = n; // first
  return most;
}
int main(void) {
  int sum = best(3);
  for (int i = 0; i < 3; i++) sum += fill(i);
  printf("%d\n", sum);
  return 0;
}
"#;

const AGAIN: &str = r#"
#include <stdio.h>
__attribute__((noinline)) static int best(int n) {
  volatile int most = 0;
  most = n;
  return most;
}
int main(void) {
  int sum = 0;
  for (int i = 0; i < 3; i++) {
    sum += best(i + 3);
  }
  printf("%d\n", sum);
  return 0;
}
"#;

/// The next call has its variable in the same memory, and looks the same on the stack. A step may end where the call returns.
#[test]
fn a_watchpoint_ends_with_the_call_of_its_variable() {
    for leave in ["continue", "finish", "step --instruction"] {
        let words: Vec<&str> = leave.split(' ').collect();
        let live = Live::new(&format!("watch-again-{}", words[0]));
        built(&live.scratch, AGAIN, "again", &["-g", "-O0"]);
        let program = live.scratch.join("again");
        live.start(&["--break", "best"], &program, &[]);
        live.ask(&["watch", "most", "--condition", "most > 0"]);
        let wrote = live.moved(&["continue"]);
        assert_eq!(wrote["reason"], "watch", "{leave}: {wrote:#}");
        assert_eq!(wrote["new"], "3", "{leave}: {wrote:#}");
        let mut stop = live.moved(&words);
        while words.len() > 1 && stop["function"] == "best" {
            stop = live.moved(&words);
        }
        if leave != "continue" {
            assert_eq!(stop["function"], "main", "{leave}: {stop:#}");
            stop = live.moved(&["continue"]);
        }
        // The next call stops at its breakpoint before it writes there. What our own code writes at its entry does not count.
        let mut stops = vec![stop];
        loop {
            let reply = live.ask(&["continue"]);
            if reply["status"] == "ended" {
                break;
            }
            stops.push(reply["stop"].clone());
            assert!(stops.len() < 8, "{leave}: {stops:#?}");
        }
        let told: Vec<&Value> = stops.iter().map(|stop| &stop["reason"]).collect();
        assert_eq!(told, ["breakpoint", "watch", "breakpoint"], "{leave}");
        assert_eq!(stops[1]["left"], true, "{leave}: {stops:#?}");
    }
}

#[test]
fn a_watchpoint_ends_with_the_function_of_its_variable() {
    let live = Live::new("watch-left");
    built(&live.scratch, LEFT, "left", &["-g", "-O0"]);
    let program = live.scratch.join("left");
    live.start(&["--break", "best"], &program, &[]);
    live.ask(&["watch", "most"]);
    let mut stops = Vec::new();
    loop {
        let reply = live.ask(&["continue"]);
        if reply["status"] == "ended" {
            break;
        }
        stops.push(reply["stop"].clone());
        assert!(stops.len() < 8, "{stops:#?}");
    }
    let last = stops.pop().expect("a stop");
    assert_eq!(last["left"], true, "{last:#}");
    assert!(
        !stops.is_empty() && stops.iter().all(|stop| stop["left"].is_null()),
        "{stops:#?}"
    );
    assert!(
        stops.iter().all(|stop| stop["function"] == "best"),
        "{stops:#?}"
    );
}

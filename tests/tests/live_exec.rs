//! Goal: a live session goes on with the program that its process executes, with symbols, breakpoints and a recording. Method: launchers
//! as people write them, before two small programs: scripts, `env`, a C program, one that executes itself; both recordings are checked.

use std::path::PathBuf;

use e2e::{Live, Program, Recording, Status, compiled, wait_until};
use serde_json::{Value, json};

const LAUNCHER: &str = r#"#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int prepare(int n) { return n * 2; }
int main(int argc, char **argv) {
  printf("prepared %d\n", prepare(argc));
  fflush(stdout);
  if (argc > 2) execl("/does/not/exist", "x", (char *)0);
  execv(argv[1], argv + 1);
  return 1;
}
"#;

const APP: &str = r#"#include <stdio.h>
int other(int n) { int more = n + 1; return more * 3; }
int main(int argc, char **argv) {
  int sum = 0;
  for (int i = 0; i < 3; i++) sum += other(i); /* loop */
  printf("sum %d %d\n", sum, argc);
  return sum;
}
"#;

fn built(live: &Live, name: &str, source: &str) -> PathBuf {
    compiled(&live.scratch, &format!("{name}.c"), source, &["-g", "-O0"])
}

/// The launcher at its main, and the program that it executes.
fn launched(name: &str, more: &[&str]) -> Live {
    let live = Live::new(name);
    let app = built(&live, "app", APP);
    let launcher = built(&live, "launcher", LAUNCHER);
    let app = app.to_str().expect("paths of tests are text");
    live.start(
        &["--break", "main"],
        &launcher,
        &[&["--", app], more].concat(),
    );
    live
}

fn recording(path: &Value) -> Recording {
    let recording = Recording::new(PathBuf::from(path.as_str().expect("a path")));
    wait_until("the recording to be closed", || {
        let checked = recording.command("check", &[]).text();
        checked.contains("whole").then_some(())
    });
    recording
}

#[test]
fn the_program_that_is_executed_has_symbols_breakpoints_and_a_recording() {
    let live = launched("exec-launcher", &["more"]);
    live.ask(&["break", "app.c:5", "--pending"]);
    live.ask(&["logpoint", "other", "other of {n}", "--pending"]);
    let reply = live.ask(&["continue"]);
    assert_eq!(reply["session"], 2, "{reply:#}");
    assert!(
        reply["followed"]["program"]
            .as_str()
            .is_some_and(|name| name.ends_with("/app")),
        "{reply:#}"
    );
    let stop = &reply["stop"];
    assert_eq!(
        (&stop["function"], &stop["probe"]),
        (&json!("main"), &json!(1)),
        "{reply:#}"
    );
    assert_eq!(live.moved(&["continue"])["line"], 5);
    assert_eq!(
        (live.print("argc"), live.print("sum")),
        ("2".into(), "0".into())
    );
    live.ask(&["break", "other"]);
    let stop = live.moved(&["continue"]);
    assert_eq!(stop["function"], "other", "{stop:#}");
    assert_eq!(live.print("n"), "0");
    let came = live.moved(&["finish"]);
    assert_eq!(came["function"], "main", "{came:#}");
    live.ask(&["break", "remove", "--all"]);
    assert_eq!(live.run_to_end(), 18);
    assert_eq!(live.output(), "prepared 6\nsum 18 2\n");
    let status = live.ask(&["status"]);
    let sessions = status["sessions"].as_array().expect("sessions");
    let [first, second] = &sessions[..] else {
        panic!("{status:#}");
    };
    let text = first["exit"]["text"].as_str().expect("it is over");
    assert!(
        text.starts_with("has executed ") && text.ends_with("/app: session 2"),
        "{text}"
    );
    let (before, after) = (
        recording(&first["recording"]),
        recording(&second["recording"]),
    );
    assert_eq!(before.calls_of("prepare"), 1);
    assert_eq!(after.calls_of("other"), 3);
    assert_eq!(after.output("stdout"), b"sum 18 2\n");
}

#[test]
fn scripts_and_env_lead_to_the_program() {
    for script in [
        "exec ./app one two",
        "exec env X=1 ./app one two",
        "X=1 exec sh -c 'exec ./app one two'",
    ] {
        let live = Live::new("exec-script");
        built(&live, "app", APP);
        let file = live.scratch.join("run.sh");
        let text = format!("#!/bin/sh\necho begun\n{script}\n");
        std::fs::write(&file, text).expect("the test's folder is writable");
        let made = Program::new("/bin/chmod", live.scratch.path())
            .args(["+x", "run.sh"])
            .run();
        assert_eq!(made.status, Status::Code(0));
        live.start(&["--stop-on-entry"], &file, &[]);
        live.ask(&["break", "other", "--pending"]);
        let reply = live.ask(&["continue"]);
        assert_eq!(reply["stop"]["function"], "other", "{script}: {reply:#}");
        let frames = live.ask(&["backtrace"]);
        assert_eq!(
            frames["threads"][0]["frames"][1]["function"], "main",
            "{script}"
        );
        live.ask(&["break", "remove", "--all"]);
        assert_eq!(live.run_to_end(), 18, "{script}");
        assert_eq!(live.output(), "begun\nsum 18 3\n", "{script}");
    }
}

#[test]
fn catch_exec_stops_at_the_entry_point_and_next_goes_over_to_the_program() {
    let live = launched("exec-caught", &[]);
    live.ask(&["catch", "exec"]);
    let reply = live.ask(&["continue"]);
    assert_eq!(reply["stop"]["reason"], "happened", "{reply:#}");
    assert_eq!(reply["stop"]["probe"], 2, "{reply:#}");
    assert_eq!(reply["stop"]["function"], "_start", "{reply:#}");
    // All of it is there to be asked.
    live.ask(&["break", "other"]);
    assert_eq!(live.moved(&["continue"])["function"], "main");
    assert_eq!(live.moved(&["continue"])["function"], "other");
    live.ask(&["break", "remove", "--all"]);
    assert_eq!(live.run_to_end(), 18);

    let live = launched("exec-stepped", &[]);
    let mut reply = json!(null);
    for _ in 0..6 {
        reply = live.ask(&["next"]);
        if !reply["followed"].is_null() {
            break;
        }
    }
    assert_eq!(reply["stop"]["function"], "main", "{reply:#}");
    assert!(
        reply["stop"]["file"]
            .as_str()
            .is_some_and(|file| file.ends_with("app.c")),
        "{reply:#}"
    );
    live.ask(&["break", "remove", "--all"]);
    assert_eq!(live.run_to_end(), 18);
}

#[test]
fn a_restart_begins_with_the_first_program() {
    let live = launched("exec-restarted", &[]);
    live.ask(&["continue"]);
    let again = live.ask(&["restart"]);
    live.keep(&again);
    assert!(
        again["program"]
            .as_str()
            .is_some_and(|name| name.ends_with("launcher")),
        "{again:#}"
    );
}

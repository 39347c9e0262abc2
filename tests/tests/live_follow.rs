//! Goal: with `set follow-fork-mode child`, a fork begins a session for the child, with all that was set, and the program
//! runs on without stops. Method: a program that makes copies of itself in several ways, through the shell's verbs, the
//! prompt and Ctrl-C; both recordings are checked.

use std::path::{Path, PathBuf};

use e2e::{Live, Recording, Signal, fixture_artifact, wait_until};
use serde_json::{Value, json};

fn program() -> PathBuf {
    fixture_artifact("follows", "follows")
}

/// A session at the program's entry, which follows the child.
fn following(name: &str, manner: &str) -> Live {
    let live = Live::started(name, &["--stop-on-entry"], &program(), &["--", manner]);
    let set = live.ask(&["set", "follow-fork-mode", "child"]);
    assert_eq!(set["results"][0]["previous_value"], "parent", "{set:#}");
    live
}

/// Continues to a stop in a copy, which is kept, to be killed with the test.
fn into_copy(live: &Live) -> Value {
    let reply = live.ask(&["continue"]);
    assert!(reply["followed"]["pid"].is_i64(), "{reply:#}");
    live.keep(&reply["followed"]);
    reply
}

fn session(live: &Live, number: u32) -> Value {
    let status = live.ask(&["status"]);
    let sessions = status["sessions"].as_array().expect("sessions").iter();
    let mut found = sessions.filter(|session| session["session"] == number);
    found.next().expect("there is one").clone()
}

/// How a session's program ended.
fn end_of(live: &Live, number: u32) -> Value {
    wait_until("the program to end", || {
        let session = session(live, number);
        (session["status"] == "ended").then(|| session["exit"].clone())
    })
}

fn recording(live: &Live, number: u32) -> Recording {
    let session = session(live, number);
    let path = session["recording"].as_str().expect("a path");
    let recording = Recording::new(PathBuf::from(path));
    wait_until("the recording to be closed", || {
        let checked = recording.command("check", &[]).text();
        checked.contains("whole").then_some(())
    });
    recording
}

#[test]
fn the_copy_has_all_that_was_set() {
    let live = following("follow-once", "once");
    live.ask(&["break", "told"]);
    live.ask(&["break", "work", "--condition", "of == 4"]);
    live.ask(&["break", "remove", "1"]);
    live.ask(&["logpoint", "work", "work of {of}"]);
    live.ask(&["watch", "counter"]);
    live.ask(&["break", "main"]);
    live.ask(&["break", "disable", "5"]);
    live.ask(&["display", "counter"]);
    live.ask(&["set", "$mine", "12"]);
    live.ask(&["commands", "2", "print of"]);
    let reply = into_copy(&live);
    assert_eq!(reply["session"], 2, "{reply:#}");
    let stop = &reply["stop"];
    assert_eq!(
        (&stop["function"], &stop["probe"], &stop["hits"]),
        (&json!("work"), &json!(2), &json!(1)),
        "{reply:#}"
    );
    assert_eq!(stop["displays"][0]["expression"], "counter", "{stop:#}");
    assert_eq!(
        (live.print("of"), live.print("$mine")),
        ("4".into(), "12".into())
    );
    let frames = live.command(&["backtrace"]).run().text();
    let named = ["work (of=4)", "once ()", "main (argc=2"].map(|name| frames.contains(name));
    assert_eq!(named, [true; 3], "{frames}");
    assert!(
        live.command(&["commands"])
            .run()
            .text()
            .contains("print of")
    );
    let probes = live.ask(&["info-breakpoints"]);
    let probes = probes["probes"].as_array().expect("probes");
    let of_probe = |probe: &Value| (probe["id"].as_u64(), probe["enabled"].as_bool());
    let mut numbered: Vec<_> = probes.iter().map(of_probe).collect();
    numbered.sort_unstable();
    let is_on = [(2, true), (3, true), (4, true), (5, false)];
    assert_eq!(numbered, is_on.map(|(id, on)| (Some(id), Some(on))));
    let at_watch = live.moved(&["continue"]);
    let changed = ["probe", "old", "new"].map(|field| at_watch[field].clone());
    assert_eq!(changed, [json!(4), json!("0"), json!("40")], "{at_watch:#}");
    assert_eq!(live.run_to_end(), 7);
    assert_eq!(end_of(&live, 1)["code"], 0);
    assert_eq!(live.output(), "child 40\nparent 7 10\n");
    let (parent, copy) = (recording(&live, 1), recording(&live, 2));
    assert_eq!((parent.calls_of("once"), parent.calls_of("work")), (1, 1));
    assert_eq!((copy.calls_of("once"), copy.calls_of("work")), (0, 1));
    let texts = |recording: &Recording| recording.number("SELECT count(*) FROM logpoints");
    assert_eq!((texts(&parent), texts(&copy)), (1, 1));
}

#[test]
fn each_fork_of_a_copy_is_followed() {
    let live = following("follow-chain", "chain");
    live.ask(&["break", "work"]);
    let reply = into_copy(&live);
    assert_eq!(reply["session"], 3, "{reply:#}");
    assert_eq!(live.print("of"), "5");
    assert_eq!(live.run_to_end(), 50);
    for number in 1..=3 {
        assert_eq!(end_of(&live, number)["code"], 50);
    }
}

#[test]
fn a_copy_may_end_at_once_or_outlive_the_program() {
    let live = following("follow-quick", "quick");
    live.ask(&["break", "work"]);
    let reply = into_copy(&live);
    assert_eq!(
        (&reply["session"], &reply["exit"]["code"]),
        (&json!(2), &json!(3))
    );
    assert_eq!(end_of(&live, 1)["code"], 3);
    let live = following("follow-leaves", "leaves");
    live.ask(&["break", "work"]);
    assert_eq!(into_copy(&live)["stop"]["function"], "work");
    assert_eq!(end_of(&live, 1)["code"], 0);
    assert_eq!(live.run_to_end(), 60);
}

#[test]
fn a_thread_makes_the_copy() {
    let live = following("follow-thread", "thread");
    live.ask(&["break", "work"]);
    let reply = into_copy(&live);
    assert_eq!(reply["stop"]["function"], "work", "{reply:#}");
    let frames = live.command(&["backtrace"]).run().text();
    assert!(frames.contains("from_thread"), "{frames}");
    assert_eq!(live.run_to_end(), 7);
    assert_eq!(end_of(&live, 1)["code"], 0);
}

#[test]
fn nothing_stops_the_program_that_was_left() {
    let live = following("follow-crash", "crashes");
    live.ask(&["break", "work"]);
    live.ask(&["catch", "signal"]);
    assert_eq!(into_copy(&live)["stop"]["function"], "work");
    assert_eq!(live.run_to_end(), 30);
    assert_eq!(end_of(&live, 1)["signal"], 11);
}

#[test]
fn the_mode_is_taken_back() {
    let live = following("follow-parent", "once");
    let set = live.ask(&["set", "follow-fork-mode", "parent"]);
    assert_eq!(set["results"][0]["previous_value"], "child", "{set:#}");
    live.ask(&["break", "work"]);
    let reply = live.ask(&["continue"]);
    assert_eq!(reply["session"], 1, "{reply:#}");
    assert!(reply.get("followed").is_none(), "{reply:#}");
    assert_eq!(live.print("of"), "1");
    assert_eq!(live.run_to_end(), 0);
}

#[test]
fn the_copy_is_stopped_by_pause() {
    let live = following("follow-waits", "waits");
    // By then it has forked on a busy machine, too.
    let reply = live.ask(&["continue", "--timeout", "5"]);
    assert_eq!(
        (&reply["session"], &reply["timed_out"]),
        (&json!(2), &json!(true))
    );
    live.keep(&reply["followed"]);
    let reply = live.ask(&["pause"]);
    assert_eq!(
        (&reply["session"], &reply["status"]),
        (&json!(2), &json!("stopped"))
    );
    live.ask(&["set", "done", "1"]);
    live.ask(&["break", "work"]);
    assert_eq!(live.moved(&["continue"])["function"], "work");
    assert_eq!(live.run_to_end(), 20);
    assert_eq!(end_of(&live, 1)["code"], 20);
}

fn prompt(live: &Live, manner: &str, lines: &[&str]) -> e2e::Program {
    let path = program();
    let path = path.to_str().expect("text");
    let lines = lines.iter().flat_map(|line| ["--cmd", line]);
    let words: Vec<&str> = ["repl", path].into_iter().chain(lines).collect();
    live.command(&[&words[..], &["--", manner]].concat())
}

#[test]
fn the_prompt_moves_over() {
    let live = Live::new("follow-prompt");
    let lines = [
        "set follow-fork-mode child",
        "break work",
        "continue",
        "print of + 38",
        "continue",
    ];
    let ended = prompt(&live, "once", &lines).run();
    let (said, errors) = (ended.text(), ended.errors());
    assert!(
        said.contains("\nSession 2: ") && said.contains("= 42"),
        "{said}{errors}"
    );
    assert!(said.contains("exit code 7"), "{said}{errors}");
    assert!(errors.contains("session 1 is kept"), "{errors}");
}

#[test]
fn ctrl_c_stops_the_copy_that_is_waited_for() {
    let live = Live::new("follow-ctrl-c");
    let lines = ["set follow-fork-mode child", "continue"];
    let waiting = prompt(&live, "waits", &lines).start();
    wait_until("the copy to run", || {
        let socket: &Path = &live.socket();
        if !socket.exists() {
            return None;
        }
        let (_, status) = live.response(&["status"]);
        let copy = &status["result"]["sessions"][1];
        (copy["status"] == "running").then_some(())
    });
    waiting.signal(Signal::INT);
    let ended = waiting.finish();
    let (said, errors) = (ended.text(), ended.errors());
    assert!(
        said.contains("\nSession 2: ") && said.contains("on request"),
        "{said}{errors}"
    );
}

/// The copy's recording cannot be created, because the folder has another name meanwhile.
#[test]
fn a_copy_that_cannot_be_recorded_runs_by_itself() {
    let live = Live::new("follow-not");
    let folder = live.scratch.join("folder");
    std::fs::create_dir(&folder).expect("the test's folder is writable");
    live.start(
        &["--stop-on-entry", "--output", "folder/run"],
        &program(),
        &["--", "once"],
    );
    live.ask(&["set", "follow-fork-mode", "child"]);
    live.ask(&["break", "work"]);
    std::fs::rename(&folder, live.scratch.join("moved")).expect("it can be renamed");
    let ended = live.command(&["continue"]).run();
    let (said, errors) = (ended.text(), ended.errors());
    assert!(errors.contains("is not followed: "), "{said}{errors}");
    assert!(said.contains("stopped at breakpoint 1"), "{said}{errors}");
    assert_eq!(live.print("of"), "1");
    std::fs::rename(live.scratch.join("moved"), &folder).expect("it can be renamed");
    assert_eq!(live.run_to_end(), 0);
    assert_eq!(live.output(), "child 40\nparent 7 10\n");
}

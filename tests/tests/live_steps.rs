//! Goal: a step ends where a user expects it, for every way to leave a line or a function. Method: a fixture that leaves them
//! in every way; lines are found by their marks.
//! Of several builds of a program each run takes a part; `WHOLE=1` all.

use e2e::{Live, fixture_artifact, in_turn, marked_line, wait_until};
use serde_json::Value;

fn line(mark: &str) -> u64 {
    marked_line("ways", "ways.c", mark)
}

fn stopped_at(name: &str, mark: &str, what: &str) -> Live {
    let program = fixture_artifact("ways", name);
    let at = format!("ways.c:{}", line(mark));
    let live = Live::started(
        &format!("{name}-{what}"),
        &["--break", &at],
        &program,
        &[what],
    );
    let stop = &live.session()["stop"];
    assert_eq!(stop["line"], line(mark), "{name}: {stop:#}");
    live
}

fn place(stop: &Value) -> (String, u64) {
    let function = stop["function"].as_str().unwrap_or_default().to_owned();
    (function, stop["line"].as_u64().unwrap_or_default())
}

#[test]
fn a_step_over_a_longjmp_ends_where_it_lands() {
    let live = stopped_at("ways_O0", "jumping: call", "jump");
    let mut stop = live.moved(&["next"]);
    if stop["line"] == line("jumping: set") {
        stop = live.moved(&["next"]);
    }
    assert_eq!(place(&stop), ("jumping".into(), line("jumping: landed")));
    assert_eq!(stop["reason"], "step");
    assert_eq!(
        live.moved(&["next"])["line"],
        line("jumping: last"),
        "the frame is still the same"
    );
    assert_eq!(live.print("landed"), "1");
    assert_eq!(live.run_to_end(), 0);
}

/// `finish` waits for a frame that a longjmp leaves without returning.
#[test]
fn a_function_that_a_longjmp_leaves_is_finished_where_it_lands() {
    let live = stopped_at("ways_O0", "jumper: jump", "jump");
    let stop = live.moved(&["finish"]);
    assert_eq!(stop["function"], "jumping", "{stop:#}");
    assert_eq!(stop["reason"], "step", "{stop:#}");
    assert_eq!(live.run_to_end(), 0);
    assert_eq!(live.output(), "landed 1\n");
}

#[test]
fn steps_go_through_tail_calls() {
    let live = stopped_at("ways_O2", "first: tail", "tail");
    let stop = live.moved(&["step"]);
    assert_eq!(place(&stop), ("second".into(), line("second: first")));
    let stop = live.moved(&["finish"]);
    assert_eq!(stop["function"], "outer", "the caller of both: {stop:#}");
    let live = stopped_at("ways_O2", "first: tail", "tail");
    let stop = live.moved(&["next"]);
    assert_eq!(stop["function"], "outer", "over it: {stop:#}");
    assert_eq!(live.run_to_end(), 0);
    assert_eq!(live.output(), "outer 13\n");
    let live = stopped_at("ways_O0", "outer: call", "tail");
    assert_eq!(live.moved(&["next"])["line"], line("outer: last"));
}

#[test]
fn a_signal_handler_runs_beside_a_step_and_can_be_stopped_in() {
    for name in in_turn(["ways_O0", "ways_O2"]) {
        let live = stopped_at(name, "raising: raise", "signals");
        let stop = live.moved(&["next"]);
        assert_eq!(
            place(&stop),
            ("raising".into(), line("raising: after")),
            "{name}"
        );
        assert_eq!(live.print("handled"), "1", "{name}: the handler ran");
        live.ask(&["break", "disable", "--all"]);
        live.ask(&["break", "handler"]);
        let stop = live.moved(&["continue"]);
        assert_eq!(stop["function"], "handler", "{name}: {stop:#}");
        let frames = live.ask(&["backtrace"]);
        let frames = frames["threads"][0]["frames"].as_array().expect("frames");
        assert!(
            frames.iter().any(|f| f["is_signal"] == true),
            "{name}: {frames:#?}"
        );
        assert!(
            frames.iter().any(|f| f["function"] == "raising"),
            "{name}: {frames:#?}"
        );
        live.ask(&["break", "disable", "--all"]);
        assert_eq!(live.run_to_end(), 0, "{name}");
        assert_eq!(live.output(), "handled 5\n", "{name}");
    }
}

#[test]
fn a_step_that_ends_with_its_thread_says_so() {
    for name in in_turn(["ways_O0", "ways_O2"]) {
        let live = stopped_at(name, "worker: first", "thread");
        let tid = live.session()["stop"]["thread"].clone();
        let mut reply = live.ask(&["next"]);
        for _ in 0..6 {
            if reply["status"] != "stopped" {
                break;
            }
            reply = live.ask(&["next"]);
        }
        assert_eq!(reply["thread_ended"], tid, "{name}: {reply:#}");
        assert_eq!(reply["status"], "running", "{name}: {reply:#}");
        live.ask(&["set", "open_gate", "1"]);
        assert_eq!(live.ask(&["await"])["exit"]["code"], 0, "{name}");
        assert_eq!(live.output(), "turns 9\n", "{name}");
    }
}

#[test]
fn a_thread_that_goes_on_alone_and_ends_is_told_of() {
    let live = stopped_at("ways_O0", "worker: first", "thread");
    live.ask(&["pause"]);
    let tid = live.ask(&["threads"])["threads"]
        .as_array()
        .expect("threads")
        .iter()
        .find(|thread| thread["reason"]["reason"] == "breakpoint")
        .map(|thread| thread["thread"].clone())
        .expect("the worker");
    live.ask(&["thread", &tid.to_string()]);
    let reply = live.ask(&["continue", "--thread"]);
    assert_eq!(reply["thread_ended"], tid, "{reply:#}");
    assert_eq!(
        reply["status"], "stopped",
        "the others still are: {reply:#}"
    );
    live.ask(&["set", "open_gate", "1"]);
    assert_eq!(live.run_to_end(), 0);
}

/// The kernel reports the end of the first thread only when all others have ended.
#[test]
fn the_end_of_the_first_thread_is_told_while_others_go_on() {
    let live = stopped_at("ways_O0", "main: exit", "first");
    let reply = live.ask(&["next"]);
    assert_eq!(reply["thread_ended"], live.session()["pid"], "{reply:#}");
    assert_eq!(reply["status"], "running", "{reply:#}");
    let stop = live.moved(&["pause"]);
    assert_eq!(stop["reason"], "user", "{stop:#}");
    assert_eq!(live.session()["stopped_threads"], 1, "the other one");
    live.ask(&["set", "open_gate", "1"]);
    assert_eq!(live.run_to_end(), 0);
}

/// The same if no thread waited for the first thread's end.
#[test]
fn a_program_whose_first_thread_has_ended_is_paused() {
    let program = fixture_artifact("ways", "ways_O0");
    let live = Live::started("headless", &[], &program, &["first"]);
    wait_until("the end of the first thread", || {
        let pid = live.session()["pid"].to_string();
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.contains(") Z ").then_some(())
    });
    let stop = live.moved(&["pause"]);
    assert_eq!(stop["reason"], "user", "{stop:#}");
    let threads = live.ask(&["threads"]);
    assert_eq!(
        threads["threads"].as_array().map(Vec::len),
        Some(1),
        "{threads:#}"
    );
    live.ask(&["set", "open_gate", "1"]);
    assert_eq!(live.run_to_end(), 0);
}

#[test]
fn a_step_that_ends_with_the_process_tells_its_exit_code() {
    for (name, verb) in [
        ("ways_O0", "next"),
        ("ways_O2", "next"),
        ("ways_O0", "finish"),
        ("ways_O0", "step"),
    ] {
        let live = stopped_at(name, "leaving: exit", "exit");
        let reply = live.ask(&[verb]);
        assert_eq!(reply["status"], "ended", "{name} {verb}: {reply:#}");
        assert_eq!(reply["exit"]["code"], 3, "{name} {verb}: {reply:#}");
    }
}

#[test]
fn until_runs_to_a_line_of_this_frame_or_out_of_it() {
    let program = fixture_artifact("control", "control_O0");
    let at = |mark: &str| format!("control.c:{}", marked_line("control", "control.c", mark));
    let live = Live::started("until", &["--break", "sum_to"], &program, &[]);
    let stop = live.moved(&["until", &at("sum: last")]);
    assert_eq!(
        stop["line"],
        marked_line("control", "control.c", "sum: last")
    );
    assert_eq!(live.print("total"), "10", "the loop is over");
    let stop = live.moved(&["until", "factorial"]);
    assert_eq!(stop["function"], "main", "the frame has returned: {stop:#}");
    let refused = live.refused(&["until", "control.c:9999"]);
    assert_eq!(refused["code"], "INVALID_LINE");
    assert_eq!(live.run_to_end(), 7);
}

#[test]
fn instructions_are_stepped_one_by_one() {
    let program = fixture_artifact("control", "control_O0");
    let live = Live::started("instructions", &["--break", "middle"], &program, &[]);
    let here = |live: &Live| {
        let code = live.ask(&["disassemble", "--count", "2"]);
        let list = code["instructions"]
            .as_array()
            .expect("instructions")
            .clone();
        let address = |index: usize| list[index]["address"].as_str().expect("text").to_owned();
        (address(0), address(1), list[0]["text"].to_string())
    };
    for _ in 0..20 {
        let (_, next, text) = here(&live);
        let stop = live.moved(&["next", "--instruction"]);
        assert_eq!(stop["address"], next.as_str(), "behind {text}");
        if text.contains("call") {
            let stop = live.moved(&["step", "--instruction"]);
            assert_eq!(stop["function"], "middle");
            return;
        }
    }
    panic!("no call was met");
}

/// A breakpoint at an instruction that jumps to itself is hit each time, not once.
#[test]
fn a_jump_to_itself_comes_to_its_breakpoint_again() {
    let live = stopped_at("ways_O0", "standing: jump", "standing");
    assert_eq!(live.moved(&["continue"])["hits"], 2);
    assert_eq!(live.moved(&["continue"])["hits"], 3);
    let stop = live.moved(&["step", "--instruction"]);
    assert_eq!(stop["line"], line("standing: jump"), "{stop:#}");
    live.ask(&["break", "disable", "--all"]);
    let reply = live.ask(&["continue", "--timeout", "0.2"]);
    assert_eq!(reply["timed_out"], true, "it goes round: {reply:#}");
    live.ask(&["pause"]);
    let pc = live.print("$rip + 0");
    let next: u64 = pc.parse::<u64>().expect("a number") + 2;
    live.ask(&["set", "$rip", &next.to_string()]);
    wait_until("the thread to be moved on", || {
        (live.print("$rip + 0") == next.to_string()).then_some(())
    });
    let shown = live.print("$pc");
    assert!(
        shown.starts_with(&format!("{next:#x} <standing+")),
        "{shown}"
    );
    assert_eq!(live.run_to_end(), 0);
}

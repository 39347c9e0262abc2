//! Goal: a step or a finish that ends by a throw, a panic or a longjmp, or passes a library's stub, ends at the line where a
//! user expects it, in optimised code too, and reports no value that was never returned. Method: fixtures that leave
//! functions in every way; lines are found by their marks.
//! Of several builds of a program each run takes a part; `WHOLE=1` all.

use e2e::{Live, fixture_artifact, in_turn, marked_line};
use serde_json::Value;

fn throws(mark: &str) -> u64 {
    marked_line("control", "throws.cc", mark)
}

fn throwing(mark: &str) -> u64 {
    marked_line("ways", "throwing.cc", mark)
}

fn ways(mark: &str) -> u64 {
    marked_line("ways", "ways.c", mark)
}

fn control(mark: &str) -> u64 {
    marked_line("control", "control.c", mark)
}

fn started(fixture: &str, name: &str, at: &str, args: &[&str]) -> Live {
    let program = fixture_artifact(fixture, name);
    let live = Live::started(&format!("leaving-{name}"), &["--break", at], &program, args);
    assert_eq!(live.session()["stop"]["reason"], "breakpoint", "{name}");
    live
}

fn place(stop: &Value) -> (&str, u64) {
    (
        stop["function"].as_str().unwrap_or_default(),
        stop["line"].as_u64().unwrap_or_default(),
    )
}

/// Steps over lines until one has this mark's line; it must be among the next few.
fn next_to(live: &Live, line: u64) -> Value {
    let mut seen = Vec::new();
    for _ in 0..4 {
        let stop = live.moved(&["next"]);
        seen.push(stop["line"].clone());
        if stop["line"] == line {
            return stop;
        }
    }
    panic!("line {line} was not among {seen:?}");
}

#[test]
fn a_step_that_throws_ends_in_the_handler_that_catches() {
    for name in in_turn(["throws_O0", "throws_O2", "throws_O2_fixed"]) {
        let at = format!("throws.cc:{}", throws("caught: call"));
        let live = started("control", name, &at, &[]);
        // An int, then a type with a base: the handlers for both are in the same function.
        for mark in ["caught: int", "caught: exception"] {
            let stop = live.moved(&["next"]);
            let (function, line) = place(&stop);
            assert_eq!(function, "caught", "{name}: {stop:#}");
            assert_eq!(stop["reason"], "step", "{name}: {stop:#}");
            assert!(
                line > throws("caught: call") && line <= throws(mark),
                "{name}: {stop:#}"
            );
            if line != throws(mark) {
                next_to(&live, throws(mark));
            }
            let next = live.ask(&["continue"]);
            let again = mark == "caught: int";
            assert_eq!(next["status"] == "stopped", again, "{name}: {next:#}");
        }
        assert_eq!(live.session()["exit"]["code"], 0, "{name}");
    }
}

/// The line of a handler is reached whether or not the throwing function may return.
#[test]
fn a_step_over_a_throw_goes_on_behind_the_handler() {
    for name in in_turn(["throwing_O0", "throwing_O2"]) {
        let at = format!("throwing.cc:{}", throwing("main: always"));
        let live = started("ways", name, &at, &[]);
        next_to(&live, throwing("main: caught always"));
        assert_eq!(live.print("n"), "3", "{name}");
        next_to(&live, throwing("main: throws"));
        next_to(&live, throwing("main: caught sometimes"));
        assert_eq!(live.print("n"), "4", "{name}");
        next_to(&live, throwing("main: returns"));
        next_to(&live, throwing("main: last"));
        assert_eq!(live.run_to_end(), 0, "{name}");
        assert_eq!(live.output(), "throwing 3\nsum 21\n", "{name}");
    }
}

/// At -O2 the handler begins at the return address of a function that always throws: there is still no value.
#[test]
fn a_finish_that_is_left_by_a_throw_tells_no_value() {
    for name in in_turn(["throwing_O0", "throwing_O2"]) {
        let live = started("ways", name, "always", &[]);
        let reply = live.ask(&["finish"]);
        assert_eq!(reply["stop"]["function"], "main", "{name}: {reply:#}");
        assert_eq!(reply["stop"]["reason"], "step", "{name}: {reply:#}");
        assert_eq!(reply["returned"], Value::Null, "{name}: {reply:#}");
        live.ask(&["break", "sometimes"]);
        live.moved(&["continue"]);
        let reply = live.ask(&["finish"]);
        assert_eq!(reply["stop"]["function"], "main", "{name}: {reply:#}");
        assert_eq!(reply["returned"], Value::Null, "{name}: {reply:#}");
        live.moved(&["continue"]);
        let reply = live.ask(&["finish"]);
        assert_eq!(reply["returned"]["value"], "14", "{name}: {reply:#}");
        assert_eq!(reply["returned"]["function"], "sometimes", "{name}");
        assert_eq!(live.run_to_end(), 0, "{name}");
    }
}

#[test]
fn a_finish_that_throws_ends_in_the_frame_that_catches() {
    for name in in_turn(["throws_O0", "throws_O2", "throws_O2_fixed"]) {
        let live = started("control", name, "thrower", &[]);
        for _ in 0..2 {
            let reply = live.ask(&["finish"]);
            assert_eq!(reply["stop"]["function"], "caught", "{name}: {reply:#}");
            assert_eq!(reply["returned"], Value::Null, "{name}: {reply:#}");
            live.ask(&["continue"]);
        }
        assert_eq!(live.session()["exit"]["code"], 0, "{name}");
    }
}

/// A panic leaves frames of Rust and of its standard library, down to the one that catches it.
#[test]
fn a_panic_is_followed_to_where_it_is_caught() {
    for name in in_turn(["panics_O0", "panics_O2"]) {
        let live = started("control", name, "panics::risky", &[]);
        let reply = live.ask(&["finish"]);
        assert_eq!(reply["status"], "stopped", "{name}: {reply:#}");
        assert_eq!(reply["stop"]["reason"], "step", "{name}: {reply:#}");
        assert_eq!(reply["returned"], Value::Null, "{name}: {reply:#}");
        // Regardless of the catching frame, main is the outer one.
        let frames = live.ask(&["backtrace"]);
        let frames = frames["threads"][0]["frames"].as_array().expect("frames");
        let has = |name: &str| frames.iter().any(|frame| frame["function"] == name);
        assert!(has("panics::main"), "{name}: {frames:#?}");
        assert!(!has("panics::risky"), "{name}: {frames:#?}");
        let told = marked_line("control", "panics.rs", "main: caught");
        live.ask(&["break", &format!("panics.rs:{told}")]);
        let stop = live.moved(&["continue"]);
        assert_eq!(place(&stop), ("panics::main", told), "{name}");
        assert_eq!(live.run_to_end(), 0, "{name}");
        assert_eq!(live.output().matches("panicked true").count(), 1, "{name}");
    }
}

#[test]
fn a_longjmp_in_optimised_code_is_followed_to_where_it_lands() {
    let at = format!("ways.c:{}", ways("jumping: call"));
    let live = started("ways", "ways_O2", &at, &["jump"]);
    next_to(&live, ways("jumping: landed"));
    next_to(&live, ways("jumping: last"));
    assert_eq!(live.print("landed"), "1");
    assert_eq!(live.run_to_end(), 0);
    let at = format!("ways.c:{}", ways("jumper: jump"));
    let live = started("ways", "ways_O2", &at, &["jump"]);
    let reply = live.ask(&["finish"]);
    assert_eq!(reply["stop"]["function"], "jumping", "{reply:#}");
    assert_eq!(reply["returned"], Value::Null, "{reply:#}");
    next_to(&live, ways("jumping: landed"));
    assert_eq!(live.run_to_end(), 0);
    assert_eq!(live.output(), "landed 1\n");
}

/// Through a lazily bound entry of the procedure linkage table, through a bound one, and without one.
#[test]
fn a_step_enters_a_function_of_a_library() {
    for name in in_turn(["shared_library", "shared_now", "shared_noplt"]) {
        let live = started("shared_library", name, "visit", &[]);
        // Two rounds: the first one binds.
        for _ in 0..2 {
            let stop = live.moved(&["step"]);
            assert_eq!(stop["function"], "helper", "{name}: {stop:#}");
            assert!(file(&stop).ends_with("/main.c"), "{name}: {stop:#}");
            let back = live.moved(&["finish"]);
            assert_eq!(back["function"], "visit", "{name}: {back:#}");
            let stop = live.moved(&["step"]);
            assert_eq!(stop["function"], "area", "{name}: {stop:#}");
            assert!(file(&stop).ends_with("/shape.c"), "{name}: {stop:#}");
            // The library's own function of the same name, then the program's one that replaces it.
            let stop = live.moved(&["step"]);
            assert_eq!(stop["function"], "helper", "{name}: {stop:#}");
            assert!(file(&stop).ends_with("/shape.c"), "{name}: {stop:#}");
            live.moved(&["finish"]);
            let stop = live.moved(&["step"]);
            assert_eq!(stop["function"], "unit", "{name}: {stop:#}");
            assert!(file(&stop).ends_with("/main.c"), "{name}: {stop:#}");
            assert_eq!(live.moved(&["continue"])["function"], "visit", "{name}");
        }
        live.ask(&["break", "disable", "--all"]);
        assert_eq!(live.run_to_end(), 0, "{name}");
    }
}

fn file(stop: &Value) -> &str {
    stop["file"].as_str().unwrap_or_default()
}

#[test]
fn until_means_this_frame_and_no_deeper_one() {
    let at = format!("control.c:{}", control("factorial: last"));
    for name in in_turn(["control_O0", "control_O0_fixed"]) {
        let live = started("control", name, "factorial", &[]);
        live.ask(&["break", "disable", "--all"]);
        assert_eq!(live.print("n"), "4", "{name}");
        // Three inner calls reach this line before.
        let stop = live.moved(&["until", &at]);
        assert_eq!(place(&stop), ("factorial", control("factorial: last")));
        assert_eq!(
            (live.print("n"), live.print("rest")),
            ("4".into(), "6".into()),
            "{name}"
        );
        assert_eq!(live.run_to_end(), 7, "{name}");
    }
    for name in in_turn(["control_O2", "control_O2_fixed", "control_cxx_O2"]) {
        let (file, sum) = match name {
            "control_cxx_O2" => ("control.cc", "desk::sum_to"),
            _ => ("control.c", "sum_to"),
        };
        let live = started("control", name, sum, &[]);
        let last = marked_line("control", file, "sum: last");
        let stop = live.moved(&["until", &format!("{file}:{last}")]);
        assert_eq!(place(&stop), (sum, last), "{name}");
        assert_eq!(live.print("total"), "10", "{name}: the loop is over");
        let stop = live.moved(&["until", sum]);
        assert_eq!(stop["function"], "main", "{name}: it has returned");
        assert_eq!(live.run_to_end(), 7, "{name}");
    }
}

#[test]
fn advance_may_come_to_the_place_in_a_callee() {
    for name in in_turn(["control_O0", "control_O0_fixed"]) {
        let live = started("control", name, "factorial", &[]);
        live.ask(&["break", "disable", "--all"]);
        assert_eq!(live.print("n"), "4", "{name}");
        let stop = live.moved(&["advance", "factorial"]);
        assert_eq!(stop["function"], "factorial", "{name}");
        assert_eq!(live.print("n"), "3", "{name}");
        live.ask(&["up"]);
        // The selected frame, that of 4, returns before anything comes there.
        let stop = live.moved(&["advance", "main"]);
        assert_eq!(stop["function"], "main", "{name}");
        assert_eq!(live.run_to_end(), 7, "{name}");
    }
}

#[test]
fn instructions_of_optimised_code_are_stepped_one_by_one() {
    for (name, path) in [("control_O2", ""), ("control_cxx_fixed", "desk::")] {
        let (middle, leaf) = (format!("{path}middle"), format!("{path}leaf"));
        for verb in ["next", "step"] {
            let live = started("control", name, &middle, &[]);
            let mut entered = false;
            for _ in 0..20 {
                let code = live.ask(&["disassemble", "--count", "30"]);
                let code = code["instructions"].as_array().expect("a list");
                let here = code.iter().position(|one| one["is_current"] == true);
                let here = here.expect("where it stands");
                let text = code[here]["text"].as_str().expect("text");
                if text.starts_with("ret") {
                    break;
                }
                let stop = live.moved(&[verb, "--instruction"]);
                assert_eq!(stop["reason"], "step", "{name}");
                if text.starts_with("call") && verb == "step" {
                    assert_eq!(stop["function"], leaf.as_str(), "{name}: {stop:#}");
                    entered = true;
                    break;
                }
                entered |= text.starts_with("call");
                assert_eq!(stop["address"], code[here + 1]["address"], "behind {text}");
            }
            assert!(entered, "{name} {verb}: no call was met");
            assert_eq!(live.run_to_end(), 7, "{name}");
        }
    }
}

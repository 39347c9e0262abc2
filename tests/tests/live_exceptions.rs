//! Goal: a stop at a throw, a panic or a signal shows what the program's own handler would see. Method: fixtures print
//! the type and the text that their handlers get; the stops must have shown the same, in the same order.
//! Of several builds of a program each run takes a part; `WHOLE=1` all.

use e2e::{Live, Program, Status, fixture_artifact, in_turn, wait_until};
use serde_json::{Value, json};

fn entered(name: &str, args: &[&str]) -> Live {
    let program = fixture_artifact("thrown", name);
    Live::started(
        &format!("thrown-{name}"),
        &["--stop-on-entry"],
        &program,
        args,
    )
}

/// Type and message of each stop, until the program ends by itself.
fn stops(live: &Live) -> Vec<(String, Option<String>)> {
    let mut seen = Vec::new();
    loop {
        let reply = live.ask(&["continue"]);
        let stop = &reply["stop"];
        if reply["status"] == "ended" {
            assert_eq!(reply["exit"]["code"], 0, "{reply:#}");
            return seen;
        }
        assert_eq!(stop["reason"], "throw", "{stop:#}");
        let text = |name: &str| stop[name].as_str().map(str::to_owned);
        seen.push((text("what").expect("a type"), text("message")));
    }
}

/// The program's output: type and message, `-` for none.
fn printed(live: &Live) -> Vec<(String, Option<String>)> {
    live.output()
        .lines()
        .filter_map(|line| line.split_once('|'))
        .map(|(what, text)| (what.to_owned(), (text != "-").then(|| text.to_owned())))
        .collect()
}

#[test]
fn a_throw_is_told_with_the_text_that_its_handler_sees() {
    for name in in_turn(["thrown_O0", "thrown_O2", "thrown_static"]) {
        let live = entered(name, &[]);
        live.ask(&["catch", "throw"]);
        let seen = stops(&live);
        let printed = printed(&live);
        assert_eq!(seen, printed, "{name}");
        assert_eq!(seen.len(), 18, "{name}");
        let rows = live
            .recording()
            .rows("SELECT type, message FROM exceptions WHERE signal IS NULL ORDER BY seq");
        let recorded: Vec<_> = rows
            .iter()
            .map(|row| {
                let text = |name: &str| row[name].as_str().map(str::to_owned);
                (text("type").expect("a type"), text("message"))
            })
            .collect();
        assert_eq!(recorded, printed, "{name}");
    }
}

#[test]
fn a_panic_is_told_with_its_text() {
    for name in in_turn(["panicked_O0", "panicked_O2"]) {
        let live = entered(name, &[]);
        live.ask(&["catch", "panic"]);
        let seen = stops(&live);
        assert_eq!(seen, printed(&live), "{name}");
        assert_eq!(seen.len(), 10, "{name}");
    }
}

#[test]
fn what_nobody_catches_is_told_with_its_type_and_text() {
    for name in in_turn(["thrown_O0", "thrown_O2"]) {
        let live = entered(name, &["uncaught"]);
        live.ask(&["catch", "throw", "std::bad_alloc", "--unhandled"]);
        live.ask(&["catch", "throw", "std::exception", "--unhandled"]);
        let stop = live.moved(&["continue"]);
        assert_eq!(stop["what"], "Kept", "{name}: {stop:#}");
        assert_eq!(stop["unhandled"], true, "{name}");
        assert_eq!(stop["probe"], 2, "{name}");
        assert_eq!(
            stop["message"], "nobody catches this one, however long it is",
            "{name}"
        );
        let stop = live.moved(&["continue"]);
        assert_eq!(stop["signal"], 6, "{name}: {stop:#}");
        assert_eq!(live.ask(&["continue"])["exit"]["signal"], 6, "{name}");
        let live = entered(name, &["terminate"]);
        live.ask(&["catch", "throw", "--unhandled"]);
        let stop = live.moved(&["continue"]);
        assert_eq!(stop["what"], "std::terminate", "{name}: {stop:#}");
    }
}

/// A signal is caught by its name or number, reported before the program gets it, and delivered when the program
/// continues.
#[test]
fn a_signal_is_caught_before_it_is_delivered() {
    let program = fixture_artifact("ways", "ways_O0");
    for word in ["SIGUSR1", "usr1", "10"] {
        let live = Live::started("signal", &["--stop-on-entry"], &program, &["signals"]);
        live.ask(&["catch", "signal", word]);
        let list = live.ask(&["catch", "list"]);
        assert_eq!(list["probes"][0]["location"], "SIGUSR1", "{list:#}");
        for count in 0..3 {
            let stop = live.moved(&["continue"]);
            assert_eq!(stop["reason"], "signal", "{stop:#}");
            assert_eq!(stop["signal"], 10, "{stop:#}");
            assert_eq!(stop["fatal"], false, "the program handles it: {stop:#}");
            assert_eq!(live.print("handled"), count.to_string());
        }
        live.ask(&["catch", "remove", "1"]);
        assert_eq!(live.run_to_end(), 0);
        assert_eq!(live.output(), "handled 5\n");
        let rows = live
            .recording()
            .rows("SELECT signal, type, phase FROM exceptions ORDER BY seq");
        let told: Vec<Value> = rows.into_iter().map(Value::from).collect();
        assert_eq!(told.len(), 3, "{told:?}");
        assert_eq!(
            told[0],
            json!({"signal": 10, "type": "SIGUSR1", "phase": "first_chance"})
        );
    }
    let live = Live::started("no-signal", &["--stop-on-entry"], &program, &["signals"]);
    let refused = live.refused(&["catch", "signal", "SIGNONE"]);
    assert_eq!(refused["message"], "there is no signal SIGNONE");
}

/// The recorded SIGTRAP signals: how often threads received one, and how often nothing handled it.
fn traps(live: &Live) -> (i64, i64) {
    let row = live.recording().row(
        "SELECT count(*) AS n, coalesce(sum(CASE WHEN phase = 'unhandled' THEN 1 ELSE 0 END), 0) AS unhandled \
         FROM exceptions WHERE signal = 5 AND tid IS NOT NULL",
    );
    let number = |name: &str| row[name].as_i64().expect("a number");
    (number("n"), number("unhandled"))
}

/// The signal that is sent while it is ignored.
const THE_IGNORED: usize = 6;

const OWN_TRAPS: [&str; 2] = ["own_traps_O0", "own_traps_O2"];

/// Both `int3` in its code and raise(3). One more is sent while it is ignored.
#[test]
fn a_program_that_handles_sigtrap_itself_runs_as_it_would() {
    for name in OWN_TRAPS {
        let program = fixture_artifact("own_traps", name);
        let live = Live::started(name, &["--stop-on-entry"], &program, &[]);
        let native = Program::new(&program, live.scratch.path()).run();
        assert_eq!(live.run_to_end(), 17, "{name}");
        assert_eq!(live.output(), native.text(), "{name}");
        assert_eq!(traps(&live), (7, 0), "{name}");
    }
}

#[test]
fn a_stop_for_a_signal_that_the_program_handles_says_so() {
    for name in OWN_TRAPS {
        let program = fixture_artifact("own_traps", name);
        let live = Live::started(name, &["--break", "own"], &program, &[]);
        let native = Program::new(&program, live.scratch.path()).run();
        live.ask(&["catch", "signal", "SIGTRAP"]);
        live.ask(&["catch", "signal", "SIGUSR1"]);
        let mut reasons = vec![live.session()["stop"]["reason"].clone()];
        loop {
            let reply = live.ask(&["continue"]);
            if reply["status"] == "ended" {
                assert_eq!(reply["exit"]["code"], 17, "{name}: {reply:#}");
                break;
            }
            let stop = &reply["stop"];
            reasons.push(stop["reason"].clone());
            if stop["reason"] == "signal" {
                assert_eq!(stop["fatal"], false, "{name}: {stop:#}");
                let signals = reasons.iter().filter(|reason| *reason == "signal");
                // The signal waits until the current action ends. While SIGTRAP is ignored, a trap of the tracer would
                // change that.
                if signals.count() != THE_IGNORED {
                    assert_eq!(live.ask(&["eval", "twice(4)"])["value"], "8", "{name}");
                }
            }
        }
        assert_eq!(live.output(), native.text(), "{name}: {reasons:?}");
        let count = |reason: &str| reasons.iter().filter(|r| **r == reason).count();
        assert_eq!(
            (count("signal"), count("breakpoint")),
            (8, 3),
            "{name}: {reasons:?}"
        );
        assert_eq!(traps(&live), (7, 0), "{name}");
    }
}

#[test]
fn a_sigtrap_that_nothing_handles_is_told_before_it_ends_the_program() {
    for name in OWN_TRAPS {
        let program = fixture_artifact("own_traps", name);
        let live = Live::started(name, &["--stop-on-entry"], &program, &["dies"]);
        let stop = live.moved(&["continue"]);
        assert_eq!(
            (&stop["signal"], &stop["fatal"]),
            (&json!(5), &json!(true)),
            "{stop:#}"
        );
        assert_eq!(live.ask(&["continue"])["exit"]["signal"], 5, "{name}");
        assert_eq!(traps(&live), (1, 1), "{name}");
    }
}

/// The handler that it installed under control also exists afterwards.
#[test]
fn a_program_that_is_let_go_keeps_its_handler_of_sigtrap() {
    for name in OWN_TRAPS {
        let program = fixture_artifact("own_traps", name);
        let live = Live::new(name);
        let native = Program::new(&program, live.scratch.path()).run();
        assert_eq!(native.status, Status::Code(17));
        let result = live.scratch.join("result");
        let path = result.to_str().expect("paths of tests are text");
        live.start(&["--break", "own"], &program, &[path]);
        assert_eq!(live.ask(&["detach"])["exit"]["detached"], true, "{name}");
        let said = wait_until("what the program says", || {
            let text = std::fs::read_to_string(&result).ok()?;
            text.ends_with('\n').then_some(text)
        });
        assert_eq!(said, native.text(), "{name}");
    }
}

//! Goal: a stop at a throw, a panic or a signal says what the program's own handler would see. Method: fixtures print the
//! type and the text that their handlers get; the stops must have told the same, in the same order.

use e2e::{Live, fixture_artifact};
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

/// Type and text of each stop, until the program ends by itself.
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

/// What the program printed: type and text, `-` for none.
fn printed(live: &Live) -> Vec<(String, Option<String>)> {
    live.output()
        .lines()
        .filter_map(|line| line.split_once('|'))
        .map(|(what, text)| (what.to_owned(), (text != "-").then(|| text.to_owned())))
        .collect()
}

#[test]
fn a_throw_is_told_with_the_text_that_its_handler_sees() {
    for name in ["thrown_O0", "thrown_O2", "thrown_static"] {
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
    for name in ["panicked_O0", "panicked_O2"] {
        let live = entered(name, &[]);
        live.ask(&["catch", "panic"]);
        let seen = stops(&live);
        assert_eq!(seen, printed(&live), "{name}");
        assert_eq!(seen.len(), 10, "{name}");
    }
}

#[test]
fn what_nobody_catches_is_told_with_its_type_and_text() {
    for name in ["thrown_O0", "thrown_O2"] {
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

/// A signal is caught by its name or number, told before the program gets it, and delivered when the program goes on.
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

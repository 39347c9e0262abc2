//! Goal: a client that waits for a stop or for output gets it when it comes, and a correct answer when it does not. Method:
//! the binary and a daemon of each test's own; several clients at once.

use e2e::{Live, Status, fixture_artifact, wait_until};
use serde_json::Value;

fn started(fixture: &str, name: &str, options: &[&str], args: &[&str]) -> Live {
    let program = fixture_artifact(fixture, name);
    Live::started(&format!("waits-{name}"), options, &program, args)
}

fn reply(text: &str) -> Value {
    let response: Value = serde_json::from_str(text).expect("JSON");
    assert_eq!(response["success"], true, "{response:#}");
    response["result"].clone()
}

#[test]
fn a_stop_that_is_there_is_shown_at_once_and_a_later_one_waited_for() {
    let live = started("control", "control_O0", &["--break", "bump"], &[]);
    let first = live.session()["stop"].clone();
    let number = first["number"].as_u64().expect("a number");
    // At every request: it is not consumed.
    for _ in 0..2 {
        let again = live.ask(&["await"]);
        assert_eq!(again["status"], "stopped", "{again:#}");
        assert_eq!(again["stop"], first, "{again:#}");
    }
    let after = number.to_string();
    let none = live.ask(&["await", "--after", &after, "--timeout", "0.2"]);
    assert_eq!(none["timed_out"], true, "{none:#}");
    assert_eq!(live.session()["stop"], first, "nothing has moved");
    // All waiting clients get the same stop.
    let words = ["await", "--json", "--after", &after];
    let waiting = [live.command(&words).start(), live.command(&words).start()];
    live.ask(&["continue", "--no-wait"]);
    for client in waiting {
        let ended = client.finish();
        assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
        let told = reply(&ended.text());
        assert_eq!(told["status"], "stopped", "{told:#}");
        assert_eq!(told["stop"]["hits"], 2, "{told:#}");
        assert!(told["stop"]["number"].as_u64() > Some(number), "{told:#}");
    }
    // A stop after the given number counts at once.
    let told = live.ask(&["await", "--after", &after]);
    assert_eq!(told["stop"]["hits"], 2, "{told:#}");
}

#[test]
fn the_end_ends_all_waiting() {
    let live = started("control", "control_O0", &[], &["spinning"]);
    let none = live.ask(&["await", "--timeout", "0.1"]);
    assert_eq!(none["timed_out"], true, "{none:#}");
    assert_eq!(none["status"], "running", "{none:#}");
    let waiting = [
        live.command(&["await", "--json"]).start(),
        live.command(&["await", "--json", "--after", "999"]).start(),
    ];
    live.ask(&["set", "tempo", "90"]);
    for client in waiting {
        let told = reply(&client.finish().text());
        assert_eq!(told["status"], "ended", "{told:#}");
        assert_eq!(told["exit"]["code"], 7, "{told:#}");
    }
    let told = live.ask(&["await"]);
    assert_eq!(told["exit"]["code"], 7, "also who asks later: {told:#}");
}

/// Followed output arrives while the program runs, not when it has ended.
#[test]
fn output_is_followed_while_the_program_runs() {
    let live = started("ways", "ways_O0", &[], &["talking"]);
    let file = live.scratch.join("followed");
    let follower = live
        .command(&["output", "--follow"])
        .wrapped("/bin/sh".as_ref(), ["-c", "exec \"$0\" \"$@\" > followed"])
        .start();
    let read = || std::fs::read_to_string(&file).unwrap_or_default();
    wait_until("what is printed first", || {
        (read() == "before\n").then_some(())
    });
    assert_eq!(live.session()["status"], "running");
    // Others may read it too; following discards nothing.
    assert_eq!(live.output(), "before\n");
    live.ask(&["set", "open_gate", "1"]);
    let ended = follower.finish();
    assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
    assert_eq!(read(), "before\nafter\n");
    assert_eq!(live.ask(&["await"])["exit"]["code"], 0);
    assert_eq!(live.output(), "after\n");
}

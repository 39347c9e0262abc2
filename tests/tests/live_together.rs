//! Goal: if threads stop at the same time, none is resumed before its stop was shown, and each stop is shown once. Method:
//! the fixture `together`, whose eight threads do the same at the same time; all stops are counted, also in the recording.
//! Of several ways each run takes a part; `WHOLE=1` all.

use std::collections::BTreeSet;

use e2e::{Live, fixture_artifact, in_turn, wait_until};
use serde_json::{Value, json};

const THREADS: usize = 8;
const PRINTED: &str = "worked 8 handled 8 caught 8 counter 720\n";

/// A session and the stop that `start` has shown.
fn started(name: &str, options: &[&str]) -> (Live, Value) {
    let program = fixture_artifact("together", "together");
    let live = Live::new(&format!("together-{name}"));
    let mut report = live.start(options, &program, &[]);
    (live, report["stop"].take())
}

/// Continues until the program ends, and returns its stops from `first` on.
fn all_stops(live: &Live, first: Value) -> Vec<Value> {
    let mut stops = vec![first];
    let mut newest = live.ask(&["continue"]);
    while newest["status"] == "stopped" {
        stops.push(newest["stop"].take());
        newest = live.ask(&["continue"]);
    }
    assert_eq!(newest["exit"]["code"], 0, "{newest:#}");
    assert_eq!(live.output(), PRINTED);
    stops
}

fn distinct(stops: &[Value], field: &str) -> usize {
    let values = stops.iter().map(|stop| stop[field].to_string());
    values.collect::<BTreeSet<String>>().len()
}

/// Waits until all eight are at a breakpoint.
fn gather(live: &Live) {
    wait_until("all threads to stop", || {
        (live.session()["stopped_threads"] == THREADS).then_some(())
    });
}

#[test]
fn eight_threads_at_one_breakpoint_are_eight_stops() {
    let (live, first) = started("break", &["--break", "work"]);
    let stops = all_stops(&live, first);
    assert_eq!(stops.len(), THREADS, "{stops:#?}");
    for field in ["thread", "number", "hits"] {
        assert_eq!(distinct(&stops, field), THREADS, "{field}: {stops:#?}");
    }
    // Each of them is in the recording, with its count.
    let sql =
        "SELECT hits, count(*) FROM pauses WHERE reason = 'breakpoint' GROUP BY hits ORDER BY hits";
    let rows = live.recording().rows(sql);
    let counted: Vec<(&Value, &Value)> = rows
        .iter()
        .map(|row| (&row["hits"], &row["count(*)"]))
        .collect();
    let numbers: Vec<Value> = (1..=THREADS).map(|hits| json!(hits)).collect();
    let once = json!(1);
    let expected: Vec<(&Value, &Value)> = numbers.iter().map(|hits| (hits, &once)).collect();
    assert_eq!(counted, expected);
}

#[test]
fn two_of_them_that_fulfil_a_condition_are_two_stops() {
    let (live, _) = started("condition", &["--stop-on-entry"]);
    live.ask(&["break", "work", "--condition", "i == 3 || i == 5"]);
    let first = live.moved(&["continue"]);
    let stops = all_stops(&live, first);
    assert_eq!(stops.len(), 2, "{stops:#?}");
    assert_eq!(distinct(&stops, "thread"), 2, "{stops:#?}");
}

#[test]
fn stops_that_stop_all_threads_are_told_one_after_the_other_too() {
    let (live, _) = started("all-threads", &["--stop-on-entry"]);
    live.ask(&["break", "work", "--all-threads"]);
    let first = live.moved(&["continue"]);
    let stops = all_stops(&live, first);
    assert_eq!(stops.len(), THREADS, "{stops:#?}");
    assert_eq!(distinct(&stops, "thread"), THREADS, "{stops:#?}");
}

#[test]
fn signals_and_exceptions_of_eight_threads_are_told_one_by_one() {
    for what in [&["catch", "signal", "USR1"][..], &["catch", "throw"]] {
        let (live, _) = started(what[1], &["--stop-on-entry"]);
        live.ask(what);
        let first = live.moved(&["continue"]);
        let stops = all_stops(&live, first);
        assert_eq!(stops.len(), THREADS, "{what:?}: {stops:#?}");
        assert_eq!(distinct(&stops, "thread"), THREADS, "{what:?}: {stops:#?}");
    }
}

/// Of each verb that moves a thread.
#[test]
fn no_verb_moves_a_thread_whose_stop_was_not_shown() {
    for verb in in_turn([
        &["next"][..],
        &["step"],
        &["finish"],
        &["until", "add"],
        &["next", "-i"],
    ]) {
        let (live, first) = started(verb[0], &["--break", "work"]);
        gather(&live);
        // The thread whose stop was shown runs to its next barrier; no other stop was shown yet.
        let gone = live.ask(&["continue", "--thread", "--no-wait"]);
        assert_eq!(gone["status"], "running", "{gone:#}");
        let shown = live.moved(verb);
        assert_eq!(shown["reason"], "breakpoint", "{verb:?}: {shown:#}");
        assert_ne!(shown["thread"], first["thread"], "{verb:?}: {shown:#}");
        let moved = live.moved(verb);
        assert_eq!(moved["thread"], shown["thread"], "{verb:?}: {moved:#}");
        assert_eq!(moved["reason"], "step", "{verb:?}: {moved:#}");
    }
}

#[test]
fn await_shows_each_stop_once_and_then_the_newest() {
    let (live, first) = started("await", &["--break", "work"]);
    gather(&live);
    let mut seen = BTreeSet::from([first["number"].to_string()]);
    for left in (0..THREADS - 1).rev() {
        let shown = live.ask(&["await"]);
        let expected = match left {
            0 => Value::Null,
            left => json!(left),
        };
        assert_eq!(shown["more_stops"], expected, "{shown:#}");
        assert!(
            seen.insert(shown["stop"]["number"].to_string()),
            "{shown:#}"
        );
    }
    let again = live.ask(&["await"]);
    assert!(seen.contains(&again["stop"]["number"].to_string()));
    // All were shown, and all go on.
    assert_eq!(live.run_to_end(), 0);
    assert_eq!(live.output(), PRINTED);
}

#[test]
fn what_was_looked_at_counts_as_shown_and_all_can_be_let_go() {
    let (live, first) = started("looked", &["--break", "work"]);
    gather(&live);
    let threads = live.ask(&["threads"]);
    let threads = threads["threads"].as_array().expect("a list").clone();
    let stopped = threads.iter().filter(|thread| thread["state"] == "stopped");
    let others = stopped.filter(|thread| thread["thread"] != first["thread"]);
    for thread in others.take(3) {
        live.ask(&["thread", &thread["thread"].to_string()]);
    }
    let said = live.command(&["continue"]).run().text();
    assert!(
        said.ends_with("3 more threads have stopped; \"continue\" shows them in turn\n"),
        "{said}"
    );
    let both = json!({"id": 1, "command": "continue", "args": {"all": true, "thread_only": true}});
    let refused = live.request(&both);
    assert_eq!(refused["error"]["code"], "BAD_REQUEST", "{refused:#}");
    assert_eq!(live.ask(&["continue", "--all"])["exit"]["code"], 0);
    assert_eq!(live.output(), PRINTED);
}

/// The stops that wait to be shown are the next arrivals at the breakpoint.
#[test]
fn continue_with_a_count_counts_the_stops_that_were_not_shown() {
    let (live, first) = started("counted", &["--break", "work"]);
    gather(&live);
    assert_eq!(first["hits"], 1, "{first:#}");
    let report = live.ask(&["continue", "3"]);
    assert_eq!(report["stop"]["hits"], 4, "{report:#}");
    assert_eq!(report["more_stops"], 4, "{report:#}");
    // Four have arrived, and a fifth one never comes.
    let ended = live.ask(&["continue", "5"]);
    assert_eq!(ended["exit"]["code"], 0, "{ended:#}");
    assert_eq!(live.output(), PRINTED);
}

#[test]
fn a_breakpoint_that_is_gone_or_off_stops_no_thread_any_more() {
    for (verb, name) in [("remove", "removed"), ("disable", "disabled")] {
        let (live, _) = started(name, &["--break", "work"]);
        gather(&live);
        live.ask(&["break", verb, "1"]);
        // The threads stand where they stood until the program is let go.
        assert_eq!(live.session()["stopped_threads"], THREADS, "{verb}");
        let again = live.ask(&["await"]);
        assert_eq!(again["more_stops"], Value::Null, "{verb}: {again:#}");
        assert_eq!(live.ask(&["continue"])["exit"]["code"], 0, "{verb}");
        assert_eq!(live.output(), PRINTED);
    }
}

/// All eight add to one counter: each of their writes stops its thread once, and if a stop does not mention others, the
/// difference is the amount that this thread adds.
#[test]
fn a_contended_counter_is_watched_without_losing_a_write() {
    let (live, _) = started("watch", &["--stop-on-entry", "--display", "amount"]);
    live.ask(&["watch", "counter"]);
    let first = live.moved(&["continue"]);
    let stops = all_stops(&live, first);
    assert_eq!(stops.len(), THREADS * 20, "a stop for each write");
    let number = |value: &Value| {
        let text = value.as_str().expect("text");
        text.parse::<i64>().expect("a number")
    };
    for stop in &stops {
        let (old, new) = (number(&stop["old"]), number(&stop["new"]));
        let amount = number(&stop["displays"][0]["value"]);
        if stop["shared"] != true {
            assert_eq!(new - old, amount, "{stop:#}");
        }
    }
    let listed = live.ask(&["watch", "list"]);
    assert_eq!(listed["probes"][0]["hits"], THREADS * 20, "{listed:#}");
}

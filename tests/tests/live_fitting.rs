//! Goal: answers fit a screen and say how to see what they leave out; locks and long names are shown in the form that people use.
//! Method: a fixture of C++, by two compilers, and one of Rust; each prints its own state.
//! Of several builds of a program each run takes a part; `WHOLE=1` all.

use e2e::{Live, fixture_artifact, in_turn, marked_line};
use serde_json::Value;

/// The limit in characters for one value of many, and for a requested one.
const OF_MANY: usize = 400;
const OF_ONE: usize = 2_000;

const ALL: [(&str, &str); 3] = [
    ("fitting_gcc", "fitting.cc"),
    ("fitting_clang", "fitting.cc"),
    ("fitting_rust", "fitting.rs"),
];

fn stopped(artifact: &str, file: &str) -> Live {
    let at = format!("{file}:{}", marked_line("fitting", file, "stop"));
    let program = fixture_artifact("fitting", artifact);
    Live::started(artifact, &["--break", &at], &program, &[])
}

fn text(live: &Live, words: &[&str]) -> String {
    let ended = live.command(words).run();
    assert!(ended.errors().is_empty(), "{words:?}: {}", ended.errors());
    ended.text()
}

fn value(reply: &Value) -> &str {
    reply["value"].as_str().unwrap_or_default()
}

#[test]
fn values_fit_and_full_ones_are_whole() {
    for (artifact, file) in in_turn(ALL) {
        let live = stopped(artifact, file);
        let locals = live.ask(&["locals"]);
        let variables = locals["variables"].as_array().expect("variables");
        assert!(variables.len() > 10, "{locals:#}");
        let mut shortened = 0;
        for variable in variables {
            let (name, shown) = (&variable["name"], value(variable));
            assert!(
                shown.chars().count() <= OF_MANY,
                "{artifact}: {name}: {shown}"
            );
            let Some(left_out) = variable["left_out"].as_str() else {
                continue;
            };
            shortened += 1;
            assert!(shown.contains("..."), "{artifact}: {name}: {shown}");
            // The names in it can be requested, and show more.
            let asked = live.ask(&["print", "--", left_out]);
            assert!(value(&asked).chars().count() <= OF_ONE, "{asked:#}");
            let full = live.ask(&["print", "--full", "--", left_out]);
            assert!(full.get("left_out").is_none(), "{full:#}");
            assert!(value(&full).len() >= value(&asked).len(), "{full:#}");
        }
        assert!(shortened >= 2, "{artifact}: {locals:#}");
        let numbers = live.print("numbers");
        assert!(numbers.contains("... 990 more"), "{numbers}");
        let full = live.ask(&["print", "--full", "numbers"]);
        assert!(!value(&full).contains("..."), "{full:#}");
        let locals = text(&live, &["locals"]);
        assert!(locals.contains("(shortened: print -- "), "{locals}");
        let locals = text(&live, &["locals", "--full"]);
        assert!(!locals.contains("shortened"), "{locals}");
    }
}

#[test]
fn what_is_outside_is_shown_before_what_is_inside() {
    let live = stopped("fitting_gcc", "fitting.cc");
    let reply = live.ask(&["locals"]);
    let variables = reply["variables"].as_array().expect("variables");
    let tree = variables
        .iter()
        .find(|v| v["name"] == "tree")
        .expect("it is there");
    let shown = value(tree);
    assert!(
        shown.starts_with("{first = 1, branch = {left = {"),
        "{shown}"
    );
    assert!(shown.ends_with(", last = 2}"), "{shown}");
    assert_eq!(live.print("pair.first"), "3");
    assert!(
        live.print("pair")
            .starts_with("{first = 3, second = {number = 3, text = \"ddd")
    );
}

#[test]
fn locks_are_free_or_held() {
    for artifact in in_turn(["fitting_gcc", "fitting_clang"]) {
        let live = stopped(artifact, "fitting.cc");
        let output = live.output();
        let tid = output.trim();
        let held = format!("std::mutex = {{locked = true, owner = {tid}}}");
        for (name, expected) in [
            ("free_lock", "std::mutex = {locked = false}".to_owned()),
            ("held_lock", held.clone()),
            ("guard", format!("std::lock_guard of {held}")),
            (
                "twice_lock",
                format!("std::recursive_mutex = {{locked = true, owner = {tid}, count = 2}}"),
            ),
            (
                "movable",
                format!(
                    "std::unique_lock = {{owns = true, lock = std::recursive_mutex = {{locked = true, owner = {tid}, count = 2}}}}"
                ),
            ),
            (
                "read_lock",
                "std::shared_mutex = {locked = true, readers = 1}".to_owned(),
            ),
            (
                "written_lock",
                format!("std::shared_mutex = {{locked = true, writer = {tid}}}"),
            ),
            ("flag", "std::atomic_flag = {true}".to_owned()),
            ("plain", "pthread_mutex_t = {locked = false}".to_owned()),
        ] {
            assert_eq!(live.print(name), expected, "{artifact}: {name}");
        }
        // clang expects the library to describe this type.
        let changed = live.print("changed");
        match artifact {
            "fitting_clang" => assert_eq!(
                changed,
                "<unknown: std::condition_variable is only declared in the debug information>"
            ),
            _ => assert_eq!(changed, "std::condition_variable = {waiters = 0}"),
        }
    }
}

#[test]
fn values_of_rust_are_what_debug_prints() {
    let live = stopped("fitting_rust", "fitting.rs");
    let output = live.output();
    let lines: Vec<(&str, &str)> = output.lines().filter_map(|l| l.split_once(" = ")).collect();
    assert_eq!(lines.len(), 8, "{output}");
    for (name, printed) in lines {
        assert_eq!(live.print(name), printed, "{name}");
    }
    assert_eq!(
        live.print("held"),
        "Mutex { data: [1, 2], locked: true, poisoned: false, .. }"
    );
    assert_eq!(
        live.print("barrier"),
        "Barrier { count: 0, num_threads: 2, .. }"
    );
}

#[test]
fn short_names_are_shown_and_understood() {
    let cpp = (
        "fitting.cc",
        "Cache<std::string>::get",
        "main::{lambda@",
        "lambda",
    );
    let rust = |short| ("fitting.rs", short, "fitting::main::{closure@", "closure");
    for (artifact, (file, short, closure, mark)) in in_turn([
        ("fitting_gcc", cpp),
        ("fitting_clang", cpp),
        ("fitting_rust", rust("fitting::Cache<K>::get<String>")),
        ("fitting_v0", rust("fitting::Cache<String>::get")),
    ]) {
        let program = fixture_artifact("fitting", artifact);
        let live = Live::started(artifact, &["--break", short], &program, &[]);
        let stop = &live.session()["stop"];
        assert_eq!(
            stop["line"],
            marked_line("fitting", file, "get"),
            "{stop:#}"
        );
        let shown = text(&live, &["where"]);
        assert!(shown.contains(&format!(": {short} at ")), "{shown}");
        // A closure is declared at its start.
        let line = marked_line("fitting", file, mark);
        let closure = format!("{closure}{file}:{}}}", line - 1);
        let probe = live.ask(&["break", &closure]);
        assert_eq!(probe["probes"][0]["verified"], true, "{probe:#}");
        let stop = live.moved(&["continue"]);
        assert_eq!(stop["line"], line, "{stop:#}");
        let backtrace = text(&live, &["backtrace"]);
        assert!(
            backtrace.contains(&format!("#0   {closure} (")),
            "{backtrace}"
        );
    }
}

#[test]
fn long_lists_are_shown_page_by_page() {
    let live = stopped("fitting_rust", "fitting.rs");
    for number in 0..60 {
        live.ask(&["note", &format!("number {number}")]);
    }
    let page = text(&live, &["notes"]);
    assert!(
        page.contains("number 49") && !page.contains("number 50"),
        "{page}"
    );
    assert!(
        page.contains("(10 more: --skip 50, or --limit 0 for all)"),
        "{page}"
    );
    let rest = text(&live, &["notes", "--skip", "50"]);
    assert!(
        rest.contains("number 50") && !rest.contains("more:"),
        "{rest}"
    );
    assert!(text(&live, &["notes", "--full"]).contains("number 59"));
    let reply = live.ask(&["notes"]);
    assert_eq!(reply["notes"].as_array().map(Vec::len), Some(60));
    let reply = live.ask(&["notes", "--limit", "20", "--skip", "10"]);
    assert_eq!(reply["notes"].as_array().map(Vec::len), Some(20));
    assert_eq!(reply["left_out"], 30);
}

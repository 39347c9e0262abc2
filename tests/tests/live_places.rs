//! Goal: a breakpoint is at the location that was given: patterns, lines and columns, addresses; an invalid location is
//! refused with valid ones. Method: the binary and a daemon of each test's own; lines are found by their marks, columns in
//! their text.
//! Of several builds of a program each run takes a part; `WHOLE=1` all.

use e2e::{Live, fixture_artifact, fixture_source, in_turn, marked_line};
use serde_json::{Value, json};

fn line(mark: &str) -> u64 {
    marked_line("control", "control.c", mark)
}

fn entered(name: &str) -> Live {
    let program = fixture_artifact("control", name);
    let live = Live::started(
        &format!("places-{name}"),
        &["--stop-on-entry"],
        &program,
        &[],
    );
    // The rest is about places, not about the first one.
    assert_eq!(live.session()["stop"]["reason"], "entry");
    live
}

/// The functions in which a probe has places, in order of their names.
fn functions(reply: &Value) -> Vec<String> {
    let places = reply["probes"][0]["places"].as_array().expect("a list");
    let mut names: Vec<String> = places
        .iter()
        .map(|place| place["function"].as_str().expect("a name").to_owned())
        .collect();
    names.sort();
    names
}

/// The column, from 1, at which a text begins in the line with this mark.
fn column(mark: &str, text: &str) -> usize {
    let source = std::fs::read_to_string(fixture_source("control").join("control.c"));
    let source = source.expect("a source file");
    let line = source.lines().nth(line(mark) as usize - 1).expect("a line");
    1 + line
        .find(text)
        .unwrap_or_else(|| panic!("{line} has no {text}"))
}

#[test]
fn patterns_match_functions_of_c() {
    let live = entered("control_O0");
    let set = live.ask(&["break", "sum_*"]);
    assert_eq!(functions(&set), ["sum_to"]);
    assert_eq!(
        functions(&live.ask(&["break", "--function", "*ump"])),
        ["bump"]
    );
    assert_eq!(functions(&live.ask(&["break", "lea?"])), ["leaf"]);
    // A leading star is read as a dereference.
    let refused = live.refused(&["break", "*ump"]);
    assert_eq!(refused["code"], "EVAL_FAILED", "{refused:#}");
    assert_eq!(
        refused["hint"],
        "an address is written as *0x401136; for functions that match: --function '*ump'"
    );
    let refused = live.refused(&["break", "--function", "*nothing_like_it"]);
    assert_eq!(refused["code"], "INVALID_FUNCTION", "{refused:#}");
    for function in ["bump", "leaf", "sum_to"] {
        let stop = live.moved(&["continue"]);
        assert_eq!(stop["function"], function, "{stop:#}");
        let probe = stop["probe"].to_string();
        live.ask(&["break", "disable", &probe]);
    }
    live.ask(&["break", "disable", "--all"]);
    assert_eq!(live.run_to_end(), 7);
}

#[test]
fn patterns_match_functions_in_namespaces_and_types() {
    for name in in_turn(["throws_O0", "throws_O2", "throws_O2_fixed"]) {
        let live = entered(name);
        let member = live.ask(&["break", "audio::Processor::*"]);
        assert_eq!(
            functions(&member),
            ["audio::Processor::process"],
            "{name}: {member:#}"
        );
        let all = live.ask(&["break", "audio::*"]);
        let (advance, process) = ("audio::advance", "audio::Processor::process");
        assert_eq!(functions(&all), [process, advance], "{name}: {all:#}");
        assert_eq!(live.moved(&["continue"])["function"], process, "{name}");
        assert_eq!(live.moved(&["continue"])["function"], advance, "{name}");
        live.ask(&["break", "remove", "--all"]);
        assert_eq!(live.run_to_end(), 0, "{name}");
    }
    let live = entered("control_rust_O0");
    let set = live.ask(&["break", "control::sum_*"]);
    assert_eq!(functions(&set), ["control::sum_to"], "{set:#}");
    assert_eq!(live.moved(&["continue"])["function"], "control::sum_to");
    assert_eq!(live.run_to_end(), 7);
}

#[test]
fn a_column_chooses_a_statement_of_its_line() {
    let live = entered("control_O0");
    let at = format!("control.c:{}", line("sum: loop"));
    // The compiler's columns: those of assigned names, and of operators.
    let first = column("sum: loop", "i = 1");
    let operator = column("sum: loop", "< n");
    let step = column("sum: loop", "++");
    let whole = live.ask(&["break", &at]);
    let starts = &whole["probes"][0]["places"][0];
    assert_eq!(starts["column"], first, "the first of the line: {whole:#}");
    live.ask(&["break", "remove", "--all"]);
    for (given, column) in [(operator, operator), (operator + 1, operator), (step, step)] {
        let set = live.ask(&["break", &format!("{at}:{given}")]);
        let place = &set["probes"][0]["places"][0];
        assert_eq!(place["line"], line("sum: loop"), "{given}: {set:#}");
        assert_eq!(place["column"], column, "{given}: {set:#}");
    }
    // Twice in the same statement is one breakpoint.
    let list = live.ask(&["break", "list"]);
    assert_eq!(list["probes"].as_array().map(Vec::len), Some(2), "{list:#}");
    // Outside all statements the nearest one counts.
    let keyword = column("sum: loop", "for");
    for (given, column) in [(1, keyword), (99, step)] {
        let set = live.ask(&["break", &format!("{at}:{given}")]);
        let probe = &set["probes"][0];
        assert_eq!(probe["places"][0]["column"], column, "{given}: {set:#}");
        assert_eq!(probe["existed"], given == 99, "{set:#}");
        if given == 1 {
            let message =
                format!("no statement begins at or before column 1; moved to column {keyword}");
            assert_eq!(probe["message"], message.as_str());
            live.ask(&["break", "remove", &probe["id"].to_string()]);
        }
    }
    // The test runs five times, the step four.
    for _ in 0..9 {
        assert_eq!(live.moved(&["continue"])["line"], line("sum: loop"));
    }
    assert_eq!(live.run_to_end(), 7);
    let list = live.ask(&["break", "list"]);
    assert_eq!(list["probes"][0]["hits"], 5, "{list:#}");
    assert_eq!(list["probes"][1]["hits"], 4, "{list:#}");
}

#[test]
fn a_line_without_code_moves_on_in_its_function_and_says_so() {
    let live = entered("throws_O0");
    let throws = |mark| marked_line("control", "throws.cc", mark);
    // The brace between head and body.
    let brace = throws("processor: advance") - 1;
    let head = brace - 1;
    for asked in [brace, head] {
        let at = format!("throws.cc:{asked}");
        let shown = live.command(&["break", &at]).run().text();
        let probe = live.ask(&["break", "list"])["probes"][0].take();
        if probe["places"][0]["line"] == asked {
            // A function's head has code: it stores the parameters.
            assert!(!shown.contains("moved"), "{shown}");
        } else {
            assert_eq!(probe["places"][0]["line"], throws("processor: advance"));
            assert!(
                shown.contains(&format!(
                    "line {asked} has no code; moved to line {}",
                    throws("processor: advance")
                )),
                "{shown}"
            );
        }
        live.ask(&["break", "remove", "--all"]);
    }
    let set = live.ask(&["break", &format!("throws.cc:{brace}")]);
    assert_eq!(
        set["probes"][0]["message"],
        format!(
            "line {brace} has no code; moved to line {}",
            throws("processor: advance")
        )
    );
    let stop = live.moved(&["continue"]);
    assert_eq!(stop["line"], throws("processor: advance"), "{stop:#}");
}

#[test]
fn an_address_is_one_of_an_instruction() {
    let program = fixture_artifact("control", "control_O0");
    let live = Live::started("address", &["--break", "middle"], &program, &[]);
    let code = live.ask(&["disassemble", "--count", "3"]);
    let second = &code["instructions"][1];
    let address = second["address"].as_str().expect("text").to_owned();
    let number = u64::from_str_radix(&address[2..], 16).expect("an address");
    let inside = live.refused(&["break", &format!("{:#x}", number + 1)]);
    assert_eq!(inside["code"], "INVALID_ADDRESS", "{inside:#}");
    assert_eq!(
        inside["message"],
        format!(
            "the thread cannot be stopped at {:#x}: it is in the middle of an instruction",
            number + 1
        )
    );
    assert_eq!(
        inside["hint"],
        format!("the nearest place is {address}").as_str()
    );
    let nowhere = live.refused(&["break", "0x10"]);
    assert_eq!(nowhere["code"], "INVALID_ADDRESS", "{nowhere:#}");
    assert_eq!(nowhere["message"], "no module has code at 0x10");
    // The whole function around it, or this many instructions from there on.
    let around = live.ask(&["disassemble", &address]);
    let around = around["instructions"].as_array().expect("a list");
    let whole = live.ask(&["disassemble", "middle"]);
    assert_eq!(json!(around), whole["instructions"]);
    assert_eq!(around[0]["symbol"], "middle+0");
    let second = around
        .iter()
        .position(|one| one["address"] == address.as_str());
    let second = second.expect("it is in its function");
    let two = live.ask(&["disassemble", &address, "--count", "2"]);
    assert_eq!(two["instructions"], json!(around[second..second + 2]));
    live.ask(&["break", &address]);
    assert_eq!(live.moved(&["continue"])["address"], address.as_str());
    assert_eq!(live.run_to_end(), 7);
}

#[test]
fn a_breakpoint_for_once_is_gone_after_its_stop() {
    let live = entered("control_O0");
    live.ask(&["break", "bump", "--once", "--condition", "by == 3"]);
    let stop = live.moved(&["continue"]);
    assert_eq!(stop["function"], "bump", "{stop:#}");
    assert_eq!(live.print("by"), "3");
    let list = live.ask(&["break", "list"]);
    assert_eq!(list["probes"], json!([]));
    // Where it was, others can be.
    live.ask(&["break", "bump", "--once"]);
    assert_eq!(live.moved(&["continue"])["hits"], 1);
    assert_eq!(live.print("by"), "4");
    assert_eq!(live.run_to_end(), 7);
    assert!(live.output().starts_with("counter 55\n"));
}

//! Goal: a user sees the program's values, and the program gets the user's changes. Method: a fixture with values of every
//! kind; the program itself prints what it received.
//! Of several builds of a program each run takes a part; `WHOLE=1` all.

use e2e::{Live, Program, Scratch, Status, compiled, fixture_artifact, in_turn, marked_line};
use serde_json::json;

fn line(mark: &str) -> u64 {
    let file = if mark.starts_with("main") {
        "changed.rs"
    } else {
        "changed.cc"
    };
    marked_line("changed", file, mark)
}

fn stopped_at(name: &str, mark: &str) -> Live {
    let program = fixture_artifact("changed", name);
    let file = if name == "changed_rust" {
        "changed.rs"
    } else {
        "changed.cc"
    };
    let at = format!("{file}:{}", line(mark));
    let live = Live::started(&format!("{name}-values"), &["--break", &at], &program, &[]);
    assert_eq!(live.session()["stop"]["line"], line(mark), "{name}");
    live
}

fn eval(live: &Live, text: &str) -> String {
    let reply = live.ask(&["eval", text]);
    reply["value"]
        .as_str()
        .unwrap_or_else(|| panic!("{text}: {reply:#}"))
        .to_owned()
}

#[test]
fn parameters_of_every_kind_are_written_on_the_stack_and_in_registers() {
    for name in in_turn(["changed_O0", "changed_O2"]) {
        let live = stopped_at(name, "show: print");
        for (target, value, shown) in [
            ("yes", "true", "true"),
            ("mode", "Mode::Both", "Mode::Both"),
            ("level", "HIGH", "HIGH"),
            ("single", "-0.25", "-0.25"),
            ("twice", "1e10", "10000000000"),
            ("text", "text + 1", "\"ext\""),
            ("number", "-5", "-5"),
            ("byte", "255", "255"),
        ] {
            let written = &live.ask(&["set", target, value])["results"][0];
            let now = written["new_value"].as_str().expect("text");
            assert!(
                now.ends_with(shown) || now.starts_with(shown),
                "{name} {target}: {written:#}"
            );
        }
        let refused = live.refused(&["set", "byte", "256"]);
        assert_eq!(refused["code"], "WRITE_FAILED", "{refused:#}");
        live.moved(&["next"]);
        assert_eq!(live.run_to_end(), 0, "{name}");
        let output = live.output();
        assert!(
            output.starts_with("1 200 70000 -0.25 1e+10 ext -5 255\n"),
            "{name}: {output}"
        );
    }
}

#[test]
fn a_variable_with_a_location_list_is_written_where_it_is_now() {
    for name in in_turn(["changed_O0", "changed_O2"]) {
        let live = stopped_at(name, "rounds: add");
        live.moved(&["continue"]);
        assert_eq!(live.print("sum"), "3", "{name}");
        live.ask(&["set", "sum", "1000"]);
        live.ask(&["break", "disable", "--all"]);
        assert_eq!(live.run_to_end(), 0, "{name}");
        let output = live.output();
        // 4 + 5 + 6 are still to come.
        assert!(output.contains("rounds 1015\n"), "{name}: {output}");
    }
}

#[test]
fn what_is_optimized_out_is_not_written() {
    let live = stopped_at("changed_O2", "gone: after");
    let refused = live.refused(&["set", "lost", "1"]);
    assert_eq!(
        refused["message"],
        "Variable 'lost' is optimized out at this PC. Recompile with -O0."
    );
    let locals = live.ask(&["locals"]);
    assert!(locals.to_string().contains("optimized out"), "{locals:#}");
    // The text has a count, unless all are requested.
    let text = |words: &[&str]| live.command(words).run().text();
    let short = text(&["locals"]);
    assert!(!short.contains("lost"), "{short}");
    assert!(short.contains(" optimized out: --full lists "), "{short}");
    let full = text(&["locals", "--full"]);
    assert!(
        full.contains("lost") && !full.contains("--full lists"),
        "{full}"
    );
    assert_eq!(live.run_to_end(), 0);
}

#[test]
fn variables_of_the_program_come_first_where_a_thread_stands_in_a_library() {
    let name = "values-steady";
    let live = Live::new(name);
    let file = live.scratch.join("shared");
    let file = file.to_str().expect("paths of tests are text");
    let report = live.start(
        &[],
        &fixture_artifact("steady", "steady"),
        &[file, "0", "60000000"],
    );
    let pid = report["pid"].as_i64().expect("a process");
    e2e::wait_until("both threads to sleep", || {
        let threads = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?;
        let waits = |thread: std::io::Result<std::fs::DirEntry>| {
            let call = std::fs::read_to_string(thread.ok()?.path().join("syscall")).ok()?;
            // clock_nanosleep
            call.starts_with("230 ").then_some(())
        };
        (threads.filter_map(waits).count() == 2).then_some(())
    });
    live.ask(&["pause"]);
    let locals = live.ask(&["locals"]);
    let own = &locals["own"];
    let index = own["frame"].as_u64().expect("a frame of the program");
    assert!(index > 0, "{locals:#}");
    let text = live.command(&["locals"]).run().text();
    let function = own["function"].as_str().expect("a name");
    assert!(
        text.starts_with(&format!("In frame {index}, {function}:\n")),
        "{text}"
    );
    let whole = live.command(&["where"]).run().text();
    assert!(
        whole.contains(&format!("In frame {index}, {function}:\n")),
        "{whole}"
    );
    live.ask(&["frame", &index.to_string()]);
    let there = live.ask(&["locals"]);
    assert_eq!(there["function"], own["function"]);
    assert_eq!(there["variables"], own["variables"]);
    assert!(there["own"].is_null(), "{there:#}");
}

#[test]
fn members_elements_and_bit_fields_are_written() {
    for name in in_turn(["changed_O0", "changed_units4", "changed_units5"]) {
        let live = stopped_at(name, "objects: all");
        for (target, value) in [
            ("outer.inner.x", "-9"),
            ("outer.inner.y", "outer.inner.y * 2"),
            ("outer.inner.on", "true"),
            ("outer.inner.next", "&outer.inner"),
            ("outer.inner.bits", "2"),
            ("outer.inner.sbits", "-16"),
            ("outer.inner.name[0]", "'v'"),
            ("outer.inner.name", "screw"),
        ] {
            live.ask(&["set", target, value]);
        }
        for (target, value) in [("bits", "9"), ("name", "much too long")] {
            let refused = live.refused(&["set", &format!("outer.inner.{target}"), value]);
            assert_eq!(refused["code"], "WRITE_FAILED", "{refused:#}");
        }
        live.ask(&["watch", "outer.inner.x"]);
        live.ask(&["watch", "remove", "2"]);
        live.ask(&["break", "disable", "--all"]);
        assert_eq!(live.run_to_end(), 0, "{name}");
        let output = live.output();
        assert!(
            output.contains("inner -9 5 1 screw 2 -16 next\n"),
            "{name}: {output}"
        );
    }
}

#[test]
fn types_in_units_of_their_own_are_found_by_name() {
    for name in in_turn(["changed_O0", "changed_units4", "changed_units5"]) {
        let live = stopped_at(name, "objects: all");
        let size = live.print("sizeof(outer.inner)");
        assert_eq!(live.print("sizeof(shop::Outer::Inner)"), size, "{name}");
        assert_eq!(
            live.print("((shop::Outer::Inner *)&outer)->x"),
            "1",
            "{name}"
        );
        assert_eq!(live.print("(Mode)200"), "Mode::Both", "{name}");
    }
}

#[test]
fn strings_are_written_as_a_whole_where_they_have_room() {
    let live = stopped_at("changed_O0", "objects: all");
    live.ask(&["set", "text", "\"fifteen letters\""]);
    live.ask(&["set", "grown", "now short"]);
    let refused = live.refused(&["set", "text", "\"sixteen letters!\""]);
    assert_eq!(
        refused["message"],
        "the text has 16 bytes, but this std::string has room for 15"
    );
    assert_eq!(live.print("text"), "\"fifteen letters\"");
    live.ask(&["eval", "text = \"new\""]);
    live.ask(&["break", "disable", "--all"]);
    assert_eq!(live.run_to_end(), 0);
    let output = live.output();
    assert!(
        output.contains("text new 3\ngrown now short 9\n"),
        "{output}"
    );
    let writes = live
        .recording()
        .number("SELECT count(*) FROM writes WHERE target = 'text'");
    assert_eq!(writes, 4, "characters and length, twice");
    let live = stopped_at("changed_rust", "main: all");
    live.ask(&["set", "text", "\"caf\u{e9}\""]);
    assert_eq!(live.print("text.len()"), "5");
    let refused = live.refused(&["set", "text", "\"seventeen letters\""]);
    assert!(
        refused["message"]
            .as_str()
            .expect("text")
            .contains("has room for 16"),
        "{refused:#}"
    );
    live.ask(&["set", "text", ""]);
    live.ask(&["set", "text", "sixteen letters!"]);
    for (target, value) in [
        ("mode", "On"),
        ("ratio", "2.5"),
        ("letter", "'\u{e9}'"),
        ("flag", "true"),
    ] {
        live.ask(&["set", target, value]);
    }
    live.ask(&["break", "disable", "--all"]);
    assert_eq!(live.run_to_end(), 0);
    let output = live.output();
    assert!(output.contains("text sixteen letters! 16\n"), "{output}");
    assert!(output.contains("On 2.5 \u{e9} true On\n"), "{output}");
}

#[test]
fn smart_pointers_are_followed() {
    let live = stopped_at("changed_O0", "objects: all");
    assert_eq!(live.print("owner->gain"), "2");
    assert_eq!(live.print("(*owner).gain"), "2");
    assert_eq!(live.print("shared->x + (*shared).x"), "22");
    assert_eq!(
        live.refused(&["print", "*nothing"])["message"],
        "the pointer is null"
    );
    let live = stopped_at("changed_rust", "main: all");
    assert_eq!(live.print("shared.x + (*shared).y"), "11");
    assert_eq!(live.print("boxed.x + (*boxed).y"), "15");
}

#[test]
fn methods_are_called() {
    for name in in_turn(["changed_O0", "changed_units5"]) {
        let live = stopped_at(name, "objects: all");
        for (call, value) in [
            ("filter.scale(3)", "4.5"),
            ("(&filter)->scale(2.0)", "3"),
            ("filter.add(5)", "5"),
            ("filter.add(2.5)", "3"),
            ("base->kind()", "2"),
            ("filter.kind()", "1"),
            ("louder.scale(2)", "8"),
            ("owner->louder(4)", "40"),
            ("owner->scale(4)", "8"),
        ] {
            assert_eq!(eval(&live, call), value, "{name}: {call}");
        }
        assert_eq!(live.print("filter.added"), "1005", "{name}");
        let refused = live.refused(&["eval", "filter.scael(3)"]);
        assert_eq!(refused["code"], "EVAL_FAILED", "{refused:#}");
        let refused = live.refused(&["eval", "filter.scale()"]);
        assert_eq!(
            refused["message"], "scale takes 1 argument, not 0",
            "{name}"
        );
        live.ask(&["eval", "filter.raise()"]);
        assert_eq!(live.print("filter.gain"), "99", "{name}");
    }
    let live = stopped_at("changed_rust", "main: all");
    for (call, value) in [
        ("point.sum()", "7"),
        ("point.shift(10)", "13"),
        ("point.area(2)", "104"),
        ("boxed.sum()", "15"),
        ("shared.sum()", "11"),
    ] {
        assert_eq!(eval(&live, call), value, "{call}");
    }
    live.ask(&["eval", "list.push(42)"]);
    live.ask(&["break", "disable", "--all"]);
    assert_eq!(live.run_to_end(), 0);
    let output = live.output();
    assert!(output.contains("list [1, 2, 3, 4, 42] 26\n"), "{output}");
}

#[test]
fn memory_is_shown_and_written() {
    let program = fixture_artifact("control", "control_O0");
    let live = Live::started("memory", &["--break", "middle"], &program, &[]);
    let shown = live.ask(&["memory", "read", "&tempo", "--count", "4"]);
    assert_eq!(shown["bytes"], "78000000", "{shown:#}");
    let address = shown["address"].as_str().expect("text").to_owned();
    let again = live.ask(&["memory", &address, "--count", "4", "--format", "hex"]);
    assert_eq!(again["bytes"], "78000000");
    let written = live.ask(&["memory", "write", &address, "5a00", "0000"]);
    assert_eq!(written["previous"], "78000000", "{written:#}");
    assert_eq!(live.print("tempo"), "90");
    let shown = live
        .command(&["memory", "&tempo", "--count", "4"])
        .run()
        .text();
    assert!(shown.contains("5a 00 00 00"), "{shown}");
    let refused = live.refused(&["memory", "read", "0x10"]);
    assert_eq!(refused["code"], "READ_FAILED", "{refused:#}");
    let refused = live.refused(&["memory", "write", &address, "5"]);
    assert_eq!(refused["code"], "BAD_REQUEST", "{refused:#}");
    // The bytes of a patched function are the program's own.
    let code = live.ask(&["memory", "&middle", "--count", "1"]);
    assert_eq!(code["bytes"], "55", "push %rbp: {code:#}");
    live.ask(&["break", "disable", "--all"]);
    assert_eq!(live.run_to_end(), 7);
    assert!(live.output().ends_with("tempo 90\n"));
}

#[test]
fn registers_are_shown_by_every_name_and_written() {
    let program = fixture_artifact("control", "control_O2");
    let live = Live::started("registers", &["--break", "leaf"], &program, &[]);
    let all = live.ask(&["registers"]);
    assert!(
        all["registers"].as_array().expect("a list").len() >= 18,
        "{all:#}"
    );
    let some = live.ask(&["registers", "rdi", "rip"]);
    assert_eq!(some["registers"][0]["value"], "0x14", "{some:#}");
    assert!(
        some["registers"][1]["symbol"]
            .as_str()
            .expect("text")
            .starts_with("leaf"),
        "{some:#}"
    );
    assert_eq!(live.print("$rdi"), "20");
    live.ask(&["set", "$rdi", "500"]);
    assert_eq!(live.print("x"), "500");
    let refused = live.refused(&["registers", "raxx"]);
    assert_eq!(refused["code"], "BAD_REQUEST", "{refused:#}");
    live.ask(&["break", "disable", "--all"]);
    assert_eq!(live.run_to_end(), 7);
    assert!(live.output().contains("middle 3004\n"));
}

#[test]
fn code_and_source_are_shown_together() {
    let program = fixture_artifact("control", "control_O0");
    let live = Live::started("code", &["--break", "leaf"], &program, &[]);
    let mark = |mark: &str| marked_line("control", "control.c", mark);
    let shown = live.command(&["disassemble", "--source"]).run().text();
    let first = shown.find("int twice = x * 2;").expect("the first line");
    let last = shown.find("return twice + 1;").expect("the last line");
    let arrow = shown.find("->").expect("where it stands");
    assert!(first < last && first < arrow, "{shown}");
    let code = live.ask(&["disassemble", "leaf", "--count", "3"]);
    assert_eq!(
        code["instructions"].as_array().map(Vec::len),
        Some(3),
        "{code:#}"
    );
    let whole = live.ask(&["source", "--function", "leaf"]);
    let lines = whole["lines"].as_array().expect("lines");
    assert!(
        lines
            .iter()
            .any(|line| line == "  return twice + 1; /* leaf: last */"),
        "{whole:#}"
    );
    let near = live.ask(&[
        "list",
        &format!("control.c:{}", mark("sum: add")),
        "--context",
        "1",
    ]);
    assert_eq!(near["lines"].as_array().map(Vec::len), Some(3), "{near:#}");
    assert_eq!(near["line"], mark("sum: add"));
    let around = live.ask(&["where", "--context", "2"]);
    assert_eq!(around["stop"]["function"], "leaf", "{around:#}");
}

#[test]
fn frames_are_walked_and_their_variables_seen() {
    let program = fixture_artifact("control", "control_O0");
    let live = Live::started("frames", &["--break", "leaf"], &program, &[]);
    live.ask(&["break", "disable", "--all"]);
    live.ask(&["break", "leaf", "--condition", "x == 41"]);
    live.moved(&["continue"]);
    let names = |live: &Live| live.ask(&["frame"])["frame"]["function"].to_string();
    assert_eq!(names(&live), "\"leaf\"");
    live.ask(&["up"]);
    assert_eq!(names(&live), "\"middle\"");
    assert_eq!(live.print("x"), "41");
    live.ask(&["up"]);
    assert_eq!(names(&live), "\"main\"");
    live.ask(&["down", "2"]);
    assert_eq!(names(&live), "\"leaf\"");
    live.ask(&["up", "50"]);
    assert_eq!(names(&live), "\"_start\"", "there is none further out");
    live.ask(&["frame", "1"]);
    let args = live.ask(&["args"]);
    assert_eq!(args["variables"][0]["name"], "x", "{args:#}");
    assert_eq!(args["variables"][0]["value"], "41", "{args:#}");
    assert_eq!(live.refused(&["frame", "99"])["code"], "NO_FRAME");
    let shown = live
        .command(&["backtrace", "--locals", "--limit", "2"])
        .run()
        .text();
    assert!(
        shown.contains("leaf (x=41)") && shown.contains("more frames follow"),
        "{shown}"
    );
    let hex = live.ask(&["print", "--format", "hex", "x"]);
    assert_eq!(hex["value"], "0x29");
    let typed = live.command(&["print", "--type", "x"]).run().text();
    assert_eq!(typed, "$3 = (int) 41\n");
}

/// A debugger can name variables, or addresses with a type, and gets old and new values.
#[test]
fn many_places_are_written_by_one_request() {
    let live = stopped_at("changed_O0", "objects: all");
    let address = live.ask(&["print", "&outer.inner.y"])["value"]
        .as_str()
        .expect("text")
        .to_owned();
    let address = address
        .split_whitespace()
        .find(|w| w.starts_with("0x"))
        .expect("an address");
    let answer = live.request(&json!({"id": 5, "command": "write", "args": {"targets": [
        {"variable": "outer.inner.x", "value": -9},
        {"variable": "outer.inner.on", "value": true},
        {"address": address, "type": "double", "value": 0.5},
        {"address": address, "type": "f64", "value": "outer.inner.y * 4"},
        {"address": address, "bytes": "0000000000000840"},
    ]}}));
    assert_eq!(answer["success"], true, "{answer:#}");
    let results = answer["result"]["results"].as_array().expect("results");
    let changes: Vec<_> = results
        .iter()
        .map(|r| (r["previous_value"].clone(), r["new_value"].clone()))
        .collect();
    let wanted = [
        ("1", "-9"),
        ("false", "true"),
        ("2.5", "0.5"),
        ("0.5", "2.0"),
    ];
    let wanted = wanted.map(|(old, new)| (json!(old), json!(new)));
    assert_eq!(changes[..4], wanted, "{answer:#}");
    assert_eq!(
        changes[4],
        (json!("0000000000000040"), json!("0000000000000840"))
    );
    let refused = live.request(&json!({"id": 6, "command": "write", "args": {"targets": [
        {"address": address, "type": "nothing_like_it", "value": 1},
    ]}}));
    assert_eq!(refused["success"], false, "{refused:#}");
    live.ask(&["break", "disable", "--all"]);
    assert_eq!(live.run_to_end(), 0);
    assert!(
        live.output().contains("inner -9 3 1 bolt 5 -3 null\n"),
        "{}",
        live.output()
    );
}

#[test]
fn a_member_is_watched() {
    let live = stopped_at("changed_O0", "objects: tell");
    live.ask(&["watch", "filter.added", "--condition", "filter.added > 500"]);
    let list = live.ask(&["watch", "list"]);
    assert_eq!(
        list["probes"][0]["location"], "filter.added (write, 4 bytes)",
        "{list:#}"
    );
    let stop = live.moved(&["continue"]);
    assert_eq!(stop["reason"], "watch", "{stop:#}");
    assert_eq!(
        (&stop["old"], &stop["new"]),
        (&json!("0"), &json!("1000")),
        "{stop:#}"
    );
    assert_eq!(stop["by"]["function"], "shop::Filter::add", "{stop:#}");
    live.ask(&["watch", "remove", "2"]);
    assert_eq!(live.run_to_end(), 0);
}

/// A function that waits forever is abandoned, and the thread is as it was before.
#[test]
fn a_call_that_does_not_return_ends_with_its_time_limit() {
    let live = Live::new("endless");
    live.configure("[timeouts]\nrequest_secs = 3\n");
    let program = fixture_artifact("ways", "ways_O0");
    live.start(&["--break", "raising"], &program, &["signals"]);
    // The commands wait longer for their answers than the daemon for the call.
    live.configure("");
    let before = live.session()["stop"].clone();
    let refused = live.refused(&["eval", "waiter(0)"]);
    assert_eq!(refused["code"], "EVAL_FAILED", "{refused:#}");
    let why = refused["message"].as_str().expect("text");
    assert!(
        why.contains("did not return in time; it was abandoned in "),
        "{refused:#}"
    );
    assert!(why.contains("waiter at "), "{refused:#}");
    assert_eq!(live.session()["stop"], before);
    live.ask(&["break", "disable", "--all"]);
    assert_eq!(live.run_to_end(), 0);
    assert_eq!(live.output(), "handled 5\n");
}

#[test]
fn a_call_passes_breakpoints_in_what_it_calls() {
    let program = fixture_artifact("control", "control_O0");
    let live = Live::started("called-breakpoint", &["--break", "main"], &program, &[]);
    live.ask(&["break", "middle"]);
    let before = live.session()["stop"].clone();
    // leaf(1) and 1.
    assert_eq!(live.ask(&["eval", "middle(1)"])["value"], "4");
    assert_eq!(live.session()["stop"], before);
    let list = live.ask(&["break", "list"]);
    let hits: Vec<_> = list["probes"]
        .as_array()
        .expect("probes")
        .iter()
        .map(|probe| probe["hits"].clone())
        .collect();
    assert_eq!(hits, [1, 1], "{list:#}");
    assert_eq!(live.moved(&["continue"])["function"], "middle");
}

/// Thread-local variables are found through the dynamic linker's data; the order of modules does not determine them.
#[test]
fn thread_locals_of_libraries_are_those_of_the_stopped_thread() {
    let program = fixture_artifact("thread_locals", "thread_locals");
    let live = Live::started("thread-locals", &["--break", "meet"], &program, &[]);
    for thread in 1..=3 {
        let stop = match thread {
            1 => live.session()["stop"].clone(),
            _ => live.moved(&["continue"]),
        };
        assert_eq!(stop["function"], "meet", "{stop:#}");
        for (number, name) in (0..).zip([
            "in_program",
            "libdynamic.so::in_dynamic",
            "libfixed.so::in_fixed",
        ]) {
            let value = live.ask(&["print", name])["value"].take();
            let expected = (thread * 100 + number).to_string();
            assert_eq!(value, expected, "{name} of {thread}: {value:#}");
        }
        if thread < 3 {
            let loaded = live.ask(&["print", "loaded.so::in_loaded"])["value"].take();
            assert_eq!(loaded, (thread * 100 + 3).to_string(), "{loaded:#}");
        } else {
            let loaded = live.ask(&["print", "loaded.so::in_loaded"]);
            let why = loaded["unknown"].as_str().expect("text");
            assert!(why.contains("has not used"), "{loaded:#}");
        }
        live.ask(&[
            "set",
            "libdynamic.so::in_dynamic",
            &(thread * 7).to_string(),
        ]);
        let value = live.ask(&["print", "libdynamic.so::in_dynamic + 1"])["value"].take();
        assert_eq!(value, (thread * 7 + 1).to_string(), "{value:#}");
        live.ask(&["set", "in_program", &(thread * 9).to_string()]);
    }
    assert_eq!(live.run_to_end(), 0);
    let said = "thread 1: program 9\nthread 2: program 18\nthread 3: program 27\n";
    assert!(live.output().contains(said), "{}", live.output());
}

/// Of the program's own code only `_start` is on the stack once `main` has returned.
#[test]
fn start_up_code_is_nobody_s_own_frame() {
    let program = fixture_artifact("control", "control_O0");
    let live = Live::started("own-start", &["--break", "_exit"], &program, &[]);
    let frames = live.ask(&["backtrace"]);
    let frames = frames["threads"][0]["frames"].as_array().expect("frames");
    let last = frames.last().expect("a frame");
    assert_eq!(last["function"], "_start", "{last:#}");
    let locals = live.ask(&["locals"]);
    assert!(locals["own"].is_null(), "{locals:#}");
    assert_eq!(live.run_to_end(), 7);
}

const EXTENDED: &str = r#"volatile int sink;
__attribute__((noinline)) static long double half(long double x) { return x / 2; }
int main(int argc, char **argv) {
  long double kept = half(argc + 8);
  sink = 1; /* here */
  sink = kept > 3;
  return 0;
}
"#;

const CONSTANT: &str = "volatile int sink;
static int told(long double constant, int n) {
  sink = n; /* here */
  return constant > n;
}
int main(int argc, char **argv) {
  return told(1.25L, argc);
}
";

/// gcc keeps the number in a register of the x87 unit; clang states the constant without its padding.
#[test]
fn extended_numbers_in_registers_and_constants_are_known() {
    let scratch = Scratch::new("values-extended");
    let app = compiled(&scratch, "app.c", EXTENDED, &["-g", "-O2"]);
    let live = Live::started("values-x87", &["--break", "app.c:5"], &app, &[]);
    assert_eq!(live.print("kept"), "4.5");
    std::fs::write(scratch.join("other.c"), CONSTANT).expect("the test's folder is writable");
    let built = Program::new("/usr/bin/clang", scratch.path())
        .args(["-g", "-O1", "-o", "other", "other.c"])
        .run();
    assert_eq!(built.status, Status::Code(0), "{}", built.errors());
    let other = scratch.join("other");
    let live = Live::started("values-x87-clang", &["--break", "other.c:3"], &other, &[]);
    assert_eq!(live.print("constant"), "1.25");
}

const HELD: &str = "#include <atomic>
#include <memory>
struct Point { int x, y; };
std::atomic<std::shared_ptr<Point>> held, nothing;
std::atomic<std::weak_ptr<Point>> seen;
volatile int sink;
__attribute__((noinline)) void here() { sink = 1; }
int main() {
  auto first = std::make_shared<Point>(Point{3, 4});
  held = first;
  seen = first;
  here();
  reinterpret_cast<unsigned long *>(&held)[1] |= 1;
  here();
  reinterpret_cast<unsigned long *>(&held)[1] &= ~1ul;
}
";

/// The lowest bit of an atomic pointer is its lock.
#[test]
fn atomic_smart_pointers_show_what_they_hold() {
    let scratch = Scratch::new("values-atomic");
    let app = compiled(&scratch, "app.cc", HELD, &["-g", "-std=c++20"]);
    let live = Live::started("values-atomic", &["--break", "here"], &app, &[]);
    let held = live.print("held");
    let start = "std::atomic = {std::shared_ptr (use count 2, weak count 1) = {get() = 0x";
    let end = ", *get() = {x = 3, y = 4}}}";
    assert!(held.starts_with(start) && held.ends_with(end), "{held}");
    let empty = "std::atomic = {std::shared_ptr (empty) = {get() = 0x0}}";
    assert_eq!(live.print("nothing"), empty);
    let seen = live.print("seen");
    let start = "std::atomic = {std::weak_ptr (use count 2, weak count 1) = {get() = 0x";
    assert!(seen.starts_with(start), "{seen}");
    live.ask(&["continue"]);
    let locked = live.print("held");
    let (label, value) = locked
        .split_once(" [locked, may be half changed]")
        .expect("a lock");
    assert_eq!(format!("{label}{value}"), held);
}

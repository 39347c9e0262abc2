//! Goal: a name in an expression, condition or message means what the source means by it at that place, or is refused; failures are
//! reported. Method: a program whose functions are inlined into one another, next to a library with the same names.
//! Of several builds of a program each run takes a part; `WHOLE=1` all.

use std::collections::BTreeSet;

use e2e::{Live, Program, Scratch, Status, compiled, fixture_artifact, in_turn, marked_line};
use serde_json::{Value, json};

const PROGRAMS: [&str; 2] = ["inlined_O2", "inlined_clang"];

fn started(program: &str) -> Live {
    let path = fixture_artifact("inlined", program);
    Live::started(
        &format!("names-{program}"),
        &["--stop-on-entry"],
        &path,
        &[],
    )
}

fn at(mark: &str) -> String {
    format!("inlined.cc:{}", marked_line("inlined", "inlined.cc", mark))
}

fn messages(live: &Live) -> Vec<String> {
    let rows = live
        .recording()
        .rows("SELECT message FROM logpoints ORDER BY seq");
    let text = |row: &e2e::Row| row["message"].as_str().expect("text").to_owned();
    rows.iter().map(text).collect()
}

#[test]
fn messages_of_inlined_functions_see_what_is_around_them() {
    for program in PROGRAMS {
        let live = started(program);
        // `id` belongs to the inlined function, `kept` and `page` to its caller, and `token` is not the library's.
        let template = "{id} {kept}";
        live.ask(&["logpoint", &at("weigh: note"), template]);
        assert_eq!(live.run_to_end(), 0, "{program}");
        let wanted: Vec<String> = (1..=10)
            .map(|i| format!("{} {}", i * 1000, i + 100))
            .collect();
        assert_eq!(messages(&live), wanted, "{program}");
    }
}

#[test]
fn a_probe_at_a_line_has_the_scope_of_its_function() {
    for program in PROGRAMS {
        for mark in ["visit: weigh", "visit: total"] {
            let live = started(program);
            live.ask(&[
                "logpoint",
                &at(mark),
                "{id}",
                "--condition",
                "id > 0 && id < 1000",
            ]);
            assert_eq!(live.run_to_end(), 0, "{program}");
            let found = messages(&live);
            let ids: BTreeSet<i32> = found.iter().filter_map(|text| text.parse().ok()).collect();
            assert!(ids.iter().copied().eq(1..=10), "{program} {mark}: {ids:?}");
            assert!(
                found.iter().all(|text| text.parse::<i32>().is_ok()),
                "{program} {mark}: {found:?}"
            );
        }
    }
}

#[test]
fn what_a_library_calls_so_is_not_meant() {
    let live = started("inlined_O2");
    live.ask(&["break", &at("weigh: note")]);
    live.moved(&["continue"]);
    for name in ["cache", "step"] {
        let refused = live.refused(&["print", name]);
        let message = refused["message"].as_str().expect("text").to_owned();
        assert!(message.contains("libinlined_names.so"), "{refused:#}");
        assert!(
            refused["hint"]
                .to_string()
                .contains(&format!("libinlined_names.so::{name}"))
        );
    }
    assert_eq!(live.print("libinlined_names.so::cache"), "-2000");
    assert_eq!(live.print("libinlined_names::token"), "-1000");
    // A variable of an outer function, by its name.
    assert_eq!(live.print("main::step"), "1000");
    assert_eq!(live.print("visit::kept"), "101");
    // A condition with such a name can never be valid.
    let refused = live.refused(&["break", "visit", "--condition", "step > 3000"]);
    assert_eq!(refused["code"], "INVALID_CONDITION", "{refused:#}");
    live.ask(&["break", "visit", "--condition", "main::step > 3000"]);
    live.ask(&["break", "remove", "1"]);
    live.moved(&["continue"]);
    assert_eq!(live.print("main::step"), "4000");
    // In the past as live.
    let recording = live.recording();
    let seq = recording.number("SELECT max(seq) FROM events WHERE kind = 'pause'");
    let sql = format!("SELECT value({seq}, 'main::step') AS step");
    assert_eq!(recording.rows(&sql)[0]["step"], json!("4000"));
    let known = recording.rows("SELECT \"new\" AS step FROM history('main::step') ORDER BY seq");
    let steps: Vec<&str> = known
        .iter()
        .filter_map(|row| row["step"].as_str())
        .collect();
    assert_eq!(steps, ["1000", "4000"], "as it was at the stops");
}

#[test]
fn a_misspelt_name_is_an_error_where_it_can_never_be_right() {
    let live = started("inlined_O2");
    for condition in ["tokn > 3", "page.id > nosuch", "token > \"a\""] {
        let refused = live.refused(&["break", "visit", "--condition", condition]);
        assert_eq!(refused["code"], "INVALID_CONDITION", "{refused:#}");
    }
    // A message is still formatted, and its error is reported at once.
    let reply = live.ask(&["logpoint", "visit", "{nosuch}"]);
    assert_eq!(reply["probes"][0]["message"], "no variable \"nosuch\" here");
    let reply = live.ask(&["catch", "throw", "std::runtime_eror"]);
    assert_eq!(reply["probes"][0]["verified"], false, "{reply:#}");
    assert_eq!(live.run_to_end(), 0);
    let listed = live.ask(&["logpoint", "list"]);
    assert_eq!(
        listed["probes"][0]["message"],
        "no variable \"nosuch\" here; its message failed at every hit so far (10): nosuch: no variable \"nosuch\" here"
    );
    let at = live
        .recording()
        .number("SELECT max(start_seq) FROM calls WHERE function = 'visit'");
    for (expression, wanted) in [
        ("nosuch", "nothing in the recording is called \"nosuch\""),
        (
            "page.nosuch",
            "Page has no member nosuch\nhelp: it has id, kind, mode",
        ),
        ("page.id.nosuch", "int has no members"),
        (
            "nosuchmod::id",
            "nothing in the recording is called \"nosuchmod::id\"",
        ),
        ("visit::page.id.mode", "int has no members"),
    ] {
        for function in ["value", "explain_value"] {
            let sql = format!("SELECT {function}({at}, '{expression}')");
            let Err(ended) = live.recording().try_rows(&sql) else {
                panic!("{sql} was answered");
            };
            let told = ended.errors();
            assert!(told.contains(wanted), "{sql}: {told}");
        }
    }
    // A member of something else, fields of tuples and lengths are not errors.
    for expression in ["page.value", "page.0", "page.len", "args.0"] {
        let sql = format!("SELECT count(value({at}, '{expression}')) AS n");
        assert!(live.recording().try_rows(&sql).is_ok(), "{sql}");
    }
}

#[test]
fn the_message_of_a_logpoint_is_checked_before_the_program_runs() {
    let path = fixture_artifact("inlined", "inlined_O2");
    let options = ["--stop-on-entry", "--logpoint", "visit", "{nosuch}"];
    let live = Live::started("names-first-logpoint", &options, &path, &[]);
    let warnings = live.session()["warnings"].clone();
    let foreseen = json!("--logpoint visit: no variable \"nosuch\" here");
    let told = warnings.as_array().expect("a list");
    assert!(told.contains(&foreseen), "{warnings:#}");
    let listed = live.ask(&["logpoint", "list"]);
    assert_eq!(
        listed["probes"][0]["message"],
        "no variable \"nosuch\" here"
    );
    assert_eq!(live.run_to_end(), 0);
}

#[test]
fn what_failed_is_told_with_the_next_reply() {
    let live = started("inlined_O2");
    // The engine sees each of its evaluations; for those by the program only the failures are counted.
    live.ask(&[
        "break",
        "visit",
        "--condition",
        "[1].map(n => JSON.parse('x'))[0] === token",
    ]);
    live.ask(&["break", "note", "--condition", "1 / (value - value) > 3"]);
    let ended = live.command(&["continue"]).run();
    let told = ended.errors();
    let always = "breakpoint 1: its condition failed at every hit so far (10): SyntaxError";
    assert!(told.contains(always), "{told}");
    let often = "breakpoint 2: its condition failed ";
    assert!(
        told.contains(often) && told.contains("division by zero"),
        "{told}"
    );
    let again = live.command(&["status"]).run();
    assert!(!again.errors().contains("failed"), "{}", again.errors());
}

#[test]
fn a_message_that_failed_is_told_with_the_next_reply() {
    let live = started("inlined_O2");
    live.ask(&["logpoint", "visit", "{nosuch}"]);
    let ended = live.command(&["continue"]).run();
    let told = ended.errors();
    let always = "logpoint 1: its message failed at every hit so far (10): nosuch: no variable \"nosuch\" here";
    assert!(told.contains(always), "{told}");
    let again = live.command(&["status"]).run();
    assert!(!again.errors().contains("failed"), "{}", again.errors());
}

#[test]
fn conditions_and_messages_know_how_often_threads_have_come() {
    for condition in [
        "hitCount > 7",
        "hitCount > 7 && [true].includes(true)",
        "hitCount === 8 || hitCount > 8",
    ] {
        let live = started("inlined_O2");
        live.ask(&[
            "logpoint",
            "visit",
            "{hitCount}: {token}",
            "--condition",
            condition,
        ]);
        assert_eq!(live.run_to_end(), 0, "{condition}");
        assert_eq!(
            messages(&live),
            ["8: 108", "9: 109", "10: 110"],
            "{condition}"
        );
    }
}

#[test]
fn messages_are_javascript_too() {
    let live = started("inlined_O2");
    let template = "{[token, token * 2].join('+')} {{{token}}} {`${page.id}!`.padStart(4, '.')} {js: Math.max(token, 110)}";
    live.ask(&["logpoint", "visit", template, "--condition", "token > 108"]);
    let refused = live.refused(&["logpoint", "visit", "{[1, 2].map(x => x +)}"]);
    assert_eq!(refused["code"], "INVALID_CONDITION", "{refused:#}");
    assert_eq!(live.run_to_end(), 0);
    assert_eq!(
        messages(&live),
        ["109+218 {109} ..9! 110", "110+220 {110} .10! 110"]
    );
}

#[test]
fn enumerators_and_negative_numbers_are_read() {
    let live = started("inlined_O2");
    live.ask(&[
        "break",
        "visit",
        "--condition",
        "page.kind == Fancy && page.mode == Mode::Fast",
    ]);
    live.moved(&["continue"]);
    assert_eq!(live.print("token"), "106");
    assert_eq!(live.print("Plain + 0"), "2");
    assert_eq!(live.ask(&["print", "-7/2"])["value"], "-3");
}

#[test]
fn what_callers_of_callers_passed_is_known() {
    let live = started("inlined_O2");
    live.ask(&["break", "bottom"]);
    live.moved(&["continue"]);
    let trace = live.ask(&["backtrace"]);
    let frames = trace["threads"][0]["frames"].as_array().expect("a list");
    let depths: Vec<&Value> = frames
        .iter()
        .filter(|frame| {
            frame["function"]
                .as_str()
                .is_some_and(|f| f.starts_with("descend"))
        })
        .map(|frame| &frame["args"][0]["value"])
        .collect();
    // The innermost call no longer has its own.
    assert_eq!(
        depths[1..],
        [&json!("1"), &json!("2"), &json!("3"), &json!("4")],
        "{trace:#}"
    );
}

/// Stops where a mark is and asks for values.
fn values_at(program: &str, file: &str, mark: &str, wanted: &[(&str, &str)]) {
    let path = fixture_artifact("nested_names", program);
    let live = Live::started(
        &format!("nested-{program}"),
        &["--stop-on-entry"],
        &path,
        &[],
    );
    let line = marked_line("nested_names", file, mark);
    live.ask(&["break", &format!("{file}:{line}")]);
    live.moved(&["continue"]);
    for (expression, value) in wanted {
        let found = live.ask(&["print", expression]);
        assert_eq!(found["value"], *value, "{program} {mark}: {expression}");
    }
}

#[test]
fn the_innermost_namespace_around_the_function_is_meant() {
    for program in in_turn(["nested_gxx", "nested_clangxx"]) {
        let at = |mark, wanted: &[(&str, &str)]| values_at(program, "nested.cc", mark, wanted);
        at(
            "f: sum",
            &[("x", "2"), ("y", "6"), ("::x", "1"), ("sizeof(node)", "32")],
        );
        at("g: sum", &[("x", "2"), ("y", "7"), ("sizeof(node)", "32")]);
        at("m: sum", &[("x", "9"), ("y", "6")]);
        at(
            "outside: sum",
            &[
                ("x", "1"),
                ("y", "5"),
                ("ns::x", "2"),
                ("sizeof(node)", "1"),
            ],
        );
    }
    values_at("modules", "modules.rs", "a: sum", &[("X", "11")]);
    values_at(
        "modules",
        "modules.rs",
        "b: sum",
        &[("X", "22"), ("a::X", "11")],
    );
}

#[test]
fn functions_of_the_innermost_namespace_are_meant() {
    let at = |mark, wanted| values_at("nested_gxx", "nested.cc", mark, &[wanted]);
    at("f: sum", ("twice == ns::twice", "true"));
    at("outside: sum", ("twice == ns::twice", "false"));
}

#[test]
fn the_types_and_statics_of_the_file_are_meant() {
    for program in in_turn(["files_gcc", "files_clang"]) {
        let shape = "sizeof(struct shape)";
        values_at(
            program,
            "first.c",
            "first: sum",
            &[(shape, "3"), ("same", "1")],
        );
        let wanted = [(shape, "40"), ("same", "2"), ("'first.c'::same", "1")];
        values_at(program, "second.c", "second: sum", &wanted);
        let wanted = [("'first.c'::same", "1"), ("'second.c'::same", "2")];
        values_at(program, "third.c", "third: nothing", &wanted);
    }
}

#[test]
fn a_name_that_several_files_have_for_themselves_is_refused_elsewhere() {
    for (program, file, mark, name, ways) in [
        (
            "files_gcc",
            "third.c",
            "third: nothing",
            "same",
            "'first.c'::same or 'second.c'::same",
        ),
        (
            "modules",
            "modules.rs",
            "neither: nothing",
            "X",
            "modules::a::X or modules::b::X",
        ),
    ] {
        let path = fixture_artifact("nested_names", program);
        let live = Live::started("several", &["--stop-on-entry"], &path, &[]);
        let line = marked_line("nested_names", file, mark);
        live.ask(&["break", &format!("{file}:{line}")]);
        live.moved(&["continue"]);
        let refused = live.refused(&["print", name]);
        let message = refused["message"].as_str().expect("text").to_owned();
        let hint = refused["hint"].as_str().unwrap_or_default();
        let told = format!("{message} {hint}");
        assert!(told.contains(ways), "{program}: {refused:#}");
    }
}

/// Makes a library of one source file.
fn library(scratch: &Scratch, name: &str, file: &str, source: &str) {
    std::fs::write(scratch.join(file), source).expect("the test's folder is writable");
    let built = Program::new("/usr/bin/g++", scratch.path())
        .args(["-g", "-O0", "-shared", "-fPIC", "-o", name, file])
        .run();
    assert_eq!(built.status, Status::Code(0), "{}", built.errors());
}

/// A program that has stopped in `main`, with five libraries. All have `hidden`; two have `twice`; two are made of a file `l4.cc`.
fn with_libraries(name: &str) -> Live {
    let live = Live::new(name);
    let mut flags = vec!["-g".to_owned(), "-O0".to_owned(), "-L.".to_owned()];
    let (mut declared, mut called) = (String::new(), String::new());
    for (n, file) in [
        (1, "l1.cc"),
        (2, "l2.cc"),
        (3, "l3.cc"),
        (4, "l4.cc"),
        (5, "l4.cc"),
    ] {
        let source = match n {
            1 | 2 => format!(
                "static int count = 10{n}, twice = 20{n};\n\
                 namespace app {{ namespace {{ int hidden = {n}; }} }}\n\
                 int f{n}() {{ return ++app::hidden + ++count + ++twice; }}\n"
            ),
            _ => format!(
                "static int count = 10{n};\n\
                 namespace app {{ namespace {{ double hidden = {n}.5; }} }}\n\
                 int f{n}() {{ return ++app::hidden + ++count; }}\n"
            ),
        };
        library(&live.scratch, &format!("libl{n}.so"), file, &source);
        flags.push(format!("-ll{n}"));
        declared += &format!("int f{n}();\n");
        called += &format!(" + f{n}()");
    }
    flags.push("-Wl,-rpath,$ORIGIN".to_owned());
    let source = format!(
        "{declared}static int count = 7;\nint main() {{\n  return (++count{called}) * 0;\n}}\n"
    );
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let program = compiled(&live.scratch, "app.cc", &source, &flags);
    live.start(&["--break", "main"], &program, &[]);
    live
}

#[test]
fn all_libraries_that_have_a_name_are_told() {
    let live = with_libraries("names-libraries");
    for (name, have, ways) in [
        (
            "hidden",
            "libl1.so, libl2.so, libl3.so and 2 more",
            "libl1.so::hidden, libl2.so::hidden or libl3.so::hidden",
        ),
        (
            "app::hidden",
            "libl1.so, libl2.so, libl3.so and 2 more",
            "libl1.so::app::hidden, libl2.so::app::hidden or libl3.so::app::hidden",
        ),
        (
            "twice",
            "libl1.so and libl2.so",
            "libl1.so::twice or libl2.so::twice",
        ),
    ] {
        let refused = live.refused(&["print", name]);
        let message = format!("no \"{name}\" here, but {have} have one each");
        assert_eq!(refused["message"], message, "{refused:#}");
        assert_eq!(
            refused["hint"],
            format!("write which one: {ways}"),
            "{refused:#}"
        );
    }
    assert_eq!(live.print("libl1.so::hidden"), "1");
    assert_eq!(live.print("libl3.so::app::hidden"), "3.5");
}

#[test]
fn a_variable_is_named_with_its_file_in_a_library_too() {
    let live = with_libraries("names-files");
    assert_eq!(live.print("count"), "7");
    assert_eq!(live.print("'app.cc'::count"), "7");
    assert_eq!(live.print("'l1.cc'::count"), "101");
    assert_eq!(live.print("'l2.cc'::count + 1"), "103");
    let refused = live.refused(&["print", "'l4.cc'::count"]);
    let message = "libl4.so and libl5.so each have a file l4.cc with \"count\"";
    assert_eq!(refused["message"], message, "{refused:#}");
    let hint = "write which one: libl4.so::count or libl5.so::count";
    assert_eq!(refused["hint"], hint, "{refused:#}");
    let refused = live.refused(&["print", "'l1.cc'::nothing"]);
    let message = "no variable \"'l1.cc'::nothing\" here";
    assert_eq!(refused["message"], message, "{refused:#}");
    live.ask(&["watch", "'l1.cc'::count"]);
    let wrote = live.moved(&["continue"]);
    assert_eq!(wrote["new"], "102", "{wrote:#}");
}

/// In C, a variable hides a type of its name, whatever other languages call types.
#[test]
fn sizeof_means_the_variable() {
    let scratch = e2e::Scratch::new("live-sizeof");
    let source = "int main(void) {\n  int u8 = 8;\n  long str = 9;\n  return u8 - str + 1;\n}\n";
    let app = compiled(&scratch, "app.c", source, &["-O0", "-g"]);
    let live = Live::started("live-sizeof-app", &["--break", "app.c:4"], &app, &[]);
    for (expression, size) in [
        ("sizeof(u8)", "4"),
        ("sizeof u8", "4"),
        ("sizeof(str)", "8"),
        ("sizeof(u16)", "2"),
    ] {
        assert_eq!(live.print(expression), size, "{expression}");
    }
    assert_eq!(live.run_to_end(), 0);
}

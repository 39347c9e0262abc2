//! Goal: `record --pointees` captures what pointers and references among arguments point to, where a call begins and where it
//! returns, and says nothing wrong about what it does not know. Method: programs that print what they did; SQL and the prompt
//! are compared with that, at -O0 and optimised.
//! Of several builds of a program each run takes a part; `WHOLE=1` all.

use e2e::{
    Comparison, Hindsight, Nesting, Program, Recording, Scratch, compiled, fixture_artifact,
    in_turn,
};

const OF_C: [&str; 3] = ["pointees_O0", "pointees_O2", "pointees_clang"];

fn recorded(artifact: &str) -> Comparison {
    let scratch = Scratch::new(artifact);
    let program = Program::new(fixture_artifact("pointees", artifact), scratch.path());
    Comparison::of_program(scratch, &program, &["--pointees"], Nesting::Proper)
}

/// A text of each row; `?` if there is none.
fn texts(recording: &Recording, sql: &str) -> Vec<String> {
    let rows = recording.rows(sql);
    let text = |value: &serde_json::Value| value.as_str().unwrap_or("?").to_owned();
    rows.iter().map(|row| text(&row["value"])).collect()
}

/// A column of the calls of a function, in their order.
fn of_calls(recording: &Recording, column: &str, function: &str) -> Vec<String> {
    let sql = format!(
        "SELECT {column} AS value FROM calls WHERE function = '{function}' OR function LIKE '%::{function}' ORDER BY start_seq"
    );
    texts(recording, &sql)
}

/// The text behind a pointer, or the value as it is.
fn without_address(value: &str) -> &str {
    match value.split_once(' ') {
        Some((address, text)) if address.starts_with("0x") => text,
        _ => value,
    }
}

/// The program's output about one call.
struct Line {
    function: String,
    expression: String,
    before: String,
    after: String,
}

fn lines(comparison: &Comparison) -> Vec<Line> {
    let text = comparison.native.text();
    let line = |line: &str| {
        let parts: Vec<&str> = line.split('|').collect();
        let [function, expression, before, after] = parts[..] else {
            panic!("four parts: {line}");
        };
        Line {
            function: function.to_owned(),
            expression: expression.to_owned(),
            before: before.to_owned(),
            after: after.to_owned(),
        }
    };
    text.lines().map(line).collect()
}

/// Checks each line.
fn assert_told(artifact: &str) {
    let comparison = recorded(artifact);
    let recording = &comparison.recording;
    let all = lines(&comparison);
    assert!(all.len() > 6, "{artifact}");
    let mut is_done: Vec<&str> = Vec::new();
    for line in &all {
        let name = line.function.as_str();
        if is_done.contains(&name) {
            continue;
        }
        is_done.push(name);
        let same: Vec<&Line> = all.iter().filter(|other| other.function == name).collect();
        let check = |column: &str, wanted: &dyn Fn(&Line) -> String| {
            let seen = of_calls(recording, column, name);
            let seen: Vec<&str> = seen.iter().map(|value| without_address(value)).collect();
            let wanted: Vec<String> = same.iter().map(|line| wanted(line)).collect();
            assert_eq!(seen, wanted, "{artifact}: {column} of {name}");
        };
        let expression = &line.expression;
        if expression.is_empty() {
            check("ret_text", &|line| line.after.clone());
            continue;
        }
        check(&format!("value(start_seq, '{expression}')"), &|line| {
            line.before.clone()
        });
        if !line.after.is_empty() {
            let left = format!("frame_value(end_seq, -1, '{expression}')");
            check(&left, &|line| line.after.clone());
        }
    }
}

#[test]
fn out_parameters_of_c_are_known_where_calls_begin_and_return() {
    for artifact in in_turn(OF_C) {
        assert_told(artifact);
    }
}

#[test]
fn references_and_objects_of_cxx_are_known_where_calls_begin_and_return() {
    for artifact in in_turn(["pointees_cxx_O0", "pointees_cxx_O2"]) {
        assert_told(artifact);
    }
}

#[test]
fn references_of_rust_are_known_where_calls_begin_and_return() {
    for artifact in in_turn(["pointees_rust_O0", "pointees_rust_O2"]) {
        assert_told(artifact);
    }
}

#[test]
fn columns_show_what_pointers_led_to() {
    for artifact in in_turn(OF_C) {
        let comparison = recorded(artifact);
        let recording = &comparison.recording;
        let one = |column: &str, function: &str| of_calls(recording, column, function).remove(0);
        let args = one("args", "quotient");
        assert!(args.starts_with("a=17, b=5, out=0x"), "{args}");
        assert!(args.ends_with(" -> 5"), "{args}");
        assert_eq!(one("outs", "quotient"), "*out=3", "{artifact}");
        assert_eq!(one("outs", "shift"), "*moved={x = 4, y = -1}", "{artifact}");
        // It cannot change const arguments, and arguments on the stack are not known.
        assert_eq!(one("outs", "advance"), "*into=6", "{artifact}");
        assert_eq!(one("outs", "seventh"), "?", "{artifact}");
        let of_events =
            "SELECT args AS value FROM events WHERE kind = 'leave' AND function = 'halve'";
        assert_eq!(texts(recording, of_events), ["*value=2.5"], "{artifact}");
        let of_events =
            "SELECT ret_text AS value FROM events WHERE kind = 'leave' AND function = 'make_big'";
        assert_eq!(texts(recording, of_events), ["{a = 6, b = 7, c = 8}"]);
    }
    let comparison = recorded("pointees_cxx_O0");
    let outs = of_calls(&comparison.recording, "outs", "shop::parse");
    assert_eq!(outs, ["number=4"]);
    let outs = of_calls(&comparison.recording, "outs", "shop::fill");
    assert_eq!(outs, ["*items=std::vector of length 3"]);
    // Left by an exception, it returned nothing.
    assert_eq!(
        of_calls(&comparison.recording, "outs", "shop::throws"),
        ["?"]
    );
}

/// A name of the caller means the caller's variable; if it has no meaning there, that of the call which returned.
#[test]
fn names_at_a_return_are_the_callers_first() {
    let comparison = recorded("pointees_O0");
    let recording = &comparison.recording;
    let at_return = |expression: &str, function: &str| {
        of_calls(
            recording,
            &format!("value(end_seq, '{expression}')"),
            function,
        )
    };
    assert_eq!(at_return("*out", "quotient"), ["3"]);
    assert_eq!(at_return("*quotient::out", "quotient"), ["3"]);
    assert_eq!(at_return("a", "quotient"), ["17"]);
    // forward has its own parameters with these names, which were on its stack.
    assert_eq!(at_return("by", "shift"), ["3", "?"]);
    assert_eq!(at_return("*top", "climb"), ["6", "?", "?"]);
    // In its caller it is a number, not a pointer.
    assert_eq!(at_return("*kept", "after_escape"), ["2"]);
    assert_eq!(
        of_calls(recording, "frame_value(end_seq, -1, 'by')", "shift"),
        ["3", "6"]
    );
    let why = of_calls(recording, "explain_value(end_seq, 'by')", "shift");
    assert_eq!(why[0], "known");
    assert!(why[1].contains("frame_value(seq, -1"), "{why:?}");
    let why = of_calls(recording, "explain_value(end_seq, '*wide')", "fill");
    assert!(why[0].starts_with("unknown: "), "{why:?}");
    // No value at events that are not returns, and for frames that do not exist.
    for column in [
        "frame_value(start_seq, -1, 'a')",
        "frame_value(end_seq, -2, 'a')",
    ] {
        assert_eq!(of_calls(recording, column, "quotient"), ["?"], "{column}");
    }
}

#[test]
fn the_prompt_shows_them_at_the_return() {
    let comparison = recorded("pointees_O0");
    let recording = &comparison.recording;
    let end = recording.number("SELECT end_seq FROM calls WHERE function = 'quotient'");
    let goto = format!("goto {end}");
    let text = recording.prompt(&[&goto, "print *out", "print out"]).text();
    let said = "$1 = 3\n(in the call that has returned; its parameters have what was passed)\n";
    assert!(text.contains(said), "{text}");
    let ended = recording.prompt(&[&goto, "print *inside"]);
    assert!(
        ended.errors().contains("no variable \"inside\" here"),
        "{}",
        ended.errors()
    );
}

#[test]
fn variables_of_a_frame_that_is_gone_are_unknown() {
    let scratch = Scratch::new("pointees-gone");
    let source = "__attribute__((noinline)) int inner(int n) { int a = n * 3; return a + 1; }\n\
         int main(void) { return inner(1) - 4; }\n";
    let program = compiled(&scratch, "gone.c", source, &["-O0", "-g"]);
    let program = Program::new(program, scratch.path());
    for (name, options) in [("calls", &[][..]), ("full", &["--full"][..])] {
        let recording = Hindsight::recorded(&scratch, name, options, &program);
        let end = recording.number("SELECT end_seq FROM calls WHERE function = 'inner'");
        let goto = format!("goto {end}");
        let text = recording.prompt(&[&goto, "print a", "print n"]).text();
        let said = "a = <the call has returned, and its frame is gone>\n";
        assert!(text.contains(said), "{name}: {text}");
        assert!(text.contains("$1 = 1\n"), "{name}: {text}");
    }
}

#[test]
fn bad_pointers_and_what_has_no_size_are_only_pointers() {
    for artifact in in_turn(OF_C) {
        let comparison = recorded(artifact);
        let recording = &comparison.recording;
        let args = of_calls(recording, "args", "look");
        assert_eq!(
            args,
            [
                "odd=0x0",
                "odd=0x10",
                "odd=0x7777777777",
                "odd=0xffffffffffffffc0"
            ],
            "{artifact}"
        );
        for function in ["look", "see", "at_end", "escape"] {
            let outs = of_calls(recording, "outs", function);
            assert!(outs.iter().all(|text| text == "?"), "{artifact}: {outs:?}");
        }
        let args = of_calls(recording, "args", "see");
        assert!(args.iter().all(|text| !text.contains("->")), "{args:?}");
    }
}

/// The addresses of 400 open calls are remembered; the targets of the others at their return are not known.
#[test]
fn deep_recursion_leaves_out_and_tells_nothing_wrong() {
    for artifact in in_turn(OF_C) {
        let comparison = recorded(artifact);
        let outs = of_calls(&comparison.recording, "outs", "dig");
        assert_eq!(outs.len(), 1000, "{artifact}");
        let known = outs.iter().filter(|text| *text != "?").count();
        assert!(outs.iter().all(|text| text == "?" || text == "*depth=1000"));
        assert!((390..=400).contains(&known), "{artifact}: {known}");
    }
}

#[test]
fn nothing_of_it_is_kept_unasked() {
    let comparison = Comparison::of("pointees", "pointees_O0", &[]);
    let recording = &comparison.recording;
    assert_eq!(of_calls(recording, "outs", "quotient"), ["?"]);
    assert_eq!(
        of_calls(recording, "value(end_seq, '*out')", "quotient"),
        ["?"]
    );
    let args = of_calls(recording, "args", "quotient");
    assert!(!args[0].contains("->"), "{args:?}");
}

#[test]
fn texts_that_a_function_wrote_are_known_at_its_return() {
    for artifact in in_turn(["texts_O0", "texts_O2", "texts_clang"]) {
        let comparison = recorded(artifact);
        let recording = &comparison.recording;
        let outs = |function| of_calls(recording, "outs", function);
        let spelled = [r#"*out="number 7""#, r#"*out="number 1234""#];
        assert_eq!(outs("spell"), spelled, "{artifact}");
        assert_eq!(outs("put"), [r#"*raw="bytes""#], "{artifact}");
        assert_eq!(outs("at_edge"), [r#"*edge="ok""#], "{artifact}");
        assert_eq!(outs("read_only"), ["?"], "{artifact}");
        let told = "frame_value(end_seq, -1, 'out')";
        let of_frame = of_calls(recording, told, "spell");
        let texts: Vec<&str> = of_frame.iter().map(|text| without_address(text)).collect();
        assert_eq!(texts, [r#""number 7""#, r#""number 1234""#], "{artifact}");
    }
}

/// A static member lies elsewhere, and what is not known of it hides nothing of the object.
#[test]
fn static_members_do_not_hide_the_object() {
    let scratch = Scratch::new("pointees_static");
    std::fs::write(scratch.join("tally.cc"), TALLY).expect("the test's folder is writable");
    let built = Program::new("g++", scratch.path())
        .args(["-g", "-O0", "-o", "tally", "tally.cc"])
        .run();
    assert_eq!(built.status.as_shell_code(), 0, "{}", built.errors());
    let program = Program::new(scratch.join("tally"), scratch.path());
    let tally = Comparison::of_program(scratch, &program, &["--pointees"], Nesting::Proper);
    let recording = &tally.recording;
    let first = of_calls(recording, "value(start_seq, '*this')", "add");
    assert!(first[0].starts_with("{n = 1, static total = "), "{first:?}");
    let outs = of_calls(recording, "outs", "add");
    assert!(outs[0].contains("{n = 5, static total = "), "{outs:?}");
}

const TALLY: &str = r#"
struct Tally {
  int n = 1;
  static int total;
  __attribute__((noinline)) void add(int k) { n += k; total += k; }
};
int Tally::total = 100;
int main() {
  Tally tally;
  tally.add(4);
  tally.add(5);
  return tally.n + Tally::total == 119 ? 0 : 1;
}
"#;

/// Where the virtual base class lies is in the table of virtual functions, which the dynamic linker wrote before the
/// program ran.
#[test]
fn objects_have_their_virtual_base_classes() {
    for artifact in in_turn(["virtual_bases_O0", "virtual_bases_O2"]) {
        let comparison = recorded(artifact);
        let recording = &comparison.recording;
        let args = of_calls(recording, "args", "use");
        for member in ["id = 7", "name = 11", "size = 4", "extra = 9"] {
            assert!(args[0].contains(member), "{artifact}: {args:?}");
        }
        let grown = of_calls(recording, "args", "area");
        assert!(
            grown[0].contains("id = 8") && grown[0].contains("size = 6"),
            "{artifact}: {grown:?}"
        );
    }
}

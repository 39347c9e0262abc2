//! Goal: arguments and results are shown as the source means them. Method: a fixture whose calls have known values.
//! Of several builds of a program each run takes a part; `WHOLE=1` all.

use e2e::{
    Comparison, Hindsight, Nesting, Program, Recording, Scratch, Status, compiled,
    fixture_artifact, in_turn,
};

/// The text of the arguments and the result of the only call of a function.
fn call(recording: &Recording, function: &str) -> (String, Option<i64>, Option<f64>) {
    let row = recording.row(&format!(
        "SELECT args, ret, ret_f FROM calls WHERE function = '{function}'"
    ));
    (
        row["args"].as_str().unwrap_or("").to_owned(),
        row["ret"].as_i64(),
        row["ret_f"].as_f64(),
    )
}

fn assert_call(recording: &Recording, function: &str, args: &str, ret: Option<i64>) {
    let (got_args, got_ret, got_float) = call(recording, function);
    assert_eq!(got_args, args, "arguments of {function}");
    assert_eq!(got_ret, ret, "result of {function}");
    assert_eq!(
        got_float, None,
        "{function} returns no floating point number"
    );
}

fn typed_args(artifact: &str) -> Comparison {
    Comparison::of("typed_args", artifact, &[])
}

fn assert_typed(recording: &Recording) {
    assert_call(recording, "tiny", "a=-3, b=200", Some(-59));
    assert_call(recording, "narrow", "a=-300, b=40000", Some(25_236));
    assert_call(recording, "wide", "a=-7, b=4000000000", Some(-294_967_303));
    assert_call(recording, "widest", "a=-1, b=10", Some(9));
    assert_call(recording, "all_ones", "", Some(0xffff_ffff));
    assert_call(recording, "flip", "on=true", Some(0));
    assert_call(recording, "next", "c='a'", Some(98));
    assert_call(recording, "twice<int>", "value=21", Some(42));
    assert_call(recording, "shop::Order::valid", "id=65535", Some(1));
    assert_call(
        recording,
        "seven",
        "a=1, b=2, c=3, d=4, e=5, f=6, g=?",
        Some(28),
    );
}

#[test]
fn integers_have_the_width_and_sign_of_their_type() {
    assert_typed(&typed_args("typed_args_O0").recording);
}

#[test]
fn integers_have_the_width_and_sign_of_their_type_optimised() {
    assert_typed(&typed_args("typed_args_O2").recording);
}

#[test]
fn enumerators_are_named() {
    let both = typed_args("typed_args_O0");
    let rows = both
        .recording
        .rows("SELECT args, ret FROM calls WHERE function = 'paint' ORDER BY start_seq");
    let seen: Vec<_> = rows
        .iter()
        .map(|r| (r["args"].as_str().unwrap_or(""), r["ret"].as_i64()))
        .collect();
    assert_eq!(
        seen,
        [("c=green, l=low", Some(200)), ("c=red, l=high", Some(1))]
    );
}

#[test]
fn floating_point_values_are_read_from_their_registers() {
    let both = typed_args("typed_args_O0");
    let seen: Vec<_> = ["scale", "shrink", "twice<double>"]
        .iter()
        .map(|f| call(&both.recording, f))
        .collect();
    assert_eq!(seen[0], ("n=2, x=1.5, y=0.25".to_owned(), None, Some(3.25)));
    assert_eq!(seen[1], ("x=5.0".to_owned(), None, Some(2.5)));
    assert_eq!(seen[2], ("value=0.5".to_owned(), None, Some(1.0)));
}

#[test]
fn pointers_are_hexadecimal_and_results_of_void_are_null() {
    let both = typed_args("typed_args_O0");
    let (args, ret, _) = call(&both.recording, "skip");
    let text = args
        .strip_prefix("text=0x")
        .and_then(|a| a.strip_suffix(", n=2"))
        .expect(&args);
    assert_eq!(
        i64::from_str_radix(text, 16).expect("hexadecimal") + 2,
        ret.expect("a pointer is a number")
    );
    let (args, ret, float) = call(&both.recording, "nothing");
    assert!(args.starts_with("reference=0x"), "{args}");
    assert_eq!((ret, float), (None, None));
    let (args, ret, _) = call(&both.recording, "shop::Order::add");
    assert!(
        args.starts_with("this=0x") && args.ends_with(", amount=-2"),
        "{args}"
    );
    assert_eq!(ret, Some(38));
}

#[test]
fn source_places_and_filters_are_known() {
    let both = typed_args("typed_args_O0");
    let row = both
        .recording
        .row("SELECT file, line, module FROM functions WHERE name = 'flip'");
    assert!(
        row["file"]
            .as_str()
            .is_some_and(|f| f.ends_with("typed_args.cc")),
        "{row:?}"
    );
    let source = std::fs::read_to_string(e2e::fixture_source("typed_args").join("typed_args.cc"))
        .expect("the source");
    let line = source
        .lines()
        .position(|l| l.contains("bool flip("))
        .expect("the line")
        + 1;
    assert_eq!(row["line"].as_u64(), Some(line as u64));
}

#[test]
fn every_argument_of_300_000_calls_is_right() {
    let both = Comparison::of("tight", "tight", &["300000"]);
    let wrong = both.recording.number(
        "SELECT count(*) FROM (SELECT a0, a1, ret, row_number() OVER (ORDER BY start_seq) - 1 AS n, \
         lag(ret, 1, 0) OVER (ORDER BY start_seq) AS before FROM calls WHERE function = 'work') \
         WHERE a0 <> n OR a1 <> before",
    );
    assert_eq!(wrong, 0, "a0 counts up and a1 is the result before");
}

#[test]
fn results_that_no_single_register_holds_are_null() {
    for artifact in in_turn(["abi_values_O0", "abi_values_O2"]) {
        let both = Comparison::of("abi_values", artifact, &[]);
        let rows = both.recording.rows(
            "SELECT function, count(*) AS calls, count(ret) AS whole, count(ret_f) AS floats, \
             min(ret) AS least, max(ret) AS most FROM calls WHERE function LIKE 'f\\_%' GROUP BY function",
        );
        assert_eq!(rows.len(), 19, "{artifact}: {rows:?}");
        for row in rows {
            let function = row["function"].as_str().expect("a name");
            let counts = ["calls", "whole", "floats"].map(|name| row[name].as_i64().unwrap());
            let expected = match function {
                "f_bool" | "f_char" | "f_short" => [200, 200, 0],
                "f_float" => [200, 0, 200],
                // In two registers, in memory, on the x87 stack, in a whole vector register.
                _ => [200, 0, 0],
            };
            assert_eq!(counts, expected, "{artifact}: {function}");
            let bounds = (row["least"].as_i64(), row["most"].as_i64());
            match function {
                "f_char" => assert_eq!(bounds, (Some(-6), Some(-6))),
                "f_short" => assert_eq!(bounds, (Some(65534), Some(65534))),
                _ => {}
            }
        }
    }
}

#[test]
fn structures_in_registers_are_shown_by_their_members() {
    let both = Comparison::of("abi_values", "abi_values_O0", &[]);
    for (function, args, result) in [
        ("f_ints", "a=1, b=2", Some("{a = 2, b = 1}")),
        ("f_longs", "x={a = 1, b = -1}", Some("{a = -1, b = 1}")),
        ("f_doubles", "x={a = 1, b = 0.5}", Some("{a = 0.5, b = -1}")),
        ("f_mixed", "x={a = 0.25, b = 1}", Some("{a = 1, b = 0.25}")),
        (
            "f_floats",
            "x={a = 1, b = 2, c = 1}",
            Some("{a = 1, b = 2, c = 1}"),
        ),
        (
            "f_small",
            "x={c = 97 'a', s = 100}",
            Some("{c = 98 'b', s = 99}"),
        ),
        ("f_char", "a=-1, b=5", Some("-6")),
        (
            "f_int128",
            "a=1267650600228229401496703205376, b=1",
            Some("1267650600228229401496703205376"),
        ),
        ("f_cdouble", "z=1 + 2i, k=1.0", Some("1 + 2i")),
        ("f_float", "a=0.5, b=1.0, c=1.0", Some("1.5")),
        // In memory that was not captured, and on the x87 stack.
        ("f_big", "x=?, n=1", None),
        ("f_long_double", "a=?, b=1, c=?", None),
    ] {
        let row = both.recording.row(&format!(
            "SELECT args, ret_text FROM calls WHERE function = '{function}' ORDER BY start_seq LIMIT 1"
        ));
        assert_eq!(row["args"].as_str(), Some(args), "{function}");
        assert_eq!(row["ret_text"].as_str(), result, "{function}");
    }
}

#[test]
fn captured_texts_are_shown_with_arguments() {
    let scratch = Scratch::new("texts");
    let program = Program::new(fixture_artifact("captured", "captured_O0"), scratch.path());
    let both = Comparison::of_program(scratch, &program, &["--strings"], Nesting::Proper);
    let rows = both
        .recording
        .rows("SELECT args FROM calls WHERE function = 'push' ORDER BY start_seq");
    let texts: Vec<&str> = rows.iter().filter_map(|row| row["args"].as_str()).collect();
    assert_eq!(texts.len(), 4);
    assert!(texts[0].contains(" \"alpha\", times="), "{texts:?}");
    assert!(texts[1].contains(" \"beta\", times="), "{texts:?}");
}

/// A comparison with zero must not take a large unsigned number for a negative one.
#[test]
fn a_large_unsigned_result_is_not_negative() {
    let scratch = Scratch::new("values-unsigned");
    let source = "unsigned long most(void) { return -1UL; }\n\
         unsigned long some(void) { return 7; }\n\
         long less(void) { return -1; }\n\
         int main(void) { return most() + some() + less() > 0 ? 0 : 1; }\n";
    let program = compiled(&scratch, "unsigned.c", source, &["-O0", "-g"]);
    let program = Program::new(program, scratch.path());
    let (_, recording) = Hindsight::record(&scratch, &[], &program);
    let rows = recording.rows("SELECT function, ret, ret_text, hex(rax) AS bits FROM calls WHERE function <> 'main' ORDER BY start_seq");
    let row = |function: &str| {
        let found = rows.iter().find(|row| row["function"] == function);
        found.unwrap_or_else(|| panic!("{function}: {rows:?}"))
    };
    assert!(row("most")["ret"].is_null(), "{rows:?}");
    assert_eq!(row("most")["ret_text"], "18446744073709551615");
    assert_eq!(row("most")["bits"], "0xffffffffffffffff");
    assert_eq!(
        (row("some")["ret"].as_i64(), row("less")["ret"].as_i64()),
        (Some(7), Some(-1))
    );
    let negative = recording.rows("SELECT function FROM calls WHERE ret < 0");
    assert_eq!(negative.len(), 1, "{negative:?}");
    assert_eq!(negative[0]["function"], "less");
}

#[test]
fn characters_of_rust_are_shown_as_such() {
    let scratch = Scratch::new("values-char");
    let source = "#[inline(never)] fn kept(c: char, other: char) -> char { std::hint::black_box(other); c }\n\
         fn main() { for c in ['a', '\\u{e9}', '\\n'] { std::hint::black_box(kept(c, '\\'')); } }\n";
    let program = compiled(&scratch, "chars.rs", source, &["-g"]);
    let program = Program::new(program, scratch.path());
    let (_, recording) = Hindsight::record(&scratch, &[], &program);
    let rows = recording.rows(
        "SELECT args, ret_text, ret FROM calls WHERE function LIKE '%kept' ORDER BY start_seq",
    );
    let texts = |name: &str| {
        rows.iter()
            .map(|row| row[name].as_str().unwrap_or(""))
            .collect::<Vec<_>>()
    };
    let shown = ["'a'", "'\u{e9}'", "'\\n'"];
    assert_eq!(texts("args"), shown.map(|c| format!("c={c}, other='\\''")));
    assert_eq!(texts("ret_text"), shown);
    assert_eq!(rows[1]["ret"], 0xe9);
}

#[test]
fn a_value_of_which_nothing_is_known_is_not_shown_by_its_members() {
    let scratch = Scratch::new("values-unseen");
    let source = "#include <string>\n\
                  struct Price { std::string sku; double value; int version; };\n\
                  Price *prices;\n\
                  __attribute__((noinline)) const Price &priced(int n) { return prices[n]; }\n\
                  int main() { prices = new Price[2](); return priced(1).version; }\n";
    let app = compiled(&scratch, "app.cc", source, &["-O0", "-g"]);
    let program = Program::new(&app, scratch.path());
    let (_, recording) = Hindsight::record(&scratch, &[], &program);
    let row = recording.row("SELECT ret_text FROM calls WHERE function LIKE 'priced%'");
    let text = row["ret_text"].as_str().expect("its address is known");
    assert!(text.starts_with("@0x"), "{text}");
    assert_eq!(text.matches("<unknown: ").count(), 1, "{text}");
    assert!(!text.contains("_M_"), "{text}");
}

const WITHOUT_PROTOTYPE: &str = "volatile int sink;
__attribute__((noinline)) float half(x, n) float x; int n; { sink = n; return x / 2; }
__attribute__((noinline)) int nine(a, b, c, d, e, f, g, h, x) float a, b, c, d, e, f, g, h, x; { sink = a + b + c + d + e + f + g + h; return x; }
int main(void) {
  return half(5.0f, 3) + nine(1.f, 2.f, 3.f, 4.f, 5.f, 6.f, 7.f, 8.f, 9.f) > 11 ? 0 : 1;
}
";

/// Nothing in this unit has a prototype: clang, which marks those that have one, marks nothing.
#[test]
fn floats_are_right_where_no_function_of_a_unit_has_a_prototype() {
    let source = "extern int puts(); int sink;\n\
         float half(x, n) float x; int n; { sink = n; return x / 2; }\n\
         int main() { return half(5.0f, 3) > 2 ? 0 : 1; }\n";
    for (compiler, standard) in [("gcc", "gnu89"), ("clang", "gnu89"), ("clang", "gnu17")] {
        let scratch = Scratch::new("values-all-old-style");
        std::fs::write(scratch.join("old.c"), source).expect("the folder is writable");
        let standard = format!("-std={standard}");
        let built = Program::new(format!("/usr/bin/{compiler}"), scratch.path())
            .args([&standard, "-w", "-g", "-O0", "-o", "old", "old.c"])
            .run();
        assert_eq!(built.status, Status::Code(0), "{}", built.errors());
        let program = Program::new(scratch.join("old"), scratch.path());
        let (_, recording) = Hindsight::record(&scratch, &[], &program);
        let half = recording
            .row("SELECT args, value(start_seq, 'x') AS x FROM calls WHERE function = 'half'");
        let told = format!("{compiler} {standard}: {half:?}");
        assert_eq!(
            (&half["args"], &half["x"]),
            (&"x=5.0, n=3".into(), &"5".into()),
            "{told}"
        );
    }
}

/// Callers pass a `float` as a `double` to a function without a prototype; debug information says nothing of it.
#[test]
fn floats_of_functions_without_a_prototype_are_those_that_were_passed() {
    for (compiler, level) in [
        ("gcc", "-O0"),
        ("gcc", "-O2"),
        ("clang", "-O0"),
        ("clang", "-O2"),
    ] {
        let scratch = Scratch::new("values-old-style");
        std::fs::write(scratch.join("old.c"), WITHOUT_PROTOTYPE).expect("the folder is writable");
        let built = Program::new(format!("/usr/bin/{compiler}"), scratch.path())
            .args(["-std=gnu89", "-w", "-g", level, "-o", "old", "old.c"])
            .run();
        assert_eq!(built.status, Status::Code(0), "{}", built.errors());
        let program = Program::new(scratch.join("old"), scratch.path());
        let (_, recording) = Hindsight::record(&scratch, &[], &program);
        let half = recording
            .row("SELECT args, value(start_seq, 'x') AS x FROM calls WHERE function = 'half'");
        let told = format!("{compiler} {level}: {half:?}");
        assert_eq!(half["args"], "x=5.0, n=3", "{told}");
        assert_eq!(half["x"], "5", "{told}");
        let nine = recording
            .row("SELECT args, value(start_seq, 'x') AS x FROM calls WHERE function = 'nine'");
        let args = nine["args"].as_str().expect("text");
        // gcc says nothing of them where it has propagated the only arguments that there are.
        let told = ["a=1.0, b=2.0", "a=?, b=?"];
        assert!(
            told.iter().any(|told| args.starts_with(told)),
            "{compiler} {level}: {args}"
        );
        assert_ne!(nine["x"], "0", "{compiler} {level}: {nine:?}");
    }
}

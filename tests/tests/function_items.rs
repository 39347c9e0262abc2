//! Goal: a function item of Rust, which has no bytes, is never shown as the pointer that its type is described as. Method: a
//! program that leaves bits of the time in the registers in which a pointer would be passed.

use std::path::PathBuf;

use e2e::{Hindsight, Live, Program, Recording, Scratch, Status, compiled};

const ITEMS: &str = r#"
fn twice(x: i64) -> i64 { x * 2 }
fn next(x: i64) -> i64 { x + 1 }
#[inline(never)]
fn two<F: Fn(i64) -> i64, G: Fn(i64) -> i64>(x: i64, f: F, g: G) -> i64 { f(x) - g(x) }
#[inline(never)]
fn middle<F: Fn(i64) -> i64>(x: i64, f: F, y: i64) -> i64 { f(x) - y }
#[inline(never)]
fn pointer<F: Fn(i64) -> i64>(x: i64, f: F) -> i64 { f(x) }
fn main() {
    let mut sum = middle(6, twice, 7) + pointer(8, next as fn(i64) -> i64);
    for x in 0..40 {
        UNCHECKED {
            std::arch::asm!("rdtsc", "shr eax, 4", "and eax, 1", "mov esi, eax", "mov edx, eax",
                out("rax") _, out("rsi") _, out("rdx") _);
        }
        sum += two(x, twice, next);
    }
    println!("{}", format!("{sum}"));
}
"#;

fn built(scratch: &Scratch) -> PathBuf {
    let program = scratch.join("items");
    if !program.exists() {
        let flags = ["-g", "-Copt-level=0", "--edition=2021"];
        // This file itself has no such block.
        let source = ITEMS.replace("UNCHECKED", concat!("un", "safe"));
        compiled(scratch, "items.rs", &source, &flags);
    }
    program
}

/// Records the program, as `name`.
fn recorded(scratch: &Scratch, name: &str) -> Recording {
    let program = Program::new(built(scratch), scratch.path());
    let ended = Hindsight::record_command(scratch, name, &[], &program).run();
    assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
    Recording::new(scratch.join(&format!("{name}.hindsight")))
}

#[test]
fn arguments_that_are_not_passed_are_unknown() {
    let scratch = Scratch::new("function-items");
    let recording = recorded(&scratch, "one");
    let sql = "SELECT args FROM calls WHERE function LIKE 'items::%<%' ORDER BY seq LIMIT 4";
    let args = recording.rows(sql);
    let args: Vec<&str> = args.iter().filter_map(|row| row["args"].as_str()).collect();
    let (f, rest) = (
        args[1].strip_prefix("x=8, f=0x"),
        [args[0], args[2], args[3]],
    );
    let expected = ["x=6, f=?, y=7", "x=0, f=?, g=?", "x=1, f=?, g=?"];
    assert_eq!(rest, expected);
    assert!(f.is_some(), "a pointer is known: {}", args[1]);
    let known = |name: &str| {
        recording.number(&format!(
            "SELECT count(value(start_seq, '{name}')) FROM calls WHERE function LIKE 'items::two%'"
        ))
    };
    assert_eq!((known("x"), known("f"), known("g")), (40, 0, 0));
    let sql = "SELECT DISTINCT explain_value(start_seq, 'g') AS why FROM calls WHERE function LIKE 'items::two%'";
    let why = &recording.row(sql)["why"];
    assert_eq!(why, "unknown: it is a function item, which has no bytes");
}

/// The place that the debug information states for an item holds bytes of others.
#[test]
fn a_stopped_function_does_not_show_items() {
    let live = Live::new("function-items-live");
    let program = built(&live.scratch);
    live.start(&["--break", "items.rs:5"], &program, &[]);
    let shown = live.ask(&["locals"]);
    let value = |name: &str| {
        let variables = shown["variables"].as_array().expect("a list").iter();
        let mut called = variables.filter(|variable| variable["name"] == name);
        called.next().expect("a parameter").clone()
    };
    assert_eq!(value("x")["value"], "0");
    for name in ["f", "g"] {
        let item = value(name).to_string();
        assert!(!item.contains("\"value\":\"0x"), "{item}");
        assert!(
            item.contains("it is a function item, which has no bytes"),
            "{item}"
        );
    }
}

#[test]
fn what_a_register_holds_by_chance_is_no_difference() {
    let scratch = Scratch::new("function-items-compared");
    for name in ["one", "other"] {
        let _ = recorded(&scratch, name);
    }
    let ended = Hindsight::command(&scratch, &["compare", "one", "other"]).run();
    assert_eq!(ended.status, Status::Code(0), "{}", ended.text());
}

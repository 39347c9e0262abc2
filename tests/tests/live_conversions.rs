//! Goal: a value that the user gives a program is what the program's language makes of it: what a function returns or is called
//! with, what is assigned, what an operator of Rust means. Method: small programs of C and Rust at stops, whose own variables and
//! output say what arrived.

use e2e::{Live, Scratch, compiled};

const PROGRAM: &str = r#"#include <stdio.h>
struct pair { int a; double b; };
struct many { long n[4]; };
struct pair other = { 1, 2.5 };
float gf = 2.5f, tab[4] = { 1, 2, 3, 4 };
double two[2] = { 1, 2 };
short gs = -300;
char text[32];
typedef struct pair pair_t;
pair_t named;
float halff(float x) { return x / 2; }
double halfd(double x) { return x / 2; }
long double halfl(long double x) { return x / 2; }
_Bool odd(int x) { return x & 1; }
int fact(int n) { return n < 2 ? 1 : n * fact(n - 1); }
unsigned size(int n) { return n; }
struct pair both(int n) { struct pair p = { n, n }; return p; }
struct many much(int n) { struct many m = { { n } }; return m; }
void nothing(int n) { gs += n; }
int main(void) {
  float f = halff(5);
  double d = halfd(7);
  long double l = halfl(9);
  long double m = halfl(9) + l;
  _Bool o = odd(1);
  int i = fact(1);
  unsigned u = size(1);
  struct pair p = both(4);
  struct many n = much(4);
  nothing(1);
  printf("%g %g %Lg %Lg %d %d %u %d %g %ld\n", f, d, l, m, o, i, u, p.a, p.b, n.n[0]);
  return 0;
}
"#;

fn started(name: &str) -> (Live, Scratch) {
    let scratch = Scratch::new(name);
    let app = compiled(&scratch, "app.c", PROGRAM, &["-O0", "-g"]);
    (
        Live::started(name, &["--break", "main"], &app, &[]),
        scratch,
    )
}

#[test]
fn return_converts_to_the_type_of_the_function() {
    let (live, _scratch) = started("conversions-return");
    for (function, value, variable, shown) in [
        ("halff", "2.5", "f", "2.5"),
        ("halfd", "3", "d", "3"),
        ("halfl", "3.5", "l", "3.5"),
        // The x87 stack has room for what the caller adds.
        ("halfl", "1", "m", "4.5"),
        ("odd", "256", "o", "true"),
        ("fact", "2.7", "i", "2"),
        ("size", "-1", "u", "4294967295"),
        ("both", "other", "p.b", "2.5"),
    ] {
        live.ask(&["break", "--once", function]);
        live.moved(&["continue"]);
        live.ask(&["return", value]);
        live.moved(&["next"]);
        assert_eq!(live.print(variable), shown, "{function}: return {value}");
    }
    live.ask(&["break", "--once", "much"]);
    live.moved(&["continue"]);
    let refused = live.refused(&["return", "4"])["message"].to_string();
    assert!(refused.contains("in memory of the caller"), "{refused}");
    live.ask(&["break", "--once", "nothing"]);
    live.moved(&["continue"]);
    let refused = live.refused(&["return", "4"])["message"].to_string();
    assert!(refused.contains("returns nothing"), "{refused}");
    live.ask(&["return"]);
    assert_eq!(live.run_to_end(), 0);
    assert_eq!(live.output(), "2.5 3 3.5 4.5 1 2 4294967295 1 2.5 4\n");
}

#[test]
fn a_float_is_passed_as_a_double_where_no_parameter_has_a_type() {
    let (live, _scratch) = started("conversions-call");
    live.ask(&["call", "snprintf(text, 32, \"%g %d\", gf, gs)"]);
    assert_eq!(live.print("strcmp(text, \"2.5 -300\")"), "0");
    assert_eq!(live.run_to_end(), 0);
}

#[test]
fn memory_is_shown_with_the_size_of_its_numbers() {
    let (live, _scratch) = started("conversions-x");
    let values = |format: &str, at: &str| {
        let shown = live.ask(&["x", "--format", format, at]);
        let rows = shown["rows"].as_array().expect("rows").iter();
        let values = rows.flat_map(|row| row["values"].as_array().expect("values").clone());
        let values: Vec<String> = values
            .map(|value| value.as_str().expect("text").to_owned())
            .collect();
        values.join(" ")
    };
    assert_eq!(values("4f", "tab"), "1 2 3 4");
    assert_eq!(values("2f", "two"), "1 2");
    assert_eq!(values("fw", "&two[1]"), "0");
    assert_eq!(values("2f", "&tab[2]"), "3 4");
    let name = |of: &str| live.ask(&["whatis", of])["type"].to_string();
    assert_eq!(name("named"), "\"pair_t\"");
    assert_eq!(name("pair_t"), "\"struct pair\"");
    let code = live.ask(&["disassemble", "halff,+8"]);
    let all = code["instructions"].as_array().expect("instructions");
    let start = all[0]["address"].as_str().expect("an address");
    let start = u64::from_str_radix(&start[2..], 16).expect("hexadecimal");
    let last = all.last().and_then(|one| one["address"].as_str());
    let last = last.and_then(|last| u64::from_str_radix(&last[2..], 16).ok());
    assert!(last.is_some_and(|last| last < start + 8), "{code:#}");
    assert!(all.len() > 1, "{code:#}");
}

#[test]
fn a_call_for_the_user_leaves_a_temporary_breakpoint_and_a_register_takes_minus_one() {
    let (live, _scratch) = started("conversions-once");
    live.ask(&["break", "--once", "fact"]);
    live.ask(&["call", "fact(3)"]);
    assert_eq!(live.moved(&["continue"])["function"], "fact");
    live.ask(&["set", "$rcx", "-1"]);
    assert_eq!(live.print("$rcx == -1"), "true");
    assert_eq!(live.run_to_end(), 0);
}

#[test]
fn a_short_backtrace_knows_what_the_callers_passed() {
    let source = r#"
volatile int sunk;
__attribute__((noipa)) void sink(int x) { sunk += x; }
__attribute__((noipa)) int mid(int id, int n) { sink(n * 2); sink(3); return sunk + 1; }
__attribute__((noipa)) int outer(int id) { int got = mid(id, 5); return got + 1; }
int main(int argc, char **argv) { return outer(7 * argc) & 1; }
"#;
    let scratch = Scratch::new("conversions-frames");
    let app = compiled(&scratch, "app.c", source, &["-O2", "-g"]);
    let live = Live::started("conversions-frames", &["--break", "sink"], &app, &[]);
    let frame = |words: &[&str]| {
        let mut reply = live.ask(words);
        let stack = reply["threads"][0].take();
        (
            stack["frames"][1]["args"].to_string(),
            stack["more"].clone(),
        )
    };
    let (whole, _) = frame(&["backtrace"]);
    let (short, more) = frame(&["backtrace", "--limit", "2"]);
    assert_eq!((short, more), (whole, true.into()));
}

const RUST: &str = r#"use std::hint::black_box;
#[inline(never)]
fn look(boxed: Box<i32>, mask: u8, negative: i32, is_on: bool) -> i32 {
    black_box((&boxed, &mask, &negative, &is_on));
    *boxed
}
fn main() {
    for n in 0..4 {
        black_box(look(Box::new(n), 0x0f, -8, true));
    }
}
"#;

#[test]
fn rust_turns_the_bits_of_numbers_and_computes_with_what_is_in_a_box() {
    let scratch = Scratch::new("conversions-rust");
    let app = compiled(&scratch, "app.rs", RUST, &["-g"]);
    let live = Live::started("conversions-rust", &["--break", "app::look"], &app, &[]);
    for (expression, value) in [
        ("!mask", "240"),
        ("!negative", "7"),
        ("!is_on", "false"),
        ("!5", "-6"),
        ("boxed", "0"),
        ("boxed == 0", "true"),
        ("boxed + 1", "1"),
    ] {
        assert_eq!(live.print(expression), value, "{expression}");
    }
    // The number would become the address of the box.
    let refused = live.refused(&["set", "boxed", "9"])["message"].to_string();
    assert!(refused.contains("is no address"), "{refused}");
    live.ask(&["set", "*boxed", "9"]);
    assert_eq!(live.print("boxed"), "9");
    // Conditions are compiled.
    live.ask(&["break", "remove", "--all"]);
    let condition = "boxed == 2 && !mask == 240";
    live.ask(&["break", "app::look", "--condition", condition]);
    live.moved(&["continue"]);
    assert_eq!(live.print("boxed"), "2");
    assert_eq!(live.run_to_end(), 0);
}

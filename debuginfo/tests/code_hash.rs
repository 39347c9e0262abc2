//! Goal: functions whose code or constants differ in two builds are found, and no others, although everything has moved. Method:
//! pairs of builds of small programs whose sources differ in one place.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use debuginfo::{CodeHasher, CodePrint, Module, SymbolKind};

const LOOKED_UP: &str = r#"#include <stdio.h>
#define APART __attribute__((noinline))
/* begin */
static APART int classify(int c) {
  switch (c) {
  case 'a': return 3;
  case 'b': return 17;
  case 'c': return 5;
  case 'd': return 42;
  case 'e': return 8;
  case 'f': return 11;
  case 'g': return 2;
  }
  return 0;
}
static APART int step(int n) {
  static const short steps[] = {0, 7, 1, 900, 4, 2};
  return steps[n % 6];
}
static APART const char *named(int n) {
  static const char *const names[] = {"zero", "one", "two", "three"};
  return names[n & 3];
}
static APART double scaled(double of) { return of * 1.25 + 0.5; }
static APART void jump(int n) {
  switch (n) {
  case 0: puts("nothing"); break;
  case 1: puts("one of them"); break;
  case 2: printf("%d", n); break;
  case 3: putchar('3'); break;
  case 4: puts("four"); putchar('4'); break;
  case 5: printf("%d %d", n, n); break;
  }
}
int main(int argc, char **argv) {
  for (int n = argc; n < 9; n++) {
    printf("%d %d %s %g\n", classify("abcdefgh"[n & 7]), step(n), named(n), scaled(n));
    jump(n);
  }
  return argv[0] == 0;
}
"#;

const PROMOTED: &str = r#"use std::hint::black_box;
#[derive(Debug, Clone, PartialEq)]
enum Token { Number(f64), Sign(char), Left, Right }
// begin
#[inline(never)]
fn until_left(tokens: &[Token]) -> usize {
    for (at, token) in tokens.iter().enumerate() {
        if *token == Token::Left { return at; }
    }
    tokens.len()
}
#[inline(never)]
fn looked_up(n: u8) -> u32 {
    match n { 0 => 9, 1 => 700, 2 => 31, 3 => 5, 4 => 1_000_000, 5 => 77, 6 => 12, _ => 0 }
}
#[inline(never)]
fn told(n: usize) -> &'static str {
    match n { 0 => "none", 1 => "a single one", 2 => "a pair", 3 => "some", _ => "many" }
}
#[inline(never)]
fn checked(list: &[u32], at: usize) -> u32 { list[at] }
fn main() {
    let all = [Token::Number(1.0), Token::Sign('+'), Token::Left, Token::Right];
    let n = until_left(black_box(&all));
    println!("{} {} {}", looked_up(black_box(n as u8)), told(black_box(n)), checked(&[1, 2, 3], n));
}
"#;

fn built(folder: &Path, name: &str, text: &str, compiler: &[&str]) -> PathBuf {
    let source = folder.join(match compiler[0] {
        "rustc" => "program.rs",
        _ => "program.c",
    });
    fs::write(&source, text).expect("the folder is writable");
    let program = folder.join(name);
    let mut command = Command::new(compiler[0]);
    command
        .args(&compiler[1..])
        .arg("-o")
        .args([&program, &source]);
    let made = command.output().expect("the compiler is there");
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    program
}

/// The code of each function, by its readable name.
fn prints(program: &Path, has_texts: bool) -> BTreeMap<String, CodePrint> {
    let code = CodeHasher::new(
        Arc::new(Module::open(program).expect("a program")),
        Arc::default(),
    );
    let symbols = code.module().symbols().into_iter();
    let functions = symbols.filter(|symbol| symbol.kind == SymbolKind::Function);
    let print = |symbol: debuginfo::Symbol| {
        let print = code.print(symbol.svma, symbol.size, has_texts);
        Some((symbol.name, print?))
    };
    functions.filter_map(print).collect()
}

/// The functions of both builds whose code differs.
fn changed(one: &Path, other: &Path, has_texts: bool) -> BTreeSet<String> {
    let (one, other) = (prints(one, has_texts), prints(other, has_texts));
    let both = one.into_iter().filter_map(|(name, print)| {
        let of_other = other.get(&name)?;

        (!print.is_same(of_other)).then_some(name)
    });
    both.collect()
}

fn named(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn tables_of_a_function_are_part_of_its_code() {
    let folder = tempfile::tempdir().expect("a folder");
    let moved = "/* begin */ const char *const more[] = {\"more\", \"of\", \"them\"};\n\
                 const int extra[] = {4, 5, 6, 7, 8, 9, 10};\n\
                 __attribute__((noinline, used)) static int early(int n) { puts(\"early\"); return extra[n & 3]; }";
    let edits = [
        (
            "case 'd': return 42",
            "case 'd': return 24",
            &["classify"][..],
        ),
        ("1, 900, 4", "1, 901, 4", &["step"]),
        ("of * 1.25", "of * 1.75", &["scaled"]),
        ("\"four\"", "\"five\"", &["jump"]),
        ("/* begin */", moved, &[]),
    ];
    for pie in ["-pie", "-no-pie"] {
        let compiler = match pie {
            "-pie" => &["gcc", "-O2", "-fpie", "-pie"][..],
            _ => &["gcc", "-O2", "-fno-pie", "-no-pie"],
        };
        let base = built(folder.path(), "base", LOOKED_UP, compiler);
        for (from, to, expected) in edits {
            let text = LOOKED_UP.replacen(from, to, 1);
            let edited = built(folder.path(), "edited", &text, compiler);
            let found = changed(&base, &edited, true);
            assert_eq!(found, named(expected), "{pie}: {to}");
        }
    }
}

#[test]
fn constants_of_rust_functions_are_part_of_their_code() {
    let folder = tempfile::tempdir().expect("a folder");
    let moved = "#[inline(never)] fn early(n: usize) -> &'static [&'static str] \
                 { &[\"early\", \"earlier\", \"x\"][n..] }\n\
                 #[used] static EARLY: fn(usize) -> &'static [&'static str] = early;";
    // An optimised table of texts has their distances, and the length of a text is not known.
    let edits = [
        ("Token::Left {", "Token::Right {", ["until_left"; 2]),
        ("2 => 31", "2 => 32", ["looked_up"; 2]),
        ("\"a pair\"", "\"a duo.\"", ["told", ""]),
        ("// begin", moved, [""; 2]),
    ];
    for (at, level) in ["opt-level=0", "opt-level=2"].into_iter().enumerate() {
        let pieces = ["-C", level, "-C", "codegen-units=1"];
        let compiler = [&["rustc", "--edition", "2024"][..], &pieces].concat();
        let base = built(folder.path(), "base", PROMOTED, &compiler);
        for (from, to, expected) in edits {
            let text = PROMOTED.replacen(from, to, 1);
            let edited = built(folder.path(), "edited", &text, &compiler);
            let found = changed(&base, &edited, false);
            let names: Vec<&str> = found
                .iter()
                .filter_map(|name| name.rsplit("::").next())
                .collect();
            let expected: Vec<&str> = Some(expected[at])
                .filter(|name| !name.is_empty())
                .into_iter()
                .collect();
            assert_eq!(names, expected, "{level}, {to}");
        }
    }
}

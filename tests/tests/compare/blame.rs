//! What the code of two builds tells of the function to look at first: parts that were moved away, tables of jumps, and functions that
//! one build does not have.

use std::fs;

use e2e::{Program, Scratch, in_turn};
use serde_json::Value;

use crate::{build, compare, ends_with, record};

/// What it changes is only seen in `total`, at the end.
const SHOP: &str = r#"#include <cstdio>
#include <stdexcept>
static long refused, points;
#define APART __attribute__((noinline))
struct Item { virtual int weight() const { return 1; } virtual ~Item() {} };
struct Stone : Item { int weight() const override; };
APART int Stone::weight() const { return 9; }
APART void check(int n) { if (n % 4 == 1) throw std::runtime_error("refused"); }
APART void take(int n) { try { check(n); } catch (...) { refused += 1; } }
APART void rate(int n) {
  switch (n % 6) {
  case 0: points += 3; break;
  case 1: points *= 2; break;
  case 2: points ^= 5; break;
  case 3: points -= 7; break;
  case 4: points = points * 3 + 1; break;
  case 5: points &= 0xffff; break;
  }
}
APART long total(const Item *item) { return refused * 1000 + points * 10 + item->weight(); }
int main() {
  Stone stone;
  for (int n = 0; n < 12; n++) { take(n); rate(n); }
  printf("%ld\n", total(&stone));
}
"#;

fn made(scratch: &Scratch, name: &str, text: &str, level: &str) {
    let folder = scratch.join(name);
    fs::create_dir(&folder).expect("the test's folder is writable");
    fs::write(folder.join("app.cc"), text).expect("the test's folder is writable");
    build(&folder, &format!("g++ {level} -g -o app app.cc"));
    let program = Program::new(folder.join("app"), scratch.path());
    record(scratch, name, &[], &program);
}

fn compared(scratch: &Scratch, other: &str) -> Value {
    let ended = compare(scratch, &["shop", other, "--json"]);
    ends_with(&ended, 1);
    ended.result()
}

fn first_of(compared: &Value) -> &str {
    compared["suspects"][0]["function"]
        .as_str()
        .expect("a suspect")
}

#[test]
fn handlers_and_tables_of_jumps_are_code_of_their_function() {
    for level in in_turn(["-O0", "-O2"]) {
        let scratch = Scratch::new("compare-blame");
        made(&scratch, "shop", SHOP, level);
        let edits = [
            ("handler", "refused += 1", "refused += 2", "take"),
            ("jumps", "case 3: points", "case 4: points", "rate"),
        ];
        for (name, from, to, guilty) in edits {
            let mut text = SHOP.replacen(from, to, 1);
            if name == "jumps" {
                text = text.replacen("case 4: points = ", "case 3: points = ", 1);
            }
            made(&scratch, name, &text, level);
            let compared = compared(&scratch, name);
            let first = first_of(&compared);
            assert!(first.starts_with(guilty), "{level} {name}: {compared:#}");
        }
    }
}

#[test]
fn an_override_that_is_gone_is_not_called_inlined() {
    let scratch = Scratch::new("compare-gone");
    made(&scratch, "shop", SHOP, "-O0");
    let text = SHOP.replace("int weight() const override;", "");
    let text = text.replace("APART int Stone::weight() const { return 9; }\n", "");
    made(&scratch, "gone", &text, "-O0");
    let text = compare(&scratch, &["shop", "gone"]).text();
    assert!(
        text.contains("the other build has no such function"),
        "{text}"
    );
    assert!(!text.contains("inlined there"), "{text}");
}

const MANY: &str = "#include <stdio.h>\n\
    __attribute__((noinline)) int first(int a, int b, int c, int d, int e, int f, int g, int h) {\n\
    return h < 0 ? 1 : a + b + c + d + e + f + g; }\n\
    int main(void) { printf(\"%d\\n\", first(1, 2, 3, 4, 5, 6, 7, 8)); return 0; }\n";

/// An argument in memory is not recorded.
#[test]
fn changed_code_that_nothing_shows_is_named() {
    let scratch = Scratch::new("compare-silent");
    made(&scratch, "shop", MANY, "-O1");
    made(&scratch, "silent", &MANY.replace("7, 8)", "7, 9)"), "-O1");
    let ended = compare(&scratch, &["shop", "silent"]);
    ends_with(&ended, 0);
    let text = ended.text();
    let told = "the code of main differs, but nothing that is compared shows it";
    assert!(text.contains(told), "{text}");
}

/// The program's own line is shown, not that of the library's loop that is inlined there.
#[test]
fn a_call_through_inlined_library_code_is_at_the_programs_line() {
    let text = "#include <algorithm>\n#include <vector>\n#include <cstdio>\n\
                __attribute__((noinline)) void visit(int n) { printf(\"%d\\n\", n); }\n\
                int main() {\n  std::vector<int> all{1, 2, 3};\n  \
                std::for_each(all.begin(), all.end(), visit);\n}\n";
    let scratch = Scratch::new("compare-for-each");
    made(&scratch, "shop", text, "-O2");
    made(&scratch, "other", &text.replace("2, 3}", "2, 4}"), "-O2");
    let told = compare(&scratch, &["shop", "other"]);
    ends_with(&told, 1);
    let told = told.text();
    assert!(told.contains("called at app.cc:7"), "{told}");
    assert!(!told.contains("stl_algo.h"), "{told}");
}

/// How it ends is read from the environment, so that all are one build.
const ENDS: &str = r#"#include <stdlib.h>
static int way;
void init(int n) { if (way == n) *(volatile int *)0 = n; }
void quit(int n) { if (way == n) exit(0); }
int main(void) {
  way = atoi(getenv("WAY"));
  init(1);
  if (way == 2) *(volatile int *)0 = 2;
  quit(3);
  return 0;
}
"#;

#[test]
fn a_call_that_never_returned_is_not_one_that_did() {
    let scratch = Scratch::new("compare-ends");
    fs::write(scratch.join("app.c"), ENDS).expect("the test's folder is writable");
    build(scratch.path(), "gcc -O0 -g -o app app.c");
    for way in ["0", "1", "2", "3"] {
        let app = Program::new(scratch.join("app"), scratch.path()).env("WAY", way);
        record(&scratch, way, &[], &app);
    }
    // A crash in one function or the next, and an exit or a return.
    for (a, b, guilty) in [("2", "1", "init"), ("1", "2", "init"), ("0", "3", "quit")] {
        let ended = compare(&scratch, &[a, b]);
        ends_with(&ended, 1);
        let text = ended.text();
        let said = format!("The first difference: {guilty} ended differently");
        assert!(text.contains(&said), "{text}");
        assert!(text.contains(&format!("  1. {guilty} at app.c:")), "{text}");
        assert!(text.contains("had not returned"), "{text}");
    }
}

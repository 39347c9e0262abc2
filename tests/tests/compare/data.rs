//! Changes that show in data: which variable code uses, what variables begin with, and which values are addresses.

use std::fs;

use e2e::{Program, Scratch, in_turn};
use serde_json::Value;

use crate::{build, compare, ends_with, record};

const COUNTERS: &str = r#"#include <stdio.h>
int hits, misses, evicted;
int limit = LIMIT;
static void count_hit(void) { hits++; }
static void count_miss(void) { COUNTED++; }
static int lookup(int k) { if (k % 3) { count_hit(); return 1; } count_miss(); return 0; }
static int helper(int k) { return HELPER; }
static int ratio(void) { return hits * 100 / (hits + misses + evicted + 1); }
static int capped(int n) { return n > limit ? limit : n; }
int main(void) {
  int t = 0;
  for (int i = 0; i < 20; i++) t += lookup(helper(i));
  printf("ratio %d of %d\n", capped(ratio()), t);
  return 0;
}
"#;

/// Builds and records each of the programs, in a folder of its own.
fn made(scratch: &Scratch, name: &str, command: &str, source: &str, options: &[&str]) {
    let folder = scratch.join(name);
    fs::create_dir(&folder).expect("the test's folder is writable");
    fs::write(folder.join("app.c"), source).expect("the test's folder is writable");
    build(&folder, command);
    record(
        scratch,
        name,
        options,
        &Program::new(folder.join("app"), scratch.path()),
    );
}

#[test]
fn code_that_uses_another_variable_differs() {
    let scratch = Scratch::new("compare-variables");
    let text = |counted: &str, helper: &str, limit: &str| {
        COUNTERS
            .replace("COUNTED", counted)
            .replace("HELPER", helper)
            .replace("LIMIT", limit)
    };
    for level in in_turn(["-O0", "-O2 -fno-inline -fno-ipa-icf"]) {
        let command = format!("gcc {level} -g -o app app.c");
        let name = |side: &str| format!("{side}{}", &level[1..3]);
        let (good, bad, value, renamed) =
            (name("good"), name("bad"), name("value"), name("renamed"));
        made(
            &scratch,
            &good,
            &command,
            &text("misses", "k * 2", "90"),
            &[],
        );
        // Another variable, beside a harmless change.
        made(
            &scratch,
            &bad,
            &command,
            &text("hits", "(k << 2) - k - k", "90"),
            &[],
        );
        let found = compare(&scratch, &[&good, &bad, "--json"]).result();
        let changed = found["functions"].as_array().expect("functions").iter();
        let changed = changed.filter(|function| function["code_differs"] == true);
        let changed: Vec<&Value> = changed.map(|function| &function["function"]).collect();
        assert!(
            changed.contains(&&"count_miss".into()),
            "{level}: {changed:?}"
        );
        assert!(
            !changed.contains(&&"ratio".into()) && !changed.contains(&&"count_hit".into()),
            "{changed:?}"
        );
        let suspects = found["suspects"].as_array().expect("suspects").iter();
        let mut suspected = suspects.map(|suspect| &suspect["function"]);
        assert!(
            suspected.any(|name| name == "count_miss"),
            "{level}: {found:#}"
        );

        // What a variable begins with.
        made(
            &scratch,
            &value,
            &command,
            &text("misses", "k * 2", "30"),
            &[],
        );
        let told = compare(&scratch, &[&good, &value]).text();
        assert!(
            told.contains("Variables that begin with other values: limit\n"),
            "{level}: {told}"
        );

        // A variable with another name is the same one.
        let other = text("misses", "k * 2", "90")
            .replace("misses", "missed")
            .replace("limit", "most");
        made(&scratch, &renamed, &command, &other, &[]);
        let ended = compare(&scratch, &[&good, &renamed]);
        assert!(!ended.text().contains("differs"), "{}", ended.text());
        ends_with(&ended, 0);
    }
}

const TABLES: &str = r#"#include <stdio.h>
int show(const char *s, long v) { return printf("%s = FORMAT\n", s, v); }
int twice(int n) { return 2 * n; }
int thrice(int n) { return 3 * n; }
static int steps[] = { 1, 2, 3, 4 };
static const char *names[] = { "alpha", TEXT, 0 };
static int (*calls[])(int) = { twice, CALL };
static int *places[] = { &steps[1], &steps[PLACE] };
static struct { const char **names; int (**calls)(int); } all[] = { { names, calls } };
int main(void) {
  for (int i = 0; all[0].names[i]; i++) show(all[0].names[i], all[0].calls[i % 2](i) + *places[i % 2]);
  return 0;
}
"#;

#[test]
fn tables_of_pointers_are_compared_by_what_they_lead_to() {
    let scratch = Scratch::new("compare-tables");
    for level in in_turn(["-O0", "-O2", "-O0 -no-pie -fno-pie"]) {
        let command = format!("gcc -w {level} -g -o app app.c");
        let name = |side: &str| format!("{side}{}", level.replace(' ', ""));
        let made = |side: &str, [format, text, call, place]: [&str; 4]| {
            let source = TABLES.replace("FORMAT", format).replace("TEXT", text);
            let source = source.replace("CALL", call).replace("PLACE", place);
            made(&scratch, &name(side), &command, &source, &[]);
        };
        made("good", ["%ld", r#""beta""#, "thrice", "2"]);
        // Only the addresses of the texts differ.
        made("moved", ["%d", r#""beta""#, "thrice", "2"]);
        made("text", ["%d", r#""bets""#, "thrice", "2"]);
        made("call", ["%d", r#""beta""#, "twice", "2"]);
        made("place", ["%d", r#""beta""#, "thrice", "3"]);
        made("none", ["%d", "0", "thrice", "2"]);
        for (side, variable) in [
            ("moved", None),
            ("text", Some("names")),
            ("call", Some("calls")),
            ("place", Some("places")),
            ("none", Some("names")),
        ] {
            let ended = compare(&scratch, &[&name("good"), &name(side)]);
            let text = ended.text();
            let mut lines = text.lines();
            let told =
                lines.find_map(|it| it.strip_prefix("Variables that begin with other values: "));
            assert_eq!(told, variable, "{level} {side}: {text}");
        }
    }
}

const ORDERED: &str = r#"#include <pthread.h>
#include <stdio.h>
static pthread_mutex_t outer = PTHREAD_MUTEX_INITIALIZER, inner = PTHREAD_MUTEX_INITIALIZER;
static struct { int kept; pthread_mutex_t a, b; } both = { 1, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER };
static int moved;
static void pump(void) {
  pthread_mutex_lock(FIRST); pthread_mutex_lock(SECOND);
  moved += both.kept;
  pthread_mutex_unlock(SECOND); pthread_mutex_unlock(FIRST);
}
int main(void) { for (int i = 0; i < 5; i++) pump(); printf("%d\n", moved); }
"#;

#[test]
fn the_order_of_locks_is_compared() {
    let scratch = Scratch::new("compare-lock-order");
    for (name, first, second) in [
        ("good", "&outer", "&inner"),
        ("bad", "&inner", "&outer"),
        ("fields", "&both.a", "&both.b"),
        ("swapped", "&both.b", "&both.a"),
    ] {
        let source = ORDERED.replace("FIRST", first).replace("SECOND", second);
        made(
            &scratch,
            name,
            "gcc -O0 -g -pthread -o app app.c",
            &source,
            &["--locks"],
        );
    }
    for (one, other) in [("good", "bad"), ("fields", "swapped")] {
        let ended = compare(&scratch, &[one, other, "--json"]);
        let found = ended.result();
        assert_eq!(found["suspects"][0]["function"], "pump", "{found:#}");
        ends_with(&ended, 1);
    }
}

const NUMBERS: &str = r#"#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
int main(void) {
  uint64_t crc = CRC;
  printf("crc 0x%016lx of %p and %p\n", crc, malloc(40), (void *)&crc);
  return 0;
}
"#;

#[test]
fn hexadecimal_numbers_are_compared_unless_they_can_be_addresses() {
    let scratch = Scratch::new("compare-hexadecimal");
    for flags in in_turn(["", "-no-pie -fno-pie"]) {
        let name = |side: &str| format!("{side}{}", flags.len());
        for (side, crc) in [
            ("one", "0xf2b5ee7a0d4a1185"),
            ("two", "0xf2b5ee7a0d4a1185"),
            ("bad", "0x333b31baccc4ce45"),
        ] {
            let source = NUMBERS.replace("CRC", crc);
            made(
                &scratch,
                &name(side),
                &format!("gcc -O0 -g {flags} -o app app.c"),
                &source,
                &["-f", "main"],
            );
        }
        let ended = compare(&scratch, &[&name("one"), &name("two")]);
        assert!(ended.text().contains("the same"), "{}", ended.text());
        ends_with(&ended, 0);
        let ended = compare(&scratch, &[&name("one"), &name("bad")]);
        assert!(ended.text().contains("stdout differs"), "{}", ended.text());
        ends_with(&ended, 1);
    }
}

const BY_VALUE: &str = r#"#include <stdio.h>
struct event { int kind; long when; double weight; };
static long cost(struct event e) { return e.kind * 10 + e.when; }
static struct event next(int i) { struct event e = { i % 3, i * STEP, 1.5 }; return e; }
int main(void) { long s = 0; for (int i = 0; i < 9; i++) s += cost(next(i)); printf("%ld\n", s); }
"#;

#[test]
fn unknown_arguments_are_not_called_the_same() {
    let scratch = Scratch::new("compare-by-value");
    for (name, step) in [("good", "2"), ("bad", "4")] {
        made(
            &scratch,
            name,
            "gcc -O0 -g -o app app.c",
            &BY_VALUE.replace("STEP", step),
            &[],
        );
    }
    let text = compare(&scratch, &["good", "bad", "--no-code"]).text();
    let said = "with the same calls inside (its arguments are not compared)";
    assert!(text.contains(said), "{text}");
    assert!(!text.contains("with the same arguments and"), "{text}");
    // What was accepted shows it.
    let accept = ["good", "bad", "--accept", "known.json"];
    ends_with(&compare(&scratch, &accept), 0);
    let text = compare(&scratch, &accept).text();
    assert!(!text.contains("nothing that is compared"), "{text}");
}

const HALVES: &str = r#"#include <math.h>
#include <stdio.h>
#include <stdlib.h>
int main(int c, char **v) { printf("%g\n", ldexp(atof(c > 1 ? v[1] : "1"), -2)); return 0; }
"#;

#[test]
fn known_arguments_that_are_not_compared_are_not_called_the_same() {
    let scratch = Scratch::new("compare-stubs");
    made(
        &scratch,
        "first",
        "gcc -O0 -s -o app app.c -lm",
        HALVES,
        &[],
    );
    for (name, arg) in [("one", "1.5"), ("two", "2.5")] {
        record(
            &scratch,
            name,
            &[],
            &Program::new(scratch.join("first/app"), scratch.path()).args([arg]),
        );
    }
    let text = compare(&scratch, &["one", "two"]).text();
    assert!(text.contains("ldexp@plt(x=2.5, exponent=-2)"), "{text}");
    let said =
        "ldexp@plt ended differently, with the same calls inside (its arguments are not compared)";
    assert!(text.contains(said), "{text}");
    assert!(!text.contains("the same arguments"), "{text}");
}

#[test]
fn programs_that_share_a_name_are_not_one() {
    let scratch = Scratch::new("compare-namesakes");
    let one = "#include <stdio.h>\nint f(int n) { return n + 1; }\nint main(void) { printf(\"%d\\n\", f(1)); }\n";
    let two = "#include <stdio.h>\nvoid greet(void) { puts(\"hello\"); }\nvoid bye(void) { puts(\"bye\"); }\nint main(void) { greet(); bye(); }\n";
    for (name, text) in [("one", one), ("two", two)] {
        let folder = scratch.join(name);
        fs::create_dir(&folder).expect("the test's folder is writable");
        fs::write(folder.join(format!("{name}.c")), text).expect("the test's folder is writable");
        build(&folder, &format!("gcc -O0 -g -o app {name}.c"));
        record(
            &scratch,
            name,
            &[],
            &Program::new(folder.join("app"), scratch.path()),
        );
    }
    let ended = compare(&scratch, &["one", "two"]);
    assert!(
        ended.errors().contains("are of different programs"),
        "{}{}",
        ended.text(),
        ended.errors()
    );
    ends_with(&ended, 3);
}

const KEYS: &str = r#"use std::collections::HashMap;
#[inline(never)]
fn fill(m: &mut HashMap<String, u32>, n: u32) { for i in 0..n { m.insert(format!("key-{i:0w$}", w = (i % 7) as usize), i); } }
fn main() { let mut m = HashMap::new(); fill(&mut m, 20); let mut s = 0; for v in m.values() { s += v; } println!("{} {}", m.len(), s); }
"#;

#[test]
fn the_order_in_which_a_random_table_frees_is_no_difference() {
    let scratch = Scratch::new("compare-freed-keys");
    fs::write(scratch.join("keys.rs"), KEYS).expect("the test's folder is writable");
    build(scratch.path(), "rustc -g -O -o keys keys.rs");
    for name in ["one", "two", "three"] {
        record(
            &scratch,
            name,
            &["--memory"],
            &Program::new(scratch.join("keys"), scratch.path()),
        );
    }
    for other in ["two", "three"] {
        let ended = compare(&scratch, &["one", other]);
        assert!(ended.text().contains("the same"), "{}", ended.text());
        ends_with(&ended, 0);
    }
}

const ZEROS: &str = r#"#include <stdio.h>
long first[1000], second[1000];
long pad[PAD];
long counter __attribute__((section(".bss.z")));
__attribute__((noinline)) void bump(long *p) { ++*p; }
int main(int c, char **v) { for (int i = 0; i < 5; i++) bump(HOW); printf("done\n"); return 0; }
"#;

#[test]
fn pointers_into_zeros_behind_the_file_are_compared_by_their_variables() {
    let scratch = Scratch::new("compare-zeros");
    let made = |name: &str, how: &str, pad: &str| {
        let source = ZEROS.replace("HOW", how).replace("PAD", pad);
        made(&scratch, name, "gcc -O0 -g -o app app.c", &source, &[]);
    };
    made("first", "c > 9 ? 0 : &first[900]", "1");
    made("second", "c > 9 ? 0 : &second[900]", "1");
    let ended = compare(&scratch, &["first", "second", "--no-code"]);
    let told = "main called bump with other arguments";
    assert!(ended.text().contains(told), "{}", ended.text());
    ends_with(&ended, 1);
    // In one build it is told by its offset.
    let app = |name: &str, arg: &str| {
        record(
            &scratch,
            name,
            &[],
            &Program::new(scratch.join("chosen/app"), scratch.path()).args([arg]),
        );
    };
    let how = "c > 1 && v[1][0] == 'x' ? &first[900] : &second[900]";
    made("chosen", how, "1");
    app("one", "x");
    app("two", "y");
    let ended = compare(&scratch, &["one", "two"]);
    assert!(ended.text().contains(told), "{}", ended.text());
    ends_with(&ended, 1);
    // The same variable before and behind the last page of the file.
    made("near", "&counter", "1");
    made("far", "&counter", "9000");
    let ended = compare(&scratch, &["near", "far"]);
    assert!(ended.text().contains("the same"), "{}", ended.text());
    ends_with(&ended, 0);
}

const GREETINGS: &str = r#"#include <stdio.h>
#include <string.h>
#include <unistd.h>
__attribute__((noinline)) int greet(const char *name) { return name[0] == 'x'; }
__attribute__((noinline)) int fill(char *to, int n) { return to == 0 || n == 0; }
__attribute__((noinline)) int look(char *name) { return name == 0; }
int main(int c, char **v) {
  char own[32], other[32], place[64], left[64];
  strcpy(own, v[1]);
  strcpy(other, v[2]);
  sprintf(place, "%p by process %d", (void *)own, getpid());
  memcpy(left, &v, sizeof v);
  return greet(own) + look(other) + greet(place) + fill(left, 64);
}
"#;

#[test]
fn texts_that_both_recorded_are_compared() {
    let scratch = Scratch::new("compare-texts");
    fs::write(scratch.join("app.c"), GREETINGS).expect("the test's folder is writable");
    build(scratch.path(), "gcc -O0 -g -o app app.c");
    let record = |name: &str, options: &[&str], args: [&str; 2]| {
        let app = Program::new(scratch.join("app"), scratch.path()).args(args);
        record(&scratch, name, options, &app);
    };
    record("anna", &["--strings"], ["anna", "here"]);
    record("again", &["--strings", "--pointees"], ["anna", "here"]);
    record("bert", &["--strings"], ["bert", "here"]);
    record("there", &["--strings"], ["anna", "there"]);
    record("without", &[], ["bert", "here"]);
    // Addresses, processes, and what is left in a buffer are no difference.
    let ended = compare(&scratch, &["anna", "again"]);
    assert!(ended.text().contains("the same"), "{}", ended.text());
    ends_with(&ended, 0);
    for (other, told, own) in [
        ("bert", "main called greet with other arguments", "\"anna\""),
        ("there", "main called look with other arguments", "\"here\""),
    ] {
        let ended = compare(&scratch, &["anna", other]);
        let text = ended.text();
        assert!(text.contains(told), "{text}");
        let values = text.lines().find(|line| line.contains("name: A "));
        let values = values.unwrap_or_else(|| panic!("no text is told: {text}"));
        assert!(values.contains(own), "{values}");
        ends_with(&ended, 1);
    }
    // What only one of them has is no difference.
    ends_with(&compare(&scratch, &["anna", "without"]), 0);
}

const ORDERS: &str = r#"use std::collections::HashMap;
#[inline(never)]
fn visit(key: u32) -> u32 { key ^ 1 }
#[inline(never)]
fn cap(n: u32) -> u32 { if n HOW 17 { 17 } else { n } }
fn main() {
  let keys: HashMap<u32, u32> = (0..40).map(|n| (n, n)).collect();
  let mut sum = 0;
  for key in keys.keys() { sum += visit(*key); }
  for n in 10..20 { sum += cap(n); }
  println!("{sum}");
}
"#;

#[test]
fn changed_code_is_suspected_before_the_order_of_a_random_table() {
    let scratch = Scratch::new("compare-random-order");
    for (name, how) in [("good", ">"), ("bad", "<")] {
        let folder = scratch.join(name);
        fs::create_dir(&folder).expect("the test's folder is writable");
        let source = ORDERS.replace("HOW", how);
        fs::write(folder.join("app.rs"), source).expect("the test's folder is writable");
        build(&folder, "rustc -g -o app app.rs");
        let app = Program::new(folder.join("app"), scratch.path());
        record(&scratch, name, &[], &app);
    }
    let ended = compare(&scratch, &["good", "bad", "--json"]);
    let found = ended.result();
    let first = found["suspects"][0]["function"].as_str();
    let first = first.expect("a function is suspected");
    assert!(first.ends_with("cap"), "{:#}", found["suspects"]);
    let text = compare(&scratch, &["good", "bad"]).text();
    assert!(text.contains("the order in which they give"), "{text}");
    assert!(!text.contains("--no-aslr"), "{text}");
}

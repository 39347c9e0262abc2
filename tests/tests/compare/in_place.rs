//! A program that was built again at the same path: of the older run, its file is gone, and its sources are newer than it is.

use std::fs;

use e2e::{Ended, Program, Scratch};

use crate::{build, compare, ends_with, record};

const SHOP: &str = r#"#include <stdio.h>
#include <string.h>
static int twice(int n) { return 2 * n; }
static int label(const char *s, int n) { return (int)strlen(s) + n; }
static int apply(int (*f)(int), int n) { return f(n); }
static int price(int n) {
  return n * 3;
}
int main(void) {
  int t = 0;
  volatile int z = 7;
  for (int i = 0; i < 3; i++) t += label("ada", i) + apply(twice, i);
  t += price(t);
  printf("%d\n", t);
  return 0;
}
"#;

/// Writes the program with an edit, builds it at the same path and records it.
fn built(scratch: &Scratch, name: &str, (old, new): (&str, &str)) {
    assert!(SHOP.contains(old));
    fs::write(scratch.join("shop.c"), SHOP.replace(old, new))
        .expect("the test's folder is writable");
    build(scratch.path(), "gcc -O0 -g -o shop shop.c");
    record(
        scratch,
        name,
        &[],
        &Program::new(scratch.join("shop"), scratch.path()),
    );
}

fn count(ended: &Ended, text: &str) -> usize {
    ended.text().matches(text).count()
}

#[test]
fn what_only_one_side_can_read_is_no_difference() {
    let scratch = Scratch::new("in-place-same");
    built(&scratch, "one", ("z = 7", "z = 7"));
    // The texts and functions move.
    built(
        &scratch,
        "two",
        (
            "t);\n  return",
            "t + twice(0)); puts(\"another text\" + 12);\n  return",
        ),
    );
    built(&scratch, "three", ("z = 7", "z = 9"));
    for (a, b, side) in [("one", "three", "A's"), ("three", "one", "B's")] {
        let ended = compare(&scratch, &[a, b, "--full"]);
        ends_with(&ended, 0);
        let note = format!("{side} file shop was replaced since (its build id differs): strings");
        assert_eq!(count(&ended, &note), 1, "{}", ended.text());
    }
    // Here the only difference is the call that was added.
    let ended = compare(&scratch, &["one", "two", "--full"]);
    ends_with(&ended, 1);
    assert_eq!(count(&ended, "with other arguments"), 0, "{}", ended.text());
    assert_eq!(count(&ended, "label"), 0, "{}", ended.text());
}

#[test]
fn newer_source_is_not_shown_as_that_of_an_older_run() {
    let scratch = Scratch::new("in-place-source");
    built(&scratch, "one", ("n * 3", "n * 3"));
    built(&scratch, "two", ("n * 3", "n * 4"));
    let ended = compare(&scratch, &["one", "two", "--full"]);
    ends_with(&ended, 1);
    assert!(ended.text().contains("price"), "{}", ended.text());
    // Of lines that could be shown, only those of the second run are still there.
    let text = ended.text();
    for line in text.lines().filter(|line| line.contains("n * 4")) {
        assert!(!line.trim_start().starts_with("A "), "{text}");
    }
    let of_a = text.lines().skip_while(|line| !line.starts_with("  A "));
    let of_a: Vec<&str> = of_a.take_while(|line| !line.starts_with("  B ")).collect();
    assert!(!of_a.is_empty(), "{text}");
    assert!(!of_a.concat().contains("t += price"), "{text}");
}

//! What compilers do differently with the same source: calls that are inlined in one build only, whole or in part. They are no
//! difference; a bug among them is still found, and named by the function that has it.

use std::fs;

use e2e::{Program, Scratch};
use serde_json::Value;

use crate::{build, compare, ends_with, record};

/// Builds and records `NAME`.
fn made(scratch: &Scratch, name: &str, text: &str, compiler: &str) {
    let folder = scratch.join(name);
    fs::create_dir(&folder).expect("the test's folder is writable");
    fs::write(folder.join("app.cc"), text).expect("the test's folder is writable");
    build(&folder, &format!("{compiler} -g -o app app.cc"));
    let program = Program::new(folder.join("app"), scratch.path());
    record(scratch, name, &[], &program);
}

/// At -O2, gcc inlines `scale` in `hot` until nothing is left of it there, `height` into itself, and `mk` everywhere.
const TREE: &str = r#"#include <cstdio>
#include <cstdlib>
#define APART __attribute__((noinline))
struct node { int key; node *left, *right; };
int scale(int n) { return n * 3 + 1; }
APART int hot(int n) { int sum = 0; for (int i = 0; i < n; i++) sum += scale(i); return sum; }
APART int through(int (*f)(int), int n) { return f(n); }
static node *mk(int key) { node *made = (node *)calloc(1, sizeof *made); made->key = key; return made; }
static node *insert(node *tree, int key) {
  if (!tree) return mk(key);
  if (key < tree->key) tree->left = insert(tree->left, key);
  else tree->right = insert(tree->right, key);
  return tree;
}
static int height(node *tree) {
  if (!tree) return 0;
  int left = height(tree->left), right = height(tree->right);
  return 1 + (left > right ? left : right);
}
int main() {
  int keys[] = {50, 20, 70, 10, 30, 60, 80, 5, 15, 25};
  node *tree = 0;
  for (int key : keys) tree = insert(tree, key);
  int tall = height(tree), sum = hot(10), last = through(scale, 7);
  printf("%d %d %d\n", tall, sum, last);
}
"#;

#[test]
fn what_one_build_inlines_is_no_difference() {
    let scratch = Scratch::new("compare-inlined");
    made(&scratch, "plain", TREE, "g++ -O0");
    for (name, compiler) in [("fast", "g++ -O2"), ("faster", "g++ -O3")] {
        made(&scratch, name, TREE, compiler);
        let ended = compare(&scratch, &["plain", name]);
        ends_with(&ended, 0);
        let text = ended.text();
        assert!(text.contains("Only A has mk (10 calls"), "{name}: {text}");
        let told = "the other build inlined it, so it has no separate code";
        assert!(text.contains(told), "{name}: {text}");
        let told = "Inlined at other places in one build, so their calls are not compared: ";
        assert!(text.contains(told), "{name}: {text}");
    }
}

#[test]
fn a_bug_in_what_is_inlined_elsewhere_is_found() {
    let scratch = Scratch::new("compare-inlined-bug");
    made(&scratch, "good", TREE, "g++ -O2");
    let edits = [("height", "left > right", "left < right", "height")];
    for (name, from, to, guilty) in edits {
        made(&scratch, name, &TREE.replace(from, to), "g++ -O2");
        let ended = compare(&scratch, &["good", name, "--json"]);
        ends_with(&ended, 1);
        let found = ended.result();
        let told = |suspect: &Value| format!("{} {}", suspect["function"], suspect["why"]);
        let suspects = found["suspects"].as_array().expect("a list");
        let told: Vec<String> = suspects.iter().take(3).map(told).collect();
        assert!(
            told.iter().any(|it| it.contains(guilty)),
            "{name}: {told:?}"
        );
        let line = |suspect: &Value| suspect["source"][1]["text"].as_str().map(str::to_owned);
        let lines: Vec<String> = suspects.iter().filter_map(line).collect();
        assert!(
            lines.iter().any(|line| line.contains(to)),
            "{name}: {lines:?}"
        );
    }
}

const EARLY: &str = r#"#include <cstdio>
#define APART __attribute__((noipa))
APART int twice(int n) { return n > 1000 ? 3 * n + 1 : 2 * n; }
APART int sum(const int *of, int n) { int all = 0; for (int i = 0; i < n; i++) all += of[i]; return all; }
/* more */
int main() {
  int of[] = {3, 1, 4, 1, 5}, all = 0;
  for (int n : of) all += twice(n);
  printf("%d %d\n", all, sum(of, 5));
}
"#;

/// A new initializer calls before `main` does. A renamed function is no difference, unless its code is another one.
#[test]
fn a_function_that_one_build_alone_has_can_be_the_guilty_one() {
    let scratch = Scratch::new("compare-lone");
    made(&scratch, "good", EARLY, "g++ -O1");
    let initializer = "static APART int early() { return twice(40); }\nint begun = early();";
    let renamed = EARLY.replace("sum(", "total(");
    let edits = [
        (
            "new",
            EARLY.replace("/* more */", initializer),
            Some("early"),
        ),
        ("renamed", renamed.clone(), None),
        (
            "changed",
            renamed.replace("all += of[i]", "all -= of[i]"),
            Some("total"),
        ),
    ];
    for (name, text, guilty) in edits {
        made(&scratch, name, &text, "g++ -O1");
        let found = compare(&scratch, &["good", name, "--json"]).result();
        let suspects = found["suspects"].as_array().expect("a list");
        let named = |suspect: &Value| suspect["function"].as_str().unwrap_or_default().to_owned();
        let names: Vec<String> = suspects.iter().take(3).map(named).collect();
        let is_guilty = |name: &String| guilty.is_some_and(|guilty| name.starts_with(guilty));
        assert_eq!(
            names.iter().any(is_guilty),
            guilty.is_some(),
            "{name}: {names:?}"
        );
        assert_eq!(found["is_same"], guilty.is_none(), "{name}: {names:?}");
    }
}

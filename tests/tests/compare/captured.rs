//! What is captured with the calls is compared as far as it means something, and is told where it does.

use std::fs;

use e2e::{Program, Scratch};

use crate::{build, compare, ends_with, record};

const ORDERS: &str = r#"#include <string.h>
#include <time.h>
#define APART __attribute__((noipa))
struct order {
  char tag;
  int units;
  double price;
  char note[16];
  const char *name;
  union { int number; void *address; } extra;
  struct timespec at;
  unsigned flags : 3;
  int unset;
  unsigned short rest;
  long more[2];
  double unsure;
};
static volatile int sum;
APART void show(const struct order *order) { sum += order->units; }
APART void fill(struct order *order) { sum += order->tag; }
APART void add(const long *count) { sum += (int)*count; }
int main(int argc, char **argv) {
  struct timespec now;
  struct order order;
  long count = 120000;
  clock_gettime(CLOCK_REALTIME, &now);
  memset(&order, argv[2][0], sizeof order);
  fill(&order);
  order.tag = 'a';
  order.units = 3;
  order.price = 2.5;
  strcpy(order.note, "soon");
  order.name = "pencil";
  order.at = now;
  switch (argv[1][0]) {
    case 'u': order.units = 4; break;
    case 'p': order.price = 2.75; break;
    case 'n': order.note[0] = 'S'; break;
    case 'o': order.name = "pen"; break;
    case 'c': count = 130000; break;
  }
  show(&order);
  add(&count);
  return 0;
}
"#;

#[test]
fn values_that_a_function_only_reads_are_compared() {
    let scratch = Scratch::new("compare-pointees");
    fs::write(scratch.join("app.c"), ORDERS).expect("the test's folder is writable");
    build(scratch.path(), "gcc -O1 -g -o app app.c");
    let run = |name: &str, what: &str, options: &[&str]| {
        // What was in memory before is another in each run.
        let left = &name[1..];
        let app = Program::new(scratch.join("app"), scratch.path()).args([what, left]);
        record(&scratch, name, options, &app);
    };
    run("first", "-", &["--pointees"]);
    run("again", "-", &["--pointees"]);
    run("plain", "u", &[]);
    for same in ["again", "plain"] {
        ends_with(&compare(&scratch, &["first", same]), 0);
    }
    for (name, function, values) in [
        ("units", "show", ["units = 3", "units = 4"]),
        ("price", "show", ["price = 2.5", "price = 2.75"]),
        ("note", "show", ["note = \"soon", "note = \"Soon"]),
        ("other", "show", ["\"pencil\"", "\"pen\""]),
        ("count", "add", ["-> 120000", "-> 130000"]),
    ] {
        run(name, name, &["--pointees"]);
        let ended = compare(&scratch, &["first", name, "--json"]);
        ends_with(&ended, 1);
        let found = ended.result();
        let parting = &found["threads"][0]["parting"];
        assert_eq!(parting["how"], "arguments", "{name}: {found:#}");
        assert_eq!(parting["a"]["call"]["function"], function, "{name}");
        assert_eq!(found["differing"], 1, "{name}: {found:#}");
        let told = &parting["values"][0];
        for (side, value) in ["a", "b"].into_iter().zip(values) {
            let text = told[side].as_str().unwrap_or_default();
            assert!(text.contains(value), "{name}: {text}");
        }
    }
}

const LENGTHS: &str = r#"#include <string.h>
#define APART __attribute__((noipa))
static volatile int sum;
APART void put(const char *text, size_t length) { sum += text[length - 1]; }
APART void name(int len, const char *text, int length) { sum += text[length - 1]; }
int main(int argc, char **argv) {
  char room[64];
  memset(room, argv[2][0], sizeof room - 1);
  room[63] = 0;
  memcpy(room, argv[1], 3);
  put(room, 3);
  name(0, room, 3);
  return 0;
}
"#;

#[test]
fn what_follows_a_text_of_a_given_length_is_no_difference() {
    let scratch = Scratch::new("compare-lengths");
    fs::write(scratch.join("app.c"), LENGTHS).expect("the test's folder is writable");
    build(scratch.path(), "gcc -O1 -g -o app app.c");
    for (name, text, after) in [
        ("first", "key", "1"),
        ("again", "key", "2"),
        ("other", "kez", "1"),
    ] {
        let app = Program::new(scratch.join("app"), scratch.path()).args([text, after]);
        record(
            &scratch,
            name,
            &["--strings", "-f", "put", "-f", "name"],
            &app,
        );
    }
    ends_with(&compare(&scratch, &["first", "again"]), 0);
    let ended = compare(&scratch, &["first", "other"]);
    ends_with(&ended, 1);
    assert!(
        ended.text().contains("put began with other arguments"),
        "{}",
        ended.text()
    );
}

const MORE: &str = r#"#define APART __attribute__((noipa))
static volatile int sum;
APART void step(int n) { sum += n; }
APART int run(int count) {
  int doubled = 2 * count;
  step(doubled);
  if (MORE) step(doubled + 1);
  return doubled;
}
int main(void) { return run(3) - 6; }
"#;

/// Where a call has ended, fewer of its variables are known than where it makes another call; without its program, none.
#[test]
fn what_only_one_side_knows_is_told_if_that_is_all() {
    let scratch = Scratch::new("compare-one-sided");
    fs::write(scratch.join("app.c"), MORE).expect("the test's folder is writable");
    for (name, more) in [("less", "0"), ("more", "1")] {
        build(
            scratch.path(),
            &format!("gcc -O0 -g -DMORE={more} -o {name} app.c"),
        );
        let app = Program::new(scratch.join(name), scratch.path());
        let stack = ["--regs", "--stack", "256"];
        record(&scratch, &format!("{name}-alone"), &stack, &app);
        let watched = [&stack[..], &["--watch", "sum"]].concat();
        record(&scratch, &format!("{name}-watched"), &watched, &app);
    }
    let ended = compare(&scratch, &["less-watched", "more-watched"]);
    ends_with(&ended, 1);
    let text = ended.text();
    assert!(text.contains("watched sum: 6 on both sides\n"), "{text}");
    assert!(!text.contains("not known"), "{text}");
    fs::remove_file(scratch.join("less")).expect("it was built");
    let ended = compare(&scratch, &["less-alone", "more-alone"]);
    ends_with(&ended, 1);
    let text = ended.text();
    assert!(text.contains("local doubled: A not known, B 6\n"), "{text}");
}
